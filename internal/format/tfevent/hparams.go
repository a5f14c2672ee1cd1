package tfevent

import (
	"strconv"

	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// The states of a session of the hparams plugin.
const (
	StatusUnknown = 0
	StatusSuccess = 1
	StatusFailure = 2
	StatusRunning = 3
)

// A Session is what the hparams plugin keeps in the metadata of one value
// (tensorboard/plugins/hparams/plugin_data.proto and api.proto).
//
//	1 version  2 Experiment
//	3 SessionStartInfo: 1 map hparams {1 key, 2 google.protobuf.Value}, 4 group_name, 5 double start_time_secs
//	4 SessionEndInfo: 1 enum status, 2 double end_time_secs
type Session struct {
	HasStart, HasEnd bool
	Params           []Param // in the order in which they are written
	Start, End       float64 // seconds since 1970, 0 unknown
	Status           int64
}

// A Param is one hyperparameter, written as JSON writes it but for strings, which stand
// as they are.
type Param struct{ Name, Value string }

const (
	maxParams = 2048
	maxParam  = 4096 // bytes of one value
)

// Decode reads the content of a value's metadata for the hparams plugin; what stood
// before an error is returned.
func (s *Session) Decode(content []byte) error {
	*s = Session{}
	m := protowire.Decode(content)
	for m.Next() {
		switch m.Tag {
		case 3<<3 | protowire.Bytes:
			s.HasStart = true
			for in := m.Message(); in.Next(); {
				switch in.Tag {
				case 1<<3 | protowire.Bytes:
					if len(s.Params) < maxParams {
						s.param(in.Bytes())
					}
				case 5<<3 | protowire.Fixed64:
					s.Start = in.Double()
				}
			}
		case 4<<3 | protowire.Bytes:
			s.HasEnd = true
			for in := m.Message(); in.Next(); {
				switch in.Tag {
				case 1<<3 | protowire.Varint:
					s.Status = in.Int()
				case 2<<3 | protowire.Fixed64:
					s.End = in.Double()
				}
			}
		}
	}
	return m.Err()
}

func (s *Session) param(entry []byte) {
	var p Param
	for m := protowire.Decode(entry); m.Next(); {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			p.Name = textline.OneLine(m.Text(), MaxName)
		case 2<<3 | protowire.Bytes:
			for v := m.Message(); v.Next(); {
				switch v.Tag {
				case 1<<3 | protowire.Varint:
					p.Value = "null"
				case 2<<3 | protowire.Fixed64:
					p.Value = strconv.FormatFloat(v.Double(), 'g', -1, 64)
				case 3<<3 | protowire.Bytes:
					p.Value = textline.OneLine(textline.Cut(v.Text(), maxParam), maxParam)
				case 4<<3 | protowire.Varint:
					p.Value = strconv.FormatBool(v.Bool())
				}
			}
		}
	}
	if p.Name != "" {
		s.Params = append(s.Params, p)
	}
}
