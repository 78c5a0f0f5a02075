/*
 * callsettings.c
 *		The settings that a tool call runs with.
 */
#include "aidb.h"

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

static void
set_for_call(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* The caller's own search_path with pg_temp moved to the end, or the one an administrator fixed. */
static char *
tool_search_path(void)
{
	StringInfoData path;
	List	   *names = NIL;
	ListCell   *lc;
	const char *given = aidb_tool_search_path[0] ? aidb_tool_search_path : namespace_search_path;

	initStringInfo(&path);
	if (!SplitIdentifierString(pstrdup(given), ',', &names))
		names = NIL;
	foreach(lc, names)
		if (strcmp(lfirst(lc), "pg_temp") != 0)
			appendStringInfo(&path, "%s, ", quote_identifier(lfirst(lc)));
	appendStringInfoString(&path, "pg_temp");
	return path.data;
}

static bool
name_matches(const char *name, List *patterns)
{
	ListCell   *lc;

	foreach(lc, patterns)
	{
		const char *p = lfirst(lc);
		size_t		n = strlen(p);

		/* "word" is a part of the name, "=name" the whole of it */
		if (p[0] == '=' ? pg_strcasecmp(name, p + 1) == 0 : n > 0)
		{
			if (p[0] == '=')
				return true;
			for (const char *at = name; strlen(at) >= n; at++)
				if (pg_strncasecmp(at, p, n) == 0)
					return true;
		}
	}
	return false;
}

/*
 * Applications keep secrets of the session in custom settings (a signed token,
 * say), and every role may read those.  Those that look like one are blank
 * during the call.
 */
static void
hide_settings(void)
{
	struct config_generic **table;
	int			count;
	List	   *patterns = NIL;
	List	   *hide = NIL;
	ListCell   *lc;

	if (aidb_hidden_settings[0] == '\0' ||
		!SplitGUCList(pstrdup(aidb_hidden_settings), ',', &patterns))
		return;
	AIDB_GUC_TABLE(table, count);
	for (int i = 0; i < count; i++)
		if (table[i]->flags & GUC_CUSTOM_PLACEHOLDER && name_matches(table[i]->name, patterns))
			hide = lappend(hide, pstrdup(table[i]->name));
	foreach(lc, hide)
		set_for_call(lfirst(lc), "");
}

/* Everything set here is taken back with the settings level that sandbox.c has begun. */
void
aidb_set_call_settings(const char *search_path, bool read_only)
{
	set_for_call("search_path", search_path ? search_path : tool_search_path());
	set_for_call("row_security", "on");
	/* the filters are up in this process only */
	set_for_call("max_parallel_workers_per_gather", "0");
	/* a loop of RAISE NOTICE would flood the client */
	set_for_call("client_min_messages", "error");
	if (work_mem > 64 * 1024)
		set_for_call("work_mem", "64MB");
	/* a sort that is made to spill would fill the disk that everybody's data is on */
	if (aidb_tool_temp_file_limit >= 0 && (temp_file_limit < 0 || temp_file_limit > aidb_tool_temp_file_limit))
		set_for_call("temp_file_limit", psprintf("%d", aidb_tool_temp_file_limit));
	hide_settings();
	/* 16 and later refuse SAVE for it; LOCAL is undone with the nest level too */
	if (read_only)
		(void) set_config_option("transaction_read_only", "on", PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_LOCAL, true, 0, false);
}
