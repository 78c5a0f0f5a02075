// Package cluster makes scratch PostgreSQL servers: a data directory of their own under the temporary folder, a free
// port on 127.0.0.1, a socket beside the data, nothing shared with any server that is already there, and nothing left
// afterwards. The tests, the demo, the benchmarks and `make cluster` all get their servers here.
//
// PostgreSQL refuses to run as root. When the caller is root, the server runs as the operating system user postgres
// (which the Debian package makes); an ordinary user runs it as oneself.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options say how a cluster differs from the ordinary one.
type Options struct {
	Preload bool     // shared_preload_libraries = 'aidb'
	Durable bool     // fsync on, as in production; off otherwise, because tests do not survive a power cut anyway
	Conf    []string // further lines of postgresql.conf, the last word
	// Keep leaves the server running when this process ends. Without it a watchdog stops the server and removes its
	// files as soon as this process is gone, however it went.
	Keep bool
}

// Cluster is one scratch server. Its methods are for one goroutine at a time, Connect and the readers excepted.
type Cluster struct {
	Dir   string // everything of it is in here
	Port  int
	bin   string
	attr  *syscall.SysProcAttr // how server programs are started: as which user
	env   []string
	owner int
	opts  Options
	leash *os.File // the watchdog waits for this end of its pipe to close
}

// New makes a data directory and starts the server.
func New(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts, env: os.Environ(), owner: os.Getuid()}
	var err error
	if c.bin, err = binDir(ctx); err != nil {
		return nil, err
	}
	if err := c.becomeServerUser(); err != nil {
		return nil, err
	}
	if c.Dir, err = tempDir(c.owner); err != nil {
		return nil, err
	}
	if err := c.make(ctx); err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) make(ctx context.Context) error {
	if !c.opts.Keep {
		if err := c.startWatchdog(); err != nil {
			return err
		}
	}
	if out, err := c.run(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// Another program may take the free port between our look and the server's bind: then another one is tried.
	var err error
	for range 5 {
		if c.Port, err = freePort(); err != nil {
			return err
		}
		if err := c.configure(); err != nil {
			return err
		}
		if err = c.Start(ctx); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

func (c *Cluster) data() string    { return filepath.Join(c.Dir, "data") }
func (c *Cluster) logFile() string { return filepath.Join(c.Dir, "log") }

// SocketDir is the folder of the unix socket, which is also what PGHOST may be.
func (c *Cluster) SocketDir() string { return c.Dir }

func (c *Cluster) configure() error {
	lines := []string{
		"listen_addresses = '127.0.0.1'", fmt.Sprintf("port = %d", c.Port), fmt.Sprintf("unix_socket_directories = '%s'", c.Dir),
		"max_connections = 200", "shared_buffers = 128MB", "log_line_prefix = '%m [%p] '", "logging_collector = off",
		"log_min_messages = warning",
	}
	if !c.opts.Durable {
		lines = append(lines, "fsync = off", "full_page_writes = off")
	}
	if c.opts.Preload {
		lines = append(lines, "shared_preload_libraries = 'aidb'")
	}
	file := filepath.Join(c.data(), "postgresql.auto.conf")
	text := strings.Join(append(lines, c.opts.Conf...), "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chown(file, c.owner, -1)
}

// Start starts the server and waits until it takes connections.
func (c *Cluster) Start(ctx context.Context) error {
	// A killed postmaster that nobody waits for (a container without an init) stays as a zombie, which the server takes
	// for a running one.
	if pid, err := c.PostmasterPID(); err == nil && !Alive(pid) {
		_ = os.Remove(filepath.Join(c.data(), "postmaster.pid"))
		_ = os.Remove(filepath.Join(c.Dir, fmt.Sprintf(".s.PGSQL.%d.lock", c.Port)))
	}
	if out, err := c.run(ctx, "pg_ctl", "-D", c.data(), "-l", c.logFile(), "-w", "-t", "60", "-s", "start"); err != nil {
		return fmt.Errorf("starting the server: %w\n%s%s", err, out, tail(c.Log(), 2000))
	}
	return nil
}

// Stop stops the server in the given mode (smart, fast or immediate) and waits until it is down.
func (c *Cluster) Stop(ctx context.Context, mode string) error {
	if out, err := c.run(ctx, "pg_ctl", "-D", c.data(), "-m", mode, "-w", "-t", "60", "-s", "stop"); err != nil {
		return fmt.Errorf("stopping the server (%s): %w\n%s", mode, err, out)
	}
	return nil
}

// Remove stops the server, if it runs, and takes its files away.
func (c *Cluster) Remove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := c.PostmasterPID(); err == nil {
		_ = c.Stop(ctx, "immediate")
	}
	_ = os.RemoveAll(c.Dir)
	if c.leash != nil {
		_ = c.leash.Close()
	}
}

// PostmasterPID is the process id of the running server.
func (c *Cluster) PostmasterPID() (int, error) {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}

// run runs a server program as the server's user and returns what it printed.
func (c *Cluster) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.SysProcAttr, cmd.Env, cmd.Dir = c.attr, c.env, "/"
	// The server inherits what pg_ctl has: a pipe would never close, so the output goes through a file.
	out, err := os.CreateTemp("", "aidb-out")
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	text, _ := os.ReadFile(out.Name())
	return string(text), err
}

// becomeServerUser settles as whom server programs run.
func (c *Cluster) becomeServerUser() error {
	c.attr = &syscall.SysProcAttr{Setsid: true}
	if c.owner != 0 {
		return nil
	}
	uid, gid, home, err := lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres to run it as: %w", err)
	}
	c.owner = uid
	c.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	c.env = append(os.Environ(), "HOME="+home, "USER=postgres", "LOGNAME=postgres")
	return nil
}

// startWatchdog starts a shell that waits for this process to end and then cleans up after it. It is in a session of its
// own, so that a Ctrl-C in the terminal, which ends this process, does not end it too.
func (c *Cluster) startWatchdog() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	script := `cat >/dev/null; [ ! -d "$1" ] || { "$0" -D "$1/data" -m immediate -s stop; rm -rf "$1"; }`
	cmd := exec.Command("/bin/sh", "-c", script, filepath.Join(c.bin, "pg_ctl"), c.Dir)
	cmd.Stdin, cmd.Dir, cmd.Env, cmd.SysProcAttr = r, "/", c.env, c.attr
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return fmt.Errorf("starting the watchdog: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	c.leash = w
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("not a TCP address")
	}
	return addr.Port, nil
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// Remember writes what Recall needs to find a kept cluster again.
func (c *Cluster) Remember(file string) error {
	return os.WriteFile(file, fmt.Appendf(nil, "dir %s\nport %d\n", c.Dir, c.Port), 0o600)
}

// Recall finds the cluster that Remember wrote down; os.ErrNotExist when there is none.
func Recall(ctx context.Context, file string) (*Cluster, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Cluster{env: os.Environ(), owner: os.Getuid(), opts: Options{Keep: true}}
	if _, err := fmt.Sscanf(string(text), "dir %s\nport %d\n", &c.Dir, &c.Port); err != nil || !strings.HasPrefix(filepath.Base(c.Dir), "aidb-") {
		return nil, fmt.Errorf("%s is not a state file of ours", file)
	}
	if c.bin, err = binDir(ctx); err != nil {
		return nil, err
	}
	return c, c.becomeServerUser()
}
