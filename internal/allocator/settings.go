// Package allocator simulates PyTorch's caching allocator for CUDA and answers, from
// a recorded history, what another setting would have changed.
//
// It follows c10/cuda/CUDACachingAllocator.cpp (the native backend) as it stands in
// PyTorch 2.1 and newer; where versions differ, Version says which rules hold. Not
// simulated, because no snapshot shows them: callbacks that free memory (CUDA IPC),
// memory pools that the program lends as a fallback, windows of graph capture.
package allocator

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Sizes of c10/cuda/CUDACachingAllocator.cpp, unchanged since 1.1.
const (
	minBlock      = 512      // everything is rounded to multiples of it
	smallMax      = 1 << 20  // largest request of the small pools
	smallBuffer   = 2 << 20  // segment, and page of expandable ones, of the small pools
	largeBuffer   = 20 << 20 // segment of requests below minLarge, and page of the large pools
	minLarge      = 10 << 20 // requests from here on have segments of their own
	roundLarge    = 2 << 20  // of which this is the quantum
	bytesMax      = 1 << 60  // PyTorch refuses more (1 EB)
	unlimited     = bytesMax // in place of a limit that is not set
	reserveUnset  = 1 << 40  // address space of an expandable segment on a device of unknown size
	divisionsLast = 16       // size classes of roundup_power2_divisions, 1 MiB to 32 GiB
	mib           = 1 << 20
)

// A Version names the rules that changed between releases of PyTorch.
type Version uint8

const (
	// Torch22 stands for 2.2 to 2.11.
	Torch22 Version = iota
	// Torch21 is 2.1: roundup_power2_divisions:1 leaves sizes unrounded.
	Torch21
	// Torch212 is 2.12: of free blocks of equal size the one made first is taken, not
	// the one with the lowest address.
	Torch212
	// Torch213 stands for 2.13 and newer: it is the one in the segment made first.
	Torch213
)

func (v Version) String() string {
	return [...]string{"2.2 to 2.11", "2.1", "2.12", "2.13 and newer"}[v]
}

// Settings decide what the allocator does. The zero value has PyTorch's defaults.
type Settings struct {
	Expandable  bool
	MaxSplit    int64     // bytes; blocks of this size and more are not split; 0: unlimited
	NonSplit    int64     // max_non_split_rounding_mb in bytes; 0: 20 MiB
	Roundup     [16]int64 // divisions for sizes from 1 MiB, 2 MiB, ... 32 GiB; 0: off
	GCThreshold float64   // of Limit; 0: off
	Fraction    float64   // per_process_memory_fraction; 0: not set
	Large       int64     // large_segment_size_mb in bytes; 0: 20 MiB
	// Limit is what a memory fraction allows the allocator in bytes, 0 where none is
	// set. Requests above it fail without asking the driver.
	Limit int64
	// Device is the device's memory in bytes, 0 where it is not known. It decides
	// how much address space an expandable segment reserves, and nothing else.
	Device  int64
	Version Version
	Async   bool // backend:cudaMallocAsync, which is another allocator
}

func (s *Settings) maxSplit() int64 {
	if s.MaxSplit <= 0 {
		return math.MaxInt64
	}
	return s.MaxSplit
}

func (s *Settings) nonSplit() int64 {
	if s.NonSplit <= 0 {
		return largeBuffer
	}
	return s.NonSplit
}

func (s *Settings) large() int64 {
	if s.Large <= 0 {
		return largeBuffer
	}
	return s.Large
}

// page is the unit in which an expandable segment is mapped.
func (s *Settings) page(small bool) int64 {
	if small {
		return smallBuffer
	}
	return s.large()
}

// Round returns the block size of a request, both in bytes (round_size). Requests
// above 2^60 stay as they are: they are never served.
func (s *Settings) Round(size int64) int64 {
	if size < minBlock {
		return minBlock
	}
	if size > bytesMax {
		return size
	}
	if div := s.divisions(size); div > 1 || div == 1 && s.Version == Torch21 {
		if size > minBlock*div {
			return roundDivision(size, div)
		}
	}
	return (size + minBlock - 1) &^ (minBlock - 1)
}

