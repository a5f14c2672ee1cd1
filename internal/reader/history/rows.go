package history

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxSeries    = 4096
	maxEvents    = 5  // non-finite events of one series
	quietPoints  = 10 // finite points after which a non-finite one is news again
	lossWasAlive = 0.05
)

var errSeries = errors.New("over limit: too many metric series, later ones are not kept")

// stepRanks orders the names of step columns, best first; a counter of
// optimizer steps comes before one of iterations or updates.
var stepRanks = []string{"_step", "step", "global_step", "trainer/global_step", "train/global_step", "global_step/max_steps", "iteration", "iter", "num_updates", "current_steps", "training_iteration", "update", "train_steps", "steps"}

// stepRank returns how good a step column a lower-case key is, 0 for none.
func stepRank(key string) int {
	for i, s := range stepRanks {
		if key == s {
			return len(stepRanks) - i
		}
	}
	return 0
}

// isMetric reports whether a lower-case key names a quantity of training.
func isMetric(key string) bool {
	_, ok := alias(key)
	return ok || lossLike(key)
}

// alias finds the canonical series of a lower-case key; trackers separate the
// parts of a name by '/' or '.'.
func alias(key string) (evidence.Alias, bool) {
	a, ok := evidence.SeriesAliases[key]
	if !ok {
		a, ok = evidence.SeriesAliases[strings.ReplaceAll(key, ".", "/")]
	}
	return a, ok && a.Name != ""
}

func lossLike(key string) bool {
	return strings.HasSuffix(key, "loss") || strings.HasSuffix(key, "loss_step") || strings.HasSuffix(key, "loss_epoch") ||
		strings.HasPrefix(key, "loss/") || strings.HasPrefix(key, "losses/") || strings.HasPrefix(key, "loss_") && !strings.HasPrefix(key, "loss_scal") && !strings.HasPrefix(key, "loss_weight")
}

// benign reports whether a non-finite value of the metric is no sign about the training.
func benign(key string) bool {
	for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return strings.ContainsRune("_/.-@ ", r) }) {
		if evidence.SeriesBenign[part] {
			return true
		}
	}
	return false
}

// phase reads the phase from a lower-case key.
func phase(key string) string {
	for _, w := range [...]string{"eval", "val", "valid", "validation", "test", "dev"} {
		if strings.HasPrefix(key, w) && len(key) > len(w) && (key[len(w)] == '_' || key[len(w)] == '/' || key[len(w)] == '.') || strings.Contains(key, "/"+w+"/") {
			return "eval"
		}
	}
	return "train"
}

// A track is one series and what is remembered of its points.
type track struct {
	series *evidence.Series
	skip   bool // keeps no points
	minor  bool // skipped because its values are finite and its name says nothing
	scale  float64
	rank   int // priority of its events; lower is better
	finite int64
	events int
	quiet  bool // never an event
}

// rows turns the rows of one file into series and events.
type rows struct {
	s        reader.Sink
	artifact string
	source   string
	filtered bool // the loss of this file may be a replaced one
	tracks   map[string]*track
	scratch  row
	full     bool
	total    float64
	eval     bool // the row is one of an evaluation

	// What transformers' logging_nan_inf_filter leaves of a non-finite loss: 0.
	last      float64 // last loss that was not 0
	zeros     int
	told      bool
	firstZero evidence.Event
}

func newRows(s reader.Sink, artifact string) *rows {
	return &rows{s: s, artifact: artifact, tracks: map[string]*track{}}
}

func (r *rows) damage(line, off int64, err error) {
	r.s.Damage(evidence.Span{Artifact: r.artifact, Kind: "text", Line: line, Offset: off}, err)
}

func (r *rows) span(c *cell) evidence.Span {
	return evidence.Span{Artifact: r.artifact, Kind: "text", Line: c.line, Column: c.column, Offset: c.offset, Length: int64(len(c.quote)), Quote: c.quote}
}

// setting files a number of trainer_state.json that stands beside the rows.
func (r *rows) setting(c cell) {
	if math.IsNaN(c.v) || math.IsInf(c.v, 0) || c.v != math.Trunc(c.v) || math.Abs(c.v) > 1<<53 {
		return
	}
	name := ""
	switch c.key {
	case "max_steps":
		name = "setting.total_steps"
	case "num_train_epochs", "train_batch_size", "logging_steps", "save_steps", "eval_steps", "global_step":
		name = "setting." + c.key
	default:
		return
	}
	r.s.Fact(evidence.Fact{Name: name, Value: evidence.IntOf(int64(c.v)), Who: evidence.Nobody(), Span: r.span(&c)})
}

// An offer is the non-finite value that may become the event of a row.
type offer struct {
	t *track
	c *cell
}

