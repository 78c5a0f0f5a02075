-- class: ro-toggle
-- caller: superuser
-- mode: role
-- txn: block
-- must: in a READ ONLY transaction of the caller an agent has no tool that writes, whatever it asks for
-- before:
CREATE TEMP TABLE told (t text)
-- before:
SET TRANSACTION READ ONLY
-- before:
INSERT INTO told SELECT harness.ask('guest_writes', s) FROM unnest(ARRAY['INSERT INTO guest.pad (note) VALUES (''x'')', 'SELECT nextval(''guest.pad_id_seq'')', 'SET TRANSACTION READ WRITE']) s
-- attack:
INSERT INTO guest.pad (note) VALUES ('x')
-- check:
SELECT judge.output('attack') = '' AND (SELECT count(*) = 2 FROM guest.pad)
