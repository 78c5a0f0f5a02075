-- class: ro-function
-- caller: owner
-- mode: readonly
-- must: nor by what reads a value: an array, a row, a range or JSON whose parts are of a domain with a check of the role's
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.writes(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN INSERT INTO guest.pad (note) VALUES ($1); RETURN true; END $f$;
CREATE FUNCTION guest.draws(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $f$ SELECT nextval('guest.pad_id_seq') > 0 $f$;
CREATE FUNCTION guest.locks(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $f$ SELECT pg_try_advisory_lock(99) $f$;
CREATE DOMAIN guest.w AS text CHECK (guest.writes(VALUE));
CREATE DOMAIN guest.d AS text CHECK (guest.draws(VALUE));
CREATE DOMAIN guest.l AS text CHECK (guest.locks(VALUE));
CREATE TYPE guest.row_w AS (a guest.w, b integer);
CREATE TYPE guest.row_d AS (a guest.d[], b integer);
CREATE TYPE guest.row_l AS (a guest.l, b integer);
CREATE TYPE guest.between AS RANGE (SUBTYPE = guest.d);
CREATE FUNCTION guest.distance(integer, integer) RETURNS float8 LANGUAGE sql IMMUTABLE AS $f$ SELECT pg_try_advisory_lock(98)::integer::float8 $f$;
CREATE TYPE guest.distant AS RANGE (SUBTYPE = integer, SUBTYPE_DIFF = guest.distance);
CREATE TABLE guest.spans (s guest.distant);
CREATE INDEX ON guest.spans USING gist (s);
-- attacks:
SELECT '{x}'::guest.w[] AS v
SELECT '(x,1)'::guest.row_w AS v
SELECT '("{x,y}",1)'::guest.row_d AS v
SELECT '(x,1)'::guest.row_l AS v
SELECT ROW('x', 1)::guest.row_w AS v
SELECT ARRAY['x']::guest.l[] AS v
SELECT '[a,b]'::guest.between AS v
SELECT guest.between('a', 'b') AS v
SELECT '{"a": "x", "b": 1}'::json ->> 'a' AS v, r.* FROM json_populate_record(NULL::guest.row_w, '{"a": "x"}') r
SELECT * FROM jsonb_populate_recordset(NULL::guest.row_d, '[{"a": ["x"]}]')
SELECT * FROM json_to_record('{"a": "x"}') AS r (a guest.l)
SELECT * FROM jsonb_to_recordset('[{"a": "x"}]') AS r (a guest.w)
SELECT * FROM xmltable('/r' PASSING '<r><a>x</a></r>' COLUMNS a guest.d PATH 'a')
SELECT string_to_array('x,y', ',')::guest.l[] AS v
SELECT pg_input_is_valid('x', 'guest.w') AS v
SELECT 'x'::text::guest.d::text::guest.w AS v
SELECT unnest(ARRAY['x', 'y']::guest.d[]) AS v
SELECT NULL::guest.l AS v
VALUES ('x'::guest.w), ('y'::guest.w)
SELECT CASE WHEN true THEN 'x'::guest.w END AS v
EXPLAIN SELECT '{x}'::guest.l[] AS v
EXPLAIN SELECT * FROM guest.spans WHERE s && '(x,1)'::text::guest.distant
-- check:
SELECT judge.none_fine('attack')
