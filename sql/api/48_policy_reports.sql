-- What there is to know of a policy before it bites: its faults, its picture, and what it would have said.

-- The tools that the agents under a policy may call, and delegates, which are tools by their name. The control tools need
-- no transition.
CREATE OR REPLACE FUNCTION aidb_internal.tools_under_policy(policy text)
RETURNS TABLE (agent text, tool_name text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.name, u.entry
    FROM aidb_internal.agents a
    LEFT JOIN aidb_internal.purpose_registry r ON r.name = a.purpose
    CROSS JOIN LATERAL unnest(a.tools || a.delegates) u (entry)
    WHERE (a.policy = $1 OR r.policy = $1) AND u.entry NOT IN ('sleep', 'describe_actions', 'act')
$$;
COMMENT ON FUNCTION aidb_internal.tools_under_policy(text) IS 'The tools of the agents that a policy guards.';
REVOKE ALL ON FUNCTION aidb_internal.tools_under_policy(text) FROM PUBLIC;

-- The policy, retired ones included.
CREATE OR REPLACE FUNCTION aidb_internal.any_policy(name text)
RETURNS aidb_internal.policies
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    p aidb_internal.policies;
BEGIN
    SELECT * INTO p FROM aidb_internal.policies x WHERE x.name = any_policy.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'policy % not found', aidb_internal.quoted(any_policy.name) USING ERRCODE = 'undefined_object';
    END IF;
    RETURN p;
END
$$;
COMMENT ON FUNCTION aidb_internal.any_policy(text) IS 'The policy of that name; raises when there is none.';
REVOKE ALL ON FUNCTION aidb_internal.any_policy(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_policy(name text)
RETURNS TABLE (severity text, finding text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    p aidb_internal.policies := aidb_internal.any_policy($1);
BEGIN
    IF p.deleted_at IS NOT NULL THEN
        RETURN QUERY SELECT 'error', format('the policy has been retired: %s agents and %s purposes that name it are refused',
            (SELECT count(*) FROM aidb_internal.agents a WHERE a.policy = p.name),
            (SELECT count(*) FROM aidb_internal.purpose_registry r WHERE r.policy = p.name AND r.deleted_at IS NULL));
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = p.owner::oid)
       AND EXISTS (SELECT FROM aidb_internal.tool_transitions t WHERE t.policy = p.name AND t.condition IS NOT NULL) THEN
        RETURN QUERY SELECT 'error', 'the policy''s owner does not exist any more: every call with a condition is denied';
    END IF;
    IF NOT EXISTS (SELECT FROM aidb_internal.tool_transitions t WHERE t.policy = p.name AND t.from_state = p.initial_state) THEN
        RETURN QUERY SELECT 'error', format('no transition leaves the initial state %s: every call is denied', aidb_internal.quoted(p.initial_state));
    END IF;
    RETURN QUERY
        WITH RECURSIVE t AS (
            SELECT x.from_state, x.tool_name, coalesce(x.to_state, x.from_state) AS to_state
            FROM aidb_internal.tool_transitions x WHERE x.policy = p.name
        ), reached (state) AS (
            SELECT p.initial_state
            UNION
            SELECT t.to_state FROM reached r JOIN t ON t.from_state = r.state
        ), states (state) AS (
            SELECT t.from_state FROM t UNION SELECT t.to_state FROM t
        )
        SELECT 'warning', format('state %s cannot be reached from %s', aidb_internal.quoted(s.state), aidb_internal.quoted(p.initial_state))
        FROM states s WHERE NOT EXISTS (SELECT FROM reached r WHERE r.state = s.state)
        UNION ALL
        SELECT 'info', format('state %s is a dead end: nothing is permitted from there', aidb_internal.quoted(s.state))
        FROM states s WHERE NOT EXISTS (SELECT FROM t WHERE t.from_state = s.state)
        UNION ALL
        SELECT 'warning', format('tool %s of agent %s is permitted in no state', aidb_internal.quoted(u.tool_name), aidb_internal.quoted(u.agent))
        FROM aidb_internal.tools_under_policy(p.name) u
        WHERE NOT EXISTS (SELECT FROM t JOIN reached r ON r.state = t.from_state WHERE t.tool_name = u.tool_name)
        UNION ALL
        SELECT DISTINCT 'warning', format('tool %s does not exist in aidb: right for a tool of an application only', aidb_internal.quoted(t.tool_name))
        FROM t WHERE NOT aidb_internal.is_tool(t.tool_name)
        ORDER BY 1, 2;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_policy(text) IS 'Behind aidb.check_policy.';
REVOKE ALL ON FUNCTION aidb_internal.check_policy(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.check_policy(name text)
RETURNS TABLE (severity text, finding text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.check_policy(text) IS
    'What is probably wrong with a policy: states that cannot be reached, dead ends, tools of its agents that no reachable state permits, tools that do not exist (any more), an owner that is gone. severity: error, warning or info. No row: nothing was found. Changes nothing. Raises 42704 when there is no such policy. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.check_policy(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.check_policy(text) TO aidb_users, aidb_governance, aidb_auditor;

-- A label in either language: quotes and what begins markup are written as entities.
CREATE OR REPLACE FUNCTION aidb_internal.diagram_label(label text, format text)
RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE $2
        WHEN 'dot' THEN replace(replace($1, '\', '\\'), '"', '\"')
        ELSE replace(replace(replace(replace(replace(replace(translate($1, '#;', E'\x01\x02'), '"', '#34;'), ':', '#58;'), '<', '#60;'), '>', '#62;'),
                             E'\x01', '#35;'), E'\x02', '#59;')
    END
$$;
COMMENT ON FUNCTION aidb_internal.diagram_label(text, text) IS 'A text as a label of a mermaid or dot diagram.';
REVOKE ALL ON FUNCTION aidb_internal.diagram_label(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.policy_diagram(name text, format text, session_id uuid)
RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    p aidb_internal.policies := aidb_internal.any_policy($1);
    here text;
    states text[];
    lines text[];
BEGIN
    IF format IS NULL OR format NOT IN ('mermaid', 'dot') THEN
        RAISE EXCEPTION 'diagram format % is not one of mermaid, dot', aidb_internal.quoted(format) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF $3 IS NOT NULL THEN
        SELECT s.state INTO here FROM aidb_internal.policy_sessions s
        WHERE s.id = $3 AND s.policy = p.name AND ((s.caller = aidb_internal.caller() AND s.created_at >= (SELECT aidb_internal.history_since())) OR aidb_internal.counts_all());
        IF NOT FOUND THEN
            RAISE EXCEPTION 'policy % has no session %', aidb_internal.quoted(p.name), aidb_internal.quoted($3::text) USING ERRCODE = 'undefined_object';
        END IF;
    END IF;
    SELECT array_agg(s.state ORDER BY s.state <> p.initial_state, s.state) INTO states
    FROM (SELECT p.initial_state UNION SELECT t.from_state FROM aidb_internal.tool_transitions t WHERE t.policy = p.name
          UNION SELECT t.to_state FROM aidb_internal.tool_transitions t WHERE t.policy = p.name AND t.to_state IS NOT NULL
          UNION SELECT here WHERE here IS NOT NULL) s (state);
    -- States are numbered: a name may be any text, an identifier of the diagram may not.
    SELECT array_agg(CASE format
        WHEN 'dot' THEN format('    s%s [label="%s"%s];', s.n, aidb_internal.diagram_label(s.state, format),
                               CASE WHEN s.state = here THEN ', style=filled, fillcolor=gold, penwidth=2' ELSE '' END)
        ELSE format('    state "%s" as s%s', aidb_internal.diagram_label(s.state, format), s.n) END ORDER BY s.n)
    INTO lines FROM unnest(states) WITH ORDINALITY s (state, n);
    lines := lines || CASE format WHEN 'dot' THEN ARRAY['    begin [shape=point];', '    begin -> s1;'] ELSE ARRAY['    [*] --> s1'] END;
    lines := lines || (SELECT array_agg(CASE format
            WHEN 'dot' THEN format('    s%s -> s%s [label="%s%s"];', f.n, d.n, aidb_internal.diagram_label(t.tool_name, format),
                                   CASE WHEN t.condition IS NULL THEN '' ELSE '\n' || aidb_internal.diagram_label('[' || t.condition || ']', format) END)
            ELSE format('    s%s --> s%s : %s%s', f.n, d.n, aidb_internal.diagram_label(t.tool_name, format),
                        CASE WHEN t.condition IS NULL THEN '' ELSE aidb_internal.diagram_label(regexp_replace(' [' || t.condition || ']', '\s+', ' ', 'g'), format) END)
            END ORDER BY f.n, t.tool_name)
        FROM aidb_internal.tool_transitions t
        JOIN unnest(states) WITH ORDINALITY f (state, n) ON f.state = t.from_state
        JOIN unnest(states) WITH ORDINALITY d (state, n) ON d.state = coalesce(t.to_state, t.from_state)
        WHERE t.policy = p.name);
    IF format = 'mermaid' AND here IS NOT NULL THEN
        lines := lines || ARRAY['    classDef current fill:gold,stroke:black,stroke-width:3px', format('    class s%s current', array_position(states, here))];
    END IF;
    RETURN CASE format
        WHEN 'dot' THEN format(E'digraph "%s" {\n    rankdir=LR;\n', aidb_internal.diagram_label(p.name, format)) || array_to_string(lines, E'\n') || E'\n}\n'
        ELSE E'stateDiagram-v2\n' || array_to_string(lines, E'\n') || E'\n'
    END;
END
$$;
COMMENT ON FUNCTION aidb_internal.policy_diagram(text, text, uuid) IS 'Behind aidb.policy_diagram.';
REVOKE ALL ON FUNCTION aidb_internal.policy_diagram(text, text, uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.policy_diagram(name text, format text DEFAULT 'mermaid', session_id uuid DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.policy_diagram(text, text, uuid) IS
    'The policy as a picture to paste into a page or a review: format mermaid or dot. With a session, its state is marked; only sessions of one''s own, governors and auditors any. Raises 42704 when there is no such policy or session and 22023 for another format. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.policy_diagram(text, text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.policy_diagram(text, text, uuid) TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb_internal.evaluate_condition(owner oid, condition_sql text, params jsonb, session_id uuid, principal text, event bigint, at timestamptz)
RETURNS text
LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'aidb_evaluate_condition';
COMMENT ON FUNCTION aidb_internal.evaluate_condition(oid, text, jsonb, uuid, text, bigint, timestamptz) IS
    'What a condition would be for a past event: NULL when it is true, else what it is. Evaluated as its owner, read-only; events from that one on are not counted.';
REVOKE ALL ON FUNCTION aidb_internal.evaluate_condition(oid, text, jsonb, uuid, text, bigint, timestamptz) FROM PUBLIC;

-- Each session is replayed from its first event; a call that would be denied would not have happened, so the state stays.
CREATE OR REPLACE FUNCTION aidb_internal.simulate_policy(name text, since timestamptz)
RETURNS TABLE (session_id uuid, called_at timestamptz, tool_name text, verdict text, reason text)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    p aidb_internal.policies := aidb_internal.any_policy($1);
    e aidb_internal.session_events;
    t aidb_internal.tool_transitions;
    last_session uuid;
    state text;
    unmet text;
BEGIN
    FOR e IN
        SELECT x.* FROM aidb_internal.session_events x
        WHERE x.policy = p.name AND x.session_id IN (
            SELECT y.session_id FROM aidb_internal.session_events y WHERE y.policy = p.name AND y.called_at >= coalesce($2, '-infinity'))
        ORDER BY x.session_id, x.id
    LOOP
        IF last_session IS DISTINCT FROM e.session_id THEN
            last_session := e.session_id;
            state := p.initial_state;
        END IF;
        unmet := NULL;
        SELECT * INTO t FROM aidb_internal.tool_transitions x
        WHERE x.policy = p.name AND x.from_state = state AND x.tool_name = e.tool_name;
        IF FOUND AND t.condition IS NOT NULL THEN
            unmet := aidb_internal.evaluate_condition(p.owner::oid, t.condition_sql, e.params, e.session_id, e.principal, e.id, e.called_at);
        END IF;
        session_id := e.session_id;
        called_at := e.called_at;
        tool_name := e.tool_name;
        IF t.policy IS NULL THEN
            verdict := 'deny';
            reason := format('DENY: %s not permitted from state %s', e.tool_name, state);
        ELSIF unmet IS NOT NULL THEN
            verdict := 'deny';
            reason := format('DENY: %s not permitted from state %s: condition (%s) %s', e.tool_name, state, t.condition, unmet);
        ELSE
            verdict := 'allow';
            reason := NULL;
            state := coalesce(t.to_state, state);
        END IF;
        IF e.called_at >= coalesce($2, '-infinity') THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.simulate_policy(text, timestamptz) IS 'Behind aidb.simulate_policy.';
REVOKE ALL ON FUNCTION aidb_internal.simulate_policy(text, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.simulate_policy(name text, since timestamptz)
RETURNS TABLE (session_id uuid, called_at timestamptz, tool_name text, verdict text, reason text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.simulate_policy(text, timestamptz) IS
    'Replays the events that the policy''s sessions have had since then against the policy as it is now, and says of each whether it would be let through: verdict allow or deny, with the reason. Nothing is run or changed. What a log_only policy let through is among them, what was denied is not: that never happened. Conditions are evaluated with the data as it is now, and count events up to the one in hand. Raises 42704 when there is no such policy. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.simulate_policy(text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.simulate_policy(text, timestamptz) TO aidb_governance;
