package report

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

func TestChecklistProgress(t *testing.T) {
	list := func(states string) []incident.CheckItem {
		var out []incident.CheckItem
		for _, c := range states {
			out = append(out, incident.CheckItem{Item: "item " + string(c), State: map[rune]string{'y': "yes", 'n': "no", 'u': "unknown"}[c], Spans: []evidence.Span{}})
		}
		return out
	}
	for states, want := range map[string]string{
		"yunyu": "3 of 5 answered by the evidence: 2 hold, 1 does not; 2 left to do",
		"y":     "1 of 1 answered by the evidence: 1 holds",
		"uuu":   "0 of 3 answered by the evidence: 3 left to do",
		"nn":    "2 of 2 answered by the evidence: 2 do not hold",
		"ynn":   "3 of 3 answered by the evidence: 1 holds, 2 do not",
	} {
		if c := checksOf(list(states)); c.Progress()+": "+c.Detail() != want {
			t.Errorf("%s: %s: %s", states, c.Progress(), c.Detail())
		}
	}
	inc := load(t, "oom")
	inc.Checklist = []incident.CheckItem{
		{Item: "It came late", State: "no", Spans: []evidence.Span{{Artifact: "finetune.log", Line: 96, Kind: "text"}}},
		{Item: "Nobody else holds memory", State: "unknown", How: "nvidia-smi before the launch", Spans: []evidence.Span{}},
		{Item: "It came early", State: "yes", Spans: []evidence.Span{{Artifact: "finetune.log", Line: 118, Kind: "text"}}},
	}
	for format, want := range map[string][]string{
		"text":     {"To confirm: 2 of 3 answered by the evidence", "[ ] Nobody else holds memory: nvidia-smi before the launch", "[-] It came late [finetune.log:96]", "[x] It came early [finetune.log:118]"},
		"markdown": {"2 of 3 answered by the evidence: 1 holds, 1 does not; 1 left to do.", "- [ ] Nobody else holds memory: nvidia-smi before the launch", "**does not hold:** It came late", "- [x] It came early"},
		"html":     {"2 of 3 answered by the evidence", "Left to do:</b> Nobody else holds memory", "Does not hold:</b> It came late", "Holds:</b> It came early"},
	} {
		out, at := render(t, format, inc, Options{Full: true, Width: 100}), 0
		for _, w := range want {
			i := strings.Index(out[at:], w)
			if i < 0 {
				t.Fatalf("%s: %q is not there, or not in its place", format, w)
			}
			at += i
		}
	}
}
