package wandb

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader"
)

// readLog reads a record log, and the files beside it. head is how many bytes of its header
// there are.
func (r *reading) readLog(src io.Reader, head int) error {
	log := leveldblog.NewReader(src, wandblog.Ident)
	for {
		rec, err := log.Next()
		var d *leveldblog.Damage
		switch {
		case err == nil:
			if err := r.record(rec); err != nil {
				return err
			}
			continue
		case errors.As(err, &d):
			r.lost(nil)
			r.pending = &evidence.RunDamage{Kind: evidence.DamageKind(d.Kind), Span: r.span(r.records+1, d.Offset, d.Bytes), Text: d.Text, Bytes: d.Bytes}
			continue
		case err == io.EOF:
		case err == leveldblog.ErrHeader:
			if _, err := io.Copy(io.Discard, src); err != nil { // so that the caller has counted all bytes
				return err
			}
			r.noHeader(head)
		default:
			return fmt.Errorf("read W&B log: %w", err)
		}
		break
	}
	r.lost(nil)
	if v := log.Version(); v != 0 {
		r.note("the log's header states version %d, and 0 is known", v)
	}
	if err := r.beside(); err != nil {
		return err
	}
	r.conclude()
	return nil
}

// noHeader states that a file is no log.
func (r *reading) noHeader(head int) {
	d := evidence.RunDamage{Kind: evidence.BadRecord, Span: r.span(0, 0, 0), Text: "the header of a W&B log is missing"}
	if head < len(wandblog.Ident) {
		d.Kind, d.Text = evidence.TruncatedTail, "the file ends within its header"
		if head == 0 {
			d.Text = "the file is empty"
		}
	}
	r.rec.Damage(d)
}

// lost states the damage that is held back, with how many records were lost if the one behind
// it says so.
func (r *reading) lost(next *wandblog.Record) {
	if r.pending == nil {
		return
	}
	if next != nil && r.num > 0 && next.Num > r.num+1 && next.Num-r.num < 1<<32 {
		r.pending.Records = next.Num - r.num - 1
	}
	r.rec.Damage(*r.pending)
	r.pending = nil
}

// record reads one record.
func (r *reading) record(log leveldblog.Record) error {
	r.records++
	at := reader.Place{Line: r.records, Offset: log.Offset, Length: int32(min(log.Length, math.MaxInt32))}
	rec, err := wandblog.Decode(log.Data)
	if err == nil {
		r.lost(&rec)
		if rec.Num > 0 {
			r.num = rec.Num
		}
		r.counted[rec.Kind]++
		err = r.body(&rec, at)
	}
	if err != nil {
		r.lost(nil)
		r.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: r.span(at.Line, at.Offset, int64(at.Length)), Text: err.Error(), Bytes: log.Length, Records: 1})
	}
	return nil
}

// body reads what a record holds. The error says why it cannot be decoded.
func (r *reading) body(rec *wandblog.Record, at reader.Place) error {
	switch rec.Kind {
	case wandblog.History:
		row, err := r.rows.History(rec.Body)
		if err != nil {
			return err
		}
		r.history++
		r.rec.BeginRow(evidence.Stamp{})
		r.add(row, at)
		r.rec.EndRow()
	case wandblog.Stats:
		row, err := r.rows.Stats(rec.Body)
		if err != nil {
			return err
		}
		r.add(row, at)
		r.sample(row)
	case wandblog.Output, wandblog.OutputRaw, wandblog.OutputLogger:
		line, err := wandblog.DecodeLine(rec.Kind, rec.Body)
		if err != nil {
			return err
		}
		r.console.add(rec.Kind, line, at)
		r.newest = max(r.newest, line.Wall)
	case wandblog.Run:
		return r.run(rec.Body, at)
	case wandblog.Config:
		return r.settings.record(rec.Body, r.span(at.Line, at.Offset, int64(at.Length)))
	case wandblog.Exit:
		return r.exited(rec.Body, at)
	case wandblog.Alert:
		a, err := wandblog.DecodeAlert(rec.Body)
		if err != nil {
			return err
		}
		if r.alerts++; r.alerts <= maxNotes {
			r.note("alert %s: %s", strings.TrimSpace(clean(a.Level)+" "+clean(a.Title)), clean(a.Text))
		}
	case wandblog.Environment:
		return r.environment(rec.Body, at)
	case wandblog.Metric:
		pattern, step, err := r.rows.Define(rec.Body)
		if err != nil {
			return err
		}
		if step != "" && len(r.order) < maxNotes {
			r.order = append(r.order, clean(pattern)+" in "+clean(step))
		}
	case wandblog.TBRecord:
		dir, err := wandblog.DecodeTBRecord(rec.Body)
		if err != nil {
			return err
		}
		if text := "the run mirrors the TensorBoard folder " + clean(dir); dir != "" && len(r.rec.Run.Notes) < 4*maxNotes && !slices.Contains(r.rec.Run.Notes, text) {
			r.note("%s", text)
		}
	case wandblog.Preempting:
		r.note("the run noted that it was about to be preempted (record %d)", at.Line)
	}
	return nil
}

