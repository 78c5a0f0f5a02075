/*
 * claim.c
 *		The tasks that a worker has in hand: taken, given back, told to stop; and
 *		the transactions in which that happens.
 */
#include "worker.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "tasks.h"

HTAB	   *aidb_tasks = NULL;
AidbSlot   *aidb_self = NULL;
int64		aidb_number = 0;
Oid			aidb_owner = InvalidOid;

static uint64 last_run = 0;

void
aidb_make_task_table(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64),.entrysize = sizeof(AidbTask),.hcxt = TopMemoryContext};

	aidb_tasks = hash_create("aidb tasks", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

int
aidb_in_hand(void)
{
	return (int) hash_get_num_entries(aidb_tasks);
}

AidbTask *
aidb_find_task(uint64 run)
{
	return hash_search(aidb_tasks, &run, HASH_FIND, NULL);
}

void
aidb_forget_task(AidbTask *t)
{
	uint64		run = t->run;

	aidb_limits_end(run);
	aidb_ring(aidb_bell_of(t->id.data));
	MemoryContextDelete(t->context);
	(void) hash_search(aidb_tasks, &run, HASH_REMOVE, NULL);
	aidb_self->running = aidb_in_hand();
}

void
aidb_stop_run(AidbBridge *b, AidbTask *t)
{
	StringInfoData none;

	initStringInfo(&none);
	aidb_fields_begin(&none);
	aidb_send_command(b, AIDB_CMD_CANCEL, t->run, &none);
	pfree(none.data);
	aidb_limits_end(t->run);
}

/* --- transactions -------------------------------------------------------------- */

void
aidb_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

void
aidb_show_activity(const AidbTask *t)
{
	char		text[256];

	if (t)
		snprintf(text, sizeof(text), "aidb: step of task %s, agent %s; %d tasks in hand", t->id_text, t->agent, aidb_in_hand());
	else
		snprintf(text, sizeof(text), "aidb: %d tasks in hand", aidb_in_hand());
	pgstat_report_activity(STATE_RUNNING, text);
}

void
aidb_commit(Oid role)
{
	PopActiveSnapshot();
	aidb_commit_as(role);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* In a PG_CATCH: undoes the transaction; what went wrong, in the context that was current. */
ErrorData *
aidb_undo(MemoryContext outer)
{
	ErrorData  *e;

	MemoryContextSwitchTo(outer);
	e = CopyErrorData();
	FlushErrorState();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(outer);
	aidb_set_run(0, InvalidOid, NULL, NULL);
	pgstat_report_activity(STATE_IDLE, NULL);
	return e;
}

/* One of our own functions as the aidb_owner, in a transaction of its own; for each row of its result. */
static void
call_own(const char *sql, int n, Oid *types, Datum *values, const char *nulls, void (*row) (HeapTuple, TupleDesc, void *), void *arg)
{
	AidbOwnerScope scope;

	aidb_begin();
	aidb_show_activity(NULL);
	aidb_enter_owner(&scope, aidb_owner);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute_with_args(sql, n, types, values, nulls, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not execute \"%s\"", sql);
	for (uint64 i = 0; row && i < SPI_processed; i++)
		row(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, arg);
	SPI_finish();
	aidb_leave_owner(&scope);
	aidb_commit(InvalidOid);
}

/* --- taking and giving back tasks ------------------------------------------------ */

typedef struct Claimed
{
	MemoryContext context;
	List	   *rows;			/* of char *[11] */
} Claimed;

#define CLAIMED_COLUMNS 11

static void
keep_claimed(HeapTuple tuple, TupleDesc desc, void *arg)
{
	Claimed    *c = arg;
	MemoryContext old = MemoryContextSwitchTo(c->context);
	char	  **row = palloc0(sizeof(char *) * CLAIMED_COLUMNS);

	for (int i = 0; i < CLAIMED_COLUMNS; i++)
	{
		char	   *value = SPI_getvalue(tuple, desc, i + 1);

		row[i] = value ? pstrdup(value) : NULL;
	}
	c->rows = lappend(c->rows, row);
	MemoryContextSwitchTo(old);
}

/* Begins the run of a task that was claimed: columns as in aidb_internal.claim_tasks. */
static void
start_task(AidbBridge *b, char **row)
{
	uint64		run = ++last_run;
	AidbTask   *t = hash_search(aidb_tasks, &run, HASH_ENTER, NULL);
	MemoryContext old;
	StringInfoData buf;
	const char *me = GetUserNameFromId(GetSessionUserId(), false);

	t->context = AllocSetContextCreate(TopMemoryContext, "aidb task", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(t->context);
	t->id_text = pstrdup(row[0]);
	t->id = *DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(row[0])));
	t->agent = pstrdup(row[1]);
	t->caller = pstrdup(row[7]);
	t->principal = pstrdup(row[8]);
	t->superuser = row[9][0] == 't';
	t->search_path = pstrdup(row[10]);
	t->set_role = strcmp(t->caller, me) != 0;
	MemoryContextSwitchTo(old);

	initStringInfo(&buf);
	aidb_fields_begin(&buf);
	aidb_fields_text(&buf, "run_task");
	aidb_fields_text(&buf, t->caller);
	aidb_fields_text(&buf, me);
	aidb_fields_text(&buf, t->principal);
	aidb_fields_bool(&buf, t->superuser);
	aidb_fields_bool(&buf, false);
	aidb_fields_bool(&buf, false);
	aidb_fields_text(&buf, NULL);
	aidb_fields_int(&buf, aidb_number);
	for (int i = 0; i < 7; i++)
		aidb_fields_text(&buf, row[i]);
	aidb_send_command(b, AIDB_CMD_START, run, &buf);
	pfree(buf.data);
	aidb_self->running = aidb_in_hand();
}

/* Takes tasks; how many it got. */
int
aidb_claim(AidbBridge *b, int wanted)
{
	Claimed		c = {0};
	Oid			types[2] = {INT8OID, INT4OID};
	Datum		values[2] = {Int64GetDatum(aidb_number), Int32GetDatum(wanted)};
	ListCell   *lc;
	int			n;

	c.context = AllocSetContextCreate(TopMemoryContext, "aidb claimed", ALLOCSET_DEFAULT_SIZES);
	call_own("SELECT * FROM aidb_internal.claim_tasks($1, $2)", 2, types, values, NULL, keep_claimed, &c);
	/* from here on they are ours in the table, and no transaction is open */
	aidb_begin();
	aidb_send_config(b);
	foreach(lc, c.rows)
		start_task(b, lfirst(lc));
	aidb_commit(InvalidOid);
	n = list_length(c.rows);
	MemoryContextDelete(c.context);
	return n;
}

void
aidb_give_back(AidbTask *t, const char *why)
{
	Oid			types[3] = {UUIDOID, INT8OID, TEXTOID};
	Datum		values[3];
	char		nulls[] = "   ";

	values[0] = UUIDPGetDatum(&t->id);
	values[1] = Int64GetDatum(aidb_number);
	values[2] = CStringGetTextDatum(why);
	call_own("SELECT aidb_internal.give_back_task($1, $2, $3)", 3, types, values, nulls, NULL, NULL);
	aidb_forget_task(t);
}

void
aidb_hand_back_all(AidbBridge *b)
{
	Oid			types[1] = {INT8OID};
	Datum		values[1] = {Int64GetDatum(aidb_number)};
	HASH_SEQ_STATUS all;
	AidbTask   *t;

	hash_seq_init(&all, aidb_tasks);
	while ((t = hash_seq_search(&all)) != NULL)
	{
		aidb_stop_run(b, t);
		aidb_forget_task(t);			/* removing the current one is allowed */
	}
	call_own("SELECT aidb_internal.hand_back_tasks($1)", 1, types, values, NULL, NULL, NULL);
}

/* --- canceled tasks ---------------------------------------------------------------- */

static void
stop_canceled(HeapTuple tuple, TupleDesc desc, void *arg)
{
	bool		isnull;
	pg_uuid_t  *id = DatumGetUUIDP(SPI_getbinval(tuple, desc, 1, &isnull));
	HASH_SEQ_STATUS all;
	AidbTask   *t;

	hash_seq_init(&all, aidb_tasks);
	while ((t = hash_seq_search(&all)) != NULL)
		if (memcmp(&t->id, id, sizeof(pg_uuid_t)) == 0)
		{
			aidb_stop_run(arg, t);
			aidb_forget_task(t);
		}
}

void
aidb_stop_canceled(AidbBridge *b)
{
	Oid			types[1] = {INT8OID};
	Datum		values[1] = {Int64GetDatum(aidb_number)};

	if (aidb_in_hand() > 0)
		call_own("SELECT aidb_internal.canceled_tasks($1)", 1, types, values, NULL, stop_canceled, b);
}

/* Looks whether the extension is still there, and whose it is. */
bool
aidb_extension_is_there(void)
{
	aidb_begin();
	aidb_owner = aidb_extension_owner();
	aidb_commit(InvalidOid);
	return OidIsValid(aidb_owner);
}
