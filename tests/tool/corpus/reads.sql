-- Statements that only read, one a line, though many look as if they did not. Each must be accepted as a read-only tool and
-- must run. Parameters, each with a value to run it with, stand before the statement: [name type = JSON, …].

-- words that mean nothing where they stand
SELECT 'INSERT INTO w.log VALUES (1)' AS a
SELECT $$DELETE FROM w.t; DROP TABLE w.t$$ AS a
SELECT $delete$UPDATE w.t SET n = 0$delete$ AS a
SELECT E'\'; DROP TABLE w.t; --' AS a
SELECT 1 AS a -- DELETE FROM w.t
SELECT 1 /* UPDATE w.t SET n = 0 /* nested INSERT */ */ AS a
SELECT 1 AS "insert"
SELECT id AS "delete from w.t" FROM w.t
SELECT "delete", "insert into" FROM w."update"
SELECT u."delete" FROM w."update" u WHERE u."insert into" = 'truncate'
SELECT s AS updated_at FROM w.t WHERE s LIKE '%update%' OR s ILIKE 'delete%'
SELECT 'for update' AS a FROM w.t
SELECT id AS lock, n AS share FROM w.t
SELECT 1 AS a WHERE 'COMMIT' = 'ROLLBACK' OR true
SELECT 'x' AS call, 'y' AS do_it, 'z' AS merge_key
SELECT U&'\0044ELETE' AS a
SELECT e.* FROM (VALUES ('grant', 'revoke')) AS e ("create", "alter")
SELECT 1 AS a;
  SELECT 1 AS a ;  

-- plain queries
SELECT 1 AS a
SELECT
SELECT NULL AS a
SELECT * FROM w.t
TABLE w.t
TABLE w.t ORDER BY id LIMIT 2
VALUES (1, 'a'), (2, 'b')
VALUES (1) ORDER BY 1 OFFSET 0
(SELECT 1 AS a)
SELECT id, n FROM w.t WHERE id BETWEEN 2 AND 4 ORDER BY n DESC NULLS LAST FETCH FIRST 2 ROWS WITH TIES
SELECT DISTINCT n / 20 AS a FROM w.t
SELECT DISTINCT ON (n / 20) id, s FROM w.t ORDER BY n / 20, id
SELECT t.id, u.note FROM w.t JOIN w.u ON u.t_id = t.id
SELECT t.id, u.note FROM w.t LEFT JOIN w.u ON u.t_id = t.id WHERE u.id IS NULL
SELECT a.id, b.id AS other FROM w.t a CROSS JOIN w.t b WHERE a.id < b.id
SELECT t.id FROM w.t FULL JOIN w.u USING (id)
SELECT id FROM w.t NATURAL JOIN w.u
SELECT count(*) FROM w.t, w.u
SELECT id FROM w.t UNION SELECT id FROM w.u
SELECT id FROM w.t UNION ALL SELECT 100
SELECT id FROM w.t EXCEPT ALL SELECT id FROM w.u
SELECT id FROM w.t INTERSECT SELECT t_id FROM w.u
SELECT (SELECT max(n) FROM w.t) AS a
SELECT id FROM w.t WHERE id IN (SELECT t_id FROM w.u)
SELECT id FROM w.t WHERE NOT EXISTS (SELECT FROM w.u WHERE t_id = t.id)
SELECT id FROM w.t WHERE n > ALL (SELECT id FROM w.u)
SELECT id FROM w.t WHERE (id, n) = (1, 10)
SELECT id FROM w.t TABLESAMPLE SYSTEM (50) REPEATABLE (1)
SELECT id FROM ONLY w.t
SELECT t FROM w.t
SELECT (t).id, (t).s FROM w.t
SELECT ctid, tableoid::regclass AS tab, xmin FROM w.t

