/*
 * columns.c
 *		The names of the columns that a statement returns, as far as its text
 *		says them.
 *
 * For a tool that writes nothing is looked up when it is registered (its tables
 * may not be there yet), so only names that the statement itself has can be
 * told: those of "SELECT *" or "RETURNING *" cannot.
 */
#include "aidb.h"

#include "parser/parse_target.h"

/* All columns of something: t.*, (f()).* */
static bool
is_star(Node *node)
{
	if (IsA(node, ColumnRef))
		return IsA(llast(((ColumnRef *) node)->fields), A_Star);
	return IsA(node, A_Indirection) && IsA(llast(((A_Indirection *) node)->indirection), A_Star);
}

/* The names of a target list; false when they are not all in it. */
static bool
target_names(List *targets, List **names)
{
	ListCell   *lc;

	foreach(lc, targets)
	{
		ResTarget  *t = lfirst_node(ResTarget, lc);

		if (is_star(t->val))
			return false;
		*names = lappend(*names, t->name ? t->name : FigureColname(t->val));
	}
	return true;
}

/* A set operation has the names of its first part. */
static bool
select_names(SelectStmt *s, List **names)
{
	while (s->op != SETOP_NONE)
		s = s->larg;
	if (s->valuesLists == NIL)
		return target_names(s->targetList, names);
	for (int i = 1; i <= list_length(linitial(s->valuesLists)); i++)
		*names = lappend(*names, psprintf("column%d", i));
	return true;
}

/*
 * aidb_written_columns: the columns' names in their order; false when the text
 * does not say them.  A statement that returns no rows answers with their
 * number, see render.c.
 */
bool
aidb_written_columns(RawStmt *raw, List **names)
{
	List	   *returned = NIL;
	Node	   *stmt = raw->stmt;

	*names = NIL;
	switch (nodeTag(stmt))
	{
		case T_SelectStmt:
			return select_names((SelectStmt *) stmt, names);
		case T_ExplainStmt:
			*names = list_make1("QUERY PLAN");
			return true;
		case T_InsertStmt:
			returned = AIDB_RETURNED((InsertStmt *) stmt);
			break;
		case T_UpdateStmt:
			returned = AIDB_RETURNED((UpdateStmt *) stmt);
			break;
		case T_DeleteStmt:
			returned = AIDB_RETURNED((DeleteStmt *) stmt);
			break;
#if PG_VERSION_NUM >= 170000
		case T_MergeStmt:
			returned = AIDB_RETURNED((MergeStmt *) stmt);
			break;
#endif
		default:
			break;
	}
	if (returned != NIL)
		return target_names(returned, names);
	*names = list_make1("rows_affected");
	return true;
}
