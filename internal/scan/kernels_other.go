//go:build !amd64

package scan

// best is the level of this processor: there are kernels on amd64 only.
const best = plainGo

// Without kernels no teddy is made.

func teddyWide(*byte, int, *wideTables, *uint32, *uint64, uint64) (count int) { return 0 }
func halve(*byte, int, *byte, *uint64)                                        {}
func teddyNibble(*byte, int, *nibbleTables, *byte, *uint32, int, uint64) (count int) {
	return 0
}
func siftWide(*byte, *uint32, int, *gramSet) (count int) { return 0 }
