package history

import (
	"bytes"
	"io"
	"io/fs"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/plainyaml"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/reader"
)

// maxSettings bounds a file of settings.
const maxSettings = 1 << 20

// What the files of each tracker cannot show, a sentence each.
var cannot = map[string][]string{
	"trainer_state": {
		"The Trainer puts the mean of an interval's finite losses for those that are not (logging_nan_inf_filter, on by default): a finite loss proves nothing.",
		"Rows carry no time.",
		"The state is written with a checkpoint: what was logged after the last one is not here.",
	},
	"lightning": {"Rows are written after every 100 logged steps by default: a crash loses those that were not, and a logger that is opened again on the same folder deletes the rows before it."},
	"keras":     {"A row is an epoch, and its loss the mean over it: the step is not known."},
	"wandb-csv": {"Rows of an export may be sampled or put together: the first step that is not finite is only approximate."},
	"mmengine":  {"Rows carry no time."},
	"mmcv":      {"Rows carry no time."},
}

// opened completes a recording that was just made.
func (r *reading) opened(rec *reader.Recording) {
	rec.Run.Cannot = append(rec.Run.Cannot, cannot[rec.Run.Tracker]...)
	if rec.Run.Keeps == evidence.Replaced && rec.Run.Tracker != "trainer_state" {
		rec.Run.Cannot = append(rec.Run.Cannot, cannot["trainer_state"][0])
	}
	if r.in.Dir == nil {
		return
	}
	for _, name := range []string{"hparams.yaml", "params.json"} {
		if f, err := r.in.Dir.Open(name); err == nil {
			r.companion(rec, f, name)
		}
	}
}

// companion reads a file of settings beside the rows.
func (r *reading) companion(rec *reader.Recording, f fs.File, name string) {
	data, err := io.ReadAll(io.LimitReader(reader.Stopping(r.ctx, f), maxSettings))
	f.Close()
	if err != nil {
		rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: evidence.Span{Artifact: r.artifact, Kind: "record"}, Text: "reading " + name + ": " + err.Error()})
	}
	settingsOf(name, data, func(key, value string, line, offset, length int) {
		rec.Setting(key, value, evidence.Span{Artifact: sibling(r.artifact, name), Kind: "record", Record: int64(line), Quote: key + ": " + cut(value)})
	})
}

// sibling is how a file beside the artifact is named.
func sibling(artifact, name string) string {
	return artifact[:strings.LastIndexAny(artifact, "/!")+1] + name
}

func cut(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// settingsOf gives the scalars of a YAML or JSON file with their line, and their offset and
// length in it.
func settingsOf(name string, data []byte, fn func(key, value string, line, offset, length int)) {
	if strings.HasSuffix(name, ".yaml") {
		items, _ := plainyaml.Parse(data)
		for i := range items {
			x := &items[i]
			if x.Value != "" {
				fn(x.Name(), x.Value, x.Line, x.Offset, x.Length)
			}
		}
		return
	}
	d := rows.NewDecoder(bytes.NewReader(data), rows.Lines, "")
	for {
		p, err := d.Next()
		if err != nil {
			return
		}
		for i := range p.Cells {
			c := &p.Cells[i]
			fn(strings.ReplaceAll(c.Name, "/", "."), printable(c.Text), int(c.Line), int(p.Offset)+c.From, c.To-c.From)
		}
	}
}

// printable is a value as text that can be shown.
func printable(b []byte) string {
	return strings.ToValidUTF8(strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f {
			return ' '
		}
		return c
	}, string(b)), "\uFFFD")
}

// readAlone reads a file of settings that nothing lies beside.
func readAlone(b io.Reader, artifact string, s reader.Sink) error {
	if strings.HasSuffix(baseOf(artifact), ".pkl") {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(b, maxSettings))
	if err != nil {
		return err
	}
	out := reader.NewSettings(s)
	settingsOf(baseOf(artifact), data, func(key, value string, line, offset, length int) {
		sp := evidence.Span{Artifact: artifact, Kind: "text", Line: int64(line), Offset: int64(offset), Length: int64(length), Quote: string(data[offset : offset+length])}
		out.Add(key, value, sp)
	})
	out.Close()
	return nil
}

// member takes a scalar that stands beside the rows of a trainer state.
func (r *reading) member(c *rows.Cell) {
	if r.out.Layout.Tracker != "trainer_state" || strings.HasPrefix(c.Name, "is_") || string(c.Text) == "null" {
		return
	}
	rec := r.out.Run("")
	rec.Setting(c.Name, printable(c.Text), r.span(c))
	if c.Name == "max_steps" && c.Number && c.Value > 0 && c.Value <= 1<<53 {
		r.out.Total(int64(c.Value), r.span(c))
	}
}

// trial notes the last row's word of a Ray trial.
func (r *reading) trial(cells []rows.Cell) {
	rec := r.out.Run("")
	first := len(rec.Run.Settings) == 0
	for i := range cells {
		switch c := &cells[i]; {
		case c.Name == "done":
			r.done, r.doneAt = strings.EqualFold(string(c.Text), "true"), r.span(c)
		case first && strings.HasPrefix(c.Name, "config/"):
			rec.Setting(strings.ReplaceAll(strings.TrimPrefix(c.Name, "config/"), "/", "."), printable(c.Text), r.span(c))
		}
	}
}

// trialStatus says how a Ray trial ended: the file of its error lies beside a failed one, and
// the last row of one that ended says done.
func (r *reading) trialStatus(rec *reader.Recording) {
	rec.Run.Status, rec.Run.StatusSaid, rec.Run.StatusSpan = evidence.RunOpen, "done: false", r.doneAt
	if r.done {
		rec.Run.Status, rec.Run.StatusSaid = evidence.RunFinished, "done: true"
	}
	if r.in.Dir == nil {
		return
	}
	if f, err := r.in.Dir.Open("error.pkl"); err == nil {
		f.Close()
		rec.Run.Status, rec.Run.StatusSaid, rec.Run.StatusSpan = evidence.RunFailed, "error.pkl beside the results", evidence.Span{}
	}
}
