package bundle_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/bundle"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/all"
	"github.com/inquest-dev/inquest/internal/redact"
)

// diagnose diagnoses a path.
func diagnose(t *testing.T, c *catalog.Catalog, p string) *incident.Incident {
	t.Helper()
	inc, err := engine.Diagnose(context.Background(), engine.Options{Paths: []string{p}, Catalog: c, Readers: all.Readers(c.Plan()), Workers: runtime.GOMAXPROCS(0)})
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	return inc
}

// TestSameDiagnosis redacts whole failed jobs, and diagnoses what is left: it says the same.
func TestSameDiagnosis(t *testing.T) {
	c, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for _, glob := range []string{"../../examples/*", "../../../shared/cases/*/*"} {
		found, _ := filepath.Glob(glob)
		jobs = append(jobs, found...)
	}
	if len(jobs) == 0 {
		t.Skip("no failed jobs here")
	}
	if n := os.Getenv("INQUEST_BUNDLE_CASES"); n == "" && len(jobs) > 40 {
		step := len(jobs) / 40
		some := jobs[:0]
		for i := 0; i < len(jobs); i += step {
			some = append(some, jobs[i])
		}
		jobs = some
	}
	same := 0
	for _, job := range jobs {
		in := &bundle.Input{Names: redact.NewNames()}
		err := filepath.WalkDir(job, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if name := d.Name(); strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".zst") || strings.HasPrefix(name, "expected") {
				return nil
			}
			b, err := os.ReadFile(p)
			if err == nil && !strings.Contains(string(b[:min(len(b), 8192)]), "\x00") {
				rel, _ := filepath.Rel(filepath.Dir(job), p)
				in.Logs = append(in.Logs, bundle.Log{Path: filepath.ToSlash(rel), Text: string(b)})
			}
			return err
		})
		if err != nil || len(in.Logs) == 0 {
			continue
		}
		plain := t.TempDir()
		var files []bundle.File
		for _, l := range in.Logs {
			files = append(files, bundle.File{Path: bundle.Logs + "/" + l.Path, Data: []byte(l.Text)})
		}
		if err := bundle.WriteTree(plain, files); err != nil {
			t.Fatal(err)
		}
		in.Diagnosis = diagnose(t, c, plain)
		redacted := t.TempDir()
		if err := bundle.WriteTree(redacted, bundle.Redact(in)); err != nil {
			t.Fatal(err)
		}
		check := bundle.Check(in.Names, in.Diagnosis, diagnose(t, c, redacted))
		if !check.Unchanged {
			t.Errorf("%s: %s", job, strings.Join(check.Differs, "\n   "))
			continue
		}
		same++
	}
	t.Logf("%d of %d the same", same, len(jobs))
}
