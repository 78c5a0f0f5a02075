-- Creating, changing and deleting agents. Each function comes twice: the one in aidb_internal does the work with the
-- owner's rights, the one in aidb is its public face (see api/10_identity.sql).
--
-- What is wrong with a request is a row, never an exception, so that a script of many calls is not aborted half way.
-- Success is no row at all.

CREATE OR REPLACE FUNCTION aidb_internal.create_agent(
    name text,
    instructions text,
    model text,
    tools text[],
    delegates text[],
    purpose text,
    output_type jsonb,
    input_token_budget integer,
    output_token_budget integer,
    max_iterations integer,
    timeout integer,
    budget_strategy text,
    preset text,
    cost_budget numeric,
    tree_token_budget integer,
    tree_cost_budget numeric,
    compaction jsonb,
    policy text,
    tool_exposure text,
    confirm_replies boolean
)
RETURNS TABLE (error text)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
BEGIN
    error := aidb_internal.name_problem('agent name', name);
    IF error IS NULL AND EXISTS (SELECT FROM aidb_internal.agents a WHERE a.name = create_agent.name) THEN
        error := format('agent %s already exists', aidb_internal.quoted(name));
    ELSIF error IS NULL AND instructions IS NULL THEN
        error := 'Invalid parameters: agent instructions must not be null';
    ELSIF error IS NULL AND model IS NULL THEN
        error := 'Invalid parameters: agent model must not be empty';
    END IF;
    error := coalesce(error,
        aidb_internal.agent_problem(model, tools, delegates, purpose, output_type, input_token_budget,
                                    output_token_budget, max_iterations, timeout, budget_strategy),
        aidb_internal.limits_problem(cost_budget, tree_token_budget, tree_cost_budget, compaction),
        aidb_internal.delegate_problem(tools, delegates),
        aidb_internal.policy_problem(policy),
        aidb_internal.exposure_problem(tool_exposure));

    IF error IS NULL THEN
        BEGIN
            INSERT INTO aidb_internal.agents (
                name, instructions, model, purpose, delegates, tools, output_type, input_token_budget,
                output_token_budget, max_iterations, timeout_seconds, budget_strategy, preset, owner, cost_budget,
                tree_token_budget, tree_cost_budget, compaction, policy, tool_exposure, confirm_replies)
            VALUES (
                name, instructions, model, purpose,
                ARRAY(SELECT unnest(delegates)), ARRAY(SELECT unnest(tools)), output_type, input_token_budget,
                output_token_budget, max_iterations, timeout,
                coalesce(budget_strategy, 'attempt_complete')::aidb.budget_strategy, preset, aidb_internal.caller_oid(),
                cost_budget, tree_token_budget, tree_cost_budget, compaction, nullif(policy, ''),
                coalesce(tool_exposure, 'direct'), coalesce(confirm_replies, false));
        EXCEPTION
            -- Somebody else created it after the check above.
            WHEN unique_violation THEN
                error := format('agent %s already exists', aidb_internal.quoted(name));
        END;
    END IF;

    IF error IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM aidb_internal.models m WHERE m.name = create_agent.model) THEN
        RAISE NOTICE 'model % is not registered yet', aidb_internal.quoted(model);
    END IF;
    PERFORM aidb_internal.warn_about_cycle(name);
END
$$;
COMMENT ON FUNCTION aidb_internal.create_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, numeric, integer, numeric, jsonb, text, text, boolean) IS
    'Behind aidb.create_agent.';
