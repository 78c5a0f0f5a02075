package tasks

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// The switch and a disabled agent stop a task that runs: its next tool call is refused. What waits for a person is refused
// when they say yes.
func TestSwitch_StopsARunningTask(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `LOAD 'aidb'; CREATE TABLE public.lights (n int); GRANT ALL ON public.lights TO ann;
		SELECT aidb.create_sql_tool('lights_add', 'adds', 'INSERT INTO public.lights VALUES (${n})', aidb.tool_params(aidb.tool_param('n', 'int', 'n')),
			read_only => false, risk => 'safe')`)
	till(t, admin, "night")
	server.Agent(t, ann, "night", []string{"night_add"}, add("night", 1), fakemodel.Say("x"))
	server.Agent(t, ann, "lights", []string{"lights_add"}, fakemodel.Say("unused"))
	waiting := submit(t, ann, "night", "go")
	a := asked(t, ann, waiting)
	set := func(sql, want string) {
		servertest.Exec(t, admin, sql)
		servertest.Exec(t, admin, "SELECT pg_reload_conf()")
		require.True(t, cluster.Wait(patience, func() bool { return servertest.Value(t, admin, "SELECT current_setting('aidb.actions')") == want }))
	}
	defer set("ALTER SYSTEM RESET aidb.actions", "on")
	for _, c := range [][2]string{
		{"ALTER SYSTEM SET aidb.actions = off", "actions are switched off"},
		{"SELECT * FROM aidb.update_agent('lights', enabled => false)", "agent 'lights' is disabled"},
	} {
		change, want := c[0], c[1]
		if strings.HasPrefix(change, "SELECT") {
			set("ALTER SYSTEM RESET aidb.actions", "on")
		}
		refused := 0
		server.Model.Answer("lights", func(r fakemodel.Request) fakemodel.Reply {
			turn := r.Turn()
			switch n := len(turn); {
			case n == 1 && strings.HasPrefix(change, "SELECT"):
				servertest.Exec(t, admin, change)
			case n == 1:
				set(change, "off")
			case n > 1 && strings.Contains(turn[n-1].Result, want):
				refused = n
				return fakemodel.Say("over")
			}
			return fakemodel.Call("lights_add", map[string]any{"n": len(turn)})
		})
		require.Equal(t, "over", wait(t, ann, submit(t, ann, "lights", "go")).Message, change)
		require.Equal(t, servertest.Value(t, admin, "SELECT count(*) + 1 FROM public.lights"), strconv.Itoa(refused), change)
		if strings.HasPrefix(change, "ALTER") {
			status, err := confirm(t.Context(), server.Conn(t, "ann"), a)
			require.NoError(t, err)
			require.Equal(t, "DENIED", status)
			require.Equal(t, "SUCCESS", wait(t, ann, waiting).Status)
			require.Contains(t, lastResult(t, "night"), "no longer permitted: actions are switched off")
		}
		servertest.Exec(t, admin, "TRUNCATE public.lights")
	}
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.night"))
}
