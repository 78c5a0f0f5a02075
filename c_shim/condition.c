/*
 * condition.c
 *		Conditions of temporal policies.  When they are written: is this one
 *		boolean expression that only reads, and what does it mean whatever the
 *		search_path is.  When they are asked: is it true.
 *
 * The text is analysed once, under the author's search_path, with the names
 * params, session_id and principal as parameters.  What is kept is the analysed
 * expression written out again, as pg_dump writes a view: every name outside
 * pg_catalog says its schema.  So nobody who can create objects in some schema
 * changes what a condition means, and a dump can be restored.
 */
#include "aidb.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(aidb_plan_condition);
PG_FUNCTION_INFO_V1(aidb_evaluate_condition);

/* A condition is a look at some rows: longer than this it is a mistake. */
#define CONDITION_TIMEOUT_MS 10000

static const struct
{
	const char *name;
	Oid			type;
}			variables[] = {{"params", JSONBOID}, {"session_id", UUIDOID}, {"principal", TEXTOID}};

/* A read-only call as the owner, in which the variables are $1 to $3. */
static void
make_call(AidbToolCall *call, Oid owner, char *statement, char **values, int timeout_ms)
{
	static char *types[] = {"pg_catalog.jsonb", "pg_catalog.uuid", "pg_catalog.text"};

	memset(call, 0, sizeof(*call));
	call->as_role = owner;
	call->search_path = "pg_catalog, pg_temp";
	call->statement = statement;
	call->read_only = true;
	call->max_rows = 1;
	call->max_bytes = 10000;
	call->timeout_ms = timeout_ms > 0 ? Min(timeout_ms, CONDITION_TIMEOUT_MS) : CONDITION_TIMEOUT_MS;
	call->nparams = lengthof(types);
	call->param_types = types;
	call->param_values = values;
	call->rows = makeStringInfo();
	aidb_fields_begin(call->rows);
}

/* A name that no column has may be one of ours. */
static Node *
resolve_variable(ParseState *pstate, ColumnRef *cref, Node *found)
{
	if (found || list_length(cref->fields) != 1 || !IsA(linitial(cref->fields), String))
		return NULL;
	for (int i = 0; i < (int) lengthof(variables); i++)
		if (strcmp(strVal(linitial(cref->fields)), variables[i].name) == 0)
		{
			Param	   *param = makeNode(Param);

			param->paramkind = PARAM_EXTERN;
			param->paramid = i + 1;
			param->paramtype = variables[i].type;
			param->paramtypmod = -1;
			param->paramcollid = get_typcollation(variables[i].type);
			param->location = cref->location;
			return (Node *) param;
		}
	return NULL;
}

/* The text as the one expression of a SELECT that has nothing else. */
static RawStmt *
parse(const char *sql)
{
	List	   *parsed = pg_parse_query(sql);
	SelectStmt *s = NULL;

	if (list_length(parsed) == 1)
		s = (SelectStmt *) linitial_node(RawStmt, parsed)->stmt;
	if (s == NULL || !IsA(s, SelectStmt) || s->op != SETOP_NONE || list_length(s->targetList) != 1 ||
		s->distinctClause || s->intoClause || s->fromClause || s->whereClause || s->groupClause || s->havingClause ||
		s->windowClause || s->valuesLists || s->sortClause || s->limitOffset || s->limitCount || s->lockingClause || s->withClause)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("a condition is one boolean expression"),
				 errhint("A query goes into parentheses, as in EXISTS (SELECT …).")));
	return linitial_node(RawStmt, parsed);
}

static Expr *
analyse(const char *sql)
{
	RawStmt    *raw = parse(sql);
	int			level = NewGUCNestLevel();
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query;
	Expr	   *expr;

	if (aidb_owner_call_search_path())
		(void) set_config_option("search_path", aidb_owner_call_search_path(), PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	pstate->p_sourcetext = sql;
	pstate->p_post_columnref_hook = resolve_variable;
	query = transformTopLevelStmt(pstate, raw);
	free_parsestate(pstate);
	AtEOXact_GUC(false, level);

	aidb_prove_read_only(query);
	if (isQueryUsingTempRelation(query))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a condition cannot use temporary tables")));
	expr = linitial_node(TargetEntry, query->targetList)->expr;
	if (query->hasAggs || query->hasWindowFuncs || query->hasTargetSRFs)
		ereport(ERROR,
				(errcode(ERRCODE_GROUPING_ERROR),
				 errmsg("aggregates, window functions and sets cannot stand in a condition by themselves"),
				 errhint("Put them into a query in parentheses.")));
	if (exprType((Node *) expr) != BOOLOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("a condition must be boolean, not %s", format_type_be(exprType((Node *) expr)))));
	return expr;
}