REVOKE ALL ON FUNCTION aidb_internal.create_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, numeric, integer, numeric, jsonb, text, text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.create_agent(
    name text,
    instructions text,
    model text,
    tools text[] DEFAULT NULL,
    delegates text[] DEFAULT NULL,
    purpose text DEFAULT NULL,
    output_type jsonb DEFAULT NULL,
    input_token_budget integer DEFAULT NULL,
    output_token_budget integer DEFAULT NULL,
    max_iterations integer DEFAULT NULL,
    timeout integer DEFAULT NULL,
    budget_strategy text DEFAULT 'attempt_complete',
    preset text DEFAULT NULL,
    cost_budget numeric DEFAULT NULL,
    tree_token_budget integer DEFAULT NULL,
    tree_cost_budget numeric DEFAULT NULL,
    compaction jsonb DEFAULT NULL,
    policy text DEFAULT NULL,
    tool_exposure text DEFAULT 'direct',
    confirm_replies boolean DEFAULT false
)
RETURNS TABLE (error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.create_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, numeric, integer, numeric, jsonb, text, text, boolean) IS
    'Registers an agent, owned by the caller. Returns no row on success and one row with error set when something is wrong with the request; it does not raise. tools: names from aidb.tools (sleep is always offered). delegates: registered agents that are offered to the model as tools, each under its name and described by its instructions, with the arguments prompt and conversation_id; a call of one runs it within the call and gives {"answer", "conversation_id"}. purpose: whose role tool calls run as; without one they run as whoever calls the agent. model: a registered model, or one that will be when the agent is called. output_type: made by aidb.output_type(), or a JSON Schema (draft 2020-12 or 7) of an object; answers are then JSON that is valid against it. input_token_budget, output_token_budget, max_iterations, timeout (seconds): limits of one call, greater than zero. budget_strategy: ignore, error, summarize or attempt_complete. preset: stored only. tool_exposure: direct gives the model each tool as a function; catalog gives it describe_actions, act and the tools that only read. confirm_replies: the next prompt of a conversation in which an action waits is read as the answer to it (see aidb.confirmation_words). cost_budget: what the model calls of one call may cost, in the currency of the price in the model''s config, which must have one. tree_token_budget, tree_cost_budget: the same for a call together with all that is delegated in it; a delegate that reaches it fails, and the agent goes on by its own budget_strategy. compaction: how a conversation that comes near the model''s context size (context_size in the model''s config) or that the provider refuses as too long is made shorter by a summary: {"threshold": the part of the context size above which, 0.8, "keep_turns": how many of the newest turns stay, 2, "pin": tools whose results stay, "model": the model that writes the summary, the agent''s own}. policy: a temporal policy that every tool call of the agent must be permitted by. Nothing is executed. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.create_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, numeric, integer, numeric, jsonb, text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.create_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, numeric, integer, numeric, jsonb, text, text, boolean) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.update_agent(
    name text,
    instructions text,
    model text,
    tools text[],
    delegates text[],
    purpose text,
    output_type jsonb,
    input_token_budget integer,
    output_token_budget integer,
    max_iterations integer,
    timeout integer,
    budget_strategy text,
    preset text,
    reset text[],
    enabled boolean,
    cost_budget numeric,
    tree_token_budget integer,
    tree_cost_budget numeric,
    compaction jsonb,
    policy text,
    tool_exposure text,
    confirm_replies boolean
)
RETURNS TABLE (error text)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    old aidb_internal.agents;
    given text[];
    field text;
