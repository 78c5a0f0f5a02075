/*
 * ourtables.c
 *		The tables behind the extension, and the server's own, while a tool call
 *		is on.
 *
 * What decides how far agents reach is out of their reach, also for roles that
 * nothing else confines: no tool call writes a table behind the extension, or
 * reads one that holds secrets.  Views show what they show: they read as their
 * owner.  Functions of the extension that change anything refuse by themselves
 * (entry.c).  And a superuser who writes the catalogs writes memberships,
 * settings of roles and what functions are.
 */
#include "aidb.h"

#include <unistd.h>

#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "postmaster/postmaster.h"
#include "utils/lsyscache.h"

/* An option of a foreign server, or NULL. */
static const char *
option(const ForeignServer *server, const char *name)
{
	ListCell   *lc;

	foreach(lc, server->options)
		if (strcmp(lfirst_node(DefElem, lc)->defname, name) == 0)
			return defGetString(lfirst_node(DefElem, lc));
	return NULL;
}

static bool
is_this_host(const char *host)
{
	char		own[256] = "";

	if (host == NULL || host[0] == '\0' || host[0] == '/' || host[0] == '@' ||
		strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0)
		return true;
	return gethostname(own, sizeof(own) - 1) == 0 && strcmp(host, own) == 0;
}

/*
 * A foreign table that leads back into this database is another session, which
 * knows of no tool call.  As far as its server's options say so: what a name
 * of a host stands for is not looked up.
 */
static void
check_foreign_table(Oid relation)
{
	ForeignServer *server = GetForeignServer(GetForeignServerIdByRelId(relation));
	const char *port = option(server, "port");
	const char *database = option(server, "dbname");

	if (strcmp(GetForeignDataWrapper(server->fdwid)->fdwname, "postgres_fdw") != 0 ||
		atoi(port ? port : DEF_PGPORT_STR) != PostPortNumber ||
		(database && strcmp(database, get_database_name(MyDatabaseId)) != 0) ||
		!(is_this_host(option(server, "host")) || (option(server, "hostaddr") && is_this_host(option(server, "hostaddr")))))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("pre_execution_rejected"),
			 errmsg("foreign table %s leads back into this database and is out of reach of a tool call", get_rel_name(relation)),
			 errhint("Use the table itself.")));
}

/* Partitions and children, which a statement may write although its plan does not name them. */
static void
check_foreign_children(Oid relation)
{
	ListCell   *lc;

	if (get_rel_relkind(relation) == RELKIND_FOREIGN_TABLE)
		check_foreign_table(relation);
	if (!has_subclass(relation))
		return;
	foreach(lc, find_all_inheritors(relation, NoLock, NULL))
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			check_foreign_table(lfirst_oid(lc));
}

static bool
holds_secrets(const char *name)
{
	static const char *const tables[] = {"action_tokens", "model_credentials", "mcp_credentials", "mcp_authorizations"};

	for (size_t i = 0; i < lengthof(tables); i++)
		if (strcmp(name, tables[i]) == 0)
			return true;
	return false;
}

static void
check_our_table(Oid relation, AclMode mode, Oid as_user)
{
	bool		writes = (mode & (ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE)) != 0;
	const char *schema = get_namespace_name(get_rel_namespace(relation));
	const char *name = get_rel_name(relation);

	if (schema == NULL || name == NULL)
		return;
	if (writes)
		check_foreign_children(relation);
	if (strcmp(schema, "aidb_internal") == 0)
	{
		if (!writes && (OidIsValid(as_user) || !holds_secrets(name)))
			return;
	}
	else if (!writes || !(strcmp(schema, "aidb_otel") == 0 || IsCatalogRelationOid(relation)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("pre_execution_rejected"),
			 errmsg("table %s.%s is out of reach of a tool call", schema, name)));
}

void
aidb_check_our_tables(PlannedStmt *plan)
{
	ListCell   *lc;

	foreach(lc, plan->rtable)
	{
		RangeTblEntry *r = lfirst_node(RangeTblEntry, lc);

		if (r->rtekind == RTE_RELATION && r->relkind == RELKIND_FOREIGN_TABLE)
			check_foreign_table(r->relid);
	}
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
