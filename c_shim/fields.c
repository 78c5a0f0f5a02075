/*
 * fields.c
 *		Writing and reading the body of a message (see bridge.h for the format).
 */
#include "aidb.h"

#include "catalog/namespace.h"
#include "mb/pg_wchar.h"

/* --- encodings: Go knows UTF-8 only ------------------------------------------ */

/* Bytes of SQL_ASCII have no meaning that could be converted. */
static bool
is_utf8_database(void)
{
	return GetDatabaseEncoding() == PG_UTF8 || GetDatabaseEncoding() == PG_SQL_ASCII;
}

/*
 * Text of Go in the database's encoding.  A model writes what it likes: what the
 * encoding does not have becomes a question mark, as nothing of it is worth an
 * error in the middle of a conversation.
 */
static char *
from_utf8(const char *text, int len)
{
	int			encoding = GetDatabaseEncoding();
	Oid			proc = FindDefaultConversionProc(PG_UTF8, encoding);
	StringInfoData out;
	char	   *piece;
	Size		room = (Size) len * MAX_CONVERSION_GROWTH + 1;

	if (!OidIsValid(proc))
		elog(ERROR, "no conversion from UTF8 to %s", pg_encoding_to_char(encoding));
	piece = MemoryContextAllocHuge(CurrentMemoryContext, room);
	initStringInfo(&out);
	for (const char *at = text; at < text + len;)
	{
		int			left = (int) (text + len - at);
		int			done = pg_do_encoding_conversion_buf(proc, PG_UTF8, encoding, (unsigned char *) at, left,
														 (unsigned char *) piece, (int) Min(room, INT_MAX), true);

		appendStringInfoString(&out, piece);
		at += done;
		if (done < left)
		{
			appendStringInfoChar(&out, '?');
			at += Min(pg_utf_mblen((const unsigned char *) at), text + len - at);
		}
	}
	pfree(piece);
	return out.data;
}

/* --- writing ------------------------------------------------------------------- */

/* Starts a list of fields; the count is kept up to date as fields are put. */
void
aidb_fields_begin(StringInfo buf)
{
	int32		zero = 0;

	resetStringInfo(buf);
	appendBinaryStringInfo(buf, (const char *) &zero, sizeof(zero));
}

/* Bytes that are no text but fields themselves. */
void
aidb_fields_raw(StringInfo buf, const char *bytes, int len)
{
	int32		n = bytes ? len : -1;
	int32		count;

	appendBinaryStringInfo(buf, (const char *) &n, sizeof(n));
	if (bytes)
		appendBinaryStringInfo(buf, bytes, len);
	memcpy(&count, buf->data, sizeof(count));
	count++;
	memcpy(buf->data, &count, sizeof(count));
}

/* Text, in the database's encoding. */
void
aidb_fields_put(StringInfo buf, const char *text, int len)
{
	char	   *converted;

	if (text == NULL || len == 0 || is_utf8_database())
	{
		aidb_fields_raw(buf, text, len);
		return;
	}
	converted = pg_server_to_any(text, len, PG_UTF8);
	aidb_fields_raw(buf, converted, converted == text ? len : (int) strlen(converted));
	if (converted != text)
		pfree(converted);
}

void
aidb_fields_text(StringInfo buf, const char *text)
{
	aidb_fields_put(buf, text, text ? (int) strlen(text) : 0);
}

void
aidb_fields_int(StringInfo buf, int64 value)
{
	char		text[32];

	snprintf(text, sizeof(text), INT64_FORMAT, value);
	aidb_fields_text(buf, text);
}

void
aidb_fields_bool(StringInfo buf, bool value)
{
	aidb_fields_text(buf, value ? "t" : "f");
}

/* --- reading ------------------------------------------------------------------- */

void
aidb_read_begin(AidbReader *r, const AidbMsg *m)
{
	int32		count;

	r->at = m->data;
	r->end = m->data + m->len;
	if (m->len < sizeof(count))
		elog(ERROR, "message %u of the Go library has no fields", m->kind);
	memcpy(&count, r->at, sizeof(count));
	r->at += sizeof(count);
	r->left = count;
}

/*
 * The next field as a zero-terminated string in the current memory context.
 * A field that is not there is a fault of the Go library, hence elog.
 */
char *
aidb_read_text(AidbReader *r)
{
	int32		n;
	char	   *text;

	if (r->left <= 0 || (size_t) (r->end - r->at) < sizeof(n))
		elog(ERROR, "message of the Go library is too short");
	memcpy(&n, r->at, sizeof(n));
	r->at += sizeof(n);
	r->left--;
	if (n < 0)
		return NULL;
	if (n > r->end - r->at)
		elog(ERROR, "message of the Go library is cut off");
	text = palloc((Size) n + 1);
	memcpy(text, r->at, n);
	text[n] = '\0';
	r->at += n;
	if (n > 0 && !is_utf8_database())
	{
		char	   *converted = from_utf8(text, n);

		pfree(text);
		return converted;
	}
	return text;
}

int64
aidb_read_int(AidbReader *r)
{
	char	   *text = aidb_read_text(r);

	return text ? strtoll(text, NULL, 10) : 0;
}

bool
aidb_read_bool(AidbReader *r)
{
	char	   *text = aidb_read_text(r);

	return text && text[0] == 't';
}
