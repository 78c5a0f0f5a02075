/*
 * lookup.c
 *		Rows of our own tables by their keys, without a plan.
 *
 * What every call reads is a handful of rows, each found by a unique index.
 * As one SELECT that is a join of a dozen tables: in a new session its planning
 * is the largest part of the first call, its plan is kept for good in half a
 * megabyte, and starting the executor for it costs more than the rows.  The
 * text of a lookup is a constant of our code, a line for each step:
 *
 *		LOOKUP
 *		get TABLE INDEX KEY COLUMN ...	the row with the key; without one there is no result
 *		row TABLE INDEX KEY COLUMN ...	the row with the key, NULLs without one
 *		newest COLUMN					the hash of the newest decision (newest.c)
 *		any TABLE						whether the table has a row
 *		rolename COLUMN					the name of the role whose oid the column has
 *		setting NAME					the value of a setting
 *
 * KEY is $n, a parameter, or the name of a column of an earlier step; COLUMN
 * may be name=other, to be known by the other name.  The result is one row
 * with the columns of all steps.  Values are texts as COPY
 * or SELECT give them, but: an array of text is a JSON array, a timestamp is
 * as in JSON, bytes are hexadecimal digits, a role is its oid.
 *
 * Nothing is checked but the tables' own constraints: the tables are ours, and
 * the texts name neither a table nor a column of anybody else.
 */
#include "aidb.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "lookup.h"

/* --- values ---------------------------------------------------------------------- */

static char *
json_array(Datum value)
{
	StringInfoData out;
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
	initStringInfo(&out);
	appendStringInfoChar(&out, '[');
	for (int i = 0; i < n; i++)
	{
		if (i > 0)
			appendStringInfoChar(&out, ',');
		if (nulls[i])
			appendStringInfoString(&out, "null");
		else
			escape_json(&out, TextDatumGetCString(elements[i]));
	}
	appendStringInfoChar(&out, ']');
	return out.data;
}

static char *
hexadecimal(Datum value)
{
	bytea	   *bytes = DatumGetByteaPP(value);
	int			n = VARSIZE_ANY_EXHDR(bytes);
	char	   *out = palloc((Size) n * 2 + 1);

	out[hex_encode(VARDATA_ANY(bytes), n, out)] = '\0';
	return out;
}

static char *
value_text(Datum value, Oid type)
{
	Oid			output;
	bool		varlena;

	switch (type)
	{
		case TEXTOID:
			return TextDatumGetCString(value);
		case BOOLOID:
			return pstrdup(DatumGetBool(value) ? "t" : "f");
		case REGROLEOID:
			return psprintf("%u", DatumGetObjectId(value));
		case TIMESTAMPTZOID:
			return JsonEncodeDateTime(palloc(MAXDATELEN + 1), value, type, NULL);
		case TEXTARRAYOID:
			return json_array(value);
		case BYTEAOID:
			return hexadecimal(value);
		default:
			getTypeOutputInfo(type, &output, &varlena);
			return OidOutputFunctionCall(output, value);
	}
}

/* The step's columns of a row; they are named in the order of the table, mostly. */
static void
take(const LookupProgram *p, const LookupStep *step, TupleDesc desc, HeapTuple row, char **values)
{
	int			at = 0;

	for (int i = step->first; i < step->first + step->ncols; i++)
	{
		bool		null;
		Datum		value;
		int			tried = 0;

		while (tried < desc->natts && (TupleDescAttr(desc, at)->attisdropped ||
									   strcmp(NameStr(TupleDescAttr(desc, at)->attname), p->columns[i]) != 0))
		{
			at = (at + 1) % desc->natts;
			tried++;
		}
		if (tried == desc->natts)
			elog(ERROR, "table \"%s\" has no column \"%s\"", step->table, p->columns[i]);
		value = heap_getattr(row, at + 1, desc, &null);
		values[i] = null ? NULL : value_text(value, TupleDescAttr(desc, at)->atttypid);
	}
}

/* --- rows ------------------------------------------------------------------------- */

/* A table or an index of ours. */
Oid
aidb_own_relation(const char *name)
{
	Oid			id = get_relname_relid(name, get_namespace_oid("aidb_internal", false));

	if (!OidIsValid(id))
		elog(ERROR, "relation \"aidb_internal.%s\" does not exist", name);
	return id;
}

/*
 * Whether the index has what this snapshot sees.  One that was just built anew
 * may miss versions that an old snapshot still needs; then the table is read.
 */
static bool
usable(Relation index)
{
	return index->rd_index->indisvalid &&
		(!index->rd_index->indcheckxmin ||
		 TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin));
}

