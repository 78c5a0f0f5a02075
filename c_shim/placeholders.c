/*
 * placeholders.c
 *		Finds ${name} in a SQL tool's statement, with PostgreSQL's own scanner.
 *
 * Only the scanner knows what is a literal, a quoted identifier, a comment or a
 * dollar-quoted body; a placeholder inside one of those is text and stays what
 * it is.  The others become $1, $2, ...: bound parameters, never pasted text.
 */
#include "aidb.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/keywords.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "parser/scanner.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(aidb_placeholders);

#define MAX_PARAMETERS 100

typedef struct Found
{
	int			n;
	char	   *names[MAX_PARAMETERS];
	StringInfoData sql;			/* the statement with $n */
	StringInfoData ignored;		/* names that stand inside literals and comments */
} Found;

static int
number_of(Found *f, const char *name)
{
	for (int i = 0; i < f->n; i++)
		if (strcmp(f->names[i], name) == 0)
			return i + 1;
	if (f->n == MAX_PARAMETERS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a SQL tool takes at most %d parameters", MAX_PARAMETERS)));
	f->names[f->n] = pstrdup(name);
	return ++f->n;
}

/* The length of ${name} at this place, or 0; the name is copied. */
static int
placeholder_at(const char *s, char *name, int room)
{
	int			n = 0;

	if (s[0] != '$' || s[1] != '{')
		return 0;
	while ((s[2 + n] >= 'a' && s[2 + n] <= 'z') || (s[2 + n] >= 'A' && s[2 + n] <= 'Z') ||
		   s[2 + n] == '_' || (n > 0 && s[2 + n] >= '0' && s[2 + n] <= '9'))
		n++;
	if (n == 0 || n >= room || s[2 + n] != '}')
		return 0;
	memcpy(name, s + 2, n);
	name[n] = '\0';
	return n + 3;
}

/* Text that the scanner passed over as one token or as nothing. */
static void
note_ignored(Found *f, const char *from, const char *to)
{
	char		name[NAMEDATALEN];

	for (const char *s = from; s < to; s++)
		if (placeholder_at(s, name, sizeof(name)) > 0)
			appendStringInfo(&f->ignored, "%s%s", f->ignored.len ? ", " : "", name);
}

static void
scan(const char *text, Found *f)
{
	core_yy_extra_type extra;
	core_yyscan_t scanner = scanner_init(text, &extra, &ScanKeywords, ScanKeywordTokens);
	const char *done = text;	/* everything before it is copied */

	for (;;)
	{
		core_YYSTYPE value;
		YYLTYPE		at;
		char		name[NAMEDATALEN];
		int			token = core_yylex(&value, &at, scanner);
		int			len;

		if (token == 0)
			break;
		if (text[at] == '$' && text[at + 1] >= '0' && text[at + 1] <= '9')
			ereport(ERROR,
					(errcode(ERRCODE_SYNTAX_ERROR),
					 errmsg("a SQL tool has no numbered parameters"),
					 errhint("Write ${name} and declare it in params.")));
		if (token != '$' || text + at < done)
			continue;			/* a part of a placeholder that was taken already */
		len = placeholder_at(text + at, name, sizeof(name));
		if (len == 0)
			continue;			/* the parser will say what is wrong with it */
		note_ignored(f, done, text + at);
		appendBinaryStringInfo(&f->sql, done, text + at - done);
		appendStringInfo(&f->sql, "$%d", number_of(f, name));
		done = text + at + len;
		/* ${a}b must not become $1b */
		if ((unsigned char) *done > 127 || *done == '_' || *done == '$' || (*done >= '0' && *done <= '9') ||
			(*done >= 'a' && *done <= 'z') || (*done >= 'A' && *done <= 'Z'))
			appendStringInfoChar(&f->sql, ' ');
	}
	note_ignored(f, done, text + strlen(text));
	appendStringInfoString(&f->sql, done);
	scanner_finish(scanner);
}

/* The statement without the white space and the one semicolon at its end. */
static char *
trimmed(char *sql)
{
	int			n = strlen(sql);

	while (n > 0 && strchr(" \t\r\n\f\v", sql[n - 1]))
		n--;
	if (n > 0 && sql[n - 1] == ';')
		n--;
	while (n > 0 && strchr(" \t\r\n\f\v", sql[n - 1]))
		n--;
	sql[n] = '\0';
	return sql;
}

/* (text) -> (source text, statement text, names text[], ignored text) */
Datum
aidb_placeholders(PG_FUNCTION_ARGS)
{
	char	   *source = trimmed(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	Found		f = {0};
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {false};
	Datum		names[MAX_PARAMETERS];
	ErrorContextCallback callback = {.previous = error_context_stack,.callback = aidb_error_in_text,.arg = source};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "aidb_placeholders must return a row");
	initStringInfo(&f.sql);
	initStringInfo(&f.ignored);
	error_context_stack = &callback;
	scan(source, &f);
	error_context_stack = callback.previous;
	for (int i = 0; i < f.n; i++)
		names[i] = CStringGetTextDatum(f.names[i]);
	values[0] = CStringGetTextDatum(source);
	values[1] = CStringGetTextDatum(f.sql.data);
	values[2] = PointerGetDatum(construct_array(names, f.n, TEXTOID, -1, false, TYPALIGN_INT));
	values[3] = CStringGetTextDatum(f.ignored.data);
	nulls[3] = f.ignored.len == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
