-- Ending background tasks, trying them again, and what they have done so far.

CREATE OR REPLACE FUNCTION aidb_internal.end_delegates(task_id uuid, status aidb.task_status, why text)
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE within AS (
        SELECT t.id FROM aidb_internal.agent_task_queue t WHERE t.parent_task_id = $1
        UNION ALL
        SELECT t.id FROM within w JOIN aidb_internal.agent_task_queue t ON t.parent_task_id = w.id
    )
    UPDATE aidb_internal.agent_task_queue t
    SET status = $2, error = $3, phase = NULL, phase_at = NULL, completed_at = clock_timestamp()
    FROM within w WHERE t.id = w.id AND t.status IN ('PENDING', 'IN_PROGRESS', 'RECOVERY', 'AWAIT_APPROVAL')
$$;
COMMENT ON FUNCTION aidb_internal.end_delegates(uuid, aidb.task_status, text) IS
    'Ends what was delegated in a task that is over.';
REVOKE ALL ON FUNCTION aidb_internal.end_delegates(uuid, aidb.task_status, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.forget_tasks()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM aidb_internal.submitted_tasks s USING gone g WHERE s.task_id = g.id;
    DELETE FROM aidb_internal.task_cancels c USING gone g WHERE c.task_id = g.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.forget_tasks() IS
    'Deletes what else is kept of tasks that are deleted.';
REVOKE ALL ON FUNCTION aidb_internal.forget_tasks() FROM PUBLIC;

CREATE OR REPLACE TRIGGER forget_tasks AFTER DELETE ON aidb_internal.agent_task_queue
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.forget_tasks();

-- Actions that a task and its delegates have proposed and that nobody has answered.
CREATE OR REPLACE FUNCTION aidb_internal.task_actions(task_id uuid)
RETURNS SETOF uuid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE within AS (
        SELECT $1 AS id
        UNION ALL
        SELECT t.id FROM within w JOIN aidb_internal.agent_task_queue t ON t.parent_task_id = w.id
    )
    SELECT a.id FROM within w JOIN aidb_internal.actions a ON a.task_id = w.id WHERE a.status = 'pending'
$$;
COMMENT ON FUNCTION aidb_internal.task_actions(uuid) IS
    'The actions of a task, and of all that was delegated in it, that wait for a person.';
REVOKE ALL ON FUNCTION aidb_internal.task_actions(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.lock_actions(task_id uuid)
RETURNS SETOF uuid
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.id FROM aidb_internal.actions a
    WHERE a.id IN (SELECT i FROM aidb_internal.task_actions($1) i) AND a.status = 'pending'
    ORDER BY a.id FOR UPDATE SKIP LOCKED
$$;
COMMENT ON FUNCTION aidb_internal.lock_actions(uuid) IS
    'The same, without those that somebody is deciding; nobody can until this transaction ends.';
REVOKE ALL ON FUNCTION aidb_internal.lock_actions(uuid) FROM PUBLIC;

-- What a canceled task has proposed nobody can confirm any more: its time is over at once.
CREATE OR REPLACE FUNCTION aidb_internal.end_actions(task_id uuid)
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE aidb_internal.actions a SET expires_at = least(a.expires_at, clock_timestamp())
    WHERE a.id IN (SELECT i FROM aidb_internal.task_actions($1) i) AND a.status = 'pending'
$$;
COMMENT ON FUNCTION aidb_internal.end_actions(uuid) IS
    'Lets the actions of a task expire. Waits for whoever is deciding one.';
REVOKE ALL ON FUNCTION aidb_internal.end_actions(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.end_canceled_task(task_id uuid, worker bigint, why text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    task aidb_internal.agent_task_queue;
BEGIN
    IF end_canceled_task.worker IS NULL THEN
        -- before the task itself, as whoever decides them has it
        PERFORM aidb_internal.end_actions(end_canceled_task.task_id);
    END IF;
    UPDATE aidb_internal.agent_task_queue t
    SET status = 'CANCELED', error = why, phase = NULL, phase_at = NULL, completed_at = clock_timestamp(), worker = NULL,
        awaits_until = NULL
    WHERE t.id = end_canceled_task.task_id AND t.worker IS NOT DISTINCT FROM end_canceled_task.worker
      AND t.status IN ('PENDING', 'IN_PROGRESS', 'RECOVERY', 'AWAIT_APPROVAL')
    RETURNING t.* INTO task;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM aidb_internal.end_delegates(task.id, 'CANCELED', why);
    INSERT INTO aidb_internal.action_log (
        id, conversation_id, agent_id, task_id, action_type, response_payload, status, error, role, initiated_by, created_at,
        completed_at, caller, principal)
    VALUES (aidb_internal.uuid_of_time(), task.conversation_id, task.agent_id, task.id, 'error', jsonb_build_object('error', why),
            'CANCELED', why, task.role, task.initiated_by, clock_timestamp(), clock_timestamp(), task.caller, task.principal);
    RETURN true;
END
$$;
COMMENT ON FUNCTION aidb_internal.end_canceled_task(uuid, bigint, text) IS
    'Ends a task that this worker has in hand (NULL: that none has), with all that was delegated in it; false when it is not so.';
REVOKE ALL ON FUNCTION aidb_internal.end_canceled_task(uuid, bigint, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.cancel_task(task_id uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    task aidb_internal.agent_task_queue;
    why constant text := 'canceled by role ' || aidb_internal.quoted(aidb_internal.caller());
BEGIN
    IF NOT aidb_internal.task_is_callers(cancel_task.task_id, false) THEN
        RAISE EXCEPTION 'task ''%'' not found', cancel_task.task_id USING ERRCODE = 'undefined_object';
    END IF;
    SELECT t.* INTO task FROM aidb_internal.agent_task_queue t WHERE t.id = cancel_task.task_id;
    IF task.blocking OR task.parent_task_id IS NOT NULL THEN
        RAISE EXCEPTION 'task ''%'' does not run in the background', cancel_task.task_id
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = CASE WHEN task.blocking THEN 'Cancel the statement that called the agent.' ELSE 'Cancel the task that delegated it.' END;
    ELSIF NOT aidb_internal.task_is_open(task.status) THEN
        RETURN false;
    END IF;
    -- A row that a worker has in hand is not locked here: the worker has other tasks, and this transaction may last.
    IF NOT aidb_internal.end_canceled_task(task.id, NULL, why) THEN
        INSERT INTO aidb_internal.task_cancels (task_id, why) VALUES (task.id, why) ON CONFLICT (task_id) DO NOTHING;
        PERFORM aidb_internal.interrupt_task(task.id);
    END IF;
    PERFORM aidb_internal.wake_workers(task.initiated_by, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION aidb_internal.cancel_task(uuid) IS 'Behind aidb.cancel_task.';
REVOKE ALL ON FUNCTION aidb_internal.cancel_task(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.cancel_task(task_id uuid)
RETURNS boolean
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.cancel_task(uuid) IS
    'Ends a background task: true, or false when it is over already. Steps that were committed stay; a step that is under way is rolled back, and a model that is waited for is not waited for any longer. Takes effect when the caller''s transaction commits. Raises 42704 for a task that does not exist or is somebody else''s, and 55000 for one that runs in its caller''s session. Privileges: aidb_users, for their own tasks.';
REVOKE ALL ON FUNCTION aidb.cancel_task(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.cancel_task(uuid) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.retry_task(task_id uuid)
RETURNS TABLE (new_task_id uuid, used_conversation_id text, error text)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    task aidb_internal.agent_task_queue;
    what aidb_internal.submitted_tasks;
BEGIN
    IF NOT aidb_internal.task_is_callers(retry_task.task_id, false) THEN
        RAISE EXCEPTION 'task ''%'' not found', retry_task.task_id USING ERRCODE = 'undefined_object';
    END IF;
    SELECT t.* INTO task FROM aidb_internal.agent_task_queue t WHERE t.id = retry_task.task_id;
    SELECT s.* INTO what FROM aidb_internal.submitted_tasks s WHERE s.task_id = retry_task.task_id;
    IF what.task_id IS NULL THEN
        RAISE EXCEPTION 'task ''%'' does not run in the background', retry_task.task_id
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call the agent again.';
    ELSIF task.status NOT IN ('ERROR', 'TIMEOUT', 'CANCELED', 'DENIED') THEN
        RAISE EXCEPTION 'task ''%'' cannot be tried again: its status is %', retry_task.task_id, task.status
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Only tasks that ended without an answer can be.';
    END IF;
    RETURN QUERY SELECT * FROM aidb_internal.agent_submit(what.agent, what.prompt, task.conversation_id::text, what.read_only, what.output_type);
END
$$;
COMMENT ON FUNCTION aidb_internal.retry_task(uuid) IS 'Behind aidb.retry_task.';
REVOKE ALL ON FUNCTION aidb_internal.retry_task(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.retry_task(task_id uuid)
RETURNS TABLE (task_id uuid, conversation_id text, error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.retry_task(uuid) IS
    'Submits a background task that ended without an answer once more: a new task with the same prompt in the same conversation, so that the agent sees what the first one did. The row is that of aidb.agent_submit. Raises 42704 for a task that does not exist or is somebody else''s, and 55000 for one that is not over, has an answer or did not run in the background. Privileges: aidb_users, for their own tasks.';
REVOKE ALL ON FUNCTION aidb.retry_task(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.retry_task(uuid) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.task_events(task_id uuid, after bigint)
RETURNS TABLE (
    n bigint, at timestamptz, action_type aidb.action_type, request_payload jsonb, response_payload jsonb,
    status aidb.task_status, error text
)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.* FROM (
        SELECT row_number() OVER (ORDER BY l.created_at, l.id) AS n, l.created_at, l.action_type, l.request_payload,
               l.response_payload, l.status, l.error
        FROM aidb_internal.action_log l
        WHERE l.task_id = $1 AND aidb_internal.task_is_callers($1, true)
    ) e
    WHERE e.n > coalesce($2, 0)
    ORDER BY e.n
$$;
COMMENT ON FUNCTION aidb_internal.task_events(uuid, bigint) IS 'Behind aidb.task_events.';
REVOKE ALL ON FUNCTION aidb_internal.task_events(uuid, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.task_events(task_id uuid, after bigint DEFAULT 0)
RETURNS TABLE (
    n bigint, at timestamptz, action_type aidb.action_type, request_payload jsonb, response_payload jsonb,
    status aidb.task_status, error text
)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.task_events(uuid, bigint) IS
    'The steps of a task so far, numbered from 1: its rows of aidb_internal.action_log. after: only those with a greater n, for a client that shows progress and asks again. No row for a task that does not exist or is somebody else''s. Privileges: aidb_users, for their own tasks; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.task_events(uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.task_events(uuid, bigint) TO aidb_users, aidb_auditor;