-- WITH
WITH x AS (SELECT id FROM w.t) SELECT * FROM x
WITH x AS MATERIALIZED (SELECT id FROM w.t), y AS NOT MATERIALIZED (SELECT * FROM x) SELECT count(*) FROM y
WITH RECURSIVE r AS (SELECT id, name FROM w.tree WHERE parent IS NULL UNION ALL SELECT c.id, c.name FROM w.tree c JOIN r ON c.parent = r.id) SELECT * FROM r
WITH RECURSIVE r (n) AS (VALUES (1) UNION SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r
WITH RECURSIVE r AS (SELECT id, parent FROM w.tree WHERE id = 4 UNION ALL SELECT t.id, t.parent FROM w.tree t JOIN r ON t.id = r.parent) SEARCH DEPTH FIRST BY id SET ord CYCLE id SET looped USING path SELECT id FROM r
WITH deleted AS (SELECT id FROM w.t WHERE n < 0) SELECT count(*) AS delete_count FROM deleted
SELECT * FROM (WITH inner_one AS (SELECT 1 AS a) SELECT a FROM inner_one) q

-- grouping, windows
SELECT n / 20 AS g, count(*), sum(n), avg(n), min(s), max(s) FROM w.t GROUP BY 1
SELECT n / 20 AS g, id % 2 AS h, count(*) FROM w.t GROUP BY GROUPING SETS ((1), (2), ())
SELECT n, id, grouping(n, id) AS g FROM w.t GROUP BY ROLLUP (n, id)
SELECT n, id FROM w.t GROUP BY CUBE (n, id)
SELECT count(*) FILTER (WHERE n > 20) AS big FROM w.t
SELECT string_agg(s, ', ' ORDER BY id DESC) AS a FROM w.t
SELECT array_agg(DISTINCT n) AS a, bool_and(n > 0) AS b FROM w.t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS median, mode() WITHIN GROUP (ORDER BY n) AS m FROM w.t
SELECT corr(id, n) AS a, stddev(n) AS b, variance(n) AS c, regr_slope(n, id) AS d FROM w.t
SELECT json_agg(t) AS a, jsonb_object_agg(id, s) AS b FROM w.t
SELECT id, row_number() OVER (ORDER BY n) AS r, rank() OVER w AS k, lag(n) OVER w AS l FROM w.t WINDOW w AS (PARTITION BY id % 2 ORDER BY n)
SELECT sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM w.t
SELECT sum(n) OVER (ORDER BY at RANGE BETWEEN '2 days' PRECEDING AND CURRENT ROW EXCLUDE TIES) AS a FROM w.t
SELECT first_value(s) OVER (ORDER BY id GROUPS 1 PRECEDING) AS a, ntile(2) OVER (ORDER BY id) AS b, cume_dist() OVER (ORDER BY id) AS c FROM w.t
SELECT w.join_up(s) AS a FROM w.t
SELECT w.join_up(s) OVER (ORDER BY id) AS a FROM w.t

-- expressions
SELECT CASE WHEN n > 20 THEN 'big' ELSE 'small' END AS a FROM w.t
SELECT coalesce(s, 'none') AS a, nullif(n, 10) AS b, greatest(id, n) AS c, least(id, n) AS d FROM w.t
SELECT tags[1] AS a, tags[1:2] AS b, array_length(tags, 1) AS c, 'a' = ANY (tags) AS d FROM w.t
SELECT unnest(tags) AS a FROM w.t
SELECT doc ->> 'k' AS a, doc -> 'list' -> 0 AS b, doc #>> '{list,1}' AS c, doc @> '{"k": 1}' AS d FROM w.t
SELECT doc['k'] AS a FROM w.t
SELECT jsonb_path_query(doc, '$.list[*]') AS a FROM w.t
SELECT jsonb_set(doc, '{k}', '0') AS a, doc - 'list' AS b, doc || '{"x": 1}' AS c FROM w.t
SELECT key, value FROM w.t, jsonb_each(doc) ORDER BY id
SELECT * FROM jsonb_to_recordset('[{"a": 1, "b": "x"}]') AS x (a integer, b text)
SELECT * FROM jsonb_populate_record(NULL::w.pair, '{"a": 1, "b": "x"}')
SELECT x.a FROM XMLTABLE('/r/i' PASSING XMLPARSE(DOCUMENT '<r><i>1</i><i>2</i></r>') COLUMNS a integer PATH '.') x
SELECT xpath('/a/text()', '<a>x</a>'::xml) AS a, xmlforest(id, s) AS b FROM w.t
SELECT s ~ '^row' AS a, s SIMILAR TO 'row %' AS b, regexp_replace(s, 'row', 'line') AS c, substring(s FROM 5) AS d FROM w.t
SELECT regexp_matches(s, '(\d)', 'g') AS a FROM w.t
SELECT overlay(s PLACING 'X' FROM 1 FOR 3) AS a, position('w' IN s) AS b, trim(BOTH 'r' FROM s) AS c, s || n AS d FROM w.t
SELECT s COLLATE "C" AS a FROM w.t ORDER BY s COLLATE "C"
SELECT extract(dow FROM at) AS a, date_trunc('month', at) AS b, at AT TIME ZONE 'UTC' AS c, age(at) AS d FROM w.t
SELECT (at, at + '1 day') OVERLAPS (at, at) AS a FROM w.t
SELECT to_char(at, 'YYYY-MM-DD') AS a, to_number('12.3', '99.9') AS b, to_date('20240101', 'YYYYMMDD') AS c FROM w.t
SELECT now() AS a, current_date AS b, current_timestamp AS c, localtime AS d, statement_timestamp() AS e, transaction_timestamp() AS f
SELECT clock_timestamp() > now() AS a, timeofday() AS b
SELECT random() BETWEEN 0 AND 1 AS a
SELECT id FROM w.t ORDER BY random() LIMIT 1
SELECT gen_random_uuid() AS a
SELECT pg_sleep(0) AS a
SELECT current_user AS a, session_user AS b, current_database() AS c, current_schema() AS d, pg_backend_pid() AS e
SELECT version() AS a, current_setting('work_mem') AS b, pg_is_in_recovery() AS c
SELECT md5(s) AS a, sha256(s::bytea) AS b, encode(s::bytea, 'base64') AS c, crc.d FROM w.t, LATERAL (SELECT length(s) AS d) crc
SELECT 'happy'::w.mood AS a, enum_range(NULL::w.mood) AS b
SELECT 5::w.positive AS a
SELECT ROW(1, 2)::w.point AS a
SELECT '(3,4)'::w.point AS a
SELECT ARRAY[1, 2]::w.positive[] AS a
SELECT '[1,5)'::int4range @> 3 AS a, lower('[1,5)'::int4range) AS b, '{[1,2)}'::int4multirange AS c
SELECT '10.0.0.1'::inet << '10.0.0.0/8'::cidr AS a, '08:00:2b:01:02:03'::macaddr AS b
SELECT point(1, 2) <-> point(3, 4) AS a, box '((0,0),(1,1))' AS b
SELECT to_tsvector('english', s) @@ to_tsquery('row') AS a, ts_rank(to_tsvector(s), 'row') AS b FROM w.t
SELECT B'101' & B'110' AS a, 5 # 3 AS b, ~1 AS c, 2 ^ 10 AS d, |/ 16.0 AS e, @ -5 AS f
SELECT 'NaN'::float AS a, 1e308 AS b, .5 AS c
SELECT 3 OPERATOR(w.##) 4 AS a
SELECT generate_series(1, 3) AS a
SELECT * FROM generate_series('2024-01-01'::date, '2024-01-03', '1 day') WITH ORDINALITY AS g (day, n)
SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['a', 'b'])) AS q (a, b)
SELECT * FROM string_to_table('a,b', ',') AS a
SELECT num_nulls(NULL, 1) AS a, pg_typeof(1) AS b, format('%s %I %L', 1, 'a b', 'c') AS c

