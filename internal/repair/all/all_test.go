package all_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	readers "github.com/inquest-dev/inquest/internal/reader/all"
	"github.com/inquest-dev/inquest/internal/repair/all"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
)

// Every folder of a format has its line in the list.
func TestFormats(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("all.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "all" && e.Name() != "repairtest" && !strings.Contains(string(list), "/internal/repair/"+e.Name()+`"`) {
			t.Errorf("internal/repair/%s is not in the list", e.Name())
		}
	}
	seen := map[string]bool{}
	for _, f := range all.Formats() {
		if seen[f.Name()] {
			t.Errorf("two formats are called %s", f.Name())
		}
		seen[f.Name()] = true
	}
}

// fix repairs with all readers and formats, as the command does.
func fix(t *testing.T, source string, policy incident.RepairPolicy, only string) (*incident.Repair, string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy")
	res, err := engine.Repair(t.Context(), engine.Options{Readers: allReaders(), Version: "test"},
		engine.RepairOptions{Path: source, Output: out, Policy: policy, Force: true, Only: only, Ended: true, Formats: all.Formats(), Write: repairtest.Write})
	return res, out, err
}

func allReaders() []reader.Reader { return readers.Readers(evidence.Plan{}) }

// What trackers of other people left: all that is read is repaired, with every policy, in
// every format that is found in it, or refused with the reason.
func TestPublic(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "data")
	if _, err := os.Stat(root); err != nil {
		t.Skip("no public data here: ", err)
	}
	for _, kind := range []string{"tfevents", "wandb", "mlflow", "swanlab", "aim", "ray", "lightning_csv", "trainer_state"} {
		entries, err := os.ReadDir(filepath.Join(root, kind))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, e := range entries {
			t.Run(kind+"/"+e.Name(), func(t *testing.T) {
				source := filepath.Join(root, kind, e.Name())
				before := repairtest.State(t, source)
				for _, name := range []string{"drop", "suspect"} {
					policy := repairtest.Policies[name]
					formats := []string{""}
					res, _, err := fix(t, source, policy, "")
					if err != nil && strings.Contains(err.Error(), "several formats") {
						formats = nil
						for _, f := range all.Formats() {
							if slices.Contains(strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(" ,;:", r) }), f.Name()) {
								formats = append(formats, f.Name())
							}
						}
					}
					for _, f := range formats {
						if f != "" {
							res, _, err = fix(t, source, policy, f)
						}
						switch {
						case err == nil:
							var dropped int64
							for _, r := range res.Runs {
								dropped += r.Total - r.Kept
							}
							t.Logf("%s: %s: %d runs, %d points changed", name, res.Format, len(res.Runs), dropped)
						case errors.Is(err, engine.ErrNotRepaired):
							t.Logf("%s: %v", name, err)
						default:
							t.Errorf("%s %s: %v", name, f, err)
						}
					}
				}
				repairtest.Unchanged(t, source, before)
			})
		}
	}
}
