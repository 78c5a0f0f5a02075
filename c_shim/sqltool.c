/*
 * sqltool.c
 *		What SQL tools need of the parser: checking a statement when it is
 *		registered, and telling which privileges a role would miss.
 *
 * Both analyse the statement and never run it.
 */
#include "aidb.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_type.h"
#include "parser/parsetree.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"

PG_FUNCTION_INFO_V1(aidb_check_tool);
PG_FUNCTION_INFO_V1(aidb_missing_privileges);

static Datum
text_array(List *texts)
{
	Datum	   *d = palloc(sizeof(Datum) * (list_length(texts) + 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, texts)
		d[n++] = CStringGetTextDatum(lfirst(lc));
	return PointerGetDatum(construct_array(d, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* The oids of type names; each must exist and be one that a value can have. */
static Oid *
types_of(ArrayType *names, int *n, int32 **typmods)
{
	Datum	   *d;
	bool	   *nulls;
	Oid		   *types;

	deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &d, &nulls, n);
	types = palloc(sizeof(Oid) * (*n + 1));
	*typmods = palloc(sizeof(int32) * (*n + 1));
	for (int i = 0; i < *n; i++)
	{
		AIDB_PARSE_TYPE(TextDatumGetCString(d[i]), &types[i], &(*typmods)[i]);
		if (get_typtype(types[i]) == TYPTYPE_PSEUDO)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("a parameter cannot have the pseudo-type %s", format_type_be(types[i]))));
	}
	return types;
}

/* The one statement of the text, of a kind that a SQL tool may have. */
static RawStmt *
parse_one(const char *sql)
{
	List	   *parsed = pg_parse_query(sql);
	Node	   *stmt;

	if (list_length(parsed) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 list_length(parsed) == 0 ? errmsg("the statement is empty")
				 : errmsg("a SQL tool has exactly one statement, not %d", list_length(parsed))));
	stmt = linitial_node(RawStmt, parsed)->stmt;
	switch (nodeTag(stmt))
	{
		case T_SelectStmt:
			if (((SelectStmt *) stmt)->intoClause)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("SELECT INTO cannot be a SQL tool")));
			break;
		case T_InsertStmt:
		case T_UpdateStmt:
		case T_DeleteStmt:
#if PG_VERSION_NUM >= 150000
		case T_MergeStmt:
#endif
			break;
		case T_ExplainStmt:
			{
				bool		runs = false;
				ListCell   *lc;

				/* as the server reads it: the last one counts */
				foreach(lc, ((ExplainStmt *) stmt)->options)
					if (strcmp(lfirst_node(DefElem, lc)->defname, "analyze") == 0)
						runs = defGetBoolean(lfirst_node(DefElem, lc));
				if (runs)
					ereport(ERROR,
							(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							 errmsg("EXPLAIN ANALYZE cannot be a SQL tool"),
							 errhint("Leave out ANALYZE: the plan is then shown without running the statement.")));
				break;
			}
		default:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("%s cannot be a SQL tool", GetCommandTagName(CreateCommandTag(stmt))),
					 errhint("A SQL tool is a SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE or EXPLAIN.")));
	}
	return linitial_node(RawStmt, parsed);
}

/* Analyses with the search_path that the person who registers has, as the tool's calls will have. */
static Query *
analyse(RawStmt *raw, const char *sql, Oid *types, int ntypes)
{
	int			level = NewGUCNestLevel();
	Query	   *query;

	if (aidb_owner_call_search_path())
		(void) set_config_option("search_path", aidb_owner_call_search_path(), PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	query = AIDB_PARSE_ANALYZE(raw, sql, types, ntypes);
	AtEOXact_GUC(false, level);
	return query;
}

/* Of a SELECT: what else is proved to be read-only is an EXPLAIN. */
static List *
column_names(Query *query)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *t = lfirst_node(TargetEntry, lc);

		if (!t->resjunk)
			names = lappend(names, t->resname);
	}
	aidb_check_column_names(names);
	return names;
}

/*
 * What both functions do with the statement, their first argument.  Nobody's
 * code is run with the owner's rights meanwhile (functions.c).
 */
