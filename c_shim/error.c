/*
 * error.c
 *		Errors as records that cross the seam, and the reasons of refusals.
 *
 * A refusal's reason (denial_reason of a decision record) is found from where
 * the error was raised, never from its text, so it does not depend on the
 * server's language: our own refusals say it themselves, PostgreSQL's 42501 is
 * told apart by the C function that raised it.
 */
#include "aidb.h"

#include "mb/pg_wchar.h"

/*
 * Set by aidb_refused() while the error that it belongs to is on its way up.
 * A handler of the statement may swallow that error, and another may follow: it
 * is told by the C function that raised it, which ErrorData has too.
 */
static const char *pending_reason = NULL;
static const char *pending_function = NULL;

void
aidb_error_reset(void)
{
	pending_reason = NULL;
}

int
aidb_refused_in(const char *reason, const char *function)
{
	pending_reason = reason;
	pending_function = function;
	return 0;
}

/*
 * An error context callback: errors point into the text that is being looked
 * at, not into the statement that brought it.
 */
void
aidb_error_in_text(void *sql)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(sql);
	}
}

/* NULL when the error is not a refusal at all. */
const char *
aidb_error_reason(const ErrorData *e)
{
	static const char *const raisers[] = AIDB_ESCALATION_RAISERS;

	if (pending_reason && e->funcname && strcmp(e->funcname, pending_function) == 0)
		return pending_reason;
	if (e->sqlerrcode != ERRCODE_INSUFFICIENT_PRIVILEGE)
		return NULL;
	for (int i = 0; e->funcname && i < (int) lengthof(raisers); i++)
		if (strcmp(e->funcname, raisers[i]) == 0)
			return "escalation_blocked";
	return "engine_privilege_denied";
}

/* Error texts are capped: a RAISE may carry megabytes. */
static void
put_capped(StringInfo buf, const char *text)
{
	int			len = text ? (int) strlen(text) : 0;

	if (len > 8192)
		len = pg_mbcliplen(text, len, 8192);
	aidb_fields_put(buf, text, len);
}

/* sqlstate, message, detail, hint, reason, schema, table, column, constraint */
void
aidb_error_fields(StringInfo buf, const ErrorData *e)
{
	aidb_fields_begin(buf);
	aidb_fields_text(buf, unpack_sql_state(e->sqlerrcode));
	put_capped(buf, e->message ? e->message : "missing error text");
	put_capped(buf, e->detail);
	put_capped(buf, e->hint);
	aidb_fields_text(buf, aidb_error_reason(e));
	aidb_fields_text(buf, e->schema_name);
	aidb_fields_text(buf, e->table_name);
	aidb_fields_text(buf, e->column_name);
	aidb_fields_text(buf, e->constraint_name);
}

/* Raises what the Go side asks to raise: sqlstate, message, detail, hint. */
void
aidb_raise_from_go(AidbReader *r)
{
	char	   *state = aidb_read_text(r);
	char	   *message = aidb_read_text(r);
	char	   *detail = aidb_read_text(r);
	char	   *hint = aidb_read_text(r);
	int			code = ERRCODE_INTERNAL_ERROR;

	if (state && strlen(state) == 5)
		code = MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]);
	ereport(ERROR,
			(errcode(code),
			 errmsg_internal("%s", message ? message : "the Go library reported an error without a text"),
			 detail && detail[0] ? errdetail_internal("%s", detail) : 0,
			 hint && hint[0] ? errhint("%s", hint) : 0));
}
