package openai

import (
	"strings"

	"aidb/extension/internal/wire"
)

// A stream is folded, as it arrives, into the answer that it would have been.

// foldStream reads the events of a stream. Beyond most bytes of text and arguments (0: no limit) it stops and marks the
// answer as cut: its reader cannot pay for more.
func foldStream(lines wire.Lines, most int64) (answer, *wire.Failure) {
	var total answer
	var size int64
	finished := false
	done, f := wire.Events(lines, func(name string, data []byte) (bool, *wire.Failure) {
		chunk, err := parseAnswer(data)
		if err != nil {
			return false, wire.NotJSON(data, "text/event-stream")
		}
		if chunk.failure == nil && name == "error" {
			chunk.failure = data
		}
		if chunk.failure != nil {
			return false, wire.InsideSuccess(chunk.failure)
		}
		total.fold(&chunk)
		finished = finished || total.finish != ""
		if size += chunk.size(); most > 0 && size > most && !finished {
			total.finish, finished = "length", true
			return true, nil
		}
		return len(total.calls) > wire.MaxCalls, nil
	})
	if f == nil && total.choices > 0 && !done && !finished {
		f = wire.Transient("a stream that ends in the middle")
	}
	return total, f
}

// size is how much of what is paid for is in a chunk.
func (a *answer) size() int64 {
	n := a.content.Size() + max(a.keep.reasoning.Size(), a.hidden)
	for i := range a.calls {
		n += a.calls[i].args.Size() + a.calls[i].name.Size()
	}
	return int64(n)
}

// fold adds a chunk. Texts are joined as they stand in the body, before escapes are resolved: a chunk may end
// inside a surrogate pair.
func (a *answer) fold(c *answer) {
	a.filtered = a.filtered || c.filtered
	if a.model.Empty() {
		a.model = c.model
	}
	a.usage.Fold(c.usage)
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
	if c.whole && !a.empty() {
		return // all of it again, at the end
	}
	a.content = a.content.Join(c.content)
	a.refusal = a.refusal.Join(c.refusal)
	a.hidden += c.hidden
	a.keep.reasoning = a.keep.reasoning.Join(c.keep.reasoning)
	a.keep.details = append(a.keep.details, c.keep.details...)
	a.keep.blocks = append(a.keep.blocks, c.keep.blocks...)
	if c.keep.extra != nil {
		a.keep.extra = c.keep.extra
	}
	for i := range c.calls {
		a.foldCall(&c.calls[i])
	}
}

// foldCall adds a piece of a call to the call it belongs to. The index says which; where a server gives every
// call the same index, or none, a new id says that a new call begins.
func (a *answer) foldCall(c *call) {
	at := -1
	for i := len(a.calls) - 1; i >= 0; i-- {
		if (c.index >= 0 && a.calls[i].index == c.index) || (c.index < 0 && c.id.Empty() && i == len(a.calls)-1) {
			at = i
			break
		}
		if c.index < 0 && !c.id.Empty() && a.calls[i].id.String() == c.id.String() {
			at = i
			break
		}
	}
	if at >= 0 && !c.id.Empty() && !a.calls[at].id.Empty() && a.calls[at].id.String() != c.id.String() {
		at = -1
	}
	if at < 0 {
		a.calls = append(a.calls, *c)
		return
	}
	to := &a.calls[at]
	if to.id.Empty() {
		to.id = c.id
	}
	to.foldName(c)
	to.args = to.args.Join(c.args)
	if c.extra != nil {
		to.extra = c.extra
	}
}

// foldName adds a name, or a piece of one: some servers cut names, too, and many repeat them with each piece. A name is
// whole when the arguments begin.
func (to *call) foldName(c *call) {
	switch before, more := to.name.String(), c.name.String(); {
	case before == "" || more != before && strings.HasPrefix(more, before):
		to.name = c.name
	case more != "" && more != before && to.args.Empty():
		to.name = to.name.Join(c.name)
	}
}