/* Planned as its owner, who must be able to read what it names.  EXPLAIN checks that without running it. */
static void
explain(const char *expression, Oid owner)
{
	char	   *values[] = {NULL, NULL, NULL};
	AidbToolCall call;

	make_call(&call, owner, psprintf("EXPLAIN SELECT (%s) AS ok", expression), values, CONDITION_TIMEOUT_MS);
	aidb_run_tool(&call);
}

/* (condition text, owner oid) -> text */
Datum
aidb_plan_condition(PG_FUNCTION_ARGS)
{
	/* the line's end closes a comment that the text leaves open */
	char	   *sql = psprintf("SELECT (%s\n)", text_to_cstring(PG_GETARG_TEXT_PP(0)));
	ErrorContextCallback callback = {.previous = error_context_stack,.callback = aidb_error_in_text,.arg = sql};
	Expr	   *volatile expr = NULL;
	char	   *expression;

	error_context_stack = &callback;
	/* nobody's code is run with the owner's rights meanwhile (functions.c) */
	aidb_looking = true;
	PG_TRY();
	{
		expr = analyse(sql);
	}
	PG_FINALLY();
	{
		aidb_looking = false;
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	/* under our own search_path, which is pg_catalog's: all other names are qualified */
	expression = deparse_expression((Node *) expr, NIL, false, false);
	explain(expression, PG_GETARG_OID(1));
	PG_RETURN_TEXT_P(cstring_to_text(expression));
}

/* --- asked ---------------------------------------------------------------------- */

/*
 * Whether an error of a condition is one of the server and not of the
 * condition: a cancel, or a conflict for which the whole transaction is tried
 * again.  Such an error goes on as it is.
 */
static bool
is_the_servers(const ErrorData *e)
{
	return (e->sqlerrcode == ERRCODE_QUERY_CANCELED && !aidb_tool_deadline_passed()) ||
		ERRCODE_TO_CATEGORY(e->sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK;
}

/* What became of the one row {"ok":...} of a condition, or NULL when it is true. */
static const char *
verdict(const AidbToolCall *call)
{
	const char *row = call->rows->data + 2 * sizeof(int32); /* count of fields, length */
	int			len = call->rows->len - (int) (2 * sizeof(int32));

	if (call->nrows == 1 && len >= 11 && strncmp(row, "{\"ok\":true}", 11) == 0)
		return NULL;
	if (call->nrows == 1 && len >= 12 && strncmp(row, "{\"ok\":false}", 12) == 0)
		return "is false";
	return "is null";
}

static void
ask(void *call)
{
	aidb_run_tool(call);
}

/* NULL when the condition is true, else what it is. */
const char *
aidb_evaluate(Oid as, const char *sql, const char *params, const char *session, const char *principal, int timeout_ms)
{
	char	   *values[] = {(char *) params, (char *) session, (char *) principal};
	AidbToolCall call;
	ErrorData  *e;

	make_call(&call, as, psprintf("SELECT (%s) AS ok", sql), values, timeout_ms);
	call.conversation_id = (char *) session;
	e = aidb_try(ask, &call, false);
	if (e == NULL)
		return verdict(&call);
	if (is_the_servers(e))
		ReThrowError(e);
	/* its text may hold what the caller may not read: that is for the server's log only */
	ereport(LOG_SERVER_ONLY,
			(errmsg("aidb: a condition of a temporal policy failed: %s", e->message),
			 errdetail_internal("%s", sql), errhidestmt(true), errhidecontext(true)));
	return psprintf("failed with SQLSTATE %s", unpack_sql_state(e->sqlerrcode));
}

/*
 * (owner oid, condition text, params jsonb, session uuid, principal text,
 * event bigint, at timestamptz) -> text
 *
 * What a condition would have been at a past event: NULL for true.
 */
Datum
aidb_evaluate_condition(PG_FUNCTION_ARGS)
{
	Jsonb	   *params = PG_GETARG_JSONB_P(2);
	const char *volatile what = NULL;

	aidb_replayed_event = PG_GETARG_INT64(5);
	aidb_replayed_at = PG_GETARG_TIMESTAMPTZ(6);
	PG_TRY();
	{
		what = aidb_evaluate(PG_GETARG_OID(0), text_to_cstring(PG_GETARG_TEXT_PP(1)), JsonbToCString(NULL, &params->root, VARSIZE(params)),
						DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(3))), text_to_cstring(PG_GETARG_TEXT_PP(4)),
						aidb_tool_timeout);
	}
	PG_FINALLY();
	{
		aidb_replayed_event = PG_INT64_MAX;
	}
	PG_END_TRY();
	if (what == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(what));
}
