-- class: resource
-- caller: member
-- mode: role
-- log: 600000
-- must: a loop of RAISE does not fill the server's log, nor the client's connection
-- attack:
DO $$ BEGIN FOR i IN 1..20000 LOOP RAISE LOG 'line % %', i, repeat('x', 1000); END LOOP; END $$
-- attack:
DO $$ BEGIN FOR i IN 1..20000 LOOP RAISE WARNING 'line % %', i, repeat('x', 1000); RAISE NOTICE '%', i; END LOOP; END $$
-- attack:
DO $$ BEGIN FOR i IN 1..3 LOOP RAISE LOG 'a few words'; END LOOP; END $$
-- check:
SELECT judge.all_fine('attack')
