package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
)

// normal is a reply after normalisation.
type normal struct {
	// body is the reply in the one shape that the library's decoder expects: exactly the members we use.
	body []byte
	// usage and keep are what that shape cannot express: unknown counts, and what is to be sent back.
	usage conversation.Usage
	keep  kept
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
func normalize(body []byte, contentType string, n *names) (normal, *failure) {
	doc := trimLead(body)
	if len(doc) == 0 {
		return normal{}, transient("an empty body")
	}
	var a answer
	var err error
	switch {
	case doc[0] == '{' || doc[0] == '[':
		a, err = parseAnswer(doc)
	case looksLikeStream(doc):
		var f *failure
		if a, f = foldStream(doc); f != nil {
			return normal{}, f
		}
	default:
		return normal{}, notJSON(body, contentType)
	}
	if err != nil {
		if err == errTruncated {
			return normal{}, transient("JSON that ends in the middle: " + firstWords(doc))
		}
		return normal{}, notJSON(body, contentType)
	}
	if f := refusedInside(&a, doc); f != nil {
		return normal{}, f
	}
	return a.normal(n), nil
}

// trimLead removes what some servers and proxies put before the document: a byte order mark, white space, and the
// comment lines with which a stream's server says that it is alive.
func trimLead(b []byte) []byte {
	for {
		b = bytes.TrimPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("\xef\xbb\xbf"))
		b = bytes.TrimLeft(b, " \t\r\n")
		if len(b) == 0 || b[0] != ':' {
			return b
		}
		_, rest, found := bytes.Cut(b, []byte("\n"))
		if !found {
			return nil
		}
		b = rest
	}
}

// refusedInside finds the errors that come with status 200.
func refusedInside(a *answer, doc []byte) *failure {
	if a.failure != nil {
		return insideSuccess(a.failure)
	}
	if a.choices == 0 {
		if a.filtered {
			return filteredAway()
		}
		if !a.sawChoices {
			if c, ok := parseComplaint(doc); ok {
				return c.failure(200, nil)
			}
		}
		return transient("a reply without choices: " + firstWords(doc))
	}
	if len(a.calls) > maxCalls {
		return tooManyCalls(len(a.calls))
	}
	switch word := strings.ToLower(a.finish); word {
	case "error", "network_error", "insufficient_system_resource", "engine_overloaded":
		if len(a.calls) == 0 {
			return transient("finish_reason " + word)
		}
	case "model_context_window_exceeded":
		return overflowed(word)
	}
	return nil
}

// normal applies the repairs that are certain, and writes the reply down.
func (a *answer) normal(n *names) normal {
	a.tidyContent(n)
	size := 256 + len(a.content.raw) + len(a.content.s) + len(a.refusal.raw)
	for i := range a.calls {
		size += 128 + len(a.calls[i].args.raw) + len(a.calls[i].args.s)
	}
	out := normal{usage: a.usage.tokens(), body: make([]byte, 0, size)}
	b := append(out.body, `{"model":`...)
	b = appendText(b, a.model)
	b = append(b, `,"choices":[{"index":0,"finish_reason":"`...)
	b = append(b, finishOf(a.finish, len(a.calls))...)
	b = append(b, `","message":{"role":"assistant","content":`...)
	b = appendText(b, a.content)
	if !a.refusal.empty() {
		b = append(b, `,"refusal":`...)
		b = appendText(b, a.refusal)
	}
	if len(a.calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		b = a.appendCalls(b, n, &out.keep)
		b = append(b, ']')
	}
	out.body = append(b, `}}]}`...)
	return out
}

