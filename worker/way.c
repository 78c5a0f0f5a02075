/*
 * way.c
 *		Gets the background processes out of the way of statements that need their
 *		database, or the extension in it, for themselves.
 *
 * DROP EXTENSION waits for every transaction on the extension's tables, and a
 * tool's statement may last; DROP DATABASE refuses to run while anybody is
 * connected.  So a session that may do such a thing, and begins to, ends the
 * database's keeper and workers first: a step in hand has a moment to commit,
 * then it is undone.  The tasks stay as they are in the table.
 *
 * Until its transaction is over the session holds the keeper's place, so that
 * no other keeper is started, which would only wait for the same locks, or be
 * what a deadlock takes.  Then one is asked for: it looks what is left.
 */
#include "worker.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "aidb.h"
#include "compat.h"

/* How long a step in hand has to end by itself, and then its process. */
#define STEP_MS 1000
#define PROCESS_MS 10000

static ProcessUtility_hook_type next_utility = NULL;

/* The places that this session holds, until its transaction is over. */
static int	places[16];
static int	nplaces = 0;

static void
leave_places(void)
{
	while (nplaces > 0)
	{
		int			slot = places[--nplaces];
		Oid			database = aidb_shared->slots[slot].database;

		aidb_free_slot(slot);
		aidb_ask_for_keeper(database);	/* where it is not wanted it ends at once */
	}
}

static void
at_end_of_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		leave_places();
}

static void
at_exit(int code, Datum arg)
{
	leave_places();
}

static void
hold_place(Oid database)
{
	static bool registered = false;
	int			slot;

	if (!registered)
	{
		RegisterXactCallback(at_end_of_transaction, NULL);
		before_shmem_exit(at_exit, (Datum) 0);
		registered = true;
	}
	for (int i = 0; i < nplaces; i++)
		if (aidb_shared->slots[places[i]].database == database)
			return;
	if (nplaces < (int) lengthof(places) && (slot = aidb_hold_slot(database)) >= 0)
		places[nplaces++] = slot;
}

/* Ends the processes of a database.  One that does not end is left to what the statement does about it. */
static void
make_way(Oid database)
{
	TimestampTz begun = GetCurrentTimestamp();

	hold_place(database);
	ConditionVariablePrepareToSleep(&aidb_shared->left);
	while (!aidb_stop_database(database, TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), STEP_MS)))
	{
		if (TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), STEP_MS + PROCESS_MS))
			break;
		(void) ConditionVariableTimedSleep(&aidb_shared->left, STEP_MS, PG_WAIT_EXTENSION);
		CHECK_FOR_INTERRUPTS();
	}
	ConditionVariableCancelSleep();
}

/* --- which statements ------------------------------------------------------------ */

/* Only for who may do what the statement says: others are refused by it, and stop nobody. */
static void
make_way_for_extension(void)
{
	Oid			extension = get_extension_oid("aidb", true);

	if (OidIsValid(extension) && AIDB_OWNS_EXTENSION(extension, GetUserId()))
		make_way(MyDatabaseId);
}

static void
make_way_for_database(const char *name)
{
	Oid			database = get_database_oid(name, true);

	if (OidIsValid(database) && database != MyDatabaseId && AIDB_OWNS_DATABASE(database, GetUserId()))
		make_way(database);
}

static const char *
option(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
		if (strcmp(lfirst_node(DefElem, lc)->defname, name) == 0 && lfirst_node(DefElem, lc)->arg)
			return defGetString(lfirst_node(DefElem, lc));
	return NULL;
}

static void
look_at(Node *stmt)
{
	const char *name;
	ListCell   *lc;

	switch (nodeTag(stmt))
	{
		case T_DropStmt:
			if (((DropStmt *) stmt)->removeType == OBJECT_EXTENSION)
				foreach(lc, ((DropStmt *) stmt)->objects)
					if (strcmp(strVal(lfirst(lc)), "aidb") == 0)
						make_way_for_extension();
			break;
		case T_AlterExtensionStmt:
			if (strcmp(((AlterExtensionStmt *) stmt)->extname, "aidb") == 0)
				make_way_for_extension();
			break;
		case T_DropdbStmt:
			make_way_for_database(((DropdbStmt *) stmt)->dbname);
			break;
		case T_RenameStmt:
			if (((RenameStmt *) stmt)->renameType == OBJECT_DATABASE)
				make_way_for_database(((RenameStmt *) stmt)->subname);
			break;
		case T_AlterDatabaseStmt:
			if (option(((AlterDatabaseStmt *) stmt)->options, "tablespace"))
				make_way_for_database(((AlterDatabaseStmt *) stmt)->dbname);
			break;
		case T_CreatedbStmt:
			name = option(((CreatedbStmt *) stmt)->options, "template");
			if (name)
				make_way_for_database(name);
			break;
		default:
			break;
	}
}

static void
watch_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			  ProcessUtilityContext context, ParamListInfo params,
			  QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	if (aidb_shared && aidb_tool_scope == NULL && IsTransactionState() && !RecoveryInProgress())
		look_at(pstmt->utilityStmt);
	if (next_utility)
		next_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
}

void
aidb_watch_utility(void)
{
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = watch_utility;
}
