package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A SnapshotTie is the refused request in a memory snapshot that is the failure of the
// log.
type SnapshotTie struct {
	OOM *evidence.Event // mem_snapshot_oom; nil where none is known to be
	// Timeless says that the log has no time to hold against that of the snapshot.
	Timeless bool
	// Not says of each snapshot that holds a refused request, or history, and is not tied,
	// why it decides nothing.
	Not []SnapshotApart
}

// A SnapshotApart is a snapshot that is not of the failure.
type SnapshotApart struct {
	Text string
	Span evidence.Span
}

// apartMost bounds the reasons that are listed.
const apartMost = 8

// TieSnapshot finds the snapshot of the failing process at its failure. A wrong one is
// worse than none: the request must be the same and the memory that the driver had free
// to the last digit printed, or the rank with a time close by; the device, the rank
// and the time must not differ where both are known; and no other process of the job
// may have failed so, nor another process's snapshot show the same.
func TieSnapshot(in Input) SnapshotTie {
	var t SnapshotTie
	var ooms []*evidence.Event
	in.each(evidence.MemSnapshotOOM, func(e *evidence.Event) { ooms = append(ooms, e) })
	if len(ooms) == 0 {
		return t
	}
	m := in.Memory
	apart := func(o *evidence.Event, why string) {
		if len(t.Not) < apartMost && !slices.ContainsFunc(t.Not, func(x SnapshotApart) bool { return x.Span.Artifact == o.Span.Artifact }) {
			t.Not = append(t.Not, SnapshotApart{fmt.Sprintf("The memory snapshot %s records a refused request, and decides nothing here: %s.", o.Span.Artifact, why), o.Span})
		}
	}
	if m == nil {
		for _, o := range ooms {
			apart(o, "no failure of device memory in the logs is the one")
		}
		return t
	}
	var fit []*evidence.Event
	why := map[*evidence.Event]string{}
	for _, o := range ooms {
		if why[o] = differs(in, m, o); why[o] == "" && damaged(in, o) {
			why[o] = "the file is damaged, and what is lost of it is not known"
		}
		if why[o] == "" {
			fit = append(fit, o)
		}
	}
	if len(fit) > 1 {
		fit = closest(m, fit)
	}
	switch {
	case len(fit) == 0:
	case len(fit) > 1:
		for _, o := range fit {
			why[o] = "several snapshots show the same failure, and nothing says which of them is of the failing process"
		}
	case fit[0].Who.Rank == evidence.None && fit[0].Span.Artifact != m.Span.Artifact && alsoOf(in, fit[0]):
		why[fit[0]] = "several ranks failed with the same figures, and nothing says of which of them it is"
	default:
		t.OOM = fit[0]
		t.Timeless = m.Span.Artifact != t.OOM.Span.Artifact && !timed(in, m)
	}
	for _, o := range ooms {
		switch {
		case t.OOM == nil:
		case o.Span.Artifact == t.OOM.Span.Artifact:
			continue
		case t.OOM.Who.Rank != evidence.None && o.Who.Rank != evidence.None && o.Who.Rank != t.OOM.Who.Rank:
			continue // another rank's, which is compared by its peak
		}
		apart(o, cmp.Or(why[o], "another snapshot shows the same failure more surely"))
	}
	return t
}

// damaged reports whether a part of o's file could not be read.
func damaged(in Input, o *evidence.Event) bool {
	return slices.ContainsFunc(in.Events, func(e *evidence.Event) bool {
		return e.Kind == evidence.MemSnapshotted && e.Span.Artifact == o.Span.Artifact && e.Attrs["cut"].True()
	})
}

