-- class: resource
-- caller: member
-- mode: role
-- must: RAISE INFO, which client_min_messages does not stop, does not flood the client, also when its error is caught; a little of it is fine
-- attack:
DO $$ BEGIN FOR i IN 1..50 LOOP RAISE INFO '%', repeat('x', 1000000); END LOOP; END $$
-- attack:
DO $$ DECLARE n integer := 0; BEGIN FOR i IN 1..2000 LOOP BEGIN RAISE INFO '%', repeat('y', 100) USING DETAIL = repeat('z', 100000), ERRCODE = '57014'; EXCEPTION WHEN OTHERS OR query_canceled THEN n := n + 1; END; END LOOP; ASSERT n > 1980; END $$
-- attack:
DO $$ BEGIN RAISE INFO 'a few words'; RAISE NOTICE 'more'; RAISE WARNING 'and more'; END $$
-- check:
SELECT judge.message('attack', 1) LIKE '%more than 4096 bytes of RAISE INFO%' AND judge.fine('attack', 2) AND judge.fine('attack', 3)
