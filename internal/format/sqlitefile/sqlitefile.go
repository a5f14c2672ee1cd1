// Package sqlitefile reads the tables of a SQLite database from its bytes: the b-tree of
// a table in the order of its rowids, with what a write-ahead log beside it has committed
// laid over it. Nothing is written, no lock is taken, and no page of an index is looked at, so
// that a database another program holds open stays as it is, and a table with a damaged
// page gives all its other rows.
//
// The format is that of https://www.sqlite.org/fileformat2.html (SQLite 3.50):
//
//	offset  bytes  header of the database, the start of page 1
//	     0     16  "SQLite format 3\0"
//	    16      2  page size, 1 for 65536
//	    18      2  write and read version: 1 rollback journal, 2 write-ahead log
//	    20      1  bytes reserved at the end of each page
//	    28      4  pages of the database, valid if 24..27 equals 92..95
//	    44      4  schema format, 1..4
//	    56      4  text encoding: 1 UTF-8, 2 and 3 UTF-16
//
//	a page of a table   1 byte 13 (leaf) or 5 (interior), 2 first free block, 2 number of cells, 2 start of
//	                    the cells, 1 fragmented bytes, interior 4 rightmost child; then 2 bytes for each cell: its place
//	a cell of a leaf    varint bytes of the record, varint rowid, the record or its beginning, 4 first overflow page
//	a cell of an interior page   4 child, varint largest rowid below it
//	an overflow page    4 next page or 0, the record further on
//	a record            varint bytes of its header, one varint serial type for each column, the values
//
// What is not read gives an error that wraps ErrUnsupported: text in UTF-16, tables
// WITHOUT ROWID or with virtual columns, and a database whose rollback journal is hot. SQLite
// itself reads those, from a copy.
package sqlitefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrUnsupported is wrapped by errors that say what of SQLite this package does not read.
var ErrUnsupported = errors.New("not read directly")

// Magic is how a database begins.
const Magic = "SQLite format 3\x00"

const (
	headerLen  = 100
	maxDepth   = 20       // of a b-tree, as SQLite has it
	maxRecord  = 64 << 20 // bytes of one row
	maxTables  = 10_000
	maxColumns = 1000
	maxRead    = 64 // pages read ahead
)

// A Source is a database and the files beside it. A nil reader is a file that is not
// there.
type Source struct {
	DB      io.ReaderAt
	Size    int64
	WAL     io.ReaderAt
	WALSize int64
	Journal io.ReaderAt
}

// A File is an open database. It is used by one goroutine.
type File struct {
	src      Source
	pageSize int
	usable   int
	pages    uint32 // of the database as committed
	onDisk   uint32 // whole pages of the file
	walMode  bool
	log      *Log
	tables   []*Table
	damage   []Damage // of the schema

	window      []byte // pages read ahead
	first       uint32 // page number of the window's first page
	held, ahead uint32 // pages in the window, pages to read next
}

// A Damage is a page or row that could not be read.
type Damage struct {
	Page   uint32
	Offset int64 // of the page in the database file
	Rows   int64 // rows lost, 0 if unknown
	Text   string
}

