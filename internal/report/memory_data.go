package report

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/incident"
)

// stackHues is how many stacks have a colour of their own in the timeline.
const stackHues = 10

// A column is numbers as zigzag varints; in JSON as base64.
type column []byte

func (c column) MarshalText() ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString(c)), nil
}

func (c *column) put(v int64) { *c = binary.AppendVarint(*c, v) }

// packed is what the page's script gets of one device. The script's data.js unpacks it.
type packed struct {
	Events int           `json:"events"`
	Per    int           `json:"per"` // events of the largest bucket
	Curve  packedCurve   `json:"curve"`
	Blocks packedBlocks  `json:"blocks"`
	Rest   int           `json:"rest"`
	Marks  []packedMark  `json:"marks"`
	MarksX int           `json:"marks_more"`
	Order  []int         `json:"order"` // stacks, by their colour
	Frames []string      `json:"frames"`
	Stacks []packedStack `json:"stacks"`
	Segs   []packedSeg   `json:"segs"`
	More   int           `json:"more"`
}

// packedCurve holds a value for each bucket. Each but the first column is of differences
// to the bucket before; life, high and peak differ from their own bucket's other value.
type packedCurve struct {
	From        column `json:"from"`
	Time        column `json:"time"`
	Peak        column `json:"peak"` // event of the peak less from, -1 where not known
	ActiveMin   column `json:"active_min"`
	Active      column `json:"active"` // highest less lowest
	ReservedMin column `json:"reserved_min"`
	Reserved    column `json:"reserved"`
}

type packedBlocks struct {
	From  column `json:"from"` // differences
	Life  column `json:"life"` // events that it lived, -1: to the end
	High  column `json:"high"` // upper 32 bits of the address, differences
	Low   column `json:"low"`
	Bytes column `json:"bytes"`
	Stack column `json:"stack"`
}

type packedMark struct {
	Event int    `json:"e"`
	Kind  string `json:"k"`
	Text  string `json:"t"`
}

type packedStack struct {
	Index  int    `json:"i"`
	Name   string `json:"name"`
	Frames []int  `json:"f"`
}

type packedSeg struct {
	Addr   string `json:"addr"`
	Where  string `json:"where"`
	Total  int64  `json:"total"`
	Stream string `json:"stream"`
	Pool   string `json:"pool"`
	Class  string `json:"class"`
	Expand bool   `json:"exp"`
	More   int    `json:"more"`  // blocks that are not in parts
	Parts  column `json:"parts"` // offset, size, state (0 free, 1 active, 2 pending, 3 other), stack of each block
}

// packDevice encodes the history and the segments of d for a page with so many devices.
func packDevice(d *memDevice, devices int) *packed {
	p := &packed{Marks: []packedMark{}, Order: []int{}, Frames: []string{}, Stacks: []packedStack{}, Segs: []packedSeg{}}
	used := map[int]bool{}
	if t := d.Timeline; t != nil {
		p.Events, p.Rest = t.Events, t.Rest
		p.packCurve(shrink(t.Buckets, max(pageBuckets/devices, 500)))
		blocks := largestBlocks(t.Blocks, max(pageBlocks/devices, 200))
		p.Rest += len(t.Blocks) - len(blocks)
		p.packBlocks(blocks)
		for i := range blocks {
			used[blocks[i].Stack] = true
		}
		p.MarksX = max(0, len(t.Marks)-marksShown)
		for _, m := range firstMarks(t.Marks, marksShown) {
			p.Marks = append(p.Marks, packedMark{m.Event, m.Kind, oneLine(m.Text)})
		}
	}
	p.packSegments(d, max(pageParts/devices, 200), used)
	p.packStacks(d, used)
	return p
}

func (p *packed) packCurve(buckets []incident.MemoryBucket) {
	c := &p.Curve
	var last incident.MemoryBucket
	for i := range buckets {
		b := &buckets[i]
		p.Per = max(p.Per, b.To-b.From)
		c.From.put(int64(b.From - last.From))
		c.Time.put(b.Time - last.Time)
		if inBucket(b) {
			c.Peak.put(int64(b.PeakAt - b.From))
		} else {
			c.Peak.put(-1)
		}
		c.ActiveMin.put(b.ActiveMin - last.ActiveMin)
		c.Active.put(b.ActiveMax - b.ActiveMin)
		c.ReservedMin.put(b.ReservedMin - last.ReservedMin)
		c.Reserved.put(b.ReservedMax - b.ReservedMin)
		last = *b
	}
}

// largestBlocks are at most n of blocks, in the order of their allocation.
func largestBlocks(blocks []incident.MemoryLife, n int) []incident.MemoryLife {
	out := slices.Clone(blocks)
	if len(out) > n {
		slices.SortStableFunc(out, func(a, b incident.MemoryLife) int { return cmp.Compare(b.Bytes, a.Bytes) })
		out = out[:n]
	}
	slices.SortStableFunc(out, func(a, b incident.MemoryLife) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Addr, b.Addr))
	})
	return out
}

