/*
 * events.c
 *		What conditions of temporal policies ask about what has happened: how
 *		often, how much, the last one.  How that is found: tally.c.
 */
#include "aidb.h"

#include "events.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(aidb_event_count);
PG_FUNCTION_INFO_V1(aidb_event_sum);
PG_FUNCTION_INFO_V1(aidb_last_event);
PG_FUNCTION_INFO_V1(aidb_principal_event_count);
PG_FUNCTION_INFO_V1(aidb_principal_event_sum);

int64		aidb_replayed_event = PG_INT64_MAX;
TimestampTz aidb_replayed_at = 0;

static const char *const object_sql =
	"SELECT jsonb_build_object('id', e.id, 'tool_name', e.tool_name, 'params', e.params, 'from_state', e.from_state, "
	"'to_state', e.to_state, 'called_at', e.called_at) FROM aidb_internal.session_events e WHERE e.id = $1::bigint";
static const char *const mine_sql =
	"SELECT FROM aidb_internal.policy_sessions s WHERE s.id = $1::uuid AND ($2 IS NULL OR s.policy = $2) AND s.caller = $3 "
	"AND s.created_at >= (SELECT aidb_internal.history_since($3)) LIMIT 1";

/* --- answers ----------------------------------------------------------------------------- */

/*
 * Conditions, governors and auditors count everybody's events; others their own.
 * A condition does whoever its owner is by now: a limit must not end because its
 * author is no governor any more.
 */
static bool
counts_all(Oid user)
{
	return aidb_condition_asks() || aidb_replayed_event != PG_INT64_MAX ||
		is_member_of_role(user, get_role_oid("aidb_governance", false)) ||
		is_member_of_role(user, get_role_oid("aidb_auditor", false));
}

/* Is it a session of the user's, and of that policy if one is named? */
bool
aidb_event_is_mine(const char *session, const char *policy, Oid user, Oid owner)
{
	const char *args[] = {session, policy, GetUserNameFromId(user, false)};
	AidbOwnerScope scope;
	bool		mine;

	aidb_enter_owner(&scope, owner);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	mine = aidb_execute(mine_sql, 3, args) > 0;
	SPI_finish();
	aidb_leave_owner(&scope);
	return mine;
}

/* The question of a call of one of the functions; false: an argument is NULL, so that nothing is meant. */
static bool
read_question(FunctionCallInfo fcinfo, bool of_principal, int window, Question *q)
{
	memset(q, 0, sizeof(*q));
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || (window == 3 && PG_ARGISNULL(2)))
		return false;
	q->of_principal = of_principal;
	q->who = of_principal ? text_to_cstring(PG_GETARG_TEXT_PP(0)) : DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0)));
	q->tool = text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (window == 3)
		q->path = text_to_cstring(PG_GETARG_TEXT_PP(2));
	q->windowed = !PG_ARGISNULL(window);
	if (q->windowed)
	{
		TimestampTz now = aidb_replayed_event == PG_INT64_MAX ? GetCurrentTimestamp() : aidb_replayed_at;

		q->after = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_mi_interval, TimestampTzGetDatum(now), PG_GETARG_DATUM(window)));
	}
	return true;
}

static Datum
answer_count(FunctionCallInfo fcinfo, bool of_principal)
{
	Question	q;
	Tally		tally = {.sum = aidb_zero()};

	if (read_question(fcinfo, of_principal, 2, &q))
		aidb_tally_events(&q, counts_all(GetUserId()), aidb_function_owner(fcinfo->flinfo->fn_oid), &tally);
	PG_RETURN_INT64(tally.calls);
}

static Datum
answer_sum(FunctionCallInfo fcinfo, bool of_principal)
{
	Question	q;
	Tally		tally = {.sum = aidb_zero()};

	if (read_question(fcinfo, of_principal, 3, &q))
		aidb_tally_events(&q, counts_all(GetUserId()), aidb_function_owner(fcinfo->flinfo->fn_oid), &tally);
	return tally.sum;
}

/* (session_id uuid, tool_name text, within interval) -> bigint */
Datum
aidb_event_count(PG_FUNCTION_ARGS)
{
	return answer_count(fcinfo, false);
}

/* (session_id uuid, tool_name text, path text, within interval) -> numeric */
Datum
aidb_event_sum(PG_FUNCTION_ARGS)
{
	return answer_sum(fcinfo, false);
}

/* (principal text, tool_name text, within interval) -> bigint */
Datum
aidb_principal_event_count(PG_FUNCTION_ARGS)
{
	return answer_count(fcinfo, true);
}

/* (principal text, tool_name text, path text, within interval) -> numeric */
Datum
aidb_principal_event_sum(PG_FUNCTION_ARGS)
{
	return answer_sum(fcinfo, true);
}

/* The event as a JSON object; NULL when it is gone. */
static Datum
event_object(const char *id, Oid owner)
{
	AidbOwnerScope scope;
	Datum		value = (Datum) 0;
	bool		isnull;

	aidb_enter_owner(&scope, owner);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (aidb_execute(object_sql, 1, &id) > 0)
	{
		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
		value = SPI_datumTransfer(value, false, -1);
	}
	SPI_finish();
	aidb_leave_owner(&scope);
	return value;
}

/* (session_id uuid, tool_name text) -> jsonb */
Datum
aidb_last_event(PG_FUNCTION_ARGS)
{
	Oid			user = GetUserId();
	Oid			owner = aidb_function_owner(fcinfo->flinfo->fn_oid);
	Question	q = {0};
	Reading		r;
	HeapTuple	row;
	char	   *id = NULL;
	Datum		value;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	q.who = DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0)));
	q.tool = text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (!counts_all(user) && !aidb_event_is_mine(q.who, NULL, user, owner))
		PG_RETURN_NULL();
	aidb_begin_events(&r, &q, false, 0, PG_INT64_MAX);
	row = systable_getnext_ordered(r.scan, BackwardScanDirection);
	if (row)
		id = psprintf(INT64_FORMAT, DatumGetInt64(field(r.table, row, EVENT_ID)));
	aidb_end_events(&r);
	value = id ? event_object(id, owner) : (Datum) 0;
	if (value == (Datum) 0)
		PG_RETURN_NULL();
	return value;
}
