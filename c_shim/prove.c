/*
 * prove.c
 *		Shows that a statement only reads, before it is ever run.
 *
 * The analysed parse tree is walked, with everything that it would call: the
 * functions behind operators, aggregates, casts and domains, default arguments,
 * and the bodies of views and of SQL functions.  A function passes when it is
 * declared IMMUTABLE or STABLE, or is on the list of harmless VOLATILE ones
 * (functions.c).  What a function in another language really does cannot be
 * seen; the read-only tool call (sandbox.c) stays underneath.
 */
#include "aidb.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_func.h"
#include "executor/functions.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define MAX_DEPTH 50

typedef struct Proof
{
	List	   *functions;		/* oids that were looked at */
	List	   *views;
	int			depth;
	const char *via;			/* the view or function whose body is being walked */
} Proof;

static bool walk(Node *node, void *context);

static void
refuse(Proof *p, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
			 aidb_refused("pre_execution_rejected"),
			 errmsg("the statement is not read-only: %s", what),
			 p->via ? errdetail("That is inside %s.", p->via) : 0,
			 errhint("Register it with read_only => false if it is meant to write.")));
}

static void
walk_inside(Proof *p, Node *node, const char *via)
{
	const char *before = p->via;

	check_stack_depth();
	if (++p->depth > MAX_DEPTH)
		refuse(p, "views or functions are nested too deep to be looked into");
	p->via = via;
	(void) walk(node, p);
	p->via = before;
	p->depth--;
}

/* The queries of an SQL function, however its body is kept. */
static List *
sql_function_queries(HeapTuple tuple, Form_pg_proc proc)
{
	bool		isnull;
	Datum		body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	List	   *queries = NIL;
	ListCell   *lc;
	char	   *src;
	Oid		   *argtypes;

	if (!isnull)
	{
		Node	   *n = stringToNode(TextDatumGetCString(body));

		/* a list of statements, each a list of queries, for BEGIN ATOMIC; else one query */
		if (!IsA(n, List))
			return list_make1(n);
		return castNode(List, linitial(castNode(List, n)));
	}
	src = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));
	argtypes = palloc(sizeof(Oid) * (proc->pronargs + 1));
	memcpy(argtypes, proc->proargtypes.values, sizeof(Oid) * proc->pronargs);
	foreach(lc, pg_parse_query(src))
	{
		SQLFunctionParseInfoPtr pinfo = prepare_sql_fn_parse_info(tuple, NULL, InvalidOid);

		queries = list_concat(queries,
							  pg_analyze_and_rewrite_withcb(lfirst_node(RawStmt, lc), src,
															(ParserSetupHook) sql_fn_parser_setup, pinfo, NULL));
	}
	return queries;
}

static bool
is_polymorphic(Form_pg_proc proc)
{
	for (int i = 0; i < proc->pronargs; i++)
		if (IsPolymorphicType(proc->proargtypes.values[i]))
			return true;
	return false;
}

/* One function: its volatility, and what it calls as far as that can be seen. */
static bool
check_one(Oid fn, void *context)
{
	Proof	   *p = context;
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		isnull;
	Datum		defaults;

	if (list_member_oid(p->functions, fn))
		return false;
	p->functions = lappend_oid(p->functions, fn);
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->provolatile == PROVOLATILE_VOLATILE && !aidb_function_is_harmless(tuple))
		refuse(p, psprintf("function %s is VOLATILE", format_procedure(fn)));
	if (aidb_function_is_denied(tuple))
		refuse(p, psprintf("function %s is not allowed in a tool call", format_procedure(fn)));

	defaults = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	if (!isnull)
		walk_inside(p, stringToNode(TextDatumGetCString(defaults)),
					psprintf("a default argument of function %s", format_procedure(fn)));
	if (proc->prokind == PROKIND_AGGREGATE)
	{
		HeapTuple	aggregate = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(fn));
		Form_pg_aggregate a;

		if (!HeapTupleIsValid(aggregate))
			elog(ERROR, "cache lookup failed for aggregate %u", fn);
		a = (Form_pg_aggregate) GETSTRUCT(aggregate);
		check_one(a->aggtransfn, p);
		if (OidIsValid(a->aggfinalfn))
			check_one(a->aggfinalfn, p);
		if (OidIsValid(a->aggmtransfn))
			check_one(a->aggmtransfn, p);
		ReleaseSysCache(aggregate);
	}
	/* built-in SQL functions only wrap others; polymorphic ones cannot be analysed without a call */
	if (proc->prolang == SQLlanguageId && fn >= FirstNormalObjectId && !is_polymorphic(proc))
	{
		ListCell   *lc;

		foreach(lc, sql_function_queries(tuple, proc))
			walk_inside(p, lfirst(lc), psprintf("function %s", format_procedure(fn)));
	}
	ReleaseSysCache(tuple);
	return false;
}

