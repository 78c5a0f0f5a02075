// Command gotest runs go test, once for each list of arguments that follows a "--", and shows what go test would show: the
// output of what failed and the ordinary summary line of each package. After the last run it prints one line that counts
// every test and subtest of all of them:
//
//	N passed, N failed, N skipped
//
// With -server the tests also get AIDB_TEST_DATABASE, the connection string of a superuser on a scratch server with the
// extension, for those that can make use of one.
//
// A package that fails without a failed test (it did not build, it crashed, it timed out) counts as one failure. Skipped
// tests are listed with their reason, so that a skip is seen. The exit status is 1 when anything failed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"

	"aidb/tests/cluster"
)

func main() {
	summary := flag.String("summary", "", "also write the last line to this file")
	server := flag.Bool("server", false, "start a scratch server for the tests (AIDB_TEST_DATABASE)")
	flag.Parse()
	runs := split(flag.Args())
	if len(runs) == 0 {
		fmt.Fprintln(os.Stderr, "usage: gotest [-summary FILE] -- ARGUMENTS OF GO TEST [-- ARGUMENTS]...")
		os.Exit(2)
	}
	if *server {
		stop, err := startServer(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			os.Exit(1)
		}
		defer stop()
	}
	t := &tally{out: os.Stdout}
	for _, args := range runs {
		if err := t.run(args); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			t.failed++
		}
	}
	for _, s := range t.skips {
		fmt.Println("skipped:", s)
	}
	line := fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
	fmt.Println(line)
	if *summary != "" {
		if err := os.WriteFile(*summary, []byte(line+"\n"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			os.Exit(1)
		}
	}
	if t.failed > 0 || t.passed == 0 {
		os.Exit(1) //nolint:gocritic // the server goes with us: its watchdog sees to it
	}
}

func startServer(ctx context.Context) (stop func(), err error) {
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return nil, err
	}
	if err := c.Exec(ctx, "postgres", "CREATE EXTENSION aidb"); err != nil {
		c.Remove()
		return nil, err
	}
	return c.Remove, os.Setenv("AIDB_TEST_DATABASE", fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", c.Port))
}

// split cuts the arguments at each "--". The flag package has swallowed the first.
func split(args []string) [][]string {
	var runs [][]string
	for len(args) > 0 {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		if end > 0 {
			runs = append(runs, args[:end])
		}
		args = args[min(end+1, len(args)):]
	}
	return runs
}

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	FailedBuild                               string
}

type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	skips                   []string
	verbose                 bool
}

func (t *tally) run(args []string) error {
	t.verbose = slices.Contains(args, "-v")
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failedBefore := t.failed
	t.read(pipe)
	if err := cmd.Wait(); err != nil && t.failed == failedBefore {
		return fmt.Errorf("go test %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (t *tally) read(r io.Reader) {
	output := map[string][]string{} // what each test printed, until it is known whether it matters
	failedIn := map[string]bool{}   // packages with a failed test
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			t.take(e, output, failedIn)
		} else if strings.TrimSpace(line) != "" {
			_, _ = io.WriteString(t.out, line)
		}
		if err != nil {
			return
		}
	}
}

func (t *tally) take(e event, output map[string][]string, failedIn map[string]bool) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		_, _ = io.WriteString(t.out, e.Output)
	case "output":
		switch {
		case t.verbose:
			_, _ = io.WriteString(t.out, e.Output)
		case e.Test == "" && isSummary(e.Output):
			_, _ = io.WriteString(t.out, e.Output)
		default:
			output[key] = append(output[key], e.Output)
		}
	case "pass", "skip", "fail":
		t.end(e, key, output, failedIn)
		delete(output, key)
	}
}

func (t *tally) end(e event, key string, output map[string][]string, failedIn map[string]bool) {
	switch {
	case e.Test != "" && e.Action == "pass":
		t.passed++
	case e.Test != "" && e.Action == "skip":
		t.skipped++
		t.skips = append(t.skips, e.Package+" "+e.Test+": "+reason(output[key]))
	case e.Test != "":
		t.failed++
		failedIn[e.Package] = true
		_, _ = io.WriteString(t.out, strings.Join(output[key], ""))
	case e.Action == "fail":
		if !failedIn[e.Package] {
			t.failed++
		}
		// A crash or a time-out: the tests that were running then never ended, and what they printed tells why.
		keys := make([]string, 0, len(output))
		for k := range output {
			if strings.HasPrefix(k, e.Package+"\x00") {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		for _, k := range keys {
			_, _ = io.WriteString(t.out, strings.Join(output[k], ""))
			delete(output, k)
		}
	}
}

// isSummary recognises the lines that go test itself ends a package with.
func isSummary(line string) bool {
	for _, start := range []string{"ok  \t", "FAIL\t", "---\t", "?   \t"} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// reason is what a test said when it skipped.
func reason(output []string) string {
	for _, line := range output {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), ".go:"); ok {
			if _, text, ok = strings.Cut(text, ": "); ok {
				return text
			}
		}
	}
	return "no reason given"
}
