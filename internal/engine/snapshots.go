package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/detect"
	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/reader"
)

// maxFindings bounds what is kept of one device of a snapshot.
const maxFindings = 32

// A snapshotSink keeps of a memory snapshot what it shows, and lets it go: a whole one
// takes as much memory as everything else that is read.
type snapshotSink struct {
	*reader.Collector
	ctx context.Context
}

// MemSnapshot examines m and keeps the findings, so that evidence files have them too.
func (s snapshotSink) MemSnapshot(m *evidence.MemSnapshot) {
	if m.Timeline != nil {
		return
	}
	got, err := memory.Examine(s.ctx, m, memory.Options{Replay: memory.Replay{Auto: true}})
	if err != nil {
		return // only ctx ends it, which the reader tells
	}
	for i := range got.Devices {
		for _, e := range findings(m.Artifact, &got.Devices[i]) {
			s.Event(e)
		}
	}
}

// findings puts down as events what a snapshot shows of one device.
func findings(artifact string, d *incident.MemoryDevice) []evidence.Event {
	var out []evidence.Event
	add := func(k evidence.Kind, text string, attrs evidence.Attrs, spans ...evidence.Span) *evidence.Event {
		e := evidence.Event{Kind: k, Who: evidence.Nobody(), Step: evidence.None, Text: text, Attrs: attrs}
		e.Who.Device = d.Device
		e.Attrs["gpu"] = evidence.IntOf(int64(d.Device))
		e.Span = evidence.Span{Artifact: artifact, Kind: "event", Device: d.Device}
		if len(spans) > 0 {
			e.Span = spans[0]
		}
		e.Span.Quote = cmp.Or(e.Span.Quote, text)
		if len(out) < maxFindings {
			out = append(out, e)
		}
		return &e
	}
	for i := range d.Causes {
		c := &d.Causes[i]
		a := evidence.Attrs{"fact": evidence.TextOf(c.Fact), "holds": evidence.BoolOf(c.Value)}
		if c.Bytes != nil {
			a["bytes"] = bytesOf(*c.Bytes)
		}
		add(evidence.MemFinding, c.Why, a, c.Spans...)
	}
	if g := d.Growth; g != nil {
		if piles, known := grows(d); known {
			add(evidence.MemFinding, g.Says, evidence.Attrs{"fact": evidence.TextOf("snapshot.grows"), "holds": evidence.BoolOf(piles), "bytes": bytesOf(g.Bytes)})
		}
	}
	if g := d.Growth; g != nil && len(g.Suspects) > 0 {
		top := &g.Suspects[0]
		spans := []evidence.Span{}
		if top.Span != nil {
			spans = append(spans, *top.Span)
		}
		add(evidence.MemFinding, top.Why, evidence.Attrs{"fact": evidence.TextOf("snapshot.growing_at"), "words": evidence.TextOf(top.Name), "bytes": bytesOf(top.Bytes)}, spans...)
		if g.PerStep != nil && *g.PerStep > 0 {
			add(evidence.MemFinding, g.Says, evidence.Attrs{"fact": evidence.TextOf("snapshot.growth_per_step"), "number": evidence.FloatOf(*g.PerStep)}, spans...)
		}
	}
	if f := &d.Fragmentation; d.Replay != nil && (f.Layout != nil || f.Standing == incident.RuledOut) {
		spans := []evidence.Span{}
		if f.LargestFreeAt != nil {
			spans = append(spans, *f.LargestFreeAt)
		}
		add(evidence.MemFinding, f.Says, evidence.Attrs{"fact": evidence.TextOf("snapshot.layout"), "holds": evidence.BoolOf(f.Layout != nil && *f.Layout), "bytes": bytesOf(f.LargestFree)}, spans...)
	}
	if p := d.Peak; p != nil && p.Event >= 0 {
		add(evidence.MemFinding, fmt.Sprintf("at most %s were in use at once", evidence.Bytes(p.Active)), evidence.Attrs{"fact": evidence.TextOf("snapshot.peak"), "bytes": bytesOf(p.Active)}, p.Spans...)
	}
	if r := d.Replay; r != nil {
		text, attrs, span := replayed(artifact, d.Device, r)
		add(evidence.MemReplay, text, attrs, span)
	}
	return out
}

// grows reports whether memory piles up from step to step, and whether that is known:
// not without three steps, nor where more stays behind and nothing says that it goes on.
func grows(d *incident.MemoryDevice) (piles, known bool) {
	g := d.Growth
	switch {
	case d.Trace.Steps < 3:
		return false, false
	case g.PerStep != nil && *g.PerStep > 0 && len(g.Suspects) > 0:
		return true, true
	case len(g.Suspects) == 0 && d.Peak != nil && g.Bytes*100 <= d.Peak.Active:
		return false, true
	}
	return false, false
}

