/*
 * compat.h
 *		Everything that differs between PostgreSQL 14 and 18, in one place.
 *
 * The rest of the C code is written against PostgreSQL 15's names and uses the
 * AIDB_ macros below where a later or earlier major differs.
 */
#ifndef AIDB_COMPAT_H
#define AIDB_COMPAT_H

#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/timeout.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#include "utils/wait_event.h"
#else
#include "pgstat.h"
#endif

#if PG_VERSION_NUM < 140000 || PG_VERSION_NUM >= 190000
#error "aidb supports PostgreSQL 14 to 18"
#endif

/* One wait set for the process's life. */
#if PG_VERSION_NUM >= 170000
#define AIDB_CREATE_WAIT_SET(n) CreateWaitEventSet(NULL, (n))
#else
#define AIDB_CREATE_WAIT_SET(n) CreateWaitEventSet(TopMemoryContext, (n))
#endif

/* What pg_stat_activity shows while Go works; named from 17 on. */
#if PG_VERSION_NUM >= 170000
#define AIDB_WAIT_EVENT_NEW() WaitEventExtensionNew("AidbRun")
#else
#define AIDB_WAIT_EVENT_NEW() PG_WAIT_EXTENSION
#endif

/* ExecutorRun lost `execute_once` in 18. */
#if PG_VERSION_NUM >= 180000
#define AIDB_EXECUTOR_RUN_ARGS QueryDesc *queryDesc, ScanDirection direction, uint64 count
#else
#define AIDB_EXECUTOR_RUN_ARGS QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#endif

/* Function privileges. */
#if PG_VERSION_NUM >= 160000
#define AIDB_FUNCTION_ACL(fn, role) object_aclcheck(ProcedureRelationId, (fn), (role), ACL_EXECUTE)
#else
#define AIDB_FUNCTION_ACL(fn, role) pg_proc_aclcheck((fn), (role), ACL_EXECUTE)
#endif

#if PG_VERSION_NUM >= 160000
#define AIDB_SCHEMA_ACL(schema, role) object_aclcheck(NamespaceRelationId, (schema), (role), ACL_USAGE)
#else
#define AIDB_SCHEMA_ACL(schema, role) pg_namespace_aclcheck((schema), (role), ACL_USAGE)
#endif

/* Who may drop it. */
#if PG_VERSION_NUM >= 160000
#define AIDB_OWNS_EXTENSION(extension, role) object_ownercheck(ExtensionRelationId, (extension), (role))
#define AIDB_OWNS_DATABASE(database, role) object_ownercheck(DatabaseRelationId, (database), (role))
#else
#define AIDB_OWNS_EXTENSION(extension, role) pg_extension_ownercheck((extension), (role))
#define AIDB_OWNS_DATABASE(database, role) pg_database_ownercheck((database), (role))
#endif

/* A type's name as its oid; raises when there is none. */
#if PG_VERSION_NUM >= 160000
#define AIDB_PARSE_TYPE(name, oid, typmod) ((void) parseTypeString((name), (oid), (typmod), NULL))
#else
#define AIDB_PARSE_TYPE(name, oid, typmod) parseTypeString((name), (oid), (typmod), false)
#endif

/* Analysis with parameters of known types. */
#if PG_VERSION_NUM >= 150000
#define AIDB_PARSE_ANALYZE(raw, sql, types, n) parse_analyze_fixedparams((raw), (sql), (types), (n), NULL)
#else
#define AIDB_PARSE_ANALYZE(raw, sql, types, n) parse_analyze((raw), (sql), (types), (n), NULL)
#define pg_analyze_and_rewrite_withcb(raw, sql, setup, arg, env) pg_analyze_and_rewrite_params((raw), (sql), (setup), (arg), (env))
#endif

/* What stands after RETURNING in an unanalysed statement. */
#if PG_VERSION_NUM >= 180000
#define AIDB_RETURNED(stmt) ((stmt)->returningClause ? (stmt)->returningClause->exprs : NIL)
#else
#define AIDB_RETURNED(stmt) ((stmt)->returningList)
#endif

