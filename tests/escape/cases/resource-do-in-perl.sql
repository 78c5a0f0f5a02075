-- class: resource
-- caller: owner
-- mode: role
-- needs: plperl
-- must: a DO block in a language that looks at no deadline is not run; a function that somebody wrote in it is
-- setup:
SET ROLE keeper;
CREATE FUNCTION store.reversed(text) RETURNS text LANGUAGE plperl IMMUTABLE AS $f$ return scalar reverse $_[0]; $f$;
-- attacks:
DO LANGUAGE plperl $$ while (1) {} $$
DO $$ while (1) { eval { spi_exec_query('SELECT pg_sleep(1)') } } $$ LANGUAGE plperl
DO $$ BEGIN EXECUTE 'DO LANGUAGE plperl $x$ while (1) {} $x$'; END $$
-- attack:
SELECT store.reversed('abc') AS v
-- attack:
DO LANGUAGE plpgsql $$ BEGIN NULL; END $$
-- check:
SELECT bool_and(state <> '') FROM judge.seen WHERE phase = 'attack' AND n <= 3
-- check:
SELECT judge.output('attack', 4) = '[{"v": "cba"}]' AND judge.fine('attack', 5)
