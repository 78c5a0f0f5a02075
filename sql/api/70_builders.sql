-- Builders: they put arguments into the JSON that other functions take, and leave out what is NULL. They check nothing;
-- whoever takes the JSON does. The bodies are of the RETURN form, bound to what they name when they are created, so that
-- no search_path can change what they mean.

CREATE OR REPLACE FUNCTION aidb.completions_config(
    model text,
    api_key text DEFAULT NULL,
    basic_auth text DEFAULT NULL,
    url text DEFAULT NULL,
    max_concurrent_requests integer DEFAULT NULL,
    max_tokens jsonb DEFAULT NULL,
    is_hcp_model boolean DEFAULT NULL,
    system_prompt text DEFAULT NULL,
    temperature double precision DEFAULT NULL,
    top_p double precision DEFAULT NULL,
    seed bigint DEFAULT NULL,
    thinking boolean DEFAULT NULL,
    extra_args jsonb DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'model', model, 'api_key', api_key, 'basic_auth', basic_auth, 'url', url,
        'max_concurrent_requests', max_concurrent_requests, 'max_tokens', max_tokens, 'is_hcp_model', is_hcp_model,
        'system_prompt', system_prompt, 'temperature', temperature, 'top_p', top_p, 'seed', seed, 'thinking', thinking))
    || CASE WHEN extra_args IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('extra_args', extra_args) END;
COMMENT ON FUNCTION aidb.completions_config(text, text, text, text, integer, jsonb, boolean, text, double precision, double precision, bigint, boolean, jsonb) IS
    'Config of an openai_completions model for aidb.create_model. model: the provider''s name of the model. url: base such as http://127.0.0.1:8000/v1, or the whole address ending in /chat/completions; OpenAI''s when NULL. max_tokens: made by aidb.max_tokens_config. thinking: false off, true on, NULL the model''s default. extra_args: further members of each request, as they are. api_key and basic_auth are kept for compatibility: create_model refuses a config that holds them. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.completions_config(text, text, text, text, integer, jsonb, boolean, text, double precision, double precision, bigint, boolean, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.completions_config(text, text, text, text, integer, jsonb, boolean, text, double precision, double precision, bigint, boolean, jsonb) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.max_tokens_config(size integer, format text DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object('size', size, 'format', format));
COMMENT ON FUNCTION aidb.max_tokens_config(integer, text) IS
    'The max_tokens of aidb.completions_config. size: most tokens of an answer. format: which member carries it: default (max_completion_tokens), legacy (max_tokens) or both. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.max_tokens_config(integer, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.max_tokens_config(integer, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.inference_config(
    system_prompt text DEFAULT NULL,
    temperature double precision DEFAULT NULL,
    max_tokens integer DEFAULT NULL,
    top_p double precision DEFAULT NULL,
    seed bigint DEFAULT NULL,
    repeat_penalty real DEFAULT NULL,
    repeat_last_n integer DEFAULT NULL,
    thinking boolean DEFAULT NULL,
    extra_args jsonb DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'system_prompt', system_prompt, 'temperature', temperature, 'max_tokens', max_tokens, 'top_p', top_p,
        'seed', seed, 'repeat_penalty', repeat_penalty, 'repeat_last_n', repeat_last_n, 'thinking', thinking))
    || CASE WHEN extra_args IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('extra_args', extra_args) END;
COMMENT ON FUNCTION aidb.inference_config(text, double precision, integer, double precision, bigint, real, integer, boolean, jsonb) IS
    'Options of one call of aidb.generate_text (cast it to json there). What is NULL comes from the model''s config. extra_args: further members of the request, as they are. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.inference_config(text, double precision, integer, double precision, bigint, real, integer, boolean, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.inference_config(text, double precision, integer, double precision, bigint, real, integer, boolean, jsonb) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.output_field(name text, field_type text, description text DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object('name', name, 'type', field_type, 'description', description));
COMMENT ON FUNCTION aidb.output_field(text, text, text) IS
    'One field of a structured answer, for aidb.output_type. field_type: an SQL type name or one of the words string, float, number, list, array, object, any; TYPE[] is an array of it. Dates and other types without a JSON type are strings; a type that is not known is told to the model and not enforced. description: what the field is, for the model. The result may be completed by hand: || ''{"required": false}'' makes the field optional, "enum": [...] lists the values allowed, and "fields": [...] gives an object, or an array of objects, fields of its own. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.output_field(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.output_field(text, text, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.output_type(VARIADIC fields jsonb[])
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_build_object('fields', coalesce(to_jsonb(fields), '[]'::jsonb));
COMMENT ON FUNCTION aidb.output_type(jsonb[]) IS
    'The shape of a structured answer: an object with these fields, made by aidb.output_field, and no others; for the output_type of aidb.create_agent, update_agent and agent_converse. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.output_type(jsonb[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.output_type(jsonb[]) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.param(name text, param_type text, description text DEFAULT NULL, enum_values text[] DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object('name', name, 'type', param_type, 'description', description, 'enum', enum_values));
COMMENT ON FUNCTION aidb.param(text, text, text, text[]) IS
    'One parameter of a tool, for aidb.params. enum_values: the only values allowed. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.param(text, text, text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.param(text, text, text, text[]) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.params(VARIADIC params jsonb[] DEFAULT '{}')
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(to_jsonb(params), '[]'::jsonb);
COMMENT ON FUNCTION aidb.params(jsonb[]) IS
    'A list of parameters made by aidb.param; none gives []. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.params(jsonb[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.params(jsonb[]) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.tool_param(
    name text, type text, description text, required boolean DEFAULT NULL, default_value jsonb DEFAULT NULL,
    enum_values text[] DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_build_object('name', name, 'type', type, 'description', description)
    || CASE WHEN required IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('required', required) END
    || CASE WHEN default_value IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('default', default_value) END
    || CASE WHEN enum_values IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('enum', to_jsonb(enum_values)) END;
COMMENT ON FUNCTION aidb.tool_param(text, text, text, boolean, jsonb, text[]) IS
    'One parameter of a tool, for aidb.tool_params. type: an SQL type name. required: true unless there is a default. default_value: the value when the argument is not given; without one it is NULL. enum_values: the texts allowed. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.tool_param(text, text, text, boolean, jsonb, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.tool_param(text, text, text, boolean, jsonb, text[]) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.tool_params(VARIADIC params jsonb[] DEFAULT '{}')
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(to_jsonb(params), '[]'::jsonb);
COMMENT ON FUNCTION aidb.tool_params(jsonb[]) IS
    'A list of parameters made by aidb.tool_param; none gives []. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.tool_params(jsonb[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.tool_params(jsonb[]) TO aidb_users;

