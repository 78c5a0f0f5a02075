-- What makes the configuration of an agent acceptable. Each function returns what is wrong, as one line for the error
-- column, or NULL. They are apart from create_agent and update_agent because both ask the same questions.

-- is_blank: NULL, empty or white space.
CREATE OR REPLACE FUNCTION aidb_internal.is_blank(value text)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT coalesce($1 !~ '[^[:space:]]', true) $$;
COMMENT ON FUNCTION aidb_internal.is_blank(text) IS
    'Whether the text is NULL, empty or nothing but white space.';
REVOKE ALL ON FUNCTION aidb_internal.is_blank(text) FROM PUBLIC;

-- quoted: a name for an error text. Names are arguments, and an argument may be a megabyte long.
CREATE OR REPLACE FUNCTION aidb_internal.quoted(name text)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT '''' || CASE WHEN length($1) > 200 THEN left($1, 200) || '...' ELSE coalesce($1, '') END || '''' $$;
COMMENT ON FUNCTION aidb_internal.quoted(text) IS
    'A name between single quotes, cut to 200 characters.';
REVOKE ALL ON FUNCTION aidb_internal.quoted(text) FROM PUBLIC;

-- name_problem: the names of agents, models and purposes. what begins the message, as in "agent name".
CREATE OR REPLACE FUNCTION aidb_internal.name_problem(what text, name text)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN aidb_internal.is_blank($2) THEN 'Invalid parameters: ' || $1 || ' must not be empty'
        WHEN octet_length($2) > 200 THEN 'Invalid parameters: ' || $1 || ' must not be longer than 200 bytes'
        WHEN $2 ~ '[[:cntrl:]]' THEN 'Invalid parameters: ' || $1 || ' must not contain control characters'
    END
$$;
COMMENT ON FUNCTION aidb_internal.name_problem(text, text) IS
    'What is wrong with a new object''s name, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.name_problem(text, text) FROM PUBLIC;

-- name_list_problem: tools and delegates.
CREATE OR REPLACE FUNCTION aidb_internal.name_list_problem(what text, list text[])
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    twice text;
    most constant integer := CASE what WHEN 'tools' THEN 500 ELSE 100 END;
BEGIN
    IF list IS NULL OR cardinality(list) = 0 THEN
        RETURN NULL;
    ELSIF array_ndims(list) > 1 THEN
        RETURN format('Invalid parameters: %s must be a one-dimensional array', what);
    ELSIF cardinality(list) > most THEN
        RETURN format('Invalid parameters: %s must not have more than %s entries', what, most);
    ELSIF EXISTS (SELECT FROM unnest(list) u (entry) WHERE aidb_internal.is_blank(u.entry)) THEN
        RETURN format('Invalid parameters: %s must not contain null or empty names', what);
    END IF;
    SELECT u.entry INTO twice FROM unnest(list) u (entry) GROUP BY u.entry HAVING count(*) > 1 ORDER BY u.entry LIMIT 1;
    IF FOUND THEN
        RETURN format('Invalid parameters: %s contains %s twice', what, aidb_internal.quoted(twice));
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.name_list_problem(text, text[]) IS
    'What is wrong with a list of tools or delegates as a list, or NULL. Whether the names exist is another question.';
REVOKE ALL ON FUNCTION aidb_internal.name_list_problem(text, text[]) FROM PUBLIC;

-- output_type_problem: the two shapes that describe a structured answer, {"fields": [{"name", "type", "description"?}]}
-- as aidb.output_type() makes it, and a JSON Schema of an object.
CREATE OR REPLACE FUNCTION aidb_internal.output_type_problem(output_type jsonb)
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    field jsonb;
    seen text[] := '{}';
