// Package wandblog decodes the records of the log that Weights & Biases keeps of a run
// (run-<id>.wandb): what leveldblog takes out of the file is one message Record of
// wandb_internal.proto each. Reader and writer of such logs share it, so that both name the
// same series and meet the same points in the same order.
//
// Of a Record this package knows
//
//	 1 num       int64, counted from 1
//	 2 history   1 item*, 2 step{1 num}
//	 3 summary   1 update*, 2 remove*
//	 4 output    1 type (0 stderr, 1 stdout), 2 time, 3 line
//	 5 config    1 update*, 2 remove*
//	 7 stats     2 time, 3 item*
//	 9 tbrecord  1 log_dir, 3 root_dir
//	10 alert     1 title, 2 text, 3 level
//	12 metric    1 name, 2 glob_name, 4 step_metric
//	13 output_raw   as output
//	17 run       1 run_id, 2 entity, 3 project, 4 config, 6 group, 7 job_type, 8 display_name, 9 notes,
//	             10 tags*, 13 host, 14 starting_step, 17 start_time, 18 resumed
//	18 exit      1 exit_code, 2 runtime
//	26 environment  1 os, 2 python, 3 started_at, 5 args*, 6 program, 12 host, 18 gpu, 19 gpu_count
//	27 output_logger   1 line
//
// where an item is {1 key, 2 nested_key*, 16 value_json} and a time {1 seconds, 2 nanos}. Scalars
// that are 0 are not written. value_json is JSON as Python writes it: NaN, Infinity and
// -Infinity stand bare.
//
// Source: wandb/proto/wandb_internal.proto of wandb 0.10 to 0.31; wandb-core's own dump of
// files of these versions agrees.
package wandblog

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Ident is how a log begins, Header its whole header.
const (
	Ident  = ":W&B\xe1\xbe"
	Header = Ident + "\x00"
)

// What a record holds: field numbers of Record.
const (
	History      = 2
	Summary      = 3
	Output       = 4
	Config       = 5
	Files        = 6
	Stats        = 7
	Artifact     = 8
	TBRecord     = 9
	Alert        = 10
	Telemetry    = 11
	Metric       = 12
	OutputRaw    = 13
	Run          = 17
	Exit         = 18
	Final        = 20
	HeaderRecord = 21
	Footer       = 22
	Preempting   = 23
	Noop         = 24
	UseArtifact  = 25
	Environment  = 26
	OutputLogger = 27
	Request      = 100
)

// names are the field names of what a record holds.
var names = map[int]string{History: "history", Summary: "summary", Output: "output", Config: "config", Files: "files", Stats: "stats",
	Artifact: "artifact", TBRecord: "tbrecord", Alert: "alert", Telemetry: "telemetry", Metric: "metric", OutputRaw: "output_raw", Run: "run",
	Exit: "exit", Final: "final", HeaderRecord: "header", Footer: "footer", Preempting: "preempting", Noop: "noop_link_artifact",
	UseArtifact: "use_artifact", Environment: "environment", OutputLogger: "output_logger", Request: "request"}

// NameOf is the name of what a record holds.
func NameOf(kind int) string {
	if n, ok := names[kind]; ok {
		return n
	}
	if kind == 0 {
		return "nothing"
	}
	return fmt.Sprintf("field %d", kind)
}

// A Record is one record. Body refers to the bytes it was decoded from.
type Record struct {
	Num        int64
	Kind       int    // field number of what it holds, 0 for nothing
	Body       []byte // the message in that field
	start, end int    // of the field with its tag
}

// Decode takes the envelope of a record apart.
func Decode(raw []byte) (Record, error) {
	var r Record
	m := protowire.Decode(raw)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			r.Num = m.Int()
		case 16<<3 | protowire.Bytes, 19<<3 | protowire.Bytes, 200<<3 | protowire.Bytes: // control, uuid, _info
		default:
			if body := m.Bytes(); body != nil {
				r.Kind, r.Body = m.Number(), body
				r.start, r.end = m.Offset(), m.Offset()+len(m.Raw())
			}
		}
	}
	return r, m.Err()
}

