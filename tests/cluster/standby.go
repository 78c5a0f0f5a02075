package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Standby makes a hot standby of this server, on a port and in a folder of its own, fed by streaming replication. It has
// the same settings. The caller removes it.
func (c *Cluster) Standby(ctx context.Context) (*Cluster, error) {
	s := &Cluster{opts: c.opts, bin: c.bin, attr: c.attr, env: c.env, owner: c.owner}
	var err error
	if s.Dir, err = tempDir(s.owner); err != nil {
		return nil, err
	}
	if err := s.follow(ctx, c); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

func (c *Cluster) follow(ctx context.Context, primary *Cluster) error {
	err := c.startWatchdog()
	if err != nil {
		return err
	}
	if out, err := c.run(ctx, "pg_basebackup", "-D", c.data(), "-R", "-c", "fast", "-X", "stream", "-h", primary.SocketDir(),
		"-p", strconv.Itoa(primary.Port), "-U", "postgres"); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if c.Port, err = freePort(); err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conf, "port = %d\nunix_socket_directories = '%s'\nhot_standby = on\n", c.Port, c.Dir)
	if err := conf.Close(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

// Promote makes a standby a server of its own and waits until it is.
func (c *Cluster) Promote(ctx context.Context) error {
	if out, err := c.run(ctx, "pg_ctl", "-D", c.data(), "-w", "-t", "60", "-s", "promote"); err != nil {
		return fmt.Errorf("promoting the standby: %w\n%s", err, out)
	}
	return nil
}

// CatchUp returns when a standby has replayed what its primary has written so far.
func (c *Cluster) CatchUp(ctx context.Context, primary *Cluster) error {
	from, err := primary.Connect(ctx, "postgres", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close(context.WithoutCancel(ctx)) }()
	to, err := c.Connect(ctx, "postgres", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = to.Close(context.WithoutCancel(ctx)) }()
	var lsn string
	if err := from.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&lsn); err != nil {
		return err
	}
	follows := Wait(30*time.Second, func() bool {
		var there bool
		err = to.QueryRow(ctx, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", lsn).Scan(&there)
		return err != nil || there
	})
	if err == nil && !follows {
		return fmt.Errorf("the standby did not reach %s", lsn)
	}
	return err
}