static Datum
while_looking(Datum (*look) (FunctionCallInfo fcinfo, const char *sql), FunctionCallInfo fcinfo)
{
	char	   *sql = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ErrorContextCallback callback = {.previous = error_context_stack,.callback = aidb_error_in_text,.arg = sql};
	volatile Datum result = (Datum) 0;

	error_context_stack = &callback;
	aidb_looking = true;
	PG_TRY();
	{
		result = look(fcinfo, sql);
	}
	PG_FINALLY();
	{
		aidb_looking = false;
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	return result;
}

/*
 * (statement text, types text[], read_only boolean) -> (types text[], columns text[])
 *
 * Raises when the statement cannot be a SQL tool.  types are the canonical names
 * of the parameter types, which do not depend on a search_path; columns is NULL
 * when they cannot be known.
 */
static Datum
check_tool(FunctionCallInfo fcinfo, const char *sql)
{
	bool		read_only = PG_GETARG_BOOL(2);
	RawStmt    *raw = parse_one(sql);
	int			level = NewGUCNestLevel();
	int			n;
	Oid		   *types;
	int32	   *typmods;
	List	   *canonical = NIL;
	List	   *columns;
	Datum		values[2] = {0};
	bool		nulls[2] = {false, false};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "check_tool_statement returns a record");
	if (aidb_owner_call_search_path())
		(void) set_config_option("search_path", aidb_owner_call_search_path(), PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	types = types_of(PG_GETARG_ARRAYTYPE_P(1), &n, &typmods);
	AtEOXact_GUC(false, level);
	for (int i = 0; i < n; i++)
		canonical = lappend(canonical, format_type_extended(types[i], typmods[i], FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
	values[0] = text_array(canonical);
	nulls[1] = !aidb_written_columns(raw, &columns);
	if (read_only)
	{
		Query	   *query = analyse(raw, sql, types, n);

		aidb_prove_read_only(query);
		if (query->commandType == CMD_SELECT)
		{
			columns = column_names(query);
			nulls[1] = false;
		}
	}
	if (!nulls[1])
		values[1] = text_array(columns);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
aidb_check_tool(PG_FUNCTION_ARGS)
{
	return while_looking(check_tool, fcinfo);
}

/* --- privileges ------------------------------------------------------------------ */

typedef struct Missing
{
	Oid			role;
	List	   *texts;
	List	   *functions;
} Missing;

static void
miss(Missing *m, char *text)
{
	ListCell   *lc;

	foreach(lc, m->texts)
		if (strcmp(lfirst(lc), text) == 0)
			return;
	m->texts = lappend(m->texts, text);
}

static void
check_schema(Missing *m, Oid schema)
{
	if (AIDB_SCHEMA_ACL(schema, m->role) != ACLCHECK_OK)
		miss(m, psprintf("USAGE on schema %s", quote_identifier(get_namespace_name(schema))));
}

static bool
has_columns(Oid rel, Oid role, Bitmapset *columns, AclMode mode)
{
	int			col = -1;

	if (bms_is_empty(columns))	/* count(*): any column will do */
		return pg_attribute_aclcheck_all(rel, role, mode, ACLMASK_ANY) == ACLCHECK_OK;
	while ((col = bms_next_member(columns, col)) >= 0)
	{
		AttrNumber	att = col + FirstLowInvalidHeapAttributeNumber;

		if (att == InvalidAttrNumber)	/* the whole row */
		{
			if (pg_attribute_aclcheck_all(rel, role, mode, ACLMASK_ALL) != ACLCHECK_OK)
				return false;
		}
		else if (pg_attribute_aclcheck(rel, att, role, mode) != ACLCHECK_OK)
			return false;
	}
	return true;
}

static void
check_permissions(Missing *m, Oid rel, AclMode required, Bitmapset *selected, Bitmapset *inserted, Bitmapset *updated)
{
	static const struct
	{
		AclMode		mode;
		const char *name;
	}			kinds[] = {{ACL_SELECT, "SELECT"}, {ACL_INSERT, "INSERT"}, {ACL_UPDATE, "UPDATE"}, {ACL_DELETE, "DELETE"}};

	if (required == 0)
		return;
	check_schema(m, get_rel_namespace(rel));
	for (int i = 0; i < (int) lengthof(kinds); i++)
	{
		AclMode		mode = kinds[i].mode;
		Bitmapset  *columns = mode == ACL_SELECT ? selected : mode == ACL_INSERT ? inserted : updated;

		if ((required & mode) == 0 || pg_class_aclcheck(rel, m->role, mode) == ACLCHECK_OK)
			continue;
		if (mode != ACL_DELETE && has_columns(rel, m->role, columns, mode))
			continue;
		miss(m, psprintf("%s on %s %s", kinds[i].name,
						 get_rel_relkind(rel) == RELKIND_SEQUENCE ? "sequence" : "table",
						 quote_qualified_identifier(get_namespace_name(get_rel_namespace(rel)), get_rel_name(rel))));
	}
}

static bool
check_function(Oid fn, void *context)
{
	Missing    *m = context;

	if (!list_member_oid(m->functions, fn) && AIDB_FUNCTION_ACL(fn, m->role) != ACLCHECK_OK)
		miss(m, psprintf("EXECUTE on function %s", format_procedure_qualified(fn)));
	m->functions = lappend_oid(m->functions, fn);
	return false;
}

static bool
collect(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *q = (Query *) node;
		ListCell   *lc;

#if PG_VERSION_NUM >= 160000
		foreach(lc, q->rteperminfos)
		{
			RTEPermissionInfo *i = lfirst_node(RTEPermissionInfo, lc);

			check_permissions(context, i->relid, i->requiredPerms, i->selectedCols, i->insertedCols, i->updatedCols);
		}
#else
		foreach(lc, q->rtable)
		{
			RangeTblEntry *i = lfirst_node(RangeTblEntry, lc);

			if (i->rtekind == RTE_RELATION)
				check_permissions(context, i->relid, i->requiredPerms, i->selectedCols, i->insertedCols, i->updatedCols);
		}
#endif
		return query_tree_walker(q, collect, context, 0);
	}
	check_functions_in_node(node, check_function, context);
	return expression_tree_walker(node, collect, context);
}

/*
 * (statement text, types text[], role oid) -> text[]
 *
 * The privileges that the role lacks for the statement.  What a view, trigger
 * or function does beneath is not its caller's privilege and is not looked at.
 */
static Datum
missing_privileges(FunctionCallInfo fcinfo, const char *sql)
{
	RawStmt    *raw = parse_one(sql);
	Missing		m = {.role = PG_GETARG_OID(2)};
	int			n;
	int32	   *typmods;
	Oid		   *types = types_of(PG_GETARG_ARRAYTYPE_P(1), &n, &typmods);
	Query	   *query = analyse(raw, sql, types, n);

	if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, ExplainStmt))
		query = castNode(Query, ((ExplainStmt *) query->utilityStmt)->query);
	(void) collect((Node *) query, &m);
	PG_RETURN_DATUM(text_array(m.texts));
}

Datum
aidb_missing_privileges(PG_FUNCTION_ARGS)
{
	return while_looking(missing_privileges, fcinfo);
}
