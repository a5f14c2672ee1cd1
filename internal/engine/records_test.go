package engine_test

import (
	"path/filepath"
	"testing"
)

// TestRecords diagnoses jobs of which a record beside the log decides the cause,
// or belongs to another start, job or pod and must not.
func TestRecords(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(root, "testdata", "records", "*", "case.yaml"))
	if err != nil || len(cases) < 8 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	labelled(t, cases)
}
