package tool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// A hint that does not fit is said when the tool is registered, and kept. Nothing is looked up for a tool that writes.
func TestCreateSQLTool_WarnsOfAHintThatDoesNotFit(t *testing.T) {
	require.NoError(t, fixture())
	ann, notices := server.ConnNoting(t, "ann")
	servertest.Exec(t, server.Admin(t), "CREATE TABLE public.hinted (a integer, \"B c\" text); GRANT ALL ON public.hinted TO ann")
	const none = "" // no warning
	cases := []struct{ statement, readOnly, hint, warned, detail string }{
		{"SELECT 1 AS a, 2 AS b", "true", "a b", none, none},
		{"SELECT 1 AS a, 2 AS b", "true", "b", none, none},
		{"SELECT 1 AS a, 2 AS b", "true", "c a d", "'c', 'd'", "'a', 'b'"},
		{"SELECT 1 AS a", "true", "A", "'A'", "'a'"},
		{"SELECT * FROM public.hinted", "true", "a x", "'x'", "'a', 'B c'"},
		{"SELECT h.* FROM public.hinted h JOIN (SELECT 1 AS n) m ON true", "true", "n", "'n'", "'a', 'B c'"},
		{"SELECT (h).* FROM public.hinted h ORDER BY h.a + 1", "true", "a", none, none},
		{"SELECT count(*), lower('X'), 1::bigint, 'x' FROM public.hinted", "true", "count lower int8 ?column?", none, none},
		{"SELECT", "true", "a", "'a'", none},
		{"VALUES (1, 2)", "true", "column2 column3", "'column3'", "'column1', 'column2'"},
		{"(SELECT 1 AS a UNION SELECT 2 AS b) EXCEPT SELECT 3 AS c", "true", "a b", "'b'", "'a'"},
		{"EXPLAIN SELECT 1 AS a", "true", "a", "'a'", "'QUERY PLAN'"},

		{"SELECT 1 AS a, max(x.y), x.z FROM nowhere.x", "false", "a max z y", "'y'", "'a', 'max', 'z'"},
		{"SELECT * FROM nowhere.x", "false", "anything", none, none},
		{"SELECT x.*, 1 AS a FROM nowhere.x", "false", "anything", none, none},
		{"SELECT (x).*, 1 AS a FROM nowhere.x", "false", "anything", none, none},
		{"(VALUES (1), (2) UNION ALL SELECT x FROM nowhere.x) LIMIT 1", "false", "column1 x", "'x'", "'column1'"},
		{"INSERT INTO nowhere.x VALUES (1) RETURNING id, b AS c", "false", "id b", "'b'", "'id', 'c'"},
		{"UPDATE nowhere.x SET a = 1 RETURNING *", "false", "anything", none, none},
		{"WITH d AS (DELETE FROM nowhere.x RETURNING id) SELECT count(*) AS n FROM d", "false", "id", "'id'", "'n'"},
		{"DELETE FROM nowhere.x RETURNING id", "false", "id", none, none},
		{"UPDATE nowhere.x SET a = 1", "false", "a", "'a'", "'rows_affected'"},
		{"DELETE FROM nowhere.x", "false", "rows_affected", none, none},
		{"EXPLAIN DELETE FROM nowhere.x RETURNING id", "false", "id", "'id'", "'QUERY PLAN'"},
	}
	hint := `return_type_hint => (SELECT jsonb_agg(aidb.tool_param(n, 'text', 'x')) FROM unnest(string_to_array('%s', ' ')) n)`
	for i, c := range cases {
		notices.Reset()
		name := fmt.Sprintf("hinted_%d", i)
		create(t, ann, name, c.statement, "", "read_only => "+c.readOnly, fmt.Sprintf(hint, c.hint))
		if c.warned == none {
			require.Empty(t, notices.Lines("WARNING"), c.statement)
			continue
		}
		require.Equal(t, []string{"return_type_hint names columns that the statement does not return: " + c.warned}, notices.Lines("WARNING"), c.statement)
		if c.detail == none {
			c.detail = "no columns"
		}
		require.Equal(t, []string{"It returns " + c.detail + "."}, notices.Details("WARNING"), c.statement)
	}

	// It is kept as it was given, and looked at again with the statement.
	require.Equal(t, "c a d", servertest.Value(t, ann,
		"SELECT string_agg(h.name, ' ') FROM aidb.sql_tool_registry, unnest(return_type_hint) h WHERE sql_tool_registry.name = 'hinted_2'"))
	notices.Reset()
	servertest.Exec(t, ann, "SELECT aidb.update_sql_tool('hinted_2', sql_statement => 'SELECT 1 AS a, 2 AS c')")
	require.Equal(t, []string{"return_type_hint names columns that the statement does not return: 'd'"}, notices.Lines("WARNING"))
	notices.Reset()
	servertest.Exec(t, ann, "SELECT aidb.update_sql_tool('hinted_2', reset => '{return_type_hint}')")
	require.Empty(t, notices.Lines("WARNING"))

	for _, bad := range []string{`{}`, `"a"`, `["a"]`, `[null]`, `[1]`, `[{"name": "a"}]`, `[{"type": "text"}]`, `[{"name": 1, "type": "text"}]`} {
		require.Contains(t, refused(t, ann, "22023", "SELECT aidb.create_sql_tool('hinted_badly', '', 'SELECT 1 AS a', '[]', return_type_hint => $1::jsonb)", bad),
			"Invalid parameters: return_type_hint must be an array made by aidb.tool_params()", bad)
	}
	servertest.Exec(t, ann, `SELECT aidb.delete_tool(name) FROM aidb.sql_tool_registry WHERE name LIKE 'hinted\_%'`)
}
