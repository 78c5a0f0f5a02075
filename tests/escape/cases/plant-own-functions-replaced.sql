-- class: plant
-- caller: member
-- mode: role
-- must: guest's own functions, tables and views cannot be changed from a call into something else
-- attacks:
CREATE OR REPLACE FUNCTION guest.scribble(what text) RETURNS integer LANGUAGE sql AS 'SELECT 1'
ALTER FUNCTION guest.scribble(text) RENAME TO scrabble
ALTER TABLE guest.pad ADD COLUMN evil boolean DEFAULT guest.payload('default')
ALTER TABLE guest.pad RENAME TO pod
CREATE RULE "_RETURN" AS ON SELECT TO guest.pad DO INSTEAD SELECT 1
UPDATE pg_proc SET prosrc = 'BEGIN RETURN 2; END' WHERE proname = 'scribble'
INSERT INTO pg_trigger SELECT * FROM pg_trigger
DELETE FROM pg_depend
-- check:
SELECT judge.none_fine('attack') AND (SELECT count(*) = 2 FROM pg_attribute WHERE attrelid = 'guest.pad'::regclass AND attnum > 0)
