package pgstore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/spi"
)

// stepsSize is how many bytes of steps a row of the log has, and no more than a step above it: whoever wants one of them reads
// the whole row.
const stepsSize = 64 << 10

const stepsSQL = `COPY aidb_internal.logged_steps (
    steps, created_at, prompt_id, answer_id, conversation_id, agent_id, task_id, role, initiated_by, principal, caller) FROM STDIN`

// steps collects the records of one run as rows of aidb_internal.logged_steps.
type steps struct {
	rows  spi.CopyText
	same  spi.CopyText // the columns that are the same in all rows
	count int          // records that have not been taken

	// the row in hand
	open           []byte // the JSON array without its end
	first          time.Time
	prompt, answer uuid.UUID
}

func (s *steps) begin(t *agent.Task) {
	*s = steps{}
	s.same.Plain(t.ConversationID.String())
	s.same.Plain(t.AgentID.String())
	s.same.Plain(t.ID.String())
	for _, name := range [...]string{t.Role, t.Caller.SessionUser, t.Caller.Principal} {
		if name == t.Caller.Role {
			s.same.Null()
		} else {
			s.same.Text(name)
		}
	}
	s.same.Text(t.Caller.Role)
}

// size is the number of bytes that are held.
func (s *steps) size() int { return s.rows.Len() + len(s.open) }

func (s *steps) add(r *conversation.Record) {
	if len(s.open) > stepsSize || r.Type == conversation.UserPrompt && s.prompt != uuid.Nil || r.Type == conversation.Answer && s.answer != uuid.Nil {
		s.endRow()
	}
	if len(s.open) == 0 {
		s.first = r.CreatedAt
		s.open = append(s.open, '[')
	} else {
		s.open = append(s.open, ',')
	}
	switch r.Type {
	case conversation.UserPrompt:
		s.prompt = r.ID
	case conversation.Answer:
		s.answer = r.ID
	}
	s.open = appendStep(s.open, r, s.first)
	s.count++
}

// appendStep appends a record as an object, NULLs left out; aidb_internal.action_log takes it apart again.
func appendStep(to []byte, r *conversation.Record, first time.Time) []byte {
	to = append(append(append(to, `{"id":"`...), r.ID.String()...), `","type":"`...)
	to = append(append(to, r.Type...), `","at":`...)
	to = strconv.AppendInt(to, r.CreatedAt.UnixMicro()-first.UnixMicro(), 10)
	to = append(to, `,"took":`...)
	to = strconv.AppendInt(to, r.CompletedAt.UnixMicro()-r.CreatedAt.UnixMicro(), 10)
	if r.Sequence != uuid.Nil {
		to = append(append(append(to, `,"round":"`...), r.Sequence.String()...), '"')
	}
	if r.Request != nil {
		to = append(append(to, `,"request":`...), r.Request...)
	}
	if r.Response != nil {
		to = append(append(to, `,"response":`...), r.Response...)
	}
	if r.Status != conversation.StatusSuccess {
		to = append(append(append(to, `,"status":"`...), r.Status...), '"')
	}
	if text := conversation.Clean(r.Error); text != "" {
		quoted, _ := json.Marshal(text) // a string has a JSON form
		to = append(append(to, `,"error":`...), quoted...)
	}
	return append(to, '}')
}

func (s *steps) endRow() {
	s.rows.Raw(append(s.open, ']'))
	s.rows.Plain(timestamp(s.first))
	s.rows.OrNull(presentID(s.prompt))
	s.rows.OrNull(presentID(s.answer))
	s.rows.Columns(&s.same)
	s.rows.EndRow()
	s.open, s.prompt, s.answer = s.open[:0], uuid.Nil, uuid.Nil
}

// take returns the statement that writes what is held, and empties it.
func (s *steps) take() spi.Statement {
	if len(s.open) > 0 {
		s.endRow()
	}
	written := spi.Statement{SQL: stepsSQL, Args: []any{s.rows.Bytes()}}
	s.rows, s.count = spi.CopyText{}, 0
	return written
}

func presentID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
