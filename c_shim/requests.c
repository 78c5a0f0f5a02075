/*
 * requests.c
 *		What Go may ask of the main thread, one function for each request.
 *
 * They run inside serve.c's error handling: whatever they raise becomes the
 * answer.  All of it but NOTICE is in a subtransaction of its own.
 */
#include "aidb.h"

#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#define AIDB_LOCK_FIELD4 0xA1DB	/* keeps our locks apart from pg_advisory_lock()'s */

/* Serialises the calls of one conversation until this transaction ends; false when it is not free and is not waited for. */
bool
aidb_lock_conversation(const pg_uuid_t *id, bool dont_wait)
{
	LOCKTAG		tag;
	uint32		a,
				b,
				c,
				d;

	memcpy(&a, id->data, 4);
	memcpy(&b, id->data + 4, 4);
	memcpy(&c, id->data + 8, 4);
	memcpy(&d, id->data + 12, 4);
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, a ^ c, b ^ d, AIDB_LOCK_FIELD4);
	return LockAcquire(&tag, ExclusiveLock, false, dont_wait) != LOCKACQUIRE_NOT_AVAIL;
}

static void
lock_conversation(AidbReader *r)
{
	char	   *text = aidb_read_text(r);

	(void) aidb_lock_conversation(DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(text))), false);
}

/*
 * A secret that lives outside the database: an environment variable of the
 * server, or a file.  The prefix rules are checked here, at every use, because
 * whoever registers a name must not be able to read the server's other secrets.
 */
static void
read_secret(AidbReader *r, StringInfo reply)
{
	char	   *kind = aidb_read_text(r);
	char	   *name = aidb_read_text(r);

	if (strcmp(kind, "env") == 0)
	{
		const char *prefix = aidb_env_var_allowed_prefix;
		const char *value;

		if (prefix[0] == '\0' || strncmp(name, prefix, strlen(prefix)) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("environment variable name '%s' does not start with the required prefix '%s' "
							"(see the aidb.env_var_allowed_prefix GUC)", name, prefix)));
		value = getenv(name);
		if (value == NULL || value[0] == '\0')
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("environment variable \"%s\" of the server is not set", name)));
		aidb_fields_text(reply, value);
	}
	else
	{
		const char *prefix = aidb_k8s_secret_allowed_path_prefix;

		if (prefix[0] == '\0' || strncmp(name, prefix, strlen(prefix)) != 0 || strstr(name, "..") != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("secret path '%s' does not start with the required prefix '%s' "
							"(see the aidb.k8s_secret_allowed_path_prefix GUC)", name, prefix)));
		aidb_fields_text(reply, name);	/* Go reads it; the path is allowed */
	}
}

void
aidb_show_notice(AidbReader *r)
{
	char	   *level = aidb_read_text(r);
	char	   *message = aidb_read_text(r);
	char	   *hint = aidb_read_text(r);

	ereport(strcmp(level, "warning") == 0 ? WARNING : strcmp(level, "log") == 0 ? LOG : NOTICE,
			(errcode(strcmp(level, "warning") == 0 ? ERRCODE_WARNING : ERRCODE_SUCCESSFUL_COMPLETION),
			 errmsg_internal("%s", message ? message : ""),
			 errhidestmt(true), errhidecontext(true),
			 hint && hint[0] ? errhint("%s", hint) : 0));
}

/* flags of a TOOL request, in the order that Go writes them */
static void
read_tool_request(AidbReader *r, AidbToolCall *call)
{
	call->role_name = aidb_read_text(r);
	call->role_id = (Oid) aidb_read_int(r);
	call->statement = aidb_read_text(r);
	call->function = aidb_read_text(r);
	call->read_only = aidb_read_bool(r);
	call->trusted = aidb_read_bool(r);
	call->elevated = aidb_read_bool(r);
	call->max_rows = (int) aidb_read_int(r);
	call->max_bytes = aidb_read_int(r);
	call->timeout_ms = (int) aidb_read_int(r);
	call->conversation_id = aidb_read_text(r);
	call->agent_name = aidb_read_text(r);
	call->fingerprint = aidb_read_bool(r);
	call->check_only = aidb_read_bool(r);
	call->own_statement = aidb_read_bool(r);
	call->nparams = (int) aidb_read_int(r);
	if (call->nparams < 0 || call->nparams > 1000)
		elog(ERROR, "tool call with %d parameters", call->nparams);
	call->param_types = palloc0(sizeof(char *) * (call->nparams + 1));
	call->param_values = palloc0(sizeof(char *) * (call->nparams + 1));
	call->param_names = palloc0(sizeof(char *) * (call->nparams + 1));
	for (int i = 0; i < call->nparams; i++)
	{
		call->param_types[i] = aidb_read_text(r);
		call->param_values[i] = aidb_read_text(r);
		call->param_names[i] = aidb_read_text(r);
	}
	call->probe = aidb_read_bool(r);
	call->tool_name = aidb_read_text(r);
	call->tool_params = aidb_read_text(r);
	call->nguards = (int) aidb_read_int(r);
	if (call->nguards < 0 || call->nguards > 1000)
		elog(ERROR, "tool call with %d guards", call->nguards);
	call->guards = palloc0(sizeof(AidbGuard) * (call->nguards + 1));
	for (int i = 0; i < call->nguards; i++)
	{
		call->guards[i].session = aidb_read_text(r);
		call->guards[i].policy = aidb_read_text(r);
		call->guards[i].from = aidb_read_text(r);
	}
}

