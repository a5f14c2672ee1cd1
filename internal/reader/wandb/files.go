package wandb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/plainyaml"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

// Bounds of the files beside a log.
const (
	maxSmall   = 4 << 20  // bytes of a configuration, a summary or metadata
	maxOutput  = 64 << 20 // bytes of console output in files
	maxOutputs = 64       // files of console output
)

// A file is one that belongs to the run.
type file struct {
	artifact string
	data     []byte
}

func (f *file) span(pointer string, offset, length int) evidence.Span {
	return evidence.Span{Artifact: f.artifact, Kind: "pointer", Pointer: pointer, Offset: int64(offset), Length: int64(length)}
}

// slurp reads up to n bytes. What is more is noted as damage.
func (r *reading) slurp(src io.Reader, artifact string, n int) (*file, error) {
	data, err := io.ReadAll(io.LimitReader(reader.Stopping(r.ctx, src), int64(n)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > n {
		if _, err := io.Copy(io.Discard, reader.Stopping(r.ctx, src)); err != nil {
			return nil, err
		}
		data = data[:n]
		r.rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: evidence.Span{Artifact: artifact, Kind: "record", Offset: int64(n)}, Text: fmt.Sprintf("beyond its first %d MiB the file is not read", n>>20)})
	}
	return &file{artifact, data}, nil
}

// open reads a file beside the log; nil where it is not there. One that cannot be read is
// noted.
func (r *reading) open(name string, n int) (*file, error) {
	f, err := r.in.Dir.Open(name)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	artifact := reader.FolderOf(r.in.Artifact.Path) + "/" + name
	got, err := r.slurp(f, artifact, n)
	if err != nil && r.ctx.Err() == nil {
		r.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: evidence.Span{Artifact: artifact, Kind: "record"}, Text: "cannot be read: " + clean(err.Error())})
		return nil, nil
	}
	return got, err
}

// readAlone reads a file whose run has no log.
func (r *reading) readAlone(src io.Reader, read func(*file)) error {
	f, err := r.slurp(src, r.in.Artifact.Path, maxSmall)
	if err != nil {
		return err
	}
	read(f)
	r.noLog()
	return nil
}

// noLog states that the file is all that there is of a run.
func (r *reading) noLog() {
	r.cannot("The run's log (run-<id>.wandb) is not there: what was logged between its beginning and its end is not known.")
}

// beside reads what completes a log: the configuration, the description of the machine, why rows
// were refused, and console output that the log has not.
func (r *reading) beside() error {
	r.console.end()
	more := false // the log may lack console output that the files have
	if r.in.Dir != nil {
		in := "files/"
		if strings.HasSuffix(r.in.Artifact.Path, ".jsonl") {
			in = ""
		}
		for _, x := range []struct {
			name string
			read func(*file)
		}{{"config.yaml", r.config}, {"wandb-metadata.json", r.metadata}} {
			f, err := r.open(in+x.name, maxSmall)
			if err != nil {
				return err
			}
			if f != nil {
				x.read(f)
			}
		}
		if err := r.refused(); err != nil {
			return err
		}
		if !r.exit || len(r.rec.Run.Damage) > 0 || r.console.all.Lines() == 0 {
			more = true
		}
	}
	if err := r.console.all.Read(r.ctx, r.log, r.rec); err != nil {
		return err
	}
	if !more {
		return nil
	}
	return r.output()
}

// config reads config.yaml: each key has a value, and before version 0.13 a desc.
func (r *reading) config(f *file) {
	items, passed := plainyaml.Parse(f.data)
	for _, i := range items {
		name, ok := i.Path[0], len(i.Path) >= 2 && i.Path[1] == "value"
		if !ok {
			continue
		}
		if len(i.Path) > 2 {
			name = strings.Join(append([]string{name}, i.Path[2:]...), ".")
		}
		at := f.span(i.Name(), i.Offset, i.Length)
		at.Line, at.Quote = int64(i.Line), clean(string(f.data[i.Offset:i.Offset+i.Length]))
		r.settings.add(name, i.Value, at)
	}
	if passed > 0 {
		r.rec.Damage(evidence.RunDamage{Kind: evidence.BadLine, Span: f.span("", 0, 0), Records: int64(passed), Text: fmt.Sprintf("%d lines of the configuration are not understood", passed)})
	}
}

// meta is what is read of wandb-metadata.json. args and gpu_count are of several types over the versions.
type meta struct {
	Started string          `json:"startedAt"`
	Host    string          `json:"host"`
	Program string          `json:"program"`
	Args    json.RawMessage `json:"args"`
	State   string          `json:"state"`
	GPU     string          `json:"gpu"`
	GPUs    json.RawMessage `json:"gpu_count"`
}

// metadata reads wandb-metadata.json.
func (r *reading) metadata(f *file) {
	var m meta
	if err := json.Unmarshal(bytes.TrimPrefix(f.data, []byte("\ufeff")), &m); err != nil {
		var kind *json.UnmarshalTypeError
		if !errors.As(err, &kind) {
			r.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: f.span("", 0, 0), Text: clean(err.Error())})
			return
		}
	}
	run := &r.rec.Run
	if m.Host != "" {
		r.host(m.Host)
	}
	var args []string
	if json.Unmarshal(m.Args, &args) == nil || m.Program != "" {
		r.settings.command(m.Program, args, f.span("/args", 0, 0))
	}
	if m.GPU != "" {
		r.settings.add("gpu", m.GPU, f.span("/gpu", 0, 0))
	}
	if v, ok := wandblog.Number(m.GPUs); ok {
		r.settings.add("gpu_count", fmt.Sprint(v), f.span("/gpu_count", 0, 0))
	}
	if !run.Started.Known() {
		for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999"} { // of UTC, also without saying so
			if t, err := time.Parse(layout, m.Started); err == nil {
				run.Started = reader.StampAt(float64(t.UnixNano()) / 1e9)
				break
			}
		}
	}
	// What the file says of the run's state was written when it began.
	if m.State != "" && !r.exit {
		if run.Status == evidence.RunUnknown {
			run.Status = evidence.RunOpen
		}
		run.StatusSaid = clean(m.State)
		run.StatusSpan = f.span("/state", 0, 0)
		run.StatusSpan.Quote = clean(m.State)
	}
}

