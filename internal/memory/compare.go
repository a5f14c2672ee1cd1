package memory

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

const factImbalance = "snapshot.rank_imbalance"

// A Print is what is kept of a snapshot to compare it with another: its blocks in
// use, each known by its place and the stack that made it.
type Print struct {
	Artifact string
	Rank     *int
	Host     *string

	blocks   map[blockKey]int64
	stacks   map[uint64]*printed
	reserved int64
	active   int64
	time     int64 // of the last entry
}

type blockKey struct {
	addr  uint64
	stack uint64
}

type printed struct {
	name   string
	bytes  int64
	blocks int
}

// maxPrinted bounds the blocks that are kept of one snapshot.
const maxPrinted = 1 << 20

// PrintOf is the print of a snapshot.
func PrintOf(m *evidence.MemSnapshot, rank *int, host *string) *Print {
	p := &Print{Artifact: m.Artifact, Rank: rank, Host: host, blocks: map[blockKey]int64{}, stacks: map[uint64]*printed{}}
	st := newStacks(m)
	sums := make([]uint64, len(st.facts))
	for i := range m.Traces {
		if n := m.Traces[i].Len(); n > 0 {
			p.time = max(p.time, m.Traces[i].At(n-1).Time)
		}
	}
	for i := range m.Segments {
		s := &m.Segments[i]
		p.reserved += sane(s.Total)
		for n := range m.BlocksOf(s) {
			b := &m.Blocks[s.First+n]
			if b.State == evidence.BlockInactive {
				continue
			}
			stack := b.Stack
			if int(stack) >= len(sums) {
				stack = 0
			}
			if sums[stack] == 0 {
				sums[stack] = st.sum(stack)
			}
			size := requested(b)
			p.active += size
			x := p.stacks[sums[stack]]
			if x == nil {
				x = &printed{name: st.name(stack)}
				p.stacks[sums[stack]] = x
			}
			x.bytes += size
			x.blocks++
			if len(p.blocks) < maxPrinted {
				p.blocks[blockKey{b.Addr ^ uint64(s.Device)<<56, sums[stack]}] = size
			}
		}
	}
	return p
}

// sum tells stacks of different files apart by their frames.
func (s *stacks) sum(stack uint32) uint64 {
	h := fnv.New64a()
	for _, f := range s.frames(stack) {
		if int(f) < len(s.m.Frames) {
			x := &s.m.Frames[f]
			h.Write([]byte(x.Name))
			h.Write([]byte{0})
			h.Write([]byte(x.File))
			h.Write(strconv.AppendInt([]byte{0}, int64(x.Line), 10))
			h.Write([]byte{1})
		}
	}
	return max(h.Sum64(), 1)
}

// same reports whether two names that may be missing are equal: both missing, or the same.
func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// oneProcess reports whether two snapshots are of one process, as far as they tell:
// half of the blocks of the smaller one lie in the other at the same address, made
// by the same stack with the same size, and no name says that they are of two ranks.
func oneProcess(a, b *Print) bool {
	if !same(a.Rank, b.Rank) || !same(a.Host, b.Host) {
		return false
	}
	if len(a.blocks) > len(b.blocks) {
		a, b = b, a
	}
	if len(a.blocks) == 0 {
		return false
	}
	both := 0
	for k, size := range a.blocks {
		if b.blocks[k] == size {
			both++
		}
	}
	return 2*both >= len(a.blocks)
}

// Change is what grew between snapshots of one process, from the first to the last
// of the largest group that there is; nil where none has two.
func Change(prints []*Print, top int) *incident.MemoryChange {
	var best []*Print
	grouped := make([]bool, len(prints))
	for i, p := range prints {
		if grouped[i] {
			continue
		}
		group := []*Print{p}
		for j := i + 1; j < len(prints); j++ {
			if !grouped[j] && oneProcess(p, prints[j]) {
				grouped[j] = true
				group = append(group, prints[j])
			}
		}
		if len(group) > max(len(best), 1) {
			best = group
		}
	}
	if best == nil {
		return nil
	}
	slices.SortStableFunc(best, func(a, b *Print) int { return cmp.Compare(a.time, b.time) })
	from, to := best[0], best[len(best)-1]
	c := &incident.MemoryChange{From: from.Artifact, To: to.Artifact, Reserved: to.reserved - from.reserved, Active: to.active - from.active}
	grown, shrunk := map[string]*share{}, map[string]*share{}
	diff := func(name string, bytes int64, blocks int) {
		switch {
		case bytes > 0:
			grown[name] = &share{bytes: bytes, blocks: blocks}
		case bytes < 0:
			shrunk[name] = &share{bytes: -bytes, blocks: -blocks}
		}
	}
	byName := map[string]*printed{}
	add := func(of map[uint64]*printed, sign int) {
		for _, x := range of {
			n := byName[x.name]
			if n == nil {
				n = &printed{name: x.name}
				byName[x.name] = n
			}
			n.bytes += int64(sign) * x.bytes
			n.blocks += sign * x.blocks
		}
	}
	add(from.stacks, -1)
	add(to.stacks, 1)
	for name, n := range byName {
		diff(name, n.bytes, n.blocks)
	}
	use := func(name string, s *share) incident.MemoryUse {
		return incident.MemoryUse{Name: name, Bytes: s.bytes, Blocks: s.blocks}
	}
	c.Grown, c.Shrunk = uses(grown, top, use), uses(shrunk, top, use)
	return c
}

