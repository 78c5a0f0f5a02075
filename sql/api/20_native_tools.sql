-- The tools that come with the extension. SQL and Go share this list: aidb.tools shows it, and the loop loads from it
-- what a model is told.
--
--   function   the function a role needs EXECUTE on to use the tool
--   params     array of {name, type, description, required, default?, enum?}; type is an SQL type name
--   read_only  never writes: offered in read-only runs too
--   risk       its class until aidb.classify_tool says otherwise
--
-- Descriptions are written for the model: what the tool is for, then what it should know before it calls it.
CREATE OR REPLACE VIEW aidb_internal.native_tools (name, function, read_only, description, params, risk) AS
VALUES
    ('run_sql_query', 'aidb.run_sql_query(text)', true,
     'Runs one read-only SQL query (SELECT, VALUES, TABLE, SHOW or EXPLAIN) and returns its rows as a JSON array of objects. Large results are cut and marked as truncated: aggregate, filter or LIMIT in the query. Give every output column its own name.',
     '[{"name": "query", "type": "text", "description": "The query, one statement.", "required": true}]'::jsonb, 'read'),
    ('execute_sql', 'aidb.execute_sql(text)', false,
     'Executes one SQL statement that may change data (INSERT, UPDATE, DELETE, MERGE, CALL, DO ...). Returns the rows of a statement that returns rows, else the number of rows affected. For reading use run_sql_query.',
     '[{"name": "statement", "type": "text", "description": "The statement, exactly one.", "required": true}]'::jsonb, 'confirm'),
    ('catalog_list_schemas', 'aidb.catalog_list_schemas(boolean)', true,
     'Lists the schemas of this database that can be used, with their comments. Start here in an unknown database. At most 200 rows; truncated is true when there are more.',
     '[{"name": "include_system", "type": "boolean", "description": "Also list the schemas of PostgreSQL itself and of extensions.", "required": false, "default": false}]'::jsonb, 'read'),
    ('catalog_list_objects', 'aidb.catalog_list_objects(text, text, text)', true,
     'Lists tables, views, materialized views, foreign tables and functions, with their comments. At most 200 rows; when truncated is true there are more: narrow the search by schema, object_type or name_pattern.',
     '[{"name": "schema", "type": "text", "description": "Only this schema, or schemas matching this LIKE pattern.", "required": false},
       {"name": "object_type", "type": "text", "description": "Only objects of this type: table, view, materialized view, foreign table, function or procedure.", "required": false},
       {"name": "name_pattern", "type": "text", "description": "Only objects whose name is this or matches this LIKE pattern, such as %order%.", "required": false}]'::jsonb, 'read'),
    ('catalog_get_object_details', 'aidb.catalog_get_object_details(text, text)', true,
     'Describes one table, view or function by name: columns with types and comments, primary, unique and foreign keys, check constraints, or the arguments and result of a function. Use it before writing a query on a table you do not know.',
     '[{"name": "schema", "type": "text", "description": "The schema. When omitted, every schema is searched.", "required": false},
       {"name": "object_name", "type": "text", "description": "The exact name.", "required": true}]'::jsonb, 'read'),
    ('catalog_list_relations', 'aidb.catalog_list_relations(text, text)', true,
     'Lists foreign keys, that is how tables join: of a schema, or only those from and to one table. At most 200 rows; truncated is true when there are more.',
     '[{"name": "schema", "type": "text", "description": "Only foreign keys from or to tables of this schema, or of schemas matching this LIKE pattern.", "required": false},
       {"name": "table_name", "type": "text", "description": "Only foreign keys from or to the tables with this name, or matching this LIKE pattern.", "required": false}]'::jsonb, 'read'),
    ('list_agents', 'aidb.list_agents()', true,
     'Lists the registered agents with their configuration.',
     '[]'::jsonb, 'read'),
    ('list_models', 'aidb.list_models()', true,
     'Lists the registered models with their provider and options.',
     '[]'::jsonb, 'read'),
    ('get_model', 'aidb.get_model(text)', true,
     'Shows the provider and options of one registered model.',
     '[{"name": "model_name", "type": "text", "description": "Name of the model.", "required": true}]'::jsonb, 'read'),
    ('list_model_providers', 'aidb.list_model_providers()', true,
     'Lists the providers that a model can be registered with, and their options.',
     '[]'::jsonb, 'read'),
    ('generate_text', 'aidb.generate_text(text, text, json)', true,
     'Sends one text to a registered model and returns its answer. The model sees nothing but that text.',
     '[{"name": "model_name", "type": "text", "description": "Name of a registered model, as in list_models.", "required": true},
       {"name": "input", "type": "text", "description": "The text to send.", "required": true},
       {"name": "inference_config", "type": "json", "description": "Options of this call: system_prompt, temperature, max_tokens, top_p, seed.", "required": false}]'::jsonb, 'read'),
    ('sleep', 'aidb.sleep(numeric)', true,
     'Waits for a number of seconds, then continues.',
     '[{"name": "seconds", "type": "numeric", "description": "How long to wait, fractions allowed.", "required": true}]'::jsonb, 'read'),
    ('describe_actions', NULL, true,
     'Says what you may do here. Without an argument: the catalog of this agent''s tools, those that are permitted now with what they do, whether a person must confirm them and whether they can be undone, the others by name with the reason. With the name of a tool: the schema of its arguments. Do not propose what is not permitted; say why it is not.',
     '[{"name": "tool", "type": "text", "description": "Name of one tool, for its arguments.", "required": false}]'::jsonb, 'read'),
    ('act', NULL, false,
     'Runs a plan of one to ten steps, each a tool of the catalog with its arguments, in the order given. If any of them needs a person''s confirmation nothing runs: the plan is shown to the person with a preview and waits for their yes, which you cannot give.',
     '[{"name": "steps", "type": "jsonb", "description": "Array of {\"tool\": name, \"args\": {...}}; describe_actions knows the names and the arguments.", "required": true}]'::jsonb, 'safe');
COMMENT ON VIEW aidb_internal.native_tools IS
    'The tools that come with the extension, with the function that stands behind each.';
REVOKE ALL ON aidb_internal.native_tools FROM PUBLIC;
DELETE FROM aidb_internal.native_tool_list;
INSERT INTO aidb_internal.native_tool_list (tools) SELECT jsonb_agg(to_jsonb(t)) FROM aidb_internal.native_tools t;

