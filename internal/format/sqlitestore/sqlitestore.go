// Package sqlitestore opens a SQLite database that another program may still be writing,
// without a trace: tables are read from its bytes (package sqlitefile), and what that does not
// read, by SQLite itself from a copy in a temporary folder. SQLite never opens the original:
// even reading, it can make and change files beside it.
package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
)

// maxCopy bounds the bytes of a copy.
const maxCopy = 64 << 30

// Files are where a database lies. DB may be nil, for one that can only be read in order.
// Dir holds the files beside it, under the names that SQLite gives them; it may be nil.
type Files struct {
	Name string // base name of the database
	DB   io.ReaderAt
	Size int64
	Open func() (io.ReadCloser, error)
	Dir  fs.FS
}

// A Store is an open database. It is used by one goroutine and has to be closed.
type Store struct {
	files  Files
	direct *sqlitefile.File // nil where SQLite reads everything
	temp   string           // folder of copies, "" for none
	copied bool             // the database lies there
	conn   *sqlite.Conn
	tables []*sqlitefile.Table // as SQLite has them
	close  []io.Closer
	why    error // of the direct reading
}

// Open opens a database. What cannot be read at all is an error; a damaged part is
// not. The caller closes the store also after an error of a later call.
func Open(ctx context.Context, f Files) (*Store, error) {
	s := &Store{files: f}
	if err := s.open(ctx, true); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenCopy opens a database with SQLite from the start, as Open does where it has to.
func OpenCopy(ctx context.Context, f Files) (*Store, error) {
	s := &Store{files: f}
	if err := s.open(ctx, false); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, direct bool) error {
	src := sqlitefile.Source{DB: s.files.DB, Size: s.files.Size}
	if src.DB == nil {
		if err := s.copyDB(ctx); err != nil {
			return err
		}
		db, err := os.Open(s.name(""))
		if err != nil {
			return err
		}
		s.close = append(s.close, db)
		info, err := db.Stat()
		if err != nil {
			return err
		}
		src.DB, src.Size = db, info.Size()
	}
	if !direct {
		return s.ask(ctx)
	}
	var err error
	if src.WAL, src.WALSize, err = s.beside(ctx, "-wal"); err != nil {
		return err
	}
	if src.Journal, _, err = s.beside(ctx, "-journal"); err != nil {
		return err
	}
	s.direct, err = sqlitefile.Open(ctx, src)
	if errors.Is(err, sqlitefile.ErrUnsupported) {
		s.why = err
		return s.ask(ctx)
	}
	return err
}

// Close releases everything and removes what was copied.
func (s *Store) Close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
		s.conn = nil
	}
	for _, c := range s.close {
		err = errors.Join(err, c.Close())
	}
	s.close = nil
	if s.temp != "" {
		err = errors.Join(err, os.RemoveAll(s.temp))
		s.temp = ""
	}
	return err
}

// Why says why SQLite reads the database from a copy, nil where it does not.
func (s *Store) Why() error { return s.why }

// Damage returns what of the header and the list of tables could not be read.
func (s *Store) Damage() []sqlitefile.Damage {
	if s.direct == nil {
		return nil
	}
	return s.direct.Damage()
}

// Log returns what the write-ahead log holds, nil where there is none or SQLite reads
// it.
func (s *Store) Log() *sqlitefile.Log {
	if s.direct == nil {
		return nil
	}
	return s.direct.Log()
}

// LostLog reports whether the database is written through a write-ahead log that is not
// there although the index of one is: transactions are missing.
func (s *Store) LostLog() bool {
	return s.direct != nil && s.direct.WALMode() && !s.has("-wal") && s.has("-shm")
}

func (s *Store) has(suffix string) bool {
	if s.files.Dir == nil {
		return false
	}
	_, err := fs.Stat(s.files.Dir, s.files.Name+suffix)
	return err == nil
}

// Tables returns the tables of the database.
func (s *Store) Tables() []*sqlitefile.Table {
	if s.direct != nil {
		return s.direct.Tables()
	}
	return s.tables
}

// Table returns the table of a name, nil where there is none.
func (s *Store) Table(name string) *sqlitefile.Table { return find(s.Tables(), name) }

