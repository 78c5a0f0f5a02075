/*
 * tool.c
 *		Executes the statement of a tool call, inside the scope that sandbox.c
 *		has entered.
 *
 * Exactly one statement, found by PostgreSQL's own parser.  Arguments are bound
 * parameters whose values are read by their type's input function, as the role;
 * they never become a part of the text.
 */
#include "aidb.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"

static Oid *
parameter_types(AidbToolCall *call, int32 **typmods)
{
	Oid		   *types = palloc(sizeof(Oid) * (call->nparams + 1));

	*typmods = palloc(sizeof(int32) * (call->nparams + 1));
	for (int i = 0; i < call->nparams; i++)
		AIDB_PARSE_TYPE(call->param_types[i], &types[i], &(*typmods)[i]);
	return types;
}

/* How many problems of arguments, and how many bytes of each, a message has. */
#define MAX_PROBLEMS		20
#define MAX_PROBLEM_BYTES	300

/* The values of parameters that are being read, up to the first that cannot be. */
typedef struct Binding
{
	AidbToolCall *call;
	Oid		   *types;
	int32	   *typmods;
	ParamListInfo params;
	MemoryContext memory;
	int			at;
} Binding;

static void
read_values(void *arg)
{
	Binding    *b = arg;

	for (; b->at < b->call->nparams; b->at++)
	{
		ParamExternData *p = &b->params->params[b->at];
		char	   *value = b->call->param_values[b->at];
		MemoryContext old;
		Oid			input,
					ioparam;

		if (value == NULL && b->call->check_only)
			continue;			/* it is not known */
		getTypeInputInfo(b->types[b->at], &input, &ioparam);
		p->ptype = b->types[b->at];
		p->pflags = PARAM_FLAG_CONST;
		p->isnull = value == NULL;
		old = MemoryContextSwitchTo(b->memory);
		/* called for NULL too: a domain may forbid it */
		p->value = OidInputFunctionCall(input, value, ioparam, b->typmods[b->at]);
		MemoryContextSwitchTo(old);
	}
}

/*
 * The code of an error that says what is wrong with a value: that it is none of
 * its type, that a domain forbids it, or (regclass and the like) that nothing
 * has that name.  Zero for anything else, which ends the call as it is.
 */
static int
problem_of_value(const ErrorData *e)
{
	switch (ERRCODE_TO_CATEGORY(e->sqlerrcode))
	{
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION:
			return e->sqlerrcode;
		case ERRCODE_TO_CATEGORY(ERRCODE_SYNTAX_ERROR):
		case ERRCODE_INVALID_SCHEMA_NAME:
			return e->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE ? 0 : ERRCODE_INVALID_PARAMETER_VALUE;
		default:
			return 0;
	}
}

/*
 * The values of the parameters.  Who made the call is told everything that is
 * wrong with them at once, so that one more attempt is enough.
 */
static ParamListInfo
bind_parameters(AidbToolCall *call, Oid *types, int32 *typmods)
{
	Binding		b = {call, types, typmods, makeParamList(call->nparams), CurrentMemoryContext, 0};
	StringInfoData text;
	ErrorData  *first = NULL;
	int			problems = 0;

	if (call->nparams == 0)
		return b.params;
	initStringInfo(&text);
	for (; b.at < call->nparams; b.at++)
	{
		ErrorData  *e = aidb_try(read_values, &b, false);
		const char *name;
		int			length;

		if (e == NULL)
			break;
		name = call->param_names[b.at];
		if (name == NULL || problem_of_value(e) == 0)
			ReThrowError(e);
		if (++problems > MAX_PROBLEMS)
		{
			appendStringInfoString(&text, "; and more");
			break;
		}
		first = first ? first : e;
		length = strlen(e->message);
		if (length > MAX_PROBLEM_BYTES)
			length = pg_mbcliplen(e->message, length, MAX_PROBLEM_BYTES);
		appendStringInfo(&text, "%sargument '%s': %.*s%s", problems > 1 ? "; " : "", name, length, e->message,
						 e->message[length] ? "…" : "");
	}
	if (first)
		ereport(ERROR,
				(errcode(problem_of_value(first)),
				 errmsg_internal("%s", text.data),
				 problems == 1 && first->detail ? errdetail_internal("%s", first->detail) : 0,
				 problems == 1 && first->hint ? errhint("%s", first->hint) : 0));
	return b.params;
}

