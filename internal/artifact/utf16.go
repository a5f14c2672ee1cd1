package artifact

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Of says in which byte order head is UTF-16 text, nil if it is not. A
// byte-order mark decides; without one, text in Latin script shows as NUL in
// nearly every second byte and hardly any in the others.
func utf16Of(head []byte) binary.ByteOrder {
	if len(head) >= 2 {
		switch {
		case len(head) >= 4 && head[0] == 0xff && head[1] == 0xfe && head[2] == 0 && head[3] == 0:
			return nil // UTF-32
		case head[0] == 0xff && head[1] == 0xfe:
			return binary.LittleEndian
		case head[0] == 0xfe && head[1] == 0xff:
			return binary.BigEndian
		}
	}
	if len(head) < 32 {
		return nil
	}
	var nul, printing [2]int
	for i, b := range head {
		switch {
		case b == 0:
			nul[i&1]++
		case b >= ' ' && b < 0x7f || b == '\n' || b == '\r' || b == '\t':
			printing[i&1]++
		}
	}
	half := len(head) / 2
	latin := func(text, zero int) bool {
		return nul[zero] >= half*8/10 && nul[text] == 0 && printing[text] >= half*8/10
	}
	switch {
	case latin(0, 1):
		return binary.LittleEndian
	case latin(1, 0):
		return binary.BigEndian
	}
	return nil
}

// utf8 returns c, which is UTF-16 in the given order, as UTF-8.
func (c content) utf8(order binary.ByteOrder) content {
	return content{size: -1, open: func() (io.ReadCloser, error) {
		rc, err := c.open()
		if err != nil {
			return nil, err
		}
		return &utf16Reader{src: rc, order: order, first: true}, nil
	}}
}

// A utf16Reader turns UTF-16 into UTF-8. The byte-order mark is dropped; lone
// surrogates and an odd last byte become U+FFFD.
type utf16Reader struct {
	src   io.ReadCloser
	order binary.ByteOrder
	first bool
	in    [4096]byte
	have  int // bytes of in
	out   []byte
	err   error
}

func (u *utf16Reader) Close() error { return u.src.Close() }

func (u *utf16Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

func (u *utf16Reader) fill() {
	n, err := u.src.Read(u.in[u.have:])
	u.have += n
	u.err = err
	u.out = u.out[:0]
	i := 0
	for ; i+2 <= u.have; i += 2 {
		r := rune(u.order.Uint16(u.in[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > u.have && err == nil {
				break
			}
			if i+4 <= u.have {
				if full := utf16.DecodeRune(r, rune(u.order.Uint16(u.in[i+2:]))); full != utf8.RuneError {
					r = full
					i += 2
				}
			}
		}
		if u.first {
			u.first = false
			if r == 0xfeff {
				continue
			}
		}
		u.out = utf8.AppendRune(u.out, r)
	}
	u.have = copy(u.in[:], u.in[i:u.have])
	if err != nil && u.have > 0 {
		u.out = utf8.AppendRune(u.out, utf8.RuneError)
		u.have = 0
	}
}
