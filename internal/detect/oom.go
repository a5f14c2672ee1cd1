package detect

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// deviceMemory restates the message's own figures and reconciles them.
//
// All sizes are intervals (two printed decimals); a difference adds the
// uncertainties, so "outside the allocator" and "unexplained" come out as
// intervals too. Formulas:
//
//	outside     = this process - reserved - private pools
//	unexplained = capacity - free - this process (or reserved) - other processes
//
// A listed process whose use covers this process's reserved bytes to within a
// context's size, while the message does not name "this process", is this
// process under another pid namespace, not a stranger.
func deviceMemory(in Input, f evidence.Known) {
	e := in.Memory
	if e == nil {
		if caught := catches(in); len(caught) > 0 {
			var at []evidence.Span
			for _, c := range caught {
				at = append(at, c.first)
			}
			f.Set("oom.survived", evidence.IntOf(int64(len(caught))), clip(at)...)
		}
		return
	}
	f.Set("oom.kind", evidence.TextOf(string(e.Kind)), e.Span)
	take := func(fact, attr string) (evidence.Value, bool) {
		v, ok := e.Attrs[attr]
		if ok {
			f.Set(fact, v, e.Span)
		}
		return v, ok
	}
	requested, okReq := take("oom.requested", "requested")
	capacity, okCap := take("oom.capacity", "capacity")
	free, okFree := take("oom.free", "free")
	allocated, okAlloc := take("oom.allocated", "allocated")
	reserved, okRes := take("oom.reserved", "reserved")
	_, okUn := take("oom.reserved_unallocated", "unallocated")
	take("oom.private_pools", "private_pools")
	take("oom.allowed", "allowed")
	take("oom.backend", "backend")
	take("oom.where", "where")
	take("oom.kv_needed", "kv_needed")
	take("oom.kv_available", "kv_available")
	this, okThis := take("oom.this_process", "this_process")
	others, okOthers := e.Attrs["other_processes"]
	if okReq {
		f.Set("oom.bogus", evidence.BoolOf(evidence.ImpossibleRequest(requested, capacity, okCap)), e.Span)
	}
	if okRes && okAlloc && !okUn {
		f.Set("oom.reserved_unallocated", reserved.Minus(allocated), e.Span)
	}
	// One listed process that holds just what this process has reserved, plus a
	// context, is this process seen from another pid namespace.
	const context = 2 << 30
	if okOthers && !okThis && okRes && e.Attrs["processes"].I == 1 && others.Hi >= reserved.Lo && others.Lo <= reserved.Hi+context {
		this, okThis = others, true
		okOthers = false
		f.Set("oom.this_process", this, e.Span)
		f.Set("oom.other_processes", evidence.SizeOf(0, 0), e.Span)
	} else if okOthers {
		f.Set("oom.other_processes", others, e.Span)
	} else if okThis {
		f.Set("oom.other_processes", evidence.SizeOf(0, 0), e.Span)
	}
	if okThis && okRes {
		f.Set("oom.outside_allocator", floor0(this.Minus(reserved)), e.Span)
	}
	if okCap && okFree && (okThis || okRes) {
		mine := this
		if !okThis {
			mine = reserved
		}
		rest := capacity.Minus(free).Minus(mine)
		if okOthers {
			rest = rest.Minus(others)
		}
		f.Set("oom.unexplained", floor0(rest), e.Span)
	}
	f.Set("oom.phase", evidence.TextOf(phaseOf(in, e)), e.Span)
	if n, sp, ok := trainingOf(in).stepsBefore(e); ok {
		f.Set("oom.first_step", evidence.BoolOf(n <= 0), sp...)
		f.Set("oom.points_before", evidence.IntOf(n), sp...)
		if n > 0 && e.Step != evidence.None {
			f.Set("oom.step", evidence.IntOf(e.Step), sp...)
		}
	}
	ranks := map[int]bool{}
	var spans []evidence.Span
	for _, x := range in.Events {
		if x.Kind.DeviceMemory() && !x.Quoted && !in.Recovered(x) && !ranks[x.Who.Rank] {
			ranks[x.Who.Rank] = true
			spans = append(spans, x.Span)
		}
	}
	if len(ranks) > 0 {
		f.Set("oom.ranks", evidence.IntOf(int64(len(ranks))), spans...)
		if in.World > 1 {
			f.Set("oom.all_ranks", evidence.BoolOf(len(ranks) >= in.World), spans...)
		}
	}
	caught := catches(in)
	var at []evidence.Span
	for _, c := range caught {
		at = append(at, c.first)
	}
	f.Set("oom.recovered_before", evidence.IntOf(int64(len(caught))), clip(at)...)
	if sp := again(in, caught, e); sp != nil {
		f.Set("oom.retry_same_failure", evidence.BoolOf(true), sp...)
	}
	if l, ok := f["batch.length"]; ok && okReq && l.Value.I > 0 {
		exactTensor(f, requested, l)
	}
	if okReq {
		exactLogits(f, requested)
	}
}

