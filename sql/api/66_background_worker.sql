-- What the worker processes run (worker/keeper.c, worker/tasks.c, extension/internal/pgstore): as the extension's owner,
-- never by users.

-- The next tasks of the session user that this process is. Those who share it (callers and principals) take turns:
-- first the oldest task of each, then the second of each, so that nobody who submits many keeps the others waiting.
-- A task whose conversation is busy, by an earlier task or by a call in somebody's session, is left for later; so is one that
-- is being restored from a dump, and what it was submitted with is not there yet.
CREATE OR REPLACE FUNCTION aidb_internal.claim_tasks(worker bigint, wanted integer)
RETURNS TABLE (
    task_id uuid, agent text, conversation_id text, prompt text, read_only boolean, output_type jsonb, resumed boolean,
    caller text, principal text, superuser boolean, search_path text
)
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE who AS (
        (
            SELECT q.caller, q.principal FROM aidb_internal.agent_task_queue q
            WHERE q.initiated_by = session_user AND q.worker IS NULL AND NOT q.blocking AND q.parent_task_id IS NULL
              AND q.status IN ('PENDING', 'RECOVERY')
            ORDER BY q.caller, q.principal LIMIT 1
        )
        UNION ALL
        SELECT n.caller, n.principal
        FROM who w
        CROSS JOIN LATERAL (
            SELECT q.caller, q.principal FROM aidb_internal.agent_task_queue q
            WHERE q.initiated_by = session_user AND (q.caller, q.principal) > (w.caller, w.principal)
              AND q.worker IS NULL AND NOT q.blocking AND q.parent_task_id IS NULL AND q.status IN ('PENDING', 'RECOVERY')
            ORDER BY q.caller, q.principal LIMIT 1
        ) n
    ), turns AS (
        SELECT o.id, o.created_at, o.resumed, row_number() OVER (PARTITION BY w.caller, w.principal ORDER BY o.created_at, o.id) AS turn
        FROM who w
        CROSS JOIN LATERAL (
            SELECT q.id, q.created_at, q.started_at IS NOT NULL AS resumed FROM aidb_internal.agent_task_queue q
            WHERE q.initiated_by = session_user AND q.caller = w.caller AND q.principal = w.principal
              AND q.worker IS NULL AND NOT q.blocking AND q.parent_task_id IS NULL AND q.status IN ('PENDING', 'RECOVERY')
              AND EXISTS (SELECT FROM aidb_internal.submitted_tasks s WHERE s.task_id = q.id)
              AND NOT EXISTS (
                  SELECT FROM aidb_internal.agent_task_queue b
                  WHERE b.conversation_id = q.conversation_id AND NOT b.blocking AND b.parent_task_id IS NULL AND b.id <> q.id
                    AND (b.status IN ('IN_PROGRESS', 'AWAIT_APPROVAL') OR b.worker IS NOT NULL
                         OR (b.status IN ('PENDING', 'RECOVERY') AND (b.created_at, b.id) < (q.created_at, q.id)))
                    AND b.status IN ('PENDING', 'IN_PROGRESS', 'RECOVERY', 'AWAIT_APPROVAL'))
            ORDER BY q.created_at, q.id
            LIMIT (SELECT greatest($2 / count(*), 1) FROM who)
            FOR UPDATE SKIP LOCKED
        ) o
    ), mine AS (
        UPDATE aidb_internal.agent_task_queue t
        SET status = CASE t.status WHEN 'PENDING' THEN 'IN_PROGRESS'::aidb.task_status ELSE t.status END,
            worker = $1, started_at = coalesce(t.started_at, clock_timestamp())
        FROM (SELECT u.id, u.resumed FROM turns u ORDER BY u.turn, u.created_at, u.id LIMIT $2) u
        WHERE t.id = u.id AND t.worker IS NULL AND aidb_internal.conversation_is_free(t.conversation_id)
        RETURNING t.id, t.conversation_id, u.resumed, t.caller, t.principal
    )
    SELECT m.id, s.agent, m.conversation_id::text, s.prompt, s.read_only, s.output_type, m.resumed, m.caller, m.principal,
           coalesce(r.rolsuper, false), s.search_path
    FROM mine m
    JOIN aidb_internal.submitted_tasks s ON s.task_id = m.id
    LEFT JOIN pg_roles r ON r.rolname = m.caller
