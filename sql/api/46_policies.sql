-- Writing temporal policies. These functions raise. Only aidb_governance may call them, and never from inside a tool call.

CREATE OR REPLACE FUNCTION aidb.transition(from_state text, tool_name text, to_state text, condition text DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object('from_state', $1, 'tool_name', $2, 'to_state', $3) ||
           CASE WHEN $4 IS NULL THEN '{}' ELSE jsonb_build_object('condition', $4) END
$$;
COMMENT ON FUNCTION aidb.transition(text, text, text, text) IS
    'A transition for aidb.create_policy: in from_state the tool may be called, and the state is to_state afterwards; NULL: it stays. condition: a boolean SQL expression that must be true besides, over params jsonb (the arguments of the call), session_id uuid, principal text and any table that the policy''s owner may read. Privileges: aidb_users, aidb_governance.';
REVOKE ALL ON FUNCTION aidb.transition(text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.transition(text, text, text, text) TO aidb_users, aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.plan_condition(condition text, owner oid)
RETURNS text
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_plan_condition';
COMMENT ON FUNCTION aidb_internal.plan_condition(text, oid) IS
    'The condition with every name qualified, after it was planned as its owner. Raises when it cannot be a condition.';
REVOKE ALL ON FUNCTION aidb_internal.plan_condition(text, oid) FROM PUBLIC;

-- The policy, locked and live.
CREATE OR REPLACE FUNCTION aidb_internal.live_policy(name text)
RETURNS aidb_internal.policies
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    p aidb_internal.policies;
BEGIN
    SELECT * INTO p FROM aidb_internal.policies x WHERE x.name = live_policy.name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'policy % not found', aidb_internal.quoted(live_policy.name) USING ERRCODE = 'undefined_object';
    ELSIF p.deleted_at IS NOT NULL THEN
        RAISE EXCEPTION 'policy % has been retired', aidb_internal.quoted(live_policy.name)
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'aidb.create_policy revives it.';
    END IF;
    RETURN p;
END
$$;
COMMENT ON FUNCTION aidb_internal.live_policy(text) IS 'The policy of that name, locked; raises when there is none or it is retired.';
REVOKE ALL ON FUNCTION aidb_internal.live_policy(text) FROM PUBLIC;

-- Why a policy cannot be named by an agent or a purpose, or NULL. NULL and '' name none.
CREATE OR REPLACE FUNCTION aidb_internal.policy_problem(policy text)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN coalesce($1, '') = '' THEN NULL
        WHEN p.name IS NULL THEN 'policy ' || aidb_internal.quoted($1) || ' not found'
        WHEN p.deleted_at IS NOT NULL THEN 'policy ' || aidb_internal.quoted($1) || ' has been retired'
    END
    FROM (SELECT) one LEFT JOIN aidb_internal.policies p ON p.name = $1
$$;
COMMENT ON FUNCTION aidb_internal.policy_problem(text) IS 'Why an agent or a purpose cannot be given this policy, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.policy_problem(text) FROM PUBLIC;

-- A delegate is a tool by its name.
CREATE OR REPLACE FUNCTION aidb_internal.is_tool(tool_name text)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM aidb.tools t WHERE t.name = $1) OR EXISTS (SELECT FROM aidb_internal.agents a WHERE a.name = $1)
        -- what aidb.undo_action asks for
        OR ($1 LIKE 'undo:%' AND EXISTS (SELECT FROM aidb_internal.sql_tools s WHERE s.name = substr($1, 6) AND s.undo IS NOT NULL))
$$;
COMMENT ON FUNCTION aidb_internal.is_tool(text) IS 'Whether aidb has a tool or an agent of that name.';
REVOKE ALL ON FUNCTION aidb_internal.is_tool(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_policy_mode(mode text)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF mode NOT IN ('enforce', 'log_only') THEN
        RAISE EXCEPTION 'policy mode % is not one of enforce, log_only', aidb_internal.quoted(mode) USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_policy_mode(text) IS 'Raises when it is no mode of a policy.';
REVOKE ALL ON FUNCTION aidb_internal.check_policy_mode(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.insert_transition(p aidb_internal.policies, from_state text, tool_name text, to_state text, condition text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    problem text := coalesce(
        aidb_internal.name_problem('state', from_state),
        aidb_internal.name_problem('tool name', tool_name),
        CASE WHEN to_state IS NOT NULL THEN aidb_internal.name_problem('state', to_state) END,
        CASE WHEN octet_length(condition) > 10000 THEN 'Invalid parameters: a condition must not be longer than 10000 bytes' END,
        CASE WHEN condition !~ '[^[:space:]]' THEN 'Invalid parameters: a condition must not be empty' END);
    planned text;
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF condition IS NOT NULL THEN
        -- It will be evaluated as the owner: whoever is not one of its members must not choose what that is.
        IF NOT pg_has_role(aidb_internal.caller(), p.owner::oid, 'MEMBER') THEN
            RAISE EXCEPTION 'policy % is owned by role %; only its owner may give it conditions', aidb_internal.quoted(p.name),
                aidb_internal.quoted(pg_get_userbyid(p.owner)::text) USING ERRCODE = 'insufficient_privilege';
        END IF;
        planned := aidb_internal.plan_condition(condition, p.owner::oid);
    END IF;
    INSERT INTO aidb_internal.tool_transitions (policy, from_state, tool_name, to_state, condition, condition_sql, counts_principal)
    VALUES (p.name, from_state, tool_name, to_state, condition, planned, coalesce(planned LIKE '%aidb.principal\_event\_%', false));
    IF NOT aidb_internal.is_tool(tool_name) THEN
        RAISE NOTICE 'tool % is not one that aidb knows', aidb_internal.quoted(tool_name)
            USING HINT = 'That is right for tools of an application, which it guards with aidb.authorize_tool_call.';
    END IF;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'policy % already has a transition from state % with tool %', aidb_internal.quoted(p.name),
        aidb_internal.quoted(from_state), aidb_internal.quoted(tool_name) USING ERRCODE = 'duplicate_object';
END
$$;
COMMENT ON FUNCTION aidb_internal.insert_transition(aidb_internal.policies, text, text, text, text) IS 'Checks and adds one transition.';
REVOKE ALL ON FUNCTION aidb_internal.insert_transition(aidb_internal.policies, text, text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.create_policy(name text, transitions jsonb[], initial_state text, description text, mode text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    p aidb_internal.policies;
    t jsonb;
    k text;
    problem text := coalesce(
        aidb_internal.name_problem('policy name', name),
        aidb_internal.name_problem('state', initial_state));
BEGIN
    IF problem IS NULL AND cardinality(transitions) > 10000 THEN
        problem := 'Invalid parameters: a policy must not have more than 10000 transitions';
    ELSIF problem IS NULL AND mode IS NULL THEN
        problem := 'Invalid parameters: policy mode must not be null';
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM aidb_internal.check_policy_mode(mode);
    -- A retired policy is revived; one that is live makes the statement touch no row.
    INSERT INTO aidb_internal.policies AS x (name, initial_state, description, mode, owner)
    VALUES (name, initial_state, description, mode, aidb_internal.caller_oid())
    ON CONFLICT ON CONSTRAINT policies_pkey DO UPDATE SET
        initial_state = excluded.initial_state,
        description = coalesce(excluded.description, x.description),
        mode = excluded.mode,
        owner = excluded.owner,
        updated_at = clock_timestamp(),
        deleted_at = NULL
    WHERE x.deleted_at IS NOT NULL
    RETURNING x.* INTO p;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'policy % already exists', aidb_internal.quoted(name) USING ERRCODE = 'duplicate_object';
    END IF;
    DELETE FROM aidb_internal.tool_transitions x WHERE x.policy = p.name;
    FOREACH t IN ARRAY coalesce(transitions, '{}') LOOP
        IF t IS NULL OR jsonb_typeof(t) <> 'object' OR NOT t ?& ARRAY['from_state', 'tool_name', 'to_state'] THEN
            RAISE EXCEPTION 'each transition must be made by aidb.transition()' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        FOR k IN SELECT * FROM jsonb_object_keys(t) LOOP
            IF k NOT IN ('from_state', 'tool_name', 'to_state', 'condition') THEN
                RAISE EXCEPTION 'a transition does not have the key %', aidb_internal.quoted(k) USING ERRCODE = 'invalid_parameter_value';
            END IF;
        END LOOP;
        PERFORM aidb_internal.insert_transition(p, t ->> 'from_state', t ->> 'tool_name', t ->> 'to_state', t ->> 'condition');
    END LOOP;
    IF EXISTS (SELECT FROM aidb_internal.tool_transitions x WHERE x.policy = p.name AND x.condition IS NOT NULL)
       AND (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = p.owner) THEN
        RAISE WARNING 'conditions of policy % run with the rights of superuser %', aidb_internal.quoted(p.name), aidb_internal.quoted(pg_get_userbyid(p.owner)::text)
            USING HINT = 'Create it as a member of aidb_governance that may read no more than the conditions need.';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.create_policy(text, jsonb[], text, text, text) IS 'Behind aidb.create_policy.';
REVOKE ALL ON FUNCTION aidb_internal.create_policy(text, jsonb[], text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.create_policy(
    name text, transitions jsonb[], initial_state text DEFAULT 'start', description text DEFAULT NULL, mode text DEFAULT 'enforce')
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.create_policy(text, jsonb[], text, text, text) IS
    'Registers a temporal policy, owned by the caller: a state machine over the names of tools. transitions: made by aidb.transition; a call for which there is none is denied. It is attached with create_agent(policy => ...), create_purpose(policy => ...) or aidb.start_policy_session. mode: enforce, or log_only, which lets everything through and records what would have been denied. Conditions are planned now and evaluated later with the caller''s rights, read-only. A retired policy of that name is revived with the new transitions; sessions keep their state. A NOTICE names tools that aidb does not know. Raises 22023 when a name is blank, 42710 when a live policy has the name or two transitions have the same state and tool, and what is wrong with a condition. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.create_policy(text, jsonb[], text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.create_policy(text, jsonb[], text, text, text) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.add_transition(policy text, from_state text, tool_name text, to_state text, condition text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM aidb_internal.insert_transition(aidb_internal.live_policy($1), $2, $3, $4, $5);
    UPDATE aidb_internal.policies p SET updated_at = clock_timestamp() WHERE p.name = $1;
END
$$;
COMMENT ON FUNCTION aidb_internal.add_transition(text, text, text, text, text) IS 'Behind aidb.add_transition.';
REVOKE ALL ON FUNCTION aidb_internal.add_transition(text, text, text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.add_transition(policy text, from_state text, tool_name text, to_state text, condition text DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.add_transition(text, text, text, text, text) IS
    'Adds a transition to a live policy; the arguments are those of aidb.transition. It takes effect with the next tool call, in running conversations too. Only members of the policy''s owner may add one with a condition, which is evaluated with that role''s rights. Raises 42710 when the policy has a transition for that state and tool, 42704 when there is no such policy and 55000 when it is retired. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.add_transition(text, text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.add_transition(text, text, text, text, text) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.remove_transition(policy text, from_state text, tool_name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    p aidb_internal.policies := aidb_internal.live_policy($1);
BEGIN
    DELETE FROM aidb_internal.tool_transitions t WHERE t.policy = $1 AND t.from_state = $2 AND t.tool_name = $3;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'policy % has no transition from state % with tool %', aidb_internal.quoted($1), aidb_internal.quoted($2),
            aidb_internal.quoted($3) USING ERRCODE = 'undefined_object';
    END IF;
    UPDATE aidb_internal.policies x SET updated_at = clock_timestamp() WHERE x.name = p.name;
END
$$;
COMMENT ON FUNCTION aidb_internal.remove_transition(text, text, text) IS 'Behind aidb.remove_transition.';
REVOKE ALL ON FUNCTION aidb_internal.remove_transition(text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.remove_transition(policy text, from_state text, tool_name text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.remove_transition(text, text, text) IS
    'Removes a transition of a live policy: the call is denied from the next one on, in running conversations too. Raises 42704 when there is no such policy or transition and 55000 when the policy is retired. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.remove_transition(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.remove_transition(text, text, text) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.update_policy(name text, mode text, description text, initial_state text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    p aidb_internal.policies;
    problem text := CASE WHEN $4 IS NOT NULL THEN aidb_internal.name_problem('state', $4) END;
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM aidb_internal.check_policy_mode($2);
    p := aidb_internal.live_policy($1);
    UPDATE aidb_internal.policies x SET
        mode = coalesce($2, x.mode), description = coalesce($3, x.description), initial_state = coalesce($4, x.initial_state),
        updated_at = clock_timestamp()
    WHERE x.name = p.name;
END
$$;
COMMENT ON FUNCTION aidb_internal.update_policy(text, text, text, text) IS 'Behind aidb.update_policy.';
REVOKE ALL ON FUNCTION aidb_internal.update_policy(text, text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.update_policy(name text, mode text DEFAULT NULL, description text DEFAULT NULL, initial_state text DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.update_policy(text, text, text, text) IS
    'Changes a live policy; NULL leaves a field as it is. mode: enforce or log_only, from the next tool call on. initial_state: of sessions that begin later. Raises 42704 when there is no such policy, 55000 when it is retired and 22023 when a value cannot be. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.update_policy(text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.update_policy(text, text, text, text) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.delete_policy(name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    holders text;
BEGIN
    PERFORM aidb_internal.live_policy($1);
    UPDATE aidb_internal.policies p SET deleted_at = clock_timestamp(), updated_at = clock_timestamp() WHERE p.name = $1;
    SELECT string_agg(h.who, ', ' ORDER BY h.who) INTO holders
    FROM (SELECT 'agent ' || aidb_internal.quoted(a.name) FROM aidb_internal.agents a WHERE a.policy = $1
          UNION ALL
          SELECT 'purpose ' || aidb_internal.quoted(r.name) FROM aidb_internal.purpose_registry r
          WHERE r.policy = $1 AND r.deleted_at IS NULL) h (who);
    IF holders IS NOT NULL THEN
        RAISE NOTICE 'refused from now on, because they name it: %', left(holders, 1000);
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.delete_policy(text) IS 'Behind aidb.delete_policy.';
REVOKE ALL ON FUNCTION aidb_internal.delete_policy(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.delete_policy(name text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.delete_policy(text) IS
    'Retires a policy. Agents and purposes that name it, and its sessions, are refused from their next call on; they never run unguarded. A NOTICE names them. Sessions and events stay. aidb.create_policy revives it. Raises 42704 when there is no such policy and 55000 when it is retired already. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.delete_policy(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.delete_policy(text) TO aidb_governance;
