-- class: notify
-- caller: superuser
-- mode: role
-- txn: block
-- must: neither a trigger that waits for the end, nor a rule, nor a check sends what only the commit would deliver
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.tells() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN EXECUTE 'NOTIFY news'; RETURN NEW; END $f$;
CREATE FUNCTION guest.tells_quietly() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN BEGIN PERFORM pg_notify('news', 'x'); EXCEPTION WHEN OTHERS THEN NULL; END; RETURN NEW; END $f$;
CREATE TABLE guest.late (a integer);
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON guest.late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION guest.tells();
CREATE TABLE guest.soon (a integer);
CREATE TRIGGER t AFTER INSERT ON guest.soon FOR EACH STATEMENT EXECUTE FUNCTION guest.tells();
CREATE TABLE guest.quiet (a integer);
CREATE TRIGGER t AFTER INSERT ON guest.quiet FOR EACH ROW EXECUTE FUNCTION guest.tells_quietly();
-- before:
LISTEN news
-- attacks:
INSERT INTO guest.late VALUES (1)
INSERT INTO guest.soon VALUES (1)
INSERT INTO guest.quiet VALUES (1)
-- after:
SELECT pg_notification_queue_usage()
-- next:
SELECT pg_notification_queue_usage()
-- check:
SELECT judge.output('after') = judge.output('next') AND NOT judge.fine('attack', 1) AND NOT judge.fine('attack', 2) AND judge.fine('attack', 3)
