/*
 * functions.c
 *		Which functions a tool's SQL may call.
 *
 * Built-in functions and those of C libraries are matched by their C symbol
 * (pg_proc.prosrc), not by name: a name can be aliased by anyone with CREATE,
 * a symbol cannot be by anyone but a superuser.
 *
 * In every tool call the symbols of `denied` are refused: they reach the
 * session (settings, locks, cursors, other connections), the server or its
 * files, things that neither the role nor a rollback confines.  In a read-only
 * call every VOLATILE function is refused as well, but for those of `harmless`.
 */
#include "aidb.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

/* A trailing * stands for any rest. */
static const char *const denied[] = {
	/* settings: can reach every setting that SET cannot */
	"set_config_by_name",
	/* locks that outlive the call */
	"pg_advisory_*", "pg_try_advisory_*",
	/* notifications, messages in the WAL */
	"pg_notify", "pg_logical_emit_message_*",
	/* the caller's cursors, prepared statements, query text, sequences */
	"cursor_to_xml*", "pg_cursor", "pg_prepared_statement", "current_query", "lastval",
	/* SQL in a string, out of sight of a statement's privileges at planning */
	"query_to_xml*",
	/* large objects: rights are checked at lo_open, so open descriptors are free for all */
	"be_lo_*", "be_loread", "be_lowrite",
	/* other sessions and the server */
	"pg_cancel_backend", "pg_terminate_backend", "pg_reload_conf", "pg_rotate_logfile*",
	"pg_export_snapshot", "pg_log_backend_memory_contexts", "pg_promote", "pg_switch_wal",
	"pg_create_restore_point", "pg_backup_*", "pg_start_backup*", "pg_stop_backup*",
	"pg_wal_replay_*", "pg_replication_*", "pg_create_physical_replication_slot",
	"pg_create_logical_replication_slot", "pg_drop_replication_slot", "pg_copy_*_replication_slot*",
	"pg_replication_slot_advance", "pg_logical_slot_*", "pg_sync_replication_slots",
	"pg_stat_reset*", "pg_stat_clear*", "pg_stat_force_next_flush", "pg_stat_have_stats",
	"pg_stat_statements_reset*", "pg_buffercache_evict*", "autoprewarm_*", "pg_log_standby_snapshot",
	"pg_import_system_collations", "pg_stop_making_pinned_objects", "pg_nextoid",
	"pg_extension_config_dump", "binary_upgrade_*", "pg_event_trigger_*",
	"pg_set_relation_stats", "pg_restore_*_stats", "pg_clear_*_stats",
	"injection_points_*",
	/* files */
	"pg_read_file*", "pg_read_binary_file*", "pg_ls_*", "pg_stat_file*", "pg_hba_file_rules", "pg_ident_file_mappings", "pg_logdir_ls*",
	"pg_show_all_file_settings", "show_all_file_settings", "pg_current_logfile*",
	"pg_file_*",
	/* maintenance that writes whatever the transaction says */
	"brin_summarize_*", "brin_desummarize_*", "gin_clean_pending_list",
	/* compile a function, under the call's search_path, without running it (plpgsql.c) */
	"plpgsql_*",
	/* the session's random state */
	"setseed", "drandom_setseed",
	/* connections of dblink and postgres_fdw belong to the session */
	"dblink*", "postgres_fdw_*",
};

/* VOLATILE for a technical reason, but they only read. */
static const char *const harmless[] = {
	"drandom", "drandom_normal", "normal_rand", "int4random", "int8random", "numeric_random", "clock_timestamp", "timeofday",
	"gen_random_uuid", "uuidv4", "uuidv7", "uuidv7_interval", "uuid_generate_v*",
	"pg_random_bytes", "pg_random_uuid", "pg_gen_salt",
	"pg_sleep",
	"pg_table_size", "pg_indexes_size", "pg_relation_size", "pg_total_relation_size",
	"pg_database_size_*", "pg_tablespace_size_*",
	"pg_is_in_recovery", "pg_last_*", "pg_current_wal_*", "pg_wal_lsn_diff",
	"pg_blocking_pids", "pg_safe_snapshot_blocking_pids", "pg_lock_status", "pg_notification_queue_usage",
	"pg_get_multixact_members", "pg_xact_*", "pg_timezone_names", "pg_timezone_abbrevs*",
	"pg_stat_get_*", "pg_show_replication_origin_status", "pg_prepared_xact",
	"pg_jit_available", "pg_isolation_test_session_is_blocked", "pg_available_*",
	"pg_partition_tree", "pg_collation_actual_version", "pg_database_collation_actual_version",
	"pg_sequence_last_value", "pg_partition_ancestors", "pg_control_*", "pg_get_wal_*", "pg_get_shmem_allocations",
	"pg_get_backend_memory_contexts", "pg_is_wal_replay_paused", "amvalidate", "tsquery_rewrite_query",
	"ts_stat*", "pg_stat_statements*", "pg_buffercache_*", "pgstat*",
};

/*
 * They run SQL that is in one of their arguments, or read whatever table is named in one.  A call in a tool call is no danger,
 * because what they run is looked at there; beforehand nobody can say what that will be.
 */
static const char *const text_runners[] = {
	"ts_stat*", "tsquery_rewrite_query", "query_to_xml", "query_to_xml_and_xmlschema", "cursor_to_xml", "table_to_xml",
	"table_to_xml_and_xmlschema", "schema_to_xml", "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xml_and_xmlschema",
	"crosstab*", "connectby_text*", "xpath_table",
};

