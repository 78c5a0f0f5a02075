/*
 * identity.c
 *		As whom a tool call may run: checked before anything else happens to it,
 *		against the caller, each time, from the catalog as it is now.
 */
#include "aidb.h"

#include "catalog/pg_auth_members.h"
#include "catalog/pg_authid.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

/* Predefined roles that reach outside the database: never for a tool. */
static const Oid outside_roles[] = {
	ROLE_PG_EXECUTE_SERVER_PROGRAM,
	ROLE_PG_READ_SERVER_FILES,
	ROLE_PG_WRITE_SERVER_FILES,
	ROLE_PG_SIGNAL_BACKEND,
};

/*
 * SET ROLE is closed to a tool, but a member inherits all that the superuser
 * owns: the tables behind the extension, the log of decisions first.
 */
static bool
inherits_from_superuser(Oid role)
{
	CatCList   *list = SearchSysCacheList1(AUTHMEMMEMROLE, ObjectIdGetDatum(role));
	bool		found = false;

	check_stack_depth();
	for (int i = 0; i < list->n_members && !found; i++)
	{
		Oid			parent = ((Form_pg_auth_members) GETSTRUCT(&list->members[i]->tuple))->roleid;

		found = superuser_arg(parent) || inherits_from_superuser(parent);
	}
	ReleaseCatCacheList(list);
	return found;
}

/*
 * The last role whose memberships were found to be harmless, and how often roles
 * and memberships have changed since the process began.  To look costs as much
 * as the role has memberships, and as the caller has, because the server keeps
 * those of one role at a time: a millisecond for some hundreds.
 */
static Oid	apart = InvalidOid;
static uint64 changes = 0;

static void
forget_apart(Datum arg, int cacheid, uint32 hashvalue)
{
	apart = InvalidOid;
	changes++;
}

/* What makes the memberships of a role too much for a sandbox, or NULL. */
static const char *
reaches_outside(Oid role)
{
	static bool registered = false;
	uint64		before;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, forget_apart, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHOID, forget_apart, (Datum) 0);
		registered = true;
	}
	if (role == apart)
		return NULL;
	before = changes;
	if (inherits_from_superuser(role))
		return "is a member of a superuser";
	for (int i = 0; i < (int) lengthof(outside_roles); i++)
		if (is_member_of_role_nosuper(role, outside_roles[i]))
			return psprintf("is a member of %s", GetUserNameFromId(outside_roles[i], true));
	if (changes == before)		/* nothing became known on the way */
		apart = role;
	return NULL;
}

/* A purpose's role must not be able to do what no sandbox can hold. */
static void
check_role_is_confined(Oid role, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	Form_pg_authid form;
	const char *what = NULL;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for role %u", role);
	form = (Form_pg_authid) GETSTRUCT(tuple);
	if (form->rolsuper)
		what = "is a superuser";
	else if (form->rolbypassrls)
		what = "bypasses row-level security";
	else if (form->rolcreaterole)
		what = "may create roles";
	else if (form->rolreplication)
		what = "may replicate";
	ReleaseSysCache(tuple);
	if (what == NULL)
		what = reaches_outside(role);
	if (what)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("role '%s' %s; refusing to run tools as it", name, what),
				 errhint("Map the purpose to a role without such rights, or say allow_elevated when creating the purpose.")));
}

/* The role that the call runs as; all checks are made against the caller. */
static Oid
check_role(AidbToolCall *call)
{
	Oid			caller = GetUserId();
	Oid			role;

	/*
	 * What other sessions did to roles and grants meanwhile: nothing else on
	 * the way here takes a lock, which is when caches learn of it.
	 */
	AcceptInvalidationMessages();
	if (OidIsValid(call->as_role))
	{
		/* a condition of a policy, which only its owner can write: read-only, and not a tool of the caller */
		if (!call->read_only || !SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(call->as_role)))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("role with OID %u does not exist", call->as_role)));
		return call->as_role;
	}
	if (call->role_name == NULL)
	{
		if (superuser() && !call->read_only && !aidb_allow_superuser_tools)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 aidb_refused("pre_execution_rejected"),
					 errmsg("tools that write do not run as a superuser"),
					 errhint("Give the agent a purpose, call it as another role, or set aidb.allow_superuser_tools.")));
		return caller;
	}
	role = get_role_oid(call->role_name, true);
	if (!OidIsValid(role))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 aidb_refused("role_not_found"),
				 errmsg("role '%s' does not exist", call->role_name)));
	if (OidIsValid(call->role_id) && role != call->role_id)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("role_not_found"),
				 errmsg("role '%s' is not the one that the purpose was set to; refusing to switch", call->role_name),
				 errdetail("It was dropped and created anew since."),
				 errhint("Set the purpose again with aidb.update_purpose if the new role is meant.")));
	/* from 16 on there is membership without SET: it is for use through agents alone */
	if (!is_member_of_role(caller, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("not_role_member"),
				 errmsg("current user is not a member of role '%s'; refusing to switch", call->role_name),
				 errhint("GRANT %s TO %s;", quote_identifier(call->role_name),
						 quote_identifier(GetUserNameFromId(caller, false)))));
	if (!call->elevated)
		check_role_is_confined(role, call->role_name);
	return role;
}

/*
 * The oid of a function of ours.  Its text is looked up once: an oid that still
 * exists still is the same function, because oids of dropped ones come back only
 * after all others.
 */
static Oid
function_named(const char *signature)
{
	static struct
	{
		char	   *signature;
		Oid			fn;
	}			known[16];
	int			i;
	Oid			fn;

	for (i = 0; i < (int) lengthof(known) && known[i].signature; i++)
		if (strcmp(known[i].signature, signature) == 0)
			break;
	if (i < (int) lengthof(known) && known[i].signature && SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(known[i].fn)))
		return known[i].fn;
	fn = DatumGetObjectId(DirectFunctionCall1(regprocedurein, CStringGetDatum(signature)));
	if (i < (int) lengthof(known))
	{
		if (known[i].signature == NULL)
			known[i].signature = MemoryContextStrdup(TopMemoryContext, signature);
		known[i].fn = fn;
	}
	return fn;
}

/* A native tool is permitted to a role by EXECUTE on the function of its name. */
static void
check_function_grant(AidbToolCall *call, Oid role)
{
	Oid			fn;

	if (call->function == NULL)
		return;
	fn = function_named(call->function);
	if (AIDB_FUNCTION_ACL(fn, role) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("engine_privilege_denied"),
				 errmsg("permission denied for function %s", get_func_name(fn)),
				 errhint("GRANT EXECUTE ON FUNCTION %s TO %s;", call->function,
						 quote_identifier(GetUserNameFromId(role, false)))));
}

/* The role of a tool call; raises when it may not run as that, or not at all. */
Oid
aidb_tool_role(AidbToolCall *call)
{
	Oid			role = check_role(call);

	check_function_grant(call, role);
	return role;
}
