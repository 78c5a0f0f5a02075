package policy

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// refund_order is a legal tool for this principal. It was legal one call earlier.
func TestWalkThrough_InSQL(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('orders', "+orders+")")
	id := newID()
	require.Equal(t, id, servertest.Value(t, ann, "SELECT aidb.start_policy_session('orders', 'user:4711', $1::uuid)", id))
	require.Equal(t, "order_loaded", allow(t, ann, id, "lookup_order"))
	require.Equal(t, "cancelled", allow(t, ann, id, "cancel_order"))
	_, err := authorize(t, ann, id, "refund_order")
	require.EqualError(t, err, "ERROR: DENY: refund_order not permitted from state cancelled (SQLSTATE 42501)")
	require.Equal(t, "lookup_order:start>order_loaded cancel_order:order_loaded>cancelled", events(t, id))
	require.Equal(t, "cancelled", state(t, id))

	other := session(t, ann, "orders")
	allow(t, ann, other, "lookup_order")
	require.Equal(t, "refunded", allow(t, ann, other, "refund_order"), "it was legal one call earlier")

	_, err = authorize(t, ann, newID(), "lookup_order")
	require.ErrorContains(t, err, "unknown session ")
	require.Equal(t, "42704", servertest.State(err))
}

// executeTool is a client's wrapper: check and effect commit together, and an error of either leaves neither.
func executeTool(ctx context.Context, conn *pgx.Conn, session, tool string, effect func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT aidb.authorize_tool_call($1, $2)", session, tool); err != nil {
			return err
		}
		return effect(tx)
	})
}

func TestWalkThrough_InAClientsTransaction(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('client', "+orders+"); CREATE TABLE public.client (id int, state text); GRANT ALL ON public.client TO ann; INSERT INTO public.client VALUES (1, 'open')")
	id := session(t, ann, "client")
	set := func(state string) func(pgx.Tx) error {
		return func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "UPDATE public.client SET state = $1", state)
			return err
		}
	}
	require.NoError(t, executeTool(t.Context(), ann, id, "lookup_order", func(pgx.Tx) error { return nil }))

	// The effect fails: nothing was logged, the state has not moved, no effect is left.
	err := executeTool(t.Context(), ann, id, "cancel_order", func(tx pgx.Tx) error {
		require.NoError(t, set("cancelled")(tx))
		_, err := tx.Exec(t.Context(), "SELECT 1 / 0")
		return err
	})
	require.Equal(t, "22012", servertest.State(err))
	require.Equal(t, "order_loaded", state(t, id))
	require.Equal(t, "lookup_order:start>order_loaded", events(t, id))
	require.Equal(t, "open", servertest.Value(t, admin, "SELECT state FROM public.client"))

	require.NoError(t, executeTool(t.Context(), ann, id, "cancel_order", set("cancelled")))
	ran := false
	err = executeTool(t.Context(), ann, id, "refund_order", func(pgx.Tx) error { ran = true; return nil })
	require.ErrorContains(t, err, "DENY: refund_order not permitted from state cancelled")
	require.False(t, ran, "when the guard refuses, nothing of the tool has run")
	require.Equal(t, "cancelled", servertest.Value(t, admin, "SELECT state FROM public.client"))
	require.Equal(t, "lookup_order:start>order_loaded cancel_order:order_loaded>cancelled", events(t, id))
}

func TestWalkThrough_ThroughAnAgent(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "walk")
	got, o := talk(t, ann, "walk", fakemodel.Call("walk_lookup", ids(1)), fakemodel.Call("walk_cancel", ids(1)), fakemodel.Call("walk_refund", ids(1)))
	require.Equal(t, `[{"id": 1, "state": "open"}]`, got[0])
	require.Equal(t, `{"rows_affected": 1}`, got[1])
	require.Contains(t, got[2], "DENY: walk_refund not permitted from state cancelled")
	require.Contains(t, got[2], "[decision_id=")
	require.Equal(t, "cancelled", servertest.Value(t, admin, "SELECT state FROM public.walk WHERE id = 1"))
	// A look-up is rolled back whatever it did; that it was made is not.
	require.Equal(t, "walk_lookup:start>loaded walk_cancel:loaded>cancelled", events(t, o.Conversation))

	// The denial is a record, with policy, state and tool.
	rows := servertest.Rows(t, ann, "SELECT * FROM aidb.decisions WHERE conversation_id = $1::uuid AND status = 'denied'", o.Conversation)
	require.Len(t, rows, 1)
	require.Equal(t, "policy_denied", rows[0]["denial_reason"])
	require.Equal(t, "policy", rows[0]["interaction_point"])
	require.Equal(t, "walk_refund", rows[0]["tool"])
	require.Equal(t, "policy walk, state cancelled", rows[0]["object"])
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.verify_decisions()"))

	// The conversation goes on where it stood, also for an application that uses its id.
	refuse(t, ann, "DENY: walk_cancel not permitted from state cancelled", o.Conversation, "walk_cancel")
	server.Model.Script("walk", fakemodel.Call("walk_refund", ids(1)), fakemodel.Say("done"))
	servertest.MustAsk(t, ann, "walk", "go on", "'"+o.Conversation+"'")
	require.Equal(t, "cancelled", state(t, o.Conversation))
}