-- functions of one's own
SELECT w.twice(n) AS a FROM w.t
SELECT w.pl(n) AS a FROM w.t
SELECT w.pl_reader() AS a
SELECT w.same(1) AS a, w.same('x'::text) AS b
SELECT w.first(tags) AS a FROM w.t
SELECT id FROM w.rows_of(2)
SELECT (w.rows_of(2)).s
SELECT w.factorial(5) AS a
SELECT w.tomorrow() AS a
SELECT w.tomorrow(x => '2024-01-01') AS a
SELECT w.atomic(1) AS a

-- views and policies
SELECT * FROM w.view_good
SELECT * FROM w.view_better
SELECT * FROM w.view_recursive
SELECT * FROM w.frozen
SELECT a FROM w.policed_good
SELECT table_name FROM information_schema.tables WHERE table_schema = 'w'
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't'
SELECT relname FROM pg_class WHERE relnamespace = 'w'::regnamespace
SELECT schemaname, tablename, indexname FROM pg_indexes WHERE schemaname = 'w'
SELECT count(*) FROM pg_stat_user_tables
SELECT datname FROM pg_stat_activity WHERE pid = pg_backend_pid()
SELECT name, setting FROM pg_settings WHERE name = 'work_mem'
SELECT count(*) FROM pg_locks
SELECT pg_size_pretty(pg_total_relation_size('w.t')) AS a
SELECT pg_get_viewdef('w.view_good'::regclass) AS a, pg_get_functiondef('w.twice(integer)'::regprocedure) AS b
SELECT obj_description('w.t'::regclass) AS a, col_description('w.t'::regclass, 1) AS b
SELECT has_table_privilege('w.t', 'UPDATE') AS a
SELECT to_regclass('w.nothing') AS a, 'w.t'::regclass::oid > 0 AS b
SELECT last_value FROM w.seq
SELECT rolname FROM pg_roles WHERE rolname = current_user
SELECT extname, extversion FROM pg_extension

