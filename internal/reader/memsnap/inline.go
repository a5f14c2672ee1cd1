package memsnap

import (
	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// Where nothing is shared, a list of frames holds their dicts, and the same list is the same bytes
// each time it is said. A tree has the lists that the general way has read: an edge is the dict of a
// frame, whose bytes are compared, a node the frames so far. A list that leads to a node at
// which one has ended is that stack, without its frames being looked at one by one.
type tree struct {
	nodes []node   // the first is the root
	heads []uint32 // by run: the node behind the root that it leads to
	more  table    // nodes that are not the first of their parent, by parent and run
	runOf []uint32 // by frame: 1 + the run that its dict was last
}

type node struct {
	run   uint32 // of the edge to it, in dicts
	up    uint32 // the node before it
	first uint32 // the node first made after it, 0 if none was
	stack uint32 // that ends here, 0 if none does
}

const maxNodes = 1 << 20

// forget drops all lists: what their dicts name may be another string now.
func (t *tree) forget() { *t = tree{} }

// known records that the dict of a frame is a run.
func (t *tree) known(frame, run uint32) {
	for int(frame) >= len(t.runOf) {
		t.runOf = append(t.runOf, make([]uint32, max(256, len(t.runOf)))...)
	}
	t.runOf[frame] = run + 1
}

// after is the node behind node i that a run leads to, 0 if there is none.
func (t *tree) after(i, run uint32, seed uint64) uint32 {
	if i == 0 {
		if int(run) < len(t.heads) {
			return t.heads[run]
		}
		return 0
	}
	if f := t.nodes[i].first; f == 0 || t.nodes[f].run == run {
		return f
	}
	id, _ := t.more.find(mix(seed, uint64(i), uint64(run)), func(id uint32) bool {
		n := &t.nodes[id]
		return n.run == run && n.up == i
	})
	return id
}

// teach enters a list of frames, which is stack id, if all of them were dicts in it.
func (m *machine) teach(items []value, id uint32) {
	t := &m.tree
	if len(t.runOf) == 0 || id == 0 || len(t.nodes)+len(items) > maxNodes {
		return
	}
	for k := range items {
		v := &items[k]
		if v.tag != tFrame || v.slot != items[0].slot+3*uint32(k) || int(v.n) >= len(t.runOf) || t.runOf[v.n] == 0 {
			return
		}
	}
	if len(t.nodes) == 0 {
		t.nodes = make([]node, 1, 1024)
	}
	at := uint32(0)
	for k := range items {
		run := t.runOf[items[k].n] - 1
		next := t.after(at, run, m.mixer)
		if next == 0 {
			next = t.grow(at, run, m.mixer)
		}
		at = next
	}
	t.nodes[at].stack = id
}

// grow makes the node behind node i that a run leads to.
func (t *tree) grow(i, run uint32, seed uint64) uint32 {
	next := uint32(len(t.nodes))
	t.nodes = append(t.nodes, node{run: run, up: i})
	if t.nodes[i].first == 0 {
		t.nodes[i].first = next
	}
	switch {
	case i == 0:
		for int(run) >= len(t.heads) {
			t.heads = append(t.heads, make([]uint32, max(256, len(t.heads)))...)
		}
		t.heads[run] = next
	case t.nodes[i].first != next:
		t.more.add(mix(seed, uint64(i), uint64(run)), next)
	}
	return next
}

// dictList finds the list whose items, MARK read, begin w, if it is one of the tree: its stack
// and how many bytes it takes with APPENDS, or 0. Nothing is changed.
func (m *machine) dictList(w []byte) (stack uint32, end int) {
	t := &m.tree
	if len(t.nodes) == 0 {
		return 0, 0
	}
	at, i := uint32(0), 0
	for len(w)-i >= 2*pairsMin {
		if w[i] != byte(pickle.EmptyDict) {
			if w[i] != byte(pickle.Appends) || t.nodes[at].stack == 0 {
				return 0, 0
			}
			return t.nodes[at].stack, i + 1
		}
		next := t.nodes[at].first
		if next == 0 {
			return 0, 0
		}
		x := &m.dicts.list[t.nodes[next].run]
		if raw := m.dicts.bytesOf(x); len(w)-i < len(raw) || string(w[i:i+len(raw)]) != string(raw) {
			if next, x = m.branch(at, w[i:]); next == 0 {
				return 0, 0
			}
		}
		at, i = next, i+int(x.n)
	}
	return 0, 0
}

// branch is the node behind node at that the dict at the beginning of w leads to, and that dict.
func (m *machine) branch(at uint32, w []byte) (uint32, *run) {
	d := frameShape(w)
	if d.end == 0 {
		return 0, nil
	}
	r, ok := m.dictOf(w, d)
	if !ok {
		return 0, nil
	}
	return m.tree.after(at, r, m.mixer), &m.dicts.list[r]
}
