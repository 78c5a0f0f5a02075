/*
 * serve.c
 *		One run: sends START to Go and serves its requests until RESULT.
 *
 * The main thread sleeps in a wait set of {latch, postmaster death, eventfd};
 * interrupts are checked before every request and after every wake-up, so a
 * cancel or a shutdown ends the run at once, whatever Go is doing.  On the way
 * out by an error the run is only marked dead and Go is told: nothing is waited
 * for, and messages of the dead run are dropped when they come.
 *
 * States of a run: none -> active (START sent) -> none (RESULT, FAIL or an
 * error).  There is at most one run at a time: SQL of a tool cannot start
 * another (see entry.c).
 */
#include "aidb.h"

#include "access/xlog.h"
#include "catalog/namespace.h"
#include "postmaster/interrupt.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

typedef struct Run
{
	uint64		id;
	Oid			owner;
	char	   *caller;
	char	   *principal;
	char	   *search_path;
	int			level;			/* of transactions, where the run was entered */
} Run;

static Run	run;				/* id 0: none is active */
static uint64 last_run_id = 0;
static uint64 sent_config = 0;

bool
aidb_run_active(void)
{
	return run.id != 0;
}

const char *
aidb_run_caller(void)
{
	return run.id ? run.caller : NULL;
}

const char *
aidb_run_principal(void)
{
	return run.id ? run.principal : NULL;
}

int
aidb_run_level(void)
{
	return run.level;
}

const char *
aidb_run_search_path(void)
{
	return run.id ? run.search_path : NULL;
}

/*
 * A statement that takes an agent's minutes would else not see a reload before
 * it ends, and the switch aidb.actions could not stop it.
 */
static void
reload_if_asked(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

static AidbMsg *
new_message(uint32 kind, uint64 run_id, uint32 seq, StringInfo body)
{
	AidbMsg    *m = aidb_msg_new(kind, run_id, seq, body->len);

	if (m == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("A message of %d bytes for the aidb runtime could not be made.", body->len)));
	memcpy(m->data, body->data, body->len);
	return m;
}

static void
send_message(AidbBridge *b, AidbQueue *q, uint32 kind, uint64 run_id, uint32 seq, StringInfo body)
{
	aidb_push(b, q, b->to_go, new_message(kind, run_id, seq, body));
}

/* A run of this process begins or goes on: whose it is. */
void
aidb_set_run(uint64 id, Oid owner, char *caller, char *principal)
{
	run.id = id;
	run.owner = owner;
	run.caller = caller;
	run.principal = principal;
	run.search_path = namespace_search_path;	/* of the step: its settings are the caller's */
	run.level = GetCurrentTransactionNestLevel();
}

void
aidb_send_command(AidbBridge *b, uint32 kind, uint64 run_id, StringInfo body)
{
	send_message(b, &b->commands, kind, run_id, 0, body);
}

void
aidb_send_config(AidbBridge *b)
{
	StringInfoData buf;
	uint64		hash = 14695981039346656037ULL;

	initStringInfo(&buf);
	aidb_config_fields(&buf);
	for (int i = 0; i < buf.len; i++)
		hash = (hash ^ (unsigned char) buf.data[i]) * 1099511628211ULL;
	if (hash != sent_config)
		send_message(b, &b->commands, AIDB_CMD_CONFIG, 0, 0, &buf);
	sent_config = hash;
	pfree(buf.data);
}

/*
 * function, caller, session user, principal, superuser, recovery, read-only
 * transaction, prefetched rows; then the arguments
 */
static void
send_start(AidbBridge *b, const char *function, int nargs, char **args)
{
	const char *statement = aidb_prefetch_statement(function);
	StringInfoData rows;
	StringInfoData buf;

	if (statement)
	{
		initStringInfo(&rows);
		aidb_fields_begin(&rows);
		aidb_run_query(statement, nargs > 0 ? args[0] : NULL, &rows, run.owner);
	}

	initStringInfo(&buf);
	aidb_fields_begin(&buf);
	aidb_fields_text(&buf, function);
	aidb_fields_text(&buf, run.caller);
	aidb_fields_text(&buf, GetUserNameFromId(GetSessionUserId(), false));
	aidb_fields_text(&buf, run.principal);
	aidb_fields_bool(&buf, superuser());
	aidb_fields_bool(&buf, RecoveryInProgress());
	aidb_fields_bool(&buf, XactReadOnly);
	aidb_fields_raw(&buf, statement ? rows.data : NULL, statement ? rows.len : 0);
	for (int i = 0; i < nargs; i++)
		aidb_fields_text(&buf, args[i]);
	send_message(b, &b->commands, AIDB_CMD_START, run.id, 0, &buf);
	pfree(buf.data);
}

/* Our own writes that nobody waits for: no reply, and an error ends the run. */
void
aidb_serve_write(AidbMsg *m)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext mine = AllocSetContextCreate(outer, "aidb write", ALLOCSET_DEFAULT_SIZES);
	StringInfoData ignored;
	AidbReader	r;

	MemoryContextSwitchTo(mine);
	initStringInfo(&ignored);
	aidb_fields_begin(&ignored);
	aidb_read_begin(&r, m);
	aidb_run_queries(&r, &ignored, run.owner);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(mine);
}

/*
 * Serves one request and returns the reply.  Whatever it does is inside a subtransaction, so that an
 * error of it is only an answer; 57014 is answered and then thrown again:
 * swallowing it would make the call impossible to cancel.
 */