// Replace appends to dst the record raw, which r was decoded from, with another body.
func (r *Record) Replace(dst, raw, body []byte) []byte {
	dst = append(dst, raw[:r.start]...)
	dst = protowire.AppendBytes(dst, r.Kind, body)
	return append(dst, raw[r.end:]...)
}

// Make appends to dst a new record.
func Make(dst []byte, num int64, kind int, body []byte) []byte {
	if num != 0 {
		dst = protowire.AppendVarint(dst, 1, uint64(num))
	}
	return protowire.AppendBytes(dst, kind, body)
}

// AppendItem appends an item as field of a message: one key and its value in JSON.
func AppendItem(dst []byte, field int, key, json string) []byte {
	item := protowire.AppendBytes(nil, 1, key)
	item = protowire.AppendBytes(item, 16, json)
	return protowire.AppendBytes(dst, field, item)
}

// timestamp is the time of a message {1 seconds, 2 nanos} in seconds since 1970.
func timestamp(b []byte) float64 {
	var sec, nanos int64
	m := protowire.Decode(b)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			sec = m.Int()
		case 2<<3 | protowire.Varint:
			nanos = m.Int()
		}
	}
	return float64(sec) + float64(nanos)/1e9
}

// An Item is a key of a configuration or summary with its value.
type Item struct {
	Name string // nested keys with dots between them
	JSON []byte
	Raw  []byte // the whole field with its tag
}

// Items calls fn for each item in a field of a message, as summary and config have them, until
// it returns false.
func Items(body []byte, field int, fn func(Item) bool) error {
	m := protowire.Decode(body)
	for m.Next() {
		if m.Tag != uint32(field)<<3|protowire.Bytes {
			continue
		}
		key, value, err := item(m.Bytes(), nil)
		if err != nil {
			return err
		}
		name, _ := nameOf(key)
		if !fn(Item{Name: name, JSON: value, Raw: m.Raw()}) {
			return nil
		}
	}
	return m.Err()
}

// item takes an item apart: the fields of its key, raw, and its value.
// Where the value does not come last the key is put together in scratch.
func item(b, scratch []byte) (key, value []byte, err error) {
	// Nearly all have one label and then the value, both shorter than 128 bytes.
	if len(b) > 2 && (b[0] == 1<<3|protowire.Bytes || b[0] == 2<<3|protowire.Bytes) && b[1] < 0x80 {
		if n := 2 + int(b[1]); n+3 <= len(b) && b[n] == 0x82 && b[n+1] == 0x01 && b[n+2] < 0x80 && n+3+int(b[n+2]) == len(b) {
			return b[:n], b[n+3:], nil
		}
	}
	key = b
	m := protowire.Decode(b)
	for m.Next() {
		if m.Tag != 16<<3|protowire.Bytes {
			continue
		}
		value = m.Bytes()
		at, end := m.Offset(), m.Offset()+len(m.Raw())
		if end == len(b) && len(key) == len(b) {
			return b[:at], value, nil
		}
		key = append(append(scratch[:0], b[:at]...), b[end:]...)
	}
	return key, value, m.Err()
}

// nameOf is the name of a series from the raw fields of its key, and how many labels it has.
func nameOf(key []byte) (name string, labels int) {
	m := protowire.Decode(key)
	var parts []string
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			name = m.Text()
		case 2<<3 | protowire.Bytes:
			parts = append(parts, m.Text())
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "."), len(parts)
	}
	return name, 1
}

// A RunMessage is what a RunRecord says.
type RunMessage struct {
	ID, Entity, Project, Group, JobType, DisplayName, Notes, Host string
	Tags                                                          []string
	Config                                                        []byte  // a ConfigRecord
	Start                                                         float64 // seconds since 1970, 0 unknown
	StartingStep                                                  int64
	Resumed                                                       bool
}

const maxTags = 256

