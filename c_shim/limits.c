/*
 * limits.c
 *		Limits of a model or an MCP server, shared by all processes of the server:
 *		requests at a time, requests and tokens a minute, and the pause that a
 *		provider asks for.
 *
 * The state is a small table in shared memory.  Preloaded, the library reserves
 * its room at start; without that the table is made at its first use, in the
 * room that the server keeps for such things.
 *
 * A key stands for an address, a model there and an account; its name, kind and
 * database are those of whoever asked last, for aidb.shared_limits.  A minute is a
 * window of slots of five seconds: what is counted is the current slot and the
 * twelve before it, so that no sixty seconds ever see more than the limit.
 *
 * What a process has entered it leaves again: at the end of the run, however it
 * ends, and at the process's exit.  A process that is killed takes the server's
 * shared memory with it, which starts anew.
 */
#include "aidb.h"

#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "shared_table.h"

PG_FUNCTION_INFO_V1(aidb_shared_limits);

#define ENTRIES 64
#define SLOTS 13
#define SLOT_USECS INT64CONST(5000000)
#define KEY_LEN 40
#define KIND_LEN 16
#define NAME_LEN 128			/* a longer name is cut */
#define FULL_WAIT_MS 250		/* between two looks for a free place */

typedef struct Entry
{
	char		key[KEY_LEN];
	Oid			database;
	char		kind[KIND_LEN]; /* model, mcp_server */
	char		name[NAME_LEN];
	int			running;
	int			waiting;		/* who was not let in, and has not given up */
	TimestampTz used;			/* when it was asked for at last */
	TimestampTz paused;			/* until then nobody enters */
	int64		slot;			/* number of the newest slot */
	int32		requests[SLOTS];
	int64		tokens[SLOTS];
} Entry;

typedef struct Table
{
	AidbTableHead head;
	Entry		entries[ENTRIES];
} Table;

/* What this process is in, or waits for, for runs that end without leaving. */
typedef struct Stay
{
	uint64		run;
	int			entry;
	bool		waits;
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
	if (table)
		return;
	table = aidb_shared_table("aidb limits", sizeof(Table));
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
		if (e->running == 0 && e->waiting == 0 && (free < 0 || e->used < table->entries[free].used))
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

/* The stay of a run with an entry, as one that waits or as one that is in; -1: none. */
static int
stay_of(uint64 run, int entry, bool waits)
{
	for (int i = 0; i < nstays; i++)
		if (stays[i].run == run && stays[i].entry == entry && stays[i].waits == waits)
			return i;
	return -1;
}

/* Notes that a run is in, or waits; what waited before is in now. */
static void
stay(uint64 run, int entry, bool waits)
{
	Entry	   *e = &table->entries[entry];
	int			at = stay_of(run, entry, true);

	if (at >= 0 && waits)
		return;
	if (at < 0)
	{
		at = nstays++;
		stays[at].run = run;
		stays[at].entry = entry;
	}
	else
		e->waiting = Max(0, e->waiting - 1);
	stays[at].waits = waits;
	if (waits)
		e->waiting++;
	else
		e->running++;
}

/* Answers how many milliseconds to wait (0: entered), and for what. */
void
aidb_limits_admit(AidbReader *r, StringInfo reply, uint64 run)
{
	char	   *key = aidb_read_text(r);
	char	   *kind = aidb_read_text(r);
	char	   *name = aidb_read_text(r);
	int64		concurrent = aidb_read_int(r);
	int64		requests = aidb_read_int(r);
	int64		limit_tokens = aidb_read_int(r);
	int64		tokens = aidb_read_int(r);
	TimestampTz now = GetCurrentTimestamp();
	const char *why = "";
	int64		wait = 0;
	int			i;
	Entry	   *e;

	if (key == NULL || key[0] == '\0' || strlen(key) >= KEY_LEN || kind == NULL || name == NULL)
		elog(ERROR, "impossible key of shared limits");
	name[pg_mbcliplen(name, strlen(name), NAME_LEN - 1)] = '\0';
	tokens = Max(0, tokens);
	attach();
	if (nstays == maxstays)
	{
		int			more = Max(8, maxstays * 2);

		stays = stays ? repalloc(stays, sizeof(Stay) * more) : MemoryContextAlloc(TopMemoryContext, sizeof(Stay) * more);
		maxstays = more;
	}
	LWLockAcquire(&table->head.lock, LW_EXCLUSIVE);
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
		e->database = MyDatabaseId;
		strlcpy(e->kind, kind, KIND_LEN);
		strlcpy(e->name, name, NAME_LEN);
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
			e->requests[e->slot % SLOTS]++;
			e->tokens[e->slot % SLOTS] += tokens;
		}
		stay(run, i, wait > 0);
	}
	LWLockRelease(&table->head.lock);
	aidb_fields_int(reply, (wait + 999) / 1000);
	aidb_fields_text(reply, why);
}

