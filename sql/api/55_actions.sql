-- Actions that wait for a person, and the person's answer. The functions are Go's (extension/internal/approval says what
-- may follow what); like everything that aidb_go_call runs, they refuse inside a tool call.

-- aidb.principal() is NULL outside a tool call only: nothing that an agent runs sees a row, whoever it runs as. Others than
-- the requester see an action that needs their approval.
CREATE OR REPLACE VIEW aidb.pending_actions WITH (security_barrier) AS
SELECT a.id AS action_id, t.token, a.root_conversation_id AS conversation_id, a.agent, a.steps, a.preview, a.created_at, a.expires_at
FROM aidb_internal.actions a
JOIN aidb_internal.action_tokens t ON t.action_id = a.id
WHERE a.status = 'pending'
  AND a.expires_at > clock_timestamp()
  AND aidb.principal() IS NULL
  AND ((a.caller = CURRENT_USER AND a.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND a.created_at >= (SELECT aidb.history_since()))
       OR (a.approvers <> '{}' AND a.caller <> CURRENT_USER AND a.session_user_name <> SESSION_USER
           AND NOT EXISTS (SELECT FROM unnest(a.approvers) u (role)
                           WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = u.role AND pg_has_role(CURRENT_USER, r.oid, 'MEMBER')))));
COMMENT ON VIEW aidb.pending_actions IS
    'Actions that wait for the reader''s yes: those that an agent proposed to them (same role and same aidb.principal), and those of others that need the approval of a role of theirs. Empty inside a tool call. Privileges: SELECT for aidb_users.';
COMMENT ON COLUMN aidb.pending_actions.token IS
    'What aidb.confirm_action wants: it belongs to the reader, not to an agent. Used once, gone after aidb.confirmation_ttl.';
COMMENT ON COLUMN aidb.pending_actions.conversation_id IS 'The conversation in which the agent was asked.';
COMMENT ON COLUMN aidb.pending_actions.agent IS 'The agent that proposed it.';
COMMENT ON COLUMN aidb.pending_actions.steps IS 'Array of {step, tool, args}, in the order in which they will run.';
COMMENT ON COLUMN aidb.pending_actions.preview IS
    'For each step what it would do: rows_affected and up to ten rows, found by running it and rolling it back; rows of its preview_statement; or only its arguments, where it reaches outside the database.';
REVOKE ALL ON aidb.pending_actions FROM PUBLIC;
GRANT SELECT ON aidb.pending_actions TO aidb_users;

CREATE OR REPLACE VIEW aidb.action_history WITH (security_barrier) AS
SELECT a.id AS action_id, a.root_conversation_id AS conversation_id, a.task_id, a.agent, a.caller AS requested_by, a.principal,
       CASE WHEN a.status = 'pending' AND a.expires_at <= clock_timestamp() THEN 'expired' ELSE a.status END AS status,
       a.steps, a.preview, a.outcome, a.created_at, a.decided_at, a.decided_by
