package scan

import "golang.org/x/sys/cpu"

// best is the level of this processor.
var best = func() level {
	switch x := &cpu.X86; {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VBMI && x.HasPOPCNT:
		return avx512
	case x.HasAVX2:
		return avx2
	}
	return plainGo
}()

// sieveList looks at the positions 0, 4, 8 and so on before 64*blocks of the text
// at buf and puts the offsets of those whose gram is in the bitmap into list, in
// order. It returns how many there are, and loads one byte past the last block.
//
//go:noescape
func sieveList(buf *byte, blocks int, bits *bitmap, mask uint64, list *[scanBlock/4 + 16]uint32) (count int)

// teddyList looks at every position before 64*blocks of the text at buf and sets
// the bits of those that the tables let through, 64 positions in each of sets.
// It loads three bytes past the last block.
//
//go:noescape
func teddyList(buf *byte, blocks int, tables *wideTables, sets *[scanBlock / 64]uint64)

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
