/*
 * sqlbody.c
 *		The body of an SQL function, as the queries that it runs.
 */
#include "aidb.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "executor/functions.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/* The queries of an SQL function, however its body is kept; the call tells what its polymorphic arguments are. */
List *
aidb_sql_function_queries(HeapTuple tuple, Form_pg_proc proc, Node *call)
{
	bool		isnull;
	Datum		body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	List	   *queries = NIL;
	ListCell   *lc;
	char	   *src;
	Oid		   *argtypes;
	ErrorContextCallback callback = {.previous = error_context_stack,.callback = aidb_error_in_text};

	if (!isnull)
	{
		Node	   *n = stringToNode(TextDatumGetCString(body));

		/* a list of statements, each a list of queries, for BEGIN ATOMIC; else one query */
		if (!IsA(n, List))
			return list_make1(n);
		return castNode(List, linitial(castNode(List, n)));
	}
	src = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));
	callback.arg = src;
	error_context_stack = &callback;
	argtypes = palloc(sizeof(Oid) * (proc->pronargs + 1));
	memcpy(argtypes, proc->proargtypes.values, sizeof(Oid) * proc->pronargs);
	foreach(lc, pg_parse_query(src))
	{
		SQLFunctionParseInfoPtr pinfo = prepare_sql_fn_parse_info(tuple, call, InvalidOid);

		queries = list_concat(queries,
							  pg_analyze_and_rewrite_withcb(lfirst_node(RawStmt, lc), src,
															(ParserSetupHook) sql_fn_parser_setup, pinfo, NULL));
	}
	error_context_stack = callback.previous;
	return queries;
}
