/*
 * tally.c
 *		Reading the events that a condition asks about, and adding them up.
 *
 * Few events are read as they are.  What many of them came to is a difference:
 * all until now, less all before the first that counts.  Both are kept here and
 * there along the way (totals.c), and only the events between are read, so that
 * a question costs the same whether a hundred events answer it or a million.
 */
#include "aidb.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "events.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#define FEW 64					/* events that are read as they are; as many are between two that are kept */

/* A question while it is answered. */
typedef struct Counting
{
	const Question *q;
	bool		all;			/* events of everybody; else each is looked at */
	Oid			owner;			/* of the extension */
	Tally	   *tally;			/* what is added to */
	int64		seen;			/* until here it may be kept; -1: it may not */
	int64		since;			/* and from here on it is counted; -1: it is not to be kept */
	int64		first;			/* the first event that was read */
	int64		read;			/* how many were */
} Counting;

/* --- reading ---------------------------------------------------------------------------- */

/*
 * Events of a question between two, or with by_time those in its window, by an
 * index of our choice: the planner, which does not know how few of a million
 * events are asked for, may take another.  Whether the caller may see them was
 * decided before.
 */
void
aidb_begin_events(Reading *r, const Question *q, bool by_time, int64 after, int64 below)
{
	ScanKeyData keys[4];
	int			n = 2;

	r->table = table_open(aidb_own_relation("session_events"), AccessShareLock);
	if (q->of_principal)
		set_key(&keys[0], r->table, EVENT_PRINCIPAL, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(q->who));
	else
		set_key(&keys[0], r->table, EVENT_SESSION, BTEqualStrategyNumber, F_UUID_EQ,
				DirectFunctionCall1(uuid_in, CStringGetDatum(q->who)));
	set_key(&keys[1], r->table, EVENT_TOOL, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(q->tool));
	if (by_time)
		set_key(&keys[n++], r->table, EVENT_AT, BTGreaterStrategyNumber, F_TIMESTAMPTZ_GT, TimestampTzGetDatum(q->after));
	else
	{
		set_key(&keys[n++], r->table, EVENT_ID, BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(after));
		set_key(&keys[n++], r->table, EVENT_ID, BTLessStrategyNumber, F_INT8LT, Int64GetDatum(Min(below, aidb_replayed_event)));
	}
	r->index = index_open(aidb_own_relation(q->of_principal
											? (by_time ? "session_events_principal_idx" : "session_events_principal_id_idx")
											: (by_time ? "session_events_session_idx" : "session_events_session_id_idx")),
						  AccessShareLock);
	r->scan = systable_beginscan_ordered(r->table, r->index, GetActiveSnapshot(), n, keys);
}

void
aidb_end_events(Reading *r)
{
	systable_endscan_ordered(r->scan);
	index_close(r->index, AccessShareLock);
	table_close(r->table, AccessShareLock);
}

/* A path: names separated by dots, or a JSON path that begins with $. */
typedef struct Path
{
	bool		is_jsonpath;
	Datum		path;			/* jsonpath or text[] */
	Datum		itself;			/* text[] of no name */
	Datum		no_vars;
} Path;

static void
read_path(Path *p, const char *text)
{
	p->is_jsonpath = text[0] == '$';
	p->itself = PointerGetDatum(construct_empty_array(TEXTOID));
	if (p->is_jsonpath)
		p->path = DirectFunctionCall1(jsonpath_in, CStringGetDatum(text));
	else if (text[0] == '\0')
		p->path = p->itself;
	else
		p->path = OidFunctionCall2Coll(F_STRING_TO_ARRAY_TEXT_TEXT, DEFAULT_COLLATION_OID,
									   CStringGetTextDatum(text), CStringGetTextDatum("."));
	p->no_vars = DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"));
}

