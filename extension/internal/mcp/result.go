package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Result is what a tool gave. Failed says that the tool itself did.
type Result struct {
	Failed bool

	blocks     []block
	structured json.RawMessage
}

// block is one piece of content: the members of the protocol's own objects that mean something to a reader.
type block struct {
	Type        string `json:"type"`
	Text        string `json:"text,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	URI         string `json:"uri,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Data        []byte `json:"data,omitempty"`
	Size        *int64 `json:"size,omitempty"` // bytes
	Truncated   bool   `json:"truncated,omitempty"`
}

func newResult(r *sdk.CallToolResult) *Result {
	result := &Result{Failed: r.IsError}
	for _, c := range r.Content {
		result.blocks = append(result.blocks, newBlock(c))
	}
	if r.StructuredContent != nil {
		if text, err := json.Marshal(r.StructuredContent); err == nil {
			result.structured = json.RawMessage(conversation.CleanJSON(string(text)))
		}
		result.exact()
	}
	return result
}

// exact takes the structured content from the text that repeats it, as servers should send it: there, numbers have all
// their digits. That text is then left out.
func (r *Result) exact() {
	if len(r.blocks) != 1 || r.blocks[0].Type != "text" {
		return
	}
	text := []byte(r.blocks[0].Text)
	var a, b any
	if json.Unmarshal(text, &a) != nil || json.Unmarshal(r.structured, &b) != nil {
		return
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil {
		r.structured, r.blocks = json.RawMessage(conversation.CleanJSON(compact.String())), nil
	}
}

func newBlock(c sdk.Content) block {
	size := func(data []byte) *int64 {
		n := int64(len(data))
		return &n
	}
	switch c := c.(type) {
	case *sdk.TextContent:
		return block{Type: "text", Text: conversation.Clean(c.Text)}
	case *sdk.ImageContent:
		return block{Type: "image", MIMEType: line(c.MIMEType, 100), Data: c.Data, Size: size(c.Data)}
	case *sdk.AudioContent:
		return block{Type: "audio", MIMEType: line(c.MIMEType, 100), Data: c.Data, Size: size(c.Data)}
	case *sdk.ResourceLink:
		return block{Type: "resource_link", URI: line(c.URI, 2000), Name: line(c.Name, 200), MIMEType: line(c.MIMEType, 100),
			Description: fault.Cut(conversation.Clean(c.Description), maxDescription), Size: c.Size}
	case *sdk.EmbeddedResource:
		b := block{Type: "resource"}
		if res := c.Resource; res != nil {
			b.URI, b.MIMEType, b.Text = line(res.URI, 2000), line(res.MIMEType, 100), conversation.Clean(res.Text)
			if len(res.Blob) > 0 {
				b.Data, b.Size = res.Blob, size(res.Blob)
			}
		}
		return b
	}
	return block{Type: "other", Text: "content of a kind that is not known"}
}

// Text is the result as a model reads it, at most max bytes of it: what is beyond is cut, and the end says so. Of what is
// not text it says what it is.
func (r *Result) Text(max int64) string {
	var b strings.Builder
	for i, c := range r.blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(c.describe())
	}
	if r.structured != nil {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.Write(r.structured)
	}
	text := b.String()
	if int64(len(text)) <= max {
		return text
	}
	return fault.Cut(text, int(max)) + fmt.Sprintf("\n[truncated: the result has %d bytes, these are the first %d]", len(text), max)
}

func (b *block) describe() string {
	about := func(parts ...string) string {
		var words []string
		for _, p := range parts {
			if p != "" {
				words = append(words, p)
			}
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	bytes := ""
	if b.Size != nil {
		bytes = fmt.Sprintf("%d bytes", *b.Size)
	}
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		s := about("resource link", b.Name, b.URI, b.MIMEType, bytes)
		if b.Description != "" {
			s += " " + b.Description
		}
		return s
	case "resource":
		s := about("resource", b.URI, b.MIMEType, bytes)
		if b.Text != "" {
			s += "\n" + b.Text
		}
		return s
	}
	if b.Text != "" {
		return about(b.Text)
	}
	return about(b.Type, b.MIMEType, bytes)
}

// JSON is the result in the protocol's own shape, {"content": […], "structuredContent": …}, within about that many bytes: texts
// beyond are cut, data beyond is left out, and each such place has "truncated": true.
func (r *Result) JSON(limit int64) json.RawMessage {
	left := limit
	out := struct {
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		Truncated  bool            `json:"truncated,omitempty"`
	}{Content: make([]block, 0, len(r.blocks))}
	if r.structured != nil {
		if int64(len(r.structured)) <= left {
			out.Structured = r.structured
			left -= int64(len(r.structured))
		} else {
			out.Truncated = true
		}
	}
	for _, b := range r.blocks {
		if left <= 0 {
			out.Truncated = true
			break
		}
		left -= 64 + int64(len(b.URI)+len(b.Name)+len(b.Description))
		if int64(len(b.Text)) > left {
			b.Text, b.Truncated = fault.Cut(b.Text, int(max(left, 0))), true
		}
		left -= int64(len(b.Text))
		if encoded := int64(len(b.Data)+2) / 3 * 4; encoded > left {
			b.Data, b.Truncated = nil, true
		} else {
			left -= encoded
		}
		out.Truncated = out.Truncated || b.Truncated
		out.Content = append(out.Content, b)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage(`{"content": [], "truncated": true}`)
	}
	return text
}
