/*
 * prove.c
 *		Shows that a statement only reads, before it is ever run.
 *
 * The analysed parse tree is walked, with everything that it would call: the
 * functions behind operators, aggregates, casts and domains, default arguments,
 * row-level security, and the bodies of views and of SQL functions.  A function
 * passes when it is declared IMMUTABLE or STABLE, or is on the list of harmless
 * VOLATILE ones (functions.c).  What a function in another language really does
 * cannot be seen; the read-only tool call (sandbox.c) stays underneath.
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
#include "rewrite/rewriteHandler.h"
#include "rewrite/rowsecurity.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#define MAX_DEPTH 50

typedef struct Proof
{
	List	   *functions;		/* oids that were looked at */
	List	   *relations;
	List	   *types;
	int			depth;
	bool		explained;		/* the statement itself is shown, not run */
	Node	   *call;			/* the expression whose functions are being looked at */
	const char *via;			/* the view or function whose body is being walked */
} Proof;

static bool walk(Node *node, void *context);
static bool check_one(Oid fn, void *context);
static void check_type(Proof *p, Oid type);

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
	Node	   *call = p->call;
	bool		explained = p->explained;

	check_stack_depth();
	if (++p->depth > MAX_DEPTH)
		refuse(p, "views or functions are nested too deep to be looked into");
	p->via = via;
	p->explained = false;
	(void) walk(node, p);
	p->explained = explained;
	p->via = before;
	p->call = call;
	p->depth--;
}

static bool
is_polymorphic(Form_pg_proc proc)
{
	for (int i = 0; i < proc->pronargs; i++)
		if (IsPolymorphicType(proc->proargtypes.values[i]))
			return true;
	return false;
}

/* Does the expression call this very function, and so tell the types of its arguments? */
static bool
is_call_of(Node *call, Oid fn)
{
	if (call == NULL)
		return false;
	switch (nodeTag(call))
	{
		case T_FuncExpr:
			return ((FuncExpr *) call)->funcid == fn;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			return ((OpExpr *) call)->opfuncid == fn;
		default:
			return false;
	}
}

static void
check_aggregate(Proof *p, Oid fn)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(fn));
	Form_pg_aggregate a;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", fn);
	a = (Form_pg_aggregate) GETSTRUCT(tuple);
	{
		Oid			parts[] = {a->aggtransfn, a->aggfinalfn, a->aggcombinefn, a->aggserialfn,
			a->aggdeserialfn, a->aggmtransfn, a->aggminvtransfn, a->aggmfinalfn};

		for (int i = 0; i < (int) lengthof(parts); i++)
			if (OidIsValid(parts[i]))
				check_one(parts[i], p);
	}
	check_type(p, a->aggtranstype);
	ReleaseSysCache(tuple);
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
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	/* what a polymorphic function calls depends on the call */
	if (!is_polymorphic(proc))
		p->functions = lappend_oid(p->functions, fn);
	if (proc->provolatile == PROVOLATILE_VOLATILE && !aidb_function_is_harmless(tuple))
		refuse(p, psprintf("function %s is VOLATILE", format_procedure(fn)));
	if (aidb_function_is_denied(tuple))
		refuse(p, psprintf("function %s is not allowed in a tool call", format_procedure(fn)));
	if (aidb_function_runs_text(tuple))
		refuse(p, psprintf("function %s runs a statement that is not known before", format_procedure(fn)));

	defaults = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	if (!isnull)
		walk_inside(p, stringToNode(TextDatumGetCString(defaults)),
					psprintf("a default argument of function %s", format_procedure(fn)));
	if (aidb_function_numbers(tuple))
		refuse(p, psprintf("function %s gives the transaction a number", format_procedure(fn)));
	if (proc->prokind == PROKIND_AGGREGATE)
		check_aggregate(p, fn);
	/* built-in SQL functions only wrap others */
	if (proc->prolang == SQLlanguageId && fn >= FirstNormalObjectId)
	{
		ListCell   *lc;

		if (is_polymorphic(proc) && !is_call_of(p->call, fn))
			refuse(p, psprintf("function %s cannot be looked into here", format_procedure(fn)));
		foreach(lc, aidb_sql_function_queries(tuple, proc, is_polymorphic(proc) ? p->call : NULL))
			walk_inside(p, lfirst(lc), psprintf("function %s", format_procedure(fn)));
	}
	ReleaseSysCache(tuple);
	return false;
}

