/*
 * retention.c
 *		The keeper's work on the logs: partitions that will be needed are made,
 *		what is older than aidb.retention_<kind> goes.
 *
 * What that is, is SQL (aidb_internal.maintain_log).  Each kind of log has a
 * transaction of its own, so that no lock on one is held while another is
 * waited for.  What was in use is tried again before the nap is over.
 */
#include "worker.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "aidb.h"
#include "compat.h"

/* Until what could not be done is tried again; no later than the next look. */
#define AGAIN_S 60

static const char *const kinds[] = {"action_log", "decision_log", "otel"};

static TimestampTz next_look = 0;

static char *
column(HeapTuple row, TupleDesc desc, int n)
{
	char	   *value = SPI_getvalue(row, desc, n);

	return value ? value : "";
}

/* True: something is left to be done. */
static bool
maintain(const char *kind, Oid owner)
{
	const char *sql = "SELECT partition, outcome, rows, detail FROM aidb_internal.maintain_log($1)";
	Oid			types[1] = {TEXTOID};
	Datum		values[1];
	bool		left = false;
	AidbOwnerScope scope;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, "aidb keeper: looking after logs");
	aidb_enter_owner(&scope, owner);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	values[0] = CStringGetTextDatum(kind);
	if (SPI_execute_with_args(sql, 1, types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not look after the logs");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		const char *outcome = column(row, desc, 2);
		const char *rows = column(row, desc, 3);
		const char *why = column(row, desc, 4);

		left |= strcmp(outcome, "kept") == 0;
		ereport(LOG,
				(errmsg("aidb retention of %s: %s %s", kind, column(row, desc, 1), outcome),
				 rows[0] ? errdetail_internal("%s rows%s%s", rows, why[0] ? ": " : "", why) :
				 why[0] ? errdetail_internal("%s", why) : 0));
	}
	SPI_finish();
	aidb_leave_owner(&scope);
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
	return left;
}

/* As maintain; an error is no reason for the keeper to end. */
static bool
try_to_maintain(const char *kind, Oid owner)
{
	MemoryContext outer = CurrentMemoryContext;
	volatile bool left = true;

	PG_TRY();
	{
		left = maintain(kind, owner);
	}
	PG_CATCH();
	{
		ErrorData  *e;

		MemoryContextSwitchTo(outer);
		e = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		pgstat_report_activity(STATE_IDLE, NULL);
		/* somebody does the same by hand */
		if (e->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			ereport(LOG, (errmsg("aidb retention of %s failed: %s", kind, e->message)));
		FreeErrorData(e);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(outer);
	CHECK_FOR_INTERRUPTS();
	return left;
}

long
aidb_maintain_logs(Oid owner)
{
	TimestampTz now = GetCurrentTimestamp();

	if (now >= next_look)
	{
		bool		left = false;

		for (int i = 0; i < (int) lengthof(kinds); i++)
			left |= try_to_maintain(kinds[i], owner);
		now = GetCurrentTimestamp();
		next_look = TimestampTzPlusMilliseconds(now, 1000L * (left ? Min(AGAIN_S, aidb_maintenance_naptime) : aidb_maintenance_naptime));
	}
	return Max(TimestampDifferenceMilliseconds(now, next_look), 1);
}
