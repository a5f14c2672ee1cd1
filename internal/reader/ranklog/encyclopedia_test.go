package ranklog_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

const encyclopedia = "../../../encyclopedia"

// sources shows the files that people write, without their compiled form.
type sources struct{ fs.FS }

func (s sources) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "compiled") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return s.FS.Open(name)
}

// TestEncyclopediaSamples reads every sample of the encyclopedia's wordings as a
// log of its own and checks that the reader takes it the way the sample says.
// The lint of package catalog tries wordings on text; this tries the whole way
// from bytes to event.
func TestEncyclopediaSamples(t *testing.T) {
	c, err := catalog.Load(sources{os.DirFS(encyclopedia)})
	if err != nil {
		t.Fatal(err)
	}
	r := ranklog.New(c.Plan())
	files, _ := filepath.Glob(filepath.Join(encyclopedia, "lines", "*.yaml"))
	if len(files) == 0 {
		t.Fatal("no line files")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f catalog.LineFile
		if err := yaml.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, "ranklog") {
			continue
		}
		for _, l := range f.Lines {
			for _, sample := range l.Samples {
				got, err := readertest.Read(context.Background(), r, nil, "sample.log", []byte(strings.TrimRight(sample.Text, "\n")+"\n"))
				if err != nil {
					t.Fatal(err)
				}
				checkSample(t, &l, &sample, got.Events, got.Facts)
				if t.Failed() && testing.Verbose() {
					t.Logf("%s", bytes.TrimSpace(readertest.Dump(got)))
				}
			}
		}
	}
}

func checkSample(t *testing.T, l *catalog.Line, sample *catalog.Sample, events []evidence.Event, facts []evidence.Fact) {
	t.Helper()
	if l.Event == "fact" {
		for name := range l.Facts {
			if !slices.ContainsFunc(facts, func(f evidence.Fact) bool { return f.Name == name }) {
				t.Errorf("%s: %q does not state %s", l.ID, sample.Text, name)
			}
		}
		return
	}
	i := slices.IndexFunc(events, func(e evidence.Event) bool { return e.Line == l.ID })
	if i < 0 && l.Event == string(evidence.DeviceOOM) { // read by the reader itself, with all figures
		i = slices.IndexFunc(events, func(e evidence.Event) bool { return e.Kind == evidence.DeviceOOM })
	}
	if i < 0 {
		t.Errorf("%s: %q gives no event", l.ID, sample.Text)
		return
	}
	e, spec := events[i], evidence.SpecOf(events[i].Kind)
	for name, text := range sample.Gives {
		a := spec.Attr(name)
		if a == nil || l.Facts[name] != "" {
			continue // part of the identity, or a fact
		}
		want, err := catalog.Convert(a.Type, text)
		if err != nil {
			t.Fatal(err)
		}
		have := e.Attrs[name]
		if have.T != want.T || have.S != want.S || have.I != want.I || have.Lo != want.Lo || have.Hi != want.Hi {
			t.Errorf("%s: %q gives %s = %v, want %v", l.ID, sample.Text, name, have, want)
		}
	}
}
