/*
 * render.c
 *		A DestReceiver that turns rows into JSON objects as they arrive.
 *
 * It works inside the sandbox, so a cast to json that belongs to the role runs
 * with the role's rights.  Limits are applied while rows arrive, not after:
 * rows, bytes in all, and single values, which are cut (text) or left out
 * (everything else) before they are rendered.  What was cut is always marked.
 *
 * A SELECT stops at the limit.  An INSERT ... RETURNING must not: its rows are
 * counted and dropped, the statement goes on to its end.
 */
#include "aidb.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

typedef struct JsonReceiver
{
	DestReceiver pub;
	AidbToolCall *call;
	TupleDesc	desc;			/* blessed: row_to_json looks it up by its typmod */
	FmgrInfo	to_json;
	MemoryContext row_memory;	/* reset for each row */
	MemoryContext home;			/* where the result lives */
	bool		may_stop;		/* a SELECT */
	int64		bytes;
} JsonReceiver;

/*
 * aidb_check_column_names: raises, and names them, when columns of a result have equal names, which would silently collapse in the
 * model's eyes.
 */
void
aidb_check_column_names(List *names)
{
	List	   *twice = NIL;
	StringInfoData shown;
	ListCell   *lc;

	foreach(lc, names)
	{
		char	   *name = lfirst(lc);
		ListCell   *other;
		bool		known = false;
		int			n = 0;

		foreach(other, names)
			if (strcmp(lfirst(other), name) == 0)
				n++;
		foreach(other, twice)
			known = known || strcmp(lfirst(other), name) == 0;
		if (n > 1 && !known)
			twice = lappend(twice, name);
		CHECK_FOR_INTERRUPTS();
	}
	if (twice == NIL)
		return;
	initStringInfo(&shown);
	foreach(lc, twice)
		appendStringInfo(&shown, "%s\"%s\"", foreach_current_index(lc) > 0 ? ", " : "", (char *) lfirst(lc));
	if (list_length(twice) == 1)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_COLUMN),
				 errmsg("column name %s appears more than once in the result", shown.data),
				 errhint("Give each column an alias of its own.")));
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_COLUMN),
			 errmsg("column names %s appear more than once in the result", shown.data),
			 errhint("Give each column an alias of its own.")));
}

static void
start(DestReceiver *self, int operation, TupleDesc desc)
{
	JsonReceiver *r = (JsonReceiver *) self;
	MemoryContext old = MemoryContextSwitchTo(r->home);
	List	   *names = NIL;

	for (int i = 0; i < desc->natts; i++)
		names = lappend(names, NameStr(TupleDescAttr(desc, i)->attname));
	aidb_check_column_names(names);
	list_free(names);
	r->desc = BlessTupleDesc(CreateTupleDescCopy(desc));
	r->may_stop = operation == CMD_SELECT || operation == CMD_UTILITY;
	r->call->returns_rows = true;
	fmgr_info_cxt(F_ROW_TO_JSON_RECORD, &r->to_json, r->home);
	MemoryContextSwitchTo(old);
}

/* A value that alone is over the limit: a text is cut, anything else left out. */
static bool
shorten(JsonReceiver *r, int att, Datum *value)
{
	Oid			type = TupleDescAttr(r->desc, att)->atttypid;
	int64		limit = r->call->max_bytes;
	char	   *part;
	int			len;

	if (type != TEXTOID && type != VARCHAROID && type != BPCHAROID)
		return false;
	part = TextDatumGetCString(PointerGetDatum(PG_DETOAST_DATUM_SLICE(*value, 0, (int32) limit)));
	len = pg_mbcliplen(part, strlen(part), (int) limit);
	part[len] = '\0';
	*value = CStringGetTextDatum(psprintf("%s… [truncated]", part));
	return true;
}

/* The row as a composite datum, with values over the limit replaced. */
static Datum
row_datum(JsonReceiver *r, TupleTableSlot *slot)
{
	Datum	   *values = palloc(sizeof(Datum) * (r->desc->natts + 1));
	bool	   *nulls = palloc(sizeof(bool) * (r->desc->natts + 1));

	slot_getallattrs(slot);
	memcpy(values, slot->tts_values, sizeof(Datum) * r->desc->natts);
	memcpy(nulls, slot->tts_isnull, sizeof(bool) * r->desc->natts);
	for (int i = 0; i < r->desc->natts; i++)
	{
		if (nulls[i] || TupleDescAttr(r->desc, i)->attlen != -1)
			continue;
		if ((int64) toast_raw_datum_size(values[i]) - VARHDRSZ > r->call->max_bytes)
		{
			r->call->truncated = true;
			nulls[i] = !shorten(r, i, &values[i]);
		}
	}
	return HeapTupleGetDatum(heap_form_tuple(r->desc, values, nulls));
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	JsonReceiver *r = (JsonReceiver *) self;
	MemoryContext old;
	text	   *json;
	int			len;
	bool		full = r->call->nrows >= r->call->max_rows || r->bytes >= r->call->max_bytes;

	if (full && (r->may_stop || !r->call->fingerprint))
	{
		r->call->truncated = true;
		return !r->may_stop;
	}
	MemoryContextReset(r->row_memory);
	old = MemoryContextSwitchTo(r->row_memory);
	json = DatumGetTextPP(FunctionCall1(&r->to_json, row_datum(r, slot)));
	len = VARSIZE_ANY_EXHDR(json);
	MemoryContextSwitchTo(old);

	/* a sum, because the order of rows is nobody's promise */
	if (r->call->fingerprint)
		r->call->row_print += hash_bytes_extended((const unsigned char *) VARDATA_ANY(json), len, 0);
	if (full)
	{
		r->call->truncated = true;
		return true;
	}

	/* a row of many middling values may still be over */
	if (r->bytes + len > r->call->max_bytes && r->call->nrows > 0)
	{
		r->call->truncated = true;
		r->bytes = r->call->max_bytes;
		return !r->may_stop;
	}
	if (len > r->call->max_bytes * 4 + 65536)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a row of the result has %d bytes, more than aidb.max_tool_bytes allows", len),
				 errhint("Select fewer columns, or a part of the long ones.")));
	aidb_fields_put(r->call->rows, VARDATA_ANY(json), len);
	r->call->nrows++;
	r->bytes += len;
	return true;
}

static void
stop(DestReceiver *self pg_attribute_unused())
{
}

static void
destroy(DestReceiver *self pg_attribute_unused())
{
}

/* Lives in the current memory context, as do the rows it makes. */
DestReceiver *
aidb_json_receiver(AidbToolCall *call)
{
	JsonReceiver *r = palloc0(sizeof(JsonReceiver));

	r->pub.receiveSlot = receive;
	r->pub.rStartup = start;
	r->pub.rShutdown = stop;
	r->pub.rDestroy = destroy;
	r->pub.mydest = DestNone;
	r->call = call;
	r->home = CurrentMemoryContext;
	r->row_memory = AllocSetContextCreate(CurrentMemoryContext, "aidb row", ALLOCSET_DEFAULT_SIZES);
	return &r->pub;
}
