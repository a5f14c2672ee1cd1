package scan

import "golang.org/x/sys/cpu"

// best is the level of this processor.
var best = func() level {
	x := &cpu.X86
	avx := x.HasAVX2 && x.HasBMI1 && x.HasPOPCNT
	switch {
	case avx && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VBMI && x.HasAVX512VBMI2:
		return avx512
	case avx:
		return avx2
	}
	return plainGo
}()

// teddyWide looks at every position before 64*blocks of the text at buf. The
// offsets of those that the tables let through it puts into list, in order, and
// returns how many there are; it may write 64 more. For each block it sets the
// bits of the newlines in marks. It loads three bytes past the last block. dense
// is not zero where most blocks are expected to have such positions.
//
//go:noescape
func teddyWide(buf *byte, blocks int, tables *wideTables, list *uint32, marks *uint64, dense uint64) (count int)

// halve writes the high half of each byte of the blocks at buf, and of five bytes
// past the last one, to high, and sets the bits of the newlines in marks.
//
//go:noescape
func halve(buf *byte, blocks int, high *byte, marks *uint64)

// teddyNibble is teddyWide for AVX2, with what halve has written. It adds base to
// the offsets, loads five bytes past the last block, and may write four offsets
// more.
//
//go:noescape
func teddyNibble(buf *byte, blocks int, tables *nibbleTables, high *byte, list *uint32, base int, dense uint64) (count int)

// siftWide keeps those of the n offsets in list at which a gram of the set may
// stand, and returns how many these are. It may write 15 more.
//
//go:noescape
func siftWide(buf *byte, list *uint32, n int, set *gramSet) (count int)
