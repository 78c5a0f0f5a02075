/*
 * limits.c
 *		Limits of a model, shared by all processes of the server: requests at a
 *		time, requests and tokens a minute, and the pause that a provider asks for.
 *
 * The state is a small table in shared memory.  Preloaded, the library reserves
 * its room at start; without that the table is made at its first use, in the
 * room that the server keeps for such things.
 *
 * A key stands for an address, a model there and an account.  A minute is a
 * window of slots of five seconds: what is counted is the current slot and the
 * twelve before it, so that no sixty seconds ever see more than the limit.
 *
 * What a process has entered it leaves again: at the end of the run, however it
 * ends, and at the process's exit.  A process that is killed takes the server's
 * shared memory with it, which starts anew.
 */
#include "aidb.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define ENTRIES 64
#define SLOTS 13
#define SLOT_USECS INT64CONST(5000000)
#define KEY_LEN 40
#define FULL_WAIT_MS 250		/* between two looks for a free place */

typedef struct Entry
{
	char		key[KEY_LEN];
	int			running;
	TimestampTz used;			/* when it was asked for at last */
	TimestampTz paused;			/* until then nobody enters */
	int64		slot;			/* number of the newest slot */
	int32		requests[SLOTS];
	int64		tokens[SLOTS];
} Entry;

typedef struct Table
{
	LWLock		lock;
	int			tranche;
	Entry		entries[ENTRIES];
} Table;

/* What this process is in, for runs that end without leaving. */
typedef struct Stay
{
	uint64		run;
	int			entry;
} Stay;

static Table *table = NULL;
static Stay *stays = NULL;
static int	nstays = 0;
static int	maxstays = 0;

static void
request_room(void)
{
	RequestAddinShmemSpace(MAXALIGN(sizeof(Table)));
}

AIDB_SHMEM_REQUEST(request_room)

void
aidb_limits_preload(void)
{
	if (process_shared_preload_libraries_in_progress)
		AIDB_REQUEST_SHMEM(request_room);
}

static void
leave_at_exit(int code, Datum arg)
{
	aidb_limits_end(0);
}

static void
attach(void)
{
	bool		found;

	if (table)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	table = ShmemInitStruct("aidb limits", sizeof(Table), &found);
	if (!found)
	{
		memset(table, 0, sizeof(Table));
		table->tranche = LWLockNewTrancheId();
		LWLockInitialize(&table->lock, table->tranche);
	}
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(table->tranche, "aidb limits");
	before_shmem_exit(leave_at_exit, (Datum) 0);
}

/* The entry of a key, made if need be; -1 when every place is taken by others that run. */
static int
find(const char *key, TimestampTz now)
{
	int			free = -1;

	for (int i = 0; i < ENTRIES; i++)
	{
		Entry	   *e = &table->entries[i];

		if (strncmp(e->key, key, KEY_LEN - 1) == 0)
			return i;
		if (e->running == 0 && (free < 0 || e->used < table->entries[free].used))
			free = i;
	}
	if (free >= 0)
	{
		memset(&table->entries[free], 0, sizeof(Entry));
		strlcpy(table->entries[free].key, key, KEY_LEN);
		table->entries[free].slot = now / SLOT_USECS;
	}
	return free;
}

/* Forgets what is older than a minute. */
static void
roll(Entry *e, int64 slot)
{
	if (slot - e->slot >= SLOTS || slot < e->slot - 1)
	{
		memset(e->requests, 0, sizeof(e->requests));
		memset(e->tokens, 0, sizeof(e->tokens));
		e->slot = slot;
	}
	while (e->slot < slot)
	{
		e->slot++;
		e->requests[e->slot % SLOTS] = 0;
		e->tokens[e->slot % SLOTS] = 0;
	}
}

/*
 * How long until the window has room, in microseconds; 0: it has.  A request
 * that is larger than all of a limit passes when nothing else is in the window.
 */
static int64
wait_for_room(Entry *e, int64 limit_requests, int64 limit_tokens, int64 tokens, TimestampTz now)
{
	int64		requests = 0,
				sum = 0;

	for (int i = 0; i < SLOTS; i++)
	{
		requests += e->requests[i];
		sum += e->tokens[i];
	}
	for (int64 slot = e->slot - SLOTS + 1;; slot++)
	{
		bool		fits = (limit_requests <= 0 || requests + 1 <= limit_requests) &&
			(limit_tokens <= 0 || sum == 0 || sum + tokens <= limit_tokens);

		/* the slots before this one have left the window when it begins at this one */
		if (fits || slot > e->slot)
			return Max(0, (slot + SLOTS - 1) * SLOT_USECS - now);
		requests -= e->requests[slot % SLOTS];
		sum -= e->tokens[slot % SLOTS];
	}
}

