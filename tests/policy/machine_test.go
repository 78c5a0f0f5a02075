package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"aidb/tests/servertest"
)

// model is what a policy is, in ten lines.
type model struct {
	next   map[[2]string]string // (state, tool) -> state; "" stays
	state  string
	passed []string
}

func (m *model) call(tool string) (denied string) {
	to, ok := m.next[[2]string{m.state, tool}]
	if !ok {
		return "DENY: " + tool + " not permitted from state " + m.state
	}
	if to == "" {
		to = m.state
	}
	m.passed = append(m.passed, tool+":"+m.state+">"+to)
	m.state = to
	return ""
}

// Random machines and sequences of calls: the guard says what the model says. Some calls are rolled back, and some
// transitions change on the way.
func TestMachine_AgreesWithTheModel(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		name := fmt.Sprintf("machine %d", n)
		states := rapid.SampledFrom([]string{"start", "b", "c \"q\"", "d'"})
		tools := rapid.SampledFrom([]string{"x", "y", "z%s"})
		m := model{state: "start", next: map[[2]string]string{}}
		var rows []string
		for range rapid.IntRange(0, 8).Draw(r, "transitions") {
			key := [2]string{states.Draw(r, "from"), tools.Draw(r, "tool")}
			if _, twice := m.next[key]; twice {
				continue
			}
			to, stay := states.Draw(r, "to"), rapid.Bool().Draw(r, "stay")
			target := quote(to)
			if stay {
				to, target = "", "NULL"
			}
			m.next[key] = to
			rows = append(rows, fmt.Sprintf("aidb.transition(%s, %s, %s)", quote(key[0]), quote(key[1]), target))
		}
		servertest.Exec(t, admin, fmt.Sprintf("SELECT aidb.create_policy(%s, ARRAY[%s]::jsonb[])", quote(name), strings.Join(rows, ", ")))
		id := session(t, ann, name)
		for range rapid.IntRange(1, 12).Draw(r, "calls") {
			tool := tools.Draw(r, "call")
			switch rapid.IntRange(0, 9).Draw(r, "kind") {
			case 0: // somebody changes the machine
				key := [2]string{m.state, tool}
				if _, there := m.next[key]; there {
					delete(m.next, key)
					servertest.Exec(t, admin, fmt.Sprintf("SELECT aidb.remove_transition(%s, %s, %s)", quote(name), quote(key[0]), quote(key[1])))
				} else {
					m.next[key] = "b"
					servertest.Exec(t, admin, fmt.Sprintf("SELECT aidb.add_transition(%s, %s, %s, 'b')", quote(name), quote(key[0]), quote(key[1])))
				}
			case 1: // let through and taken back
				servertest.Exec(t, ann, "BEGIN")
				_, _ = authorize(t, ann, id, tool)
				servertest.Exec(t, ann, "ROLLBACK")
			default:
				want := m.call(tool)
				got, err := authorize(t, ann, id, tool)
				if want != "" {
					require.ErrorContains(t, err, want+" (SQLSTATE 42501)")
				} else {
					require.NoError(t, err)
					require.Equal(t, m.state, got)
				}
			}
		}
		require.Equal(t, strings.Join(m.passed, " "), events(t, id))
		require.Equal(t, m.state, state(t, id))
	})
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
