/*
 * events.c
 *		What conditions of temporal policies ask about what has happened: how
 *		often, how much, the last one.  What has been counted for all time is not
 *		counted again: totals.c.
 */
#include "aidb.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "events.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
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

/* columns of aidb_internal.session_events */
enum
{
	EVENT_ID = 1, EVENT_SESSION, EVENT_POLICY, EVENT_TOOL, EVENT_PARAMS, EVENT_FROM, EVENT_TO, EVENT_AT, EVENT_PRINCIPAL
};

static const char *const object_sql =
	"SELECT jsonb_build_object('id', e.id, 'tool_name', e.tool_name, 'params', e.params, 'from_state', e.from_state, "
	"'to_state', e.to_state, 'called_at', e.called_at) FROM aidb_internal.session_events e WHERE e.id = $1::bigint";
static const char *const mine_sql =
	"SELECT FROM aidb_internal.policy_sessions s WHERE s.id = $1::uuid AND ($2 IS NULL OR s.policy = $2) AND s.caller = $3 "
	"AND s.created_at >= (SELECT aidb_internal.history_since($3)) LIMIT 1";

/* --- reading events ------------------------------------------------------------------- */

/*
 * By an index of our choice, because the planner, which does not know how few
 * of a million events are asked for, may take another.  Whether the caller may
 * see them was decided before.
 */
typedef struct Reading
{
	Relation	table;
	Relation	index;
	SysScanDesc scan;
} Reading;

/* Events of one's own question, in the order of id or, in a window, of time. */
static void
begin_events(Reading *r, const Question *q, int64 after)
{
	ScanKeyData keys[4];
	int			n = 2;

	r->table = table_open(aidb_own_relation("session_events"), AccessShareLock);
	if (q->of_principal)
		set_key(&keys[0], r->table, EVENT_PRINCIPAL, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(q->who));
	else
		set_key(&keys[0], r->table, EVENT_SESSION, BTEqualStrategyNumber, F_UUID_EQ,
				DirectFunctionCall1(uuid_in, CStringGetDatum(q->who)));
	set_key(&keys[1], r->table, EVENT_TOOL, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(q->tool));
	if (q->windowed)
		set_key(&keys[n++], r->table, EVENT_AT, BTGreaterStrategyNumber, F_TIMESTAMPTZ_GT, TimestampTzGetDatum(q->after));
	else
	{
		set_key(&keys[n++], r->table, EVENT_ID, BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(after));
		set_key(&keys[n++], r->table, EVENT_ID, BTLessStrategyNumber, F_INT8LT, Int64GetDatum(aidb_replayed_event));
	}
	r->index = index_open(aidb_own_relation(q->of_principal
											? (q->windowed ? "session_events_principal_idx" : "session_events_principal_id_idx")
											: (q->windowed ? "session_events_session_idx" : "session_events_session_id_idx")),
						  AccessShareLock);
	r->scan = systable_beginscan_ordered(r->table, r->index, GetActiveSnapshot(), n, keys);
}

static void
end_events(Reading *r)
{
	systable_endscan_ordered(r->scan);
	index_close(r->index, AccessShareLock);
	table_close(r->table, AccessShareLock);
}

/* A path: names separated by dots, or a JSON path that begins with $. */
typedef struct Path
{
	bool		is_jsonpath;
	Datum		path;			/* jsonpath or text[] */
	Datum		itself;			/* text[] of no name */
	Datum		no_vars;
} Path;

static void
read_path(Path *p, const char *text)
{
	p->is_jsonpath = text[0] == '$';
	p->itself = PointerGetDatum(construct_empty_array(TEXTOID));
	if (p->is_jsonpath)
		p->path = DirectFunctionCall1(jsonpath_in, CStringGetDatum(text));
	else if (text[0] == '\0')
		p->path = p->itself;
	else
		p->path = OidFunctionCall2Coll(F_STRING_TO_ARRAY_TEXT_TEXT, DEFAULT_COLLATION_OID,
									   CStringGetTextDatum(text), CStringGetTextDatum("."));
	p->no_vars = DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"));
}