// differs says in what a refused request of a snapshot is not the failure m, "" where it is.
func differs(in Input, m, o *evidence.Event) string {
	if m.Span.Artifact == o.Span.Artifact { // the failure is known from the snapshot
		if m.Span.Index == o.Span.Index && m.Span.Device == o.Span.Device {
			return ""
		}
		return "it is another one in the same history"
	}
	num := func(what string, a, b int) string {
		if a != evidence.None && b != evidence.None && a != b {
			return fmt.Sprintf("it is of %s %d, the failure of %s %d", what, b, what, a)
		}
		return ""
	}
	if s := cmp.Or(num("rank", m.Who.Rank, o.Who.Rank), gpuDiffers(m, o)); s != "" {
		return s
	}
	if m.Who.Attempt != "" && o.Who.Attempt != "" && m.Who.Attempt != o.Who.Attempt {
		return "it is of another start of the job"
	}
	asked := evidence.DriverRequest(o.Attrs["requested"].Lo)
	want, ok := m.Attrs["requested"]
	switch {
	case !ok:
		return "the log does not state what was asked for"
	case m.Attrs.Str("form") == "async":
		return "the log's failure is of another allocator (cudaMallocAsync), which records no history"
	case asked < want.Lo || asked > want.Hi:
		return fmt.Sprintf("there %s were asked for, in the log %s", evidence.Bytes(asked), want)
	}
	free, freeKnown := m.Attrs["free"]
	if f := o.Attrs["free"]; freeKnown && (f.Hi < free.Lo || f.Lo > free.Hi) {
		return fmt.Sprintf("there %s were free on the device, in the log %s", f, free)
	}
	if a, b, ok := reserves(m, o); ok && (a.Hi < b.Lo-b.Lo/20 || b.Hi < a.Lo-a.Lo/20) {
		return fmt.Sprintf("there %s were reserved, in the log %s", b, a)
	}
	apart, timed := timeApart(m.Stamp, o.Stamp)
	if timed && apart > snapshotWithin || !timed && outOf(in, m, o) {
		return "it was recorded at another time"
	}
	sameRank := m.Who.Rank != evidence.None && m.Who.Rank == o.Who.Rank
	if !freeKnown && !(sameRank && timed) {
		return "beside the size that was asked for nothing shows that it is the same failure"
	}
	return ""
}

// reserves are what the allocator had reserved by the message of m, which newer versions
// state in two parts, and by the snapshot of o. They are the same moment's, and are compared
// with a twentieth to spare, for histories whose recording ended before the snapshot.
func reserves(m, o *evidence.Event) (inLog, there evidence.Value, ok bool) {
	there, ok = o.Attrs["reserved"]
	if v, stated := m.Attrs["reserved"]; stated || !ok {
		return v, there, ok && stated
	}
	used, ok1 := m.Attrs["allocated"]
	rest, ok2 := m.Attrs["unallocated"]
	if !ok1 || !ok2 || used.Hi > 1<<60 || rest.Hi > 1<<60 {
		return evidence.Value{}, there, false
	}
	return evidence.SizeOf(used.Lo+rest.Lo, used.Hi+rest.Hi), there, true
}

func gpuDiffers(m, o *evidence.Event) string {
	a, ok1 := m.Attrs["gpu"]
	b, ok2 := o.Attrs["gpu"]
	if ok1 && ok2 && a.I != b.I {
		return fmt.Sprintf("it is of device %d, the failure of device %d", b.I, a.I)
	}
	return ""
}

// snapshotWithin is how far the time of the entry may be from that of the log's line:
// clocks are one host's, but a message may be logged late.
const snapshotWithin = 10 * time.Minute

// oneDay is how long after the last line with a time a process may still work without
// a word.
const oneDay = 24 * time.Hour

// outOf reports whether o lies outside of the time in which the log's failure m, whose
// line has none, can lie: between the last time above it and the first below it.
func outOf(in Input, m, o *evidence.Event) bool {
	before, after := around(in, m)
	if !o.Stamp.Known() {
		return false
	}
	slack := func(st evidence.Stamp) time.Duration {
		if st.Zone == "" {
			return snapshotWithin + zones
		}
		return snapshotWithin
	}
	if before.Known() && o.Stamp.Time.Before(before.Time.Add(-slack(before))) {
		return true
	}
	if after.Known() {
		return o.Stamp.Time.After(after.Time.Add(slack(after)))
	}
	return before.Known() && o.Stamp.Time.After(before.Time.Add(oneDay+slack(before)))
}

