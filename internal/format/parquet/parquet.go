// Package parquet reads the rows of a Parquet file of metrics as cells: exports of W&B's
// history and of Trackio, and what pandas writes. It reads flat columns of numbers and
// text; lists and maps are passed over. The decoding is parquet-go's, which gets to see no
// length that was not checked before (bounds.go).
package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/inquest-dev/inquest/internal/format/rows"
)

// Is reports whether a file begins as one of the format.
func Is(head []byte) bool { return len(head) >= 4 && string(head[:4]) == "PAR1" }

// A File is an open file.
type File struct {
	file    *parquet.File
	columns []column
	passed  int
}

type column struct {
	name  string
	index int
}

// Open reads the description of a file and checks its pages.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer caught(&err)
	if err := footer(r, size); err != nil {
		return nil, err
	}
	p, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.OptimisticRead(false))
	if err != nil {
		return nil, err
	}
	f = &File{file: p}
	for _, path := range p.Schema().Columns() {
		leaf, ok := p.Schema().Lookup(path...)
		if !ok || leaf.MaxRepetitionLevel > 0 || len(f.columns) >= rows.MaxCells {
			f.passed++
			continue
		}
		f.columns = append(f.columns, column{strings.Join(path, "/"), leaf.ColumnIndex})
	}
	return f, f.check(r, size)
}

// check looks at the pages of the columns that are read.
func (f *File) check(r io.ReaderAt, size int64) error {
	count, largest := 0, map[int]int64{}
	for _, g := range f.file.Metadata().RowGroups {
		for _, c := range f.columns {
			if c.index >= len(g.Columns) {
				return fmt.Errorf("%w: a row group lacks columns", errFormat)
			}
			m := &g.Columns[c.index].MetaData
			from := m.DataPageOffset
			if d := m.DictionaryPageOffset; d > 0 && d < from {
				from = d
			}
			if from < 4 || m.TotalCompressedSize < 0 || from > size-m.TotalCompressedSize {
				return fmt.Errorf("%w: column %q lies outside the file", errFormat, c.name)
			}
			n, err := pages(r, from, m.TotalCompressedSize, int32(m.Codec), &count)
			if err != nil {
				return fmt.Errorf("column %q: %w", c.name, err)
			}
			largest[c.index] = max(largest[c.index], n)
		}
	}
	sum := int64(0)
	for _, n := range largest {
		sum += n
	}
	if sum > maxOpen {
		return fmt.Errorf("%w: one page of each column takes %d bytes", errBound, sum)
	}
	return nil
}

// caught makes an error of a panic of the library.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", errFormat, r)
	}
}

// Columns are the names of the columns that are read; the parts of a nested name are
// joined by '/'.
func (f *File) Columns() []string {
	names := make([]string, len(f.columns))
	for i, c := range f.columns {
		names[i] = c.name
	}
	return names
}

// Passed returns how many columns are not read: lists, maps, and those beyond
// rows.MaxCells.
func (f *File) Passed() int { return f.passed }

// Rows calls fn for each row, counted from 1, with a cell for each value that is not null.
// The cells are valid until fn returns.
func (f *File) Rows(ctx context.Context, fn func(row int64, cells []rows.Cell) error) (err error) {
	defer caught(&err)
	n := int64(0)
	for _, g := range f.file.RowGroups() {
		if err := f.group(ctx, g, &n, fn); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) group(ctx context.Context, g parquet.RowGroup, n *int64, fn func(int64, []rows.Cell) error) error {
	cursors := make([]cursor, len(f.columns))
	defer func() {
		for i := range cursors {
			cursors[i].close()
		}
	}()
	chunks := g.ColumnChunks()
	for i, c := range f.columns {
		cursors[i].pages = chunks[c.index].Pages()
	}
	var cells []rows.Cell
	for range g.NumRows() {
		if *n&255 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		cells = cells[:0]
		for i := range cursors {
			v, err := cursors[i].next()
			if err != nil {
				return fmt.Errorf("column %q: %w", f.columns[i].name, err)
			}
			if c := cell(f.columns[i].name, v); c.Text != nil {
				cells = append(cells, c)
			}
		}
		*n++
		if err := fn(*n, cells); err != nil {
			return err
		}
	}
	return nil
}

// A cursor walks the values of one column.
type cursor struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    [64]parquet.Value
	n, i   int
}

func (c *cursor) next() (parquet.Value, error) {
	for c.i >= c.n {
		if c.values == nil {
			p, err := c.pages.ReadPage()
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return parquet.Value{}, err
			}
			c.page, c.values = p, p.Values()
		}
		n, err := c.values.ReadValues(c.buf[:])
		c.n, c.i = n, 0
		if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
			continue
		}
		if n == 0 {
			return parquet.Value{}, err
		}
	}
	c.i++
	return c.buf[c.i-1], nil
}

func (c *cursor) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.pages != nil {
		c.pages.Close()
	}
}

// cell is a value; one without a text where it is null or of a kind that is not read.
func cell(name string, v parquet.Value) rows.Cell {
	c := rows.Cell{Name: name}
	if v.IsNull() {
		return c
	}
	switch v.Kind() {
	case parquet.Boolean:
		c.Text = strconv.AppendBool(nil, v.Boolean())
		return c
	case parquet.Int32:
		c.Text = strconv.AppendInt(nil, int64(v.Int32()), 10)
		c.Value, c.Number = float64(v.Int32()), true
	case parquet.Int64:
		c.Text = strconv.AppendInt(nil, v.Int64(), 10)
		c.Value, c.Number = float64(v.Int64()), true
	case parquet.Float:
		c.Value, c.Number = float64(v.Float()), true
		c.Text = strconv.AppendFloat(nil, c.Value, 'g', -1, 64)
	case parquet.Double:
		c.Value, c.Number = v.Double(), true
		c.Text = strconv.AppendFloat(nil, c.Value, 'g', -1, 64)
	case parquet.ByteArray:
		c.Text = append([]byte{}, v.ByteArray()...)
		c.Quoted = true
		c.Value, c.Number = rows.Number(c.Text)
	}
	return c
}
