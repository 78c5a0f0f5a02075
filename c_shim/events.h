/*
 * events.h
 *		What events.c, tally.c and totals.c share: a question about events of
 *		policies, and what they came to.
 */
#ifndef AIDB_EVENTS_H
#define AIDB_EVENTS_H

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* columns of aidb_internal.session_events */
enum
{
	EVENT_ID = 1, EVENT_SESSION, EVENT_POLICY, EVENT_TOOL, EVENT_PARAMS, EVENT_FROM, EVENT_TO, EVENT_AT, EVENT_PRINCIPAL
};

typedef struct Question
{
	bool		of_principal;
	char	   *who;			/* session or principal */
	char	   *tool;
	char	   *path;			/* NULL: only counted */
	bool		windowed;
	TimestampTz after;			/* in a window */
} Question;

typedef struct Tally
{
	int64		calls;
	Datum		sum;			/* numeric */
} Tally;

/* Events that are read one by one. */
typedef struct Reading
{
	Relation	table;
	Relation	index;
	SysScanDesc scan;
} Reading;

/* events.c */
extern bool aidb_event_is_mine(const char *session, const char *policy, Oid user, Oid owner);

/* tally.c */
extern void aidb_begin_events(Reading *r, const Question *q, bool by_time, int64 after, int64 below);
extern void aidb_end_events(Reading *r);
extern Datum aidb_zero(void);
extern void aidb_tally_events(const Question *q, bool all, Oid owner, Tally *tally);

/* totals.c */
extern bool aidb_condition_asks(void);
extern bool aidb_snapshot_is_old(void);
extern void aidb_note_principal(const Question *q);
extern int64 aidb_keepable(const Question *q);
extern void aidb_note_total(const Question *q, int64 since, int64 upto, const Tally *tally);
extern bool aidb_read_total(const Question *q, int64 below, int64 *since, int64 *upto, Tally *tally);

static inline void
set_key(ScanKey key, Relation table, AttrNumber column, StrategyNumber strategy, RegProcedure proc, Datum value)
{
	ScanKeyInit(key, column, strategy, proc, value);
	key->sk_collation = TupleDescAttr(RelationGetDescr(table), column - 1)->attcollation;
}

/* A column of a table of ours that is never NULL. */
static inline Datum
field(Relation table, HeapTuple row, AttrNumber column)
{
	bool		isnull;

	return heap_getattr(row, column, RelationGetDescr(table), &isnull);
}

/* A function of the server's that may return NULL. */
static inline Datum
call(PGFunction fn, int nargs, Datum *args, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, 4);
	Datum		result;

	InitFunctionCallInfoData(*fcinfo, NULL, nargs, InvalidOid, NULL, NULL);
	for (int i = 0; i < nargs; i++)
	{
		fcinfo->args[i].value = args[i];
		fcinfo->args[i].isnull = false;
	}
	result = fn(fcinfo);
	*isnull = fcinfo->isnull;
	return result;
}

#endif							/* AIDB_EVENTS_H */