// Ranks sets snapshots side by side; nil for fewer than two rows.
func Ranks(snaps []incident.MemorySnapshot) *incident.MemoryRanks {
	r := &incident.MemoryRanks{Rows: []incident.MemoryRank{}, Differs: []incident.Statement{}}
	var devices []*incident.MemoryDevice
	for i := range snaps {
		s := &snaps[i]
		for n := range s.Devices {
			d := &s.Devices[n]
			row := incident.MemoryRank{Artifact: s.Artifact, Rank: s.Rank, Host: s.Host, Device: d.Device, Reserved: d.Totals.Reserved, Active: d.Totals.Active, OOMs: len(d.Pressure.OOMs)}
			if d.Peak != nil {
				row.Peak = d.Peak.Active
				row.Reserved = max(d.Pressure.Reserved, row.Reserved)
				if len(d.Peak.Frames) > 0 {
					row.Largest = d.Peak.Frames[0].Name
				}
			}
			r.Rows, devices = append(r.Rows, row), append(devices, d)
		}
	}
	if len(r.Rows) < 2 {
		return nil
	}
	differ(r, devices)
	return r
}

// differ says which rows stand out by their peaks, and by what. Only histories are
// compared: what is alive at the end depends on when a snapshot was taken.
func differ(r *incident.MemoryRanks, devices []*incident.MemoryDevice) {
	var with []int
	for i := range r.Rows {
		if devices[i].Peak != nil {
			with = append(with, i)
		}
	}
	if len(with) < 2 {
		return
	}
	slices.SortStableFunc(with, func(a, b int) int { return cmp.Compare(r.Rows[a].Peak, r.Rows[b].Peak) })
	typical := with[(len(with)-1)/2]
	least, most := with[0], with[len(with)-1]
	usual := r.Rows[typical].Peak
	for i := len(with) - 1; i >= 0 && len(r.Differs) < maxDiffering; i-- {
		row := &r.Rows[with[i]]
		if 5*row.Peak <= 6*usual {
			break
		}
		text := fmt.Sprintf("%s peaks at %s, %s more than %s", who(row), evidence.Bytes(row.Peak), evidence.Bytes(row.Peak-usual), who(&r.Rows[typical]))
		if name, more := excess(devices[with[i]].Peak, devices[typical].Peak); more > 0 {
			by := "by " + name
			if name == noStack || strings.HasPrefix(name, olderNoStack) {
				by = name
			}
			text += fmt.Sprintf("; most of it %s, %s more", by, evidence.Bytes(more))
		}
		r.Differs = append(r.Differs, incident.Statement{Text: text, Spans: append([]evidence.Span{}, devices[with[i]].Peak.Spans...)})
	}
	low, high := r.Rows[least].Peak, r.Rows[most].Peak
	ranked := 0
	for _, i := range with {
		if r.Rows[i].Rank != nil {
			ranked++
		}
	}
	if ranked < len(with) {
		return // whether they are ranks of one job is not known
	}
	why := fmt.Sprintf("%s peaks at %s, %s at %s", who(&r.Rows[most]), evidence.Bytes(high), who(&r.Rows[least]), evidence.Bytes(low))
	spans := append(append([]evidence.Span{}, devices[most].Peak.Spans...), devices[least].Peak.Spans...)
	bytes := high - low
	switch {
	case 4*high >= 5*usual && high > low:
		r.Cause = &incident.MemoryCause{Fact: factImbalance, Value: true, Bytes: &bytes, Why: why, Spans: spans}
	case 20*(high-low) <= high:
		r.Cause = &incident.MemoryCause{Fact: factImbalance, Value: false, Bytes: &bytes, Why: why, Spans: spans}
	}
}

const maxDiffering = 20

// excess is the place that has most more at one peak than at another.
func excess(a, b *incident.MemoryPeak) (string, int64) {
	has := map[string]int64{}
	for _, u := range b.Frames {
		has[u.Name] = u.Bytes
	}
	name, most := "", int64(0)
	for _, u := range a.Frames {
		if more := u.Bytes - has[u.Name]; more > most {
			name, most = u.Name, more
		}
	}
	return name, most
}

// who names a row: by its rank where one is known, else by its file.
func who(r *incident.MemoryRank) string {
	name := r.Artifact
	if r.Rank != nil {
		name = "rank " + strconv.Itoa(*r.Rank)
		if r.Host != nil {
			name += " on " + *r.Host
		}
	}
	return name + ", GPU " + strconv.Itoa(r.Device)
}
