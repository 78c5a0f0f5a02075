/*
 * copy.c
 *		Rows of our own tables, through the server's own COPY.
 *
 * What a call has logged arrives as a few rows for each of a few tables.  COPY
 * takes the values as text, as the other statements of ours do, and puts the
 * rows into a page together: less work, and less in the write-ahead log, than
 * one INSERT after the other or a JSON array that has to be taken apart first.
 *
 * The command's text is a constant of our code: COPY table (columns) FROM STDIN.
 */
#include "aidb.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "commands/copy.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define MAX_COMMANDS 16

/* Commands that were parsed already. */
static struct
{
	char	   *text;
	CopyStmt   *stmt;
}			commands[MAX_COMMANDS];
static int	ncommands = 0;

/* What COPY has not read yet; it runs one at a time. */
static const char *rest;
static size_t rest_len;

static int
read_rest(void *buffer, int minread, int maxread)
{
	int			n = (int) Min(rest_len, (size_t) maxread);

	memcpy(buffer, rest, n);
	rest += n;
	rest_len -= n;
	return n;
}

bool
aidb_is_copy(const char *sql)
{
	return strncmp(sql, "COPY ", 5) == 0;
}

static CopyStmt *
command(const char *text)
{
	MemoryContext old;
	CopyStmt   *stmt;

	for (int i = 0; i < ncommands; i++)
		if (strcmp(commands[i].text, text) == 0)
			return commands[i].stmt;
	stmt = castNode(CopyStmt, linitial_node(RawStmt, pg_parse_query(text))->stmt);
	if (ncommands == MAX_COMMANDS)
		return stmt;
	old = MemoryContextSwitchTo(TopMemoryContext);
	stmt = copyObject(stmt);
	commands[ncommands].text = pstrdup(text);
	commands[ncommands++].stmt = stmt;
	MemoryContextSwitchTo(old);
	return stmt;
}

/* Runs such a command on the rows, in COPY's text format and the database's encoding. */
void
aidb_copy_rows(const char *sql, const char *rows)
{
	CopyStmt   *stmt = command(sql);
	List	   *options = list_make1(makeDefElem("encoding", (Node *) makeString(pstrdup(GetDatabaseEncodingName())), -1));
	ParseState *pstate = make_parsestate(NULL);
	Relation	table;
	CopyFromState state;

	/* COPY as a statement checks this, and the privileges, which the owner has */
	PreventCommandIfReadOnly("COPY FROM");
	table = table_openrv(stmt->relation, RowExclusiveLock);
	(void) addRangeTableEntryForRelation(pstate, table, RowExclusiveLock, NULL, false, false);
	rest = rows;
	rest_len = strlen(rows);
	PushActiveSnapshot(GetTransactionSnapshot());
	state = BeginCopyFrom(pstate, table, NULL, NULL, false, read_rest, stmt->attlist, options);
	(void) CopyFrom(state);
	EndCopyFrom(state);
	PopActiveSnapshot();
	table_close(table, NoLock);
	free_parsestate(pstate);
	CommandCounterIncrement();
}
