/*
 * filter.c
 *		What may run while a tool call is on: statements, executor, PL/pgSQL.
 *
 * The hooks are installed for the process but do nothing outside a tool call
 * (aidb_tool_scope is NULL).  Inside they see every statement at any depth:
 * of the tool itself, of DO blocks, of functions, triggers and views.
 *
 * Statements are allowed by list, not forbidden by list: PostgreSQL grows new
 * ones with every release.  Identity statements (SET ROLE and its kin) are let
 * through on purpose: the engine itself refuses them, with the message that
 * users know from SECURITY DEFINER functions.
 */
#include "aidb.h"

#include "access/xact.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "plpgsql.h"
#include "tcop/utility.h"
#include "catalog/objectaccess.h"

static ProcessUtility_hook_type next_utility = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;
static object_access_hook_type next_object_access = NULL;

/* A PL/pgSQL function has run since the plan cache was last reset (sandbox.c). */
bool		aidb_plpgsql_ran = true;

/* --- statements ------------------------------------------------------------- */

static bool
is_identity_statement(Node *stmt)
{
	VariableSetStmt *set = (VariableSetStmt *) stmt;

	return IsA(stmt, VariableSetStmt) && set->name != NULL &&
		(strcmp(set->name, "role") == 0 || strcmp(set->name, "session_authorization") == 0);
}

/* RESET ALL and DISCARD ALL are attempts to get rid of the caller's settings. */
static bool
is_escape_statement(Node *stmt)
{
	if (IsA(stmt, VariableSetStmt))
		return ((VariableSetStmt *) stmt)->kind == VAR_RESET_ALL || is_identity_statement(stmt);
	return IsA(stmt, DiscardStmt) && ((DiscardStmt *) stmt)->target == DISCARD_ALL;
}

static const char *
hint_for(Node *stmt)
{
	switch (nodeTag(stmt))
	{
		case T_CreateStmt:
		case T_CreateTableAsStmt:
			return "Use a common table expression, VALUES, or a table that an administrator made for it.";
		case T_PrepareStmt:
		case T_ExecuteStmt:
		case T_DeallocateStmt:
			return "Send the statement itself.";
		case T_DeclareCursorStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
			return "Page through the rows with LIMIT and a condition on the last key.";
		case T_VariableSetStmt:
			return "A tool call runs with the settings of its caller.";
		case T_CopyStmt:
			return "Use SELECT to read and INSERT to write rows.";
		case T_TransactionStmt:
			return "A tool call is one step of the caller's transaction.";
		case T_NotifyStmt:
		case T_ListenStmt:
			return "Let the application send and receive notifications.";
		default:
			return NULL;
	}
}

static void
refuse_statement(Node *stmt, const char *mode)
{
	const char *hint = hint_for(stmt);
	const char *tag = GetCommandTagName(CreateCommandTag(stmt));

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused(is_escape_statement(stmt) ? "escalation_blocked" : "pre_execution_rejected"),
			 errmsg("%s is not allowed in a %stool call", tag, mode),
			 hint ? errhint("%s", hint) : 0));
}

static bool
utility_is_allowed(Node *stmt, bool read_only)
{
	switch (nodeTag(stmt))
	{
		case T_VariableShowStmt:
			return true;
		case T_ExplainStmt:
			{
				Node	   *query = ((ExplainStmt *) stmt)->query;

				/* EXPLAIN ANALYZE CREATE TABLE AS, EXECUTE, DECLARE would do it */
				return !IsA(query, Query) || ((Query *) query)->commandType != CMD_UTILITY;
			}
		case T_CallStmt:
			return true;		/* nested; at the top of a read-only call it was refused */
		case T_DoStmt:
		case T_TruncateStmt:
			return !read_only;
		default:
			return is_identity_statement(stmt);
	}
}

static void
filter_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			   ProcessUtilityContext context, ParamListInfo params,
			   QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	AidbToolScope *s = aidb_tool_scope;

	if (s)
	{
		if (s->read_only)
			XactReadOnly = true;	/* up to 16, one RESET switches it off */
		if (!utility_is_allowed(pstmt->utilityStmt, s->read_only))
			refuse_statement(pstmt->utilityStmt, s->read_only ? "read-only " : "");
	}
	if (next_utility)
		next_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
}

/*
 * The statement of a tool call, as parsed, before anything else happens to it.
 * What PostgreSQL would let through silently, or refuse with a text that says
 * little, is answered here.
 */
