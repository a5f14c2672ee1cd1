package report

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestOnCall: the reading is as sure as the cause, and no surer.
func TestOnCall(t *testing.T) {
	const says = "Restarting unchanged fails again."
	for standing, certain := range map[string]bool{incident.Established: true, incident.Supported: false, incident.Possible: false} {
		got := onCall(incident.Hypothesis{Cause: "a-leak", Title: "Something leaks", Standing: standing, Readings: map[string]string{"on_call": says}})
		if (got == says) != certain || !strings.HasSuffix(got, says) || !certain && !(strings.HasPrefix(got, "If something leaks (a-leak), which is not proved: ")) {
			t.Errorf("%s: %q", standing, got)
		}
	}
	if got := onCall(incident.Hypothesis{Entry: "undetermined", Standing: incident.Possible, Readings: map[string]string{"on_call": says}}); got != says {
		t.Errorf("a cause that is not known presupposes none: %q", got)
	}
	if got := onCall(incident.Hypothesis{Standing: incident.Possible}); got != "" {
		t.Errorf("no reading gives %q", got)
	}
}
