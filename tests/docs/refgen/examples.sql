-- The examples of docs/reference/functions.md, tools.md and views.md: one session of psql, run from top to bottom in a
-- database of its own. The part called "-" is not shown. Nothing in an output may differ from run to run but ids, which
-- are replaced: so no times, and ORDER BY where there are rows.

-- example: -
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, total numeric(8,2) NOT NULL CHECK (total > 0));
COMMENT ON TABLE orders IS 'One row an order';
COMMENT ON COLUMN orders.total IS 'Paid, in euros';
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bela');
INSERT INTO orders VALUES (1, 1, 19.90), (2, 2, 42.00), (3, 1, 7.50);
CREATE ROLE support_reader NOLOGIN;
GRANT SELECT ON customers, orders TO support_reader;
CREATE ROLE carol LOGIN IN ROLE aidb_users, support_reader;
CREATE ROLE gwen LOGIN IN ROLE aidb_governance, aidb_users;
SET ROLE carol;

-- example: aidb.create_model
SELECT aidb.create_model('scripted', 'dummy', '{"scope": "call", "responses": [
    {"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "SELECT sum(total) FROM orders"}}]},
    {"response": "You asked: ${prompt} The orders come to 69.40."}]}');
SELECT aidb.create_model('gpt', 'openai_completions', aidb.completions_config('gpt-5-mini'),
    credentials_env => 'AIDB_OPENAI_KEY', validate => false);

-- example: aidb.validate_model
SELECT aidb.validate_model('scripted');

-- example: aidb.get_model
SELECT * FROM aidb.get_model('gpt');

-- example: aidb.list_models
SELECT name, provider, functions FROM aidb.list_models();

-- example: aidb.generate_text
SELECT aidb.create_model('echo', 'dummy', '{"responses": [{"response": "I heard: ${prompt}"}]}');
SELECT aidb.generate_text('echo', 'hello');

-- example: aidb.generate_text_batch
SELECT * FROM aidb.generate_text_batch('echo', ARRAY['one', NULL, 'three']);

-- example: aidb.create_agent
SELECT * FROM aidb.create_agent('analyst', 'You answer questions about orders.', 'scripted',
    tools => ARRAY['run_sql_query'], max_iterations => 10, timeout => 60);
SELECT * FROM aidb.create_agent('analyst', 'Another one.', 'scripted');

-- example: aidb.agent_converse
SELECT message, error FROM aidb.agent_converse('analyst', 'What did we sell?', debug => true);
SELECT message, error FROM aidb.agent_converse('nobody', 'What did we sell?');

-- example: aidb.start_agent_session
SELECT conversation_id FROM aidb.start_agent_session('analyst') \gset
SELECT message FROM aidb.agent_converse('analyst', 'First.', conversation_id => :'conversation_id');
SELECT message FROM aidb.agent_converse('analyst', 'Second.', conversation_id => :'conversation_id');

-- example: aidb.get_conversation
SELECT role, sender_id, contents FROM aidb.get_conversation(:'conversation_id');

-- example: aidb.get_message
SELECT message, error FROM aidb.get_message(
    (SELECT message_id FROM aidb.get_conversation(:'conversation_id') LIMIT 1));
SELECT message, error FROM aidb.get_message('17');

-- example: aidb.conversations
SELECT a.name AS agent, c.status, c.message_count FROM aidb.conversations c
JOIN aidb.agents a ON a.id = c.agent_id ORDER BY c.created_at;

-- example: aidb.conversation_log
SELECT action_type, payload ->> 'contents' AS contents FROM aidb.conversation_log
WHERE conversation_id = :'conversation_id'::uuid ORDER BY created_at, id;

-- example: aidb.agent_tasks
SELECT caller_role, status, blocking, error FROM aidb.agent_tasks ORDER BY created_at;

-- example: aidb_internal.action_log
SELECT action_type, coalesce(request_payload ->> 'contents', request_payload ->> 'arguments',
    response_payload ->> 'contents', response_payload ->> 'error') AS what
FROM aidb_internal.action_log
WHERE task_id = (SELECT task_id FROM aidb.agent_tasks ORDER BY created_at LIMIT 1)
ORDER BY created_at, id;

-- example: aidb_internal.agent_task_queue
SELECT role, initiated_by, status, rounds, decisions FROM aidb_internal.agent_task_queue ORDER BY created_at LIMIT 1;

-- example: aidb.decisions
SELECT tool, interaction_point, caller, role, status, rows, query_text FROM aidb.decisions
WHERE agent = 'analyst' ORDER BY at LIMIT 2;

-- example: aidb.agents
SELECT name, model, tools, max_iterations, timeout_seconds, budget_strategy, owner, enabled FROM aidb.agents;

-- example: aidb.models
SELECT name, provider, options FROM aidb.models ORDER BY name;

-- example: aidb.model_providers
SELECT server_name, server_options FROM aidb.model_providers;

-- example: aidb.tools
SELECT name, tool_type, read_only FROM aidb.tools ORDER BY name;

