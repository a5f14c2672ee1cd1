package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A moment is what was alive after an event.
type moment struct {
	event int
	what  string // "at the end of the trace", "when the request was refused"
	alive []element
}

// last is the moment that growth is judged at: the last refused request that
// nothing was allocated after, because what unwinds then is freed; else the end.
func (w *walk) last(ctx context.Context) (*moment, error) {
	m := &moment{event: w.t.Len() - 1, what: "at the end of the trace"}
	if n := len(w.refused); n > 0 && !w.refused[n-1].survived() {
		m.event, m.what = w.refused[n-1].event, "when the request was refused"
		err := w.at(ctx, []int{m.event}, func(_ int, alive *table) { alive.all(func(x *element) { m.alive = append(m.alive, *x) }) })
		m.sort()
		return m, err
	}
	w.atEnd(func(x *element) { m.alive = append(m.alive, *x) })
	m.sort()
	return m, nil
}

// sort orders what is alive by stack, then by age.
func (m *moment) sort() {
	slices.SortFunc(m.alive, func(a, b element) int {
		return cmp.Or(cmp.Compare(a.stack, b.stack), cmp.Compare(a.event, b.event), cmp.Compare(a.addr, b.addr))
	})
}

func (r *refusal) survived() bool { return r.after > 0 }

// A remainder is what one stack left behind at a moment, by the step in which it
// was allocated.
type remainder struct {
	stack  uint32
	bytes  int64
	blocks int
	oldest element
	newest element
	by     []stepBytes // ascending; not before the trace
}

type stepBytes struct {
	step  int
	bytes int64
}

// remainders goes through what is alive at a moment by stack. What is older than
// the trace is left out.
func (w *walk) remainders(m *moment, fn func(*remainder)) {
	for i := 0; i < len(m.alive); {
		r := &remainder{stack: m.alive[i].stack}
		for ; i < len(m.alive) && m.alive[i].stack == r.stack; i++ {
			x := m.alive[i]
			if x.event < 0 {
				continue
			}
			if r.blocks == 0 {
				r.oldest = x
			}
			r.newest = x
			r.bytes += x.size
			r.blocks++
			k := w.steps.of(int(x.event))
			if n := len(r.by); n == 0 || r.by[n-1].step != k {
				r.by = append(r.by, stepBytes{step: k})
			}
			r.by[len(r.by)-1].bytes += x.size
		}
		if r.blocks > 0 {
			fn(r)
		}
	}
}

// A judgement is what is said of a remainder.
type judgement struct {
	suspect bool
	steps   int // past ones in which it left something
	rate    float64
	steady  bool
	why     string
}

// judge decides whether a remainder piles up. now is the step of the moment. What
// was allocated in it or in the step before may be in use; of older steps
// something must be left of at least three, up to now, and as much of late
// as of early ones.
//
//   - What one step left and no later one is no growth: an optimizer's states.
//   - What stopped is no growth: warm-up, or a cache that is full.
//   - What was freed of early steps is a window of the newest: a queue, a mean.
func (w *walk) judge(r *remainder, now int) judgement {
	var left []stepBytes
	var bytes int64
	for _, b := range r.by {
		if b.step <= now-2 {
			left = append(left, b)
			bytes += b.bytes
		}
	}
	j := judgement{steps: len(left)}
	if len(left) == 0 {
		j.why = "of the last two steps only: it may be in use"
		return j
	}
	first, last := left[0].step, left[len(left)-1].step
	in := w.steps.span(first, last)
	switch {
	case r.stack == 0 || len(w.st.frames(r.stack)) == 0:
		j.why = "no stack was recorded, so that what piles up cannot be told from what is only kept"
		return j
	case w.steps.of(int(w.byStack[r.stack].first)) < first-1:
		j.why = fmt.Sprintf("what it allocated before %s was freed: it keeps the newest, or it began to pile up there", w.steps.name(first))
		return j
	case len(left) < 3:
		j.why = fmt.Sprintf("left in %s and not again: made once, as states and caches are", in)
		if w.st.of(r.stack).phase == optimizer {
			j.why = fmt.Sprintf("allocated by the optimizer in %s and not again: its states", in)
		}
		return j
	}
	var gaps []int
	for i := 1; i < len(left); i++ {
		gaps = append(gaps, left[i].step-left[i-1].step)
	}
	slices.Sort(gaps)
	usual := gaps[len(gaps)/2]
	if now-2-last > 2*usual {
		j.why = fmt.Sprintf("left in %s and not since: warm-up, or a cache that is full", in)
		return j
	}
	var early, late int64
	for _, b := range left {
		if 2*b.step < first+last+1 {
			early += b.bytes
		} else {
			late += b.bytes
		}
	}
	if 3*late < early {
		j.why = fmt.Sprintf("left ever less in %s: it settles", in)
		return j
	}
	j.suspect = true
	j.rate = float64(bytes) / float64(last-first+1)
	j.steady = late <= 3*early
	j.why = fmt.Sprintf("%d of the %d steps from %s left something behind, and none of it was freed", len(left), last-first+1, in)
	if !j.steady {
		j.why += "; ever more of it"
	}
	return j
}

