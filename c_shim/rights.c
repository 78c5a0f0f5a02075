/*
 * rights.c
 *		Code of a purpose's role never runs with the rights of another.
 *
 * A tool call runs as one role, but PostgreSQL itself switches on the way: a
 * foreign key looks its row up as the owner of the referenced table, through a
 * cast that the role may have made; a cascade fires triggers as the owner of
 * the referencing one; a SECURITY DEFINER function may find a function of the
 * role's in its search_path.  Each would run the role's code as somebody else,
 * in the middle of the call.
 *
 * The executor's hook does not see every way to a function: triggers, casts of
 * a rendering and the like go past it.  The function manager's does.
 */
#include "aidb.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static needs_fmgr_hook_type next_needs = NULL;
static fmgr_hook_type next_fmgr = NULL;

/* Whose function it is, when the tool's role could have written it; else InvalidOid. */
static Oid
owner_if_own(Oid fn)
{
	AidbToolScope *s = aidb_tool_scope;
	HeapTuple	tuple;
	Oid			owner;

	/* without a purpose the role is the caller, who can run the same without us */
	if (s == NULL || s->call->role_name == NULL || fn < FirstNormalObjectId)
		return InvalidOid;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return is_member_of_role_nosuper(s->role, owner) ? owner : InvalidOid;
}

/* Raises when the function belongs to the tool's role, and somebody else's rights are in force. */
void
aidb_check_rights(Oid fn)
{
	Oid			owner;

	if (aidb_tool_scope == NULL || GetUserId() == aidb_tool_scope->role)
		return;
	owner = owner_if_own(fn);
	/* the rights of a role that it is a member of are its own already */
	if (!OidIsValid(owner) || is_member_of_role_nosuper(aidb_tool_scope->role, GetUserId()))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("escalation_blocked"),
			 errmsg("function %s of role \"%s\" does not run with the rights of \"%s\" in a tool call",
					get_func_name(fn), GetUserNameFromId(owner, true), GetUserNameFromId(GetUserId(), true)),
			 errhint("A foreign key, a trigger or a SECURITY DEFINER function leads to it. Give the function to another owner.")));
}

/* Also keeps such a function from being inlined, where it could not be told any more. */
static bool
needs_look(Oid fn)
{
	return (next_needs && next_needs(fn)) || OidIsValid(owner_if_own(fn));
}

static void
look(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg)
{
	if (event == FHET_START)
		aidb_check_rights(flinfo->fn_oid);
	if (next_fmgr && (next_needs == NULL || next_needs(flinfo->fn_oid)))
		next_fmgr(event, flinfo, arg);
}

void
aidb_install_rights(void)
{
	next_needs = needs_fmgr_hook;
	needs_fmgr_hook = needs_look;
	next_fmgr = fmgr_hook;
	fmgr_hook = look;
}
