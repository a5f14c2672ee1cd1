package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Facts that a snapshot can show (evidence.FactSpecs).
const (
	factGraphHeld  = "snapshot.graph_held"
	factEvalKept   = "snapshot.eval_outputs_kept"
	factStates     = "snapshot.optimizer_states"
	factSpike      = "snapshot.sequence_spike"
	factCheckpoint = "snapshot.checkpoint_copy"
	factKVCache    = "snapshot.kv_cache"
	factOutside    = "snapshot.outside_allocator"
)

// causes says what the trace proves of known causes. What it neither proves nor
// excludes is left out: unknown.
func (w *walk) causes(ctx context.Context, m *moment) ([]incident.MemoryCause, error) {
	out := []incident.MemoryCause{}
	if w.bare() {
		return out, nil
	}
	peak := m
	if len(w.refused) == 0 || w.decisive() == nil {
		peak = &moment{event: w.peak.event, what: "at the peak"}
		if err := w.at(ctx, []int{peak.event}, func(_ int, alive *table) { alive.all(func(x *element) { peak.alive = append(peak.alive, *x) }) }); err != nil {
			return nil, err
		}
		peak.sort()
	}
	graph, eval := w.graphHeld(m), w.evalKept(m, peak)
	if graph != nil && eval != nil && eval.Fact == graph.Fact && !graph.Value {
		graph = nil // steps let go of their graphs, evaluation does not
	}
	for _, c := range []*incident.MemoryCause{graph, eval, w.states(m), w.spike(m), w.checkpoint(peak), w.keyValueCache(peak), w.outsideCause()} {
		if c == nil || w.m.Cut && !c.Value {
			continue // what the rest of a damaged file would show cannot be ruled out
		}
		if c.Spans == nil {
			c.Spans = []evidence.Span{}
		}
		out = append(out, *c)
	}
	return out, nil
}

