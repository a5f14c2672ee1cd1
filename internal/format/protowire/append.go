package protowire

import (
	"encoding/binary"
	"math"
)

// The Append functions add one field to an encoded message and return the extended slice.
// They write zero values too: who wants proto3's omission leaves the call out.

// AppendVarint adds a field of type uint64, or of any integer, enum or bool type that v
// is the conversion of.
func AppendVarint(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, tag(field, Varint)), v)
}

// AppendDouble adds a field of type double.
func AppendDouble(b []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, tag(field, Fixed64)), math.Float64bits(v))
}

// AppendFloat adds a field of type float.
func AppendFloat(b []byte, field int, v float32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, tag(field, Fixed32)), math.Float32bits(v))
}

// AppendBytes adds a field with a length: bytes, or an encoded message.
func AppendBytes[T ~[]byte | ~string](b []byte, field int, v T) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, tag(field, Bytes)), uint64(len(v)))
	return append(b, v...)
}

func tag(field, wire int) uint64 { return uint64(field)<<3 | uint64(wire) }