func find(tables []*sqlitefile.Table, name string) *sqlitefile.Table {
	for _, t := range tables {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// Scan calls row with every row of a table by rising rowid, and damage for what cannot be
// read. It ends with the error of row, or ctx's, or says that nothing can be read.
// Neither function may use s.
func (s *Store) Scan(ctx context.Context, t *sqlitefile.Table, row func(*sqlitefile.Row) error, damage func(sqlitefile.Damage)) error {
	if s.direct != nil {
		if t.Err == nil {
			return s.direct.Scan(ctx, t, row, damage)
		}
		if !errors.Is(t.Err, sqlitefile.ErrUnsupported) {
			return t.Err
		}
		s.why = t.Err
		if err := s.ask(ctx); err != nil {
			return err
		}
		if t = find(s.tables, t.Name); t == nil {
			return errors.New("the table is not in the copy")
		}
	}
	return s.scan(ctx, t, row, damage)
}

// name is where a file of the copy lies.
func (s *Store) name(suffix string) string { return filepath.Join(s.temp, "copy.db"+suffix) }

// beside opens a file beside the database.
func (s *Store) beside(ctx context.Context, suffix string) (io.ReaderAt, int64, error) {
	if s.files.Dir == nil {
		return nil, 0, nil
	}
	f, err := s.files.Dir.Open(s.files.Name + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if at, ok := f.(io.ReaderAt); ok {
		if info, err := f.Stat(); err == nil && info.Size() >= 0 {
			s.close = append(s.close, f)
			return at, info.Size(), nil
		}
	}
	defer f.Close()
	n, err := s.put(ctx, suffix, f)
	if err != nil {
		return nil, 0, err
	}
	c, err := os.Open(s.name(suffix))
	if err != nil {
		return nil, 0, err
	}
	s.close = append(s.close, c)
	return c, n, nil
}

// put copies a file into the temporary folder.
func (s *Store) put(ctx context.Context, suffix string, r io.Reader) (int64, error) {
	if s.temp == "" {
		dir, err := os.MkdirTemp("", "inquest-*")
		if err != nil {
			return 0, fmt.Errorf("copy the database: %w", err)
		}
		s.temp = dir
	}
	out, err := os.OpenFile(s.name(suffix), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("copy the database: %w", err)
	}
	n, err := io.Copy(out, stopping{ctx, io.LimitReader(r, maxCopy+1)})
	if err == nil && n > maxCopy {
		err = fmt.Errorf("over limit: more than %d bytes to copy", int64(maxCopy))
	}
	return n, errors.Join(err, out.Close())
}

type stopping struct {
	ctx context.Context
	r   io.Reader
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

func (s *Store) copyDB(ctx context.Context) error {
	if s.copied {
		return nil
	}
	var r io.Reader
	if s.files.DB != nil {
		r = io.NewSectionReader(s.files.DB, 0, s.files.Size)
	} else {
		rc, err := s.files.Open()
		if err != nil {
			return err
		}
		defer rc.Close()
		r = rc
	}
	_, err := s.put(ctx, "", r)
	s.copied = err == nil
	return err
}

// ask copies the database with its log and journal, and has SQLite open the copy. The
// index of the log is made anew by whoever opens it first, and is left behind.
func (s *Store) ask(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	if err := s.copyDB(ctx); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if s.files.Dir == nil {
			break
		}
		f, err := s.files.Dir.Open(s.files.Name + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = s.put(ctx, suffix, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if err := single(s.name("-journal")); err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(s.name(""), sqlite.OpenReadWrite)
	if err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	s.conn = conn
	conn.SetInterrupt(ctx.Done())
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA trusted_schema=OFF", nil); err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	s.tables = nil
	err = sqlitex.ExecuteTransient(conn, "SELECT name FROM sqlite_schema WHERE type='table' AND rootpage>0 ORDER BY rowid", &sqlitex.ExecOptions{ResultFunc: func(q *sqlite.Stmt) error {
		s.tables = append(s.tables, sqlitefile.NewTable(q.ColumnText(0), nil))
		return nil
	}})
	for _, t := range s.tables {
		if err != nil {
			break
		}
		var columns []string
		err = sqlitex.ExecuteTransient(conn, "SELECT name FROM pragma_table_xinfo("+quote(t.Name, '\'')+") WHERE hidden<>1", &sqlitex.ExecOptions{ResultFunc: func(q *sqlite.Stmt) error {
			columns = append(columns, q.ColumnText(0))
			return nil
		}})
		*t = *sqlitefile.NewTable(t.Name, columns)
	}
	if err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	s.direct = nil
	return nil
}

// single refuses the journal of a transaction over several databases: playing it back,
// SQLite deletes a file whose name the journal states.
func single(journal string) error {
	f, err := os.Open(journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var tail [8]byte
	if info, err := f.Stat(); err == nil && info.Size() > 8 {
		if _, err := f.ReadAt(tail[:], info.Size()-8); err != nil {
			return err
		}
	}
	if string(tail[:]) == "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" {
		return errors.New("its rollback journal is that of a transaction over several databases, which is not played back")
	}
	return nil
}

func quote(name string, mark byte) string {
	m := string(mark)
	return m + strings.ReplaceAll(name, m, m+m) + m
}

// scan reads a table with SQLite.
func (s *Store) scan(ctx context.Context, t *sqlitefile.Table, row func(*sqlitefile.Row) error, damage func(sqlitefile.Damage)) error {
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, quote(c.Name, '"'))
	}
	list := strings.Join(columns, ", ")
	q, _, err := s.conn.PrepareTransient("SELECT rowid, " + list + " FROM " + quote(t.Name, '"') + " ORDER BY rowid")
	if err != nil { // a table without rowids is in the order of its key
		q, _, err = s.conn.PrepareTransient("SELECT 0, " + list + " FROM " + quote(t.Name, '"'))
	}
	if err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	defer q.Finalize()
	var r sqlitefile.Row
	var buf []byte
	for n := int64(1); ; n++ {
		more, err := q.Step()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			damage(sqlitefile.Damage{Text: fmt.Sprintf("table %s ends behind row %d: %v", t.Name, n-1, err)})
			return nil
		}
		if !more {
			return nil
		}
		id := q.ColumnInt64(0)
		if id == 0 {
			id = n
		}
		r.Begin(t, id)
		r.Offset = id
		for i := 1; i <= len(t.Columns); i++ {
			switch q.ColumnType(i) {
			case sqlite.TypeInteger:
				r.AppendInt(q.ColumnInt64(i))
			case sqlite.TypeFloat:
				r.AppendFloat(q.ColumnFloat(i))
			case sqlite.TypeText, sqlite.TypeBlob:
				size := q.ColumnLen(i)
				if cap(buf) < size {
					buf = make([]byte, size)
				}
				buf = buf[:size]
				q.ColumnBytes(i, buf)
				r.AppendBytes(buf, q.ColumnType(i) == sqlite.TypeBlob)
			default:
				r.AppendNull()
			}
		}
		if err := row(&r); err != nil {
			return err
		}
	}
}
