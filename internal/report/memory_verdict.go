package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A memView is one device of one snapshot, as reports speak of it.
type memView struct {
	snap *incident.MemorySnapshot
	dev  *incident.MemoryDevice
}

// views are all devices, in the order of the snapshots.
func views(m *incident.Memory) []memView {
	var out []memView
	for i := range m.Snapshots {
		for j := range m.Snapshots[i].Devices {
			out = append(out, memView{&m.Snapshots[i], &m.Snapshots[i].Devices[j]})
		}
	}
	return out
}

// leadingView is the device that the first lines speak of: one on which a request was
// refused for good, of these and else the one with most active.
func leadingView(all []memView) memView {
	return slices.MaxFunc(all, func(a, b memView) int {
		if x, y := a.fatal() != nil, b.fatal() != nil; x != y {
			if x {
				return 1
			}
			return -1
		}
		switch x, y := a.most(), b.most(); {
		case x > y:
			return 1
		case x < y:
			return -1
		}
		return 0
	})
}

func (v memView) most() int64 {
	if v.dev.Peak != nil {
		return v.dev.Peak.Active
	}
	return v.dev.Totals.Active
}

// fatal is the refused request that nothing was allocated after, nil where none is.
func (v memView) fatal() *incident.MemoryOOM {
	if n := len(v.dev.Pressure.OOMs); n > 0 && !v.dev.Pressure.OOMs[n-1].Survived {
		return &v.dev.Pressure.OOMs[n-1]
	}
	return nil
}

// name says which device of which file it is, as far as the result needs it.
func (v memView) name(w *words) string {
	file := v.snap.Artifact
	if s, ok := w.short[file]; ok {
		file = s
	}
	if v.snap.Rank != nil {
		return fmt.Sprintf("rank %d, GPU %d (%s)", *v.snap.Rank, v.dev.Device, file)
	}
	return fmt.Sprintf("GPU %d (%s)", v.dev.Device, file)
}

// peakVariants say what the peak was and who made it, from long to short.
func (v memView) peakVariants() []string {
	d := v.dev
	if d.Peak == nil {
		s := fmt.Sprintf("not known: no history was recorded; at the end %s are active, %s reserved", evidence.Bytes(d.Totals.Active), evidence.Bytes(d.Totals.Reserved))
		if len(d.Live) > 0 && d.Live[0].Stack != nil {
			return []string{s + fmt.Sprintf("; most by %s, %s", d.Live[0].Name, evidence.Bytes(d.Live[0].Bytes)), s}
		}
		return []string{s}
	}
	p := d.Peak
	base := fmt.Sprintf("%s active", evidence.Bytes(p.Active))
	if p.Reserved >= p.Active {
		base += fmt.Sprintf(" of %s reserved", evidence.Bytes(p.Reserved))
	}
	where := fmt.Sprintf(", at event %s of %s", evidence.Count(p.Event), evidence.Count(d.Totals.Events))
	if p.Event < 0 {
		where = ", before the first event of the trace"
	} else if p.Step != "" {
		where = ", in " + p.Step
	}
	by := ""
	uses := p.Frames
	if len(uses) == 0 {
		uses = p.Category
	}
	for i, u := range uses {
		if i == 2 {
			break
		}
		if i > 0 {
			by += ", "
		}
		by += fmt.Sprintf("%s %s", evidence.Bytes(u.Bytes), byWhom(u.Name))
	}
	one := ""
	if len(uses) > 0 {
		one = fmt.Sprintf("%s %s", evidence.Bytes(uses[0].Bytes), byWhom(uses[0].Name))
	}
	if by == "" {
		return []string{base + where, base}
	}
	active := evidence.Bytes(p.Active) + " active"
	return []string{base + where + ": " + by, base + ": " + by, active + ": " + by, base + where + ": " + one, base + ": " + one, base + where, base, active}
}

// byWhom puts a place behind a size.
func byWhom(name string) string {
	switch {
	case name == "no stack recorded", strings.HasPrefix(name, "only frames"):
		return "with " + name
	case strings.HasPrefix(name, "older than the trace"):
		return "older than the trace"
	case strings.HasPrefix(name, "backward of"):
		return "in the " + name
	}
	return "by " + name
}

