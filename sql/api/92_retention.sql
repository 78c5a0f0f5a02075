-- What is done for the logs from time to time: by the keeper of the database (worker/retention.c), and by hand.

-- Deletes what is older than a time from a default partition, which cannot be dropped. Little is there, unless nobody made
-- partitions for a long time.
CREATE OR REPLACE FUNCTION aidb_internal.prune_default_partition(kind text, older_than timestamptz)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
DECLARE
    log record;
    rest text;
    left_over boolean;
    deleted bigint := 0;
    gone_id uuid;
    gone_hash bytea;
BEGIN
    SELECT l.* INTO STRICT log FROM aidb_internal.logs() l WHERE l.kind = prune_default_partition.kind;
    rest := format('%I.%I', log.schema, log.parent || '_default');
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I < $1)', rest, log.at_column) INTO left_over USING older_than;
    IF NOT left_over THEN
        RETURN 0;
    END IF;
    IF log.kind = 'decision_log' THEN
        SELECT k.last_id, k.last_hash INTO gone_id, gone_hash FROM aidb_internal.keep_hashes(rest::regclass, older_than) k;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I >= $1)', rest, log.at_column) INTO left_over USING older_than;
    IF NOT left_over THEN
        -- nothing in it is to stay: no matter how much it is
        BEGIN
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', rest);
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I >= $1)', rest, log.at_column) INTO left_over USING older_than;
            IF NOT left_over THEN
                EXECUTE format('SELECT count(*) FROM %s', rest) INTO deleted;
                EXECUTE format('TRUNCATE ONLY %s', rest);
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN deleted := 0;
        END;
    END IF;
    IF deleted = 0 THEN
        EXECUTE format('DELETE FROM %s WHERE %I < $1', rest, log.at_column) USING older_than;
        GET DIAGNOSTICS deleted = ROW_COUNT;
    END IF;
    INSERT INTO aidb_internal.log_partitions AS p (kind, name, from_at, until_at, dropped_at, dropped_by, last_id, last_hash)
    VALUES (log.kind, log.parent || '_default', '-infinity', older_than, clock_timestamp(), SESSION_USER, gone_id, gone_hash)
    ON CONFLICT ON CONSTRAINT log_partitions_pkey DO UPDATE
    SET until_at = greatest(p.until_at, excluded.until_at), dropped_at = excluded.dropped_at, dropped_by = excluded.dropped_by,
        last_id = excluded.last_id, last_hash = excluded.last_hash;
    RETURN deleted;
END
$$;
COMMENT ON FUNCTION aidb_internal.prune_default_partition(text, timestamptz) IS
    'Deletes what is older than a time from the default partition of a log, and returns how many rows that were.';
REVOKE ALL ON FUNCTION aidb_internal.prune_default_partition(text, timestamptz) FROM PUBLIC;

-- Tasks go with their steps: those that ended before the oldest step that is left. What a fork or an import says of itself
-- goes when nothing is left of the conversation, and what was noted for quotas, which are for a day, after two.
CREATE OR REPLACE FUNCTION aidb_internal.prune_tasks(older_than timestamptz)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deleted bigint;
BEGIN
    DELETE FROM aidb_internal.agent_task_queue t
    WHERE t.created_at < older_than AND t.completed_at < older_than AND NOT aidb_internal.task_is_open(t.status);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    DELETE FROM aidb_internal.conversation_origins o
    WHERE o.created_at < older_than
      AND NOT EXISTS (SELECT FROM aidb_internal.logged_steps l WHERE l.conversation_id = o.conversation_id)
      AND NOT EXISTS (SELECT FROM aidb_internal.agent_task_queue t WHERE t.conversation_id = o.conversation_id)
      AND NOT EXISTS (SELECT FROM aidb_internal.conversation_origins f WHERE f.parent_conversation_id = o.conversation_id)
      AND NOT EXISTS (SELECT FROM aidb_internal.logged_steps l WHERE l.conversation_id = o.parent_conversation_id);
    DELETE FROM aidb_internal.quota_usage u WHERE u.at < least(older_than, now() - interval '2 days');
    RETURN deleted;
END
$$;
COMMENT ON FUNCTION aidb_internal.prune_tasks(timestamptz) IS
    'Deletes tasks that ended before a time, and what else has no steps any more; returns how many tasks that were.';
