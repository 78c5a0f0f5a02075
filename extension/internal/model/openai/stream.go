package openai

import "bytes"

// Some servers and gateways stream whether one asks for it or not. A stream that has arrived whole is folded into
// the answer that it would have been.

// looksLikeStream reports whether a body is a stream of server-sent events.
func looksLikeStream(b []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(b, []byte(field)) {
			return true
		}
	}
	return false
}

// foldStream reads the events of a stream.
func foldStream(b []byte) (answer, *failure) {
	var total answer
	var pending []byte
	finished, named := false, false
	for len(b) > 0 || pending != nil {
		var line []byte
		line, b = cutLine(b)
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		event := value
		switch {
		case string(field) == "event":
			named = string(value) == "error"
			continue
		case len(line) == 0 && pending != nil:
			event = pending
		case string(field) != "data" || len(value) == 0:
			continue
		case string(value) == "[DONE]":
			finished, b = true, nil
			continue
		case pending != nil:
			pending = append(pending, value...)
			continue
		}
		// The rules say that lines up to an empty one belong together; servers forget the empty line more often
		// than they break an event into lines, so that a line which is JSON by itself is an event.
		chunk, err := parseAnswer(event)
		if err == errTruncated && pending == nil {
			pending = bytes.Clone(event)
			continue
		}
		pending = nil
		if err == errTruncated {
			return total, transient("a stream that ends in the middle")
		}
		if err != nil {
			return total, notJSON(event, "text/event-stream")
		}
		if chunk.failure == nil && named {
			chunk.failure = event
		}
		if chunk.failure != nil {
			return total, insideSuccess(chunk.failure)
		}
		named = false
		total.fold(&chunk)
		if len(total.calls) > maxCalls {
			break
		}
		finished = finished || total.finish != ""
	}
	if total.choices > 0 && !finished {
		return total, transient("a stream that ends in the middle")
	}
	return total, nil
}

// cutLine splits off the first line, whichever way it ends.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return b, nil
	}
	if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
		return b[:i], b[i+2:]
	}
	return b[:i], b[i+1:]
}

// fold adds a chunk. Texts are joined as they stand in the body, before escapes are resolved: a chunk may end
// inside a surrogate pair.
func (a *answer) fold(c *answer) {
	a.filtered = a.filtered || c.filtered
	if a.model.empty() {
		a.model = c.model
	}
	a.usage.fold(c.usage)
	if !c.sawChoices {
		return
	}
	a.sawChoices = true
	if c.choices == 0 || c.index > 0 {
		return
	}
	a.choices = 1
	if c.finish != "" {
		a.finish = c.finish
	}
	a.content = a.content.join(c.content)
	a.refusal = a.refusal.join(c.refusal)
	a.keep.reasoning = a.keep.reasoning.join(c.keep.reasoning)
	for i := range c.calls {
		a.foldCall(&c.calls[i])
	}
}

// foldCall adds a piece of a call to the call it belongs to. The index says which; where a server gives every
// call the same index, or none, a new id says that a new call begins.
func (a *answer) foldCall(c *call) {
	at := -1
	for i := len(a.calls) - 1; i >= 0; i-- {
		if (c.index >= 0 && a.calls[i].index == c.index) || (c.index < 0 && c.id.empty() && i == len(a.calls)-1) {
			at = i
			break
		}
		if c.index < 0 && !c.id.empty() && a.calls[i].id.String() == c.id.String() {
			at = i
			break
		}
	}
	if at >= 0 && !c.id.empty() && !a.calls[at].id.empty() && a.calls[at].id.String() != c.id.String() {
		at = -1
	}
	if at < 0 {
		a.calls = append(a.calls, *c)
		return
	}
	to := &a.calls[at]
	if to.id.empty() {
		to.id = c.id
	}
	if to.name.empty() {
		to.name = c.name
	}
	to.args = to.args.join(c.args)
	if c.extra != nil {
		to.extra = c.extra
	}
}

func (u *usage) fold(c usage) {
	for _, p := range []struct {
		to   **int64
		from *int64
	}{{&u.input, c.input}, {&u.output, c.output}, {&u.total, c.total}, {&u.cached, c.cached}, {&u.reasoning, c.reasoning}} {
		if p.from != nil {
			*p.to = p.from
		}
	}
}

// join puts two texts together without resolving their escapes.
func (t text) join(with text) text {
	switch {
	case with.empty():
		return t
	case t.empty():
		return with
	}
	t, with = t.undecoded(), with.undecoded()
	if !t.owned {
		// The text is a piece of the body: appending would write over what comes after it.
		t.raw, t.owned = bytes.Clone(t.raw), true
	}
	t.raw, t.flags = append(t.raw, with.raw...), t.flags|with.flags
	return t
}

func (t text) undecoded() text {
	if !t.decoded {
		return t
	}
	return text{raw: appendEscaped(nil, t.s), flags: hasEscape | hasUnicode | hasHigh, owned: true}
}