static void
leave(int at, int64 correction)
{
	Entry	   *e = &table->entries[stays[at].entry];

	if (stays[at].waits)
		e->waiting = Max(0, e->waiting - 1);
	else
		e->running = Max(0, e->running - 1);
	roll(e, GetCurrentTimestamp() / SLOT_USECS);
	e->tokens[e->slot % SLOTS] = Max(0, e->tokens[e->slot % SLOTS] + correction);
	stays[at] = stays[--nstays];
}

/*
 * A request is over; what it really used takes the place of what was thought.
 * One that thought of less than nothing was never let in and waits no more.
 */
void
aidb_limits_leave(AidbReader *r, uint64 run)
{
	char	   *key = aidb_read_text(r);
	int64		thought = aidb_read_int(r);
	int64		used = aidb_read_int(r);

	if (table == NULL || key == NULL)
		return;
	LWLockAcquire(&table->head.lock, LW_EXCLUSIVE);
	for (int i = 0; i < nstays; i++)
		if (stays[i].run == run && stays[i].waits == (thought < 0) && strcmp(table->entries[stays[i].entry].key, key) == 0)
		{
			leave(i, used > 0 && thought >= 0 ? used - thought : 0);
			break;
		}
	LWLockRelease(&table->head.lock);
}

/* Nobody is to enter for so many milliseconds. */
void
aidb_limits_pause(AidbReader *r)
{
	char	   *key = aidb_read_text(r);
	int64		ms = aidb_read_int(r);
	TimestampTz now = GetCurrentTimestamp();
	int			i;

	if (key == NULL || ms <= 0)
		return;
	attach();
	LWLockAcquire(&table->head.lock, LW_EXCLUSIVE);
	i = find(key, now);
	if (i >= 0)
		table->entries[i].paused = Max(table->entries[i].paused, TimestampTzPlusMilliseconds(now, ms));
	LWLockRelease(&table->head.lock);
}

/* A run has ended: it is in nothing any more.  0: all runs. */
void
aidb_limits_end(uint64 run)
{
	if (nstays == 0 || table == NULL)
		return;
	LWLockAcquire(&table->head.lock, LW_EXCLUSIVE);
	for (int i = nstays - 1; i >= 0; i--)
		if (run == 0 || stays[i].run == run)
			leave(i, 0);
	LWLockRelease(&table->head.lock);
}

/* Behind aidb.shared_limits: what there is of this database. */
Datum
aidb_shared_limits(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Tuplestorestate *store = aidb_result_store(fcinfo, &desc);
	Entry	   *copy = palloc(sizeof(table->entries));
	TimestampTz now = GetCurrentTimestamp();

	attach();
	LWLockAcquire(&table->head.lock, LW_EXCLUSIVE);
	for (int i = 0; i < ENTRIES; i++)
		if (table->entries[i].key[0] != '\0')
			roll(&table->entries[i], now / SLOT_USECS);
	memcpy(copy, table->entries, sizeof(table->entries));
	LWLockRelease(&table->head.lock);
	for (int i = 0; i < ENTRIES; i++)
	{
		Entry	   *e = &copy[i];
		Datum		values[7];
		bool		nulls[7] = {false};
		int64		requests = 0,
					tokens = 0;

		if (e->key[0] == '\0' || e->kind[0] == '\0' || e->database != MyDatabaseId)
			continue;
		for (int j = 0; j < SLOTS; j++)
		{
			requests += e->requests[j];
			tokens += e->tokens[j];
		}
		values[0] = CStringGetTextDatum(e->kind);
		values[1] = CStringGetTextDatum(e->name);
		values[2] = Int32GetDatum(e->running);
		values[3] = Int32GetDatum(e->waiting);
		values[4] = Int64GetDatum(requests);
		values[5] = Int64GetDatum(tokens);
		values[6] = TimestampTzGetDatum(e->paused);
		nulls[6] = e->paused <= now;
		tuplestore_putvalues(store, desc, values, nulls);
	}
	return (Datum) 0;
}