$$;
COMMENT ON FUNCTION aidb_internal.claim_tasks(bigint, integer) IS
    'Gives the worker of that number up to so many tasks of its session user.';
REVOKE ALL ON FUNCTION aidb_internal.claim_tasks(bigint, integer) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.conversation_is_free(conversation_id uuid)
RETURNS boolean
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_conversation_is_free';
COMMENT ON FUNCTION aidb_internal.conversation_is_free(uuid) IS
    'Whether no session runs a call of the conversation now; if so, none begins until this transaction ends.';
REVOKE ALL ON FUNCTION aidb_internal.conversation_is_free(uuid) FROM PUBLIC;

-- Every step of a task commits with this: it fails, and the step with it, when the task is no longer the worker's, or is
-- to be canceled and the worker does not know yet.
CREATE OR REPLACE FUNCTION aidb_internal.step_task(
    top uuid, worker bigint, task_id uuid, phase text, rounds integer, input_tokens bigint, output_tokens bigint,
    role text
)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE aidb_internal.agent_task_queue t
    SET status = CASE t.status WHEN 'RECOVERY' THEN 'IN_PROGRESS'::aidb.task_status ELSE t.status END,
        phase = step_task.phase, phase_at = clock_timestamp(), attempts = 0,
        rounds = CASE WHEN task_id = top THEN step_task.rounds ELSE t.rounds END,
        input_tokens = CASE WHEN task_id = top THEN step_task.input_tokens ELSE t.input_tokens END,
        output_tokens = CASE WHEN task_id = top THEN step_task.output_tokens ELSE t.output_tokens END,
        role = CASE WHEN task_id = top THEN step_task.role ELSE t.role END
    WHERE t.id = top AND t.worker = step_task.worker AND t.status IN ('IN_PROGRESS', 'RECOVERY')
      AND NOT EXISTS (SELECT FROM aidb_internal.task_cancels c WHERE c.task_id = top);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task ''%'' is no longer this worker''s', top USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF task_id <> top THEN
        UPDATE aidb_internal.agent_task_queue t
        SET phase = step_task.phase, phase_at = clock_timestamp(), rounds = step_task.rounds,
            input_tokens = step_task.input_tokens, output_tokens = step_task.output_tokens
        WHERE t.id = task_id;
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.step_task(uuid, bigint, uuid, text, integer, bigint, bigint, text) IS
    'Says how a task that a worker has in hand goes on; raises when the worker has lost it.';
REVOKE ALL ON FUNCTION aidb_internal.step_task(uuid, bigint, uuid, text, integer, bigint, bigint, text) FROM PUBLIC;

-- A run that ended by an error of the server or of its worker: it is tried again from its last step, but not for ever.
CREATE OR REPLACE FUNCTION aidb_internal.give_back_task(task_id uuid, worker bigint, why text)
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT aidb_internal.interrupt_tasks(ARRAY[$1], $2, $3)
$$;
COMMENT ON FUNCTION aidb_internal.give_back_task(uuid, bigint, text) IS
    'Takes a task from a worker whose run of it ended by an error.';