func (a *answer) appendCalls(b []byte, n *names, keep *kept) []byte {
	ids := make([]string, 0, 8)
	keep.members = a.keep.members()
	for i := range a.calls {
		c := &a.calls[i]
		id := c.id.String()
		// A result finds its call by the id: one that is missing, or there already, is replaced.
		for id == "" || slices.Contains(ids, id) {
			id = n.freshID()
		}
		ids = append(ids, id)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","id":`...)
		b = appendString(b, id)
		b = append(b, `,"function":{"name":`...)
		b = appendString(b, n.offered(c.name.String()))
		b = append(b, `,"arguments":`...)
		b = appendText(b, tidyArguments(c.args))
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
	if !e.reasoning.empty() {
		b = appendText(append(b, `,"reasoning_content":`...), e.reasoning)
	}
	if e.details != nil && json.Valid(e.details) {
		b = append(append(b, `,"reasoning_details":`...), conversation.CleanJSON(string(e.details))...)
	}
	if e.blocks != nil && json.Valid(e.blocks) {
		b = append(append(b, `,"thinking_blocks":`...), conversation.CleanJSON(string(e.blocks))...)
	}
	return b
}

// tidyArguments repairs arguments whose meaning is beyond doubt: a JSON string that holds an object, an object in a
// code fence, and the ways to say nothing. Anything else, Python literals and cut texts among them, goes on as it is: the model is told
// and corrects itself, which a guess of ours would prevent.
func tidyArguments(t text) text {
	if !t.decoded {
		lead := bytes.TrimLeft(t.raw, " \t\r\n")
		if len(lead) == 0 {
			return text{}
		}
		plain := lead[0] == '{'
		if plain && t.flags&hasUnicode == 0 && (t.flags&hasEscape == 0 || !bytes.Contains(t.raw, []byte(`\\u`))) {
			return t
		}
	}
	s := conversation.CleanJSON(t.String())
	trimmed := strings.TrimSpace(s)
	switch trimmed {
	case "", "null", `""`:
		return text{}
	}
	if inner, ok := fenced(trimmed); ok && isObject(inner) {
		return textOf(inner)
	}
	if strings.HasPrefix(trimmed, `"`) {
		var inner string
		if json.Unmarshal([]byte(trimmed), &inner) == nil && isObject(inner) {
			return textOf(conversation.CleanJSON(inner))
		}
	}
	return textOf(s)
}

func isObject(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

// fenced returns what a code fence around the whole text holds.
func fenced(s string) (string, bool) {
	if len(s) < 6 || !strings.HasPrefix(s, "```") || !strings.HasSuffix(s, "```") {
		return "", false
	}
	s = s[3 : len(s)-3]
	if first, rest, ok := strings.Cut(s, "\n"); ok && !strings.ContainsAny(first, "{[\"` ") {
		s = rest
	}
	return strings.TrimSpace(s), !strings.Contains(s, "```")
}

// tidyContent takes the model's thinking out of the text, and a tool call that the server did not recognise.
func (a *answer) tidyContent(n *names) {
	t := a.content
	if t.empty() || !suspicious(t) {
		return
	}
	s := stripThinking(t.String())
	if len(a.calls) == 0 && len(n.tools) > 0 {
		if calls := leakedCalls(s, n); calls != nil {
			a.calls, a.finish, s = calls, agent.FinishToolCalls, ""
		}
	}
	a.content = textOf(s)
}

// suspicious says whether a text may hold what tidyContent looks for.
func suspicious(t text) bool {
	if t.decoded {
		return strings.Contains(t.s, "think") || strings.ContainsAny(t.s[:1], "<[ \n")
	}
	return t.flags&hasUnicode != 0 || bytes.Contains(t.raw, []byte("think")) ||
		t.raw[0] == '<' || t.raw[0] == '[' || t.raw[0] == ' ' || t.raw[0] == '\\'
}

// stripThinking removes a thought that stands before the answer. A thought that never ends stays: all of the
// reply would go with it. So does a tag further on, which may be what the answer is about.
func stripThinking(s string) string {
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

// leakedCalls reads calls that arrived as text, in the notations that models are trained on. Only a text that is
// nothing but calls of tools on offer counts: inside other text it may be a quotation, of what a tool returned
// for example, and must not run anything.
func leakedCalls(s string, n *names) []call {
	s = strings.TrimSpace(s)
	var calls []call
	add := func(name, args string) bool {
		args = strings.TrimSpace(args)
		if !n.knows(name) || !isObject(args) {
			return false
		}
		calls = append(calls, call{name: textOf(name), args: textOf(args)})
		return true
	}
	object := func(s string) bool {
		var c struct {
			Name       string          `json:"name"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal([]byte(strings.TrimSpace(s)), &c) != nil {
			return false
		}
		if c.Arguments == nil {
			c.Arguments = c.Parameters
		}
		var quoted string
		if json.Unmarshal(c.Arguments, &quoted) == nil {
			return add(c.Name, quoted)
		}
		return add(c.Name, string(c.Arguments))
	}
	if list, ok := strings.CutPrefix(s, "[TOOL_CALLS]"); ok {
		var each []json.RawMessage
		if json.Unmarshal([]byte(list), &each) != nil {
			return nil
		}
		for _, one := range each {
			if !object(string(one)) {
				return nil
			}
		}
		return calls
	}
	if one, ok := strings.CutPrefix(s, "<|python_tag|>"); ok {
		if !object(one) {
			return nil
		}
		return calls
	}
	for s != "" {
		var body string
		var ok bool
		switch {
		case strings.HasPrefix(s, "<tool_call>"):
			body, s, ok = strings.Cut(s[len("<tool_call>"):], "</tool_call>")
			ok = ok && object(body)
		case strings.HasPrefix(s, "<function_call>"):
			body, s, ok = strings.Cut(s[len("<function_call>"):], "</function_call>")
			ok = ok && object(body)
		case strings.HasPrefix(s, "<function="):
			body, s, ok = strings.Cut(s[len("<function="):], "</function>")
			name, args, found := strings.Cut(body, ">")
			ok = ok && found && add(name, args)
		}
		if !ok {
			return nil
		}
		s = strings.TrimSpace(s)
	}
	return calls
}
