package tfevent

import (
	"github.com/inquest-dev/inquest/internal/format/protowire"
)

// Rewrite appends event to dst with each Value of its Summary passed through f, which
// appends to its argument what is to stand there: v.Raw, another encoding of it, or nothing. All
// other fields stay byte for byte. It returns how many values are left. Values that are not
// well formed, and what follows them, are left out.
func Rewrite(dst, event []byte, f func(dst []byte, v *Value) []byte) (out []byte, left int) {
	var v Value
	for m := protowire.Decode(event); m.Next(); {
		if m.Tag != 5<<3|protowire.Bytes {
			dst = append(dst, m.Raw()...)
			continue
		}
		var summary []byte
		for s := m.Message(); s.Next(); {
			if s.Tag != 1<<3|protowire.Bytes {
				summary = append(summary, s.Raw()...)
				continue
			}
			v.Raw = s.Raw()
			if v.decode(s.Bytes()) != nil {
				break
			}
			n := len(summary)
			if summary = f(summary, &v); len(summary) > n {
				left++
			}
		}
		dst = protowire.AppendBytes(dst, 5, summary)
	}
	return dst, left
}

// An Edit is what changes about a Value; nil parts stay as they are.
type Edit struct {
	Number   *float64 // of a scalar
	Metadata []byte   // encoded
}

// Append appends v to an encoded Summary, edited. A tensor gets its number as DT_DOUBLE if it
// was one, and as DT_FLOAT of the same shape otherwise, which every version of
// TensorBoard reads. Fields not known here stay byte for byte.
func (v *Value) Append(dst []byte, e Edit) []byte {
	raw := protowire.Decode(v.Raw)
	raw.Next()
	var b []byte
	for m := raw.Message(); m.Next(); {
		switch {
		case e.Number != nil && m.Tag == 2<<3|protowire.Fixed32:
			b = protowire.AppendFloat(b, 2, float32(*e.Number))
		case e.Number != nil && m.Tag == 8<<3|protowire.Bytes:
			b = protowire.AppendBytes(b, 8, number(m.Bytes(), v.Tensor.Type, *e.Number))
		case e.Metadata != nil && m.Tag == 9<<3|protowire.Bytes:
		default:
			b = append(b, m.Raw()...)
		}
	}
	if e.Metadata != nil {
		b = protowire.AppendBytes(b, 9, e.Metadata)
	}
	return protowire.AppendBytes(dst, 1, b)
}

// number encodes a tensor of the same shape as b that holds v.
func number(b []byte, t DType, v float64) []byte {
	to := Float32
	if t == Float64 {
		to = Float64
	}
	out := protowire.AppendVarint(nil, 1, uint64(to))
	for m := protowire.Decode(b); m.Next(); {
		if m.Number() != 1 && m.Number() < 4 {
			out = append(out, m.Raw()...)
		}
	}
	if to == Float64 {
		return protowire.AppendDouble(out, 6, v)
	}
	return protowire.AppendFloat(out, 5, float32(v))
}

// VersionEvent encodes the first event of a file.
func VersionEvent(wall float64) []byte {
	return protowire.AppendBytes(protowire.AppendDouble(nil, 1, wall), 3, "brain.Event:2")
}

// ScalarEvent encodes an event with one simple_value.
func ScalarEvent(wall float64, step int64, tag string, v float32) []byte {
	return valueEvent(wall, step, protowire.AppendFloat(protowire.AppendBytes(nil, 1, tag), 2, v))
}

// TextEvent encodes an event with one text, which TensorBoard shows as Markdown.
func TextEvent(wall float64, step int64, tag, text string) []byte {
	const tensors = 2 // DATA_CLASS_TENSOR
	v := protowire.AppendBytes(nil, 1, tag)
	v = protowire.AppendBytes(v, 9, protowire.AppendVarint(pluginData(Text, nil), 4, tensors))
	one := protowire.AppendBytes(nil, 2, protowire.AppendVarint(nil, 1, 1))
	tensor := protowire.AppendVarint(nil, 1, uint64(String))
	tensor = protowire.AppendBytes(tensor, 2, one)
	tensor = protowire.AppendBytes(tensor, 8, text)
	return valueEvent(wall, step, protowire.AppendBytes(v, 8, tensor))
}

// The tags under which the hparams plugin looks for its sessions.
const (
	SessionStartTag = "_hparams_/session_start_info"
	SessionEndTag   = "_hparams_/session_end_info"
)

// SessionEndEvent encodes the end of a session of the hparams plugin.
func SessionEndEvent(wall float64, status int64) []byte {
	end := protowire.AppendVarint(nil, 1, uint64(status))
	end = protowire.AppendDouble(end, 2, wall)
	content := protowire.AppendBytes(nil, 4, end)
	v := protowire.AppendBytes(nil, 1, SessionEndTag)
	v = protowire.AppendBytes(v, 9, pluginData(HParams, content))
	return valueEvent(wall, 0, v)
}

// pluginData begins an encoded SummaryMetadata.
func pluginData(plugin string, content []byte) []byte {
	d := protowire.AppendBytes(nil, 1, plugin)
	if len(content) > 0 {
		d = protowire.AppendBytes(d, 2, content)
	}
	return protowire.AppendBytes(nil, 1, d)
}

func valueEvent(wall float64, step int64, value []byte) []byte {
	b := protowire.AppendDouble(nil, 1, wall)
	if step != 0 {
		b = protowire.AppendVarint(b, 2, uint64(step))
	}
	return protowire.AppendBytes(b, 5, protowire.AppendBytes(nil, 1, value))
}
