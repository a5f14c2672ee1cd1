package memory

// An element is one allocation that is alive.
type element struct {
	addr  uint64
	size  int64 // as asked for
	event int32 // of its alloc; before the trace: beforeTrace
	stack uint32
	note  uint32
}

const (
	beforeTrace int32 = -1
	vacant      int32 = -2
)

// A table holds the elements that are alive, by address: open addressing with
// linear probing, without tombstones, so that millions of allocations and frees
// leave it as fast as it was.
type table struct {
	slots []element
	n     int
	shift uint8
}

func newTable() *table {
	t := &table{}
	t.resize(6)
	return t
}

func (t *table) resize(bits uint8) {
	old := t.slots
	t.slots = make([]element, 1<<bits)
	t.shift = 64 - bits
	for i := range t.slots {
		t.slots[i].event = vacant
	}
	for i := range old {
		if old[i].event != vacant {
			t.slots[t.find(old[i].addr)] = old[i]
		}
	}
}

// find is the slot of addr, or the vacant one in which it would stand.
func (t *table) find(addr uint64) int {
	mask := len(t.slots) - 1
	i := int(addr * 0x9e3779b97f4a7c15 >> t.shift)
	for t.slots[i].event != vacant && t.slots[i].addr != addr {
		i = (i + 1) & mask
	}
	return i
}

// get returns the element at addr, nil where none is. It is valid until the next
// put or take.
func (t *table) get(addr uint64) *element {
	if e := &t.slots[t.find(addr)]; e.event != vacant {
		return e
	}
	return nil
}

// put adds e, and returns the element that it replaces, if there was one.
func (t *table) put(e element) (old element, replaced bool) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.resize(64 - t.shift + 1)
	}
	s := &t.slots[t.find(e.addr)]
	old, replaced = *s, s.event != vacant
	if !replaced {
		t.n++
	}
	*s = e
	return old, replaced
}

// take removes the element at addr.
func (t *table) take(addr uint64) (element, bool) {
	i := t.find(addr)
	e := t.slots[i]
	if e.event == vacant {
		return element{}, false
	}
	t.n--
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].event != vacant; j = (j + 1) & mask {
		home := int(t.slots[j].addr * 0x9e3779b97f4a7c15 >> t.shift)
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i].event = vacant
	return e, true
}

// all calls fn for every element, in no order that means anything.
func (t *table) all(fn func(*element)) {
	for i := range t.slots {
		if t.slots[i].event != vacant {
			fn(&t.slots[i])
		}
	}
}