func bytesOf(n int64) evidence.Value { return evidence.SizeOf(max(n, 0), max(n, 0)) }

// replayed puts down what a replay shows: a layout only with the room known, answers
// only of a replay that repeats the record.
func replayed(artifact string, device int, r *incident.MemoryReplay) (string, evidence.Attrs, evidence.Span) {
	a := evidence.Attrs{"faithful": evidence.BoolOf(r.Fidelity.OK), "why": evidence.TextOf(r.Fidelity.Why)}
	text := "the replay does not repeat the record: " + r.Fidelity.Why
	if r.Fidelity.OK {
		text = fmt.Sprintf("the replay repeats the record: %d of %d allocations at their addresses, %d of %d segment events", r.Fidelity.SameAddress, r.Fidelity.Allocs, r.Fidelity.Matched, r.Fidelity.Segments)
	}
	span := evidence.Span{Artifact: artifact, Kind: "event", Device: device}
	if len(r.Room.Spans) > 0 {
		span = r.Room.Spans[0]
	}
	if r.Room.Bytes != nil {
		a["room"] = bytesOf(*r.Room.Bytes)
	}
	if l := r.Layout; l != nil {
		a["event"], a["fits"] = evidence.IntOf(int64(l.Event)), evidence.BoolOf(l.Fits)
		a["in_use"], a["request"], a["largest_free"] = bytesOf(l.InUse), bytesOf(l.Request), bytesOf(l.Largest)
		text += fmt.Sprintf("; in use at the refused request: %s, asked for: %s, largest free block: %s", evidence.Bytes(l.InUse), evidence.Bytes(l.Request), evidence.Bytes(l.Largest))
		if r.Room.Bytes != nil {
			text += ", of " + evidence.Bytes(*r.Room.Bytes)
		}
		span.Index = int64(l.Event)
	}
	if !r.Fidelity.OK {
		return text, a, span
	}
	open := len(r.Answers) == 0
	for i := range r.Answers {
		x := &r.Answers[i]
		if !ofAllocator(x.Setting) {
			continue
		}
		open = open || x.Answer == incident.CannotTell
		if expands(x.Setting) {
			a["expandable"] = evidence.TextOf(x.Answer)
			a["expandable_peak"] = bytesOf(x.PeakReserved)
			text += fmt.Sprintf("; with %s: %s, at most %s reserved", x.Setting, strings.ReplaceAll(x.Answer, "_", " "), evidence.Bytes(x.PeakReserved))
		}
	}
	if best := bestOf(r); best != nil {
		a["avoided_by"] = evidence.TextOf(best.Setting)
		if best.Margin != nil {
			a["margin"] = bytesOf(*best.Margin)
		}
		if !expands(best.Setting) {
			text += fmt.Sprintf("; with %s: avoided, at most %s reserved", best.Setting, evidence.Bytes(best.PeakReserved))
		}
	} else if !open {
		a["avoided_by"] = evidence.TextOf("")
	}
	return text, a, span
}

// bestOf is the change of the allocator's settings to make: the replay's own choice,
// else the first that avoids the failure; nil where none is proved.
func bestOf(r *incident.MemoryReplay) *incident.MemoryAnswer {
	proved := func(x *incident.MemoryAnswer) bool { return x.Answer == incident.Avoided && ofAllocator(x.Setting) }
	if r.Best != nil && *r.Best < len(r.Answers) && proved(&r.Answers[*r.Best]) {
		return &r.Answers[*r.Best]
	}
	if i := slices.IndexFunc(r.Answers, func(x incident.MemoryAnswer) bool { return proved(&x) }); i >= 0 {
		return &r.Answers[i]
	}
	return nil
}

// ofAllocator reports whether an answer is about settings alone: not another card, nor
// a call in the program.
func ofAllocator(setting string) bool {
	return setting != "" && !strings.Contains(setting, "capacity") && !strings.Contains(setting, "empty_cache")
}

func expands(setting string) bool { return setting == "expandable_segments:True" }

// apartSnapshots says which memory snapshots decide nothing, and what one without a
// log can't say.
func apartSnapshots(c *diagnose.Case, add func(string, ...evidence.Span)) {
	tie := detect.TieSnapshot(input(c, nil))
	if tie.Timeless {
		add(fmt.Sprintf("That the memory snapshot %s is of this failure follows from the request and the free memory that both state; the log has no time to hold against it.", tie.OOM.Span.Artifact), tie.OOM.Span)
	}
	for _, x := range tie.Not {
		add(x.Text, x.Span)
	}
	if c.Lead != nil && c.Lead.Attrs.Str("form") == "snapshot" {
		add("The failure is known from the memory snapshot alone. It does not say whether the program caught it, what other ranks did, how the process ended, or how large the device is; the logs would.", c.Lead.Span)
	}
}