static bool
find(const LookupProgram *p, const LookupStep *step, const char *key_text, char **values)
{
	Relation	table = table_open(aidb_own_relation(step->table), AccessShareLock);
	Relation	index = index_open(aidb_own_relation(step->index), AccessShareLock);
	int			attribute = index->rd_index->indkey.values[0];
	Form_pg_attribute column = TupleDescAttr(RelationGetDescr(table), attribute - 1);
	Oid			type = column->atttypid;
	TypeCacheEntry *cache = lookup_type_cache(type, TYPECACHE_EQ_OPR_FINFO);
	ScanKeyData key;
	SysScanDesc scan;
	Datum		datum;
	HeapTuple	row;

	if (type == TEXTOID)
		datum = CStringGetTextDatum(key_text);
	else
	{
		Oid			input;
		Oid			param;

		getTypeInputInfo(type, &input, &param);
		datum = OidInputFunctionCall(input, (char *) key_text, param, -1);
	}
	ScanKeyEntryInitialize(&key, 0, attribute, BTEqualStrategyNumber, InvalidOid, column->attcollation,
						   cache->eq_opr_finfo.fn_oid, datum);
	scan = systable_beginscan(table, RelationGetRelid(index), usable(index), GetActiveSnapshot(), 1, &key);
	row = systable_getnext(scan);
	if (row)
		take(p, step, RelationGetDescr(table), row, values);
	systable_endscan(scan);
	index_close(index, NoLock);
	table_close(table, NoLock);
	return row != NULL;
}

/* A table that was never written, as most of these, costs no more than the look at its size. */
static bool
has_rows(const char *name)
{
	Relation	table = table_open(aidb_own_relation(name), AccessShareLock);
	bool		any = false;

	if (RelationGetNumberOfBlocks(table) > 0)
	{
		SysScanDesc scan = systable_beginscan(table, InvalidOid, false, GetActiveSnapshot(), 0, NULL);

		any = systable_getnext(scan) != NULL;
		systable_endscan(scan);
	}
	table_close(table, NoLock);
	return any;
}

/* False when there is no result. */
static bool
run_step(const LookupProgram *p, const LookupStep *step, int nargs, char **args, char **values)
{
	const char *key = NULL;
	bytea	   *newest;

	switch (step->kind)
	{
		case STEP_GET:
		case STEP_ROW:
			if (step->param >= nargs)
				elog(ERROR, "lookup has no parameter $%d", step->param + 1);
			key = step->param >= 0 ? args[step->param] : values[step->from];
			return (key && find(p, step, key, values)) || step->kind == STEP_ROW;
		case STEP_NEWEST:
			newest = aidb_newest_decision();
			values[step->first] = newest ? hexadecimal(PointerGetDatum(newest)) : NULL;
			break;
		case STEP_ANY:
			values[step->first] = has_rows(step->table) ? "t" : "f";
			break;
		case STEP_ROLENAME:
			if (values[step->from])
				values[step->first] = GetUserNameFromId(atooid(values[step->from]), true);
			break;
		case STEP_SETTING:
			values[step->first] = (char *) GetConfigOption(p->columns[step->first], true, false);
			break;
	}
	return true;
}

static bool
run_program(const LookupProgram *p, int nargs, char **args, char **values)
{
	bool		found = true;

	aidb_push_newest_snapshot();
	for (int i = 0; i < p->nsteps && found; i++)
		found = run_step(p, &p->steps[i], nargs, args, values);
	PopActiveSnapshot();
	return found;
}

/* Whether the row is there and is this one. */
bool
aidb_lookup_gives(const char *text, int nargs, char **args, int nvalues, char **expected)
{
	LookupProgram *p = aidb_lookup_program(text);
	char	   *values[LOOKUP_COLUMNS] = {NULL};

	if (!run_program(p, nargs, args, values) || p->ncols != nvalues)
		return false;
	for (int i = 0; i < nvalues; i++)
		if (values[i] == NULL || expected[i] == NULL ? values[i] != expected[i] : strcmp(values[i], expected[i]) != 0)
			return false;
	return true;
}

/* The reply is that of a statement (query.c): columns, names, rows, values. */
void
aidb_lookup(const char *text, int nargs, char **args, StringInfo reply)
{
	LookupProgram *p = aidb_lookup_program(text);
	char	   *values[LOOKUP_COLUMNS] = {NULL};
	bool		found = run_program(p, nargs, args, values);

	aidb_fields_int(reply, p->ncols);
	for (int i = 0; i < p->ncols; i++)
		aidb_fields_text(reply, p->names[i]);
	aidb_fields_int(reply, found ? 1 : 0);
	for (int i = 0; found && i < p->ncols; i++)
		aidb_fields_text(reply, values[i]);
}