// Open reads the header, the log and the list of tables. The error wraps ErrUnsupported
// where SQLite would read the database and this package does not.
func Open(ctx context.Context, src Source) (*File, error) {
	f := &File{src: src}
	if hot(src.Journal) {
		return nil, fmt.Errorf("a transaction was under way when the writer stopped, and its rollback journal has to be played back: %w", ErrUnsupported)
	}
	head := make([]byte, headerLen)
	if _, err := src.DB.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	size, err := pageSizeOf(head)
	if err != nil {
		return nil, err
	}
	f.pageSize = size
	if src.WAL != nil && src.WALSize > 0 {
		if f.log, err = readLog(ctx, src.WAL, src.WALSize, size); err != nil {
			return nil, err
		}
	}
	f.onDisk = uint32(min(src.Size/int64(size), 1<<32-2))
	f.pages = f.onDisk
	if f.log != nil && f.log.Pages > 0 {
		f.pages = f.log.Pages
		if at, ok := f.log.frames[1]; ok {
			if _, err := src.WAL.ReadAt(head, at); err != nil {
				return nil, fmt.Errorf("read the log: %w", err)
			}
			if n, err := pageSizeOf(head); err != nil || n != size {
				return nil, errors.New("the log's first page is of another database")
			}
		}
	}
	f.usable = size - int(head[20])
	f.walMode = head[18] == 2
	switch {
	case head[18] > 2 || head[19] > 2:
		return nil, fmt.Errorf("file format version %d: %w", head[19], ErrUnsupported)
	case f.usable < 480 || head[21] != 64 || head[22] != 32 || head[23] != 32:
		return nil, errors.New("impossible header of a database")
	}
	if e := binary.BigEndian.Uint32(head[56:]); e > 1 {
		return nil, fmt.Errorf("text in UTF-16: %w", ErrUnsupported)
	}
	if stated := binary.BigEndian.Uint32(head[28:]); f.log.empty() && stated > f.onDisk && string(head[24:28]) == string(head[92:96]) {
		f.damage = append(f.damage, Damage{Page: f.onDisk + 1, Offset: int64(f.onDisk) * int64(size), Text: fmt.Sprintf("the file ends after %d of %d pages", f.onDisk, stated)})
	}
	if err := f.schema(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// pageSizeOf reads the page size of a header.
func pageSizeOf(head []byte) (int, error) {
	if string(head[:16]) != Magic {
		return 0, errors.New("is no SQLite database")
	}
	n := int(binary.BigEndian.Uint16(head[16:]))
	if n == 1 {
		n = 65536
	}
	if n < 512 || n&(n-1) != 0 {
		return 0, errors.New("impossible page size of a database")
	}
	return n, nil
}

// hot reports whether a rollback journal holds pages that were overwritten. A journal that
// was used up is deleted, cut to nothing, or has zeros for a header.
func hot(j io.ReaderAt) bool {
	if j == nil {
		return false
	}
	var head [8]byte
	n, _ := j.ReadAt(head[:], 0)
	return n == 8 && string(head[:]) == "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
}

// Tables returns the tables in the order in which they were made. A table that cannot be
// read has an Err.
func (f *File) Tables() []*Table { return f.tables }

// Damage returns what of the header and the list of tables could not be read.
func (f *File) Damage() []Damage { return f.damage }

// Log returns what was found in the write-ahead log, nil where there is none.
func (f *File) Log() *Log { return f.log }

// WALMode reports whether the database is written through a write-ahead log.
func (f *File) WALMode() bool { return f.walMode }

// Table returns the table of a name, nil where there is none.
func (f *File) Table(name string) *Table { return find(f.tables, name) }

// errPage says that a page lies outside the database.
var errPage = errors.New("is not in the file")

// page returns a page of the database. It is valid until the next call.
func (f *File) page(n uint32) ([]byte, error) {
	if n-f.first < f.held && (f.log == nil || !f.log.has(n)) {
		at := int(n-f.first) * f.pageSize
		return f.window[at : at+f.pageSize : at+f.pageSize], nil
	}
	return f.fetch(n)
}

// fetch reads pages ahead as far as they were wanted in order so far.
func (f *File) fetch(n uint32) ([]byte, error) {
	if n == 0 || n > f.pages {
		return nil, fmt.Errorf("page %d of %d %w", n, f.pages, errPage)
	}
	if at, ok := f.log.frame(n); ok {
		f.held, f.ahead = 0, 1
		return f.pageAt(f.src.WAL, at, 1)
	}
	if n > f.onDisk {
		return nil, fmt.Errorf("page %d %w", n, errPage)
	}
	// Pages of indexes lie between those of a table, and to read them as well would cost
	// more than to ask once for each page.
	if f.held > 0 && n == f.first+f.held {
		f.ahead = min(f.ahead*2, maxRead)
	} else {
		f.ahead = 1
	}
	f.first, f.held = n, 0
	count := min(f.ahead, f.onDisk-n+1)
	p, err := f.pageAt(f.src.DB, int64(n-1)*int64(f.pageSize), int(count))
	if err != nil {
		return nil, err
	}
	f.held = count
	return p[:f.pageSize:f.pageSize], nil
}

func (f *File) pageAt(r io.ReaderAt, at int64, count int) ([]byte, error) {
	n := count * f.pageSize
	if cap(f.window) < n {
		f.window = make([]byte, n)
	}
	if m, err := r.ReadAt(f.window[:n], at); m < n {
		return nil, fmt.Errorf("read page: %w", err)
	}
	return f.window[:n], nil
}

// into reads one page into buf without touching the pages read ahead.
func (f *File) into(buf []byte, n uint32) error {
	if n == 0 || n > f.pages {
		return fmt.Errorf("page %d of %d %w", n, f.pages, errPage)
	}
	r, at := f.src.DB, int64(n-1)*int64(f.pageSize)
	if off, ok := f.log.frame(n); ok {
		r, at = f.src.WAL, off
	} else if n > f.onDisk {
		return fmt.Errorf("page %d %w", n, errPage)
	}
	m, err := r.ReadAt(buf[:f.pageSize], at)
	if m == f.pageSize {
		return nil
	}
	return fmt.Errorf("read page %d: %w", n, err)
}
