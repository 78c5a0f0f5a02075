/*
 * fields.c
 *		Writing and reading the body of a message (see bridge.h for the format).
 */
#include "aidb.h"

/* Starts a list of fields; the count is kept up to date as fields are put. */
void
aidb_fields_begin(StringInfo buf)
{
	int32		zero = 0;

	resetStringInfo(buf);
	appendBinaryStringInfo(buf, (const char *) &zero, sizeof(zero));
}

void
aidb_fields_put(StringInfo buf, const char *bytes, int len)
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