// summary reads wandb-summary.json: the last value of each series.
func (r *reading) summary(f *file) {
	r.line(bytes.TrimSpace(bytes.TrimPrefix(f.data, []byte("\ufeff"))), false, reader.Place{Line: 1, Length: int32(len(f.data))})
	if len(r.rec.Run.Tracks) > 0 {
		r.cannot("The summary has the last value of each series alone: of one that is not finite, the step at which it broke is not known.")
	}
}

// Why rows were refused, by the versions of W&B: the row's step and the one that it was behind.
var refusals = []*lazyre.Regexp{
	lazyre.New(`ignoring partial history record","step":(\d+),"current":(\d+)`),
	lazyre.New(`[Tt]ried to log to step (\d+) that is less than the current step (\d+)`),
	lazyre.New(`Step must only increase in log calls\.\s+Step (\d+) < (\d+)`),
}

const maxRefusal = 64 << 10 // bytes of a line

// refused looks for rows that W&B would not take because their step was behind the run's.
func (r *reading) refused() error {
	f, err := r.in.Dir.Open("logs/debug-internal.log")
	if err != nil {
		return nil
	}
	defer f.Close()
	if err := r.refusals(reader.Stopping(r.ctx, f)); err != nil && r.ctx.Err() != nil {
		return err
	}
	return nil
}

// refusals reads a log of W&B's own work for them.
func (r *reading) refusals(src io.Reader) error {
	lines := bufio.NewReaderSize(src, maxRefusal)
	var n int64
	var first []string
	for {
		line, err := lines.ReadSlice('\n')
		if bytes.Contains(line, []byte("tep")) {
			for _, p := range refusals {
				if m := p.FindSubmatch(line); m != nil {
					if n++; n == 1 {
						first = []string{string(m[1]), string(m[2])}
					}
					break
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil && err != bufio.ErrBufferFull {
			return fmt.Errorf("read W&B's own log: %w", err)
		}
	}
	switch {
	case n == 1:
		r.cannot("W&B refused a row: it was logged at step %s when the run was at step %s already. Its values are not in the log.", first[0], first[1])
	case n > 1:
		r.cannot("W&B refused %d rows whose step was behind the run's, the first at step %s when the run was at step %s. Their values are not in the log.", n, first[0], first[1])
	}
	return nil
}

// output reads console output from the files in which W&B keeps it, as far as the log has
// not: all of it, or what follows the last lines that the log has.
func (r *reading) output() error {
	var names []string
	fs.WalkDir(r.in.Dir, ".", func(n string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(n, ".log") && (strings.HasPrefix(n, "files/output") || strings.HasPrefix(n, "files/logs/") || n == "output.log") {
			names = append(names, n)
		}
		return nil
	})
	slices.Sort(names)
	left := maxOutput
	for _, name := range names[:min(len(names), maxOutputs)] {
		f, err := r.open(name, left)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		left -= len(f.data)
		at := r.unseen(f.data)
		if at >= len(f.data) {
			continue
		}
		if err := r.text(f, at); err != nil {
			return err
		}
	}
	return nil
}

// unseen is where in a file of console output what the log has not begins.
func (r *reading) unseen(data []byte) int {
	last := r.console.last
	if last[1] == "" {
		return 0
	}
	end, before, at := len(data), "", 0
	for line := range bytes.Lines(data) {
		at += len(line)
		s := shown(line)
		if s == "" {
			continue
		}
		if s == last[1] && (last[0] == "" || before == last[0]) {
			end = at
		}
		before = s
	}
	return end
}

// text reads a file of console output from an offset on. Where the log has no row of metrics, those
// that were printed are all there are.
func (r *reading) text(f *file, from int) error {
	n := int64(bytes.Count(f.data[from:], []byte("\n")))
	r.rec.Run.Lines += n
	r.note("console output that the log does not hold is read from %s (lines: %d)", f.artifact[len(reader.FolderOf(r.in.Artifact.Path))+1:], n)
	if from == 0 && r.history == 0 {
		in := r.in
		in.Artifact.Path, in.Size, in.At, in.Dir = f.artifact, int64(len(f.data)), bytes.NewReader(f.data), nil
		in.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }
		return r.log.Read(r.ctx, in, r.s)
	}
	a := evidence.Artifact{Path: f.artifact, Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}
	text := f.data[from:]
	found, err := reader.Within(r.ctx, r.log, a, text)
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("read console output: %w", err)
	}
	lines := int64(bytes.Count(f.data[:from], []byte("\n")))
	for _, e := range found.Events {
		e.Span.Offset += int64(from)
		e.Span.Line += lines
		r.s.Event(e)
	}
	for _, x := range found.Facts {
		x.Span.Offset += int64(from)
		x.Span.Line += lines
		r.s.Fact(x)
	}
	return nil
}
