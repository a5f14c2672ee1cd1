package mlflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/repair"
)

// Files is the format of file stores. In the copy, lines that are not finite leave the files
// of the metrics, of which one that is empty then goes; marker, tags and status are files
// and lines. Torn lines, for which MLflow refuses a whole metric, go as well. The
// artifacts of runs stay where they are.
func Files() repair.Format { return files{} }

type files struct{}

func (files) Name() string { return "mlflow-files" }

// Claims implements repair.Format.
func (files) Claims(_ *repair.Source, runs []*evidence.TrackedRun) bool { return ours(runs, true) }

// Copy implements repair.Format.
func (files) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	at := src.Artifacts()
	c := &copier{ctx: ctx, src: src, out: out, plan: plan, byDir: map[string]*repair.Run{}, experiments: map[string]bool{}}
	for _, run := range plan.Runs() {
		name, ok := at[run.Read.Artifact]
		if !ok {
			return fmt.Errorf("%s %w", run.Read.Artifact, errGone)
		}
		dir := path.Dir(name)
		if path.Base(name) != "meta.yaml" {
			dir, _, _ = mlflowfile.InRun(name)
		}
		if dir = path.Clean(dir); c.byDir[dir] == nil {
			c.byDir[dir] = run
			c.dirs = append(c.dirs, dir)
			if dir != "." {
				c.experiments[path.Dir(dir)] = true
			}
		}
	}
	for _, name := range src.Names() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.file(name); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("copy %s: %w", src.Artifact(name), err)
		}
	}
	for _, dir := range c.dirs {
		if err := c.mark(dir, c.byDir[dir]); err != nil {
			return err
		}
	}
	if c.artifacts > 0 {
		plan.Left = append(plan.Left, "Not in the copy: "+evidence.Several(int64(c.artifacts), "file")+" of artifacts.")
	}
	if c.others > 0 {
		plan.Left = append(plan.Left, "Not in the copy: "+evidence.Several(int64(c.others), "file")+" of no repaired run or its experiment.")
	}
	if c.torn > 0 {
		plan.Changes = append(plan.Changes, "Left out: "+evidence.Several(c.torn, "line")+" of metrics, cut off or no values; MLflow reads no metric that has one.")
	}
	if c.models > 0 {
		plan.Changes = append(plan.Changes, "Taken out as well: "+evidence.Several(c.models, "value")+" stored again with logged models.")
	}
	plan.Left = append(plan.Left, "Locations of artifacts in the copy are those of the source.", "MLflow 3.13 and later open a file store only with MLFLOW_ALLOW_FILE_STORE=true; mlflow migrate-filestore makes a database of it.")
	return nil
}

// A copier copies the files of runs and of their experiments.
type copier struct {
	ctx         context.Context
	src         *repair.Source
	out         *repair.Out
	plan        *repair.Plan
	byDir       map[string]*repair.Run // by folder below the source
	dirs        []string
	experiments map[string]bool // folders

	artifacts, others int
	torn, models      int64
}

// file copies one file.
func (c *copier) file(name string) error {
	if isArtifact(name) {
		c.artifacts++
		return nil
	}
	dir, run := c.runOf(name)
	if run != nil {
		return c.ofRun(name, strings.TrimPrefix(name, strings.TrimPrefix(dir+"/", "./")), run)
	}
	for _, at := range c.shared(name) {
		rest := strings.TrimPrefix(name, strings.TrimPrefix(at+"/", "./"))
		switch group, _, _ := strings.Cut(rest, "/"); group {
		case "models":
			if parts := strings.Split(rest, "/"); len(parts) > 3 && parts[2] == "metrics" {
				return c.model(name)
			}
			return c.out.CopyFile(c.ctx, c.src, name)
		case "meta.yaml", "tags", "datasets", "traces":
			return c.out.CopyFile(c.ctx, c.src, name)
		}
	}
	c.others++
	return nil
}

// runOf is the repaired run whose folder holds a file.
func (c *copier) runOf(name string) (string, *repair.Run) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if run := c.byDir[dir]; run != nil {
			return dir, run
		}
		if dir == "." || dir == "/" {
			return "", nil
		}
	}
}

// shared are the folders of experiments of repaired runs that hold a file.
func (c *copier) shared(name string) (list []string) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if c.experiments[dir] {
			list = append(list, dir)
		}
		if dir == "." || dir == "/" {
			return list
		}
	}
}

// ofRun copies a file of a run, rest being its path in the run's folder.
func (c *copier) ofRun(name, rest string, run *repair.Run) error {
	group, key, _ := strings.Cut(rest, "/")
	tags := []string{"tags/" + tagNote, "tags/" + tagRepaired, "tags/" + tagSegment}
	switch {
	case group == "metrics" && key != "":
		return c.metric(name, key, run)
	case run.Affected && slices.Contains(tags, rest):
		return nil // written by mark
	case rest == "meta.yaml" && run.Status != "":
		return c.meta(name, run)
	}
	return c.out.CopyFile(c.ctx, c.src, name)
}