/* The number in the arguments of a call; false: there is none. */
static bool
value_at(Datum params, const Path *p, Datum *number)
{
	Datum		args[4] = {params, p->path, p->no_vars, BoolGetDatum(false)};
	bool		isnull;

	if (p->is_jsonpath)
	{
		args[0] = call(jsonb_path_query_first, 4, args, &isnull);
		if (isnull)
			return false;
		args[1] = p->itself;
	}
	args[0] = call(jsonb_extract_path_text, 2, args, &isnull);
	if (!isnull)
		*number = DirectFunctionCall3(numeric_in, CStringGetDatum(TextDatumGetCString(args[0])),
									  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	return !isnull;
}

Datum
aidb_zero(void)
{
	return DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
}

static void
add_value(Tally *t, Datum number, MemoryContext memory)
{
	MemoryContext old = MemoryContextSwitchTo(memory);
	Datum		sum = DirectFunctionCall2(numeric_add, t->sum, number);

	pfree(DatumGetPointer(t->sum));
	t->sum = sum;
	MemoryContextSwitchTo(old);
}

/* --- counting --------------------------------------------------------------------------- */

static bool
counts(const Counting *c, const Reading *r, HeapTuple row, int64 id)
{
	if (id >= aidb_replayed_event)
		return false;
	if (c->all || !c->q->of_principal)
		return true;
	return aidb_event_is_mine(DatumGetCString(DirectFunctionCall1(uuid_out, field(r->table, row, EVENT_SESSION))),
							  TextDatumGetCString(field(r->table, row, EVENT_POLICY)), GetUserId(), c->owner);
}

/*
 * Adds up events: those of the window, or those between two.  False: there are
 * more than at_most.
 */
static bool
add_events(Counting *c, bool by_time, int64 after, int64 below, int64 at_most)
{
	MemoryContext home = CurrentMemoryContext;
	MemoryContext each = AllocSetContextCreate(home, "aidb event", ALLOCSET_SMALL_SIZES);
	int64		settled = 0;
	Path		path = {0};
	Reading		r;
	HeapTuple	row;

	if (c->q->path)
		read_path(&path, c->q->path);
	c->read = 0;
	aidb_begin_events(&r, c->q, by_time, after, below);
	while (c->read <= at_most && (row = systable_getnext_ordered(r.scan, ForwardScanDirection)) != NULL)
	{
		int64		id = DatumGetInt64(field(r.table, row, EVENT_ID));
		Datum		number;

		CHECK_FOR_INTERRUPTS();
		if (c->read++ == 0)
			c->first = id;
		MemoryContextReset(each);
		MemoryContextSwitchTo(each);
		if (c->since >= 0 && id > c->seen)
		{
			if (settled >= FEW)
				aidb_note_total(c->q, c->since, c->seen, c->tally);
			c->since = -1;
		}
		if (counts(c, &r, row, id))
		{
			c->tally->calls++;
			settled++;
			if (c->q->path && value_at(field(r.table, row, EVENT_PARAMS), &path, &number))
				add_value(c->tally, number, home);
		}
		MemoryContextSwitchTo(home);
	}
	aidb_end_events(&r);
	if (c->since >= 0 && settled >= FEW)
		aidb_note_total(c->q, c->since, c->seen, c->tally);
	c->since = -1;
	MemoryContextDelete(each);
	return c->read <= at_most;
}

static void
clear(Tally *t)
{
	t->calls = 0;
	t->sum = aidb_zero();
}

/* What came before the first event that counts, of all that a total has. */
static void
tally_before(Counting *c, int64 first, int64 since, Tally *before)
{
	Counting	earlier = *c;
	int64		after = since - 1;

	clear(before);
	if (first <= since)
		return;
	earlier.tally = before;
	earlier.since = -1;
	(void) aidb_read_total(c->q, first, &since, &after, before);
	(void) add_events(&earlier, false, after, first, PG_INT64_MAX);
	if (earlier.read >= FEW && c->seen >= 0)
		aidb_note_total(c->q, since, first - 1, before);
}

/* All since an event, with the help of what is kept. */
static void
tally_since(Counting *c, int64 first)
{
	int64		since = first == 0 ? 0 : -1;	/* all, or any that has enough */
	int64		after = 0;
	Tally		before;

	if (aidb_read_total(c->q, aidb_replayed_event, &since, &after, c->tally) && since <= first && after >= first)
		tally_before(c, first, since, &before);
	else
	{
		clear(c->tally);
		clear(&before);
		since = first;
		after = first - 1;
	}
	c->since = c->seen >= 0 ? since : -1;
	(void) add_events(c, false, after, PG_INT64_MAX, PG_INT64_MAX);
	c->tally->calls -= before.calls;
	c->tally->sum = DirectFunctionCall2(numeric_sub, c->tally->sum, before.sum);
}

static bool
is_finite(Datum number)
{
	return !numeric_is_nan(DatumGetNumeric(number)) && !numeric_is_inf(DatumGetNumeric(number));
}

/*
 * The answer to a question.  Events that are in a window are those from its
 * first on: they get number and time together, and where the clock was set back
 * or two sessions were at it within the same microseconds, number decides.
 */
static void
tally_events(const Question *q, bool all, Oid owner, Tally *tally)
{
	Counting	c = {.q = q,.all = all,.owner = owner,.tally = tally,.seen = aidb_keepable(q),.since = -1};

	if (!all && !q->of_principal && !aidb_event_is_mine(q->who, NULL, GetUserId(), owner))
		return;
	if (all && !q->windowed)
	{
		tally_since(&c, 0);
		return;
	}
	/* of a past call, what was in its window is not kept */
	if (all && aidb_replayed_event == PG_INT64_MAX)
	{
		if (add_events(&c, true, 0, PG_INT64_MAX, FEW))
			return;
		tally_since(&c, c.first);
		/* no difference gets rid of one that is no number */
		if (is_finite(tally->sum))
			return;
	}
	clear(tally);
	(void) add_events(&c, q->windowed, 0, PG_INT64_MAX, PG_INT64_MAX);
}

void
aidb_tally_events(const Question *q, bool all, Oid owner, Tally *tally)
{
	bool		old = aidb_snapshot_is_old();

	aidb_note_principal(q);
	if (old)
		aidb_push_newest_snapshot();
	tally_events(q, all, owner, tally);
	if (old)
		PopActiveSnapshot();
}
