/*
 * maintenance.c
 *		One background worker: keeps the log within aidb.log_retention_days.
 *
 * It exists only when the library is in shared_preload_libraries and
 * aidb.maintenance_database names a database.  It runs no Go.
 *
 * States: idle (waiting for its latch or the nap to end) -> pruning (short
 * transactions, one for each batch, until a batch is not full) -> idle.  Only
 * the worker itself moves between them; a reload or a shutdown ends the nap.
 */
#include "worker.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#include "utils/wait_event.h"
#endif

#define BATCH 5000

static char *maintenance_database = NULL;
static int	maintenance_naptime = 3600;
static int	log_retention_days = 0;

/* Deletes one batch of what is too old; the number of rows that went. */
static int64
prune_batch(void)
{
	Oid			types[2] = {INT4OID, INT4OID};
	Datum		values[2];
	int64		gone = 0;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (OidIsValid(get_extension_oid("aidb", true)))
	{
		const char *sql = "SELECT aidb_internal.prune_log($1, $2)";
		bool		isnull;

		pgstat_report_activity(STATE_RUNNING, sql);
		values[0] = Int32GetDatum(log_retention_days);
		values[1] = Int32GetDatum(BATCH);
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		if (SPI_execute_with_args(sql, 2, types, values, NULL, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
			elog(ERROR, "aidb_internal.prune_log did not return a row");
		gone = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
		SPI_finish();
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
	return gone;
}

void
aidb_maintenance_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(maintenance_database, NULL, 0);

	for (;;)
	{
		if (ShutdownRequestPending)
			proc_exit(0);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		/* on a standby there is nothing to delete: the primary's worker did it */
		if (log_retention_days > 0 && !RecoveryInProgress())
			while (prune_batch() >= BATCH && !ShutdownRequestPending)
				CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			continue;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 maintenance_naptime * 1000L, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

void
aidb_register_maintenance(void)
{
	BackgroundWorker worker = {0};

	DefineCustomIntVariable("aidb.log_retention_days",
							"Days that tasks and log rows are kept by the maintenance worker; 0: for ever.",
							"Decisions are not touched.", &log_retention_days, 0, 0, 36500,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("aidb.maintenance_database",
							   "Database that the maintenance worker looks after; empty: there is no worker.",
							   "Takes effect only with aidb in shared_preload_libraries.", &maintenance_database, "",
							   PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("aidb.maintenance_naptime",
							"Time between two looks of the maintenance worker.", NULL, &maintenance_naptime,
							3600, 1, 86400, PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	if (maintenance_database[0] == '\0')
		return;
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 30;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "aidb");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "aidb_maintenance_main");
	snprintf(worker.bgw_name, sizeof(worker.bgw_name), "aidb maintenance worker");
	snprintf(worker.bgw_type, sizeof(worker.bgw_type), "aidb maintenance worker");
	RegisterBackgroundWorker(&worker);
}
