-- Statements that change something - data, the session, the server - most of them in disguise; one a line. Each must be refused
-- as a read-only tool, with a reason that has the text after "reason:". Parameters stand before the statement: [name type, …].

-- reason: it contains INSERT
INSERT INTO w.log (s) VALUES ('x')
INSERT INTO w.log (s) SELECT s FROM w.t
INSERT INTO w.log (s) VALUES ('x') RETURNING id
INSERT INTO w.log DEFAULT VALUES
[x text] INSERT INTO w.log (s) VALUES (${x})
INSERT INTO w.t (id, s) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET s = excluded.s
/* just a SELECT */ INSERT INTO w.log (s) VALUES ('SELECT 1')
WITH x AS (SELECT 1 AS a) INSERT INTO w.log (s) SELECT a::text FROM x
WITH x AS (INSERT INTO w.log (s) VALUES ('x') RETURNING id) SELECT id FROM x
WITH x AS (INSERT INTO w.log (s) VALUES ('x') RETURNING id) SELECT 1 AS one
WITH x AS (INSERT INTO w.log (s) VALUES ('x')) SELECT 1 AS one
WITH a AS (SELECT 1 AS n), b AS (INSERT INTO w.log (s) SELECT n::text FROM a RETURNING id) SELECT count(*) FROM a
WITH x AS MATERIALIZED (INSERT INTO w.log (s) VALUES ('x') RETURNING id) TABLE x
WITH x AS (INSERT INTO w.log (s) VALUES ('x') RETURNING id) VALUES (1)
WITH x AS (INSERT INTO w.log (s) VALUES ('x') RETURNING id) SELECT 1 AS one UNION ALL SELECT id FROM x
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3), x AS (INSERT INTO w.log (s) SELECT n::text FROM r RETURNING 1) SELECT * FROM r

-- reason: it contains UPDATE
UPDATE w.t SET n = 0
UPDATE w.t SET n = n WHERE false
UPDATE w.t SET n = u.id FROM w.u u WHERE u.t_id = w.t.id RETURNING w.t.id
WITH x AS (UPDATE w.t SET n = 0 RETURNING id) SELECT id FROM x
WITH x AS (UPDATE w.t SET n = 0 WHERE id = 1 RETURNING n) SELECT (SELECT n FROM x) AS n
[x integer] WITH y AS (UPDATE w.t SET n = ${x} RETURNING id) SELECT count(*) FROM y
WITH x AS (UPDATE ONLY w.t SET s = upper(s) RETURNING *) SELECT * FROM x NATURAL JOIN (SELECT 1 AS z) q

-- reason: it contains DELETE
DELETE FROM w.log
DELETE FROM w.log USING w.t WHERE false
DELETE FROM w.u RETURNING id
WITH x AS (DELETE FROM w.log RETURNING id) SELECT id FROM x
WITH x AS (DELETE FROM w.u RETURNING *) SELECT 1 AS one
WITH x AS (WITH y AS (SELECT 1) DELETE FROM w.u RETURNING id) SELECT count(*) FROM x

-- reason: it contains MERGE
MERGE INTO w.t USING w.u ON w.u.t_id = w.t.id WHEN MATCHED THEN UPDATE SET n = 0
MERGE INTO w.u USING w.t ON false WHEN NOT MATCHED THEN INSERT VALUES (w.t.id + 100, w.t.id, 'm')
MERGE INTO w.u USING (VALUES (1)) v (id) ON w.u.id = v.id WHEN MATCHED THEN DELETE
WITH v AS (SELECT 1 AS id) MERGE INTO w.u USING v ON w.u.id = v.id WHEN MATCHED THEN DELETE

-- reason: it locks rows
SELECT id FROM w.t FOR UPDATE
SELECT id FROM w.t FOR NO KEY UPDATE
SELECT id FROM w.t FOR SHARE
SELECT id FROM w.t FOR KEY SHARE
SELECT id FROM w.t FOR UPDATE SKIP LOCKED
SELECT id FROM w.t WHERE id = 1 FOR UPDATE NOWAIT
SELECT t.id FROM w.t t JOIN w.u u ON u.t_id = t.id FOR UPDATE OF u
SELECT * FROM (SELECT id FROM w.t FOR UPDATE) q
SELECT 1 AS one WHERE EXISTS (SELECT id FROM w.t FOR SHARE)
WITH x AS (SELECT id FROM w.t FOR UPDATE) SELECT count(*) FROM x
SELECT (SELECT id FROM w.t ORDER BY id LIMIT 1 FOR UPDATE) AS id
SELECT id FROM w.view_good FOR UPDATE
SELECT id FROM w.view_lock
SELECT count(*) FROM w.view_lock
SELECT w.sly_lock() AS a

