-- class: ro-function
-- caller: superuser
-- mode: readonly
-- must: neither from inside an operator, an aggregate, a window, a cast, a domain, a view, a policy or a function that claims to be pure
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.pure(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $f$ BEGIN INSERT INTO guest.pad (note) VALUES ($1); RETURN $1; END $f$;
CREATE FUNCTION guest.pure_sql(text) RETURNS bigint LANGUAGE sql STABLE AS $f$ SELECT nextval('guest.pad_id_seq') $f$;
CREATE FUNCTION guest.pure_swallow(text) RETURNS text LANGUAGE plpgsql STABLE AS $f$
BEGIN BEGIN INSERT INTO guest.pad (note) VALUES ($1); EXCEPTION WHEN OTHERS THEN NULL; END;
BEGIN PERFORM nextval('guest.pad_id_seq'); EXCEPTION WHEN OTHERS THEN NULL; END; RETURN 'swallowed'; END $f$;
CREATE FUNCTION guest.pure2(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT guest.pure($1 || $2)';
CREATE OPERATOR guest.@+@ (LEFTARG = text, RIGHTARG = text, PROCEDURE = guest.pure2);
CREATE AGGREGATE guest.collect(text) (SFUNC = guest.pure2, STYPE = text, INITCOND = '');
CREATE FUNCTION guest.final(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT guest.pure($1)';
CREATE AGGREGATE guest.finish(text) (SFUNC = textcat, STYPE = text, FINALFUNC = guest.final, INITCOND = '');
CREATE AGGREGATE guest.moving(text) (SFUNC = textcat, STYPE = text, MSFUNC = guest.pure2, MINVFUNC = guest.pure2, MSTYPE = text, INITCOND = '', MINITCOND = '');
CREATE DOMAIN guest.noted AS text CHECK (guest.pure(VALUE) <> '');
CREATE VIEW guest.looks AS SELECT guest.pure(note) AS note FROM guest.pad;
CREATE TYPE guest.pair AS ENUM ('x');
CREATE FUNCTION guest.pair_json(guest.pair) RETURNS json LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO guest.pad (note) VALUES ('json'); RETURN '1'; END $f$;
CREATE CAST (guest.pair AS json) WITH FUNCTION guest.pair_json(guest.pair);
CREATE TYPE guest.span AS RANGE (SUBTYPE = text);
CREATE TABLE guest.policed (a text);
INSERT INTO guest.policed VALUES ('row');
ALTER TABLE guest.policed ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON guest.policed USING (guest.pure(a) <> '');
CREATE TABLE guest.ruled (a text);
-- 16 and later make no such rule: the table is then gone, and so is the way
DO $d$ BEGIN
    CREATE RULE "_RETURN" AS ON SELECT TO guest.ruled DO INSTEAD SELECT guest.pure('rule') AS a;
EXCEPTION WHEN OTHERS THEN DROP TABLE guest.ruled; END $d$;
-- attacks:
SELECT guest.pure('x') AS v
SELECT guest.pure_sql('x') AS v
SELECT 'a' OPERATOR(guest.@+@) 'b' AS v
SELECT guest.collect(title) AS v FROM store.goods
SELECT guest.finish(title) AS v FROM store.goods
SELECT guest.moving(title) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM store.goods
SELECT 'x'::guest.noted AS v
SELECT note FROM guest.looks
SELECT 'x'::guest.pair AS v
SELECT a FROM guest.policed
SELECT a FROM guest.ruled
SELECT title FROM store.goods WHERE guest.pure(title) > ''
SELECT title FROM store.goods ORDER BY guest.pure(title)
SELECT count(*) FROM store.goods GROUP BY guest.pure(title)
SELECT count(*) FROM store.goods a JOIN store.goods b ON guest.pure(a.title) = b.title
SELECT v FROM store.goods, LATERAL guest.pure(title) v
SELECT title FROM store.goods LIMIT length(guest.pure('x'))
SELECT DISTINCT ON (guest.pure(title)) title FROM store.goods
EXPLAIN ANALYZE SELECT guest.pure('x') AS v
EXPLAIN SELECT guest.pure('x') AS v
SELECT table_to_xml('guest.looks', true, true, '') AS v
SELECT word FROM ts_stat('SELECT to_tsvector(guest.pure(''x''))')
-- attack:
SELECT guest.pure_swallow('x') AS v
-- check:
SELECT bool_and(state <> '' OR n = 23) FROM judge.seen WHERE phase = 'attack'
