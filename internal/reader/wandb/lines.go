package wandb

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

const maxLine = 16 << 20 // bytes of one row

// readLines reads wandb-history.jsonl or wandb-events.jsonl, and what belongs to it.
func (r *reading) readLines(src io.Reader) error {
	system := reader.BaseOf(r.in.Artifact.Path) == "wandb-events.jsonl"
	if err := r.lines(src, system); err != nil {
		return err
	}
	if system || r.in.Dir == nil {
		return nil
	}
	if err := r.beside(); err != nil {
		return err
	}
	f, err := r.in.Dir.Open("wandb-events.jsonl")
	if err != nil {
		return nil
	}
	defer f.Close()
	in := r.in
	in.Artifact.Path, in.Dir = reader.FolderOf(in.Artifact.Path)+"/wandb-events.jsonl", nil
	events := newReading(r.ctx, r.log, in, r.s)
	if err := events.lines(reader.Stopping(r.ctx, f), true); err != nil {
		return err
	}
	events.close()
	return nil
}

// lines reads rows, one a line.
func (r *reading) lines(src io.Reader, system bool) error {
	in := bufio.NewReaderSize(src, 256<<10)
	var n, offset, size int64
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		line := part
		if len(long) > 0 || err == bufio.ErrBufferFull {
			if len(long) <= maxLine {
				long = append(long, part...)
			}
			line = long
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("read W&B history: %w", err)
		}
		if len(line) == 0 && err == io.EOF {
			return nil
		}
		n++
		at := reader.Place{Line: n, Offset: offset, Length: int32(min(size, maxLine))}
		span := evidence.Span{Artifact: r.in.Artifact.Path, Kind: "record", Record: n, Offset: offset, Length: size}
		text := bytes.Trim(bytes.TrimPrefix(line, []byte("\ufeff")), " \t\r\n\x00")
		switch {
		case len(line) > maxLine:
			r.rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: span, Text: "a row longer than 16 MiB", Records: 1, Bytes: size})
		case len(text) == 0:
		case !r.line(text, system, at):
			d := evidence.RunDamage{Kind: evidence.BadLine, Span: span, Text: "no row: not one JSON object", Records: 1, Bytes: size}
			if err == io.EOF {
				d.Kind, d.Text = evidence.TruncatedTail, "the file ends within a row"
			}
			r.rec.Damage(d)
		}
		long, offset, size = long[:0], offset+size, 0
		if err == io.EOF {
			return nil
		}
	}
}

// line reads one row. It reports false where it is no JSON object.
func (r *reading) line(text []byte, system bool, at reader.Place) bool {
	row, ok := r.rows.Object(text, system)
	if !ok {
		return false
	}
	if !system {
		r.history++
		r.rec.BeginRow(evidence.Stamp{})
		r.add(row, at)
		r.rec.EndRow()
		return true
	}
	r.add(row, at)
	r.sample(row)
	return true
}
