/*
 * keeper.c
 *		Looks after the background tasks of one database.
 *
 * It runs no task.  It takes back what workers that are gone had in hand, looks
 * after the logs (retention.c) and after actions that expire (expiry.c), and
 * starts workers for the roles that have tasks waiting (staff.c).
 *
 * Decisions that sessions hand over are written as they come, before all else
 * (audit.c).
 *
 * States: looking (one short transaction) -> waiting, for a wake-up, for the
 * end of a worker, while tasks wait for a second at most, and until the first
 * task that sleeps, or the first action, has waited long enough -> looking; it
 * ends when nothing has happened for aidb.worker_idle_timeout, no task sleeps
 * and nothing waits for a person, or the extension is gone.
 */
#include "worker.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "aidb.h"
#include "compat.h"

static Oid	owner = InvalidOid; /* of the extension */

/* The numbers of all workers of this database.  Only the keeper starts them, so none can be missing. */
static ArrayType *
numbers_alive(void)
{
	Datum		numbers[AIDB_SLOTS];
	int			n = 0;

	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_SLOTS; i++)
		if (aidb_shared->slots[i].used && aidb_shared->slots[i].database == MyDatabaseId && OidIsValid(aidb_shared->slots[i].role))
			numbers[n++] = Int64GetDatum(aidb_shared->slots[i].number);
	LWLockRelease(aidb_shared->lock);
	return construct_array(numbers, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

/*
 * One look at the tasks; false when the extension is not there.  *due: in how
 * many ms it has to look for those that sleep or wait for a person, -1 when
 * there are none.
 */
static bool
look(AidbWaiting *waiting, int *nwaiting, int most, long *due)
{
	static const char *const sql = "SELECT role, waiting, oldest_ms FROM aidb_internal.look_after_tasks($1)";
	Oid			types[1] = {INT8ARRAYOID};
	Datum		values[1];
	bool		there;
	AidbOwnerScope scope;

	*nwaiting = 0;
	*due = -1;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	owner = aidb_extension_owner();
	there = OidIsValid(owner);
	if (there)
	{
		pgstat_report_activity(STATE_RUNNING, "aidb keeper: looking after tasks");
		aidb_enter_owner(&scope, owner);
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		values[0] = PointerGetDatum(numbers_alive());
		if (SPI_execute_with_args(sql, 1, types, values, NULL, false, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not look after tasks");
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			HeapTuple	row = SPI_tuptable->vals[i];
			TupleDesc	desc = SPI_tuptable->tupdesc;
			Oid			role = DatumGetObjectId(SPI_getbinval(row, desc, 1, &isnull));
			int64		ms;

			if (isnull)
			{
				ms = DatumGetInt64(SPI_getbinval(row, desc, 3, &isnull));
				/* what is overdue and still there is in somebody's hands */
				*due = ms > 0 ? (long) Min(ms + 1, AIDB_LONGEST_MS) : AIDB_LOOK_AGAIN_MS;
				continue;
			}
			if (*nwaiting == most)
				continue;
			waiting[*nwaiting].role = role;
			waiting[*nwaiting].waiting = DatumGetInt64(SPI_getbinval(row, desc, 2, &isnull));
			waiting[*nwaiting].oldest_ms = DatumGetInt64(SPI_getbinval(row, desc, 3, &isnull));
			(*nwaiting)++;
		}
		SPI_finish();
		aidb_leave_owner(&scope);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
	return there;
}

void
aidb_keeper_main(Datum arg)
{
	AidbSlot   *slot;
	Oid			database;
	AidbWaiting waiting[64];
	int			nwaiting;
	TimestampTz busy,
				next = 0;		/* look, at the latest */
	long		timeout = -1;	/* the same in ms; -1: when asked to */

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	slot = aidb_attach_slot(DatumGetInt32(arg));
	database = slot->database;
	aidb_connect(database);
	busy = GetCurrentTimestamp();

	for (;;)
	{
		long		due,
					expiry,
					maintenance;
		bool		there,
					asked,
					wrote;

		if (ProcDiePending || slot->stop)
			proc_exit(0);
		CHECK_FOR_INTERRUPTS();
		asked = ConfigReloadPending;
		aidb_process_settings();
		if (aidb_take_wake(slot))
		{
			asked = true;
			busy = GetCurrentTimestamp();
		}
		asked |= aidb_forget_ended();
		/* a session waits for it, and it is no reason to look at all the rest */
		aidb_take_write(slot);
		wrote = aidb_write_audit();
		if (wrote)
			busy = GetCurrentTimestamp();
		if (asked || !wrote || next <= GetCurrentTimestamp())
		{
			there = look(waiting, &nwaiting, (int) lengthof(waiting), &due);
			aidb_staff(waiting, nwaiting);
			expiry = there ? aidb_look_after_actions(owner) : -1;
			if (expiry >= 0 && (due < 0 || expiry < due))
				due = expiry;
			maintenance = there ? aidb_maintain_logs(owner) : -1;
			if (nwaiting > 0)
				busy = GetCurrentTimestamp();
			if (!aidb_has_workers() && nwaiting == 0 && due < 0 &&
				(!there || TimestampDifferenceExceeds(busy, GetCurrentTimestamp(), aidb_worker_idle_timeout * 1000)) &&
				aidb_leave_if_idle(slot))
				proc_exit(0);
			timeout = due >= 0 ? due : nwaiting > 0 ? AIDB_LOOK_AGAIN_MS : aidb_has_workers() ? -1 : aidb_worker_idle_timeout * 1000L;
			if (nwaiting > 0)
				timeout = Min(timeout, AIDB_LOOK_AGAIN_MS);
			if (maintenance >= 0 && (timeout < 0 || maintenance < timeout))
				timeout = maintenance;
			next = timeout >= 0 ? TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout) : PG_INT64_MAX;
		}
		else if (timeout >= 0)
			timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout >= 0 ? WL_TIMEOUT : 0), timeout, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
