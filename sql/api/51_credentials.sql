-- Where a model's secret may come from. The caller chooses both the address and the secret's source, which together would
-- post any secret of the server to any host: hence the prefixes that an administrator sets. The same rules are applied
-- again each time a secret is read.
--
-- No message repeats any part of a secret, and no statement here can fail on its value.

CREATE OR REPLACE FUNCTION aidb_internal.check_credentials(credentials jsonb)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    secret text;
BEGIN
    IF jsonb_typeof(credentials) <> 'object'
       OR (SELECT count(*) FROM jsonb_object_keys(CASE jsonb_typeof(credentials) WHEN 'object' THEN credentials ELSE '{}' END)) <> 1
       OR NOT credentials ?| ARRAY['api_key', 'basic_auth'] THEN
        RAISE EXCEPTION 'credentials must be {"api_key": ...} or {"basic_auth": ...}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF jsonb_typeof(coalesce(credentials -> 'api_key', credentials -> 'basic_auth')) <> 'string' THEN
        RAISE EXCEPTION 'the secret in credentials must be text' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    secret := coalesce(credentials ->> 'api_key', credentials ->> 'basic_auth');
    IF aidb_internal.is_blank(secret) THEN
        RAISE EXCEPTION 'the secret in credentials must not be empty' USING ERRCODE = 'invalid_parameter_value';
    ELSIF secret ~ '[[:cntrl:]]' OR octet_length(secret) <> length(secret) THEN
        RAISE EXCEPTION 'the secret in credentials has characters that cannot be sent in an HTTP header'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'A line break at its end is the usual cause.';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_credentials(jsonb) IS
    'Raises when credentials are not one secret of a known kind that an HTTP header can carry.';
REVOKE ALL ON FUNCTION aidb_internal.check_credentials(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_credentials_env(name text)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    prefix text := coalesce(current_setting('aidb.env_var_allowed_prefix', true), 'AIDB_');
BEGIN
    IF name !~ '^[A-Za-z_][A-Za-z0-9_]*$' THEN
        RAISE EXCEPTION 'invalid environment variable name %', aidb_internal.quoted(name) USING ERRCODE = 'invalid_parameter_value';
    ELSIF prefix = '' OR NOT starts_with(name, prefix) THEN
        RAISE EXCEPTION 'environment variable name % does not start with the required prefix % (see the aidb.env_var_allowed_prefix GUC)',
            aidb_internal.quoted(name), aidb_internal.quoted(prefix)
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_credentials_env(text) IS
    'Raises when a model may not take its secret from this environment variable.';
REVOKE ALL ON FUNCTION aidb_internal.check_credentials_env(text) FROM PUBLIC;

-- The prefix is a folder: /run/secrets does not allow /run/secrets-of-others.
CREATE OR REPLACE FUNCTION aidb_internal.check_credentials_file(path text)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    prefix text := coalesce(current_setting('aidb.k8s_secret_allowed_path_prefix', true), '/var/run/secrets/');
BEGIN
    IF path !~ '^/' OR path ~ '[[:cntrl:]]' OR path ~ '(^|/)[.]{1,2}(/|$)' THEN
        RAISE EXCEPTION 'secret path % must be absolute and without "." or ".."', aidb_internal.quoted(path)
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF prefix = '' OR NOT starts_with(path, rtrim(prefix, '/') || '/') THEN
        RAISE EXCEPTION 'secret path % does not start with the required prefix % (see the aidb.k8s_secret_allowed_path_prefix GUC)',
            aidb_internal.quoted(path), aidb_internal.quoted(prefix)
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_credentials_file(text) IS
    'Raises when a model may not take its secret from this file.';
REVOKE ALL ON FUNCTION aidb_internal.check_credentials_file(text) FROM PUBLIC;

