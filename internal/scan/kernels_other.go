//go:build !amd64

package scan

// best is the level of this processor: there are kernels on amd64 only.
const best = plainGo

// Without kernels every position is left to the caller.

func teddyFind([]byte, *teddyTables) (n int, set uint32)    { return 0, 0 }
func sieveFind([]byte, *bitmap, uint64) (n int, set uint32) { return 0, 0 }

func sieveList(*byte, int, *bitmap, uint64, *[scanBlock/4 + 16]uint32) (count int) { return 0 }
func teddyList(*byte, int, *wideTables, *[scanBlock / 64]uint64)                   {}