// swing is the median of what the complete steps need beyond their lowest points.
func (w *walk) swing() int64 {
	var all []int64
	for k := range w.floors {
		all = append(all, w.tops[k].value-w.floors[k].value)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (w *walk) spans(events ...int32) []evidence.Span {
	out := []evidence.Span{}
	for _, e := range events {
		if sp := w.span(int(e)); sp != nil {
			out = append(out, *sp)
		}
	}
	return out
}

// graphHeld: what forward code allocated in three or more past steps is alive, at
// three or more places in each (a graph holds what several operators saved; a list of
// losses only what one made), and piles up.
func (w *walk) graphHeld(m *moment) *incident.MemoryCause {
	n := w.steps.complete()
	if n < fewest || w.steps.known < byPasses {
		return nil
	}
	now, swing := w.steps.of(m.event), w.swing()
	type held struct {
		bytes  int64
		places int
	}
	by := map[int]*held{}
	var bytes, old int64
	var oldest, newest *element
	w.remainders(m, func(r *remainder) {
		f := w.st.of(r.stack)
		if f.phase != forward || f.eval {
			return
		}
		for _, b := range r.by {
			if b.step <= now-2 {
				old += b.bytes
			}
		}
		if j := w.judge(r, now); !j.suspect {
			return
		}
		for _, b := range r.by {
			if b.step > now-2 {
				continue
			}
			h := by[b.step]
			if h == nil {
				h = &held{}
				by[b.step] = h
			}
			h.bytes += b.bytes
			h.places++
			bytes += b.bytes
		}
		if oldest == nil || r.oldest.event < oldest.event {
			oldest = &r.oldest
		}
		if newest == nil || r.newest.event > newest.event {
			newest = &r.newest
		}
	})
	steps, first, last := 0, now, -1
	for k, h := range by {
		if h.places >= 3 && 20*h.bytes >= swing {
			steps++
			first, last = min(first, k), max(last, k)
		}
	}
	switch {
	case steps >= 3:
		return &incident.MemoryCause{Fact: factGraphHeld, Value: true, Bytes: &bytes, Spans: w.spans(oldest.event, newest.event),
			Why: fmt.Sprintf("activations of %d past steps (%s) are alive %s: %s, about %s a step, allocated by forward code at several places in each", steps, w.steps.span(first, last), m.what, evidence.Bytes(bytes), evidence.Bytes(bytes/int64(steps)))}
	case now >= 3 && w.phases(forward) && swing > 0 && 100*old <= swing:
		return &incident.MemoryCause{Fact: factGraphHeld, Value: false, Bytes: &old, Spans: w.spans(int32(m.event)),
			Why: fmt.Sprintf("of the steps up to %s, %s that forward code allocated are alive %s; a step needs %s", w.steps.name(now-2), evidence.Bytes(old), m.what, evidence.Bytes(swing))}
	}
	return nil
}

// phases reports whether anything of a phase was allocated in the trace.
func (w *walk) phases(p phase) bool {
	for s := range w.byStack {
		if w.byStack[s].allocs > 0 && w.st.facts[s].phase == p {
			return true
		}
	}
	return false
}

// evalKept: of what a place in evaluation code allocated, four or more are alive
// and none was freed, while other things came and went between them.
func (w *walk) evalKept(moments ...*moment) *incident.MemoryCause {
	for _, m := range moments {
		var bytes, active int64
		places, batches := 0, 0
		var oldest, newest *element
		w.remainders(m, func(r *remainder) {
			f := w.st.of(r.stack)
			if !f.eval || f.phase == load || r.blocks < 4 || int(r.stack) >= len(w.byStack) {
				return
			}
			made := 0
			if u := w.byStack[r.stack]; m.event >= w.t.Len()-1 || w.decisive() != nil {
				made = u.allocs
			} else {
				made = w.allocsBy(r.stack, m.event)
			}
			if made != r.blocks || int(r.newest.event-r.oldest.event) < 4*r.blocks {
				return
			}
			places++
			bytes += r.bytes
			batches = max(batches, r.blocks)
			if oldest == nil || r.oldest.event < oldest.event {
				oldest = &r.oldest
			}
			if newest == nil || r.newest.event > newest.event {
				newest = &r.newest
			}
		})
		for i := range m.alive {
			active += m.alive[i].size
		}
		if places == 0 || bytes < 1<<20 || 100*bytes < active {
			continue
		}
		c := &incident.MemoryCause{Fact: factEvalKept, Value: true, Bytes: &bytes, Spans: w.spans(oldest.event, newest.event),
			Why: fmt.Sprintf("what evaluation code allocated at %s piles up, %d times without one of them freed: %s %s", count(places, "place"), batches, evidence.Bytes(bytes), m.what)}
		if places > 8 {
			c.Fact = factGraphHeld
			c.Why = fmt.Sprintf("activations of up to %d evaluation batches are alive %s: %s, allocated at %d places and none of them freed, as where evaluation runs without torch.no_grad", batches, m.what, evidence.Bytes(bytes), places)
		}
		return c
	}
	return nil
}

// allocsBy counts what a stack allocated up to an event.
func (w *walk) allocsBy(stack uint32, event int) int {
	n := 0
	for i, e := range w.t.All() {
		if i > event {
			break
		}
		if e.Action == evidence.MemAlloc && e.Stack == stack {
			n++
		}
	}
	return n
}

// states: the request that was refused is the optimizer's, or the last large thing
// before it was, and no optimizer step before had left anything.
func (w *walk) states(m *moment) *incident.MemoryCause {
	r := w.decisive()
	if r == nil {
		return nil
	}
	inOptimizer := w.st.of(r.stack).phase == optimizer
	if !w.steps.program() && (!inOptimizer || len(w.seen.optimizers) > 0) {
		return nil // what is of this step and what of an earlier one cannot be told
	}
	now := w.steps.of(r.event)
	var old, recent, active int64
	var oldest *element
	for i := range m.alive {
		x := &m.alive[i]
		active += x.size
		if w.st.of(x.stack).phase != optimizer {
			continue
		}
		if x.event < 0 || w.steps.program() && w.steps.of(int(x.event)) < now-1 {
			old += x.size
			continue
		}
		recent += x.size
		if oldest == nil || x.event < oldest.event {
			oldest = x
		}
	}
	before := false // an optimizer step before this one
	for s := range w.byStack {
		if !w.steps.program() {
			break
		}
		if u := &w.byStack[s]; u.allocs > 0 && w.st.facts[s].phase == optimizer && w.steps.of(int(u.first)) < now-1 {
			before = true
		}
	}
	switch {
	case old > 0 || before:
		return &incident.MemoryCause{Fact: factStates, Value: false, Bytes: &old, Spans: w.spans(int32(r.event)),
			Why: "an earlier step of the optimizer had made its states when the request was refused"}
	case w.truncated() != "" && !w.m.Has.BlockFrames:
		return nil // what was made before the trace is not known
	case inOptimizer && recent > 0:
		return &incident.MemoryCause{Fact: factStates, Value: true, Bytes: &recent, Spans: w.spans(oldest.event, int32(r.event)),
			Why: fmt.Sprintf("the refused request is the optimizer's, which had just allocated %s, its first in the trace", evidence.Bytes(recent))}
	case inOptimizer:
		return &incident.MemoryCause{Fact: factStates, Value: true, Bytes: &r.request, Spans: w.spans(int32(r.event)), Why: "the refused request is the optimizer's first in the trace"}
	case recent > 0 && 5*recent >= active:
		return &incident.MemoryCause{Fact: factStates, Value: true, Bytes: &recent, Spans: w.spans(oldest.event, int32(r.event)),
			Why: fmt.Sprintf("the optimizer's first step had just allocated %s of the %s that were active", evidence.Bytes(recent), evidence.Bytes(active))}
	}
	return nil
}

// spike: in the step that failed the same places asked for far more than in any
// step before.
func (w *walk) spike(m *moment) *incident.MemoryCause {
	r := w.decisive()
	if r == nil || w.steps.known < byPasses || w.steps.complete() < fewest {
		return nil
	}
	now := w.steps.of(r.event)
	seen := map[uint32]bool{}
	var here, earlier, known, all int64
	var big *element
	for i := range m.alive {
		x := &m.alive[i]
		if x.event < 0 || w.steps.of(int(x.event)) != now || int(x.stack) >= len(w.byStack) {
			continue
		}
		all += x.size
		u := &w.byStack[x.stack]
		if u.earlier == 0 || x.stack == 0 {
			continue
		}
		known += x.size
		if !seen[x.stack] {
			seen[x.stack] = true
			here += u.here
			earlier += u.earlier
		}
		if big == nil || x.size > big.size {
			big = x
		}
	}
	switch {
	case earlier == 0 || all == 0:
		return nil
	case 2*known >= all && 10*here >= 13*earlier:
		u := &w.byStack[big.stack]
		return &incident.MemoryCause{Fact: factSpike, Value: true, Bytes: &all, Spans: w.spans(big.event, int32(r.event)),
			Why: fmt.Sprintf("in %s the same places asked for %.1f times what they did in any step before: %s for %s, before at most %s", w.steps.name(now), float64(here)/float64(earlier), w.st.name(big.stack), evidence.Bytes(u.here), evidence.Bytes(u.earlier))}
	case 5*known >= 4*all && 100*here <= 105*earlier:
		return &incident.MemoryCause{Fact: factSpike, Value: false, Bytes: &all, Spans: w.spans(int32(r.event)),
			Why: fmt.Sprintf("in %s the same places asked for no more than in the steps before, within 5 %%", w.steps.name(now))}
	}
	return nil
}

// checkpoint: what was read from a checkpoint lies beside tensors of the same sizes
// that were not, or a full state was being put together.
func (w *walk) checkpoint(m *moment) *incident.MemoryCause {
	var loaded, saved, active, untold int64
	var bigLoad, bigSave *element
	sizes := map[int64]int{}
	for i := range m.alive {
		x := &m.alive[i]
		active += x.size
		switch w.st.of(x.stack).phase {
		case load:
			loaded += x.size
			if bigLoad == nil || x.size > bigLoad.size {
				bigLoad = x
			}
		case save:
			saved += x.size
			if bigSave == nil || x.size > bigSave.size {
				bigSave = x
			}
		default:
			sizes[x.size]++
			if len(w.st.frames(x.stack)) == 0 {
				untold += x.size
			}
		}
	}
	var twice int64
	for i := range m.alive {
		if x := &m.alive[i]; w.st.of(x.stack).phase == load && sizes[x.size] > 0 {
			sizes[x.size]--
			twice += x.size
		}
	}
	switch {
	case active == 0:
		return nil
	case 20*saved >= active:
		return &incident.MemoryCause{Fact: factCheckpoint, Value: true, Bytes: &saved, Spans: w.spans(bigSave.event),
			Why: fmt.Sprintf("%s of the %s active %s were allocated while a checkpoint or a full state was put together (%s)", evidence.Bytes(saved), evidence.Bytes(active), m.what, w.st.name(bigSave.stack))}
	case 20*loaded >= active && 10*twice >= 8*loaded:
		return &incident.MemoryCause{Fact: factCheckpoint, Value: true, Bytes: &loaded, Spans: w.spans(bigLoad.event),
			Why: fmt.Sprintf("%s that were read from a checkpoint (%s) lie beside tensors of the same sizes %s", evidence.Bytes(loaded), w.st.name(bigLoad.stack), m.what)}
	case loaded+saved == 0 && 20*untold <= active:
		return &incident.MemoryCause{Fact: factCheckpoint, Value: false, Bytes: &loaded, Why: "nothing that is active " + m.what + " was allocated while a checkpoint was read or written"}
	}
	return nil
}

// keyValueCache: more than a third of what is active, and more than anything else, was allocated by
// code that by its name makes a KV cache.
func (w *walk) keyValueCache(m *moment) *incident.MemoryCause {
	var active, cache int64
	rest := map[uint32]int64{}
	var big *element
	for i := range m.alive {
		x := &m.alive[i]
		active += x.size
		if !w.st.cache(x.stack) {
			rest[w.st.of(x.stack).label] += x.size
			continue
		}
		cache += x.size
		if big == nil || x.size > big.size {
			big = x
		}
	}
	most := int64(0)
	for _, n := range rest {
		most = max(most, n)
	}
	if big == nil || 3*cache < active || cache <= most {
		return nil
	}
	return &incident.MemoryCause{Fact: factKVCache, Value: true, Bytes: &cache, Spans: w.spans(big.event),
		Why: fmt.Sprintf("%s of the %s active %s are a KV cache (%s)", evidence.Bytes(cache), evidence.Bytes(active), m.what, w.st.name(big.stack))}
}

func (w *walk) outsideCause() *incident.MemoryCause {
	o := w.outside()
	if o == nil || o.Bytes == 0 {
		return nil
	}
	return &incident.MemoryCause{Fact: factOutside, Value: 2*o.Bytes > w.o.Capacity, Bytes: &o.Bytes, Why: o.Basis, Spans: o.Spans}
}
