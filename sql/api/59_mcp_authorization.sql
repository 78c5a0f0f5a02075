-- OAuth's authorization code flow: a person says yes in a browser, which is wherever the person is. What the database needs of it
-- is the address that the browser was sent to afterwards.

-- Implemented in Go.
CREATE OR REPLACE FUNCTION aidb_internal.begin_authorization(name text, scope text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb_internal.begin_authorization(text, text) IS
    'Finds the authorization server of an MCP server, makes a client known there and returns the address at which a person authorizes it.';
REVOKE ALL ON FUNCTION aidb_internal.begin_authorization(text, text) FROM PUBLIC;

-- Implemented in Go.
CREATE OR REPLACE FUNCTION aidb_internal.end_authorization(name text, redirected_url text)
RETURNS integer
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb_internal.end_authorization(text, text) IS
    'Exchanges the code in the address for tokens, stores them, fetches the server''s tools and returns how many there are.';
REVOKE ALL ON FUNCTION aidb_internal.end_authorization(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.authorize_mcp_server(name text, scope text)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM aidb_internal.own_mcp_server(name, 'authorize');
    -- the characters that RFC 6749 has for scopes, and spaces
    IF octet_length(scope) > 2000 OR scope ~ '[^ !#-[\]-~]' THEN
        RAISE EXCEPTION 'Invalid parameters: scope must be a list of OAuth scopes with spaces between' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN aidb_internal.begin_authorization(name, scope);
END
$$;
COMMENT ON FUNCTION aidb_internal.authorize_mcp_server(text, text) IS 'Behind aidb.authorize_mcp_server.';
REVOKE ALL ON FUNCTION aidb_internal.authorize_mcp_server(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.authorize_mcp_server(name text, scope text DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.authorize_mcp_server(text, text) IS
    'Begins to ask a person whether an MCP server that was registered with "grant": "authorization_code" in oauth may be used, and returns the address to open in a browser. Afterwards the browser is sent to the redirect_uri of the registration (http://127.0.0.1:27431/callback when it has none), where nobody need listen: the address that it then shows is what aidb.finish_mcp_authorization takes, within an hour. The authorization server and its addresses are found as the protocol says; the client is the client_id of the registration, the metadata document at that address, or one that is registered now. scope: scopes to ask for, with spaces between; NULL: those of oauth, else those that the server wants. What was authorized before stays in use until then. Only the owner of the server may. Raises 42704 when there is no such server, 42501 when the caller does not own it or an address is not allowed, 55000 when its registration does not have that grant, 08004 or 08006 when a server does not answer as it should. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.authorize_mcp_server(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.authorize_mcp_server(text, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.finish_mcp_authorization(name text, redirected_url text)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found integer;
BEGIN
    PERFORM aidb_internal.own_mcp_server(name, 'authorize');
    found := aidb_internal.end_authorization(name, redirected_url);
    PERFORM aidb_internal.require_mcp_tools(name);
    RETURN found;
END
$$;
COMMENT ON FUNCTION aidb_internal.finish_mcp_authorization(text, text) IS 'Behind aidb.finish_mcp_authorization.';
REVOKE ALL ON FUNCTION aidb_internal.finish_mcp_authorization(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.finish_mcp_authorization(name text, redirected_url text)
RETURNS integer
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.finish_mcp_authorization(text, text) IS
    'Takes the address that a browser was sent to after aidb.authorize_mcp_server, checks that it belongs to that, gets tokens for the code in it, fetches the tools of the server and returns how many there are. The tokens are stored in the database, outside dumps, and are returned by no function or view; calls of all agents use them, and a refresh token gets new ones when they run out. The code in the address is good once, and worthless without what the database keeps of the request. Only the owner of the server may. Raises 42704 when there is no such server, 42501 when the caller does not own it, 22023 when the address belongs to no request or to an older one, 55000 when there is none under way or it is older than an hour, 08004 when the person has said no or the code is not taken. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.finish_mcp_authorization(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.finish_mcp_authorization(text, text) TO aidb_users;
