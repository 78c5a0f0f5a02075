-- class: ro-function
-- caller: superuser
-- mode: readonly
-- agent: bare
-- needs: pageinspect pg_surgery pg_visibility amcheck pg_prewarm pgstattuple pg_freespacemap pgrowlocks
-- must: what libraries bring for repairing, checking and warming tables does not run for a superuser's question, and damages nothing
-- attacks:
SELECT heap_force_kill('store.ledger', ARRAY['(0,1)']::tid[])
SELECT heap_force_freeze('store.ledger', ARRAY['(0,1)']::tid[])
SELECT pg_truncate_visibility_map('store.ledger')
SELECT pg_prewarm('store.ledger')
SELECT autoprewarm_start_worker()
SELECT autoprewarm_dump_now()
SELECT get_raw_page('store.ledger', 0)
SELECT bt_index_check('store.ledger_pkey')
SELECT bt_index_parent_check('store.ledger_pkey', true)
SELECT * FROM verify_heapam('store.ledger')
SELECT pg_check_frozen('store.ledger')
SELECT pg_stat_reset()
SELECT pg_stat_reset_single_table_counters('store.ledger'::regclass)
SELECT pg_switch_wal()
SELECT pg_create_restore_point('x')
SELECT pg_reload_conf()
SELECT pg_log_backend_memory_contexts(pg_backend_pid())
SELECT lo_import('/etc/hostname')
SELECT lo_export(1, '/tmp/x')
SELECT pg_create_physical_replication_slot('x')
SELECT pg_create_logical_replication_slot('x', 'test_decoding')
SELECT pg_replication_origin_create('x')
SELECT pg_ls_dir('.')
SELECT pg_read_file('PG_VERSION')
-- check:
SELECT judge.none_fine('attack') AND (SELECT count(*) = 10 FROM store.ledger)
