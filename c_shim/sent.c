/*
 * sent.c
 *		Which steps of an action have left the database, as it is known now.
 *
 * A mark is committed by another process (worker/audit.c), and must be seen
 * whatever the caller's isolation level is: a snapshot of before would have the
 * step sent again.
 */
#include "aidb.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* An action has ten steps at most. */
#define MOST_STEPS 32

/* sent_steps columns */
#define COLUMN_ACTION 1
#define COLUMN_STEP 2
#define COLUMN_SENT 3

PG_FUNCTION_INFO_V1(aidb_sent_steps);

/* aidb_internal.sent_steps(action_id uuid) RETURNS integer[] */
Datum
aidb_sent_steps(PG_FUNCTION_ARGS)
{
	Oid			schema = get_namespace_oid("aidb_internal", false);
	Relation	marks = table_open(get_relname_relid("sent_steps", schema), AccessShareLock);
	Snapshot	now = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	int			sent[MOST_STEPS] = {0};
	Datum		steps[MOST_STEPS];
	int			n = 0;

	ScanKeyInit(&key, COLUMN_ACTION, BTEqualStrategyNumber, F_UUID_EQ, PG_GETARG_DATUM(0));
	scan = systable_beginscan(marks, get_relname_relid("sent_steps_pkey", schema), true, now, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		int			step = DatumGetInt32(heap_getattr(tuple, COLUMN_STEP, RelationGetDescr(marks), &isnull));
		bool		was_sent = DatumGetBool(heap_getattr(tuple, COLUMN_SENT, RelationGetDescr(marks), &isnull));

		if (step >= 0 && step < MOST_STEPS)
			sent[step] += was_sent ? 1 : -1;
	}
	systable_endscan(scan);
	UnregisterSnapshot(now);
	table_close(marks, AccessShareLock);
	for (int i = 0; i < MOST_STEPS; i++)
		if (sent[i] > 0)
			steps[n++] = Int32GetDatum(i);
	PG_RETURN_ARRAYTYPE_P(construct_array(steps, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}
