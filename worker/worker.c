/*
 * worker.c
 *		The background processes' settings, their registration, and the few
 *		things that all of them do alike.
 *
 * All of it is there only when the library is in shared_preload_libraries.
 */
#include "worker.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/rel.h"

int			aidb_max_workers = 4;
int			aidb_max_queued_tasks = 10000;
int			aidb_worker_tasks = 5000;
int			aidb_worker_idle_timeout = 60;
int			aidb_worker_memory_limit = 384;
int			aidb_maintenance_naptime = 3600;

static void
define_int(const char *name, const char *text, int *value, int min, int max, int flags)
{
	DefineCustomIntVariable(name, text, NULL, value, *value, min, max, PGC_SIGHUP, flags, NULL, NULL, NULL);
}

void
aidb_start_process(BackgroundWorker *worker, const char *function, const char *name, int slot)
{
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	worker->bgw_notify_pid = MyProcPid;
	worker->bgw_main_arg = Int32GetDatum(slot);
	snprintf(worker->bgw_library_name, sizeof(worker->bgw_library_name), "aidb");
	snprintf(worker->bgw_function_name, sizeof(worker->bgw_function_name), "%s", function);
	snprintf(worker->bgw_name, sizeof(worker->bgw_name), "%s", name);
	snprintf(worker->bgw_type, sizeof(worker->bgw_type), "%s", name);
}

/* As the superuser that the cluster was made with, and ready to write whatever the database's sessions begin with. */
void
aidb_connect(Oid database)
{
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	SetConfigOption("default_transaction_read_only", "off", PGC_USERSET, PGC_S_SESSION);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_USERSET, PGC_S_SESSION);
}

void
aidb_process_settings(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

/* Whose rights our own statements run with; in a transaction. */
Oid
aidb_extension_owner(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			owner = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum("aidb"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return owner;
}

void
aidb_register_worker(void)
{
	BackgroundWorker launcher = {0};

	if (!process_shared_preload_libraries_in_progress)
		return;
	define_int("aidb.maintenance_naptime",
			   "Time between two looks at the logs: at the partitions that they need, and at what is too old.",
			   &aidb_maintenance_naptime, 1, 86400, GUC_UNIT_S);
	define_int("aidb.max_queued_tasks",
			   "Background tasks of one session user that may wait to begin; aidb.agent_submit refuses more.",
			   &aidb_max_queued_tasks, 1, 10000000, 0);
	define_int("aidb.max_workers",
			   "Worker processes of a database for background tasks; max_worker_processes must have room for them. 0: tasks wait.",
			   &aidb_max_workers, 0, 128, 0);
	define_int("aidb.worker_idle_timeout",
			   "How long a worker process without tasks stays.", &aidb_worker_idle_timeout, 1, 86400, GUC_UNIT_S);
	define_int("aidb.worker_memory_limit",
			   "Memory that the Go runtime of a worker process tries to stay below.", &aidb_worker_memory_limit, 64, 65536, GUC_UNIT_MB);
	define_int("aidb.worker_tasks",
			   "Background tasks that one worker process has in hand at a time.", &aidb_worker_tasks, 1, 100000, 0);
	aidb_request_shared_memory();
	aidb_watch_utility();
	aidb_start_process(&launcher, "aidb_launcher_main", "aidb launcher", 0);
	launcher.bgw_restart_time = 5;
	launcher.bgw_notify_pid = 0;
	RegisterBackgroundWorker(&launcher);
}
