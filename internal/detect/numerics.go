package detect

import (
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// How many points before the first non-finite one make the "recent" window, and
// what counts as a spike.
const (
	recent       = 50
	lossSpike    = 3.0
	gradSpike    = 10.0
	startPoints  = 10
	memoryMargin = 0.95 // used fraction of the device above which memory is not "fine"
)

// nonfinite describes the first non-finite value: where it showed, what came
// before it, and whether it stayed.
func nonfinite(in Input, f evidence.Known) {
	overflows(in, f)
	e := in.NaN
	if e == nil {
		return
	}
	metric := e.Attrs.Str("metric")
	if metric == "" {
		metric = e.Attrs.Str("what")
	}
	f.Set("nan.metric", evidence.TextOf(metric), e.Span)
	if e.Step != evidence.None {
		f.Set("nan.step", evidence.IntOf(e.Step), e.Span)
	}
	if e.Attrs["hidden"].True() || e.Kind == evidence.LossOmitted {
		f.Set("nan.hidden", evidence.BoolOf(true), e.Span)
	}
	for _, x := range in.Events {
		if (x.Attrs["hidden"].True() || x.Kind == evidence.LossOmitted) && (x.Step == e.Step || x.Span.Artifact == e.Span.Artifact && x.Span.Line >= e.Span.Line) {
			f.Set("nan.hidden", evidence.BoolOf(true), x.Span)
			break
		}
	}
	saidOfBatch(in, f, e)
	if w := e.Attrs.Str("where"); w != "" {
		f.Set("nan.named_where", evidence.TextOf(w), e.Span)
	}
	if loss := seriesAt(in, e, "loss"); loss != nil {
		before := finiteBefore(loss, e.Span.Offset, e.Span.Artifact)
		if loss.Bad > 0 || len(before) > 0 {
			n := int64(len(before))
			if loss.Count > 0 {
				f.Set("nan.immediately", evidence.BoolOf(n == 0), e.Span)
				f.Set("nan.at_start", evidence.BoolOf(ordinalAt(loss, e) < startPoints), e.Span)
			}
		}
		spike(f, "nan.loss_spiked", "nan.loss_ratio", before, loss, lossSpike)
		lasting(f, loss)
		if metric == "grad_norm" && loss.Key.Trust == evidence.Raw {
			first := loss.Bad > 0 && loss.FirstBad.Offset <= e.Span.Offset
			f.Set("nan.grad_first", evidence.BoolOf(!first), e.Span)
		}
	}
	if grad := seriesAt(in, e, "grad_norm"); grad != nil {
		before := finiteBefore(grad, e.Span.Offset, e.Span.Artifact)
		spike(f, "nan.grad_spiked", "", before, grad, gradSpike)
		if loss := seriesAt(in, e, "loss"); loss == nil || loss.Bad == 0 {
			lasting(f, grad)
		}
	}
	in.each(evidence.NumericWarning, func(x *evidence.Event) {
		if x.Attrs.Str("what") == "degenerate-std" {
			f.Set("nan.degenerate_std", evidence.BoolOf(true), x.Span)
		}
	})
	if _, ok := f["nan.degenerate_std"]; !ok {
		f.Set("nan.degenerate_std", evidence.BoolOf(false))
	}
	if g, ok := f["run.generations"]; ok {
		f.Set("nan.single_sample_group", evidence.BoolOf(g.Value.I == 1), g.Spans...)
	}
	if p, ok := f["memory.peak_fraction"]; ok {
		grows, known := f.Bool("memory.grows")
		f.Set("nan.memory_fine", evidence.BoolOf(p.Value.F < memoryMargin && !(known && grows)), p.Spans...)
	} else if grows, known := f.Bool("memory.grows"); known && !grows {
		f.Set("nan.memory_fine", evidence.BoolOf(true), f["memory.grows"].Spans...)
	}
	for _, x := range in.Events {
		if (x.Kind == evidence.OOMRecovered || x.Kind.DeviceMemory() && in.Recovered(x)) && in.After(e, x) {
			f.Set("nan.after_oom_recovery", evidence.BoolOf(true), x.Span)
			break
		}
	}
	if _, ok := f["nan.after_oom_recovery"]; !ok {
		f.Set("nan.after_oom_recovery", evidence.BoolOf(false))
	}
	if x := in.first(evidence.Xid, evidence.ECCError, evidence.SDCSuspected); x != nil {
		f.Set("nan.hardware_signs", evidence.BoolOf(true), x.Span)
	}
	ranks := map[int]bool{}
	for _, x := range in.Events {
		if x.Kind == evidence.NonfiniteValue || x.Kind == evidence.NonfiniteNamed {
			ranks[x.Who.Rank] = true
		}
	}
	if in.World > 1 && e.Kind == evidence.NonfiniteNamed && e.Who.Rank != evidence.None {
		f.Set("nan.one_rank", evidence.BoolOf(len(ranks) == 1), e.Span)
	}
}

// atFault is how many lines before a non-finite value what is said of the batch may
// stand to be about that batch.
const atFault = 3

// saidOfBatch ties what the run says of a batch to the first non-finite value. Inputs
// that are not finite count as that batch's if the same rank says so right before it. A
// metric line without labels counts only if no value before it was non-finite.
func saidOfBatch(in Input, f evidence.Known, e *evidence.Event) {
	for _, s := range in.Stated {
		near := s.Span.Artifact == e.Span.Artifact && s.Span.Line <= e.Span.Line && e.Span.Line-s.Span.Line <= atFault
		if s.Name == "nan.input_finite" && !s.Value.True() && near && agree(s.Who, e.Who) {
			f.Set("nan.input_at_fault", evidence.BoolOf(true), s.Span, e.Span)
		}
	}
	x, ok := f["nan.empty_labels"]
	if !ok || len(x.Spans) == 0 || x.Spans[0].Artifact != e.Span.Artifact || x.Spans[0].Line <= e.Span.Line {
		return
	}
	if loss := seriesAt(in, e, "loss"); loss != nil && loss.Key.Artifact == e.Span.Artifact {
		for p := range loss.All() {
			if p.Line == x.Spans[0].Line {
				delete(f, "nan.empty_labels") // a later step's line
				return
			}
		}
	}
}

// agree reports whether two lines may be of one rank.
func agree(a, b evidence.Who) bool {
	return a.Rank == b.Rank || a.Rank == evidence.None || b.Rank == evidence.None
}

// lasting says whether the values stayed non-finite. A single one at the very
// end of the log may be either.
func lasting(f evidence.Known, s *evidence.Series) {
	if s.Bad == 0 || s.Bad == 1 && s.BadRun == 1 {
		return
	}
	first := s.Span(s.FirstBad)
	f.Set("nan.isolated", evidence.BoolOf(s.FiniteAfterBad && s.BadRun == 0 && s.LongestBadRun <= 3), first)
	f.Set("nan.persistent", evidence.BoolOf(!s.FiniteAfterBad), first, s.Span(s.Last))
}

// overflows counts the longest run of loss-scale overflows of one process with
// fewer than three training lines between neighbours: a scaler that searches for
// its scale skips one step now and then.
func overflows(in Input, f evidence.Known) {
	type process struct {
		artifact     string
		launch, rank int
	}
	type run struct {
		n           int64
		first, last evidence.Span
	}
	runs := map[process]run{}
	longest := int64(0)
	in.each(evidence.ScaleOverflow, func(e *evidence.Event) {
		p := process{e.Span.Artifact, e.Who.Launch, e.Who.Rank}
		r := runs[p]
		if r.n > 0 && evidence.LossesBetween(in.Series, p.artifact, r.last.Offset, e.Span.Offset) >= 3 {
			r = run{}
		}
		if r.n == 0 {
			r.first = e.Span
		}
		r.n++
		r.last = e.Span
		runs[p] = r
		if r.n > longest {
			longest = r.n
			f.Set("nan.overflows", evidence.IntOf(longest), r.first, r.last)
		}
	})
	in.each(evidence.ScaleFloor, func(e *evidence.Event) {
		f.Set("nan.scale_floor", evidence.BoolOf(true), e.Span)
	})
}

// seriesAt finds the training series of name that e belongs to: same artifact
// and rank if there is one, else any.
func seriesAt(in Input, e *evidence.Event, name string) *evidence.Series {
	var best *evidence.Series
	for _, s := range in.named(name, "train") {
		if s.Key.Artifact == e.Span.Artifact && s.Key.Launch == e.Who.Launch && (s.Key.Rank == e.Who.Rank || s.Key.Rank == evidence.None) {
			return s
		}
		if best == nil {
			best = s
		}
	}
	return best
}

func finiteBefore(s *evidence.Series, offset int64, artifact string) []evidence.Point {
	var out []evidence.Point
	for p := range s.All() {
		if s.Key.Artifact == artifact && p.Offset >= offset {
			break
		}
		if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
			out = append(out, p)
		}
	}
	return out
}

// ordinalAt counts the points of s before e.
func ordinalAt(s *evidence.Series, e *evidence.Event) int64 {
	n := int64(0)
	for p := range s.All() {
		if s.Key.Artifact == e.Span.Artifact && p.Offset >= e.Span.Offset {
			break
		}
		n = p.Ordinal + 1
	}
	return n
}

func spike(f evidence.Known, name, ratio string, before []evidence.Point, s *evidence.Series, by float64) {
	if len(before) < 3 {
		return
	}
	if len(before) > recent {
		before = before[len(before)-recent:]
	}
	var values []float64
	for _, p := range before {
		values = append(values, p.Value)
	}
	m := median(values)
	top := slices.Max(append(values[len(values)-min(5, len(values)):], 0))
	if m <= 0 {
		return
	}
	f.Set(name, evidence.BoolOf(top >= by*m), s.Span(before[len(before)-1]))
	if ratio != "" {
		f.Set(ratio, evidence.FloatOf(top/m), s.Span(before[len(before)-1]))
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