// add takes one row.
func (r *rows) add(w *row) {
	step, stamp, final := r.place(w)
	r.eval = evalRow(w)
	var best offer
	var loss, grad *cell
	reward := false
	for i := range w.cells {
		c := &w.cells[i]
		if !c.number {
			continue
		}
		switch c.key {
		case "loss":
			loss = c
		case "grad_norm":
			grad = c
		case "reward":
			reward = true
		case "train_loss":
			if final != nil { // the mean over the run
				continue
			}
		}
		t := r.track(c)
		if t == nil || t.skip {
			continue
		}
		p := evidence.Point{Step: step, Value: c.v * t.scale, Line: c.line, Offset: c.offset, Length: int32(len(c.quote))}
		if bad(c.v) {
			p.Stamp = copyOf(stamp)
			if (t.series.Bad == 0 || t.finite >= quietPoints) && !t.quiet && t.events < maxEvents {
				t.events++
				if best.t == nil || t.rank < best.t.rank {
					best = offer{t, c}
				}
			}
			t.finite = 0
		} else {
			t.finite++
			if t.series.WillSample() {
				p.Stamp = copyOf(stamp)
			}
		}
		t.series.Add(p)
	}
	if best.t != nil {
		r.s.Event(r.nonfinite(best.t, best.c, step, stamp, false))
	}
	if r.filtered && loss != nil {
		r.hidden(loss, grad, reward, best.t != nil, step, stamp)
	}
	if final != nil {
		sp := r.span(final)
		r.s.Event(evidence.Event{Kind: evidence.Finished, Who: evidence.Nobody(), Stamp: stamp, Step: step, Text: printable(sp.Quote), Span: sp, Attrs: evidence.Attrs{"what": evidence.TextOf("train_runtime")}})
	}
}

// copyOf puts the time of one kept point on the heap; those of the others stay
// off it.
func copyOf(st evidence.Stamp) *evidence.Stamp { return &st }

// evalRow reports whether a row says that it is of an evaluation; OpenMMLab
// writes "mode": "val".
func evalRow(w *row) bool {
	for i := range w.cells {
		if c := &w.cells[i]; c.key == "mode" || c.key == "split" || c.key == "phase" {
			switch c.text {
			case "val", "valid", "validation", "eval", "test":
				return true
			}
		}
	}
	return false
}

// place finds the step, the time, the total and the closing row of a run.
func (r *rows) place(w *row) (step int64, stamp evidence.Stamp, final *cell) {
	step = evidence.None
	rank := 0
	for i := range w.cells {
		c := &w.cells[i]
		key := strings.ToLower(c.key)
		if s := stepRank(key); s > rank {
			if n, total, ok := stepOf(c); ok {
				step, rank = n, s
				if total > 0 {
					r.filtered = true
					r.totals(float64(total), c)
				}
			}
		}
		switch key {
		case "train_runtime":
			final = c
		case "total_steps":
			if c.number {
				r.filtered = r.filtered || r.source == "jsonl" // LLaMA-Factory's trainer_log.jsonl
				r.totals(c.v, c)
			}
		case "_timestamp", "timestamp", "wall_time", "wall time", "time", "created_at", "ts", "date":
			if !stamp.Known() {
				stamp = stampOf(c)
			}
		}
	}
	return step, stamp, final
}

func (r *rows) totals(v float64, c *cell) {
	if v == r.total || bad(v) || v <= 0 || v != math.Trunc(v) || v > 1<<53 {
		return
	}
	r.total = v
	r.s.Fact(evidence.Fact{Name: "setting.total_steps", Value: evidence.IntOf(int64(v)), Who: evidence.Nobody(), Span: r.span(c)})
}

// stepOf reads a step: a whole number, or ms-swift's "12/100".
func stepOf(c *cell) (n, total int64, ok bool) {
	if c.number {
		if bad(c.v) || c.v < 0 || c.v > 1<<53 || c.v != math.Trunc(c.v) {
			return 0, 0, false
		}
		return int64(c.v), 0, true
	}
	a, b, found := strings.Cut(c.text, "/")
	if !found {
		return 0, 0, false
	}
	n, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	total, err = strconv.ParseInt(b, 10, 64)
	return n, total, err == nil
}

// stampOf reads a time: seconds, milliseconds, microseconds or nanoseconds
// since 1970 by their size, or an ISO date. Smaller numbers are durations and
// no time.
func stampOf(c *cell) evidence.Stamp {
	if c.number {
		s := c.v
		res := time.Second / 2
		switch {
		case s >= 1e9 && s < 5e9:
			if s != math.Trunc(s) {
				res = time.Microsecond
			}
		case s >= 1e12 && s < 5e12:
			s, res = s/1e3, time.Millisecond/2
		case s >= 1e15 && s < 5e15:
			s, res = s/1e6, time.Microsecond/2
		case s >= 1e18 && s < 5e18:
			s, res = s/1e9, time.Microsecond
		default:
			return evidence.Stamp{}
		}
		whole, frac := math.Modf(s)
		return evidence.Stamp{Time: time.Unix(int64(whole), int64(frac*1e9)).UTC(), Written: c.text, Zone: "Z", Error: res, Clock: "wall"}
	}
	for _, f := range [...]struct {
		layout string
		zone   bool
	}{{time.RFC3339Nano, true}, {"2006-01-02T15:04:05.999999999", false}, {"2006-01-02 15:04:05.999999999", false}, {"2006-01-02_15-04-05", false}} {
		if t, err := time.Parse(f.layout, c.text); err == nil {
			s := evidence.Stamp{Time: t.UTC(), Written: c.text, Error: time.Second / 2, Clock: "wall"}
			if t.Nanosecond() != 0 {
				s.Error = time.Millisecond / 2
			}
			if f.zone {
				s.Zone = t.Format("-07:00")
				if s.Zone == "+00:00" {
					s.Zone = "Z"
				}
			}
			return s
		}
	}
	return evidence.Stamp{}
}

