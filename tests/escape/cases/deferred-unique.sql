-- class: deferred
-- caller: member
-- mode: role
-- txn: block
-- must: a deferred unique or exclusion constraint is no way to run an index function of the role's at the caller's commit
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.keyed(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN PERFORM guest.payload('index'); RETURN $1; END $f$;
CREATE TABLE guest.uniques (a text CONSTRAINT u UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE guest.excluded (a text, CONSTRAINT x EXCLUDE USING btree (guest.keyed(a) WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO guest.uniques VALUES ('one');
INSERT INTO guest.excluded VALUES ('one');
-- setup:
DELETE FROM safe.breach;
-- attacks:
INSERT INTO guest.uniques VALUES ('one')
INSERT INTO guest.excluded VALUES ('one')
UPDATE guest.excluded SET a = 'one'
DO $$ BEGIN SET CONSTRAINTS ALL DEFERRED; END $$
DO $$ BEGIN SET CONSTRAINTS guest.x IMMEDIATE; INSERT INTO guest.excluded VALUES ('two'); END $$
-- check:
SELECT NOT judge.breached() AND (SELECT count(*) = 1 FROM guest.uniques)
