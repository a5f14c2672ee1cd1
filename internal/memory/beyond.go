package memory

import (
	"fmt"

	"github.com/inquest-dev/inquest/internal/allocator"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// beyond is the most that earlier steps needed beyond what was active when they had
// been granted what was refused in this one: the same place of the program, the
// same time around in its step, in proportion to the sizes asked for there. It is not
// known where no complete step came so far.
func (w *walk) beyond(r *refusal) (int64, bool) {
	now := w.steps.of(r.event)
	if r.stack == 0 || now < 1 || !w.steps.program() {
		return 0, false
	}
	turn := 0
	for i := w.steps.bounds[now]; i < r.event; i++ {
		if e := w.t.At(i); e.Action == evidence.MemAlloc && e.Stack == r.stack {
			turn++
		}
	}
	need, known := int64(0), false
	active, granted, inside := w.base, int64(0), false
	step, seen, scale := -1, 0, 0.0
	for i, e := range w.t.All() {
		if i >= w.steps.bounds[now] {
			break
		}
		for step+1 < len(w.steps.bounds) && i >= w.steps.bounds[step+1] {
			step++
			seen, inside = 0, false
		}
		switch {
		case e.Action == evidence.MemAlloc:
			active += sane(e.Size)
			if e.Stack == r.stack && step >= 0 {
				if seen == turn {
					granted, inside, known = active, true, true
					scale = float64(r.request) / float64(max(sane(e.Size), 1))
				}
				seen++
			}
		case w.closes(e.Action):
			active -= sane(e.Size)
		}
		if inside {
			need = max(need, int64(min(float64(active-granted)*scale, 1<<50)))
		}
	}
	return need, known
}

// weigh says what it means that a replay under another setting serves the refused
// request. That it was a matter of layout is established only where the run would have
// gone on: where nothing piles up that would have been room enough, and the rest of the
// step, as far as earlier steps show it, has room too.
func (w *walk) weigh(f *incident.MemoryFragmentation, g *incident.MemoryGrowth, a *allocator.Answer) {
	r := w.decisive()
	f.Says += fmt.Sprintf("; a replay with expandable segments serves every recorded request within %s, the refused one included", evidence.Bytes(a.Peak.Reserved))
	f.Standing = incident.Possible
	if 20*(r.reserved-r.active) >= r.reserved {
		f.Standing = incident.Supported
	}
	pile := int64(0)
	rate := 0.0
	if g != nil {
		for i := range g.Suspects {
			pile += g.Suspects[i].Bytes
		}
		if g.PerStep != nil {
			rate = *g.PerStep
		}
	}
	need, known := w.beyond(r)
	top := int64(0)
	for k := range w.tops {
		top = max(top, w.tops[k].value)
	}
	decides := func(yes bool) { f.Layout = &yes }
	switch {
	case pile >= r.request:
		if rate > 0 {
			decides(false)
		}
		f.Missing = fmt.Sprintf("whether what piles up, %s, is meant to stay: without it there would have been room", evidence.Bytes(pile))
		if rate > 0 && a.HasMargin {
			f.Missing += fmt.Sprintf("; at %s a step it fills the %s that the setting leaves in %s", evidence.Bytes(int64(rate)), evidence.Bytes(a.Margin), count(int(float64(a.Margin)/rate)+1, "step"))
		}
	case !known:
		f.Missing = "what the program needed after the refused request: no earlier step came so far"
	case r.active+r.request+need > r.reserved+r.free:
		decides(false)
		f.Standing = incident.Possible
		f.Missing = fmt.Sprintf("room for the rest of the step: earlier ones needed up to %s more after the same place, in proportion, and what was in use, the request and that are more than the %s that there were", evidence.Bytes(need), evidence.Bytes(r.reserved+r.free))
	case a.HasMargin && need > a.Margin && r.active+r.request+need > top:
		f.Missing = fmt.Sprintf("proof that the rest of the step has room: earlier ones needed up to %s more after the same place, in proportion, and the replay leaves %s at its own peak", evidence.Bytes(need), evidence.Bytes(a.Margin))
	default:
		decides(true)
		f.Standing, f.Missing = incident.Established, ""
		f.Says += fmt.Sprintf(", and the rest of the step has room too: earlier ones needed at most %s more after the same place; it was a matter of layout", evidence.Bytes(need))
	}
}
