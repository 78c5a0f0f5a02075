-- Models: where they are, how they are asked, and where their secret comes from. The secret itself is in a table of its
-- own, which nobody is granted anything on.
CREATE TABLE aidb_internal.models (
    name text NOT NULL,
    provider text NOT NULL,
    config jsonb NOT NULL DEFAULT '{}',
    -- where the secret comes from: none, stored, environment or file
    credential_source text NOT NULL DEFAULT 'none',
    credentials_env text,
    credentials_file text,
    owner regrole NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT models_pkey PRIMARY KEY (name),
    CONSTRAINT models_credential_source_check CHECK (
        CASE credential_source
            WHEN 'environment' THEN credentials_env IS NOT NULL AND credentials_file IS NULL
            WHEN 'file' THEN credentials_file IS NOT NULL AND credentials_env IS NULL
            ELSE credential_source IN ('none', 'stored') AND credentials_env IS NULL AND credentials_file IS NULL
        END
    )
);
COMMENT ON TABLE aidb_internal.models IS
    'Registered models. Read it through aidb.models; write it through aidb.create_model and delete_model. Never holds a secret.';
COMMENT ON COLUMN aidb_internal.models.credential_source IS
    'none, stored (aidb_internal.model_credentials), environment (the variable named in credentials_env) or file (the path in credentials_file). After a restore from a dump a model may say stored without having a row there.';
REVOKE ALL ON aidb_internal.models FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.models', '');

-- Not in pg_extension_config_dump: a dump is copied to places where a key must not be. After a restore the models that
-- had a stored secret say so when they are used, and are registered again.
-- No CHECK and no NOT NULL beyond the key, because the message of a violated constraint prints the whole row.
CREATE TABLE aidb_internal.model_credentials (
    model text NOT NULL,
    credentials jsonb,
    CONSTRAINT model_credentials_pkey PRIMARY KEY (model),
    CONSTRAINT model_credentials_model_fkey FOREIGN KEY (model) REFERENCES aidb_internal.models (name) ON DELETE CASCADE
);
COMMENT ON TABLE aidb_internal.model_credentials IS
    'Secrets given to aidb.create_model, as {"api_key": ...} or {"basic_auth": ...}. Readable by superusers only, returned by no function or view, and not part of a dump. Prefer credentials_env or credentials_k8s_secret, which keep the secret out of the database.';
REVOKE ALL ON aidb_internal.model_credentials FROM PUBLIC;

