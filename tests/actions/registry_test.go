package actions

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemcp"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// arguments makes a value for each parameter that a tool declares, by its type alone. A text is a statement: to most tools
// that is a text like any other, and to those that take statements it is one.
func arguments(t *testing.T, params string) map[string]any {
	t.Helper()
	type parameter struct {
		Name, Type string
		Enum       []string
	}
	var declared []parameter
	if strings.HasPrefix(params, "{") { // the schema of an MCP server's tool
		var schema struct{ Properties map[string]parameter }
		require.NoError(t, json.Unmarshal([]byte(params), &schema))
		for name, p := range schema.Properties {
			p.Name = name
			declared = append(declared, p)
		}
	} else {
		require.NoError(t, json.Unmarshal([]byte(params), &declared))
	}
	args := map[string]any{}
	for _, p := range declared {
		switch kind := strings.ToLower(p.Type); {
		case len(p.Enum) > 0:
			args[p.Name] = p.Enum[0]
		case strings.HasSuffix(kind, "[]"):
			args[p.Name] = []any{}
		case strings.Contains(kind, "int"), strings.Contains(kind, "num"), kind == "real", strings.Contains(kind, "double"):
			args[p.Name] = 1
		case strings.Contains(kind, "bool"):
			args[p.Name] = true
		case strings.Contains(kind, "json"):
			args[p.Name] = map[string]any{}
		case strings.Contains(kind, "date"), strings.Contains(kind, "time"):
			args[p.Name] = "2026-11-30"
		case kind == "uuid":
			args[p.Name] = "01985c6e-0000-7000-8000-000000000000"
		default:
			args[p.Name] = "INSERT INTO public.registry (id) VALUES (1) ON CONFLICT DO NOTHING"
		}
	}
	return args
}

// registered is a writing tool as the catalog has it.
type registered struct {
	name, kind, function string
	args                 map[string]any
}

// The test that knows no tool by name: it walks the registry and tries on every tool that writes what must not succeed. A tool
// is covered the moment it is registered. The few made here are there so that the walk meets each kind of statement.
func TestEveryWritingTool(t *testing.T) {
	admin, ann, bob := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "bob")
	servertest.Exec(t, admin, `CREATE TABLE public.registry (id int PRIMARY KEY, note text); INSERT INTO public.registry SELECT generate_series(1, 3);
		CREATE ROLE registry_worker; GRANT registry_worker TO ann, bob;
		SELECT aidb.create_purpose('registry', 'registry_worker')`)
	sqlTool(t, "registry_update", "UPDATE public.registry SET note = 'x' WHERE id <= ${id} RETURNING id, note")
	sqlTool(t, "registry_delete", "DELETE FROM public.registry WHERE id = ${id}")
	sqlTool(t, "registry_insert", "INSERT INTO public.registry (id) SELECT max(id) + ${id} FROM public.registry")
	fake := fakemcp.Start()
	defer fake.Close()
	servertest.Exec(t, admin, "SELECT aidb.import_mcp_tools('registry', $1, tool_filter => '{echo}')", fake.URL("/mcp"))
	defer servertest.Exec(t, admin, "SELECT aidb.delete_tool('registry')")
	sqlTool(t, "registry_cte", "WITH d AS (DELETE FROM public.registry WHERE id = ${id} RETURNING id) SELECT * FROM d")

	var tools []registered
	for _, row := range servertest.Rows(t, admin, `SELECT t.name, t.tool_type, coalesce(n.function, '') AS function, t.params::text AS params
		FROM aidb.tools t LEFT JOIN aidb_internal.native_tools n USING (name) WHERE NOT t.read_only AND (t.tool_type <> 'native_tool' OR n.function IS NOT NULL) ORDER BY name`) {
		// those of other tests of this package stand on tables that are not of this one
		if row["tool_type"] == "sql_tool" && !strings.HasPrefix(row["name"].(string), "registry_") {
			continue
		}
		tools = append(tools, registered{row["name"].(string), row["tool_type"].(string), row["function"].(string), arguments(t, row["params"].(string))})
	}
	require.Greater(t, len(tools), 4)
	for _, tool := range tools {
		t.Run(tool.name, func(t *testing.T) { tryEverything(t, admin, ann, bob, tool) })
	}
}

