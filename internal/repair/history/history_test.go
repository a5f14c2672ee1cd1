package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/history"
	"github.com/inquest-dev/inquest/internal/reader/parquet"
	"github.com/inquest-dev/inquest/internal/repair"
	mended "github.com/inquest-dev/inquest/internal/repair/history"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
)

// formats by the files of testdata.
var formats = map[string]repair.Format{
	"trainer_state.json": mended.TrainerState(), "metrics.csv": mended.Tables(), "panel.csv": mended.Tables(), "results.csv": mended.Tables(),
	"trainer_log.jsonl": mended.Lines(), "history.jsonl": mended.Lines(), "20310102_030405.log.json": mended.Lines(),
}

// TestParquet writes Parquet as CSV, which the reader of tables reads again.
func TestParquet(t *testing.T) {
	for _, name := range []string{"wandb-history", "trackio-export"} {
		out := filepath.Join(t.TempDir(), "copy")
		res, err := engine.Repair(t.Context(), engine.Options{Readers: []reader.Reader{history.New(), parquet.New()}, Version: "test"}, engine.RepairOptions{
			Path: filepath.Join("..", "..", "reader", "parquet", "testdata", name+".parquet"), Output: out, Policy: repairtest.Policies["drop"], Formats: []repair.Format{mended.Tables(), mended.Parquet()}, Write: repairtest.Write,
		})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(out, name+".csv"))
		if err != nil || strings.Contains(string(data), "NaN") || !strings.Contains(string(data), "inquest_failed_segment") || res.Format != "parquet" {
			t.Errorf("%s: %v, got\n%s", name, err, data)
		}
	}
}

func TestSuite(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) { repairtest.Run(t, history.New(), f, filepath.Join("testdata", name)) })
	}
}