BEGIN
    IF aidb_internal.is_blank(name) THEN
        error := 'Invalid parameters: agent name must not be empty';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT a.* INTO old FROM aidb_internal.agents a WHERE a.name = update_agent.name FOR UPDATE;
    IF NOT FOUND THEN
        error := format('agent %s not found', aidb_internal.quoted(name));
        RETURN NEXT;
        RETURN;
    ELSIF NOT aidb_internal.caller_owns(old.owner) THEN
        error := format('agent %s is owned by role %s; only its owner may change it',
                        aidb_internal.quoted(name), aidb_internal.quoted(pg_get_userbyid(old.owner)));
        RETURN NEXT;
        RETURN;
    END IF;

    error := coalesce(
        aidb_internal.name_list_problem('reset', reset),
        aidb_internal.agent_problem(model, tools, delegates, purpose, output_type, input_token_budget,
                                    output_token_budget, max_iterations, timeout, budget_strategy),
        aidb_internal.limits_problem(cost_budget, tree_token_budget, tree_cost_budget, compaction),
        aidb_internal.policy_problem(policy),
        aidb_internal.exposure_problem(tool_exposure));
    -- The fields that can be reset, and which of them are set in the same call.
    given := ARRAY(
        SELECT f.field
        FROM (VALUES ('tools', tools IS NOT NULL), ('delegates', delegates IS NOT NULL), ('purpose', purpose IS NOT NULL),
                     ('output_type', output_type IS NOT NULL), ('input_token_budget', input_token_budget IS NOT NULL),
                     ('output_token_budget', output_token_budget IS NOT NULL), ('max_iterations', max_iterations IS NOT NULL),
                     ('timeout', timeout IS NOT NULL), ('budget_strategy', budget_strategy IS NOT NULL),
                     ('preset', preset IS NOT NULL), ('cost_budget', cost_budget IS NOT NULL),
                     ('tree_token_budget', tree_token_budget IS NOT NULL), ('tree_cost_budget', tree_cost_budget IS NOT NULL),
                     ('compaction', compaction IS NOT NULL), ('policy', policy IS NOT NULL)) f (field, is_set)
        WHERE f.is_set);
    FOREACH field IN ARRAY CASE WHEN error IS NULL THEN coalesce(reset, '{}') ELSE '{}'::text[] END LOOP
        IF field <> ALL (ARRAY['tools', 'delegates', 'purpose', 'output_type', 'input_token_budget', 'output_token_budget',
                               'max_iterations', 'timeout', 'budget_strategy', 'preset', 'cost_budget', 'tree_token_budget',
                               'tree_cost_budget', 'compaction', 'policy']) THEN
            error := format('Invalid parameters: %s cannot be reset', aidb_internal.quoted(field));
        ELSIF field = ANY (given) THEN
            error := format('Invalid parameters: %s is both set and reset', aidb_internal.quoted(field));
        END IF;
        EXIT WHEN error IS NOT NULL;
    END LOOP;

    IF error IS NULL THEN
        IF tools IS NULL THEN
            tools := CASE WHEN 'tools' = ANY (reset) THEN '{}' ELSE old.tools END;
        END IF;
        IF delegates IS NULL THEN
            delegates := CASE WHEN 'delegates' = ANY (reset) THEN '{}' ELSE old.delegates END;
        END IF;
        error := aidb_internal.delegate_problem(tools, delegates);
    END IF;
    IF error IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    IF cardinality(given) = 0 AND coalesce(cardinality(reset), 0) = 0
       AND instructions IS NULL AND model IS NULL AND enabled IS NULL AND tool_exposure IS NULL AND confirm_replies IS NULL THEN
        RETURN;
    END IF;
    reset := coalesce(reset, '{}');
    UPDATE aidb_internal.agents a SET
        instructions = coalesce(update_agent.instructions, a.instructions),
        model = coalesce(update_agent.model, a.model),
        tools = ARRAY(SELECT unnest(update_agent.tools)),
        delegates = ARRAY(SELECT unnest(update_agent.delegates)),
        purpose = CASE WHEN 'purpose' = ANY (reset) THEN NULL ELSE coalesce(update_agent.purpose, a.purpose) END,
        output_type = CASE WHEN 'output_type' = ANY (reset) THEN NULL ELSE coalesce(update_agent.output_type, a.output_type) END,
        input_token_budget = CASE WHEN 'input_token_budget' = ANY (reset) THEN NULL
                                  ELSE coalesce(update_agent.input_token_budget, a.input_token_budget) END,
        output_token_budget = CASE WHEN 'output_token_budget' = ANY (reset) THEN NULL
                                   ELSE coalesce(update_agent.output_token_budget, a.output_token_budget) END,
        max_iterations = CASE WHEN 'max_iterations' = ANY (reset) THEN NULL
                              ELSE coalesce(update_agent.max_iterations, a.max_iterations) END,
        timeout_seconds = CASE WHEN 'timeout' = ANY (reset) THEN NULL ELSE coalesce(update_agent.timeout, a.timeout_seconds) END,
        budget_strategy = CASE WHEN 'budget_strategy' = ANY (reset) THEN 'attempt_complete'
                               ELSE coalesce(update_agent.budget_strategy::aidb.budget_strategy, a.budget_strategy) END,
        preset = CASE WHEN 'preset' = ANY (reset) THEN NULL ELSE coalesce(update_agent.preset, a.preset) END,
        enabled = coalesce(update_agent.enabled, a.enabled),
        cost_budget = CASE WHEN 'cost_budget' = ANY (reset) THEN NULL ELSE coalesce(update_agent.cost_budget, a.cost_budget) END,
        tree_token_budget = CASE WHEN 'tree_token_budget' = ANY (reset) THEN NULL
                                 ELSE coalesce(update_agent.tree_token_budget, a.tree_token_budget) END,
        tree_cost_budget = CASE WHEN 'tree_cost_budget' = ANY (reset) THEN NULL
                                ELSE coalesce(update_agent.tree_cost_budget, a.tree_cost_budget) END,
        compaction = CASE WHEN 'compaction' = ANY (reset) THEN NULL ELSE coalesce(update_agent.compaction, a.compaction) END,
        policy = CASE WHEN 'policy' = ANY (reset) THEN NULL ELSE nullif(coalesce(update_agent.policy, a.policy), '') END,
        tool_exposure = coalesce(update_agent.tool_exposure, a.tool_exposure),
        confirm_replies = coalesce(update_agent.confirm_replies, a.confirm_replies),
        updated_at = clock_timestamp()
    WHERE a.id = old.id;
    IF delegates <> old.delegates THEN
        PERFORM aidb_internal.warn_about_cycle(name);
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.update_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, text[], boolean, numeric, integer, numeric, jsonb, text, text, boolean) IS
    'Behind aidb.update_agent.';