func tryEverything(t *testing.T, admin, ann, bob *pgx.Conn, tool registered) {
	agent := "registry_of_" + tool.name
	servertest.Exec(t, admin, "SELECT aidb.classify_tool($1, 'confirm')", tool.name)
	defer servertest.Exec(t, admin, "SELECT aidb.classify_tool($1, CASE $1 WHEN 'execute_sql' THEN 'safe' END)", tool.name)
	permit := func() {
		servertest.Exec(t, admin, "GRANT registry_worker TO ann; GRANT SELECT, INSERT, UPDATE, DELETE ON public.registry TO registry_worker")
		if tool.kind == "mcp_tool" {
			servertest.Exec(t, admin, "SELECT aidb.update_purpose('registry', allowed_servers => '{*}')")
		}
		if tool.function != "" {
			servertest.Exec(t, admin, "GRANT EXECUTE ON FUNCTION "+tool.function+" TO registry_worker")
		}
	}
	lacks := "permission denied"
	if tool.kind == "mcp_tool" {
		lacks = "is not allowed for purpose"
	}
	forbid := func() {
		if tool.kind == "mcp_tool" { // what stands for a privilege
			servertest.Exec(t, admin, "SELECT aidb.update_purpose('registry', allowed_servers => '{}')")
		}
		servertest.Exec(t, admin, "REVOKE ALL ON public.registry FROM registry_worker")
		if tool.function != "" {
			servertest.Exec(t, admin, "REVOKE EXECUTE ON FUNCTION "+tool.function+" FROM registry_worker")
		}
	}
	state := func() string {
		return servertest.Value(t, admin, "SELECT coalesce(string_agg(r::text, ' ' ORDER BY id), '') FROM public.registry r")
	}
	server.Agent(t, ann, agent, []string{tool.name}, fakemodel.Say("unused"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent($1, purpose => 'registry')", agent)
	ask := func(args any, more ...string) string {
		t.Helper()
		server.Model.Script(agent, fakemodel.Call(tool.name, args), fakemodel.Say("?"))
		servertest.MustAsk(t, ann, agent, "go", more...)
		return lastResult(t, agent)
	}
	propose := func() pending {
		t.Helper()
		require.Contains(t, ask(tool.args), "awaiting_confirmation")
		return theOne(t, ann)
	}
	refused := func(what string, err error) {
		t.Helper()
		require.Equal(t, "42501", servertest.State(err), what)
	}
	before := state()

	permit()
	servertest.Exec(t, admin, "REVOKE registry_worker FROM ann")
	require.Contains(t, ask(tool.args), "not a member", "a caller without membership")
	require.Contains(t, ask(map[string]any{"no such": 1}), "not a member", "and without a word about the arguments")
	permit()
	forbid()
	require.Contains(t, ask(tool.args), lacks, "a member without the privilege")
	require.Contains(t, ask(map[string]any{"no such": 1}), lacks, "and without a word about the arguments")
	permit()
	server.Model.Script(agent, fakemodel.Call(tool.name, tool.args), fakemodel.Say("?"))
	servertest.MustAsk(t, ann, agent, "go", "read_only => true")
	require.False(t, server.Model.Requests(agent)[len(server.Model.Requests(agent))-1].Offers(tool.name), "a read-only run")
	require.Empty(t, waiting(t, ann))
	require.Equal(t, before, state())

	p := propose()
	require.Equal(t, before, state(), "a preview leaves nothing")
	_, err := confirm(t, bob, p)
	refused("another person's token", err)
	_, err = confirm(t, ann, pending{p.id, p.token + "x"})
	refused("a wrong token", err)
	_, err = confirm(t, ann, pending{"01985c6e-0000-7000-8000-000000000000", p.token})
	refused("the token of another action", err)

	// a confirmation from inside a tool call, by whoever may do anything there
	servertest.Exec(t, admin, "CREATE OR REPLACE FUNCTION public.registry_yes(a uuid, k text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM aidb.confirm_action(a, k) $$")
	for _, sql := range []string{
		"SELECT * FROM aidb.confirm_action('" + p.id + "', '" + p.token + "')", "SELECT public.registry_yes('" + p.id + "', '" + p.token + "')",
	} {
		_, err = ann.Exec(t.Context(), "SELECT aidb.execute_sql($1)", sql)
		refused("from inside a tool call", err)
	}
	require.Equal(t, before, state())

	forbid()
	list := mustConfirm(t, ann, p)
	require.Equal(t, "DENIED", list[0].Status, "a permission dropped between preview and yes")
	require.Contains(t, list[0].err(), "no longer permitted")
	permit()
	_, err = confirm(t, ann, p)
	refused("a used token", err)

	p = propose()
	servertest.Exec(t, admin, "UPDATE aidb_internal.actions SET expires_at = clock_timestamp() WHERE id = $1::uuid", p.id)
	_, err = confirm(t, ann, p)
	require.Equal(t, "55000", servertest.State(err), "a stale token")

	for what, change := range map[string][2]string{
		"forbidden since":    {"SELECT aidb.classify_tool('" + tool.name + "', 'forbidden')", "SELECT aidb.classify_tool('" + tool.name + "', 'confirm')"},
		"switched off since": {"ALTER SYSTEM SET aidb.actions = off", "ALTER SYSTEM RESET aidb.actions"},
		"disabled since":     {"SELECT * FROM aidb.update_agent('" + agent + "', enabled => false)", "SELECT * FROM aidb.update_agent('" + agent + "', enabled => true)"},
		"taken away since":   {"SELECT * FROM aidb.update_agent('" + agent + "', reset => '{tools}')", "SELECT * FROM aidb.update_agent('" + agent + "', tools => ARRAY['" + tool.name + "'])"},
		"purpose retired":    {"SELECT aidb.delete_purpose('registry')", "SELECT aidb.create_purpose('registry', 'registry_worker')"},
	} {
		p = propose()
		apply(t, admin, change[0])
		require.Equal(t, "DENIED", mustConfirm(t, server.Conn(t, "ann"), p)[0].Status, what)
		apply(t, admin, change[1])
	}
	require.Equal(t, before, state(), "nothing of all that has had an effect")

	p = propose()
	require.Equal(t, "SUCCESS", mustConfirm(t, ann, p)[0].Status)
	require.NotContains(t, strings.Join(keptTexts(t, admin, p.id), " "), p.token)
}

// apply runs a statement, and waits until a changed setting is everybody's.
func apply(t *testing.T, admin *pgx.Conn, sql string) {
	t.Helper()
	if !strings.HasPrefix(sql, "ALTER SYSTEM") {
		servertest.Exec(t, admin, sql)
		return
	}
	servertest.Exec(t, admin, "LOAD 'aidb'")
	servertest.Exec(t, admin, sql)
	want := "on"
	if strings.HasSuffix(sql, "off") {
		want = "off"
	}
	servertest.Exec(t, admin, "SELECT pg_reload_conf()")
	require.True(t, cluster.Wait(time.Minute, func() bool {
		return servertest.Value(t, admin, "SELECT current_setting('aidb.actions')") == want
	}), "the setting does not change")
}

// keptTexts is what is kept of an action, but for its token's own table.
func keptTexts(t *testing.T, admin *pgx.Conn, id string) []string {
	t.Helper()
	var list []string
	for _, row := range servertest.Rows(t, admin, "SELECT a::text AS text FROM aidb_internal.actions a WHERE id = $1::uuid", id) {
		list = append(list, row["text"].(string))
	}
	return list
}
