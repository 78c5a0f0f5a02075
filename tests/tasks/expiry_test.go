package tasks

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

const stored = "SELECT status FROM aidb_internal.actions WHERE id = $1::uuid"

// proposed is an action that somebody was asked about in a conversation in which nobody says anything any more.
func proposed(t testing.TB, person *pgx.Conn, agent string) action {
	t.Helper()
	server.Model.Script(agent, add(agent, 1), fakemodel.Say("Shall I?"))
	o := servertest.MustAsk(t, person, agent, "add")
	rows := servertest.Rows(t, person, "SELECT action_id::text AS id, token FROM aidb.pending_actions WHERE conversation_id = $1::uuid", o.Conversation)
	require.Len(t, rows, 1)
	return action{rows[0]["id"].(string), rows[0]["token"].(string)}
}

// Where nobody comes by who would write it down, the keeper has it written: once, and on record for whom it waited for.
func TestExpiry_IsWrittenByItself(t *testing.T) {
	admin, other := server.Admin(t), server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE lapser LOGIN IN ROLE aidb_users; ALTER ROLE lapser SET aidb.confirmation_ttl = 2")
	person := server.Conn(t, "lapser")
	till(t, admin, "lapsed")
	servertest.Exec(t, admin, "GRANT ALL ON public.lapsed TO lapser")
	server.Agent(t, person, "lapsed", []string{"lapsed_add"})
	a, held := proposed(t, person, "lapsed"), proposed(t, person, "lapsed")
	servertest.Exec(t, other, "BEGIN")
	servertest.Exec(t, other, "SELECT 1 FROM aidb_internal.actions WHERE id = $1::uuid FOR UPDATE", held.ID)

	until(t, admin, "SELECT status = 'expired' AND decided_by IS NULL FROM aidb_internal.actions WHERE id = $1::uuid", a.ID)
	require.Equal(t, "action_expired lapser lapser", servertest.Value(t, person,
		"SELECT string_agg(denial_reason || ' ' || caller || ' ' || principal, ',') FROM aidb.decisions WHERE object = $1", "action "+a.ID+" expired"))
	require.Equal(t, "lapser lapser", servertest.Value(t, person, `SELECT string_agg(initiated_by || ' ' || (request_payload ->> 'by'), ',') FROM aidb_internal.action_log
		WHERE action_type = 'approval' AND request_payload ->> 'event' = 'expired' AND request_payload ->> 'action_id' = $1`, a.ID))
	_, err := confirm(t.Context(), person, a)
	require.Equal(t, "55000", servertest.State(err), "its token still says what became of it")
	_, err = confirm(t.Context(), person, action{a.ID, held.Token})
	require.Equal(t, "42501", servertest.State(err))

	// somebody has the other one in hand
	until(t, person, "SELECT status = 'expired' FROM aidb.action_history WHERE action_id = $1::uuid", held.ID)
	require.Equal(t, "pending", servertest.Value(t, admin, stored, held.ID))
	servertest.Exec(t, other, "ROLLBACK")
	until(t, admin, "SELECT status = 'expired' FROM aidb_internal.actions WHERE id = $1::uuid", held.ID)
	until(t, admin, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'aidb expirer'")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT aidb.expire_actions()"))
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.verify_decisions()"))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.lapsed"))
}

// The keeper writes what the expirer hands over; more than one pass writes is written; sessions of the database may begin read-only.
func TestExpiry_OfMany(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	till(t, admin, "crowd")
	server.Agent(t, ann, "crowd", []string{"crowd_add"})
	a := proposed(t, ann, "crowd")
	servertest.Exec(t, admin, "ALTER DATABASE "+servertest.Database+" SET aidb.audit = 'durable'")
	servertest.Exec(t, admin, "ALTER DATABASE "+servertest.Database+" SET default_transaction_read_only = on")
	defer func() {
		servertest.Exec(t, admin, "ALTER DATABASE "+servertest.Database+" RESET aidb.audit")
		servertest.Exec(t, admin, "ALTER DATABASE "+servertest.Database+" RESET default_transaction_read_only")
	}()
	servertest.Exec(t, admin, `INSERT INTO aidb_internal.actions
		SELECT (jsonb_populate_record(a, jsonb_build_object('id', md5(n::text), 'expires_at', now()))).*
		FROM aidb_internal.actions a, generate_series(1, 1200) n WHERE a.id = $1::uuid`, a.ID)
	until(t, admin, "SELECT count(*) = 1200 FROM aidb_internal.actions WHERE agent = 'crowd' AND status = 'expired'")
	require.Equal(t, "1200", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.decision_log WHERE agent = 'crowd' AND denial_reason = 'action_expired'"))
	require.Equal(t, "pending", servertest.Value(t, admin, stored, a.ID))
}
