package sqlitefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// made makes a database with SQLite and returns the bytes of the files that it left.
func made(t testing.TB, script string, wal bool) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "x.db")
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if wal {
		script = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + script
	}
	for _, s := range strings.Split(script, ";;") {
		if err := sqlitex.ExecuteScript(conn, s, nil); err != nil {
			// PRAGMA journal_mode and VACUUM stand outside of transactions.
			if err := run(conn, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := map[string][]byte{}
	for _, n := range []string{"x.db", "x.db-wal", "x.db-journal"} { // while it is open: the log is still there
		if b, err := os.ReadFile(filepath.Join(dir, n)); err == nil {
			out[n] = b
		}
	}
	return out
}

func run(conn *sqlite.Conn, script string) error {
	for s := range strings.SplitSeq(script, ";") {
		if strings.TrimSpace(s) == "" {
			continue
		}
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func source(files map[string][]byte) Source {
	s := Source{DB: bytes.NewReader(files["x.db"]), Size: int64(len(files["x.db"]))}
	if w := files["x.db-wal"]; w != nil {
		s.WAL, s.WALSize = bytes.NewReader(w), int64(len(w))
	}
	if j := files["x.db-journal"]; j != nil {
		s.Journal = bytes.NewReader(j)
	}
	return s
}

// text writes a value the way the tests compare it.
func text(r *Row, i int) string {
	switch r.Kind(i) {
	case Integer:
		return fmt.Sprint(r.Int(i))
	case Real:
		return fmt.Sprintf("%v", r.Float(i))
	case Text:
		return fmt.Sprintf("%q", r.Text(i))
	case Blob:
		return fmt.Sprintf("x%x", r.Bytes(i))
	}
	return "NULL"
}

// dump reads all rows of a table.
func dump(t testing.TB, f *File, table string) (rows []string, damage []Damage) {
	t.Helper()
	tab := f.Table(table)
	if tab == nil {
		t.Fatalf("no table %s", table)
	}
	err := f.Scan(context.Background(), tab, func(r *Row) error {
		var b strings.Builder
		fmt.Fprint(&b, r.ID)
		for i := range tab.Columns {
			fmt.Fprint(&b, "|", text(r, i))
		}
		rows = append(rows, b.String())
		return nil
	}, func(d Damage) { damage = append(damage, d) })
	if err != nil {
		t.Fatal(err)
	}
	return rows, damage
}

// asked reads all rows of a table with SQLite.
func asked(t testing.TB, files map[string][]byte, table string) (rows []string) {
	t.Helper()
	dir := t.TempDir()
	for n, b := range files {
		if err := os.WriteFile(filepath.Join(dir, n), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "x.db"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stmt, err := conn.Prepare("SELECT rowid, * FROM " + table + " ORDER BY rowid")
	if err != nil {
		t.Fatal(err)
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		var b strings.Builder
		fmt.Fprint(&b, stmt.ColumnInt64(0))
		for i := 1; i < stmt.ColumnCount(); i++ {
			b.WriteByte('|')
			switch stmt.ColumnType(i) {
			case sqlite.TypeInteger:
				fmt.Fprint(&b, stmt.ColumnInt64(i))
			case sqlite.TypeFloat:
				fmt.Fprintf(&b, "%v", stmt.ColumnFloat(i))
			case sqlite.TypeText:
				fmt.Fprintf(&b, "%q", stmt.ColumnText(i))
			case sqlite.TypeBlob:
				p := make([]byte, stmt.ColumnLen(i))
				stmt.ColumnBytes(i, p)
				fmt.Fprintf(&b, "x%x", p)
			default:
				b.WriteString("NULL")
			}
		}
		rows = append(rows, b.String())
	}
	stmt.Finalize()
	return rows
}

// many is a table with rows of all sorts, also ones that go on over many pages.
func many(rows int, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("CREATE TABLE m (k VARCHAR(250) NOT NULL, v FLOAT, n BIGINT, b BLOB);")
	for i := range rows {
		n := []int64{0, 1, -1, 127, -128, 32767, 1 << 20, -(1 << 23), 1 << 31, -(1 << 40), math.MaxInt64, math.MinInt64 + 1}[rnd.IntN(12)]
		v := []string{"0.0", "1.0", "NULL", "1.7976931348623157e308", "-2.5", fmt.Sprint(rnd.NormFloat64()), "3"}[rnd.IntN(7)]
		length := rnd.IntN(40)
		if rnd.IntN(20) == 0 {
			length = rnd.IntN(20_000)
		}
		fmt.Fprintf(&b, "INSERT INTO m VALUES ('%s', %s, %d, x'%x');", strings.Repeat("é", rnd.IntN(9)), v, n, bytes.Repeat([]byte{byte(i)}, length))
		if rnd.IntN(50) == 0 {
			fmt.Fprintf(&b, "DELETE FROM m WHERE rowid %% 7 = %d;", rnd.IntN(7))
		}
	}
	return b.String()
}

func TestSameAsSQLite(t *testing.T) {
	for _, c := range []struct {
		name, script, table string
		wal                 bool
	}{
		{"small", many(5, 1), "m", false},
		{"pages", many(1500, 2), "m", false},
		{"small pages", "PRAGMA page_size=512;;" + many(400, 3), "m", false},
		{"large pages", "PRAGMA page_size=65536;;" + many(900, 4), "m", false},
		{"log", many(500, 5), "m", true},
		{"log over a database", many(600, 6) + ";;PRAGMA wal_checkpoint(TRUNCATE);;DELETE FROM m WHERE rowid%3=0; INSERT INTO m SELECT * FROM m; UPDATE m SET n=7 WHERE rowid%5=0", "m", true},
		{"log used again", many(300, 7) + ";;PRAGMA wal_checkpoint(RESTART);;INSERT INTO m SELECT * FROM m LIMIT 3", "m", true},
		{"vacuumed", many(300, 8) + ";;DELETE FROM m WHERE rowid%2=0;;VACUUM", "m", false},
		{"auto vacuum", "PRAGMA auto_vacuum=FULL;;" + many(300, 9), "m", false},
		{"columns added", "CREATE TABLE a (i INTEGER PRIMARY KEY, x TEXT);;INSERT INTO a VALUES (3,'u'),(9,'v');;ALTER TABLE a ADD COLUMN step BIGINT DEFAULT '0' NOT NULL;;ALTER TABLE a ADD COLUMN w VARCHAR(63) DEFAULT 'def''ault' NOT NULL;;ALTER TABLE a ADD COLUMN r FLOAT DEFAULT -1.5;;ALTER TABLE a ADD COLUMN z TEXT;;INSERT INTO a VALUES (11,'w',5,'x',2,'y')", "a", false},
		{"names in quotes", "CREATE TABLE \"a b\" (\"key, (\" VARCHAR(3), `value` /* , */ FLOAT, [x y] INT -- , q\n, CHECK (\"key, (\" <> ')'), PRIMARY KEY (\"key, (\"));;INSERT INTO \"a b\" VALUES ('k', 1.25, 3)", "\"a b\"", false},
		{"key of the table", "CREATE TABLE k (x TEXT, id INTEGER, PRIMARY KEY (id));;INSERT INTO k VALUES ('a', 5), ('b', -7)", "k", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := made(t, c.script, c.wal)
			f, err := Open(context.Background(), source(files))
			if err != nil {
				t.Fatal(err)
			}
			got, damage := dump(t, f, strings.Trim(c.table, `"`))
			want := asked(t, files, c.table)
			if len(damage) > 0 || len(f.Damage()) > 0 {
				t.Errorf("damage in an intact database: %v %v", damage, f.Damage())
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("row %d:\n got %.300s\nwant %.300s", i, got[i], want[i])
					}
				}
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
			if c.wal && f.Log() == nil {
				t.Error("no log")
			}
		})
	}
}

func TestRefused(t *testing.T) {
	without := made(t, "CREATE TABLE w (a TEXT PRIMARY KEY) WITHOUT ROWID;;CREATE TABLE v (a INT, b INT AS (a+1));;CREATE TABLE ok (a INT);;INSERT INTO ok VALUES (1)", false)
	f, err := Open(context.Background(), source(without))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w", "v"} {
		if err := f.Scan(context.Background(), f.Table(name), nil, nil); !errors.Is(err, ErrUnsupported) {
			t.Errorf("table %s: %v", name, err)
		}
	}
	if rows, _ := dump(t, f, "ok"); len(rows) != 1 {
		t.Errorf("table ok: %v", rows)
	}
	hot := source(without)
	hot.Journal = strings.NewReader("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and pages")
	if _, err := Open(context.Background(), hot); !errors.Is(err, ErrUnsupported) {
		t.Errorf("hot journal: %v", err)
	}
	hot.Journal = strings.NewReader(strings.Repeat("\x00", 512))
	if _, err := Open(context.Background(), hot); err != nil {
		t.Errorf("used journal: %v", err)
	}
	wide := made(t, "PRAGMA encoding='UTF-16';;CREATE TABLE t (a TEXT)", false)
	if _, err := Open(context.Background(), source(wide)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("UTF-16: %v", err)
	}
	for _, text := range []string{"", "no database", Magic, Magic + strings.Repeat("\x00", 100)} {
		if _, err := Open(context.Background(), Source{DB: strings.NewReader(text), Size: int64(len(text))}); err == nil {
			t.Errorf("%q was opened", text)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, source(without)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestDamagedPages overwrites pages one by one: all rows of the others must come.
func TestDamagedPages(t *testing.T) {
	var script strings.Builder
	script.WriteString("CREATE TABLE m (k TEXT, v FLOAT);")
	for i := range 2000 {
		fmt.Fprintf(&script, "INSERT INTO m VALUES ('key%d', %d.5);", i, i)
	}
	files := made(t, "PRAGMA page_size=1024;;"+script.String(), false)
	whole := files["x.db"]
	f, err := Open(context.Background(), source(files))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := dump(t, f, "m")
	for page := 3; page*1024 <= len(whole); page += 5 {
		b := bytes.Clone(whole)
		for i := range 1024 {
			b[(page-1)*1024+i] = 0xee
		}
		f, err := Open(context.Background(), Source{DB: bytes.NewReader(b), Size: int64(len(b))})
		if err != nil {
			t.Fatal(err)
		}
		rows, damage := dump(t, f, "m")
		if len(damage) != 1 || damage[0].Page != uint32(page) || damage[0].Offset != int64(page-1)*1024 {
			t.Fatalf("page %d: damage %+v", page, damage)
		}
		if lost := len(all) - len(rows); lost < 1 || lost > 60 {
			t.Errorf("page %d: %d rows lost of %d", page, lost, len(all))
		}
	}
	cut := whole[:len(whole)/2]
	f, err = Open(context.Background(), Source{DB: bytes.NewReader(cut), Size: int64(len(cut))})
	if err != nil {
		t.Fatal(err)
	}
	rows, damage := dump(t, f, "m")
	if len(f.Damage()) != 1 || len(damage) == 0 || len(rows) < len(all)/3 {
		t.Errorf("cut in half: %v, %d damaged places, %d of %d rows", f.Damage(), len(damage), len(rows), len(all))
	}
}

// TestCycle points a child at its parent and a row's overflow page at itself.
func TestCycle(t *testing.T) {
	var script strings.Builder
	script.WriteString("CREATE TABLE m (b BLOB);")
	for i := range 60 {
		fmt.Fprintf(&script, "INSERT INTO m VALUES (zeroblob(%d));", 3000+i)
	}
	files := made(t, "PRAGMA page_size=512;;"+script.String(), false)
	b := files["x.db"]
	f, err := Open(context.Background(), source(files))
	if err != nil {
		t.Fatal(err)
	}
	root := f.Table("m").root
	at := int(root-1) * 512
	if b[at] != 5 {
		t.Fatal("the root is no interior page")
	}
	binary.BigEndian.PutUint32(b[at+8:], root)
	f, err = Open(context.Background(), source(files))
	if err != nil {
		t.Fatal(err)
	}
	rows, damage := dump(t, f, "m")
	if len(rows) == 0 || len(damage) != 1 || !strings.Contains(damage[0].Text, "twice") {
		t.Errorf("%d rows, %+v", len(rows), damage)
	}
	for page := 2; page*512 < len(b); page++ {
		if b[(page-1)*512] == 0 { // an overflow page begins with the high byte of the next
			binary.BigEndian.PutUint32(b[(page-1)*512:], uint32(page))
		}
	}
	f, err = Open(context.Background(), source(files))
	if err != nil {
		t.Fatal(err)
	}
	if rows, damage = dump(t, f, "m"); len(rows) != 0 || len(damage) == 0 {
		t.Errorf("%d rows, %d damaged places", len(rows), len(damage))
	}
}

// TestLogCut cuts a log after every frame and in between: what a committed transaction
// wrote is there, and nothing of one that was not committed.
func TestLogCut(t *testing.T) {
	files := made(t, "CREATE TABLE m (a INT);;INSERT INTO m VALUES (1);;INSERT INTO m VALUES (2);;INSERT INTO m VALUES (3)", true)
	wal := files["x.db-wal"]
	frames := (len(wal) - walHeader) / (walFrame + 4096)
	last := 0
	for cut := 0; cut <= len(wal); cut += 1030 {
		part := map[string][]byte{"x.db": files["x.db"], "x.db-wal": wal[:cut]}
		f, err := Open(context.Background(), source(part))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if f.Table("m") == nil {
			continue
		}
		rows, damage := dump(t, f, "m")
		if len(damage) > 0 || len(rows) < last {
			t.Errorf("cut at %d: %d rows, %v", cut, len(rows), damage)
		}
		if want := asked(t, part, "m"); len(want) != len(rows) {
			t.Errorf("cut at %d: %d rows, SQLite has %d", cut, len(rows), len(want))
		}
		last = len(rows)
	}
	flipped := bytes.Clone(wal)
	flipped[len(flipped)-10] ^= 1
	f, err := Open(context.Background(), source(map[string][]byte{"x.db": files["x.db"], "x.db-wal": flipped}))
	if err != nil {
		t.Fatal(err)
	}
	if rows, _ := dump(t, f, "m"); len(rows) != 2 || f.Log().Frames >= int64(frames) {
		t.Errorf("a frame with a wrong checksum was taken: %d rows", len(rows))
	}
	flipped[0] = 9
	f, err = Open(context.Background(), source(map[string][]byte{"x.db": files["x.db"], "x.db-wal": flipped}))
	if err != nil || !f.Log().Broken {
		t.Errorf("a log without a header: %v", err)
	}
}

func TestTablesIn(t *testing.T) {
	files := made(t, "CREATE TABLE Runs (a INT);;CREATE INDEX i ON Runs (a);;CREATE TABLE metrics (b INT)", false)
	names, whole := TablesIn(files["x.db"][:4096])
	if !names["runs"] || !names["metrics"] || len(names) != 2 || !whole {
		t.Errorf("%v %v", names, whole)
	}
	if names, whole = TablesIn(files["x.db"][:4000]); whole {
		t.Errorf("a part of the page is the whole list: %v", names)
	}
	if names, _ = TablesIn([]byte("SQLite")); names != nil {
		t.Errorf("%v", names)
	}
	if db, ok := Companion("a/x.db-wal"); !ok || db != "a/x.db" {
		t.Errorf("%q %v", db, ok)
	}
	if _, ok := Companion("a/-wal"); ok {
		t.Error("a log of nothing")
	}
}

func FuzzRead(f *testing.F) {
	for _, files := range []map[string][]byte{
		made(f, "PRAGMA page_size=512;;"+many(20, 1), false),
		made(f, "PRAGMA page_size=512;;"+many(5, 2), true),
	} {
		f.Add(files["x.db"], files["x.db-wal"])
	}
	f.Fuzz(func(t *testing.T, db, wal []byte) {
		src := Source{DB: bytes.NewReader(db), Size: int64(len(db))}
		if len(wal) > 0 {
			src.WAL, src.WALSize = bytes.NewReader(wal), int64(len(wal))
		}
		TablesIn(db[:min(len(db), 4096)])
		file, err := Open(context.Background(), src)
		if err != nil {
			return
		}
		for _, tab := range file.Tables() {
			var n int
			err := file.Scan(context.Background(), tab, func(r *Row) error {
				for i := range tab.Columns {
					n += len(text(r, i))
				}
				return nil
			}, func(Damage) {})
			if err != nil && !errors.Is(err, ErrUnsupported) {
				t.Fatal(err)
			}
		}
	})
}
