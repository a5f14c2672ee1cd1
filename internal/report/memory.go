package report

import (
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// memoryFormats lists every format of a result of inquest memory. Adding one is a row
// here and a file beside this one.
var memoryFormats = []format[*incident.Memory]{
	{"text", writeMemoryText},
	{"json", writeJSON[*incident.Memory]},
	{"markdown", writeMemoryMarkdown},
	{"html", writeMemoryHTML},
}

// MemoryFormats returns the names of the formats of WriteMemory, the default first.
func MemoryFormats() []string { return formatNames(memoryFormats) }

// WriteMemory renders what memory snapshots show in the named format.
func WriteMemory(w io.Writer, format string, m *incident.Memory, o Options) error {
	return writeIn(memoryFormats, w, format, m, o)
}
