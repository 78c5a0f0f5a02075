-- class: resource
-- caller: member
-- mode: readonly
-- must: a sort, a hash or a materialised set does not fill the disk: temporary files of one call are bounded
-- before:
SET work_mem = '64kB'
-- setup:
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET aidb.tool_temp_file_limit = ''8MB''', current_database()); END $$;
-- attacks:
SELECT count(*) FROM generate_series(1, 100000000) g
SELECT count(*) FROM (SELECT g::text || repeat('x', 200) AS t FROM generate_series(1, 1000000) g ORDER BY 1) s
SELECT count(*) FROM (SELECT DISTINCT g::text || repeat('x', 200) AS t FROM generate_series(1, 1000000) g) s
WITH m AS MATERIALIZED (SELECT repeat('x', 1000) || g AS t FROM generate_series(1, 1000000) g) SELECT count(*) FROM m
SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY g % 7 ORDER BY md5(g::text)) FROM generate_series(1, 1000000) g) w
-- after:
SELECT count(*) FROM generate_series(1, 1000000) g
-- check:
SELECT bool_and(message ~ 'temporary file size exceeds "?temp_file_limit"? .8192kB.') FROM judge.seen WHERE phase = 'attack'
-- check:
SELECT judge.fine('after')
