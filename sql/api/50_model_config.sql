-- What a model's config may hold. A key that is not known is refused by name, because a misspelt one would be ignored in
-- silence, and whatever has the shape of a secret is refused because the config is for everybody to read.
--
-- Each function raises with SQLSTATE 22023. Texts name keys and types; they never repeat a value.

-- The keys of a JSON object and what each must be: 'string', 'number', 'boolean', 'object', 'array', 'integer', 'count' (a
-- whole number greater than zero) or 'any'. JSON null counts as absent, as the builders leave it out.
CREATE OR REPLACE FUNCTION aidb_internal.check_keys(what text, value jsonb, known jsonb)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    entry record;
    expected text;
BEGIN
    FOR entry IN SELECT e.key, e.value, jsonb_typeof(e.value) AS type FROM jsonb_each(check_keys.value) e ORDER BY e.key COLLATE "C" LOOP
        expected := known ->> entry.key;
        IF expected IS NULL THEN
            RAISE EXCEPTION '% does not have the key %', what, aidb_internal.quoted(entry.key)
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = format('Known keys: %s.', (
                          SELECT string_agg(k, ', ' ORDER BY k COLLATE "C")
                          FROM (SELECT jsonb_object_keys(known)
                                -- What check_model_config has looked at before, whatever the provider, and of one that has an address.
                                UNION SELECT unnest('{context_size,price}'::text[]) WHERE what = 'config'
                                UNION SELECT unnest('{max_concurrent_requests,requests_per_minute,tokens_per_minute,fallback}'::text[])
                                WHERE what = 'config' AND known ? 'url') x (k)));
        ELSIF entry.type = 'null' OR expected = 'any' THEN
            CONTINUE;
        ELSIF expected IN ('count', 'integer') THEN
            IF entry.type <> 'number' OR (entry.value #>> '{}')::numeric % 1 <> 0
               OR abs((entry.value #>> '{}')::numeric) > 9007199254740991
               OR (expected = 'count' AND (entry.value #>> '{}')::numeric <= 0) THEN
                RAISE EXCEPTION '% "%" must be a whole number%', what, entry.key,
                    CASE expected WHEN 'count' THEN ' greater than zero' ELSE '' END
                    USING ERRCODE = 'invalid_parameter_value';
            END IF;
        ELSIF entry.type <> expected THEN
            RAISE EXCEPTION '% "%" must be %', what, entry.key,
                CASE expected WHEN 'string' THEN 'text' WHEN 'object' THEN 'a JSON object' WHEN 'array' THEN 'a JSON array'
                              WHEN 'boolean' THEN 'true or false' ELSE 'a number' END
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_keys(text, jsonb, jsonb) IS
    'Raises when a JSON object has a key that is not known, or a value of another type.';
REVOKE ALL ON FUNCTION aidb_internal.check_keys(text, jsonb, jsonb) FROM PUBLIC;

-- However it is spelt: api_key, apiKey, API-KEY.
CREATE OR REPLACE FUNCTION aidb_internal.holds_secret(value jsonb)
RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    WITH RECURSIVE node (value) AS (
        SELECT $1
      UNION ALL
        SELECT child.value
        FROM node n,
             LATERAL (
                 SELECT e.value FROM jsonb_each(CASE jsonb_typeof(n.value) WHEN 'object' THEN n.value ELSE '{}' END) e
                 UNION ALL
                 SELECT e.value FROM jsonb_array_elements(CASE jsonb_typeof(n.value) WHEN 'array' THEN n.value ELSE '[]' END) e
             ) child
        WHERE jsonb_typeof(n.value) IN ('object', 'array')
    )
    SELECT EXISTS (
        SELECT
        FROM node n, jsonb_object_keys(CASE jsonb_typeof(n.value) WHEN 'object' THEN n.value ELSE '{}' END) k
        WHERE translate(lower(k), '-_ ', '') IN ('apikey', 'basicauth')
    )
$$;
COMMENT ON FUNCTION aidb_internal.holds_secret(jsonb) IS
    'Whether an object anywhere in the JSON has a key api_key or basic_auth, in any spelling.';
REVOKE ALL ON FUNCTION aidb_internal.holds_secret(jsonb) FROM PUBLIC;

-- Anything sent by plain http can be read on the way, the key first of all; a loopback address has no way.
CREATE OR REPLACE FUNCTION aidb_internal.check_url(url text)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    parts text[] := regexp_match(url, '^([a-z]+)://([^/?#[:space:]]*)[^[:space:][:cntrl:]]*$', 'i');
    host text;
BEGIN
    IF parts IS NULL OR lower(parts[1]) NOT IN ('http', 'https') THEN
        RAISE EXCEPTION 'config "url" must begin with https:// or http://' USING ERRCODE = 'invalid_parameter_value';
    ELSIF strpos(parts[2], '@') > 0 THEN
        RAISE EXCEPTION 'config "url" must not hold a user name or a password'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Pass them via the credentials, credentials_env, or credentials_k8s_secret argument, as basic_auth.';
    END IF;
    host := lower((regexp_match(parts[2], '^([[][0-9a-f:.]+[]]|[^:]+)(:[0-9]{1,5})?$', 'i'))[1]);
    IF host IS NULL THEN
        RAISE EXCEPTION 'config "url" must name a host' USING ERRCODE = 'invalid_parameter_value';
    ELSIF lower(parts[1]) = 'http'
          AND host NOT IN ('localhost', '[::1]')
          AND host !~ '^127([.](25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3}$'
          AND coalesce(nullif(current_setting('aidb.allow_insecure_egress', true), ''), 'off')::boolean IS NOT TRUE THEN
        RAISE EXCEPTION 'config "url" must use https: host % is not a loopback address', aidb_internal.quoted(host)
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'A superuser can allow plain http with the setting aidb.allow_insecure_egress.';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_url(text) IS
    'Raises when a model''s address is not https, or http to a loopback address, or holds user information.';
REVOKE ALL ON FUNCTION aidb_internal.check_url(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_openai_config(config jsonb)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    PERFORM aidb_internal.check_keys('config', config, '{
        "model": "string", "url": "string", "max_tokens": "any", "stream": "boolean", "structured_output": "boolean",
        "is_hcp_model": "boolean", "system_prompt": "string", "temperature": "number", "top_p": "number",
        "seed": "integer", "thinking": "boolean", "extra_args": "object", "tls_config": "object"}');
    IF aidb_internal.is_blank(config ->> 'model') THEN
        RAISE EXCEPTION 'config must have a "model"'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'It is the name of the model at the provider.';
    ELSIF (config ->> 'is_hcp_model')::boolean THEN
        RAISE EXCEPTION 'config "is_hcp_model" is not supported' USING ERRCODE = 'feature_not_supported';
    END IF;
    IF config ->> 'url' IS NOT NULL THEN
        PERFORM aidb_internal.check_url(config ->> 'url');
    END IF;
    IF jsonb_typeof(config -> 'max_tokens') = 'number' THEN
        PERFORM aidb_internal.check_keys('config', jsonb_build_object('max_tokens', config -> 'max_tokens'), '{"max_tokens": "count"}');
    ELSIF config ->> 'max_tokens' IS NOT NULL THEN
        IF jsonb_typeof(config -> 'max_tokens') <> 'object' THEN
            RAISE EXCEPTION 'config "max_tokens" must be a number or made by aidb.max_tokens_config()' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM aidb_internal.check_keys('config "max_tokens"', config -> 'max_tokens', '{"size": "count", "format": "string"}');
        IF config #>> '{max_tokens,size}' IS NULL THEN
            RAISE EXCEPTION 'config "max_tokens" must have a "size"' USING ERRCODE = 'invalid_parameter_value';
        ELSIF config #>> '{max_tokens,format}' NOT IN ('default', 'legacy', 'both') THEN
            RAISE EXCEPTION 'config "max_tokens" "format" must be default, legacy or both' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    IF config -> 'extra_args' ?| ARRAY['model', 'messages', 'tools', 'stream'] THEN
        RAISE EXCEPTION 'config "extra_args" must not have "model", "messages", "tools" or "stream"'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'These are filled in with each request.';
    END IF;
    IF config ->> 'tls_config' IS NOT NULL THEN
        PERFORM aidb_internal.check_keys('config "tls_config"', config -> 'tls_config',
                                         '{"insecure_skip_verify": "boolean", "ca_path": "string"}');
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_openai_config(jsonb) IS
    'Raises when a config is not one of provider openai_completions.';
REVOKE ALL ON FUNCTION aidb_internal.check_openai_config(jsonb) FROM PUBLIC;

-- A script that is only nearly right would answer something else than its author meant, so nothing is let pass.
CREATE OR REPLACE FUNCTION aidb_internal.check_dummy_config(config jsonb)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    reply record;
    call record;
    place text;
BEGIN
    PERFORM aidb_internal.check_keys('config', config, '{"responses": "array", "scope": "string"}');
    IF config ->> 'responses' IS NULL OR config -> 'responses' = '[]' THEN
        RAISE EXCEPTION 'config must have "responses", an array with at least one reply'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'For example {"responses": [{"response": "Hello world!"}]}.';
    ELSIF config ->> 'scope' NOT IN ('session', 'call') THEN
        RAISE EXCEPTION 'config "scope" must be session or call' USING ERRCODE = 'invalid_parameter_value';
    END IF;

    FOR reply IN SELECT r.value, r.number FROM jsonb_array_elements(config -> 'responses') WITH ORDINALITY r (value, number) LOOP
        place := format('config "responses" number %s', reply.number);
        IF jsonb_typeof(reply.value) <> 'object' THEN
            RAISE EXCEPTION '% must be a JSON object', place USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM aidb_internal.check_keys(place, reply.value, '{
            "response": "string", "tool_calls": "array", "tokens_in": "integer", "tokens_out": "integer", "error": "string"}');
        IF coalesce(reply.value ->> 'response', reply.value ->> 'tool_calls', reply.value ->> 'error') IS NULL THEN
            RAISE EXCEPTION '% must have a "response", "tool_calls" or an "error"', place USING ERRCODE = 'invalid_parameter_value';
        ELSIF (reply.value ->> 'tokens_in')::numeric < 0 OR (reply.value ->> 'tokens_out')::numeric < 0 THEN
            RAISE EXCEPTION '% must not have a negative number of tokens', place USING ERRCODE = 'invalid_parameter_value';
        END IF;
        CONTINUE WHEN reply.value ->> 'tool_calls' IS NULL;
        FOR call IN SELECT c.value, c.number FROM jsonb_array_elements(reply.value -> 'tool_calls') WITH ORDINALITY c (value, number) LOOP
            IF jsonb_typeof(call.value) <> 'object' THEN
                RAISE EXCEPTION '% call number % must be a JSON object', place, call.number USING ERRCODE = 'invalid_parameter_value';
            END IF;
            PERFORM aidb_internal.check_keys(format('%s call number %s', place, call.number), call.value,
                                             '{"name": "string", "arguments": "object"}');
            IF aidb_internal.is_blank(call.value ->> 'name') THEN
                RAISE EXCEPTION '% call number % must have a "name"', place, call.number USING ERRCODE = 'invalid_parameter_value';
            END IF;
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_dummy_config(jsonb) IS
    'Raises when a config is not a script of provider dummy.';
REVOKE ALL ON FUNCTION aidb_internal.check_dummy_config(jsonb) FROM PUBLIC;

-- Whose the conversation is, is looked at when the model is used: by then it may be another's.
CREATE OR REPLACE FUNCTION aidb_internal.check_replay_config(config jsonb)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    PERFORM aidb_internal.check_keys('config', config, '{"conversation_id": "string"}');
    IF config ->> 'conversation_id' IS NULL OR aidb_internal.to_uuid(config ->> 'conversation_id') IS NULL THEN
        RAISE EXCEPTION 'config must have a "conversation_id", the uuid of the conversation to replay' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_replay_config(jsonb) IS
    'Raises when a config does not name a conversation.';
REVOKE ALL ON FUNCTION aidb_internal.check_replay_config(jsonb) FROM PUBLIC;

-- What is known of a model whoever provides it.
CREATE OR REPLACE FUNCTION aidb_internal.check_model_facts(config jsonb)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    part record;
BEGIN
    IF config ->> 'context_size' IS NOT NULL THEN
        PERFORM aidb_internal.check_keys('config', jsonb_build_object('context_size', config -> 'context_size'), '{"context_size": "count"}');
    END IF;
    IF config ->> 'price' IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(config -> 'price') <> 'object' THEN
        RAISE EXCEPTION 'config "price" must be a JSON object'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'For example {"input": 2.5, "output": 10, "cached": 1.25}, for a million tokens each.';
    END IF;
    PERFORM aidb_internal.check_keys('config "price"', config -> 'price', '{
        "input": "number", "output": "number", "cached": "number", "currency": "string"}');
    IF config #>> '{price,input}' IS NULL OR config #>> '{price,output}' IS NULL THEN
        RAISE EXCEPTION 'config "price" must have "input" and "output"' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR part IN SELECT e.key, (e.value #>> '{}')::numeric AS amount FROM jsonb_each(config -> 'price') e WHERE jsonb_typeof(e.value) = 'number' LOOP
        IF part.amount < 0 OR part.amount > 1000000 THEN
            RAISE EXCEPTION 'config "price" "%" must be a number from 0 to 1000000', part.key USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_model_facts(jsonb) IS
    'Raises when the context size or the price in a config is not one.';
REVOKE ALL ON FUNCTION aidb_internal.check_model_facts(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_model_config(provider text, config jsonb)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF config IS NULL OR jsonb_typeof(config) <> 'object' THEN
        RAISE EXCEPTION 'config must be a JSON object' USING ERRCODE = 'invalid_parameter_value';
    ELSIF aidb_internal.holds_secret(config) THEN
        RAISE EXCEPTION 'config must not contain "api_key" or "basic_auth" -- pass them via the credentials, credentials_env, or credentials_k8s_secret argument instead'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM aidb_internal.check_model_facts(config);
    PERFORM aidb_internal.check_limits(config);
    config := config - '{context_size,price}'::text[];
    IF provider NOT IN ('dummy', 'replay') THEN
        config := config - '{max_concurrent_requests,requests_per_minute,tokens_per_minute,fallback}'::text[];
    END IF;
    CASE (SELECT p.canonical FROM aidb_internal.providers p WHERE p.name = check_model_config.provider)
        WHEN 'openai_completions' THEN PERFORM aidb_internal.check_openai_config(config);
        WHEN 'openai_responses' THEN PERFORM aidb_internal.check_hosted_config(config, 'max_output_tokens');
        WHEN 'anthropic_messages' THEN PERFORM aidb_internal.check_hosted_config(config, 'max_tokens');
        WHEN 'dummy' THEN PERFORM aidb_internal.check_dummy_config(config);
        WHEN 'replay' THEN PERFORM aidb_internal.check_replay_config(config);
    END CASE;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_model_config(text, jsonb) IS
    'Raises when a config is not acceptable for the provider.';
REVOKE ALL ON FUNCTION aidb_internal.check_model_config(text, jsonb) FROM PUBLIC;

