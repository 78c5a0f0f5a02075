package tasks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

const processes = "SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('aidb worker', 'aidb keeper') AND datname = '" + servertest.Database + "'"

// locked is a table that another session holds, so that a tool which reads it is in mid-statement until release is called.
func locked(t *testing.T, s *servertest.Server) (release func()) {
	t.Helper()
	holder := s.Admin(t)
	servertest.Exec(t, holder, "CREATE TABLE IF NOT EXISTS held (n int); GRANT SELECT, INSERT ON held TO ann, bob")
	servertest.Exec(t, holder, "BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE")
	return func() { servertest.Exec(t, holder, "COMMIT") }
}

// hung has tasks in hand in every way: one is in the middle of a tool's statement, the others wait for a model.
func hung(t *testing.T, s *servertest.Server, conn *pgx.Conn) []task {
	t.Helper()
	s.Agent(t, conn, "hung", nil, fakemodel.Reply{Hang: true})
	s.Agent(t, conn, "reading", []string{"run_sql_query"}, fakemodel.Query("SELECT count(*) FROM held"), fakemodel.Say("read"))
	var tasks []task
	for range 10 {
		tasks = append(tasks, submit(t, conn, "hung", "think"))
	}
	require.NoError(t, s.Model.WaitFor(t.Context(), "the requests", func() bool { return s.Model.InFlight("hung") == 10 }))
	tasks = append(tasks, submit(t, conn, "reading", "read"))
	until(t, conn, "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'held'::regclass")
	return tasks
}

func TestDropExtension_WaitsForNoWorker(t *testing.T) {
	s := servertest.Start(t, conf("aidb.tool_timeout = 600000"))
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	release := locked(t, s)
	hung(t, s, ann)
	servertest.Exec(t, admin, "DROP EXTENSION aidb")
	require.NoError(t, s.Model.WaitFor(t.Context(), "the requests to be closed", func() bool { return s.Model.InFlight("hung") == 0 }))
	until(t, admin, "SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname LIKE 'aidb%')")
	until(t, admin, "SELECT ("+processes+") = 0")
	release()

	servertest.Exec(t, admin, "CREATE EXTENSION aidb")
	again := s.Conn(t, "ann")
	s.Agent(t, again, "next", nil, fakemodel.Say("hello again"))
	require.Equal(t, "hello again", wait(t, again, submit(t, again, "next", "go")).Message)
	require.Empty(t, s.Crashes())
}

// What stopped for a statement that came to nothing goes on.
func TestDropExtension_RolledBack(t *testing.T) {
	s := servertest.Start(t, conf())
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	release := locked(t, s)
	tasks := hung(t, s, ann)
	servertest.Exec(t, admin, "BEGIN; DROP EXTENSION aidb; ROLLBACK")
	s.Model.Script("hung", fakemodel.Say("after all"))
	release()
	for _, k := range tasks[:10] {
		require.Equal(t, "after all", wait(t, ann, k).Message)
	}
	r := wait(t, ann, tasks[10])
	require.Equal(t, "read", r.Message, r.Error)
	// in an open transaction nothing runs meanwhile, and nobody is kept from submitting by the processes
	servertest.Exec(t, admin, "BEGIN; SAVEPOINT s; DROP EXTENSION aidb; ROLLBACK TO s")
	k := submit(t, ann, "hung", "later")
	require.Equal(t, "0", servertest.Value(t, admin, processes))
	servertest.Exec(t, admin, "COMMIT")
	require.Equal(t, "after all", wait(t, ann, k).Message)
	require.Empty(t, s.Crashes())
}

// Who may not do it stops nobody, and neither does a tool.
func TestDropExtension_ByOthersStopsNobody(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	server.Agent(t, ann, "unmoved", nil, fakemodel.Reply{Hang: true})
	k := submit(t, ann, "unmoved", "think")
	until(t, ann, "SELECT phase = 'model' FROM aidb.running_tasks WHERE task_id = $1::uuid", k.ID)
	pid := "SELECT pid FROM aidb.running_tasks WHERE task_id = $1::uuid"
	before := servertest.Value(t, ann, pid, k.ID)
	for _, sql := range []string{"DROP EXTENSION aidb", "ALTER EXTENSION aidb UPDATE", "DROP DATABASE " + servertest.Database, "ALTER DATABASE " + servertest.Database + " RENAME TO x"} {
		conn := ann
		if strings.Contains(sql, "DATABASE") {
			var err error
			conn, err = server.Connect(t.Context(), "bob", "postgres")
			require.NoError(t, err)
		}
		_, err := conn.Exec(t.Context(), sql)
		require.Equal(t, "42501", servertest.State(err), "%s: %v", sql, err)
	}
	servertest.Exec(t, admin, "SET aidb.allow_superuser_tools = on")
	server.Agent(t, admin, "suicidal", []string{"execute_sql"}, fakemodel.Call("execute_sql", map[string]any{"statement": "DROP EXTENSION aidb"}), fakemodel.Say("done"))
	require.Equal(t, "SUCCESS", wait(t, admin, submit(t, admin, "suicidal", "go")).Status)
	require.Equal(t, before, servertest.Value(t, ann, pid, k.ID))
	servertest.Exec(t, ann, "SELECT aidb.cancel_task($1::uuid)", k.ID)
}

