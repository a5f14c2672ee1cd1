package allocmodel

import (
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// The values of a pickle. What is the same pointer is the same object.
type (
	dict struct {
		keys []*text
		vals []any
	}
	list  struct{ items []any }
	tuple struct{ items []any }
	text  struct{ s string }
)

func (d *dict) set(k *text, v any) {
	d.keys = append(d.keys, k)
	d.vals = append(d.vals, v)
}

// A composer makes the tree of a snapshot. Strings that the producer makes once, such as keys, are one
// object; those that it makes anew for each frame are many.
type composer struct {
	s      *evidence.MemSnapshot
	words  map[string]*text
	frames []*dict
	stacks []*list
	none   *list // the stack of whatever has none
}

func (c *composer) word(s string) *text {
	t := c.words[s]
	if t == nil {
		t = &text{s}
		c.words[s] = t
	}
	return t
}

func compose(s *evidence.MemSnapshot) any {
	c := &composer{s: s, words: map[string]*text{}, none: &list{}}
	for _, f := range s.Frames {
		d := &dict{}
		d.set(c.word("name"), &text{f.Name})
		d.set(c.word("filename"), &text{f.File})
		d.set(c.word("line"), int64(f.Line))
		c.frames = append(c.frames, d)
	}
	for _, st := range s.Stacks {
		l := &list{}
		for _, f := range st {
			l.items = append(l.items, c.frames[f])
		}
		c.stacks = append(c.stacks, l)
	}
	segs := &list{}
	for i := range s.Segments {
		segs.items = append(segs.items, c.segment(&s.Segments[i]))
	}
	if s.Form == "segments" {
		return segs
	}
	top := &dict{}
	top.set(c.word("segments"), segs)
	if len(s.Traces) > 0 {
		traces := &list{}
		for d := range s.Traces {
			one := &list{}
			for _, e := range s.Traces[d].All() {
				one.items = append(one.items, c.event(e))
			}
			traces.items = append(traces.items, one)
		}
		top.set(c.word("device_traces"), traces)
	}
	if s.Has.Settings {
		top.set(c.word("allocator_settings"), c.settings())
	}
	if s.Has.Annotations {
		l := &list{}
		for _, a := range s.Annotations {
			d := &dict{}
			d.set(c.word("name"), &text{a.Name})
			stage := "END"
			if a.Start {
				stage = "START"
			}
			d.set(c.word("stage"), c.word(stage))
			d.set(c.word("device"), int64(a.Device))
			d.set(c.word("time_us"), a.Time)
			l.items = append(l.items, d)
		}
		top.set(c.word("external_annotations"), l)
	}
	return top
}

func (c *composer) stack(i uint32) *list {
	if i == 0 {
		return c.none
	}
	return c.stacks[i]
}

func (c *composer) segment(s *evidence.MemSegment) *dict {
	d := &dict{}
	d.set(c.word("device"), int64(s.Device))
	d.set(c.word("address"), s.Addr)
	d.set(c.word("total_size"), s.Total)
	d.set(c.word("allocated_size"), s.Allocated)
	d.set(c.word("active_size"), s.Active)
	if c.s.Has.Requested {
		d.set(c.word("requested_size"), s.Requested)
	}
	d.set(c.word("stream"), c.s.Streams[s.Stream])
	class := "large"
	if s.Small {
		class = "small"
	}
	d.set(c.word("segment_type"), c.word(class))
	if c.s.Has.SegmentPools {
		id := c.s.Pools[s.Pool]
		d.set(c.word("segment_pool_id"), &tuple{[]any{id[0], id[1]}})
	}
	if c.s.Has.Expandable {
		d.set(c.word("is_expandable"), s.Expandable)
		d.set(c.word("frames"), c.stack(s.Stack))
	}
	blocks := &list{}
	for _, b := range c.s.BlocksOf(s) {
		blocks.items = append(blocks.items, c.block(&b))
	}
	d.set(c.word("blocks"), blocks)
	return d
}

func (c *composer) block(b *evidence.MemBlock) *dict {
	d := &dict{}
	if c.s.Has.BlockAddr {
		d.set(c.word("address"), b.Addr)
	}
	d.set(c.word("size"), b.Size)
	if c.s.Has.Requested {
		d.set(c.word("requested_size"), b.Requested)
	}
	d.set(c.word("state"), c.word([...]string{"inactive", "active_allocated", "active_pending_free"}[b.State]))
	if c.s.Has.BlockFrames {
		d.set(c.word("frames"), c.stack(b.Stack))
	}
	return d
}

func (c *composer) event(e *evidence.MemEvent) *dict {
	d := &dict{}
	d.set(c.word("action"), c.word(e.Action.String()))
	if e.Action == evidence.MemOOM {
		d.set(c.word("device_free"), e.Addr)
	} else {
		d.set(c.word("addr"), e.Addr)
	}
	d.set(c.word("size"), e.Size)
	d.set(c.word("stream"), c.s.Streams[e.Stream])
	if c.s.Has.Times {
		d.set(c.word("time_us"), e.Time)
	}
	if n := c.s.Notes[e.Note]; n != (evidence.MemNote{}) {
		if n.Category != "" {
			d.set(c.word("category"), c.word(n.Category))
		}
		if n.Context != "" {
			d.set(c.word("compile_context"), &text{n.Context})
		}
		if n.User != "" {
			d.set(c.word("user_metadata"), &text{n.User})
		}
	}
	if c.s.Has.EventPools {
		id := c.s.Pools[e.Pool]
		d.set(c.word("pool_id"), &tuple{[]any{id[0], id[1]}})
	}
	if e.Stack != 0 {
		d.set(c.word("frames"), c.stack(e.Stack))
	}
	return d
}

func (c *composer) settings() *dict {
	m := c.s.Settings
	d := &dict{}
	d.set(c.word("PYTORCH_CUDA_ALLOC_CONF"), &text{m.Conf})
	d.set(c.word("max_split_size"), m.MaxSplit)
	d.set(c.word("garbage_collection_threshold"), m.GCThreshold)
	d.set(c.word("expandable_segments"), m.Expandable)
	d.set(c.word("pinned_num_register_threads"), int64(1))
	d.set(c.word("release_lock_on_cudamalloc"), false)
	d.set(c.word("pinned_use_cuda_host_register"), false)
	r := &dict{}
	for i, v := range m.Roundup {
		r.set(&text{strconv.Itoa(1 << i)}, v)
	}
	d.set(c.word("roundup_power2_divisions"), r)
	return d
}
