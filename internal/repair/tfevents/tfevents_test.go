package tfevents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/reader/tfevents"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
	mended "github.com/inquest-dev/inquest/internal/repair/tfevents"
)

const recorded = "../../reader/tfevents/testdata"

// logs makes a log folder of the reader's own files: by name below it, the host in the name
// of a recorded one.
func logs(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "logs")
	for to, host := range files {
		found, err := filepath.Glob(filepath.Join(recorded, "events.out.tfevents.1700000000."+host+".42.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range found {
			if filepath.Ext(from) == ".events" {
				continue
			}
			data, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, to), data)
		}
	}
	return dir
}

func put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// project is a log folder with runs of all sorts.
func project(t testing.TB) string {
	dir := logs(t, map[string]string{
		"train/events.out.tfevents.1700000000.node7.42.0":      "torch",
		"train/events.out.tfevents.1700000100.node7.77.0":      "tensorboardx",
		"train/events.out.tfevents.1700000000.node8.42.0":      "empty",
		"styles/events.out.tfevents.1700000000.node7.42.0":     "torch-styles",
		"tensors/events.out.tfevents.1700000000.node7.42.0.v2": "tensors",
		"texts/events.out.tfevents.1700000000.node7.42.0":      "texts",
		"hparams/events.out.tfevents.1700000000.node7.42.1":    "hparams",
		"damaged/a.events.out.tfevents.1700000000.node7.42.0":  "flipped",
		"damaged/b.events.out.tfevents.1700000000.node7.43.0":  "zeros",
		"damaged/c.events.out.tfevents.1700000000.node7.44.0":  "cut",
		"hostile/events.out.tfevents.1700000000.node7.42.0":    "hostile",
		"none/events.out.tfevents.1700000000.node7.42.0":       "version-only",
	})
	put(t, filepath.Join(dir, "train/hparams.yaml"), []byte("lr: 0.1\n"))
	put(t, filepath.Join(dir, "train/plugins/profile/x.xplane.pb"), []byte("x"))
	return dir
}

func TestSuite(t *testing.T) {
	repairtest.Run(t, tfevents.New(), mended.New(), project(t))
}