FROM aidb_internal.actions a
WHERE (a.caller = CURRENT_USER AND a.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND a.created_at >= (SELECT aidb.history_since()))
   OR (a.decided_by = CURRENT_USER AND a.decided_at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'));
COMMENT ON VIEW aidb.action_history IS
    'Every action that was proposed to the reader or decided by them, with how it ended: pending, done, stopped (a step failed or was no longer permitted; those before it stand), rejected, expired, void (a tool or a policy had changed) or undone. aidb_auditor sees all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.action_history.outcome IS 'Array of {step, tool, status, result, error}, as aidb.confirm_action returned it.';
COMMENT ON COLUMN aidb.action_history.decided_by IS 'The role that confirmed, rejected or undid it; NULL: nobody yet, or it expired.';
REVOKE ALL ON aidb.action_history FROM PUBLIC;
GRANT SELECT ON aidb.action_history TO aidb_users, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.confirm_action(action_id uuid, token text)
RETURNS TABLE (step integer, tool text, status text, result jsonb, error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.confirm_action(uuid, text) IS
    'Says yes to an action of aidb.pending_actions and runs its steps, in the caller''s transaction. Before each step everything is checked again, for whoever confirms and as the catalog is now: the switch aidb.actions and the tool''s class, that the agent is enabled and has the tool, the purpose, membership of its role, privileges, the policy. One row a step: status SUCCESS; DENIED (no longer permitted, or the tool or a policy has changed since the preview); ERROR (it failed, or what it did is not what the preview showed: result has both, and it was rolled back); CANCELED (not run, because one before it stopped the plan). Steps that ran stand. Raises 42501 when the token is wrong, used or not the caller''s, 55000 when it has expired; nothing ran then. Privileges: aidb_users; the role and principal that the action was proposed to, or, when a tool has an approver, a member of that role who is somebody else.';
REVOKE ALL ON FUNCTION aidb.confirm_action(uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.confirm_action(uuid, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.reject_action(action_id uuid)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.reject_action(uuid) IS
    'Says no to an action of aidb.pending_actions. Its agent is told with the next prompt of the conversation. Raises 42501 when there is no such action or it is not the caller''s to decide, and 55000 when it is decided or has expired. Privileges: aidb_users; whoever could confirm it, and whoever it was proposed to.';
REVOKE ALL ON FUNCTION aidb.reject_action(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.reject_action(uuid) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.undo_action(action_id uuid)
RETURNS TABLE (step integer, tool text, status text, result jsonb, error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.undo_action(uuid) IS
    'Undoes what a confirmed action did: runs the undo_statement of the tool of each step that succeeded, the last first, with the arguments that the step had. Every check is the one of aidb.confirm_action, for whoever calls; for a temporal policy it is a call named undo:<tool>, which needs a transition. All of it or nothing: when one fails, those before it are taken back. Raises 42501 when there is no such action or it is not the caller''s, 55000 when nothing of it ran, it is undone already, a tool has no undo_statement or was changed since. Privileges: aidb_users; the role and principal that the action was proposed to, or the role that confirmed it.';
REVOKE ALL ON FUNCTION aidb.undo_action(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.undo_action(uuid) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.expire_actions()
RETURNS integer
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.expire_actions() IS
    'Records the expiry of up to 1000 actions whose time is over, and returns how many. They cannot be confirmed in any case; this writes it down, for those in whose conversation nobody says anything any more. With aidb in shared_preload_libraries a background process calls it. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.expire_actions() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.expire_actions() TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.sent_steps(action_id uuid)
RETURNS integer[]
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_sent_steps';
COMMENT ON FUNCTION aidb_internal.sent_steps(uuid) IS
    'The steps of an action that were sent by now, whatever the transaction''s snapshot is.';
REVOKE ALL ON FUNCTION aidb_internal.sent_steps(uuid) FROM PUBLIC;

-- What describe_actions says of each tool of an agent: for the role that its tools run as, which is the caller's own when
-- there is no purpose. Called for a running call, so the role is the one that it resolved.
CREATE OR REPLACE FUNCTION aidb_internal.describe_actions(agent_id uuid, role text, caller text, tool text, guards jsonb)
RETURNS TABLE (name text, tool_type text, description text, risk text, undoable boolean, reason text, params jsonb)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    a aidb_internal.agents;
    runs_as constant name := coalesce(role, caller);
    -- whom the role is refused to, it is refused to for every tool
    nobody constant boolean := NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = runs_as AND pg_has_role(caller, r.oid, 'MEMBER'));
    unclassified constant text := current_setting('aidb.unclassified_tools');
    names text[];
    policies text[];
    states text[];
BEGIN
    SELECT * INTO a FROM aidb_internal.agents g WHERE g.id = agent_id;
    names := ARRAY(SELECT u.name FROM unnest(a.tools) WITH ORDINALITY AS u (name, n)
                   WHERE u.name NOT IN ('describe_actions', 'act') AND (describe_actions.tool IS NULL OR u.name = describe_actions.tool)
                   ORDER BY u.n);
    SELECT array_agg(p.name), array_agg(coalesce(z.state, nullif(g.state, ''), p.initial_state)) INTO policies, states
    FROM jsonb_to_recordset(guards) g (conversation text, policy text, state text)
    JOIN aidb_internal.policies p ON p.name = g.policy AND p.mode = 'enforce'
    LEFT JOIN aidb_internal.policy_sessions z ON z.id = nullif(g.conversation, '')::uuid AND z.policy = g.policy;
    RETURN QUERY
        SELECT t.name, t.tool_type, t.description, k.class, s.undo IS NOT NULL,
               CASE
                   WHEN NOT a.enabled OR x.off THEN 'switched off'
                   WHEN nobody OR NOT x.allowed THEN 'not permitted to this person'
                   -- conditions are not looked at: they ask for the arguments
                   ELSE (SELECT 'not permitted from state ' || m.state
                         FROM unnest(policies, states) WITH ORDINALITY AS m (policy, state, n)
                         WHERE NOT EXISTS (SELECT FROM aidb_internal.tool_transitions r
                                           WHERE r.policy = m.policy AND r.from_state = m.state AND r.tool_name = t.name)
                         ORDER BY m.n LIMIT 1)
               END,
               t.params
        FROM aidb_internal.tools_allowed_as(names, runs_as, caller::name, CASE WHEN role IS NOT NULL THEN coalesce(a.purpose, '') END)
             WITH ORDINALITY AS x (name, allowed, why, missing, off, n)
        JOIN aidb.tools t ON t.name = x.name
        LEFT JOIN aidb_internal.sql_tools s ON s.name = x.name
        CROSS JOIN LATERAL (SELECT coalesce(t.risk, CASE unclassified WHEN 'allow' THEN 'safe' WHEN 'confirm' THEN 'confirm' ELSE 'forbidden' END)) k (class)
        ORDER BY x.n;
END
$$;
COMMENT ON FUNCTION aidb_internal.describe_actions(uuid, text, text, text, jsonb) IS
    'The tools of an agent as its model is told of them; reason is NULL for those that are permitted.';
REVOKE ALL ON FUNCTION aidb_internal.describe_actions(uuid, text, text, text, jsonb) FROM PUBLIC;
