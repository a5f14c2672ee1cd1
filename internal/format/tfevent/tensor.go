package tfevent

import (
	"encoding/binary"
	"math"

	"github.com/inquest-dev/inquest/internal/format/protowire"
)

// A DType is the type of a tensor's elements (tensorflow/core/framework/types.proto).
type DType int64

const (
	Float32          DType = 1
	Float64          DType = 2
	Int32            DType = 3
	Uint8            DType = 4
	Int16            DType = 5
	Int8             DType = 6
	String           DType = 7
	Int64            DType = 9
	Bool             DType = 10
	BFloat16         DType = 14
	Uint16           DType = 17
	Half             DType = 19
	Uint32           DType = 22
	Uint64           DType = 23
	Float8E5M2       DType = 24
	Float8E4M3FN     DType = 25
	Float8E4M3FNUZ   DType = 26
	Float8E4M3B11Fnz DType = 27
	Float8E5M2FNUZ   DType = 28
	Int4             DType = 29
	Uint4            DType = 30
)

// layouts says how the elements of each numeric type are written: in tensor_content, little
// endian, size bytes each; or in a repeated field of their own.
var layouts = [...]struct {
	size  uint8
	field uint8 // its number
	wire  uint8 // of one element; float8_val is one string of bytes
}{
	Float32: {4, 5, protowire.Fixed32}, Float64: {8, 6, protowire.Fixed64},
	Int32: {4, 7, protowire.Varint}, Uint8: {1, 7, protowire.Varint}, Int16: {2, 7, protowire.Varint}, Int8: {1, 7, protowire.Varint},
	Int4: {1, 7, protowire.Varint}, Uint4: {1, 7, protowire.Varint}, Uint16: {2, 7, protowire.Varint},
	Int64: {8, 10, protowire.Varint}, Bool: {1, 11, protowire.Varint}, Half: {2, 13, protowire.Varint}, BFloat16: {2, 13, protowire.Varint},
	Uint32: {4, 16, protowire.Varint}, Uint64: {8, 17, protowire.Varint},
	Float8E5M2: {1, 18, protowire.Bytes}, Float8E4M3FN: {1, 18, protowire.Bytes}, Float8E4M3FNUZ: {1, 18, protowire.Bytes},
	Float8E4M3B11Fnz: {1, 18, protowire.Bytes}, Float8E5M2FNUZ: {1, 18, protowire.Bytes},
}

// A Tensor is a TensorProto.
//
//	1  enum dtype
//	2  shape: 2 repeated dim {1 int64 size, 2 string name}, 3 bool unknown_rank
//	3  int32 version
//	4  bytes tensor_content: all elements, row by row; where it is empty, one of these:
//	5  float_val    6 double_val   7 int_val    8 string_val   10 int64_val  11 bool_val
//	13 half_val     16 uint32_val  17 uint64_val  18 float8_val
//
// Of fewer elements than the shape has the last one stands for the rest too; of none, zero
// does (Tensor::FromProto in tensorflow/core/framework/tensor.cc).
type Tensor struct {
	Type  DType
	Rank  int
	Count int64 // elements by the shape; 1 for rank 0, -1 where it is unknown or too large

	b       []byte
	content []byte
	val     []byte // payload of the only packed field of values
	field   uint32 // tag of it
	fields  int    // how many fields of values there are
}

func (t *Tensor) decode(b []byte) error {
	*t = Tensor{Count: 1, b: b}
	m := protowire.Decode(b)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			t.Type = DType(m.Int())
		case 2<<3 | protowire.Bytes:
			if s := m.Bytes(); len(s) > 0 {
				if err := t.shape(s); err != nil {
					return err
				}
			}
		case 4<<3 | protowire.Bytes:
			t.content = m.Bytes()
		default:
			if m.Number() >= 5 {
				t.fields++
				t.field, t.val = m.Tag, m.Bytes()
			}
		}
	}
	return m.Err()
}

func (t *Tensor) shape(b []byte) error {
	m := protowire.Decode(b)
	for m.Next() {
		switch m.Tag {
		case 2<<3 | protowire.Bytes:
			t.Rank++
			size := int64(0)
			d := m.Message()
			for d.Next() {
				if d.Tag == 1<<3|protowire.Varint {
					size = d.Int()
				}
			}
			if err := d.Err(); err != nil {
				return err
			}
			switch {
			case size < 0 || t.Count < 0 || size > 0 && t.Count > math.MaxInt32/size:
				t.Count = -1
			default:
				t.Count *= size
			}
		case 3<<3 | protowire.Varint:
			if m.Bool() {
				t.Count = -1
			}
		}
	}
	return m.Err()
}

// Numeric reports whether the elements are numbers of a type known here.
func (t *Tensor) Numeric() bool {
	return t.Type > 0 && int(t.Type) < len(layouts) && layouts[t.Type].size > 0
}

// Scalar returns the element of a numeric tensor that has exactly one.
func (t *Tensor) Scalar() (v float64, ok bool) {
	if t.Count != 1 || !t.Numeric() {
		return 0, false
	}
	l := &layouts[t.Type]
	switch {
	case len(t.content) > 0:
		if len(t.content) != int(l.size) {
			return 0, false
		}
		return t.Type.raw(t.content), true
	case t.fields == 0:
		return 0, true
	case t.fields == 1 && t.Type == Float32 && t.field == 5<<3|protowire.Bytes && len(t.val) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(t.val))), true
	}
	n := 0
	t.each(func(e float64) {
		if n == 0 {
			v = e
		}
		n++
	})
	return v, true
}

