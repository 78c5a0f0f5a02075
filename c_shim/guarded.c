/*
 * guarded.c
 *		The two ways to the guard: a tool call of an agent, and the SQL function
 *		for applications.
 */
#include "aidb.h"

#include "commands/trigger.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(aidb_authorize_tool_call);
PG_FUNCTION_INFO_V1(aidb_refuse_write);

#define MAX_NAME 300			/* bytes, of a tool */

typedef struct Guarded
{
	AidbToolCall *call;
	Oid			owner;
} Guarded;

static void
guard_and_run(void *arg)
{
	Guarded    *g = arg;
	AidbToolCall *call = g->call;

	if (call->nguards > 0)
		aidb_guard(call->guards, call->nguards, call->tool_name, call->tool_params, call->timeout_ms, g->owner);
	aidb_run_tool(call);
}

/*
 * A tool call behind its guards: one subtransaction holds both, so that a tool
 * that fails leaves no event.  A read-only tool is rolled back within, and keeps
 * its event.  Of a probe nothing stays: it is a preview, or only a question.
 *
 * The privilege on the tool comes before the policies.  For a stored statement
 * that is privileges on tables, which are found by analysing it: only when the
 * policies refuse, since otherwise running it finds them, and takes the event
 * back.
 */
void
aidb_run_guarded(AidbToolCall *call, Oid owner)
{
	Guarded		both = {.call = call,.owner = owner};
	ErrorData  *e;
	const char *reason;

	if (call->nguards == 0 && (!call->probe || call->check_only || call->statement == NULL))
	{
		aidb_run_tool(call);	/* there is nothing to take back */
		return;
	}
	(void) aidb_tool_role(call);
	e = aidb_try(guard_and_run, &both, call->probe);
	if (e == NULL)
		return;
	reason = aidb_error_reason(e);
	if (call->own_statement && reason != NULL && strcmp(reason, "policy_denied") == 0)
	{
		call->check_only = true;
		memset(call->param_values, 0, sizeof(char *) * call->nparams);	/* not what is wrong with the arguments */
		aidb_run_tool(call);
		(void) aidb_refused_in(reason, e->funcname);
	}
	ReThrowError(e);
}

static char *
states_of(AidbGuard *guards, int n)
{
	StringInfoData s;

	initStringInfo(&s);
	for (int i = 0; i < n; i++)
	{
		appendStringInfo(&s, "%s%s", i ? ", " : "", guards[i].to);
		if (guards[i].would_deny)
			ereport(NOTICE,
					(errmsg_internal("%s", guards[i].would_deny),
					 errdetail("Policy \"%s\" is log_only: the call is let through.", guards[i].policy)));
	}
	return s.data;
}

/* (session_id uuid, tool_name text, params jsonb) -> text */
Datum
aidb_authorize_tool_call(PG_FUNCTION_ARGS)
{
	AidbGuard  *guards;
	const char *params = "{}";
	int			n;

	aidb_refuse_inside_tool_call("authorize_tool_call");
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("session_id and tool_name must not be null")));
	/* those of tools have 200 at most; where a policy only logs, it would go into indexes */
	if (VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(1)) > MAX_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("tool_name must not be longer than %d bytes", MAX_NAME)));
	if (!PG_ARGISNULL(2))
	{
		Jsonb	   *given = PG_GETARG_JSONB_P(2);

		params = JsonbToCString(NULL, &given->root, VARSIZE(given));
	}
	guards = aidb_guard_session(DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0))), GetUserId(),
								text_to_cstring(PG_GETARG_TEXT_PP(1)), params, aidb_function_owner(fcinfo->flinfo->fn_oid), &n);
	PG_RETURN_TEXT_P(cstring_to_text(states_of(guards, n)));
}

/* A trigger of what the guard reads: whoever writes it is a superuser, as the extension's owner is. */
Datum
aidb_refuse_write(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "not called as a trigger");
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("aidb_internal.%s is written by aidb alone", RelationGetRelationName(trigger->tg_relation)),
				 errhint("Session events are append-only; policies are changed with aidb.create_policy and its like.")));
	return PointerGetDatum(NULL);
}
