package trackio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/engine"
	reader "github.com/inquest-dev/inquest/internal/reader/trackio"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
	"github.com/inquest-dev/inquest/internal/repair/trackio"
)

const testdata = "../../reader/trackio/testdata/"

func TestFormat(t *testing.T) {
	for _, source := range []string{"old.db", "real", "wal"} {
		t.Run(source, func(t *testing.T) { repairtest.Run(t, reader.New(), trackio.New(), testdata+source) })
	}
}

// ask returns the rows of a query of a copy, one a line.
func ask(t *testing.T, name, sql string) string {
	t.Helper()
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var b strings.Builder
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(q *sqlite.Stmt) error {
		for i := range q.ColumnCount() {
			fmt.Fprintf(&b, "%s|", q.ColumnText(i))
		}
		b.WriteByte('\n')
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRows: what becomes of the rows, the alerts and the configuration.
func TestRows(t *testing.T) {
	res, out := repairtest.Copy(t, reader.New(), trackio.New(), testdata+"real", nil)
	db := filepath.Join(out, "toy.db")
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Stat(db + suffix); err == nil {
			t.Errorf("the copy has %s", suffix)
		}
	}
	got := ask(t, db, "SELECT id, step, typeof(metrics), CAST(metrics AS TEXT) FROM metrics WHERE step BETWEEN 6 AND 9 ORDER BY id")
	want := `7|6|blob|{"train/loss":0.14285714285714285,"grad_norm":8.0,"lr":0.006,"inquest/failed_segment":0.0}|
8|7|blob|{"train/loss":0.125,"lr":0.005,"inquest/failed_segment":1.0}|
9|8|blob|{"lr":0.004,"inquest/failed_segment":1.0}|
10|9|blob|{"lr":0.003,"inquest/failed_segment":1.0}|
13|6|blob|{"train/loss":0.14285714285714285,"grad_norm":8.0,"lr":0.006}|
14|7|blob|{"train/loss":0.125,"grad_norm":9.0,"lr":0.005}|
15|8|blob|{"train/loss":0.1111111111111111,"grad_norm":10.0,"lr":0.004}|
16|9|blob|{"train/loss":0.1,"grad_norm":11.0,"lr":0.003}|
`
	if got != want {
		t.Errorf("rows\n%swant\n%s", got, want)
	}
	if got := ask(t, db, "SELECT CAST(metrics AS TEXT) FROM system_metrics"); strings.Contains(got, "fan") || !strings.Contains(got, "allocated_memory") {
		t.Errorf("system rows %s", got)
	}
	if got := ask(t, db, "SELECT level, title, step, alert_id IS NULL FROM alerts ORDER BY id DESC LIMIT 1"); got != "error|inquest: non-finite segment|7|1|\n" {
		t.Errorf("alert %s", got)
	}
	if got := ask(t, db, "SELECT json_valid(CAST(config AS TEXT)), json_extract(CAST(config AS TEXT), '$.inquest') IS NOT NULL, json_extract(CAST(config AS TEXT), '$.model.hidden') FROM configs"); got != "1|1|64|\n" {
		t.Errorf("configuration %s", got)
	}
	if len(res.Runs) != 1 || res.Runs[0].NewID != "" {
		t.Errorf("runs %+v", res.Runs)
	}
}

// TestOthers: what of a folder is copied, and that runs that were not asked for stay as they are.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(testdata + "old.db")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"old.db": string(data), "old.lock": "", "old.parquet": "PAR1", "media/old/a/0.png": "x"} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	res, out := repairtest.Copy(t, reader.New(), trackio.New(), dir, func(o *engine.RepairOptions) { o.Run = "b" })
	for name, there := range map[string]bool{"old.db": true, "old.lock": false, "old.parquet": false, "media/old/a/0.png": true} {
		if _, err := os.Stat(filepath.Join(out, name)); (err == nil) != there {
			t.Errorf("%s in the copy: %v", name, err)
		}
	}
	if len(res.Left) == 0 || !strings.Contains(strings.Join(res.Left, " "), "Parquet") {
		t.Errorf("left %q", res.Left)
	}
	if got := ask(t, filepath.Join(out, "old.db"), "SELECT count(*) FROM metrics WHERE metrics LIKE '%\"NaN\"%'"); got != "2|\n" {
		t.Errorf("rows of the other run: %s", got)
	}
}

// TestSpace: nothing of a copy is sent anywhere.
func TestSpace(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(testdata + "real/toy.db")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "toy.db")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteScript(conn, "UPDATE metrics SET space_id = 'a/b' WHERE id < 4; INSERT INTO project_metadata VALUES ('space_id', 'a/b'); INSERT INTO pending_uploads (space_id, file_path, created_at) VALUES ('a/b', 'x', 'y'); DROP TABLE alerts;", nil)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	res, out := repairtest.Copy(t, reader.New(), trackio.New(), name, nil)
	if got := ask(t, filepath.Join(out, "toy.db"), "SELECT (SELECT count(*) FROM metrics WHERE space_id IS NOT NULL), (SELECT count(*) FROM project_metadata), (SELECT count(*) FROM pending_uploads)"); got != "0|0|0|\n" {
		t.Errorf("left to send: %s", got)
	}
	if len(res.Changes) != 1 || !strings.Contains(res.Changes[0], "5 entries") || !strings.Contains(strings.Join(res.Left, " "), "no alert") {
		t.Errorf("changes %q, left %q", res.Changes, res.Left)
	}
}

// TestTrigger: a database that does things of its own when it is written is refused.
func TestTrigger(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(testdata + "old.db")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "old.db")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteScript(conn, "CREATE TRIGGER x AFTER UPDATE ON metrics BEGIN DELETE FROM configs; END;", nil)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = repairtest.Repair(t.Context(), reader.New(), trackio.New(), name, filepath.Join(t.TempDir(), "copy"), nil)
	if err == nil || !strings.Contains(err.Error(), "trigger") {
		t.Errorf("got %v", err)
	}
}
