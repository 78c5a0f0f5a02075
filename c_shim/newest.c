/*
 * newest.c
 *		The hash of the newest decision, which the first of a run follows.
 *
 * Every call of an agent asks for it, and a new session before anything else.
 * As a query over all partitions of the log it would have to be planned over
 * all of them, each with its indexes, and would lock all of them for as long as
 * the caller's transaction lasts.  So it is looked up where it must be: in the
 * partition that is for now, by its index.
 */
#include "aidb.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "nodes/makefuncs.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* The partition that is for now; InvalidOid: none but the default one, of several. */
Oid
aidb_partition_for_now(Relation log)
{
	PartitionDesc desc = RelationGetPartitionDesc(log, true);
	PartitionKey key = RelationGetPartitionKey(log);
	Datum		now = TimestampTzGetDatum(GetCurrentTimestamp());
	bool		equal;
	int			at;

	if (desc->nparts == 0)
		return InvalidOid;
	at = partition_range_datum_bsearch(key->partsupfunc, key->partcollation, desc->boundinfo, 1, &now, &equal);
	at = desc->boundinfo->indexes[at + 1];
	if (at >= 0)
		return desc->oids[at];
	return desc->nparts == 1 ? desc->oids[0] : InvalidOid;
}

/* A partition's index by time. */
static Oid
index_by(Relation partition, AttrNumber column)
{
	List	   *indexes = RelationGetIndexList(partition);
	ListCell   *lc;
	Oid			found = InvalidOid;

	foreach(lc, indexes)
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_index index;

		if (!HeapTupleIsValid(tuple))
			continue;
		index = (Form_pg_index) GETSTRUCT(tuple);
		if (index->indisvalid && index->indkey.values[0] == column && heap_attisnull(tuple, Anum_pg_index_indpred, NULL))
			found = index->indexrelid;
		ReleaseSysCache(tuple);
		if (OidIsValid(found))
			break;
	}
	list_free(indexes);
	return found;
}

/* NULL: it has none, or no index. */
static bytea *
newest_of(Oid id)
{
	/* not kept: what was read needs no table to stay as it is */
	Relation	partition = table_open(id, AccessShareLock);
	Oid			by_time = index_by(partition, get_attnum(id, "at"));
	bytea	   *hash = NULL;

	if (OidIsValid(by_time))
	{
		Relation	index = index_open(by_time, AccessShareLock);
		TupleTableSlot *slot = table_slot_create(partition, NULL);
		IndexScanDesc scan = AIDB_INDEX_BEGINSCAN(partition, index, GetActiveSnapshot());
		bool		isnull;

		index_rescan(scan, NULL, 0, NULL, 0);
		if (index_getnext_slot(scan, BackwardScanDirection, slot))
			hash = DatumGetByteaPCopy(slot_getattr(slot, get_attnum(id, "hash"), &isnull));
		index_endscan(scan);
		ExecDropSingleTupleTableSlot(slot);
		index_close(index, AccessShareLock);
	}
	table_close(partition, AccessShareLock);
	return hash;
}

/* At the beginning of a partition, and where none is for now. */
static bytea *
newest_of_all(MemoryContext memory)
{
	const char *sql = "SELECT d.hash FROM aidb_internal.decision_log d ORDER BY d.at DESC, d.decision_id DESC LIMIT 1";
	bytea	   *hash = NULL;
	int			rc;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	rc = SPI_execute_plan(aidb_plan(sql, 0), NULL, NULL, true, 1);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "could not read the newest decision: %s", SPI_result_code_string(rc));
	if (SPI_processed == 1)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
		MemoryContext old = MemoryContextSwitchTo(memory);

		hash = DatumGetByteaPCopy(value);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return hash;
}

/* NULL: there is none. */
bytea *
aidb_newest_decision(void)
{
	Relation	log = table_openrv(makeRangeVar("aidb_internal", "decision_log", -1), AccessShareLock);
	Oid			partition = aidb_partition_for_now(log);
	bytea	   *hash = OidIsValid(partition) ? newest_of(partition) : NULL;

	table_close(log, AccessShareLock);
	return hash ? hash : newest_of_all(CurrentMemoryContext);
}