REVOKE ALL ON FUNCTION aidb_internal.prune_tasks(timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.maintain_log(log_kind text)
RETURNS TABLE (kind text, partition text, outcome text, rows bigint, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
#variable_conflict use_column
DECLARE
    log record;
    part record;
    border timestamptz;
    open_task uuid;
    busy constant text := 'it is in use; it is tried again the next time';
BEGIN
    SELECT l.* INTO STRICT log FROM aidb_internal.logs() l WHERE l.kind = log_kind;
    kind := log.kind;
    -- one at a time; who only reads the list does not wait
    LOCK TABLE aidb_internal.log_partitions IN SHARE ROW EXCLUSIVE MODE;

    LOOP
        SELECT n.* INTO part FROM aidb_internal.next_log_partition(log.kind) n;
        EXIT WHEN part.from_at IS NULL;
        outcome := 'created';
        detail := NULL;
        BEGIN
            partition := aidb_internal.add_log_partition(log.kind, part.from_at, part.until_at);
        EXCEPTION
            WHEN lock_not_available OR check_violation THEN
                partition := log.parent || '_default';
                outcome := 'kept';
                detail := 'no partition was made: ' || busy;
        END;
        RETURN NEXT;
        EXIT WHEN outcome = 'kept';
    END LOOP;
    IF log.kind = 'action_log' THEN
        -- of actions that were rolled back themselves, or decided by a transaction that could not see the mark
        DELETE FROM aidb_internal.sent_steps s
        WHERE s.at < now() - interval '2 days'
          AND NOT EXISTS (SELECT FROM aidb_internal.actions a WHERE a.id = s.action_id AND a.status = 'pending');
    END IF;
    IF log.keep IS NULL THEN
        RETURN;
    END IF;

    -- Nothing goes that an unfinished task may need: its steps are its state.
    border := now() - log.keep;
    IF log.kind <> 'otel' THEN
        SELECT t.id, t.created_at INTO part FROM aidb_internal.agent_task_queue t
        WHERE t.created_at < border AND aidb_internal.task_is_open(t.status) ORDER BY t.created_at LIMIT 1;
        IF FOUND THEN
            open_task := part.id;
            border := part.created_at;
        END IF;
    END IF;
    partition := log.parent || '_default';
    rows := aidb_internal.prune_default_partition(log.kind, border);
    IF rows > 0 THEN
        outcome := 'deleted';
        detail := NULL;
        RETURN NEXT;
    END IF;
    FOR part IN
        SELECT p.name, p.until_at,
               EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = to_regclass(format('%I.%I', log.schema, p.name))
                       AND i.inhparent = to_regclass(format('%I.%I', log.schema, log.parent))) AS attached
        FROM aidb_internal.log_partitions p
        WHERE p.kind = log.kind AND p.dropped_at IS NULL AND p.until_at <= now() - log.keep
        ORDER BY p.from_at
    LOOP
        partition := part.name;
        rows := NULL;
        IF NOT part.attached THEN
            outcome := 'missing';
            detail := 'somebody else took it away';
        ELSIF part.until_at > border THEN
            outcome := 'kept';
            detail := format('task %s is not over', open_task);
        ELSE
            BEGIN
                PERFORM aidb_internal.drop_log_partition(log.kind, part.name);
                outcome := 'dropped';
                detail := NULL;
            EXCEPTION
                WHEN lock_not_available THEN
                    outcome := 'kept';
                    detail := busy;
                    -- what is newer stays as long
                    border := '-infinity';
            END;
        END IF;
        RETURN NEXT;
        EXIT WHEN outcome = 'kept';
    END LOOP;
    IF log.kind = 'action_log' THEN
        -- A task stays as long as one of its steps does.
        SELECT least(border, min(p.from_at)) INTO border FROM aidb_internal.log_partitions p
        WHERE p.kind = log.kind AND p.dropped_at IS NULL AND p.from_at < border;
        rows := aidb_internal.prune_tasks(border);
        IF rows > 0 THEN
            partition := NULL;
            outcome := 'deleted';
            detail := 'tasks';
            RETURN NEXT;
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.maintain_log(text) IS
    'Makes the partitions that a log needs next, and takes away what is older than its retention.';
REVOKE ALL ON FUNCTION aidb_internal.maintain_log(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.maintain_retention()
RETURNS TABLE (kind text, partition text, outcome text, rows bigint, detail text)
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT m.* FROM aidb_internal.logs() l CROSS JOIN LATERAL aidb_internal.maintain_log(l.kind) m
$$;
COMMENT ON FUNCTION aidb_internal.maintain_retention() IS 'Behind aidb.maintain_retention.';
REVOKE ALL ON FUNCTION aidb_internal.maintain_retention() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.maintain_retention()
RETURNS TABLE (kind text, partition text, outcome text, rows bigint, detail text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.maintain_retention() IS
    'Makes the partitions that the logs need next, and takes away what is older than aidb.retention_action_log, aidb.retention_decision_log and aidb.retention_otel. The background worker does the same every aidb.maintenance_naptime; without it, have this called once a day. A row for each thing that was done, or not: kind; partition, or NULL; outcome: created, dropped, deleted (rows: from a default partition, or tasks, as detail says), kept (detail: why) or missing. Rows of a log go when their whole partition is old enough, and no partition goes while a task that began before its end is not over. What running calls use is waited for 200 ms at most, and left for the next time. Of dropped decisions the last hash is kept, and aidb.verify_decisions goes on from there. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.maintain_retention() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.maintain_retention() TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.run_otel_retention_cleanup()
RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT FROM (SELECT count(*) FROM aidb_internal.maintain_log('otel')) m $$;
COMMENT ON FUNCTION aidb_internal.run_otel_retention_cleanup() IS 'Behind aidb.run_otel_retention_cleanup.';
REVOKE ALL ON FUNCTION aidb_internal.run_otel_retention_cleanup() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.run_otel_retention_cleanup()
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.run_otel_retention_cleanup() IS
    'aidb.maintain_retention for aidb_otel alone: takes away traces that are older than aidb.retention_otel. Safe while the background worker does the same. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.run_otel_retention_cleanup() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.run_otel_retention_cleanup() TO aidb_governance;
