-- Agents. An agent is a row of configuration; nothing runs until somebody calls it.
--
-- Models, tools, delegates and the purpose are kept as names and resolved when the agent is called, so an agent may name
-- a model that is registered later, and deleting what it names does not touch it.
CREATE TABLE aidb_internal.agents (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL,
    instructions text NOT NULL,
    model text NOT NULL,
    purpose text,
    delegates text[] NOT NULL DEFAULT '{}',
    tools text[] NOT NULL DEFAULT '{}',
    output_type jsonb,
    input_token_budget integer,
    output_token_budget integer,
    max_iterations integer,
    timeout_seconds integer,
    budget_strategy aidb.budget_strategy NOT NULL DEFAULT 'attempt_complete',
    preset text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    owner regrole NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    cost_budget numeric,
    tree_token_budget integer,
    tree_cost_budget numeric,
    compaction jsonb,
    policy text,
    tool_exposure text NOT NULL DEFAULT 'direct',
    confirm_replies boolean NOT NULL DEFAULT false,
    CONSTRAINT agents_pkey PRIMARY KEY (id),
    CONSTRAINT agents_name_key UNIQUE (name),
    CONSTRAINT agents_input_token_budget_check CHECK (input_token_budget > 0),
    CONSTRAINT agents_output_token_budget_check CHECK (output_token_budget > 0),
    CONSTRAINT agents_max_iterations_check CHECK (max_iterations > 0),
    CONSTRAINT agents_timeout_seconds_check CHECK (timeout_seconds > 0),
    CONSTRAINT agents_cost_budget_check CHECK (cost_budget > 0),
    CONSTRAINT agents_tree_token_budget_check CHECK (tree_token_budget > 0),
    CONSTRAINT agents_tree_cost_budget_check CHECK (tree_cost_budget > 0),
    CONSTRAINT agents_tool_exposure_check CHECK (tool_exposure IN ('direct', 'catalog'))
);
COMMENT ON TABLE aidb_internal.agents IS
    'Registered agents. Read it through aidb.agents; write it through aidb.create_agent, update_agent and delete_agent.';
COMMENT ON COLUMN aidb_internal.agents.owner IS
    'Who may change or delete the agent, besides members of that role and superusers. Kept as the role itself, so it follows a rename; a dump writes its name, so restore roles before data.';
COMMENT ON COLUMN aidb_internal.agents.policy IS
    'The temporal policy that the agent''s tool calls obey.';
REVOKE ALL ON aidb_internal.agents FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.agents', '');

-- What is left of a deleted agent: enough to say in an old transcript who spoke.
CREATE TABLE aidb_internal.deleted_agents (
    id uuid NOT NULL,
    name text NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_by text NOT NULL,
    CONSTRAINT deleted_agents_pkey PRIMARY KEY (id)
);
COMMENT ON TABLE aidb_internal.deleted_agents IS
    'Names of deleted agents, so that the transcripts of their conversations stay readable.';
REVOKE ALL ON aidb_internal.deleted_agents FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.deleted_agents', '');

