// Package report renders an incident. It sees nothing but the incident, so that
// a stored one can be rendered later, by another version, or where the logs are
// gone. The same incident gives the same bytes.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Readers of a report. They decide what comes first and how much is shown.
const (
	Engineer  = "engineer"
	OnCall    = "on-call"
	Executive = "executive"
)

// Bounds of Options.Width.
const (
	MinWidth = 40
	MaxWidth = 200
)

// Options fit a report to its reader and to where it goes.
type Options struct {
	Width int    // columns of text, MinWidth to MaxWidth; 0 is 100
	Color bool   // terminal colours; every report is complete without them
	ASCII bool   // curves are drawn without characters beyond ASCII
	Full  bool   // all of it; otherwise text has at most 40 lines
	For   string // engineer, on-call, executive; "" is engineer
}

// A format is one way to write a result.
type format[T any] struct {
	name  string
	write func(io.Writer, T, Options) error
}

// formats lists every report format. Adding one is a row here and a file beside
// this one.
var formats = []format[*incident.Incident]{
	{"text", writeText},                     // for a terminal or a pipe
	{"json", writeJSON[*incident.Incident]}, // the incident itself
	{"markdown", writeMarkdown},             // for an issue or a chat
	{"html", writeHTML},                     // one self-contained page
	{"sarif", writeSARIF},                   // for code hosts and editors: SARIF 2.1.0
	{"chat", writeChat},                     // a few lines of Markdown
	{"termination", writeTermination},       // plain text that fits a container's termination message
}

// Formats returns the names of all formats, the default first.
func Formats() []string { return formatNames(formats) }

// Write renders inc in the named format. An unknown reader is an engineer.
func Write(w io.Writer, format string, inc *incident.Incident, o Options) error {
	if o.For != OnCall && o.For != Executive {
		o.For = Engineer
	}
	return writeIn(formats, w, format, inc, o)
}

func formatNames[T any](all []format[T]) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.name)
	}
	return out
}

// writeIn writes v in the format of that name, within the bounds of the width.
func writeIn[T any](all []format[T], w io.Writer, name string, v T, o Options) error {
	if o.Width == 0 {
		o.Width = 100
	}
	o.Width = min(max(o.Width, MinWidth), MaxWidth)
	for _, f := range all {
		if f.name == name {
			return f.write(w, v, o)
		}
	}
	return fmt.Errorf("write report: unknown format %q", name)
}

func writeJSON[T any](w io.Writer, v T, _ Options) error { return JSON(w, v) }

// JSON writes v as all results are written: indented by one space, a newline at the end, and no
// character that a terminal or an editor would act on.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(visible(b.Bytes()))
	return err
}

// visible writes characters that a terminal or an editor would act on or hide
// (the C1 controls, bidirectional overrides, zero-width and tag characters) as
// JSON escapes. They stand only inside strings, so the values stay the same.
func visible(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r < utf8.RuneSelf && r != 0x7f || unicode.IsPrint(r) && r != utf8.RuneError:
			out = append(out, b[:n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	return out
}
