-- class: leak
-- caller: superuser
-- mode: readonly
-- txn: block
-- must: the text of the caller's statements cannot be asked for
-- before:
PREPARE hush AS SELECT 'HUSH prepared'
-- before:
DECLARE hush CURSOR FOR SELECT 'HUSH cursor'
-- attacks:
SELECT current_query()
SELECT query FROM pg_stat_activity WHERE query IS NOT NULL
SELECT pg_stat_get_backend_activity(b) AS q FROM pg_stat_get_backend_idset() b
SELECT query FROM pg_stat_get_activity(pg_backend_pid())
SELECT statement FROM pg_prepared_statements
SELECT statement FROM pg_cursors
SELECT * FROM pg_cursor()
SELECT ident FROM pg_backend_memory_contexts
SELECT * FROM pg_get_backend_memory_contexts()
-- check:
SELECT judge.told() NOT LIKE '%HUSH%' AND judge.told() NOT LIKE '%harness%'
