-- class: resource
-- caller: owner
-- mode: role
-- must: tens of thousands of subtransactions, caught errors and statements leave the caller as it was
-- attack:
DO $$ BEGIN FOR i IN 1..20000 LOOP BEGIN PERFORM 1 / (i % 2); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$
-- attack:
DO $$ BEGIN FOR i IN 1..3000 LOOP BEGIN INSERT INTO guest.pad (note) VALUES (i::text); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; RAISE EXCEPTION 'undone'; END $$
-- after:
SELECT count(*) FROM guest.pad
-- check:
SELECT judge.fine('attack', 1) AND judge.output('after') = '2'