/* Answers how many milliseconds to wait (0: entered), and for what. */
static void
admit(AidbReader *r, StringInfo reply, uint64 run)
{
	char	   *key = aidb_read_text(r);
	int64		concurrent = aidb_read_int(r);
	int64		requests = aidb_read_int(r);
	int64		limit_tokens = aidb_read_int(r);
	int64		tokens = aidb_read_int(r);
	TimestampTz now = GetCurrentTimestamp();
	const char *why = "";
	int64		wait = 0;
	int			i;
	Entry	   *e;

	if (key == NULL || key[0] == '\0' || strlen(key) >= KEY_LEN)
		elog(ERROR, "impossible key of a model's limits");
	tokens = Max(0, tokens);
	attach();
	if (nstays == maxstays)
	{
		int			more = Max(8, maxstays * 2);

		stays = stays ? repalloc(stays, sizeof(Stay) * more) : MemoryContextAlloc(TopMemoryContext, sizeof(Stay) * more);
		maxstays = more;
	}
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	i = find(key, now);
	if (i < 0)
	{
		wait = FULL_WAIT_MS * INT64CONST(1000);
		why = "concurrent";
	}
	else
	{
		e = &table->entries[i];
		e->used = now;
		roll(e, now / SLOT_USECS);
		if (e->paused > now)
		{
			wait = e->paused - now;
			why = "paused";
		}
		else if (concurrent > 0 && e->running >= concurrent)
		{
			wait = 1;
			why = "concurrent";
		}
		else if ((wait = wait_for_room(e, requests, limit_tokens, tokens, now)) > 0)
			why = "rate";
		else
		{
			e->running++;
			e->requests[e->slot % SLOTS]++;
			e->tokens[e->slot % SLOTS] += tokens;
			stays[nstays].run = run;
			stays[nstays].entry = i;
			nstays++;
		}
	}
	LWLockRelease(&table->lock);
	aidb_fields_int(reply, (wait + 999) / 1000);
	aidb_fields_text(reply, why);
}

static void
leave(int at, int64 correction)
{
	Entry	   *e = &table->entries[stays[at].entry];

	if (e->running > 0)
		e->running--;
	roll(e, GetCurrentTimestamp() / SLOT_USECS);
	e->tokens[e->slot % SLOTS] = Max(0, e->tokens[e->slot % SLOTS] + correction);
	stays[at] = stays[--nstays];
}

/* A request is over; what it really used takes the place of what was thought. */
static void
leave_early(AidbReader *r, uint64 run)
{
	char	   *key = aidb_read_text(r);
	int64		thought = aidb_read_int(r);
	int64		used = aidb_read_int(r);

	if (table == NULL || key == NULL)
		return;
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	for (int i = 0; i < nstays; i++)
		if (stays[i].run == run && strcmp(table->entries[stays[i].entry].key, key) == 0)
		{
			leave(i, used > 0 ? used - thought : 0);
			break;
		}
	LWLockRelease(&table->lock);
}

/* Nobody is to enter for so many milliseconds. */
static void
pause_all(AidbReader *r)
{
	char	   *key = aidb_read_text(r);
	int64		ms = aidb_read_int(r);
	TimestampTz now = GetCurrentTimestamp();
	int			i;

	if (key == NULL || ms <= 0)
		return;
	attach();
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	i = find(key, now);
	if (i >= 0)
		table->entries[i].paused = Max(table->entries[i].paused, TimestampTzPlusMilliseconds(now, ms));
	LWLockRelease(&table->lock);
}

/* These messages touch nothing but the table: they need no transaction. */
bool
aidb_limits_message(AidbBridge *b, const AidbMsg *m)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext mine;
	AidbReader	r;

	if (m->kind != AIDB_REQ_ADMIT && m->kind != AIDB_REQ_LEAVE && m->kind != AIDB_REQ_PAUSE)
		return false;
	mine = AllocSetContextCreate(outer, "aidb limits", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(mine);
	aidb_read_begin(&r, m);
	if (m->kind == AIDB_REQ_ADMIT)
	{
		StringInfoData reply;
		AidbMsg    *answer;

		initStringInfo(&reply);
		aidb_fields_begin(&reply);
		admit(&r, &reply, m->run);
		answer = aidb_msg_new(AIDB_REP_OK, m->run, m->seq, reply.len);
		if (answer == NULL)
			ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
		memcpy(answer->data, reply.data, reply.len);
		aidb_push(b, &b->replies, b->to_go, answer);
	}
	else if (m->kind == AIDB_REQ_LEAVE)
		leave_early(&r, m->run);
	else
		pause_all(&r);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(mine);
	return true;
}

/* A run has ended: it is in nothing any more.  0: all runs. */
void
aidb_limits_end(uint64 run)
{
	if (nstays == 0 || table == NULL)
		return;
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	for (int i = nstays - 1; i >= 0; i--)
		if (run == 0 || stays[i].run == run)
			leave(i, 0);
	LWLockRelease(&table->lock);
}
