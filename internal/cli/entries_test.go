package cli

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestNamedCommands: a command of ours that an entry or a fact tells a person to
// run exists.
func TestNamedCommands(t *testing.T) {
	real := map[string]bool{}
	for _, c := range (&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}).root().Commands() {
		real[c.Name()] = true
	}
	// words are what our name is followed by in sentences.
	words := map[string]bool{"again": true, "reads": true, "on": true}
	named := regexp.MustCompile(`\binquest ([a-z][\w-]*)`)
	check := func(where, text string) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !real[m[1]] && !words[m[1]] {
				t.Errorf("%s: %q is no command", where, m[0])
			}
		}
	}
	err := fs.WalkDir(encyclopedia.FS, "entries", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".yaml") {
			return err
		}
		text, err := fs.ReadFile(encyclopedia.FS, name)
		check(name, strings.Join(strings.Fields(string(text)), " "))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range evidence.FactSpecs {
		check("fact "+f.Name, f.How)
	}
}
