// Package history reads the metric files that trainers and light-weight
// loggers leave beside a log: Hugging Face's trainer_state.json, JSON lines
// (trainer_log.jsonl, history.jsonl, OpenMMLab scalars) and CSV tables
// (Lightning's metrics.csv, Ultralytics' results.csv, exports of trackers). All
// of them become the same series and non-finite events as printed lines do.
package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// New returns the reader of metric files.
func New() reader.Reader { return history{} }

type history struct{}

func (history) Name() string { return "history" }

// Sniff claims a JSON object with a log_history, lines of JSON objects that
// hold a step and a metric, and tables whose header does.
func (history) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	switch shape, sure := shapeOf(a.Path, head); {
	case shape == shapeNone:
		return reader.No
	case sure:
		return reader.Sure
	default:
		return reader.Likely
	}
}

type shape int

const (
	shapeNone shape = iota
	shapeState
	shapeLines
	shapeTable
)

// shapeOf says what the first bytes of a file are. sure is false where only
// name and columns together speak for it.
func shapeOf(name string, head []byte) (s shape, sure bool) {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, "!", "/")))
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	text := bytes.TrimLeft(head, " \t\r\n\x00")
	if len(text) == 0 {
		return shapeNone, false
	}
	if text[0] == '{' {
		if bytes.Contains(text, []byte(`"log_history"`)) || base == "trainer_state.json" && bytes.Contains(text, []byte(`"global_step"`)) {
			return shapeState, true
		}
		return lineShape(base, text)
	}
	return tableShape(base, text)
}

// lineShape judges JSON lines by the keys of the first objects.
func lineShape(base string, text []byte) (shape, bool) {
	steps, metrics, objects := 0, 0, 0
	sc := newScanner(bufio.NewReader(bytes.NewReader(text)))
	for objects < 3 {
		_, err := sc.object()
		// The first object may be longer than what was read: what it shows counts.
		if err != nil && !(objects == 0 && errors.Is(err, errTorn)) || sc.line > int64(objects)+2 {
			break
		}
		objects++
		step, metric := false, false
		for i := range sc.row.cells {
			c := &sc.row.cells[i]
			if !c.number {
				continue
			}
			key := strings.ToLower(c.key)
			step = step || stepRank(key) > 0
			metric = metric || isMetric(key)
		}
		if step {
			steps++
		}
		if metric {
			metrics++
		}
		if err != nil {
			break
		}
	}
	lines := strings.HasSuffix(base, ".jsonl") || strings.HasSuffix(base, ".ndjson") || strings.HasSuffix(base, ".log.json") || base == "scalars.json" || base == "result.json"
	switch {
	case objects == 0:
		return shapeNone, false
	case steps > 0 && metrics > 0:
		return shapeLines, true
	case lines && (steps > 0 || metrics > 0) || strings.HasSuffix(base, ".log.json"):
		return shapeLines, false
	}
	return shapeNone, false
}

// tableShape judges a table by its header.
func tableShape(base string, text []byte) (shape, bool) {
	line, _, whole := bytes.Cut(text, []byte("\n"))
	if !whole && len(text) > 2048 {
		return shapeNone, false
	}
	delim := delimiter(line)
	if delim == 0 {
		return shapeNone, false
	}
	step, metric := false, false
	for _, c := range cells(nil, string(bytes.TrimSuffix(line, []byte("\r"))), delim) {
		key := strings.ToLower(columnName(c.text))
		if strings.ContainsAny(key, "[]{}|:") || len(key) > 200 {
			return shapeNone, false
		}
		step = step || stepRank(key) > 0 || key == "epoch"
		metric = metric || isMetric(key) || key == "value"
	}
	ext := strings.HasSuffix(base, ".csv") || strings.HasSuffix(base, ".tsv")
	switch {
	case step && metric && (ext || delim != ' '):
		return shapeTable, true
	case ext && step:
		return shapeTable, false
	}
	return shapeNone, false
}

// Read streams the file into s.
func (history) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	b := bufio.NewReaderSize(reader.Stopping(ctx, f), 1<<16)
	head, err := b.Peek(4096)
	if len(head) == 0 {
		if err == io.EOF {
			err = nil
		}
		return err
	}
	out := newRows(s, in.Artifact.Path)
	switch shape, _ := shapeOf(in.Artifact.Path, head); shape {
	case shapeState:
		return readState(b, out)
	case shapeTable:
		return readTable(b, out, in.Artifact.Path)
	default:
		return readLines(b, out)
	}
}
