/*
 * totals.c
 *		What conditions of temporal policies have counted, kept.
 *
 * A question about all time, or about a time in which much has happened, must
 * not read all of it, for each call again.  What the events came to until some
 * event is kept (aidb_internal.event_totals), every now and then: the guard does
 * it, when they have become many.  They are counted since the first event that
 * somebody asked for: since tells totals apart that cannot be subtracted.
 *
 * Until which event?  Events get their numbers before they are committed, so an
 * older one may come to light later, and would be counted never.  Whoever writes
 * events holds a lock on their session and on their principal, shared, until the
 * end of the transaction; when the guard gets it alone for a moment, all events
 * so far are there to be seen.
 */
#include "aidb.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "events.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#define AIDB_LOCK_EVENTS 0xA1DE /* beside those of guard.c and requests.c */
#define LOCKS 1024				/* of a transaction at most, however many sessions it writes to */
#define MAX_KEY 2000			/* bytes, of what goes into the index */

/* columns of aidb_internal.event_totals */
enum
{
	TOTAL_KIND = 1, TOTAL_WHO, TOTAL_TOOL, TOTAL_PATH, TOTAL_UPTO, TOTAL_CALLS, TOTAL_SUM, TOTAL_SINCE
};

/* The machine whose condition is being evaluated, or NULL. */
static AidbGuard *asking = NULL;
static MemoryContext asking_memory = NULL;

/* What is to be kept: a member of AidbGuard.totals. */
typedef struct Total
{
	Question	q;
	char	   *upto;
	char	   *calls;
	char	   *sum;
	char	   *since;
} Total;

static const char *const keep_sql =
	"INSERT INTO aidb_internal.event_totals AS t (kind, who, tool_name, path, upto, calls, total, since) "
	"VALUES ($1, $2, $3, $4, $5::bigint, $6::bigint, $7::numeric, $8::bigint) ON CONFLICT ON CONSTRAINT event_totals_pkey "
	"DO UPDATE SET since = excluded.since, calls = excluded.calls, total = excluded.total WHERE t.since > excluded.since";

/* --- which events are there to be seen ------------------------------------------------ */

static void
set_tag(LOCKTAG *tag, const char *who)
{
	uint32		hash = hash_bytes((const unsigned char *) who, (int) strlen(who));

	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, 0, hash % LOCKS, AIDB_LOCK_EVENTS);
}

/* Before an event gets its number. */
void
aidb_lock_events(const char *session, const char *principal)
{
	LOCKTAG		tag;

	set_tag(&tag, session);
	(void) LockAcquire(&tag, ShareLock, false, false);
	set_tag(&tag, principal);
	(void) LockAcquire(&tag, ShareLock, false, false);
}