void
aidb_check_statement(RawStmt *raw, bool read_only)
{
	Node	   *stmt = raw->stmt;

	if (IsA(stmt, VariableSetStmt) && is_escape_statement(stmt))
	{
		VariableSetStmt *set = (VariableSetStmt *) stmt;

		/* a bare RESET ROLE or RESET ALL; SET ROLE goes on to the engine */
		if (set->kind == VAR_RESET_ALL || (set->kind == VAR_RESET && strcmp(set->name, "role") == 0))
			refuse_statement(stmt, "");
		return;
	}
	if (!read_only)
		return;
	switch (nodeTag(stmt))
	{
		case T_SelectStmt:
		case T_ExplainStmt:
		case T_VariableShowStmt:
			break;
		case T_InsertStmt:
		case T_UpdateStmt:
		case T_DeleteStmt:
#if PG_VERSION_NUM >= 150000
		case T_MergeStmt:
#endif
			ereport(ERROR,
					(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
					 aidb_refused("pre_execution_rejected"),
					 errmsg("cannot execute %s in a read-only tool call", GetCommandTagName(CreateCommandTag(stmt)))));
			break;
		default:
			refuse_statement(stmt, "read-only ");
	}
	if (IsA(stmt, SelectStmt) && ((SelectStmt *) stmt)->intoClause)
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("cannot execute SELECT INTO in a read-only tool call")));
}

/* --- executor ---------------------------------------------------------------- */

static void
check_plan_reads_only(QueryDesc *queryDesc)
{
	PlannedStmt *plan = queryDesc->plannedstmt;
	ListCell   *lc;

	if (plan->commandType != CMD_SELECT || plan->hasModifyingCTE)
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("cannot execute a statement that changes data in a read-only tool call")));
	foreach(lc, plan->rowMarks)
		if (RowMarkRequiresRowShareLock(((PlanRowMark *) lfirst(lc))->markType))
			ereport(ERROR,
					(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
					 aidb_refused("pre_execution_rejected"),
					 errmsg("cannot lock rows in a read-only tool call"),
					 errhint("Leave out FOR UPDATE, FOR SHARE and the like.")));
}

static void
filter_executor_start(QueryDesc *queryDesc, int eflags)
{
	AidbToolScope *s = aidb_tool_scope;

	if (s && s->read_only)
	{
		XactReadOnly = true;
		if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
			check_plan_reads_only(queryDesc);
	}
	if (next_executor_start)
		next_executor_start(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

/* --- functions (the lists are in functions.c) --------------------------------- */

static void
filter_object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (next_object_access)
		next_object_access(access, classId, objectId, subId, arg);
	if (aidb_tool_scope && access == OAT_FUNCTION_EXECUTE)
		aidb_check_function(objectId, aidb_tool_scope->read_only);
}

/* --- PL/pgSQL ------------------------------------------------------------------ */

/*
 * A handler WHEN query_canceled in a loop swallows every cancellation.  Each
 * statement is reported here before its block's handler is set up, so the
 * deadline ends the loop all the same.
 */
static PLpgSQL_plugin *next_plugin = NULL;

static void
plugin_func_setup(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	aidb_plpgsql_ran = true;
	if (next_plugin && next_plugin->func_setup)
		next_plugin->func_setup(estate, func);
}

static void
plugin_func_beg(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	if (next_plugin && next_plugin->func_beg)
		next_plugin->func_beg(estate, func);
}

static void
plugin_func_end(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	if (next_plugin && next_plugin->func_end)
		next_plugin->func_end(estate, func);
}

static void
plugin_stmt_beg(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt)
{
	if (aidb_tool_scope && aidb_tool_scope->deadline_hit)
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling statement: the tool call's time is over")));
	if (next_plugin && next_plugin->stmt_beg)
		next_plugin->stmt_beg(estate, stmt);
}

static void
plugin_stmt_end(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt)
{
	if (next_plugin && next_plugin->stmt_end)
		next_plugin->stmt_end(estate, stmt);
}

static PLpgSQL_plugin plugin = {
	.func_setup = plugin_func_setup,
	.func_beg = plugin_func_beg,
	.func_end = plugin_func_end,
	.stmt_beg = plugin_stmt_beg,
	.stmt_end = plugin_stmt_end,
};

/*
 * There is one slot for a plugin.  Whoever is in it already is called by ours;
 * whoever takes it later (a profiler) is noticed at the next tool call, which
 * puts ours in front again.  PL/pgSQL fills the plugin's callbacks into the
 * one it finds, so ours are handed on.
 */
void
aidb_install_plpgsql_plugin(void)
{
	PLpgSQL_plugin **slot = (PLpgSQL_plugin **) find_rendezvous_variable("PLpgSQL_plugin");

	if (*slot == &plugin)
		return;
	next_plugin = *slot;
	*slot = &plugin;
	aidb_plpgsql_ran = true;	/* it may have, unseen */
}

void
aidb_install_filters(void)
{
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = filter_utility;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = filter_executor_start;
	next_object_access = object_access_hook;
	object_access_hook = filter_object_access;
	aidb_install_plpgsql_plugin();
}
