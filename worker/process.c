/*
 * process.c
 *		A worker process from its start to its end: a loop that takes tasks and
 *		serves what their runs ask for (tasks.c).
 */
#include "worker.h"

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "tasks.h"

/* Tasks that are taken at a time, so that those in hand are served in between. */
#define CLAIM 100
/* A worker that makes room waits so long for models to answer. */
#define YIELD_MS 10000

static TimestampTz yielding = 0;

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
		for (int i = 0; i < AIDB_GROUP && (m = aidb_next_message(b)) != NULL; i++)
		{
			hungry |= aidb_handle_message(b, m);
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