BEGIN
    IF output_type IS NULL THEN
        RETURN NULL;
    ELSIF jsonb_typeof(output_type) <> 'object' THEN
        RETURN 'Invalid parameters: output_type must be a JSON object';
    ELSIF NOT output_type ? 'fields' THEN
        IF output_type = '{}' THEN
            RETURN 'Invalid parameters: output_type must not be empty';
        ELSIF output_type ? 'type' AND output_type -> 'type' <> '"object"' THEN
            RETURN 'Invalid parameters: output_type must describe an object ("type": "object")';
        ELSIF NOT output_type ?| ARRAY['type', 'properties', 'required', '$schema', '$ref', '$defs', 'allOf', 'anyOf', 'oneOf'] THEN
            RETURN 'Invalid parameters: output_type must be made by aidb.output_type() or be a JSON Schema';
        ELSIF output_type ? 'properties' AND jsonb_typeof(output_type -> 'properties') <> 'object' THEN
            RETURN 'Invalid parameters: output_type "properties" must be a JSON object';
        END IF;
        RETURN NULL;
    ELSIF jsonb_typeof(output_type -> 'fields') <> 'array' OR output_type -> 'fields' = '[]' THEN
        RETURN 'Invalid parameters: output_type "fields" must be an array with at least one field';
    END IF;

    FOR field IN SELECT f.value FROM jsonb_array_elements(output_type -> 'fields') f LOOP
        IF jsonb_typeof(field) <> 'object'
           OR coalesce(jsonb_typeof(field -> 'name'), '') <> 'string' OR aidb_internal.is_blank(field ->> 'name')
           OR coalesce(jsonb_typeof(field -> 'type'), '') <> 'string' OR aidb_internal.is_blank(field ->> 'type') THEN
            RETURN 'Invalid parameters: each output_type field must have a "name" and a "type"';
        ELSIF field ->> 'name' = ANY (seen) THEN
            RETURN format('Invalid parameters: output_type has the field %s twice', aidb_internal.quoted(field ->> 'name'));
        END IF;
        seen := seen || (field ->> 'name');
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.output_type_problem(jsonb) IS
    'What is wrong with an output type, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.output_type_problem(jsonb) FROM PUBLIC;

-- purpose_problem: only the name is looked at. The role behind it may change at any time, and is judged at each tool call.
CREATE OR REPLACE FUNCTION aidb_internal.purpose_problem(purpose text)
RETURNS text
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    retired boolean;
BEGIN
    IF purpose_problem.purpose IS NULL THEN
        RETURN NULL;
    ELSIF aidb_internal.is_blank(purpose_problem.purpose) THEN
        RETURN 'Invalid parameters: agent purpose must not be empty';
    END IF;
    SELECT r.deleted_at IS NOT NULL INTO retired
    FROM aidb_internal.purpose_registry r WHERE r.name = purpose_problem.purpose;
    IF NOT FOUND THEN
        RETURN format('purpose %s is not registered', aidb_internal.quoted(purpose_problem.purpose));
    ELSIF retired THEN
        RETURN format('purpose %s has been retired', aidb_internal.quoted(purpose_problem.purpose));
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.purpose_problem(text) IS
    'Why an agent cannot be given this purpose, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.purpose_problem(text) FROM PUBLIC;

-- agent_problem: all that create_agent and update_agent check alike. NULL means "not given" throughout.
CREATE OR REPLACE FUNCTION aidb_internal.agent_problem(
    model text,
    tools text[],
    delegates text[],
    purpose text,
    output_type jsonb,
    input_token_budget integer,
    output_token_budget integer,
    max_iterations integer,
    timeout integer,
    budget_strategy text
)
RETURNS text
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_variable
DECLARE
    problem text;
    missing text;
