package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"aidb/extension/internal/fault"
)

// Complaint is what an error body says, in whichever of the many shapes.
type Complaint struct {
	Message string
	code    string
	kind    string
	param   string
	// wait is a delay that the body itself asks for.
	wait time.Duration
}

// ParseComplaint reads an error body; false when it does not look like one.
func ParseComplaint(body []byte) (Complaint, bool) {
	var doc any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&doc) != nil {
		return Complaint{}, false
	}
	var c Complaint
	c.read(doc, 0)
	return c, c.Message != "" || c.code != "" || c.kind != ""
}

// The members that say what went wrong, the most telling first.
var (
	messageKeys = []string{"message", "msg", "detail", "details", "error_message", "error_msg", "errorMessage", "status_msg", "Message", "error_description", "faultstring", "reason", "title"}
	codeKeys    = []string{"code", "error_code", "errorCode", "status_code", "Code", "status"}
	wrapperKeys = []string{"error", "errors", "fault", "Error", "response", "data"}
)

// maxWrapped bounds how deep an error may hide in others.
const maxWrapped = 6

func (c *Complaint) read(v any, depth int) {
	if depth > maxWrapped {
		return
	}
	switch v := v.(type) {
	case string:
		c.say(v)
	case []any:
		for _, e := range v {
			c.read(e, depth+1)
			if c.Message != "" {
				return
			}
		}
	case map[string]any:
		for _, k := range wrapperKeys {
			switch inner := v[k].(type) {
			case map[string]any, []any:
				c.read(inner, depth+1)
			case string:
				// {"error": "text"}, or {"error": "name", "message": "text"}
				if _, has := v["message"].(string); !has {
					c.say(inner)
				} else if c.kind == "" {
					c.kind = inner
				}
			}
		}
		for _, k := range messageKeys {
			if c.Message != "" {
				break
			}
			c.say(flat(v[k], 0))
		}
		for _, k := range codeKeys {
			if c.code == "" {
				c.code = flat(v[k], 0)
			}
		}
		if s, ok := v["type"].(string); ok && c.kind == "" {
			c.kind = s
		}
		if s, ok := v["status"].(string); ok && c.kind == "" {
			c.kind = s
		}
		if s, ok := v["param"].(string); ok && c.param == "" {
			c.param = s
		}
		c.readMore(v)
	}
}

// readMore looks at what some vendors add: the upstream's own words, and how long to wait.
func (c *Complaint) readMore(v map[string]any) {
	if inner, ok := v["innererror"].(map[string]any); ok {
		if s, ok := inner["code"].(string); ok && s != "" {
			c.code = strings.TrimPrefix(c.code+" "+s, " ")
		}
	}
	if meta, ok := v["metadata"].(map[string]any); ok {
		if raw := flat(meta["raw"], 0); raw != "" && !strings.Contains(c.Message, raw) {
			c.Message = strings.TrimPrefix(c.Message+" ("+raw+")", " ")
		}
		if h, ok := meta["headers"].(map[string]any); ok && c.wait == 0 {
			c.wait = headerWait(func(key string) string { return lookup(h, key) }, time.Now())
		}
		if reasons := flat(meta["reasons"], 0); reasons != "" {
			c.Message = strings.TrimPrefix(c.Message+" ("+reasons+")", " ")
		}
	}
	if list, ok := v["details"].([]any); ok && c.wait == 0 {
		for _, e := range list {
			if d, ok := e.(map[string]any); ok {
				if s, ok := d["retryDelay"].(string); ok {
					c.wait = parseWait(s)
				}
			}
		}
	}
}

func lookup(m map[string]any, key string) string {
	for k, v := range m {
		if strings.EqualFold(k, key) {
			return flat(v, 0)
		}
	}
	return ""
}

func (c *Complaint) say(s string) {
	if c.Message == "" {
		c.Message = strings.TrimSpace(s)
	}
}

// flat makes one text of a message that may be a list or an object, as validators return them.
func flat(v any, depth int) string {
	if depth > maxWrapped {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case []any:
		var parts []string
		for _, e := range v {
			if s := flat(e, depth+1); s != "" {
				parts = append(parts, s)
			}
			if len(parts) == 20 {
				break
			}
		}
		return strings.Join(parts, "; ")
	case map[string]any:
		for _, k := range messageKeys {
			s := flat(v[k], depth+1)
			if s == "" {
				continue
			}
			if at := location(v["loc"]); at != "" {
				return at + ": " + s
			}
			return s
		}
		if b, err := json.Marshal(v); err == nil && len(v) > 0 {
			return string(b)
		}
	}
	return ""
}

// location writes a validator's path, such as body.parallel_tool_calls.
func location(v any) string {
	list, _ := v.([]any)
	parts := make([]string, 0, len(list))
	for _, e := range list {
		parts = append(parts, fmt.Sprint(e))
	}
	return strings.Join(parts, ".")
}

// answered makes a failure of a response with an error status.
func answered(status int, header http.Header, body []byte, now time.Time) *Failure {
	c, ok := ParseComplaint(body)
	if !ok {
		if c.Message = FirstWords(body); c.Message == "" {
			c.Message = strings.TrimSpace(http.StatusText(status) + " (no reason given)")
			if status == http.StatusBadRequest {
				c.Message += "; some servers answer so when the context length is exceeded"
			}
		}
	}
	f := c.Failure(status, header)
	if w := headerWait(header.Get, now); w > 0 {
		f.wait = w
	}
	if header.Get("X-Should-Retry") == "false" {
		f.Retry = false
	}
	return f
}

// InsideSuccess makes a failure of an error object that came with status 200. The status is the one it claims.
func InsideSuccess(raw []byte) *Failure {
	c, ok := ParseComplaint(raw)
	if !ok {
		c.Message = FirstWords(raw)
	}
	return c.Failure(200, nil)
}

// Failure classifies the complaint.
func (c Complaint) Failure(status int, header http.Header) *Failure {
	if status < 300 {
		if n, err := strconv.Atoi(c.code); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	f := &Failure{Status: status, param: OneLine(c.param), wait: c.wait}
	f.Text = OneLine(c.Message)
	if f.Text == "" {
		f.Text = OneLine(strings.TrimSpace(c.kind + " " + c.code))
	}
	f.Text = fault.Cut(f.Text, 4*MaxText)
	f.Words = strings.ToLower(strings.Join([]string{f.Text, c.code, c.kind, c.param}, " "))
	if f.wait == 0 {
		f.wait = textWait(f.Words)
	}
	if header != nil {
		f.id = requestID(header)
	}
	f.classify(strings.ToLower(c.code), strings.ToLower(c.kind))
	return f
}

// AnyOf reports whether one of the words occurs.
func AnyOf(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}