// A catch is one memory failure that was survived: its own line, what handlers
// say of it within three lines, or both.
type catch struct {
	first, last evidence.Span
	words       bool // the failure's own line is among them
}

// catches lists them, each artifact's in order.
func catches(in Input) []catch {
	var out []catch
	for _, x := range in.Events {
		words := x.Kind.DeviceMemory() && in.Recovered(x)
		if x.Quoted || !words && x.Kind != evidence.OOMRecovered {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].last.Artifact == x.Span.Artifact && x.Span.Line-out[n].last.Line <= 3 && !(words && out[n].words) {
			out[n].last = x.Span
			out[n].words = out[n].words || words
			continue
		}
		out = append(out, catch{x.Span, x.Span, words})
	}
	return out
}

// again finds a caught failure after which memory ran out once more, or ended
// the run at e, before three training lines had been logged.
func again(in Input, caught []catch, e *evidence.Event) []evidence.Span {
	for i, c := range caught {
		next := e.Span
		if i+1 < len(caught) && caught[i+1].first.Artifact == c.last.Artifact {
			next = caught[i+1].first
		}
		if next.Artifact == c.last.Artifact && next.Line > c.last.Line && evidence.LossesBetween(in.Series, next.Artifact, c.last.Offset, next.Offset) < 3 {
			return []evidence.Span{c.first, next}
		}
	}
	return nil
}

// exactTensor checks whether the request is an attention score tensor of the
// failing batch: count x heads x length² x bytes must be a whole, even number of
// bytes per pair within the printed precision.
func exactTensor(f evidence.Known, requested evidence.Value, length evidence.Found) {
	pairs := float64(length.Value.I) * float64(length.Value.I)
	if n, ok := f["batch.count"]; ok {
		pairs *= float64(n.Value.I)
	} else if n, ok := f["run.batch"]; ok {
		pairs *= float64(n.Value.I)
	}
	lo, hi := float64(requested.Lo)/pairs, float64(requested.Hi)/pairs
	k := math.Round((lo + hi) / 2)
	if k >= 2 && k <= 512 && int64(k)%2 == 0 && k >= lo*(1-1e-9) && k <= hi*(1+1e-9)+2e6/pairs {
		f.Set("oom.exact_tensor", evidence.BoolOf(true), length.Spans...)
	}
}

