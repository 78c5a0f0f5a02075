package conversation

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Why a conversation was compacted.
const (
	CompactedForSize     = "size"     // the next request would come near the model's context size
	CompactedForOverflow = "overflow" // the provider said that the request does not fit
)

// Replaced is what a compaction record says it did: a part of the messages gave way to a summary. Nothing is taken out
// of the log, so what was replaced can be read there by these ids.
type Replaced struct {
	Reason   string
	Messages int
	// From and Until are the first and the last message that were replaced.
	From, Until uuid.UUID
	// Before is the first message that stays, with everything after it; zero: none did.
	Before uuid.UUID
	// Kept are the messages that stay although they stand before it.
	Kept []uuid.UUID
}

// summaryIntro begins the message that stands for what was replaced.
const summaryIntro = "Summary of the earlier part of this conversation, which was left out to save room:\n"

// Summary is the message that a summary becomes. It is a user's message, not a system message: it is made of what users
// and tools said, and has no more authority than they.
func Summary(text string) Message { return Message{Role: User, Content: summaryIntro + text} }

// IsSummary reports whether the message is a summary.
func IsSummary(m Message) bool { return m.Role == User && strings.HasPrefix(m.Content, summaryIntro) }

// Compact returns messages with those before index tail replaced by the summary, except where keep says otherwise. A
// call and its results stay or go together if keep treats them alike.
func Compact(messages []Message, tail int, keep func(int) bool, summary Message) []Message {
	out := make([]Message, 1, len(messages)-tail+8)
	out[0] = summary
	for i := range messages[:tail] {
		if keep(i) {
			out = append(out, messages[i])
		}
	}
	return append(out, messages[tail:]...)
}

// CompactionPayload is the request payload of a compaction.
func CompactionPayload(r Replaced) json.RawMessage {
	b := appendString(append(make([]byte, 0, 256+40*len(r.Kept)), `{"reason":`...), r.Reason)
	b = strconv.AppendInt(append(b, `,"messages":`...), int64(r.Messages), 10)
	b = appendID(append(b, `,"from":`...), r.From)
	b = appendID(append(b, `,"until":`...), r.Until)
	b = appendID(append(b, `,"before":`...), r.Before)
	b = append(b, `,"kept":[`...)
	for i, id := range r.Kept {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendID(b, id)
	}
	return append(b, "]}"...)
}

func appendID(b []byte, id uuid.UUID) []byte {
	if id == uuid.Nil {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), id.String()...), '"')
}

// SummaryPayload is the response payload of a compaction: a model call of its own, when a model wrote the summary.
func SummaryPayload(summary, model string, c Cost) json.RawMessage {
	b := appendString(append(make([]byte, 0, len(summary)+192), `{"summary":`...), summary)
	b = appendString(append(b, `,"model":`...), model)
	b = append(appendUsage(b, c.Usage), '}')
	return Costed(b, c)
}

// compacted replays a compaction on the messages that stood before it. A record that cannot be read, or that does not
// fit, changes nothing: more than was meant is better than less.
func compacted(messages []Message, r *Record) []Message {
	replaced, ok := readReplaced(r.Request)
	if !ok {
		return messages
	}
	text := ""
	if !object(r.Response, func(name, value []byte) bool { return member(name, value, `"summary"`, &text) }) {
		return messages
	}
	tail := len(messages)
	if replaced.Before != uuid.Nil {
		for tail = 0; tail < len(messages) && messages[tail].ID != replaced.Before; tail++ {
		}
		if tail == len(messages) {
			return messages
		}
	}
	kept := make(map[uuid.UUID]bool, len(replaced.Kept))
	for _, id := range replaced.Kept {
		kept[id] = true
	}
	summary := Summary(text)
	summary.ID = r.ID
	return Compact(messages, tail, func(i int) bool { return kept[messages[i].ID] }, summary)
}

func readReplaced(payload []byte) (r Replaced, ok bool) {
	ok = object(payload, func(name, value []byte) bool {
		switch string(name) {
		case `"before"`:
			return readID(value, &r.Before)
		case `"kept"`:
			return elements(value, func(value []byte) bool {
				var id uuid.UUID
				ok := readID(value, &id)
				r.Kept = append(r.Kept, id)
				return ok
			})
		}
		return true
	})
	return r, ok
}

func readID(value []byte, to *uuid.UUID) bool {
	s, ok := text(value)
	if !ok || s == "" {
		return ok
	}
	id, err := uuid.Parse(s)
	*to = id
	return err == nil
}
