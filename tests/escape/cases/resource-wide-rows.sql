-- class: resource
-- caller: owner
-- mode: role
-- must: sixteen hundred columns are a result like any other, and one more is PostgreSQL's own error
-- setup:
SET ROLE guest;
DO $$ BEGIN EXECUTE format('CREATE VIEW guest.wide AS SELECT %s', (SELECT string_agg(g || ' AS c' || g, ', ') FROM generate_series(1, 1600) g)); END $$;
-- attack:
SELECT * FROM guest.wide
-- attack:
SELECT w.*, 1 AS more FROM guest.wide w, generate_series(1, 65) g
-- attack:
SELECT a.*, b.* FROM guest.wide a, guest.wide b
-- check:
SELECT (SELECT count(*) = 1600 FROM jsonb_object_keys(judge.output('attack')::jsonb -> 0)) AND NOT judge.fine('attack', 3)
