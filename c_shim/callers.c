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

#include "utils/inval.h"
#include "utils/syscache.h"

/* The role that is known to be noted: looked for once in a session. */
static Oid	noted = InvalidOid;

static void
forget_noted(Datum arg, int cacheid, uint32 hashvalue)
{
	noted = InvalidOid;
}

static void
forget_noted_xact(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		noted = InvalidOid;
}

static void
forget_noted_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		noted = InvalidOid;
}

void
aidb_note_caller(Oid owner)
{
	static bool registered = false;
	Oid			user = GetUserId();
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
	initStringInfo(&reply);
	aidb_fields_begin(&reply);
	aidb_run_query("INSERT INTO aidb_internal.callers (name, role, since) "
				   "SELECT r.rolname, r.oid, pg_catalog.clock_timestamp() FROM pg_catalog.pg_roles r WHERE r.rolname = $1 "
				   "AND NOT EXISTS (SELECT FROM aidb_internal.callers c WHERE c.name = r.rolname AND c.role = r.oid)",
				   GetUserNameFromId(user, false), &reply, owner);
	pfree(reply.data);
	noted = user;
}
