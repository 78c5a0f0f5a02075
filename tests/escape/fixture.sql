-- The database that every case starts from a copy of. The roles are made once for the cluster (main_test.go).
--
--   guest    what the agent's purpose resolves to: the one who attacks
--   keeper   owns the application; a member of guest, calls the agent
--   clerk    a user of the application; a member of guest, calls the agent
--
-- The callers are postgres (superuser), keeper and clerk.
CREATE EXTENSION aidb;
-- as it ships it waits for a person: here it is to run
SELECT aidb.classify_tool('execute_sql', 'safe');
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

-- Where a payload shows that it ran with somebody's rights: guest may not write here.
CREATE SCHEMA safe;
GRANT USAGE ON SCHEMA safe TO keeper, clerk;
CREATE TABLE safe.breach (who text, how text);
GRANT SELECT, INSERT ON safe.breach TO keeper, clerk;

-- The application.
CREATE SCHEMA store AUTHORIZATION keeper;
GRANT USAGE ON SCHEMA store TO guest, clerk;
SET ROLE keeper;
CREATE TYPE store.state AS ENUM ('new', 'sold', 'gone');
CREATE TABLE store.goods (
    id serial PRIMARY KEY,
    title text NOT NULL,
    stock integer NOT NULL DEFAULT 0,
    state store.state NOT NULL DEFAULT 'new',
    price numeric(10, 2) NOT NULL DEFAULT 1
);
INSERT INTO store.goods (title, stock, price) SELECT 'thing ' || g, g % 5, g * 1.5 FROM generate_series(1, 40) g;
CREATE TABLE store.ledger (id integer PRIMARY KEY, line text NOT NULL);
INSERT INTO store.ledger SELECT g, 'HUSH-' || g FROM generate_series(1, 10) g;
CREATE TABLE store.orders (id integer PRIMARY KEY);
INSERT INTO store.orders VALUES (1), (2);
CREATE TABLE store.lines (
    id integer PRIMARY KEY,
    order_id integer NOT NULL REFERENCES store.orders DEFERRABLE INITIALLY DEFERRED
);
GRANT SELECT, INSERT, UPDATE, DELETE ON store.goods, store.orders, store.lines TO guest, clerk;
GRANT USAGE, SELECT ON SEQUENCE store.goods_id_seq TO guest, clerk;
GRANT SELECT ON store.ledger TO clerk;
ANALYZE store.goods;
RESET ROLE;

-- A schema named like guest, so that "$user" finds it, with what guest made there on some earlier day.
CREATE SCHEMA guest AUTHORIZATION guest;
GRANT USAGE ON SCHEMA guest TO PUBLIC;
SET ROLE guest;
-- Silent as guest; with better rights it leaves a trace.
CREATE FUNCTION guest.payload(how text) RETURNS boolean LANGUAGE plpgsql AS $f$
BEGIN
    BEGIN
        INSERT INTO safe.breach VALUES (current_user, how);
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    RETURN true;
END
$f$;
CREATE FUNCTION guest.payload_trigger() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
    PERFORM guest.payload('trigger ' || TG_NAME);
    RETURN NEW;
END
$f$;
-- Writes where guest may.
CREATE FUNCTION guest.scribble(what text) RETURNS integer LANGUAGE plpgsql VOLATILE AS $f$
BEGIN
    INSERT INTO store.goods (title) VALUES ('scribbled ' || what);
    RETURN 1;
END
$f$;
-- Says that it only reads.
CREATE FUNCTION guest.sly(what text) RETURNS integer LANGUAGE plpgsql STABLE AS $f$
BEGIN
    RETURN guest.scribble(what);
END
$f$;
CREATE TABLE guest.pad (id serial PRIMARY KEY, note text);
INSERT INTO guest.pad (note) VALUES ('one'), ('two');
GRANT SELECT, INSERT, UPDATE, DELETE ON guest.pad TO PUBLIC;
GRANT USAGE ON SEQUENCE guest.pad_id_seq TO PUBLIC;
RESET ROLE;

