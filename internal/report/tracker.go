package report

import (
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// trackerFormats, alignmentFormats and repairFormats list every format of the results of
// inquest tracker show, align and repair. Adding one is a row here and a file beside this
// one.
var (
	trackerFormats = []format[*incident.Tracker]{
		{"text", writeTrackerText},
		{"json", writeJSON[*incident.Tracker]},
		{"markdown", writeTrackerMarkdown},
		{"html", writeTrackerHTML},
	}
	alignmentFormats = []format[*incident.Alignment]{
		{"text", writeAlignmentText},
		{"json", writeJSON[*incident.Alignment]},
		{"markdown", writeAlignmentMarkdown},
		{"html", writeAlignmentHTML},
	}
	repairFormats = []format[*incident.Repair]{
		{"text", writeRepairText},
		{"json", writeJSON[*incident.Repair]},
		{"markdown", writeRepairMarkdown},
		{"html", writeRepairHTML},
	}
)

// TrackerFormats returns the names of the formats of WriteTracker, the default first.
func TrackerFormats() []string { return formatNames(trackerFormats) }

// AlignmentFormats returns the names of the formats of WriteAlignment, the default first.
func AlignmentFormats() []string { return formatNames(alignmentFormats) }

// RepairFormats returns the names of the formats of WriteRepair, the default first.
func RepairFormats() []string { return formatNames(repairFormats) }

// WriteTracker renders what experiment trackers recorded in the named format.
func WriteTracker(w io.Writer, format string, t *incident.Tracker, o Options) error {
	return writeIn(trackerFormats, w, format, t, o)
}

// WriteAlignment renders tracked runs set against job logs in the named format.
func WriteAlignment(w io.Writer, format string, a *incident.Alignment, o Options) error {
	return writeIn(alignmentFormats, w, format, a, o)
}

// WriteRepair renders the account of a repaired copy in the named format.
func WriteRepair(w io.Writer, format string, r *incident.Repair, o Options) error {
	return writeIn(repairFormats, w, format, r, o)
}
