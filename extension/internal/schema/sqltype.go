package schema

import "strings"

// The JSON types. Anything is no type at all: every value fits.
const (
	Anything = ""
	String   = "string"
	Number   = "number"
	Integer  = "integer"
	Boolean  = "boolean"
	Array    = "array"
	Object   = "object"
)

// SQLType maps an SQL type name, or one of the words that people write instead, to the JSON type of its values, and of
// its elements when it is an array. known is false for a name that is neither; kind is then String, because most types
// (enums, domains, types of extensions) travel as their text.
func SQLType(name string) (kind, items string, known bool) {
	s := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "pg_catalog.")
	if i := strings.LastIndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") {
		items, _, known = SQLType(s[:i])
		if items == Array {
			// int[][] and int[] are one type to PostgreSQL; the nesting is the value's.
			items = Anything
		}
		return Array, items, known
	}
	if i := strings.IndexByte(s, '('); i > 0 {
		// numeric(10,2), varchar(20), timestamp(3) with time zone
		s = strings.TrimSpace(s[:i])
	}
	switch s {
	case "smallint", "int", "integer", "bigint", "int2", "int4", "int8", "oid":
		return Integer, "", true
	case "numeric", "decimal", "real", "float", "float4", "float8", "double precision", "double", "number":
		return Number, "", true
	case "bool", "boolean":
		return Boolean, "", true
	case "json", "jsonb", "any":
		return Anything, "", true
	case "array", "list":
		return Array, Anything, true
	case "object":
		return Object, "", true
	case "text", "string", "varchar", "character varying", "char", "character", "bpchar", "name", "citext", "uuid", "bytea",
		"date", "time", "timetz", "timestamp", "timestamptz", "interval", "time without time zone", "time with time zone",
		"timestamp without time zone", "timestamp with time zone", "datetime", "inet", "cidr", "xml":
		return String, "", true
	}
	return String, "", false
}
