-- What the background worker does. See worker/worker.c for when.

CREATE OR REPLACE FUNCTION aidb_internal.prune_log(days integer, batch integer)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    border constant timestamptz := now() - make_interval(days => days);
    gone bigint;
    more bigint;
BEGIN
    -- whole tasks, so that no transcript is left with holes
    WITH old AS (
        DELETE FROM aidb_internal.agent_task_queue t
        WHERE t.id IN (SELECT q.id FROM aidb_internal.agent_task_queue q WHERE q.created_at < border LIMIT batch)
        RETURNING t.id
    ), steps AS (
        DELETE FROM aidb_internal.action_log l USING old WHERE l.task_id = old.id
    )
    SELECT count(*) INTO gone FROM old;
    IF gone > 0 THEN
        RETURN gone;
    END IF;
    -- what a deleted agent's tasks have left
    WITH old AS (
        DELETE FROM aidb_internal.action_log l
        WHERE l.ctid = ANY (ARRAY(SELECT q.ctid FROM aidb_internal.action_log q WHERE q.created_at < border LIMIT batch))
        RETURNING l.id
    )
    SELECT count(*) INTO more FROM old;
    IF more = 0 THEN
        -- what quotas no longer look at: they are for a day
        DELETE FROM aidb_internal.quota_usage u WHERE u.at < least(border, now() - interval '2 days');
    END IF;
    RETURN more;
END
$$;
COMMENT ON FUNCTION aidb_internal.prune_log(integer, integer) IS
    'Deletes up to batch tasks older than so many days, with their log rows; then up to batch log rows that belong to no task, and then what was noted for quotas. Returns how many tasks or log rows went. Decisions are not touched. Called by the maintenance worker.';
REVOKE ALL ON FUNCTION aidb_internal.prune_log(integer, integer) FROM PUBLIC;
