-- Names in the history and the roles that they stand for.

CREATE OR REPLACE FUNCTION aidb_internal.history_since(who text)
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT CASE WHEN count(*) = 0 THEN '-infinity'::timestamptz
                ELSE coalesce(min(c.since) FILTER (WHERE c.role = (SELECT r.oid::regrole FROM pg_roles r WHERE r.rolname = who)), 'infinity') END
    FROM aidb_internal.callers c WHERE c.name = who;
END;
COMMENT ON FUNCTION aidb_internal.history_since(text) IS
    'Since when what is kept under a name is of the role that has it now: always, where no role was noted under it; never, where only others were.';
REVOKE ALL ON FUNCTION aidb_internal.history_since(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.history_since()
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT aidb_internal.history_since(aidb_internal.caller());
END;
COMMENT ON FUNCTION aidb_internal.history_since() IS 'Behind aidb.history_since.';
REVOKE ALL ON FUNCTION aidb_internal.history_since() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.history_since()
RETURNS timestamptz
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.history_since() IS
    'Since when the history that is kept under the caller''s name is the caller''s: -infinity when no role of that name has called anything yet, infinity when only another one has, which was dropped or renamed since. Earlier rows are shown to aidb_auditor alone. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.history_since() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.history_since() TO aidb_users, aidb_governance, aidb_auditor;

ALTER POLICY agent_task_queue_own ON aidb_internal.agent_task_queue USING (
    (caller = CURRENT_USER AND principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
     AND created_at >= (SELECT aidb.history_since()))
    OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'))
);
