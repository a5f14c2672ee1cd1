package engine

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// Bounds of the tables that are looked for inside a job log: people print
// nvidia-smi, df or ps into it, or paste a whole terminal.
const (
	embeddedMost  = 8    // tables per artifact
	embeddedLines = 200  // lines read from each
	embeddedLog   = 2000 // lines read of a nvidia-smi -q, which are 180 a device
	embeddedBytes = 256 << 10
	embeddedReach = 32 << 20 // how far into a log that cannot be sought in
)

// besideMost bounds the files of tables that are read again for those of other
// tools: what people save of a terminal is small, samples of one tool are not.
const besideMost = 16 << 20

// embedded reads the tables that a log announces (events of kind embedded_table)
// with the readers of such tables, and returns what they found in the log's own
// lines, offsets and launches.
func embedded(ctx context.Context, f *artifact.File, tables []reader.Tabular, events []evidence.Event) (out []evidence.Event, facts []evidence.Fact) {
	n, end := 0, int64(-1)
	for i := range events {
		e := &events[i]
		if e.Kind != evidence.Embedded || e.Span.Line <= end {
			continue // inside the table before
		}
		if n++; n > embeddedMost {
			break
		}
		lines := embeddedLines
		if e.Attrs.Str("what") == "nvidia-smi-log" {
			lines = embeddedLog
		}
		end = e.Span.Line + int64(lines)
		start := e.Span.Offset - int64(max(e.Span.Column-1, 0))
		text := linesAt(f, start, lines)
		if len(text) == 0 {
			continue
		}
		c := reader.NewCollector()
		in := reader.Input{Artifact: f.Artifact, Size: int64(len(text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}
		for _, t := range tables {
			if t.Read(ctx, in, c) != nil {
				break
			}
		}
		last := int64(0)
		for _, x := range c.Events {
			last = max(last, x.Span.Line)
			x.Span.Line += e.Span.Line - 1
			x.Span.Offset += start
			x.Who.Launch = e.Who.Launch
			if x.Who.Host == "" {
				x.Who.Host = e.Who.Host
			}
			out = append(out, x)
		}
		for _, x := range c.Facts {
			last = max(last, x.Span.Line)
			x.Span.Line += e.Span.Line - 1
			x.Span.Offset += start
			x.Who.Launch = e.Who.Launch
			facts = append(facts, x)
		}
		end = e.Span.Line + last
	}
	return out, facts
}

// beside reads a file of tables with the readers of the other tables: people save
// nvidia-smi and ps into one file. Each passes over what is not its own.
func beside(ctx context.Context, f *artifact.File, r reader.Reader, tables []reader.Tabular, a evidence.Artifact, sink *reader.Collector) error {
	for _, t := range tables {
		if t.Name() == r.Name() {
			continue
		}
		if err := t.Read(ctx, reader.Input{Artifact: a, Size: a.Size, Open: f.Open}, onlyFound{sink}); err != nil {
			return err
		}
	}
	return nil
}

// onlyFound keeps what is found and drops complaints, which the file's own reader
// has made already.
type onlyFound struct{ *reader.Collector }

func (onlyFound) Damage(evidence.Span, error) {}

// linesAt returns up to n lines of f from the offset of a line's start.
func linesAt(f *artifact.File, offset int64, n int) []byte {
	var r io.Reader
	switch {
	case f.At != nil:
		at, closer, err := f.At()
		if err != nil {
			return nil
		}
		defer closer.Close()
		r = io.NewSectionReader(at, offset, embeddedBytes)
	case offset > embeddedReach:
		return nil
	default:
		rc, err := f.Open()
		if err != nil {
			return nil
		}
		defer rc.Close()
		if _, err := io.CopyN(io.Discard, rc, offset); err != nil {
			return nil
		}
		r = io.LimitReader(rc, embeddedBytes)
	}
	var out []byte
	b := bufio.NewReader(r)
	for range n {
		line, err := b.ReadSlice('\n')
		out = append(out, line...)
		if err != nil {
			break
		}
	}
	return out
}
