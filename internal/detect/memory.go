package detect

import (
	"math"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// memoryOverTime judges the logged memory figures of the attempt.
func memoryOverTime(in Input, f evidence.Known) {
	spans := func(s *evidence.Series) []evidence.Span {
		return []evidence.Span{s.Span(s.First), s.Span(s.Last)}
	}
	alloc := append(in.named("memory_allocated", "train"), in.named("memory_used", "train")...)
	for _, s := range alloc {
		if s.Count-s.Bad < 3 {
			continue
		}
		t, up := grows(s)
		if _, ok := f["memory.grows"]; !ok || up {
			f.Set("memory.grows", evidence.BoolOf(up), spans(s)...)
		}
		if up {
			f.Set("memory.growth_per_step", evidence.FloatOf(t.Slope), spans(s)...)
		}
		if _, ok := f["memory.allocated_flat"]; !ok {
			f.Set("memory.allocated_flat", evidence.BoolOf(flat(s)), spans(s)...)
		}
	}
	ofDevice(in, f)
	beforeFault(in, f)
	for _, s := range in.named("memory_reserved", "train") {
		if s.Count-s.Bad < 3 {
			continue
		}
		_, up := grows(s)
		f.Set("memory.reserved_grows", evidence.BoolOf(up), spans(s)...)
		if _, ok := f["memory.grows"]; !ok && !up {
			// Reserved memory that stays level bounds what is allocated in it.
			f.Set("memory.grows", evidence.BoolOf(false), spans(s)...)
		}
		break
	}
	for _, name := range []string{"memory_allocated", "memory_used", "memory_reserved"} {
		for _, s := range in.named(name, "eval") {
			if _, done := f["memory.eval_grows"]; done || s.Count < 3 {
				continue
			}
			t, up := grows(s)
			f.Set("memory.eval_grows", evidence.BoolOf(up), spans(s)...)
			if up {
				f.Set("memory.eval_growth_per_batch", evidence.FloatOf(t.Slope), spans(s)...)
			}
		}
	}
	if free, res := in.longest("memory_free", "train"), in.longest("memory_reserved", "train"); free != nil && res != nil && free.Count >= 3 && res.Count >= 3 {
		lost := free.First.Value - free.Last.Value
		gained := res.Last.Value - res.First.Value
		f.Set("memory.outside_grows", evidence.BoolOf(lost > 1<<30 && lost > 2*math.Max(gained, 0)), append(spans(free), spans(res)...)...)
	}
	peak, at := 0.0, []evidence.Span(nil)
	for _, s := range in.Series {
		if s.Key.Name == "memory_fraction" && s.HasFinite && s.Max.Value > peak {
			peak, at = s.Max.Value, []evidence.Span{s.Span(s.Max)}
		}
	}
	capacity := float64(f["oom.capacity"].Value.Mid())
	if capacity == 0 {
		in.each(evidence.MemReport, func(e *evidence.Event) {
			if v, ok := e.Attrs["capacity"]; ok {
				capacity = float64(v.Mid())
			}
		})
	}
	if capacity > 0 {
		for _, name := range []string{"memory_reserved", "memory_used", "memory_allocated", "device_memory"} {
			for _, s := range in.named(name, "") {
				if s.HasFinite && s.Max.Value/capacity > peak && s.Max.Value/capacity <= 1.05 {
					peak, at = s.Max.Value/capacity, []evidence.Span{s.Span(s.Max)}
				}
			}
		}
	}
	if peak > 0 {
		f.Set("memory.peak_fraction", evidence.FloatOf(peak), at...)
	}
	if in.Memory != nil {
		if ph := f["oom.phase"].Value.S; ph == "evaluation" || ph == "generation" {
			for _, s := range append(alloc, in.named("memory_reserved", "train")...) {
				if s.Count >= 3 {
					f.Set("memory.steady_before_eval", evidence.BoolOf(flat(s)), spans(s)...)
					break
				}
			}
		}
	}
	retries := int64(0)
	var rs []evidence.Span
	in.each(evidence.MemPressure, func(e *evidence.Event) {
		retries += max(e.Attrs["count"].I, 1)
		rs = append(rs, e.Span)
	})
	f.Set("memory.retries", evidence.IntOf(retries), clip(rs)...)
	afterInit(in, f)
}

// afterInit takes the first figure of allocated memory that was printed before any
// training step; of the allocator's own counters only the failing process's.
func afterInit(in Input, f evidence.Known) {
	train := trainingOf(in)
	take := func(e *evidence.Event) {
		v, ok := e.Attrs["allocated"]
		if _, done := f["memory.after_init"]; ok && !done {
			if yes, known := train.begun(e); known && !yes && (in.Memory == nil || e.Span.Artifact != in.Memory.Span.Artifact || e.Span.Offset < in.Memory.Span.Offset) {
				f.Set("memory.after_init", v, e.Span)
			}
		}
	}
	in.each(evidence.MemReport, take)
	for _, e := range ownCounters(in) {
		take(e)
	}
}

// beforeFault takes the allocated memory that the failing rank logged last before the
// failure, in its own file. Two printed decimals leave half a per cent at most.
func beforeFault(in Input, f evidence.Known) {
	if in.Memory == nil {
		return
	}
	for _, s := range in.named("memory_allocated", "train") {
		if s.Key.Artifact != in.Memory.Span.Artifact || s.Key.Rank != in.Memory.Who.Rank {
			continue
		}
		var last evidence.Point
		for p := range s.All() {
			if p.Offset < in.Memory.Span.Offset && finite(p.Value) {
				last = p
			}
		}
		if last.Value > 0 {
			f.Set("memory.before_fault", evidence.SizeOf(int64(last.Value*0.995), int64(last.Value*1.005)), s.Span(last))
		}
	}
}

func clip(s []evidence.Span) []evidence.Span {
	if len(s) > 3 {
		return s[:3]
	}
	return s
}

// batch compares the failing batch's longest sequence with the usual one.
func batch(in Input, f evidence.Known) {
	e := in.Memory
	if e == nil {
		e = in.Lead
	}
	if e == nil {
		return
	}
	var lengths []float64
	var last *evidence.Event
	others := map[int]int64{} // rank -> length of its last batch so far
	in.each(evidence.BatchShape, func(x *evidence.Event) {
		if x.Span.Artifact != e.Span.Artifact || x.Span.Offset > e.Span.Offset || x.Attrs["length"].I == 0 {
			return
		}
		if x.Who.Rank != e.Who.Rank && x.Who.Rank != evidence.None && e.Who.Rank != evidence.None {
			if n, ok := others[x.Who.Rank]; ok { // its last one may be of the failing step
				lengths = append(lengths, float64(n))
			}
			others[x.Who.Rank] = x.Attrs["length"].I
			return
		}
		if last != nil {
			lengths = append(lengths, float64(last.Attrs["length"].I))
		}
		last = x
	})
	if last != nil {
		f.Set("batch.length", last.Attrs["length"], last.Span)
		if n, ok := last.Attrs["count"]; ok {
			f.Set("batch.count", n, last.Span)
		}
	} else {
		for _, s := range in.named("seq_len", "") {
			pts := s.Points()
			var before []evidence.Point
			for _, p := range pts {
				if s.Key.Artifact != e.Span.Artifact || p.Offset < e.Span.Offset {
					before = append(before, p)
				}
			}
			if len(before) < 2 {
				continue
			}
			for _, p := range before[:len(before)-1] {
				lengths = append(lengths, p.Value)
			}
			p := before[len(before)-1]
			f.Set("batch.length", evidence.IntOf(int64(p.Value)), s.Span(p))
			break
		}
	}
	if len(lengths) > 0 {
		typical := median(lengths)
		longest := 0.0
		for _, v := range lengths {
			longest = math.Max(longest, v)
		}
		f.Set("batch.longest_before", evidence.IntOf(int64(longest)), f["batch.length"].Spans...)
		f.Set("batch.typical_length", evidence.IntOf(int64(typical)), f["batch.length"].Spans...)
		if typical > 0 {
			f.Set("batch.length_ratio", evidence.FloatOf(float64(f["batch.length"].Value.I)/typical), f["batch.length"].Spans...)
		}
	}
	byRank := map[int]float64{}
	var spans []evidence.Span
	in.each(evidence.BatchShape, func(x *evidence.Event) {
		if x.Who.Rank != evidence.None && x.Attrs["length"].I > 0 {
			byRank[x.Who.Rank] = float64(x.Attrs["length"].I)
			spans = append(spans, x.Span)
		}
	})
	if len(byRank) > 1 {
		lo, hi := math.Inf(1), 0.0
		for _, v := range byRank {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
		f.Set("batch.rank_imbalance", evidence.FloatOf(hi/lo), clip(spans)...)
	}
}

// startingUp reports whether a series that inquest sampled itself, more often than trackers do, is
// so short that its rise can be that of a program that loads.
func startingUp(s *evidence.Series) bool {
	from, to := s.First.When(), s.Last.When()
	return strings.HasPrefix(s.Key.Source, trialSource) && (!from.Known() || !to.Known() || to.Time.Sub(from.Time) < 5*time.Minute)
}

// ofDevice judges the memory in use on whole devices, which trackers sample beside the run, some
// ten seconds apart. A caching allocator fills the device in the first steps and keeps it,
// so the first quarter is left out.
func ofDevice(in Input, f evidence.Known) {
	for _, s := range in.named("device_memory", "") {
		points := s.Points()
		points = points[len(points)/4:]
		if len(points) < 8 || startingUp(s) {
			continue
		}
		t, ok := TrendOf(points)
		if !ok {
			continue
		}
		up := t.steady() && t.Rise >= .1*s.Max.Value
		if _, done := f["memory.device_grows"]; !done || up {
			f.Set("memory.device_grows", evidence.BoolOf(up), s.Span(points[0]), s.Span(s.Last))
		}
	}
}
