/*
 * entry.c
 *		The SQL functions of the extension that are written in C.
 *
 * Two of them stand behind nearly the whole API:
 *
 *	aidb_go_call	 runs the Go function of the same name as the SQL function
 *	aidb_owner_call	 runs the function of the same name and argument types in
 *					 schema aidb_internal with the owner's rights
 *
 * Both are SECURITY INVOKER, so that they know who calls: the caller's name
 * goes with the call and cannot be said by an argument.
 */
#include "aidb.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(aidb_go_call);
PG_FUNCTION_INFO_V1(aidb_owner_call);
PG_FUNCTION_INFO_V1(aidb_test_go);
PG_FUNCTION_INFO_V1(aidb_caller);
PG_FUNCTION_INFO_V1(aidb_caller_principal);

/* Who called the owner function that is running; NULL when none is. */
static const char *owner_call_caller = NULL;
static const char *owner_call_path = NULL;

const char *
aidb_owner_call_search_path(void)
{
	return owner_call_caller ? owner_call_path : aidb_run_search_path();
}

/* What the catalog says of the function being called. */
typedef struct Callee
{
	char	   *name;
	Oid			owner;
	char		volatility;
	int			nargs;
	Oid			argtypes[FUNC_MAX_ARGS];
	bool		returns_set;
	Oid			rettype;
} Callee;

static void
describe_callee(FunctionCallInfo fcinfo, Callee *c)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
	Form_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	c->name = pstrdup(NameStr(proc->proname));
	c->owner = proc->proowner;
	c->volatility = proc->provolatile;
	c->nargs = proc->pronargs;
	memcpy(c->argtypes, proc->proargtypes.values, sizeof(Oid) * c->nargs);
	c->returns_set = proc->proretset;
	c->rettype = proc->prorettype;
	ReleaseSysCache(tuple);
}

void
aidb_refuse_inside_tool_call(const char *function)
{
	if (aidb_tool_scope)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 aidb_refused("pre_execution_rejected"),
				 errmsg("function aidb.%s cannot be called from inside a tool call", function)));
}

/* The owner of a function of ours is the extension's. */
Oid
aidb_function_owner(Oid fn)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

static char *
argument_text(FunctionCallInfo fcinfo, const Callee *c, int i)
{
	Oid			out;
	bool		varlena;

	if (PG_ARGISNULL(i))
		return NULL;
	getTypeOutputInfo(c->argtypes[i], &out, &varlena);
	return OidOutputFunctionCall(out, PG_GETARG_DATUM(i));
}

static Datum
input_value(const char *text, Oid type, int32 typmod, bool *isnull)
{
	Oid			in,
				ioparam;

	*isnull = text == NULL;
	if (text == NULL)
		return (Datum) 0;
	getTypeInputInfo(type, &in, &ioparam);
	return OidInputFunctionCall(in, (char *) text, ioparam, typmod);
}

/* A tuplestore for the result of a set-returning function. */
Tuplestorestate *
aidb_result_store(FunctionCallInfo fcinfo, TupleDesc *desc)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;
	Tuplestorestate *store;
	Oid			type;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) || !(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	old = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, &type, desc) == TYPEFUNC_SCALAR)
	{
		*desc = CreateTemplateTupleDesc(1);
		TupleDescInitEntry(*desc, 1, "value", type, -1, 0);
	}
	else
		*desc = BlessTupleDesc(CreateTupleDescCopy(*desc));
	store = tuplestore_begin_heap(rsinfo->allowedModes & SFRM_Materialize_Random, false, work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = store;
	rsinfo->setDesc = *desc;
	MemoryContextSwitchTo(old);
	return store;
}

/* Go's rows of texts as the function's result. */
static Datum
return_texts(FunctionCallInfo fcinfo, const Callee *c, AidbResult *result)
{
	TupleDesc	desc;
	Tuplestorestate *store;
	Datum	   *values;
	bool	   *nulls;

	if (!c->returns_set)
	{
		if (c->rettype == VOIDOID || result->nrows == 0 || result->ncols == 0 || result->values[0] == NULL)
		{
			if (c->rettype == VOIDOID)
				PG_RETURN_VOID();
			PG_RETURN_NULL();
		}
		return input_value(result->values[0], c->rettype, -1, &fcinfo->isnull);
	}
	store = aidb_result_store(fcinfo, &desc);
	if (result->nrows > 0 && result->ncols != desc->natts)
		elog(ERROR, "function %s returned %d columns instead of %d", c->name, result->ncols, desc->natts);
	values = palloc(sizeof(Datum) * desc->natts);
	nulls = palloc(sizeof(bool) * desc->natts);
	for (int row = 0; row < result->nrows; row++)
	{
		for (int i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, i);

			values[i] = input_value(result->values[row * result->ncols + i], att->atttypid, att->atttypmod, &nulls[i]);
		}
		tuplestore_putvalues(store, desc, values, nulls);
	}
	return (Datum) 0;
}

Datum
aidb_go_call(PG_FUNCTION_ARGS)
{
	Callee		c;
	AidbResult	result = {0};
	char	  **args;

	describe_callee(fcinfo, &c);
	aidb_refuse_inside_tool_call(c.name);
	if (aidb_run_active())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("function aidb.%s cannot be called while an agent runs in this session", c.name)));
	aidb_note_caller(c.owner);
	args = palloc0(sizeof(char *) * (c.nargs + 1));
	for (int i = 0; i < c.nargs; i++)
		args[i] = argument_text(fcinfo, &c, i);
	aidb_serve(c.name, c.nargs, args, c.owner, &result);
	return return_texts(fcinfo, &c, &result);
}