/* What must be so for the call to be made at all: a row that a lookup must give, sent along with the call. */
typedef struct Condition
{
	char	   *lookup;			/* NULL: nothing need be so */
	int			nargs;
	char	  **args;
	int			nvalues;
	char	  **values;
	bool		met;
} Condition;

static char **
read_texts(AidbReader *r, int *n)
{
	char	  **texts;

	*n = (int) aidb_read_int(r);
	if (*n < 0 || *n > 100)
		elog(ERROR, "condition with %d values", *n);
	texts = palloc0(sizeof(char *) * (*n + 1));
	for (int i = 0; i < *n; i++)
		texts[i] = aidb_read_text(r);
	return texts;
}

static void
check_condition(void *arg)
{
	Condition  *c = arg;

	c->met = aidb_lookup_gives(c->lookup, c->nargs, c->args, c->nvalues, c->values);
}

static bool
condition_met(AidbReader *r)
{
	Condition	c = {.lookup = aidb_read_text(r)};
	ErrorData  *e;

	if (c.lookup == NULL)
		return true;
	c.args = read_texts(r, &c.nargs);
	c.values = read_texts(r, &c.nvalues);
	e = aidb_try(check_condition, &c, false);
	if (e)
		ReThrowError(e);
	return c.met;
}

static void
run_tool(AidbReader *r, StringInfo reply, Oid owner)
{
	AidbToolCall call = {0};
	bool		met;

	read_tool_request(r, &call);
	met = condition_met(r);
	aidb_fields_bool(reply, met);
	if (!met)
		return;
	call.rows = makeStringInfo();
	aidb_fields_begin(call.rows);
	aidb_run_guarded(&call, owner);
	aidb_fields_text(reply, call.tag ? call.tag : "");
	aidb_fields_bool(reply, call.returns_rows);
	aidb_fields_bool(reply, call.truncated);
	aidb_fields_int(reply, (int64) call.affected);
	aidb_fields_int(reply, call.nrows);
	aidb_fields_int(reply, (int64) call.row_print);
	aidb_fields_raw(reply, call.rows->data, call.rows->len);
	for (int i = 0; i < call.nguards; i++)
	{
		aidb_fields_text(reply, call.guards[i].from);
		aidb_fields_text(reply, call.guards[i].to);
		aidb_fields_text(reply, call.guards[i].event);
		aidb_fields_text(reply, call.guards[i].would_deny);
	}
}

/* Does what a request asks for; the kind of the reply, whose fields are in `reply`. */
uint32
aidb_handle_request(uint32 kind, AidbReader *r, StringInfo reply, Oid owner)
{
	switch (kind)
	{
		case AIDB_REQ_QUERY:
			aidb_run_queries(r, reply, owner);
			return AIDB_REP_ROWS;
		case AIDB_REQ_TOOL:
			run_tool(r, reply, owner);
			return AIDB_REP_TOOL;
		case AIDB_REQ_LOCK:
			/* released to the caller's transaction with the subtransaction, and held until it ends */
			lock_conversation(r);
			return AIDB_REP_OK;
		case AIDB_REQ_SCOPE:
			aidb_run_scope(aidb_read_text(r));
			return AIDB_REP_OK;
		case AIDB_REQ_SECRET:
			read_secret(r, reply);
			return AIDB_REP_OK;
		case AIDB_REQ_KEEP:
			aidb_fields_bool(reply, aidb_keep(r));
			return AIDB_REP_OK;
		default:
			elog(ERROR, "unexpected request %u of the Go library", kind);
	}
	return 0;					/* not reached */
}
