-- When the keeper has expired actions written down (worker/expiry.c): as the extension's owner, never by users.

-- Actions that a task waits for are left to the task, which aidb_internal.look_after_tasks lets go on. What somebody is
-- deciding is looked at again soon: they may roll back.
CREATE OR REPLACE FUNCTION aidb_internal.next_expiry_ms()
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now constant timestamptz := clock_timestamp();
    due uuid[];
BEGIN
    due := ARRAY(
        SELECT a.id FROM aidb_internal.actions a
        WHERE a.status = 'pending' AND a.expires_at <= now
          AND NOT EXISTS (SELECT FROM aidb_internal.agent_task_queue t WHERE t.id = a.task_id AND aidb_internal.task_is_open(t.status))
        ORDER BY a.expires_at LIMIT 1000);
    PERFORM FROM aidb_internal.actions a WHERE a.id = ANY (due) AND a.status = 'pending' LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        RETURN 0;
    END IF;
    RETURN least(CASE WHEN due <> '{}' THEN 1000 END,
                 (SELECT greatest(extract(epoch FROM a.expires_at - now) * 1000, 1)::bigint FROM aidb_internal.actions a
                  WHERE a.status = 'pending' AND a.expires_at > now ORDER BY a.expires_at LIMIT 1));
END
$$;
COMMENT ON FUNCTION aidb_internal.next_expiry_ms() IS
    'In how many milliseconds the next action expires that waits for a person; 0: there are some whose expiry is to be written down; NULL: none waits.';
REVOKE ALL ON FUNCTION aidb_internal.next_expiry_ms() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.wake_keeper()
RETURNS trigger
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_wake_keeper';
COMMENT ON FUNCTION aidb_internal.wake_keeper() IS
    'When this transaction commits, has the keeper look when the next action expires.';
REVOKE ALL ON FUNCTION aidb_internal.wake_keeper() FROM PUBLIC;

-- Proposed, restored from a dump, or (expires_at) ended with its task.
CREATE OR REPLACE TRIGGER watch_expiry AFTER INSERT OR UPDATE OF expires_at ON aidb_internal.actions
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.wake_keeper();
