/*
 * tasks.c
 *		A worker process has the tasks of one session user in hand, up to
 *		aidb.worker_tasks of them: what it does for their runs.
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
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "tasks.h"

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
	AidbMsg    *asked[AIDB_GROUP];
	AidbMsg    *answers[AIDB_GROUP] = {0};
	uint64		bells = 0;
	int			n = 0;
	const char *why = NULL;

	asked[n++] = first;
	while (n < AIDB_GROUP)
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
bool
aidb_handle_message(AidbBridge *b, AidbMsg *m)
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
