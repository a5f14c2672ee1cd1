package tfevent

import (
	"encoding/binary"
	"math"
)

// A Plain event is what nearly all of a file are: one value, a float32 scalar.
type Plain struct {
	Wall     float64
	Step     int64
	Tag      []byte
	Value    float32
	Tensor   bool   // written as a tensor of DT_FLOAT
	Metadata []byte // encoded; nil where the value has none
}

// Decode reads the event b if it is written the way the libraries do it: fields in rising
// order, all lengths below 128, and nothing else.
//
//	09 wall  10 step  2a n 0a n 0a n tag  15 value
//	                                      42 n 08 01 [12 00] 2a 04 value  [4a n metadata]
//	                                      42 n 08 01 [12 00] 22 04 value  [4a n metadata]
//
// It reports false for all others, which Event decodes, and then leaves nothing of use in p.
func (p *Plain) Decode(b []byte) bool {
	if len(b) < 20 || b[0] != 1<<3|1 {
		return false
	}
	p.Wall = math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
	p.Step = 0
	i := 9
	if b[i] == 2<<3 {
		step, n := uint64(b[i+1]), 1
		if step >= 0x80 {
			if step, n = binary.Uvarint(b[i+1:]); n <= 0 {
				return false
			}
		}
		p.Step = int64(step)
		i += 1 + n
	}
	// The summary and its only value reach to the end.
	rest := len(b) - i
	if rest < 6 || rest >= 0x80 || b[i] != 5<<3|2 || int(b[i+1]) != rest-2 || b[i+2] != 1<<3|2 || int(b[i+3]) != rest-4 || b[i+4] != 1<<3|2 {
		return false
	}
	n := int(b[i+5])
	i += 6
	rest -= 6
	if n+5 > rest {
		return false
	}
	p.Tag = b[i : i+n : i+n]
	b = b[i+n:]
	p.Metadata = nil
	if b[0] == 2<<3|5 {
		p.Tensor = false
		p.Value = math.Float32frombits(binary.LittleEndian.Uint32(b[1:]))
		return len(b) == 5
	}
	return b[0] == 8<<3|2 && p.tensor(b)
}

// tensor reads a value from its tensor on, which has at least 5 bytes.
func (p *Plain) tensor(b []byte) bool {
	p.Tensor = true
	n := int(b[1])
	if n < 8 || n > len(b)-2 {
		return false
	}
	t, rest := b[2:2+n], b[2+n:]
	if t[0] != 1<<3 || t[1] != byte(Float32) {
		return false
	}
	t = t[2:]
	if len(t) == 8 && t[0] == 2<<3|2 && t[1] == 0 {
		t = t[2:]
	}
	if len(t) != 6 || t[0] != 5<<3|2 && t[0] != 4<<3|2 || t[1] != 4 {
		return false
	}
	p.Value = math.Float32frombits(binary.LittleEndian.Uint32(t[2:]))
	if len(rest) == 0 {
		return true
	}
	if len(rest) < 2 || rest[0] != 9<<3|2 || int(rest[1]) != len(rest)-2 || rest[1] >= 0x80 {
		return false
	}
	p.Metadata = rest[2:]
	return true
}