// run reads a run record. The first one begins the run, later ones change its name and tags.
func (r *reading) run(body []byte, at reader.Place) error {
	m, err := wandblog.DecodeRun(body)
	if err != nil {
		return err
	}
	run := &r.rec.Run
	if !r.named {
		r.named = true
		if m.ID != "" {
			run.ID = clean(m.ID)
		}
		if m.Start > 0 {
			run.Started = reader.StampAt(m.Start)
			r.rows.Start = m.Start
			r.newest = max(r.newest, m.Start)
		}
		if m.Host != "" {
			r.host(m.Host)
		}
		for _, s := range [][2]string{{"group", m.Group}, {"job type", m.JobType}, {"entity", m.Entity}} {
			if s[1] != "" {
				r.note("%s: %s", s[0], clean(s[1]))
			}
		}
		if m.Resumed || m.StartingStep > 0 {
			r.note("the run was resumed: this log begins at step %d", m.StartingStep)
		}
	}
	if m.DisplayName != "" {
		run.Name = clean(m.DisplayName)
	}
	if m.Project != "" {
		run.Project = clean(m.Project)
	}
	if len(m.Tags) > 0 {
		r.replaceNote("tags: ", clean(strings.Join(m.Tags, ", ")))
	}
	if m.Notes != "" {
		r.replaceNote("notes: ", clean(m.Notes))
	}
	if m.Config != nil {
		return r.settings.record(m.Config, r.span(at.Line, at.Offset, int64(at.Length)))
	}
	return nil
}

// replaceNote keeps one note of each beginning, the latest.
func (r *reading) replaceNote(start, text string) {
	for i, n := range r.rec.Run.Notes {
		if strings.HasPrefix(n, start) {
			r.rec.Run.Notes[i] = start + text
			return
		}
	}
	r.note("%s%s", start, text)
}

// host states the machine on which the run's process was.
func (r *reading) host(name string) {
	if r.onHost == name {
		return
	}
	r.onHost = name
	r.s.Owner(evidence.Owner{Host: clean(name), Rank: evidence.None, LocalRank: evidence.None, Basis: "W&B's record of the run"})
}

// exited reads the exit record.
func (r *reading) exited(body []byte, at reader.Place) error {
	code, ran, err := wandblog.DecodeExit(body)
	if err != nil {
		return err
	}
	run := &r.rec.Run
	r.exit = true
	run.HasExit, run.Exit = true, code
	run.Status = evidence.RunFinished
	if code != 0 {
		run.Status = evidence.RunFailed
	}
	run.StatusSaid = fmt.Sprintf("exit code %d", code)
	run.StatusSpan = r.span(at.Line, at.Offset, int64(at.Length))
	run.StatusSpan.Quote = run.StatusSaid
	if ran > 0 && r.rows.Start > 0 {
		run.Ended = reader.StampAt(r.rows.Start + float64(ran))
	}
	return nil
}

// environment reads where the run ran.
func (r *reading) environment(body []byte, at reader.Place) error {
	e, err := wandblog.DecodeEnvironment(body)
	if err != nil {
		return err
	}
	span := r.span(at.Line, at.Offset, int64(at.Length))
	if e.Host != "" {
		r.host(e.Host)
	}
	r.settings.command(e.Program, e.Args, span)
	if e.GPU != "" {
		r.settings.add("gpu", e.GPU, span)
	}
	if e.GPUs > 0 {
		r.settings.add("gpu_count", fmt.Sprint(e.GPUs), span)
	}
	return nil
}

// sample notes how far apart the samples of GPU memory are.
func (r *reading) sample(row *wandblog.Row) {
	if !r.gpu {
		r.gpu = slices.ContainsFunc(row.Values, func(v wandblog.Value) bool {
			return strings.HasPrefix(v.Name, "gpu.") && strings.Contains(v.Name, "memoryAllocated")
		})
	}
	if r.sampled > 0 && row.Wall > r.sampled {
		r.every = max(r.every, row.Wall-r.sampled)
	}
	r.sampled = max(r.sampled, row.Wall)
}

// conclude states what the log as a whole says and cannot say.
func (r *reading) conclude() {
	run := &r.rec.Run
	if !r.exit && r.records > 0 {
		run.Status = evidence.RunOpen
		r.cannot("The log has no exit record: it ended while the run went on. W&B writes whole blocks of 32 KiB, so that up to the last 32 KiB of records, rows of metrics among them, may never have reached the file.")
	}
	if r.records == 0 && len(run.Damage) == 0 {
		run.Status = evidence.RunOpen
		r.cannot("The log holds its header alone: W&B was ended before its first block of 32 KiB was full, and nothing that the run logged was written.")
	}
	if r.gpu {
		if r.every > 0 {
			r.cannot("GPU memory is sampled, here at most every %.0f s: a peak between two samples does not show.", math.Ceil(r.every))
		} else {
			r.cannot("GPU memory was sampled once: a peak at another time does not show.")
		}
	}
	if slices.Sort(r.labels); len(slices.Compact(r.labels)) == 1 {
		run.Writer = clean(r.labels[0])
	}
	if len(r.order) > 0 {
		r.note("steps are counted as the run defines them: %s", strings.Join(r.order, "; "))
	}
	if r.alerts > maxNotes {
		r.note("%d more alerts", r.alerts-maxNotes)
	}
	if t, ok := r.s.(reader.Tallier); ok {
		kinds := make([]int, 0, len(r.counted))
		for k := range r.counted {
			kinds = append(kinds, k)
		}
		slices.Sort(kinds)
		for _, k := range kinds {
			t.Tally(wandblog.NameOf(k)+" records", r.counted[k])
		}
	}
}
