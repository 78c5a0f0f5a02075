-- Waiting for background tasks.

-- The statuses of a task that is not over.
CREATE OR REPLACE FUNCTION aidb_internal.task_is_open(status aidb.task_status)
RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$ SELECT status IN ('PENDING'::aidb.task_status, 'IN_PROGRESS', 'RECOVERY', 'AWAIT_APPROVAL') $$;
COMMENT ON FUNCTION aidb_internal.task_is_open(aidb.task_status) IS 'Whether a task with this status goes on.';
REVOKE ALL ON FUNCTION aidb_internal.task_is_open(aidb.task_status) FROM PUBLIC;

-- Whether one can wait for the task here; raises when waiting could never end.
CREATE OR REPLACE FUNCTION aidb_internal.check_can_wait(task_id uuid)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF aidb_internal.woken_here(task_id) THEN
        RAISE EXCEPTION 'task ''%'' was submitted in this transaction and begins when it commits', task_id
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Commit first, then wait.';
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'cannot wait for a task in a transaction of isolation level %', upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'active_sql_transaction', HINT = 'Its snapshot would never see the task end: wait in a READ COMMITTED transaction.';
    ELSIF NOT aidb_internal.background_tasks_run() THEN
        RAISE EXCEPTION 'background tasks need the background worker'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Add aidb to shared_preload_libraries and restart the server, or use aidb.agent_converse.';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_can_wait(uuid) IS 'Raises where waiting for a task could never end.';
REVOKE ALL ON FUNCTION aidb_internal.check_can_wait(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.wait_task(task_id uuid, timeout interval)
RETURNS TABLE (
    status aidb.task_status, message text, error text, rounds integer, input_tokens bigint, output_tokens bigint,
    started_at timestamptz, completed_at timestamptz
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    till constant timestamptz := clock_timestamp() + coalesce(timeout, interval '5 min');
    open boolean;
BEGIN
    IF NOT aidb_internal.task_is_callers(wait_task.task_id, true) THEN
        RETURN;
    END IF;
    LOOP
        -- in this order: what happens after the look ends the sleep
        IF aidb_internal.background_tasks_run() THEN
            PERFORM aidb_internal.listen_for_task(wait_task.task_id);
        END IF;
        SELECT aidb_internal.task_is_open(t.status) INTO open FROM aidb_internal.agent_task_queue t WHERE t.id = wait_task.task_id;
        EXIT WHEN open IS NOT TRUE OR clock_timestamp() >= till;
        PERFORM aidb_internal.check_can_wait(wait_task.task_id);
        PERFORM aidb_internal.sleep_for_task(wait_task.task_id, ceil(extract(epoch FROM till - clock_timestamp()) * 1000)::bigint);
    END LOOP;
    PERFORM aidb_internal.stop_listening();
    RETURN QUERY SELECT * FROM aidb_internal.agent_task(wait_task.task_id);
END
$$;
COMMENT ON FUNCTION aidb_internal.wait_task(uuid, interval) IS 'Behind aidb.wait_task.';
REVOKE ALL ON FUNCTION aidb_internal.wait_task(uuid, interval) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.wait_task(task_id uuid, timeout interval DEFAULT '5 min')
RETURNS TABLE (
    status aidb.task_status, message text, error text, rounds integer, input_tokens bigint, output_tokens bigint,
    started_at timestamptz, completed_at timestamptz
)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.wait_task(uuid, interval) IS
    'Waits until a task is over and returns what aidb.agent_task does; after timeout it returns how the task stands then. It sleeps, and is woken by the task''s end. The caller''s transaction stays open while it waits. Raises 55000 when the task was submitted in this very transaction, and 25001 above READ COMMITTED, where the end could never be seen. No row for a task that does not exist or is somebody else''s. Privileges: aidb_users, for their own tasks; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.wait_task(uuid, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.wait_task(uuid, interval) TO aidb_users, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb_internal.watch_task(task_id uuid, timeout interval)
RETURNS TABLE (
    status aidb.task_status, message text, error text, rounds integer, input_tokens bigint, output_tokens bigint,
    started_at timestamptz, completed_at timestamptz
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    till constant timestamptz := clock_timestamp() + coalesce(timeout, interval '5 min');
    open boolean;
    line text;
    shown text;
BEGIN
    IF NOT aidb_internal.task_is_callers(watch_task.task_id, true) THEN
        RETURN;
    END IF;
    LOOP
        IF aidb_internal.background_tasks_run() THEN
            PERFORM aidb_internal.listen_for_task(watch_task.task_id);
        END IF;
        SELECT aidb_internal.task_is_open(t.status),
               concat_ws(', ', t.status, nullif(t.phase, ''), 'round ' || t.rounds,
                         coalesce(t.input_tokens, 0) + coalesce(t.output_tokens, 0) || ' tokens')
        INTO open, line FROM aidb_internal.agent_task_queue t WHERE t.id = watch_task.task_id;
        IF line IS DISTINCT FROM shown THEN
            RAISE NOTICE '%, % s', line, round(extract(epoch FROM clock_timestamp() -
                (SELECT coalesce(t.started_at, t.created_at) FROM aidb_internal.agent_task_queue t WHERE t.id = watch_task.task_id)), 1);
            shown := line;
        END IF;
        EXIT WHEN open IS NOT TRUE OR clock_timestamp() >= till;
        PERFORM aidb_internal.check_can_wait(watch_task.task_id);
        PERFORM aidb_internal.sleep_for_task(watch_task.task_id, ceil(extract(epoch FROM till - clock_timestamp()) * 1000)::bigint);
    END LOOP;
    PERFORM aidb_internal.stop_listening();
    RETURN QUERY SELECT * FROM aidb_internal.agent_task(watch_task.task_id);
END
$$;
COMMENT ON FUNCTION aidb_internal.watch_task(uuid, interval) IS 'Behind aidb.watch_task.';
REVOKE ALL ON FUNCTION aidb_internal.watch_task(uuid, interval) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.watch_task(task_id uuid, timeout interval DEFAULT '5 min')
RETURNS TABLE (
    status aidb.task_status, message text, error text, rounds integer, input_tokens bigint, output_tokens bigint,
    started_at timestamptz, completed_at timestamptz
)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.watch_task(uuid, interval) IS
    'aidb.wait_task for people: while it waits, each step of the task is shown as a NOTICE with its status, what it does, its round, its tokens and its age. Privileges: aidb_users, for their own tasks; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.watch_task(uuid, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.watch_task(uuid, interval) TO aidb_users, aidb_auditor;
