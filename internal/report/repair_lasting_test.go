package report

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestLastingWords: a step that failed alone is not said to have lasted.
func TestLastingWords(t *testing.T) {
	step := func(n int64) *int64 { return &n }
	failed := []incident.RepairedSeries{{Name: "loss", Count: 9, Kept: 8, Dropped: 1}}
	for _, c := range []struct {
		run  incident.RepairedRun
		want string
	}{
		{incident.RepairedRun{Clean: step(11), First: step(12), Since: step(30)}, "the curve is real up to step 11; step 12 is affected, then finite values follow, and from step 30 it is affected to the end: a checkpoint from there on may hold what failed"},
		{incident.RepairedRun{Clean: step(29), First: step(30), Since: step(30)}, "the curve is real up to step 29; affected from step 30 to the end: a checkpoint from there on may hold what failed"},
		{incident.RepairedRun{Clean: step(11), First: step(12)}, "the curve is real up to step 11; affected from step 12 on, finite again at the end"},
		{incident.RepairedRun{First: step(0), Since: step(0)}, "no step before the failed part was logged with a finite value; affected from step 0 to the end: a checkpoint from there on may hold what failed"},
		{incident.RepairedRun{}, "the failed part states no step"},
	} {
		c.run.Series = failed
		v := &repairView{&incident.Repair{Runs: []incident.RepairedRun{c.run}}}
		if got := v.cleanVariants()[0]; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	v := &repairView{&incident.Repair{Runs: []incident.RepairedRun{{Series: []incident.RepairedSeries{{Superseded: 3}}}}}}
	if got := v.cleanVariants()[0]; !strings.Contains(got, "none failed") {
		t.Errorf("only superseded values: %q", got)
	}
}
