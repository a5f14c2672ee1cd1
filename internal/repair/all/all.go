// Package all lists the formats of repaired copies.
package all

import (
	"github.com/inquest-dev/inquest/internal/repair"
	"github.com/inquest-dev/inquest/internal/repair/history"
	"github.com/inquest-dev/inquest/internal/repair/mlflow"
	"github.com/inquest-dev/inquest/internal/repair/swanlab"
	"github.com/inquest-dev/inquest/internal/repair/tfevents"
	"github.com/inquest-dev/inquest/internal/repair/trackio"
	"github.com/inquest-dev/inquest/internal/repair/wandb"
)

// Formats returns one of each.
func Formats() []repair.Format {
	return []repair.Format{
		swanlab.New(),
		wandb.New(),
		trackio.New(),
		mlflow.Database(),
		mlflow.Files(),
		history.TrainerState(),
		history.Tables(),
		history.Lines(),
		history.Parquet(),
		tfevents.New(),
	}
}
