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
#include "commands/trigger.h"
#include "executor/spi.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"

AidbToolScope *aidb_tool_scope = NULL;
bool		aidb_own_transactions = false;
Oid			aidb_last_tool_role = InvalidOid;

/* The deadline of the last tool call has passed: its 57014 is not the user's. */
static volatile sig_atomic_t deadline_passed = false;
static TimeoutId deadline_timer = MAX_TIMEOUTS;

/* --- owner scope ----------------------------------------------------------- */

void
aidb_enter_owner(AidbOwnerScope *s, Oid owner)
{
	const char *explained = GetConfigOption("auto_explain.log_min_duration", true, false);

	GetUserIdAndSecContext(&s->user, &s->sec);
	s->guc_level = NewGUCNestLevel();
	/* names of ours are qualified; operators and types must be pg_catalog's */
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	/* the caller's limit is for its own locks; our log waits a moment for a page at most */
	if (LockTimeout > 0)
		(void) set_config_option("lock_timeout", "0", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	/* plans of our own statements hold their values, a credential of a model among them: not for the server's log */
	if (explained && strcmp(explained, "-1") != 0)
		(void) set_config_option("auto_explain.log_min_duration", "-1", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	SetUserIdAndSecContext(owner, s->sec | SECURITY_LOCAL_USERID_CHANGE);
}

/* On an error the (sub)transaction's abort does the same. */
void
aidb_leave_owner(AidbOwnerScope *s)
{
	AtEOXact_GUC(false, s->guc_level);
	SetUserIdAndSecContext(s->user, s->sec);
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

/* --- tool scope: messages ------------------------------------------------------ */

/* Bytes of RAISE INFO, which no setting keeps from the client. */
#define MAX_TOLD 4096

/*
 * Sees every message and error as it is raised, before any handler does.
 *
 * A handler WHEN query_canceled in the tool's SQL would swallow the user's
 * Ctrl-C or statement_timeout, which comes once: that one is remembered.  And
 * client_min_messages stops NOTICE and WARNING, but not INFO, which a loop
 * would flood the client with: too much of it is an error.
 */
static void
watch_messages(void *arg)
{
	AidbToolScope *s = arg;
	MemoryContext old = MemoryContextSwitchTo(s->memory);	/* an error is not copied in its own */
	ErrorData  *e = CopyErrorData();
	bool		flood = false;

	/* a RAISE of the same code is no cancel */
	if (e->elevel == ERROR && e->sqlerrcode == ERRCODE_QUERY_CANCELED && !deadline_passed && !s->cancelled[0] &&
		e->funcname && strcmp(e->funcname, "ProcessInterrupts") == 0)
		strlcpy(s->cancelled, e->message ? e->message : "canceling statement due to user request", sizeof(s->cancelled));
	if (e->elevel == INFO)
	{
		s->told += 64 + (e->message ? strlen(e->message) : 0) + (e->detail ? strlen(e->detail) : 0) +
			(e->hint ? strlen(e->hint) : 0);
		flood = s->told > MAX_TOLD;
	}
	FreeErrorData(e);
	MemoryContextSwitchTo(old);
	if (flood)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a tool call sends more than %d bytes of RAISE INFO to the client", MAX_TOLD),
				 errhint("Return what is to be told, or use RAISE NOTICE.")));
}

static void
check_not_cancelled(AidbToolScope *s)
{
	if (s->cancelled[0])
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg_internal("%s", s->cancelled)));
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

/* What to do about a refusal of the engine's own that says little to whoever meets it first. */
static void
add_hint(ErrorData *e)
{
	if (e->hint == NULL && e->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE &&
		e->funcname && strcmp(e->funcname, "afterTriggerMarkEvents") == 0)
		e->hint = pstrdup("A constraint of this table is checked at the end of the transaction. An administrator can make it immediate.");
}

