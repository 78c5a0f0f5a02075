// Command generate is `make docs`: it writes the pages of docs/reference that come from the catalog of a scratch server.
//
//	generate FOLDER
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aidb/tests/cluster"
	"aidb/tests/docs/refgen"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	const database = "aidb"
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer c.Remove()
	if err := errors.Join(
		c.Exec(ctx, "postgres", "CREATE DATABASE "+database),
		c.Exec(ctx, database, "CREATE EXTENSION aidb")); err != nil {
		return err
	}
	pages, err := refgen.Pages(ctx, c, database)
	if err != nil {
		return err
	}
	for name, text := range pages {
		path := filepath.Join(folder, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // documentation is for everybody
			return err
		}
		fmt.Println("wrote", path)
	}
	return nil
}
