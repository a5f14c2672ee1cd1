package memsnap

import "github.com/inquest-dev/inquest/internal/evidence"

const blockChunk = 4096

// blocks are those of all segments in the order of the file: in chunks while they come, and
// in one piece once the history begins, because then most files have told all of
// them and the chunks' memory can serve the history.
type blocks struct {
	flat   []evidence.MemBlock
	chunks [][]evidence.MemBlock // those behind flat
	n      uint32
}

func (b *blocks) add(x evidence.MemBlock) {
	if k := len(b.chunks); k == 0 || len(b.chunks[k-1]) == blockChunk {
		b.chunks = append(b.chunks, make([]evidence.MemBlock, 0, blockChunk))
	}
	c := &b.chunks[len(b.chunks)-1]
	*c = append(*c, x)
	b.n++
}

func (b *blocks) at(i uint32) *evidence.MemBlock {
	if k := uint32(len(b.flat)); i >= k {
		i -= k
		return &b.chunks[i/blockChunk][i%blockChunk]
	}
	return &b.flat[i]
}

// join lays all in one piece, once.
func (b *blocks) join() {
	if b.flat != nil || b.n == 0 {
		return
	}
	b.flat = make([]evidence.MemBlock, 0, b.n)
	for _, c := range b.chunks {
		b.flat = append(b.flat, c...)
	}
	b.chunks = nil
}
