package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestRecords diagnoses jobs of which a record beside the log decides the cause,
// or belongs to another start, job or pod and must not.
func TestRecords(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(root, "testdata", "records", "*", "case.yaml"))
	if err != nil || len(cases) < 8 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want truth
			if err := yaml.UnmarshalWithOptions(text, &want, yaml.Strict()); err != nil {
				t.Fatalf("read %s: %v", file, err)
			}
			inc := diagnose(t, filepath.Join(dir, "input"))
			sound(t, filepath.Base(dir), inc)
			want.check(t, inc)
			headline(t, filepath.Join(dir, "want.txt"), inc)
		})
	}
}
