package report

import (
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// holdersFormats lists every format of a result of inquest gpus. Adding one is a row here
// and a file beside this one.
var holdersFormats = []format[*incident.Holders]{
	{"text", writeHoldersText},
	{"json", writeJSON[*incident.Holders]},
	{"markdown", writeHoldersMarkdown},
	{"html", writeHoldersHTML},
}

// HoldersFormats returns the names of the formats of WriteHolders, the default first.
func HoldersFormats() []string { return formatNames(holdersFormats) }

// WriteHolders renders who holds the devices in the named format.
func WriteHolders(w io.Writer, format string, h *incident.Holders, o Options) error {
	return writeIn(holdersFormats, w, format, h, o)
}
