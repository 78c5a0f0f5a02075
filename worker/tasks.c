/*
 * tasks.c
 *		A worker process: has the tasks of one session user in hand, up to
 *		aidb.worker_tasks of them.
 *
 * It is logged in as that role, so session_user, its memberships and its
 * settings are what they were when the task was submitted, and there is no
 * superuser in the process that a tool could become.
 *
 * Each task is a run of the Go library: a goroutine that waits for its model
 * while this thread serves others.  No transaction is open between requests.  A
 * request is a transaction of its own (several that only write our own tables
 * share one: a commit is most of their cost), and what a run asks for between
 * BEGIN and COMMIT is one: a tool's effect, its rows in the log and the task's
 * next step.  Until COMMIT no other run is served; only Go's own code lies
 * between a tool's result and it.
 *
 * States of a task in here: in hand (START sent) -> gone (RESULT; FAIL, then it
 * is given back; canceled; handed back because the worker makes room).
 */
#include "worker.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "tasks.h"

/* Requests that share a transaction. */
#define GROUP 50
/* Tasks that are taken at a time, so that those in hand are served in between. */
#define CLAIM 100
/* A worker that makes room waits so long for models to answer. */
#define YIELD_MS 10000

static TimestampTz yielding = 0;

static bool
can_share(const AidbMsg *m)
{
	return (m->kind == AIDB_REQ_QUERY || m->kind == AIDB_REQ_SECRET) && m->seq != 0;
}

/* A run ended by an error: the task is taken up again, from its last step, unless somebody has canceled it. */
static void
interrupted(AidbBridge *b, AidbTask *t, const char *why)
{
	uint64		run = t->run;

	aidb_stop_canceled(b);
	if (aidb_find_task(run) == NULL)
		return;
	ereport(LOG, (errmsg("aidb task %s was interrupted: %s", t->id_text, why)));
	aidb_stop_run(b, t);
	aidb_give_back(t, why);
}

/* How often a group is tried when its whole transaction fails: a cancel of the worker is not meant for its tasks. */
#define GROUP_TRIES 3

/* Serves the group in one transaction, each request in a subtransaction of its own; why that could not be, or NULL. */
static const char *
try_group(AidbMsg **asked, AidbMsg **answers, int n, MemoryContext mine)
{
	const char *volatile why = NULL;

	PG_TRY();
	{
		aidb_begin();
		for (int i = 0; i < n; i++)
		{
			AidbTask   *t = aidb_find_task(asked[i]->run);

			if (i == 0)
				aidb_show_activity(t);
			aidb_set_run(t->run, aidb_owner, t->caller, t->principal);
			answers[i] = aidb_serve_request(asked[i]);
		}
		aidb_commit(InvalidOid);
		aidb_set_run(0, InvalidOid, NULL, NULL);
	}
	PG_CATCH();
	{
		why = aidb_undo(mine)->message;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(mine);
	return why;
}

/*
 * Requests of several runs together.  What fails with the whole transaction, by
 * a cancel or when it commits, is no answer that a model could do something
 * about: it is tried again, and then the tasks are.
 */
static void
serve_group(AidbBridge *b, AidbMsg *first)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext mine = AllocSetContextCreate(outer, "aidb requests", ALLOCSET_DEFAULT_SIZES);
	AidbMsg    *asked[GROUP];
	AidbMsg    *answers[GROUP] = {0};
	uint64		bells = 0;
	int			n = 0;
	const char *why = NULL;

	asked[n++] = first;
	while (n < GROUP)
	{
		AidbMsg    *m = aidb_next_message(b);

		if (m == NULL)
			break;
		if (!can_share(m))
		{
			aidb_put_aside(m, true);
			break;
		}
		if (aidb_find_task(m->run) == NULL)
			free(m);			/* of a run that is gone */
		else
			asked[n++] = m;
	}
	MemoryContextSwitchTo(mine);
	for (int tries = 0; tries < GROUP_TRIES; tries++)
	{
		why = try_group(asked, answers, n, mine);
		if (why == NULL)
			break;
		for (int i = 0; i < n; i++)
		{
			if (answers[i])
				free(answers[i]);
			answers[i] = NULL;
		}
	}
	for (int i = 0; i < n; i++)
	{
		AidbTask   *t = aidb_find_task(asked[i]->run);

		if (t)					/* two requests may be of one task */
		{
			bells |= UINT64CONST(1) << aidb_bell_of(t->id.data);
			if (why)
				interrupted(b, t, why);
		}
		if (!why)
			aidb_push(b, &b->replies, b->to_go, answers[i]);
		free(asked[i]);
	}
	for (int i = 0; bells; i++, bells >>= 1)
		if (bells & 1)
			aidb_ring(i);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(mine);
}

