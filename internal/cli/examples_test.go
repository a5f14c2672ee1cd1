package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// An expectation is what examples/expected.json says of one folder.
type expectation struct {
	Outcome    string         `json:"outcome"`
	FirstFault expectedFault  `json:"first_fault"`
	Order      string         `json:"order"`
	Causes     []string       `json:"causes"`      // the first hypothesis is one of them
	NeverFirst []int          `json:"never_first"` // ranks that only followed
	Attempts   int            `json:"attempts"`
	Earlier    *expectedFault `json:"earlier"` // first fault of the attempt before the last
}

type expectedFault struct {
	File  string `json:"file"`
	Line  int64  `json:"line"`
	Class string `json:"class"`
	Rank  *int   `json:"rank"` // null where the job has one process
}

func TestExamples(t *testing.T) {
	t.Chdir("../..")
	data, err := os.ReadFile("examples/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]expectation
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, d := range list {
		if !d.IsDir() {
			continue
		}
		folders++
		name := d.Name()
		t.Run(name, func(t *testing.T) {
			e, ok := want[name]
			if !ok {
				t.Fatal("examples/expected.json does not say what is true here")
			}
			var out, errs bytes.Buffer
			if status := Main([]string{"diagnose", "--format", "json", "examples/" + name}, nil, &out, &errs); status != 0 {
				t.Fatalf("status %d: %s", status, errs.String())
			}
			var got incident.Incident
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.Outcome != e.Outcome {
				t.Errorf("outcome %s, want %s", got.Outcome, e.Outcome)
			}
			if got.Order.Relation != e.Order {
				t.Errorf("order %s, want %s", got.Order.Relation, e.Order)
			}
			if len(got.Attempts) != e.Attempts {
				t.Errorf("%d attempts, want %d", len(got.Attempts), e.Attempts)
			}
			checkFault(t, "first fault", got.FirstFault, e.FirstFault)
			if e.Earlier != nil && len(got.Attempts) > 1 {
				checkFault(t, "earlier fault", got.Attempts[len(got.Attempts)-2].FirstFault, *e.Earlier)
			}
			for _, r := range got.FirstFaultRivals {
				if r.Rank != nil && slices.Contains(e.NeverFirst, *r.Rank) {
					t.Errorf("rank %d, which only followed, is said to be a rival", *r.Rank)
				}
			}
			switch {
			case len(got.Hypotheses) == 0:
				t.Error("no hypothesis")
			case !slices.Contains(e.Causes, got.Hypotheses[0].Cause):
				t.Errorf("cause %s (%s), want one of %v", got.Hypotheses[0].Cause, got.Hypotheses[0].Standing, e.Causes)
			}
		})
	}
	if len(want) != folders {
		t.Errorf("examples/expected.json speaks of %d folders, there are %d", len(want), folders)
	}
}

func checkFault(t *testing.T, what string, got *incident.Event, want expectedFault) {
	t.Helper()
	if got == nil || got.Span == nil {
		t.Errorf("no %s", what)
		return
	}
	if filepath.Base(got.Span.Artifact) != want.File || got.Span.Line != want.Line || got.Class != want.Class {
		t.Errorf("%s: %s:%d %s, want %s:%d %s", what, got.Span.Artifact, got.Span.Line, got.Class, want.File, want.Line, want.Class)
	}
	if want.Rank != nil && (got.Rank == nil || *got.Rank != *want.Rank) {
		t.Errorf("%s: rank %v, want %d", what, got.Rank, *want.Rank)
	}
}
