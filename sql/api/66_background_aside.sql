-- Tasks that are put aside until a time or a person's answer, and go on (see 66_background_worker.sql).

-- The last step of a worker for now: in the transaction that wrote the action. task_id is the task that proposed it, top
-- or a delegate's within it.
CREATE OR REPLACE FUNCTION aidb_internal.park_task(
    top uuid, worker bigint, task_id uuid, rounds integer, input_tokens bigint, output_tokens bigint, role text,
    until timestamptz, time_out timestamptz
)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    who text;
BEGIN
    PERFORM aidb_internal.step_task(top, worker, task_id, CASE WHEN until IS NULL THEN 'awaiting_confirmation' ELSE 'sleep' END,
                                    rounds, input_tokens, output_tokens, role);
    -- what the time budget was extended by is not in the log
    UPDATE aidb_internal.agent_task_queue t SET timeout_at = time_out WHERE t.id = task_id;
    UPDATE aidb_internal.agent_task_queue t
    SET status = CASE WHEN until IS NULL THEN 'AWAIT_APPROVAL'::aidb.task_status ELSE 'IN_PROGRESS' END, worker = NULL,
        awaits_until = coalesce(until, (SELECT min(a.expires_at) FROM aidb_internal.actions a WHERE a.task_id = park_task.task_id AND a.status = 'pending'),
                                clock_timestamp())
    WHERE t.id = top
    RETURNING t.initiated_by INTO who;
    -- the keeper sees to it that the time is not forgotten
    PERFORM aidb_internal.wake_workers(who, NULL);
END
$$;
COMMENT ON FUNCTION aidb_internal.park_task(uuid, bigint, uuid, integer, bigint, bigint, text, timestamptz, timestamptz) IS
    'Puts a task aside that a worker has in hand, until a time (it sleeps), or until a person has answered or their time is over; raises when the worker has lost it.';
REVOKE ALL ON FUNCTION aidb_internal.park_task(uuid, bigint, uuid, integer, bigint, bigint, text, timestamptz, timestamptz) FROM PUBLIC;

-- For whoever decides what a task awaits: it goes on when their transaction commits. A delegate proposes in the name of
-- the task that was submitted.
CREATE OR REPLACE FUNCTION aidb_internal.resume_task(task_id uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    who text;
BEGIN
    WITH RECURSIVE above AS (
        SELECT t.id, t.parent_task_id FROM aidb_internal.agent_task_queue t WHERE t.id = $1
        UNION ALL
        SELECT t.id, t.parent_task_id FROM above a JOIN aidb_internal.agent_task_queue t ON t.id = a.parent_task_id
    )
    UPDATE aidb_internal.agent_task_queue t
    SET status = 'PENDING', phase = 'queue', phase_at = clock_timestamp(), awaits_until = NULL
    FROM above a
    WHERE t.id = a.id AND a.parent_task_id IS NULL AND t.status = 'AWAIT_APPROVAL'
    RETURNING t.initiated_by INTO who;
    IF who IS NULL THEN
        RETURN false;
    END IF;
    PERFORM aidb_internal.wake_workers(who, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION aidb_internal.resume_task(uuid) IS
    'Lets a task that awaits an approval go on, when this transaction commits; false when it awaits none.';
REVOKE ALL ON FUNCTION aidb_internal.resume_task(uuid) FROM PUBLIC;

-- Nobody has answered in time: the worker finds that, tells the model and writes it down. An action that somebody is
-- deciding at this moment is left to them.
CREATE OR REPLACE FUNCTION aidb_internal.resume_overdue_tasks()
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    due uuid;
BEGIN
    FOR due IN
        SELECT t.id FROM aidb_internal.agent_task_queue t
        WHERE t.status = 'AWAIT_APPROVAL' AND NOT t.blocking AND t.parent_task_id IS NULL AND t.awaits_until <= clock_timestamp()
        ORDER BY t.awaits_until LIMIT 1000
        FOR UPDATE SKIP LOCKED
    LOOP
        IF (SELECT count(*) FROM aidb_internal.task_actions(due)) = (SELECT count(*) FROM aidb_internal.lock_actions(due)) THEN
            PERFORM aidb_internal.resume_task(due);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.resume_overdue_tasks() IS
    'Lets tasks go on that have waited for a person as long as they may.';
REVOKE ALL ON FUNCTION aidb_internal.resume_overdue_tasks() FROM PUBLIC;
