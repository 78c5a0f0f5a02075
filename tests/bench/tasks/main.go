// Command tasks measures background tasks on a scratch server of its own, with durable commits:
//
//	waiting     so many tasks wait on a slow model at the same time: memory of the worker, what is open meanwhile
//	throughput  tasks a second against a model that answers at once
//	fairness    one role floods, another submits one task at a time: how long that one waits
//
// Every number is printed; none is asserted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

type bench struct {
	s     *servertest.Server
	admin *pgx.Conn
	ctx   context.Context
}

func main() {
	waiting := flag.Int("waiting", 5000, "tasks that wait at the same time")
	tasks := flag.Int("tasks", 2000, "tasks of the throughput and of the flood")
	flag.Parse()
	if err := run(context.Background(), *waiting, *tasks); err != nil {
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, waiting, tasks int) error {
	s, err := servertest.New(cluster.Options{Preload: true, Durable: true, Conf: []string{
		"max_worker_processes = 32", "aidb.max_queued_tasks = 100000", "aidb.max_workers = 3", "log_min_messages = fatal",
	}})
	if err != nil {
		return err
	}
	defer s.Close()
	admin, err := s.Connect(ctx, "postgres", servertest.Database)
	if err != nil {
		return err
	}
	b := &bench{s: s, admin: admin, ctx: ctx}
	for name, reply := range map[string]fakemodel.Reply{
		"slow": {Content: "at last", Delay: 60 * time.Second}, "quick": fakemodel.Say("done"),
	} {
		s.Model.Script(name, reply)
		if err := b.exec(fmt.Sprintf(`SELECT aidb.create_model('%[1]s', 'openai_completions', '{"model": "%[1]s", "url": "%[2]s"}', validate => false)`, name, s.Model.URL()),
			fmt.Sprintf(`SELECT * FROM aidb.create_agent('%[1]s', 'x', '%[1]s')`, name)); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return b.throughput(tasks) }, func() error { return b.fairness(tasks) }, func() error { return b.waiting(waiting) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) exec(statements ...string) error {
	for _, s := range statements {
		if _, err := b.admin.Exec(b.ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (b *bench) value(sql string) string {
	var v *string
	if err := b.admin.QueryRow(b.ctx, "SELECT ("+sql+")::text").Scan(&v); err != nil || v == nil {
		return fmt.Sprint(err)
	}
	return *v
}

// submit submits n tasks as a role, a hundred in a transaction.
func (b *bench) submit(role, agent string, n int) error {
	conn, err := b.s.Connect(b.ctx, role, servertest.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(b.ctx) }()
	for done := 0; done < n; done += 100 {
		_, err := conn.Exec(b.ctx, `SELECT (aidb.agent_submit($1, 'prompt ' || i)).task_id FROM generate_series(1, $2::int) i`, agent, min(100, n-done))
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) until(sql string) {
	cluster.Wait(10*time.Minute, func() bool { return b.value(sql) == "true" })
}

func (b *bench) throughput(n int) error {
	begun := time.Now()
	if err := b.submit("ann", "quick", n); err != nil {
		return err
	}
	b.until("SELECT count(*) = 0 FROM aidb.running_tasks")
	took := time.Since(begun)
	fmt.Printf("throughput: %d tasks in %.1f s, %.0f a second, submitting included; not SUCCESS: %s; load average %s\n", n, took.Seconds(),
		float64(n)/took.Seconds(), b.value("SELECT count(*) FROM aidb.agent_tasks WHERE status <> 'SUCCESS'"), load())
	return nil
}

func (b *bench) fairness(n int) error {
	if err := b.submit("ann", "quick", n); err != nil {
		return err
	}
	conn, err := b.s.Connect(b.ctx, "bob", servertest.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(b.ctx) }()
	var took []time.Duration
	for range 20 {
		begun := time.Now()
		var id string
		if err := conn.QueryRow(b.ctx, "SELECT task_id::text FROM aidb.agent_submit('quick', 'me too')").Scan(&id); err != nil {
			return err
		}
		if _, err := conn.Exec(b.ctx, "SELECT * FROM aidb.wait_task($1::uuid)", id); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
		if b.value("SELECT count(*) = 0 FROM aidb.running_tasks WHERE caller_role = 'ann'") == "true" {
			break
		}
	}
	left := b.value("SELECT count(*) FROM aidb.running_tasks WHERE caller_role = 'ann'")
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	fmt.Printf("fairness: while %d tasks of another role ran (%s left at the end), %d tasks one after another took p50 %v, max %v from submit to answer\n",
		n, left, len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	b.until("SELECT count(*) = 0 FROM aidb.running_tasks")
	return nil
}

func (b *bench) waiting(n int) error {
	if err := b.exec("ALTER SYSTEM SET aidb.max_workers = 1", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	if err := b.submit("ann", "slow", n); err != nil {
		return err
	}
	most := 0
	open := "?"
	cluster.Wait(10*time.Minute, func() bool {
		if k := b.s.Model.InFlight("slow"); k >= most {
			most = k
			if k == n {
				open = b.value(`SELECT format('%s transactions, %s snapshots, %s locks', count(*) FILTER (WHERE xact_start IS NOT NULL),
					count(*) FILTER (WHERE backend_xmin IS NOT NULL), (SELECT count(*) FROM pg_locks l JOIN pg_stat_activity w ON w.pid = l.pid
					WHERE w.backend_type = 'aidb worker')) FROM pg_stat_activity WHERE backend_type = 'aidb worker'`)
			}
		}
		return most == n || b.value("SELECT count(*) = 0 FROM aidb.running_tasks") == "true"
	})
	fmt.Printf("waiting: %d of %d requests open at the model at once, by %s worker(s); memory of the worker: %s; open meanwhile: %s\n", most, n,
		b.value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'aidb worker'"), b.memory(), open)
	b.until("SELECT count(*) = 0 FROM aidb.running_tasks")
	fmt.Printf("waiting: all over; not SUCCESS: %s; memory of the worker: %s\n",
		b.value("SELECT count(*) FROM aidb.agent_tasks WHERE status <> 'SUCCESS'"), b.memory())
	return nil
}

// memory is the resident set of the worker now and at its highest.
func (b *bench) memory() string {
	pid := b.value("SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'aidb worker'")
	text, _ := os.ReadFile("/proc/" + pid + "/status")
	var out []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(out, ", ")
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
