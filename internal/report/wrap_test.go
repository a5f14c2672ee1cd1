package report

import "testing"

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 40, "short"},
		{"Halve the loader workers (now as configured) and go on from there.", 60, "Halve the loader workers and go on from there."},
		{"Set the micro-batch from 12 to 6; the effective batch stays as it is now.", 50, "Set the micro-batch from 12 to 6 …"},
		{"The unchanged run passes the failing step on another node and comes to its end.", 52, "The unchanged run passes the failing step …"},
		{"Run: dmesg -T | grep -i -E 'oom|killed process' (on the host) and then sacct", 44, "Run: dmesg -T | grep -i -E 'oom|killed …"},
		{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 40, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"},
	} {
		got := shorten(c.in, c.n)
		if got != c.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
		if columns(got) > c.n {
			t.Errorf("%q has %d columns", got, columns(got))
		}
	}
}

func TestBegun(t *testing.T) {
	for in, want := range map[string]string{
		"dmesg -T | grep oom":              "Run: dmesg -T | grep oom",
		"nvidia-smi shows the device free": "Run: nvidia-smi shows the device free",
		"len(loader) is equal":             "Run: len(loader) is equal",
		"resume from step 3":               "Resume from step 3",
		"find out what ended it":           "Find out what ended it",
		"for h in a b; do date; done":      "Run: for h in a b; do date; done",
		"50 steps":                         "50 steps",
		"free memory stays":                "Free memory stays",
	} {
		if got := begun(in, "Run: "); got != want {
			t.Errorf("begun(%q) = %q, want %q", in, got, want)
		}
	}
}
