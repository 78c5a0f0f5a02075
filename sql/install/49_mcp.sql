-- MCP servers and what they offer. A server is registered by a user; its tools become rows that agents may name.
--
-- A tool's definition is the server's word, and it goes into prompts. So it is pinned: what was imported, or approved
-- since, is what models are shown. When the server's definition no longer has the pinned hash, the new one waits in the
-- columns that begin with new_ and the tool is not used until somebody approves it.
CREATE TABLE aidb_internal.mcp_servers (
    name text NOT NULL,
    url text NOT NULL,
    transport text NOT NULL,
    -- where the headers come from: none, stored, environment or file
    header_source text NOT NULL DEFAULT 'none',
    headers_env text,
    headers_file text,
    -- how tokens are got; the client's secret is in what the headers come from
    oauth jsonb,
    tool_filter text[],
    timeout_ms integer,
    max_concurrency integer,
    -- what is answered when the server asks for a person's input
    elicitation text NOT NULL DEFAULT 'none',
    owner regrole NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    fetched_at timestamptz,
    server_info jsonb,
    CONSTRAINT mcp_servers_pkey PRIMARY KEY (name),
    CONSTRAINT mcp_servers_transport_check CHECK (transport IN ('streamable_http', 'sse')),
    CONSTRAINT mcp_servers_timeout_check CHECK (timeout_ms > 0),
    CONSTRAINT mcp_servers_elicitation_check CHECK (elicitation IN ('none', 'defaults')),
    CONSTRAINT mcp_servers_max_concurrency_check CHECK (max_concurrency > 0),
    CONSTRAINT mcp_servers_header_source_check CHECK (
        CASE header_source
            WHEN 'environment' THEN headers_env IS NOT NULL AND headers_file IS NULL
            WHEN 'file' THEN headers_file IS NOT NULL AND headers_env IS NULL
            ELSE header_source IN ('none', 'stored') AND headers_env IS NULL AND headers_file IS NULL
        END
    )
);
COMMENT ON TABLE aidb_internal.mcp_servers IS
    'Registered MCP servers. Read it through aidb.mcp_registry; write it through aidb.import_mcp_tools, update_mcp_server and delete_tool. Never holds a secret.';
COMMENT ON COLUMN aidb_internal.mcp_servers.fetched_at IS 'When its list of tools was last fetched.';
COMMENT ON COLUMN aidb_internal.mcp_servers.server_info IS 'What the server said of itself: name, version, protocol.';
REVOKE ALL ON aidb_internal.mcp_servers FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.mcp_servers', '');

-- Not in pg_extension_config_dump, and no CHECK: see aidb_internal.model_credentials.
CREATE TABLE aidb_internal.mcp_credentials (
    server text NOT NULL,
    headers jsonb,
    CONSTRAINT mcp_credentials_pkey PRIMARY KEY (server),
    CONSTRAINT mcp_credentials_server_fkey FOREIGN KEY (server) REFERENCES aidb_internal.mcp_servers (name) ON DELETE CASCADE
);
COMMENT ON TABLE aidb_internal.mcp_credentials IS
    'HTTP headers, and secrets of OAuth clients, given to aidb.import_mcp_tools. Readable by superusers only, returned by no function or view, and not part of a dump. Prefer headers_env or headers_k8s_secret, which keep the secret out of the database.';
REVOKE ALL ON aidb_internal.mcp_credentials FROM PUBLIC;

-- Not in pg_extension_config_dump either.
CREATE TABLE aidb_internal.mcp_authorizations (
    server text NOT NULL,
    pending jsonb,
    granted jsonb,
    granted_at timestamptz,
    CONSTRAINT mcp_authorizations_pkey PRIMARY KEY (server),
    CONSTRAINT mcp_authorizations_server_fkey FOREIGN KEY (server) REFERENCES aidb_internal.mcp_servers (name) ON DELETE CASCADE
);
COMMENT ON TABLE aidb_internal.mcp_authorizations IS
    'What a person has authorized with aidb.authorize_mcp_server: OAuth tokens and the client that they belong to. Readable by superusers only, returned by no function or view, and not part of a dump.';
COMMENT ON COLUMN aidb_internal.mcp_authorizations.pending IS 'What a person is being asked for.';
COMMENT ON COLUMN aidb_internal.mcp_authorizations.granted IS 'What calls are made with.';
REVOKE ALL ON aidb_internal.mcp_authorizations FROM PUBLIC;

-- No foreign key: pg_restore -j loads the tables of an extension in any order. Who writes here has locked the server, and who
-- deletes that deletes these.
CREATE TABLE aidb_internal.mcp_tools (
    server text NOT NULL,
    tool text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    input_schema jsonb NOT NULL,
    output_schema jsonb,
    hash text NOT NULL,
    listed boolean NOT NULL DEFAULT true,
    new_description text,
    new_input_schema jsonb,
    new_output_schema jsonb,
    new_hash text,
    approved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    approved_by text NOT NULL,
    changed_at timestamptz,
    idempotent boolean NOT NULL DEFAULT false,
    CONSTRAINT mcp_tools_pkey PRIMARY KEY (server, tool),
    CONSTRAINT mcp_tools_name_key UNIQUE (name)
);
COMMENT ON TABLE aidb_internal.mcp_tools IS
    'Tools of registered MCP servers, with the definition that was last approved. Read it through aidb.mcp_tools.';
COMMENT ON COLUMN aidb_internal.mcp_tools.tool IS 'The name that the server gave it.';
COMMENT ON COLUMN aidb_internal.mcp_tools.name IS 'Its name in aidb: the same, or server.tool where that one was taken.';
COMMENT ON COLUMN aidb_internal.mcp_tools.hash IS 'SHA-256 of the pinned definition: name, title, description and schemas.';
COMMENT ON COLUMN aidb_internal.mcp_tools.listed IS 'The server still offers it and the filter admits it. The row stays, so that its pin does.';
COMMENT ON COLUMN aidb_internal.mcp_tools.new_hash IS 'Of the definition that waits for approval; NULL: none does.';
REVOKE ALL ON aidb_internal.mcp_tools FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.mcp_tools', '');