BEGIN
    IF model IS NOT NULL AND aidb_internal.is_blank(model) THEN
        RETURN 'Invalid parameters: agent model must not be empty';
    END IF;

    problem := coalesce(
        aidb_internal.name_list_problem('tools', tools),
        aidb_internal.name_list_problem('delegates', delegates));
    IF problem IS NOT NULL THEN
        RETURN problem;
    END IF;

    SELECT u.entry INTO missing
    FROM unnest(tools) WITH ORDINALITY u (entry, position)
    WHERE NOT EXISTS (SELECT FROM aidb.tools t WHERE t.name = u.entry)
    ORDER BY u.position LIMIT 1;
    IF FOUND THEN
        RETURN format('tool %s not found in aidb.tools', aidb_internal.quoted(missing));
    END IF;

    SELECT u.entry INTO missing
    FROM unnest(delegates) WITH ORDINALITY u (entry, position)
    WHERE NOT EXISTS (SELECT FROM aidb_internal.agents a WHERE a.name = u.entry)
    ORDER BY u.position LIMIT 1;
    IF FOUND THEN
        RETURN format('delegate %s is not a registered agent', aidb_internal.quoted(missing));
    END IF;

    problem := coalesce(
        aidb_internal.purpose_problem(purpose),
        aidb_internal.output_type_problem(output_type));
    IF problem IS NOT NULL THEN
        RETURN problem;
    END IF;

    IF input_token_budget <= 0 THEN
        RETURN 'Invalid parameters: input_token_budget must be greater than zero';
    ELSIF output_token_budget <= 0 THEN
        RETURN 'Invalid parameters: output_token_budget must be greater than zero';
    ELSIF max_iterations <= 0 THEN
        RETURN 'Invalid parameters: max_iterations must be greater than zero';
    ELSIF timeout <= 0 THEN
        RETURN 'Invalid parameters: timeout must be greater than zero';
    END IF;

    IF NOT EXISTS (SELECT FROM unnest(enum_range(NULL::aidb.budget_strategy)) s (label)
                   WHERE budget_strategy IS NULL OR s.label::text = budget_strategy) THEN
        RETURN format('Invalid parameters: budget_strategy %s is not one of %s', aidb_internal.quoted(budget_strategy),
                      array_to_string(enum_range(NULL::aidb.budget_strategy), ', '));
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.agent_problem(text, text[], text[], text, jsonb, integer, integer, integer, integer, text) IS
    'What is wrong with the given settings of an agent, or NULL. A setting that is NULL is not looked at.';
REVOKE ALL ON FUNCTION aidb_internal.agent_problem(text, text[], text[], text, jsonb, integer, integer, integer, integer, text) FROM PUBLIC;

-- limits_problem: the limits beside those of agent_problem. 9,000,000 is what an amount fits into on the Go side.
CREATE OR REPLACE FUNCTION aidb_internal.limits_problem(
    cost_budget numeric,
    tree_token_budget integer,
    tree_cost_budget numeric,
    compaction jsonb
)
RETURNS text
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_variable
DECLARE
    field record;