static void
check_relation(Proof *p, RangeTblEntry *rte)
{
	Relation	rel;

	if (rte->relkind != RELKIND_VIEW || list_member_oid(p->views, rte->relid))
		return;
	p->views = lappend_oid(p->views, rte->relid);
	rel = table_open(rte->relid, AccessShareLock);
	walk_inside(p, (Node *) get_view_query(rel), psprintf("view %s", RelationGetRelationName(rel)));
	table_close(rel, AccessShareLock);
}

static Oid
base_of_domain(Oid domain)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(domain));
	Oid			base;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", domain);
	base = ((Form_pg_type) GETSTRUCT(tuple))->typbasetype;
	ReleaseSysCache(tuple);
	return base;
}

/* From the catalog: the type cache plans the checks, which runs what is constant in them. */
static void
check_domain(Proof *p, Oid type)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);

	for (; get_typtype(type) == TYPTYPE_DOMAIN; type = base_of_domain(type))
	{
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple	tuple;

		ScanKeyInit(&key, Anum_pg_constraint_contypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(type));
		scan = systable_beginscan(constraints, ConstraintTypidIndexId, true, NULL, 1, &key);
		while ((tuple = systable_getnext(scan)) != NULL)
		{
			bool		isnull;
			Datum		check = heap_getattr(tuple, Anum_pg_constraint_conbin, RelationGetDescr(constraints), &isnull);

			if (!isnull)
				walk_inside(p, stringToNode(TextDatumGetCString(check)),
							psprintf("a constraint of domain %s", format_type_be(type)));
		}
		systable_endscan(scan);
	}
	table_close(constraints, AccessShareLock);
}

static void
check_query(Proof *p, Query *q)
{
	if (q->commandType == CMD_UTILITY)
	{
		ExplainStmt *e = (ExplainStmt *) q->utilityStmt;

		if (!IsA(q->utilityStmt, ExplainStmt))
			refuse(p, psprintf("%s is not a query", GetCommandTagName(CreateCommandTag(q->utilityStmt))));
		/* without ANALYZE nothing of it is run; aidb_check_tool has seen to that */
		(void) e;
		return;
	}
	if (q->commandType != CMD_SELECT)
		refuse(p, psprintf("it contains %s", q->commandType == CMD_INSERT ? "INSERT" :
						   q->commandType == CMD_UPDATE ? "UPDATE" :
						   q->commandType == CMD_DELETE ? "DELETE" : "MERGE"));
	if (q->rowMarks != NIL)
		refuse(p, "it locks rows (FOR UPDATE, FOR SHARE)");
}

static bool
walk(Node *node, void *context)
{
	Proof	   *p = context;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		check_query(p, (Query *) node);
		return query_tree_walker((Query *) node, walk, context, QTW_EXAMINE_RTES_BEFORE);
	}
	if (IsA(node, RangeTblEntry))
	{
		check_relation(p, (RangeTblEntry *) node);
		return false;			/* the walker goes into it */
	}
	if (IsA(node, CoerceToDomain))
		check_domain(p, ((CoerceToDomain *) node)->resulttype);
	check_functions_in_node(node, check_one, context);
	return expression_tree_walker(node, walk, context);
}

/* Raises when the analysed query might write, with the reason. */
void
aidb_prove_read_only(Query *query)
{
	Proof		p = {0};

	(void) walk((Node *) query, &p);
}