/* Trusted text is analysed with the caller's rights: the role may not even see the schema. */
void
aidb_tool_prepare(AidbToolCall *call)
{
	int32	   *typmods;
	Oid		   *types = parameter_types(call, &typmods);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	call->plan = SPI_prepare(call->statement, call->nparams, types);
	if (call->plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", call->statement, SPI_result_code_string(SPI_result));
	SPI_keepplan(call->plan);
	SPI_finish();
}

/* The one statement of the text, checked; raises for none or several. */
static void
check_text(AidbToolCall *call)
{
	List	   *parsed = pg_parse_query(call->statement);
	ListCell   *lc;
	bool		escape = false;
	RawStmt    *raw;

	if (list_length(parsed) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("the statement is empty")));
	foreach(lc, parsed)
		escape |= aidb_is_escape_statement(lfirst_node(RawStmt, lc)->stmt);
	if (list_length(parsed) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 aidb_refused(escape ? "escalation_blocked" : "pre_execution_rejected"),
				 errmsg("a tool call takes exactly one statement, not %d", list_length(parsed)),
				 errhint("Send the statements one by one.")));
	raw = linitial_node(RawStmt, parsed);
	aidb_check_statement(raw, call->read_only);
	call->tag = GetCommandTagName(CreateCommandTag(raw->stmt));
}

/* What SPI reports as a return code instead of an error. */
static void
check_spi_result(AidbToolCall *call, int rc)
{
	if (rc >= 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("pre_execution_rejected"),
			 rc == SPI_ERROR_TRANSACTION || rc == SPI_ERROR_COPY
			 ? errmsg("%s is not allowed in a tool call", call->tag)
			 : errmsg("the statement cannot be executed in a tool call: %s", SPI_result_code_string(rc))));
}

static bool
check_privileges(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		if (((Query *) node)->commandType != CMD_UTILITY)
			AIDB_CHECK_PERMISSIONS((Query *) node);
		return query_tree_walker((Query *) node, check_privileges, context, 0);
	}
	return expression_tree_walker(node, check_privileges, context);
}

/*
 * The statement with the privileges that it needs on tables checked, before a
 * value is read: what a domain or an enum says of a value is not for those who
 * may not run it.
 */
static SPIPlanPtr
permitted_plan(AidbToolCall *call, Oid *types)
{
	SPIPlanPtr	plan = SPI_prepare(call->statement, call->nparams, types);
	ListCell   *source;

	if (plan == NULL)
		check_spi_result(call, SPI_result);
	foreach(source, SPI_plan_get_plan_sources(plan))
	{
		ListCell   *query;

		foreach(query, ((CachedPlanSource *) lfirst(source))->query_list)
			(void) check_privileges(lfirst(query), NULL);
	}
	return plan;
}

static void
execute(AidbToolCall *call, DestReceiver *dest)
{
	SPIExecuteOptions options = {0};
	int32	   *typmods;
	Oid		   *types = parameter_types(call, &typmods);
	SPIPlanPtr	plan = call->plan;
	int			rc;

	if (plan == NULL && (call->nparams > 0 || call->check_only))
		plan = permitted_plan(call, types);
	options.params = bind_parameters(call, types, typmods);
	if (call->check_only)
		return;
	options.dest = dest;
	if (plan)
		rc = SPI_execute_plan_extended(plan, &options);
	else
		rc = SPI_execute_extended(call->statement, &options);
	check_spi_result(call, rc);
	call->affected = SPI_processed;
}

void
aidb_tool_execute(AidbToolCall *call)
{
	DestReceiver *dest = aidb_json_receiver(call);

	if (call->plan == NULL)
		check_text(call);
	else
		call->tag = "SELECT";
	PG_TRY();
	{
		execute(call, dest);
	}
	PG_FINALLY();
	{
		if (call->plan)
			SPI_freeplan(call->plan);
		call->plan = NULL;
	}
	PG_END_TRY();
}
