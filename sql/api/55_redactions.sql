-- Registering what is a secret. See extension/internal/redact for what counts as one without being registered.

CREATE OR REPLACE VIEW aidb.redactions AS
SELECT r.name, r.column_name, r.pattern, r.created_by, r.created_at
FROM aidb_internal.redactions r;
COMMENT ON VIEW aidb.redactions IS
    'Registered columns and patterns whose values are redacted. Privileges: SELECT for aidb_governance and aidb_auditor.';
COMMENT ON COLUMN aidb.redactions.column_name IS 'Members of that name in JSON are redacted, as columns are in results; NULL: it is a pattern.';
COMMENT ON COLUMN aidb.redactions.pattern IS 'A regular expression (RE2 syntax); what it matches is redacted.';
REVOKE ALL ON aidb.redactions FROM PUBLIC;
GRANT SELECT ON aidb.redactions TO aidb_governance, aidb_auditor;

-- Implemented in Go, which is what will use the pattern.
CREATE OR REPLACE FUNCTION aidb_internal.check_pattern(pattern text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb_internal.check_pattern(text) IS
    'What is wrong with a pattern, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.check_pattern(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.add_redaction(name text, column_name text, pattern text)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    problem text := aidb_internal.name_problem('redaction name', name);
BEGIN
    IF problem IS NULL AND (column_name IS NULL) = (pattern IS NULL) THEN
        problem := 'Invalid parameters: give either column_name or pattern';
    ELSIF problem IS NULL AND column_name IS NOT NULL THEN
        problem := aidb_internal.name_problem('column_name', column_name);
    ELSIF problem IS NULL THEN
        problem := aidb_internal.check_pattern(pattern);
        IF problem IS NOT NULL THEN
            problem := 'Invalid parameters: pattern cannot be used: ' || problem;
        END IF;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    ELSIF (SELECT count(*) >= 200 FROM aidb_internal.redactions r WHERE r.name <> add_redaction.name) THEN
        RAISE EXCEPTION 'not more than 200 redactions can be registered' USING ERRCODE = 'configuration_limit_exceeded';
    END IF;
    INSERT INTO aidb_internal.redactions (name, column_name, pattern, created_by)
    VALUES (name, column_name, pattern, aidb_internal.caller())
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'redaction % already exists', aidb_internal.quoted(name) USING ERRCODE = 'duplicate_object';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.add_redaction(text, text, text) IS
    'Behind aidb.add_redaction.';
REVOKE ALL ON FUNCTION aidb_internal.add_redaction(text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.add_redaction(name text, column_name text DEFAULT NULL, pattern text DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.add_redaction(text, text, text) IS
    'Registers what is a secret beside what has the structure of one. column_name: the values of members of that name in JSON, as columns are in the results of tools (an alias has another name, so grant columns that must not be read, or not). pattern: a regular expression in RE2 syntax. From the next call on it is taken out of the log, debug lines, errors, decisions and traces; the model and the caller still get it, and rows that are written already stay as they are. Raises 22023 for a wrong argument, 42710 when the name is taken. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.add_redaction(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.add_redaction(text, text, text) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.remove_redaction(name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    DELETE FROM aidb_internal.redactions r WHERE r.name = remove_redaction.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'redaction % not found', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.remove_redaction(text) IS
    'Behind aidb.remove_redaction.';
REVOKE ALL ON FUNCTION aidb_internal.remove_redaction(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.remove_redaction(name text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.remove_redaction(text) IS
    'Forgets a registered redaction. Raises 42704 when there is none of that name. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.remove_redaction(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.remove_redaction(text) TO aidb_governance;