// growth says what did not come back.
func (w *walk) growth(ctx context.Context, m *moment) (*incident.MemoryGrowth, error) {
	if w.bare() {
		return nil, nil
	}
	g := &incident.MemoryGrowth{Suspects: []incident.MemoryGrown{}, Frames: []incident.MemoryUse{}, Others: []incident.MemoryGrown{}}
	if w.o.From != nil || w.o.To != nil {
		return g, w.between(ctx, g)
	}
	if w.steps.complete() >= fewest {
		w.floorGrowth(g)
		w.afterwards(m, g)
	} else {
		g.Basis = "from the beginning of the trace to its end"
		g.From, g.To, g.Bytes = -1, w.t.Len()-1, w.activeAtEnd()-w.base
		g.Says = moreOrLess(g.Bytes, "at the end of the trace", "at its beginning") + "; whether that goes on from step to step cannot be told: it shows no three steps"
	}
	w.piles(m, g)
	return g, nil
}

// floorGrowth compares the lowest points of the steps: what is alive there is
// what a step does not give back.
func (w *walk) floorGrowth(g *incident.MemoryGrowth) {
	n := w.steps.complete()
	first := 0
	skipped := ""
	if n >= 4 {
		first, skipped = 1, " after "+w.steps.name(0)+", which may be warm-up"
	}
	from, to := w.floors[first], w.floors[n-1]
	g.Basis = fmt.Sprintf("between the lowest points of %d steps%s; steps are %s", n-first, skipped, w.steps.basis)
	if !w.steps.program() {
		g.Basis = fmt.Sprintf("between the lowest points of %d waves of active memory%s: no steps of the program can be told", n-first, skipped)
	}
	g.From, g.To, g.Bytes = from.event, to.event, to.value-from.value
	swing := int64(0)
	for k := first; k < n; k++ {
		swing = max(swing, w.tops[k].value-w.floors[k].value)
	}
	mid := w.floors[first+(n-first)/2].value
	early, late := mid-from.value, to.value-mid
	last := to.value - w.floors[n-1-(n-first)/4].value // in the last quarter
	top, drop := from.value, int64(0)
	for k := first; k < n; k++ {
		top = max(top, w.floors[k].value)
		drop = max(drop, top-w.floors[k].value)
	}
	in := w.steps.span(first, n-1)
	small := max(swing/200, 1<<20)
	switch grown := g.Bytes; {
	case top-from.value > small && drop > small && 2*drop >= max(grown, -grown):
		g.Says = fmt.Sprintf("memory rises and falls: the lowest points of %s go up by as much as %s and down again by %s, and end at %s", in, evidence.Bytes(top-from.value), evidence.Bytes(drop), signed(grown))
	case grown == 0:
		g.Says = fmt.Sprintf("nothing grows: the lowest points of %s are the same", in)
	case grown <= small && grown >= -small:
		g.Says = fmt.Sprintf("nothing grows: the lowest points of %s differ by %s", in, evidence.Bytes(max(grown, -grown)))
	case grown < 0:
		g.Says = fmt.Sprintf("memory shrinks over %s, by %s", in, evidence.Bytes(-grown))
	case n-first >= 3 && 4*early >= grown && 4*late >= grown && (n-first < 8 || 12*last >= grown):
		rate := float64(grown) / float64(n-1-first)
		g.PerStep = &rate
		g.Says = fmt.Sprintf("%s more stay behind over %s, about %s a step", evidence.Bytes(grown), in, evidence.Bytes(int64(rate)))
	case 4*late < grown || 4*early >= grown:
		g.Says = fmt.Sprintf("%s more stay behind over %s, most of them early: it settles, as warm-up does", evidence.Bytes(grown), in)
	default:
		g.Says = fmt.Sprintf("%s more stay behind over %s, most of them late", evidence.Bytes(grown), in)
	}
}

// afterwards adds what the steps do not show: that the part which failed had more active
// than any of them.
func (w *walk) afterwards(m *moment, g *incident.MemoryGrowth) {
	if w.decisive() == nil || !w.steps.program() || w.steps.of(m.event) < w.steps.complete() {
		return
	}
	var top, active int64
	for k := range w.tops {
		top = max(top, w.tops[k].value)
	}
	for i := range m.alive {
		active += m.alive[i].size
	}
	if 10*active > 11*top {
		g.Says += fmt.Sprintf("; in %s %s are active, in no step before more than %s", w.steps.name(w.steps.complete()), evidence.Bytes(active), evidence.Bytes(top))
	}
}

// signed is a change for people.
func signed(n int64) string {
	if n < 0 {
		return evidence.Bytes(-n) + " less"
	}
	return evidence.Bytes(n) + " more"
}

