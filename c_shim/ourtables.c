/*
 * ourtables.c
 *		The tables behind the extension, while a tool call is on.
 *
 * What decides how far agents reach is out of their reach, also for roles that
 * nothing else confines: no tool call writes a table behind the extension, or
 * reads one that holds secrets.  Views show what they show: they read as their
 * owner.  Functions of the extension that change anything refuse by themselves
 * (entry.c).
 */
#include "aidb.h"

#include "catalog/namespace.h"
#include "nodes/plannodes.h"
#include "utils/lsyscache.h"

static void
check_our_table(Oid relation, AclMode mode, Oid as_user)
{
	const char *schema = get_namespace_name(get_rel_namespace(relation));
	const char *name;

	if (schema == NULL || strcmp(schema, "aidb_internal") != 0)
		return;
	name = get_rel_name(relation);
	if ((mode & (ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE)) == 0 &&
		(OidIsValid(as_user) || (strcmp(name, "action_tokens") != 0 && strcmp(name, "model_credentials") != 0)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("pre_execution_rejected"),
			 errmsg("table aidb_internal.%s is out of reach of a tool call", name)));
}

void
aidb_check_our_tables(PlannedStmt *plan)
{
	ListCell   *lc;

#if PG_VERSION_NUM >= 160000
	foreach(lc, plan->permInfos)
	{
		RTEPermissionInfo *p = lfirst_node(RTEPermissionInfo, lc);

		check_our_table(p->relid, p->requiredPerms, p->checkAsUser);
	}
#else
	foreach(lc, plan->rtable)
	{
		RangeTblEntry *p = lfirst_node(RangeTblEntry, lc);

		if (p->rtekind == RTE_RELATION)
			check_our_table(p->relid, p->requiredPerms, p->checkAsUser);
	}
#endif
}

void
aidb_check_truncate(TruncateStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->relations)
	{
		Oid			relation = RangeVarGetRelid(lfirst_node(RangeVar, lc), NoLock, true);

		if (OidIsValid(relation))
			check_our_table(relation, ACL_TRUNCATE, InvalidOid);
	}
}
