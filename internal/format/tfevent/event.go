// Package tfevent decodes the messages of TensorBoard's event files, and rewrites them. They
// are protocol buffers (tensorflow/core/util/event.proto, summary.proto and tensor.proto;
// the tensorboard package has its own copies, read here as of 2.21), of which this
// package knows the fields that carry scalars, settings and text.
//
// Nothing decoded is copied: the parts of an Event and a Value refer to the bytes it was
// made of.
package tfevent

import (
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// An Event is one record of an event file.
//
//	1  double  wall_time, seconds since 1970, of the host that wrote it
//	2  int64   step, not written where it is 0
//	3  string  file_version        one of these:
//	4  bytes   graph_def
//	5  Summary summary
//	6  LogMessage, 7 SessionLog session_log, 8 TaggedRunMetadata, 9 bytes meta_graph_def
//	10 SourceMetadata
type Event struct {
	Wall    float64
	Step    int64
	Version []byte // file_version: "brain.Event:2"
	Summary []byte // encoded; nil where the event has none
	Session []byte // encoded SessionLog; nil where the event has none
}

// Decode reads the event b. What stood before an error is in e.
func (e *Event) Decode(b []byte) error {
	*e = Event{}
	m := protowire.Decode(b)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Fixed64:
			e.Wall = m.Double()
		case 2<<3 | protowire.Varint:
			e.Step = m.Int()
		case 3<<3 | protowire.Bytes:
			e.Version = m.Bytes()
		case 5<<3 | protowire.Bytes:
			if e.Summary == nil {
				e.Summary = m.Bytes()
			} else { // two encodings of one message make up one
				e.Summary = append(e.Summary, m.Bytes()...)
			}
		case 7<<3 | protowire.Bytes:
			e.Session = m.Bytes()
		}
	}
	return m.Err()
}

// The states of a SessionLog.
const (
	SessionStart      = 1
	SessionStop       = 2
	SessionCheckpoint = 3
)

// SessionStatus is field 1 of a SessionLog, an enum.
func SessionStatus(session []byte) int64 {
	status := int64(0)
	for m := protowire.Decode(session); m.Next(); {
		if m.Tag == 1<<3|protowire.Varint {
			status = m.Int()
		}
	}
	return status
}

// A Form says which of its alternatives a Value holds.
type Form uint8

const (
	Other     Form = iota // an image, audio, nothing, or what later versions add
	Simple                // simple_value
	Tensored              // tensor
	Histogram             // histo, as TensorFlow 1 and torch write it
)

// A Value is one value of a Summary.
//
//	1  string  tag
//	2  float   simple_value        one of these:
//	3  bytes   obsolete histogram, 4 Image, 5 HistogramProto histo, 6 Audio
//	8  TensorProto tensor
//	7  string  node_name, obsolete
//	9  SummaryMetadata metadata, on the first value of a tag at least
type Value struct {
	Tag      []byte
	Form     Form
	Simple   float32
	Tensor   Tensor
	Histo    []byte // encoded HistogramProto
	Metadata []byte // encoded; nil where the value has none
	Raw      []byte // the value as it stands in the Summary, with its field tag
}

// Values walks over the values of a Summary.
type Values struct {
	m   protowire.Message
	err error
}

// Values starts a walk over the values of e.
func (e *Event) Values() Values { return Values{m: protowire.Decode(e.Summary)} }

// Next decodes the next value into v and reports whether there is one that is well
// formed.
func (s *Values) Next(v *Value) bool {
	for s.err == nil && s.m.Next() {
		if s.m.Tag == 1<<3|protowire.Bytes {
			v.Raw = s.m.Raw()
			s.err = v.decode(s.m.Bytes())
			return s.err == nil
		}
	}
	return false
}

// Err is nil if the Summary was well formed so far.
func (s *Values) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.m.Err()
}

func (v *Value) decode(b []byte) error {
	v.Tag, v.Form, v.Metadata = nil, Other, nil
	m := protowire.Decode(b)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			v.Tag = m.Bytes()
		case 2<<3 | protowire.Fixed32:
			v.Form, v.Simple = Simple, m.Float()
		case 5<<3 | protowire.Bytes:
			v.Form, v.Histo = Histogram, m.Bytes()
		case 8<<3 | protowire.Bytes:
			v.Form = Tensored
			if err := v.Tensor.decode(m.Bytes()); err != nil {
				return err
			}
		case 3<<3 | protowire.Bytes, 4<<3 | protowire.Bytes, 6<<3 | protowire.Bytes:
			v.Form = Other
		case 9<<3 | protowire.Bytes:
			v.Metadata = m.Bytes()
		}
	}
	return m.Err()
}

// Scalar returns the number that v is, of a tag whose metadata names plugin: a
// simple_value, or a tensor with one element that is a number, of the scalars plugin or of
// none.
func (v *Value) Scalar(plugin string) (float64, bool) {
	switch {
	case v.Form == Simple:
		return float64(v.Simple), true
	case v.Form == Tensored && (plugin == Scalars || plugin == ""):
		return v.Tensor.Scalar()
	}
	return 0, false
}

// Nonfinite counts the elements of a tensor, and of the extremes and sums of a histogram,
// that are not finite.
func (v *Value) Nonfinite() int64 {
	n := int64(0)
	switch v.Form {
	case Tensored:
		n = v.Tensor.Nonfinite()
	case Histogram:
		// 1 min, 2 max, 3 num, 4 sum, 5 sum_squares: double; 6 bucket_limit, 7 bucket: packed.
		// The last limit may well be infinite.
		for m := protowire.Decode(v.Histo); m.Next(); {
			if m.Tag&7 == protowire.Fixed64 && m.Number() <= 5 && m.Double()-m.Double() != 0 {
				n++
			}
		}
	}
	return n
}

// The plugins whose values mean something here.
const (
	Scalars = "scalars"
	Text    = "text"
	HParams = "hparams"
)

// Plugin decodes a SummaryMetadata as far as its plugin_data: the plugin's name and what it
// keeps there.
//
//	1  PluginData: 1 string plugin_name, 2 bytes content
//	2  string display_name, 3 string summary_description, 4 enum data_class
func Plugin(metadata []byte) (name string, content []byte) {
	for m := protowire.Decode(metadata); m.Next(); {
		if m.Tag != 1<<3|protowire.Bytes {
			continue
		}
		for d := m.Message(); d.Next(); {
			switch d.Tag {
			case 1<<3 | protowire.Bytes:
				name = d.Text()
			case 2<<3 | protowire.Bytes:
				content = d.Bytes()
			}
		}
	}
	return name, content
}

// MaxName bounds the bytes of a series name.
const MaxName = 512

// Name is the series name of a tag: the tag itself, on one line and bounded.
func Name(tag []byte) string {
	s := string(tag)
	if len(s) <= MaxName && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
		return s
	}
	return textline.OneLine(s, MaxName)
}
