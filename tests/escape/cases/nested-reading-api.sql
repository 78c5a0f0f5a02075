-- class: nested
-- caller: superuser
-- mode: readonly
-- must: those that only read may be called, and show guest what guest may see
-- setup:
GRANT aidb_users TO guest;
-- attacks:
SELECT count(*) AS n FROM aidb.list_agents()
SELECT name FROM aidb.agents ORDER BY name
SELECT aidb.agent_name() AS a, aidb.principal() AS p, aidb.conversation_id() IS NOT NULL AS c
SELECT count(*) AS n FROM aidb.agent_tasks
SELECT count(*) AS n FROM aidb.conversation_log
SELECT count(*) AS n FROM aidb.decisions
SELECT aidb.param('a', 'text') AS v
-- check:
SELECT judge.all_fine('attack') AND judge.output('attack', 1) = '[{"n": 3}]' AND judge.output('attack', 3) = '[{"a": "guest_reads", "p": "postgres", "c": true}]'
-- check:
SELECT judge.output('attack', 4) = '[{"n": 0}]' AND judge.output('attack', 5) = '[{"n": 0}]' AND judge.output('attack', 6) = '[{"n": 0}]'
