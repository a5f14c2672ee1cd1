package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestKeptParts checks that what another page frames of kept incidents and comparisons is what
// their reports' own files show.
func TestKeptParts(t *testing.T) {
	check := func(name string, parts *Parts, err error, write func(*bytes.Buffer) error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var page bytes.Buffer
		if write != nil {
			if err := write(&page); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, s := range parts.Sections {
				if !strings.Contains(page.String(), string(s.HTML)) {
					t.Errorf("%s: section %s is another one in the file", name, s.ID)
				}
			}
		}
		checkParts(t, parts)
	}
	for name, k := range keptSamples() {
		parts, err := KeptPartsOf(k)
		check(name, parts, err, func(b *bytes.Buffer) error { return WriteKept(b, "html", k, Options{}) })
	}
	for name, c := range comparisons() {
		parts, err := ComparisonPartsOf(c)
		check(name, parts, err, func(b *bytes.Buffer) error { return WriteComparison(b, "html", c, Options{}) })
		parts, err = DifferencePartsOf(c, "first "+hostile, "second")
		check(name, parts, err, nil)
		for _, s := range parts.Sections {
			if s := string(s.HTML); strings.Contains(s, "<script") || strings.Contains(s, ">Before<") {
				t.Errorf("%s: %s", name, s)
			}
		}
	}
	for _, p := range EnvironmentPairs(&incident.Environment{Host: hostile, CPUs: 2}) {
		if strings.ContainsAny(p.Text, "\x1b\u202e\r") {
			t.Errorf("%s: %q", p.Label, p.Text)
		}
	}
	if p := EnvironmentPairs(nil); p != nil {
		t.Errorf("of none: %v", p)
	}
	if s := CommandLine([]string{"python", "a b", "\x1b[31mx"}); s != "python 'a b' 'x'" {
		t.Errorf("command line %q", s)
	}
}
