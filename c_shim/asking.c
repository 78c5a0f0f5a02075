/*
 * asking.c
 *		Who is asking, inside a tool call: for row-level security.
 */
#include "aidb.h"

#include "fmgr.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(aidb_tool_principal);
PG_FUNCTION_INFO_V1(aidb_tool_conversation_id);
PG_FUNCTION_INFO_V1(aidb_tool_agent_name);

static Datum
text_or_null(FunctionCallInfo fcinfo, const char *text)
{
	if (text == NULL || text[0] == '\0')
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(text));
}

Datum
aidb_tool_principal(PG_FUNCTION_ARGS)
{
	return text_or_null(fcinfo, aidb_tool_scope ? aidb_run_principal() : NULL);
}

Datum
aidb_tool_conversation_id(PG_FUNCTION_ARGS)
{
	return text_or_null(fcinfo, aidb_tool_scope ? aidb_tool_scope->call->conversation_id : NULL);
}

Datum
aidb_tool_agent_name(PG_FUNCTION_ARGS)
{
	return text_or_null(fcinfo, aidb_tool_scope ? aidb_tool_scope->call->agent_name : NULL);
}
