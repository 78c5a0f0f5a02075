package wire

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Failure is why one try of a request gave no reply, and what may be done about it.
type Failure struct {
	Kind fault.Kind
	// status is the HTTP status, or the one that a body of status 200 claims; 0 when no response came.
	Status int
	// text is what the server, or the network, said: one line, cleaned, not yet free of secrets.
	Text string
	// retry says that the same request may succeed later; wait is how long the server asks to wait, 0 when it
	// does not say.
	Retry bool
	wait  time.Duration
	// words is text with code, type and parameter in lower case, for those who look for words.
	Words string
	// param is the request's member that the server does not accept.
	param string
	// id is the server's name for the request.
	id string
	// cause, when set, is a complete error that only needs to be passed on.
	Cause error
}

// Error implements error, so that a failure can pass through the library's client.
func (f *Failure) Error() string { return f.Text }

const (
	// maxText bounds the provider's words in an error text.
	MaxText = 1000
	// maxExcerpt bounds what is shown of a body that is not understood.
	MaxExcerpt = 200
	// maxCalls bounds the calls of one reply. Models ask for a handful, broken ones for thousands.
	MaxCalls = 256
)

// Transient is a reply that came out broken, and need not the next time.
func Transient(what string) *Failure {
	return &Failure{Kind: fault.ModelProtocol, Status: 200, Text: what, Retry: true}
}

func FilteredAway() *Failure {
	return &Failure{Kind: fault.ModelRefused, Status: 200, Text: "no choices: the content filter blocked the request"}
}

func Overflowed(word string) *Failure {
	return &Failure{Kind: fault.ModelOverflow, Status: 200, Text: "finish_reason " + word}
}

func TooManyCalls(n int) *Failure {
	return &Failure{Kind: fault.ModelProtocol, Status: 200, Text: fmt.Sprintf("a reply with more than %d tool calls", MaxCalls)}
}

func tooLarge(limit int64) *Failure {
	return &Failure{Kind: fault.ModelProtocol, Status: 200, Text: fmt.Sprintf("a reply larger than the limit of %s", bytesText(limit))}
}

// NotJSON is a body of status 200 that is something else, a login page most likely.
func NotJSON(body []byte, contentType string) *Failure {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if kind == "" || strings.Contains(kind, "json") {
		kind = "text"
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
			kind = "text/html"
		}
	}
	return &Failure{Kind: fault.ModelProtocol, Status: 200, Text: fault.Cut(kind, 60) + ", not JSON (HTTP 200): " + FirstWords(body)}
}

// FirstWords shows the beginning of a body: its text when it is a page, one line, cleaned.
func FirstWords(body []byte) string {
	body = body[:min(len(body), 4096)]
	if t := bytes.TrimSpace(body); len(t) > 0 && t[0] == '<' {
		if words := pageText(t); words != "" {
			return fault.Cut(words, MaxExcerpt)
		}
	}
	return fault.Cut(OneLine(string(body)), MaxExcerpt)
}

// pageText takes the tags out of a page, and what is not meant to be read.
func pageText(page []byte) string {
	var b strings.Builder
	s := string(page)
	for s != "" {
		before, rest, found := strings.Cut(s, "<")
		b.WriteString(before)
		if !found {
			break
		}
		b.WriteByte(' ')
		tag, after, closed := strings.Cut(rest, ">")
		if !closed {
			break
		}
		s = after
		for _, skip := range []string{"script", "style"} {
			if strings.HasPrefix(strings.ToLower(tag), skip) {
				_, s, _ = strings.Cut(s, "</"+skip)
				_, s, _ = strings.Cut(s, ">")
			}
		}
	}
	return OneLine(b.String())
}

// OneLine makes one clean line of any text: white space and control characters become single blanks.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(conversation.Clean(s), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r == 0x2028 || r == 0x2029
	}), " ")
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Fault makes the error that leaves the package. where is the request's address, tries how often it was sent.
func (f *Failure) Fault(where string, tries int, scrub func(string) string) *fault.Error {
	said := fault.Cut(scrub(f.Text), MaxText)
	status := ""
	if f.Status >= 300 {
		status = fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	var m string
	switch {
	case f.Status == 0:
		m = fmt.Sprintf("could not get an answer from model server %s: %s", where, said)
	case f.Kind == fault.ModelProtocol:
		m = fmt.Sprintf("model server %s answered with %s", where, said)
	case f.Kind == fault.ModelAuth:
		m = fmt.Sprintf("model server %s did not accept the credentials%s: %s", where, status, said)
	case f.Kind == fault.ModelQuota:
		m = fmt.Sprintf("the account at model server %s has no quota left%s: %s", where, status, said)
	case f.Kind == fault.ModelRateLimited:
		m = fmt.Sprintf("model server %s limits the rate of requests%s: %s", where, status, said)
	case f.Kind == fault.ModelOverflow:
		m = fmt.Sprintf("the conversation does not fit into the model's context: model server %s answered%s: %s", where, status, said)
	case f.Kind == fault.ModelRefused:
		m = fmt.Sprintf("model server %s refused to answer%s: %s", where, status, said)
	default:
		m = fmt.Sprintf("model server %s answered HTTP %d: %s", where, f.Status, said)
	}
	if tries > 1 {
		m += fmt.Sprintf(" (tried %d times)", tries)
	}
	e := fault.Wrap(f.Cause, f.Kind, "%s", m)
	if f.id != "" {
		e.Detail = fmt.Sprintf("The server's name for the request is %q.", fault.Cut(scrub(f.id), MaxExcerpt))
	}
	e.Hint = f.hint()
	return e
}

func (f *Failure) hint() string {
	switch {
	case f.Kind == fault.ModelAuth:
		return "Check the credentials of the model."
	case f.param != "" && f.Kind == fault.ModelRejected:
		return fmt.Sprintf("Remove or change %q in the model's config.", fault.Cut(f.param, MaxExcerpt))
	case f.Status == 404 || f.Status == 405 || (f.Kind == fault.ModelProtocol && strings.Contains(f.Text, "not JSON")):
		return "Check url and model in the model's config: url is a base such as http://host:port/v1, or ends in /chat/completions."
	}
	return ""
}