/* A compiled PL/pgSQL function: how often it is in use, and making it stale. */
#if PG_VERSION_NUM >= 180000
#define AIDB_PLPGSQL_USE_COUNT(func) ((func)->cfunc.use_count)
#define AIDB_PLPGSQL_FORGET(func) ((func)->cfunc.fn_xmin = InvalidTransactionId)
#else
#define AIDB_PLPGSQL_USE_COUNT(func) ((func)->use_count)
#define AIDB_PLPGSQL_FORGET(func) ((func)->fn_xmin = InvalidTransactionId)
#endif

/* The table of all settings. */
#if PG_VERSION_NUM >= 160000
#define AIDB_GUC_TABLE(table, count) ((table) = get_guc_variables(&(count)))
#else
#define AIDB_GUC_TABLE(table, count) ((table) = get_guc_variables(), (count) = GetNumConfigOptions())
#endif

/* Reserves room in shared memory, while the library is being preloaded. */
#if PG_VERSION_NUM >= 150000
#define AIDB_REQUEST_SHMEM(function) \
	do { \
		aidb_next_shmem_request = shmem_request_hook; \
		shmem_request_hook = aidb_shmem_request_ ## function; \
	} while (0)
#define AIDB_SHMEM_REQUEST(function) \
	static shmem_request_hook_type aidb_next_shmem_request = NULL; \
	static void \
	aidb_shmem_request_ ## function(void) \
	{ \
		if (aidb_next_shmem_request) \
			aidb_next_shmem_request(); \
		function(); \
	}
#else
#define AIDB_REQUEST_SHMEM(function) function()
#define AIDB_SHMEM_REQUEST(function)
#endif

#if PG_VERSION_NUM >= 150000
#define AIDB_RESERVE_GUC_PREFIX() MarkGUCPrefixReserved("aidb")
#else
#define AIDB_RESERVE_GUC_PREFIX() EmitWarningsOnPlaceholders("aidb")
#endif

/*
 * A deadline that goes on firing, so that a handler that swallows the first
 * cancellation meets the next.  14 has only the single shot; there the PL/pgSQL
 * plugin alone sees to it.
 */
#if PG_VERSION_NUM >= 150000
#define AIDB_ENABLE_DEADLINE(id, ms, every) \
	enable_timeout_every((id), TimestampTzPlusMilliseconds(GetCurrentTimestamp(), (ms)), (every))
#else
#define AIDB_ENABLE_DEADLINE(id, ms, every) enable_timeout_after((id), (ms))
#endif

/*
 * The C functions that raise 42501 for an attempt to change identity or a
 * privileged setting.  Privilege errors on objects are raised elsewhere, which
 * is how the two are told apart whatever the language of the messages.
 */
#if PG_VERSION_NUM >= 160000
#define AIDB_ESCALATION_RAISERS {"set_config_with_handle", "set_config_option", "set_config_option_ext", \
	"check_session_authorization", "check_role", "SetSessionAuthorization", "call_string_check_hook"}
#else
#define AIDB_ESCALATION_RAISERS {"set_config_option", "set_config_option_ext", \
	"check_session_authorization", "check_role", "SetSessionAuthorization", "call_string_check_hook"}
#endif

/* The engine's own check of the privileges that a query needs on its tables. */
#if PG_VERSION_NUM >= 160000
#define AIDB_CHECK_PERMISSIONS(q) ((void) ExecCheckPermissions((q)->rtable, (q)->rteperminfos, true))
#else
#define AIDB_CHECK_PERMISSIONS(q) ((void) ExecCheckRTPerms((q)->rtable, true))
#endif

/* A scan without keys. */
#if PG_VERSION_NUM >= 180000
#define AIDB_INDEX_BEGINSCAN(table, index, snapshot) index_beginscan((table), (index), (snapshot), NULL, 0, 0)
#else
#define AIDB_INDEX_BEGINSCAN(table, index, snapshot) index_beginscan((table), (index), (snapshot), 0, 0)
#endif

#endif							/* AIDB_COMPAT_H */
