package pgtool

import (
	"strconv"
	"strings"

	"aidb/extension/internal/spi"
)

// render is a result as the model sees it: a JSON array of row objects; when it was cut an object that says so;
// for a statement without rows the number of rows that it affected.
func render(r spi.ToolResult) string {
	if !r.ReturnsRows {
		switch r.Tag {
		case "INSERT", "UPDATE", "DELETE", "MERGE":
			return `{"rows_affected": ` + strconv.FormatInt(r.Affected, 10) + `}`
		}
		return `{"command": "` + r.Tag + `"}`
	}
	size := 80
	for _, row := range r.Rows {
		size += len(row) + len(row)/8 + 2
	}
	var b strings.Builder
	b.Grow(size)
	if r.Truncated {
		b.WriteString(`{"truncated": true, "note": "the result was cut after `)
		b.WriteString(strconv.Itoa(len(r.Rows)))
		b.WriteString(` rows; there is more: aggregate, filter or LIMIT", "rows": `)
	}
	b.WriteByte('[')
	for i, row := range r.Rows {
		if i > 0 {
			b.WriteString(", ")
		}
		spaced(&b, row)
	}
	b.WriteByte(']')
	if r.Truncated {
		b.WriteByte('}')
	}
	return b.String()
}

// spaced writes JSON with a space after each colon and comma, as jsonb is shown: the form that the documentation of
// the tools promises. Only separators outside strings are touched.
func spaced(b *strings.Builder, json string) {
	inString := false
	start := 0
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case !inString && (c == ':' || c == ',') && i+1 < len(json) && json[i+1] != ' ' && json[i+1] != '\n':
			b.WriteString(json[start : i+1])
			b.WriteByte(' ')
			start = i + 1
		}
	}
	b.WriteString(json[start:])
}
