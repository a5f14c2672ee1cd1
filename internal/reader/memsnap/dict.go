package memsnap

import (
	"errors"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A part is a dict of which more may follow: it was filled with single items, or with as
// many as a writer puts in one batch.
type part struct {
	pairs []value // key, value, ...
	done  value   // what it became
}

// batch is after how many items CPython's pickler begins another SETITEMS.
const batch = 1000

var (
	errNoDict = errors.New("the value below is no dict")
	errPairs  = errors.New("a key without a value")
)

// fill adds pairs to the dict at d.
func (m *machine) fill(d *value, pairs []value, single bool) error {
	if len(pairs)%2 != 0 {
		return errPairs
	}
	m.ripenAll(pairs)
	switch d.tag {
	case tDict:
		if (single || len(pairs) >= 2*batch) && len(m.parts) < maxBlocks {
			m.parts = append(m.parts, part{pairs: known2(nil, pairs)})
			m.become(d, value{n: uint64(len(m.parts) - 1), tag: tPart})
			return nil
		}
		m.become(d, m.make(m.read(pairs)))
	case tPart:
		if p := &m.parts[d.n]; p.done.tag == tUnset {
			p.pairs = known2(p.pairs, pairs)
			return nil
		}
		m.late++
	case tOther:
	case tFrame, tEvent, tBlock, tSegment, tPast, tMark, tSettings, tRoundup, tTop:
		m.late++
	default:
		return errNoDict
	}
	return nil
}

// known2 appends those of pairs whose keys mean something.
func known2(to, pairs []value) []value {
	for i := 0; i < len(pairs); i += 2 {
		if k := pairs[i]; k.tag == tText && k.n < wordsKnown {
			to = append(to, k, pairs[i+1])
		}
	}
	return to
}

// become makes of the container at d what it is now filled with, in the memo too.
func (m *machine) become(d *value, v value) {
	d.n, d.tag = v.n, v.tag
	if d.slot != noSlot {
		m.store(d.slot, *d)
	}
}

// ripenAll completes the dicts among vs, which are now being used.
func (m *machine) ripenAll(vs []value) {
	if len(m.parts) == 0 {
		return
	}
	for i := range vs {
		m.ripen(&vs[i])
	}
}

func (m *machine) ripen(v *value) {
	if v.tag != tPart {
		return
	}
	p := &m.parts[v.n]
	if p.done.tag == tUnset {
		p.done = m.make(m.read(p.pairs))
		p.pairs = nil
	}
	m.become(v, p.done)
}

// read puts the values of known keys into m.vals and returns which there are. None
// is as good as absent. The powers of two, keys of roundup_power2_divisions, are the
// words from wPower on.
func (m *machine) read(pairs []value) (have set) {
	m.powers = 0
	for i := 0; i+1 < len(pairs); i += 2 {
		k := &pairs[i]
		if k.tag != tText {
			continue
		}
		switch {
		case k.n < keys:
			m.vals[k.n] = pairs[i+1]
			if have |= 1 << k.n; pairs[i+1].tag == tNone {
				have &^= 1 << k.n
			}
		case k.n >= wPower && k.n < wordsKnown:
			n, _ := pairs[i+1].number()
			m.round[k.n-wPower] = n
			m.powers |= 1 << (k.n - wPower)
		}
	}
	return have
}

// make makes what a dict with these keys, whose values are in m.vals, stands for.
func (m *machine) make(have set) value {
	switch {
	case have.has(kAction), have&anyPlace != 0 && have&anyEntry != 0:
		return m.event(have)
	case have.has(kStage):
		return m.mark(have)
	case have&anySegment != 0:
		return m.segment(have)
	case have.has(kState), have.has(kSize) && have&(1<<kFrames|1<<kHistory|1<<kRequestedSize) != 0:
		return m.block(have)
	case have&anyFrame != 0:
		return m.frame(have)
	case have&anyPast != 0:
		return m.past(have)
	case have&anyTop != 0:
		return m.top(have)
	case have&anySettings != 0:
		return m.setting(have)
	case m.powers != 0:
		return m.roundup()
	}
	return value{tag: tOther}
}

// num is the number of key k, 0 where there is none.
func (m *machine) num(have set, k uint) int64 {
	if !have.has(k) {
		return 0
	}
	v := &m.vals[k]
	if v.tag == tInt {
		return int64(v.n)
	}
	n, _ := v.number()
	return n
}

func (m *machine) addr(have set, k uint) uint64 {
	if !have.has(k) {
		return 0
	}
	v := &m.vals[k]
	if v.tag == tInt {
		return v.n
	}
	return v.address()
}

// text is the index of the string of key k, 0 where there is none.
func (m *machine) text(have set, k uint) uint32 {
	if !have.has(k) || m.vals[k].tag != tText {
		return 0
	}
	return uint32(m.vals[k].n)
}

// stackOf is the stack of key frames, 0 where there is none.
func (m *machine) stackOf(have set) uint32 {
	if !have.has(kFrames) || m.vals[kFrames].tag != tStack {
		return 0
	}
	return uint32(m.vals[kFrames].n)
}

func (m *machine) frame(have set) value {
	f := frame{m.text(have, kName), m.text(have, kFilename), m.num(have, kLine)}
	h := mix(m.mixer, uint64(f.name)<<32|uint64(f.file), uint64(f.line))
	id, ok := m.frameIndex.find(h, func(id uint32) bool { return m.frames[id] == f })
	if !ok {
		if len(m.frames) >= maxFrames {
			m.over.frames++
			return value{tag: tOther}
		}
		id = uint32(len(m.frames))
		m.frames = append(m.frames, f)
		m.frameIndex.add(h, id)
	}
	return value{n: uint64(id), tag: tFrame}
}

// A pending event has been made and stands in no list yet.
type pending struct {
	number uint32
	evidence.MemEvent
}

func (m *machine) event(have set) value {
	if m.events >= maxEvents {
		m.over.events++
		return value{tag: tOther}
	}
	e := pending{number: uint32(m.events)}
	m.entry(&e.MemEvent, e.number, have)
	m.pend = append(m.pend, e)
	return value{n: uint64(e.number), tag: tEvent}
}

// entry fills e, which is event number n.
func (m *machine) entry(e *evidence.MemEvent, n uint32, have set) {
	m.events++
	if a := m.text(have, kAction); a >= wAlloc && a <= wFree {
		e.Action = evidence.MemAlloc + evidence.MemAction(a-wAlloc)
	}
	if have.has(kDeviceFree) {
		e.Addr = m.addr(have, kDeviceFree)
	} else {
		e.Addr = m.addr(have, kAddr)
	}
	e.Size = m.num(have, kSize)
	if have.has(kTime) {
		e.Time = m.num(have, kTime)
		m.has.Times = true
	}
	e.Stack = m.stackOf(have)
	e.Stream = m.stream(have)
	e.Note = m.note(have)
	if have.has(kPool) && m.vals[kPool].tag == tPair {
		e.Pool = m.pool(m.vals[kPool].n)
		m.has.EventPools = true
	}
	if e.Action == evidence.MemOOM {
		if len(m.ooms) == maxOOMs {
			m.ooms = m.ooms[:maxOOMs-1] // the newest is the one that may have ended the run
			m.over.ooms++
		}
		m.ooms = append(m.ooms, oom{number: n, offset: m.at})
	}
}

// note is the index of what the entry says beside its numbers.
func (m *machine) note(have set) uint32 {
	n := noteKey{m.text(have, kCategory), m.text(have, kContext), m.text(have, kUser)}
	if n.context == wNotApplicable {
		n.context = 0
	}
	if n == m.lastNote {
		return m.lastNoteID
	}
	id, ok := m.noteIDs[n]
	if !ok {
		if len(m.notes) >= maxNotes {
			m.over.notes++
			return 0
		}
		id = uint32(len(m.notes))
		m.noteIDs[n] = id
		m.notes = append(m.notes, n)
	}
	m.lastNote, m.lastNoteID = n, id
	return id
}

type noteKey struct{ category, context, user uint32 }

// stream is the index of the stream of an event or segment.
func (m *machine) stream(have set) uint16 { return m.streamOf(m.addr(have, kStream)) }

// streamOf is the index of the stream with handle h.
func (m *machine) streamOf(h uint64) uint16 {
	if h == m.lastStream {
		return m.lastStreamID
	}
	id, ok := m.streamIDs[h]
	if !ok {
		if len(m.streams) > maxSmall {
			m.over.streams++
			return maxSmall
		}
		id = uint16(len(m.streams))
		m.streamIDs[h] = id
		m.streams = append(m.streams, h)
	}
	m.lastStream, m.lastStreamID = h, id
	return id
}

// pool is the index of the pool whose id is pair p.
func (m *machine) pool(p uint64) uint16 {
	pair := m.pairs[p]
	id, ok := m.poolIDs[pair]
	if !ok {
		if len(m.pools) > maxSmall {
			m.over.pools++
			return maxSmall
		}
		id = uint16(len(m.pools))
		m.poolIDs[pair] = id
		m.pools = append(m.pools, pair)
	}
	return id
}

// pair is the value of two integers.
func (m *machine) pair(a, b value) value {
	x, _ := a.number()
	y, _ := b.number()
	p := [2]int64{x, y}
	id, ok := m.pairIDs[p]
	if !ok {
		if len(m.pairs) >= maxPairs {
			m.over.pools++
			return value{tag: tOther}
		}
		id = uint32(len(m.pairs))
		m.pairIDs[p] = id
		m.pairs = append(m.pairs, p)
	}
	return value{n: uint64(id), tag: tPair}
}

// placed marks, in the state of a block that is kept, that its address was stated.
const placed = 0x80

func (m *machine) block(have set) value {
	if m.blocks.n >= maxBlocks {
		m.over.blocks++
		return value{tag: tOther}
	}
	b := evidence.MemBlock{Addr: m.addr(have, kAddress), Size: m.num(have, kSize), Requested: m.num(have, kRequestedSize), Stack: m.stackOf(have)}
	switch m.text(have, kState) {
	case wActive:
		b.State = evidence.BlockActive
	case wPending, wAwaiting:
		b.State = evidence.BlockPendingFree
	}
	m.has.BlockFrames = m.has.BlockFrames || have.has(kFrames)
	m.has.Requested = m.has.Requested || have.has(kRequestedSize)
	if have.has(kAddress) {
		m.has.BlockAddr = true
		b.State |= placed
	}
	if have.has(kHistory) && m.vals[kHistory].tag == tHistory {
		p := &m.pasts[m.vals[kHistory].n]
		if !have.has(kRequestedSize) && p.sized {
			b.Requested = p.size
			m.has.Requested = true
		}
		if !have.has(kFrames) && p.stacked {
			b.Stack = p.stack
			m.has.BlockFrames = true
		}
	}
	m.blocks.add(b)
	return value{n: uint64(m.blocks.n - 1), tag: tBlock}
}

// A past is an item of the history that blocks had before 2.1.
type past struct {
	size           int64
	stack          uint32
	sized, stacked bool
}

func (m *machine) past(have set) value {
	if len(m.pasts) >= maxBlocks {
		m.over.blocks++
		return value{tag: tOther}
	}
	m.pasts = append(m.pasts, past{m.num(have, kRealSize), m.stackOf(have), have.has(kRealSize), have.has(kFrames)})
	return value{n: uint64(len(m.pasts) - 1), tag: tPast}
}

// A segment is a MemSegment whose blocks are still apart.
type segment struct {
	evidence.MemSegment
	blocks uint32 // index of ranges, noBlocks
	end    int64  // offset at which its dict was complete
}

const noBlocks = ^uint32(0)

func (m *machine) segment(have set) value {
	if len(m.segments) >= maxSegments {
		m.over.segments++
		return value{tag: tOther}
	}
	s := segment{MemSegment: evidence.MemSegment{
		Device: int(min(max(m.num(have, kDevice), -1), maxDevices)), Addr: m.addr(have, kAddress), Total: m.num(have, kTotalSize),
		Allocated: m.num(have, kAllocatedSize), Active: m.num(have, kActiveSize), Requested: m.num(have, kRequestedSize),
		Stream: m.stream(have), Small: m.text(have, kSegmentType) == wSmall, Stack: m.stackOf(have),
	}, blocks: noBlocks, end: m.at}
	if len(m.segments) == 0 {
		m.has.Profile = true
	}
	m.has.Profile = m.has.Profile && have.has(kBlocks) && !have.has(kAllocatedSize) && !have.has(kSegmentType)
	if have.has(kSegmentPool) && m.vals[kSegmentPool].tag == tPair {
		s.Pool = m.pool(m.vals[kSegmentPool].n)
		m.has.SegmentPools = true
	}
	if have.has(kIsExpandable) {
		m.has.Expandable = true
		s.Expandable = m.num(have, kIsExpandable) != 0
	}
	if have.has(kBlocks) && m.vals[kBlocks].tag == tBlocks {
		s.blocks = uint32(m.vals[kBlocks].n)
	}
	m.segments = append(m.segments, s)
	return value{n: uint64(len(m.segments) - 1), tag: tSegment}
}

// A note of the program, its name still an index.
type mark struct {
	name uint32
	evidence.MemAnnotation
}

func (m *machine) mark(have set) value {
	if len(m.annotations) >= maxMarks {
		m.over.marks++
		return value{tag: tOther}
	}
	a := evidence.MemAnnotation{Start: m.text(have, kStage) == wStart, Device: int(min(max(m.num(have, kDevice), -1), maxDevices)), Time: m.num(have, kTime)}
	m.annotations = append(m.annotations, mark{m.text(have, kName), a})
	return value{n: uint64(len(m.annotations) - 1), tag: tMark}
}

// setting reads allocator_settings. There is one in a file, so all share a table that
// a hostile one cannot make large.
func (m *machine) setting(have set) value {
	if len(m.settings) >= maxTops {
		return value{tag: tOther}
	}
	s := evidence.MemSettings{
		MaxSplit: m.num(have, kMaxSplit), HasMaxSplit: have.has(kMaxSplit), HasMaxCached: have.has(kMaxCached),
		HasThreshold: have.has(kThreshold), Expandable: m.num(have, kExpandable) != 0, MaxEntries: m.num(have, kMaxEntries),
	}
	if have.has(kThreshold) {
		s.GCThreshold = m.vals[kThreshold].float()
	}
	conf := m.text(have, kConf)
	if conf == 0 {
		conf = m.text(have, kConfNew)
	}
	s.Conf = m.texts.list[conf]
	if have.has(kRoundup) && m.vals[kRoundup].tag == tRoundup {
		s.Roundup = m.roundups[m.vals[kRoundup].n]
	}
	m.has.Overflowed = m.has.Overflowed || m.num(have, kOverflowed) != 0
	m.settings = append(m.settings, s)
	return value{n: uint64(len(m.settings) - 1), tag: tSettings}
}

func (m *machine) roundup() value {
	if len(m.roundups) >= maxTops {
		return value{tag: tOther}
	}
	var r [16]int64
	for i := range r {
		if m.powers>>i&1 != 0 {
			r[i] = m.round[i]
		}
	}
	m.roundups = append(m.roundups, r)
	return value{n: uint64(len(m.roundups) - 1), tag: tRoundup}
}

// A top is the outermost dict.
type top struct {
	segments, traces, settings, marks value
	have                              set
}

func (m *machine) top(have set) value {
	if len(m.tops) >= maxTops {
		return value{tag: tOther}
	}
	t := top{have: have}
	for k, to := range map[uint]*value{kSegments: &t.segments, kDeviceTraces: &t.traces, kSettings: &t.settings, kAnnotations: &t.marks} {
		if have.has(k) {
			*to = m.vals[k]
		}
	}
	m.tops = append(m.tops, t)
	return value{n: uint64(len(m.tops) - 1), tag: tTop}
}
