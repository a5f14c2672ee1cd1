package memsnap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A result is a snapshot with what only its reader wants to know of it.
type result struct {
	*evidence.MemSnapshot
	first map[int]int64 // of each device, where in the pickle its first segment or entry ends
	ooms  []place       // in the order of the file
	end   int64         // behind what was read of the pickle
	cut   bool          // it ends before its STOP, or at an opcode that is refused
	html  bool          // the pickle stands as base64 in the artifact
	start int64         // where
	more  int           // snapshots that follow in the artifact
}

// A place is an entry of a trace and where it ends.
type place struct {
	device, index int
	offset        int64
}

// assemble makes the snapshot of the outermost value. It is nil if that is none.
func (m *machine) assemble(v value, whole bool) *result {
	t := top{segments: value{tag: tOther}}
	form := "dict"
	switch {
	case v.tag == tTop:
		t = m.tops[v.n]
	case v.tag == tSegments, v.tag == tList && whole:
		t.segments, form = v, "segments"
	default:
		return nil
	}
	s := &evidence.MemSnapshot{Form: form, Has: m.has, Stacks: m.stacks.list, Streams: m.streams, Pools: m.pools}
	r := &result{MemSnapshot: s, first: map[int]int64{}}
	s.Frames = make([]evidence.MemFrame, len(m.frames))
	for i, f := range m.frames {
		s.Frames[i] = profiled(evidence.MemFrame{Name: m.texts.list[f.name], File: m.texts.list[f.file], Line: int(f.line)})
	}
	s.Notes = make([]evidence.MemNote, len(m.notes))
	for i, n := range m.notes {
		s.Notes[i] = evidence.MemNote{Category: m.texts.list[n.category], Context: m.texts.list[n.context], User: m.texts.list[n.user]}
	}
	if t.settings.tag == tSettings {
		s.Settings = m.settings[t.settings.n]
		s.Has.Settings = true
	}
	if t.marks.tag == tMarks {
		for _, i := range m.lists[t.marks.n] {
			a := m.annotations[i].MemAnnotation
			a.Name = m.texts.list[m.annotations[i].name]
			s.Annotations = append(s.Annotations, a)
		}
	}
	s.Has.Annotations = t.marks.tag == tMarks || t.marks.tag == tList
	if t.traces.tag == tTraces {
		m.assembleTraces(r, m.lists[t.traces.n])
	}
	if t.segments.tag == tSegments {
		m.assembleSegments(r, m.lists[t.segments.n])
	}
	m.tell(s)
	return r
}

// assembleTraces puts the lists of entries in their places.
func (m *machine) assembleTraces(r *result, ids []int32) {
	if len(ids) > maxDevices {
		m.over.devices += int64(len(ids) - maxDevices)
		ids = ids[:maxDevices]
	}
	at, shared := map[*trace]int{}, 0
	r.Traces = make([]evidence.MemTrace, len(ids))
	for d, id := range ids {
		if id < -1 {
			v := unpack(m.memo.get(uint32(-2-id)), noSlot)
			if v.tag != tTrace {
				continue
			}
			id = int32(v.n)
		}
		if id < 0 {
			continue
		}
		t := m.traces[id]
		if _, ok := at[t]; ok {
			if shared += t.Len(); shared > aliases { // each is gone through as if it were another
				m.over.sharers++
				continue
			}
		}
		r.Traces[d] = t.MemTrace
		r.Has.Traces = r.Has.Traces || t.Len() > 1
		if t.Len() > 0 {
			r.first[d] = t.first
		}
		if _, ok := at[t]; !ok {
			at[t] = d
		}
	}
	for _, o := range m.ooms {
		t, i := m.where(o.number)
		if d, ok := at[t]; ok && t != nil {
			r.ooms = append(r.ooms, place{d, i, o.offset})
		}
	}
}

