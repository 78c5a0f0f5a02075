/*
 * keeper.c
 *		Looks after the background tasks of one database.
 *
 * It runs no task.  It takes back what workers that are gone had in hand, looks
 * after the logs (retention.c), and starts workers for the roles that have tasks
 * waiting:
 *
 *	- a role that has none gets one;
 *	- a role whose oldest task has waited for long gets one more, while there
 *	  is room for it and for another role's first: its workers have all they
 *	  can do, or one of them is in a long statement;
 *	- when there is no room and a role has none, the role with the most workers
 *	  gives one up at once, or, when each has one, the one that has had its
 *	  worker longest, after its turn; that one hands its tasks back and ends.
 *
 * Decisions that sessions hand over are written as they come, before all else
 * (audit.c).
 *
 * States: looking (one short transaction) -> waiting, for a wake-up, for the
 * end of a worker, while tasks wait for a second at most, and until the first
 * of those that sleep or wait for a person has waited long enough -> looking; it
 * ends when nothing has happened for aidb.worker_idle_timeout and no task sleeps
 * or waits for a person, or the extension is gone.
 */
#include "worker.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "aidb.h"
#include "compat.h"

#define LOOK_AGAIN_MS 1000
/* The clock may be set: what is due in a day is looked at more often than that. */
#define LONGEST_MS INT64CONST(3600000)
/* A task that has waited for so long may have another worker. */
#define PATIENCE_MS 1000
/* How long a role keeps its worker when others have none. */
#define TURN_MS 5000

typedef struct Waiting
{
	Oid			role;
	int64		waiting;
	int64		oldest_ms;
} Waiting;

typedef struct Started
{
	int			slot;
	int64		number;			/* of the slot, as it was reserved for it */
	Oid			role;
	BackgroundWorkerHandle *handle;
} Started;

static Oid	owner = InvalidOid; /* of the extension */
static Started started[AIDB_SLOTS];
static int	nstarted = 0;

/* Roles whose worker did not come up, not to be tried again before. */
typedef struct Failed
{
	Oid			role;
	int			times;
	TimestampTz again;
} Failed;

static Failed failed[64];
static int	nfailed = 0;

static Failed *
failure_of(Oid role, bool make)
{
	for (int i = 0; i < nfailed; i++)
		if (failed[i].role == role)
			return &failed[i];
	if (!make || nfailed == (int) lengthof(failed))
		return NULL;
	failed[nfailed] = (Failed) {.role = role};
	return &failed[nfailed++];
}

/* True: a process has ended since the last time. */
static bool
forget_ended(void)
{
	bool		some = false;

	for (int i = 0; i < nstarted; i++)
	{
		pid_t		pid;

		if (GetBackgroundWorkerPid(started[i].handle, &pid) != BGWH_STOPPED)
			continue;
		if (aidb_take_back_slot(started[i].slot, started[i].number))
		{
			Failed	   *f = failure_of(started[i].role, true);

			if (f)
			{
				f->times = Min(f->times + 1, 5);
				f->again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LOOK_AGAIN_MS << f->times);
			}
		}
		pfree(started[i].handle);
		started[i--] = started[--nstarted];
		some = true;
	}
	return some;
}

