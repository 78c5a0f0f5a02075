-- What counts as a secret beside what has the structure of one.
CREATE TABLE aidb_internal.redactions (
    name text NOT NULL,
    column_name text,
    pattern text,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT redactions_pkey PRIMARY KEY (name),
    CONSTRAINT redactions_kind_check CHECK ((column_name IS NULL) <> (pattern IS NULL))
);
COMMENT ON TABLE aidb_internal.redactions IS
    'Registered columns and patterns whose values are taken out of the log, debug lines, errors, decisions and traces. Read it through aidb.redactions; write it through aidb.add_redaction and remove_redaction.';
REVOKE ALL ON aidb_internal.redactions FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.redactions', '');

