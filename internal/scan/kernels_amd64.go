package scan

import "golang.org/x/sys/cpu"

// haveVectors says that this processor has the instructions of the kernels.
var haveVectors = cpu.X86.HasAVX2

// teddyFind looks at the 32 positions buf[n:n+32] for n = 0, 32, 64 and so on,
// until one of them is let through by the tables or fewer than 35 bytes are left.
// It returns n and a bit for each such position, the lowest for buf[n]; none when
// buf was too short to go on.
//
//go:noescape
func teddyFind(buf []byte, tables *teddyTables) (n int, set uint32)

// sieveFind looks at the eight positions n, n+4 to n+28 of buf for n = 0, 32, 64
// and so on, until the gram of one of them is in the bitmap or fewer than 40
// bytes are left. It returns n and a bit for each such position, the lowest for
// n; none when buf was too short to go on.
//
//go:noescape
func sieveFind(buf []byte, bits *bitmap, mask uint64) (n int, set uint32)