/* A view's query; a table's row-level security, which its owner wrote and every reader runs. */
static void
check_relation(Proof *p, RangeTblEntry *rte)
{
	Relation	rel;

	if (rte->rtekind != RTE_RELATION || list_member_oid(p->relations, rte->relid))
		return;
	p->relations = lappend_oid(p->relations, rte->relid);
	rel = table_open(rte->relid, AccessShareLock);
	if (rte->relkind == RELKIND_VIEW)
		walk_inside(p, (Node *) get_view_query(rel), psprintf("view %s", RelationGetRelationName(rel)));
	if (rel->rd_rsdesc)
	{
		ListCell   *lc;

		foreach(lc, rel->rd_rsdesc->policies)
		{
			RowSecurityPolicy *policy = lfirst(lc);

			if (policy->polcmd == '*' || policy->polcmd == ACL_SELECT_CHR)
				walk_inside(p, (Node *) policy->qual,
							psprintf("policy %s of table %s", policy->policy_name, RelationGetRelationName(rel)));
		}
	}
	table_close(rel, AccessShareLock);
}

/* From the catalog: the type cache plans the checks, which runs what is constant in them. */
static void
check_domain(Proof *p, Oid domain)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_contypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(domain));
	scan = systable_beginscan(constraints, ConstraintTypidIndexId, true, NULL, 1, &key);
	while ((tuple = systable_getnext(scan)) != NULL)
	{
		bool		isnull;
		Datum		check = heap_getattr(tuple, Anum_pg_constraint_conbin, RelationGetDescr(constraints), &isnull);

		if (!isnull)
			walk_inside(p, stringToNode(TextDatumGetCString(check)),
						psprintf("a constraint of domain %s", format_type_be(domain)));
	}
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
}

/*
 * The domains in a type whose values are made here: each checks what becomes a
 * part of it, also as the element of an array or a field of a row.
 */
static void
check_type(Proof *p, Oid type)
{
	HeapTuple	tuple;
	Form_pg_type t;

	if (type < FirstNormalObjectId || list_member_oid(p->types, type))
		return;
	check_stack_depth();
	p->types = lappend_oid(p->types, type);
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	t = (Form_pg_type) GETSTRUCT(tuple);
	switch (t->typtype)
	{
		case TYPTYPE_DOMAIN:
			check_domain(p, type);
			check_type(p, t->typbasetype);
			break;
		case TYPTYPE_RANGE:
			check_type(p, get_range_subtype(type));
			break;
		case TYPTYPE_MULTIRANGE:
			check_type(p, get_multirange_range(type));
			break;
		case TYPTYPE_COMPOSITE:
			{
				TupleDesc	desc = lookup_rowtype_tupdesc_copy(type, -1);

				for (int i = 0; i < desc->natts; i++)
					if (!TupleDescAttr(desc, i)->attisdropped)
						check_type(p, TupleDescAttr(desc, i)->atttypid);
				break;
			}
		default:
			if (OidIsValid(t->typelem))
				check_type(p, t->typelem);
	}
	ReleaseSysCache(tuple);
}

static void
check_types(Proof *p, List *types)
{
	ListCell   *lc;

	foreach(lc, types)
		check_type(p, lfirst_oid(lc));
}

/* The types of the values that an expression makes, rather than finds in a table. */
static void
check_made(Proof *p, Node *node)
{
	switch (nodeTag(node))
	{
		case T_CoerceToDomain:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ConvertRowtypeExpr:
		case T_FuncExpr:
		case T_OpExpr:
		case T_Aggref:
		case T_WindowFunc:
		case T_RowExpr:
		case T_Param:
			check_type(p, exprType(node));
			break;
		case T_RangeTblFunction:
			check_types(p, ((RangeTblFunction *) node)->funccoltypes);
			break;
		case T_TableFunc:
			check_types(p, ((TableFunc *) node)->coltypes);
			break;
		default:
			break;
	}
}

static void
check_query(Proof *p, Query *q)
{
	if (q->commandType == CMD_UTILITY)
	{
		/*
		 * Without ANALYZE, which aidb_check_tool has seen to, an INSERT is
		 * not run.  But the planner calls functions, for constants and
		 * estimates, and the server looks up the others as if to call them.
		 */
		if (!IsA(q->utilityStmt, ExplainStmt) || p->depth > 0 || p->explained)
			refuse(p, psprintf("%s is not a query", GetCommandTagName(CreateCommandTag(q->utilityStmt))));
		p->explained = true;
		(void) walk(((ExplainStmt *) q->utilityStmt)->query, p);
		return;
	}
	if (p->explained)
		return;
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
	check_made(p, node);
	p->call = node;
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
