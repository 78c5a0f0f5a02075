-- class: privilege
-- caller: owner
-- mode: readonly
-- must: row security holds against functions that look, casts, errors and plans, and against SET clauses
-- setup:
SET ROLE keeper;
CREATE TABLE store.notes (owner text, body text);
INSERT INTO store.notes VALUES ('keeper', 'mine'), ('clerk', 'HUSH of clerk'), ('guest', 'of guest');
ALTER TABLE store.notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON store.notes USING (owner = current_user);
GRANT SELECT ON store.notes TO guest;
SET ROLE guest;
CREATE FUNCTION guest.looks(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS $f$ BEGIN RAISE EXCEPTION 'saw %', $1; END $f$;
CREATE FUNCTION guest.without() RETURNS SETOF text LANGUAGE plpgsql STABLE SET row_security = off AS $f$ BEGIN RETURN QUERY SELECT body FROM store.notes; END $f$;
-- attacks:
SELECT body FROM store.notes
SELECT body FROM store.notes WHERE guest.looks(body)
SELECT body FROM store.notes WHERE body::integer = 1 AND owner <> 'guest'
SELECT guest.without() AS v
EXPLAIN ANALYZE SELECT body FROM store.notes WHERE body LIKE 'HUSH%'
SELECT count(*) AS n FROM store.notes WHERE body LIKE 'HUSH%'
-- check:
SELECT judge.told() NOT LIKE '%HUSH of clerk%' AND judge.told() NOT LIKE '%mine%' AND judge.output('attack', 1) LIKE '%of guest%' AND judge.output('attack', 6) = '[{"n": 0}]'
