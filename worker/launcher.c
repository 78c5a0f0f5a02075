/*
 * launcher.c
 *		Starts a keeper in every database that may have something to do.
 *
 * It is the one process that the server starts by itself, once recovery is over:
 * a standby has none until it is promoted.  When it begins it does not know
 * which databases have the extension, or tasks that a crash interrupted: each
 * gets a keeper, which ends at once where there is nothing to do.  From then on
 * it is told: a transaction that submits a task asks for the keeper of its
 * database when it commits.  Every aidb.maintenance_naptime it looks at all of
 * them again, for what is to be done about their logs.
 *
 * It is connected to no database, so it is in nobody's way.
 */
#include "worker.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"

/* Keepers that look around for the first time, at once: with hundreds of databases not all connect together. */
#define AT_ONCE 4
/* Until a keeper that could not be started, or failed, is tried again. */
#define AGAIN_MS 1000

typedef struct Started
{
	int			slot;
	int64		number;			/* of the slot, as it was reserved for it */
	BackgroundWorkerHandle *handle;
} Started;

static Started started[AIDB_DATABASES];
static int	nstarted = 0;

/* All databases that can be connected to. */
static void
ask_for_all(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	List	   *found = NIL;
	ListCell   *lc;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		if (form->datallowconn && !form->datistemplate)
		{
			MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

			found = lappend_oid(found, form->oid);
			MemoryContextSwitchTo(old);
		}
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	foreach(lc, found)
		aidb_ask_for_keeper(lfirst_oid(lc));
	list_free(found);
}

static void
forget_ended(void)
{
	for (int i = 0; i < nstarted; i++)
	{
		pid_t		pid;

		if (GetBackgroundWorkerPid(started[i].handle, &pid) != BGWH_STOPPED)
			continue;
		(void) aidb_take_back_slot(started[i].slot, started[i].number);
		pfree(started[i].handle);
		started[i--] = started[--nstarted];
	}
}

static int
starting(void)
{
	int			n = 0;

	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_SLOTS; i++)
		if (aidb_shared->slots[i].used && !aidb_shared->slots[i].held && aidb_shared->slots[i].kind == AIDB_KEEPER && aidb_shared->slots[i].wake)
			n++;
	LWLockRelease(aidb_shared->lock);
	return n;
}

static Oid
next_request(void)
{
	Oid			database = InvalidOid;

	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	if (aidb_shared->nrequests > 0)
	{
		database = aidb_shared->requests[0];
		aidb_shared->nrequests--;
		memmove(aidb_shared->requests, aidb_shared->requests + 1, sizeof(Oid) * aidb_shared->nrequests);
	}
	LWLockRelease(aidb_shared->lock);
	return database;
}

static bool
database_exists(Oid database)
{
	bool		exists;

	StartTransactionCommand();
	exists = SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
	CommitTransactionCommand();
	return exists;
}

/* False: try again later. */
static bool
start_keeper(Oid database)
{
	BackgroundWorker worker = {0};
	int			slot;
	int64		number;
	MemoryContext old;
	bool		ok;

	if (!database_exists(database))
	{
		aidb_forget_audit(database);
		return true;			/* dropped meanwhile */
	}
	if (nstarted >= AIDB_DATABASES)
		return false;
	slot = aidb_reserve_slot(AIDB_KEEPER, database, InvalidOid, &number);
	if (slot < 0)
	{
		aidb_wake_database(database, InvalidOid);	/* it has one, which came up meanwhile */
		return true;
	}
	aidb_start_process(&worker, "aidb_keeper_main", "aidb keeper", slot);
	old = MemoryContextSwitchTo(TopMemoryContext);
	ok = RegisterDynamicBackgroundWorker(&worker, &started[nstarted].handle);
	MemoryContextSwitchTo(old);
	if (!ok)
	{
		aidb_free_slot(slot);
		ereport(LOG,
				(errmsg("aidb could not start a background process"),
				 errhint("Raise max_worker_processes: aidb needs one for each database with background tasks and one for each of aidb.max_workers.")));
		return false;
	}
	started[nstarted].slot = slot;
	started[nstarted].number = number;
	nstarted++;
	return true;
}

static void
leave(int code, Datum arg)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	if (aidb_shared->launcher == MyLatch)
		aidb_shared->launcher = NULL;
	LWLockRelease(aidb_shared->lock);
}

void
aidb_launcher_main(Datum arg)
{
	long		timeout;
	TimestampTz looked;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	before_shmem_exit(leave, (Datum) 0);
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	aidb_shared->launcher = MyLatch;
	aidb_shared->overflow = true;
	LWLockRelease(aidb_shared->lock);
	pgstat_report_activity(STATE_IDLE, NULL);
	looked = GetCurrentTimestamp();

	for (;;)
	{
		bool		all;
		Oid			database;

		if (ShutdownRequestPending)
			proc_exit(0);
		CHECK_FOR_INTERRUPTS();
		aidb_process_settings();
		forget_ended();
		if (TimestampDifferenceExceeds(looked, GetCurrentTimestamp(), aidb_maintenance_naptime * 1000))
		{
			looked = GetCurrentTimestamp();
			LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
			aidb_shared->overflow = true;
			LWLockRelease(aidb_shared->lock);
		}
		timeout = aidb_maintenance_naptime * 1000L;
		LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
		all = aidb_shared->overflow && aidb_shared->nrequests == 0;
		if (all)
			aidb_shared->overflow = false;
		LWLockRelease(aidb_shared->lock);
		if (all)
			ask_for_all();
		while (starting() < AT_ONCE && OidIsValid(database = next_request()))
			if (!start_keeper(database))
			{
				aidb_ask_for_keeper(database);
				timeout = AGAIN_MS;
				ResetLatch(MyLatch);	/* that was our own */
				break;
			}
		LWLockAcquire(aidb_shared->lock, LW_SHARED);
		if (aidb_shared->nrequests > 0)
			timeout = AGAIN_MS;
		LWLockRelease(aidb_shared->lock);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_TIMEOUT, timeout, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
