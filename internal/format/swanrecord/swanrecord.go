// Package swanrecord decodes and encodes the records of a SwanLab log of version 2 as far as repairing
// and reading one share them:
//
//	Record        1 num · 2 timestamp · 10 start · 11 finish · 12 column · 13 scalar · 14 media · 16 log · 20 save
//	ScalarRecord  1 key · 2 step · 3 type {1 scalar} · 4 timestamp · 5 value {1 number: double}
//	Timestamp     1 seconds · 2 nanos
//
// A scalar field that is 0 is not written. Source: swanlab 0.10.3, swanlab/proto/swanlab/*/v1.
package swanrecord

import (
	"math"

	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

const (
	// Ident begins a log, name and magic; Version is the byte behind it.
	Ident   = ":SWL\xd6\xe1"
	Version = 2
)

// The fields of a record that hold what it says.
const (
	Start  = 10
	Finish = 11
	Column = 12
	Scalar = 13
	Media  = 14
	Log    = 16
	Save   = 20
)

// A Record is one record. Body is part of what was decoded.
type Record struct {
	Num  int64
	Wall float64 // seconds since 1970 at which it was written, 0 unknown
	Kind int     // number of the field that Body is, 0 for none that is known
	Body []byte
}

// Decode reads a record.
func Decode(data []byte) (r Record, err error) {
	m := protowire.Decode(data)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			r.Num = m.Int()
		case 2<<3 | protowire.Bytes:
			r.Wall = Time(m.Bytes())
		case Start<<3 | protowire.Bytes, Finish<<3 | protowire.Bytes, Column<<3 | protowire.Bytes, Scalar<<3 | protowire.Bytes, Media<<3 | protowire.Bytes, Log<<3 | protowire.Bytes, Save<<3 | protowire.Bytes:
			r.Kind, r.Body = m.Number(), m.Bytes()
		}
	}
	return r, m.Err()
}

// Time is a timestamp in seconds since 1970.
func Time(data []byte) float64 {
	var seconds, nanos int64
	m := protowire.Decode(data)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			seconds = m.Int()
		case 2<<3 | protowire.Varint:
			nanos = m.Int()
		}
	}
	return float64(seconds) + float64(nanos)/1e9
}

// A Point is what a scalar record says.
type Point struct {
	Key   []byte // part of what was decoded
	Step  int64
	Wall  float64 // its own time, or that of the record
	Value float64
}

// Name is a key or other short text of a record as it is kept and shown: on one line, without
// control characters, bounded.
func Name(b []byte) string { return textline.OneLine(string(b[:min(len(b), 4*maxName)]), maxName) }

const maxName = 1 << 10

// Point reads a record of a scalar.
func (r *Record) Point() (p Point, err error) {
	p.Wall = r.Wall
	var number []byte
	m := protowire.Decode(r.Body)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			p.Key = m.Bytes()
		case 2<<3 | protowire.Varint:
			p.Step = m.Int()
		case 4<<3 | protowire.Bytes:
			p.Wall = Time(m.Bytes())
		case 5<<3 | protowire.Bytes:
			number = m.Bytes()
		}
	}
	if err := m.Err(); err != nil {
		return p, err
	}
	for m = protowire.Decode(number); m.Next(); {
		if m.Tag == 1<<3|protowire.Fixed64 {
			p.Value = m.Double()
		}
	}
	return p, m.Err()
}

// Encode returns a record with a body.
func Encode(num int64, wall float64, kind int, body []byte) []byte {
	b := protowire.AppendVarint(nil, 1, uint64(num))
	b = AppendTime(b, 2, wall)
	return protowire.AppendBytes(b, kind, body)
}

// AppendTime adds a timestamp, nothing where it is 0.
func AppendTime(b []byte, field int, wall float64) []byte {
	if !(wall > 0 && wall < 1e11) {
		return b
	}
	whole, frac := math.Modf(wall)
	t := protowire.AppendVarint(nil, 1, uint64(whole))
	if n := uint64(math.Round(frac*1e6)) * 1e3; n > 0 && n < 1e9 {
		t = protowire.AppendVarint(t, 2, n)
	}
	return protowire.AppendBytes(b, field, t)
}

// EncodePoint returns the body of a scalar record.
func EncodePoint(key string, step int64, wall, v float64) []byte {
	b := protowire.AppendBytes(nil, 1, key)
	if step != 0 {
		b = protowire.AppendVarint(b, 2, uint64(step))
	}
	b = AppendTime(protowire.AppendVarint(b, 3, 1), 4, wall)
	var number []byte
	if v != 0 {
		number = protowire.AppendDouble(nil, 1, v)
	}
	return protowire.AppendBytes(b, 5, number)
}
