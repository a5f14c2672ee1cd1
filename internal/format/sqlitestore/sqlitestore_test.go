package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
)

// made runs statements in SQLite and returns the files as they lie there before it ends.
func made(t testing.TB, statements ...string) fstest.MapFS {
	t.Helper()
	dir := t.TempDir()
	conn, err := sqlite.OpenConn(filepath.Join(dir, "x.db"), sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	out := fstest.MapFS{}
	for _, n := range []string{"x.db", "x.db-wal", "x.db-shm", "x.db-journal"} {
		if b, err := os.ReadFile(filepath.Join(dir, n)); err == nil {
			out[n] = &fstest.MapFile{Data: b}
		}
	}
	return out
}

func files(dir fstest.MapFS, stream bool) Files {
	f := Files{Name: "x.db", Dir: dir, Size: -1, Open: func() (io.ReadCloser, error) { return dir.Open("x.db") }}
	if b := dir["x.db"].Data; !stream {
		f.DB, f.Size = bytes.NewReader(b), int64(len(b))
	}
	return f
}

func rows(t testing.TB, s *Store, table string) (out []string) {
	t.Helper()
	tab := s.Table(table)
	if tab == nil {
		t.Fatalf("no table %s among %v", table, s.Tables())
	}
	err := s.Scan(context.Background(), tab, func(r *sqlitefile.Row) error {
		text := fmt.Sprint(r.ID)
		for i := range s.Table(table).Columns {
			text += fmt.Sprintf("|%d %d %v %q", r.Kind(i), r.Int(i), r.Float(i), r.Bytes(i))
		}
		out = append(out, text)
		return nil
	}, func(d sqlitefile.Damage) { t.Errorf("damage: %+v", d) })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const fill = "INSERT INTO m WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000) SELECT 'key'||(i%7), i/8.0, i*100000, CASE i%3 WHEN 0 THEN NULL WHEN 1 THEN zeroblob(i) ELSE i END FROM n"
const table = "CREATE TABLE m (k VARCHAR(250) PRIMARY KEY, v FLOAT, n BIGINT, x)"

func TestBothWays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	plain := strings.Replace(table, " PRIMARY KEY", "", 1)
	for _, c := range []struct {
		name   string
		dir    fstest.MapFS
		asks   bool // is read by SQLite
		stream bool
		rows   int
	}{
		{name: "plain", dir: made(t, plain, fill), rows: 3000},
		{name: "stream", dir: made(t, plain, fill), stream: true, rows: 3000},
		{name: "log", dir: made(t, "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", plain, fill, "DELETE FROM m WHERE n%300000=0"), rows: 2000},
		{name: "log, stream", dir: made(t, "PRAGMA journal_mode=WAL", plain, fill), stream: true, rows: 3000},
		{name: "hot journal", dir: made(t, plain, fill, "PRAGMA cache_size=1", "BEGIN", "UPDATE m SET v=v+1", fill), asks: true, rows: 3000},
		{name: "UTF-16", dir: made(t, "PRAGMA encoding='UTF-16le'", plain, fill), asks: true, rows: 3000},
		{name: "without rowid", dir: made(t, strings.Replace(table, "x)", "x) WITHOUT ROWID", 1), "INSERT INTO m VALUES ('b', 2, 3, 4), ('a', 1.5, 2, NULL)"), asks: true, rows: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := fmt.Sprint(c.dir["x.db"].Data)
			s, err := Open(context.Background(), files(c.dir, c.stream))
			if err != nil {
				t.Fatal(err)
			}
			got := rows(t, s, "m")
			if (s.Why() != nil) != c.asks {
				t.Errorf("read by SQLite: %v", s.Why())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			q, err := OpenCopy(context.Background(), files(c.dir, c.stream))
			if err != nil {
				t.Fatal(err)
			}
			want := rows(t, q, "m")
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if len(got) != c.rows || !slices.Equal(plainInts(got), plainInts(want)) {
				t.Errorf("%d rows, SQLite has %d, want %d", len(got), len(want), c.rows)
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("\n got %s\nwant %s", got[i], want[i])
					}
				}
			}
			if fmt.Sprint(c.dir["x.db"].Data) != before {
				t.Error("the original was changed")
			}
		})
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// plainInts leaves the storage class of whole numbers out: SQLite gives a real number without
// a fraction as one, and the file holds an integer.
func plainInts(rows []string) []string {
	out := slices.Clone(rows)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "|2 ", "|1 ")
	}
	return out
}

func TestRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := made(t, table, "INSERT INTO m VALUES ('a', 1, 2, 3)")
	const magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	dir["x.db-journal"] = &fstest.MapFile{Data: []byte(magic + strings.Repeat("\x00", 504) + "/some/file\x00\x00\x00\x0a\x00\x00\x00\x00" + magic)}
	if s, err := Open(context.Background(), files(dir, false)); err == nil {
		s.Close()
		t.Error("the journal of a transaction over several databases was played back")
	}
	if _, err := Open(context.Background(), Files{DB: strings.NewReader("text"), Size: 4}); err == nil {
		t.Error("text was opened")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, files(made(t, table), true)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := fs.ReadDir(os.DirFS(os.Getenv("TMPDIR")), "."); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestChange(t *testing.T) {
	dir := made(t, "PRAGMA journal_mode=WAL", table, "INSERT INTO m VALUES ('a', 1, 2, 3)")
	if dir["x.db-wal"] == nil {
		t.Fatal("the row does not stand in a log")
	}
	dir["x.db"].Mode = 0o440
	to := filepath.Join(t.TempDir(), "y.db")
	left := 0
	err := Change(context.Background(), dir, "x.db", to, func(conn *sqlite.Conn) error {
		err := sqlitex.ExecuteTransient(conn, "DELETE FROM m", nil)
		left = conn.Changes()
		return err
	})
	if err != nil || left != 1 {
		t.Fatalf("%d rows of the log were deleted: %v", left, err)
	}
	names, err := filepath.Glob(to + "*")
	if info, serr := os.Stat(to); err != nil || serr != nil || len(names) != 1 || info.Mode().Perm() != 0o640 {
		t.Errorf("the copy is %v with %v (%v, %v)", names, info.Mode(), err, serr)
	}
	never := func(*sqlite.Conn) error { t.Error("changed"); return nil }
	if err := Change(context.Background(), dir, "x.db", to, never); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Change(ctx, dir, "x.db", to+"2", never); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	dir["x.db-journal"] = &fstest.MapFile{Data: []byte(strings.Repeat("\x00", 600) + "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")}
	if err := Change(context.Background(), dir, "x.db", to+"3", never); err == nil {
		t.Error("the journal of a transaction over several databases was played back")
	}
}