// timed reports whether the log has a whole date at m or around it.
func timed(in Input, m *evidence.Event) bool {
	if m.Stamp.Known() && m.Stamp.Clock == "wall" && !m.Stamp.NoDate && !m.Stamp.NoYear {
		return true
	}
	before, after := around(in, m)
	return before.Known() || after.Known()
}

// around returns the last time above m in its artifact and the first one below it.
func around(in Input, m *evidence.Event) (before, after evidence.Stamp) {
	var last, next int64 = -1, -1
	see := func(artifact string, offset int64, st evidence.Stamp) {
		if artifact != m.Span.Artifact || !st.Known() || st.Clock != "wall" || st.NoDate || st.NoYear {
			return
		}
		if offset <= m.Span.Offset && offset > last {
			before, last = st, offset
		}
		if offset > m.Span.Offset && (next < 0 || offset < next) {
			after, next = st, offset
		}
	}
	for _, e := range in.Events {
		see(e.Span.Artifact, e.Span.Offset, e.Stamp)
	}
	for _, s := range in.Series {
		if s.Key.Artifact != m.Span.Artifact {
			continue
		}
		for p := range s.All() {
			see(s.Key.Artifact, p.Offset, p.When())
		}
	}
	return before, after
}

// zones is how far a time without a zone can be from UTC.
const zones = 15 * time.Hour

// timeApart is how far two moments lie apart, where both are whole dates. A stamp
// without a zone may be of any: what is left beside whole quarters of an hour counts.
func timeApart(log, snap evidence.Stamp) (time.Duration, bool) {
	if !log.Known() || !snap.Known() || log.Clock != "wall" || log.NoDate || log.NoYear {
		return 0, false
	}
	d := log.Time.Sub(snap.Time).Abs()
	if log.Zone != "" {
		return d, true
	}
	const quarter = 15 * time.Minute
	if d > zones {
		return d, true
	}
	rest := d % quarter
	return min(rest, quarter-rest), true
}

// closest keeps of several requests that fit those of the rank that failed, and of one
// artifact the last.
func closest(m *evidence.Event, fit []*evidence.Event) []*evidence.Event {
	own := func(o *evidence.Event) bool {
		return m.Span.Artifact == o.Span.Artifact || m.Who.Rank != evidence.None && o.Who.Rank == m.Who.Rank
	}
	if slices.ContainsFunc(fit, own) {
		fit = slices.DeleteFunc(fit, func(o *evidence.Event) bool { return !own(o) })
	}
	var out []*evidence.Event
	for _, o := range fit {
		if n := len(out) - 1; n >= 0 && out[n].Span.Artifact == o.Span.Artifact {
			if o.Span.Index > out[n].Span.Index {
				out[n] = o
			}
			continue
		}
		out = append(out, o)
	}
	// Two files of one rank that show the very same entry are two dumps of one process:
	// the one with less behind it is nearer to the failure.
	if len(out) > 1 && out[0].Who.Rank != evidence.None {
		same := func(o *evidence.Event) bool {
			return o.Who.Rank == out[0].Who.Rank && o.Stamp.Time.Equal(out[0].Stamp.Time) && o.Stamp.Known()
		}
		if !slices.ContainsFunc(out, func(o *evidence.Event) bool { return !same(o) }) {
			slices.SortStableFunc(out, func(a, b *evidence.Event) int {
				return cmp.Or(-cmp.Compare(a.Attrs["last"].I, b.Attrs["last"].I), strings.Compare(a.Span.Artifact, b.Span.Artifact))
			})
			out = out[:1]
		}
	}
	return out
}

// alsoOf reports whether a failure of another rank than in.Memory's fits o as well.
func alsoOf(in Input, o *evidence.Event) bool {
	return slices.ContainsFunc(in.Events, func(e *evidence.Event) bool {
		return e.Kind == evidence.DeviceOOM && !e.Quoted && e != in.Memory && e.Span.Artifact != o.Span.Artifact &&
			(e.Who.Rank != in.Memory.Who.Rank || e.Span.Artifact != in.Memory.Span.Artifact) && differs(in, e, o) == ""
	})
}

