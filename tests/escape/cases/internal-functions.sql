-- class: internal
-- caller: superuser
-- mode: readonly
-- agent: bare
-- must: what stands behind the interface cannot be called from a tool, by a superuser's neither
-- attacks:
SELECT * FROM aidb_internal.maintain_log('otel')
SELECT aidb_internal.test_go('panic', '')
SELECT aidb_internal.probe_model('reads')
SELECT * FROM aidb_internal.create_agent('x', 'x', 'reads', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
SELECT * FROM aidb_internal.delete_agent('guest_reads', true)
SELECT aidb_internal.delete_purpose('guest')
SELECT * FROM aidb.update_agent('guest_writes', purpose => NULL)
SELECT aidb.update_purpose('guest', 'postgres')
SELECT aidb.run_sql_query('SELECT 1')
INSERT INTO aidb_internal.decision_log SELECT * FROM aidb_internal.decision_log
WITH d AS (DELETE FROM aidb_internal.action_log RETURNING id) SELECT * FROM d
-- check:
SELECT judge.none_fine('attack')
