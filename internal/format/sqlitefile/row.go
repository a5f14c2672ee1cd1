package sqlitefile

import (
	"encoding/binary"
	"math"
)

// A Kind is the storage class of a value.
type Kind uint8

const (
	Null Kind = iota
	Integer
	Real
	Text
	Blob
)

// A Row is one row of a table. It and the bytes it returns are valid until the
// function that was given it returns. Columns are counted from 0 in the order of the
// table; one that the row was written without has the column's default.
type Row struct {
	ID     int64  // rowid
	Page   uint32 // on which the row begins; 0 where that is not known
	Offset int64  // in the database file: of the pointer to its cell, which rises with the rowid on one page

	table *Table
	n     int      // columns that the record holds and the table has
	types []uint32 // serial types
	at    []int32  // where the value begins in body
	body  []byte
}

// sizes are the bytes of the values of the small serial types.
var sizes = func() (s [0x80]uint8) {
	copy(s[:], []uint8{0, 1, 2, 3, 4, 6, 8, 8})
	for t := 12; t < len(s); t++ {
		s[t] = uint8((t - 12) / 2)
	}
	return s
}()

// parse reads the header of a record.
func (r *Row) parse(rec []byte) bool {
	r.body = rec
	end, pos := uint64(0), 0
	if len(rec) > 0 && rec[0] < 0x80 {
		end, pos = uint64(rec[0]), 1
	} else {
		end, pos = varint(rec)
	}
	if pos == 0 || end > uint64(len(rec)) || end < uint64(pos) {
		return false
	}
	value := end
	head := rec[:end]
	n := 0
	types := r.types
	at := r.at[:len(types)]
	for n < len(types) && pos < len(head) {
		t, k := uint64(head[pos]), 1
		if t >= 0x80 {
			if t, k = varint(head[pos:]); k == 0 || t > 2*maxRecord+13 {
				return false
			}
		}
		pos += k
		at[n] = int32(value)
		switch {
		case t == 10 || t == 11:
			return false
		case t < uint64(len(sizes)):
			value += uint64(sizes[t])
		default:
			value += (t - 12) / 2
		}
		types[n] = uint32(t)
		n++
	}
	if value > uint64(len(rec)) { // and so may be one of the values before the last
		return false
	}
	r.n = n
	return true
}

// Kind returns the storage class of a column's value.
func (r *Row) Kind(i int) Kind {
	if i >= r.n {
		return r.table.Columns[i].missing.kind
	}
	if i == r.table.rowid && r.types[i] == 0 {
		return Integer
	}
	switch t := r.types[i]; {
	case t == 0:
		return Null
	case t == 7:
		return Real
	case t < 12:
		return Integer
	case t&1 == 0:
		return Blob
	}
	return Text
}

// Int returns an integer; a real number is cut to one, anything else is 0.
func (r *Row) Int(i int) int64 {
	if i >= r.n {
		return r.table.Columns[i].missing.integer()
	}
	b := r.body[r.at[i]:]
	switch r.types[i] {
	case 0:
		if i == r.table.rowid {
			return r.ID
		}
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 3:
		return int64(int32(uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8) >> 8)
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 5:
		return int64(int16(binary.BigEndian.Uint16(b)))<<32 | int64(binary.BigEndian.Uint32(b[2:]))
	case 6:
		return int64(binary.BigEndian.Uint64(b))
	case 7:
		return whole(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 9:
		return 1
	}
	return 0
}

// Float returns a number; anything else is 0. A column of real numbers holds those
// without a fraction as integers.
func (r *Row) Float(i int) float64 {
	if i < r.n && r.types[i] == 7 {
		return math.Float64frombits(binary.BigEndian.Uint64(r.body[r.at[i]:]))
	}
	if i >= r.n && r.table.Columns[i].missing.kind == Real {
		return r.table.Columns[i].missing.real
	}
	return float64(r.Int(i))
}

// Bytes returns the bytes of a text or blob, and nothing for anything else.
func (r *Row) Bytes(i int) []byte {
	if i >= r.n {
		return r.table.Columns[i].missing.text
	}
	t := r.types[i]
	if t < 12 {
		return nil
	}
	at := r.at[i]
	return r.body[at : at+int32((t-12)/2) : at+int32((t-12)/2)]
}

// Text is Bytes as a string.
func (r *Row) Text(i int) string { return string(r.Bytes(i)) }

// whole cuts a number to an integer, as SQLite does: the nearest that there is.
func whole(v float64) int64 {
	switch {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	case v != v:
		return 0
	}
	return int64(v)
}

// Begin makes r an empty row of a table, for those who have its values from elsewhere;
// they are appended in the order of the columns.
func (r *Row) Begin(t *Table, id int64) {
	*r = Row{ID: id, table: t, types: r.types[:0], at: r.at[:0], body: r.body[:0]}
}

func (r *Row) add(t uint32) {
	r.types, r.at = append(r.types, t), append(r.at, int32(len(r.body)))
	r.n++
}

// AppendNull appends a column without a value.
func (r *Row) AppendNull() { r.add(0) }

// AppendInt appends an integer.
func (r *Row) AppendInt(v int64) {
	r.add(6)
	r.body = binary.BigEndian.AppendUint64(r.body, uint64(v))
}

// AppendFloat appends a real number.
func (r *Row) AppendFloat(v float64) {
	r.add(7)
	r.body = binary.BigEndian.AppendUint64(r.body, math.Float64bits(v))
}

// AppendBytes appends a text, or a blob. What is longer than 64 MiB becomes NULL.
func (r *Row) AppendBytes(b []byte, blob bool) {
	if len(b) > maxRecord || len(r.body)+len(b) > 1<<30 {
		r.add(0)
		return
	}
	t := uint32(len(b))*2 + 12
	if !blob {
		t++
	}
	r.add(t)
	r.body = append(r.body, b...)
}

// varint reads a number of one to nine bytes, seven bits in each and eight in the ninth.
// It returns how many it took, 0 where b ends before.
func varint(b []byte) (v uint64, n int) {
	for n < len(b) {
		c := b[n]
		n++
		if n == 9 {
			return v<<8 | uint64(c), n
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, n
		}
	}
	return 0, 0
}
