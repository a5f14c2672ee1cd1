package engine_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWandbFolders diagnoses run folders of W&B alone, without any other log of the job: the
// console output that the run keeps says what failed.
func TestWandbFolders(t *testing.T) {
	own := filepath.Join(t.TempDir(), "run-20261201_051556-oom1")
	data, err := os.ReadFile("../reader/wandb/testdata/run-oom1.wandb")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"run-oom1.wandb": data, "files/output.log": []byte("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(own, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("own", func(t *testing.T) {
		inc := diagnose(t, own)
		if got, want := verdictRow(inc), "failed 1 0 nonfinite_value - nan_first nan-unknown possible"; got != want || len(inc.Artifacts) != 1 {
			t.Errorf("\n got %s of %d artifacts\nwant %s", got, len(inc.Artifacts), want)
		}
	})
	dir := outside(t, "data/wandb")
	for name, want := range map[string]string{
		"offline-run-20210216_154407-g9dvvkua": "unclear 1 - - - neither - -",
		"offline-run-20250126_193212-rv0d9uzo": "unclear 1 - - - neither - -",
		"offline-run-20250126_193314-l69sfsyk": "unclear 1 - - - neither - -",
		"run-20230420_073822-clnzftry":         "interrupted 1 0 interrupted - neither interrupted established",
		"run-20230421_071016-eucfu6fn":         "failed 1 0 device_oom - oom_only fragmentation supported",
		"run-20240603_160321-ldm4qyxq":         "running 1 - - - neither - -",
		"run-20260119_193743-ugaeu18w":         "failed 1 0 nonfinite_value - nan_only nan-unknown possible",
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictRow(diagnose(t, filepath.Join(dir, name))); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}
