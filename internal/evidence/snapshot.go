package evidence

import "iter"

// A MemSnapshot is what PyTorch's caching allocator recorded of itself: what it
// holds, and how it came to that (torch.cuda.memory._snapshot, its C++ writer
// torch/csrc/cuda/memory_snapshot.cpp). Keys that a version does not write leave
// zero values; Has says which sections there were.
//
// Names of functions and files are as recorded: hostile text, to be cleaned where
// it is shown.
type MemSnapshot struct {
	Artifact string
	Form     string // "dict", "segments" (list of segments only), "trace_plot" (inside its HTML), "timeline"
	Has      MemSections

	// Segments are sorted by device, then address; Blocks tile them in order.
	Segments []MemSegment
	Blocks   []MemBlock
	// Traces[d] is the history of device d, oldest first: the order of what
	// happened is the order of the list, never that of its times.
	Traces []MemTrace

	Settings    MemSettings
	Annotations []MemAnnotation

	// Stacks[i] are the frames of stack i, innermost first, as indices of Frames.
	// Stack 0 is empty: none was captured.
	Stacks  [][]uint32
	Frames  []MemFrame
	Streams []uint64     // Streams[i] is the raw handle of stream i; stream 0 is handle 0, the default
	Pools   [][2]int64   // Pools[i] is the id of pool i; pool 0 is (0,0), the default pools
	Notes   []MemNote    // Notes[0] is empty
	Damage  []SnapDamage // what could not be read; what could is above
	Cut     bool         // the file breaks off, or was given up: there was more

	// Timeline is what a file of the form "timeline" holds, which has nothing of the above;
	// nil otherwise.
	Timeline *MemTimeline
}

// MemSections says which sections a snapshot has and how far they go.
type MemSections struct {
	Traces       bool // device_traces, at least one with more than one event
	Settings     bool
	Annotations  bool
	BlockAddr    bool // blocks state their address (2.1 and newer); else it was added up
	BlockFrames  bool // blocks state their stack
	Requested    bool // blocks state what was asked for (2.0 and newer)
	Expandable   bool // segments say whether they are expandable (2.1 and newer)
	SegmentPools bool
	EventPools   bool // trace entries state their pool
	Times        bool
	Overflowed   bool // the file itself says that older entries were lost
	Profile      bool // made of a profile (profile_plot): its segments are ranges of addresses, not the allocator's
}

// A SnapDamage is a part that could not be read.
type SnapDamage struct {
	Offset int64 // in the pickle
	Text   string
}

// A MemSegment is one range that the allocator has from the driver: a cudaMalloc,
// or one mapped run of an expandable segment.
type MemSegment struct {
	Device     int
	Addr       uint64
	Total      int64 // bytes
	Allocated  int64 // as stated
	Active     int64
	Requested  int64
	Stream     uint16 // index of Streams
	Pool       uint16 // index of Pools
	Small      bool   // of the small pool
	Expandable bool
	Stack      uint32 // of what asked the driver for it
	First, N   int    // its blocks: Blocks[First : First+N]
}

// States of a block.
const (
	BlockInactive    uint8 = iota // free
	BlockActive                   // in use
	BlockPendingFree              // freed, but another stream may still use it
)

// A MemBlock is one piece of a segment.
type MemBlock struct {
	Addr      uint64
	Size      int64 // bytes, as rounded
	Requested int64 // as asked for; of a free block what it last was, 0 where not stated
	Stack     uint32
	State     uint8
}

// A MemAction is what a trace entry records.
type MemAction uint8

const (
	MemOther MemAction = iota // unknown to this program
	MemAlloc
	MemFreeRequested
	MemFreeCompleted
	MemSegmentAlloc
	MemSegmentFree
	MemSegmentMap
	MemSegmentUnmap
	MemOOM
	MemSnapshotMark // a snapshot was taken
	MemUserDefined
	MemFree // merged by viewers: requested and completed
)

