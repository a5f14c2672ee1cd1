package aim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A kept is a sink that keeps runs.
type kept struct {
	*reader.Collector
	runs []*evidence.TrackedRun
}

func (k *kept) TrackedRun(r *evidence.TrackedRun) { k.runs = append(k.runs, r) }

func input(name string, data []byte) reader.Input {
	return reader.Input{Artifact: evidence.Artifact{Path: name, Kind: "aim"}, At: bytes.NewReader(data), Size: int64(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// made is a repository's list of three runs, with the tables of Aim 3.
func made(t testing.TB) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "run_metadata.sqlite")
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"CREATE TABLE experiment (id INTEGER NOT NULL, uuid TEXT, name TEXT NOT NULL, created_at DATETIME, PRIMARY KEY (id), UNIQUE (name))",
		"CREATE TABLE tag (id INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (id))",
		"CREATE TABLE run (id INTEGER NOT NULL, hash TEXT NOT NULL, name TEXT, description TEXT, is_archived BOOLEAN, created_at DATETIME, updated_at DATETIME, experiment_id INTEGER, finalized_at DATETIME, PRIMARY KEY (id))",
		"CREATE TABLE run_tag (run_id INTEGER NOT NULL, tag_id INTEGER NOT NULL, PRIMARY KEY (run_id, tag_id))",
		"CREATE TABLE note (id INTEGER NOT NULL, content TEXT NOT NULL, run_id INTEGER, PRIMARY KEY (id))",
		"INSERT INTO experiment VALUES (4, 'u', 'toy', NULL)",
		"INSERT INTO tag VALUES (1, 'bad')",
		"INSERT INTO run VALUES (1, 'aaa', 'first', NULL, 0, '2024-05-25 01:30:09.003149', NULL, 4, '2024-05-25 02:00:00'), (2, 'bbb', 'second', 'words', 1, '2024-05-26 01:30:09.003149', NULL, 4, NULL), (7, 'ccc', NULL, NULL, 0, 'no time', NULL, NULL, NULL)",
		"INSERT INTO run_tag VALUES (2, 1)",
		"INSERT INTO note VALUES (1, 'a note' || char(27) || '[31m', 2)",
	} {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRead(t *testing.T) {
	data := made(t)
	if New().Sniff(evidence.Artifact{Path: "x.sqlite"}, data[:4096]) != reader.Sure {
		t.Error("Sniff does not know its tables")
	}
	k := &kept{Collector: reader.NewCollector()}
	if err := New().Read(context.Background(), input("p/.aim/run_metadata.sqlite", data), k); err != nil {
		t.Fatal(err)
	}
	if len(k.runs) != 3 || len(k.Damages) > 0 {
		t.Fatalf("%d runs, %v", len(k.runs), k.Damages)
	}
	first, second, third := k.runs[0], k.runs[1], k.runs[2]
	if first.ID != "aaa" || first.Project != "toy" || first.Status != evidence.RunFinished || first.Folder != "p/.aim" || first.Started.Written != "2024-05-25T01:30:09.003149Z" {
		t.Errorf("%+v", first)
	}
	if notes := fmt.Sprint(second.Notes); second.Status != evidence.RunOpen || !strings.Contains(notes, "archived") || !strings.Contains(notes, "words") || !strings.Contains(notes, "tag bad") || !strings.Contains(notes, "a note") || strings.Contains(notes, "\x1b") {
		t.Errorf("%+v", second)
	}
	if third.Started.Known() || !strings.Contains(fmt.Sprint(third.Cannot), "to_csv") {
		t.Errorf("%+v", third)
	}
	if len(k.Events) != 1 || k.Events[0].Attrs.Str("id") != "ccc" {
		t.Errorf("the diagnosis hears of %+v", k.Events)
	}
	for cut := 0; cut < len(data); cut += 500 {
		if err := New().Read(context.Background(), input("run_metadata.sqlite", data[:cut]), reader.NewCollector()); err != nil && cut > 0 && cut%4096 == 0 {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := New().Read(ctx, input("run_metadata.sqlite", data), reader.NewCollector()); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct{ path, head string }{{"run_metadata.sqlite", "no database"}, {"x.db", "SQLite format 3\x00" + strings.Repeat("\x00", 200)}} {
		if got := New().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != reader.No {
			t.Errorf("%s: %v", c.path, got)
		}
	}
	if dir, pattern, ok := New().(reader.Gatherer).Anchor(".aim/run_metadata.sqlite-wal"); !ok || dir != ".aim" || pattern != "run_metadata.sqlite" {
		t.Errorf("%s %s %v", dir, pattern, ok)
	}
}

// TestShared reads what a real repository left, where it is there.
func TestShared(t *testing.T) {
	data, err := os.ReadFile("../../../../shared/data/aim/torchbringer/run_metadata.sqlite")
	if err != nil {
		t.Skip("no folder of real repositories")
	}
	k := &kept{Collector: reader.NewCollector()}
	if err := New().Read(context.Background(), input("run_metadata.sqlite", data), k); err != nil || len(k.runs) != 234 || len(k.Damages) > 0 {
		t.Errorf("%d runs, %v, %v", len(k.runs), err, k.Damages)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(made(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = New().Read(context.Background(), input("run_metadata.sqlite", data), &kept{Collector: reader.NewCollector()})
	})
}
