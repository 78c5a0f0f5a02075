/*
 * shared.c
 *		What the background processes and the sessions share: who is there, who
 *		is wanted, and the bells that wake those who wait for a task.
 *
 * A slot is reserved by whoever starts the process (launcher or keeper), then
 * attached by the process, which frees it as the last thing it does, after its
 * transaction was aborted.  Wake-ups are kept in the slot until they are taken,
 * and a process that wants to end for lack of work frees its slot only when
 * there is none: a wake-up is never lost between the two.
 */
#include "worker.h"

#include <signal.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "compat.h"

/* A process that was started and never came up; then its slot is free again. */
#define RESERVED_MS 60000

AidbShared *aidb_shared = NULL;

static shmem_startup_hook_type next_startup = NULL;

static void
make_shared_memory(void)
{
	bool		found;

	if (next_startup)
		next_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	aidb_shared = ShmemInitStruct("aidb", sizeof(AidbShared), &found);
	if (!found)
	{
		memset(aidb_shared, 0, sizeof(AidbShared));
		aidb_shared->lock = &(GetNamedLWLockTranche("aidb"))->lock;
		for (int i = 0; i < AIDB_TASK_BELLS; i++)
			ConditionVariableInit(&aidb_shared->bells[i]);
		ConditionVariableInit(&aidb_shared->audited);
		ConditionVariableInit(&aidb_shared->left);
	}
	LWLockRelease(AddinShmemInitLock);
}

#if PG_VERSION_NUM >= 150000
static shmem_request_hook_type next_request = NULL;

static void
request(void)
{
	if (next_request)
		next_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(AidbShared)));
	RequestNamedLWLockTranche("aidb", 1);
}
#endif

void
aidb_request_shared_memory(void)
{
#if PG_VERSION_NUM >= 150000
	next_request = shmem_request_hook;
	shmem_request_hook = request;
#else
	RequestAddinShmemSpace(MAXALIGN(sizeof(AidbShared)));
	RequestNamedLWLockTranche("aidb", 1);
#endif
	next_startup = shmem_startup_hook;
	shmem_startup_hook = make_shared_memory;
}

/* --- slots ------------------------------------------------------------------ */

static bool
slot_is_stale(const AidbSlot *s)
{
	return s->used && !s->attached && !s->held && TimestampDifferenceExceeds(s->since, GetCurrentTimestamp(), RESERVED_MS);
}

int
aidb_reserve_slot(AidbKind kind, Oid database, Oid role, int64 *number)
{
	int			found = -1;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AIDB_SLOTS; i++)
	{
		AidbSlot   *s = &aidb_shared->slots[i];

		if (s->used && !slot_is_stale(s))
		{
			/* one keeper and one expirer a database, and none while a session holds the keeper's place */
			if (kind != AIDB_WORKER && s->database == database && (s->kind == kind || s->held))
			{
				found = -1;
				break;
			}
			continue;
		}
		if (found < 0)
			found = i;
	}
	if (found >= 0)
	{
		AidbSlot   *s = &aidb_shared->slots[found];

		memset(s, 0, sizeof(AidbSlot));
		s->used = true;
		s->wake = true;
		s->kind = kind;
		s->database = database;
		s->role = role;
		if (!pg_strong_random(&s->number, sizeof(s->number)))
			elog(ERROR, "could not generate a random number");
		s->number &= PG_INT64_MAX;
		*number = s->number;
		s->since = GetCurrentTimestamp();
	}
	LWLockRelease(aidb_shared->lock);
	return found;
}

void
aidb_free_slot(int slot)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	memset(&aidb_shared->slots[slot], 0, sizeof(AidbSlot));
	LWLockRelease(aidb_shared->lock);
	ConditionVariableBroadcast(&aidb_shared->left);
}

/*
 * The process for which the slot was reserved has ended.  It has freed the slot
 * itself, unless it never came as far as that; by now it may be another's.
 */
bool
aidb_take_back_slot(int slot, int64 number)
{
	AidbSlot   *s = &aidb_shared->slots[slot];
	bool		take;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	take = s->used && !s->attached && !s->held && s->number == number;
	if (take)
		memset(s, 0, sizeof(AidbSlot));
	LWLockRelease(aidb_shared->lock);
	if (take)
		ConditionVariableBroadcast(&aidb_shared->left);
	return take;
}

/* Whether or not there is a keeper: none is started from now on. */
int
aidb_hold_slot(Oid database)
{
	int			found = -1;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AIDB_SLOTS && found < 0; i++)
		if (!aidb_shared->slots[i].used)
		{
			AidbSlot   *s = &aidb_shared->slots[i];

			memset(s, 0, sizeof(AidbSlot));
			s->used = s->held = true;
			s->database = database;
			s->pid = MyProcPid;
			found = i;
		}
	LWLockRelease(aidb_shared->lock);
	return found;
}

static void
free_own_slot(int code, Datum arg)
{
	int			slot = DatumGetInt32(arg);
	AidbSlot   *s = &aidb_shared->slots[slot];
	Oid			database = s->database;
	AidbKind	kind = s->kind;

	if (!s->used || s->pid != MyProcPid)
		return;					/* left before */
	aidb_free_slot(slot);
	if (kind != AIDB_KEEPER)
		aidb_wake_database(database, InvalidOid);
}

