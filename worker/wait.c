/*
 * wait.c
 *		The SQL functions with which sessions wake workers and wait for tasks.
 *
 * What a transaction asks for is done when it commits, and not at all when it
 * rolls back.
 */
#include "worker.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "aidb.h"
#include "compat.h"

PG_FUNCTION_INFO_V1(aidb_background_tasks_run);
PG_FUNCTION_INFO_V1(aidb_caller_search_path);
PG_FUNCTION_INFO_V1(aidb_conversation_is_free);
PG_FUNCTION_INFO_V1(aidb_interrupt_task);
PG_FUNCTION_INFO_V1(aidb_listen_for_task);
PG_FUNCTION_INFO_V1(aidb_sleep_for_task);
PG_FUNCTION_INFO_V1(aidb_stop_listening);
PG_FUNCTION_INFO_V1(aidb_task_changed);
PG_FUNCTION_INFO_V1(aidb_wake_keeper);
PG_FUNCTION_INFO_V1(aidb_wake_workers);
PG_FUNCTION_INFO_V1(aidb_woken_here);
PG_FUNCTION_INFO_V1(aidb_worker_pid);

/* What is to be done when this transaction commits. */
static uint64 bells = 0;
static int	nroles = 0;
static Oid	roles[16];			/* more: all of them are woken, by way of the keeper */
static int	nsubmitted = 0;
static int	room = 0;
static pg_uuid_t *submitted = NULL; /* in TopTransactionContext */
static int	ncanceled = 0;
static pg_uuid_t canceled[64];	/* more: they end with their next step */

static void
at_end_of_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT && aidb_shared)
	{
		for (int i = 0; i < ncanceled; i++)
			aidb_interrupt_step(canceled[i].data);
		for (int i = 0; i < nroles; i++)
			aidb_wake_database(MyDatabaseId, roles[i]);
		for (int i = 0; bells; i++, bells >>= 1)
			if (bells & 1)
				aidb_ring(i);
	}
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		bells = 0;
		nroles = nsubmitted = ncanceled = room = 0;
		submitted = NULL;
	}
}

static void
watch_transaction(void)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(at_end_of_transaction, NULL);
	registered = true;
}

Datum
aidb_background_tasks_run(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(aidb_shared != NULL);
}

static void
note_submitted(const pg_uuid_t *id)
{
	if (nsubmitted == room)
	{
		room = Max(16, room * 2);
		if (submitted == NULL)
			submitted = MemoryContextAlloc(TopTransactionContext, sizeof(pg_uuid_t) * room);
		else
			submitted = repalloc(submitted, sizeof(pg_uuid_t) * room);
	}
	submitted[nsubmitted++] = *id;
}

/* InvalidOid: the keeper alone. */
static void
note_role(Oid role)
{
	bool		known = false;

	watch_transaction();
	for (int i = 0; i < nroles; i++)
		known |= roles[i] == role;
	if (!known && nroles < (int) lengthof(roles))
		roles[nroles++] = role;
}

Datum
aidb_wake_keeper(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "not called as a trigger");
	if (aidb_shared)
		note_role(InvalidOid);
	PG_RETURN_POINTER(NULL);
}

Datum
aidb_wake_workers(PG_FUNCTION_ARGS)
{
	if (aidb_shared == NULL || PG_ARGISNULL(0))
		PG_RETURN_VOID();
	/* a role that is not there: the keeper says so in the task */
	note_role(get_role_oid(text_to_cstring(PG_GETARG_TEXT_PP(0)), true));
	if (!PG_ARGISNULL(1))
		note_submitted(PG_GETARG_UUID_P(1));
	PG_RETURN_VOID();
}

Datum
aidb_interrupt_task(PG_FUNCTION_ARGS)
{
	watch_transaction();
	if (ncanceled < (int) lengthof(canceled))
		canceled[ncanceled++] = *PG_GETARG_UUID_P(0);
	PG_RETURN_VOID();
}

Datum
aidb_woken_here(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = PG_GETARG_UUID_P(0);

	for (int i = 0; i < nsubmitted; i++)
		if (memcmp(&submitted[i], id, sizeof(pg_uuid_t)) == 0)
			PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(false);
}

Datum
aidb_task_changed(PG_FUNCTION_ARGS)
{
	watch_transaction();
	bells |= UINT64CONST(1) << aidb_bell_of(PG_GETARG_UUID_P(0)->data);
	PG_RETURN_VOID();
}

Datum
aidb_listen_for_task(PG_FUNCTION_ARGS)
{
	ConditionVariablePrepareToSleep(&aidb_shared->bells[aidb_bell_of(PG_GETARG_UUID_P(0)->data)]);
	PG_RETURN_VOID();
}

Datum
aidb_sleep_for_task(PG_FUNCTION_ARGS)
{
	int64		ms = PG_GETARG_INT64(1);
	bool		over;

	over = ConditionVariableTimedSleep(&aidb_shared->bells[aidb_bell_of(PG_GETARG_UUID_P(0)->data)],
									   (long) Min(Max(ms, 1), INT_MAX), PG_WAIT_EXTENSION);
	CHECK_FOR_INTERRUPTS();
	PG_RETURN_BOOL(over);
}

Datum
aidb_stop_listening(PG_FUNCTION_ARGS)
{
	ConditionVariableCancelSleep();
	PG_RETURN_VOID();
}

/* Not waiting: whoever runs a call of the conversation holds the lock until its transaction ends. */
Datum
aidb_conversation_is_free(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(aidb_lock_conversation(PG_GETARG_UUID_P(0), true));
}

Datum
aidb_caller_search_path(PG_FUNCTION_ARGS)
{
	const char *path = aidb_owner_call_search_path();

	if (path == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(path));
}

Datum
aidb_worker_pid(PG_FUNCTION_ARGS)
{
	int64		number = PG_GETARG_INT64(0);
	int			pid = 0;

	if (aidb_shared == NULL)
		PG_RETURN_NULL();
	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_SLOTS; i++)
		if (aidb_shared->slots[i].used && aidb_shared->slots[i].number == number)
			pid = aidb_shared->slots[i].pid;
	LWLockRelease(aidb_shared->lock);
	if (pid == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(pid);
}
