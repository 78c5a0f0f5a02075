package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config is a connection's configuration for a role and a database, to be changed by the caller as it likes.
func (c *Cluster) Config(role, database string) *pgx.ConnConfig {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=%s application_name=%s sslmode=disable", c.SocketDir(), c.Port, role, database, role))
	if err != nil {
		panic(fmt.Sprintf("cluster: connection string: %v", err)) // made of our own words: cannot happen
	}
	return config
}

// Connect opens a connection as a role.
func (c *Cluster) Connect(ctx context.Context, role, database string) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, c.Config(role, database))
}

// Exec runs statements as the superuser, each on its own.
func (c *Cluster) Exec(ctx context.Context, database string, statements ...string) error {
	conn, err := c.Connect(ctx, "postgres", database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// Log is everything the server has logged so far.
func (c *Cluster) Log() string {
	text, _ := os.ReadFile(c.logFile())
	return string(text)
}

// crash matches the lines that a healthy server never logs, of the server and of a dying Go runtime. A background worker
// that is told to stop exits with code 1, which the server logs too and which is no crash.
var crash = regexp.MustCompile(`(?m)^.*(terminated by signal|server process \(PID \d+\) exited with exit code|terminating any other active server processes|` +
	`all server processes terminated; reinitializing|PANIC:|server process .* crash|unexpected SIGQUIT|` +
	`^fatal error: |^runtime: |^goroutine \d+ |^SIG[A-Z]+: |TRAP: ).*$`)

// Crashes lists the lines of the log that say that a process died of something other than being told to.
func (c *Cluster) Crashes() []string { return crash.FindAllString(c.Log(), -1) }

// Processes lists the processes that belong to the cluster, whoever their parent is by now: each server process, and
// each program started by one, has the data directory as its working directory.
func (c *Cluster) Processes() []int {
	entries, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var pids []int
	for _, link := range entries {
		if dir, err := os.Readlink(link); err == nil && strings.TrimSuffix(dir, " (deleted)") == c.data() {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// Kill sends a signal to the postmaster.
func (c *Cluster) Kill(sig syscall.Signal) error {
	pid, err := c.PostmasterPID()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// WaitGone returns when no process of the cluster is left, or lists those that are still there when time is up.
func (c *Cluster) WaitGone(limit time.Duration) error {
	var left []int
	if Wait(limit, func() bool { left = c.Processes(); return len(left) == 0 }) {
		return nil
	}
	return fmt.Errorf("processes left behind: %v", left)
}

// Wait looks at the condition until it holds or time is up, and says which.
func Wait(limit time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}

// Alive says whether a process exists (one that ended and was not yet waited for does not count).
func Alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}
