-- class: leak
-- caller: superuser
-- mode: readonly
-- must: neither statistics nor plans nor catalogs show values of what the role may not read, nor the session's memory or statements
-- before:
PREPARE of_caller AS SELECT 'HUSH-prepared'
-- setup:
SET ROLE keeper;
ANALYZE store.ledger;
CREATE STATISTICS store.both ON id, line FROM store.ledger;
CREATE FUNCTION store.body() RETURNS text LANGUAGE sql AS $f$ SELECT 'x'::text $f$;
-- attacks:
SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats WHERE tablename = 'ledger'
SELECT * FROM pg_stats_ext WHERE tablename = 'ledger'
SELECT stavalues1::text FROM pg_statistic
SELECT stxdmcv::text FROM pg_statistic_ext_data
SELECT * FROM pg_backend_memory_contexts
SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()
SELECT statement FROM pg_prepared_statements
SELECT pg_get_userbyid(10), rolpassword FROM pg_authid
SELECT passwd FROM pg_shadow
SELECT umoptions FROM pg_user_mapping
SELECT subconninfo FROM pg_subscription
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_file_settings
SELECT data FROM pg_largeobject
SHOW data_directory
SELECT current_setting('hba_file') AS v
SELECT name, setting FROM pg_settings WHERE name IN ('data_directory', 'config_file', 'shared_preload_libraries')
EXPLAIN (VERBOSE, ANALYZE) SELECT line FROM store.ledger WHERE line LIKE 'HUSH%'
-- check:
SELECT judge.told() NOT LIKE '%HUSH%' AND judge.told() NOT LIKE '%SCRAM-SHA%'
