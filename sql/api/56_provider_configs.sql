-- The configs of openai_responses and anthropic_messages, and the limits that any model reached over the network may have.

CREATE OR REPLACE FUNCTION aidb_internal.check_hosted_config(config jsonb, max_tokens text)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    PERFORM aidb_internal.check_keys('config', config, jsonb_build_object(
        'model', 'string', 'url', 'string', max_tokens, 'count', 'system_prompt', 'string', 'temperature', 'number',
        'top_p', 'number', 'extra_args', 'object', 'tls_config', 'object', 'stream', 'boolean'));
    IF aidb_internal.is_blank(config ->> 'model') THEN
        RAISE EXCEPTION 'config must have a "model"'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'It is the name of the model at the provider.';
    END IF;
    IF config ->> 'url' IS NOT NULL THEN
        PERFORM aidb_internal.check_url(config ->> 'url');
    END IF;
    IF config -> 'extra_args' ?| ARRAY['model', 'messages', 'input', 'tools', 'tool_choice', 'stream', 'store', 'system', 'instructions'] THEN
        RAISE EXCEPTION 'config "extra_args" must not have what is filled in with each request'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'model, messages or input, system or instructions, tools, tool_choice, stream and store are.';
    END IF;
    IF config ->> 'tls_config' IS NOT NULL THEN
        PERFORM aidb_internal.check_keys('config "tls_config"', config -> 'tls_config',
                                         '{"insecure_skip_verify": "boolean", "ca_path": "string"}');
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_hosted_config(jsonb, text) IS
    'Raises when a config is not one of openai_responses or anthropic_messages; max_tokens is the name of the bound of an answer.';
REVOKE ALL ON FUNCTION aidb_internal.check_hosted_config(jsonb, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_limits(config jsonb)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    limits jsonb := jsonb_strip_nulls(jsonb_build_object('max_concurrent_requests', config -> 'max_concurrent_requests',
        'requests_per_minute', config -> 'requests_per_minute', 'tokens_per_minute', config -> 'tokens_per_minute'));
BEGIN
    PERFORM aidb_internal.check_keys('config', limits,
        '{"max_concurrent_requests": "count", "requests_per_minute": "count", "tokens_per_minute": "count"}');
    IF (limits ->> 'max_concurrent_requests')::numeric > 1000000 OR (limits ->> 'requests_per_minute')::numeric > 1000000
       OR (limits ->> 'tokens_per_minute')::numeric > 1000000000 THEN
        RAISE EXCEPTION 'the limits in config must not be above 1000000 requests and 1000000000 tokens' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF config ->> 'fallback' IS NOT NULL
       AND (jsonb_typeof(config -> 'fallback') <> 'array' OR jsonb_array_length(config -> 'fallback') NOT BETWEEN 1 AND 5
            OR jsonb_path_exists(config, '$.fallback[*] ? (@.type() <> "string")')) THEN
        RAISE EXCEPTION 'config "fallback" must be an array of one to five model names' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_limits(jsonb) IS
    'Raises when the limits or the fallback models in a config cannot be used.';
REVOKE ALL ON FUNCTION aidb_internal.check_limits(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.openai_responses_config(
    model text,
    api_key text DEFAULT NULL,
    basic_auth text DEFAULT NULL,
    url text DEFAULT NULL,
    max_concurrent_requests integer DEFAULT NULL,
    system_prompt text DEFAULT NULL,
    temperature double precision DEFAULT NULL,
    max_output_tokens integer DEFAULT NULL,
    top_p double precision DEFAULT NULL,
    extra_args jsonb DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'model', model, 'api_key', api_key, 'basic_auth', basic_auth, 'url', url,
        'max_concurrent_requests', max_concurrent_requests, 'system_prompt', system_prompt, 'temperature', temperature,
        'max_output_tokens', max_output_tokens, 'top_p', top_p))
    || CASE WHEN extra_args IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('extra_args', extra_args) END;
COMMENT ON FUNCTION aidb.openai_responses_config(text, text, text, text, integer, text, double precision, integer, double precision, jsonb) IS
    'Config of an openai_responses model for aidb.create_model. url: base such as https://api.openai.com/v1, or the whole address ending in /responses; OpenAI''s when NULL. extra_args: further members of each request, as they are, such as {"reasoning": {"effort": "low"}}. "stream": false in the config asks for answers in one piece. api_key and basic_auth are kept for compatibility: create_model refuses a config that holds them. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.openai_responses_config(text, text, text, text, integer, text, double precision, integer, double precision, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.openai_responses_config(text, text, text, text, integer, text, double precision, integer, double precision, jsonb) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.anthropic_messages_config(
    model text,
    api_key text DEFAULT NULL,
    basic_auth text DEFAULT NULL,
    url text DEFAULT NULL,
    max_concurrent_requests integer DEFAULT NULL,
    system_prompt text DEFAULT NULL,
    temperature double precision DEFAULT NULL,
    max_tokens integer DEFAULT 4096,
    top_p double precision DEFAULT NULL,
    extra_args jsonb DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'model', model, 'api_key', api_key, 'basic_auth', basic_auth, 'url', url,
        'max_concurrent_requests', max_concurrent_requests, 'system_prompt', system_prompt, 'temperature', temperature,
        'max_tokens', max_tokens, 'top_p', top_p))
    || CASE WHEN extra_args IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('extra_args', extra_args) END;
COMMENT ON FUNCTION aidb.anthropic_messages_config(text, text, text, text, integer, text, double precision, integer, double precision, jsonb) IS
    'Config of an anthropic_messages model for aidb.create_model. url: base such as https://api.anthropic.com/v1, or the whole address ending in /messages; Anthropic''s when NULL. max_tokens: most tokens of an answer; the API wants a bound. extra_args: further members of each request, as they are, such as {"thinking": {"type": "enabled", "budget_tokens": 2000}}. "stream": false in the config asks for answers in one piece. api_key and basic_auth are kept for compatibility: create_model refuses a config that holds them. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.anthropic_messages_config(text, text, text, text, integer, text, double precision, integer, double precision, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.anthropic_messages_config(text, text, text, text, integer, text, double precision, integer, double precision, jsonb) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.model_limits(
    max_concurrent_requests integer DEFAULT NULL,
    requests_per_minute integer DEFAULT NULL,
    tokens_per_minute bigint DEFAULT NULL,
    fallback text[] DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'max_concurrent_requests', max_concurrent_requests, 'requests_per_minute', requests_per_minute,
        'tokens_per_minute', tokens_per_minute, 'fallback', to_jsonb(fallback)));
COMMENT ON FUNCTION aidb.model_limits(integer, integer, bigint, text[]) IS
    'Limits of a model that is reached over the network, to be put beside the rest of its config: aidb.completions_config(...) || aidb.model_limits(...). They hold for all sessions of the server together, for each address, model and account: requests at a time, requests and tokens (input and output) in any minute. Who is beyond one waits, within the agent''s time; so does everybody when the provider has said Retry-After to one. fallback: names of models that are asked, in this order, when this one is unreachable, out of quota or still limits the rate after its retries. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.model_limits(integer, integer, bigint, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.model_limits(integer, integer, bigint, text[]) TO aidb_users;
