// Command fakemodel runs the scripted OpenAI-compatible server by itself, for a psql session that wants a model:
//
//	go run ./tests/fakemodel/cmd/fakemodel -addr 127.0.0.1:8080                    the exploring model of make demo
//	go run ./tests/fakemodel/cmd/fakemodel -script replies.json                    {"model name": [{"say": "hello"}, …]}
//
// It prints its base URL and serves until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"aidb/tests/fakemodel"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "loopback address to listen on")
	script := flag.String("script", "", "file of scripts; without one every model explores the database by rule")
	flag.Parse()
	if err := run(*addr, *script); err != nil {
		fmt.Fprintln(os.Stderr, "fakemodel:", err)
		os.Exit(1)
	}
}

func run(addr, script string) error {
	server, err := fakemodel.Start(fakemodel.Options{Addr: addr, Default: fakemodel.Explorer, Forget: true})
	if err != nil {
		return err
	}
	defer server.Close()
	if script != "" {
		scripts, err := fakemodel.LoadScripts(script)
		if err != nil {
			return err
		}
		for model, replies := range scripts {
			server.Script(model, replies...)
		}
	}
	fmt.Println(server.URL())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}
