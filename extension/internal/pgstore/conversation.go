package pgstore

import (
	"context"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// The first row of a conversation's log says whose it is. Deleted agents keep their names apart.
// A fork and an import say so themselves, and come before it. Of a role that was dropped the name is not told: who has it now
// is somebody else.
const conversationSQL = `
(SELECT CASE WHEN o.created_at >= aidb_internal.history_since(o.caller) THEN o.caller ELSE '' END, o.initiated_by, o.principal, coalesce(a.name, d.name), o.kind,
       EXISTS (SELECT FROM aidb_internal.actions w WHERE w.root_conversation_id = $1::uuid AND NOT w.told)
FROM aidb_internal.conversation_origins o
LEFT JOIN aidb_internal.agents a ON a.id = o.agent_id
LEFT JOIN aidb_internal.deleted_agents d ON d.id = o.agent_id
WHERE o.conversation_id = $1::uuid)
UNION ALL
(SELECT CASE WHEN l.created_at >= aidb_internal.history_since(l.caller) THEN l.caller ELSE '' END, coalesce(l.initiated_by, l.caller),
       coalesce(l.principal, l.caller), coalesce(a.name, d.name), NULL,
       EXISTS (SELECT FROM aidb_internal.actions w WHERE w.root_conversation_id = $1::uuid AND NOT w.told)
FROM aidb_internal.logged_steps l
LEFT JOIN aidb_internal.agents a ON a.id = l.agent_id
LEFT JOIN aidb_internal.deleted_agents d ON d.id = l.agent_id
WHERE l.conversation_id = $1::uuid
ORDER BY l.created_at
LIMIT 1)`

// The same of a fork, which shares the steps of others.
const forkSQL = `
SELECT l.id, l.sequence_id, l.action_type, l.request_payload, l.response_payload
FROM aidb_internal.steps($1::uuid) WITH ORDINALITY l
WHERE l.action_type IN ('user_prompt', 'model_response', 'tool_response', 'compaction')
ORDER BY l.ordinality`

// What Rebuild reads: the rest of the log says what happened, but not what the model saw.
const historySQL = `
SELECT s.v ->> 'id', s.v ->> 'round', s.v ->> 'type', s.v -> 'request', s.v -> 'response'
FROM aidb_internal.logged_steps l, LATERAL jsonb_array_elements(l.steps) WITH ORDINALITY s (v, n)
WHERE l.conversation_id = $1::uuid AND s.v ->> 'type' IN ('user_prompt', 'model_response', 'tool_response', 'compaction')
ORDER BY l.created_at, s.n`

// Conversation implements agent.Store. It waits until no other transaction runs a call of the conversation, and then
// reads what that one left.
func (s *Store) Conversation(ctx context.Context, id uuid.UUID) (agent.Conversation, error) {
	key := id.String()
	if err := s.host.LockConversation(ctx, key); err != nil {
		return agent.Conversation{}, err
	}
	rows, err := s.host.Batch(ctx,
		spi.Statement{SQL: conversationSQL, Args: []any{key}},
		spi.Statement{SQL: historySQL, Args: []any{key}})
	if err != nil {
		return agent.Conversation{}, err
	}
	c := agent.Conversation{ID: id}
	first, ok := firstRow(rows)
	if !ok {
		return c, nil
	}
	c.Exists = true
	c.Role, c.SessionUser, c.Principal, c.Agent = first.text(), first.text(), first.text(), first.text()
	fork := first.text() == "fork"
	c.Actions = first.bool()
	if first.err != nil {
		return agent.Conversation{}, first.err
	}
	if len(rows) < 2 {
		return agent.Conversation{}, fault.New(fault.Internal, "the history of a conversation is missing")
	}
	history := rows[1]
	if fork {
		if rows, err = s.host.Batch(ctx, spi.Statement{SQL: forkSQL, Args: []any{key}}); err != nil {
			return agent.Conversation{}, err
		}
		history = rows[0]
	}
	c.Records = make([]conversation.Record, 0, len(history.Values))
	for i := range history.Values {
		r := row{values: history.Values[i]}
		rec := conversation.Record{ID: r.id(), Sequence: r.id(), Type: conversation.ActionType(r.text())}
		rec.Request, rec.Response = r.raw(), r.raw()
		if r.err != nil {
			return agent.Conversation{}, r.err
		}
		c.Records = append(c.Records, rec)
	}
	return c, nil
}
