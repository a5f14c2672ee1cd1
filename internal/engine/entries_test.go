package engine_test

import (
	"fmt"
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/incident"
)

// TestEntryExamples diagnoses the examples of every entry: a match must make the
// entry a hypothesis of the stated standing or better, a no_match must not name
// it above possible.
func TestEntryExamples(t *testing.T) {
	c, err := knowledge()
	if err != nil {
		t.Fatal(err)
	}
	better := map[string]int{"": 4, incident.RuledOut: 3, incident.Possible: 2, incident.Supported: 1, incident.Established: 0}
	for _, h := range c.Entries() {
		e, err := c.Entry(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		check := func(kind string, n int, x catalog.Example, want func(standing string) string) {
			t.Run(fmt.Sprintf("%s/%s%d", e.ID, kind, n+1), func(t *testing.T) {
				t.Parallel()
				files := x.Files
				if files == nil {
					files = map[string]string{"train.log": x.Log}
				}
				inc := diagnose(t, job(t, files))
				if problem := want(standing(inc, e.ID)); problem != "" {
					first := "no first fault"
					if inc.FirstFault != nil {
						first = fmt.Sprintf("first fault %s (%s)", inc.FirstFault.Kind, inc.FirstFaultStanding)
					}
					var others []string
					for _, h := range inc.Hypotheses {
						others = append(others, h.Cause+" "+h.Standing)
					}
					t.Errorf("%s; %s; hypotheses %q", problem, first, others)
				}
			})
		}
		for i, x := range e.Examples.Match {
			least := x.Standing
			if least == "" {
				least = incident.Possible
			}
			check("match", i, x, func(s string) string {
				if better[s] > better[least] {
					return fmt.Sprintf("standing is %q, want %s or better", s, least)
				}
				return ""
			})
		}
		for i, x := range e.Examples.NoMatch {
			check("no_match", i, x, func(s string) string {
				if better[s] < better[incident.Possible] {
					return fmt.Sprintf("standing is %q, want at most possible", s)
				}
				return ""
			})
		}
	}
}
