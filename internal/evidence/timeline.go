package evidence

// A MemTimeline is what torch.profiler's export_memory_timeline writes: how many bytes of
// each category were alive when (torch/profiler/_memory_profiler.py). It names no
// segment, block or stack.
type MemTimeline struct {
	Form   string // "coalesced" (.json: states), "raw" (.raw.json: changes, added up here)
	Points []MemPoint
}

// MemCategories are the categories of a memory timeline, in the order of MemPoint.Bytes.
var MemCategories = [8]string{"parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown"}

// A MemPoint is a state of a memory timeline.
type MemPoint struct {
	Time  int64 // Unix microseconds; what was there before the first event has the time -1 in the raw form
	Bytes [8]int64
}

// Total is the sum over the categories.
func (p *MemPoint) Total() (n int64) {
	for _, b := range p.Bytes {
		n += b
	}
	return n
}