// DecodeRun decodes a RunRecord.
func DecodeRun(body []byte) (r RunMessage, err error) {
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			r.ID = m.Text()
		case 2<<3 | protowire.Bytes:
			r.Entity = m.Text()
		case 3<<3 | protowire.Bytes:
			r.Project = m.Text()
		case 4<<3 | protowire.Bytes:
			r.Config = m.Bytes()
		case 6<<3 | protowire.Bytes:
			r.Group = m.Text()
		case 7<<3 | protowire.Bytes:
			r.JobType = m.Text()
		case 8<<3 | protowire.Bytes:
			r.DisplayName = m.Text()
		case 9<<3 | protowire.Bytes:
			r.Notes = m.Text()
		case 10<<3 | protowire.Bytes:
			if len(r.Tags) < maxTags {
				r.Tags = append(r.Tags, m.Text())
			}
		case 13<<3 | protowire.Bytes:
			r.Host = m.Text()
		case 14<<3 | protowire.Varint:
			r.StartingStep = m.Int()
		case 17<<3 | protowire.Bytes:
			r.Start = timestamp(m.Bytes())
		case 18<<3 | protowire.Varint:
			r.Resumed = m.Bool()
		}
	}
	return r, m.Err()
}

// A Line is a piece of console output.
type Line struct {
	Text   []byte
	Wall   float64 // seconds since 1970, 0 unknown
	Stdout bool
}

// DecodeLine decodes an output, output_raw or output_logger record.
func DecodeLine(kind int, body []byte) (l Line, err error) {
	text := uint32(3)
	if kind == OutputLogger {
		text = 1
	}
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case text<<3 | protowire.Bytes:
			l.Text = m.Bytes()
		case 1<<3 | protowire.Varint:
			l.Stdout = m.Int() == 1
		case 2<<3 | protowire.Bytes:
			l.Wall = timestamp(m.Bytes())
		}
	}
	return l, m.Err()
}

// DecodeExit decodes an exit record: the code, and seconds that the run took, 0 unknown.
func DecodeExit(body []byte) (code, runtime int64, err error) {
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			code = int64(int32(m.Int()))
		case 2<<3 | protowire.Varint:
			runtime = int64(int32(m.Int()))
		}
	}
	return code, runtime, m.Err()
}

// An AlertMessage is what an AlertRecord says.
type AlertMessage struct{ Title, Text, Level string }

// DecodeAlert decodes an alert record.
func DecodeAlert(body []byte) (a AlertMessage, err error) {
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			a.Title = m.Text()
		case 2<<3 | protowire.Bytes:
			a.Text = m.Text()
		case 3<<3 | protowire.Bytes:
			a.Level = m.Text()
		}
	}
	return a, m.Err()
}

// An EnvironmentMessage is what an EnvironmentRecord says.
type EnvironmentMessage struct {
	OS, Python, Program, Host, GPU string
	Args                           []string
	GPUs                           int64
	Started                        float64 // seconds since 1970, 0 unknown
}

const maxArgs = 1024

// DecodeEnvironment decodes an environment record.
func DecodeEnvironment(body []byte) (e EnvironmentMessage, err error) {
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			e.OS = m.Text()
		case 2<<3 | protowire.Bytes:
			e.Python = m.Text()
		case 3<<3 | protowire.Bytes:
			e.Started = timestamp(m.Bytes())
		case 5<<3 | protowire.Bytes:
			if len(e.Args) < maxArgs {
				e.Args = append(e.Args, m.Text())
			}
		case 6<<3 | protowire.Bytes:
			e.Program = m.Text()
		case 12<<3 | protowire.Bytes:
			e.Host = m.Text()
		case 18<<3 | protowire.Bytes:
			e.GPU = m.Text()
		case 19<<3 | protowire.Varint:
			e.GPUs = m.Int()
		}
	}
	return e, m.Err()
}

// DecodeTBRecord decodes a tbrecord: the TensorBoard folder that the run mirrors.
func DecodeTBRecord(body []byte) (dir string, err error) {
	m := protowire.Decode(body)
	for m.Next() {
		if m.Tag == 1<<3|protowire.Bytes {
			dir = m.Text()
		}
	}
	return dir, m.Err()
}

var runFolder = lazyre.New(`^(?:offline-)?run-(\d{8}_\d{6})-(.+)$`)

// ParseFolder takes the name of a run's folder apart: when it began, by the clock on its wall, and its
// id. Both are "" for any other name.
func ParseFolder(name string) (began, id string) {
	m := runFolder.FindStringSubmatch(name)
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}
