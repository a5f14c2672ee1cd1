package kernlog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// journalFields are the fields of a journal entry that are used
// (systemd.journal-fields(7)).
var journalFields = map[string]bool{
	"MESSAGE": true, "__REALTIME_TIMESTAMP": true, "__MONOTONIC_TIMESTAMP": true, "_SOURCE_MONOTONIC_TIMESTAMP": true, "_BOOT_ID": true,
	"_HOSTNAME": true, "SYSLOG_IDENTIFIER": true, "_TRANSPORT": true, "_PID": true, "_COMM": true, "_KERNEL_DEVICE": true,
}

// entry makes a record of an entry's fields. An entry without a message is none.
func (f *framer) entry(fields map[string]string) (record, bool) {
	r := record{pid: number(fields["_PID"]), host: fields["_HOSTNAME"], ident: fields["SYSLOG_IDENTIFIER"], kernel: fields["_TRANSPORT"] == "kernel"}
	if r.ident == "" {
		r.ident = fields["_COMM"]
	}
	text, ok := fields["MESSAGE"]
	if !ok {
		return r, false
	}
	if id := fields["_BOOT_ID"]; id != "" {
		if f.command != "" && f.command != id {
			f.boots++
			f.highest = 0
		}
		f.command = id
	}
	real, err1 := strconv.ParseInt(fields["__REALTIME_TIMESTAMP"], 10, 64)
	mono, err2 := strconv.ParseInt(fields["__MONOTONIC_TIMESTAMP"], 10, 64)
	source, err3 := strconv.ParseInt(fields["_SOURCE_MONOTONIC_TIMESTAMP"], 10, 64)
	const most = 1 << 53 // microseconds
	if err1 == nil && real > 0 && real < most {
		at := time.UnixMicro(real).UTC()
		if err2 == nil && err3 == nil && source <= mono && mono < most { // the journal took it later than it was written
			at = at.Add(-time.Duration(mono-source) * time.Microsecond)
		}
		r.stamp = evidence.Stamp{Time: at, Written: fields["__REALTIME_TIMESTAMP"], Zone: "Z", Error: time.Millisecond, Clock: "wall"}
	}
	if err3 == nil {
		mono, err2 = source, nil
	}
	if err2 == nil && mono >= 0 && mono < most {
		r.other = f.bootStamp(strconv.FormatFloat(float64(mono)/1e6, 'f', 6, 64))
	}
	if d, ok := strings.CutPrefix(fields["_KERNEL_DEVICE"], "+pci:"); ok {
		r.device = busID(d)
	}
	r, _ = f.is(r, journal, clean(text))
	return r, true
}

// object reads a line of journalctl -o json, json-seq or json-sse.
func (f *framer) object(s string) (record, verdict) {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &all) != nil || all["__REALTIME_TIMESTAMP"] == nil {
		return record{}, notFramed
	}
	fields := map[string]string{}
	for n := range journalFields {
		if v := jsonText(all[n]); v != "" {
			fields[n] = v
		}
	}
	r, ok := f.entry(fields)
	if !ok {
		return r, isHeader
	}
	return r, isRecord
}

// jsonText is a field as text: a string, or an array of byte values where the field
// is not UTF-8, or of strings where it stands several times.
func jsonText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var bytes []int
	if json.Unmarshal(raw, &bytes) == nil {
		out := make([]byte, len(bytes))
		for i, b := range bytes {
			out[i] = byte(b)
		}
		return string(out)
	}
	var several []string
	if json.Unmarshal(raw, &several) == nil && len(several) > 0 {
		return several[0]
	}
	return ""
}

// export reads journalctl -o export (systemd's Journal Export Format): entries are
// separated by an empty line; a field is NAME=value, or for values with newlines
//
//	NAME \n | length, 8 bytes little-endian | value | \n
func (p *pass) export(src *source, l line) error {
	fields := map[string]string{}
	var at evidence.Span
	entry := func() {
		if len(fields) == 0 {
			return
		}
		if r, ok := p.frame.entry(fields); ok {
			r.span, r.line = at, r.text
			p.record(r)
		} else {
			p.tally.headers++
		}
		clear(fields)
	}
	var err error
	for ; ; l, err = src.line() {
		if err != nil && l.raw == "" {
			entry()
			return err
		}
		p.tally.lines++
		name, value, plain := strings.Cut(l.raw, "=")
		switch {
		case l.raw == "":
			p.tally.blank++
			entry()
		case plain:
			if l.long && name == "MESSAGE" {
				p.sink.Damage(p.span(l), errField)
			}
			if journalFields[name] {
				fields[name] = value
				if name == "MESSAGE" {
					at = p.span(l)
				}
			}
		case err == nil:
			if err := p.binary(src, name, fields, &at); err != nil {
				entry()
				return err
			}
		}
		if err != nil {
			entry()
			return err
		}
	}
}