// Nonfinite counts the elements that are not finite.
func (t *Tensor) Nonfinite() int64 {
	switch t.Type {
	case Float32, Float64, Half, BFloat16, Float8E5M2, Float8E4M3FN, Float8E4M3FNUZ, Float8E4M3B11Fnz, Float8E5M2FNUZ:
	default:
		return 0
	}
	n, all, bad := int64(0), int64(0), false
	t.each(func(e float64) {
		all++
		if bad = e-e != 0; bad {
			n++
		}
	})
	if bad && t.Count > all {
		n += t.Count - all
	}
	return n
}

// each gives the elements that are written to f, in order.
func (t *Tensor) each(f func(float64)) {
	l := &layouts[t.Type]
	size := int(l.size)
	if len(t.content) > 0 {
		for b := t.content; len(b) >= size; b = b[size:] {
			f(t.Type.raw(b))
		}
		return
	}
	for m := protowire.Decode(t.b); m.Next(); {
		if m.Number() != int(l.field) {
			continue
		}
		switch b := m.Bytes(); {
		case m.Tag&7 == uint32(l.wire) && l.wire != protowire.Bytes:
			f(t.Type.number(m.Uint()))
		case m.Tag&7 != protowire.Bytes:
		case l.wire == protowire.Fixed32:
			for ; len(b) >= 4; b = b[4:] {
				f(t.Type.number(uint64(binary.LittleEndian.Uint32(b))))
			}
		case l.wire == protowire.Fixed64:
			for ; len(b) >= 8; b = b[8:] {
				f(t.Type.number(binary.LittleEndian.Uint64(b)))
			}
		case l.wire == protowire.Varint:
			for len(b) > 0 {
				v, n := protowire.Uvarint(b)
				if n == 0 {
					break
				}
				f(t.Type.number(v))
				b = b[n:]
			}
		default:
			for _, c := range b {
				f(t.Type.number(uint64(c)))
			}
		}
	}
}

// Strings returns the elements of a String tensor.
func (t *Tensor) Strings() [][]byte {
	if t.Type != String {
		return nil
	}
	var all [][]byte
	for m := protowire.Decode(t.b); m.Next(); {
		if m.Tag == 8<<3|protowire.Bytes {
			all = append(all, m.Bytes())
		}
	}
	return all
}

// raw reads the first element of tensor_content.
func (d DType) raw(b []byte) float64 {
	switch layouts[d].size {
	case 1:
		if d == Int8 || d == Int4 {
			return float64(int8(b[0]))
		}
		return d.number(uint64(b[0]))
	case 2:
		v := binary.LittleEndian.Uint16(b)
		if d == Int16 {
			return float64(int16(v))
		}
		return d.number(uint64(v))
	case 4:
		v := binary.LittleEndian.Uint32(b)
		if d == Int32 {
			return float64(int32(v))
		}
		return d.number(uint64(v))
	default:
		return d.number(binary.LittleEndian.Uint64(b))
	}
}

// number is the value of an element as its repeated field has it.
func (d DType) number(v uint64) float64 {
	switch d {
	case Float32:
		return float64(math.Float32frombits(uint32(v)))
	case Float64:
		return math.Float64frombits(v)
	case Half:
		return small(v, 5, 10, 15, ieee)
	case BFloat16:
		return float64(math.Float32frombits(uint32(v) << 16))
	case Float8E5M2:
		return small(v, 5, 2, 15, ieee)
	case Float8E4M3FN:
		return small(v, 4, 3, 7, allOnes)
	case Float8E4M3FNUZ:
		return small(v, 4, 3, 8, minusZero)
	case Float8E4M3B11Fnz:
		return small(v, 4, 3, 11, minusZero)
	case Float8E5M2FNUZ:
		return small(v, 5, 2, 16, minusZero)
	case Uint8, Uint16, Uint32, Uint64, Uint4:
		return float64(v)
	case Bool:
		if v != 0 {
			return 1
		}
		return 0
	default:
		return float64(int64(v))
	}
}

// What stands for NaN in a small float.
const (
	ieee      = iota // the highest exponent: infinity with mantissa 0, NaN otherwise
	allOnes          // all bits but the sign; there is no infinity
	minusZero        // the sign alone; there is no infinity
)

// small is the value of a float with a sign, exp bits of exponent and man bits of mantissa.
func small(v uint64, exp, man, bias uint, nan int) float64 {
	e, m := int(v>>man&(1<<exp-1)), v&(1<<man-1)
	negative := v>>(exp+man)&1 != 0
	var f float64
	switch {
	case nan == ieee && e == 1<<exp-1 && m == 0:
		f = math.Inf(1)
	case nan == ieee && e == 1<<exp-1, nan == allOnes && e == 1<<exp-1 && m == 1<<man-1, nan == minusZero && negative && e == 0 && m == 0:
		return math.NaN()
	case e == 0:
		f = math.Ldexp(float64(m), 1-int(bias)-int(man))
	default:
		f = math.Ldexp(float64(m|1<<man), e-int(bias)-int(man))
	}
	if negative {
		f = -f
	}
	return f
}
