package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// normal is a reply after normalisation.
type normal struct {
	// body is the reply in the one shape that the library's decoder expects: exactly the members we use.
	body []byte
	// usage and keep are what that shape cannot express: unknown counts, and what is to be sent back.
	usage conversation.Usage
	keep  kept
	bytes int
}

// kept are the extras of one reply with calls, remembered for the rest of the run.
type kept struct {
	// id is that of the reply's first call, by which the message is found again.
	id string
	// members are the message's members, each with its leading comma; calls those of each call.
	members []byte
	calls   [][]byte
}

// normalize turns the body of a successful response into a normal, or says what is wrong with it.
func normalize(body []byte, contentType string, n *wire.Names) (normal, *wire.Failure) {
	doc := wire.TrimLead(body)
	if len(doc) == 0 {
		return normal{}, wire.Transient("an empty body")
	}
	switch {
	case doc[0] == '{' || doc[0] == '[':
		a, err := parseAnswer(doc)
		if err == wire.ErrTruncated {
			return normal{}, wire.Transient("JSON that ends in the middle: " + wire.FirstWords(doc))
		}
		if err != nil {
			return normal{}, wire.NotJSON(body, contentType)
		}
		if a.piece && a.finish == "" && a.failure == nil && a.more {
			// One piece on each line, as a stream of JSON: what follows the first is not to be lost.
			return normalizeStream(wire.AsData(wire.LinesOf(doc)), n)
		}
		return a.reply(doc, n)
	case wire.LooksLikeStream(doc):
		return normalizeStream(wire.LinesOf(doc), n)
	}
	return normal{}, wire.NotJSON(body, contentType)
}

func normalizeStream(lines wire.Lines, n *wire.Names) (normal, *wire.Failure) {
	a, f := foldStream(lines, 0)
	if f != nil {
		return normal{}, f
	}
	return a.reply(nil, n)
}

// reply makes a normal of an answer that has been read. doc is the whole text, where there is one.
func (a *answer) reply(doc []byte, n *wire.Names) (normal, *wire.Failure) {
	if f := refusedInside(a, doc); f != nil {
		return normal{}, f
	}
	return a.normal(n), nil
}

// refusedInside finds the errors that come with status 200.
func refusedInside(a *answer, doc []byte) *wire.Failure {
	if a.failure != nil {
		return wire.InsideSuccess(a.failure)
	}
	if a.choices == 0 {
		if a.filtered {
			return wire.FilteredAway()
		}
		if !a.sawChoices {
			if c, ok := wire.ParseComplaint(doc); ok {
				return c.Failure(200, nil)
			}
		}
		return wire.Transient("a reply without choices: " + wire.FirstWords(doc))
	}
	if len(a.calls) > wire.MaxCalls {
		return wire.TooManyCalls(len(a.calls))
	}
	switch word := strings.ToLower(a.finish); word {
	case "error", "network_error", "insufficient_system_resource", "engine_overloaded":
		if len(a.calls) == 0 {
			return wire.Transient("finish_reason " + word)
		}
	case "model_context_window_exceeded":
		return wire.Overflowed(word)
	}
	return nil
}

// normal applies the repairs that are certain, and writes the reply down.
func (a *answer) normal(n *wire.Names) normal {
	bytes := 0
	if a.hidden > 0 || !a.keep.reasoning.Empty() {
		bytes = int(a.size())
	}
	a.tidyContent(n)
	a.takeAnswer(n)
	size := 256 + a.content.Size() + a.refusal.Size()
	for i := range a.calls {
		size += 128 + a.calls[i].args.Size()
	}
	out := normal{usage: a.usage.Tokens(), bytes: bytes, body: make([]byte, 0, size)}
	b := append(out.body, `{"model":`...)
	b = wire.AppendText(b, a.model)
	b = append(b, `,"choices":[{"index":0,"finish_reason":"`...)
	b = append(b, finishOf(a.finish, len(a.calls))...)
	b = append(b, `","message":{"role":"assistant","content":`...)
	b = wire.AppendText(b, a.content)
	if !a.refusal.Empty() {
		b = append(b, `,"refusal":`...)
		b = wire.AppendText(b, a.refusal)
	}
	if len(a.calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		b = a.appendCalls(b, n, &out.keep)
		b = append(b, ']')
	}
	out.body = append(b, `}}]}`...)
	return out
}

// takeAnswer makes the call that is a typed answer the text that it stands for. Beside calls of tools it is not the answer yet.
func (a *answer) takeAnswer(n *wire.Names) {
	if n.Answer == "" || len(a.calls) == 0 {
		return
	}
	said := wire.Text{}
	a.calls = slices.DeleteFunc(a.calls, func(c call) bool {
		is := strings.EqualFold(strings.TrimSpace(c.name.String()), n.Answer)
		if is {
			said = wire.TidyArguments(c.args)
		}
		return is
	})
	if len(a.calls) == 0 {
		a.content = said
	}
}

