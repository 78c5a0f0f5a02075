package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// effects is how many rows each task writes, one a round.
const effects = 3

// writer asks for one effect after another, from what the conversation shows: it has no memory of its own.
func writer(r fakemodel.Request) fakemodel.Reply {
	done := 0
	for _, m := range r.Messages {
		if m.Role == "tool" && !strings.Contains(m.Content, "slept") {
			done++
		}
	}
	rested := strings.Contains(r.Messages[len(r.Messages)-1].Content, "slept")
	if !rested && rand.IntN(10) == 0 {
		return fakemodel.Call("sleep", map[string]any{"seconds": 0.1 + rand.Float64()})
	}
	reply := fakemodel.Say("written")
	switch {
	case r.Offers("writer") && done == 0:
		reply = fakemodel.Call("writer", map[string]any{"prompt": r.LastUser()})
	case !r.Offers("writer") && done < effects:
		reply = fakemodel.Call("execute_sql", map[string]any{"statement": fmt.Sprintf("INSERT INTO effects VALUES ('%s', %d)", r.LastUser(), done)})
	}
	reply.Delay = time.Duration(rand.IntN(80)) * time.Millisecond
	return reply
}

// chaos is a server whose parts are killed while tasks write.
type chaos struct {
	t       *testing.T
	s       *servertest.Server
	random  *rand.Rand
	model   string // the address of the model server
	running []*fakemodel.Server
	prompts int
}

// Whatever is killed, and whenever: no task is lost, no effect is repeated or missing, nothing is held by the dead.
// CHAOS_KILLS says how many kills; `make test-chaos` makes 200.
func TestChaos_NoTaskIsLostAndNoEffectRepeated(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("CHAOS_KILLS"))
	if err != nil {
		kills = 8
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d kills, seed %d", kills, seed)
	c := &chaos{t: t, s: servertest.Start(t, conf("aidb.model_retries = 10", "aidb.model_retry_delay = 50", "restart_after_crash = on")),
		random: rand.New(rand.NewPCG(seed, 1))}
	c.model = strings.TrimSuffix(strings.TrimPrefix(c.s.Model.URL(), "http://"), "/v1")
	c.s.Model.Answer("writer", writer)
	admin := c.connect("postgres")
	servertest.Exec(t, admin, `CREATE ROLE pen; GRANT pen TO ann, bob; CREATE TABLE effects (task text, n int); GRANT INSERT ON effects TO pen;
		GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO pen; SELECT aidb.create_purpose('writing', 'pen')`)
	c.s.RegisterModel(t, admin, "writer", c.s.Model.URL())
	servertest.Exec(t, admin, `SELECT * FROM aidb.create_agent('writer', 'x', 'writer', tools => '{execute_sql}', purpose => 'writing');
		SELECT * FROM aidb.create_agent('boss', 'x', 'writer', delegates => '{writer}', purpose => 'writing')`)
	for range kills {
		c.submit(6)
		c.waitForWork()
		c.kill()
		c.recover()
	}
	c.settle(seed)
}