// snapshots states what the snapshot of the failure and its replay show.
func snapshots(in Input, f evidence.Known) {
	o := TieSnapshot(in).OOM
	if o == nil {
		return
	}
	of := func(e *evidence.Event) bool {
		return e.Span.Artifact == o.Span.Artifact && e.Attrs["gpu"].I == o.Attrs["gpu"].I
	}
	last := o.Attrs["last"].True() // else what the end of the history shows came after the failure
	in.each(evidence.MemFinding, func(e *evidence.Event) {
		if !of(e) || !last {
			return
		}
		name := e.Attrs.Str("fact")
		spec := evidence.FactOf(name)
		if spec == nil {
			return
		}
		v := e.Attrs[map[evidence.Type]string{evidence.Bool: "holds", evidence.Size: "bytes", evidence.Float: "number", evidence.Text: "words"}[spec.Type]]
		if _, known := f[name]; v.T == spec.Type && !known {
			f.Set(name, v, e.Span)
		}
	})
	for _, name := range []string{"snapshot.graph_held", "snapshot.eval_outputs_kept"} {
		if f.True(name) {
			f.Set("snapshot.grows", evidence.BoolOf(true), f[name].Spans...)
		}
	}
	in.each(evidence.MemReplay, func(e *evidence.Event) {
		if of(e) {
			replayFacts(e, o, f)
		}
	})
	stackOf(in, o, f)
	snapshotOutside(o, f)
	peaksOfRanks(in, o, f)
}

// stackOf takes where the request was made from the snapshot, where the log shows no
// traceback of it.
func stackOf(in Input, o *evidence.Event, f evidence.Known) {
	var own []evidence.Frame
	for _, fr := range o.Stack {
		if strings.HasSuffix(fr.File, ".py") {
			own = append(own, fr)
		}
	}
	if len(in.Memory.Stack) > 0 || len(own) == 0 {
		return
	}
	there := *in.Memory
	there.Stack = own
	if ph := phaseOf(in, &there); f["oom.phase"].Value.S == "unknown" && ph != "unknown" {
		f.Set("oom.phase", evidence.TextOf(ph), o.Span)
	}
	if _, known := f["trace.functions"]; known || in.Lead != in.Memory {
		return
	}
	var fn, files []string
	for _, fr := range own {
		fn, files = append(fn, fr.Function), append(files, fr.File)
	}
	f.Set("trace.functions", evidence.TextOf(strings.Join(fn, " > ")), o.Span)
	f.Set("trace.files", evidence.TextOf(strings.Join(files, "\n")), o.Span)
}

// replayFacts takes the replay of the history whose refused request o is. Its layout
// needs the state to be known, its answers a replay that repeats the record.
func replayFacts(e, o *evidence.Event, f evidence.Known) {
	spans := []evidence.Span{e.Span, o.Span}
	if e.Span == o.Span {
		spans = spans[:1]
	}
	if at, ok := e.Attrs["event"]; ok && at.I != o.Attrs["event"].I {
		return // of another request
	}
	faithful, ok := e.Attrs["faithful"]
	if !ok {
		return
	}
	fillFromReplay(e, o, f)
	f.Set("replay.faithful", faithful, spans...)
	if fits, ok := e.Attrs["fits"]; ok {
		f.Set("replay.fits", fits, spans...)
	}
	if !faithful.True() {
		return
	}
	if v, ok := e.Attrs["largest_free"]; ok {
		f.Set("snapshot.largest_free", v, spans...)
	}
	switch e.Attrs.Str("expandable") {
	case "avoided":
		f.Set("replay.expandable_avoids", evidence.BoolOf(true), spans...)
	case "not_avoided":
		f.Set("replay.expandable_avoids", evidence.BoolOf(false), spans...)
	}
	if v, ok := e.Attrs["avoided_by"]; ok {
		f.Set("replay.avoided_by", v, spans...)
	}
}

