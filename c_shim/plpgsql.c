/*
 * plpgsql.c
 *		PL/pgSQL during a tool call: its time, what it compiles, what it logs.
 *
 * There is one slot for a plugin.  Whoever is in it already is called by ours;
 * whoever takes it later (a profiler) is noticed at the next tool call, which
 * puts ours in front again.
 */
#include "aidb.h"

#include "nodes/pg_list.h"
#include "plpgsql.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

/* A PL/pgSQL function has run since the plan cache was last reset (sandbox.c). */
bool		aidb_plpgsql_ran = true;

/* Functions that have run in the tool call in hand.  PL/pgSQL never frees these. */
static List *ran_in_call = NIL;

static PLpgSQL_plugin *next_plugin = NULL;
static emit_log_hook_type next_emit_log = NULL;

/* --- the plugin --------------------------------------------------------------- */

static void plugin_func_setup(PLpgSQL_execstate *estate, PLpgSQL_function *func);
static void plugin_func_beg(PLpgSQL_execstate *estate, PLpgSQL_function *func);
static void plugin_func_end(PLpgSQL_execstate *estate, PLpgSQL_function *func);
static void plugin_stmt_beg(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt);
static void plugin_stmt_end(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt);

static PLpgSQL_plugin plugin = {
	.func_setup = plugin_func_setup,
	.func_beg = plugin_func_beg,
	.func_end = plugin_func_end,
	.stmt_beg = plugin_stmt_beg,
	.stmt_end = plugin_stmt_end,
};

/* One that is in use above the call was compiled there; a DO block is nobody else's. */
static void
remember_function(PLpgSQL_function *func)
{
	MemoryContext old;

	if (!OidIsValid(func->fn_oid) || AIDB_PLPGSQL_USE_COUNT(func) > 1)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	ran_in_call = list_append_unique_ptr(ran_in_call, func);
	MemoryContextSwitchTo(old);
}

static void
plugin_func_setup(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	aidb_plpgsql_ran = true;
	if (aidb_tool_scope)
	{
		/* triggers of PL/pgSQL reach no other hook */
		if (OidIsValid(func->fn_oid))
			aidb_check_rights(func->fn_oid);
		remember_function(func);
	}
	if (next_plugin)
	{
		/* PL/pgSQL fills its callbacks into the plugin that it finds: hand them on */
		next_plugin->error_callback = plugin.error_callback;
		next_plugin->assign_expr = plugin.assign_expr;
#if PG_VERSION_NUM >= 150000
		next_plugin->assign_value = plugin.assign_value;
		next_plugin->eval_datum = plugin.eval_datum;
		next_plugin->cast_value = plugin.cast_value;
#endif
		if (next_plugin->func_setup)
			next_plugin->func_setup(estate, func);
	}
}

static void
plugin_func_beg(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	if (next_plugin && next_plugin->func_beg)
		next_plugin->func_beg(estate, func);
}

static void
plugin_func_end(PLpgSQL_execstate *estate, PLpgSQL_function *func)
{
	if (next_plugin && next_plugin->func_end)
		next_plugin->func_end(estate, func);
}

/*
 * A handler WHEN query_canceled in a loop swallows every cancellation.  Each
 * statement is reported here before its block's handler is set up, so the
 * deadline, and the user's cancel, end the loop all the same.
 */
static void
plugin_stmt_beg(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt)
{
	if (aidb_tool_scope && aidb_tool_scope->deadline_hit)
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling statement: the tool call's time is over")));
	if (aidb_tool_scope && aidb_tool_scope->cancelled[0])
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg_internal("%s", aidb_tool_scope->cancelled)));
	if (next_plugin && next_plugin->stmt_beg)
		next_plugin->stmt_beg(estate, stmt);
}

static void
plugin_stmt_end(PLpgSQL_execstate *estate, PLpgSQL_stmt *stmt)
{
	if (next_plugin && next_plugin->stmt_end)
		next_plugin->stmt_end(estate, stmt);
}

/* --- compiled functions --------------------------------------------------------- */

/*
 * PL/pgSQL looks up the types of a function's variables when it compiles it,
 * once in a session, with the search_path of that moment.  In a tool call that
 * path leads through schemas of the role's own ("$user", or a function of its
 * own with SET search_path), where a domain with a CHECK of its own may stand
 * in for an application's type.  The caller would run that check at its next
 * use of the function: so it has to compile anew.
 */
void
aidb_plpgsql_forget(void)
{
	ListCell   *lc;

	foreach(lc, ran_in_call)
		AIDB_PLPGSQL_FORGET((PLpgSQL_function *) lfirst(lc));
	list_free(ran_in_call);
	ran_in_call = NIL;
}

/* --- messages --------------------------------------------------------------------- */

/* Bytes that a tool call may make procedural code write into the server's log. */
#define MAX_LOGGED (64 * 1024)

static int64
bytes_of(const char *text)
{
	return text ? strlen(text) : 0;
}

/*
 * Messages for the client are off (client_min_messages), but a loop of RAISE
 * LOG would fill the disk that the server's log is on, within seconds.  Only
 * messages that a procedure raises are counted: an audit module's stay whole.
 */
static void
filter_log(ErrorData *e)
{
	static const char *const raisers[] = {
		"exec_stmt_raise", "do_util_elog", "PLy_output", "pltcl_elog", "elog_node_display"
	};
	AidbToolScope *s = aidb_tool_scope;

	if (s && e->elevel < ERROR && e->funcname)
		for (int i = 0; i < (int) lengthof(raisers); i++)
			if (strcmp(e->funcname, raisers[i]) == 0)
			{
				if (s->logged > MAX_LOGGED)
					e->output_to_server = false;
				s->logged += bytes_of(e->message) + bytes_of(e->detail) + bytes_of(e->hint) +
					bytes_of(e->context) + (e->hide_stmt ? 0 : bytes_of(debug_query_string));
			}
	if (e->output_to_server && next_emit_log)
		next_emit_log(e);
}

/* --- installing --------------------------------------------------------------------- */

void
aidb_install_plpgsql_plugin(void)
{
	PLpgSQL_plugin **slot = (PLpgSQL_plugin **) find_rendezvous_variable("PLpgSQL_plugin");

	if (*slot == &plugin)
		return;
	next_plugin = *slot;
	*slot = &plugin;
	aidb_plpgsql_ran = true;	/* it may have, unseen */
}

void
aidb_install_log_filter(void)
{
	next_emit_log = emit_log_hook;
	emit_log_hook = filter_log;
}
