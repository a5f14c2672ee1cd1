// Package protowire reads and writes the wire format of protocol buffers by hand: fields of
// one message in, no schema and no generated code. It serves decoders of formats that
// store a few well-known messages (TensorBoard events, W&B and SwanLab records).
//
// The format is that of "Encoding" in the documentation of protocol buffers: a message is a
// sequence of fields, each a tag and a value.
//
//	tag    varint    number<<3 | wire type
//	value  varint    wire type 0: 7 bits a byte, lowest first, at most 10 bytes
//	       8 bytes   wire type 1, little endian
//	       varint n, n bytes   wire type 2: text, message, or packed list
//	       fields, end tag     wire types 3 and 4: a group, deprecated
//	       4 bytes   wire type 5, little endian
//
// Fields may come in any order and more than once; the last one of a field that is not
// repeated counts. In proto3 a scalar field outside a oneof that is 0 is not written.
package protowire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The wire types, for use in tags: 5<<3 | Bytes is field 5 with a length.
const (
	Varint     = 0
	Fixed64    = 1
	Bytes      = 2
	StartGroup = 3
	EndGroup   = 4
	Fixed32    = 5
)

// What is wrong with bytes that are no message. Message.Err wraps one of them with the place.
var (
	ErrCut    = errors.New("ends within a field")
	ErrVarint = errors.New("number of more than 64 bits")
	ErrTag    = errors.New("no valid field tag")
	ErrLength = errors.New("length is more than what is left")
	ErrGroup  = errors.New("group is not closed")
)

const maxGroups = 32 // nesting of groups

// A Message walks over the fields of an encoded message. It refers to the bytes that it was
// made of and never changes them. The exported field and the accessors are of the
// field that the last Next found.
//
//	m := protowire.Decode(b)
//	for m.Next() {
//		switch m.Tag {
//		case 2<<3 | protowire.Varint:
//			step = m.Int()
//		case 5<<3 | protowire.Bytes:
//			summary = m.Bytes()
//		}
//	}
//	if err := m.Err(); err != nil {
//
// A known field of another wire type falls through such a switch as an unknown one does,
// which is what the specification asks for.
type Message struct {
	Tag uint32 // number<<3 | wire type

	b     []byte
	start int    // of the field
	off   int    // behind it
	val   int    // start of the payload of a field with a length
	num   uint64 // value of the others
	err   error
}

// Decode returns a walk over the message b.
func Decode(b []byte) Message { return Message{b: b} }

// Next goes to the next field and reports whether there is one. It is false at the end and
// at bytes that are no field; Err tells them apart.
func (m *Message) Next() bool {
	if m.err != nil || m.off >= len(m.b) {
		return false
	}
	m.start = m.off
	tag, ok := m.varint()
	if !ok {
		return false
	}
	if tag < 1<<3 || tag > math.MaxUint32 {
		return m.fail(ErrTag)
	}
	m.Tag = uint32(tag)
	switch tag & 7 {
	case Varint:
		m.num, ok = m.varint()
		return ok
	case Fixed64:
		if len(m.b)-m.off < 8 {
			return m.fail(ErrCut)
		}
		m.num = binary.LittleEndian.Uint64(m.b[m.off:])
		m.off += 8
	case Fixed32:
		if len(m.b)-m.off < 4 {
			return m.fail(ErrCut)
		}
		m.num = uint64(binary.LittleEndian.Uint32(m.b[m.off:]))
		m.off += 4
	case Bytes:
		n, ok := m.varint()
		if !ok {
			return false
		}
		if n > uint64(len(m.b)-m.off) {
			return m.fail(ErrLength)
		}
		m.val = m.off
		m.off += int(n)
	case StartGroup:
		m.val = m.off
		return m.group()
	default:
		return m.fail(ErrTag)
	}
	return true
}

// group passes over a group whose start tag was read.
func (m *Message) group() bool {
	open := []uint32{m.Tag >> 3}
	in := Message{b: m.b, off: m.off}
	for len(open) > 0 {
		start := in.off
		if start >= len(in.b) {
			return m.fail(ErrGroup)
		}
		tag, ok := in.varint()
		if !ok || tag < 1<<3 || tag > math.MaxUint32 {
			m.off = start
			return m.fail(ErrTag)
		}
		switch n := uint32(tag) >> 3; tag & 7 {
		case StartGroup:
			if len(open) == maxGroups {
				return m.fail(ErrGroup)
			}
			open = append(open, n)
		case EndGroup:
			if open[len(open)-1] != n {
				return m.fail(ErrGroup)
			}
			open = open[:len(open)-1]
		default:
			in.off = start
			if !in.Next() {
				m.err = in.err
				return false
			}
		}
	}
	m.off = in.off
	return true
}

// varint reads the number at m.off.
func (m *Message) varint() (uint64, bool) {
	if m.off < len(m.b) && m.b[m.off] < 0x80 {
		m.off++
		return uint64(m.b[m.off-1]), true
	}
	return m.longVarint()
}

func (m *Message) longVarint() (uint64, bool) {
	v, n := binary.Uvarint(m.b[m.off:])
	if n <= 0 {
		if n == 0 {
			return 0, m.fail(ErrCut)
		}
		return 0, m.fail(ErrVarint)
	}
	m.off += n
	return v, true
}

func (m *Message) fail(err error) bool {
	m.err = fmt.Errorf("protobuf field at byte %d: %w", m.start, err)
	return false
}

// Err is nil while every field so far was well formed.
func (m *Message) Err() error { return m.err }

// Number is the field number.
func (m *Message) Number() int { return int(m.Tag >> 3) }

// Uint is the value of a varint or fixed field.
func (m *Message) Uint() uint64 { return m.num }

// Int is a varint of type int32, int64 or enum; negative ones are sign extended.
func (m *Message) Int() int64 { return int64(m.num) }

// Zigzag is a varint of type sint32 or sint64.
func (m *Message) Zigzag() int64 { return int64(m.num>>1) ^ -int64(m.num&1) }

// Bool is a varint of type bool.
func (m *Message) Bool() bool { return m.num != 0 }

// Double is a Fixed64 field of type double.
func (m *Message) Double() float64 { return math.Float64frombits(m.num) }

// Float is a Fixed32 field of type float.
func (m *Message) Float() float32 { return math.Float32frombits(uint32(m.num)) }

// Bytes is the payload of a field with a length: part of the message, not a copy. It is nil
// for the other wire types.
func (m *Message) Bytes() []byte {
	if m.Tag&7 != Bytes {
		return nil
	}
	return m.b[m.val:m.off:m.off]
}

// Text is Bytes as a string, whatever bytes they are.
func (m *Message) Text() string { return string(m.Bytes()) }

// Message is Bytes as a message.
func (m *Message) Message() Message { return Decode(m.Bytes()) }

// Raw is the whole field with its tag, for copies that keep what they do not know.
func (m *Message) Raw() []byte { return m.b[m.start:m.off:m.off] }

// Offset is where the field begins in the message, in bytes.
func (m *Message) Offset() int { return m.start }

// Uvarint takes a number from the front of b, as in a packed list; n is the bytes it takes, 0
// where there is none.
func Uvarint(b []byte) (v uint64, n int) {
	v, n = binary.Uvarint(b)
	return v, max(n, 0)
}
