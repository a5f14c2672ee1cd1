//go:build !amd64

package scan

// haveVectors says that there are kernels: only on amd64.
const haveVectors = false

// Without kernels every position is left to the caller.

func teddyFind([]byte, *teddyTables) (n int, set uint32)    { return 0, 0 }
func sieveFind([]byte, *bitmap, uint64) (n int, set uint32) { return 0, 0 }
