// Package history writes the repaired copies of metric files: transformers'
// trainer_state.json, lines of JSON (MMEngine, mmcv, Ray Tune, LLaMA-Factory, histories
// of W&B) and tables (Lightning, Keras, exports). What is not changed is copied byte for
// byte. A value that is taken out leaves an empty cell, or takes its key along; the
// marker is a column or a key.
package history

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/repair"
)

// TrainerState returns the format of transformers' trainer_state.json. TrainerState(**json)
// refuses a key that it does not know, so that none is added beside the rows, and
// what is written is strict JSON.
func TrainerState() repair.Format {
	return format{name: "trainer_state", form: rows.Document, trackers: []string{"trainer_state"}}
}

// Tables returns the format of CSV and its like.
func Tables() repair.Format {
	return format{name: "csv", form: rows.Table, trackers: []string{"csv", "tsv", "lightning", "keras", "ultralytics", "tensorboard-csv", "wandb-csv", "mlflow-csv", "ray"}}
}

// Lines returns the format of JSON objects one after another.
func Lines() repair.Format {
	return format{name: "jsonl", form: rows.Lines, trackers: []string{"jsonl", "mmengine", "mmcv", "wandb-jsonl", "mlflow-json", "ray"}}
}

type format struct {
	name     string
	form     rows.Form
	trackers []string
	columns  bool // the source is Parquet
}

func (f format) Name() string { return f.name }

// Claims reports whether all runs are of a tracker that writes such files. Ray writes
// tables and lines, which their names tell apart.
func (f format) Claims(_ *repair.Source, runs []*evidence.TrackedRun) bool {
	for _, r := range runs {
		if !slices.Contains(f.trackers, r.Tracker) || r.Tracker == "ray" && strings.HasSuffix(r.Artifact, ".csv") != (f.form == rows.Table) {
			return false
		}
	}
	return len(runs) > 0
}

// Copy writes the files of the runs, and copies the settings beside them.
func (f format) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	names := src.Artifacts()
	clean := &checkpoints{step: evidence.None}
	for _, artifact := range plan.Artifacts() {
		name, ok := names[artifact]
		if !ok {
			continue
		}
		if f.columns {
			if err := f.table(ctx, src, out, plan, artifact, name); err != nil {
				return fmt.Errorf("%s: %w", artifact, err)
			}
			continue
		}
		if f.form != rows.Document && plan.Untouched(artifact) {
			if err := out.CopyFile(ctx, src, name); err != nil {
				return err
			}
		} else if err := f.file(ctx, src, out, plan, artifact, name); err != nil {
			return fmt.Errorf("%s: %w", artifact, err)
		}
		if err := beside(ctx, src, out, plan, name); err != nil {
			return err
		}
		clean.note(name)
	}
	if f.form == rows.Document {
		clean.tell(plan)
	}
	return nil
}

// beside copies the settings that lie beside a file, and says what is left out.
func beside(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, name string) error {
	dir, base := path.Dir(name), path.Base(name)
	var with, without []string
	switch {
	case base == "metrics.csv":
		with = []string{"hparams.yaml"}
	case base == "result.json":
		with, without = []string{"params.json", "error.txt"}, []string{"progress.csv"}
	}
	for _, n := range src.Names() {
		if path.Dir(n) != dir || src.File != "" {
			continue
		}
		switch b := path.Base(n); {
		case slices.Contains(with, b):
			if err := out.CopyFile(ctx, src, n); err != nil {
				return err
			}
		case slices.Contains(without, b), base == "scalars.json" && scalars.MatchString(b):
			plan.Left = append(plan.Left, src.Artifact(n)+" repeats "+src.Artifact(name)+", and is not in the copy.")
		}
	}
	return nil
}

var (
	scalars    = lazyre.New(`^\d{8}_\d{6}\.json$`)
	checkpoint = lazyre.New(`(?:^|/)checkpoint-(\d+)(?:/|$)`)
)

// checkpoints are those of a training whose states are copied.
type checkpoints struct {
	steps []int64
	step  int64
}

func (c *checkpoints) note(name string) {
	if g := checkpoint.FindStringSubmatch(name); g != nil {
		if v, ok := rows.Number([]byte(g[1])); ok && v < 1<<53 {
			c.steps = append(c.steps, int64(v))
		}
	}
}

// tell says what the copy is not for, and from which checkpoint a run can go on: the highest
// one before the first affected step.
func (c *checkpoints) tell(plan *repair.Plan) {
	plan.Left = append(plan.Left, "The weights: the copy is for reading the curve. A checkpoint that was taken in or after a failed segment may restore what failed.")
	for _, r := range plan.Runs() {
		marks := r.Marks()
		if !r.Affected || len(marks) == 0 {
			continue
		}
		first := int64(evidence.None)
		for _, m := range marks {
			if m.Value == 1 && m.Step != evidence.None {
				first = m.Step
				break
			}
		}
		best := int64(evidence.None)
		for _, s := range c.steps {
			if s < first && s > best {
				best = s
			}
		}
		switch {
		case first == evidence.None:
		case best != evidence.None:
			plan.Left = append(plan.Left, fmt.Sprintf("Last clean checkpoint: checkpoint-%d, the highest one before step %d.", best, first))
		case len(c.steps) > 0:
			plan.Left = append(plan.Left, fmt.Sprintf("Last clean checkpoint: none of those that were copied was taken before step %d.", first))
		}
	}
}

// file writes one file of rows.
func (f format) file(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, artifact, name string) (err error) {
	in, err := src.FS.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	to, err := out.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := to.Close(); err == nil {
			err = e
		}
	}()
	b := bufio.NewReaderSize(in, 1<<16)
	head, err := b.Peek(4096)
	if err != nil && err != io.EOF {
		return err
	}
	form, member := rows.FormOf(artifact, head)
	if form == rows.None {
		form = rows.Lines
	}
	buf := bufio.NewWriterSize(to, 1<<16)
	c := newCopy(ctx, plan, artifact, form, member, buf)
	if err := c.all(rows.NewDecoder(b, form, member)); err != nil {
		return err
	}
	c.tell(artifact)
	return buf.Flush()
}
