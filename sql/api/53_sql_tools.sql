-- SQL tools. These functions raise.

CREATE OR REPLACE FUNCTION aidb_internal.placeholders(sql text, OUT source text, OUT statement text, OUT names text[], OUT ignored text)
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'aidb_placeholders';
COMMENT ON FUNCTION aidb_internal.placeholders(text) IS
    'Finds ${name} outside literals, quoted identifiers and comments. source: the text without its tail; statement: with $1, $2, ...; names: by number; ignored: names that stand inside a literal or a comment.';
REVOKE ALL ON FUNCTION aidb_internal.placeholders(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_tool_statement(statement text, declared text[], read_only boolean,
    OUT types text[], OUT columns text[])
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'aidb_check_tool';
COMMENT ON FUNCTION aidb_internal.check_tool_statement(text, text[], boolean) IS
    'Raises when the statement cannot be a SQL tool, or is to be read-only and might write. types: the qualified names of the declared ones; columns: what it returns, NULL where only its tables could say that and it is not looked at.';
REVOKE ALL ON FUNCTION aidb_internal.check_tool_statement(text, text[], boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.missing_privileges(statement text, types text[], role oid)
RETURNS text[]
LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'aidb_missing_privileges';
COMMENT ON FUNCTION aidb_internal.missing_privileges(text, text[], oid) IS
    'The privileges that the role lacks for the statement, found without running it.';
REVOKE ALL ON FUNCTION aidb_internal.missing_privileges(text, text[], oid) FROM PUBLIC;

-- A hint is its author's word, kept as it is: it is no reason to refuse a tool that works, and what the statement reads may
-- change later. That it does not fit is said while somebody is there to mend it.
CREATE OR REPLACE FUNCTION aidb_internal.compare_hint(hint jsonb, columns text[])
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unknown text := (SELECT string_agg(aidb_internal.quoted(h ->> 'name'), ', ' ORDER BY n)
                     FROM jsonb_array_elements(hint) WITH ORDINALITY AS x (h, n) WHERE h ->> 'name' <> ALL (columns));
BEGIN
    IF unknown IS NOT NULL THEN
        RAISE WARNING 'return_type_hint names columns that the statement does not return: %', unknown
            USING DETAIL = CASE WHEN columns = '{}' THEN 'It returns no columns.'
                                ELSE format('It returns %s.', (SELECT string_agg(aidb_internal.quoted(c), ', ' ORDER BY n)
                                                               FROM unnest(columns) WITH ORDINALITY AS x (c, n))) END,
                  HINT = 'The model and MCP clients are told what the hint says: change it, or the statement, with aidb.update_sql_tool.';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.compare_hint(jsonb, text[]) IS
    'Warns of columns that a return_type_hint names and the statement does not return. Columns that are NULL are not known.';
REVOKE ALL ON FUNCTION aidb_internal.compare_hint(jsonb, text[]) FROM PUBLIC;

-- Which classes a tool may be given: read is a promise that only a proof, or governance for a remote tool, can make.
CREATE OR REPLACE FUNCTION aidb_internal.risk_problem(risk text, read_only boolean)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN $1 NOT IN ('read', 'safe', 'confirm', 'forbidden') THEN
            format('Invalid parameters: risk %s is not one of read, safe, confirm, forbidden', aidb_internal.quoted($1))
        WHEN $1 = 'read' AND NOT $2 THEN 'Invalid parameters: a tool that writes cannot have risk read'
    END
$$;
COMMENT ON FUNCTION aidb_internal.risk_problem(text, boolean) IS
    'What is wrong with a risk class for such a tool, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.risk_problem(text, boolean) FROM PUBLIC;

-- A statement beside the tool's own (its preview, its undo) as {statement, names}; NULL for none. It is parsed only.
CREATE OR REPLACE FUNCTION aidb_internal.companion(what text, sql text, params jsonb, types text[], further text[])
RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found record;
    declared text[] := ARRAY(SELECT e ->> 'name' FROM jsonb_array_elements(params) WITH ORDINALITY AS x (e, n) ORDER BY n);
    unknown text;
BEGIN
    IF sql IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT * INTO found FROM aidb_internal.placeholders(sql);
    SELECT u INTO unknown FROM unnest(found.names) u WHERE u <> ALL (declared) AND u <> ALL (further) LIMIT 1;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'parameter % is used in % but not declared', aidb_internal.quoted(unknown), what USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM aidb_internal.check_tool_statement(found.statement,
        ARRAY(SELECT coalesce(types[array_position(declared, u)], 'jsonb') FROM unnest(found.names) WITH ORDINALITY AS x (u, n) ORDER BY n), false);
    RETURN jsonb_build_object('statement', found.statement, 'names', found.names);
END
$$;
COMMENT ON FUNCTION aidb_internal.companion(text, text, jsonb, text[], text[]) IS
    'A preview or undo statement with numbered parameters, and the names that the numbers stand for.';
REVOKE ALL ON FUNCTION aidb_internal.companion(text, text, jsonb, text[], text[]) FROM PUBLIC;

-- A row of aidb_internal.sql_tools from what is given; everything that can be wrong is wrong here.
CREATE OR REPLACE FUNCTION aidb_internal.make_sql_tool(
    name text, description text, sql_statement text, params jsonb, read_only boolean, return_type_hint jsonb,
    timeout_ms integer, max_rows integer, risk text, preview_statement text, undo_statement text, approver text,
    allow_mismatch boolean)
RETURNS aidb_internal.sql_tools
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    t aidb_internal.sql_tools;
    found record;
    returned text[];
    problem text := aidb_internal.name_problem('tool name', name);
BEGIN
    IF problem IS NULL AND name !~ '^[A-Za-z_][A-Za-z0-9_.-]*$' THEN
        problem := format('Invalid parameters: tool name %s must be letters, digits, underscores, hyphens and dots', aidb_internal.quoted(name));
    ELSIF problem IS NULL AND octet_length(name) > 64 THEN
        problem := 'Invalid parameters: tool name must not be longer than 64 bytes';
    ELSIF problem IS NULL AND sql_statement IS NULL THEN
        problem := 'Invalid parameters: the statement must not be null';
    ELSIF problem IS NULL AND (timeout_ms <= 0 OR max_rows <= 0) THEN
        problem := 'Invalid parameters: timeout_ms and max_rows must be greater than zero';
    ELSIF problem IS NULL AND return_type_hint IS NOT NULL AND (jsonb_typeof(return_type_hint) <> 'array' OR EXISTS (
              SELECT FROM jsonb_array_elements(CASE jsonb_typeof(return_type_hint) WHEN 'array' THEN return_type_hint ELSE '[]' END) h
              WHERE jsonb_typeof(h -> 'name') IS DISTINCT FROM 'string' OR jsonb_typeof(h -> 'type') IS DISTINCT FROM 'string')) THEN
        problem := 'Invalid parameters: return_type_hint must be an array made by aidb.tool_params()';
    END IF;
    problem := coalesce(problem, aidb_internal.risk_problem(risk, coalesce(read_only, true)),
        CASE WHEN approver IS NOT NULL AND aidb_internal.is_blank(approver) THEN 'Invalid parameters: approver must not be empty' END,
        CASE WHEN undo_statement <> '' AND coalesce(read_only, true) THEN 'Invalid parameters: a tool that only reads has nothing to undo' END);
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO found FROM aidb_internal.placeholders(sql_statement);
    t.name := name;
    t.description := coalesce(description, '');
    t.query_text := found.source;
    t.statement := found.statement;
    t.params := aidb_internal.tool_parameters(params, found.names);
    t.read_only := coalesce(read_only, true);
    SELECT c.types, c.columns INTO t.types, returned FROM aidb_internal.check_tool_statement(found.statement,
        ARRAY(SELECT e ->> 'type' FROM jsonb_array_elements(t.params) WITH ORDINALITY AS x (e, n) ORDER BY n), t.read_only) c;
    t.params := coalesce((SELECT jsonb_agg(p || aidb_internal.tool_type(t.types[n]) ORDER BY n)
                          FROM jsonb_array_elements(t.params) WITH ORDINALITY AS x (p, n)), '[]');
    PERFORM aidb_internal.check_tool_values(p, t.types[n]) FROM jsonb_array_elements(t.params) WITH ORDINALITY AS x (p, n);
    t.return_type_hint := return_type_hint;
    PERFORM aidb_internal.compare_hint(return_type_hint, returned);
    t.timeout_ms := timeout_ms;
    t.max_rows := max_rows;
    t.risk := risk;
    t.approver := approver;
    t.allow_mismatch := coalesce(allow_mismatch, false);
    t.preview_text := nullif(preview_statement, '');
    t.preview := aidb_internal.companion('preview_statement', t.preview_text, t.params, t.types, '{}');
    t.undo_text := nullif(undo_statement, '');
    t.undo := aidb_internal.companion('undo_statement', t.undo_text, t.params, t.types, '{result}');
    IF found.ignored IS NOT NULL THEN
        RAISE WARNING 'placeholders inside a literal or a comment are not replaced: %', found.ignored;
    END IF;
    RETURN t;
END
$$;
COMMENT ON FUNCTION aidb_internal.make_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) IS
    'Checks what makes a SQL tool and returns its row.';
REVOKE ALL ON FUNCTION aidb_internal.make_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.create_sql_tool(
    name text, description text, sql_statement text, params jsonb, read_only boolean, return_type_hint jsonb,
    timeout_ms integer, max_rows integer, risk text, preview_statement text, undo_statement text, approver text,
    allow_mismatch boolean)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    t aidb_internal.sql_tools := aidb_internal.make_sql_tool(name, description, sql_statement, params, read_only, return_type_hint,
        timeout_ms, max_rows, risk, preview_statement, undo_statement, approver, allow_mismatch);
BEGIN
    IF EXISTS (SELECT FROM aidb.tools x WHERE x.name = t.name) THEN
        RAISE EXCEPTION 'tool % already exists', aidb_internal.quoted(t.name) USING ERRCODE = 'duplicate_object',
            DETAIL = (SELECT CASE x.tool_type WHEN 'native_tool' THEN 'It is a native tool.' WHEN 'sql_tool' THEN 'It is a SQL tool.'
                                              ELSE 'It is a tool of an MCP server.' END FROM aidb.tools x WHERE x.name = t.name LIMIT 1);
    ELSIF EXISTS (SELECT FROM aidb_internal.mcp_servers m WHERE m.name = t.name) THEN
        RAISE EXCEPTION 'tool % already exists', aidb_internal.quoted(t.name) USING ERRCODE = 'duplicate_object',
            DETAIL = 'It is an MCP server.';
    END IF;
    t.owner := aidb_internal.caller()::regrole;
    t.created_at := clock_timestamp();
    t.updated_at := t.created_at;
    INSERT INTO aidb_internal.sql_tools SELECT t.*;
    RETURN t.name;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'tool % already exists', aidb_internal.quoted(name) USING ERRCODE = 'duplicate_object';
END
$$;
COMMENT ON FUNCTION aidb_internal.create_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) IS 'Behind aidb.create_sql_tool.';
REVOKE ALL ON FUNCTION aidb_internal.create_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.create_sql_tool(
    name text, description text, sql_statement text, params jsonb, read_only boolean DEFAULT true,
    return_type_hint jsonb DEFAULT NULL, timeout_ms integer DEFAULT NULL, max_rows integer DEFAULT NULL,
    risk text DEFAULT NULL, preview_statement text DEFAULT NULL, undo_statement text DEFAULT NULL,
    approver text DEFAULT NULL, allow_mismatch boolean DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.create_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) IS
    'Registers a statement as a tool, owned by the caller, and returns its name. sql_statement: exactly one SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE or EXPLAIN (without ANALYZE), with ${name} for each parameter: a bound value, never pasted text. params: made by aidb.tool_params; ''[]'' for none. read_only: the statement is analysed and refused, with the reason, if anything in it might write; its tables must exist. With false it is only parsed. return_type_hint: the result''s columns, shown to the model; a WARNING names those that the statement does not return (where it has read_only => false and returns *, that is not known). timeout_ms, max_rows: limits of one call below aidb.tool_timeout and aidb.max_tool_rows. risk: read, safe (runs at once), confirm (waits for a person, who sees a preview) or forbidden; a statement that was proved to read is read, for one that writes and has none aidb.unclassified_tools decides; aidb.classify_tool overrules it. preview_statement: what the person is shown, instead of the rows that the statement itself would affect; it runs read-only. undo_statement: makes aidb.undo_action possible; ${result} in it is what the statement returned, as jsonb. approver: a role of which somebody else than the requester must confirm. allow_mismatch: run although the rows are not those of the preview any more. An empty preview_statement or undo_statement is none. Privileges on what it touches are looked at when it runs. Raises 42710 when a tool of any kind has the name, 25006 when it is not read-only, 22023, 42601 and others when the statement or its parameters are wrong. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.create_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.create_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean) TO aidb_users;