REVOKE ALL ON FUNCTION aidb_internal.update_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, text[], boolean, numeric, integer, numeric, jsonb, text, text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.update_agent(
    name text,
    instructions text DEFAULT NULL,
    model text DEFAULT NULL,
    tools text[] DEFAULT NULL,
    delegates text[] DEFAULT NULL,
    purpose text DEFAULT NULL,
    output_type jsonb DEFAULT NULL,
    input_token_budget integer DEFAULT NULL,
    output_token_budget integer DEFAULT NULL,
    max_iterations integer DEFAULT NULL,
    timeout integer DEFAULT NULL,
    budget_strategy text DEFAULT NULL,
    preset text DEFAULT NULL,
    reset text[] DEFAULT NULL,
    enabled boolean DEFAULT NULL,
    cost_budget numeric DEFAULT NULL,
    tree_token_budget integer DEFAULT NULL,
    tree_cost_budget numeric DEFAULT NULL,
    compaction jsonb DEFAULT NULL,
    policy text DEFAULT NULL,
    tool_exposure text DEFAULT NULL,
    confirm_replies boolean DEFAULT NULL
)
RETURNS TABLE (error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.update_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, text[], boolean, numeric, integer, numeric, jsonb, text, text, boolean) IS
    'Changes an agent. Returns no row on success and one row with error set when something is wrong with the request; it does not raise. NULL leaves a field as it is; an empty array clears tools or delegates. reset: fields to put back to their default: tools, delegates, purpose, output_type, input_token_budget, output_token_budget, max_iterations, timeout, budget_strategy, preset, cost_budget, tree_token_budget, tree_cost_budget, compaction, policy. policy: from the agent''s next call on. enabled: false makes every call of the agent fail until it is true again, and every further tool call of those that run. Privileges: aidb_users; only the owner, members of the owner and superusers may change an agent.';
