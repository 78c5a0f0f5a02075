-- Submitting background tasks, and what their submitters do with them. Everything here runs with the owner's rights, to
-- which row security does not apply, so each function says for itself whose tasks it shows or changes: those of the
-- caller with its principal.

CREATE OR REPLACE FUNCTION aidb_internal.background_tasks_run()
RETURNS boolean
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_background_tasks_run';
COMMENT ON FUNCTION aidb_internal.background_tasks_run() IS
    'Whether the server has background workers: aidb is in shared_preload_libraries.';
REVOKE ALL ON FUNCTION aidb_internal.background_tasks_run() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.wake_workers(session_user_name text, task_id uuid)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_wake_workers';
COMMENT ON FUNCTION aidb_internal.wake_workers(text, uuid) IS
    'When this transaction commits, tells the workers of this database that there is something to do for that role.';
REVOKE ALL ON FUNCTION aidb_internal.wake_workers(text, uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.interrupt_task(task_id uuid)
RETURNS void
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_interrupt_task';
COMMENT ON FUNCTION aidb_internal.interrupt_task(uuid) IS
    'When this transaction commits, interrupts the statement that a worker executes for the task.';
REVOKE ALL ON FUNCTION aidb_internal.interrupt_task(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.woken_here(task_id uuid)
RETURNS boolean
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_woken_here';
COMMENT ON FUNCTION aidb_internal.woken_here(uuid) IS
    'Whether this transaction, which has not committed yet, submitted the task.';
REVOKE ALL ON FUNCTION aidb_internal.woken_here(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.listen_for_task(task_id uuid)
RETURNS void
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_listen_for_task';
COMMENT ON FUNCTION aidb_internal.listen_for_task(uuid) IS
    'Whatever changes in the task from now on ends the next aidb_internal.sleep_for_task.';
REVOKE ALL ON FUNCTION aidb_internal.listen_for_task(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.sleep_for_task(task_id uuid, milliseconds bigint)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_sleep_for_task';
COMMENT ON FUNCTION aidb_internal.sleep_for_task(uuid, bigint) IS
    'Sleeps until something changed since aidb_internal.listen_for_task: true when the time was over before that. It may also return for nothing.';
REVOKE ALL ON FUNCTION aidb_internal.sleep_for_task(uuid, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.stop_listening()
RETURNS void
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_stop_listening';
COMMENT ON FUNCTION aidb_internal.stop_listening() IS
    'The end of aidb_internal.listen_for_task.';
REVOKE ALL ON FUNCTION aidb_internal.stop_listening() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.task_changed(task_id uuid)
RETURNS void
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_task_changed';
COMMENT ON FUNCTION aidb_internal.task_changed(uuid) IS
    'When this transaction commits, ends the sleep of those who wait for the task.';
REVOKE ALL ON FUNCTION aidb_internal.task_changed(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.tell_task_status()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_notify('aidb_task', format('{"task_id":"%s","status":"%s"}', new.id, new.status));
    PERFORM aidb_internal.task_changed(new.id);
    -- submitted, or restored from a dump
    IF tg_op = 'INSERT' AND new.parent_task_id IS NULL AND aidb_internal.task_is_open(new.status) THEN
        PERFORM aidb_internal.wake_workers(new.initiated_by, NULL);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.tell_task_status() IS
    'Tells listeners of channel aidb_task, and those who wait for the task.';
REVOKE ALL ON FUNCTION aidb_internal.tell_task_status() FROM PUBLIC;

CREATE OR REPLACE TRIGGER tell_new_task AFTER INSERT ON aidb_internal.agent_task_queue
    FOR EACH ROW WHEN (NOT new.blocking) EXECUTE FUNCTION aidb_internal.tell_task_status();
CREATE OR REPLACE TRIGGER tell_task_status AFTER UPDATE ON aidb_internal.agent_task_queue
    FOR EACH ROW WHEN (NOT new.blocking AND old.status IS DISTINCT FROM new.status) EXECUTE FUNCTION aidb_internal.tell_task_status();

-- What aidb.agent_converse checks before it begins is checked here, in the same words, so that a task that cannot run is
-- refused at once.
CREATE OR REPLACE FUNCTION aidb_internal.agent_submit(
    agent_name text, prompt text, conversation_id text, read_only boolean, output_type jsonb
)
RETURNS TABLE (new_task_id uuid, used_conversation_id text, error text)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    me constant text := aidb_internal.caller();
    my_principal constant text := aidb_internal.caller_principal();
    agent aidb_internal.agents;
    conversation uuid;
    owner record;
    waiting bigint;
    most bigint;
    id uuid;
BEGIN
    IF NOT aidb_internal.background_tasks_run() THEN
        RAISE EXCEPTION 'background tasks need the background worker'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Add aidb to shared_preload_libraries and restart the server, or use aidb.agent_converse.';
    END IF;
    most := current_setting('aidb.max_queued_tasks')::bigint;
    SELECT a.* INTO agent FROM aidb_internal.agents a WHERE a.name = agent_name;
    IF prompt IS NULL OR aidb_internal.is_blank(prompt) THEN
        error := 'prompt must not be empty';
    ELSIF octet_length(prompt) > 8388608 THEN
        error := format('prompt is too long: %s bytes, the limit is %s', octet_length(prompt), 8388608);
    ELSIF conversation_id IS NOT NULL AND aidb_internal.to_uuid(conversation_id) IS NULL THEN
        error := format('invalid conversation id %s: not a uuid', aidb_internal.quoted(conversation_id));
    ELSIF jsonb_typeof(output_type) NOT IN ('object', 'null') THEN
        error := 'output_type must be a JSON object';
    ELSIF agent.id IS NULL THEN
        error := format('agent %s not found', aidb_internal.quoted(agent_name));
    ELSIF NOT agent.enabled THEN
        error := format('agent %s is disabled', aidb_internal.quoted(agent_name));
    END IF;
    IF error IS NULL THEN
        conversation := coalesce(aidb_internal.to_uuid(conversation_id), gen_random_uuid());
        SELECT q.caller, q.initiated_by, q.principal, q.created_at, coalesce(a.name, d.name) AS agent INTO owner
        FROM (
            SELECT l.caller, coalesce(l.initiated_by, l.caller) AS initiated_by, coalesce(l.principal, l.caller) AS principal,
                   l.agent_id, l.created_at
            FROM aidb_internal.logged_steps l WHERE l.conversation_id = conversation
            UNION ALL
            SELECT t.caller, t.initiated_by, t.principal, t.agent_id, t.created_at
            FROM aidb_internal.agent_task_queue t WHERE t.conversation_id = conversation
        ) q
        LEFT JOIN aidb_internal.agents a ON a.id = q.agent_id
        LEFT JOIN aidb_internal.deleted_agents d ON d.id = q.agent_id
        ORDER BY q.created_at LIMIT 1;
        IF FOUND AND ((owner.caller, owner.initiated_by, owner.principal) IS DISTINCT FROM (me, session_user::text, my_principal)
                     OR owner.created_at < aidb_internal.history_since()) THEN
            error := format('conversation ''%s'' belongs to another caller', conversation);
        ELSIF FOUND AND owner.agent IS DISTINCT FROM agent.name THEN
            error := format('conversation ''%s'' belongs to agent %s', conversation, aidb_internal.quoted(owner.agent));
        ELSE
            SELECT count(*) INTO waiting FROM (
                SELECT FROM aidb_internal.agent_task_queue t
                WHERE t.initiated_by = session_user AND t.worker IS NULL AND NOT t.blocking AND t.parent_task_id IS NULL
                  AND t.status IN ('PENDING', 'RECOVERY')
                LIMIT most
            ) w;
            IF waiting >= most THEN
                error := format('queue is full: %s tasks of role %s are waiting, the limit is aidb.max_queued_tasks',
                                waiting, aidb_internal.quoted(session_user));
            END IF;
        END IF;
    END IF;
    IF error IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    id := aidb_internal.uuid_of_time();
    INSERT INTO aidb_internal.agent_task_queue (
        id, agent_id, conversation_id, initiated_by, status, blocking, created_at, caller, principal, phase, phase_at, attempts)
    VALUES (id, agent.id, conversation, session_user, 'PENDING', false, clock_timestamp(), me, my_principal,
            'queue', clock_timestamp(), 0);
    INSERT INTO aidb_internal.submitted_tasks (task_id, agent, prompt, read_only, output_type, search_path)
    VALUES (id, agent.name, agent_submit.prompt, agent_submit.read_only, agent_submit.output_type, aidb_internal.caller_search_path());
    PERFORM aidb_internal.wake_workers(session_user, id);
    new_task_id := id;
    used_conversation_id := conversation::text;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION aidb_internal.agent_submit(text, text, text, boolean, jsonb) IS
    'Behind aidb.agent_submit.';
REVOKE ALL ON FUNCTION aidb_internal.agent_submit(text, text, text, boolean, jsonb) FROM PUBLIC;

-- Version 7, as the Go side makes them: ids that sort by the time they were made keep inserts at the end of the index.
CREATE OR REPLACE FUNCTION aidb_internal.uuid_of_time()
RETURNS uuid
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT encode(set_byte(set_byte(
               substr(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3) || substr(uuid_send(gen_random_uuid()), 7),
               6, (get_byte(uuid_send(r.r), 6) & 15) | 112), 8, (get_byte(uuid_send(r.r), 8) & 63) | 128), 'hex')::uuid
    FROM (SELECT gen_random_uuid() AS r) r
$$;
COMMENT ON FUNCTION aidb_internal.uuid_of_time() IS
    'A new uuid of version 7.';
REVOKE ALL ON FUNCTION aidb_internal.uuid_of_time() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.caller_search_path()
RETURNS text
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_caller_search_path';
COMMENT ON FUNCTION aidb_internal.caller_search_path() IS
    'search_path of the session that called the function of schema aidb that is running now.';
REVOKE ALL ON FUNCTION aidb_internal.caller_search_path() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.agent_submit(
    agent_name text,
    prompt text,
    conversation_id text DEFAULT NULL,
    read_only boolean DEFAULT NULL,
    output_type jsonb DEFAULT NULL
)
RETURNS TABLE (task_id uuid, conversation_id text, error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.agent_submit(text, text, text, boolean, jsonb) IS
    'Hands a prompt to an agent that answers in the background. The task begins when the caller''s transaction commits, and is gone if that rolls back. Always one row: task_id and conversation_id, or error alone. The arguments are those of aidb.agent_converse. The task runs as the caller: current_user, session_user, aidb.principal and search_path are in its tools what they are now. Each step commits on its own, and no transaction is open while a model is waited for. At most aidb.max_queued_tasks tasks of one session user may wait to begin. Raises 55000 when aidb is not in shared_preload_libraries. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.agent_submit(text, text, text, boolean, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.agent_submit(text, text, text, boolean, jsonb) TO aidb_users;

-- Whether the task exists for the caller.
CREATE OR REPLACE FUNCTION aidb_internal.task_is_callers(task_id uuid, auditor boolean)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM aidb_internal.agent_task_queue t
        WHERE t.id = $1
          AND ((t.caller = aidb_internal.caller() AND t.principal = aidb_internal.caller_principal()
              AND t.created_at >= (SELECT aidb_internal.history_since()))
               OR ($2 AND pg_has_role(aidb_internal.caller(), 'aidb_auditor', 'MEMBER'))))
$$;
COMMENT ON FUNCTION aidb_internal.task_is_callers(uuid, boolean) IS
    'Whether there is such a task and it is the caller''s; auditor: or the caller may see all.';
REVOKE ALL ON FUNCTION aidb_internal.task_is_callers(uuid, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.agent_task(task_id uuid)
RETURNS TABLE (
    status aidb.task_status, message text, error text, rounds integer, input_tokens bigint, output_tokens bigint,
    started_at timestamptz, completed_at timestamptz
)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT t.status, l.response_payload ->> 'contents', t.error, t.rounds, t.input_tokens, t.output_tokens,
           CASE WHEN t.blocking THEN t.created_at ELSE t.started_at END, t.completed_at
    FROM aidb_internal.agent_task_queue t
    LEFT JOIN aidb_internal.action_log l ON l.task_id = t.id AND l.id = t.response_message_id
    WHERE t.id = $1 AND aidb_internal.task_is_callers($1, true)
$$;
COMMENT ON FUNCTION aidb_internal.agent_task(uuid) IS 'Behind aidb.agent_task.';
REVOKE ALL ON FUNCTION aidb_internal.agent_task(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.agent_task(task_id uuid)
RETURNS TABLE (
    status aidb.task_status, message text, error text, rounds integer, input_tokens bigint, output_tokens bigint,
    started_at timestamptz, completed_at timestamptz
)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.agent_task(uuid) IS
    'How a task stands: its status, the answer or the error once it is over, and what it has used so far. No row for a task that does not exist or is somebody else''s. Privileges: aidb_users, for their own tasks; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.agent_task(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.agent_task(uuid) TO aidb_users, aidb_auditor;