-- example: aidb.update_agent
SELECT * FROM aidb.update_agent('analyst', timeout => 120, reset => ARRAY['max_iterations']);
SELECT max_iterations, timeout_seconds FROM aidb.agents WHERE name = 'analyst';

-- example: aidb.list_agents
SELECT name, model, tools, enabled FROM aidb.list_agents();

-- example: aidb.create_sql_tool
SELECT aidb.create_sql_tool('orders_of', 'The orders of one customer.',
    'SELECT o.id, o.total FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.name = ${customer} ORDER BY o.id',
    aidb.tool_params(aidb.tool_param('customer', 'text', 'name of the customer')));
SELECT aidb.run_tool('orders_of', '{"customer": "Ada"}');
SELECT aidb.create_sql_tool('forget', 'Deletes all orders.', 'DELETE FROM orders', '[]');

-- example: aidb.update_sql_tool
SELECT aidb.update_sql_tool('orders_of', description => 'The orders of one customer, by name.', max_rows => 50);

-- example: aidb.sql_tool_registry
SELECT name, query_text, params, read_only, owner, max_rows FROM aidb.sql_tool_registry;

-- example: aidb.delete_tool
SELECT aidb.delete_tool('orders_of');
SELECT aidb.delete_tool('sleep');

-- example: aidb.run_tool
SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT id, total FROM orders ORDER BY id"}');
SELECT aidb.run_tool('run_sql_query', '{"sql": "SELECT 1"}');

-- example: run_sql_query
SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT count(*), max(total) FROM orders"}');
SELECT aidb.run_tool('run_sql_query', '{"query": "DELETE FROM orders"}');

-- example: execute_sql
RESET ROLE;
CREATE TABLE notes (id int, body text);
GRANT INSERT ON notes TO carol;
SET ROLE carol;
SELECT aidb.run_tool('execute_sql', '{"statement": "INSERT INTO notes VALUES (1, ''from a tool'')"}');

-- example: catalog_list_schemas
SELECT aidb.run_tool('catalog_list_schemas');

-- example: catalog_list_objects
SELECT aidb.run_tool('catalog_list_objects', '{"schema": "public", "name_pattern": "ord%"}');

-- example: catalog_get_object_details
SELECT jsonb_pretty(aidb.run_tool('catalog_get_object_details', '{"object_name": "orders"}'));

-- example: catalog_list_relations
SELECT aidb.run_tool('catalog_list_relations', '{"table_name": "orders"}');

-- example: list_agents
SELECT jsonb_path_query(aidb.run_tool('list_agents'), '$[*].name') AS name;

-- example: list_models
SELECT jsonb_path_query(aidb.run_tool('list_models'), '$[*].name') AS name;

-- example: get_model
SELECT aidb.run_tool('get_model', '{"model_name": "gpt"}');

-- example: sleep
SELECT aidb.run_tool('sleep', '{"seconds": 0.1}');

-- example: aidb.run_sql_query
SELECT aidb.run_sql_query('SELECT id, total FROM orders WHERE total > 10 ORDER BY id');
SELECT aidb.run_sql_query('SET ROLE postgres');

-- example: aidb.execute_sql
SELECT aidb.execute_sql($$INSERT INTO notes VALUES (2, 'from SQL')$$);

-- example: aidb.sleep
SELECT aidb.sleep(0.1);

-- example: aidb.catalog_list_schemas
SELECT * FROM aidb.catalog_list_schemas();

-- example: aidb.catalog_list_objects
SELECT * FROM aidb.catalog_list_objects('public', 'table');

-- example: aidb.catalog_get_object_details
SELECT object_name, primary_key, foreign_keys, check_constraints FROM aidb.catalog_get_object_details('public', 'orders');

-- example: aidb.catalog_list_relations
SELECT constraint_name, from_table, from_columns, to_table, to_columns FROM aidb.catalog_list_relations('public');

-- example: aidb.create_purpose
SET ROLE gwen;
SELECT aidb.create_purpose('support', 'support_reader', 'answers questions of customers');
SET ROLE carol;
SELECT aidb.create_purpose('mine', 'carol');

-- example: aidb.check_role
SET ROLE gwen;
SELECT * FROM aidb.check_role('support_reader');
SELECT severity, finding FROM aidb.check_role('postgres') LIMIT 1;

-- example: aidb.check_purpose
SET ROLE carol;
SELECT * FROM aidb.create_agent('support_bot', 'You help customers.', 'scripted', purpose => 'support',
    tools => ARRAY['run_sql_query', 'catalog_list_objects']);
RESET ROLE;
GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO support_reader;
SET ROLE gwen;
SELECT severity, agent, tool, finding, advice FROM aidb.check_purpose('support') WHERE severity = 'error';

-- example: aidb.explain_agent
SET ROLE carol;
SELECT * FROM aidb.explain_agent('support_bot');

-- example: aidb.principal
SET aidb.principal = 'customer 17';
SELECT aidb.run_sql_query('SELECT aidb.principal(), aidb.agent_name(), aidb.conversation_id()');
RESET aidb.principal;
SELECT aidb.principal();

-- example: aidb.agent_name
SELECT aidb.create_model('asks', 'dummy', '{"scope": "call", "responses": [
    {"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "SELECT aidb.agent_name(), aidb.principal()"}}]},
    {"response": "done"}]}');
