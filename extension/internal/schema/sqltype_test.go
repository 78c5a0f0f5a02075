package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSQLType(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][3]any{
		"TEXT": {String, "", true}, " Varchar(20) ": {String, "", true}, "pg_catalog.int4": {Integer, "", true}, "BIGINT": {Integer, "", true},
		"FLOAT": {Number, "", true}, "double precision": {Number, "", true}, "numeric(10,2)": {Number, "", true},
		"BOOLEAN": {Boolean, "", true}, "jsonb": {Anything, "", true}, "array": {Array, Anything, true}, "object": {Object, "", true},
		"date": {String, "", true}, "timestamp(3) with time zone": {String, "", true}, "timestamp with time zone": {String, "", true},
		"int[]": {Array, Integer, true}, "int[3]": {Array, Integer, true}, "int[][]": {Array, Anything, true}, "jsonb[]": {Array, Anything, true},
		"mood": {String, "", false}, "mood[]": {Array, String, false}, "list of things": {String, "", false}, "": {String, "", false}, "[]": {String, "", false},
	} {
		kind, items, known := SQLType(name)
		require.Equal(t, want, [3]any{kind, items, known}, name)
	}
}
