-- class: nested
-- caller: superuser
-- mode: role
-- must: the extension's own functions that act or change something cannot be called from a tool's SQL, also with every right to
-- setup:
GRANT aidb_users, aidb_governance TO guest;
SELECT aidb.create_model('echo', 'dummy', '{"responses": [{"response": "x"}]}', validate => false);
SET ROLE guest;
CREATE FUNCTION guest.asks() RETURNS text LANGUAGE plpgsql AS $f$ DECLARE r record; BEGIN SELECT * INTO r FROM aidb.agent_converse('bare_reads', 'SELECT 1'); RETURN r.message; END $f$;
CREATE FUNCTION guest.asks_trigger() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM aidb.execute_sql('RESET ROLE'); RETURN NEW; END $f$;
CREATE TABLE guest.asking (a integer);
CREATE TRIGGER t BEFORE INSERT ON guest.asking FOR EACH ROW EXECUTE FUNCTION guest.asks_trigger();
CREATE VIEW guest.asked AS SELECT message FROM aidb.agent_converse('bare_reads', 'SELECT 1');
RESET ROLE;
CREATE FUNCTION store.asks() RETURNS text LANGUAGE sql SECURITY DEFINER AS $f$ SELECT message FROM aidb.agent_converse('bare_reads', 'SELECT 1') $f$;
-- attacks:
SELECT * FROM aidb.agent_converse('bare_reads', 'SELECT 1')
SELECT * FROM aidb.agent_converse('guest_writes', 'RESET ROLE', read_only => true)
SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT 1"}')
SELECT aidb.run_sql_query('SELECT 1')
SELECT aidb.execute_sql('DELETE FROM store.goods')
SELECT aidb.sleep(1)
SELECT aidb.generate_text('echo', 'x')
SELECT aidb.generate_text_batch('echo', ARRAY['x'])
SELECT * FROM aidb.create_agent('mine', 'x', 'echo')
SELECT * FROM aidb.update_agent('guest_writes', instructions => 'x')
SELECT * FROM aidb.delete_agent('guest_reads', true)
SELECT aidb.create_purpose('mine', 'postgres')
SELECT aidb.update_purpose('guest', 'postgres')
SELECT aidb.delete_purpose('guest')
SELECT aidb.create_model('mine', 'dummy', '{"responses": [{"response": "x"}]}')
SELECT aidb.delete_model('echo')
SELECT * FROM aidb.start_agent_session('guest_reads')
SELECT guest.asks()
INSERT INTO guest.asking VALUES (1)
SELECT * FROM guest.asked
SELECT store.asks()
DO $$ BEGIN PERFORM aidb.update_purpose('guest', 'postgres'); EXCEPTION WHEN OTHERS THEN RAISE; END $$
-- attack:
DO $$ BEGIN BEGIN PERFORM aidb.update_purpose('guest', 'postgres'); EXCEPTION WHEN OTHERS THEN NULL; END; BEGIN PERFORM guest.asks(); EXCEPTION WHEN OTHERS THEN NULL; END; END $$
-- attack:
SELECT 1 AS still_works
-- check:
SELECT bool_and(state <> '' OR n > 22) AND bool_and(state = '' OR n <= 22) FROM judge.seen WHERE phase = 'attack'
-- check:
SELECT (SELECT role = 'guest' FROM aidb.purpose_registry WHERE name = 'guest') AND (SELECT count(*) = 3 FROM aidb.agents)
