// Package wandb writes repaired copies of Weights & Biases runs.
//
// A copy is a run folder of its own, offline-run-<time>-<new id>, with a log under a new id, so that
// wandb sync makes a new run of it and never touches the original:
//
//	run     id; of a run that failed also tag, note and name
//	history items that are not finite are taken out or replaced; rows of the failed segment get the marker
//	stats   as history, without the marker
//	summary items that are not finite are taken out: the value before them stays the last one
//	artifact  the run that it names
//	exit    added where a dead run has none; before it an alert and the configuration key inquest
//
// Every other record passes through byte for byte. What W&B's own sync stops at, damaged records and
// such that are no messages, is not in the copy. Beside the log lies history.jsonl, the rows of the
// copy as JSON lines, for those who will not upload it.
//
// Source: wandb/proto/wandb_internal.proto, core/internal/runsync, wandb 0.28 to 0.31.
package wandb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/repair"
)

const (
	tracker    = "wandb"
	tag        = "inquest:repaired"
	suffix     = " (repaired copy)"
	maxSummary = 16 << 20 // bytes of wandb-summary.json
)

// New returns the format.
func New() repair.Format { return format{} }

type format struct{}

func (format) Name() string { return tracker }

// Claims implements repair.Format: runs that were read from logs.
func (format) Claims(src *repair.Source, runs []*evidence.TrackedRun) bool {
	for _, r := range runs {
		if r.Tracker != tracker || src.NameOf(r.Artifact, wandblog.Ident) == "" {
			return false
		}
	}
	return len(runs) > 0
}

// Copy implements repair.Format.
func (format) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	copied := map[string]bool{} // folders
	for _, artifact := range plan.Artifacts() {
		name := src.NameOf(artifact, wandblog.Ident)
		if name == "" {
			return fmt.Errorf("%s is no longer a W&B log", artifact)
		}
		var run *repair.Run
		for _, r := range plan.Runs() {
			if r.In(artifact) || r.Read.Artifact == artifact {
				run = r
			}
		}
		copied[path.Dir(name)] = true
		folder := folderOf(src, name, run)
		c := &copying{plan: plan, run: run, artifact: artifact, rows: wandblog.NewRows()}
		if err := c.copy(ctx, src, out, name, folder); err != nil {
			return fmt.Errorf("copy %s: %w", artifact, err)
		}
		if c.lost > 0 {
			plan.Changes = append(plan.Changes, fmt.Sprintf("%d records of %s that are no messages of W&B are left out: wandb sync would stop at the first of them.", c.lost, artifact))
		}
		if err := companions(ctx, src, out, plan, path.Dir(name), folder); err != nil {
			return err
		}
	}
	without(src, plan, copied)
	return nil
}

// without notes the folders of runs that have no log to copy.
func without(src *repair.Source, plan *repair.Plan, logs map[string]bool) {
	seen := map[string]bool{}
	for _, name := range src.Names() {
		folder, _, ok := strings.Cut(name, "/files/")
		if _, id := wandblog.ParseFolder(path.Base(folder)); !ok || id == "" || logs[folder] || seen[folder] {
			continue
		}
		seen[folder] = true
		plan.Left = append(plan.Left, src.Artifact(folder)+" is not in the copy: the log of its run is not there, or was not chosen.")
	}
}

// folderOf is the folder of a log's copy. W&B gives the time at which the run began, by the clock
// on its wall; where the source's folder does not state it, it is that of the run in UTC.
func folderOf(src *repair.Source, name string, run *repair.Run) string {
	of := path.Dir(name)
	if of == "." {
		of = src.Path
		if src.File != "" {
			of = path.Dir(src.Path)
		}
	}
	began, _ := wandblog.ParseFolder(path.Base(of))
	if began == "" {
		t := time.Unix(0, 0).UTC()
		if run.Read.Started.Known() {
			t = run.Read.Started.Time.UTC()
		}
		began = t.Format("20060102_150405")
	}
	return "offline-run-" + began + "-" + run.NewID
}

// companions copies files/ and logs/ of a run. In the summary the values that are not finite are
// taken out.
func companions(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, from, to string) error {
	for _, name := range src.Names() {
		rest := name
		if from != "." {
			var ok bool
			if rest, ok = strings.CutPrefix(name, from+"/"); !ok {
				continue
			}
		}
		if !strings.HasPrefix(rest, "files/") && !strings.HasPrefix(rest, "logs/") {
			continue
		}
		if err := companion(ctx, src, out, plan, name, path.Join(to, rest)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}

func companion(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, name, to string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := src.FS.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := out.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if path.Base(name) != "wandb-summary.json" {
		_, err = io.Copy(w, repair.Stopping(ctx, f))
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSummary+1))
	if err != nil {
		return err
	}
	if len(data) > maxSummary {
		plan.Left = append(plan.Left, name+" is larger than 16 MiB and was copied as it is.")
		if _, err := w.Write(data); err != nil {
			return err
		}
		_, err = io.Copy(w, repair.Stopping(ctx, f))
		return err
	}
	gone := 0
	clean := wandblog.EditObject(nil, data, func(_ int, v float64) (bool, []byte) {
		if v-v != 0 {
			gone++
			return true, nil
		}
		return false, nil
	})
	if gone > 0 {
		plan.Changes = append(plan.Changes, fmt.Sprintf("%d values that are not finite are taken out of %s.", gone, name))
		data = clean
	}
	_, err = w.Write(data)
	return err
}

// copy copies one log.
func (c *copying) copy(ctx context.Context, src *repair.Source, out *repair.Out, name, folder string) (err error) {
	f, err := src.FS.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := out.Create(path.Join(folder, "run-"+c.run.NewID+".wandb"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	h, err := out.Create(path.Join(folder, "history.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	c.log = leveldblog.NewWriter(w, wandblog.Header)
	c.plain = bufio.NewWriterSize(h, 64<<10)
	records := leveldblog.NewReader(f, wandblog.Ident)
	for n := 0; ; n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		rec, err := records.Next()
		var d *leveldblog.Damage
		switch {
		case err == io.EOF || err == leveldblog.ErrHeader: // the latter of a header without its version
			if err := c.end(); err != nil {
				return err
			}
			return errors.Join(c.log.Flush(), c.plain.Flush())
		case errors.As(err, &d):
			continue // listed with the run's damage
		case err != nil:
			return err
		}
		if err := c.record(rec.Data); err != nil {
			return err
		}
	}
}

// object is a JSON object of one line with a key for each value.
type object struct {
	b   []byte
	any bool
}

func (o *object) add(name, value string) {
	if !o.any {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ", "...)
	}
	o.any = true
	key, err := json.Marshal(name)
	if err != nil {
		panic("repair: a name that is no JSON: " + err.Error()) // strings always are
	}
	o.b = append(append(append(o.b, key...), ": "...), value...)
}

func (o *object) end() []byte {
	if !o.any {
		o.b = append(o.b, '{')
	}
	return append(o.b, "}\n"...)
}
