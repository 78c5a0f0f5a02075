/*
 * query.c
 *		Our own SQL: fixed texts from the Go side, run with the owner's rights.
 *
 * Parameters are text; the statements cast them ($1::uuid).  From its second
 * run on the plan of a statement is kept for the life of the backend, so that a
 * step of an agent costs no planning, and what runs once takes no memory.  The
 * texts are constants of our code, never built from data, so the cache is
 * bounded by the size of the code; a cap guards that.
 */
#include "aidb.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"

#define MAX_PLANS 256
#define MAX_ARGS 100

typedef struct PlanEntry
{
	char		key[16];		/* two hashes of the text */
	SPIPlanPtr	plan;
} PlanEntry;

static HTAB *plans = NULL;

static PlanEntry *
find_plan(const char *sql, bool *found)
{
	uint64		key[2];

	if (plans == NULL)
	{
		HASHCTL		ctl = {.keysize = 16,.entrysize = sizeof(PlanEntry),.hcxt = TopMemoryContext};

		plans = hash_create("aidb plans", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	key[0] = hash_bytes_extended((const unsigned char *) sql, strlen(sql), 0);
	key[1] = hash_bytes_extended((const unsigned char *) sql, strlen(sql), 0xA1DB);
	if (hash_get_num_entries(plans) >= MAX_PLANS)
		return hash_search(plans, key, HASH_FIND, found);
	return hash_search(plans, key, HASH_ENTER, found);
}

/* The plan of a constant text of ours, to be executed with the owner's rights before SPI_finish. */
SPIPlanPtr
aidb_plan(const char *sql, int nargs)
{
	bool		found;
	PlanEntry  *entry = find_plan(sql, &found);
	Oid			types[MAX_ARGS];
	SPIPlanPtr	plan;

	if (found && entry->plan)
		return entry->plan;
	if (entry && !found)
		entry->plan = NULL;		/* stays so the first time, and if preparing fails */
	for (int i = 0; i < nargs; i++)
		types[i] = TEXTOID;
	/* generic at once: the values never make another plan better */
	plan = SPI_prepare_cursor(sql, nargs, types, CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", sql, SPI_result_code_string(SPI_result));
	if (entry && found)
	{
		SPI_keepplan(plan);
		entry->plan = plan;
	}
	return plan;
}

/*
 * What a call may is read as it is now.  Whoever holds a transaction of
 * REPEATABLE READ open must not keep what has been taken away since it began.
 */
void
aidb_push_newest_snapshot(void)
{
	PushActiveSnapshot(IsolationUsesXactSnapshot() ? GetLatestSnapshot() : GetTransactionSnapshot());
}

/* What writes or locks a row has the transaction's snapshot, so that a conflict is found. */
static bool
only_reads(SPIPlanPtr plan)
{
	ListCell   *source;
	ListCell   *lc;

	foreach(source, SPI_plan_get_plan_sources(plan))
		foreach(lc, ((CachedPlanSource *) lfirst(source))->query_list)
		{
			Query	   *query = lfirst_node(Query, lc);

			if (query->commandType != CMD_SELECT || query->hasModifyingCTE || query->rowMarks != NIL)
				return false;
		}
	return true;
}

static int
execute_plan(SPIPlanPtr plan, Datum *values, const char *nulls, int64 max_rows)
{
	int			rc;

	if (!IsolationUsesXactSnapshot() || !only_reads(plan))
		return SPI_execute_plan(plan, values, nulls, false, max_rows);
	aidb_push_newest_snapshot();
	rc = SPI_execute_snapshot(plan, values, nulls, GetActiveSnapshot(), InvalidSnapshot, false, true, max_rows);
	PopActiveSnapshot();
	return rc;
}

/*
 * Executes a constant text of ours with the owner's rights, between SPI_connect
 * and SPI_finish.  Its parameters are texts, NULL pointers are NULL.  The number
 * of rows; those are in SPI_tuptable.
 */
static uint64
execute(const char *sql, int64 max_rows, int nargs, const char **args)
{
	Datum		values[MAX_ARGS];
	char		nulls[MAX_ARGS];
	int			rc;

	for (int i = 0; i < nargs; i++)
	{
		nulls[i] = args[i] ? ' ' : 'n';
		values[i] = args[i] ? CStringGetTextDatum(args[i]) : (Datum) 0;
	}
	rc = execute_plan(aidb_plan(sql, nargs), values, nulls, max_rows);
	if (rc < 0)
		elog(ERROR, "could not execute \"%s\": %s", sql, SPI_result_code_string(rc));
	return SPI_processed;
}

uint64
aidb_execute(const char *sql, int nargs, const char **args)
{
	return execute(sql, 0, nargs, args);
}

/* columns, names, rows, values of one statement's result */
static void
put_rows(StringInfo reply, SPITupleTable *table, uint64 nrows)
{
	TupleDesc	desc = table ? table->tupdesc : NULL;
	int			ncols = desc ? desc->natts : 0;

	aidb_fields_int(reply, ncols);
	for (int i = 0; i < ncols; i++)
		aidb_fields_text(reply, NameStr(TupleDescAttr(desc, i)->attname));
	aidb_fields_int(reply, table ? (int64) nrows : 0);
	for (uint64 row = 0; table && row < nrows; row++)
		for (int i = 0; i < ncols; i++)
		{
			char	   *value = SPI_getvalue(table->vals[row], desc, i + 1);

			aidb_fields_text(reply, value);
			if (value)
				pfree(value);
		}
}

/* Runs a statement or a lookup and writes its result down. */
static void
run_statement(const char *sql, int64 max_rows, int nargs, char **args, StringInfo reply)
{
	uint64		nrows;

	if (aidb_is_lookup(sql))
	{
		aidb_lookup(sql, nargs, args, reply);
		return;
	}
	nrows = execute(sql, max_rows, nargs, (const char **) args);
	put_rows(reply, SPI_tuptable, nrows);
	if (SPI_tuptable)
		SPI_freetuptable(SPI_tuptable);
}

static void
run_one(AidbReader *r, StringInfo reply)
{
	char	   *sql = aidb_read_text(r);
	int64		max_rows = aidb_read_int(r);
	int			nargs = (int) aidb_read_int(r);
	char	   *args[MAX_ARGS];

	if (nargs < 0 || nargs > MAX_ARGS)
		elog(ERROR, "statement with %d parameters", nargs);
	for (int i = 0; i < nargs; i++)
		args[i] = aidb_read_text(r);
	if (aidb_is_copy(sql))
	{
		if (nargs != 1 || args[0] == NULL)
			elog(ERROR, "COPY without rows");
		aidb_copy_rows(sql, args[0]);
		put_rows(reply, NULL, 0);
		return;
	}
	run_statement(sql, max_rows, nargs, args, reply);
}

/* One statement with one parameter. */
void
aidb_run_query(const char *sql, const char *argument, StringInfo reply, Oid owner)
{
	AidbOwnerScope scope;
	char	   *args[1] = {(char *) argument};

	aidb_enter_owner(&scope, owner);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	run_statement(sql, 0, 1, args, reply);
	SPI_finish();
	aidb_leave_owner(&scope);
}

/* A batch: the number of statements, then each; the reply has them in order. */
void
aidb_run_queries(AidbReader *r, StringInfo reply, Oid owner)
{
	AidbOwnerScope scope;
	int			n = (int) aidb_read_int(r);

	aidb_enter_owner(&scope, owner);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	for (int i = 0; i < n; i++)
		run_one(r, reply);
	SPI_finish();
	aidb_leave_owner(&scope);
}
