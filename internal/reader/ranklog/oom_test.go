package ranklog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// describe prints attributes in a fixed order, sizes by their middle.
func describe(a evidence.Attrs) string {
	names := make([]string, 0, len(a))
	for n := range a {
		names = append(names, n)
	}
	slices.Sort(names)
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s=%s", n, strings.ReplaceAll(a[n].String(), " ", "")))
	}
	return strings.Join(parts, " ")
}

func TestReadOOM(t *testing.T) {
	for _, c := range []struct {
		text, want string
		complete   bool
	}{
		{"CUDA out of memory. Tried to allocate 7.01 GiB (GPU 2; 11.17 GiB total capacity; 512.25 MiB already allocated; 9.80 GiB free; 48.50 MiB cached)",
			"allocated=512.25MiB backend=cuda capacity=11.17GiB form=A free=9.80GiB gpu=2 requested=7.01GiB reserved=48.50MiB", true},
		{"CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 2.00 GiB total capacity; 5.00 MiB already allocated; 0 bytes free; 1.50 GiB allowed; 9.00 MiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb",
			"allocated=5.00MiB allowed=1.50GiB backend=cuda capacity=2.00GiB form=C free=0bytes gpu=1 requested=20.00MiB reserved=9.00MiB unallocated=4.00MiB", true},
		{"CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 2.00 GiB total capacity; 5.00 MiB already allocated; 0 bytes free; 1.50 GiB allowed; 9.00 MiB reserved in total by PyTorch)",
			"allocated=5.00MiB allowed=1.50GiB backend=cuda capacity=2.00GiB form=B' free=0bytes gpu=1 requested=20.00MiB reserved=9.00MiB unallocated=4.00MiB", true},
		{"NPU out of memory. Tried to allocate 1.25 GiB (NPU 3; 32.00 GiB total capacity; 28.00 GiB already allocated; 28.00 GiB current active; 700.00 MiB free; 29.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory ...",
			"allocated=28.00GiB backend=npu capacity=32.00GiB form=npu free=700.00MiB gpu=3 requested=1.25GiB reserved=29.00GiB unallocated=1.00GiB", true},
		{"CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total capacty of 23.99 GiB of which 0 bytes is free. Of the allocated memory 25.00 GiB is allocated by PyTorch, and 128.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb ...",
			"allocated=25.00GiB backend=cuda capacity=23.99GiB form=D free=0bytes gpu=0 requested=30.00GiB reserved=25.12GiB unallocated=128.00MiB", true},
		{"CUDA out of memory. Tried to allocate 2.00 MiB. GPU 6 has a total capacity of 47.50 GiB of which 5.25 MiB is free. Process 8 has 17179869184.00 GiB memory in use. Including non-PyTorch memory, this process has 46.00 GiB memory in use. 30.00 GiB allowed; Of the allocated memory 40.00 GiB is allocated by PyTorch, with 2.00 GiB allocated in private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (URL)",
			"allocated=40.00GiB allowed=30.00GiB backend=cuda capacity=47.50GiB form=F free=5.25MiB gpu=6 private_pools=2.00GiB processes=2 requested=2.00MiB reserved=43.00GiB this_process=46.00GiB unallocated=1.00GiB unlisted_process=false", true},
		{"CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 10.00 GiB of which 8.00 MiB is free. Process 11 has 6.00 GiB memory in use. Process 12 has 3.50 GiB memory in use. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.",
			"allocated=3.00GiB backend=cuda capacity=10.00GiB form=E free=8.00MiB gpu=0 other_processes=9.50GiB processes=2 requested=64.00MiB reserved=3.01GiB unallocated=10.00MiB unlisted_process=true", true},
		{"XPU out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 16.00 GiB. Of the allocated memory 15.00 GiB is allocated by PyTorch, and 50.00 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
			"allocated=15.00GiB backend=xpu capacity=16.00GiB form=xpu gpu=0 requested=3.00GiB reserved=15.05GiB unallocated=50.00MiB", true},
		{"XPU out of memory. Tried to allocate 3.00 GiB (GPU 0; 16.00 GiB total capacity; 15.00 GiB already allocated; 15.50 GiB reserved in total by PyTorch)",
			"allocated=15.00GiB backend=xpu capacity=16.00GiB form=xpu gpu=0 requested=3.00GiB reserved=15.50GiB unallocated=512.00MiB", true},
		{"MPS backend out of memory (MPS allocated: 9.00 GB, other allocations: 384.00 KB, max allowed: 9.07 GB). Tried to allocate 256 bytes on shared pool.",
			"allocated=9.00GiB allowed=9.07GiB backend=mps form=mps requested=256bytes this_process=9.00GiB", true},
		{"Allocation on device 1 would exceed allowed memory. (out of memory) Currently allocated     : 5.00 GiB Requested               : 1.00 GiB Device limit            : 8.00 GiB Free (according to CUDA): 2.00 MiB PyTorch limit (set by user-supplied memory fraction)                         : 17179869184.00 GiB",
			"allocated=5.00GiB backend=cuda capacity=8.00GiB form=async free=2.00MiB gpu=1 requested=1.00GiB", true},
		{"CUDA out of memory. Tried to allocate more than 1EB memory.", "backend=cuda form=E requested=4608.00PiB", true},
		{"CUDA out of memory. Tried to allocate 1048576.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 7.00 GiB is free.", "backend=cuda capacity=8.00GiB form=E free=7.00GiB gpu=0 requested=1.00PiB", false},
		{"CUDA out of memory. Tried to allocate 1.00 GiB", "backend=cuda requested=1.00GiB", false},
		{"CUDA out of memory.", "backend=cuda", false},
	} {
		a, complete := readOOM(c.text)
		if got := describe(a); got != c.want || complete != c.complete {
			t.Errorf("%s\n got %s (complete %v)\nwant %s", c.text, got, complete, c.want)
		}
	}
}