-- Agents whose model asks for one tool, with the prompt as its SQL.
SELECT aidb.create_purpose('guest', 'guest');
GRANT USAGE ON SCHEMA aidb TO guest;
GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text), aidb.execute_sql(text) TO guest;
SELECT aidb.create_model('writes', 'dummy', '{"scope": "call", "responses": [
    {"tool_calls": [{"name": "execute_sql", "arguments": {"statement": "${prompt}"}}]}, {"response": "done"}]}', validate => false);
SELECT aidb.create_model('reads', 'dummy', '{"scope": "call", "responses": [
    {"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "${prompt}"}}]}, {"response": "done"}]}', validate => false);
SELECT * FROM aidb.create_agent('guest_writes', 'test', 'writes', tools => '{execute_sql}', purpose => 'guest');
SELECT * FROM aidb.create_agent('guest_reads', 'test', 'reads', tools => '{run_sql_query}', purpose => 'guest');
SELECT * FROM aidb.create_agent('bare_reads', 'test', 'reads', tools => '{run_sql_query}');

CREATE SCHEMA harness;
GRANT USAGE ON SCHEMA harness TO PUBLIC;

-- What the tool gave the model in the conversation's first round.
CREATE FUNCTION harness.answer(conversation text) RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET row_security = on
AS $f$
    SELECT l.response_payload FROM aidb_internal.action_log l
    WHERE l.conversation_id = answer.conversation::uuid AND l.action_type = 'tool_response'
    ORDER BY l.created_at LIMIT 1
$f$;

-- One tool call: returns its result, raises its refusal. It has no search_path of its own, since the tool runs with that
-- of its caller, and for the same reason it uses no operator.
CREATE FUNCTION harness.tell(agent text, statement text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
    run record;
    told jsonb;
BEGIN
    SELECT * INTO run FROM aidb.agent_converse(agent, statement);
    IF run.error IS NOT NULL THEN
        RAISE EXCEPTION '%', run.error;
    END IF;
    told := harness.answer(run.conversation_id);
    IF pg_catalog.jsonb_exists(told, 'error') THEN
        RAISE EXCEPTION '%', pg_catalog.jsonb_extract_path_text(told, 'error') USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN pg_catalog.jsonb_extract_path_text(told, 'contents');
END
$f$;

-- The same inside another statement, where a refusal is only a text.
CREATE FUNCTION harness.ask(agent text, statement text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN
    RETURN harness.tell(agent, statement);
EXCEPTION WHEN insufficient_privilege THEN
    RETURN pg_catalog.concat('refused: ', SQLERRM);
END
$f$;

-- What a caller can notice of its own session. New settings (of a library that was loaded) do not count: see Go.
CREATE FUNCTION harness.fingerprint() RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    RETURN jsonb_build_object(
        'session_user', session_user,
        'current_user', current_user,
        'settings', (SELECT jsonb_object_agg(name, coalesce(setting, '')) FROM pg_settings WHERE name <> 'search_path'),
        'own settings', jsonb_build_array(current_setting('app.marker', true), current_setting('app.token', true)),
        'prepared', (SELECT jsonb_agg(name || ': ' || statement ORDER BY name) FROM pg_prepared_statements WHERE name NOT LIKE 'stmtcache%'),
        'cursors', (SELECT jsonb_agg(name || ': ' || statement ORDER BY name) FROM pg_cursors
                    WHERE name <> '' AND name NOT LIKE '<unnamed%' AND statement NOT LIKE '%fingerprint%'),
        'advisory locks', (SELECT jsonb_agg(concat_ws('/', classid, objid, objsubid, mode) ORDER BY classid, objid, objsubid, mode)
                           FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid < 3),
        'channels', (SELECT jsonb_agg(c ORDER BY c) FROM pg_listening_channels() c),
        'temporary objects', (SELECT count(*) FROM pg_depend
                              WHERE refclassid = 'pg_namespace'::regclass AND refobjid = pg_my_temp_schema()));
END
$f$;

-- Table locks beyond those of reading: a read-only call leaves none of its own.
CREATE FUNCTION harness.locks() RETURNS bigint LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $f$
    SELECT count(*) FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype IN ('relation', 'tuple') AND mode NOT IN ('AccessShareLock', 'SIReadLock')
      AND relation NOT IN (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                           WHERE n.nspname IN ('aidb_internal', 'pg_toast'))
$f$;

-- What is stored, but for what the extension itself writes down: rows, sequences, large objects, every catalog.
CREATE FUNCTION harness.digest() RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    relation record;
    part text;
    parts jsonb := '{}';
BEGIN
    FOR relation IN
        SELECT c.oid::regclass::text AS name, c.relkind AS kind
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'm', 'S') AND c.relpersistence <> 't'
          AND n.nspname NOT IN ('aidb_internal', 'aidb_otel', 'pg_toast', 'judge')
          AND c.relname NOT IN ('pg_statistic', 'pg_statistic_ext_data', 'pg_depend', 'pg_shdepend')
        ORDER BY 1
    LOOP
        IF relation.kind = 'S' THEN
            EXECUTE format('SELECT concat(last_value, is_called) FROM %s', relation.name) INTO part;
        ELSE
            EXECUTE format('SELECT md5(string_agg(md5(r::text), %L ORDER BY md5(r::text))) FROM %s r', ',', relation.name) INTO part;
        END IF;
        parts := parts || jsonb_build_object(relation.name, part);
    END LOOP;
    RETURN parts;
END
$f$;
REVOKE ALL ON FUNCTION harness.digest() FROM PUBLIC;

-- What was seen of a case, for its check.
CREATE SCHEMA judge;
CREATE TABLE judge.seen (phase text, n integer, output text, state text, message text, ms double precision);
CREATE FUNCTION judge.output(phase text, n integer DEFAULT 1) RETURNS text LANGUAGE sql
AS $f$ SELECT s.output FROM judge.seen s WHERE (s.phase, s.n) = ($1, $2) $f$;
CREATE FUNCTION judge.message(phase text, n integer DEFAULT 1) RETURNS text LANGUAGE sql
AS $f$ SELECT s.message FROM judge.seen s WHERE (s.phase, s.n) = ($1, $2) $f$;
CREATE FUNCTION judge.state(phase text, n integer DEFAULT 1) RETURNS text LANGUAGE sql
AS $f$ SELECT s.state FROM judge.seen s WHERE (s.phase, s.n) = ($1, $2) $f$;
CREATE FUNCTION judge.fine(phase text, n integer DEFAULT 1) RETURNS boolean LANGUAGE sql
AS $f$ SELECT s.state = '' FROM judge.seen s WHERE (s.phase, s.n) = ($1, $2) $f$;
CREATE FUNCTION judge.ms(phase text, n integer DEFAULT 1) RETURNS double precision LANGUAGE sql
AS $f$ SELECT s.ms FROM judge.seen s WHERE (s.phase, s.n) = ($1, $2) $f$;
-- All of a phase refused: no statement of it went through.
CREATE FUNCTION judge.none_fine(phase text) RETURNS boolean LANGUAGE sql
AS $f$ SELECT bool_and(s.state <> '') FROM judge.seen s WHERE s.phase = $1 $f$;
CREATE FUNCTION judge.all_fine(phase text) RETURNS boolean LANGUAGE sql
AS $f$ SELECT bool_and(s.state = '') FROM judge.seen s WHERE s.phase = $1 $f$;
-- Everything that the model was told.
CREATE FUNCTION judge.told() RETURNS text LANGUAGE sql
AS $f$ SELECT string_agg(concat(s.output, ' ', s.message), E'\n') FROM judge.seen s WHERE s.phase = 'attack' $f$;
CREATE FUNCTION judge.breached() RETURNS boolean LANGUAGE sql
AS $f$ SELECT EXISTS (SELECT FROM safe.breach) $f$;
