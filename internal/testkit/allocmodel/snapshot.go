package allocmodel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Program is what is run, with the stacks that its Ops name.
type Program struct {
	Ops    []Op
	Frames []evidence.MemFrame
	Stacks [][]uint32 // innermost first; 0 is empty
}

// handles are those of the streams that programs use, in no order.
var handles = [...]uint64{0, 0x55d0c0de30c0, 0x55d0c0de1040, 0x55d0c0de2080}

// Stream is the handle of the nth stream, 0 the default one.
func Stream(n int) uint64 { return handles[n] }

func streamIndex(handle uint64) uint16 { return uint16(slices.Index(handles[:], handle)) }

// Pool is the id of the nth pool, 0 the default one.
func Pool(n int) [2]int64 { return [2]int64{0, int64(n)} }

// SnapOptions say how a snapshot is taken.
type SnapOptions struct {
	Ring       int                  // max_entries; 0: all
	Skip       []evidence.MemAction // skip_actions
	EventPools bool                 // entries state their pool, as the newest builds do
	Old        bool                 // as of 2.0: no block addresses, no expandable, no times, no block frames
}

// Snapshot is what torch.cuda.memory._snapshot() would return after r.
func (r *Run) Snapshot(p *Program, o SnapOptions) *evidence.MemSnapshot {
	s := &evidence.MemSnapshot{
		Form:     "dict",
		Segments: slices.Clone(r.Segments),
		Blocks:   slices.Clone(r.Blocks),
		Traces:   make([]evidence.MemTrace, r.Device.Index+1),
		Settings: evidence.MemSettings{
			Conf: r.Settings.Conf(), MaxSplit: r.Settings.MaxSplit, HasMaxSplit: true,
			GCThreshold: r.Settings.GCThreshold, HasThreshold: true,
			Expandable: r.Settings.Expandable, Roundup: r.Settings.Roundup,
		},
		Annotations: slices.Clone(r.Annotations),
		Stacks:      p.Stacks,
		Frames:      p.Frames,
		Notes:       []evidence.MemNote{{}},
	}
	s.Has = evidence.MemSections{Settings: !o.Old, Annotations: len(r.Annotations) > 0, BlockAddr: !o.Old, BlockFrames: !o.Old,
		Requested: true, Expandable: !o.Old, SegmentPools: !o.Old, EventPools: o.EventPools, Times: !o.Old}
	first := 0
	if o.Ring > 0 {
		kept := 0
		for first = len(r.Events); first > 0 && kept < o.Ring; first-- {
			if !slices.Contains(o.Skip, r.Events[first-1].Action) {
				kept++
			}
		}
	}
	streams, pools := 1, 1
	for _, e := range r.Events[first:] {
		if slices.Contains(o.Skip, e.Action) {
			continue
		}
		if !o.EventPools {
			e.Pool = 0
		}
		if o.Old {
			e.Time = 0
		}
		streams, pools = max(streams, int(e.Stream)+1), max(pools, int(e.Pool)+1)
		s.Traces[r.Device.Index].Append(e)
	}
	s.Has.Traces = s.Traces[r.Device.Index].Len() > 1
	for i := range s.Segments {
		streams, pools = max(streams, int(s.Segments[i].Stream)+1), max(pools, int(s.Segments[i].Pool)+1)
		if o.Old {
			s.Segments[i].Expandable, s.Segments[i].Stack, s.Segments[i].Pool = false, 0, 0
		}
	}
	if o.Old {
		for i := range s.Blocks {
			s.Blocks[i].Stack = 0
		}
		s.Settings = evidence.MemSettings{}
	}
	for i := range streams {
		s.Streams = append(s.Streams, Stream(i))
	}
	for i := range pools {
		s.Pools = append(s.Pools, Pool(i))
	}
	return s
}

// Conf is the settings as PYTORCH_CUDA_ALLOC_CONF states them.
func (s Settings) Conf() string { return s.Change(Default()) }

// Change is what PYTORCH_CUDA_ALLOC_CONF must say to turn from into s. Neither a limit for splits nor
// a threshold can be taken back so.
func (s Settings) Change(from Settings) string {
	var parts []string
	if s.Expandable != from.Expandable {
		word := "False"
		if s.Expandable {
			word = "True"
		}
		parts = append(parts, "expandable_segments:"+word)
	}
	if s.MaxSplit != from.MaxSplit {
		parts = append(parts, fmt.Sprintf("max_split_size_mb:%d", s.MaxSplit>>20))
	}
	if s.GCThreshold != from.GCThreshold {
		parts = append(parts, fmt.Sprintf("garbage_collection_threshold:%g", s.GCThreshold))
	}
	if s.Roundup != from.Roundup {
		var list []string
		for i, d := range s.Roundup[:15] {
			list = append(list, fmt.Sprintf("%d:%d", 1<<i, d))
		}
		list = append(list, fmt.Sprintf(">:%d", s.Roundup[15]))
		parts = append(parts, "roundup_power2_divisions:["+strings.Join(list, ",")+"]")
	}
	return strings.Join(parts, ",")
}