func (a MemAction) String() string {
	return [...]string{"other", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "user_defined", "free"}[a]
}

// A MemEvent is one trace entry. It takes 40 bytes: there are millions.
type MemEvent struct {
	Addr   uint64 // of an oom: the device's free bytes
	Size   int64  // alloc, free: as asked for; segment: bytes of the driver; oom: the rounded request
	Time   int64  // Unix microseconds, 0 where not stated
	Stack  uint32
	Note   uint32 // index of Notes
	Stream uint16
	Pool   uint16 // index of Pools; meaningful only with Has.EventPools
	Action MemAction
}

// A MemNote is what some entries say beside the numbers.
type MemNote struct {
	Category string // parameter, gradient, activation, ... from profilers only
	Context  string // compile_context
	User     string // user_metadata
}

// A MemFrame is one function of a stack.
type MemFrame struct {
	Name, File string
	Line       int
}

// A MemAnnotation is one mark of the program, such as a profiler's step.
type MemAnnotation struct {
	Name   string
	Start  bool // else the end
	Device int
	Time   int64 // Unix microseconds
}

// MemSettings are the allocator's settings when the snapshot was taken.
type MemSettings struct {
	Conf         string // PYTORCH_CUDA_ALLOC_CONF as last set
	MaxSplit     int64  // bytes; -1: unlimited
	GCThreshold  float64
	Expandable   bool
	Roundup      [16]int64 // divisions of the sizes from 1 MiB, 2 MiB, ... 32 GiB
	MaxEntries   int64     // trace_alloc_max_entries; 0 where not stated
	HasMaxSplit  bool
	HasThreshold bool
	HasMaxCached bool // max_cached_size is stated: 2.13 and newer
}

const memChunk = 8192

// A MemTrace holds the entries of one device, in chunks: a growing slice of
// millions would be copied again and again.
type MemTrace struct {
	chunks [][]MemEvent
	n      int
}

// Append adds e as the newest.
func (t *MemTrace) Append(e MemEvent) { *t.New() = e }

// New adds an empty entry as the newest and returns it, to be filled.
func (t *MemTrace) New() *MemEvent {
	if t.n%memChunk == 0 {
		t.chunks = append(t.chunks, make([]MemEvent, 0, memChunk))
	}
	c := &t.chunks[len(t.chunks)-1]
	*c = (*c)[:len(*c)+1]
	t.n++
	return &(*c)[len(*c)-1]
}

// Len is how many there are.
func (t *MemTrace) Len() int { return t.n }

// At returns entry i, 0 the oldest.
func (t *MemTrace) At(i int) *MemEvent { return &t.chunks[i/memChunk][i%memChunk] }

// All goes through the entries from the oldest on.
func (t *MemTrace) All() iter.Seq2[int, *MemEvent] {
	return func(yield func(int, *MemEvent) bool) {
		for n, c := range t.chunks {
			for i := range c {
				if !yield(n*memChunk+i, &c[i]) {
					return
				}
			}
		}
	}
}

// BlocksOf returns the blocks of segment s in the order of their addresses.
func (m *MemSnapshot) BlocksOf(s *MemSegment) []MemBlock { return m.Blocks[s.First : s.First+s.N] }

// Devices returns how many devices the snapshot speaks of.
func (m *MemSnapshot) Devices() int {
	n := len(m.Traces)
	for i := range m.Segments {
		n = max(n, m.Segments[i].Device+1)
	}
	return n
}

// DriverRequest is what the allocator asks the driver for to hold a block of n bytes,
// and the size that the message of an OOM prints (get_allocation_size,
// CUDACachingAllocator.cpp, 1.1 and newer).
func DriverRequest(n int64) int64 {
	const mib = 1 << 20
	switch {
	case n <= mib:
		return 2 * mib
	case n < 10*mib:
		return 20 * mib
	case n > 1<<61:
		return n
	}
	return (n + 2*mib - 1) / (2 * mib) * (2 * mib)
}
