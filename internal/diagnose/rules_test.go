package diagnose

import (
	"os"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestRules: every rule is tried by a script, and speaks of declared kinds.
func TestRules(t *testing.T) {
	text, err := os.ReadFile("testdata/script/links.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(text), "rule="+r.name) {
			t.Errorf("no script expects rule=%s", r.name)
		}
		if r.text == "" || len(r.from) == 0 || len(r.to) == 0 {
			t.Errorf("rule %s says nothing", r.name)
		}
		for _, k := range append(append(append([]evidence.Kind{}, r.from...), r.to...), r.later...) {
			if evidence.SpecOf(k) == nil {
				t.Errorf("rule %s speaks of %q, which is no kind", r.name, k)
			}
		}
		for _, k := range r.later {
			found := false
			for _, to := range r.to {
				found = found || to == k
			}
			if !found || !r.any {
				t.Errorf("rule %s: later has %s, which it does not explain in any order", r.name, k)
			}
		}
	}
}
