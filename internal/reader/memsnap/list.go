package memsnap

import (
	"errors"
	"sort"

	"github.com/inquest-dev/inquest/internal/evidence"
)

var errNoList = errors.New("the value below is no list")

// extend adds items to the list at l. What a list is, its first item decides that means
// something here; items of another sort are passed over and counted.
func (m *machine) extend(l *value, items []value) error {
	if len(items) == 0 && isList(*l) {
		return nil
	}
	m.ripenAll(items)
	switch l.tag {
	case tList:
		return m.begin(l, items)
	case tStack:
		m.grow(l, items)
	case tTrace:
		m.addEvents(m.traces[l.n], items)
	case tTraces, tSegments, tMarks:
		m.addRefs(l, items)
	case tBlocks:
		m.addBlocks(uint32(l.n), items)
	case tSolo:
		if len(items) == 1 {
			m.become(l, m.pair(m.solos[l.n], items[0]))
		} else {
			m.become(l, value{tag: tOther})
		}
	case tPair: // three numbers and more are no pair
		m.become(l, value{tag: tOther})
	case tHistory, tOther:
	default:
		return errNoList
	}
	return nil
}

// begin decides what the empty list at l becomes with items.
func (m *machine) begin(l *value, items []value) error {
	for _, v := range items {
		switch v.tag {
		case tFrame:
			id := m.stackFrom(nil, items)
			m.become(l, value{tag: tStack, n: uint64(id)})
			m.teach(items, id)
		case tEvent:
			if len(m.traces) >= maxSegments {
				m.over.events++
				return nil
			}
			m.traces = append(m.traces, &trace{})
			m.blocks.join()
			m.become(l, value{tag: tTrace, n: uint64(len(m.traces) - 1)})
			m.addEvents(m.traces[l.n], items)
		case tBlock:
			if len(m.ranges) >= maxSegments {
				m.over.blocks++
				return nil
			}
			m.ranges = append(m.ranges, nil)
			m.become(l, value{tag: tBlocks, n: uint64(len(m.ranges) - 1)})
			m.addBlocks(uint32(l.n), items)
		case tList, tTrace, tSegment, tMark:
			if len(m.lists) >= maxSegments {
				m.over.segments++
				return nil
			}
			m.lists = append(m.lists, nil)
			of := map[tag]tag{tList: tTraces, tTrace: tTraces, tSegment: tSegments, tMark: tMarks}[v.tag]
			m.become(l, value{tag: of, n: uint64(len(m.lists) - 1)})
			m.addRefs(l, items)
		case tPast:
			m.become(l, value{tag: tHistory, n: v.n})
		case tInt, tUint:
			switch {
			case len(items) == 2:
				m.become(l, m.pair(items[0], items[1]))
			case len(items) == 1 && len(m.solos) < maxPairs:
				m.solos = append(m.solos, v)
				m.become(l, value{tag: tSolo, n: uint64(len(m.solos) - 1)})
			default:
				m.become(l, value{tag: tOther})
			}
		default:
			continue
		}
		return nil
	}
	return nil
}

// stackFrom is the stack of the frames in first and then those among items.
func (m *machine) stackFrom(first []uint32, items []value) uint32 {
	m.ids = append(m.ids[:0], first...)
	for _, v := range items {
		if v.tag != tFrame {
			m.strays++
			continue
		}
		m.ids = append(m.ids, uint32(v.n))
	}
	return m.intern(m.ids)
}

// intern is the stack of frames. One whose frames cannot all be kept is no stack.
func (m *machine) intern(frames []uint32) uint32 {
	if len(m.stacks.list) >= maxStacks || m.stacks.words+int64(len(frames)) > m.at+slack {
		m.over.stacks++
		return 0
	}
	return m.stacks.id(m.mixer, frames)
}

// grow adds frames to the stack that the list at l has become.
func (m *machine) grow(l *value, items []value) {
	if id := m.stackFrom(m.stacks.list[l.n], items); id != 0 {
		m.become(l, value{tag: tStack, n: uint64(id)})
	}
}

// A trace is a list of events. Spans tell where those that were made for it stand, should
// the pickle refer to one again.
type trace struct {
	evidence.MemTrace
	first int64 // offset of its first event
}

// A span is where events that were made one after the other stand.
type span struct {
	number uint32 // of the first
	n      uint32
	trace  *trace
	index  int
}

// addEvents appends the events among items to t.
func (m *machine) addEvents(t *trace, items []value) {
	least := len(m.pend)
	for _, v := range items {
		if v.tag != tEvent {
			m.strays++
			continue
		}
		if t.Len() == 0 {
			t.first = m.at
		}
		n := uint32(v.n)
		if at := m.pendingAt(n); at >= 0 {
			least = min(least, at)
			m.placed(n, t)
			t.Append(m.pend[at].MemEvent)
		} else if e := m.again(n); e != nil {
			t.Append(*e)
		} else {
			m.strays++
		}
	}
	m.pend = m.pend[:least]
}

// pendingAt is where among the pending events number n stands, -1 if nowhere.
func (m *machine) pendingAt(n uint32) int {
	if last := len(m.pend) - 1; last >= 0 && m.pend[last].number == n {
		return last
	}
	i := sort.Search(len(m.pend), func(i int) bool { return m.pend[i].number >= n })
	if i < len(m.pend) && m.pend[i].number == n {
		return i
	}
	return -1
}

// placed records that event n is the next of t.
func (m *machine) placed(n uint32, t *trace) {
	if k := len(m.spans); k > 0 {
		s := &m.spans[k-1]
		if s.trace == t && s.number+s.n == n && s.index+int(s.n) == t.Len() {
			s.n++
			return
		}
		if n < s.number+s.n {
			return // out of order: who refers to it again finds nothing
		}
	}
	m.spans = append(m.spans, span{n, 1, t, t.Len()})
}

// again is the event n, which stands in a list already.
func (m *machine) again(n uint32) *evidence.MemEvent {
	if t, i := m.where(n); t != nil {
		return t.At(i)
	}
	return nil
}

// addRefs adds to a list of lists, of segments or of annotations.
func (m *machine) addRefs(l *value, items []value) {
	for _, v := range items {
		ok := false
		switch l.tag {
		case tTraces:
			ok = v.tag == tTrace || v.tag == tList
		case tSegments:
			ok = v.tag == tSegment
		case tMarks:
			ok = v.tag == tMark
		}
		if !ok {
			m.strays++
			continue
		}
		id := int32(v.n)
		if v.tag == tList {
			id = -1
			if v.slot != noSlot {
				id = -2 - int32(min(v.slot, maxID)) // it may be filled later
			}
		}
		m.lists[l.n] = append(m.lists[l.n], id)
	}
}

// A blockRange are n blocks that were made one after the other.
type blockRange struct{ first, n uint32 }

// addBlocks adds the blocks among items to range list r.
func (m *machine) addBlocks(r uint32, items []value) {
	rs := m.ranges[r]
	for _, v := range items {
		if v.tag != tBlock {
			m.strays++
			continue
		}
		if k := len(rs); k > 0 && rs[k-1].first+rs[k-1].n == uint32(v.n) {
			rs[k-1].n++
			continue
		}
		rs = append(rs, blockRange{uint32(v.n), 1})
	}
	m.ranges[r] = rs
}

// where is the list and index of event n.
func (m *machine) where(n uint32) (*trace, int) {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].number > n }) - 1
	if i < 0 || n >= m.spans[i].number+m.spans[i].n {
		return nil, 0
	}
	s := &m.spans[i]
	return s.trace, s.index + int(n-s.number)
}