// lines copies the lines of a file that keep returns, with the changes it makes. A file of
// which nothing is left is not made.
func (c *copier) lines(name string, keep func(l *mlflowfile.Line) []byte) error {
	f, err := c.src.FS.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := mlflowfile.NewReader(repair.Stopping(c.ctx, f))
	var w io.WriteCloser
	var buf bytes.Buffer
	flush := func() error {
		if buf.Len() == 0 {
			return nil
		}
		if w == nil {
			if w, err = c.out.Create(name); err != nil {
				return err
			}
		}
		_, err := buf.WriteTo(w)
		return err
	}
	for {
		l, err := in.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			buf.Write(keep(l))
			if buf.Len() > 1<<16 {
				err = flush()
			}
		}
		if err != nil {
			if w != nil {
				err = errors.Join(err, w.Close())
			}
			return err
		}
	}
	err = flush()
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	return err
}

// metric copies a metric, asking about each line as the reader met it.
func (c *copier) metric(name, key string, run *repair.Run) error {
	artifact := c.src.Artifact(name)
	if dir, _ := c.runOf(name); slices.Contains(c.src.Names(), path.Join(dir, "meta.yaml")) {
		artifact = c.src.Artifact(path.Join(dir, "meta.yaml"))
	}
	s := run.Series(artifact, mlflowfile.Key(key))
	return c.lines(name, func(l *mlflowfile.Line) []byte {
		if l.Err != nil {
			if len(bytes.TrimSpace(l.Raw)) > 0 {
				c.torn++
			}
			return nil
		}
		switch action, v := s.Next(l.Step, wall(l.Millis), l.Value); action {
		case repair.Drop:
			return nil
		case repair.Hold:
			return fmt.Appendf(nil, "%d %s %d\n", l.Millis, strconv.FormatFloat(v, 'g', -1, 64), l.Step)
		}
		return l.Raw
	})
}

// model copies the metric of a logged model: lines of a run's metric with the run's id and more
// behind them, which the reader leaves to the run.
func (c *copier) model(name string) error {
	return c.lines(name, func(l *mlflowfile.Line) []byte {
		fields := bytes.Fields(l.Raw)
		if len(fields) < 2 {
			return nil
		}
		v, err := strconv.ParseFloat(string(fields[1]), 64)
		if err == nil && v-v == 0 {
			return l.Raw
		}
		if len(fields) > 3 && c.plan.Run(repair.RunKey{ID: string(fields[3])}).Passive {
			return l.Raw
		}
		c.models++
		return nil
	})
}

// meta copies the description of a run with another status, line by line.
func (c *copier) meta(name string, run *repair.Run) error {
	data, err := fs.ReadFile(c.src.FS, name)
	if err != nil {
		return err
	}
	word, number := statusWord(run.Status)
	var b bytes.Buffer
	for line := range bytes.Lines(data) {
		body := bytes.TrimRight(line, "\r\n")
		end := line[len(body):]
		key, value, _ := bytes.Cut(body, []byte(":"))
		value = bytes.Trim(bytes.TrimSpace(value), `'"`)
		switch {
		case string(key) == "status":
			if len(value) > 0 && value[0] >= 'A' {
				number = word // as versions before 1.0 have it
			}
			fmt.Fprintf(&b, "status: %s%s", number, end)
		case string(key) == "end_time" && run.Newest > 0 && (len(value) == 0 || string(value) == "null"):
			fmt.Fprintf(&b, "end_time: %d%s", millis(run.Newest), end)
		default:
			b.Write(line)
		}
	}
	return c.write(name, b.Bytes())
}

func (c *copier) write(name string, data []byte) error {
	w, err := c.out.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// mark writes the marker and the tags of a run.
func (c *copier) mark(dir string, run *repair.Run) error {
	if !run.Affected {
		return nil
	}
	var b bytes.Buffer
	for _, m := range run.Marks() {
		fmt.Fprintf(&b, "%d %s %d\n", wallOf(run, m), strconv.FormatFloat(m.Value, 'f', 1, 64), stepOf(m))
	}
	if err := c.write(path.Join(dir, "metrics", c.plan.Marker), b.Bytes()); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	had, err := fs.ReadFile(c.src.FS, path.Join(dir, "tags", tagNote))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, t := range [][2]string{{tagNote, described(string(had), run.Note)}, {tagRepaired, "true"}, {tagSegment, run.JSON}} {
		if err := c.write(path.Join(dir, "tags", t[0]), []byte(t[1])); err != nil {
			return err
		}
	}
	return nil
}
