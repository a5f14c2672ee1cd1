package amdsmi

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

var errDeep = errors.New("over limit: nested more than 16 deep")

// JSON decodes a document of rocm-smi --json or amd-smi --json. at gives the line
// of a byte offset and is asked in ascending order. What stands before damage is
// handed over; the error says what it was.
//
//	{"card0": {"VRAM Total Used Memory (B)": "296853504"}, "system": {"Driver version": "6.7.0"}}
//	[{"gpu": 0, "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}}}]
//	[{"gpu": 0, "process_list": [{"process_info": {"name": "python3", "pid": 4711}}]}]
func JSON(r io.Reader, at func(offset int64) textline.Line, out Out) error {
	j := &document{dec: json.NewDecoder(r), at: at, out: out}
	j.dec.UseNumber()
	for {
		if err := j.value(nil); err != nil {
			j.end()
			if err == io.EOF {
				return nil
			}
			return err
		}
		j.end()
	}
}

// A document is being decoded token by token.
type document struct {
	dec  *json.Decoder
	at   func(int64) textline.Line
	out  Out
	tree *tree
}

// value reads one value below path; the error at the very end is io.EOF.
func (j *document) value(path []string) error {
	tok, err := j.dec.Token()
	if err != nil {
		return err
	}
	if d, ok := tok.(json.Delim); ok {
		if len(path) >= maxDepth {
			return errDeep
		}
		if d == '[' {
			for j.dec.More() {
				if err := j.value(path); err != nil {
					return unexpected(err)
				}
			}
		} else if err := j.object(path); err != nil {
			return unexpected(err)
		}
		_, err := j.dec.Token()
		return unexpected(err)
	}
	if len(path) > 0 {
		j.field(path, scalar(tok))
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func scalar(tok json.Token) string {
	switch v := tok.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return "N/A"
}

// object reads the fields of an object; a value and its unit become one.
func (j *document) object(path []string) error {
	if n := len(path); n > 0 {
		if index, ok := strings.CutPrefix(path[n-1], "card"); ok && n == 1 && textline.Small(index) != None {
			j.begin(textline.Small(index))
		}
		if path[n-1] == "process_info" && j.tree != nil {
			j.tree.field("process_info", "", "", j.here())
		}
	}
	value, unit, measured := "", "", false
	for j.dec.More() {
		tok, err := j.dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		key := keyOf(name)
		if key == "value" || key == "unit" {
			tok, err := j.dec.Token()
			if err != nil {
				return err
			}
			if _, nested := tok.(json.Delim); nested {
				return errors.New("a value that is a list")
			}
			if key == "value" {
				value, measured = scalar(tok), true
			} else {
				unit = scalar(tok)
			}
			continue
		}
		below := append(path[:len(path):len(path)], key)
		if err := j.value(below); err != nil {
			return err
		}
	}
	if measured && len(path) > 0 {
		j.field(path, strings.TrimSpace(value+" "+unit))
	}
	return nil
}

func (j *document) here() textline.Line { return j.at(j.dec.InputOffset()) }

func (j *document) begin(index int) {
	j.end()
	j.tree = &tree{out: j.out, cur: newDevice(index, j.here())}
}

func (j *document) end() {
	if j.tree != nil {
		j.tree.End()
	}
	j.tree = nil
}

// field takes one value with the names above it.
func (j *document) field(path []string, v string) {
	key, section := path[len(path)-1], ""
	if len(path) > 1 {
		section = path[len(path)-2]
	}
	switch {
	case key == "gpu" && len(path) <= 2 && textline.Small(v) != None:
		j.begin(textline.Small(v))
	case section == "system" && key == "driver_version":
		j.out.Version("driver", v, j.here())
	case section == "system" && strings.HasPrefix(key, "pid") && textline.Small(key[3:]) != None:
		// name, number of devices, bytes of VRAM, ...
		f := strings.Split(v, ",")
		p := Process{GPU: None, PID: textline.Small(key[3:]), Name: strings.TrimSpace(f[0]), Used: textline.NoBytes, At: j.here()}
		if len(f) > 2 {
			p.Used = size(f[2], 1)
		}
		j.out.Process(p)
	case j.tree != nil:
		j.tree.field(key, section, v, j.here())
	}
}
