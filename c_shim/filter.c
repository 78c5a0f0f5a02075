/*
 * filter.c
 *		What may run while a tool call is on: statements, executor, planner.
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

#include "access/transam.h"
#include "access/xact.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/plancat.h"
#include "tcop/utility.h"
#include "catalog/objectaccess.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

static ProcessUtility_hook_type next_utility = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;
static object_access_hook_type next_object_access = NULL;
static get_relation_info_hook_type next_relation_info = NULL;
static get_relation_stats_hook_type next_relation_stats = NULL;

/* --- statements ------------------------------------------------------------- */

static bool
is_identity_statement(Node *stmt)
{
	VariableSetStmt *set = (VariableSetStmt *) stmt;

	return IsA(stmt, VariableSetStmt) && set->name != NULL &&
		(strcmp(set->name, "role") == 0 || strcmp(set->name, "session_authorization") == 0);
}

/* RESET ALL and DISCARD ALL are attempts to get rid of the caller's settings. */
bool
aidb_is_escape_statement(Node *stmt)
{
	if (IsA(stmt, VariableSetStmt))
		return ((VariableSetStmt *) stmt)->kind == VAR_RESET_ALL || is_identity_statement(stmt);
	return IsA(stmt, DiscardStmt) && ((DiscardStmt *) stmt)->target == DISCARD_ALL;
}

static const char *
hint_for(Node *stmt, bool read_only)
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
		case T_DoStmt:
			if (read_only)
				return "Ask with a query: a DO block is for tools that write.";
			return "Write it in PL/pgSQL: only that can be stopped when its time is over.";
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
refuse_statement(Node *stmt, bool read_only)
{
	const char *hint = hint_for(stmt, read_only);
	const char *tag = GetCommandTagName(CreateCommandTag(stmt));

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused(aidb_is_escape_statement(stmt) ? "escalation_blocked" : "pre_execution_rejected"),
			 errmsg("%s is not allowed in a %stool call", tag, read_only ? "read-only " : ""),
			 hint ? errhint("%s", hint) : 0));
}

/* Code in other languages goes on whatever the deadline says: nothing in them looks. */
static bool
do_is_plpgsql(DoStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->args)
	{
		DefElem    *e = lfirst_node(DefElem, lc);

		if (strcmp(e->defname, "language") == 0 && strcmp(strVal(e->arg), "plpgsql") != 0)
			return false;
	}
	return true;
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
			return !read_only && do_is_plpgsql((DoStmt *) stmt);
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
			refuse_statement(pstmt->utilityStmt, s->read_only);
		if (IsA(pstmt->utilityStmt, TruncateStmt))
			aidb_check_truncate((TruncateStmt *) pstmt->utilityStmt);
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

	if (IsA(stmt, VariableSetStmt) && aidb_is_escape_statement(stmt))
	{
		VariableSetStmt *set = (VariableSetStmt *) stmt;

		/* a bare RESET ROLE or RESET ALL; SET ROLE goes on to the engine */
		if (set->kind == VAR_RESET_ALL || (set->kind == VAR_RESET && strcmp(set->name, "role") == 0))
			refuse_statement(stmt, false);
		return;
	}
	/* SPI answers these with a code and no text */
	if (IsA(stmt, CopyStmt) || IsA(stmt, TransactionStmt))
		refuse_statement(stmt, read_only);
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
			refuse_statement(stmt, true);
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

	if (s)
		aidb_check_our_tables(queryDesc->plannedstmt);
	/* a function's SET clause can ask for workers, in which no filter is up */
	if (s && queryDesc->plannedstmt->parallelModeNeeded)
	{
		PlannedStmt *alone = palloc(sizeof(PlannedStmt));

		*alone = *queryDesc->plannedstmt;
		alone->parallelModeNeeded = false;
		queryDesc->plannedstmt = alone;
	}
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
	if (access != OAT_FUNCTION_EXECUTE)
		return;
	if (aidb_tool_scope)
	{
		aidb_check_function(objectId, aidb_tool_scope->read_only);
		aidb_check_rights(objectId);
	}
	if (aidb_looking)
		aidb_check_looking(objectId);
}

/* --- planner ------------------------------------------------------------------ */

/*
 * To estimate how many rows a condition keeps, the planner calls its operator
 * with values of the statistics, and no hook sees that call: an operator of the
 * role's own over pg_try_advisory_lock() takes locks at EXPLAIN.  So operators
 * that users made are looked at before statistics are; with them those that the
 * estimators call in their place, the negator (of <> and the like) and the
 * commutator (for a constant on the left), and the ones of these.
 */
static void
check_operator(Oid operator, int steps)
{
	if (operator < FirstNormalObjectId)
		return;
	aidb_check_function(get_opcode(operator), aidb_tool_scope->read_only);
	if (steps > 0)
	{
		check_operator(get_negator(operator), steps - 1);
		check_operator(get_commutator(operator), steps - 1);
	}
}

static bool
check_operators(Node *node, void *context)
{
	Oid			operator = InvalidOid;

	if (node == NULL)
		return false;
	if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		operator = ((OpExpr *) node)->opno;
	else if (IsA(node, ScalarArrayOpExpr))
		operator = ((ScalarArrayOpExpr *) node)->opno;
	check_operator(operator, 2);
	/* a subquery of FROM or WITH is planned, and comes here, itself */
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, check_operators, context,
								 QTW_IGNORE_RT_SUBQUERIES | QTW_IGNORE_CTE_SUBQUERIES);
	return expression_tree_walker(node, check_operators, context);
}

/* Expressions of outer queries may be estimated with the columns of a subquery. */
static void
check_operators_of(PlannerInfo *root)
{
	for (; root; root = root->parent_root)
		(void) check_operators((Node *) root->parse, NULL);
}

/* Called for each table of a query whose functions have been inlined. */
static void
filter_relation_info(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
{
	if (aidb_tool_scope && rel->reloptkind == RELOPT_BASEREL)
	{
		ListCell   *lc;

		check_operators_of(root);
		/* the conditions of partial indexes are estimated too */
		foreach(lc, rel->indexlist)
			(void) check_operators((Node *) lfirst_node(IndexOptInfo, lc)->indpred, NULL);
	}
	if (next_relation_info)
		next_relation_info(root, relation, inhparent, rel);
}

/* The other way to a column's statistics: through a WITH query, which is planned first. */
static bool
filter_relation_stats(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attnum, VariableStatData *vardata)
{
	if (aidb_tool_scope)
		check_operators_of(root);
	return next_relation_stats && next_relation_stats(root, rte, attnum, vardata);
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
	next_relation_info = get_relation_info_hook;
	get_relation_info_hook = filter_relation_info;
	next_relation_stats = get_relation_stats_hook;
	get_relation_stats_hook = filter_relation_stats;
	aidb_install_rights();
	aidb_install_plpgsql_plugin();
	aidb_install_log_filter();
}