REVOKE ALL ON FUNCTION aidb.update_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, text[], boolean, numeric, integer, numeric, jsonb, text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.update_agent(text, text, text, text[], text[], text, jsonb, integer, integer, integer, integer, text, text, text[], boolean, numeric, integer, numeric, jsonb, text, text, boolean) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.delete_agent(name text, force boolean)
RETURNS TABLE (error text)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    old aidb_internal.agents;
BEGIN
    SELECT a.* INTO old FROM aidb_internal.agents a WHERE a.name = delete_agent.name FOR UPDATE;
    IF aidb_internal.is_blank(name) THEN
        error := 'Invalid parameters: agent name must not be empty';
    ELSIF old.id IS NULL THEN
        error := format('agent %s not found', aidb_internal.quoted(name));
    ELSIF NOT aidb_internal.caller_owns(old.owner) THEN
        error := format('agent %s is owned by role %s; only its owner may delete it',
                        aidb_internal.quoted(name), aidb_internal.quoted(pg_get_userbyid(old.owner)));
    ELSIF force IS NOT TRUE AND EXISTS (SELECT FROM aidb_internal.agent_task_queue t WHERE t.agent_id = old.id) THEN
        error := format('agent %s has task records; use force => true to delete it together with them', aidb_internal.quoted(name));
    END IF;
    IF error IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    -- The action log stays as it is: it is the transcript.
    DELETE FROM aidb_internal.agent_task_queue t WHERE t.agent_id = old.id;
    DELETE FROM aidb_internal.agents a WHERE a.id = old.id;
    INSERT INTO aidb_internal.deleted_agents (id, name, deleted_by) VALUES (old.id, old.name, aidb_internal.caller());
END
$$;
COMMENT ON FUNCTION aidb_internal.delete_agent(text, boolean) IS
    'Behind aidb.delete_agent.';
REVOKE ALL ON FUNCTION aidb_internal.delete_agent(text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.delete_agent(name text, force boolean DEFAULT NULL)
RETURNS TABLE (error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.delete_agent(text, boolean) IS
    'Deletes an agent. Returns no row on success and one row with error set otherwise; it does not raise. An agent that has been called is deleted only with force => true, together with its task records. Transcripts stay readable through aidb.get_conversation and aidb.conversation_log and keep the agent''s name. Privileges: aidb_users; only the owner, members of the owner and superusers may delete an agent.';
REVOKE ALL ON FUNCTION aidb.delete_agent(text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.delete_agent(text, boolean) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.list_agents()
RETURNS TABLE (
    id uuid,
    name text,
    instructions text,
    model text,
    purpose text,
    delegates text[],
    tools text[],
    output_type jsonb,
    input_token_budget integer,
    output_token_budget integer,
    max_iterations integer,
    timeout_seconds integer,
    budget_strategy aidb.budget_strategy,
    preset text,
    created_at timestamptz,
    updated_at timestamptz,
    owner text,
    enabled boolean,
    cost_budget numeric,
    tree_token_budget integer,
    tree_cost_budget numeric,
    compaction jsonb,
    policy text,
    tool_exposure text,
    confirm_replies boolean
)
LANGUAGE sql STABLE
AS $$ SELECT a.* FROM aidb.agents a ORDER BY a.name $$;
COMMENT ON FUNCTION aidb_internal.list_agents() IS
    'Behind aidb.list_agents.';
REVOKE ALL ON FUNCTION aidb_internal.list_agents() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.list_agents()
RETURNS TABLE (
    id uuid,
    name text,
    instructions text,
    model text,
    purpose text,
    delegates text[],
    tools text[],
    output_type jsonb,
    input_token_budget integer,
    output_token_budget integer,
    max_iterations integer,
    timeout_seconds integer,
    budget_strategy aidb.budget_strategy,
    preset text,
    created_at timestamptz,
    updated_at timestamptz,
    owner text,
    enabled boolean,
    cost_budget numeric,
    tree_token_budget integer,
    tree_cost_budget numeric,
    compaction jsonb,
    policy text,
    tool_exposure text,
    confirm_replies boolean
)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.list_agents() IS
    'The rows of aidb.agents, by name. Stands behind the tool list_agents. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.list_agents() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.list_agents() TO aidb_users;