// exactLogits checks whether the request is the logits of the whole micro-batch, in evaluation that of evaluation:
// samples x tokens x vocabulary x 2 or 4 bytes, rounded up to 2 MiB as the
// allocator does for requests above 10 MiB (kRoundLarge, CUDACachingAllocator.cpp).
func exactLogits(f evidence.Known, requested evidence.Value) {
	vocab, ok := f["run.vocab"]
	n := vocab.Value.I
	if !ok || n < 1000 {
		return
	}
	batch := max(f["run.batch"].Value.I, 1)
	if n, ok := f["run.eval_batch"]; ok && f["oom.phase"].Value.S == "evaluation" {
		batch = max(n.Value.I, 1)
	}
	lengths := []evidence.Found{f["batch.length"], f["run.seq_len"]}
	for _, l := range lengths {
		for _, bytes := range []int64{2, 4} {
			const round = 2 << 20
			size := batch * l.Value.I * n * bytes
			if l.Value.I <= 0 || size < 10<<20 || size > 1<<46 {
				continue
			}
			size = (size + round - 1) / round * round
			if size >= requested.Lo && size <= requested.Hi {
				f.Set("oom.logits_exact", evidence.BoolOf(true), append(append([]evidence.Span(nil), vocab.Spans...), l.Spans...)...)
				return
			}
		}
	}
}

func floor0(v evidence.Value) evidence.Value {
	return evidence.SizeOf(max(v.Lo, 0), max(v.Hi, 0))
}

// progress reports whether a series counts training steps: a loss of any name, a
// norm, a rate, or anything logged with a step.
func progress(s *evidence.Series) bool {
	switch n := s.Key.Name; {
	case n == "grad_norm", n == "lr", strings.HasSuffix(n, "loss"):
		return true
	}
	return s.First.Step >= 0 && s.Key.Name != "host_memory"
}

// beforeTraining reports whether a series holds only what an optimizer states at
// its set-up: DeepSpeed logs rate and skipped steps as step 0 before any step.
func beforeTraining(s *evidence.Series) bool {
	return s.Key.Source == "deepspeed" && s.First.Step == 0 && s.Last.Step == 0 && (s.Key.Name == "lr" || s.Key.Name == "skipped")
}

// bannerGap is how many lines, beside the traceback's own, may stand between the
// start of training and a failure for it to count as the first step.
const bannerGap = 30

// A training says how far an attempt had come at an event. What it looks up is
// computed once: a log can report memory thousands of times and have a series for
// each of thousands of ranks.
type training struct {
	in      Input
	all     []*evidence.Series           // of training progress
	of      map[int][]*evidence.Series   // by rank
	onsets  map[part]*onset              // of the points that stepsBefore counts for it
	banners map[string][]*evidence.Event // by artifact, in order
}

// A part is what one rank says in one artifact.
type part struct {
	artifact string
	rank     int
}

// An onset is where training begins in one part and in the files beside it.
type onset struct {
	here  int64           // offset of the first point of the part's own artifact; -1 if none
	there map[clock]int64 // the first times in other artifacts, in nanoseconds
}

// A clock is what times must share to be compared.
type clock struct {
	name                         string
	zoned, noDate, noYear, known bool
}

func clockOf(s evidence.Stamp) clock {
	if !s.Known() {
		return clock{}
	}
	return clock{s.Clock, s.Zone != "", s.NoDate, s.NoYear, true}
}

// otherFile is how much later than an event a time in another file must be to be
// known to lie after it: their hosts' clocks may differ by that.
const otherFile = time.Minute

func trainingOf(in Input) *training {
	t := &training{in: in, of: map[int][]*evidence.Series{}, onsets: map[part]*onset{}, banners: map[string][]*evidence.Event{}}
	for _, s := range in.Series {
		if s.Key.Phase != "eval" && s.Count > 0 && progress(s) && !beforeTraining(s) {
			t.all = append(t.all, s)
			t.of[s.Key.Rank] = append(t.of[s.Key.Rank], s)
		}
	}
	for _, x := range in.Events {
		if x.Kind == evidence.LaunchMark && x.Attrs.Str("what") == "training-banner" || x.Kind == evidence.PhaseMark && x.Attrs.Str("phase") == "train" {
			t.banners[x.Span.Artifact] = append(t.banners[x.Span.Artifact], x)
		}
	}
	for _, b := range t.banners {
		slices.SortStableFunc(b, func(x, y *evidence.Event) int { return cmp.Compare(x.Span.Offset, y.Span.Offset) })
	}
	return t
}

