package wire

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// limited registers a model of the fake server with these limits, and an agent on it.
func limited(t *testing.T, name, limits string, timeout int, more map[string]any) {
	conn := caller(t, nil).Conn
	config := map[string]any{"model": name, "url": server.Model.URL()}
	for k, v := range more {
		config[k] = v
	}
	servertest.Exec(t, conn, `SELECT aidb.create_model($1, 'openai_completions', $2::jsonb || aidb.model_limits(`+limits+`), validate => false)`, name, config)
	servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'x', $1, timeout => $2)`, name, timeout)
}

// TestLimits_HoldForAllSessions: five sessions ask at once, two are let through at a time, whoever is cancelled or dies
// gives its turn back.
func TestLimits_HoldForAllSessions(t *testing.T) {
	const name = "two at a time"
	gate := make(chan struct{})
	server.Model.Script(name, fakemodel.Reply{Content: "hi", Gate: gate})
	limited(t, name, "2", 60, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	inFlight := func(n int) {
		t.Helper()
		require.NoError(t, server.Model.WaitFor(ctx, fmt.Sprint(n, " in flight"), func() bool { return server.Model.InFlight(name) == n }))
	}
	var group sync.WaitGroup
	begin := func() uint32 {
		conn := server.Conn(t, "ann")
		group.Go(func() { _, _ = servertest.Ask(ctx, conn, name, "Hello?") })
		return conn.PgConn().PID()
	}
	first, second := begin(), begin()
	inFlight(2)
	before := len(server.Model.Requests(name))
	third := begin()
	waitFor(ctx, t, third, "aidb")
	require.Len(t, server.Model.Requests(name), before, "the third has no turn")

	admin := server.Admin(t)
	servertest.Exec(t, admin, fmt.Sprintf("SELECT pg_cancel_backend(%d)", first))
	require.NoError(t, server.Model.WaitFor(ctx, "the third", func() bool { return len(server.Model.Requests(name)) == before+1 }))
	begin()
	servertest.Exec(t, admin, fmt.Sprintf("SELECT pg_terminate_backend(%d)", second))
	require.NoError(t, server.Model.WaitFor(ctx, "the fourth", func() bool { return len(server.Model.Requests(name)) == before+2 }))
	close(gate)
	group.Wait()
}

// waitFor returns when the backend waits for something of an extension.
func waitFor(ctx context.Context, t *testing.T, pid uint32, _ string) {
	admin := server.Admin(t)
	for {
		var waits bool
		require.NoError(t, admin.QueryRow(ctx, `SELECT coalesce(bool_or(wait_event_type = 'Extension'), false) FROM pg_stat_activity WHERE pid = $1`, pid).Scan(&waits))
		if waits {
			return
		}
	}
}

func TestLimits_OfAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		limits string
		reply  fakemodel.Reply
		let    int
	}{
		"two requests a minute":   {"NULL, 2", fakemodel.Say("hi"), 2},
		"a thousand tokens":       {"NULL, NULL, 1000", fakemodel.Reply{Content: "hi", Input: 900, Output: 99}, 1},
		"one larger than a limit": {"NULL, NULL, 10", fakemodel.Say("hi"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			server.Model.Script(name, c.reply)
			limited(t, name, c.limits, 3, nil)
			for range c.let {
				servertest.MustAsk(t, server.Conn(t, "ann"), name, "Hello?")
			}
			out, err := servertest.Ask(t.Context(), server.Conn(t, "ann"), name, "Hello?")
			require.NoError(t, err)
			require.Contains(t, out.Error, "limit of requests or tokens a minute is reached")
			require.Len(t, server.Model.Requests(name), c.let)
		})
	}
}

// TestLimits_WhatOneIsToldHoldsForAll: a provider's Retry-After keeps other sessions from asking.
func TestLimits_WhatOneIsToldHoldsForAll(t *testing.T) {
	const name = "told to wait"
	server.Model.Script(name, status(429, errors("slow down"), "Retry-After", "50"), done)
	limited(t, name, "9", 5, nil)
	for range 2 {
		out, err := servertest.Ask(t.Context(), server.Conn(t, "ann"), name, "Hello?")
		require.NoError(t, err)
		require.Contains(t, out.Error, "limits the rate")
	}
	require.Len(t, server.Model.Requests(name), 1)
}

func TestFallback(t *testing.T) {
	for name, c := range map[string]struct {
		reply fakemodel.Reply
		falls bool
	}{
		"unreachable": {fakemodel.Reply{Close: true}, true},
		"no credit":   {status(429, `{"error":{"message":"x","code":"insufficient_quota"}}`), true},
		"a bad model": {status(400, errors("no such parameter")), false},
		"it answers":  {fakemodel.Say("first"), false},
	} {
		t.Run(name, func(t *testing.T) {
			name := "falls back: " + name
			server.Model.Script(name, c.reply)
			server.Model.Script(name+" 2", done)
			user := caller(t, map[string]string{"aidb.model_retries": "0"})
			server.RegisterModel(t, user.Conn, name+" 2", server.Model.URL())
			limited(t, name, "fallback => ARRAY['"+name+" 2']", 60, nil)
			r := user.ask(t, name, "Which?")
			require.Equal(t, c.falls, r.Message == "Total is 41.50.", "%+v", r.Outcome)
			require.Equal(t, c.falls, len(server.Model.Requests(name+" 2")) == 1)
			require.Equal(t, map[bool]int{true: 1}[c.falls], r.retries)
		})
	}
	conn := caller(t, nil).Conn
	limited(t, "falls nowhere", "fallback => ARRAY['no such model']", 5, nil)
	out, err := servertest.Ask(t.Context(), conn, "falls nowhere", "Which?")
	require.NoError(t, err)
	require.Equal(t, "fallback of model 'falls nowhere': Model not found: no such model", out.Error)
}

// TestLimits_OfTheServer: what a model's config does not say is said by settings, and aidb.shared_limits shows what it comes to.
func TestLimits_OfTheServer(t *testing.T) {
	const name = "bounded by the server"
	gate := make(chan struct{})
	server.Model.Script(name, fakemodel.Reply{Content: "hi", Gate: gate, Input: 30, Output: 12})
	limited(t, name, "", 60, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	begin := func(settings map[string]string) uint32 {
		user := caller(t, settings)
		group.Go(func() { _, _ = servertest.Ask(ctx, user.Conn, name, "Hello?") })
		return user.PgConn().PID()
	}
	load := func(want string) {
		t.Helper()
		conn := caller(t, nil).Conn
		var got string
		for got != want {
			require.NoError(t, ctx.Err(), "%s instead of %s", got, want)
			rows := servertest.Rows(t, conn, "SELECT running, waiting, requests_last_minute, tokens_last_minute FROM aidb.shared_limits WHERE kind = 'model' AND name = $1", name)
			if len(rows) == 1 {
				got = fmt.Sprint(rows[0]["running"], " ", rows[0]["waiting"], " ", rows[0]["requests_last_minute"], " ", rows[0]["tokens_last_minute"].(int64) > 0)
			}
		}
	}
	one := map[string]string{"aidb.model_max_concurrent_requests": "1"}
	begin(one)
	load("1 0 1 true")
	second := begin(one)
	load("1 1 1 true")
	servertest.Exec(t, server.Admin(t), "SELECT pg_cancel_backend($1)", second)
	load("1 0 1 true")
	begin(one)
	load("1 1 1 true")
	close(gate)
	group.Wait()
	load("0 0 2 true")

	// The config's own word comes first.
	const own = "has a limit of its own"
	server.Model.Script(own, fakemodel.Say("hi"))
	limited(t, own, "NULL, 2", 3, nil)
	user := caller(t, map[string]string{"aidb.model_requests_per_minute": "1", "aidb.model_tokens_per_minute": "1000000"})
	for range 2 {
		servertest.MustAsk(t, user.Conn, own, "Hello?")
	}
	user.refuses(t, own)
}

// refuses: another call would have to wait for longer than it may.
func (s *session) refuses(t *testing.T, agent string) {
	out, err := servertest.Ask(t.Context(), s.Conn, agent, "Hello?")
	require.NoError(t, err)
	require.Contains(t, out.Error, "limit of requests or tokens a minute is reached")
}
