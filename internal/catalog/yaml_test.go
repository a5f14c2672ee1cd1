package catalog

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Rules come from anywhere: what would keep the parser busy, or never ends, is
// refused.
func TestHostileRules(t *testing.T) {
	for _, f := range []struct {
		name, want string
		file       *fstest.MapFile
	}{
		{"flow lists", "entries/a.yaml:2: nested more than", &fstest.MapFile{Data: []byte("id: a\nabout: " + strings.Repeat("[", 100_000))}},
		{"flow mappings", "nested more than", &fstest.MapFile{Data: []byte(strings.Repeat("{a: ", 100_000))}},
		{"block lists", "nested more than", &fstest.MapFile{Data: []byte(strings.Repeat("- ", 100_000) + "a\n")}},
		{"keys", "nested more than", &fstest.MapFile{Data: []byte(strings.Repeat("? ", 100_000) + "a\n")}},
		{"pipe", "not a plain file", &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o644}},
		{"device", "not a plain file", &fstest.MapFile{Mode: fs.ModeDevice | 0o644}},
		{"size", "larger than", &fstest.MapFile{Data: make([]byte, maxFile+1)}},
	} {
		k, err := readYAML(fstest.MapFS{"entries/a.yaml": f.file})
		var got []string
		if err != nil {
			got = append(got, err.Error())
		} else {
			for _, p := range k.problems {
				got = append(got, p.String())
			}
		}
		if s := strings.Join(got, "\n"); !strings.Contains(s, f.want) {
			t.Errorf("%s: got %q, want %q in it", f.name, s, f.want)
		}
	}
}