SELECT * FROM aidb.create_agent('helper', 'You help.', 'asks', tools => ARRAY['run_sql_query']);
SELECT message FROM aidb.agent_converse('helper', 'Who are you?');
SELECT response_payload ->> 'contents' AS contents FROM aidb_internal.action_log
WHERE action_type = 'tool_response' ORDER BY created_at DESC LIMIT 1;

-- example: aidb.conversation_id
SELECT aidb.conversation_id();

-- example: aidb.purpose_registry
SELECT name, role, description, deleted_at FROM aidb.purpose_registry;

-- example: aidb.update_purpose
SET ROLE gwen;
SELECT aidb.update_purpose('support', description => 'answers questions about orders');

-- example: aidb.verify_decisions
SELECT * FROM aidb.verify_decisions();

-- example: aidb.delete_purpose
SELECT aidb.delete_purpose('support');
SELECT aidb.delete_purpose('support');

-- example: aidb.completions_config
SELECT aidb.completions_config('llama3.2', url => 'http://127.0.0.1:11434/v1', temperature => 0,
    max_tokens => aidb.max_tokens_config(500));

-- example: aidb.max_tokens_config
SELECT aidb.max_tokens_config(500, 'legacy');

-- example: aidb.inference_config
SELECT aidb.inference_config(system_prompt => 'Answer in one word.', temperature => 0.2);

-- example: aidb.output_type
SELECT aidb.output_type(aidb.output_field('total', 'numeric', 'in euros'), aidb.output_field('count', 'integer'));

-- example: aidb.output_field
SELECT aidb.output_field('total', 'numeric', 'in euros');

-- example: aidb.params
SELECT aidb.params(aidb.param('status', 'text', 'of the order', ARRAY['paid', 'shipped']));

-- example: aidb.param
SELECT aidb.param('status', 'text', 'of the order', ARRAY['paid', 'shipped']);

-- example: aidb.tool_params
SELECT aidb.tool_params(aidb.tool_param('days', 'integer', 'how far back'));

-- example: aidb.tool_param
SELECT aidb.tool_param('days', 'integer', 'how far back');

-- example: aidb.classify_tool
SET ROLE gwen;
SELECT aidb.classify_tool('forget', 'confirm');
SELECT name, risk FROM aidb.tools WHERE name IN ('forget', 'execute_sql', 'run_sql_query') ORDER BY name;

-- example: aidb.pending_actions
RESET ROLE;
CREATE TABLE drafts (id int PRIMARY KEY, body text);
INSERT INTO drafts VALUES (1, 'one'), (2, 'two');
GRANT SELECT, DELETE, INSERT ON drafts TO carol;
SET ROLE carol;
SELECT aidb.create_sql_tool('tidy', 'Deletes a draft.', 'DELETE FROM drafts WHERE id = ${id} RETURNING id, body',
    aidb.tool_params(aidb.tool_param('id', 'int', 'which')), read_only => false, risk => 'confirm',
    undo_statement => 'INSERT INTO drafts SELECT r.id, r.body FROM jsonb_to_recordset(${result}) r (id int, body text)');
SELECT aidb.create_model('tidier', 'dummy', '{"scope": "call", "responses": [
    {"tool_calls": [{"name": "tidy", "arguments": {"id": 1}}]}, {"response": "Shall I?"}]}');
SELECT * FROM aidb.create_agent('tidier', 'You tidy up.', 'tidier', tools => '{tidy}');
SELECT message FROM aidb.agent_converse('tidier', 'Throw the first one away.');
SELECT agent, steps, preview FROM aidb.pending_actions;

-- example: aidb.confirm_action
SELECT action_id, token FROM aidb.pending_actions \gset
SELECT * FROM aidb.confirm_action(:'action_id', :'token');
SELECT * FROM aidb.confirm_action(:'action_id', 'a guess');

-- example: aidb.undo_action
SELECT * FROM aidb.undo_action(:'action_id');
SELECT * FROM drafts ORDER BY id;

-- example: aidb.reject_action
SELECT message FROM aidb.agent_converse('tidier', 'Throw it away all the same.');
SELECT aidb.reject_action(action_id) FROM aidb.pending_actions;

-- example: aidb.action_history
SELECT agent, requested_by, status, decided_by FROM aidb.action_history ORDER BY created_at;

-- example: aidb.expire_actions
SET ROLE gwen;
SELECT aidb.expire_actions();

-- example: aidb.set_confirmation_word
SELECT aidb.set_confirmation_word('it', 'certo');
SELECT aidb.set_confirmation_word('en', 'yeah', 'none');

-- example: aidb.confirmation_words
SELECT string_agg(word, ', ' ORDER BY word) AS yes FROM aidb.confirmation_words WHERE language = 'en' AND kind = 'yes';

-- example: aidb.delete_model
SET ROLE carol;
SELECT * FROM aidb.delete_model('gpt');

-- example: aidb.delete_agent
SELECT * FROM aidb.delete_agent('analyst');
SELECT * FROM aidb.delete_agent('analyst', force => true);
