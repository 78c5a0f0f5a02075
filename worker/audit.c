/*
 * audit.c
 *		aidb.audit = 'durable': a session hands its decisions to the keeper of its
 *		database as they are made, which writes them in transactions of its own.
 *
 * They wait in shared memory, in a bounded number of entries.  A session that
 * finds none free waits for a while, and then its call says so: what cannot be
 * recorded must not go on.  All that was handed over is committed before a call
 * returns, and before anything of it leaves the server: a request to a model or
 * to an MCP server.  What a crash can take with it has had no effect then.
 *
 * In the same way a call that cannot be taken back is marked before it is sent,
 * so that it is not sent again when the transaction is rolled back (KEEP).
 */
#include "worker.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "aidb.h"
#include "compat.h"

#define PATIENCE_MS 10000

static bool handed_over = false;	/* by the run in hand */

static bool
entry_is_free(void)
{
	for (int i = 0; i < AIDB_AUDIT_ENTRIES; i++)
		if (!OidIsValid(aidb_shared->audit[i].database))
			return true;
	return false;
}

static bool
own_are_written(void)
{
	for (int i = 0; i < AIDB_AUDIT_ENTRIES; i++)
		if (OidIsValid(aidb_shared->audit[i].database) && aidb_shared->audit[i].pid == MyProcPid)
			return false;
	return true;
}

/* Waits until it holds; false when the keeper does not come. */
static bool
wait_until(bool (*condition) (void))
{
	TimestampTz begun = GetCurrentTimestamp();
	bool		holds;

	ConditionVariablePrepareToSleep(&aidb_shared->audited);
	for (;;)
	{
		LWLockAcquire(aidb_shared->lock, LW_SHARED);
		holds = condition();
		LWLockRelease(aidb_shared->lock);
		if (holds || TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), PATIENCE_MS))
			break;
		(void) ConditionVariableTimedSleep(&aidb_shared->audited, PATIENCE_MS, PG_WAIT_EXTENSION);
		CHECK_FOR_INTERRUPTS();
	}
	ConditionVariableCancelSleep();
	return holds;
}

static void
decisions_not_written(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("decisions could not be recorded: the background worker does not write them"),
			 errhint("See the server's log, and max_worker_processes; with aidb.audit = 'transaction' they are kept in the caller's transaction.")));
}

/* False: no entry became free. */
static bool
hand_over(const char *command, const char *rows)
{
	int			ncommand = (int) strlen(command) + 1,
				nrows = (int) strlen(rows) + 1;
	bool		done = false;

	if (ncommand + nrows > AIDB_AUDIT_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a decision of %d bytes is too long to be recorded", nrows)));
	while (!done)
	{
		LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
		for (int i = 0; i < AIDB_AUDIT_ENTRIES && !done; i++)
		{
			AidbAuditEntry *e = &aidb_shared->audit[i];

			if (OidIsValid(e->database))
				continue;
			e->database = MyDatabaseId;
			e->pid = MyProcPid;
			e->order = ++aidb_shared->audit_order;
			e->len = ncommand + nrows;
			memcpy(e->data, command, ncommand);
			memcpy(e->data + ncommand, rows, nrows);
			done = true;
		}
		LWLockRelease(aidb_shared->lock);
		if (!done && !wait_until(entry_is_free))
			return false;
	}
	handed_over = true;
	aidb_wake_to_write(MyDatabaseId);
	return true;
}

/* Takes over decisions of the run in hand. */
void
aidb_audit(AidbReader *r)
{
	char	   *command = aidb_read_text(r);
	char	   *rows = aidb_read_text(r);

	if (aidb_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("aidb.audit = 'durable' needs the background worker"),
				 errhint("Add aidb to shared_preload_libraries and restart the server.")));
	if (!hand_over(command, rows))
		decisions_not_written();
}

void
aidb_await_audit(void)
{
	if (!handed_over)
		return;
	handed_over = false;
	if (!wait_until(own_are_written))
		decisions_not_written();
}

/*
 * Rows, or without any what was handed over before: committed when it returns.
 * False where there is no worker that could do so.
 */
bool
aidb_keep(AidbReader *r)
{
	char	   *command = aidb_read_text(r);
	char	   *rows = aidb_read_text(r);

	if (command == NULL)
	{
		aidb_await_audit();
		return true;
	}
	if (aidb_shared == NULL)
		return false;
	if (!hand_over(command, rows) || !wait_until(own_are_written))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the call could not be marked as sent, so it was not sent: the background worker does not write it"),
				 errhint("See the server's log, and max_worker_processes.")));
	return true;
}

/* --- the keeper's side --------------------------------------------------------- */

static int
by_order(const void *a, const void *b)
{
	uint64		x = aidb_shared->audit[*(const int *) a].order,
				y = aidb_shared->audit[*(const int *) b].order;

	return x < y ? -1 : x > y;
}

static void
free_entries(const int *entries, int n)
{
	LWLockAcquire(aidb_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < n; i++)
		aidb_shared->audit[entries[i]].database = InvalidOid;
	LWLockRelease(aidb_shared->lock);
	ConditionVariableBroadcast(&aidb_shared->audited);
}

static int
entries_of(Oid database, int *entries)
{
	int			n = 0;

	LWLockAcquire(aidb_shared->lock, LW_SHARED);
	for (int i = 0; i < AIDB_AUDIT_ENTRIES; i++)
		if (aidb_shared->audit[i].database == database)
			entries[n++] = i;
	qsort(entries, n, sizeof(int), by_order);
	LWLockRelease(aidb_shared->lock);
	return n;
}

void
aidb_forget_audit(Oid database)
{
	int			entries[AIDB_AUDIT_ENTRIES];
	int			n = entries_of(database, entries);

	if (n > 0)
		free_entries(entries, n);
}

/*
 * Writes what was handed over for this database.  An entry is free only when
 * its rows are committed; what cannot be written goes to the server's log, so
 * that it is neither lost nor in the way of others.
 */
bool
aidb_write_audit(void)
{
	int			entries[AIDB_AUDIT_ENTRIES];
	int			n = entries_of(MyDatabaseId, entries);
	MemoryContext outer = CurrentMemoryContext;
	AidbOwnerScope scope;

	if (n == 0)
		return false;
	PG_TRY();
	{
		Oid			owner;

		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		owner = aidb_extension_owner();
		if (!OidIsValid(owner))
			elog(ERROR, "the extension is not there any more");
		pgstat_report_activity(STATE_RUNNING, "aidb keeper: writing decisions");
		aidb_enter_owner(&scope, owner);
		for (int i = 0; i < n; i++)
		{
			AidbAuditEntry *e = &aidb_shared->audit[entries[i]];

			/* nobody else changes an entry that is in use */
			aidb_copy_rows(e->data, e->data + strlen(e->data) + 1);
		}
		aidb_leave_owner(&scope);
		PopActiveSnapshot();
		HOLD_INTERRUPTS();
		CommitTransactionCommand();
		free_entries(entries, n);
		RESUME_INTERRUPTS();
		pgstat_report_activity(STATE_IDLE, NULL);
	}
	PG_CATCH();
	{
		ErrorData  *e;

		MemoryContextSwitchTo(outer);
		e = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		for (int i = 0; i < n; i++)
		{
			const char *data = aidb_shared->audit[entries[i]].data;

			ereport(LOG, (errmsg("aidb decision could not be written: %s", e->message),
						  errdetail_internal("%s", data + strlen(data) + 1)));
		}
		free_entries(entries, n);
		pgstat_report_activity(STATE_IDLE, NULL);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(outer);
	return true;
}
