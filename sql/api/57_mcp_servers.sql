-- MCP servers: registering, changing, refreshing and removing them. These functions raise. A failed registration leaves
-- nothing behind.

-- Implemented in Go: asks the server for its tools and stores them with aidb_internal.store_mcp_tools.
CREATE OR REPLACE FUNCTION aidb_internal.fetch_mcp_tools(name text, registering boolean DEFAULT false)
RETURNS integer
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb_internal.fetch_mcp_tools(text, boolean) IS
    'Fetches the list of tools of a registered MCP server and returns how many there are now; raises when it cannot be had. A server that is being registered, and that a person has to authorize first, has none.';
REVOKE ALL ON FUNCTION aidb_internal.fetch_mcp_tools(text, boolean) FROM PUBLIC;

-- What is wrong with the settings of a server, NULL meaning "not given". Whether the address may be reached, and whether
-- headers can be sent, is known where they are used.
CREATE OR REPLACE FUNCTION aidb_internal.check_mcp_server(
    url text, transport text, headers jsonb, tool_filter text[], headers_env text, headers_k8s_secret text,
    timeout_ms integer, max_concurrency integer, elicitation text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    problem text := aidb_internal.name_list_problem('tool_filter', tool_filter);
BEGIN
    IF url IS NOT NULL AND (url !~* '^https?://[^/?#@[:space:]]+([/?#]|$)' OR url ~ '[[:cntrl:][:space:]]' OR octet_length(url) > 2000) THEN
        problem := 'Invalid parameters: url must be an http or https address without user information';
    ELSIF transport IS NOT NULL AND transport NOT IN ('streamable_http', 'sse') THEN
        problem := format('Invalid parameters: transport %s is not one of streamable_http, sse', aidb_internal.quoted(transport));
    ELSIF elicitation NOT IN ('none', 'defaults') THEN
        problem := format('Invalid parameters: elicitation %s is not one of none, defaults', aidb_internal.quoted(elicitation));
    ELSIF timeout_ms <= 0 OR max_concurrency <= 0 THEN
        problem := 'Invalid parameters: timeout_ms and max_concurrency must be greater than zero';
    ELSIF (headers IS NOT NULL)::integer + (headers_env IS NOT NULL)::integer + (headers_k8s_secret IS NOT NULL)::integer > 1 THEN
        problem := 'Only one of "headers", "headers_env", "headers_k8s_secret" may be provided';
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF headers_env IS NOT NULL THEN
        PERFORM aidb_internal.check_credentials_env(headers_env);
    ELSIF headers_k8s_secret IS NOT NULL THEN
        PERFORM aidb_internal.check_credentials_file(headers_k8s_secret);
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_mcp_server(text, text, jsonb, text[], text, text, integer, integer, text) IS
    'Raises when the settings of an MCP server cannot be used.';
REVOKE ALL ON FUNCTION aidb_internal.check_mcp_server(text, text, jsonb, text[], text, text, integer, integer, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.import_mcp_tools(
    name text, url text, transport text, headers jsonb, tool_filter text[], headers_env text, headers_k8s_secret text,
    timeout_ms integer, max_concurrency integer, oauth jsonb, elicitation text)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    problem text := aidb_internal.name_problem('MCP server name', name);
BEGIN
    headers := nullif(nullif(headers, '{}'), 'null');
    oauth := nullif(nullif(oauth, '{}'), 'null');
    IF problem IS NULL AND (name !~ '^[A-Za-z_][A-Za-z0-9_-]*$' OR octet_length(name) > 64) THEN
        problem := format('Invalid parameters: MCP server name %s must be at most 64 letters, digits, underscores and hyphens', aidb_internal.quoted(name));
    ELSIF problem IS NULL AND url IS NULL THEN
        problem := 'Invalid parameters: url must not be null';
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM aidb_internal.check_mcp_server(url, transport, headers, tool_filter, headers_env, headers_k8s_secret, timeout_ms, max_concurrency, elicitation);
    -- delete_tool takes names of both kinds
    IF EXISTS (SELECT FROM aidb.tools t WHERE t.name = import_mcp_tools.name) THEN
        RAISE EXCEPTION 'tool % already exists', aidb_internal.quoted(name) USING ERRCODE = 'duplicate_object',
            HINT = 'Register the MCP server under another name.';
    END IF;

    INSERT INTO aidb_internal.mcp_servers (name, url, transport, header_source, headers_env, headers_file, oauth, tool_filter, timeout_ms, max_concurrency, elicitation,
                                           owner)
    VALUES (name, url, coalesce(transport, 'streamable_http'),
            CASE WHEN headers IS NOT NULL THEN 'stored' WHEN headers_env IS NOT NULL THEN 'environment'
                 WHEN headers_k8s_secret IS NOT NULL THEN 'file' ELSE 'none' END,
            headers_env, headers_k8s_secret, oauth, nullif(tool_filter, '{}'), timeout_ms, max_concurrency, coalesce(elicitation, 'none'),
            aidb_internal.caller_oid())
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'MCP server % already exists', aidb_internal.quoted(name) USING ERRCODE = 'duplicate_object',
            HINT = 'aidb.update_mcp_server changes it, aidb.delete_tool removes it.';
    END IF;
    IF headers IS NOT NULL THEN
        INSERT INTO aidb_internal.mcp_credentials (server, headers) VALUES (name, headers);
    END IF;
    PERFORM aidb_internal.fetch_mcp_tools(name, true);
    PERFORM aidb_internal.require_mcp_tools(name);
    RETURN name;
END
$$;
COMMENT ON FUNCTION aidb_internal.import_mcp_tools(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) IS
    'Behind aidb.import_mcp_tools.';
REVOKE ALL ON FUNCTION aidb_internal.import_mcp_tools(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) FROM PUBLIC;

-- A registration that offers nothing is a mistake that is better said at once.
CREATE OR REPLACE FUNCTION aidb_internal.require_mcp_tools(name text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM aidb_internal.mcp_tools t WHERE t.server = require_mcp_tools.name AND t.listed) THEN
        RETURN;
    ELSIF EXISTS (SELECT FROM aidb_internal.mcp_servers s WHERE s.name = require_mcp_tools.name AND s.oauth ->> 'grant' = 'authorization_code')
          AND NOT EXISTS (SELECT FROM aidb_internal.mcp_authorizations a WHERE a.server = require_mcp_tools.name AND a.granted IS NOT NULL) THEN
        RETURN; -- nobody has been able to ask it
    ELSIF EXISTS (SELECT FROM aidb_internal.mcp_servers s WHERE s.name = require_mcp_tools.name AND s.tool_filter IS NOT NULL) THEN
        RAISE EXCEPTION 'no tool of MCP server % matches the filter', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object',
            HINT = 'tool_filter takes the exact names that the server gives its tools.';
    END IF;
    RAISE EXCEPTION 'MCP server % offers no tools', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
END
$$;
COMMENT ON FUNCTION aidb_internal.require_mcp_tools(text) IS
    'Raises when none of a server''s tools can be used.';
REVOKE ALL ON FUNCTION aidb_internal.require_mcp_tools(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.import_mcp_tools(
    name text, url text, transport text DEFAULT 'streamable_http', headers jsonb DEFAULT NULL, tool_filter text[] DEFAULT NULL,
    headers_env text DEFAULT NULL, headers_k8s_secret text DEFAULT NULL, timeout_ms integer DEFAULT NULL,
    max_concurrency integer DEFAULT NULL, oauth jsonb DEFAULT NULL, elicitation text DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.import_mcp_tools(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) IS
    'Registers an MCP server, owned by the caller, fetches its tools and returns its name; they are in aidb.tools at once. url: https, or http for loopback; within the egress list, and private addresses only when that list names them. transport: streamable_http or sse. At most one source of HTTP headers, an object of name to value: headers stores them in the database, outside dumps; headers_env names an environment variable of the server and headers_k8s_secret a file on it that hold the JSON, read at each use and limited by aidb.env_var_allowed_prefix and aidb.k8s_secret_allowed_path_prefix. They are sent to the address''s own origin only. oauth: for a server that wants OAuth tokens, an object of client_id, issuer (the authorization server that the client is registered with) or token_url, and where needed scope, audience, resource, auth_method (client_secret_basic or client_secret_post), algorithm and key_id; the client''s client_secret or private_key (PEM) is a further member of the headers'' JSON and is sent to that authorization server alone. Tokens are got by the client credentials grant, when the server asks for one, and kept in memory only. With "grant": "authorization_code" in oauth a person authorizes the use of the server instead, with aidb.authorize_mcp_server, and its tools are fetched then; client_id may be left out (aidb registers itself) or be the address of a client metadata document, a secret is needed only where the client has one, issuer only with a secret, and redirect_uri and authorization_url may be given. With "grant": "identity_assertion" an identity provider asserts who the person is (Identity Assertion Authorization Grant): idp_token_url and idp_client_id in oauth, id_token and, where the provider wants one, idp_client_secret in the headers'' JSON, of which a file can be renewed at any time. tool_filter: exact names of the tools to take; NULL: all. timeout_ms: limit of one exchange; NULL: aidb.tool_timeout. max_concurrency: calls at a time in all sessions together; NULL: 8. elicitation: what is answered when the server asks for a person''s input during a call; none (NULL): that there is nobody; defaults: at once, with the defaults of what it asks for, and no where something that is required has none, or where it wants an address to be opened. A tool whose name is taken by another one is named server.tool. The definitions of the tools are pinned: one that changes later is not used until aidb.approve_mcp_tool. Raises 42710 when the name is taken, 42501 when the address or the source of headers is not allowed, 42704 when no tool matches, 08004, 08006 or 08P01 when the server does not answer as it should. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.import_mcp_tools(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.import_mcp_tools(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) TO aidb_users;

-- The server, locked, if the caller may change it.
CREATE OR REPLACE FUNCTION aidb_internal.own_mcp_server(name text, what text)
RETURNS aidb_internal.mcp_servers
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s aidb_internal.mcp_servers;
BEGIN
    SELECT * INTO s FROM aidb_internal.mcp_servers m WHERE m.name = own_mcp_server.name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'MCP server % not found', aidb_internal.quoted(own_mcp_server.name) USING ERRCODE = 'undefined_object';
    ELSIF NOT aidb_internal.caller_owns(s.owner) THEN
        RAISE EXCEPTION 'MCP server % is owned by role %; only its owner may % it', aidb_internal.quoted(s.name),
            aidb_internal.quoted(pg_get_userbyid(s.owner)::text), what USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN s;
END
$$;
COMMENT ON FUNCTION aidb_internal.own_mcp_server(text, text) IS 'The MCP server of that name, locked; raises when there is none or the caller does not own it.';
REVOKE ALL ON FUNCTION aidb_internal.own_mcp_server(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.update_mcp_server(
    name text, url text, transport text, headers jsonb, tool_filter text[], headers_env text, headers_k8s_secret text,
    timeout_ms integer, max_concurrency integer, oauth jsonb, elicitation text)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    old aidb_internal.mcp_servers := aidb_internal.own_mcp_server(name, 'change');
    given constant boolean := headers IS NOT NULL OR headers_env IS NOT NULL OR headers_k8s_secret IS NOT NULL;
    found integer;
BEGIN
    PERFORM aidb_internal.check_mcp_server(url, transport, headers, tool_filter, headers_env, headers_k8s_secret, timeout_ms, max_concurrency, elicitation);
    headers := nullif(nullif(headers, '{}'), 'null');
    UPDATE aidb_internal.mcp_servers s SET
        url = coalesce(update_mcp_server.url, s.url),
        transport = coalesce(update_mcp_server.transport, s.transport),
        header_source = CASE WHEN NOT given THEN s.header_source WHEN headers IS NOT NULL THEN 'stored'
                             WHEN update_mcp_server.headers_env IS NOT NULL THEN 'environment'
                             WHEN headers_k8s_secret IS NOT NULL THEN 'file' ELSE 'none' END,
        headers_env = CASE WHEN given THEN update_mcp_server.headers_env ELSE s.headers_env END,
        headers_file = CASE WHEN given THEN headers_k8s_secret ELSE s.headers_file END,
        oauth = nullif(nullif(coalesce(update_mcp_server.oauth, s.oauth), '{}'), 'null'),
        tool_filter = nullif(coalesce(update_mcp_server.tool_filter, s.tool_filter), '{}'),
        timeout_ms = coalesce(update_mcp_server.timeout_ms, s.timeout_ms),
        max_concurrency = coalesce(update_mcp_server.max_concurrency, s.max_concurrency),
        elicitation = coalesce(update_mcp_server.elicitation, s.elicitation),
        updated_at = clock_timestamp()
    WHERE s.name = old.name;
    IF given THEN
        DELETE FROM aidb_internal.mcp_credentials c WHERE c.server = old.name;
        IF headers IS NOT NULL THEN
            INSERT INTO aidb_internal.mcp_credentials (server, headers) VALUES (name, headers);
        END IF;
    END IF;
    -- what was authorized was the use of that address, by that client
    DELETE FROM aidb_internal.mcp_authorizations a
    USING aidb_internal.mcp_servers s
    WHERE a.server = old.name AND s.name = old.name AND (s.url <> old.url OR s.oauth IS DISTINCT FROM old.oauth);
    found := aidb_internal.fetch_mcp_tools(name, true);
    PERFORM aidb_internal.require_mcp_tools(name);
    RETURN found;
END
$$;
COMMENT ON FUNCTION aidb_internal.update_mcp_server(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) IS
    'Behind aidb.update_mcp_server.';
REVOKE ALL ON FUNCTION aidb_internal.update_mcp_server(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.update_mcp_server(
    name text, url text DEFAULT NULL, transport text DEFAULT NULL, headers jsonb DEFAULT NULL, tool_filter text[] DEFAULT NULL,
    headers_env text DEFAULT NULL, headers_k8s_secret text DEFAULT NULL, timeout_ms integer DEFAULT NULL,
    max_concurrency integer DEFAULT NULL, oauth jsonb DEFAULT NULL, elicitation text DEFAULT NULL)
RETURNS integer
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.update_mcp_server(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) IS
    'Changes the registration of an MCP server, fetches its tools anew and returns how many there are. NULL leaves a field as it is; a source of headers replaces the one before, headers => ''{}'' removes it, oauth => ''{}'' likewise; another url or oauth ends what a person has authorized; tool_filter => ''{}'' admits all tools. Tools keep their pinned definitions and their names. Nothing is changed when the server does not answer or no tool matches. Raises 42704 when there is no such server, 42501 when the caller is not its owner, and what aidb.import_mcp_tools raises. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.update_mcp_server(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.update_mcp_server(text, text, text, jsonb, text[], text, text, integer, integer, jsonb, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.refresh_mcp_tools(name text)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found integer;
BEGIN
    IF NOT EXISTS (SELECT FROM aidb_internal.mcp_servers s WHERE s.name = refresh_mcp_tools.name) THEN
        RAISE EXCEPTION 'MCP server % not found', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
    END IF;
    found := aidb_internal.fetch_mcp_tools(name);
    IF found = 0 AND EXISTS (SELECT FROM aidb_internal.mcp_servers s WHERE s.name = refresh_mcp_tools.name AND s.tool_filter IS NOT NULL) THEN
        PERFORM aidb_internal.require_mcp_tools(name);
    END IF;
    RETURN found;
END
$$;
COMMENT ON FUNCTION aidb_internal.refresh_mcp_tools(text) IS 'Behind aidb.refresh_mcp_tools.';
REVOKE ALL ON FUNCTION aidb_internal.refresh_mcp_tools(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.refresh_mcp_tools(name text)
RETURNS integer
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.refresh_mcp_tools(text) IS
    'Fetches the list of tools of a registered MCP server and returns how many there are now, after the filter. Tools that the server no longer lists leave aidb.tools; one whose definition has changed is not used until aidb.approve_mcp_tool, and a WARNING names it. The same happens by itself when a tool is called whose list is older than aidb.mcp_stale_after, and when the server says that its list has changed. Raises 42704 when there is no such server or no tool matches its filter, and what aidb.import_mcp_tools raises when it cannot be reached. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.refresh_mcp_tools(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.refresh_mcp_tools(text) TO aidb_users;

-- Queries are taken out of addresses, as in aidb.models. Which headers there are may be seen by superusers, their values by
-- nobody.
CREATE OR REPLACE VIEW aidb.mcp_registry AS
SELECT
    s.name,
    regexp_replace(regexp_replace(s.url, '(?<=//)[^/?#]*@', ''), '[?#].*$', '') AS url,
    s.transport,
    (SELECT jsonb_object_agg(h.key, '***') FROM aidb_internal.mcp_credentials c,
        jsonb_object_keys(CASE jsonb_typeof(c.headers) WHEN 'object' THEN c.headers ELSE '{}' END) h (key) WHERE c.server = s.name) AS headers,
    s.headers_env,
    s.headers_file AS headers_k8s_secret,
    s.tool_filter,
    s.created_at::timestamp AS created_at,
    s.updated_at::timestamp AS updated_at,
    pg_get_userbyid(s.owner)::text AS owner,
    s.timeout_ms,
    s.max_concurrency,
    s.server_info,
    s.fetched_at,
    now() - s.fetched_at AS age,
    s.oauth,
    s.elicitation,
    (SELECT a.granted_at FROM aidb_internal.mcp_authorizations a WHERE a.server = s.name) AS authorized_at,
    (SELECT a.granted ->> 'scope' FROM aidb_internal.mcp_authorizations a WHERE a.server = s.name) AS authorized_scope
FROM aidb_internal.mcp_servers s;
COMMENT ON VIEW aidb.mcp_registry IS
    'Registered MCP servers. No column ever holds a secret. Privileges: SELECT for aidb_users and aidb_auditor, on all columns but headers and headers_env.';
COMMENT ON COLUMN aidb.mcp_registry.url IS 'The address without its query.';
COMMENT ON COLUMN aidb.mcp_registry.headers IS 'Names of the stored headers, with *** for each value. Superusers only.';
COMMENT ON COLUMN aidb.mcp_registry.headers_env IS 'Environment variable that the headers come from. Superusers only.';
COMMENT ON COLUMN aidb.mcp_registry.tool_filter IS 'Names of the tools that are taken; NULL: all.';
COMMENT ON COLUMN aidb.mcp_registry.timeout_ms IS 'Limit of one exchange; NULL: aidb.tool_timeout.';
COMMENT ON COLUMN aidb.mcp_registry.max_concurrency IS 'Calls at a time in all sessions together; NULL: 8.';
COMMENT ON COLUMN aidb.mcp_registry.server_info IS 'What the server said of itself, unverified: name, version, protocol.';
COMMENT ON COLUMN aidb.mcp_registry.fetched_at IS 'When its list of tools was last fetched.';
COMMENT ON COLUMN aidb.mcp_registry.age IS 'How long ago that was.';
COMMENT ON COLUMN aidb.mcp_registry.oauth IS 'How tokens are got for it, without the secret.';
COMMENT ON COLUMN aidb.mcp_registry.elicitation IS 'What is answered when the server asks for a person''s input: none, or defaults.';
COMMENT ON COLUMN aidb.mcp_registry.authorized_at IS 'When a person authorized its use; NULL: nobody has, or need not.';
COMMENT ON COLUMN aidb.mcp_registry.authorized_scope IS 'The scopes that were granted then.';
REVOKE ALL ON aidb.mcp_registry FROM PUBLIC;
GRANT SELECT (name, url, transport, headers_k8s_secret, tool_filter, created_at, updated_at, owner, timeout_ms, max_concurrency,
              server_info, fetched_at, age, oauth, elicitation, authorized_at, authorized_scope) ON aidb.mcp_registry TO aidb_users, aidb_auditor;
