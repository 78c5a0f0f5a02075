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

static ParamListInfo
bind_parameters(AidbToolCall *call, Oid *types, int32 *typmods)
{
	ParamListInfo params = makeParamList(call->nparams);

	for (int i = 0; i < call->nparams; i++)
	{
		ParamExternData *p = &params->params[i];
		Oid			input,
					ioparam;

		getTypeInputInfo(types[i], &input, &ioparam);
		p->ptype = types[i];
		p->pflags = PARAM_FLAG_CONST;
		p->isnull = call->param_values[i] == NULL;
		/* called for NULL too: a domain may forbid it */
		p->value = OidInputFunctionCall(input, call->param_values[i], ioparam, typmods[i]);
	}
	return params;
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
	if (call->check_only)
		return;
	options.params = bind_parameters(call, types, typmods);
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