/* The last event so far, when all until then can be seen by a statement that begins now; else -1. */
static int64
all_seen(const char *who)
{
	LOCKTAG		tag;
	Datum		sequence = ObjectIdGetDatum(aidb_own_relation("session_events_id_seq"));
	bool		isnull;
	Datum		last;

	/* a snapshot of the whole transaction is older than that */
	if (who == NULL || IsolationUsesXactSnapshot())
		return -1;
	set_tag(&tag, who);
	if (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return -1;
	last = call(pg_sequence_last_value, 1, &sequence, &isnull);
	LockRelease(&tag, ExclusiveLock, false);
	return isnull ? 0 : DatumGetInt64(last);
}

/* Before the condition of a machine is evaluated; in the owner's scope. */
void
aidb_events_settle(AidbGuard *g)
{
	g->session_seen = g->principal_seen = -1;
	if (g->condition_sql == NULL || strstr(g->condition_sql, "event_") == NULL)
		return;
	g->session_seen = all_seen(g->session);
	g->principal_seen = all_seen(g->counts_principal ? g->principal : NULL);
}

/* Whose condition is evaluated from now on; NULL: nobody's. */
void
aidb_events_asking(AidbGuard *g, MemoryContext memory)
{
	asking = g;
	asking_memory = memory;
}

bool
aidb_condition_asks(void)
{
	return asking != NULL;
}

/*
 * Whether a condition asks in a transaction of one snapshot.  The calls of a
 * principal are let through one after the other; those that were let through
 * since that snapshot have to be counted as well.
 */
bool
aidb_snapshot_is_old(void)
{
	return asking != NULL && IsolationUsesXactSnapshot();
}

/* What is counted over its principal is to be counted under the lock of that principal. */
void
aidb_note_principal(const Question *q)
{
	if (asking && asking->principal && q->of_principal && strcmp(asking->principal, q->who) == 0)
		asking->counted_principal = true;
}

/* Keeps what the conditions of a machine have counted; in the owner's scope. */
void
aidb_events_keep(AidbGuard *g)
{
	ListCell   *lc;

	foreach(lc, g->totals)
	{
		Total	   *t = lfirst(lc);
		const char *args[] = {t->q.of_principal ? "principal" : "session", t->q.who, t->q.tool,
		t->q.path ? t->q.path : "", t->upto, t->calls, t->sum, t->since};

		aidb_execute(keep_sql, 8, args);
	}
	g->totals = NIL;
}

/* The answer is to be kept, by the machine in hand. */
void
aidb_note_total(const Question *q, int64 since, int64 upto, const Tally *tally)
{
	MemoryContext old = MemoryContextSwitchTo(asking_memory);
	Total	   *t = palloc0(sizeof(Total));

	t->q = *q;
	t->q.who = pstrdup(q->who);
	t->q.tool = pstrdup(q->tool);
	t->q.path = q->path ? pstrdup(q->path) : NULL;
	t->since = psprintf(INT64_FORMAT, since);
	t->upto = psprintf(INT64_FORMAT, upto);
	t->calls = psprintf(INT64_FORMAT, tally->calls);
	t->sum = DatumGetCString(DirectFunctionCall1(numeric_out, tally->sum));
	asking->totals = lappend(asking->totals, t);
	MemoryContextSwitchTo(old);
}

/* Until which event the answer could be kept; -1: it is not. */
int64
aidb_keepable(const Question *q)
{
	const char *who = asking ? (q->of_principal ? asking->principal : asking->session) : NULL;

	if (who == NULL || strcmp(who, q->who) != 0 ||
		strlen(q->who) + strlen(q->tool) + (q->path ? strlen(q->path) : 0) > MAX_KEY)
		return -1;
	return q->of_principal ? asking->principal_seen : asking->session_seen;
}

/*
 * The last that is kept of what came before an event, counted since a given one
 * (-1: any).  False: nothing is.
 */
bool
aidb_read_total(const Question *q, int64 below, int64 *since, int64 *upto, Tally *tally)
{
	Relation	table = table_open(aidb_own_relation("event_totals"), AccessShareLock);
	Relation	index = index_open(aidb_own_relation("event_totals_pkey"), AccessShareLock);
	const char *values[] = {q->of_principal ? "principal" : "session", q->who, q->tool, q->path ? q->path : ""};
	ScanKeyData keys[6];
	SysScanDesc scan;
	HeapTuple	row;
	bool		found = false;

	for (int i = 0; i < (int) lengthof(values); i++)
		set_key(&keys[i], table, TOTAL_KIND + i, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(values[i]));
	set_key(&keys[4], table, TOTAL_UPTO, BTLessStrategyNumber, F_INT8LT, Int64GetDatum(below));
	set_key(&keys[5], table, TOTAL_UPTO, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(*since));
	scan = systable_beginscan_ordered(table, index, GetActiveSnapshot(), lengthof(keys), keys);
	while (!found && (row = systable_getnext_ordered(scan, BackwardScanDirection)) != NULL)
	{
		int64		from = DatumGetInt64(field(table, row, TOTAL_SINCE));

		CHECK_FOR_INTERRUPTS();
		if (*since >= 0 && from != *since)
			continue;
		found = true;
		*since = from;
		*upto = DatumGetInt64(field(table, row, TOTAL_UPTO));
		tally->calls = DatumGetInt64(field(table, row, TOTAL_CALLS));
		tally->sum = PointerGetDatum(PG_DETOAST_DATUM_COPY(field(table, row, TOTAL_SUM)));
	}
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(table, AccessShareLock);
	return found;
}