-- The tool, if the caller may change it.
CREATE OR REPLACE FUNCTION aidb_internal.own_sql_tool(name text, what text)
RETURNS aidb_internal.sql_tools
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    t aidb_internal.sql_tools;
BEGIN
    SELECT * INTO t FROM aidb_internal.sql_tools s WHERE s.name = own_sql_tool.name FOR UPDATE;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM aidb_internal.native_tools n WHERE n.name = own_sql_tool.name) THEN
            RAISE EXCEPTION 'tool % is a native tool and cannot be %', aidb_internal.quoted(own_sql_tool.name), what || 'd' USING ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
        RAISE EXCEPTION 'tool % not found', aidb_internal.quoted(own_sql_tool.name) USING ERRCODE = 'undefined_object';
    END IF;
    IF NOT pg_has_role(aidb_internal.caller(), t.owner::oid, 'MEMBER') THEN
        RAISE EXCEPTION 'tool % is owned by role %; only its owner may % it', aidb_internal.quoted(t.name),
            aidb_internal.quoted(pg_get_userbyid(t.owner)::text), what USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN t;
END
$$;
COMMENT ON FUNCTION aidb_internal.own_sql_tool(text, text) IS 'The tool of that name, locked; raises when there is none or the caller does not own it.';
REVOKE ALL ON FUNCTION aidb_internal.own_sql_tool(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.update_sql_tool(
    name text, description text, sql_statement text, params jsonb, read_only boolean, return_type_hint jsonb,
    timeout_ms integer, max_rows integer, risk text, preview_statement text, undo_statement text, approver text,
    allow_mismatch boolean, reset text[])
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    old aidb_internal.sql_tools := aidb_internal.own_sql_tool(name, 'change');
    t aidb_internal.sql_tools;
    fields constant jsonb := jsonb_build_object('return_type_hint', return_type_hint, 'timeout_ms', timeout_ms, 'max_rows', max_rows, 'risk', risk,
        'preview_statement', preview_statement, 'undo_statement', undo_statement, 'approver', approver);
    problem text := aidb_internal.name_list_problem('reset', reset);
BEGIN
    problem := coalesce(problem, (
        SELECT format(CASE WHEN fields ? f.field THEN 'Invalid parameters: %s is both set and reset' ELSE 'Invalid parameters: %s cannot be reset' END,
                      aidb_internal.quoted(f.field))
        FROM unnest(reset) WITH ORDINALITY f (field, n)
        WHERE NOT fields ? f.field OR fields -> f.field <> 'null' ORDER BY f.n LIMIT 1));
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    reset := coalesce(reset, '{}');
    old.return_type_hint := CASE WHEN 'return_type_hint' <> ALL (reset) THEN old.return_type_hint END;
    old.timeout_ms := CASE WHEN 'timeout_ms' <> ALL (reset) THEN old.timeout_ms END;
    old.max_rows := CASE WHEN 'max_rows' <> ALL (reset) THEN old.max_rows END;
    old.risk := CASE WHEN 'risk' <> ALL (reset) THEN old.risk END;
    old.preview_text := CASE WHEN 'preview_statement' <> ALL (reset) THEN old.preview_text END;
    old.undo_text := CASE WHEN 'undo_statement' <> ALL (reset) THEN old.undo_text END;
    old.approver := CASE WHEN 'approver' <> ALL (reset) THEN old.approver END;
    t := aidb_internal.make_sql_tool(name, coalesce(description, old.description), coalesce(sql_statement, old.query_text),
        coalesce(params, old.params), coalesce(read_only, old.read_only), coalesce(return_type_hint, old.return_type_hint),
        coalesce(timeout_ms, old.timeout_ms), coalesce(max_rows, old.max_rows), coalesce(risk, old.risk),
        coalesce(preview_statement, old.preview_text), coalesce(undo_statement, old.undo_text), coalesce(approver, old.approver),
        coalesce(allow_mismatch, old.allow_mismatch));
    UPDATE aidb_internal.sql_tools s SET
        description = t.description, query_text = t.query_text, statement = t.statement, types = t.types, params = t.params,
        read_only = t.read_only, return_type_hint = t.return_type_hint, timeout_ms = t.timeout_ms, max_rows = t.max_rows,
        risk = t.risk, preview_text = t.preview_text, preview = t.preview, undo_text = t.undo_text, undo = t.undo,
        approver = t.approver, allow_mismatch = t.allow_mismatch,
        updated_at = clock_timestamp()
    WHERE s.name = t.name;
    PERFORM aidb_internal.forget_class(t.name);
    RETURN t.name;
END
$$;
COMMENT ON FUNCTION aidb_internal.update_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean, text[]) IS 'Behind aidb.update_sql_tool.';
REVOKE ALL ON FUNCTION aidb_internal.update_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean, text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.update_sql_tool(
    name text, description text DEFAULT NULL, sql_statement text DEFAULT NULL, params jsonb DEFAULT NULL,
    read_only boolean DEFAULT NULL, return_type_hint jsonb DEFAULT NULL, timeout_ms integer DEFAULT NULL,
    max_rows integer DEFAULT NULL, risk text DEFAULT NULL, preview_statement text DEFAULT NULL,
    undo_statement text DEFAULT NULL, approver text DEFAULT NULL, allow_mismatch boolean DEFAULT NULL,
    reset text[] DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.update_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean, text[]) IS
    'Changes a SQL tool; NULL leaves a field as it is. reset names fields that are to be none again: return_type_hint, timeout_ms, max_rows, risk, preview_statement, undo_statement, approver. The whole is checked as by aidb.create_sql_tool. Takes effect with the next call of the tool, voids the actions with it that wait for a person, and takes away the class safe or read that aidb.classify_tool gave it. Raises 42704 when there is no such tool, 42501 when the caller is not its owner, and 22023 for a field that cannot be reset or is set as well. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.update_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.update_sql_tool(text, text, text, jsonb, boolean, jsonb, integer, integer, text, text, text, text, boolean, text[]) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.delete_tool(name text)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    gone text[];
    server text;
    holders text;
