-- Purposes: the name an agent carries, and the role its tool calls run as. A retired purpose keeps its row, because an
-- agent that still carries it must be refused rather than run as its caller.
CREATE TABLE aidb_internal.purpose_registry (
    name text NOT NULL,
    role text NOT NULL,
    role_oid regrole,
    description text,
    allow_elevated boolean NOT NULL DEFAULT false,
    allowed_servers text[],
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at timestamptz,
    policy text,
    CONSTRAINT purpose_registry_pkey PRIMARY KEY (name),
    CONSTRAINT purpose_registry_name_check CHECK (name <> ''),
    CONSTRAINT purpose_registry_role_check CHECK (role <> '')
);
COMMENT ON TABLE aidb_internal.purpose_registry IS
    'Purposes and the roles they resolve to. Read it through aidb.purpose_registry; write it through aidb.create_purpose, update_purpose and delete_purpose.';
COMMENT ON COLUMN aidb_internal.purpose_registry.role IS
    'Name of the role. It need not exist when the purpose is registered; whether it does is looked at when a tool runs.';
COMMENT ON COLUMN aidb_internal.purpose_registry.role_oid IS
    'The role that had this name when the purpose was last set, NULL if none had. Tells a role from another one that was given its name later.';
COMMENT ON COLUMN aidb_internal.purpose_registry.allow_elevated IS
    'Tools may run as the role although it is a superuser or the like.';
COMMENT ON COLUMN aidb_internal.purpose_registry.policy IS
    'The temporal policy that the tool calls of every agent with this purpose obey, besides the agent''s own.';
COMMENT ON COLUMN aidb_internal.purpose_registry.allowed_servers IS
    'The MCP servers whose tools agents with the purpose may use; NULL: all.';
REVOKE ALL ON aidb_internal.purpose_registry FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.purpose_registry', '');