// failedVariants say whether a request was refused, and why as far as it is known.
func (v memView) failedVariants() []string {
	d := v.dev
	o := v.fatal()
	if o == nil {
		switch n := len(d.Pressure.OOMs) + d.Pressure.MoreOOMs; {
		case n > 0:
			return []string{fmt.Sprintf("no: %s refused, and the program went on after each", were(n, "request was", "requests were")), fmt.Sprintf("no: %s refused and survived", were(n, "request was", "requests were"))}
		case d.Peak == nil:
			return []string{"not known: no history was recorded"}
		case d.Trace.Cut:
			return []string{"not known: the file is damaged, and the end of its history is missing; no request was refused before", "not known: the file is damaged and the end of its history missing", "not known: the file is damaged"}
		}
		return []string{"no request was refused in the trace", "no request was refused"}
	}
	s := fmt.Sprintf("yes: a request of %s was refused at event %s", evidence.Bytes(o.Request), evidence.Count(o.Event))
	with := fmt.Sprintf(", with %s active, %s reserved and %s free on the device", evidence.Bytes(o.Active), evidence.Bytes(o.Reserved), evidence.Bytes(o.DeviceFree))
	why := map[string]string{
		incident.Established: "; the layout of the reserve is why",
		incident.RuledOut:    "; more was in use than there was room for",
	}[d.Fragmentation.Standing]
	if c := v.cause(); c != nil {
		why = "; " + causeAdvice[c.Fact].says
	}
	if why == "" {
		why = "; why is not decided"
	}
	short := fmt.Sprintf("yes: %s refused", evidence.Bytes(o.Request))
	return []string{s + with + why, s + why, short + why, short}
}