BEGIN
    IF EXISTS (SELECT FROM aidb_internal.mcp_servers m WHERE m.name = delete_tool.name) THEN
        PERFORM aidb_internal.own_mcp_server(name, 'delete');
        gone := ARRAY(SELECT t.name FROM aidb_internal.mcp_tools t WHERE t.server = delete_tool.name);
        DELETE FROM aidb_internal.mcp_servers m WHERE m.name = delete_tool.name;
        DELETE FROM aidb_internal.mcp_tools t WHERE t.server = delete_tool.name;
        PERFORM aidb_internal.forget_class(g) FROM unnest(gone) g;
    ELSE
        SELECT t.server INTO server FROM aidb_internal.mcp_tools t WHERE t.name = delete_tool.name AND t.listed;
        IF FOUND AND NOT EXISTS (SELECT FROM aidb_internal.sql_tools s WHERE s.name = delete_tool.name) THEN
            RAISE EXCEPTION 'tool % belongs to MCP server % and cannot be deleted alone', aidb_internal.quoted(name), aidb_internal.quoted(server)
                USING ERRCODE = 'object_not_in_prerequisite_state',
                      HINT = 'Leave it out of the tool_filter with aidb.update_mcp_server, or delete the server.';
        END IF;
        PERFORM aidb_internal.own_sql_tool(name, 'delete');
        DELETE FROM aidb_internal.sql_tools s WHERE s.name = delete_tool.name;
        PERFORM aidb_internal.forget_class(name);
        gone := ARRAY[name];
    END IF;
    SELECT string_agg(aidb_internal.quoted(a.name), ', ' ORDER BY a.name) INTO holders
    FROM aidb_internal.agents a WHERE gone && a.tools;
    IF holders IS NOT NULL THEN
        RAISE NOTICE 'agents that list it go on without it: %', holders;
    END IF;
    RETURN name;
