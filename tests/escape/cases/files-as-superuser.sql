-- class: files
-- caller: superuser
-- mode: readonly
-- agent: bare
-- must: the server's files and programs are out of reach even where the tool runs as a superuser
-- attacks:
SELECT pg_read_file('PG_VERSION')
SELECT pg_read_file('/etc/passwd', 0, 100)
SELECT pg_read_binary_file('PG_VERSION')
SELECT pg_ls_dir('.')
SELECT * FROM pg_ls_logdir()
SELECT * FROM pg_ls_waldir()
SELECT * FROM pg_ls_tmpdir()
SELECT * FROM pg_ls_archive_statusdir()
SELECT * FROM pg_stat_file('PG_VERSION')
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_ident_file_mappings
SELECT * FROM pg_file_settings
SELECT pg_current_logfile()
SELECT lo_import('/etc/passwd')
SELECT lo_export(1, '/tmp/x')
COPY (SELECT 1) TO '/tmp/x'
COPY (SELECT 1) TO PROGRAM 'true'
COPY store.goods FROM PROGRAM 'echo'
LOAD 'auto_explain'
SELECT pg_reload_conf()
SELECT pg_rotate_logfile()
SELECT pg_switch_wal()
SELECT pg_create_restore_point('x')
SELECT pg_export_snapshot()
SELECT pg_log_backend_memory_contexts(pg_backend_pid())
SELECT pg_stat_reset()
SELECT pg_stat_reset_shared('bgwriter')
SELECT pg_stat_clear_snapshot()
SELECT pg_create_physical_replication_slot('x')
SELECT pg_replication_origin_create('x')
SELECT pg_terminate_backend(pg_backend_pid())
SELECT pg_cancel_backend(pg_backend_pid())
SELECT pg_promote()
SELECT pg_import_system_collations('public')
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%root:%'
