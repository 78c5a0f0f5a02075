/*
 * sandbox.c
 *		The one way into another identity, and the one way out.
 *
 * Two scopes live here and nowhere else in the tree:
 *
 *	owner scope	 our own SQL, with the rights of the extension's owner and a
 *				 pinned search_path.  It runs fixed texts of ours only.
 *	tool scope	 a tool's SQL, as the role that the agent's purpose resolved to
 *				 (or as the caller), behind every wall that a SECURITY DEFINER
 *				 function has and those that it lacks.
 *
 * What each step of the tool scope stops is said beside it; docs/reference/
 * security.md tells the whole story.  Every step is undone on both ways out.
 * While the scope is up, filter.c looks at every statement and function.
 */
#include "aidb.h"

#include "catalog/namespace.h"
#include "catalog/pg_auth_members.h"
#include "catalog/pg_authid.h"
#include "executor/spi.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/regproc.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

AidbToolScope *aidb_tool_scope = NULL;

/* The deadline of the last tool call has passed: its 57014 is not the user's. */
static volatile sig_atomic_t deadline_passed = false;
static TimeoutId deadline_timer = MAX_TIMEOUTS;

/* --- owner scope ----------------------------------------------------------- */

void
aidb_enter_owner(AidbOwnerScope *s, Oid owner)
{
	GetUserIdAndSecContext(&s->user, &s->sec);
	s->guc_level = NewGUCNestLevel();
	/* names of ours are qualified; operators and types must be pg_catalog's */
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	/* the caller's limit is for its own locks; our log waits a moment for a page at most */
	if (LockTimeout > 0)
		(void) set_config_option("lock_timeout", "0", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	SetUserIdAndSecContext(owner, s->sec | SECURITY_LOCAL_USERID_CHANGE);
}

/* On an error the (sub)transaction's abort does the same. */
void
aidb_leave_owner(AidbOwnerScope *s)
{
	AtEOXact_GUC(false, s->guc_level);
	SetUserIdAndSecContext(s->user, s->sec);
}

/* --- tool scope: who ------------------------------------------------------- */

/* Predefined roles that reach outside the database: never for a tool. */
static const Oid outside_roles[] = {
	ROLE_PG_EXECUTE_SERVER_PROGRAM,
	ROLE_PG_READ_SERVER_FILES,
	ROLE_PG_WRITE_SERVER_FILES,
	ROLE_PG_SIGNAL_BACKEND,
};

/*
 * SET ROLE is closed to a tool, but a member inherits all that the superuser
 * owns: the tables behind the extension, the log of decisions first.
 */
static bool
inherits_from_superuser(Oid role)
{
	CatCList   *list = SearchSysCacheList1(AUTHMEMMEMROLE, ObjectIdGetDatum(role));
	bool		found = false;

	check_stack_depth();
	for (int i = 0; i < list->n_members && !found; i++)
	{
		Oid			parent = ((Form_pg_auth_members) GETSTRUCT(&list->members[i]->tuple))->roleid;

		found = superuser_arg(parent) || inherits_from_superuser(parent);
	}
	ReleaseCatCacheList(list);
	return found;
}

/* A purpose's role must not be able to do what no sandbox can hold. */
static void
check_role_is_confined(Oid role, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	Form_pg_authid form;
	const char *what = NULL;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for role %u", role);
	form = (Form_pg_authid) GETSTRUCT(tuple);
	if (form->rolsuper)
		what = "is a superuser";
	else if (form->rolbypassrls)
		what = "bypasses row-level security";
	else if (form->rolcreaterole)
		what = "may create roles";
	else if (form->rolreplication)
		what = "may replicate";
	else if (inherits_from_superuser(role))
		what = "is a member of a superuser";
	ReleaseSysCache(tuple);
	for (int i = 0; what == NULL && i < (int) lengthof(outside_roles); i++)
		if (is_member_of_role_nosuper(role, outside_roles[i]))
			what = psprintf("is a member of %s", GetUserNameFromId(outside_roles[i], true));
	if (what)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("role '%s' %s; refusing to run tools as it", name, what),
				 errhint("Map the purpose to a role without such rights, or say allow_elevated when creating the purpose.")));
}