// reserve says whether the unused reserve is less than what was asked for. That alone
// does not rule a better layout out: blocks that were not split hold more than what they
// were asked for, and a replay that serves the request shows it.
func reserve(_ Input, f evidence.Known) {
	unused, ok1 := f["oom.reserved_unallocated"]
	asked, ok2 := f["oom.requested"]
	if !ok1 || !ok2 {
		return
	}
	served := f["replay.faithful"].Value.True() && f["replay.avoided_by"].Value.S != ""
	switch {
	case unused.Value.Hi < asked.Value.Lo:
		f.Set("oom.reserve_short", evidence.BoolOf(!served), unused.Spans...)
	case unused.Value.Lo >= asked.Value.Hi:
		f.Set("oom.reserve_short", evidence.BoolOf(false), unused.Spans...)
	}
}

// fillFromReplay takes what the failure's message does not state from the state that
// the history leads to.
func fillFromReplay(e, o *evidence.Event, f evidence.Known) {
	inUse, ok := e.Attrs["in_use"]
	if !ok {
		return
	}
	if _, known := f["oom.allocated"]; !known {
		f.Set("oom.allocated", inUse, e.Span)
	}
	if _, known := f["oom.reserved_unallocated"]; known {
		return
	}
	if reserved, ok := o.Attrs["reserved"]; ok && reserved.Lo >= inUse.Hi {
		f.Set("oom.reserved_unallocated", reserved.Minus(inUse), e.Span, o.Span)
	}
}

// snapshotOutside sets what was not free and not reserved against the device's
// capacity, which only the log states.
func snapshotOutside(o *evidence.Event, f evidence.Known) {
	const context = 3 << 29 // 1.5 GiB: what a process needs outside the allocator in any case
	capacity, ok1 := f["oom.capacity"]
	free, ok2 := o.Attrs["free"]
	reserved, ok3 := o.Attrs["reserved"]
	if !ok1 || !ok2 || !ok3 {
		return
	}
	outside := floor0(capacity.Value.Minus(free).Minus(reserved))
	spans := append(slices.Clone(capacity.Spans), o.Span)
	switch {
	case outside.Lo*2 > capacity.Value.Hi:
		f.Set("snapshot.outside_allocator", evidence.BoolOf(true), spans...)
	case outside.Hi <= context:
		f.Set("snapshot.outside_allocator", evidence.BoolOf(false), spans...)
	}
}

// peaksOfRanks compares what the ranks had in use at their peaks, where the rank of the
// failure and those of the other snapshots are known. The others' are as old as
// the failure, or nobody knows what they held then.
func peaksOfRanks(in Input, o *evidence.Event, f evidence.Known) {
	if o.Who.Rank == evidence.None {
		return
	}
	var own int64
	others := map[int]int64{}
	var spans []evidence.Span
	in.each(evidence.MemFinding, func(e *evidence.Event) {
		if e.Attrs.Str("fact") != "snapshot.peak" || e.Who.Rank == evidence.None {
			return
		}
		n := e.Attrs["bytes"].Lo
		if e.Who.Rank == o.Who.Rank {
			if e.Span.Artifact == o.Span.Artifact && e.Attrs["gpu"].I == o.Attrs["gpu"].I {
				own = n
				spans = append(spans, e.Span)
			}
			return
		}
		if takenNear(in, e.Span.Artifact, o) {
			others[e.Who.Rank] = max(others[e.Who.Rank], n)
			spans = append(spans, e.Span)
		}
	})
	if own <= 0 || len(others) == 0 {
		return
	}
	least, most := own, own
	for _, n := range others {
		least, most = min(least, n), max(most, n)
	}
	const far, close = 1.5, 1.1
	switch ratio := float64(most) / float64(max(least, 1)); {
	case ratio >= far && own == most:
		f.Set("snapshot.rank_imbalance", evidence.BoolOf(true), clip(spans)...)
	case ratio <= close:
		f.Set("snapshot.rank_imbalance", evidence.BoolOf(false), clip(spans)...)
	}
}

// takenNear reports whether a snapshot was taken within snapshotWithin of o.
func takenNear(in Input, artifact string, o *evidence.Event) bool {
	return slices.ContainsFunc(in.Events, func(e *evidence.Event) bool {
		return e.Kind == evidence.MemSnapshotted && e.Span.Artifact == artifact && e.Stamp.Known() && o.Stamp.Known() && e.Stamp.Time.Sub(o.Stamp.Time).Abs() <= snapshotWithin
	})
}
