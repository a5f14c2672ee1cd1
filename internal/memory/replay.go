package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/inquest-dev/inquest/internal/allocator"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Replay says what is tried in the simulated allocator. Its zero value replays the
// record under its own settings, and where a request was refused and expandable
// segments were off, under those.
type Replay struct {
	Off  bool
	Auto bool // search the settings that matter for the trace
	Try  []allocator.Change
}

// ParseChange reads a change to try: settings as in PYTORCH_CUDA_ALLOC_CONF,
// capacity:SIZE, empty_cache@EVENT, several with blanks between them.
// What no simulation of PyTorch's own allocator answers for is an error.
func ParseChange(text string) (allocator.Change, error) {
	c, err := allocator.ParseChange(text)
	if err != nil {
		return c, err
	}
	if s, err := allocator.ParseSettings(c.Conf); err == nil && s.Async {
		return c, errors.New("cudaMallocAsync is the driver's allocator: only PyTorch's own is simulated")
	}
	return c, nil
}

// expandable is the change that PyTorch's own message advises.
const expandable = "expandable_segments:True"

// replay runs the history of the device through the simulated allocator, and gives
// the fragmentation the standing that it proves.
func (w *walk) replay(ctx context.Context, d *incident.MemoryDevice) error {
	if w.o.Replay.Off || w.m.Cut || w.m.Has.Profile || w.bare() || w.actions[evidence.MemAlloc]+w.actions[evidence.MemOOM] == 0 {
		return nil
	}
	o := allocator.Options{Auto: w.o.Replay.Auto, Try: w.o.Replay.Try}
	if len(w.refused) == 0 {
		o.Capacity = w.o.Capacity // an oom entry shows it better
	}
	if len(w.refused) > 0 && !o.Auto && len(o.Try) == 0 && !w.m.Settings.Expandable {
		o.Try = []allocator.Change{{Conf: expandable}}
	}
	r, err := allocator.Examine(ctx, w.m, w.device, o)
	if err != nil {
		return err
	}
	d.Replay = w.mirror(r)
	w.decide(&d.Fragmentation, d.Growth, r)
	return nil
}

// mirror puts a replay down.
func (w *walk) mirror(r *allocator.Replay) *incident.MemoryReplay {
	f := &r.Fidelity
	out := &incident.MemoryReplay{Version: r.Version.String(), Lacks: append([]string{}, r.Lacks...), Answers: []incident.MemoryAnswer{}, Recorded: incident.MemoryReplayPeak(r.Recorded),
		Fidelity: incident.MemoryFidelity{OK: f.OK, Why: f.Why, Events: f.Events, Allocs: f.Allocs, SameAddress: f.SameAddress, Segments: f.Segments, Matched: f.Matched, Extra: f.Extra,
			CurveWorst: f.CurveWorst, CurveMean: f.CurveMean, FinalBytes: f.FinalBytes, FinalSame: f.FinalSame, OOMs: f.OOMs, OOMsSame: f.OOMsSame, Tolerance: f.Tolerance, Forced: f.Forced},
		Room: incident.MemoryRoom{Basis: r.Room.Basis, Spans: []evidence.Span{}}}
	if r.Room.Known {
		out.Room.Bytes = &r.Room.Bytes
	}
	if sp := w.span(r.Room.Event); sp != nil {
		out.Room.Spans = append(out.Room.Spans, *sp)
		for i := range w.refused {
			if x := &w.refused[i]; x.event == r.Room.Event && r.Room.Bytes == x.reserved+x.free {
				out.Room.Basis = fmt.Sprintf("what was reserved (%s) and what the device had free (%s) when the request at event %s was refused; what other processes use is taken to stay the same", evidence.Bytes(x.reserved), evidence.Bytes(x.free), evidence.Count(x.event))
			}
		}
	} else if r.Room.Known && w.o.Capacity > 0 {
		out.Room.Basis += "; what lies outside the allocator (contexts, NCCL, other processes) takes of it"
	}
	for i := range r.Answers {
		a := &r.Answers[i]
		x := incident.MemoryAnswer{Setting: a.Change.String(), Answer: a.Verdict.String(), Why: a.Why, PeakReserved: a.Peak.Reserved, PeakEvent: a.Peak.Event, Flushes: a.Flushes, Searched: a.Searched}
		if a.HasMargin {
			x.Margin = &a.Margin
		}
		if a.FailsAt >= 0 {
			x.FailsAt, x.Request = &a.FailsAt, &a.Request
		}
		if a.Change.EmptyCache && a.Change.Event >= w.t.Len() {
			x = incident.MemoryAnswer{Setting: x.Setting, Answer: incident.CannotTell, Why: "the history ends at event " + evidence.Count(w.t.Len()-1), PeakEvent: -1}
		}
		out.Answers = append(out.Answers, x)
	}
	if g := &r.Fragment; g.Known {
		out.Layout = &incident.MemoryLayout{Fits: g.Fits, Event: g.Event, InUse: g.InUse, Request: g.Request, Free: g.Free, Largest: g.Largest}
	}
	if r.Best >= 0 && r.Best < len(out.Answers) {
		best := r.Best
		out.Best = &best
	}
	return out
}

// decide gives the fragmentation the standing that a replay proves: that the
// failure was a matter of layout, or that no layout would have held the request.
func (w *walk) decide(f *incident.MemoryFragmentation, grown *incident.MemoryGrowth, r *allocator.Replay) {
	if w.decisive() == nil || f.Standing == incident.RuledOut {
		return
	}
	g := r.Fragment
	g.Known = g.Known && g.Event == w.decisive().event // else it is of a request that was survived
	if g.Known && !g.Fits {
		f.Standing, f.Missing, f.Layout = incident.RuledOut, "", new(bool)
		f.Says += fmt.Sprintf("; the %s in use and the request of %s are more than the room of %s, however they lie", evidence.Bytes(g.InUse), evidence.Bytes(g.Request), evidence.Bytes(r.Room.Bytes))
		return
	}
	if !r.Fidelity.OK {
		f.Missing = "a replay that repeats the record: " + r.Fidelity.Why
		return
	}
	for i := range r.Answers {
		a := &r.Answers[i]
		if a.Change != (allocator.Change{Conf: expandable}) {
			continue
		}
		switch {
		case a.Verdict == allocator.Avoided && g.Known && g.Fits:
			w.weigh(f, grown, a)
		case a.Verdict == allocator.Avoided:
			f.Missing = "whether what was in use and the refused request would have fitted without waste"
		case a.Verdict == allocator.NotAvoided:
			f.Standing, f.Missing = incident.Possible, "a setting that avoids it: the replay with expandable segments fails too"
		default:
			f.Missing = "a replay with expandable segments that can tell: " + a.Why
		}
		return
	}
}