/* The role that the call runs as; all checks are made against the caller. */
static Oid
check_role(AidbToolCall *call)
{
	Oid			caller = GetUserId();
	Oid			role;

	/*
	 * What other sessions did to roles and grants meanwhile: nothing else on
	 * the way here takes a lock, which is when caches learn of it.
	 */
	AcceptInvalidationMessages();
	if (call->role_name == NULL)
	{
		if (superuser() && !call->read_only && !aidb_allow_superuser_tools)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 aidb_refused("pre_execution_rejected"),
					 errmsg("tools that write do not run as a superuser"),
					 errhint("Give the agent a purpose, call it as another role, or set aidb.allow_superuser_tools.")));
		return caller;
	}
	role = get_role_oid(call->role_name, true);
	if (!OidIsValid(role))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 aidb_refused("role_not_found"),
				 errmsg("role '%s' does not exist", call->role_name)));
	if (OidIsValid(call->role_id) && role != call->role_id)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("role_not_found"),
				 errmsg("role '%s' is not the one that the purpose was set to; refusing to switch", call->role_name),
				 errdetail("It was dropped and created anew since."),
				 errhint("Set the purpose again with aidb.update_purpose if the new role is meant.")));
	if (!AIDB_MAY_ACT_AS(caller, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("not_role_member"),
				 errmsg("current user is not a member of role '%s'; refusing to switch", call->role_name),
				 errhint("GRANT %s TO %s;", quote_identifier(call->role_name),
						 quote_identifier(GetUserNameFromId(caller, false)))));
	if (!call->elevated)
		check_role_is_confined(role, call->role_name);
	return role;
}

/*
 * The oid of a function of ours.  Its text is looked up once: an oid that still
 * exists still is the same function, because oids of dropped ones come back only
 * after all others.
 */
static Oid
function_named(const char *signature)
{
	static struct
	{
		char	   *signature;
		Oid			fn;
	}			known[16];
	int			i;
	Oid			fn;

	for (i = 0; i < (int) lengthof(known) && known[i].signature; i++)
		if (strcmp(known[i].signature, signature) == 0)
			break;
	if (i < (int) lengthof(known) && known[i].signature && SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(known[i].fn)))
		return known[i].fn;
	fn = DatumGetObjectId(DirectFunctionCall1(regprocedurein, CStringGetDatum(signature)));
	if (i < (int) lengthof(known))
	{
		if (known[i].signature == NULL)
			known[i].signature = MemoryContextStrdup(TopMemoryContext, signature);
		known[i].fn = fn;
	}
	return fn;
}

/* A native tool is permitted to a role by EXECUTE on the function of its name. */
static void
check_function_grant(AidbToolCall *call, Oid role)
{
	Oid			fn;

	if (call->function == NULL)
		return;
	fn = function_named(call->function);
	if (AIDB_FUNCTION_ACL(fn, role) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("engine_privilege_denied"),
				 errmsg("permission denied for function %s", get_func_name(fn)),
				 errhint("GRANT EXECUTE ON FUNCTION %s TO %s;", call->function,
						 quote_identifier(GetUserNameFromId(role, false)))));
}

/* --- tool scope: settings --------------------------------------------------- */