// track returns the track of a cell's key, nil when there are too many.
func (r *rows) track(c *cell) *track {
	id := c.key
	if r.eval {
		id = "eval " + id
	}
	if t := r.tracks[id]; t != nil && !(t.minor && bad(c.v)) {
		return t
	}
	if len(r.tracks) >= maxSeries {
		if !r.full {
			r.full = true
			r.damage(c.line, c.offset, errSeries)
		}
		return nil
	}
	key := strings.ToLower(c.key)
	t := &track{scale: 1, rank: 4, quiet: benign(key)}
	a, known := alias(key)
	k := evidence.SeriesKey{Name: a.Name, Source: r.source, Artifact: r.artifact, Rank: evidence.None, Trust: evidence.Raw, Phase: phase(key)}
	if r.eval {
		k.Phase = "eval"
	}
	switch {
	case known:
		if a.Phase != "" {
			k.Phase = a.Phase
		}
		if k.Name == "loss" && k.Phase == "eval" {
			k.Name = "eval_loss"
		}
		t.fit(&k, a, c.v)
	case lossLike(key):
		k.Name = key
	case bad(c.v) && stepRank(key) == 0 && key != "epoch":
		k.Name = key
	default:
		t.skip, t.minor = true, true // until it is not finite
	}
	switch k.Name {
	case "loss":
		t.rank = 1
		if r.filtered {
			k.Trust = evidence.Filtered
		}
	case "grad_norm":
		t.rank = 2
	case "eval_loss":
		t.rank = 3
	case "lr", "loss_scale", "perplexity", "skipped", "seq_len", "step_time":
		t.quiet = true
	}
	if !t.skip {
		if other := r.same(k); other {
			k.Name = key
		}
		t.series = r.s.Series(k)
	}
	r.tracks[id] = t
	return t
}

// same reports whether another key already has this series; then the key keeps
// its own name (loss and train_loss in one table).
func (r *rows) same(k evidence.SeriesKey) bool {
	for _, t := range r.tracks {
		if !t.skip && t.series.Key == k {
			return true
		}
	}
	return false
}

// fit sets unit and scale of a canonical series. A size without a stated unit is
// in bytes if its first value is too large for anything else.
func (t *track) fit(k *evidence.SeriesKey, a evidence.Alias, first float64) {
	switch {
	case strings.HasPrefix(a.Name, "memory_") && a.Name != "memory_fraction" || a.Name == "host_memory":
		k.Unit, t.scale, t.quiet = "bytes", a.Scale, true
		if a.Scale == 0 || first >= 1<<24 {
			t.scale, t.skip = 1, first < 1<<24
		}
	case a.Name == "step_time":
		k.Unit = "seconds"
		if a.Scale > 0 {
			t.scale = a.Scale
		}
	case a.Name == "skipped":
		k.Unit = "steps"
	case a.Name == "memory_fraction":
		k.Unit = "fraction"
	}
	if a.Peak {
		k.Source += " peak"
	}
}

func (r *rows) nonfinite(t *track, c *cell, step int64, stamp evidence.Stamp, hidden bool) evidence.Event {
	k := t.series.Key
	sp := r.span(c)
	return evidence.Event{Kind: evidence.NonfiniteValue, Who: evidence.Nobody(), Stamp: stamp, Step: step, Text: printable(sp.Quote), Span: sp,
		Attrs: evidence.Attrs{"metric": evidence.TextOf(k.Name), "value": evidence.TextOf(printable(c.text)), "trust": evidence.TextOf(string(k.Trust)), "hidden": evidence.BoolOf(hidden)}}
}

// hidden applies HF_FILTERED_NAN: a loss of exactly 0 stands for a non-finite
// one when the gradient norm of its row is not finite, or when a second 0
// follows a loss above 0.05 in rows without a gradient norm. Runs with rewards,
// whose loss is 0 by nature, are left out. A row whose event is visible already
// gets no second one.
func (r *rows) hidden(loss, grad *cell, reward, visible bool, step int64, stamp evidence.Stamp) {
	if loss.v != 0 {
		if !bad(loss.v) {
			r.last = loss.v
		}
		r.zeros, r.told = 0, false
		return
	}
	t := r.tracks[loss.key]
	if t == nil || t.skip || reward || r.told || t.events >= maxEvents {
		return
	}
	if visible {
		return
	}
	r.zeros++
	if r.zeros == 1 {
		r.firstZero = r.nonfinite(t, loss, step, stamp, true)
	}
	badGrad := grad != nil && bad(grad.v)
	if badGrad || r.zeros >= 2 && grad == nil && r.last > lossWasAlive {
		r.told = true
		t.events++
		r.s.Event(r.firstZero)
	}
}

func bad(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

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
