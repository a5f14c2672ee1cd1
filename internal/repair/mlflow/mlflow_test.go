package mlflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	reader "github.com/inquest-dev/inquest/internal/reader/mlflow"
	"github.com/inquest-dev/inquest/internal/repair"
	"github.com/inquest-dev/inquest/internal/repair/mlflow"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
)

const testdata = "../../reader/mlflow/testdata/"

const (
	folder = "0123456789abcdef0123456789abcdef"
	other  = "00000000000000000000000000000001"
)

// store makes a file store of two runs and a logged model.
func store(t *testing.T) string {
	dir := t.TempDir()
	at := filepath.Join(dir, "mlruns", "7", folder)
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(at, os.DirFS(testdata)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mlflow.db", "mlflow.events", "meta.events", "README.md"} {
		if err := os.Remove(filepath.Join(at, name)); err != nil {
			t.Fatal(err)
		}
	}
	meta, err := os.ReadFile(filepath.Join(at, "meta.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	running := regexp.MustCompile(`(?m)^end_time: \d+$`).ReplaceAllString(strings.Replace(string(meta), "status: 3", "status: 1", 1), "end_time: null")
	for name, text := range map[string]string{
		"mlruns/7/meta.yaml":                                 "experiment_id: '7'\nname: toy\nartifact_location: file:///x\nlifecycle_stage: active\n",
		"mlruns/7/" + folder + "/meta.yaml":                  running,
		"mlruns/7/" + folder + "/artifacts/model.pt":         "weights",
		"mlruns/7/models/m-1/meta.yaml":                      "model_id: m-1\n",
		"mlruns/7/models/m-1/metrics/train/loss":             "1796102700687 nan 3 " + folder + "\n1796102700694 0.625 2 " + folder + "\n",
		"mlruns/7/models/m-1/metrics/only":                   "1796102700687 inf 3 " + folder + " a b\n",
		"mlruns/7/models/m-1/artifacts/x":                    "weights",
		"mlruns/7/" + other + "/meta.yaml":                   "artifact_uri: x\nlifecycle_stage: active\nrun_id: " + other + "\nrun_name: fine\nstatus: 3\n",
		"mlruns/7/" + other + "/metrics/train/loss":          "1796102700687 1.0 0\n",
		"mlruns/7/" + folder + "/metrics/nothing finite":     "1796102700687 nan 0\n",
		"mlruns/7/" + folder + "/metrics/val.map":            "1796102700687 0.5 0\n",
		"mlruns/7/" + folder + "/tags/mlflow.parentRunId":    other,
		"mlruns/7/" + folder + "/inputs/i/meta.yaml":         "source_id: m-1\n",
		"mlruns/8/" + strings.Repeat("a", 32) + "/not/a/run": "x",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "mlruns")
}

// made runs statements in SQLite on a store that MLflow made, and leaves it with its log as
// it lies there while the writer is alive.
func made(t *testing.T, statements ...string) string {
	dir, to := t.TempDir(), t.TempDir()
	data, err := os.ReadFile(testdata + "mlflow.db")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "mlflow.db")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if b, err := os.ReadFile(name + suffix); err == nil {
			if err := os.WriteFile(filepath.Join(to, "mlflow.db"+suffix), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return to
}

// more are points of all sorts for the run of a name.
func more(name string) []string {
	run := "(SELECT run_uuid FROM runs WHERE name = '" + name + "')"
	return []string{
		"PRAGMA journal_mode=WAL",
		"CREATE TABLE logged_model_metrics (model_id VARCHAR(36) NOT NULL, metric_name VARCHAR(500) NOT NULL, metric_timestamp_ms BIGINT NOT NULL, metric_step BIGINT NOT NULL, metric_value FLOAT, experiment_id INTEGER NOT NULL, run_id VARCHAR(32) NOT NULL)",
		"INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES ('only', 0, 1796102800000, " + run + ", 5, 1), ('b', 0.5, 1796102800000, " + run + ", 1, 0), ('b', 0, 1796102801000, " + run + ", 2, 1), ('b', 0.5, 1796102801000, " + run + ", 2, 0), ('b', 9e999, 1796102802000, " + run + ", 3, 0)",
		"INSERT INTO latest_metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES ('only', 0, 1796102800000, " + run + ", 5, 1), ('b', 9e999, 1796102802000, " + run + ", 3, 0)",
		"INSERT INTO logged_model_metrics VALUES ('m', 'b', 1796102801000, 2, 0, 1, " + run + "), ('m', 'b', 1796102800000, 1, 0.5, 1, " + run + ")",
		"INSERT OR REPLACE INTO tags (key, value, run_uuid) VALUES ('mlflow.note.content', 'my words', " + run + ")",
	}
}

func TestFormat(t *testing.T) {
	t.Run("database", func(t *testing.T) { repairtest.Run(t, reader.New(), mlflow.Database(), testdata+"mlflow.db") })
	t.Run("log", func(t *testing.T) { repairtest.Run(t, reader.New(), mlflow.Database(), made(t, more("diverged")...)) })
	t.Run("files", func(t *testing.T) { repairtest.Run(t, reader.New(), mlflow.Files(), store(t)) })
	t.Run("run", func(t *testing.T) {
		repairtest.Copy(t, reader.New(), mlflow.Files(), filepath.Join(store(t), "7", folder), nil)
	})
}

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

const of = " FROM metrics JOIN runs USING (run_uuid) WHERE runs.name = 'diverged' AND "

func TestDatabase(t *testing.T) {
	res, out := repairtest.Copy(t, reader.New(), mlflow.Database(), made(t, more("diverged")...), func(o *engine.RepairOptions) { o.Ended = true })
	db := filepath.Join(out, "mlflow.db")
	if names := repairtest.Names(t, out); slices.Contains(names, "mlflow.db-wal") || slices.Contains(names, "mlflow.db-shm") {
		t.Errorf("the copy has %v", names)
	}
	for _, c := range []struct{ sql, want string }{
		{"SELECT count(*) FROM metrics WHERE is_nan OR value = 9e999 OR value = -9e999", "0|\n"},
		{"SELECT count(*)" + of + "key = 'train/loss'", "4|\n"}, // the clamped infinities are gone
		{"SELECT key, l.value, step, is_nan FROM latest_metrics l JOIN runs USING (run_uuid) WHERE name='diverged' AND key IN ('b', 'only')", "b|0.5|2|0|\n"},
		{"SELECT metric_name, metric_value FROM logged_model_metrics", "b|0.5|\n"},
		{"SELECT substr(value, 1, 32) FROM tags WHERE key = 'mlflow.note.content'", "my words\n\n---\n\n**Repaired copy**|\n"},
		{"SELECT value FROM tags WHERE key = 'inquest.repaired'", "true|\n"},
		{"SELECT json_valid(value) FROM tags WHERE key = 'inquest.failed_segment'", "1|\n"},
		{"SELECT name, status, end_time IS NULL FROM runs ORDER BY name", "diverged|FINISHED|0|\nkilled|FAILED|0|\n"},
		{"PRAGMA integrity_check", "ok|\n"},
	} {
		if got := ask(t, db, c.sql); got != c.want {
			t.Errorf("%s\n got %swant %s", c.sql, got, c.want)
		}
	}
	if ask(t, db, "SELECT count(*) > 0"+of+"key = 'inquest/failed_segment' AND metrics.value = 1") != "1|\n" {
		t.Error("no mark")
	}
	if text := strings.Join(res.Changes, " "); !strings.Contains(text, "logged models") {
		t.Errorf("changes: %s", text)
	}
	// Clamped infinities go, and NaN is replaced where values are held.
	_, out = repairtest.Copy(t, reader.New(), mlflow.Database(), made(t, more("diverged")...), func(o *engine.RepairOptions) {
		o.Policy = incident.RepairPolicy{Nonfinite: repair.HoldValues, Suspects: true}
	})
	if got := ask(t, filepath.Join(out, "mlflow.db"), "SELECT count(*), max(abs(metrics.value))"+of+"key = 'train/loss'"); got != "7|1.5|\n" && got != "5|1.5|\n" {
		t.Errorf("held: %s", got)
	}
	if got := ask(t, filepath.Join(out, "mlflow.db"), "SELECT step, metrics.value, timestamp"+of+"key = 'b' ORDER BY step, timestamp"); got != "1|0.5|1796102800000|\n2|0.5|1796102801000|\n2|0.5|1796102801001|\n3|0.5|1796102802000|\n" {
		t.Errorf("held beside the same value:\n%s", got)
	}
}

func TestTrigger(t *testing.T) {
	source := made(t, "CREATE TRIGGER x AFTER DELETE ON metrics BEGIN DELETE FROM runs; END")
	if _, err := repairtest.Repair(t.Context(), reader.New(), mlflow.Database(), source, filepath.Join(t.TempDir(), "copy"), nil); err == nil || !strings.Contains(err.Error(), "trigger") {
		t.Errorf("%v", err)
	}
}

func TestFiles(t *testing.T) {
	res, out := repairtest.Copy(t, reader.New(), mlflow.Files(), store(t), func(o *engine.RepairOptions) { o.Ended = true })
	get := func(name string) string {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return "none"
		}
		return string(b)
	}
	run := "7/" + folder + "/"
	for name, want := range map[string]string{
		run + "metrics/train/loss":           "1796102700679 1.5 0\n1796102700682 0.75 1\n1796102700684 0.5 2\n1796102700694 0.625 2\n",
		run + "metrics/nothing finite":       "none",
		run + "metrics/val.map":              "1796102700687 0.5 0\n",
		run + "metrics/torn":                 "1796102700681 0.0\n1796102700683 1.0 1\n1796102700691 4.0 4\n",
		run + "tags/inquest.repaired":        "true",
		run + "params/lr":                    "0.1",
		run + "artifacts/model.pt":           "none",
		run + "inputs/i/meta.yaml":           "source_id: m-1\n",
		"7/models/m-1/meta.yaml":             "model_id: m-1\n",
		"7/models/m-1/metrics/train/loss":    "1796102700694 0.625 2 " + folder + "\n",
		"7/models/m-1/metrics/only":          "none",
		"7/models/m-1/artifacts/x":           "none",
		"7/" + other + "/metrics/train/loss": "1796102700687 1.0 0\n",
	} {
		if got := get(name); got != want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	meta := get(run + "meta.yaml")
	if !strings.Contains(meta, "\nstatus: 4\n") || !strings.Contains(meta, "\nend_time: 1796102700") || !strings.Contains(meta, "\nrun_name: diverged\n") {
		t.Errorf("meta.yaml: %s", meta)
	}
	if got := get(run + "tags/mlflow.note.content"); !strings.HasPrefix(got, "a **toy**\n\n---\n\n**Repaired copy**") {
		t.Errorf("note: %q", got)
	}
	if got := get(run + "metrics/inquest/failed_segment"); !strings.Contains(got, " 1.0 3\n") {
		t.Errorf("marker: %q", got)
	}
	if text := strings.Join(append(res.Changes, res.Left...), " "); !strings.Contains(text, "Left out: 2 lines of metrics") || !strings.Contains(text, "2 values stored again") || !strings.Contains(text, "2 files of artifacts") {
		t.Errorf("changes and what is left: %s", text)
	}
	// One run of the store: the other is left out.
	_, out = repairtest.Copy(t, reader.New(), mlflow.Files(), store(t), func(o *engine.RepairOptions) { o.Run = folder })
	if get("7/"+other+"/meta.yaml") != "none" || get("7/meta.yaml") == "none" {
		t.Error("the files of one run")
	}
}
