package report

import (
	"io"
	"reflect"

	"github.com/inquest-dev/inquest/internal/incident"
)

// trialsFormats lists every format of the result of a series of trials. Adding one is a row
// here and a file beside this one for each of the answers.
var trialsFormats = []format[*incident.Trials]{
	{"text", answered(writeBoundaryText, writeVerificationText)},
	{"json", writeJSON[*incident.Trials]},
	{"markdown", answered(writeBoundaryMarkdown, writeVerificationMarkdown)},
	{"html", answered(writeBoundaryHTML, writeVerificationHTML)},
}

// TrialsFormats returns the names of the formats of WriteTrials, the default first.
func TrialsFormats() []string { return formatNames(trialsFormats) }

// WriteTrials renders what trials showed in the named format.
func WriteTrials(w io.Writer, format string, t *incident.Trials, o Options) error {
	return writeIn(trialsFormats, w, format, t, o)
}

// cleanedTrials is what cleaned is of an incident.
func cleanedTrials(t *incident.Trials) *incident.Trials {
	return copyClean(reflect.ValueOf(t)).Interface().(*incident.Trials)
}

// answered writes a result by the answer that it has.
func answered(boundary, verification func(io.Writer, *incident.Trials, Options) error) func(io.Writer, *incident.Trials, Options) error {
	return func(w io.Writer, t *incident.Trials, o Options) error {
		t = cleanedTrials(t)
		if t.Verification != nil {
			return verification(w, t, o)
		}
		if t.Boundary == nil {
			t.Boundary = &incident.Boundary{}
		}
		return boundary(w, t, o)
	}
}