// own returns the series that tell of the rank that p is about: its own, and those
// of its artifact that state no rank; all of them, if there are none or p states
// none.
func (t *training) own(p part) []*evidence.Series {
	if p.rank == evidence.None {
		return t.all
	}
	out := slices.Clone(t.of[p.rank])
	for _, s := range t.of[evidence.None] {
		if s.Key.Artifact == p.artifact {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return t.all
	}
	return out
}

// later reports whether p of another file is known to lie after e.
func later(p evidence.Point, e *evidence.Event) bool {
	at := p.When()
	return at.Known() && e.Stamp.Known() && clockOf(at) == clockOf(e.Stamp) && at.Time.After(e.Stamp.Time.Add(otherFile))
}

// stepsBefore counts the training points logged before e by its own rank (or by
// any, if its rank logs none), with the last one's span; in another file, those
// that are not known to come later. It is unknown when the attempt logs no
// training metric and shows no bar at all.
func (t *training) stepsBefore(e *evidence.Event) (int64, []evidence.Span, bool) {
	if len(t.all) == 0 {
		return t.bar(e)
	}
	n := int64(0)
	var last evidence.Span
	for _, s := range t.own(part{e.Span.Artifact, e.Who.Rank}) {
		here := s.Key.Artifact == e.Span.Artifact
		if !here && !later(s.Last, e) {
			if s.Count > n {
				n, last = s.Count, s.Span(s.Last)
			}
			continue
		}
		for p := range s.All() {
			if p.Ordinal+1 > n && (here && p.Offset < e.Span.Offset || !here && !later(p, e)) {
				n, last = p.Ordinal+1, s.Span(p)
			}
		}
	}
	return n, []evidence.Span{last}, true
}

// begun reports whether stepsBefore counts any point, and whether it knows.
func (t *training) begun(e *evidence.Event) (yes, known bool) {
	if len(t.all) == 0 {
		n, _, known := t.bar(e)
		return n > 0, known
	}
	k := part{e.Span.Artifact, e.Who.Rank}
	o := t.onsets[k]
	if o == nil {
		o = &onset{here: -1, there: map[clock]int64{}}
		t.onsets[k] = o
		for _, s := range t.own(k) {
			if s.Key.Artifact == e.Span.Artifact {
				if o.here < 0 || s.First.Offset < o.here {
					o.here = s.First.Offset
				}
				continue
			}
			at := s.First.When()
			c := clockOf(at)
			if old, ok := o.there[c]; !ok || at.Known() && at.Time.UnixNano() < old {
				o.there[c] = at.Time.UnixNano()
			}
		}
	}
	if o.here >= 0 && o.here < e.Span.Offset {
		return true, true
	}
	mine := clockOf(e.Stamp)
	for c, first := range o.there {
		if c != mine || !c.known || first <= e.Stamp.Time.Add(otherFile).UnixNano() {
			return true, true
		}
	}
	return false, true
}

// bar is stepsBefore by a bar or banner alone: the counter beside the failure, or
// the start of training right above it. A run that logs rarely may be past its
// first step then, so no condition may be decisive on this alone.
func (t *training) bar(e *evidence.Event) (int64, []evidence.Span, bool) {
	if e.Step >= 0 {
		return e.Step, []evidence.Span{e.Span}, true
	}
	above := t.banners[e.Span.Artifact]
	n, _ := slices.BinarySearchFunc(above, e.Span.Offset, func(x *evidence.Event, at int64) int { return cmp.Compare(x.Span.Offset, at) })
	if n > 0 {
		if x := above[n-1]; e.Span.Line-int64(3*len(e.Stack))-x.Span.Line <= bannerGap {
			return 0, []evidence.Span{x.Span}, true
		}
	}
	// A launch before it in the same file logged its very first step; this one
	// would have too.
	if p := t.in.Before; p != nil && p.Opening != nil && p.Opening.Artifact == e.Span.Artifact {
		return 0, []evidence.Span{*p.Opening}, true
	}
	return 0, nil, false
}
