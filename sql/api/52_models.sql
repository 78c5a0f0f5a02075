-- Registering models. These functions raise. A failed registration leaves nothing behind.

-- Implemented in Go: sends the smallest request the provider answers, and returns what the model can do.
CREATE OR REPLACE FUNCTION aidb_internal.probe_model(name text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb_internal.probe_model(text) IS
    'Asks a registered model for a minimal answer. Returns its capability (language); raises when it does not answer.';
REVOKE ALL ON FUNCTION aidb_internal.probe_model(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.create_model(
    name text,
    provider character varying,
    config jsonb,
    credentials jsonb,
    replace_credentials boolean,
    validate boolean,
    credentials_env text,
    credentials_k8s_secret text
)
RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    source text := 'none';
    problem text := aidb_internal.name_problem('model name', name);
    probe_text text;
    probe_state text;
    probe_detail text;
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM aidb_internal.providers p WHERE p.name = create_model.provider) THEN
        RAISE EXCEPTION 'Model provider with name "%" not found', left(provider, 200)
            USING ERRCODE = 'undefined_object', HINT = 'The view aidb.model_providers lists them.';
    END IF;

    credentials := nullif(nullif(credentials, '{}'), 'null');
    IF (credentials IS NOT NULL)::integer + (credentials_env IS NOT NULL)::integer + (credentials_k8s_secret IS NOT NULL)::integer > 1 THEN
        RAISE EXCEPTION 'Only one of "credentials", "credentials_env", "credentials_k8s_secret" may be provided'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF credentials IS NOT NULL THEN
        PERFORM aidb_internal.check_credentials(credentials);
        source := 'stored';
    ELSIF credentials_env IS NOT NULL THEN
        PERFORM aidb_internal.check_credentials_env(credentials_env);
        source := 'environment';
    ELSIF credentials_k8s_secret IS NOT NULL THEN
        PERFORM aidb_internal.check_credentials_file(credentials_k8s_secret);
        source := 'file';
    END IF;
    config := coalesce(config, '{}');
    PERFORM aidb_internal.check_model_config(provider, config);

    INSERT INTO aidb_internal.models (name, provider, config, credential_source, credentials_env, credentials_file, owner)
    VALUES (name, provider, config, source, credentials_env, credentials_k8s_secret, aidb_internal.caller_oid())
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'model % already exists', aidb_internal.quoted(name)
            USING ERRCODE = 'duplicate_object', HINT = 'Use aidb.delete_model first to register it anew.';
    END IF;
    IF source = 'stored' THEN
        INSERT INTO aidb_internal.model_credentials (model, credentials) VALUES (name, credentials);
    END IF;

    IF validate IS NOT FALSE THEN
        BEGIN
            PERFORM aidb_internal.probe_model(name);
        EXCEPTION WHEN OTHERS THEN
            -- A cancelled statement is not among OTHERS: it ends the call as it should.
            GET STACKED DIAGNOSTICS probe_text = MESSAGE_TEXT, probe_state = RETURNED_SQLSTATE, probe_detail = PG_EXCEPTION_DETAIL;
            IF probe_detail = '' THEN
                RAISE EXCEPTION 'Failed to create model: %', probe_text
                    USING ERRCODE = probe_state, HINT = 'Use validate => false to register it without asking it.';
            END IF;
            RAISE EXCEPTION 'Failed to create model: %', probe_text
                USING ERRCODE = probe_state, DETAIL = probe_detail, HINT = 'Use validate => false to register it without asking it.';
        END;
    END IF;
    RETURN name;
END
$$;
COMMENT ON FUNCTION aidb_internal.create_model(text, character varying, jsonb, jsonb, boolean, boolean, text, text) IS
    'Behind aidb.create_model.';
REVOKE ALL ON FUNCTION aidb_internal.create_model(text, character varying, jsonb, jsonb, boolean, boolean, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.create_model(
    name text,
    provider character varying(255),
    config jsonb DEFAULT '{}',
    credentials jsonb DEFAULT '{}',
    replace_credentials boolean DEFAULT false,
    validate boolean DEFAULT true,
    credentials_env text DEFAULT NULL,
    credentials_k8s_secret text DEFAULT NULL
)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.create_model(text, character varying, jsonb, jsonb, boolean, boolean, text, text) IS
    'Registers a model, owned by the caller, and returns its name. provider: one of aidb.model_providers. config: what the provider needs, see aidb.completions_config; it is readable by all aidb_users, and keys or passwords in it are refused. Whatever the provider, it may have context_size, the tokens that the model can be given at once, by which long conversations are compacted, and price, {"input": ..., "output": ..., "cached": ...} for a million tokens each, by which the cost of a call is counted. Plain http addresses are accepted for loopback hosts only. At most one source of credentials: credentials stores {"api_key": ...} or {"basic_auth": ...} in the database, for this model alone and outside dumps; credentials_env names an environment variable of the server and credentials_k8s_secret a file on it, read at each use and limited by aidb.env_var_allowed_prefix and aidb.k8s_secret_allowed_path_prefix. validate: ask the model for a minimal answer first (this may cost money) and register nothing when it fails. replace_credentials has no effect, since credentials are not shared between models. Raises 22023 for a wrong argument, 42501 for a forbidden source, 42704 for an unknown provider, 42710 when the name is taken, and the provider''s failure when validation fails. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.create_model(text, character varying, jsonb, jsonb, boolean, boolean, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.create_model(text, character varying, jsonb, jsonb, boolean, boolean, text, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.validate_model(name text)
RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
BEGIN
    IF NOT EXISTS (SELECT FROM aidb_internal.models m WHERE m.name = validate_model.name) THEN
        RAISE EXCEPTION 'Model not found: %', left(coalesce(name, ''), 200) USING ERRCODE = 'undefined_object';
    END IF;
    RETURN aidb_internal.probe_model(name);
END
$$;
COMMENT ON FUNCTION aidb_internal.validate_model(text) IS
    'Behind aidb.validate_model.';
REVOKE ALL ON FUNCTION aidb_internal.validate_model(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.validate_model(name text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.validate_model(text) IS
    'Asks a model for a minimal answer, which may cost money, and returns what it can do: language. Raises 42704 when there is no such model, and the provider''s failure when it does not answer. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.validate_model(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.validate_model(text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.get_model(model_name text)
RETURNS TABLE (name text, provider text, options text[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT m.name, m.provider, m.options FROM aidb.models m WHERE m.name = get_model.model_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Model not found: %', left(coalesce(get_model.model_name, ''), 200) USING ERRCODE = 'undefined_object';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.get_model(text) IS
    'Behind aidb.get_model.';
REVOKE ALL ON FUNCTION aidb_internal.get_model(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.get_model(model_name text)
RETURNS TABLE (name text, provider text, options text[])
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.get_model(text) IS
    'One registered model, never with its credentials. Raises 42704 when there is none of that name. Stands behind the tool get_model. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.get_model(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.get_model(text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.list_models()
RETURNS TABLE (name text, provider text, options text[], functions text[])
LANGUAGE sql STABLE
AS $$ SELECT m.name, m.provider, m.options, m.functions FROM aidb.models m ORDER BY m.name $$;
COMMENT ON FUNCTION aidb_internal.list_models() IS
    'Behind aidb.list_models.';
REVOKE ALL ON FUNCTION aidb_internal.list_models() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.list_models()
RETURNS TABLE (name text, provider text, options text[], functions text[])
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.list_models() IS
    'The registered models, by name, never with their credentials. Stands behind the tool list_models. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.list_models() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.list_models() TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.list_model_providers()
RETURNS TABLE (server_name text, server_description text, server_options text[])
LANGUAGE sql STABLE
AS $$ SELECT p.name, p.description, p.options FROM aidb_internal.providers p ORDER BY p.name $$;
COMMENT ON FUNCTION aidb_internal.list_model_providers() IS
    'Behind aidb.list_model_providers.';
REVOKE ALL ON FUNCTION aidb_internal.list_model_providers() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.list_model_providers()
RETURNS TABLE (server_name text, server_description text, server_options text[])
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.list_model_providers() IS
    'The providers that aidb.create_model accepts, by name, as in aidb.model_providers. Stands behind the tool list_model_providers. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.list_model_providers() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.list_model_providers() TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.delete_model(model_name text)
RETURNS TABLE (name text, provider text, options text[])
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    owner regrole;
BEGIN
    SELECT m.owner INTO owner FROM aidb_internal.models m WHERE m.name = delete_model.model_name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Model not found: %', left(coalesce(delete_model.model_name, ''), 200) USING ERRCODE = 'undefined_object';
    ELSIF NOT aidb_internal.caller_owns(owner) THEN
        RAISE EXCEPTION 'model % is owned by role %; only its owner may delete it',
            aidb_internal.quoted(delete_model.model_name), aidb_internal.quoted(pg_get_userbyid(owner))
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY SELECT m.name, m.provider, m.options FROM aidb.models m WHERE m.name = delete_model.model_name;
    DELETE FROM aidb_internal.models m WHERE m.name = delete_model.model_name;
END
$$;
COMMENT ON FUNCTION aidb_internal.delete_model(text) IS
    'Behind aidb.delete_model.';
REVOKE ALL ON FUNCTION aidb_internal.delete_model(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.delete_model(model_name text)
RETURNS TABLE (name text, provider text, options text[])
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.delete_model(text) IS
    'Deletes a model with its stored credentials and returns what it was. Agents that use it fail at their next call. Raises 42704 when there is none of that name and 42501 when it belongs to somebody else. Privileges: aidb_users; only the owner, members of the owner and superusers may delete a model.';
REVOKE ALL ON FUNCTION aidb.delete_model(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.delete_model(text) TO aidb_users;

