//go:build !linux && !darwin

package record

// kernel is not asked here: no file of this system says it.
func kernel() string { return "" }

// hostMemory is 0, unknown.
func hostMemory() int64 { return 0 }

// limits are none that are known.
func limits(string) map[string]int64 { return map[string]int64{} }
