package engine_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

var updateRuns = flag.Bool("update-runs", false, "rewrite want.txt of the runs")

// A truth is what is known of a run, because the run was made to fail that way.
// Empty fields are not checked.
type truth struct {
	About   string `yaml:"about"`   // what happened, in one sentence
	With    string `yaml:"with"`    // the versions that printed it
	Outcome string `yaml:"outcome"` // failed, finished, interrupted
	Kind    string `yaml:"kind"`    // of the first fault; "none" where there is none
	Class   string `yaml:"class"`
	Rank    *int   `yaml:"rank"`
	Step    *int64 `yaml:"step"` // the last one seen
	File    string `yaml:"file"` // below input/
	Line    int64  `yaml:"line"`
	First   string `yaml:"first"` // how far what failed first is decided
	Order   string `yaml:"order"`
	Cause   string `yaml:"cause"` // the leading one
	Sure    string `yaml:"sure"`  // its standing
}

// TestRuns diagnoses the logs of small jobs that failed for real, or ended well.
// scripts/make-runs.sh makes them again.
func TestRuns(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(root, "testdata", "runs", "*", "case.yaml"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no runs: %v", err)
	}
	labelled(t, dirs)
}

// labelled diagnoses the input beside each case file and compares what it says with the
// labels there and with the first lines kept in want.txt.
func labelled(t *testing.T, cases []string) {
	t.Helper()
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want truth
			if err := yaml.UnmarshalWithOptions(text, &want, yaml.Strict()); err != nil {
				t.Fatalf("read %s: %v", file, err)
			}
			inc := diagnose(t, filepath.Join(dir, "input"))
			sound(t, filepath.Base(dir), inc)
			want.check(t, inc)
			headline(t, filepath.Join(dir, "want.txt"), inc)
		})
	}
}

func (w *truth) check(t *testing.T, inc *incident.Incident) {
	t.Helper()
	same := func(what, got, want string) {
		t.Helper()
		if want != "" && got != want {
			t.Errorf("%s is %q; it is known to be %q", what, got, want)
		}
	}
	same("outcome", inc.Outcome, w.Outcome)
	same("order", inc.Order.Relation, w.Order)
	f := inc.FirstFault
	if w.Kind == "none" {
		if f != nil {
			t.Errorf("first fault %s, %q; there is none", f.Kind, f.Text)
		}
		return
	}
	if f == nil {
		t.Fatal("no first fault")
	}
	same("kind", f.Kind, w.Kind)
	same("class", f.Class, w.Class)
	same("standing of the first fault", inc.FirstFaultStanding, w.First)
	if w.Rank == nil && f.Rank != nil || w.Rank != nil && (f.Rank == nil || *f.Rank != *w.Rank) {
		t.Errorf("rank is %d; it is known to be %v", rank(inc), w.Rank)
	}
	if w.Step != nil && (f.Step == nil || *f.Step != *w.Step) {
		t.Errorf("step is %v; it is known to be %d", f.Step, *w.Step)
	}
	if f.Span == nil {
		same("file", "", w.File)
	} else if w.Line != 0 && (f.Span.Line != w.Line || !strings.HasSuffix(f.Span.Artifact, w.File)) {
		t.Errorf("first fault at %s:%d; it is known to be at %s:%d", f.Span.Artifact, f.Span.Line, w.File, w.Line)
	}
	if len(inc.Hypotheses) == 0 {
		t.Fatal("no cause")
	}
	same("leading cause", inc.Hypotheses[0].Cause, w.Cause)
	same("standing of the cause", inc.Hypotheses[0].Standing, w.Sure)
}

// headline compares the first five lines of the text report: what happened, how
// sure, what to do, how to check.
func headline(t *testing.T, file string, inc *incident.Incident) {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, "text", inc, report.Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(b.String(), "\n", 6)
	got := strings.Join(lines[:min(5, len(lines))], "")
	// Paths in the report begin where the test stands.
	got = strings.ReplaceAll(got, filepath.ToSlash(filepath.Dir(file))+"/", "")
	if *updateRuns {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the report begins\n%swant\n%s", got, want)
	}
}
