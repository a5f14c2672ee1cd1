package report

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestDamageIsNoLiveJob renders incidents without a failure that rest on files
// that were not read to their end.
func TestDamageIsNoLiveJob(t *testing.T) {
	for _, c := range []struct {
		outcome, fate, note string
		want                []string
	}{
		{incident.Running, "partly read", "decompress gzip: unexpected EOF", []string{"a.log.gz ends early", "Copy a.log.gz again"}},
		{incident.Unclear, "unreadable", "permission denied", []string{"a.log.gz could not be read", "Make a.log.gz readable"}},
		{incident.Running, "partly read", "decompress gzip: invalid checksum", []string{"a.log.gz could not be read in full", "Copy a.log.gz again"}},
		{incident.FinishedRun, "over limit", "over limit: 64 GiB", []string{"the run finished; a.log.gz was read only up to a limit", "one by one"}},
	} {
		inc := &incident.Incident{Outcome: c.outcome, Artifacts: []incident.Artifact{{Path: "x/a.log.gz", Fate: c.fate, Note: c.note, Recognised: 3}, {Path: "x/b.log", Fate: "read"}}}
		for _, f := range []string{"text", "markdown", "html"} {
			out := strings.ReplaceAll(render(t, f, inc, Options{Width: 200}), "`", "")
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s of %s, %s: %q is missing from\n%s", f, c.outcome, c.note, want, out)
				}
			}
			if strings.Contains(out, "look again later") || strings.Contains(out, "artifacts were not") {
				t.Errorf("%s of %s, %s:\n%s", f, c.outcome, c.note, out)
			}
		}
	}
}

func TestNothingRecognised(t *testing.T) {
	for _, c := range []struct {
		artifacts []incident.Artifact
		want      string
	}{
		{nil, "Nothing recognisable was found in what was named."},
		{[]incident.Artifact{{Path: "-", Fate: "read", Note: "empty"}}, "standard input was empty."},
		{[]incident.Artifact{{Path: "a/x.log", Fate: "read", Note: "empty"}}, "x.log is empty."},
		{[]incident.Artifact{{Path: "x.gz", Size: -1, Fate: "unreadable", Note: "decompress gzip: unexpected EOF"}}, "x.gz ends early (decompress gzip: unexpected EOF)."},
		{[]incident.Artifact{{Path: "x.log", Size: 9, Fate: "read", Recognised: 1}}, "First  no failure found, and no end of the run either"},
		{[]incident.Artifact{{Path: "a", Fate: "read"}, {Path: "b", Fate: "read"}}, "Nothing of a training run was recognised in 2 artifacts: a is empty; b is empty."},
	} {
		inc := &incident.Incident{Outcome: incident.Unclear, Artifacts: c.artifacts}
		if got, _, _ := strings.Cut(render(t, "text", inc, Options{}), "\n"); got != c.want {
			t.Errorf("%+v: %q, want %q", c.artifacts, got, c.want)
		}
	}
}

// TestSureNeverContradictsItself renders a supported first fault of an open
// cause where there is little room.
func TestSureNeverContradictsItself(t *testing.T) {
	inc := load(t, "oom")
	inc.FirstFaultStanding = incident.Supported
	inc.Hypotheses = []incident.Hypothesis{{Entry: "undetermined", Standing: incident.Possible, Title: "The evidence does not decide what failed first"}}
	for _, width := range []int{40, 60, 100} {
		out := render(t, "text", inc, Options{Width: width})
		if sure := strings.Split(out, "\n")[1]; strings.Contains(sure, "cannot be decided") || !strings.Contains(sure, "supported") {
			t.Errorf("width %d: %s", width, sure)
		}
	}
}