static void
set_for_call(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* The caller's own search_path with pg_temp moved to the end, or the one an administrator fixed. */
static char *
tool_search_path(void)
{
	StringInfoData path;
	List	   *names = NIL;
	ListCell   *lc;
	const char *given = aidb_tool_search_path[0] ? aidb_tool_search_path : namespace_search_path;

	initStringInfo(&path);
	if (!SplitIdentifierString(pstrdup(given), ',', &names))
		names = NIL;
	foreach(lc, names)
		if (strcmp(lfirst(lc), "pg_temp") != 0)
			appendStringInfo(&path, "%s, ", quote_identifier(lfirst(lc)));
	appendStringInfoString(&path, "pg_temp");
	return path.data;
}

static bool
name_matches(const char *name, List *patterns)
{
	ListCell   *lc;

	foreach(lc, patterns)
	{
		const char *p = lfirst(lc);
		size_t		n = strlen(p);

		/* "word" is a part of the name, "=name" the whole of it */
		if (p[0] == '=' ? pg_strcasecmp(name, p + 1) == 0 : n > 0)
		{
			if (p[0] == '=')
				return true;
			for (const char *at = name; strlen(at) >= n; at++)
				if (pg_strncasecmp(at, p, n) == 0)
					return true;
		}
	}
	return false;
}

/*
 * Applications keep secrets of the session in custom settings (a signed token,
 * say), and every role may read those.  Those that look like one are blank
 * during the call.
 */
static void
hide_settings(void)
{
	struct config_generic **table;
	int			count;
	List	   *patterns = NIL;
	List	   *hide = NIL;
	ListCell   *lc;

	if (aidb_hidden_settings[0] == '\0' ||
		!SplitGUCList(pstrdup(aidb_hidden_settings), ',', &patterns))
		return;
	AIDB_GUC_TABLE(table, count);
	for (int i = 0; i < count; i++)
		if (table[i]->flags & GUC_CUSTOM_PLACEHOLDER && name_matches(table[i]->name, patterns))
			hide = lappend(hide, pstrdup(table[i]->name));
	foreach(lc, hide)
		set_for_call(lfirst(lc), "");
}

static void
set_call_settings(AidbToolScope *s)
{
	set_for_call("search_path", tool_search_path());
	set_for_call("row_security", "on");
	/* the filters are up in this process only */
	set_for_call("max_parallel_workers_per_gather", "0");
	/* a loop of RAISE NOTICE would flood the client */
	set_for_call("client_min_messages", "error");
	if (work_mem > 64 * 1024)
		set_for_call("work_mem", "64MB");
	hide_settings();
	/* 16 and later refuse SAVE for it; LOCAL is undone with the nest level too */
	if (s->read_only)
		(void) set_config_option("transaction_read_only", "on", PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_LOCAL, true, 0, false);
}

/* --- tool scope: time -------------------------------------------------------- */

/* In a signal handler: only flags, as PostgreSQL's own handlers do. */
static void
on_deadline(void)
{
	deadline_passed = true;
	if (aidb_tool_scope)
	{
		aidb_tool_scope->deadline_hit = true;
		InterruptPending = true;
		QueryCancelPending = true;
		SetLatch(MyLatch);
	}
}

bool
aidb_tool_deadline_passed(void)
{
	return deadline_passed;
}

static void
start_deadline(int ms)
{
	if (deadline_timer == MAX_TIMEOUTS)
		deadline_timer = RegisterTimeout(USER_TIMEOUT, on_deadline);
	if (ms > 0)
		AIDB_ENABLE_DEADLINE(deadline_timer, ms, 100);
}

static void
stop_deadline(void)
{
	if (deadline_timer == MAX_TIMEOUTS)
		return;
	disable_timeout(deadline_timer, false);
	if (deadline_passed)
		QueryCancelPending = false; /* it was ours, and it has been answered */
}

/* --- tool scope: enter, execute, leave --------------------------------------- */

/* Nothing that a read-only call did may stay, whatever the filters missed. */
static void
check_nothing_written(void)
{
	if (TransactionIdIsValid(GetCurrentTransactionIdIfAny()))
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("the statement changed the database in a read-only tool call"),
				 errdetail("Its changes were rolled back.")));
}

static void
check_no_temp_schema(Oid before)
{
	Oid			now,
				toast;

	GetTempNamespaceState(&now, &toast);
	if (now != before)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("the statement created temporary objects in a tool call")));
}

/*
 * One tool call.  The caller of this function gets the result, or an error
 * after everything was undone; its user id, settings, cursors, locks and
 * transaction are then what they were.
 */