/* The session in which the task was submitted, as far as its tools can tell. */
static void
become_caller(AidbTask *t)
{
	if (t->set_role)
		(void) set_config_option("role", t->caller, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	/* who named no end user has the caller's name as principal, and the setting empty */
	(void) set_config_option("aidb.principal", strcmp(t->principal, t->caller) == 0 ? "" : t->principal, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	(void) set_config_option("search_path", t->search_path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* From BEGIN to COMMIT.  An error gives the task back: the step is undone, and tried again from the log. */
static void
serve_step(AidbBridge *b, AidbTask *t)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext mine = AllocSetContextCreate(outer, "aidb step", ALLOCSET_DEFAULT_SIZES);
	AidbMsg    *volatile m = NULL;
	volatile bool over = false;
	char	   *volatile why = NULL;

	MemoryContextSwitchTo(mine);
	aidb_publish_step(aidb_self, t->id.data);
	PG_TRY();
	{
		aidb_begin();
		if (GetUserId() != GetSessionUserId())
			elog(FATAL, "the worker of one role goes on as another");
		aidb_show_activity(t);
		become_caller(t);
		aidb_set_run(t->run, aidb_owner, t->caller, t->principal);
		aidb_last_tool_role = InvalidOid;
		while (!over)
		{
			AidbReader	r;

			m = aidb_next_message_of(b, t->run);
			switch (m->kind)
			{
				case AIDB_REQ_COMMIT:
					over = true;
					break;
				case AIDB_REQ_NOTICE:
					aidb_read_begin(&r, m);
					aidb_show_notice(&r);
					break;
				case AIDB_REQ_QUERY:
					if (m->seq == 0)
						aidb_serve_write(m);
					else
						aidb_push(b, &b->replies, b->to_go, aidb_serve_request(m));
					break;
				case AIDB_REQ_FAIL:
					aidb_read_begin(&r, m);
					aidb_raise_from_go(&r);
				case AIDB_REQ_RESULT:
					elog(ERROR, "run of task %s ended within a step", t->id_text);
				default:
					if (!aidb_shared_message(b, m))
						aidb_push(b, &b->replies, b->to_go, aidb_serve_request(m));
			}
			if (!over)
			{
				free(m);
				m = NULL;
			}
			CHECK_FOR_INTERRUPTS();
		}
		aidb_commit(aidb_last_tool_role);
		aidb_set_run(0, InvalidOid, NULL, NULL);
		{
			AidbMsg    *ok = aidb_msg_new(AIDB_REP_OK, t->run, m->seq, sizeof(int32));

			if (ok == NULL)
				elog(FATAL, "out of memory");	/* it is committed: whoever comes next finds that */
			memset(ok->data, 0, sizeof(int32));
			aidb_push(b, &b->replies, b->to_go, ok);
		}
		free(m);
	}
	PG_CATCH();
	{
		why = aidb_undo(outer)->message;
		if (m)
			free(m);
	}
	PG_END_TRY();
	aidb_publish_step(aidb_self, NULL);
	QueryCancelPending = false;	/* came too late */
	MemoryContextSwitchTo(outer);
	if (why)
		interrupted(b, t, why);
	else
		aidb_ring(aidb_bell_of(t->id.data));
	MemoryContextDelete(mine);
}

/* Handles one message; true when a task has ended. */
static bool
handle(AidbBridge *b, AidbMsg *m)
{
	AidbTask   *t = aidb_find_task(m->run);
	AidbReader	r;

	if (t == NULL || aidb_shared_message(b, m))
	{
		free(m);				/* of a run that is gone, or done with */
		return false;
	}
	if (can_share(m))
	{
		serve_group(b, m);
		return false;
	}
	switch (m->kind)
	{
		case AIDB_REQ_BEGIN:
			free(m);
			serve_step(b, t);
			return aidb_find_task(t->run) == NULL;
		case AIDB_REQ_NOTICE:
			aidb_read_begin(&r, m);
			aidb_show_notice(&r);
			free(m);
			return false;
		case AIDB_REQ_RESULT:
			free(m);
			aidb_forget_task(t);
			return true;
		case AIDB_REQ_FAIL:
			{
				char	   *why;

				aidb_read_begin(&r, m);
				(void) aidb_read_text(&r);
				why = aidb_read_text(&r);
				free(m);
				interrupted(b, t, why ? why : "");
				return true;
			}
		default:
			{
				char	   *why = psprintf("request %u of the Go library outside a step", m->kind);

				free(m);
				interrupted(b, t, why);
				return true;
			}
	}
	return false;
}

/* --- the process ----------------------------------------------------------------------- */

static void
leave_room(AidbBridge *b)
{
	if (yielding == 0)
		yielding = GetCurrentTimestamp();
	if (aidb_in_hand() > 0 && !TimestampDifferenceExceeds(yielding, GetCurrentTimestamp(), YIELD_MS))
		return;
	aidb_hand_back_all(b);
	proc_exit(0);
}

void
aidb_worker_main(Datum arg)
{
	AidbBridge *b;
	bool		hungry = true;
	MemoryContext loop;
	TimestampTz busy;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aidb_self = aidb_attach_slot(DatumGetInt32(arg));
	aidb_number = aidb_self->number;
	BackgroundWorkerInitializeConnectionByOid(aidb_self->database, aidb_self->role, 0);
	loop = AllocSetContextCreate(TopMemoryContext, "aidb worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop);
	aidb_make_task_table();
	if (!aidb_extension_is_there())
		proc_exit(0);
	b = aidb_go_bridge();
	aidb_own_transactions = true;
	busy = GetCurrentTimestamp();

	for (;;)
	{
		AidbMsg    *m;
		long		timeout = -1;

		MemoryContextSwitchTo(loop);
		MemoryContextReset(loop);
		if (ProcDiePending || aidb_self->stop)
			proc_exit(0);
		QueryCancelPending = false;	/* there is nothing to cancel */
		CHECK_FOR_INTERRUPTS();
		aidb_process_settings();
		if (aidb_take_wake(aidb_self))
		{
			hungry = true;
			if (!aidb_extension_is_there())
				proc_exit(0);
			aidb_stop_canceled(b);
		}
		if (aidb_self->yield)
			leave_room(b);
		else if (hungry && aidb_in_hand() < aidb_worker_tasks)
		{
			int			wanted = Min(CLAIM, aidb_worker_tasks - aidb_in_hand());

			hungry = aidb_claim(b, wanted) == wanted;
		}
		for (int i = 0; i < GROUP && (m = aidb_next_message(b)) != NULL; i++)
		{
			hungry |= handle(b, m);
			QueryCancelPending = false;
			CHECK_FOR_INTERRUPTS();
		}
		if (aidb_in_hand() > 0 || hungry)
			busy = GetCurrentTimestamp();
		else if (TimestampDifferenceExceeds(busy, GetCurrentTimestamp(), aidb_worker_idle_timeout * 1000) && aidb_leave_if_idle(aidb_self))
		{
			aidb_wake_database(MyDatabaseId, InvalidOid);
			proc_exit(0);
		}
		else
			timeout = aidb_worker_idle_timeout * 1000L;
		if (aidb_self->yield)
			timeout = 100;
		if (aidb_some_aside() || (hungry && !aidb_self->yield && aidb_in_hand() < aidb_worker_tasks))
			timeout = 0;
		aidb_wait_for_go(b, timeout);
	}
}
