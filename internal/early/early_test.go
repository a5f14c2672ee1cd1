package early

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

// Whatever is not plainly a command to run is left to the command line of the program.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		args, command []string
		store         string
	}{
		{args: []string{"run", "true"}, command: []string{"true"}},
		{args: []string{"run", "--", "true"}, command: []string{"true"}},
		{args: []string{"run", "--", "--odd", "x"}, command: []string{"--odd", "x"}},
		{args: []string{"run", "python", "--", "-u", "--store", "x"}, command: []string{"python", "--", "-u", "--store", "x"}},
		{args: []string{"run", "--store", "d", "true", "--sample", "0"}, command: []string{"true", "--sample", "0"}, store: "d"},
		{args: []string{"run", "--store=d", "--", "true"}, command: []string{"true"}, store: "d"},
		{args: []string{"run", "--store", "--", "true"}, command: []string{"true"}, store: "--"},
		{args: []string{"run"}},
		{args: []string{"run", "--"}},
		{args: []string{"run", "--store"}},
		{args: []string{"run", "--store", "d"}},
		{args: []string{"run", "--sample", "0", "true"}},
		{args: []string{"run", "--help"}},
		{args: []string{"run", "-h"}},
		{args: []string{"run", ""}},
		{args: []string{"run", "--", ""}},
		{args: []string{"--rules", "d", "run", "true"}},
		{args: []string{"diagnose", "run"}},
		{args: nil},
	} {
		store, command, ok := parse(c.args)
		if ok != (c.command != nil) || ok && (store != c.store || !slices.Equal(command, c.command)) {
			t.Errorf("%q: store %q, command %q, %t", c.args, store, command, ok)
		}
	}
}

func TestNames(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	id := NewID(at)
	if !regexp.MustCompile(`^t20260102-020405-[0-9a-f]{10}$`).MatchString(id) || id == NewID(at) {
		t.Errorf("id %q", id)
	}
	if got, want := TrialDir("d", id, at), filepath.Join("d", "trials", "2026-01", id); got != want {
		t.Errorf("folder %q, want %q", got, want)
	}
}
