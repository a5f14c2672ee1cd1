package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/all"
)

// root is the module's root, seen from this package.
const root = "../.."

// knowledge is the encyclopedia as its YAML says, compiled once.
var knowledge = sync.OnceValues(func() (*catalog.Catalog, error) {
	dir := os.DirFS(filepath.Join(root, "encyclopedia"))
	files, err := catalog.Compile(dir)
	if err != nil {
		return nil, err
	}
	m := fstest.MapFS{}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: data}
	}
	return catalog.Load(m)
})

var readers = sync.OnceValue(func() []reader.Reader {
	c, err := knowledge()
	if err != nil {
		return nil
	}
	return all.Readers(c.Plan())
})

// options are the engine's for the given paths.
func options(t testing.TB, paths ...string) engine.Options {
	t.Helper()
	c, err := knowledge()
	if err != nil {
		t.Fatal(err)
	}
	return engine.Options{Paths: paths, Catalog: c, Readers: readers(), Version: "test", Workers: 2}
}

// diagnose must not fail.
func diagnose(t testing.TB, paths ...string) *incident.Incident {
	t.Helper()
	inc, err := engine.Diagnose(context.Background(), options(t, paths...))
	if err != nil {
		t.Fatalf("diagnose: %v", err)
	}
	return inc
}

// job writes files to a folder of their own and returns it.
func job(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeJob(t, dir, files)
	return dir
}

func writeJob(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// log diagnoses one log.
func log(t testing.TB, text string) *incident.Incident {
	t.Helper()
	return diagnose(t, filepath.Join(job(t, map[string]string{"train.log": text}), "train.log"))
}

func encode(t testing.TB, inc *incident.Incident) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(inc); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// filesOf lists the regular files below dir, by path.
func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// rank of the first fault, -1 if none is stated.
func rank(inc *incident.Incident) int {
	if inc.FirstFault == nil || inc.FirstFault.Rank == nil {
		return -1
	}
	return *inc.FirstFault.Rank
}

// standing of a cause; "" if it is not a hypothesis.
func standing(inc *incident.Incident, cause string) string {
	for _, h := range inc.Hypotheses {
		if h.Cause == cause {
			return h.Standing
		}
	}
	return ""
}