func (a *answer) appendCalls(b []byte, n *wire.Names, keep *kept) []byte {
	ids := make([]string, 0, 8)
	keep.members = a.keep.members()
	for i := range a.calls {
		c := &a.calls[i]
		id := c.id.String()
		// A result finds its call by the id: one that is missing, or there already, is replaced.
		for id == "" || slices.Contains(ids, id) {
			id = n.FreshID()
		}
		ids = append(ids, id)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","id":`...)
		b = wire.AppendString(b, id)
		b = append(b, `,"function":{"name":`...)
		b = wire.AppendString(b, n.Offered(c.name.String()))
		b = append(b, `,"arguments":`...)
		b = wire.AppendText(b, wire.TidyArguments(c.args))
		b = append(b, `}}`...)
		if c.extra != nil && json.Valid(c.extra) {
			if keep.calls == nil {
				keep.calls = make([][]byte, len(a.calls))
			}
			keep.calls[i] = append([]byte(`,"extra_content":`), conversation.CleanJSON(string(c.extra))...)
		}
	}
	keep.id = ids[0]
	return b
}

// members writes the extras that are whole as members of a message.
func (e extras) members() []byte {
	var b []byte
	if !e.reasoning.Empty() {
		b = wire.AppendText(append(b, `,"reasoning_content":`...), e.reasoning)
	}
	b = appendList(b, `,"reasoning_details":[`, e.details)
	b = appendList(b, `,"thinking_blocks":[`, e.blocks)
	if e.extra != nil && json.Valid(e.extra) {
		b = append(append(b, `,"extra_content":`...), conversation.CleanJSON(string(e.extra))...)
	}
	return b
}

// appendList writes one list of all that came, behind the beginning of the member.
func appendList(b []byte, begin string, lists [][]byte) []byte {
	for _, list := range lists {
		if !json.Valid(list) {
			continue
		}
		inner := strings.TrimSpace(conversation.CleanJSON(string(list)))
		b = append(append(b, begin...), inner[1:len(inner)-1]...)
		begin = ","
	}
	if begin == "," {
		b = append(b, ']')
	}
	return b
}

// tidyContent takes the model's thinking out of the text, and a tool call that the server did not recognise.
func (a *answer) tidyContent(n *wire.Names) {
	t := a.content
	if t.Empty() || !suspicious(t) {
		return
	}
	s := stripThinking(t.String())
	if len(a.calls) == 0 && len(n.Tools) > 0 {
		if calls := leakedCalls(s, n); calls != nil {
			a.calls, s = calls, ""
		}
	}
	a.content = wire.TextOf(s)
}

// suspicious says whether a text may hold what tidyContent looks for.
func suspicious(t wire.Text) bool {
	return t.May("think", "<[ \n")
}

// stripThinking removes a thought that stands before the answer. A thought that never ends stays: all of the
// reply would go with it. So does a tag further on, which may be what the answer is about.
func stripThinking(s string) string {
	if answer, ok := finalChannel(s); ok {
		return answer
	}
	for _, tag := range []string{"think", "thinking"} {
		lead := strings.TrimLeft(s, " \t\r\n")
		if rest, ok := strings.CutPrefix(lead, "<"+tag+">"); ok {
			if _, answer, closed := strings.Cut(rest, "</"+tag+">"); closed {
				return strings.TrimLeft(answer, " \t\r\n")
			}
			continue
		}
		// Templates that open the thought in the prompt leave only its end, on a line of its own.
		if before, answer, closed := strings.Cut(s, "\n</"+tag+">\n"); closed && !strings.Contains(before, "<"+tag+">") {
			return strings.TrimLeft(answer, " \t\r\n")
		}
	}
	return s
}

// finalChannel reads the notation of models that write on channels, where a server hands it through: only what is on the
// channel named final is for the user. A reply that has none stays as it is.
func finalChannel(s string) (string, bool) {
	lead := strings.TrimLeft(s, " \t\r\n")
	if !strings.HasPrefix(lead, "<|channel|>") && !strings.HasPrefix(lead, "<|start|>assistant<|channel|>") {
		return "", false
	}
	_, answer, found := strings.Cut(lead, "<|channel|>final<|message|>")
	for _, end := range []string{"<|return|>", "<|end|>"} {
		answer = strings.TrimSuffix(answer, end)
	}
	return answer, found && !strings.Contains(answer, "<|channel|>")
}
