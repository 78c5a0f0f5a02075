-- class: ro-function
-- caller: owner
-- mode: readonly
-- must: no function writes, draws a number, takes a transaction id or leaves a message
-- setup:
CREATE SEQUENCE store.numbers;
GRANT ALL ON SEQUENCE store.numbers TO guest;
SET ROLE guest;
CREATE TABLE guest.brin (a integer);
CREATE INDEX brin_i ON guest.brin USING brin (a);
CREATE TABLE guest.gin (a integer[]);
CREATE INDEX gin_i ON guest.gin USING gin (a);
-- attacks:
SELECT nextval('store.numbers')
SELECT setval('store.numbers', 99)
SELECT setval('store.numbers', 99, true)
SELECT guest.scribble('x')
SELECT guest.sly('x')
SELECT pg_current_xact_id()
SELECT txid_current()
SELECT lo_create(0)
SELECT lo_from_bytea(0, 'x')
SELECT pg_logical_emit_message(true, 'p', 'x')
SELECT brin_summarize_new_values('guest.brin_i')
SELECT brin_summarize_range('guest.brin_i', 0)
SELECT brin_desummarize_range('guest.brin_i', 0)
SELECT gin_clean_pending_list('guest.gin_i')
SELECT pg_notify('x', 'x')
SELECT pg_advisory_lock(1)
SELECT setseed(0.5)
SELECT pg_export_snapshot()
SELECT pg_extension_config_dump('guest.pad', '')
SELECT pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')
SELECT set_config('app.marker', 'x', false)
-- check:
SELECT judge.none_fine('attack')
