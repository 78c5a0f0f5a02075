/*
 * staff.c
 *		The keeper's processes: which workers there are to be, and the expirer.
 *
 *	- A role that has tasks waiting and no worker gets one;
 *	- a role whose oldest task has waited for long gets one more, while there
 *	  is room for it and for another role's first: its workers have all they
 *	  can do, or one of them is in a long statement;
 *	- when there is no room and a role has none, the role with the most workers
 *	  gives one up at once, or, when each has one, the one that has had its
 *	  worker longest, after its turn; that one hands its tasks back and ends.
 */
#include "worker.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "aidb.h"
#include "compat.h"

/* A task that has waited for so long may have another worker. */
#define PATIENCE_MS 1000
/* How long a role keeps its worker when others have none. */
#define TURN_MS 5000

typedef struct Started
{
	int			slot;
	int64		number;			/* of the slot, as it was reserved for it */
	Oid			role;
	BackgroundWorkerHandle *handle;
} Started;

static Started started[AIDB_SLOTS];
static int	nstarted = 0;

/* Roles whose worker did not come up, not to be tried again before.  InvalidOid: the expirer, whatever became of it. */
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
bool
aidb_forget_ended(void)
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
				f->again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), AIDB_LOOK_AGAIN_MS << f->times);
			}
		}
		pfree(started[i].handle);
		started[i--] = started[--nstarted];
		some = true;
	}
	return some;
}

/* A worker of the role, or, without one, the expirer. */
static void
start_process(Oid role)
{
	BackgroundWorker worker = {0};
	MemoryContext old;
	Failed	   *f = failure_of(role, false);
	int			slot;
	int64		number;
	bool		ok;

	if (nstarted == AIDB_SLOTS || (f && f->again > GetCurrentTimestamp()))
		return;
	slot = aidb_reserve_slot(OidIsValid(role) ? AIDB_WORKER : AIDB_EXPIRER, MyDatabaseId, role, &number);
	if (slot < 0)
		return;
	if (OidIsValid(role))
		aidb_start_process(&worker, "aidb_worker_main", "aidb worker", slot);
	else
		aidb_start_process(&worker, "aidb_expirer_main", "aidb expirer", slot);
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

/*
 * Starts an expirer when actions are overdue; in how many ms to look again, when
 * they are.  Not more often than once a second, and less often while what is
 * overdue stays so.
 */
long
aidb_send_expirer(bool overdue)
{
	Failed	   *f = failure_of(InvalidOid, true);
	TimestampTz now = GetCurrentTimestamp();

	if (f == NULL)
		return AIDB_LOOK_AGAIN_MS;
	if (!overdue)
		f->times = 0;
	else if (f->again <= now)
	{
		start_process(InvalidOid);
		f->again = TimestampTzPlusMilliseconds(now, AIDB_LOOK_AGAIN_MS << f->times);
		f->times = Min(f->times + 1, 6);
	}
	return TimestampDifferenceMilliseconds(now, f->again) + 1;
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

void
aidb_staff(const AidbWaiting *waiting, int nwaiting)
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
			start_process(waiting[w].role);
	}
}

bool
aidb_has_workers(void)
{
	bool		some = false;

	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_SLOTS; i++)
		some |= aidb_shared->slots[i].used && aidb_shared->slots[i].database == MyDatabaseId && OidIsValid(aidb_shared->slots[i].role);
	LWLockRelease(aidb_shared->lock);
	return some;
}
