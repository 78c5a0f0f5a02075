-- Temporal policies, to look at.

-- Roles that write all data, or own the tables, could write what the guard reads, through the views too, which read with
-- their owner's rights. The trigger sees who it really is.
CREATE OR REPLACE FUNCTION aidb_internal.refuse_write()
RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'aidb_refuse_write';
COMMENT ON FUNCTION aidb_internal.refuse_write() IS
    'Keeps what the guard reads to aidb''s own functions, and session events append-only.';
REVOKE ALL ON FUNCTION aidb_internal.refuse_write() FROM PUBLIC;
CREATE OR REPLACE TRIGGER policies_written_by_aidb BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON aidb_internal.policies
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.refuse_write();
CREATE OR REPLACE TRIGGER tool_transitions_written_by_aidb BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON aidb_internal.tool_transitions
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.refuse_write();
CREATE OR REPLACE TRIGGER policy_sessions_written_by_aidb BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON aidb_internal.policy_sessions
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.refuse_write();
CREATE OR REPLACE TRIGGER event_totals_written_by_aidb BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON aidb_internal.event_totals
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.refuse_write();
CREATE OR REPLACE TRIGGER session_events_append_only BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON aidb_internal.session_events
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.refuse_write();

-- Events that are no more, or others: what was counted of them is counted again.
CREATE OR REPLACE FUNCTION aidb_internal.forget_totals()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        DELETE FROM aidb_internal.event_totals;
    ELSIF TG_OP = 'UPDATE' THEN
        DELETE FROM aidb_internal.event_totals t
        WHERE (t.kind = 'session' AND t.who IN (OLD.session_id::text, NEW.session_id::text))
           OR (t.kind = 'principal' AND t.who IN (OLD.principal, NEW.principal));
    ELSE
        DELETE FROM aidb_internal.event_totals t
        USING (SELECT 'session' AS kind, g.session_id::text AS who, min(g.id) AS id FROM gone g GROUP BY g.session_id
               UNION ALL SELECT 'principal', g.principal, min(g.id) FROM gone g GROUP BY g.principal) x
        WHERE t.kind = x.kind AND t.who = x.who AND t.upto >= x.id;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.forget_totals() IS 'Deletes the totals of events that were changed or deleted.';
REVOKE ALL ON FUNCTION aidb_internal.forget_totals() FROM PUBLIC;
CREATE OR REPLACE TRIGGER session_events_deleted AFTER DELETE ON aidb_internal.session_events
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.forget_totals();
CREATE OR REPLACE TRIGGER session_events_changed AFTER UPDATE ON aidb_internal.session_events
    FOR EACH ROW WHEN ((OLD.id, OLD.session_id, OLD.principal, OLD.tool_name, OLD.params, OLD.rank, OLD.called_at)
                       IS DISTINCT FROM (NEW.id, NEW.session_id, NEW.principal, NEW.tool_name, NEW.params, NEW.rank, NEW.called_at))
    EXECUTE FUNCTION aidb_internal.forget_totals();
CREATE OR REPLACE TRIGGER session_events_truncated AFTER TRUNCATE ON aidb_internal.session_events
    FOR EACH STATEMENT EXECUTE FUNCTION aidb_internal.forget_totals();

-- Plain columns of one table: an attempt to write through it is answered with "permission denied for view".
CREATE OR REPLACE VIEW aidb.policies AS
SELECT p.name, p.initial_state, p.description, p.created_at, p.updated_at, p.deleted_at, p.mode, pg_get_userbyid(p.owner)::text AS owner
FROM aidb_internal.policies p;
COMMENT ON VIEW aidb.policies IS
    'Temporal policies, retired ones included. Privileges: SELECT for aidb_users, aidb_governance and aidb_auditor; nobody may write.';
COMMENT ON COLUMN aidb.policies.initial_state IS 'Where every session begins.';
COMMENT ON COLUMN aidb.policies.deleted_at IS 'When it was retired; NULL: live.';
COMMENT ON COLUMN aidb.policies.mode IS 'enforce: what it does not permit is refused. log_only: it is recorded and let through.';
COMMENT ON COLUMN aidb.policies.owner IS 'With whose rights the conditions are evaluated.';
REVOKE ALL ON aidb.policies FROM PUBLIC;
GRANT SELECT ON aidb.policies TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE VIEW aidb.tool_transitions AS
SELECT t.policy, t.from_state, t.tool_name, t.to_state, t.condition
FROM aidb_internal.tool_transitions t;
COMMENT ON VIEW aidb.tool_transitions IS
    'What the policies permit. A call for which no row is here is denied. Privileges: SELECT for aidb_users, aidb_governance and aidb_auditor; nobody may write.';
COMMENT ON COLUMN aidb.tool_transitions.to_state IS 'NULL: the state stays what it is.';
COMMENT ON COLUMN aidb.tool_transitions.condition IS 'What has to be true besides; NULL: nothing.';
REVOKE ALL ON aidb.tool_transitions FROM PUBLIC;
GRANT SELECT ON aidb.tool_transitions TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE VIEW aidb.policy_sessions WITH (security_barrier) AS
SELECT s.id, s.policy, s.principal, s.state, s.created_at, s.updated_at
FROM aidb_internal.policy_sessions s
WHERE (s.caller = CURRENT_USER
       AND s.opened_for = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND s.created_at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'));
COMMENT ON VIEW aidb.policy_sessions IS
    'Where conversations stand: one row a conversation and policy. Rows of one''s own; aidb_auditor sees all. Privileges: SELECT for aidb_users and aidb_auditor; nobody may write.';
COMMENT ON COLUMN aidb.policy_sessions.id IS 'The conversation, or what aidb.start_policy_session returned.';
COMMENT ON COLUMN aidb.policy_sessions.principal IS 'The end user whose calls count together in aidb.principal_event_count.';
REVOKE ALL ON aidb.policy_sessions FROM PUBLIC;
GRANT SELECT ON aidb.policy_sessions TO aidb_users, aidb_auditor;

CREATE OR REPLACE VIEW aidb.session_events WITH (security_barrier) AS
SELECT e.id, e.session_id, e.policy, e.tool_name, e.params, e.from_state, e.to_state, e.called_at, e.would_deny, e.outcome
FROM aidb_internal.session_events e
JOIN aidb_internal.policy_sessions s ON s.id = e.session_id AND s.policy = e.policy
WHERE (s.caller = CURRENT_USER
       AND s.opened_for = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND s.created_at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'));
COMMENT ON VIEW aidb.session_events IS
    'The calls that a policy let pass, in the order id: one row a call and policy. Append-only: UPDATE, DELETE and TRUNCATE are refused for everybody who is not a superuser. Rows of one''s own sessions; aidb_auditor sees all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.session_events.params IS 'The arguments of the call.';
COMMENT ON COLUMN aidb.session_events.would_deny IS 'The refusal that it would have got, were the policy not log_only; NULL: it was permitted.';
COMMENT ON COLUMN aidb.session_events.outcome IS 'unknown: the effect is outside the database and nobody knows whether it happened.';
REVOKE ALL ON aidb.session_events FROM PUBLIC;
GRANT SELECT ON aidb.session_events TO aidb_users, aidb_auditor;