/* The numbers of all workers of this database.  Only the keeper starts them, so none can be missing. */
static ArrayType *
numbers_alive(void)
{
	Datum		numbers[AIDB_SLOTS];
	int			n = 0;

	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_SLOTS; i++)
		if (aidb_shared->slots[i].used && aidb_shared->slots[i].database == MyDatabaseId && OidIsValid(aidb_shared->slots[i].role))
			numbers[n++] = Int64GetDatum(aidb_shared->slots[i].number);
	LWLockRelease(aidb_shared->lock);
	return construct_array(numbers, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

/*
 * One look; false when the extension is not there.  *due: in how many ms it has
 * to look for tasks that sleep or wait for a person, -1 when there are none.
 */
static bool
look(Waiting *waiting, int *nwaiting, int most, long *due)
{
	static const char *const sql = "SELECT role, waiting, oldest_ms FROM aidb_internal.look_after_tasks($1)";
	Oid			types[1] = {INT8ARRAYOID};
	Datum		values[1];
	bool		there;
	AidbOwnerScope scope;

	*nwaiting = 0;
	*due = -1;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	owner = aidb_extension_owner();
	there = OidIsValid(owner);
	if (there)
	{
		pgstat_report_activity(STATE_RUNNING, "aidb keeper: looking after tasks");
		aidb_enter_owner(&scope, owner);
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		values[0] = PointerGetDatum(numbers_alive());
		if (SPI_execute_with_args(sql, 1, types, values, NULL, false, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not look after tasks");
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			HeapTuple	row = SPI_tuptable->vals[i];
			TupleDesc	desc = SPI_tuptable->tupdesc;
			Oid			role = DatumGetObjectId(SPI_getbinval(row, desc, 1, &isnull));
			int64		ms;

			if (isnull)
			{
				ms = DatumGetInt64(SPI_getbinval(row, desc, 3, &isnull));
				/* what is overdue and still there is in somebody's hands */
				*due = ms > 0 ? (long) Min(ms + 1, LONGEST_MS) : LOOK_AGAIN_MS;
				continue;
			}
			if (*nwaiting == most)
				continue;
			waiting[*nwaiting].role = role;
			waiting[*nwaiting].waiting = DatumGetInt64(SPI_getbinval(row, desc, 2, &isnull));
			waiting[*nwaiting].oldest_ms = DatumGetInt64(SPI_getbinval(row, desc, 3, &isnull));
			(*nwaiting)++;
		}
		SPI_finish();
		aidb_leave_owner(&scope);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
	return there;
}

static void
start_worker(Oid role)
{
	BackgroundWorker worker = {0};
	MemoryContext old;
	Failed	   *f = failure_of(role, false);
	int			slot;
	int64		number;
	bool		ok;

	if (nstarted == AIDB_SLOTS || (f && f->again > GetCurrentTimestamp()))
		return;
	slot = aidb_reserve_slot(MyDatabaseId, role, &number);
	if (slot < 0)
		return;
	aidb_start_process(&worker, "aidb_worker_main", "aidb worker", slot);
	old = MemoryContextSwitchTo(TopMemoryContext);
	ok = RegisterDynamicBackgroundWorker(&worker, &started[nstarted].handle);
	MemoryContextSwitchTo(old);
	if (!ok)
	{
		static TimestampTz said = 0;

		aidb_free_slot(slot);
		if (TimestampDifferenceExceeds(said, GetCurrentTimestamp(), 60000))
		{
			said = GetCurrentTimestamp();
			ereport(LOG,
					(errmsg("aidb could not start a background process"),
					 errhint("Raise max_worker_processes: aidb needs one for each database with background tasks and one for each of aidb.max_workers.")));
		}
		return;
	}
	started[nstarted].slot = slot;
	started[nstarted].number = number;
	started[nstarted].role = role;
	nstarted++;
}

/* Whose worker is to make room for another role's; called with the lock held.  NULL: nobody's. */
static AidbSlot *
one_to_yield(void)
{
	AidbSlot   *best = NULL;
	int			best_count = 0;
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < AIDB_SLOTS; i++)
	{
		AidbSlot   *s = &aidb_shared->slots[i];
		int			count = 0;

		if (!s->used || s->database != MyDatabaseId || !OidIsValid(s->role))
			continue;
		if (s->yield)
			return NULL;		/* one is on its way out already */
		if (!s->attached)
			continue;
		for (int j = 0; j < AIDB_SLOTS; j++)
			if (aidb_shared->slots[j].used && aidb_shared->slots[j].database == MyDatabaseId && aidb_shared->slots[j].role == s->role)
				count++;
		/* one of several is to spare, the only one has its turn */
		if (count == 1 && !TimestampDifferenceExceeds(s->since, now, TURN_MS))
			continue;
		if (best == NULL || count > best_count || (count == best_count && s->since < best->since))
		{
			best = s;
			best_count = count;
		}
	}
	return best;
}

/* aidb.max_workers was lowered: the youngest make room at once. */
static void
shrink(void)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (;;)
	{
		AidbSlot   *youngest = NULL;
		int			staying = 0;

		for (int i = 0; i < AIDB_SLOTS; i++)
		{
			AidbSlot   *s = &aidb_shared->slots[i];

			if (!s->used || s->yield || s->database != MyDatabaseId || !OidIsValid(s->role))
				continue;
			staying++;
			if (youngest == NULL || s->since > youngest->since)
				youngest = s;
		}
		if (staying <= aidb_max_workers)
			break;
		youngest->yield = true;
		if (youngest->attached)
			SetLatch(youngest->latch);
	}
	LWLockRelease(aidb_shared->lock);
}

static void
staff(const Waiting *waiting, int nwaiting)
{
	shrink();
	for (int w = 0; w < nwaiting; w++)
	{
		int			all = 0,
					own = 0;
		bool		coming = false;

		LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
		for (int i = 0; i < AIDB_SLOTS; i++)
		{
			AidbSlot   *s = &aidb_shared->slots[i];

			if (!s->used || s->database != MyDatabaseId || !OidIsValid(s->role))
				continue;
			all++;
			if (s->role != waiting[w].role || s->yield)
				continue;
			own++;
			coming |= !s->attached;
			s->wake = true;
			if (s->attached)
				SetLatch(s->latch);
		}
		if (own == 0 && all >= aidb_max_workers)
		{
			AidbSlot   *s = one_to_yield();

			if (s)
			{
				s->yield = true;
				SetLatch(s->latch);
			}
		}
		LWLockRelease(aidb_shared->lock);
		/* the last place is for a role that has none: who floods does not make it wait */
		if (own == 0 ? all < aidb_max_workers : all < aidb_max_workers - 1 && !coming && waiting[w].oldest_ms > PATIENCE_MS)
			start_worker(waiting[w].role);
	}
}

static bool
has_workers(void)
{
	bool		some = false;

	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_SLOTS; i++)
		some |= aidb_shared->slots[i].used && aidb_shared->slots[i].database == MyDatabaseId && OidIsValid(aidb_shared->slots[i].role);
	LWLockRelease(aidb_shared->lock);
	return some;
}