func (s *Settings) divisions(size int64) int64 {
	return s.Roundup[min(max(bits.Len64(uint64(size))-1-20, 0), divisionsLast-1)]
}

// roundDivision rounds size up to the next of div equal steps between two powers of
// two (roundup_power2_next_division).
func roundDivision(size, div int64) int64 {
	if size&(size-1) == 0 || div <= 1 {
		return size
	}
	floor := int64(1) << (bits.Len64(uint64(size)) - 1)
	step := floor >> (bits.Len64(uint64(div)) - 1)
	if step == 0 {
		return floor << 1
	}
	return (size + step - 1) &^ (step - 1)
}

// SegmentSize returns what a rounded request asks of the driver where no cached block
// fits and segments are not expandable (get_allocation_size).
func (s *Settings) SegmentSize(rounded int64) int64 {
	switch {
	case rounded <= smallMax:
		return smallBuffer
	case rounded < minLarge && rounded <= s.large():
		return s.large()
	}
	return (rounded + roundLarge - 1) &^ (roundLarge - 1)
}

// String returns the settings that differ from the defaults in the grammar of
// PYTORCH_CUDA_ALLOC_CONF.
func (s Settings) String() string {
	var out []string
	add := func(on bool, key, value string) {
		if on {
			out = append(out, key+":"+value)
		}
	}
	add(s.Async, "backend", "cudaMallocAsync")
	add(s.Expandable, "expandable_segments", "True")
	add(s.MaxSplit > 0, "max_split_size_mb", strconv.FormatInt(s.MaxSplit/mib, 10))
	add(s.NonSplit > 0, "max_non_split_rounding_mb", strconv.FormatInt(s.NonSplit/mib, 10))
	add(s.Large > 0, "large_segment_size_mb", strconv.FormatInt(s.Large/mib, 10))
	add(s.Roundup != [16]int64{}, "roundup_power2_divisions", roundupText(s.Roundup))
	add(s.GCThreshold > 0, "garbage_collection_threshold", strconv.FormatFloat(s.GCThreshold, 'g', -1, 64))
	add(s.Fraction > 0, "per_process_memory_fraction", strconv.FormatFloat(s.Fraction, 'g', -1, 64))
	return strings.Join(out, ",")
}

// RoundupText returns the value of roundup_power2_divisions, "" where it is off.
func (s Settings) RoundupText() string {
	if s.Roundup == [16]int64{} {
		return ""
	}
	return roundupText(s.Roundup)
}

func roundupText(r [16]int64) string {
	if !slices.ContainsFunc(r[:], func(v int64) bool { return v != r[0] }) {
		return strconv.FormatInt(r[0], 10)
	}
	var parts []string
	for i, v := range r {
		parts = append(parts, fmt.Sprintf("%d:%d", int64(1)<<i, v))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// FromSnapshot returns the settings that a snapshot states. The numbers that it
// states win over its text, which is the last one that was set; a text that cannot
// be read is reported and leaves the numbers.
func FromSnapshot(m evidence.MemSettings) (Settings, error) {
	s, err := ParseSettings(m.Conf)
	if err != nil {
		s = Settings{}
	}
	s.Expandable = m.Expandable
	s.Roundup = m.Roundup
	for i, v := range s.Roundup {
		s.Roundup[i] = min(max(v, 0), bytesMax/minBlock/2)
	}
	if m.HasMaxSplit {
		s.MaxSplit = max(m.MaxSplit, 0)
		if s.MaxSplit > bytesMax {
			s.MaxSplit = 0
		}
	}
	if m.HasThreshold && m.GCThreshold >= 0 && m.GCThreshold < 1 {
		s.GCThreshold = m.GCThreshold
	}
	return s, err
}