END
$$;
COMMENT ON FUNCTION aidb_internal.delete_tool(text) IS 'Behind aidb.delete_tool.';
REVOKE ALL ON FUNCTION aidb_internal.delete_tool(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.delete_tool(name text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.delete_tool(text) IS
    'Removes a SQL tool, or an MCP server with all of its tools, and returns the name. Agents that list a tool that is gone go on without it. Raises 42704 when there is no such tool or server, 55000 for a native tool and a single tool of an MCP server, and 42501 when the caller is not the owner. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.delete_tool(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.delete_tool(text) TO aidb_users;

CREATE OR REPLACE VIEW aidb.sql_tool_registry AS
SELECT
    t.name,
    t.description,
    t.query_text,
    t.read_only,
    ARRAY(SELECT ROW(p ->> 'name', p ->> 'type', p ->> 'description', NULL)::aidb.ToolParam
          FROM jsonb_array_elements(coalesce(t.return_type_hint, '[]')) WITH ORDINALITY AS x (p, n) ORDER BY n) AS return_type_hint,
    ARRAY(SELECT ROW(p ->> 'name', p ->> 'type', p ->> 'description',
                     CASE WHEN p ? 'enum' THEN ARRAY(SELECT jsonb_array_elements_text(p -> 'enum')) END)::aidb.ToolParam
          FROM jsonb_array_elements(t.params) WITH ORDINALITY AS x (p, n) ORDER BY n) AS params,
    t.created_at::timestamp AS created_at,
    t.updated_at::timestamp AS updated_at,
    pg_get_userbyid(t.owner)::text AS owner,
    t.timeout_ms,
    t.max_rows,
    t.risk,
    t.preview_text AS preview_statement,
    t.undo_text AS undo_statement,
    t.approver,
    t.allow_mismatch
FROM aidb_internal.sql_tools t;
COMMENT ON VIEW aidb.sql_tool_registry IS
    'Registered SQL tools. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.sql_tool_registry.risk IS 'What its owner says; aidb.tools has the class that holds.';
COMMENT ON COLUMN aidb.sql_tool_registry.query_text IS 'The statement as registered, with ${name} for parameters.';
REVOKE ALL ON aidb.sql_tool_registry FROM PUBLIC;
GRANT SELECT ON aidb.sql_tool_registry TO aidb_users, aidb_auditor;