// DROP DATABASE and its kin need the database for themselves.
func TestDropDatabase_WaitsForNoWorker(t *testing.T) {
	s := servertest.Start(t, conf())
	ann := s.Conn(t, "ann")
	release := locked(t, s)
	hung(t, s, ann)
	release()
	k := submit(t, ann, "hung", "renamed")
	require.NoError(t, ann.Close(t.Context()))
	outside, err := s.Connect(t.Context(), "postgres", "postgres")
	require.NoError(t, err)
	until(t, outside, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' AND usename <> 'postgres'", servertest.Database)
	servertest.Exec(t, outside, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '"+servertest.Database+"' AND backend_type = 'client backend'")
	servertest.Exec(t, outside, "ALTER DATABASE "+servertest.Database+" RENAME TO other")
	servertest.Exec(t, outside, "CREATE DATABASE copy TEMPLATE other")
	s.Model.Script("hung", fakemodel.Say("under another name"))
	until(t, outside, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = 'other' AND backend_type = 'aidb worker'")
	moved, err := s.Connect(t.Context(), "ann", "other")
	require.NoError(t, err)
	require.Equal(t, "under another name", wait(t, moved, k).Message)
	require.NoError(t, moved.Close(t.Context()))
	servertest.Exec(t, outside, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'other' AND backend_type = 'client backend'")
	servertest.Exec(t, outside, "DROP DATABASE other")
	require.Empty(t, s.Crashes())
}

// An update changes functions and tables under tasks that are in hand: they go on afterwards.
func TestAlterExtensionUpdate_UnderTasks(t *testing.T) {
	s := servertest.Start(t, conf())
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	folder := filepath.Join(servertest.Value(t, admin, "SELECT setting FROM pg_config() WHERE name = 'SHAREDIR'"), "extension")
	from := servertest.Value(t, admin, "SELECT extversion FROM pg_extension WHERE extname = 'aidb'")
	script := filepath.Join(folder, "aidb--"+from+"--"+from+"next.sql")
	err := os.WriteFile(script, []byte(`ALTER TABLE aidb_internal.agent_task_queue ADD COLUMN added_by_test int;
CREATE OR REPLACE FUNCTION aidb_internal.task_is_open(status aidb.task_status) RETURNS boolean LANGUAGE sql IMMUTABLE
AS $$ SELECT status IN ('PENDING'::aidb.task_status, 'IN_PROGRESS', 'RECOVERY', 'AWAIT_APPROVAL') AND true $$;
`), 0o644)
	if errors.Is(err, os.ErrPermission) {
		t.Skip("cannot write into the server's folder of extensions: ", folder)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(script) })
	release := locked(t, s)
	tasks := hung(t, s, ann)
	servertest.Exec(t, admin, "ALTER EXTENSION aidb UPDATE TO '"+from+"next'")
	s.Model.Script("hung", fakemodel.Say("updated"))
	release()
	for _, k := range tasks[:10] {
		require.Equal(t, "updated", wait(t, ann, k).Message)
	}
	require.Equal(t, "read", wait(t, ann, tasks[10]).Message)
	require.Empty(t, s.Crashes())
}

// Dropped and made again, under submitters that know nothing of it.
func TestDropExtension_UnderSubmitters(t *testing.T) {
	s := servertest.Start(t, conf("deadlock_timeout = 100"))
	s.Model.Answer("mill", func(fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Content: "done", Delay: 5 * time.Millisecond}
	})
	admin := s.Admin(t)
	prepare := func() {
		s.RegisterModel(t, admin, "mill", s.Model.URL())
		servertest.Exec(t, admin, "SELECT * FROM aidb.create_agent('mill', 'x', 'mill')")
	}
	prepare()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	for _, role := range []string{"ann", "bob"} {
		conn := s.Conn(t, role)
		group.Go(func() {
			for ctx.Err() == nil {
				// refused while the extension is away; a deadlock with the DROP is an answer, too
				_, _ = conn.Exec(context.WithoutCancel(ctx), "SELECT * FROM aidb.agent_submit('mill', 'go')")
			}
		})
	}
	for range 3 {
		seen := s.Model.Served()
		require.NoError(t, s.Model.WaitFor(t.Context(), "tasks to run", func() bool { return s.Model.Served() > seen+20 }))
		require.True(t, cluster.Wait(patience, func() bool {
			_, err := admin.Exec(t.Context(), "DROP EXTENSION aidb")
			require.Contains(t, []string{"", "40P01"}, servertest.State(err), "%v", err) // two sessions and a DROP may be in each other's way
			return err == nil
		}))
		servertest.Exec(t, admin, "CREATE EXTENSION aidb")
		prepare()
	}
	stop()
	group.Wait()
	until(t, admin, "SELECT count(*) = 0 FROM aidb.running_tasks")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.agent_tasks WHERE status <> 'SUCCESS'"))
	require.Empty(t, s.Crashes())
}
