/*
 * events.h
 *		What events.c and totals.c share: a question about events of policies,
 *		and what they came to.
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

/* totals.c */
extern int64 aidb_keepable(const Question *q);
extern bool aidb_worth_keeping(int64 calls);
extern void aidb_note_total(const Question *q, int64 seen, const Tally *tally);
extern int64 aidb_read_total(const Question *q, Tally *tally);

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