func were(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// settingVariants say whether another setting would have avoided the failure.
func (v memView) settingVariants() []string {
	d, r := v.dev, v.dev.Replay
	switch {
	case d.Peak == nil:
		return []string{"cannot tell: no history was recorded"}
	case d.Trace.Cut:
		return []string{"cannot tell: the file is damaged, and nothing was replayed", "cannot tell: the file is damaged"}
	case v.fatal() == nil && (r == nil || len(r.Answers) == 0):
		return []string{"nothing was to be avoided: no request was refused for good", "nothing was to be avoided"}
	case d.Fragmentation.Standing == incident.RuledOut && (r == nil || r.Best == nil):
		return []string{"no setting avoids it: what was in use and what was asked for are more than the room", "no setting: it needed more than the room"}
	case r == nil:
		return []string{"cannot tell: nothing was replayed"}
	case !r.Fidelity.OK:
		return []string{"cannot tell: the replay does not repeat the record: " + r.Fidelity.Why, "cannot tell: the replay does not repeat the record"}
	case len(r.Answers) == 0:
		return []string{"cannot tell: no other setting was tried; --replay auto searches them", "not tried: --replay auto"}
	}
	i := 0
	if r.Best != nil && *r.Best < len(r.Answers) {
		i = *r.Best
	}
	a := &r.Answers[i]
	s := settingWords(a.Setting) + ": " + answerWords(a.Answer)
	if v.fatal() == nil { // nothing failed: would it have, otherwise?
		switch a.Answer {
		case incident.Avoided:
			s = settingWords(a.Setting) + ": every request is served"
		case incident.NotAvoided:
			s = settingWords(a.Setting) + ": a request is refused"
		}
	}
	long := s
	switch {
	case a.Answer == incident.Avoided && a.Margin != nil:
		long = fmt.Sprintf("%s, at a peak of %s reserved, %s below the room", s, evidence.Bytes(a.PeakReserved), evidence.Bytes(*a.Margin))
	case a.Answer == incident.NotAvoided && a.FailsAt != nil:
		long = fmt.Sprintf("%s: it fails at event %s", s, evidence.Count(*a.FailsAt))
		if a.Margin != nil && *a.Margin < 0 {
			long += fmt.Sprintf(", short by %s", evidence.Bytes(-*a.Margin))
		}
	case a.Why != "":
		long = s + ": " + a.Why
	}
	if a.Answer == incident.Avoided && v.grows() {
		return []string{long + "; but what is kept goes on growing, so that it is only put off", s + ", which only puts it off: what is kept goes on growing", settingWords(a.Setting) + " only puts it off", "only put off"}
	}
	if n := len(r.Answers); n > 1 {
		return []string{long + fmt.Sprintf("; %d settings tried", n), long, s}
	}
	return []string{long, s}
}

// sureVariants say how far the replay can be trusted, and else what the record is.
func (v memView) sureVariants() []string {
	d, r := v.dev, v.dev.Replay
	if r == nil {
		if d.Peak == nil {
			return []string{"of what is held at the end only; its history is not recorded", "of the end only"}
		}
		if d.Trace.Cut {
			return []string{"of the part before the damage only; nothing was replayed", "of the part before the damage"}
		}
		if d.Trace.Truncated != "" {
			return []string{"of the recorded part: older entries were lost (" + d.Trace.Truncated + ")", "of the recorded part"}
		}
		return []string{"the figures follow from the record itself; nothing was replayed", "the figures are the record's own"}
	}
	f := &r.Fidelity
	if !f.OK {
		return []string{"the figures are the record's own; the replay is outside its tolerance: " + f.Why, "the figures are the record's own; the replay is outside its tolerance"}
	}
	s := "the replay repeats the record"
	reserved := "reserved as recorded"
	if f.CurveWorst > 0 {
		reserved = "reserved off by at most " + evidence.Bytes(f.CurveWorst)
	}
	if f.Segments == 0 {
		return []string{fmt.Sprintf("%s: %s of %s addresses; it has no segment event to test more", s, evidence.Count(f.SameAddress), evidence.Count(f.Allocs)), fmt.Sprintf("%s: %s of %s addresses", s, evidence.Count(f.SameAddress), evidence.Count(f.Allocs)), s}
	}
	return []string{
		fmt.Sprintf("%s: %s of %s segment events, %s of %s addresses, %s", s, evidence.Count(f.Matched), evidence.Count(f.Segments), evidence.Count(f.SameAddress), evidence.Count(f.Allocs), reserved),
		fmt.Sprintf("%s: %s of %s segment events, %s of %s addresses", s, evidence.Count(f.Matched), evidence.Count(f.Segments), evidence.Count(f.SameAddress), evidence.Count(f.Allocs)),
		fmt.Sprintf("%s: %s of %s segment events", s, evidence.Count(f.Matched), evidence.Count(f.Segments)), s,
	}
}

// nextVariants say what to do, or what to measure.
func (v memView) nextVariants() []string {
	d := v.dev
	proved := func() *incident.MemoryAnswer {
		if r := d.Replay; r != nil && r.Best != nil && *r.Best < len(r.Answers) {
			return &r.Answers[*r.Best]
		}
		return nil
	}
	if c := v.cause(); c != nil && v.fatal() != nil {
		return []string{causeAdvice[c.Fact].do + ": inquest explain " + causeAdvice[c.Fact].entry, "inquest explain " + causeAdvice[c.Fact].entry}
	}
	switch a := proved(); {
	case d.Peak == nil:
		return []string{"record a history: torch.cuda.memory._record_memory_history() before the part in question, and take the snapshot again", "record a history: torch.cuda.memory._record_memory_history()"}
	case v.fatal() == nil && d.Trace.Cut:
		return []string{"copy the file again from where it was written, and check that its size is the same there", "copy the file again; compare sizes"}
	case v.fatal() != nil && a != nil && strings.HasPrefix(a.Setting, "empty_cache@"):
		return []string{"torch.cuda.empty_cache() before event " + strings.TrimPrefix(a.Setting, "empty_cache@") + " avoids it in the replay; verify by a rerun", "call torch.cuda.empty_cache() as the replay did"}
	case v.fatal() != nil && a != nil:
		return []string{"run again with PYTORCH_CUDA_ALLOC_CONF=" + a.Setting + " and nothing else changed: the replay serves this history, a rerun confirms it", "run again with PYTORCH_CUDA_ALLOC_CONF=" + a.Setting + "; a rerun confirms it", "run with PYTORCH_CUDA_ALLOC_CONF=" + a.Setting, "set " + a.Setting}
	case v.fatal() != nil && d.Fragmentation.Standing == incident.RuledOut:
		return []string{"make less active at the peak, first " + v.topPlace(), "make less active at the peak"}
	case v.fatal() != nil && d.Replay != nil && d.Replay.Fidelity.OK:
		return []string{"search the settings: --replay auto; expandable_segments without that is a guess", "--replay auto"}
	case v.fatal() != nil:
		return []string{"record from the start of the program, so that the failure can be replayed; expandable_segments without that is a guess", "record from the start of the program, to replay it"}
	}
	if c := v.cause(); c != nil {
		return []string{causeAdvice[c.Fact].do + ": inquest explain " + causeAdvice[c.Fact].entry, "inquest explain " + causeAdvice[c.Fact].entry}
	}
	if g := d.Growth; g != nil && len(g.Suspects) > 0 {
		at := g.Suspects[0].Name
		if g.Common != "" {
			at = g.Common
		}
		return []string{"find what keeps the allocations of " + at + " alive after their step", "look at " + at}
	}
	return []string{"to lower the peak begin with " + v.topPlace(), "begin with " + v.topPlace()}
}

// grows reports whether what fails is bound to fail later: memory piles up.
func (v memView) grows() bool {
	if g := v.dev.Growth; g != nil && len(g.Suspects) > 0 {
		return true
	}
	c := v.cause()
	return c != nil && (c.Fact == "snapshot.graph_held" || c.Fact == "snapshot.eval_outputs_kept")
}

// topPlace is who made most of the peak, of those that have a name.
func (v memView) topPlace() string {
	if v.dev.Peak == nil {
		return "what is alive"
	}
	for _, u := range v.dev.Peak.Frames {
		if u.Stack != nil {
			return fmt.Sprintf("%s (%s)", u.Name, evidence.Bytes(u.Bytes))
		}
	}
	for _, u := range v.dev.Peak.Category {
		return fmt.Sprintf("the category %s (%s)", u.Name, evidence.Bytes(u.Bytes))
	}
	return "what has no stack: record with stacks"
}

// causeAdvice is, for what a snapshot proves, the entry that explains it and what to
// do in a few words.
var causeAdvice = map[string]struct{ entry, do, says string }{
	"snapshot.graph_held":        {"retained-graph", "let go of the graphs of past steps", "graphs of past steps are held"},
	"snapshot.eval_outputs_kept": {"eval-outputs-on-gpu", "move evaluation outputs off the GPU as they are made", "evaluation outputs are kept on the GPU"},
	"snapshot.optimizer_states":  {"optimizer-first-step", "make room for the optimizer's states", "the optimizer makes its states"},
	"snapshot.sequence_spike":    {"sequence-spike", "bound the longest batch", "one batch asks for far more than the others"},
	"snapshot.checkpoint_copy":   {"checkpoint-on-gpu", "keep the copy of the checkpoint off the GPU", "a copy of a checkpoint lies on the GPU"},
	"snapshot.kv_cache":          {"kv-cache-oversized", "build the KV cache for the tokens that are needed", "a KV cache is the largest part of what is active"},
	"snapshot.outside_allocator": {"outside-torch-allocator", "find what else holds the device's memory", "most of the device is held outside the allocator"},
	"snapshot.rank_imbalance":    {"rank-imbalance", "even out the ranks", "the ranks differ in what they need"},
}

// shownWords is what a cause states: of one that this version does not know the name.
func shownWords(c *incident.MemoryCause) string {
	if a, ok := causeAdvice[c.Fact]; ok {
		return a.says
	}
	return c.Fact
}

// cause is the first proved cause, nil where none is. That a KV cache is large is none
// where the layout is proved to be why.
func (v memView) cause() *incident.MemoryCause {
	for i := range v.dev.Causes {
		c := &v.dev.Causes[i]
		if c.Fact == "snapshot.kv_cache" && v.dev.Fragmentation.Standing == incident.Established {
			continue
		}
		if c.Value && causeAdvice[c.Fact].entry != "" {
			return c
		}
	}
	return nil
}

// settingWords is a change that was tried; a capacity is put down as a size.
func settingWords(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		if text, ok := strings.CutPrefix(w, "capacity:"); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				words[i] = evidence.Bytes(n) + " in all"
			}
		}
	}
	return strings.Join(words, ", ")
}

// layoutWords is whether the layout of the reserve made a request fail.
func layoutWords(standing string) string {
	switch standing {
	case incident.Possible:
		return "possible"
	case incident.Undecidable:
		return "cannot be told"
	}
	return standingWords(standing)
}

// settingsInForce is what the allocator was set to: the text of the variable, or where a
// program set it otherwise, what the numbers in the file say.
func settingsInForce(s incident.MemorySettings) string {
	if s.Conf != "" {
		return s.Conf
	}
	var out []string
	if s.Expandable {
		out = append(out, "expandable_segments:True")
	}
	if s.MaxSplit != nil && *s.MaxSplit > 0 {
		out = append(out, fmt.Sprintf("max_split_size_mb:%d", *s.MaxSplit>>20))
	}
	if s.Roundup != "" {
		out = append(out, "roundup_power2_divisions:"+s.Roundup)
	}
	if s.GCThreshold > 0 {
		out = append(out, fmt.Sprintf("garbage_collection_threshold:%g", s.GCThreshold))
	}
	if len(out) == 0 {
		return "default"
	}
	return strings.Join(out, ",")
}