REVOKE ALL ON FUNCTION aidb_internal.give_back_task(uuid, bigint, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.interrupt_tasks(ids uuid[], worker bigint, why text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- what ended the worker may have been another task, or the whole server
    most constant integer := CASE WHEN interrupt_tasks.worker IS NULL THEN 50 ELSE 5 END;
    one uuid;
    text constant text := format('task was interrupted %s times in the same step and is not tried again: %s', most, why);
BEGIN
    WITH over AS (
        UPDATE aidb_internal.agent_task_queue t
        SET status = 'ERROR', error = text, attempts = t.attempts + 1, worker = NULL, phase = NULL, phase_at = NULL,
            completed_at = clock_timestamp()
        WHERE t.id = ANY (ids) AND t.worker IS NOT DISTINCT FROM coalesce(interrupt_tasks.worker, t.worker)
          AND t.status IN ('IN_PROGRESS', 'RECOVERY') AND t.attempts + 1 >= most
        RETURNING t.*
    )
    INSERT INTO aidb_internal.action_log (
        id, conversation_id, agent_id, task_id, action_type, response_payload, status, error, role, initiated_by, created_at,
        completed_at, caller, principal)
    SELECT aidb_internal.uuid_of_time(), o.conversation_id, o.agent_id, o.id, 'error', jsonb_build_object('error', text), 'ERROR',
           text, o.role, o.initiated_by, clock_timestamp(), clock_timestamp(), o.caller, o.principal
    FROM over o;
    FOREACH one IN ARRAY ids LOOP
        PERFORM aidb_internal.end_delegates(one, 'ERROR', text)
        FROM aidb_internal.agent_task_queue t WHERE t.id = one AND t.status = 'ERROR';
    END LOOP;
    UPDATE aidb_internal.agent_task_queue t
    SET status = 'RECOVERY', attempts = t.attempts + 1, worker = NULL, phase = 'queue', phase_at = clock_timestamp()
    WHERE t.id = ANY (ids) AND t.worker IS NOT DISTINCT FROM coalesce(interrupt_tasks.worker, t.worker)
      AND t.status IN ('IN_PROGRESS', 'RECOVERY');
END
$$;
COMMENT ON FUNCTION aidb_internal.interrupt_tasks(uuid[], bigint, text) IS
    'Makes tasks free for the next worker, or ends those that were interrupted too often.';
REVOKE ALL ON FUNCTION aidb_internal.interrupt_tasks(uuid[], bigint, text) FROM PUBLIC;

-- Returned without having failed: the worker is to make room.
CREATE OR REPLACE FUNCTION aidb_internal.hand_back_tasks(worker bigint)
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE aidb_internal.agent_task_queue t
    SET status = CASE t.status WHEN 'IN_PROGRESS' THEN 'PENDING'::aidb.task_status ELSE t.status END,
        worker = NULL, phase = CASE WHEN t.phase IS NULL THEN NULL ELSE 'queue' END, phase_at = clock_timestamp()
    WHERE t.worker = $1
$$;
COMMENT ON FUNCTION aidb_internal.hand_back_tasks(bigint) IS
    'Makes the tasks of a worker that ends free for the next one.';
REVOKE ALL ON FUNCTION aidb_internal.hand_back_tasks(bigint) FROM PUBLIC;

-- Which of a worker's tasks were ended by somebody else.
CREATE OR REPLACE FUNCTION aidb_internal.canceled_tasks(worker bigint)
RETURNS SETOF uuid
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH mine AS (
        DELETE FROM aidb_internal.task_cancels c
        USING aidb_internal.agent_task_queue t
        WHERE t.id = c.task_id AND (t.worker IS NOT DISTINCT FROM $1 OR NOT aidb_internal.task_is_open(t.status))
        RETURNING c.task_id, c.why
    )
    SELECT m.task_id FROM mine m WHERE aidb_internal.end_canceled_task(m.task_id, $1, m.why)
$$;
COMMENT ON FUNCTION aidb_internal.canceled_tasks(bigint) IS
    'Ends the tasks of a worker (NULL: those that no worker has) that somebody has canceled since it looked last.';
REVOKE ALL ON FUNCTION aidb_internal.canceled_tasks(bigint) FROM PUBLIC;

-- The keeper's look at its database: takes back what workers that are gone had in hand, ends what can never run, and
-- says whom there is something to do for.
CREATE OR REPLACE FUNCTION aidb_internal.look_after_tasks(alive bigint[])
RETURNS TABLE (role oid, waiting bigint, oldest_ms bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    lost uuid[];
BEGIN
    SELECT array_agg(l.id) INTO lost FROM (
        SELECT t.id FROM aidb_internal.agent_task_queue t
        WHERE t.worker IS NOT NULL AND NOT t.worker = ANY (alive)
        FOR UPDATE SKIP LOCKED) l;
    IF lost IS NOT NULL THEN
        PERFORM aidb_internal.interrupt_tasks(lost, NULL, 'its worker process ended');
    END IF;
    PERFORM aidb_internal.canceled_tasks(NULL);
    UPDATE aidb_internal.agent_task_queue t
    SET status = 'ERROR', phase = NULL, phase_at = NULL, completed_at = clock_timestamp(),
        error = format('role %s can no longer log in to this database', aidb_internal.quoted(t.initiated_by))
    WHERE t.worker IS NULL AND NOT t.blocking AND t.parent_task_id IS NULL AND t.status IN ('PENDING', 'RECOVERY')
      AND NOT EXISTS (
          SELECT FROM pg_roles r
          WHERE r.rolname = t.initiated_by AND r.rolcanlogin
            AND (r.rolsuper OR has_database_privilege(r.oid, current_database(), 'CONNECT')));
    PERFORM aidb_internal.resume_overdue_tasks();
    -- those that have slept long enough
    UPDATE aidb_internal.agent_task_queue t
    SET status = 'PENDING', phase = 'queue', phase_at = clock_timestamp(), awaits_until = NULL
    FROM (SELECT s.id FROM aidb_internal.agent_task_queue s
          WHERE s.status = 'IN_PROGRESS' AND s.worker IS NULL AND NOT s.blocking AND s.parent_task_id IS NULL
            AND s.awaits_until <= clock_timestamp()
          FOR UPDATE SKIP LOCKED) due
    WHERE t.id = due.id;
    RETURN QUERY
        SELECT r.oid, count(*), (extract(epoch FROM clock_timestamp() - min(t.phase_at)) * 1000)::bigint
        FROM aidb_internal.agent_task_queue t
        JOIN pg_roles r ON r.rolname = t.initiated_by
        WHERE t.worker IS NULL AND NOT t.blocking AND t.parent_task_id IS NULL AND t.status IN ('PENDING', 'RECOVERY')
        GROUP BY r.oid
        ORDER BY min(t.phase_at);
    RETURN QUERY
        SELECT NULL::oid, count(*), (extract(epoch FROM min(t.awaits_until) - clock_timestamp()) * 1000)::bigint
        FROM aidb_internal.agent_task_queue t
        WHERE ((t.status = 'IN_PROGRESS' AND t.worker IS NULL) OR t.status = 'AWAIT_APPROVAL') AND NOT t.blocking
          AND t.parent_task_id IS NULL AND t.awaits_until IS NOT NULL
        HAVING count(*) > 0;
END
$$;
COMMENT ON FUNCTION aidb_internal.look_after_tasks(bigint[]) IS
    'Recovers the tasks of workers that are not alive, and returns the session users that have tasks waiting. A last row without a role says in how many milliseconds the first task has slept long enough, or waited for a person as long as it may.';
REVOKE ALL ON FUNCTION aidb_internal.look_after_tasks(bigint[]) FROM PUBLIC;

-- In a view, so it is permission-checked as the reader; the number it takes is shown to nobody.
CREATE OR REPLACE FUNCTION aidb_internal.worker_pid(worker bigint)
RETURNS integer
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'aidb_worker_pid';
COMMENT ON FUNCTION aidb_internal.worker_pid(bigint) IS
    'The process of a worker that is alive, else NULL.';
REVOKE ALL ON FUNCTION aidb_internal.worker_pid(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb_internal.worker_pid(bigint) TO aidb_users, aidb_auditor;

-- The last step of a task, or of a delegate's within it: as aidb_internal.step_task.
CREATE OR REPLACE FUNCTION aidb_internal.end_task(
    top uuid, worker bigint, task_id uuid, status aidb.task_status, error text, request_message_id uuid, response_message_id uuid,
    budget_consumed integer, rounds integer, input_tokens bigint, output_tokens bigint, timeout_at timestamptz,
    completed_at timestamptz, role text, cost numeric
)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    -- a delegate's end is a step of the task that was submitted
    UPDATE aidb_internal.agent_task_queue t
    SET status = CASE WHEN t.status = 'RECOVERY' THEN 'IN_PROGRESS'::aidb.task_status ELSE t.status END,
        phase = 'model', phase_at = clock_timestamp(), attempts = 0
    WHERE t.id = top AND task_id <> top AND t.worker = end_task.worker AND t.status IN ('IN_PROGRESS', 'RECOVERY')
      AND NOT EXISTS (SELECT FROM aidb_internal.task_cancels c WHERE c.task_id = top);
    IF NOT FOUND AND task_id <> top THEN
        RAISE EXCEPTION 'task ''%'' is no longer this worker''s', top USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    UPDATE aidb_internal.agent_task_queue t
    SET status = end_task.status, error = end_task.error, request_message_id = end_task.request_message_id,
        response_message_id = end_task.response_message_id, budget_consumed = end_task.budget_consumed, rounds = end_task.rounds,
        input_tokens = end_task.input_tokens, output_tokens = end_task.output_tokens, timeout_at = end_task.timeout_at,
        completed_at = end_task.completed_at, role = end_task.role,
        -- counted here: what a delegate's step wrote for the one above it may outlive that one's interruption
        decisions = (SELECT count(*) FROM aidb_internal.decision_log d WHERE d.conversation_id = t.conversation_id AND d.task_id = t.id),
        cost = end_task.cost, phase = NULL, phase_at = NULL, worker = NULL
    WHERE t.id = task_id AND (task_id <> top OR t.worker = end_task.worker) AND t.status IN ('IN_PROGRESS', 'RECOVERY')
      AND NOT EXISTS (SELECT FROM aidb_internal.task_cancels c WHERE c.task_id = top);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task ''%'' is no longer this worker''s', top USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    -- a delegate that was begun before an interruption, and was not come back to
    PERFORM aidb_internal.end_delegates(task_id, 'CANCELED', 'the task that delegated it is over');
END
$$;
COMMENT ON FUNCTION aidb_internal.end_task(uuid, bigint, uuid, aidb.task_status, text, uuid, uuid, integer, integer, bigint, bigint, timestamptz, timestamptz, text, numeric) IS
    'Ends a task that a worker has in hand, or one that was delegated in it; raises when the worker has lost it.';
REVOKE ALL ON FUNCTION aidb_internal.end_task(uuid, bigint, uuid, aidb.task_status, text, uuid, uuid, integer, integer, bigint, bigint, timestamptz, timestamptz, text, numeric) FROM PUBLIC;

-- A task whose agent is gone, or whose conversation is not its submitter's any more: there is nothing to log it with.
CREATE OR REPLACE FUNCTION aidb_internal.refuse_task(task_id uuid, worker bigint, why text)
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE aidb_internal.agent_task_queue t
    SET status = 'ERROR', error = why, completed_at = clock_timestamp(), phase = NULL, phase_at = NULL, worker = NULL
    WHERE t.id = $1 AND t.worker = $2 AND t.status IN ('IN_PROGRESS', 'RECOVERY');
    SELECT aidb_internal.end_delegates($1, 'ERROR', why) FROM aidb_internal.agent_task_queue t WHERE t.id = $1 AND t.status = 'ERROR';
$$;
COMMENT ON FUNCTION aidb_internal.refuse_task(uuid, bigint, text) IS
    'Ends a task that a worker has in hand with an error.';
REVOKE ALL ON FUNCTION aidb_internal.refuse_task(uuid, bigint, text) FROM PUBLIC;
