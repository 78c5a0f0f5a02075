-- What the limits that all sessions share are at just now (c_shim/limits.c).

CREATE OR REPLACE FUNCTION aidb_internal.shared_limits(
    OUT kind text,
    OUT name text,
    OUT running integer,
    OUT waiting integer,
    OUT requests bigint,
    OUT tokens bigint,
    OUT paused_until timestamptz
)
RETURNS SETOF record
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_shared_limits';
COMMENT ON FUNCTION aidb_internal.shared_limits() IS
    'Behind aidb.shared_limits.';
-- A view reads tables with its owner's rights, but calls functions with its reader's.
REVOKE ALL ON FUNCTION aidb_internal.shared_limits() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb_internal.shared_limits() TO aidb_users;

CREATE OR REPLACE VIEW aidb.shared_limits AS
SELECT
    l.kind,
    l.name,
    l.running,
    l.waiting,
    l.requests AS requests_last_minute,
    l.tokens AS tokens_last_minute,
    l.paused_until
FROM aidb_internal.shared_limits() l;
COMMENT ON VIEW aidb.shared_limits IS
    'The load that the limits shared by all sessions see just now: a row for each limited model and each MCP server of this database that was used lately. What goes to the same address, model and account is counted together and shows the name that was used last. Privileges: SELECT for aidb_users.';
COMMENT ON COLUMN aidb.shared_limits.kind IS 'model or mcp_server.';
COMMENT ON COLUMN aidb.shared_limits.running IS 'Requests, or calls of the server''s tools, that are under way.';
COMMENT ON COLUMN aidb.shared_limits.waiting IS 'Those that wait for their turn.';
COMMENT ON COLUMN aidb.shared_limits.requests_last_minute IS 'Begun in the last 60 to 65 seconds: what requests_per_minute is compared with.';
COMMENT ON COLUMN aidb.shared_limits.tokens_last_minute IS 'As requests_last_minute: input and output, estimated while a request runs.';
COMMENT ON COLUMN aidb.shared_limits.paused_until IS 'Until when nobody is let in, because the provider has said so to one; NULL: nobody was told to wait.';
REVOKE ALL ON aidb.shared_limits FROM PUBLIC;
GRANT SELECT ON aidb.shared_limits TO aidb_users;

