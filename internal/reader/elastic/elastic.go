// Package elastic reads the error files of torchelastic: what a worker under
// @record (torch.distributed.elastic.multiprocessing.errors), or the agent above
// it, writes to the file that TORCHELASTIC_ERROR_FILE names. torchrun puts one
// beside the logs of each local rank: <run id>_<random>/attempt_<k>/<local
// rank>/error.json.
//
// The forms, by ErrorHandler of PyTorch 1.9 to 2.9 (error_handler.py):
//
//	{"message": {"message": "ValueError: …",
//	             "extraInfo": {"py_callstack": "Traceback …", "timestamp": "1767322000"},
//	             "errorCode": 1}}
//	{"message": "…"}                    what other handlers and older versions write
//
// timestamp is time.time() cut to whole seconds, as text; errorCode is there when
// the agent copied the file of its first failed worker. What the exception is,
// the reader of logs says: an error file quotes what the worker printed.
package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxFile  = 4 << 20 // bytes of an error file; a call stack takes some kilobytes
	maxQuote = 1024    // bytes kept as a quote
	maxText  = 4 << 10 // bytes of an event's text
)

var (
	errCut  = errors.New("the error file has no end: what stands before it was read")
	errLong = errors.New("over limit: error file longer than 4 MiB")
)

// New returns the reader. log is the reader of logs, which says what a message
// means.
func New(log reader.Reader) reader.Reader { return elasticFile{log} }

type elasticFile struct{ log reader.Reader }

func (elasticFile) Name() string { return "elastic" }

