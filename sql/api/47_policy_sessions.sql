-- Sessions of temporal policies: the guard, and what conditions ask about what has happened.

CREATE OR REPLACE FUNCTION aidb_internal.start_policy_session(policy text, principal text, id uuid)
RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    p aidb_internal.policies;
BEGIN
    IF id IS NULL OR principal IS NULL OR octet_length(principal) > 1000 THEN
        RAISE EXCEPTION 'a policy session needs an id and a principal of at most 1000 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO p FROM aidb_internal.policies x WHERE x.name = policy;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'policy % not found', aidb_internal.quoted(policy) USING ERRCODE = 'undefined_object';
    ELSIF p.deleted_at IS NOT NULL THEN
        RAISE EXCEPTION 'policy % has been retired', aidb_internal.quoted(policy) USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF EXISTS (SELECT FROM aidb_internal.policy_sessions s WHERE s.id = start_policy_session.id AND (s.caller <> aidb_internal.caller() OR s.created_at < (SELECT aidb_internal.history_since()))) THEN
        RAISE EXCEPTION 'policy session % belongs to another caller', aidb_internal.quoted(id::text) USING ERRCODE = 'insufficient_privilege';
    END IF;
    INSERT INTO aidb_internal.policy_sessions (id, policy, principal, state, caller, opened_for)
    VALUES (id, policy, principal, p.initial_state, aidb_internal.caller(), aidb_internal.caller_principal());
    RETURN id;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'policy session % already exists in policy %', aidb_internal.quoted(id::text), aidb_internal.quoted(policy)
        USING ERRCODE = 'duplicate_object';
END
$$;
COMMENT ON FUNCTION aidb_internal.start_policy_session(text, text, uuid) IS 'Behind aidb.start_policy_session.';
REVOKE ALL ON FUNCTION aidb_internal.start_policy_session(text, text, uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.start_policy_session(policy text, principal text DEFAULT CURRENT_USER, id uuid DEFAULT gen_random_uuid())
RETURNS uuid
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.start_policy_session(text, text, uuid) IS
    'Begins a session of a policy in its initial state, for an application that guards tools of its own with aidb.authorize_tool_call, and returns its id. An id may have sessions of several policies: a call must be permitted by all of them. principal: the end user whose calls count together. An agent''s conversation has its sessions by itself. Raises 42704 when there is no such policy, 55000 when it is retired, 42710 when the session is there, 42501 when the id is another caller''s. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.start_policy_session(text, text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.start_policy_session(text, text, uuid) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.authorize_tool_call(session_id uuid, tool_name text, params jsonb DEFAULT '{}')
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_authorize_tool_call';
COMMENT ON FUNCTION aidb.authorize_tool_call(uuid, text, jsonb) IS
    'The guard. Locks the session, and when its policy permits the tool in its state (and the condition, if there is one, is true), logs the call, moves the state and returns the new one; with several policies their states in the order of their names, separated by commas. Otherwise it raises 42501, DENY: <tool> not permitted from state <state>, and nothing has changed. Call it in the transaction of the effect and before it: both commit or neither. The session''s caller and members of that role may use it. Raises 42704 for an unknown session. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.authorize_tool_call(uuid, text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.authorize_tool_call(uuid, text, jsonb) TO aidb_users;

-- What a call did that certainly never began is not to stand: its rows go, and the state goes back. The guard's locks are
-- held until the transaction ends, so nobody has seen them.
CREATE OR REPLACE FUNCTION aidb_internal.undo_events(events bigint[])
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    e aidb_internal.session_events;
BEGIN
    PERFORM FROM aidb_internal.policy_sessions s
    WHERE (s.id, s.policy) IN (SELECT x.session_id, x.policy FROM aidb_internal.session_events x WHERE x.id = ANY (events))
    ORDER BY s.id::text COLLATE "C", s.policy COLLATE "C" FOR UPDATE;
    FOR e IN SELECT * FROM aidb_internal.session_events x WHERE x.id = ANY (events) ORDER BY x.id DESC LOOP
        -- Where another call has gone on from there, the state is that one's.
        UPDATE aidb_internal.policy_sessions s SET state = e.from_state, updated_at = clock_timestamp()
        WHERE s.id = e.session_id AND s.policy = e.policy AND NOT EXISTS (
            SELECT FROM aidb_internal.session_events x WHERE x.session_id = e.session_id AND x.policy = e.policy AND x.id > e.id);
        DELETE FROM aidb_internal.session_events x WHERE x.id = e.id;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.undo_events(bigint[]) IS 'Takes back calls whose request certainly never left.';
REVOKE ALL ON FUNCTION aidb_internal.undo_events(bigint[]) FROM PUBLIC;

-- Whose events the caller may count: a governor, whose conditions need them, everybody's; others their own.
CREATE OR REPLACE FUNCTION aidb_internal.counts_all()
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT pg_has_role(aidb_internal.caller(), 'aidb_governance', 'MEMBER') OR pg_has_role(aidb_internal.caller(), 'aidb_auditor', 'MEMBER')
$$;
COMMENT ON FUNCTION aidb_internal.counts_all() IS 'Whether the caller may count the events of all sessions.';
REVOKE ALL ON FUNCTION aidb_internal.counts_all() FROM PUBLIC;

-- What conditions ask about what has happened: c_shim/events.c.
CREATE OR REPLACE FUNCTION aidb.event_count(session_id uuid, tool_name text, within interval DEFAULT NULL)
RETURNS bigint
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_event_count';
COMMENT ON FUNCTION aidb.event_count(uuid, text, interval) IS
    'How often the tool was let through in the session, in the last within; NULL: ever. In a condition the call in hand is not counted yet. Of sessions that are not one''s own only governors and auditors see a number other than 0. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.event_count(uuid, text, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.event_count(uuid, text, interval) TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.event_sum(session_id uuid, tool_name text, path text, within interval DEFAULT NULL)
RETURNS numeric
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_event_sum';
COMMENT ON FUNCTION aidb.event_sum(uuid, text, text, interval) IS
    'The sum of an argument over the calls of the tool that were let through in the session, in the last within; 0 without any. path: the argument''s name, names separated by dots for one inside it, or a JSON path that begins with $. Raises 22P02 when an argument is not a number. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.event_sum(uuid, text, text, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.event_sum(uuid, text, text, interval) TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.last_event(session_id uuid, tool_name text)
RETURNS jsonb
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_last_event';
COMMENT ON FUNCTION aidb.last_event(uuid, text) IS
    'The newest call of the tool that was let through in the session: id, tool_name, params, from_state, to_state, called_at; NULL when there is none. aidb.last_event(session_id, ''lookup_order'') -> ''params'' ->> ''id'' is what was looked up last. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.last_event(uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.last_event(uuid, text) TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.principal_event_count(principal text, tool_name text, within interval DEFAULT NULL)
RETURNS bigint
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_principal_event_count';
COMMENT ON FUNCTION aidb.principal_event_count(text, text, interval) IS
    'As aidb.event_count, over all sessions of a principal. A call whose condition uses it waits for other calls of that principal to end, so that a limit holds across conversations. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.principal_event_count(text, text, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.principal_event_count(text, text, interval) TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.principal_event_sum(principal text, tool_name text, path text, within interval DEFAULT NULL)
RETURNS numeric
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_principal_event_sum';
COMMENT ON FUNCTION aidb.principal_event_sum(text, text, text, interval) IS
    'As aidb.event_sum, over all sessions of a principal; see aidb.principal_event_count. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.principal_event_sum(text, text, text, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.principal_event_sum(text, text, text, interval) TO aidb_users, aidb_governance, aidb_auditor;
