// Package parquet reads tables of metrics in Parquet files: W&B's history exports, Trackio's
// exports and mirrors, and what else has a step and a metric among its columns. Columns mean
// what those of a CSV file do (internal/format/rows). Values that are not finite are kept
// by the format.
package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/parquet"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/reader"
)

// maxCopied bounds a file that is held in memory because it cannot be read at any place: a
// compressed one, a stream.
const maxCopied = 256 << 20

// New returns the reader of Parquet files.
func New() reader.Reader { return table{} }

type table struct{}

func (table) Name() string { return "parquet" }

// Sniff claims every Parquet file: its columns are known at its end alone. One that holds
// no metrics is read to its description and gives nothing.
func (table) Sniff(_ evidence.Artifact, head []byte) reader.Confidence {
	if parquet.Is(head) {
		return reader.Sure
	}
	return reader.No
}

// Read reads the rows in the order of the file.
func (table) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, size := in.At, in.Size
	span := evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}
	if at == nil || size < 0 {
		data, err := copied(ctx, in)
		if err != nil {
			return err
		}
		if len(data) > maxCopied {
			s.Damage(span, fmt.Errorf("over limit: a compressed Parquet file of more than %d bytes is not read", maxCopied))
			return nil
		}
		at, size = strings.NewReader(string(data)), int64(len(data))
	}
	if size == 0 {
		return nil
	}
	f, err := parquet.Open(at, size)
	if err != nil {
		s.Damage(span, fmt.Errorf("reading Parquet: %w", err))
		return nil
	}
	tracker, ok := trackerOf(f.Columns())
	if !ok {
		return nil
	}
	out := reader.NewRows(s, in.Artifact.Path, rows.NewColumns(in.Artifact.Path, tracker, f.Columns()))
	out.Opened = func(rec *reader.Recording) {
		rec.Run.Cannot = append(rec.Run.Cannot, "pandas and pyarrow write NaN as a missing value by default: a gap may be a value that was not finite.")
	}
	// No row can be read without the description, which ends here: its place is that of all.
	end := size - 8
	row := int64(0)
	err = f.Rows(ctx, func(n int64, cells []rows.Cell) error {
		row = n
		out.Add(cells, func(*rows.Cell) reader.Place { return reader.Place{Line: n, Offset: end} }, func(c *rows.Cell) evidence.Span {
			return evidence.Span{Artifact: in.Artifact.Path, Kind: "record", Record: n, Offset: end, Quote: c.Name + " = " + string(c.Text)}
		})
		return nil
	})
	if err != nil {
		if c := ctx.Err(); c != nil && errors.Is(err, c) {
			return err
		}
		span.Record = row
		out.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: span, Text: fmt.Sprintf("behind row %d: %v", row, err)})
	}
	out.Close()
	return nil
}

// copied reads a file that is no plain one, at most one byte more than is allowed.
func copied(ctx context.Context, in reader.Input) ([]byte, error) {
	f, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(reader.Stopping(ctx, f), maxCopied+1))
}

// trackerOf says by the columns whose table it is; ok is false where they are none of
// metrics.
func trackerOf(columns []string) (tracker string, ok bool) {
	has := func(name string) bool { return slices.Contains(columns, name) }
	step, metric := false, false
	for _, c := range columns {
		key := strings.ToLower(c)
		step = step || key == "epoch" || slices.Contains(rows.StepNames[:], key)
		_, known := reader.AliasOf(key)
		metric = metric || known || reader.LossLike(key)
	}
	switch {
	case has("_step") && (has("_runtime") || has("_timestamp")):
		return "wandb-parquet", true
	case (has("run_name") || has("run_id")) && has("step") && has("timestamp"):
		return "trackio-parquet", true
	}
	return "parquet", step && (metric || has("value"))
}