/*
 * STABLE, but the caller's transaction becomes one that writes: it gets a
 * number, which no rollback of the call takes back.
 */
static const char *const numbering[] = {"pg_current_xact_id", "txid_current"};

static bool
symbol_matches(const char *symbol, const char *pattern)
{
	for (; *pattern; symbol++, pattern++)
	{
		if (*pattern == '*')
		{
			if (pattern[1] == '\0')
				return true;
			for (; *symbol; symbol++)
				if (symbol_matches(symbol, pattern + 1))
					return true;
			return false;
		}
		if (*symbol != *pattern)
			return false;
	}
	return *symbol == '\0';
}

static bool
in_list(const char *symbol, const char *const *list, int n)
{
	for (int i = 0; i < n; i++)
		if (symbol_matches(symbol, list[i]))
			return true;
	return false;
}

/* Administrators may allow functions that their own triggers need, by name. */
static bool
allowed_by_setting(Form_pg_proc proc)
{
	List	   *names;
	ListCell   *lc;
	char	   *qualified;

	/* set_config reaches every other setting: no list can allow it */
	if (aidb_tool_allowed_functions[0] == '\0' || proc->oid == F_SET_CONFIG)
		return false;
	if (!SplitGUCList(pstrdup(aidb_tool_allowed_functions), ',', &names))
		return false;
	qualified = psprintf("%s.%s", get_namespace_name(proc->pronamespace), NameStr(proc->proname));
	foreach(lc, names)
		if (strcmp(lfirst(lc), qualified) == 0 ||
			(proc->pronamespace == PG_CATALOG_NAMESPACE && strcmp(lfirst(lc), NameStr(proc->proname)) == 0))
			return true;
	return false;
}

/* Names are downcased by nobody here: pg_proc's own spelling, for people. */
static void
refuse(Form_pg_proc proc, const char *why, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused(reason),
			 errmsg("function %s is not allowed in a %stool call", NameStr(proc->proname), why),
			 proc->oid == F_SET_CONFIG ? errhint("A tool call runs with the settings of its caller.")
			 : errhint("An administrator can allow it in aidb.tool_allowed_functions.")));
}

static char *
native_symbol(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	bool		isnull;
	Datum		src;

	if (proc->prolang != INTERNALlanguageId && proc->prolang != ClanguageId)
		return NULL;
	src = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	return isnull ? NULL : TextDatumGetCString(src);
}

/*
 * Sequences of the extension are its owner's, a superuser's: with those rights no
 * sequence is set, since which one it is nobody knows before.  The guard of
 * policies counts on the order of its events.
 */
static bool
sets_a_sequence(HeapTuple tuple)
{
	const char *symbol = native_symbol(tuple);

	return symbol && (strcmp(symbol, "setval_oid") == 0 || strcmp(symbol, "setval3_oid") == 0) && superuser();
}

/* Is it refused in every tool call? */
bool
aidb_function_is_denied(HeapTuple tuple)
{
	char	   *symbol = native_symbol(tuple);

	return symbol && (in_list(symbol, denied, lengthof(denied)) || sets_a_sequence(tuple)) &&
		!allowed_by_setting((Form_pg_proc) GETSTRUCT(tuple));
}

/* Does it give the caller's transaction a number? */
bool
aidb_function_numbers(HeapTuple tuple)
{
	return ((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId &&
		in_list(native_symbol(tuple), numbering, lengthof(numbering));
}

/* Is what it runs known only when it runs? */
bool
aidb_function_runs_text(HeapTuple tuple)
{
	char	   *symbol = native_symbol(tuple);

	return symbol && in_list(symbol, text_runners, lengthof(text_runners)) && !allowed_by_setting((Form_pg_proc) GETSTRUCT(tuple));
}

/* May a read-only call use it although it is VOLATILE? */
bool
aidb_function_is_harmless(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	char	   *symbol = native_symbol(tuple);

	/* built-in SQL functions only wrap others, each of which is looked at itself */
	return (proc->prolang == SQLlanguageId && proc->oid < FirstNormalObjectId) ||
		(symbol && in_list(symbol, harmless, lengthof(harmless))) ||
		allowed_by_setting(proc);
}

/*
 * Called for every function that the executor is about to call in a tool call:
 * of operators, aggregates, views, nested functions too.
 */
void
aidb_check_function(Oid fn, bool read_only)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	Form_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		return;					/* dropped meanwhile: the executor says so */
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (aidb_function_is_denied(tuple))
		refuse(proc, "", strcmp(native_symbol(tuple), "set_config_by_name") == 0 ? "escalation_blocked" : "pre_execution_rejected");
	if (read_only && proc->provolatile == PROVOLATILE_VOLATILE && !aidb_function_is_harmless(tuple))
		refuse(proc, "read-only ", "pre_execution_rejected");
	if (read_only && aidb_function_numbers(tuple))
		refuse(proc, "read-only ", "pre_execution_rejected");
	ReleaseSysCache(tuple);
}

/*
 * A statement that is only looked at is analysed with the owner's rights, and
 * analysis runs code: the literal of an array, a row or a range is checked by
 * the domains in it.  Whatever a user made, or could tell what the user may not
 * see, is not run then.
 */
bool		aidb_looking = false;

void
aidb_check_looking(Oid fn)
{
	if (fn >= FirstNormalObjectId || func_volatile(fn) != PROVOLATILE_IMMUTABLE)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("the statement cannot be looked at without running function %s", get_func_name(fn)),
				 errhint("Use a parameter in the place of the literal whose type calls it.")));
}