/*
 * Deferred constraints and triggers, now, as the role and behind the filters.
 * Only where the transaction is the tool call's own: in a caller's transaction
 * they are refused, because what the caller has deferred would run as well.
 */
static void
fire_deferred_triggers(void)
{
	ConstraintsSetStmt *stmt = makeNode(ConstraintsSetStmt);

	stmt->constraints = NIL;
	stmt->deferred = false;
	AfterTriggerSetState(stmt);
}

/*
 * Commits the transaction that a tool call was in, while still its role: what
 * the commit itself might run must not run as anybody else.
 */
void
aidb_commit_as(Oid role)
{
	Oid			user;
	int			sec;

	GetUserIdAndSecContext(&user, &sec);
	if (OidIsValid(role))
		SetUserIdAndSecContext(role, sec | SECURITY_LOCAL_USERID_CHANGE);
	CommitTransactionCommand();
	/* a SET LOCAL ROLE of the transaction is over as well */
	SetUserIdAndSecContext(GetOuterUserId(), 0);
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
	AidbToolScope scope = {.call = call,.read_only = call->read_only,.memory = outer};
	ErrorContextCallback watch = {.callback = watch_messages,.arg = &scope};
	AidbPortals portals = {0};
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
	scope.role = aidb_tool_role(call);
	if (call->statement == NULL)
		return;					/* only asked whether it may */

	GetTempNamespaceState(&temp_schema, &temp_toast);
	PG_TRY();
	{
		/* 2. the caller's cursors */
		aidb_freeze_portals(&portals);
		/* GET DIAGNOSTICS PG_CONTEXT shows the caller's statements, with what stands in them */
		error_context_stack = &watch;

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
		aidb_set_call_settings(call->search_path, call->read_only);
		if (call->trusted)
			aidb_tool_prepare(call);

		/*
		 * 6. the role.  LOCAL_USERID_CHANGE makes SET ROLE fail in the engine;
		 * RESTRICTED_OPERATION stops what would run later with the caller's
		 * rights: deferred triggers, WITH HOLD, PREPARE, LISTEN, temp objects.
		 * In a transaction of the call's own deferred triggers may be, since
		 * they run below, as the role; the filters stop the others there too.
		 */
		GetUserIdAndSecContext(&user, &sec);
		SetUserIdAndSecContext(scope.role, sec | SECURITY_LOCAL_USERID_CHANGE |
							   (aidb_own_transactions && !call->read_only ? 0 : SECURITY_RESTRICTED_OPERATION));
		aidb_last_tool_role = scope.role;

		/* 7. atomic SPI: COMMIT and ROLLBACK inside fail by themselves */
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");

		/* 8. the filters */
		aidb_tool_scope = &scope;
		start_deadline(call->timeout_ms);
		aidb_tool_execute(call);
		if (aidb_own_transactions && !call->read_only)
			fire_deferred_triggers();
		stop_deadline();
		check_not_cancelled(&scope);

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
		/* the user's cancel ends the whole run, whatever the tool made of it; a RAISE of the same code must not */
		if (scope.cancelled[0])
		{
			e->sqlerrcode = ERRCODE_QUERY_CANCELED;
			e->message = pstrdup(scope.cancelled);
			e->detail = e->hint = NULL;
			deadline_passed = false;
		}
		else if (e->sqlerrcode == ERRCODE_QUERY_CANCELED && !deadline_passed &&
			(e->funcname == NULL || strcmp(e->funcname, "ProcessInterrupts") != 0))
			e->sqlerrcode = ERRCODE_RAISE_EXCEPTION;
		if (deadline_passed && e->sqlerrcode == ERRCODE_QUERY_CANCELED)
		{
			e->message = psprintf("the tool call exceeded its time limit of %d ms", call->timeout_ms);
			e->detail = NULL;
			e->hint = pstrdup("Ask for less: fewer rows, a narrower condition, or an aggregate over an indexed column.");
		}
		add_hint(e);
		ReThrowError(e);
	}
	PG_END_TRY();
}