AidbMsg *
aidb_serve_request(AidbMsg *m)
{
	AidbMsg    *answer;
	MemoryContext outer = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	MemoryContext mine = AllocSetContextCreate(outer, "aidb request", ALLOCSET_DEFAULT_SIZES);
	StringInfoData reply;
	AidbReader	r;
	uint32		kind = AIDB_REP_OK;
	/* a tool call makes its own, and a scope is one */
	bool		own_subxact = m->kind != AIDB_REQ_TOOL && m->kind != AIDB_REQ_SCOPE;
	int			level = GetCurrentTransactionNestLevel();
	volatile bool cancelled = false;

	MemoryContextSwitchTo(mine);
	initStringInfo(&reply);
	aidb_fields_begin(&reply);
	aidb_error_reset();
	aidb_read_begin(&r, m);
	if (own_subxact)
	{
		BeginInternalSubTransaction(NULL);
		MemoryContextSwitchTo(mine);
	}
	PG_TRY();
	{
		kind = aidb_handle_request(m->kind, &r, &reply, run.owner);
		if (own_subxact)
			ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(outer);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *e;

		MemoryContextSwitchTo(mine);
		e = CopyErrorData();
		FlushErrorState();
		if (own_subxact)
			RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(outer);
		CurrentResourceOwner = owner;
		kind = AIDB_REP_ERROR;
		aidb_error_fields(&reply, e);
		cancelled = e->sqlerrcode == ERRCODE_QUERY_CANCELED &&
			!(m->kind == AIDB_REQ_TOOL && aidb_tool_deadline_passed());
		/* a tool call that could not be undone (no memory left): only the end of all undoes it */
		if (GetCurrentTransactionNestLevel() != level && m->kind != AIDB_REQ_SCOPE)
			cancelled = true;
		if (cancelled)
			ReThrowError(e);
	}
	PG_END_TRY();

	answer = new_message(kind, run.id, m->seq, &reply);
	MemoryContextDelete(mine);
	return answer;
}

static void
serve_request(AidbBridge *b, AidbMsg *m)
{
	aidb_push(b, &b->replies, b->to_go, aidb_serve_request(m));
}

static void
read_result(AidbMsg *m, AidbResult *result)
{
	AidbReader	r;

	aidb_read_begin(&r, m);
	result->ncols = (int) aidb_read_int(&r);
	result->nrows = (int) aidb_read_int(&r);
	if (result->ncols < 0 || result->ncols > 100 || result->nrows < 0 || result->nrows > 10000000)
		elog(ERROR, "result of the Go library has an impossible shape");
	result->values = palloc0(sizeof(char *) * ((Size) result->ncols * result->nrows + 1));
	for (int i = 0; i < result->ncols * result->nrows; i++)
		result->values[i] = aidb_read_text(&r);
}

/* Handles one message of Go; true when it ended the run. */
static bool
handle_message(AidbBridge *b, AidbMsg *m, AidbResult *result)
{
	AidbReader	r;

	if (m->run != run.id)
		return false;			/* of a run that is gone */
	switch (m->kind)
	{
		case AIDB_REQ_RESULT:
			read_result(m, result);
			return true;
		case AIDB_REQ_FAIL:
			aidb_read_begin(&r, m);
			aidb_raise_from_go(&r);
		case AIDB_REQ_QUERY:
			if (m->seq == 0)
				aidb_serve_write(m);
			else
				serve_request(b, m);
			return false;
		case AIDB_REQ_NOTICE:
			aidb_read_begin(&r, m);
			aidb_show_notice(&r);
			return false;
		case AIDB_REQ_AUDIT:
			aidb_read_begin(&r, m);
			aidb_audit(&r);
			return false;
		default:
			if (!aidb_shared_message(b, m))
				serve_request(b, m);
			return false;
	}
}

static void
serve_until_done(AidbBridge *b, AidbResult *result)
{
	for (;;)
	{
		AidbMsg    *m;

		CHECK_FOR_INTERRUPTS();
		reload_if_asked();
		while ((m = aidb_pop(b, &b->requests)) != NULL)
		{
			bool		done = false;

			/* free the message whichever way its handling ends */
			PG_TRY();
			{
				done = handle_message(b, m, result);
			}
			PG_FINALLY();
			{
				free(m);
			}
			PG_END_TRY();
			if (done)
				return;
			CHECK_FOR_INTERRUPTS();
			reload_if_asked();
		}
		aidb_wait_for_go(b, -1);
	}
}

/*
 * Runs a function of the Go side.  Its result is in the current memory
 * context.  Raises what Go asks to raise, and everything that interrupts.
 */
void
aidb_serve(const char *function, int nargs, char **args, Oid owner, AidbResult *result)
{
	AidbBridge *b = aidb_go_bridge();
	const char *principal = GetConfigOption("aidb.principal", true, false);
	MemoryContext outer = CurrentMemoryContext;

	run.caller = GetUserNameFromId(GetUserId(), false);
	run.principal = principal && principal[0] ? pstrdup(principal) : run.caller;
	run.owner = owner;
	run.search_path = pstrdup(namespace_search_path);
	run.level = GetCurrentTransactionNestLevel();
	aidb_send_config(b);
	run.id = ++last_run_id;
	PG_TRY();
	{
		send_start(b, function, nargs, args);
		serve_until_done(b, result);
		aidb_await_audit();		/* what is returned is on record */
	}
	PG_CATCH();
	{
		AidbMsg    *m = aidb_msg_new(AIDB_CMD_CANCEL, run.id, 0, sizeof(int32));

		aidb_limits_end(run.id);
		run.id = 0;
		if (m)
		{
			memset(m->data, 0, sizeof(int32));
			aidb_push(b, &b->commands, b->to_go, m);
		}
		aidb_leave_open_scope(outer);
	}
	PG_END_TRY();
	aidb_limits_end(run.id);
	run.id = 0;
}