/* The number in the arguments of a call; false: there is none. */
static bool
value_at(Datum params, const Path *p, Datum *number)
{
	Datum		args[4] = {params, p->path, p->no_vars, BoolGetDatum(false)};
	bool		isnull;

	if (p->is_jsonpath)
	{
		args[0] = call(jsonb_path_query_first, 4, args, &isnull);
		if (isnull)
			return false;
		args[1] = p->itself;
	}
	args[0] = call(jsonb_extract_path_text, 2, args, &isnull);
	if (!isnull)
		*number = DirectFunctionCall3(numeric_in, CStringGetDatum(TextDatumGetCString(args[0])),
									  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	return !isnull;
}

static Datum
zero(void)
{
	return DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
}

static void
add_value(Tally *t, Datum number, MemoryContext memory)
{
	MemoryContext old = MemoryContextSwitchTo(memory);
	Datum		sum = DirectFunctionCall2(numeric_add, t->sum, number);

	pfree(DatumGetPointer(t->sum));
	t->sum = sum;
	MemoryContextSwitchTo(old);
}

/* --- answers ----------------------------------------------------------------------------- */

/* Governors, whose conditions need them, and auditors may count everybody's events; others their own. */
static bool
counts_all(Oid user)
{
	return is_member_of_role(user, get_role_oid("aidb_governance", false)) ||
		is_member_of_role(user, get_role_oid("aidb_auditor", false));
}

/* Is it a session of the user's, and of that policy if one is named? */
static bool
is_mine(const char *session, const char *policy, Oid user, Oid owner)
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

static void
tally_events(const Question *q, Oid owner, Tally *tally)
{
	MemoryContext home = CurrentMemoryContext;
	MemoryContext each = AllocSetContextCreate(home, "aidb event", ALLOCSET_SMALL_SIZES);
	Oid			user = GetUserId();
	bool		all = counts_all(user);
	int64		after = 0;
	int64		seen = aidb_keepable(q);
	int64		settled = 0;
	bool		noted = false;
	Path		path = {0};
	Reading		r;
	HeapTuple	row;

	if (q->path)
		read_path(&path, q->path);
	if (!all && !q->of_principal && !is_mine(q->who, NULL, user, owner))
		return;
	if (!q->windowed && all)
		after = aidb_read_total(q, tally);
	begin_events(&r, q, after);
	while ((row = systable_getnext_ordered(r.scan, ForwardScanDirection)) != NULL)
	{
		int64		id = DatumGetInt64(field(r.table, row, EVENT_ID));
		Datum		number;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(each);
		MemoryContextSwitchTo(each);
		if (id > seen && aidb_worth_keeping(settled) && !noted)
		{
			aidb_note_total(q, seen, tally);
			noted = true;
		}
		if (id < aidb_replayed_event &&
			(all || !q->of_principal ||
			 is_mine(DatumGetCString(DirectFunctionCall1(uuid_out, field(r.table, row, EVENT_SESSION))),
					 TextDatumGetCString(field(r.table, row, EVENT_POLICY)), user, owner)))
		{
			tally->calls++;
			if (id <= seen)
				settled++;
			if (q->path && value_at(field(r.table, row, EVENT_PARAMS), &path, &number))
				add_value(tally, number, home);
		}
		MemoryContextSwitchTo(home);
	}
	end_events(&r);
	if (aidb_worth_keeping(settled) && !noted)
		aidb_note_total(q, seen, tally);
	MemoryContextDelete(each);
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
	Tally		tally = {.sum = zero()};

	if (read_question(fcinfo, of_principal, 2, &q))
		tally_events(&q, aidb_function_owner(fcinfo->flinfo->fn_oid), &tally);
	PG_RETURN_INT64(tally.calls);
}

static Datum
answer_sum(FunctionCallInfo fcinfo, bool of_principal)
{
	Question	q;
	Tally		tally = {.sum = zero()};

	if (read_question(fcinfo, of_principal, 3, &q))
		tally_events(&q, aidb_function_owner(fcinfo->flinfo->fn_oid), &tally);
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
	if (!counts_all(user) && !is_mine(q.who, NULL, user, owner))
		PG_RETURN_NULL();
	begin_events(&r, &q, 0);
	row = systable_getnext_ordered(r.scan, BackwardScanDirection);
	if (row)
		id = psprintf(INT64_FORMAT, DatumGetInt64(field(r.table, row, EVENT_ID)));
	end_events(&r);
	value = id ? event_object(id, owner) : (Datum) 0;
	if (value == (Datum) 0)
		PG_RETURN_NULL();
	return value;
}
