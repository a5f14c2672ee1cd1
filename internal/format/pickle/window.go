package pickle

import "io"

// A consumer of millions of opcodes may take them from the window itself: Buffer,
// Window, Discard, and Next for what it does not decode on its own. Next and
// these may be mixed at will between opcodes.

// Buffer reads until at least n bytes lie in the window, or the input ends. It
// returns a read error; that the input ended is none. n is at most 1 MiB.
func (s *Scanner) Buffer(n int) error {
	if s.end-s.pos >= n || s.err != nil {
		return nil
	}
	err := s.fill(min(n, 1<<20))
	if err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

// Window returns the bytes that have been read and not taken. They are valid until
// the next call of Next or Buffer.
func (s *Scanner) Window() []byte { return s.buf[s.pos:s.end] }

// Discard takes n bytes of the window: whole opcodes with their arguments.
func (s *Scanner) Discard(n int) { s.pos += n }

// ListBuilder reports whether lines, the argument of a GLOBAL, name one of the
// functions that PyTorch's C++ writer puts around a list of numbers
// (torch/jit/_pickle.py: build_intlist, build_doublelist, build_boollist). They
// return their only argument, so that the call can be left out.
func ListBuilder(lines []byte) bool {
	switch global(lines) {
	case "torch.jit._pickle build_intlist", "torch.jit._pickle build_doublelist", "torch.jit._pickle build_boollist":
		return true
	}
	return false
}

// Long reads a little-endian two's complement number, as LONG1 and LONG4 have it;
// big if it needs more than 8 bytes.
func Long(b []byte) (n int64, big bool) { return long(b) }
