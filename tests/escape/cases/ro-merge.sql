-- class: ro-statement
-- caller: owner
-- mode: readonly
-- must: MERGE, alone, explained with ANALYZE or in a WITH where that is possible, changes nothing
-- attacks:
MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged'
MERGE INTO guest.pad p USING (SELECT 99 AS id) s ON p.id = s.id WHEN NOT MATCHED THEN INSERT (note) VALUES ('merged')
MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE
EXPLAIN ANALYZE MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE
WITH m AS (MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE RETURNING p.id) SELECT * FROM m
MERGE INTO guest.pad p USING (SELECT guest.scribble('merge') AS id) s ON p.id = s.id WHEN MATCHED THEN DO NOTHING
-- check:
SELECT judge.none_fine('attack')