-- EXPLAIN shows what the statement would do
EXPLAIN SELECT * FROM w.t
EXPLAIN (FORMAT JSON, VERBOSE, COSTS off) SELECT * FROM w.t WHERE id = 1
EXPLAIN DELETE FROM w.t
EXPLAIN INSERT INTO w.u VALUES (9, 1, 'x')
EXPLAIN WITH x AS (UPDATE w.t SET n = 0 RETURNING id) SELECT * FROM x
EXPLAIN (ANALYZE, ANALYZE false) DELETE FROM w.t
EXPLAIN SELECT id FROM w.t FOR UPDATE
EXPLAIN UPDATE w.t SET n = w.twice(n) WHERE id = w.twice(1)

-- parameters
[x integer = 2] SELECT s FROM w.t WHERE id = ${x}
[x integer = 2] SELECT ${x} AS a, ${x} + 1 AS b
[x text = "'); DROP TABLE w.t; --"] SELECT ${x} AS a
[x text[] = ["a", null, "b\"c"]] SELECT ${x} AS a
[x jsonb = {"a": [1]}] SELECT ${x} -> 'a' AS a
[x date = "2024-02-29"] SELECT ${x} + 1 AS a
[x w.mood = "ok"] SELECT ${x} AS a
[x w.positive = 3] SELECT ${x} AS a
[x integer = 1, y integer = 2] SELECT s FROM w.t WHERE id IN (${x}, ${y})
[lim integer = 2] SELECT id FROM w.t ORDER BY id LIMIT ${lim}
[x text = "row"] SELECT id FROM w.t WHERE s LIKE ${x} || '%' -- not ${y}
[x numeric = 1.50] SELECT ${x}::text AS a
[x boolean = true] SELECT NOT ${x} AS a
[x bytea = "aGk="] SELECT convert_from(${x}, 'UTF8') AS a
[x interval = "1 day"] SELECT id FROM w.t WHERE at > now() - ${x}

-- text that is no statement
SELECT table_to_xmlschema('w.t', true, true, '') AS a
SELECT ts_rewrite('a & b'::tsquery, 'a', 'c') AS a