func (c *chaos) connect(role string) *pgx.Conn {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	var conn *pgx.Conn
	require.True(c.t, cluster.Wait(patience, func() bool {
		var err error
		conn, err = c.s.Connect(ctx, role, servertest.Database)
		return err == nil
	}), "the server does not come back")
	c.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (c *chaos) submit(n int) {
	for _, role := range []string{"ann", "bob"} {
		conn := c.connect(role)
		for i := range n {
			c.prompts++
			submit(c.t, conn, []string{"writer", "boss"}[i%2], fmt.Sprintf("task %d", c.prompts))
		}
		_ = conn.Close(c.t.Context())
	}
}

// waitForWork returns at a random point of what the tasks do.
func (c *chaos) waitForWork() {
	seen := c.s.Model.Served() + c.random.IntN(40)
	cluster.Wait(2*time.Second, func() bool { return c.s.Model.Served() >= seen })
}

func (c *chaos) kill() {
	admin := c.connect("postgres")
	defer func() { _ = admin.Close(context.Background()) }()
	worker := func() int {
		pid, _ := strconv.Atoi(servertest.Value(c.t, admin, `SELECT (array_agg(pid ORDER BY random()))[1] FROM pg_stat_activity WHERE backend_type = 'aidb worker'`))
		return pid
	}
	// The server restarts all its processes, as soon as it notices: who connects before that is cut off.
	killed := func(pid int) {
		witness := c.connect("postgres")
		defer func() { _ = witness.Close(context.Background()) }()
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			cluster.Wait(patience, func() bool { return witness.Ping(c.t.Context()) != nil })
		}
	}
	switch c.random.IntN(6) {
	case 0: // a worker, as the system's out-of-memory killer would
		if pid := worker(); pid > 0 {
			killed(pid)
		}
	case 1: // a backend
		killed(int(admin.PgConn().PID()))
	case 2:
		require.NoError(c.t, c.s.Kill(syscall.SIGKILL))
		require.NoError(c.t, c.s.WaitGone(patience))
		require.NoError(c.t, c.s.Cluster.Start(c.t.Context()))
	case 3: // the model server, which is back at once, at the same address
		c.s.Model.Close()
		var err error
		require.True(c.t, cluster.Wait(patience, func() bool {
			var m *fakemodel.Server
			if m, err = fakemodel.Start(fakemodel.Options{Addr: c.model}); err == nil {
				m.Answer("writer", writer)
				c.s.Model = m
			}
			return err == nil
		}), "%v", err)
	case 4:
		if pid := worker(); pid > 0 {
			servertest.Exec(c.t, admin, "SELECT pg_terminate_backend($1)", pid)
		}
	case 5:
		if pid := worker(); pid > 0 {
			servertest.Exec(c.t, admin, "SELECT pg_cancel_backend($1)", pid)
		}
	}
}

// recover waits until the server takes connections again.
func (c *chaos) recover() { _ = c.connect("postgres").Close(c.t.Context()) }

func (c *chaos) settle(seed uint64) {
	admin := c.connect("postgres")
	done := cluster.Wait(2*time.Minute, func() bool {
		return servertest.Value(c.t, admin, "SELECT count(*) FROM aidb.running_tasks") == "0"
	})
	value := func(sql string) string { return servertest.Value(c.t, admin, sql) }
	require.True(c.t, done, "seed %d: tasks that do not end: %s", seed, value("SELECT string_agg(r::text, E'\n') FROM aidb.running_tasks r"))
	require.Equal(c.t, strconv.Itoa(c.prompts), value("SELECT count(*) FROM aidb.agent_tasks WHERE parent_task_id IS NULL"), "seed %d", seed)
	require.Equal(c.t, "", value("SELECT string_agg(DISTINCT concat_ws(' ', status, error), '; ') FROM aidb.agent_tasks WHERE status <> 'SUCCESS'"), "seed %d", seed)
	require.Equal(c.t, "", value("SELECT string_agg(concat_ws(' ', task, n, k), '; ') FROM (SELECT task, n, count(*) k FROM effects GROUP BY 1, 2) e WHERE k > 1"), "effects that were repeated, seed %d", seed)
	require.Equal(c.t, "", value(`SELECT string_agg(concat_ws(' ', e.task, e.k, l.payloads), E'\n') FROM (SELECT task, count(*) k FROM effects GROUP BY 1) e
		LEFT JOIN LATERAL (SELECT string_agg(concat_ws(' ', g.action_type, g.status, g.response_payload, g.error), E'\n  ' ORDER BY g.created_at, g.id) AS payloads
			FROM aidb_internal.action_log g WHERE g.conversation_id IN (SELECT p.conversation_id FROM aidb_internal.action_log p
				WHERE p.action_type = 'user_prompt' AND p.request_payload::text LIKE '%"' || e.task || '"%')) l ON true
		WHERE e.k < `+strconv.Itoa(effects)), "effects that are missing, seed %d", seed)
	require.Equal(c.t, strconv.Itoa(effects*c.prompts), value("SELECT count(*) FROM effects"), "seed %d", seed)
	require.Equal(c.t, "0", value("SELECT count(*) FROM aidb_internal.agent_task_queue WHERE worker IS NOT NULL"), "tasks that the dead hold, seed %d", seed)
	require.Equal(c.t, "", value("SELECT string_agg(v::text, '; ') FROM (SELECT * FROM aidb.verify_decisions() LIMIT 5) v"), "seed %d", seed)
}