// binary reads a field with a length.
func (p *pass) binary(src *source, name string, fields map[string]string, at *evidence.Span) error {
	head, err := src.bytes(8)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(head)
	start := line{num: src.num + 1, off: src.off}
	if n > maxField {
		p.sink.Damage(p.span(start), errField)
		if n > 1<<40 {
			return io.EOF // nothing behind it can be found again
		}
		return src.skip(int64(n) + 1)
	}
	value, err := src.bytes(int(n))
	if journalFields[name] {
		fields[name] = string(value)
		if name == "MESSAGE" {
			text, _, _ := strings.Cut(string(value), "\n")
			start.raw = text
			*at = p.span(start)
			at.Column = 0
		}
	}
	if err != nil {
		return err
	}
	if _, err := src.bytes(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// A blockEntry is an entry of journalctl -o json-pretty or -o verbose, which takes
// several lines.
type blockEntry struct {
	form   byte // '{' json-pretty, 'v' verbose, 0 none is open
	fields map[string]string
	span   evidence.Span // of the message
	size   int
}

var (
	// verboseHead begins an entry of -o verbose: time, cursor.
	verboseHead  = lazyre.New(`^[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ \[s=[0-9a-f]+;`)
	verboseField = lazyre.New(`^    ([A-Z_0-9]+)=(.*)$`)
	prettyField  = lazyre.New(`^\s+"([A-Za-z_0-9]+)" : (.*?),?$`)
	cursorTimes  = lazyre.New(`;b=([0-9a-f]+);m=([0-9a-f]+);t=([0-9a-f]+);`)
)

// block takes a line of an entry that takes several. It reports whether it was one.
func (p *pass) block(l line, text string) bool {
	e := &p.entry
	switch {
	case text == "{":
		p.endEntry()
		*e = blockEntry{form: '{', fields: map[string]string{}}
	case len(text) > 40 && text[3] == ' ' && verboseHead.MatchString(text):
		p.endEntry()
		*e = blockEntry{form: 'v', fields: map[string]string{}}
		if m := cursorTimes.FindStringSubmatch(text); m != nil { // the line has them in seconds, the cursor in microseconds
			e.fields["_BOOT_ID"] = m[1]
			for i, n := range []string{"__MONOTONIC_TIMESTAMP", "__REALTIME_TIMESTAMP"} {
				if v, err := strconv.ParseUint(m[2+i], 16, 63); err == nil {
					e.fields[n] = strconv.FormatUint(v, 10)
				}
			}
		}
	case e.form == '{':
		if text == "}" || text == "}," {
			p.tally.continued++
			p.endEntry()
			return true
		}
		m := prettyField.FindStringSubmatch(text)
		if m == nil { // it was no entry
			p.endEntry()
			return false
		}
		if journalFields[m[1]] && e.size < maxField {
			e.size += len(m[2])
			if v := jsonText(json.RawMessage(m[2])); v != "" {
				e.fields[m[1]] = v
			}
		}
		if m[1] == "MESSAGE" {
			e.span = p.span(l)
		}
	case e.form == 'v':
		m := verboseField.FindStringSubmatch(text)
		if m == nil {
			if !strings.HasPrefix(text, "    ") { // no more of it
				p.endEntry()
				return false
			}
			break // a message goes on
		}
		if journalFields[m[1]] && e.size < maxField {
			e.size += len(m[2])
			e.fields[m[1]] = m[2]
		}
		if m[1] == "MESSAGE" {
			e.span = p.span(l)
		}
	default:
		return false
	}
	p.tally.continued++
	return true
}

// endEntry makes a record of the entry that is open. Its lines were counted as
// continued: the record takes one of them.
func (p *pass) endEntry() {
	e := p.entry
	p.entry = blockEntry{}
	if e.form == 0 {
		return
	}
	if r, ok := p.frame.entry(e.fields); ok && e.span.Artifact != "" {
		r.span, r.line = e.span, r.text
		p.tally.continued--
		p.record(r)
	}
}