/* Called before the process connects, so that it runs after its transaction was aborted. */
AidbSlot *
aidb_attach_slot(int slot)
{
	AidbSlot   *s = &aidb_shared->slots[slot];

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	if (!s->used || s->attached)
	{
		LWLockRelease(aidb_shared->lock);
		proc_exit(0);
	}
	s->attached = true;
	s->pid = MyProcPid;
	s->latch = MyLatch;
	s->since = GetCurrentTimestamp();
	LWLockRelease(aidb_shared->lock);
	before_shmem_exit(free_own_slot, Int32GetDatum(slot));
	return s;
}

bool
aidb_take_wake(AidbSlot *slot)
{
	bool		wake;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	wake = slot->wake;
	slot->wake = false;
	LWLockRelease(aidb_shared->lock);
	return wake;
}

void
aidb_take_write(AidbSlot *slot)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	slot->write = false;
	LWLockRelease(aidb_shared->lock);
}

/* Frees the slot unless there is something to do again. */
bool
aidb_leave_if_idle(AidbSlot *slot)
{
	bool		leave;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	leave = !slot->wake && !slot->write;
	if (leave)
		memset(slot, 0, sizeof(AidbSlot));
	LWLockRelease(aidb_shared->lock);
	if (leave)
		ConditionVariableBroadcast(&aidb_shared->left);
	return leave;
}

/* --- wake-ups ---------------------------------------------------------------- */

static void
ask_for_keeper_locked(Oid database)
{
	for (int i = 0; i < aidb_shared->nrequests; i++)
		if (aidb_shared->requests[i] == database)
			return;
	if (aidb_shared->nrequests < AIDB_DATABASES)
		aidb_shared->requests[aidb_shared->nrequests++] = database;
	else
		aidb_shared->overflow = true;
	if (aidb_shared->launcher)
		SetLatch(aidb_shared->launcher);
}

void
aidb_ask_for_keeper(Oid database)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	ask_for_keeper_locked(database);
	LWLockRelease(aidb_shared->lock);
}

/*
 * There is something to do in a database, for the workers of a role (InvalidOid:
 * for the keeper alone).  Called when a transaction has committed: must not fail.
 */
void
aidb_wake_database(Oid database, Oid role)
{
	bool		keeper = false;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AIDB_SLOTS; i++)
	{
		AidbSlot   *s = &aidb_shared->slots[i];

		if (!s->used || s->database != database || (OidIsValid(s->role) && s->role != role))
			continue;
		if (s->kind == AIDB_KEEPER)
			keeper = true;
		s->wake = true;
		if (s->attached)
			SetLatch(s->latch);
	}
	if (!keeper)
		ask_for_keeper_locked(database);
	LWLockRelease(aidb_shared->lock);
}

/* There are decisions for a database's keeper to write. */
void
aidb_wake_to_write(Oid database)
{
	AidbSlot   *keeper = NULL;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AIDB_SLOTS && keeper == NULL; i++)
		if (aidb_shared->slots[i].used && aidb_shared->slots[i].database == database && aidb_shared->slots[i].kind == AIDB_KEEPER)
			keeper = &aidb_shared->slots[i];
	if (keeper == NULL)
		ask_for_keeper_locked(database);
	else
	{
		keeper->write = true;
		if (keeper->attached)
			SetLatch(keeper->latch);
	}
	LWLockRelease(aidb_shared->lock);
}

/* Asks the processes of a database to end; at once: and interrupts what they do. */
bool
aidb_stop_database(Oid database, bool at_once)
{
	bool		gone = true;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AIDB_SLOTS; i++)
	{
		AidbSlot   *s = &aidb_shared->slots[i];

		if (!s->used || s->held || s->database != database)
			continue;
		gone = false;
		s->stop = true;
		if (!s->attached)
			continue;
		SetLatch(s->latch);
		if (at_once)
			(void) kill(s->pid, SIGTERM);	/* it is there: it frees its slot as the last thing it does */
	}
	for (int i = 0; i < aidb_shared->nrequests; i++)
		if (aidb_shared->requests[i] == database)
			aidb_shared->requests[i--] = aidb_shared->requests[--aidb_shared->nrequests];
	LWLockRelease(aidb_shared->lock);
	return gone;
}

/* --- steps ------------------------------------------------------------------- */

/*
 * The lock makes sure that an interrupt that was meant for this step has
 * arrived when the next one begins.
 */
void
aidb_publish_step(AidbSlot *slot, const unsigned char *task)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	slot->stepping = task != NULL;
	if (task)
		memcpy(slot->step, task, sizeof(slot->step));
	LWLockRelease(aidb_shared->lock);
}

/* Ends what a worker does for a task at this moment, as pg_cancel_backend does. */
void
aidb_interrupt_step(const unsigned char *task)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AIDB_SLOTS; i++)
	{
		AidbSlot   *s = &aidb_shared->slots[i];

		if (s->used && s->attached && s->stepping && memcmp(s->step, task, sizeof(s->step)) == 0)
			(void) kill(s->pid, SIGINT);
	}
	LWLockRelease(aidb_shared->lock);
}

/* --- bells ------------------------------------------------------------------- */

/* The last bytes of a uuid are random. */
int
aidb_bell_of(const unsigned char *uuid)
{
	return uuid[15] % AIDB_TASK_BELLS;
}

void
aidb_ring(int bell)
{
	ConditionVariableBroadcast(&aidb_shared->bells[bell]);
}
