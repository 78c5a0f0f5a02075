-- The partitions of the logs: made before they are needed, and taken away when all that is in them is older than
-- aidb.retention_<kind>. Whatever needs a lock that a running call has waits 200 ms for it at most, so that calls behind it
-- wait no longer either, and is tried again later.

-- The kinds of log, where each is, and for how long it is kept (NULL: for ever).
CREATE OR REPLACE FUNCTION aidb_internal.logs()
RETURNS TABLE (kind text, schema text, parent text, at_column text, keep interval)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT k.kind, k.schema, k.parent, k.at_column,
           -- minutes, whatever unit the setting shows
           make_interval(mins => nullif(extract(epoch FROM current_setting('aidb.retention_' || k.kind)::interval) / 60, 0)::integer)
    FROM (VALUES ('action_log', 'aidb_internal', 'logged_steps', 'created_at'),
                 ('decision_log', 'aidb_internal', 'decision_log', 'at'),
                 ('otel', 'aidb_otel', 'traces', 'recorded_at')) k (kind, schema, parent, at_column)
$$;
COMMENT ON FUNCTION aidb_internal.logs() IS
    'The kinds of log, where each is, and for how long it is kept.';
REVOKE ALL ON FUNCTION aidb_internal.logs() FROM PUBLIC;

-- How long a partition is: the longer rows are kept, the longer. There are then at most about sixteen of them, unless
-- rows are kept for years. Every partition costs those who look for a conversation in all of them, and a new session most.
CREATE OR REPLACE FUNCTION aidb_internal.log_partition_width(keep interval, OUT unit text, OUT ahead interval)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT w.unit, w.ahead
    FROM (VALUES (interval '360 days', 'quarter', interval '14 days'), (interval '90 days', 'month', interval '7 days'),
                 (interval '14 days', 'week', interval '2 days'), (interval '0', 'day', interval '1 day')) w (least, unit, ahead)
    WHERE coalesce($1, interval '1000 years') >= w.least
    ORDER BY w.least DESC LIMIT 1
$$;
COMMENT ON FUNCTION aidb_internal.log_partition_width(interval) IS
    'The length of new partitions of a log that is kept for so long, and how long before its time one is made.';
REVOKE ALL ON FUNCTION aidb_internal.log_partition_width(interval) FROM PUBLIC;

-- Days, weeks, months and quarters are those of UTC.
CREATE OR REPLACE FUNCTION aidb_internal.border_after(unit text, at timestamptz)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (date_trunc($1, $2 AT TIME ZONE 'UTC') + CASE $1 WHEN 'quarter' THEN interval '3 months' ELSE ('1 ' || $1)::interval END)
           AT TIME ZONE 'UTC'
$$;
COMMENT ON FUNCTION aidb_internal.border_after(text, timestamptz) IS
    'When the day, week, month or quarter ends that a time is in.';
