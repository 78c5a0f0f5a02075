// Package refgen writes the pages of docs/reference that come from the catalog: functions.md, tools.md and views.md. What
// an entry says is the comment of the object in the database, so there is one text for \df+ and for the page; its example
// is run here, and the page shows what came.
package refgen

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// argument is one argument of a function, or a column of its result.
type argument struct {
	Name, Type string
	Default    string // "" is none
	Mode       string // i (in), v (variadic), t (column of the result)
}

// function is one function of schema aidb.
type function struct {
	Name, Result, Comment, Symbol string
	Volatile                      bool
	Granted                       []string
	Args, Columns                 []argument
}

const functionsSQL = `
SELECT p.oid, p.proname, coalesce(pg_get_function_result(p.oid), 'void'), coalesce(obj_description(p.oid, 'pg_proc'), ''), p.prosrc,
       p.provolatile = 'v',
       ARRAY(SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'everybody' ELSE a.grantee::regrole::text END
             FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee <> p.proowner ORDER BY 1)
FROM pg_proc p WHERE p.pronamespace = 'aidb'::regnamespace ORDER BY p.proname, p.oid`

const argumentsSQL = `
SELECT coalesce(p.proargnames[n], '$' || n), format_type(t, NULL), coalesce(pg_get_function_arg_default(p.oid, n::int), ''),
       coalesce(p.proargmodes[n]::text, 'i')
FROM pg_proc p, unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY u (t, n)
WHERE p.oid = $1 ORDER BY n`

func loadFunctions(ctx context.Context, conn *pgx.Conn) ([]function, error) {
	rows, err := conn.Query(ctx, functionsSQL)
	if err != nil {
		return nil, err
	}
	var list []function
	var ids []uint32
	var f function
	var oid uint32
	if _, err := pgx.ForEachRow(rows, []any{&oid, &f.Name, &f.Result, &f.Comment, &f.Symbol, &f.Volatile, &f.Granted}, func() error {
		list, ids = append(list, f), append(ids, oid)
		f.Granted = nil
		return nil
	}); err != nil {
		return nil, fmt.Errorf("reading the functions: %w", err)
	}
	for i := range list {
		rows, err := conn.Query(ctx, argumentsSQL, ids[i])
		if err != nil {
			return nil, err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[argument])
		if err != nil {
			return nil, fmt.Errorf("reading the arguments of %s: %w", list[i].Name, err)
		}
		for _, a := range all {
			if a.Mode == "t" || a.Mode == "o" {
				list[i].Columns = append(list[i].Columns, a)
				continue
			}
			list[i].Args = append(list[i].Args, a)
		}
	}
	return list, nil
}

// relation is a view or table that somebody besides its owner may read.
type relation struct {
	Name, Kind, Comment string
	Granted             []string
	Columns             []column
}

type column struct{ Name, Type, Comment string }

const relationsSQL = `
SELECT c.oid, n.nspname || '.' || c.relname, CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, coalesce(obj_description(c.oid, 'pg_class'), ''),
       ARRAY(SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'everybody' ELSE a.grantee::regrole::text END
             FROM aclexplode(acl.rel) a WHERE a.grantee <> c.relowner AND a.privilege_type = 'SELECT' ORDER BY 1)
FROM pg_class c
CROSS JOIN LATERAL (SELECT nullif(c.relacl || ARRAY(SELECT DISTINCT unnest(t.attacl) FROM pg_attribute t WHERE t.attrelid = c.oid), '{}')) acl (rel)
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('aidb', 'aidb_internal', 'aidb_otel') AND c.relkind IN ('v', 'r', 'p')
  AND EXISTS (SELECT FROM aclexplode(acl.rel) a WHERE a.grantee <> c.relowner AND a.privilege_type = 'SELECT')
ORDER BY n.nspname, c.relname`

const columnsSQL = `
SELECT a.attname, format_type(a.atttypid, a.atttypmod), coalesce(col_description(a.attrelid, a.attnum), '')
FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

func loadRelations(ctx context.Context, conn *pgx.Conn) ([]relation, error) {
	rows, err := conn.Query(ctx, relationsSQL)
	if err != nil {
		return nil, err
	}
	var list []relation
	var ids []uint32
	var r relation
	var oid uint32
	if _, err := pgx.ForEachRow(rows, []any{&oid, &r.Name, &r.Kind, &r.Comment, &r.Granted}, func() error {
		list, ids = append(list, r), append(ids, oid)
		r.Granted = nil
		return nil
	}); err != nil {
		return nil, fmt.Errorf("reading the views: %w", err)
	}
	for i := range list {
		rows, err := conn.Query(ctx, columnsSQL, ids[i])
		if err != nil {
			return nil, err
		}
		if list[i].Columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[column]); err != nil {
			return nil, fmt.Errorf("reading the columns of %s: %w", list[i].Name, err)
		}
	}
	return list, nil
}

// enum is an enumeration of the interface, or a composite type, whose fields are its labels.
type enum struct {
	Name, Comment string
	Labels        []string
	Composite     bool
}

const enumsSQL = `
SELECT n.nspname || '.' || t.typname, coalesce(obj_description(t.oid, 'pg_type'), ''),
       CASE t.typtype
           WHEN 'e' THEN ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
           ELSE ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
                      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
       END,
       t.typtype = 'c'
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE n.nspname = 'aidb' AND (t.typtype = 'e' OR c.relkind = 'c') ORDER BY 1`

func loadEnums(ctx context.Context, conn *pgx.Conn) ([]enum, error) {
	rows, err := conn.Query(ctx, enumsSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[enum])
}

// nativeTool is a row of aidb.tools with the function that a role needs EXECUTE on.
type nativeTool struct {
	Name, Description, Type string
	ReadOnly                bool
	Function                string
	Params                  []param
}

type param struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	Default     any      `json:"default"`
	Enum        []string `json:"enum"`
}

const toolsSQL = `
SELECT t.name, t.description, t.tool_type, t.read_only, coalesce(n.function, ''), t.params
FROM aidb.tools t LEFT JOIN aidb_internal.native_tools n ON n.name = t.name WHERE t.tool_type = 'native_tool'`

func loadTools(ctx context.Context, conn *pgx.Conn) ([]nativeTool, error) {
	rows, err := conn.Query(ctx, toolsSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[nativeTool])
}

// cell is a text inside a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
