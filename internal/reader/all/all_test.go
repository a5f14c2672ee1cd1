package all

import (
	"os"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestComplete fails when a folder of readers is missing from the list. A
// reader is named after its folder.
func TestComplete(t *testing.T) {
	listed := map[string]bool{"all": true, "readertest": true}
	for _, r := range Readers(evidence.Plan{}) {
		if listed[r.Name()] {
			t.Errorf("reader %s is listed twice", r.Name())
		}
		listed[r.Name()] = true
	}
	folders, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && !listed[f.Name()] {
			t.Errorf("reader folder %s is not in the list", f.Name())
		}
	}
}
