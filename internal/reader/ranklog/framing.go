package ranklog

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A framed line is what a container runtime or log export wrapped around a
// line of the program.
type framed struct {
	body    []byte // the program's line
	at      int    // offset of body in the line; -1 when body was decoded
	stamp   evidence.Stamp
	stream  string // stdout, stderr or ""
	partial bool   // the line goes on in the next one of the same stream
}

// unframe takes the framing off line.
func unframe(line []byte) framed {
	f := framed{body: line}
	switch {
	case len(line) == 0:
		return f
	case line[0] == '{':
		return unframeJSON(f)
	case !isDigit(line[0]):
		return f
	}
	if at := kaggle(line); at > 0 {
		f.stamp, _ = secondsStamp(string(line[:bytes.IndexByte(line, 's')]), "elapsed")
		f.body, f.at = line[at:], at
		return f
	}
	// Every other form begins with an RFC 3339 time that names its zone.
	if len(line) < 21 || line[4] != '-' || line[10] != 'T' {
		return f
	}
	st, n := parseStamp(string(line[:min(len(line), 40)]))
	if n == 0 || st.Zone == "" || n >= len(line) || line[n] != ' ' {
		return f
	}
	f.stamp, f.at, f.body = st, n+1, line[n+1:]
	for _, stream := range []string{"stdout", "stderr"} {
		rest, ok := bytes.CutPrefix(f.body, []byte(stream+" "))
		if !ok || len(rest) == 0 || rest[0] != 'F' && rest[0] != 'P' || len(rest) > 1 && rest[1] != ' ' {
			continue
		}
		f.stream, f.partial = stream, rest[0] == 'P'
		rest = rest[min(2, len(rest)):]
		f.at, f.body = len(line)-len(rest), rest
		break
	}
	return f
}

// kaggle returns the offset of the text in "704.7s<TAB>1460<TAB>text", or 0.
func kaggle(line []byte) int {
	i := bytes.IndexByte(line[:min(len(line), 16)], 's')
	if i < 2 || i+1 >= len(line) || line[i+1] != '\t' {
		return 0
	}
	for _, c := range line[:i] {
		if !isDigit(c) && c != '.' {
			return 0
		}
	}
	j := i + 2
	for j < len(line) && isDigit(line[j]) {
		j++
	}
	if j == i+2 || j >= len(line) || line[j] != '\t' {
		return 0
	}
	return j + 1
}

// unframeJSON reads Docker's json-file lines and the like of Fluent and
// CloudWatch exports.
func unframeJSON(f framed) framed {
	if !bytes.HasPrefix(f.body, []byte(`{"log":`)) && !bytes.HasPrefix(f.body, []byte(`{"message":`)) && !bytes.Contains(f.body[:min(len(f.body), 64)], []byte(`"@timestamp"`)) {
		return f
	}
	var v struct {
		Log     *string `json:"log"`
		Message *string `json:"message"`
		Stream  string  `json:"stream"`
		Time    string  `json:"time"`
		At      string  `json:"@timestamp"`
	}
	if json.Unmarshal(f.body, &v) != nil {
		return f
	}
	text := v.Log
	if text == nil {
		text = v.Message
	}
	if text == nil {
		return f
	}
	f.at, f.stream = -1, v.Stream
	body, whole := strings.CutSuffix(*text, "\n")
	f.body, f.partial = []byte(body), v.Log != nil && !whole
	for _, t := range []string{v.Time, v.At} {
		if st, n := parseStamp(t); n > 0 {
			f.stamp = st
			break
		}
	}
	return f
}
