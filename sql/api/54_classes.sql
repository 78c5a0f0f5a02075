-- Risk classes. Governance says of any tool, native or remote too, how far it may go.

CREATE OR REPLACE FUNCTION aidb_internal.classify_tool(name text, risk text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    t record;
    problem text;
BEGIN
    SELECT x.name, x.tool_type, x.read_only INTO t FROM aidb.tools x WHERE x.name = classify_tool.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'tool % not found', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
    END IF;
    -- Nothing here can see what a remote tool does: whoever governs may know.
    problem := aidb_internal.risk_problem(risk, t.read_only OR t.tool_type = 'mcp_tool');
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF risk IS NULL THEN
        DELETE FROM aidb_internal.tool_classes c WHERE c.tool = t.name;
        RETURN;
    END IF;
    INSERT INTO aidb_internal.tool_classes AS c (tool, risk, classified_by)
    VALUES (t.name, risk, aidb_internal.caller())
    ON CONFLICT ON CONSTRAINT tool_classes_pkey DO UPDATE SET
        risk = excluded.risk, classified_by = excluded.classified_by, classified_at = clock_timestamp();
END
$$;
COMMENT ON FUNCTION aidb_internal.classify_tool(text, text) IS 'Behind aidb.classify_tool.';
REVOKE ALL ON FUNCTION aidb_internal.classify_tool(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.classify_tool(name text, risk text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.classify_tool(text, text) IS
    'Gives a tool of aidb.tools a risk class, which overrules what its owner or the extension says: read, safe (runs at once), confirm (waits for a person) or forbidden (for every agent); NULL takes the class away again. Takes effect with the next call of the tool. read is for tools that only read. A class of safe or read is forgotten when the tool is changed or deleted; confirm and forbidden stay with its name. Raises 42704 when there is no such tool, 22023 when risk is none of these, and 42501 inside a tool call. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.classify_tool(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.classify_tool(text, text) TO aidb_governance;

-- What was judged harmless was the tool as it was.
CREATE OR REPLACE FUNCTION aidb_internal.forget_class(name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM aidb_internal.tool_classes c WHERE c.tool = forget_class.name AND c.risk IN ('read', 'safe');
    IF FOUND THEN
        RAISE NOTICE 'tool % is not classified any more', aidb_internal.quoted(forget_class.name)
            USING HINT = 'It was judged as it was before: an administrator classifies it again with aidb.classify_tool.';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.forget_class(text) IS
    'Takes away the class of a tool that was changed, when it is one that lets it run.';
REVOKE ALL ON FUNCTION aidb_internal.forget_class(text) FROM PUBLIC;