// Sniff claims a JSON object whose first key is "message" and that is called
// error.json or shows the keys of an error file.
func (elasticFile) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	rest, ok := bytes.CutPrefix(text, []byte("{"))
	if !ok {
		return reader.No
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"message"`)); !ok {
		return reader.No
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")); !ok {
		return reader.No
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	nested := bytes.HasPrefix(rest, []byte("{"))
	base := reader.BaseOf(a.Path)
	switch {
	case strings.EqualFold(base, "error.json") || strings.HasSuffix(base, "_error.json"):
		return reader.Sure
	case nested && (bytes.Contains(rest, []byte(`"extraInfo"`)) || bytes.Contains(rest, []byte(`"py_callstack"`))):
		return reader.Sure
	}
	return reader.No
}

// Read implements reader.Reader.
func (r elasticFile) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return fmt.Errorf("open error file: %w", err)
	}
	defer f.Close()
	data, more, err := slurp(ctx, f)
	if err != nil {
		return err
	}
	end := evidence.Span{Artifact: in.Artifact.Path, Kind: "text", Line: int64(bytes.Count(data, []byte("\n"))) + 1, Offset: int64(len(data))}
	if more {
		s.Damage(end, errLong)
	}
	e, whole := decode(data)
	if !whole && !more && len(bytes.TrimSpace(data)) > 0 {
		s.Damage(end, errCut)
	}
	if e.stack == "" && e.message == "" {
		return nil
	}
	return r.emit(ctx, in.Artifact, data, e, s)
}

// slurp reads up to maxFile bytes and says whether there are more.
func slurp(ctx context.Context, f io.Reader) (data []byte, more bool, err error) {
	buf := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		n, err := f.Read(buf)
		if keep := min(n, maxFile-len(data)); keep > 0 {
			data = append(data, buf[:keep]...)
		}
		more = more || n > 0 && len(data) == maxFile
		if err == io.EOF {
			return data, more, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("read error file: %w", err)
		}
		if len(data) == maxFile { // drained, so that the caller's count of bytes is right
			continue
		}
	}
}

// An errorFile is what a file states. at is the offset of the string that the
// event quotes: the message, or the call stack where there is no message.
type errorFile struct {
	message, stack, timestamp string
	code                      int64
	coded                     bool
	at, end                   int
}

// decode takes from data every string under the known keys, also where the file is
// cut. whole says that it is one complete JSON value.
func decode(data []byte) (e errorFile, whole bool) {
	body := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	skip := len(data) - len(body)
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	key, isKey := "", false
	var open []bool // true for an object
	for {
		t, err := d.Token()
		if err != nil {
			return e, err == io.EOF && len(open) == 0
		}
		end := skip + int(d.InputOffset())
		switch v := t.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				open = append(open, v == '{')
				if len(open) > 32 {
					return e, false
				}
			} else {
				open = open[:len(open)-1]
			}
			isKey = len(open) > 0 && open[len(open)-1]
			continue
		case string:
			if isKey {
				key, isKey = v, false
				continue
			}
			e.take(key, v, data, end)
		case json.Number:
			e.take(key, v.String(), data, end)
		}
		isKey = len(open) > 0 && open[len(open)-1]
	}
}

// take files one value; the first of each key counts.
func (e *errorFile) take(key, v string, data []byte, end int) {
	switch key {
	case "message":
		if e.message == "" {
			e.message, e.at, e.end = v, quoteStart(data, end), end
		}
	case "py_callstack":
		if e.stack == "" {
			e.stack = v
			if e.message == "" {
				e.at, e.end = quoteStart(data, end), end
			}
		}
	case "timestamp":
		if e.timestamp == "" {
			e.timestamp = v
		}
	case "errorCode":
		if n, err := strconv.ParseInt(v, 10, 32); err == nil {
			e.code, e.coded = n, true
		}
	}
}

// quoteStart is the offset of the quotation mark that begins the JSON string
// that ends at end.
func quoteStart(data []byte, end int) int {
	for i := end - 2; i >= 0; i-- {
		if data[i] != '"' {
			continue
		}
		n := 0
		for j := i - 1; j >= 0 && data[j] == '\\'; j-- {
			n++
		}
		if n%2 == 0 {
			return i
		}
	}
	return 0
}

// stamp is the time of the exception: whole seconds of the epoch, so that the
// instant lies within the second that begins there.
func (e *errorFile) stamp() evidence.Stamp {
	n, err := strconv.ParseInt(e.timestamp, 10, 64)
	if err != nil || n < 1e8 || n > 1e11 {
		return evidence.Stamp{}
	}
	return evidence.Stamp{Time: time.Unix(n, 5e8).UTC(), Written: e.timestamp, Zone: "Z", Error: time.Second / 2, Clock: "wall"}
}

// emit has the log reader read the stack, or the message where there is none or
// the stack says nothing of it, and puts its events down at the file's own place.
func (r elasticFile) emit(ctx context.Context, a evidence.Artifact, data []byte, e errorFile, s reader.Sink) error {
	span := spanOf(a.Path, data, e.at, e.end)
	stamp := e.stamp()
	for _, text := range []string{e.stack, e.message} {
		if text == "" {
			continue
		}
		c, err := reader.Within(ctx, r.log, a, []byte(strings.TrimRight(text, "\n")+"\n"))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read message: %w", err)
		}
		if put(c.Events, span, stamp, s) {
			return nil
		}
	}
	s.Event(e.plain(a, span, stamp))
	return nil
}

// put hands over the failures among events and reports whether there was one.
func put(events []evidence.Event, span evidence.Span, stamp evidence.Stamp, s reader.Sink) bool {
	any := false
	for _, x := range events {
		spec := evidence.SpecOf(x.Kind)
		if spec == nil || spec.Role != evidence.RoleFault && spec.Role != evidence.RoleStop && spec.Role != evidence.RoleEffect {
			continue
		}
		any = true
		x.Span, x.Stamp, x.Who.Launch, x.Step = span, stamp, 0, evidence.None
		s.Event(x)
	}
	return any
}

// plain is the event of a message that no wording knows: the exception that it
// names, or the end of the process.
func (e *errorFile) plain(a evidence.Artifact, span evidence.Span, stamp evidence.Stamp) evidence.Event {
	x := evidence.Event{Kind: evidence.Exited, Who: evidence.Nobody(), Step: evidence.None, Stamp: stamp, Span: span, Text: printable(e.message), Attrs: evidence.Attrs{"what": evidence.TextOf("torchelastic")}}
	if a.Owner != (evidence.Owner{}) {
		x.Who.Rank, x.Who.LocalRank = a.Owner.Rank, a.Owner.LocalRank
	}
	if e.coded {
		x.Attrs["code"] = evidence.IntOf(e.code)
	}
	var signal, pid int64
	var name string
	if n, _ := fmt.Sscanf(e.message, "Signal %d %s received by PID %d", &signal, &name, &pid); n == 3 && signal > 0 && signal < 128 && pid > 0 && pid < 1<<31 {
		x.Attrs["signal"], x.Attrs["pid"] = evidence.IntOf(signal), evidence.IntOf(pid)
		x.Who.PID = int(pid)
		return x
	}
	if name, rest, ok := strings.Cut(e.message, ":"); ok && isException(name) {
		x.Kind = evidence.Exception
		x.Attrs = evidence.Attrs{"type": evidence.TextOf(name), "message": evidence.TextOf(printable(strings.TrimSpace(rest)))}
	}
	return x
}

// isException reports whether name can be the type of a Python exception.
func isException(name string) bool {
	if name == "" || len(name) > 120 {
		return false
	}
	for _, c := range []byte(name) {
		if c != '.' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != "" && last[0] >= 'A' && last[0] <= 'Z'
}

// printable is the first line of a message without escapes and control bytes.
func printable(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return textline.Cut(textline.Clean(text), maxText)
}

// spanOf is the place of data[at:end] as text, cut to maxQuote.
func spanOf(path string, data []byte, at, end int) evidence.Span {
	end = min(end, at+maxQuote)
	line := bytes.Count(data[:at], []byte("\n"))
	column := at - (bytes.LastIndexByte(data[:at], '\n') + 1) + 1
	return evidence.Span{Artifact: path, Kind: "text", Line: int64(line) + 1, Column: column, Offset: int64(at), Length: int64(end - at), Quote: string(data[at:end])}
}