REVOKE ALL ON FUNCTION aidb_internal.border_after(text, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.add_log_partition(kind text, from_at timestamptz, until_at timestamptz)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
DECLARE
    log record;
    name text;
    grantee text;
    -- spelled as no setting of the session changes it
    first constant text := to_char(from_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00';
    beyond constant text := to_char(until_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00';
BEGIN
    SELECT l.* INTO STRICT log FROM aidb_internal.logs() l WHERE l.kind = add_log_partition.kind;
    name := log.parent || '_' || to_char(from_at AT TIME ZONE 'UTC', 'YYYYMMDD');
    EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.%3$I INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING INDEXES INCLUDING STORAGE) %4$s', log.schema, name,
                   log.parent || '_default', CASE log.kind WHEN 'action_log' THEN 'WITH (toast_tuple_target = 128)' END);
    EXECUTE format('COMMENT ON TABLE %I.%I IS %L', log.schema, name,
                   format('Part of %I.%I: from %s to before %s.', log.schema, log.parent, first, beyond));
    EXECUTE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', log.schema, name);
    -- what ALTER DEFAULT PRIVILEGES may have granted
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = format('%I.%I', log.schema, name)::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %I.%I FROM %s', log.schema, name, grantee);
    END LOOP;
    EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES FROM (%4$L) TO (%5$L)', log.schema, log.parent, name, first, beyond);
    INSERT INTO aidb_internal.log_partitions (kind, name, from_at, until_at) VALUES (log.kind, name, from_at, until_at);
    RETURN name;
END
$$;
COMMENT ON FUNCTION aidb_internal.add_log_partition(text, timestamptz, timestamptz) IS
    'Makes a partition of a log and returns its name; raises when rows of that time are in the default partition already, and 55P03 when that is in use.';
REVOKE ALL ON FUNCTION aidb_internal.add_log_partition(text, timestamptz, timestamptz) FROM PUBLIC;

-- From the end of the last one, or from today where there is none, to the next border; then the next, until there is enough
-- ahead. Rows that came before stay in the default partition: a partition begins on the day after the newest of them.
CREATE OR REPLACE FUNCTION aidb_internal.next_log_partition(kind text, OUT from_at timestamptz, OUT until_at timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    log record;
    width record;
    taken timestamptz;
BEGIN
    SELECT l.* INTO STRICT log FROM aidb_internal.logs() l WHERE l.kind = next_log_partition.kind;
    SELECT w.* INTO width FROM aidb_internal.log_partition_width(log.keep) w;
    SELECT max(p.until_at) INTO from_at FROM aidb_internal.log_partitions p
    WHERE p.kind = log.kind AND p.name <> log.parent || '_default';
    IF from_at >= now() + width.ahead THEN
        from_at := NULL;
        RETURN;
    END IF;
    from_at := greatest(from_at, date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC');
    LOOP
        until_at := aidb_internal.border_after(width.unit, from_at);
        EXECUTE format('SELECT max(%1$I) FROM %I.%I WHERE %1$I >= $1 AND %1$I < $2', log.at_column, log.schema, log.parent || '_default')
        INTO taken USING from_at, until_at;
        EXIT WHEN taken IS NULL;
        from_at := aidb_internal.border_after('day', taken);
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.next_log_partition(text) IS
    'The next partition that a log needs now; NULL when it needs none.';
REVOKE ALL ON FUNCTION aidb_internal.next_log_partition(text) FROM PUBLIC;

-- Before decisions older than a time go: keeps what others need of them. relation holds all of them that are left, and
-- nobody writes them any more.
--
-- Who follows one that goes? A record of the same run that stays, or the first of a run that began when nothing newer was
-- committed yet: it came soon after what is the oldest to stay. So both ends are near the border, and found by the index by
-- time; only runs that slept across it for days are not, and have all of the partition looked through.
CREATE OR REPLACE FUNCTION aidb_internal.keep_hashes(relation regclass, older_than timestamptz, OUT last_id uuid, OUT last_hash bytea)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    followed bytea[];
    since timestamptz := older_than - interval '1 day';
    resolved bigint;
BEGIN
    WITH follow AS (
        SELECT f.hash, f.prev_hash FROM aidb_internal.decision_log f
        WHERE f.at >= older_than
          AND f.at < (SELECT min(o.at) FROM aidb_internal.decision_log o WHERE o.at >= older_than) + interval '1 day'
        UNION
        SELECT f.hash, f.prev_hash
        FROM aidb_internal.agent_task_queue t
        JOIN aidb_internal.decision_log f ON f.conversation_id = t.conversation_id AND f.task_id = t.id
        WHERE t.created_at < older_than AND t.completed_at >= older_than AND f.at >= older_than
    )
    SELECT array_agg(o.prev_hash) INTO followed
    FROM (
        SELECT f.prev_hash FROM follow f WHERE f.prev_hash <> '\x'
        EXCEPT SELECT f.hash FROM follow f
        EXCEPT SELECT k.hash FROM aidb_internal.kept_hashes k
    ) o;
    LOOP
        EXECUTE format($sql$
            WITH followed AS (
                SELECT d.hash, d.chain_id, d.chain_n, d.at FROM %s d WHERE d.at < $1 AND d.at >= $2 AND d.hash = ANY ($3)
            ), keep AS (
                INSERT INTO aidb_internal.kept_hashes (hash, chain_id, chain_n, at) SELECT f.* FROM followed f
                ON CONFLICT (hash) DO NOTHING
            )
            SELECT count(*) FROM followed
            $sql$, relation) INTO resolved USING older_than, since, followed;
        EXIT WHEN since = '-infinity' OR resolved >= coalesce(cardinality(followed), 0);
        since := '-infinity';
    END LOOP;
    EXECUTE format($sql$
        WITH newest AS (
            SELECT d.decision_id, d.hash, d.chain_id, d.chain_n, d.at FROM %s d
            WHERE d.at < $1 ORDER BY d.at DESC, d.decision_id DESC LIMIT 1
        ), keep AS (
            INSERT INTO aidb_internal.kept_hashes (hash, chain_id, chain_n, at)
            SELECT n.hash, n.chain_id, n.chain_n, n.at FROM newest n
            ON CONFLICT (hash) DO NOTHING
        )
        SELECT n.decision_id, n.hash FROM newest n
        $sql$, relation) INTO last_id, last_hash USING older_than;
    EXECUTE format($sql$
        INSERT INTO aidb_internal.kept_counts AS k (task_id, decisions)
        SELECT t.id, count(*)
        FROM aidb_internal.agent_task_queue t
        JOIN %s d ON d.conversation_id = t.conversation_id AND d.task_id = t.id
        WHERE t.created_at < $1 AND t.completed_at >= $1 AND d.at < $1
        GROUP BY t.id
        ON CONFLICT (task_id) DO UPDATE SET decisions = k.decisions + excluded.decisions
        $sql$, relation) USING older_than;
END
$$;
COMMENT ON FUNCTION aidb_internal.keep_hashes(regclass, timestamptz) IS
    'Keeps the hashes of decisions in a partition that go, as far as others follow them, and counts those of tasks that have others still.';
REVOKE ALL ON FUNCTION aidb_internal.keep_hashes(regclass, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.drop_log_partition(kind text, name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
DECLARE
    log record;
    part aidb_internal.log_partitions;
BEGIN
    SELECT l.* INTO STRICT log FROM aidb_internal.logs() l WHERE l.kind = drop_log_partition.kind;
    SELECT p.* INTO STRICT part FROM aidb_internal.log_partitions p
    WHERE p.kind = log.kind AND p.name = drop_log_partition.name AND p.dropped_at IS NULL;
    IF log.kind = 'decision_log' THEN
        -- against those who write into it, of whom there should be none; readers go on
        EXECUTE format('LOCK TABLE ONLY %I.%I IN SHARE MODE', log.schema, part.name);
        SELECT k.last_id, k.last_hash INTO part.last_id, part.last_hash
        FROM aidb_internal.keep_hashes(format('%I.%I', log.schema, part.name)::regclass, part.until_at) k;
    END IF;
    EXECUTE format('DROP TABLE %I.%I', log.schema, part.name);
    UPDATE aidb_internal.log_partitions p
    SET dropped_at = clock_timestamp(), dropped_by = SESSION_USER, last_id = part.last_id, last_hash = part.last_hash
    WHERE p.kind = part.kind AND p.name = part.name;
END
$$;
COMMENT ON FUNCTION aidb_internal.drop_log_partition(text, text) IS
    'Drops a partition of a log; raises 55P03 when it is in use.';
REVOKE ALL ON FUNCTION aidb_internal.drop_log_partition(text, text) FROM PUBLIC;

-- A view for those who look after the logs.
CREATE OR REPLACE VIEW aidb.log_partitions AS
SELECT p.kind, p.name, p.from_at, p.until_at,
       CASE WHEN p.dropped_at IS NOT NULL THEN 'dropped' WHEN i.inhrelid IS NULL THEN 'missing' ELSE 'attached' END AS status,
       pg_total_relation_size(i.inhrelid) AS bytes, p.dropped_at, p.dropped_by, p.last_id
FROM aidb_internal.log_partitions p
LEFT JOIN pg_inherits i ON i.inhrelid = to_regclass(CASE p.kind WHEN 'otel' THEN 'aidb_otel.' ELSE 'aidb_internal.' END || p.name)
WHERE p.name NOT LIKE '%\_default'
UNION ALL
SELECT d.kind, d.name, NULL, p.until_at, 'attached', pg_total_relation_size(d.relation), p.dropped_at, p.dropped_by, p.last_id
FROM (VALUES ('action_log', 'logged_steps_default', 'aidb_internal.logged_steps_default'::regclass),
             ('decision_log', 'decision_log_default', 'aidb_internal.decision_log_default'),
             ('otel', 'traces_default', 'aidb_otel.traces_default')) d (kind, name, relation)
LEFT JOIN aidb_internal.log_partitions p ON p.kind = d.kind AND p.name = d.name;
COMMENT ON VIEW aidb.log_partitions IS
    'The partitions by time of the three logs, those that were dropped included: action_log, which is aidb_internal.logged_steps, decision_log of the same schema, and otel, which is aidb_otel.traces. See aidb.maintain_retention. Privileges: SELECT for aidb_governance and aidb_auditor.';
COMMENT ON COLUMN aidb.log_partitions.from_at IS 'Its rows are not older; NULL: the default partition, for all that no other is for.';
COMMENT ON COLUMN aidb.log_partitions.until_at IS 'Its rows are older; of a default partition: what was older than this has been deleted.';
COMMENT ON COLUMN aidb.log_partitions.status IS 'attached, dropped, or missing: somebody else than aidb.maintain_retention took it away.';
COMMENT ON COLUMN aidb.log_partitions.bytes IS 'On disk, with its indexes.';
COMMENT ON COLUMN aidb.log_partitions.last_id IS 'Of decisions: the newest that was dropped; its hash is kept.';
REVOKE ALL ON aidb.log_partitions FROM PUBLIC;
GRANT SELECT ON aidb.log_partitions TO aidb_governance, aidb_auditor;
