// Package all lists the readers.
package all

import (
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/aim"
	"github.com/inquest-dev/inquest/internal/reader/clearml"
	"github.com/inquest-dev/inquest/internal/reader/comet"
	"github.com/inquest-dev/inquest/internal/reader/dvclive"
	"github.com/inquest-dev/inquest/internal/reader/elastic"
	"github.com/inquest-dev/inquest/internal/reader/flightrec"
	"github.com/inquest-dev/inquest/internal/reader/history"
	"github.com/inquest-dev/inquest/internal/reader/hosttext"
	"github.com/inquest-dev/inquest/internal/reader/kernlog"
	"github.com/inquest-dev/inquest/internal/reader/kube"
	"github.com/inquest-dev/inquest/internal/reader/memsnap"
	"github.com/inquest-dev/inquest/internal/reader/mlflow"
	"github.com/inquest-dev/inquest/internal/reader/neptune"
	"github.com/inquest-dev/inquest/internal/reader/parquet"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/slurm"
	"github.com/inquest-dev/inquest/internal/reader/smi"
	"github.com/inquest-dev/inquest/internal/reader/stacks"
	"github.com/inquest-dev/inquest/internal/reader/swanlab"
	"github.com/inquest-dev/inquest/internal/reader/tfevents"
	"github.com/inquest-dev/inquest/internal/reader/trackio"
	"github.com/inquest-dev/inquest/internal/reader/trialrecord"
	"github.com/inquest-dev/inquest/internal/reader/wandb"
)

// Readers returns every reader, those that look for wordings with plan. The one
// that is surest of an artifact reads it; among equals the first.
func Readers(plan evidence.Plan) []reader.Reader {
	log := ranklog.New(plan)
	return []reader.Reader{
		elastic.New(log),
		kube.New(log),
		slurm.New(),
		trialrecord.New(log),
		flightrec.New(),
		memsnap.New(),
		mlflow.New(),
		aim.New(),
		swanlab.New(log),
		clearml.New(log),
		comet.New(log),
		dvclive.New(),
		neptune.New(log),
		trackio.New(),
		tfevents.New(),
		wandb.New(log),
		history.New(),
		parquet.New(),
		hosttext.New(plan),
		smi.New(),
		stacks.New(),
		kernlog.New(plan),
		log,
	}
}
