package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// memoryFormats lists every format of a result of inquest memory. Adding one is a row
// here and a file beside this one.
var memoryFormats = []struct {
	name  string
	write func(io.Writer, *incident.Memory, Options) error
}{
	{"text", writeMemoryText},
	{"json", writeMemoryJSON},
	{"markdown", writeMemoryMarkdown},
	{"html", writeMemoryHTML},
}

// MemoryFormats returns the names of the formats of WriteMemory, the default first.
func MemoryFormats() []string {
	var out []string
	for _, f := range memoryFormats {
		out = append(out, f.name)
	}
	return out
}

// WriteMemory renders what memory snapshots show in the named format.
func WriteMemory(w io.Writer, format string, m *incident.Memory, o Options) error {
	if o.Width == 0 {
		o.Width = 100
	}
	o.Width = min(max(o.Width, MinWidth), MaxWidth)
	for _, f := range memoryFormats {
		if f.name == format {
			return f.write(w, m, o)
		}
	}
	return fmt.Errorf("write report: unknown format %q", format)
}

func writeMemoryJSON(w io.Writer, m *incident.Memory, _ Options) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(m); err != nil {
		return err
	}
	_, err := w.Write(visible(b.Bytes()))
	return err
}
