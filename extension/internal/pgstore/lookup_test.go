package pgstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/spi"
)

// lookup does over a client connection what the main thread does for a text that begins with LOOKUP: see lookup.c, which
// says what the steps are. It reads the rows by SELECT, so that the two can be compared.
func (c *connection) lookup(ctx context.Context, s spi.Statement) spi.Rows {
	var row []*string
	named := map[string]*string{}
	for _, line := range strings.Split(s.SQL, "\n")[1:] {
		words := strings.Split(line, " ")
		kind, words := words[0], words[1:]
		var found []*string
		switch kind {
		case "get", "row":
			key, ok := named[words[2]]
			if n, err := strconv.Atoi(strings.TrimPrefix(words[2], "$")); err == nil {
				key, ok = text(s.Args[n-1]), true
			}
			require.True(c.t, ok, line)
			found = c.one(ctx, c.selection(ctx, words[0], words[1], words[3:]), key)
			if found == nil && kind == "get" {
				return spi.Rows{}
			}
			if found == nil {
				found = make([]*string, len(words)-3)
			}
			words = words[3:]
		case "newest":
			found = c.one(ctx, "SELECT encode((SELECT hash FROM aidb_internal.decision_log ORDER BY at DESC, decision_id DESC LIMIT 1), 'hex')")
		case "any":
			found = c.one(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM aidb_internal.%s)", words[0]))
		case "rolename":
			found = c.one(ctx, "SELECT pg_get_userbyid($1::oid)", named[words[0]])
		case "setting":
			found = c.one(ctx, "SELECT current_setting($1)", &words[0])
		default:
			require.Fail(c.t, "no such step", line)
		}
		for i, value := range found {
			column, name, renamed := strings.Cut(words[i], "=")
			if !renamed {
				name = column
			}
			if _, first := named[name]; !first {
				named[name] = value
			}
			row = append(row, value)
		}
	}
	return spi.Rows{Values: [][]*string{row}}
}

// selection is the SELECT of columns of the row of a table whose key in an index is $1.
func (c *connection) selection(ctx context.Context, table, index string, columns []string) string {
	key := c.one(ctx, `SELECT attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE i.indexrelid = ('aidb_internal.' || $1)::regclass`, &index)
	require.NotNil(c.t, key, index)
	var list []string
	for _, column := range columns {
		column, _, _ = strings.Cut(column, "=")
		kind := c.one(ctx, `SELECT atttypid::regtype::text FROM pg_attribute
			WHERE attrelid = ('aidb_internal.' || $1)::regclass AND attname = $2 AND NOT attisdropped`, &table, &column)
		require.NotNil(c.t, kind, "%s.%s", table, column)
		switch *kind[0] {
		case "text[]":
			column = "to_jsonb(" + column + ")"
		case "timestamp with time zone":
			column = "to_jsonb(" + column + ") #>> '{}'"
		case "regrole":
			column += "::oid"
		case "bytea":
			column = "encode(" + column + ", 'hex')"
		}
		list = append(list, column)
	}
	return fmt.Sprintf("SELECT %s FROM aidb_internal.%s WHERE %s::text = $1", strings.Join(list, ", "), table, *key[0])
}

// one is the first row of a statement, nil without one.
func (c *connection) one(ctx context.Context, sql string, args ...*string) []*string {
	statement := spi.Statement{SQL: sql}
	for _, a := range args {
		if a == nil {
			statement.Args = append(statement.Args, nil)
		} else {
			statement.Args = append(statement.Args, *a)
		}
	}
	rows, err := c.Batch(ctx, statement)
	require.NoError(c.t, err, sql)
	if len(rows[0].Values) == 0 {
		return nil
	}
	return rows[0].Values[0]
}

func text(v any) *string {
	if s, ok := v.(string); ok {
		return &s
	}
	return nil
}
