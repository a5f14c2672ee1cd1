package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
)

// The index holds what the files of the truth hold, in short, so that a list need not read
// each of them: a row for each file with the size and time that it had, and the incidents
// that Keep makes of all. It is never changed in place. Who finds it stale copies it, brings
// the copy up to date and renames it to index.sqlite, so that it is always whole, is never
// locked, and may lie on NFS; of several who do so at once the last one's stays, and each is
// right for its moment. Whatever is wrong with it, it is made anew; where it cannot be
// written, all goes without it.

// indexVersion changes whenever rows, or what Keep makes of them, change.
const indexVersion = 2

const (
	indexFile = "index.sqlite"
	indexTemp = ".index-" // and what CreateTemp adds
)

const indexSchema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL, problem TEXT NOT NULL, body BLOB) WITHOUT ROWID;
CREATE TABLE trials(id TEXT PRIMARY KEY, path TEXT NOT NULL, made_by TEXT NOT NULL, begun TEXT NOT NULL, scenario TEXT NOT NULL, incident TEXT NOT NULL, series TEXT NOT NULL, launch TEXT NOT NULL, result TEXT NOT NULL, fingerprint TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE incidents(id TEXT PRIMARY KEY, status TEXT NOT NULL, closed INTEGER NOT NULL, scenario TEXT NOT NULL, fingerprint TEXT NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
`

// maxBody bounds what a row of the index unpacks to.
const maxBody = maxRecord

// An index is what was read of index.sqlite, or what will be written to it.
type index struct {
	conn    *sqlite.Conn
	version string
	rows    map[string]row // by path
}

// A row is a file of the truth as it was when it was read.
type row struct {
	size, mtime int64
	problem     string
}

func (r *row) fits(f *found) bool { return r.size == f.size && r.mtime == f.mtime }

// versionOf says which program wrote an index: another may judge otherwise.
func versionOf() string {
	v := fmt.Sprintf("%d", indexVersion)
	if b, ok := debug.ReadBuildInfo(); ok {
		v += " " + b.Main.Version
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				v += " " + s.Value
			}
		}
	}
	return v
}

// openIndex reads the index; an error says why it cannot be used. bodies says whether the rows'
// contents are read as well.
func (s *Store) openIndex(ctx context.Context) (ix *index, err error) {
	name := filepath.Join(s.dir, indexFile)
	f, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	f.Close()
	// Immutable: no lock is taken and no journal looked for. The file that was opened stays
	// as it is, whoever replaces it.
	conn, err := sqlite.OpenConn(fileURI(name)+"?immutable=1", sqlite.OpenReadOnly|sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	ix = &index{conn: conn, rows: map[string]row{}}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	conn.SetInterrupt(ctx.Done())
	if err := pragmas(conn, "trusted_schema=OFF", "cell_size_check=ON"); err != nil {
		return nil, err
	}
	err = query(conn, "SELECT value FROM meta WHERE key='version'", func(q *sqlite.Stmt) error {
		ix.version = q.ColumnText(0)
		return nil
	})
	if err == nil && ix.version != versionOf() {
		err = errors.New("another version's")
	}
	if err == nil {
		err = query(conn, "SELECT path, size, mtime, problem FROM files", func(q *sqlite.Stmt) error {
			ix.rows[q.ColumnText(0)] = row{size: q.ColumnInt64(1), mtime: q.ColumnInt64(2), problem: q.ColumnText(3)}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return ix, nil
}

func fileURI(name string) string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return "file://" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(name)
}

func query(conn *sqlite.Conn, sql string, fn func(*sqlite.Stmt) error, args ...any) error {
	return sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: args, ResultFunc: fn})
}

func pragmas(conn *sqlite.Conn, all ...string) error {
	for _, p := range all {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+p, nil); err != nil {
			return err
		}
	}
	return nil
}

func (ix *index) close() {
	if ix != nil && ix.conn != nil {
		ix.conn.Close()
		ix.conn = nil
	}
}

// bodies reads the contents of the rows of files; those that are damaged are left out.
func (ix *index) bodies() (map[string]*kept, error) {
	out := map[string]*kept{}
	err := query(ix.conn, "SELECT path, body FROM files WHERE body IS NOT NULL", func(q *sqlite.Stmt) error {
		k := new(kept)
		if unpack(column(q, 1), k) == nil && (k.Trial != nil) != (k.Act != nil) {
			out[q.ColumnText(0)] = k
		}
		return nil
	})
	return out, err
}

// incidents reads the incidents.
func (ix *index) incidents() ([]incident.KeptLine, error) {
	var out []incident.KeptLine
	err := query(ix.conn, "SELECT body FROM incidents ORDER BY id", func(q *sqlite.Stmt) error {
		var l incident.KeptLine
		if err := unpack(column(q, 0), &l); err != nil {
			return err
		}
		out = append(out, l)
		return nil
	})
	return out, err
}

func column(q *sqlite.Stmt, i int) []byte {
	b := make([]byte, q.ColumnLen(i))
	q.ColumnBytes(i, b)
	return b
}

// pack and unpack are the form of a body. Its check sum is gzip's.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err := errors.Join(json.NewEncoder(z).Encode(v), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unpack(b []byte, v any) error {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxBody))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// A view is the store as it is at one moment.
type view struct {
	files    []found
	contents *Contents // nil where only the lines were asked for and the index has them
	lines    []incident.KeptLine
	problems []string
	// unindexed is why the index could not be brought up to date; everything else is right.
	unindexed error
}

// view reads the store: from the index what is in it as it stands in the files, the rest from
// the files; then it brings the index up to date. contents says whether more than the lines of
// the incidents is asked for.
func (s *Store) view(ctx context.Context, contents bool) (*view, error) {
	files, problems, err := s.walk(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{files: files}
	ix, err := s.openIndex(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ix = nil
	}
	defer ix.close()
	fresh := ix != nil && len(ix.rows) == len(files) && !slices.ContainsFunc(files, func(f found) bool {
		r, ok := ix.rows[f.path]
		return !ok || !r.fits(&f)
	})
	if fresh && !contents {
		if v.lines, err = ix.incidents(); err == nil {
			for _, f := range files {
				if p := ix.rows[f.path].problem; p != "" {
					problems = append(problems, p)
				}
			}
			v.problems = problems
			return v, nil
		}
		fresh = false
	}
	var have map[string]*kept
	damaged := false
	if ix != nil {
		have, err = ix.bodies()
		damaged = err != nil
	}
	all := make([]*kept, len(files))
	rows := make([]row, len(files))
	var stale []int
	for i, f := range files {
		rows[i] = row{size: f.size, mtime: f.mtime}
		old, ok := row{}, false
		if ix != nil {
			old, ok = ix.rows[f.path]
		}
		switch {
		case ok && old.fits(&f) && old.problem != "":
			rows[i].problem = old.problem
		case ok && old.fits(&f) && have[f.path] != nil:
			all[i] = have[f.path]
		default:
			damaged = damaged || ok && old.fits(&f)
			stale = append(stale, i)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(stale) > 0 {
		fresh = false
		read := make([]found, len(stale))
		for n, i := range stale {
			read[n] = files[i]
		}
		got, errs, err := s.readAll(ctx, read)
		if err != nil {
			return nil, err
		}
		for n, i := range stale {
			all[i] = got[n] // nil with an error
			if errs[n] != nil {
				rows[i].problem = files[i].path + ": " + reason(errs[n])
			}
		}
	}
	for i := range rows {
		if rows[i].problem != "" {
			problems = append(problems, rows[i].problem)
		}
	}
	v.problems = problems
	c := newContents(all, problems)
	v.lines = lines(ledger.Outline(c.Trials, c.Acts))
	if damaged {
		ix.close()
		ix, fresh = nil, false
	}
	if !fresh {
		v.unindexed = s.writeIndex(ctx, ix, files, rows, all, v.lines)
	}
	for i, k := range all {
		if k != nil && k.Trial != nil {
			settle(k.Trial, filepath.Dir(files[i].name(s)))
		}
	}
	v.contents = newContents(all, problems)
	return v, nil
}

// lines are incidents in short, in the order of their ids.
func lines(all []incident.Kept) []incident.KeptLine {
	out := make([]incident.KeptLine, 0, len(all))
	for i := range all {
		out = append(out, ledger.Line(&all[i]))
	}
	slices.SortFunc(out, func(a, b incident.KeptLine) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// writeIndex replaces the index, from a copy of it where there is one. That it cannot is no
// matter: the next one reads the files.
func (s *Store) writeIndex(ctx context.Context, old *index, files []found, rows []row, all []*kept, lines []incident.KeptLine) error {
	if len(files) == 0 {
		if _, err := os.Lstat(s.dir); err != nil {
			return nil // no store yet: reading does not make one
		}
	}
	s.sweep()
	f, err := os.CreateTemp(s.dir, indexTemp+"*") // mode 0600
	if err != nil {
		return err
	}
	name := f.Name()
	defer os.Remove(name)
	copied := false
	if old != nil {
		copied = s.copyIndex(f)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if !copied {
		if err := os.Truncate(name, 0); err != nil {
			return err
		}
	}
	if err := fillIndex(ctx, name, copied, files, rows, all, lines); err != nil {
		return err
	}
	if f, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name, filepath.Join(s.dir, indexFile))
}

func (s *Store) copyIndex(to io.Writer) bool {
	from, _, err := openRegular(filepath.Join(s.dir, indexFile))
	if err != nil {
		return false
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err == nil
}

// fillIndex brings the index in a file of our own up to date.
func fillIndex(ctx context.Context, name string, copied bool, files []found, rows []row, all []*kept, lines []incident.KeptLine) (err error) {
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetInterrupt(ctx.Done())
	// Nobody else has the file, and nobody has it if this fails.
	if err := pragmas(conn, "trusted_schema=OFF", "synchronous=OFF", "journal_mode=OFF"); err != nil {
		return err
	}
	if !copied {
		if err := sqlitex.ExecuteScript(conn, indexSchema, nil); err != nil {
			return err
		}
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	// Which rows stand is asked of the copy: the index may have been replaced since it was read.
	have := map[string]row{}
	if err := query(conn, "SELECT path, size, mtime, problem FROM files", func(q *sqlite.Stmt) error {
		have[q.ColumnText(0)] = row{size: q.ColumnInt64(1), mtime: q.ColumnInt64(2), problem: q.ColumnText(3)}
		return nil
	}); err != nil {
		return err
	}
	if err := query(conn, "DELETE FROM meta", nil); err != nil {
		return err
	}
	if err := query(conn, "INSERT INTO meta VALUES('version', ?)", nil, versionOf()); err != nil {
		return err
	}
	for i, f := range files {
		old, ok := have[f.path]
		delete(have, f.path)
		if ok && old.fits(&f) && old.problem == rows[i].problem {
			continue
		}
		var body any
		if k := all[i]; k != nil {
			if body, err = pack(k); err != nil {
				return err
			}
		}
		if err := query(conn, "INSERT OR REPLACE INTO files VALUES(?,?,?,?,?)", nil, f.path, f.size, f.mtime, rows[i].problem, body); err != nil {
			return err
		}
		if err := query(conn, "DELETE FROM trials WHERE path=?", nil, f.path); err != nil {
			return err
		}
		if k := all[i]; k != nil && k.Trial != nil {
			t := k.Trial
			launch := ""
			if t.Launch != nil {
				launch = t.Launch.ID
			}
			if err := query(conn, "INSERT OR REPLACE INTO trials VALUES(?,?,?,?,?,?,?,?,?,?)", nil, t.ID, f.path, t.By, t.Begun, t.Scenario, t.Incident, t.Series, launch, t.Verdict.Result, t.Verdict.Fingerprint); err != nil {
				return err
			}
		}
	}
	for path := range have {
		if err := query(conn, "DELETE FROM files WHERE path=?", nil, path); err != nil {
			return err
		}
		if err := query(conn, "DELETE FROM trials WHERE path=?", nil, path); err != nil {
			return err
		}
	}
	if err := query(conn, "DELETE FROM incidents", nil); err != nil {
		return err
	}
	for i := range lines {
		l := &lines[i]
		body, err := pack(l)
		if err != nil {
			return err
		}
		if err := query(conn, "INSERT INTO incidents VALUES(?,?,?,?,?,?,?,?)", nil, l.ID, l.Status, l.Closed, l.Scenario, l.Fingerprint, l.First, l.Last, body); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what a process left that was ended while it wrote an index.
func (s *Store) sweep() {
	left, _ := filepath.Glob(filepath.Join(globQuote(s.dir), indexTemp+"*"))
	for _, name := range left {
		if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() && time.Since(st.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
}

func globQuote(dir string) string {
	if os.PathSeparator == '\\' {
		return dir // there no character can be quoted
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// Rebuild makes the index anew from the files.
func (s *Store) Rebuild(ctx context.Context) error {
	if err := os.Remove(filepath.Join(s.dir, indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rebuild index: %w", err)
	}
	v, err := s.view(ctx, true)
	if err == nil {
		err = v.unindexed
	}
	if err != nil {
		return fmt.Errorf("rebuild index: %w", err)
	}
	return nil
}