// assembleSegments sorts the segments and lays their blocks behind one another.
func (m *machine) assembleSegments(r *result, ids []int32) {
	list := make([]*segment, 0, len(ids))
	for _, id := range ids {
		g := &m.segments[id]
		if g.Device < 0 || g.Device >= maxDevices {
			m.over.devices++
			continue
		}
		list = append(list, g)
		if at, ok := r.first[g.Device]; !ok || g.end < at {
			r.first[g.Device] = g.end
		}
	}
	slices.SortStableFunc(list, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr))
	})
	most := int64(m.blocks.n) + aliases
	n, inPlace := int64(0), len(m.blocks.chunks) == 0
	for _, g := range list {
		for _, x := range m.rangesOf(g) {
			inPlace = inPlace && int64(x.first) == n
			n += int64(x.n)
		}
	}
	r.Segments = make([]evidence.MemSegment, 0, len(list))
	if inPlace {
		r.Blocks = m.blocks.flat[:0] // laying writes each over itself
	} else {
		r.Blocks = make([]evidence.MemBlock, 0, min(n, most))
	}
	for _, g := range list {
		s := g.MemSegment
		s.First = len(r.Blocks)
		if k := m.blocksIn(g); int64(len(r.Blocks))+k > most {
			m.over.blocks += k
		} else {
			m.lay(r.MemSnapshot, g)
		}
		s.N = len(r.Blocks) - s.First
		r.Segments = append(r.Segments, s)
	}
}

func (m *machine) rangesOf(g *segment) []blockRange {
	if g.blocks == noBlocks {
		return nil
	}
	return m.ranges[g.blocks]
}

func (m *machine) blocksIn(g *segment) (n int64) {
	for _, x := range m.rangesOf(g) {
		n += int64(x.n)
	}
	return n
}

// lay appends the blocks of g. One that does not state its address lies behind the one
// before it.
func (m *machine) lay(s *evidence.MemSnapshot, g *segment) {
	from, next := len(s.Blocks), g.Addr
	for _, x := range m.rangesOf(g) {
		for i := range x.n {
			b := *m.blocks.at(x.first + i)
			if b.State&placed == 0 {
				b.Addr = next
			}
			b.State &^= placed
			next = b.Addr + uint64(b.Size)
			s.Blocks = append(s.Blocks, b)
		}
	}
	byAddr := func(a, b evidence.MemBlock) int { return cmp.Compare(a.Addr, b.Addr) }
	if blocks := s.Blocks[from:]; !slices.IsSortedFunc(blocks, byAddr) {
		slices.SortStableFunc(blocks, byAddr)
	}
}

// tell says what was over a limit, or of another shape than a snapshot's.
func (m *machine) tell(s *evidence.MemSnapshot) {
	say := func(n int64, what string) {
		if n > 0 {
			s.Damage = append(s.Damage, evidence.SnapDamage{Offset: m.sc.Offset(), Text: fmt.Sprintf("%d %s", n, what)})
		}
	}
	say(m.over.events, "entries are over the limit and left out")
	say(m.over.segments, "segments are over the limit and left out")
	say(m.over.blocks, "blocks are over the limit and left out")
	say(m.over.frames, "functions of stacks are over the limit and left out")
	say(m.over.stacks, "stacks are over the limit and left out")
	say(m.over.notes, "notes of entries are over the limit and left out")
	say(m.over.streams, "streams are over the limit and taken for one")
	say(m.over.pools, "pools are over the limit and taken for one")
	say(m.over.marks, "annotations are over the limit and left out")
	say(m.over.ooms, "entries of refused requests are over the limit and no events of their own; the newest is one")
	say(m.over.devices, "segments or traces are of no device from 0 to 1023 and left out")
	say(m.over.sharers, "traces are the list of another device over again, over the limit, and left out")
	say(m.over.boxes, "numbers that are shared are over the limit and left out")
	say(m.strays, "items of lists are of another sort than their list and left out")
	say(m.late, "objects are filled on after they were complete; what came late is left out")
}

// profiled takes a frame of a profile apart (torch/cuda/_memory_viz.py, _profile_to_snapshot): its
// name is "FILE(LINE): FUNCTION", and its file "none". Other names of a profile, such as those of
// functions in C, have no file.
func profiled(f evidence.MemFrame) evidence.MemFrame {
	if f.File != "none" || f.Line != 0 {
		return f
	}
	f.File = ""
	place, name, ok := strings.Cut(f.Name, "): ")
	if !ok {
		return f
	}
	at := strings.LastIndexByte(place, '(')
	if at <= 0 {
		return f
	}
	line, err := strconv.ParseUint(place[at+1:], 10, 31)
	if err != nil {
		return f
	}
	return evidence.MemFrame{Name: name, File: place[:at], Line: int(line)}
}