/* Fault tests of the Go side (make it busy, make it panic): never in production. */
Datum
aidb_test_go(PG_FUNCTION_ARGS)
{
	if (!superuser() || !aidb_test_hooks)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function test_go"),
				 errhint("It is for superusers who set aidb.test_hooks.")));
	return aidb_go_call(fcinfo);
}

/* --- owner calls ---------------------------------------------------------------- */

/* The statement that calls the inner function. */
static char *
inner_call_text(const Callee *c)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s aidb_internal.%s(", c->returns_set ? "* FROM" : "", quote_identifier(c->name));
	for (int i = 0; i < c->nargs; i++)
		appendStringInfo(&sql, "%s$%d", i ? ", " : "", i + 1);
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

/* Planned anew for each call: these functions are administration, not the hot path. */
static SPIPlanPtr
inner_plan(Callee *c)
{
	SPIPlanPtr	plan = SPI_prepare(inner_call_text(c), c->nargs, c->argtypes);

	if (plan == NULL)
		elog(ERROR, "could not prepare the call of aidb_internal.%s: %s", c->name, SPI_result_code_string(SPI_result));
	return plan;
}

/* Copies SPI's result to the function's caller, whose memory outlives SPI. */
static void
store_rows(FunctionCallInfo fcinfo, SPITupleTable *table, uint64 n)
{
	TupleDesc	desc;
	Tuplestorestate *store = aidb_result_store(fcinfo, &desc);

	for (uint64 i = 0; i < n; i++)
	{
		Datum	   *values = palloc(sizeof(Datum) * desc->natts);
		bool	   *nulls = palloc(sizeof(bool) * desc->natts);

		heap_deform_tuple(table->vals[i], table->tupdesc, values, nulls);
		tuplestore_putvalues(store, desc, values, nulls);
	}
}

static Datum
single_value(FunctionCallInfo fcinfo, const Callee *c, SPITupleTable *table, uint64 n)
{
	bool		isnull = true;
	Datum		value = 0;

	if (n > 0)
		value = SPI_getbinval(table->vals[0], table->tupdesc, 1, &isnull);
	fcinfo->isnull = isnull;
	if (!isnull)
	{
		int16		len;
		bool		byval;

		get_typlenbyval(c->rettype, &len, &byval);
		value = SPI_datumTransfer(value, byval, len);
	}
	return value;
}

Datum
aidb_owner_call(PG_FUNCTION_ARGS)
{
	Callee		c;
	AidbOwnerScope scope;
	const char *outer_caller = owner_call_caller;
	const char *outer_path = owner_call_path;
	char	   *caller;
	Datum		values[FUNC_MAX_ARGS];
	char		nulls[FUNC_MAX_ARGS];
	volatile Datum result = (Datum) 0;	/* survives the longjmp of an error */

	describe_callee(fcinfo, &c);
	/* what only reads may be a tool; whatever changes the catalog may not */
	if (c.volatility == PROVOLATILE_VOLATILE)
	{
		aidb_refuse_inside_tool_call(c.name);
		aidb_note_caller(c.owner);
	}
	caller = GetUserNameFromId(GetUserId(), false);
	for (int i = 0; i < c.nargs; i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
	}
	owner_call_caller = caller;
	owner_call_path = pstrdup(namespace_search_path);
	PG_TRY();
	{
		int			rc;

		aidb_enter_owner(&scope, c.owner);
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		rc = SPI_execute_plan(inner_plan(&c), values, nulls, c.volatility != PROVOLATILE_VOLATILE, 0);
		if (rc < 0)
			elog(ERROR, "could not call aidb_internal.%s: %s", c.name, SPI_result_code_string(rc));
		if (c.returns_set)
			store_rows(fcinfo, SPI_tuptable, SPI_processed);
		else
			result = single_value(fcinfo, &c, SPI_tuptable, SPI_processed);
		SPI_finish();
		aidb_leave_owner(&scope);
	}
	PG_CATCH();
	{
		ErrorData  *e;

		owner_call_caller = outer_caller;
		owner_call_path = outer_path;
		/* where in our own code it was raised says nothing to the caller */
		MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		e = CopyErrorData();
		FlushErrorState();
		e->context = NULL;
		ReThrowError(e);
	}
	PG_END_TRY();
	owner_call_caller = outer_caller;
	owner_call_path = outer_path;
	return result;
}

/* The role that called the API function in hand: its name, or NULL. */
Datum
aidb_caller(PG_FUNCTION_ARGS)
{
	const char *caller = owner_call_caller ? owner_call_caller : aidb_run_caller();

	if (caller == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(caller));
}

/* The end user behind the caller, as far as the application said so. */
Datum
aidb_caller_principal(PG_FUNCTION_ARGS)
{
	const char *principal = GetConfigOption("aidb.principal", true, false);
	const char *caller = owner_call_caller ? owner_call_caller : aidb_run_caller();

	if (principal && principal[0])
		PG_RETURN_TEXT_P(cstring_to_text(principal));
	if (caller == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(caller));
}