// piles lists the stacks whose allocations pile up, and what else stayed.
func (w *walk) piles(m *moment, g *incident.MemoryGrowth) {
	now := w.steps.of(m.event)
	byLabel := map[uint32]*share{}
	var suspects, others []incident.MemoryGrown
	var stacks []uint32
	w.remainders(m, func(r *remainder) {
		x := incident.MemoryGrown{First: int(r.oldest.event), Last: int(r.newest.event), Steps: len(r.by),
			MemoryUse: incident.MemoryUse{Name: w.st.name(r.stack), Bytes: r.bytes, Blocks: r.blocks, Span: w.where(&r.oldest)}}
		if r.stack != 0 {
			n := int(r.stack)
			x.Stack = &n // of the file; of the report once it is listed
		}
		if w.steps.complete() < fewest {
			if x.Why = "allocated in the trace and alive " + m.what; w.st.of(r.stack).phase == optimizer {
				x.Why = "allocated by the optimizer and alive " + m.what + ": its states, if this was its first step"
			}
			others = append(others, x)
			return
		}
		j := w.judge(r, now)
		x.Why, x.Steps = j.why, j.steps
		switch {
		case j.suspect:
		case j.steps > 0:
			others = append(others, x)
			return
		default:
			return
		}
		if j.steady {
			x.PerStep = &j.rate
		}
		suspects, stacks = append(suspects, x), append(stacks, r.stack)
		s := byLabel[w.st.of(r.stack).label]
		if s == nil {
			s = &share{big: r.oldest}
			byLabel[w.st.of(r.stack).label] = s
		}
		s.bytes += r.bytes
		s.blocks += r.blocks
	})
	g.Suspects, g.Others = w.listed(suspects), w.listed(others)
	g.Frames = uses(byLabel, w.o.Top, func(l uint32, s *share) incident.MemoryUse { return w.named(w.st.labels[l], s) })
	g.Common = w.common(stacks)
}

func moreOrLess(n int64, at, than string) string {
	switch {
	case n < 0:
		return fmt.Sprintf("%s less are active %s than %s", evidence.Bytes(-n), at, than)
	case n > 0:
		return fmt.Sprintf("%s more are active %s than %s", evidence.Bytes(n), at, than)
	}
	return "as much is active " + at + " as " + than
}

// listed keeps the largest and lists their stacks in the report.
func (w *walk) listed(all []incident.MemoryGrown) []incident.MemoryGrown {
	slices.SortStableFunc(all, func(a, b incident.MemoryGrown) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.First, b.First))
	})
	out := append([]incident.MemoryGrown{}, all[:min(len(all), w.o.Top)]...)
	for i := range out {
		if out[i].Stack != nil {
			out[i].Stack = w.st.index(uint32(*out[i].Stack))
		}
	}
	return out
}

// common is the innermost Python frame that stands in all stacks: of several
// operators of one model the call that ran it. "" for one stack alone.
func (w *walk) common(stacks []uint32) string {
	if len(stacks) < 2 {
		return ""
	}
	counts := map[string]int{}
	var order []string
	for n, s := range stacks {
		seen := map[string]bool{}
		for _, f := range w.st.frames(s) {
			if int(f) >= len(w.st.origins) || w.st.origins[f] < library {
				continue
			}
			p := place(&w.m.Frames[f])
			if seen[p] {
				continue
			}
			seen[p] = true
			if n == 0 {
				order = append(order, p)
			}
			counts[p]++
		}
	}
	for _, p := range order {
		if counts[p] == len(stacks) && !strings.HasPrefix(p, "_call_impl (") && !strings.HasPrefix(p, "_wrapped_call_impl (") {
			return p
		}
	}
	return ""
}

// between is what grew from one event to another that were asked for.
func (w *walk) between(ctx context.Context, g *incident.MemoryGrowth) error {
	from, to := -1, w.t.Len()-1
	if w.o.From != nil {
		from = min(max(*w.o.From, -1), to)
	}
	if w.o.To != nil {
		to = min(max(*w.o.To, from), to)
	}
	g.Basis, g.From, g.To = "between the events that were asked for", from, to
	if w.o.From != nil && *w.o.From > from || w.o.To != nil && *w.o.To > to {
		g.Basis += "; the history ends at event " + evidence.Count(w.t.Len()-1)
	}
	diff := map[uint32]*share{}
	err := w.at(ctx, []int{from, to}, func(n int, alive *table) {
		alive.all(func(x *element) {
			s := diff[x.stack]
			if s == nil {
				s = &share{}
				diff[x.stack] = s
			}
			if n == 0 {
				s.bytes -= x.size
				s.blocks--
				g.Bytes -= x.size
				return
			}
			s.bytes += x.size
			s.blocks++
			g.Bytes += x.size
			if x.size > s.big.size || x.size == s.big.size && x.event < s.big.event {
				s.big = *x
			}
		})
	})
	for stack, s := range diff {
		if s.bytes <= 0 {
			delete(diff, stack)
		}
	}
	for _, u := range uses(diff, w.o.Top, w.stackUse) {
		x := incident.MemoryGrown{MemoryUse: u, First: from, Last: to, Why: "more alive at the second event than at the first"}
		g.Others = append(g.Others, x)
	}
	since := "before the first event"
	if from >= 0 {
		since = "after event " + evidence.Count(from)
	}
	g.Says = moreOrLess(g.Bytes, "after event "+evidence.Count(to), since)
	return err
}
