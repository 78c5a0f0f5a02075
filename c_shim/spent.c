/*
 * spent.c
 *		What callers have used today, as quotas count it: in shared memory, so that
 *		it counts for all sessions as it is used, and whatever becomes of the
 *		transaction that used it.
 *
 * An entry is for a caller in a database, either behind one principal or behind
 * all of them.  It knows since when it counts: what was used before that, before
 * the server's start as a rule, is in aidb_internal.quota_usage as far as it was
 * committed.  Entries are never given back, but a new day begins them anew; when
 * the place where an entry belongs is full, one of an older day goes, else the
 * one that has counted least: what that one counted is then known only as far as
 * it was committed.
 *
 * Preloaded, the library reserves room for many; without that the table is made
 * at its first use, a small one, in the room that the server keeps for such
 * things.
 */
#include "aidb.h"

#include "common/hashfn.h"
#include "common/int.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "shared_table.h"

#define BUCKET 16
#define BUCKETS_PRELOADED 512
#define BUCKETS_SMALL 24

typedef struct Spent
{
	uint64		key[2];			/* both zero: free */
	int64		day;			/* since 1970, UTC */
	TimestampTz since;
	int64		calls;
	int64		tokens;
	int64		cost;
} Spent;

typedef struct Table
{
	AidbTableHead head;
	Spent		entries[FLEXIBLE_ARRAY_MEMBER];
} Table;

static Table *table = NULL;
static int	buckets = BUCKETS_SMALL;

static Size
room(void)
{
	return offsetof(Table, entries) + sizeof(Spent) * BUCKET * buckets;
}

static void
request_room(void)
{
	RequestAddinShmemSpace(MAXALIGN(room()));
}

AIDB_SHMEM_REQUEST(request_room)

void
aidb_spent_preload(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	buckets = BUCKETS_PRELOADED;
	AIDB_REQUEST_SHMEM(request_room);
}

static void
attach(void)
{
	if (table)
		return;
	table = aidb_shared_table("aidb spent", room());
}

/* The entry of a caller, made if need be. */
static Spent *
find(const char *caller, const char *principal, int64 day, TimestampTz now)
{
	uint64		key[2];
	Spent	   *bucket,
			   *worst;

	for (int i = 0; i < 2; i++)
	{
		key[i] = hash_bytes_extended((const unsigned char *) caller, strlen(caller) + 1, (uint64) MyDatabaseId << 1 | i);
		key[i] = hash_bytes_extended((const unsigned char *) principal, strlen(principal) + 1, key[i]);
	}
	if (key[0] == 0 && key[1] == 0)
		key[1] = 1;
	bucket = worst = &table->entries[key[0] % buckets * BUCKET];
	for (Spent *s = bucket; s < bucket + BUCKET; s++)
	{
		if (s->key[0] == key[0] && s->key[1] == key[1])
		{
			/* the clock may be set back a little: a day once begun goes on */
			if (s->day < day)
			{
				s->day = day;
				s->since = day * USECS_PER_DAY - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
				s->calls = s->tokens = s->cost = 0;
			}
			return s;
		}
		if (s->day < worst->day || (s->day == worst->day && s->tokens < worst->tokens))
			worst = s;
	}
	memset(worst, 0, sizeof(Spent));
	memcpy(worst->key, key, sizeof(key));
	worst->day = day;
	worst->since = now;
	return worst;
}

static int64
plus(int64 a, int64 b)
{
	int64		sum;

	return pg_add_s64_overflow(a, b, &sum) ? PG_INT64_MAX : Max(0, sum);
}

/*
 * Adds to what a caller behind a principal, and behind all of them, has used, and
 * answers what both have, and since when (microseconds since 1970).
 */
void
aidb_spend(AidbReader *r, StringInfo reply)
{
	char	   *caller = aidb_read_text(r);
	char	   *principal = aidb_read_text(r);
	int64		day = aidb_read_int(r);
	int64		calls = aidb_read_int(r);
	int64		tokens = aidb_read_int(r);
	int64		cost = aidb_read_int(r);
	TimestampTz now = GetCurrentTimestamp();
	Spent		both[2];
	char	   *behind;

	if (caller == NULL || principal == NULL)
		elog(ERROR, "nobody has spent anything");
	behind = psprintf("=%s", principal);
	attach();
	LWLockAcquire(&table->head.lock, LW_EXCLUSIVE);
	for (int i = 0; i < 2; i++)
	{
		Spent	   *s = find(caller, i == 0 ? "" : behind, day, now);

		s->calls = plus(s->calls, calls);
		s->tokens = plus(s->tokens, tokens);
		s->cost = plus(s->cost, cost);
		both[i] = *s;
	}
	LWLockRelease(&table->head.lock);
	for (int i = 0; i < 2; i++)
	{
		aidb_fields_int(reply, both[i].calls);
		aidb_fields_int(reply, both[i].tokens);
		aidb_fields_int(reply, both[i].cost);
		aidb_fields_int(reply, both[i].since + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY);
	}
}