void
aidb_keeper_main(Datum arg)
{
	AidbSlot   *slot;
	Oid			database;
	Waiting		waiting[64];
	int			nwaiting;
	TimestampTz busy,
				next = 0;		/* look, at the latest */
	long		timeout = -1;	/* the same in ms; -1: when asked to */

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	slot = aidb_attach_slot(DatumGetInt32(arg));
	database = slot->database;
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	busy = GetCurrentTimestamp();

	for (;;)
	{
		long		due,
					maintenance;
		bool		there,
					asked,
					wrote;

		if (ProcDiePending || slot->stop)
			proc_exit(0);
		CHECK_FOR_INTERRUPTS();
		asked = ConfigReloadPending;
		aidb_process_settings();
		if (aidb_take_wake(slot))
		{
			asked = true;
			busy = GetCurrentTimestamp();
		}
		asked |= forget_ended();
		/* a session waits for it, and it is no reason to look at all the rest */
		aidb_take_write(slot);
		wrote = aidb_write_audit();
		if (wrote)
			busy = GetCurrentTimestamp();
		if (asked || !wrote || next <= GetCurrentTimestamp())
		{
			there = look(waiting, &nwaiting, (int) lengthof(waiting), &due);
			staff(waiting, nwaiting);
			maintenance = there ? aidb_maintain_logs(owner) : -1;
			if (nwaiting > 0)
				busy = GetCurrentTimestamp();
			if (!has_workers() && nwaiting == 0 && due < 0 &&
				(!there || TimestampDifferenceExceeds(busy, GetCurrentTimestamp(), aidb_worker_idle_timeout * 1000)) &&
				aidb_leave_if_idle(slot))
				proc_exit(0);
			timeout = due >= 0 ? due : nwaiting > 0 ? LOOK_AGAIN_MS : has_workers() ? -1 : aidb_worker_idle_timeout * 1000L;
			if (nwaiting > 0)
				timeout = Min(timeout, LOOK_AGAIN_MS);
			if (maintenance >= 0 && (timeout < 0 || maintenance < timeout))
				timeout = maintenance;
			next = timeout >= 0 ? TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout) : PG_INT64_MAX;
		}
		else if (timeout >= 0)
			timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout >= 0 ? WL_TIMEOUT : 0), timeout, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
