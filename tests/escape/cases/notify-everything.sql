-- class: notify
-- caller: superuser
-- mode: role
-- must: nobody is notified, and what the caller listens to stays what it was
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.tells() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM pg_notify('news', 'x'); RETURN NEW; END $f$;
CREATE TABLE guest.telling (a integer);
CREATE TRIGGER t AFTER INSERT ON guest.telling FOR EACH ROW EXECUTE FUNCTION guest.tells();
CREATE TABLE guest.ruled (a integer);
CREATE RULE tells AS ON INSERT TO guest.ruled DO ALSO NOTIFY news;
-- before:
LISTEN news
-- attacks:
NOTIFY news
NOTIFY news, 'payload'
SELECT pg_notify('news', 'x')
SELECT pg_notify(title, 'x') FROM store.goods
LISTEN other
UNLISTEN news
UNLISTEN *
INSERT INTO guest.telling VALUES (1)
INSERT INTO guest.ruled VALUES (1)
DO $$ BEGIN NOTIFY news; END $$
DO $$ BEGIN PERFORM pg_notify('news', 'x'); END $$
SELECT pg_logical_emit_message(false, 'news', 'x')
-- after:
SELECT string_agg(c, ',') FROM pg_listening_channels() c
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = 'news'