-- reason: function w.put(text) is VOLATILE
SELECT w.put('x') AS a
SELECT 1 AS one WHERE w.put('x') = 1
SELECT id FROM w.t WHERE w.put(s) = 1
SELECT id FROM w.t ORDER BY w.put(s)
SELECT id FROM w.t ORDER BY id, (SELECT w.put(s))
SELECT count(*) FROM w.t GROUP BY w.put(s)
SELECT n FROM w.t GROUP BY n HAVING sum(w.put(n::text)) > 0
SELECT DISTINCT ON (w.put(s)) id FROM w.t
SELECT id FROM w.t LIMIT w.put('limit')
SELECT id FROM w.t OFFSET w.put('offset')
SELECT count(*) FILTER (WHERE w.put(s) = 1) FROM w.t
SELECT sum(w.put(s)) FROM w.t
SELECT array_agg(id ORDER BY w.put(s)) FROM w.t
SELECT sum(id) OVER (ORDER BY w.put(s)) AS a FROM w.t
SELECT sum(id) OVER (PARTITION BY w.put(s)) AS a FROM w.t
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN w.put('frame') PRECEDING AND CURRENT ROW) AS a FROM w.t
SELECT sum(id) OVER v AS a FROM w.t WINDOW v AS (ORDER BY w.put(s))
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY w.put(s)) FROM w.t
SELECT t.id FROM w.t t JOIN w.u u ON w.put(u.note) = t.id
SELECT t.id FROM w.t t LEFT JOIN w.u u ON u.t_id = t.id AND w.put(u.note) = 1
SELECT a FROM w.t, LATERAL w.put(s) a
SELECT a FROM w.t CROSS JOIN LATERAL (SELECT w.put(t.s) AS a) q
SELECT * FROM w.put('from')
SELECT * FROM ROWS FROM (generate_series(1, 2), w.put('rows')) AS q (a, b)
SELECT a FROM w.put('x') WITH ORDINALITY q (a, b)
SELECT CASE WHEN false THEN w.put('x') ELSE 0 END AS a
SELECT coalesce(NULL, w.put('x')) AS a
SELECT nullif(w.put('x'), 0) AS a
SELECT greatest(1, w.put('x')) AS a
SELECT ARRAY[w.put('x')] AS a
SELECT ARRAY(SELECT w.put(s) FROM w.t) AS a
SELECT ROW(w.put('x')) AS a
SELECT (ARRAY[10, 20])[w.put('x')] AS a
SELECT (ARRAY[10, 20])[w.put('x'):2] AS a
SELECT w.put('x') IN (1, 2) AS a
SELECT 1 = ANY (ARRAY[w.put('x')]) AS a
SELECT 1 IN (SELECT w.put(s) FROM w.t) AS a
SELECT EXISTS (SELECT w.put(s) FROM w.t) AS a
SELECT w.put('x') IS NULL AS a
SELECT w.put('x') BETWEEN 0 AND 2 AS a
SELECT NOT (w.put('x') = 1) AS a
SELECT (w.put('x') = 1) IS TRUE AS a
SELECT w.put('x')::text AS a
SELECT CAST(w.put('x') AS numeric) AS a
SELECT row_to_json(q) AS a FROM (SELECT w.put(s) FROM w.t) q
SELECT jsonb_build_object('a', w.put('x')) AS a
SELECT format('%s', w.put('x')) AS a
SELECT 1 AS one UNION SELECT w.put('x')
SELECT id FROM w.t EXCEPT SELECT w.put(s) FROM w.t
SELECT id FROM w.t INTERSECT ALL SELECT w.put(s) FROM w.t
VALUES (1), (w.put('x'))
SELECT * FROM (VALUES (w.put('x'))) v (a)
WITH x AS (SELECT w.put('x') AS a) SELECT a FROM x
WITH x AS (SELECT w.put('x') AS a) SELECT 1 AS one
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + w.put('r') FROM r WHERE n < 3) SELECT n FROM r
SELECT id FROM w.t TABLESAMPLE BERNOULLI (w.put('sample') * 50)
SELECT x.a FROM XMLTABLE('/r' PASSING CAST('<r>' || w.put('xml') || '</r>' AS xml) COLUMNS a text PATH '.') x
SELECT xmlelement(NAME a, w.put('x')) AS a
SELECT GROUPING(n) AS a, w.put('x') AS b FROM w.t GROUP BY ROLLUP (n)
[x text] SELECT w.put(${x}) AS a
[x text] SELECT id FROM w.t WHERE s = ${x} OR w.put(${x}) = 2
SELECT abs(w.put('x')) + 1 AS a
SELECT w.sly('x') AS a
SELECT w.sly_immutable('x') AS a
SELECT w.sly_atomic('x') AS a
SELECT w.sly_return('x') AS a
SELECT w.sly_second('x') AS a
SELECT w.sly_deep('x') AS a
SELECT w.sly_deeper('x') AS a
SELECT w.sly_poly('x'::text) AS a
SELECT w.same(w.sly_poly('x'::text)) AS a
SELECT w.sly_poly_array(ARRAY[1]) AS a
SELECT a FROM w.sly_rows() a
SELECT w.sly_default() AS a
SELECT 'a' OPERATOR(w.+!) 'b' AS a
SELECT OPERATOR(w.!!) 'b'::text AS a
SELECT w.gather(s) AS a FROM w.t
SELECT w.finish(s) AS a FROM w.t
SELECT w.combine(s) AS a FROM w.t
SELECT w.moving(s) OVER (ORDER BY id ROWS 1 PRECEDING) AS a FROM w.t
SELECT w.moving_back(s) OVER (ORDER BY id ROWS 1 PRECEDING) AS a FROM w.t
SELECT w.moving_final(s) OVER (ORDER BY id ROWS 1 PRECEDING) AS a FROM w.t
SELECT ROW(1, 'x')::w.pair::text AS a
SELECT length(ROW(1, 'x')::w.pair) AS a
SELECT s::w.noted AS a FROM w.t
SELECT s::w.noted_again AS a FROM w.t
SELECT s::w.noted_loud AS a FROM w.t
SELECT ARRAY[s]::w.noted[] AS a FROM w.t
SELECT ('{' || s || '}')::w.noted[] AS a FROM w.t
SELECT ROW(id, s)::w.holder AS a FROM w.t
SELECT ('(1,' || id || ')')::w.holder AS a FROM w.t
SELECT * FROM jsonb_populate_record(NULL::w.holder, '{"a": 1, "b": "x"}')
SELECT * FROM json_to_record('{"a": "x"}') AS q (a w.noted)
SELECT a FROM jsonb_to_recordset('[{"a": "x"}]') AS q (a w.noted)
SELECT x.a FROM XMLTABLE('/r' PASSING XMLPARSE(DOCUMENT '<r>1</r>') COLUMNS a w.noted PATH '.') x
SELECT jsonb_populate_record(h, '{"b": "x"}') AS a FROM w.held h
[x w.noted] SELECT ${x} AS a
[x w.noted[]] SELECT ${x} AS a
SELECT a FROM w.view_put
SELECT a FROM w.view_sly
SELECT a FROM w.view_twice
SELECT id FROM w.view_where
TABLE w.view_put
SELECT count(*) FROM w.view_turned
SELECT 1 AS one WHERE EXISTS (SELECT FROM w.view_put)
SELECT a FROM w.policed
SELECT a FROM w.policed_sly

