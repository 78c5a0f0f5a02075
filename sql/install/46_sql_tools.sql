-- SQL tools: statements that users store, with parameters that the model fills in.
CREATE TYPE aidb.ToolParam AS (
    name text,
    type text,
    description text,
    enum_values text[]
);
COMMENT ON TYPE aidb.ToolParam IS
    'A parameter of a tool, as aidb.sql_tool_registry shows it. type is an SQL type name.';

CREATE TABLE aidb_internal.sql_tools (
    name text NOT NULL,
    description text NOT NULL,
    query_text text NOT NULL,
    statement text NOT NULL,
    types text[] NOT NULL,
    params jsonb NOT NULL,
    read_only boolean NOT NULL,
    return_type_hint jsonb,
    timeout_ms integer,
    max_rows integer,
    risk text,
    approver text,
    allow_mismatch boolean NOT NULL DEFAULT false,
    preview_text text,
    preview jsonb,
    undo_text text,
    undo jsonb,
    owner regrole NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT sql_tools_pkey PRIMARY KEY (name),
    CONSTRAINT sql_tools_timeout_check CHECK (timeout_ms > 0),
    CONSTRAINT sql_tools_max_rows_check CHECK (max_rows > 0),
    CONSTRAINT sql_tools_risk_check CHECK (risk IN ('read', 'safe', 'confirm', 'forbidden'))
);
COMMENT ON TABLE aidb_internal.sql_tools IS
    'Registered SQL tools. Read it through aidb.sql_tool_registry; write it through aidb.create_sql_tool, update_sql_tool and delete_tool.';
COMMENT ON COLUMN aidb_internal.sql_tools.query_text IS 'As registered, with ${name}.';
COMMENT ON COLUMN aidb_internal.sql_tools.statement IS 'The same with $1, $2, ...: one for each parameter, in the order of params.';
COMMENT ON COLUMN aidb_internal.sql_tools.types IS 'The parameters'' types, schema-qualified, so that they do not depend on a search_path.';
COMMENT ON COLUMN aidb_internal.sql_tools.params IS 'Array of {name, type, description, required, default, enum, base, labels}; see aidb_internal.tool_type for the last two.';
COMMENT ON COLUMN aidb_internal.sql_tools.risk IS 'What its owner says it is: read, safe, confirm or forbidden; NULL: nothing. aidb_internal.tool_classes overrules it.';
COMMENT ON COLUMN aidb_internal.sql_tools.approver IS 'Role of which somebody else must confirm; NULL: the person who asked confirms.';
COMMENT ON COLUMN aidb_internal.sql_tools.preview IS 'preview_text as {statement, names}: $1, $2, ... stand for the parameters in names.';
COMMENT ON COLUMN aidb_internal.sql_tools.undo IS 'undo_text, as preview; the name result stands for the rows that the tool returned, as jsonb.';
REVOKE ALL ON aidb_internal.sql_tools FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.sql_tools', '');
