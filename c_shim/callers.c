/*
 * callers.c
 *		Notes for which role the caller's name stands, before anything is kept
 *		under it.
 *
 * The history names the role that called.  A role that is made anew under the
 * name of a dropped one must not be shown what that one did: what is kept under
 * a name belongs to a role from the time on that is noted here
 * (sql/install/39_callers.sql, aidb.history_since).
 */
#include "aidb.h"

#include "access/genam.h"
#include "access/table.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#define CALLERS_NAME 1			/* columns of aidb_internal.callers */
#define CALLERS_ROLE 2

/* The role that is known to be noted: looked for once in a session. */
static Oid	noted = InvalidOid;

/* It was noted in the transaction in hand, which may come to nothing. */
static bool noted_now = false;

static void
forget_noted(Datum arg, int cacheid, uint32 hashvalue)
{
	noted = InvalidOid;
}

static void
forget_noted_xact(XactEvent event, void *arg)
{
	if (noted_now && event == XACT_EVENT_ABORT)
		noted = InvalidOid;
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		noted_now = false;
}

static void
forget_noted_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (noted_now && event == SUBXACT_EVENT_ABORT_SUB)
		noted = InvalidOid;
}

/* Whether the table has the role under the name: without a plan, because every session asks once. */
static bool
is_noted(const char *name, Oid role)
{
	Relation	table = table_open(aidb_own_relation("callers"), AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;
	bool		found = false;

	ScanKeyInit(&key, CALLERS_NAME, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(name));
	key.sk_collation = TupleDescAttr(RelationGetDescr(table), CALLERS_NAME - 1)->attcollation;
	PushActiveSnapshot(GetTransactionSnapshot());
	scan = systable_beginscan(table, aidb_own_relation("callers_name_idx"), true, GetActiveSnapshot(), 1, &key);
	while (!found && (row = systable_getnext(scan)) != NULL)
	{
		bool		null;
		Datum		value = heap_getattr(row, CALLERS_ROLE, RelationGetDescr(table), &null);

		found = !null && DatumGetObjectId(value) == role;
	}
	systable_endscan(scan);
	PopActiveSnapshot();
	table_close(table, NoLock);
	return found;
}

void
aidb_note_caller(Oid owner)
{
	static bool registered = false;
	Oid			user = GetUserId();
	char	   *name;
	StringInfoData reply;

	if (user == noted || XactReadOnly)
		return;
	if (!registered)
	{
		CacheRegisterSyscacheCallback(AUTHOID, forget_noted, (Datum) 0);
		RegisterXactCallback(forget_noted_xact, NULL);
		RegisterSubXactCallback(forget_noted_subxact, NULL);
		registered = true;
	}
	name = GetUserNameFromId(user, false);
	if (!is_noted(name, user))
	{
		initStringInfo(&reply);
		aidb_fields_begin(&reply);
		aidb_run_query("INSERT INTO aidb_internal.callers (name, role, since) "
					   "SELECT r.rolname, r.oid, pg_catalog.clock_timestamp() FROM pg_catalog.pg_roles r WHERE r.rolname = $1",
					   name, &reply, owner);
		pfree(reply.data);
		noted_now = true;
	}
	noted = user;
}