BEGIN
    IF NOT cost_budget > 0 OR cost_budget >= 9000000 THEN
        RETURN 'Invalid parameters: cost_budget must be greater than zero and less than 9000000';
    ELSIF tree_token_budget <= 0 THEN
        RETURN 'Invalid parameters: tree_token_budget must be greater than zero';
    ELSIF NOT tree_cost_budget > 0 OR tree_cost_budget >= 9000000 THEN
        RETURN 'Invalid parameters: tree_cost_budget must be greater than zero and less than 9000000';
    ELSIF compaction IS NULL THEN
        RETURN NULL;
    ELSIF jsonb_typeof(compaction) <> 'object' THEN
        RETURN 'Invalid parameters: compaction must be a JSON object';
    END IF;
    FOR field IN SELECT e.key, e.value, jsonb_typeof(e.value) AS type FROM jsonb_each(compaction) e ORDER BY e.key COLLATE "C" LOOP
        CASE field.key
            WHEN 'threshold' THEN
                IF field.type <> 'number' OR (field.value #>> '{}')::numeric NOT BETWEEN 0.1 AND 1 THEN
                    RETURN 'Invalid parameters: compaction "threshold" must be a number from 0.1 to 1';
                END IF;
            WHEN 'keep_turns' THEN
                IF field.type <> 'number' OR (field.value #>> '{}')::numeric NOT BETWEEN 1 AND 1000
                   OR (field.value #>> '{}')::numeric % 1 <> 0 THEN
                    RETURN 'Invalid parameters: compaction "keep_turns" must be a whole number from 1 to 1000';
                END IF;
            WHEN 'pin' THEN
                IF field.type <> 'array' OR jsonb_array_length(field.value) > 100
                   OR EXISTS (SELECT FROM jsonb_array_elements(field.value) p WHERE jsonb_typeof(p) <> 'string') THEN
                    RETURN 'Invalid parameters: compaction "pin" must be an array of at most 100 names of tools';
                END IF;
            WHEN 'model' THEN
                IF field.type <> 'string' OR aidb_internal.is_blank(field.value #>> '{}') THEN
                    RETURN 'Invalid parameters: compaction "model" must be the name of a model';
                END IF;
            ELSE
                RETURN format('Invalid parameters: compaction does not have the key %s', aidb_internal.quoted(field.key));
        END CASE;
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.limits_problem(numeric, integer, numeric, jsonb) IS
    'What is wrong with an agent''s limits of cost, of a tree of runs, and of its conversation, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.limits_problem(numeric, integer, numeric, jsonb) FROM PUBLIC;

-- A delegate is offered to the model as a tool of that name, so the two must be told apart; sleep is always offered.
CREATE OR REPLACE FUNCTION aidb_internal.delegate_problem(tools text[], delegates text[])
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT format('delegate %s has the name of one of the agent''s tools', aidb_internal.quoted(d.entry))
    FROM unnest($2) WITH ORDINALITY d (entry, position)
    WHERE d.entry = ANY ($1) OR d.entry IN ('sleep', 'describe_actions', 'act')
    ORDER BY d.position LIMIT 1
$$;
COMMENT ON FUNCTION aidb_internal.delegate_problem(text[], text[]) IS
    'Names a delegate that collides with a tool of the same agent, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.delegate_problem(text[], text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.exposure_problem(tool_exposure text)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT format('Invalid parameters: tool_exposure %s is not one of direct, catalog', aidb_internal.quoted($1))
    WHERE $1 NOT IN ('direct', 'catalog')
$$;
COMMENT ON FUNCTION aidb_internal.exposure_problem(text) IS
    'What is wrong with tool_exposure, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.exposure_problem(text) FROM PUBLIC;

-- Delegation in a circle is allowed, because the depth cap ends it, but it is seldom meant.
CREATE OR REPLACE FUNCTION aidb_internal.warn_about_cycle(agent text)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    circle text[];
BEGIN
    WITH RECURSIVE walk (name, path) AS (
        SELECT d.entry, ARRAY[warn_about_cycle.agent, d.entry]
        FROM aidb_internal.agents a, unnest(a.delegates) d (entry)
        WHERE a.name = warn_about_cycle.agent
      UNION ALL
        SELECT d.entry, w.path || d.entry
        FROM walk w
        JOIN aidb_internal.agents a ON a.name = w.name, unnest(a.delegates) d (entry)
        WHERE w.name <> warn_about_cycle.agent
          AND cardinality(w.path) <= 11
          AND (d.entry = warn_about_cycle.agent OR d.entry <> ALL (w.path))
    )
    SELECT w.path INTO circle
    FROM (SELECT * FROM walk LIMIT 10000) w
    WHERE w.name = warn_about_cycle.agent
    ORDER BY cardinality(w.path) LIMIT 1;
    IF FOUND THEN
        RAISE WARNING 'delegation goes round in a circle: %', array_to_string(circle, ' -> ');
        -- Apart, for those who read notices only: the circle is accepted, and this is what becomes of it.
        RAISE NOTICE 'agent % can reach itself: a chain of delegations ends with an error after 10 levels', aidb_internal.quoted(agent);
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.warn_about_cycle(text) IS
    'Warns, showing the shortest circle, when an agent can reach itself through delegates.';
REVOKE ALL ON FUNCTION aidb_internal.warn_about_cycle(text) FROM PUBLIC;

-- Who may change something that has an owner. A superuser is a member of every role.
CREATE OR REPLACE FUNCTION aidb_internal.caller_owns(owner regrole)
RETURNS boolean
LANGUAGE sql STABLE
AS $$ SELECT pg_has_role(aidb_internal.caller(), $1, 'MEMBER') $$;
COMMENT ON FUNCTION aidb_internal.caller_owns(regrole) IS
    'Whether the caller is the owner, a member of the owner, or a superuser.';
REVOKE ALL ON FUNCTION aidb_internal.caller_owns(regrole) FROM PUBLIC;

