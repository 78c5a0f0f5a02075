package main

import "aidb/extension/internal/spi"

// tracer speaks to the session.
type tracer struct {
	host   spi.Host
	redact func(string) string
}

// Notice sends a debug line, which is without secrets already: it is cut, and what is cut is hard to tell.
func (t tracer) Notice(text string)        { t.host.Notice("notice", text, "") }
func (t tracer) Warning(text, hint string) { t.host.Notice("warning", t.redact(text), hint) }
