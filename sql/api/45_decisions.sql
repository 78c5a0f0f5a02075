-- Reading and checking decisions.

CREATE OR REPLACE VIEW aidb.decisions WITH (security_barrier) AS
SELECT d.decision_id, d.at, d.conversation_id, d.task_id, d.agent, d.purpose, d.tool, d.interaction_point, d.principal,
       d.caller, d.session_user_name, d.role, d.status, d.denial_reason, d.attempted_escalation, d.object, d.query_text,
       d.query_hash, d.rows, d.sqlstate, make_interval(secs => d.duration_us / 1000000.0) AS duration
FROM aidb_internal.decision_log d
WHERE (d.caller = CURRENT_USER
       AND d.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND d.at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'));
COMMENT ON VIEW aidb.decisions IS
    'What agents were allowed and denied: one row for each tool call that reached the database or was stopped before it (interaction_point sql_exec), each call of an MCP server''s tool (mcp_call; object is the server), each model that was used (model_call) and each call that an agent delegated to another (delegation; object is the delegate, role what its tools run as), and each call that a temporal policy denied or, being log_only, would have denied and let through (policy; object is the policy and its state), and each thing that happened to an action that waits for a person (approval; object says which and what). role is what it ran as, principal and caller who asked. denial_reason is role_not_found, not_role_member, engine_privilege_denied, escalation_blocked, pre_execution_rejected, egress_denied, server_not_allowed, quarantined, delegation_depth, purpose_refused, policy_denied, actions_off, tool_forbidden, tool_unclassified, tool_not_assigned, agent_disabled, and for an approval action_rejected, action_expired or action_void. A refusal''s text ends in [decision_id=...], which is found here. Rows of one''s own calls; aidb_auditor sees all.';
REVOKE ALL ON aidb.decisions FROM PUBLIC;
GRANT SELECT ON aidb.decisions TO aidb_users, aidb_auditor;

-- The text that a row's hash is taken of: must be what decision.Record.Hash builds, field for field.
CREATE OR REPLACE FUNCTION aidb_internal.decision_digest(d aidb_internal.decision_log)
RETURNS bytea
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.string_agg(
        CASE WHEN f IS NULL THEN E'-\n' ELSE pg_catalog.octet_length(pg_catalog.convert_to(f, 'UTF8')) || ':' || f || E'\n' END,
        '' ORDER BY n), 'UTF8'))
    FROM unnest(ARRAY[
        '1', nullif(encode((d).prev_hash, 'hex'), ''), (d).chain_id::text, (d).chain_n::text, (d).decision_id::text,
        to_char((d).at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || CASE WHEN (d).at < '0001-01-01 UTC' THEN ' BC' ELSE '' END,
        (d).conversation_id::text, (d).task_id::text, (d).agent, (d).purpose, (d).tool, (d).interaction_point,
        (d).principal, (d).caller, (d).session_user_name, (d).role, (d).status, (d).denial_reason,
        (d).attempted_escalation::text, (d).object, (d).query_text, (d).query_hash, (d).rows::text, (d).sqlstate,
        (d).duration_us::text
    ]) WITH ORDINALITY AS t (f, n);
END;
COMMENT ON FUNCTION aidb_internal.decision_digest(aidb_internal.decision_log) IS
    'The hash that a row of the decision log should have.';
REVOKE ALL ON FUNCTION aidb_internal.decision_digest(aidb_internal.decision_log) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.verify_decisions(since timestamptz, until timestamptz)
RETURNS TABLE (decision_id uuid, problem text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- Of what aidb.maintain_retention dropped, the hashes are there that others follow: links of the chain (kept), which are
    -- not looked at themselves.
    WITH chains AS (
        SELECT c.chain_id FROM aidb_internal.decision_log c WHERE c.at >= since AND c.at <= until
    ), rows AS (
        SELECT l.*,
               lag(l.chain_n) OVER chain AS n_before,
               lag(l.hash) OVER chain AS hash_before,
               lag(l.at) OVER chain AS at_before
        FROM (
            SELECT d.decision_id, d.chain_id, d.chain_n, d.at, d.hash, d.prev_hash,
                   aidb_internal.decision_digest(d) AS expected, false AS kept
            FROM aidb_internal.decision_log d
            WHERE d.chain_id IN (SELECT c.chain_id FROM chains c)
            UNION ALL
            SELECT NULL, k.chain_id, k.chain_n, k.at, k.hash, NULL, NULL, true
            FROM aidb_internal.kept_hashes k
            WHERE k.chain_id IN (SELECT c.chain_id FROM chains c)
        ) l
        WINDOW chain AS (PARTITION BY l.chain_id ORDER BY l.chain_n)
    ), ends AS (
        SELECT t.id AS task_id, t.decisions, coalesce(c.n, 0) + coalesce(k.decisions, 0) AS found
        FROM aidb_internal.agent_task_queue t
        LEFT JOIN (
            SELECT d.task_id, count(*) AS n FROM aidb_internal.decision_log d WHERE d.at >= since AND d.task_id IS NOT NULL GROUP BY d.task_id
        ) c ON c.task_id = t.id
        LEFT JOIN aidb_internal.kept_counts k ON k.task_id = t.id
        WHERE t.created_at >= since AND t.completed_at <= until AND t.decisions > 0
          -- all of its decisions may have been dropped
          AND t.completed_at >= (SELECT coalesce(max(p.until_at), '-infinity') FROM aidb_internal.log_partitions p
                                 WHERE p.kind = 'decision_log' AND p.dropped_at IS NOT NULL)
    )
    SELECT r.decision_id, 'the record was changed: its hash does not fit its contents'
    FROM rows r WHERE NOT r.kept AND r.hash IS DISTINCT FROM r.expected
    UNION ALL
    SELECT r.decision_id, CASE WHEN r.chain_n = 1 THEN 'two records claim to be the first of their run'
                               ELSE format('record %s of its run is missing', r.chain_n - 1) END
    FROM rows r WHERE NOT r.kept AND r.chain_n <> coalesce(r.n_before, 0) + 1
    UNION ALL
    SELECT r.decision_id, 'the record does not follow the one before it'
    FROM rows r WHERE NOT r.kept AND r.chain_n = r.n_before + 1 AND r.prev_hash IS DISTINCT FROM r.hash_before
    UNION ALL
    SELECT r.decision_id, 'records of its run were reordered'
    FROM rows r WHERE NOT r.kept AND r.at <= r.at_before
    UNION ALL
    SELECT r.decision_id, 'the record that was the newest when its run began is missing'
    FROM rows r
    WHERE r.chain_n = 1 AND r.prev_hash <> '\x'
      AND NOT EXISTS (SELECT FROM aidb_internal.decision_log p WHERE p.hash = r.prev_hash)
      AND NOT EXISTS (SELECT FROM aidb_internal.kept_hashes k WHERE k.hash = r.prev_hash)
    UNION ALL
    SELECT NULL, format('records of task %s are missing: it made %s, %s are there', e.task_id, e.decisions, e.found)
    FROM ends e WHERE e.decisions <> e.found
    UNION ALL
    SELECT NULL, format('partition %s is missing: it was not dropped by aidb.maintain_retention', p.name)
    FROM aidb_internal.log_partitions p
    WHERE p.kind = 'decision_log' AND p.dropped_at IS NULL AND p.from_at <= until AND p.until_at >= since
      AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = 'aidb_internal.decision_log'::regclass
                      AND i.inhrelid = to_regclass(format('aidb_internal.%I', p.name)));
END;
COMMENT ON FUNCTION aidb_internal.verify_decisions(timestamptz, timestamptz) IS
    'The work of aidb.verify_decisions.';
REVOKE ALL ON FUNCTION aidb_internal.verify_decisions(timestamptz, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.verify_decisions(since timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity')
RETURNS TABLE (decision_id uuid, problem text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.verify_decisions(timestamptz, timestamptz) IS
    'Checks the decision log: one row for each record of a run in that time that was edited, removed or reordered since it was written, and for each partition that was taken away; no rows mean that the log is intact. What aidb.maintain_retention dropped is not missed. What it cannot see: the removal of the newest runs together with their tasks, before another run has begun. Privileges: aidb_auditor, aidb_governance.';
REVOKE ALL ON FUNCTION aidb.verify_decisions(timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.verify_decisions(timestamptz, timestamptz) TO aidb_auditor, aidb_governance;
