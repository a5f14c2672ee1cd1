package ranklog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

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
	host    string // the pod or host that the export names, "" if none
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

// An exported line is one JSON object of a log file or export. Which keys there
// are tells who wrote it:
//
//	log, stream, time                       Docker's json-file; a line without its end goes on
//	log, stream, kubernetes, @timestamp …   Fluentd and Fluent Bit; _p or logtag is CRI's P or F
//	message, @timestamp or timestamp        Elasticsearch, CloudWatch (milliseconds)
//	line, labels, timestamp                 Loki (logcli -o jsonl)
//	textPayload, resource, timestamp        Google Cloud
type exported struct {
	Log         *string         `json:"log"`
	Message     *string         `json:"message"`
	Line        *string         `json:"line"`
	TextPayload *string         `json:"textPayload"`
	Stream      string          `json:"stream"`
	Time        json.RawMessage `json:"time"`
	At          json.RawMessage `json:"@timestamp"`
	Timestamp   json.RawMessage `json:"timestamp"`
	Date        json.RawMessage `json:"date"`
	Tag         string          `json:"logtag"`
	P           string          `json:"_p"`
	PartialText string          `json:"partial_message"`
	Kubernetes  struct {
		Pod string `json:"pod_name"`
	} `json:"kubernetes"`
	Labels struct {
		Pod string `json:"pod"`
	} `json:"labels"`
	Resource struct {
		Labels struct {
			Pod string `json:"pod_name"`
		} `json:"labels"`
	} `json:"resource"`
}

// texts are the keys that hold a program's line, times those of its time.
var (
	texts = [][]byte{[]byte(`"log":`), []byte(`"message":`), []byte(`"line":`), []byte(`"textPayload":`)}
	times = [][]byte{[]byte(`"time":`), []byte(`"@timestamp":`), []byte(`"timestamp":`), []byte(`"date":`)}
)

func containsAny(line []byte, keys [][]byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Contains(line, k) })
}

// unframeJSON reads the line of an export. A JSON object that begins with another
// key than the text, and carries no time, is the program's own.
func unframeJSON(f framed) framed {
	first := bytes.HasPrefix(f.body, []byte(`{"log":`)) || bytes.HasPrefix(f.body, []byte(`{"message":`))
	if !first && !(containsAny(f.body, times) && containsAny(f.body, texts)) {
		return f
	}
	var v exported
	if json.Unmarshal(f.body, &v) != nil {
		return f
	}
	text := v.Log
	for _, other := range []*string{v.Message, v.TextPayload} {
		if text == nil {
			text = other
		}
	}
	if text == nil && v.Labels != (struct {
		Pod string `json:"pod"`
	}{}) {
		text = v.Line
	}
	if text == nil {
		return f
	}
	f.at, f.stream = -1, v.Stream
	body, whole := strings.CutSuffix(*text, "\n")
	f.body = []byte(strings.TrimSuffix(body, "\r"))
	shipped := v.At != nil || v.Timestamp != nil || v.Date != nil || v.Kubernetes.Pod != "" || v.Tag != "" || v.P != ""
	switch {
	case v.Tag == "P" || v.P == "P" || v.PartialText == "true":
		f.partial = true
	case !shipped:
		f.partial = v.Log != nil && v.Time != nil && v.Stream != "" && !whole
	}
	for _, t := range []json.RawMessage{v.Time, v.At, v.Timestamp, v.Date} {
		if st, ok := exportStamp(t); ok {
			f.stamp = st
			break
		}
	}
	for _, pod := range []string{v.Kubernetes.Pod, v.Labels.Pod, v.Resource.Labels.Pod} {
		if f.host == "" && hostName(pod) {
			f.host = pod
		}
	}
	return f
}

// exportStamp reads a time as text, or as the seconds, milliseconds, microseconds
// or nanoseconds since 1970 that exports count in.
func exportStamp(raw json.RawMessage) (evidence.Stamp, bool) {
	text := strings.Trim(string(raw), `"`)
	if st, n := parseStamp(text); n > 0 && n == len(text) {
		return st, true
	}
	whole, frac, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n <= 0 {
		return evidence.Stamp{}, false
	}
	unit := time.Second
	switch len(whole) { // 2001 to 2286
	case 10:
	case 13:
		unit = time.Millisecond
	case 16:
		unit = time.Microsecond
	case 19:
		unit = time.Nanosecond
	default:
		return evidence.Stamp{}, false
	}
	at := time.Unix(0, 0).UTC().Add(time.Duration(n) * unit)
	err2 := unit / 2
	if unit == time.Second && frac != "" {
		if f, err := strconv.ParseFloat("0."+frac, 64); err == nil {
			at, err2 = at.Add(time.Duration(f*float64(time.Second))), time.Millisecond
		}
	} else if unit == time.Second {
		at = at.Add(unit / 2)
	}
	return evidence.Stamp{Time: at, Written: text, Zone: "Z", Error: err2, Clock: "wall"}, true
}
