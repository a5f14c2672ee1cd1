package reader

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// lossWasAlive is a loss from which none falls to exactly 0 within one logging interval.
const lossWasAlive = 0.05

// A row is the present row of a recording whose points stand side by side in one record,
// and what is remembered of the rows before it.
type row struct {
	open    bool
	stamp   evidence.Stamp
	visible bool // some point of the row is news: best
	rank    int
	best    evidence.Event

	loss    *Track // the row's training loss
	value   float64
	at      evidence.Mark
	zero    evidence.Event // of the loss, where it is exactly 0
	grad    bool           // the row has a gradient norm
	badGrad bool           // which is not finite
	reward  bool

	// What a trainer that replaces a loss that is not finite leaves of it: 0.
	alive float64 // last loss that was not 0
	zeros int64   // rows since with 0
	from  evidence.Mark
	first evidence.Event
	told  bool // there was an event of these zeros
}

// BeginRow begins a row: the points that are added until EndRow stand in one record, and
// at most one of them, the most telling, becomes an event. stamp is the row's time as it
// is written there, the zero Stamp to take the time that each point is added with.
func (r *Recording) BeginRow(stamp evidence.Stamp) {
	w := &r.row
	*w = row{open: true, stamp: stamp, alive: w.alive, zeros: w.zeros, from: w.from, first: w.first, told: w.told}
}

// EndRow ends the row.
func (r *Recording) EndRow() {
	w := &r.row
	if w.visible {
		r.s.Event(w.best)
	}
	if r.Run.Keeps == evidence.Replaced && w.loss != nil {
		r.filtered()
	}
	w.open = false
}

// rank orders the series whose events compete for a row; lower is better.
func (t *Track) rank() int {
	switch t.label {
	case "loss":
		return 1
	case "grad_norm":
		return 2
	case "eval_loss":
		return 3
	}
	return 4
}

// note remembers of a point what the judgement of the row needs.
func (w *row) note(t *Track, v float64, bad bool) {
	switch t.Series.Key.Name {
	case "loss":
		w.loss, w.value = t, v
		w.at = evidence.Mark{Step: t.p.Step, Ordinal: t.p.Ordinal, Line: t.p.Line, Offset: t.p.Offset}
		if v == 0 {
			w.zero = t.event(v, &t.p, true)
		}
	case "grad_norm":
		w.grad, w.badGrad = true, w.badGrad || bad
	case "reward":
		w.reward = true
	}
}

// filtered judges the loss of a row of a trainer that puts the mean of the interval's
// finite losses for each that is not (transformers, logging_nan_inf_filter, on by
// default: trainer.py, _maybe_log_save_evaluate). Where all of an interval were not finite, the row
// says 0. Such a 0 is one where the gradient norm of the row is not finite, or where a
// second one follows a loss above lossWasAlive and rows have no gradient norm. A
// loss that is not 0 beside a gradient norm that is not finite may be a mean of what
// was left. Runs with rewards, whose loss is 0 by nature, are left out, and a
// row whose event is visible already gets no second one.
func (r *Recording) filtered() {
	w, t := &r.row, r.row.loss
	if w.value != 0 {
		if w.value-w.value == 0 {
			w.alive = w.value
			if w.badGrad {
				t.Suspect(1, suspectMean)
			}
		}
		w.zeros, w.told = 0, false
		return
	}
	switch {
	case w.reward:
		return
	case w.told:
		t.Suspect(1, suspectZero)
		return
	case w.visible:
		if w.badGrad {
			t.Suspect(1, suspectZero)
		}
		return
	}
	w.zeros++
	if w.zeros == 1 {
		w.first, w.from = w.zero, w.at
	}
	if w.badGrad || w.zeros >= 2 && !w.grad && w.alive > lossWasAlive {
		w.told = true
		t.SuspectRun(evidence.Run{First: w.from, Last: w.at}, suspectZero)
		if t.events < maxRunEvents {
			t.events++
			r.s.Event(w.first)
		}
	}
}

const (
	suspectZero = "a loss of exactly 0 is what logging_nan_inf_filter leaves of an interval in which no loss was finite"
	suspectMean = "the gradient norm of the row is not finite, and logging_nan_inf_filter puts the mean of an interval's finite losses for those that are not"
)

// printable drops control bytes.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return -1
		}
		return c
	}, s)
	return strings.ToValidUTF8(s, "\uFFFD")
}
