package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/parquet"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/repair"
)

// Parquet returns the format of Parquet files, whose copies are CSV: it claims these as well,
// and stands behind Tables in the list of formats, which gets those of the source.
func Parquet() repair.Format {
	return format{name: "parquet", form: rows.Table, trackers: []string{"parquet", "wandb-parquet", "trackio-parquet", "csv", "wandb-csv"}, columns: true}
}

// table writes a Parquet file as CSV: a cell for each value, an empty one for null.
func (f format) table(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, artifact, name string) (err error) {
	in, err := src.FS.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	at, ok := in.(io.ReaderAt)
	if !ok {
		return errors.New("it cannot be read at any place")
	}
	file, err := parquet.Open(at, info.Size())
	if err != nil {
		return err
	}
	to, err := out.Create(strings.TrimSuffix(name, ".parquet") + ".csv")
	if err != nil {
		return err
	}
	defer func() {
		if e := to.Close(); err == nil {
			err = e
		}
	}()
	buf := bufio.NewWriterSize(to, 1<<16)
	c := newCopy(ctx, plan, artifact, rows.Table, "", buf)
	names := file.Columns()
	c.layout = rows.NewColumns(artifact, "parquet", names)
	head := make([]rows.Cell, len(names))
	for i, n := range names {
		head[i] = rows.Cell{Name: n, Text: []byte(n)}
	}
	p := &rows.Piece{Kind: rows.Header}
	c.record(p, head)
	if err := c.header(',', p); err != nil {
		return err
	}
	column := map[string]int{}
	for i, n := range names {
		column[n] = i
	}
	all := make([]rows.Cell, len(names))
	err = file.Rows(ctx, func(row int64, cells []rows.Cell) error {
		for i, n := range names {
			all[i] = rows.Cell{Name: n}
		}
		for _, x := range cells {
			all[column[x.Name]] = x
		}
		*p = rows.Piece{Kind: rows.Row, Line: row, Raw: p.Raw[:0]}
		c.record(p, all)
		return c.row(p)
	})
	if err != nil {
		return err
	}
	plan.Changes = append(plan.Changes, artifact+" is CSV in the copy.")
	if n := file.Passed(); n > 0 {
		plan.Left = append(plan.Left, fmt.Sprintf("%s: %d columns of lists or maps are not in the copy.", artifact, n))
	}
	c.tell(artifact)
	return buf.Flush()
}

// record writes cells as a record of a table into a piece.
func (c *writing) record(p *rows.Piece, cells []rows.Cell) {
	p.Raw = p.Raw[:0]
	for i := range cells {
		if i > 0 {
			p.Raw = append(p.Raw, ',')
		}
		cells[i].From = len(p.Raw)
		p.Raw = append(p.Raw, c.cell(string(cells[i].Text))...)
		cells[i].To = len(p.Raw)
	}
	p.Raw = append(p.Raw, '\n')
	p.Cells = cells
}