-- reason: is VOLATILE
SELECT w.put(1) AS a
SELECT w.put_void() AS a
SELECT id FROM w.put_rows('x')
SELECT b FROM w.put_table()
SELECT w.put_variadic('a') AS a
SELECT 1 OPERATOR(w.=!) 2 AS a
SELECT id FROM w.t WHERE id OPERATOR(w.=!) ANY (ARRAY[1, 2])
SELECT 'ok'::w.mood::integer AS a
SELECT w.sly_poly(1) AS a
SELECT id, a FROM w.view_lateral
SELECT w.volatile_reader() AS a
SELECT nextval('w.seq') AS a
SELECT setval('w.seq', 10) AS a
SELECT w.sly_next() AS a
SELECT id, nextval('w.seq') AS a FROM w.t

-- reason: it contains DELETE
SELECT w.sly_cte('x') AS a

-- reason: it contains INSERT
SELECT w.sly_insert('x') AS a

-- reason: is VOLATILE
EXPLAIN SELECT w.put('x') AS a
EXPLAIN SELECT w.sly_immutable('x') AS a
EXPLAIN SELECT id FROM w.t WHERE id = w.sly('x')
EXPLAIN DELETE FROM w.t WHERE id = w.sly_immutable('x')
EXPLAIN SELECT a FROM w.view_sly
EXPLAIN SELECT 'x'::text::w.noted_loud AS a

