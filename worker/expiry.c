/*
 * expiry.c
 *		Actions whose time is over are written down where nobody comes by who
 *		would: the keeper notices, a process of its own does it.
 *
 * The record is a decision, and decisions are chained and written in Go
 * (aidb.expire_actions), which the keeper does not load.  Nor may it wait for
 * itself: with aidb.audit = 'durable' it is the keeper that writes what the
 * expirer hands over.  The expirer lives for as long as there is something to
 * write, and costs nothing at other times.
 *
 * What a task waits for is left to the task, which the keeper wakes.
 */
#include "worker.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

#include "aidb.h"
#include "compat.h"

static void
begin(const char *activity)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, activity);
}

static void
commit(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* The one number that a statement of ours returns; false: it is NULL. */
static bool
number_of(const char *sql, int64 *number)
{
	bool		isnull = true;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(sql, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not execute \"%s\"", sql);
	if (SPI_processed == 1)
		*number = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return !isnull;
}

long
aidb_look_after_actions(Oid owner)
{
	AidbOwnerScope scope;
	int64		ms;
	long		again;
	bool		some;

	begin("aidb keeper: looking after actions");
	aidb_enter_owner(&scope, owner);
	some = number_of("SELECT aidb_internal.next_expiry_ms()", &ms);
	aidb_leave_owner(&scope);
	commit();
	again = aidb_send_expirer(some && ms <= 0);
	if (!some)
		return -1;
	return ms <= 0 ? again : (long) Min(ms + 1, AIDB_LONGEST_MS);
}

/* Writes down some; how many. */
static int64
expire_some(void)
{
	int64		n = 0;

	begin("aidb expirer: writing down actions that have expired");
	if (OidIsValid(aidb_extension_owner()))
		(void) number_of("SELECT aidb.expire_actions()::bigint", &n);
	commit();
	return n;
}

void
aidb_expirer_main(Datum arg)
{
	AidbSlot   *slot;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	slot = aidb_attach_slot(DatumGetInt32(arg));
	aidb_connect(slot->database);
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (slot->stop)
			break;
	} while (expire_some() > 0);
	proc_exit(0);
}
