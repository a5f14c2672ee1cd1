package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/s2"
)

const (
	spoolBlock  = 256 << 10 // bytes before compression
	spoolMemory = 16 << 20  // compressed bytes kept in memory; the rest goes to a file
	spoolDisk   = 8 << 30   // compressed bytes in the file
)

// A spool keeps bytes that cannot be reached a second time (members of a
// compressed tar, standard input), so that they can be opened in any order and
// again. Without it a thousand rank logs in one tar.gz would mean a thousand
// passes over it. Blocks of 256 KiB are compressed with S2, first in memory,
// then in a temporary file that is unlinked at once where the system allows.
type spool struct {
	memory, disk int64 // limits

	mu    sync.Mutex
	held  int64 // compressed bytes in memory
	file  *os.File
	end   int64
	name  string // of the file if it could not be unlinked yet
	bufs  sync.Pool
	comps sync.Pool
}

func newSpool(memory, disk int64) *spool {
	s := &spool{memory: memory, disk: disk}
	s.bufs.New = func() any { b := make([]byte, spoolBlock); return &b }
	s.comps.New = func() any { b := make([]byte, s2.MaxEncodedLen(spoolBlock)); return &b }
	return s
}

// A spooled is one kept stream.
type spooled struct {
	s      *spool
	blocks []spoolPart
	size   int64
	err    error // why it ends before its end; nil if it is whole
}

// A spoolPart is one compressed block: in memory, or at an offset of the file.
type spoolPart struct {
	mem []byte
	off int64
	n   int
}

// ahead is how many blocks of one stream are compressed while it is read on:
// reading mostly means decompressing, which cannot be divided.
const ahead = 3

// take reads r to its end. An error of r or of the spool is kept as the end of
// the stream, after what came before it, and also returned.
func (s *spool) take(r io.Reader) (*spooled, error) {
	type packed struct {
		part spoolPart
		n    int
		err  error
	}
	m := &spooled{s: s}
	var last error // of r
	var waiting []chan packed
	settle := func(most int) bool {
		for len(waiting) > most {
			p := <-waiting[0]
			if waiting = waiting[1:]; m.err != nil {
				continue // behind a gap nothing counts
			}
			if m.err = p.err; m.err == nil {
				m.blocks = append(m.blocks, p.part)
				m.size += int64(p.n)
			}
		}
		return m.err == nil
	}
	for settle(ahead-1) && last == nil {
		buf := s.bufs.Get().(*[]byte)
		n, err := readInto(r, *buf)
		last = err
		if n == 0 {
			s.bufs.Put(buf)
			continue
		}
		done := make(chan packed, 1)
		waiting = append(waiting, done)
		pack := func() {
			p, err := s.put((*buf)[:n])
			s.bufs.Put(buf)
			done <- packed{p, n, err}
		}
		if last != nil { // nothing to do meanwhile
			pack()
		} else {
			go pack()
		}
	}
	if settle(0) && last != io.EOF {
		m.err = last
	}
	return m, m.err
}

func (s *spool) put(b []byte) (spoolPart, error) {
	comp := s.comps.Get().(*[]byte)
	defer s.comps.Put(comp)
	c := s2.Encode(*comp, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+int64(len(c)) <= s.memory {
		s.held += int64(len(c))
		return spoolPart{mem: append([]byte(nil), c...), n: len(c)}, nil
	}
	if s.end+int64(len(c)) > s.disk {
		return spoolPart{}, &LimitError{fmt.Sprintf("%d bytes of temporary space", s.disk)}
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "inquest-*.spool")
		if err != nil {
			return spoolPart{}, fmt.Errorf("keep archive members: %w", err)
		}
		s.file = f
		if os.Remove(f.Name()) != nil {
			s.name = f.Name()
		}
	}
	if _, err := s.file.WriteAt(c, s.end); err != nil {
		return spoolPart{}, fmt.Errorf("keep archive members: %w", err)
	}
	p := spoolPart{off: s.end, n: len(c)}
	s.end += int64(len(c))
	return p, nil
}

func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	s.file = nil
	return err
}

// block decompresses block i into buf.
func (m *spooled) block(i int, buf, comp []byte) ([]byte, []byte, error) {
	p := m.blocks[i]
	c := p.mem
	if c == nil {
		m.s.mu.Lock()
		f := m.s.file
		m.s.mu.Unlock()
		if f == nil {
			return nil, comp, errors.New("read archive member: result is closed")
		}
		if cap(comp) < p.n {
			comp = make([]byte, s2.MaxEncodedLen(spoolBlock))
		}
		c = comp[:p.n]
		if _, err := f.ReadAt(c, p.off); err != nil {
			return nil, comp, fmt.Errorf("read archive member: %w", err)
		}
	}
	b, err := s2.Decode(buf, c)
	if err != nil {
		return nil, comp, fmt.Errorf("read archive member: %w", err)
	}
	return b, comp, nil
}

// content returns m as something to open.
func (m *spooled) content() content {
	return content{
		size: m.size,
		open: func() (io.ReadCloser, error) {
			r := io.Reader(io.NewSectionReader(&spoolReader{m: m, at: -1}, 0, m.size))
			if m.err != nil {
				r = &thenError{r, m.err}
			}
			return io.NopCloser(r), nil
		},
		at: func() (io.ReaderAt, io.Closer, error) {
			return &spoolReader{m: m, at: -1}, io.NopCloser(nil), nil
		},
	}
}

// A spoolReader reads a spooled stream at any offset and keeps the last block.
type spoolReader struct {
	m         *spooled
	mu        sync.Mutex
	at        int // index of the block in cur, -1 for none
	cur, comp []byte
	buf       []byte
}

func (r *spoolReader) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off < 0 {
		return 0, errors.New("read archive member: negative offset")
	}
	n := 0
	for n < len(p) {
		if off >= r.m.size {
			return n, io.EOF
		}
		i := int(off / spoolBlock)
		if i != r.at {
			if r.buf == nil {
				r.buf = make([]byte, min(spoolBlock, r.m.size))
			}
			b, comp, err := r.m.block(i, r.buf, r.comp)
			r.comp = comp
			if err != nil {
				r.at = -1
				return n, err
			}
			r.at, r.cur = i, b
		}
		k := copy(p[n:], r.cur[off%spoolBlock:])
		n += k
		off += int64(k)
	}
	return n, nil
}

// thenError gives err where r ends.
type thenError struct {
	r   io.Reader
	err error
}

func (t *thenError) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err == io.EOF {
		err = t.err
	}
	return n, err
}
