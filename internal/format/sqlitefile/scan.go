package sqlitefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Scan calls row with every row of a table by rising rowid, and damage for each page or
// row that cannot be read; the other rows come all the same. It ends with the error of row,
// or ctx's. Neither function may use f.
func (f *File) Scan(ctx context.Context, t *Table, row func(*Row) error, damage func(Damage)) error {
	if t.Err != nil {
		return t.Err
	}
	s := &scan{f: f, ctx: ctx, row: row, damage: damage, seen: seen{}}
	s.r = Row{table: t, types: make([]uint32, len(t.Columns)), at: make([]int32, len(t.Columns))}
	return s.tree(t.root, 0)
}

// A seen is the set of pages that belong to the tree already: a page is in one place of
// a database only, so that one met again is damage and not a way round in circles.
type seen map[uint32]*[64]uint64

// add reports whether n is new.
func (s seen) add(n uint32) bool {
	block := s[n>>12]
	if block == nil {
		block = new([64]uint64)
		s[n>>12] = block
	}
	word, bit := &block[n>>6&63], uint64(1)<<(n&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

type scan struct {
	f      *File
	ctx    context.Context
	row    func(*Row) error
	damage func(Damage)
	seen   seen
	r      Row
	inner  [][]byte // copies of the interior pages from the root on
	record []byte   // of a row with overflow pages
	page   []byte   // one of those
}

func (s *scan) bad(n uint32, rows int64, format string, a ...any) {
	s.damage(Damage{Page: n, Offset: int64(n-1) * int64(s.f.pageSize), Rows: rows, Text: fmt.Sprintf(format, a...)})
}

// tree reads the tree below a page.
func (s *scan) tree(n uint32, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		s.bad(n, 0, "the tree of the table is deeper than %d pages", maxDepth)
		return nil
	}
	if !s.seen.add(n) {
		s.bad(n, 0, "page %d belongs to the table twice", n)
		return nil
	}
	p, err := s.f.page(n)
	if err != nil {
		s.bad(n, 0, "%v", err)
		return nil
	}
	at := 0
	if n == 1 {
		at = headerLen
	}
	switch p[at] {
	case 13:
		return s.leaf(p, n, at)
	case 5:
	default:
		s.bad(n, 0, "page %d is no page of a table", n)
		return nil
	}
	if len(s.inner) <= depth {
		s.inner = append(s.inner, make([]byte, s.f.pageSize))
	}
	own := s.inner[depth]
	copy(own, p)
	cells := int(binary.BigEndian.Uint16(own[at+3:]))
	if at+12+2*cells > s.f.usable {
		s.bad(n, 0, "page %d states %d cells, more than fit", n, cells)
		return nil
	}
	for i := range cells {
		c := int(binary.BigEndian.Uint16(own[at+12+2*i:]))
		if c+4 > s.f.usable {
			s.bad(n, 0, "cell %d of page %d lies outside of it", i, n)
			continue
		}
		if err := s.tree(binary.BigEndian.Uint32(own[c:]), depth+1); err != nil {
			return err
		}
	}
	return s.tree(binary.BigEndian.Uint32(own[at+8:]), depth+1)
}

// leaf reads the rows of one page.
func (s *scan) leaf(p []byte, n uint32, at int) error {
	usable := s.f.usable
	cells := int(binary.BigEndian.Uint16(p[at+3:]))
	if at+8+2*cells > usable {
		s.bad(n, 0, "page %d states %d cells, more than fit", n, cells)
		return nil
	}
	lost, why := int64(0), ""
	r := &s.r
	r.Page = n
	r.Offset = int64(n-1)*int64(s.f.pageSize) + int64(at+8)
	pointers := p[at+8 : at+8+2*cells]
	for ; len(pointers) >= 2; pointers, r.Offset = pointers[2:], r.Offset+2 {
		c := int(binary.BigEndian.Uint16(pointers))
		if c >= usable {
			lost, why = lost+1, "lies outside of its page"
			continue
		}
		cell := p[c:usable]
		var size, id uint64
		k, m := 1, 1
		if size = uint64(cell[0]); size >= 0x80 {
			size, k = varint(cell)
		}
		if k > 0 && k < len(cell) {
			if id = uint64(cell[k]); id >= 0x80 {
				id, m = varint(cell[k:])
			}
		} else {
			m = 0
		}
		if k == 0 || m == 0 {
			lost, why = lost+1, "is cut off"
			continue
		}
		cell = cell[k+m:]
		if size > uint64(usable-35) {
			var err error
			if cell, err = s.overflow(cell, size); err != nil {
				lost, why = lost+1, err.Error()
				continue
			}
		} else if size > uint64(len(cell)) {
			lost, why = lost+1, "is cut off"
			continue
		} else {
			cell = cell[:size]
		}
		r.ID = int64(id)
		if !r.parse(cell) {
			lost, why = lost+1, "is no record"
			continue
		}
		if err := s.row(r); err != nil {
			return err
		}
	}
	if lost > 0 {
		s.bad(n, lost, "%d rows of page %d cannot be read: one %s", lost, n, why)
	}
	return nil
}

// overflow puts together the record of a row that does not fit on its page.
func (s *scan) overflow(cell []byte, size uint64) ([]byte, error) {
	if size > maxRecord {
		return nil, errors.New("is longer than 64 MiB")
	}
	f := s.f
	local := (f.usable-12)*32/255 - 23 // the least that stays on the page
	if k := local + int((size-uint64(local))%uint64(f.usable-4)); k <= f.usable-35 {
		local = k
	}
	if local+4 > len(cell) {
		return nil, errors.New("is cut off")
	}
	next := binary.BigEndian.Uint32(cell[local:])
	s.record = append(s.record[:0], cell[:local]...)
	if s.page == nil {
		s.page = make([]byte, f.pageSize)
	}
	for uint64(len(s.record)) < size {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		if next == 0 {
			return nil, errors.New("ends before its length")
		}
		if !s.seen.add(next) {
			return nil, fmt.Errorf("goes on at page %d, which belongs to the table already", next)
		}
		if err := f.into(s.page, next); err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(s.page)
		s.record = append(s.record, s.page[4:min(uint64(f.usable), 4+size-uint64(len(s.record)))]...)
	}
	return s.record, nil
}