// Every prefix of a message gives a value and no panic.
func TestReadOOMPrefixes(t *testing.T) {
	text := "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 6 has a total capacity of 47.50 GiB of which 5.25 MiB is free. Process 8 has 1.00 GiB memory in use. Of the allocated memory 40.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
	for i := range text {
		a, _ := readOOM(text[:i])
		for n := range a {
			if evidence.SpecOf(evidence.DeviceOOM).Attr(n) == nil {
				t.Fatalf("attribute %s is not declared", n)
			}
		}
	}
}

func TestParseSize(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		text   string
		lo, hi int64
		ok     bool
	}{
		{"0 bytes", 0, 0, true},
		{"1024 bytes", 1024, 1024, true},
		{"33762398024", 33762398024, 33762398024, true},
		{"1,600,000,000 bytes", 1600000000, 1600000000, true},
		{"1.00 KiB", 1019, 1029, true},
		{"2.00 GiB", 2*gib - gib/200, 2*gib + gib/200, true},
		{"2 GB", 3 * gib / 2, 5 * gib / 2, true},
		{"1,024 kB", 1023*1024 + 512, 1024*1024 + 512, true},
		{"79,15 GiB", 84981296661, 84992034078, true},
		{"17179869184.00 GiB", 0, 0, false},
		{"538976288.13 GiB", 578721382704087040, 578721382714824448, true},
		{"9e30", math.MaxInt64, math.MaxInt64, true},
		{"12 apples", 0, 0, false},
		{"", 0, 0, false},
		{"GiB", 0, 0, false},
	} {
		v, ok := reader.ParseSize(c.text)
		if ok != c.ok || v.Lo != c.lo || v.Hi != c.hi {
			t.Errorf("reader.ParseSize(%q) = %d..%d %v, want %d..%d %v", c.text, v.Lo, v.Hi, ok, c.lo, c.hi, c.ok)
		}
	}
}
