package history_test

import (
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/reader/history"
	"github.com/inquest-dev/inquest/internal/repair"
	mended "github.com/inquest-dev/inquest/internal/repair/history"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
)

// formats by the files of testdata.
var formats = map[string]repair.Format{
	"trainer_state.json": mended.TrainerState(), "metrics.csv": mended.Tables(), "panel.csv": mended.Tables(), "results.csv": mended.Tables(),
	"trainer_log.jsonl": mended.Lines(), "history.jsonl": mended.Lines(), "20310102_030405.log.json": mended.Lines(),
}

func TestSuite(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) { repairtest.Run(t, history.New(), f, filepath.Join("testdata", name)) })
	}
}
