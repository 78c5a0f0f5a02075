-- class: files
-- caller: superuser
-- mode: readonly
-- agent: bare
-- needs: pg_stat_statements
-- must: wrapping the call changes nothing: SQL functions, views, laterals, strings of SQL, libraries
-- setup:
CREATE VIEW public.versions AS SELECT pg_read_file('PG_VERSION') AS v;
CREATE FUNCTION public.version_sql() RETURNS text LANGUAGE sql STABLE AS 'SELECT pg_read_file(''PG_VERSION'')';
CREATE FUNCTION public.version_pl() RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN pg_read_file(''PG_VERSION''); END';
CREATE FUNCTION public.concat_files(text, text) RETURNS text LANGUAGE sql AS 'SELECT concat($1, pg_read_file($2))';
CREATE AGGREGATE public.files(text) (SFUNC = public.concat_files, STYPE = text);
CREATE DOMAIN public.readable AS text CHECK (pg_read_file(VALUE) <> '');
CREATE OPERATOR public.@>> (LEFTARG = text, RIGHTARG = text, PROCEDURE = public.concat_files);
-- attacks:
SELECT v FROM public.versions
SELECT public.version_sql() AS v
SELECT public.version_pl() AS v
SELECT public.files('PG_VERSION') AS v
SELECT 'PG_VERSION'::public.readable AS v
SELECT '' OPERATOR(public.@>>) 'PG_VERSION' AS v
SELECT f.v FROM (VALUES ('PG_VERSION')) n (name), LATERAL pg_read_file(n.name) AS f (v)
SELECT * FROM ROWS FROM (pg_read_file('PG_VERSION'), generate_series(1, 2)) AS r (a, b)
SELECT query_to_xml('SELECT pg_read_file(''PG_VERSION'')', true, true, '') AS v
SELECT table_to_xml('public.versions', true, true, '') AS v
SELECT word FROM ts_stat('SELECT to_tsvector(pg_read_file(''PG_VERSION''))')
SELECT (ARRAY[pg_read_file('PG_VERSION')])[1] AS v
SELECT CASE WHEN now() > 'epoch' THEN pg_read_file('PG_VERSION') END AS v
SELECT coalesce(NULL, pg_read_file('PG_VERSION')) AS v
SELECT pg_catalog.pg_read_file(filename => 'PG_VERSION') AS v
WITH RECURSIVE r (n, v) AS (SELECT 1, '' UNION ALL SELECT n + 1, pg_read_file('PG_VERSION') FROM r WHERE n < 2) SELECT n, v FROM r
EXPLAIN (ANALYZE, VERBOSE) SELECT pg_read_file('PG_VERSION')
SELECT pg_stat_statements_reset()
-- check:
SELECT judge.none_fine('attack')
