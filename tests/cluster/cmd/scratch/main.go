// Command scratch is `make cluster` and `make cluster-stop`: a scratch server with the extension that stays until it is
// told to go. What eval takes is all that it prints on standard output; everything else goes to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"aidb/tests/cluster"
)

const database = "aidb"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: scratch start|stop STATE-FILE")
		os.Exit(2)
	}
	run := map[string]func(context.Context, string) error{"start": start, "stop": stop}[os.Args[1]]
	if run == nil {
		fmt.Fprintf(os.Stderr, "scratch: no such command: %s\n", os.Args[1])
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "scratch:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, state string) error {
	if c, err := cluster.Recall(ctx, state); err == nil {
		if pid, err := c.PostmasterPID(); err == nil && cluster.Alive(pid) {
			fmt.Fprintf(os.Stderr, "already running in %s; make cluster-stop ends it\n", c.Dir)
			announce(c)
			return nil
		}
		c.Remove()
	}
	c, err := cluster.New(ctx, cluster.Options{Keep: true, Preload: os.Getenv("PRELOAD") != ""})
	if err != nil {
		return err
	}
	err = errors.Join(
		c.Exec(ctx, "postgres", "CREATE DATABASE "+database),
		c.Exec(ctx, database, "CREATE EXTENSION aidb"),
		c.Remember(state))
	if err != nil {
		c.Remove()
		return err
	}
	fmt.Fprintf(os.Stderr, "a scratch server runs in %s; make cluster-stop ends it and removes its files\n", c.Dir)
	announce(c)
	return nil
}

func announce(c *cluster.Cluster) {
	fmt.Printf("PGHOST=127.0.0.1\nPGPORT=%d\nPGDATABASE=%s\nPGUSER=postgres\nexport PGHOST PGPORT PGDATABASE PGUSER\n", c.Port, database)
}

func stop(ctx context.Context, state string) error {
	c, err := cluster.Recall(ctx, state)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "no scratch server is running")
		return nil
	}
	if err != nil {
		return err
	}
	c.Remove()
	fmt.Fprintln(os.Stderr, "stopped, and its files removed")
	return os.Remove(state)
}