-- reason: it contains DELETE
EXPLAIN SELECT w.sly_cte('x') AS a

-- reason: is not a query
EXPLAIN EXECUTE p
EXPLAIN CREATE TABLE w.made AS SELECT 1 AS a
EXPLAIN DECLARE c CURSOR FOR SELECT 1 AS a
SELECT w.sly_explain() AS a

-- reason: runs a statement that is not known before
SELECT * FROM ts_stat('SELECT to_tsvector(w.put(''x'')::text)')
SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery FROM w.put(''x'')') AS a
SELECT table_to_xml('w.t', true, true, '') AS a
SELECT schema_to_xml('w', true, true, '') AS a
SELECT database_to_xml(true, true, '') AS a
SELECT database_to_xml_and_xmlschema(true, true, '') AS a

-- reason: gives the transaction a number
SELECT pg_current_xact_id() AS a
SELECT txid_current() AS a

-- reason: CREATE TABLE is not a query
SELECT w.sly_create() AS a

-- reason: cannot be a SQL tool
SELECT 1 AS a INTO w.made
CREATE TABLE w.made AS SELECT 1 AS a
CREATE MATERIALIZED VIEW w.made AS SELECT 1 AS a
TRUNCATE w.log
CALL w.put_procedure()
DO $$ BEGIN PERFORM w.put('do'); END $$
REFRESH MATERIALIZED VIEW w.frozen
COPY w.log (s) FROM PROGRAM 'echo x'
ALTER TABLE w.log ADD COLUMN x integer
DROP TABLE w.log
GRANT SELECT ON w.log TO PUBLIC
COMMENT ON TABLE w.log IS 'x'
EXPLAIN ANALYZE INSERT INTO w.log (s) VALUES ('x')
EXPLAIN (ANALYZE) DELETE FROM w.log

SET work_mem = '1MB'
LOCK TABLE w.t
LISTEN news
NOTIFY news
PREPARE p AS SELECT 1
DECLARE c CURSOR FOR SELECT 1
COPY w.t TO STDOUT
VACUUM w.t
BEGIN
EXPLAIN ANALYZE SELECT 1

-- reason: is VOLATILE
SELECT set_config('work_mem', '1MB', false) AS a
SELECT pg_advisory_lock(1) AS a
SELECT pg_try_advisory_lock(1) AS a
SELECT pg_advisory_xact_lock(1) AS a
SELECT pg_notify('news', 'x') AS a
SELECT lo_create(0) AS a
SELECT lo_import('/etc/hostname') AS a
SELECT lo_from_bytea(0, 'x') AS a
SELECT pg_reload_conf() AS a
SELECT pg_terminate_backend(1) AS a
SELECT pg_switch_wal() AS a
SELECT pg_logical_emit_message(true, 'a', 'b') AS a
SELECT pg_stat_reset() AS a
SELECT setseed(0.5) AS a
SELECT dblink_exec('dbname=nowhere', 'DELETE FROM w.t') AS a
SELECT dblink_connect('c', 'dbname=nowhere') AS a
SELECT w.sly_configure() AS a
SELECT query_to_xml('SELECT w.put(''x'')', true, true, '') AS a
SELECT pg_read_file('/etc/hostname') AS a
SELECT pg_ls_dir('.') AS a
SELECT lastval() AS a