func (p *packed) packBlocks(blocks []incident.MemoryLife) {
	c := &p.Blocks
	var from int
	var high int64
	for i := range blocks {
		b := &blocks[i]
		c.From.put(int64(b.From - from))
		if b.To < 0 {
			c.Life.put(-1)
		} else {
			c.Life.put(int64(max(b.To-b.From, 0)))
		}
		c.High.put(int64(b.Addr>>32) - high)
		c.Low.put(int64(b.Addr & 0xffffffff))
		c.Bytes.put(b.Bytes)
		c.Stack.put(int64(b.Stack))
		from, high = b.From, int64(b.Addr>>32)
	}
}

// firstMarks are at most n marks in the order of their events; failures come before
// all else.
func firstMarks(marks []incident.MemoryMark, n int) []incident.MemoryMark {
	out := slices.Clone(marks)
	if len(out) > n {
		slices.SortStableFunc(out, func(a, b incident.MemoryMark) int {
			return cmp.Compare(btoi(a.Kind != "oom"), btoi(b.Kind != "oom"))
		})
		out = out[:n]
	}
	slices.SortStableFunc(out, func(a, b incident.MemoryMark) int { return cmp.Compare(a.Event, b.Event) })
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *packed) packSegments(d *memDevice, parts int, used map[int]bool) {
	states := map[string]int64{"free": 0, "active": 1, "pending": 2}
	p.More = d.More
	for i := range d.Segments {
		s := &d.Segments[i]
		if parts -= len(s.Blocks); parts < 0 && i > 0 {
			p.More += len(d.Segments) - i
			return
		}
		g := packedSeg{Addr: fmt.Sprintf("0x%x", s.Addr), Where: placeWords(&s.Span), Total: s.Total, Stream: fmt.Sprint(s.Stream), Pool: oneLine(s.Pool), Class: oneLine(s.Class), Expand: s.Expandable, More: s.More + max(0, len(s.Blocks)-pageParts)}
		for _, b := range s.Blocks[:min(len(s.Blocks), pageParts)] {
			state, ok := states[b.State]
			if !ok {
				state = 3
			}
			g.Parts.put(b.Offset)
			g.Parts.put(b.Size)
			g.Parts.put(state)
			g.Parts.put(int64(b.Stack))
			used[b.Stack] = true
		}
		p.Segs = append(p.Segs, g)
	}
}

// packStacks writes the frames of all used stacks once. The largest of the timeline come
// first.
func (p *packed) packStacks(d *memDevice, used map[int]bool) {
	for s := range d.colour {
		p.Order = append(p.Order, s)
	}
	slices.SortFunc(p.Order, func(a, b int) int { return cmp.Compare(d.colour[a], d.colour[b]) })
	at := map[string]int{}
	put := func(i int) {
		s := d.StackOf(&i)
		if s == nil || !used[i] || len(p.Stacks) == pageStacks {
			return
		}
		used[i] = false
		out := packedStack{Index: i, Name: oneLine(d.names[i]), Frames: []int{}}
		for _, f := range d.Frames(s) {
			n, ok := at[f]
			if !ok {
				n = len(p.Frames)
				at[f] = n
				p.Frames = append(p.Frames, oneLine(f))
			}
			out.Frames = append(out.Frames, n)
		}
		p.Stacks = append(p.Stacks, out)
	}
	for _, i := range p.Order {
		put(i)
	}
	for i := range d.Stacks {
		put(i)
	}
}

// stackColours orders the stacks of the listed allocations: first those that held most
// at the peak, then by what they allocated in all.
func stackColours(d *incident.MemoryDevice) map[int]int {
	if d.Timeline == nil {
		return nil
	}
	peak := -2
	if d.Peak != nil {
		peak = d.Peak.Event
	}
	type weight struct {
		stack       int
		atPeak, all float64
	}
	at := map[int]*weight{}
	var list []*weight
	for i := range d.Timeline.Blocks {
		b := &d.Timeline.Blocks[i]
		w := at[b.Stack]
		if w == nil {
			w = &weight{stack: b.Stack}
			at[b.Stack] = w
			list = append(list, w)
		}
		w.all += float64(b.Bytes)
		if b.From <= peak && (b.To < 0 || b.To > peak) {
			w.atPeak += float64(b.Bytes)
		}
	}
	slices.SortFunc(list, func(a, b *weight) int {
		return cmp.Or(cmp.Compare(b.atPeak, a.atPeak), cmp.Compare(b.all, a.all), cmp.Compare(a.stack, b.stack))
	})
	out := map[int]int{}
	for i, w := range list {
		out[w.stack] = i
	}
	return out
}