void
aidb_run_tool(AidbToolCall *call)
{
	MemoryContext outer = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	AidbToolScope scope = {.call = call,.read_only = call->read_only};
	AidbPortals portals;
	Oid			user,
				temp_schema,
				temp_toast;
	int			sec,
				guc_level,
				xact_level = GetCurrentTransactionNestLevel();

	if (aidb_tool_scope)
		elog(ERROR, "a tool call inside a tool call");
	deadline_passed = false;

	/* 1. who: checked against the caller, each time, from the catalog as it is now */
	scope.role = check_role(call);
	check_function_grant(call, scope.role);
	if (call->statement == NULL)
		return;					/* only asked whether it may */

	GetTempNamespaceState(&temp_schema, &temp_toast);
	/* 2. the caller's cursors */
	aidb_freeze_portals(&portals);
	PG_TRY();
	{
		/* GET DIAGNOSTICS PG_CONTEXT shows the caller's statements, with what stands in them */
		error_context_stack = NULL;

		/*
		 * 3. PL/pgSQL checks EXECUTE on what its simple expressions call once
		 * in a transaction.  Expressions that the caller warmed up would be
		 * run unchecked: forget them.  A profiler may have taken our slot
		 * meanwhile; then nobody knows what has run.
		 */
		aidb_install_plpgsql_plugin();
		if (aidb_plpgsql_ran)
			ResetPlanCache();
		aidb_plpgsql_ran = false;

		/* 4. effects and errors are confined to a subtransaction */
		BeginInternalSubTransaction(NULL);
		MemoryContextSwitchTo(outer);

		/* 5. settings: all changes inside are taken back */
		guc_level = NewGUCNestLevel();
		set_call_settings(&scope);
		if (call->trusted)
			aidb_tool_prepare(call);

		/*
		 * 6. the role.  LOCAL_USERID_CHANGE makes SET ROLE fail in the engine;
		 * RESTRICTED_OPERATION stops what would run later with the caller's
		 * rights: deferred triggers, WITH HOLD, PREPARE, LISTEN, temp objects.
		 */
		GetUserIdAndSecContext(&user, &sec);
		SetUserIdAndSecContext(scope.role,
							   sec | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);

		/* 7. atomic SPI: COMMIT and ROLLBACK inside fail by themselves */
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");

		/* 8. the filters */
		aidb_tool_scope = &scope;
		start_deadline(call->timeout_ms);
		aidb_tool_execute(call);
		stop_deadline();

		if (!call->read_only)	/* else the rollback drops them */
			aidb_drop_new_portals(&portals);
		check_no_temp_schema(temp_schema);
		if (call->read_only)
			check_nothing_written();

		/* out, in the opposite order */
		aidb_tool_scope = NULL;
		SPI_finish();
		AtEOXact_GUC(false, guc_level);
		SetUserIdAndSecContext(user, sec);
		if (call->read_only)
			RollbackAndReleaseCurrentSubTransaction();
		else
			ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(outer);
		CurrentResourceOwner = owner;
		aidb_thaw_portals(&portals);
		aidb_plpgsql_forget();
	}
	PG_CATCH();
	{
		ErrorData  *e;

		/* first of all: should what follows fail, no pointer into this frame is left */
		aidb_tool_scope = NULL;
		stop_deadline();
		MemoryContextSwitchTo(outer);
		e = CopyErrorData();
		FlushErrorState();
		/* the abort restores the user id, the settings and SPI's stack */
		while (GetCurrentTransactionNestLevel() > xact_level)
			RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(outer);
		CurrentResourceOwner = owner;
		aidb_thaw_portals(&portals);
		aidb_plpgsql_forget();
		/* the user's cancel ends the whole run; a RAISE of the same code must not */
		if (e->sqlerrcode == ERRCODE_QUERY_CANCELED && !deadline_passed &&
			(e->funcname == NULL || strcmp(e->funcname, "ProcessInterrupts") != 0))
			e->sqlerrcode = ERRCODE_RAISE_EXCEPTION;
		if (deadline_passed && e->sqlerrcode == ERRCODE_QUERY_CANCELED)
		{
			e->message = psprintf("the tool call exceeded its time limit of %d ms", call->timeout_ms);
			e->detail = NULL;
			e->hint = pstrdup("Ask for less: fewer rows, a narrower condition, or an aggregate over an indexed column.");
		}
		ReThrowError(e);
	}
	PG_END_TRY();
}
