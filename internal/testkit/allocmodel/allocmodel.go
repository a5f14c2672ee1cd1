// Package allocmodel is a deliberately simple model of PyTorch's caching allocator for
// CUDA (c10/cuda/CUDACachingAllocator.cpp, native backend, 2.2 and newer), a seeded
// generator of programs that use it, and a writer of the snapshots that PyTorch would
// have left behind. Tests hold other code to it.
//
// The model keeps every segment as a plain list of blocks and looks for everything by
// going through all of them. It shares no code with what is tested.
//
// # What is modelled
//
// Rounding and size classes, best fit, splitting and merging, max_split_size,
// roundup_power2_divisions, expandable segments with mapping and unmapping of pages,
// record_stream and deferred frees, garbage collection with its ages, a per-process limit,
// the order of reclaim before an OOM, empty_cache, private pools and captures, and a
// device of finite size that others use as well.
//
// # What is not
//
// A driver whose memory is fragmented or comes in odd pieces: a request fits if its
// bytes are free. Threads. Free-memory callbacks. Options of builds newer than 2.9
// (large segment size, pools that serve as a reserve, refusal ahead of the driver).
package allocmodel

import "github.com/inquest-dev/inquest/internal/evidence"

// Sizes of the allocator, bytes.
const (
	minBlock     = 512
	smallMax     = 1 << 20
	smallSegment = 2 << 20
	largeSegment = 20 << 20
	ownSegment   = 10 << 20
	segmentStep  = 2 << 20
)

// Settings are the allocator's own.
type Settings struct {
	Expandable  bool
	MaxSplit    int64 // bytes; negative: unlimited
	GCThreshold float64
	Roundup     [16]int64 // divisions for sizes from 1, 2, 4 ... 32768 MiB; 0 or 1: off
	Ties        Ties      // by the version of PyTorch, which no snapshot states
}

// Ties is the rule by which one of several free blocks of equal size is taken.
type Ties uint8

const (
	ByAddress Ties = iota // the lowest: up to 2.11
	ByBlock               // the one that was made first, as a split makes one for its low part: 2.12
	BySegment             // the one whose segment was made first, then the lowest: 2.13 and newer
)

// Default are the settings of a process that changed none.
func Default() Settings { return Settings{MaxSplit: -1} }

// Round is the size of the block that a request of size bytes gets.
func (s Settings) Round(size int64) int64 {
	if size < minBlock {
		return minBlock
	}
	log := 0
	for size>>(log+1) > 0 {
		log++
	}
	div := s.Roundup[min(max(log-20, 0), 15)]
	if div <= 1 || size <= minBlock*div {
		return (size + minBlock - 1) / minBlock * minBlock
	}
	power := int64(1) << log
	if power == size {
		return size
	}
	divPower := int64(1)
	for divPower*2 <= div {
		divPower *= 2
	}
	step := power / divPower
	if step == 0 {
		return power * 2
	}
	return (size + step - 1) / step * step
}

// Request is what the driver is asked for, or what a limit is held against, for a block of
// size bytes.
func Request(size int64) int64 {
	switch {
	case size <= smallMax:
		return smallSegment
	case size < ownSegment:
		return largeSegment
	}
	return (size + segmentStep - 1) / segmentStep * segmentStep
}

// A Device is the card and what this process may have of it.
type Device struct {
	Index    int
	Capacity int64 // bytes
	Other    int64 // in use by others: other processes, contexts, libraries
	Limit    int64 // of this process (set_per_process_memory_fraction); 0: none
	Place    Placement
}

// A Placement is how the driver chooses addresses of segments.
type Placement uint8

const (
	Ascending  Placement = iota // always above all before
	FirstFit                    // the lowest hole that is wide enough
	Descending                  // always below all before
)

// An Op is one thing that the program does.
type Op struct {
	Kind   OpKind
	ID     int    // Alloc, Free, Use: which allocation
	Size   int64  // Alloc
	Stream uint64 // Alloc: owner; Use: the other stream; Done; BeginPool: the one captured
	Pool   [2]int64
	Stack  uint32
	Name   string // StepStart, StepEnd
	Wait   int64  // microseconds that pass before
}

// An OpKind says what an Op does.
type OpKind uint8

const (
	Alloc      OpKind = iota
	Free              // of an allocation that failed: nothing happens
	Use               // record_stream
	Done              // the work given to Stream so far is finished
	EmptyCache        // torch.cuda.empty_cache
	BeginPool         // allocations of Stream go to Pool from here on
	EndPool
	DropPool // nothing refers to Pool any more
	Snapshot // a snapshot is taken
	StepStart
	StepEnd
)

// A Run is what happened.
type Run struct {
	Settings    Settings // at the end
	Device      Device
	Events      []evidence.MemEvent
	Reserved    []int64 // after each event
	Active      []int64 // after each event: bytes of blocks in use or awaiting a stream
	OpOf        []int   // index of the Op that led to each event
	Flushed     []bool  // the event is a free that a retry or empty_cache completed
	Annotations []evidence.MemAnnotation
	Segments    []evidence.MemSegment // at the end; by address
	Blocks      []evidence.MemBlock

	Peak      int64 // most ever reserved
	PeakEvent int   // first event at which that was so; -1: never any
	Failed    []int // indices of the Ops that failed for want of memory
	Ended     bool  // at the last of Failed
	Retries   int
	Waited    int // frees that a retry or empty_cache completed before their time
	Unseen    int // calls of empty_cache that found nothing to give back
	Captured  int // allocations made while something was captured

	At Report // the figures at the last failure
}

// A Report holds what PyTorch puts into the message of an OOM.
type Report struct {
	Asked                                  int64 // of the driver
	Free, Allocated, PrivateFree, Reserved int64
}

// Options of Simulate.
type Options struct {
	// Survive says that the program catches a failure and goes on without the allocation.
	Survive bool
	// Switch changes the settings before this Op, if To is not nil.
	Switch int
	To     *Settings
	// FreeStacks says that frees record their own stack (context "all"); else they carry
	// that of the allocation.
	FreeStacks bool
	// Watch is called after each event, if it is not nil; m is as the event left it.
	Watch func(event int, m *Model)
}

// Simulate runs ops on an empty device.
func Simulate(ops []Op, set Settings, dev Device, o Options) *Run {
	m := newModel(set, dev, o)
	for i, op := range ops {
		if o.To != nil && i == o.Switch {
			m.set = *o.To
		}
		m.op = i
		if !m.do(op) {
			m.run.Failed = append(m.run.Failed, i)
			if !o.Survive {
				m.run.Ended = true
				break
			}
		}
	}
	m.run.Segments, m.run.Blocks = m.State()
	m.run.Settings, m.run.Device = m.set, dev
	return &m.run
}
