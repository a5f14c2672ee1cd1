package evidence

// Minus is a - b of two sizes that are known within bounds.
func (v Value) Minus(b Value) Value { return SizeOf(v.Lo-b.Hi, v.Hi-b.Lo) }

// ImpossibleRequest reports whether a requested size is larger than any device holds: a petabyte
// and more, or many times the capacity of the device, where that is known. Such a size is no
// demand but garbage.
func ImpossibleRequest(requested, capacity Value, known bool) bool {
	const petabyte, times = 1 << 50, 64
	return requested.Lo >= petabyte || known && capacity.Hi > 0 && requested.Lo/times >= capacity.Hi
}
