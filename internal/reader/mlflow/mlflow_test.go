package mlflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	db := func(sql ...string) []byte {
		return made(t, append(sql, "INSERT INTO t VALUES (1)")...)["x.db"].Data[:4096]
	}
	const meta = "artifact_uri: file:///x\nlifecycle_stage: active\nrun_id: " + id + "\nstatus: 3\n"
	long := make([]byte, 4096)
	copy(long, db("CREATE TABLE t (a)"))
	long[100] = 5 // the list of tables takes several pages
	for _, c := range []struct {
		path string
		head []byte
		want reader.Confidence
	}{
		{"any.sqlite", db("CREATE TABLE t (a)", "CREATE TABLE runs (a)", "CREATE TABLE experiments (a)", "CREATE TABLE metrics (a)"), reader.Sure},
		{"any.sqlite", db("CREATE TABLE t (a)", "CREATE TABLE latest_metrics (a)"), reader.Sure},
		{"mlflow.db", db("CREATE TABLE t (a)"), reader.No},
		{"trackio/p.db", db("CREATE TABLE t (a)", "CREATE TABLE metrics (a)", "CREATE TABLE configs (a)", "CREATE TABLE system_metrics (a)"), reader.No},
		{".aim/run_metadata.sqlite", db("CREATE TABLE t (a)", "CREATE TABLE run (a)", "CREATE TABLE experiment (a)", "CREATE TABLE tag (a)", "CREATE TABLE alembic_version (a)"), reader.No},
		{"a/mlflow.db", long, reader.Sure},
		{"a/other.db", long, reader.No},
		{"a/" + id + "/meta.yaml", []byte(meta), reader.Sure},
		{"a!b/meta.yaml", []byte(strings.ReplaceAll(meta, "\n", "\r\n")), reader.Sure},
		{"a/" + id + "/run.yaml", []byte(meta), reader.No},
		{"0/meta.yaml", []byte("artifact_location: file:///x\nexperiment_id: '0'\nlifecycle_stage: active\n"), reader.No},
		{"a/" + id + "/metrics/loss", []byte("1700000000000 nan 3\n"), reader.Sure},
		{"a/" + id + "/metrics/val/loss", []byte("1700000000000 1e-05\n"), reader.Sure},
		{"a/" + id + "/metrics/loss", []byte("step 3\n"), reader.No},
		{"a/" + id + "/params/lr", []byte("1700000000000 1 3\n"), reader.No},
		{"a/b/metrics/loss", []byte("1700000000000 nan 3\n"), reader.No},
		{"x", nil, reader.No},
	} {
		if got := New().Sniff(evidence.Artifact{Path: c.path}, c.head); got != c.want {
			t.Errorf("%s %.30q: %v, want %v", c.path, c.head, got, c.want)
		}
	}
}

func TestProbe(t *testing.T) {
	probe := func(sql ...string) reader.Confidence {
		data := made(t, sql...)["x.db"].Data
		return New().(reader.Prober).Probe(evidence.Artifact{Path: "x.db", Size: int64(len(data))}, bytes.NewReader(data))
	}
	long := slices.Clone(schema)
	for i := range 100 {
		long = append(long, fmt.Sprintf("CREATE TABLE other%d (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)", i))
	}
	if got := probe(long...); got != reader.Sure {
		t.Errorf("a store: %v", got)
	}
	if got := probe(long[7:]...); got != reader.No {
		t.Errorf("another database: %v", got)
	}
	if got := New().(reader.Prober).Probe(evidence.Artifact{}, strings.NewReader("text")); got != reader.No {
		t.Errorf("text: %v", got)
	}
}

func TestAnchor(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ path, want string }{
		{"a/mlflow.db-wal", "a mlflow.db true"},
		{"x[1].db-journal", `. x\[1].db true`},
		{"m/0/" + id + "/metrics/metrics/loss", "m/0/" + id + " meta.yaml true"},
		{"m/0/" + id + "/tags/mlflow.user", "m/0/" + id + " meta.yaml true"},
		{"metrics/loss", ". meta.yaml true"},
		{"m/copy/metrics/val/loss", "m/copy meta.yaml true"},
		{"m/0/" + id + "/artifacts/params", "  false"},
		{"m/0/" + id + "/inputs/a/meta.yaml", "  false"},
		{"mlflow.db", "  false"},
	} {
		dir, pattern, ok := New().(reader.Gatherer).Anchor(c.path)
		if got := fmt.Sprint(dir, " ", pattern, " ", ok); got != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
}

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

// schema is that of MLflow 3.17 without what is not read.
var schema = []string{
	"CREATE TABLE experiments (experiment_id INTEGER NOT NULL, name VARCHAR(256) NOT NULL, lifecycle_stage VARCHAR(32), CONSTRAINT experiment_pk PRIMARY KEY (experiment_id))",
	"CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL, name VARCHAR(250), status VARCHAR(9), start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20), experiment_id INTEGER, deleted_time BIGINT, CONSTRAINT run_pk PRIMARY KEY (run_uuid))",
	`CREATE TABLE "metrics" ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
 CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan))`,
	`CREATE TABLE "latest_metrics" ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT, step BIGINT NOT NULL, is_nan BOOLEAN NOT NULL, run_uuid VARCHAR(32) NOT NULL, CONSTRAINT latest_metric_pk PRIMARY KEY ("key", run_uuid))`,
	`CREATE TABLE "params" ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL, run_uuid VARCHAR(32) NOT NULL, CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid))`,
	`CREATE TABLE "tags" ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000), run_uuid VARCHAR(32) NOT NULL, CONSTRAINT tag_pk PRIMARY KEY ("key", run_uuid))`,
	"CREATE TABLE logged_model_metrics (model_id VARCHAR(36) NOT NULL, metric_name VARCHAR(500) NOT NULL, metric_timestamp_ms BIGINT NOT NULL, metric_step BIGINT NOT NULL, metric_value FLOAT, experiment_id INTEGER NOT NULL, run_id VARCHAR(32) NOT NULL)",
}

// content is a store of two runs: old, finished, and new, which is on record as running.
var content = []string{
	"INSERT INTO experiments VALUES (0, 'Default', 'active'), (1, 'toy', 'active')",
	"INSERT INTO runs VALUES ('old', 'first', 'FINISHED', 1700000000000, 1700000050000, 'active', 1, NULL), ('new', 'second', 'RUNNING', 1700000100000, NULL, 'active', 1, NULL), ('bin', 'third', 'KILLED', 1700000200000, NULL, 'deleted', 0, 1)",
	"INSERT INTO params VALUES ('batch_size', '32', 'new'), ('batch_size', '16', 'old')",
	"INSERT INTO tags VALUES ('mlflow.note.content', 'a note', 'new'), ('mlflow.runName', 'second', 'new')",
	"INSERT INTO metrics VALUES ('loss', 1.5, 1700000001000, 'old', 0, 0), ('loss', 0, 1700000002000, 'old', 1, 1)",
	"INSERT INTO metrics VALUES ('loss', 2, 1700000101000, 'new', 0, 0), ('acc', 0.5, 1700000101000, 'new', 0, 0), ('loss', 1, 1700000102000, 'new', 1, 0), ('acc', 0.75, 1700000102000, 'new', 1, 0)," +
		" ('loss', 0, 1700000103000, 'new', 2, 1), ('loss', 1.7976931348623157e308, 1700000104000, 'new', 3, 0), ('loss', -1.7976931348623157e308, 1700000105000, 'new', 4, 0)," +
		" ('loss', 0.5, 1700000106000, 'new', 1, 0), ('loss', 9e999, 1700000107000, 'new', 2, 0), ('system/gpu_0_memory_usage_megabytes', 79000, 1700000101000, 'new', 0, 0)",
	"INSERT INTO metrics VALUES ('loss', 1, 1, 'nobody', 0, 0)",
	"INSERT INTO latest_metrics VALUES ('loss', 0, 1700000002000, 1, 1, 'old'), ('loss', -1.7976931348623157e308, 1700000105000, 4, 0, 'new'), ('acc', 0.75, 1700000102000, 1, 0, 'new')",
	"INSERT INTO logged_model_metrics VALUES ('m', 'loss', 1700000103000, 2, 0, 1, 'new'), ('m', 'gone', 1, 1, NULL, 1, 'new')",
}

// A kept is a sink that keeps runs and points.
type kept struct {
	*reader.Collector
	runs   []*evidence.TrackedRun
	points []string
}

func (k *kept) TrackedRun(r *evidence.TrackedRun) { k.runs = append(k.runs, r) }
func (k *kept) Series(s evidence.SeriesKey) *evidence.Series {
	return evidence.NewSeries(s)
}
func (k *kept) Point(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) {
	k.points = append(k.points, fmt.Sprintf("%s %s %d %v @%.3f", r.ID, t.Name, p.Step, p.Value, wall))
}

func input(name string, data []byte, dir fs.FS) reader.Input {
	return reader.Input{Artifact: evidence.Artifact{Path: name, Kind: Tracker}, At: bytes.NewReader(data), Size: int64(len(data)), Dir: dir,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func read(t testing.TB, dir fstest.MapFS, name string) *kept {
	t.Helper()
	k := &kept{Collector: reader.NewCollector()}
	if err := New().Read(context.Background(), input(name, dir[path.Base(name)].Data, dir), k); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestStore(t *testing.T) {
	k := read(t, made(t, slices.Concat(schema, content)...), "a/x.db")
	if len(k.runs) != 3 {
		t.Fatalf("%d runs", len(k.runs))
	}
	old, run, bin := k.runs[0], k.runs[1], k.runs[2]
	if old.ID != "old" || old.Status != evidence.RunFinished || old.Project != "toy" || old.Name != "first" || old.Tracks[0].NaN != 1 {
		t.Errorf("old: %+v", old)
	}
	if bin.Status != evidence.RunKilled || bin.Project != "Default" || !strings.Contains(fmt.Sprint(bin.Notes), "deleted") {
		t.Errorf("deleted: %+v", bin)
	}
	if run.Status != evidence.RunOpen || run.StatusSaid != "RUNNING" || run.Ended.Known() || run.Keeps != evidence.Clamped || run.Folder != "a/x.db" || run.Settings[0].Value != "32" {
		t.Errorf("new: %+v", run)
	}
	if notes := fmt.Sprint(run.Notes); !strings.Contains(notes, "a note") || !strings.Contains(notes, "2 values are stored again") {
		t.Errorf("notes: %s", notes)
	}
	if len(run.Tracks) != 3 {
		t.Fatalf("%d series", len(run.Tracks))
	}
	loss, gpu := run.Tracks[0], run.Tracks[2]
	if loss.Name != "loss" || loss.Series.Count != 7 || loss.NaN != 1 || loss.PosInf != 1 || loss.NegInf != 0 || len(loss.Segments) != 2 || loss.Segments[0].FirstBad.Step != 2 {
		t.Errorf("loss: %+v", loss)
	}
	if len(loss.Suspects) != 1 || loss.Suspects[0].Len() != 2 || loss.Suspects[0].First.Step != 3 {
		t.Errorf("suspects: %+v", loss.Suspects)
	}
	if !gpu.System || gpu.Axis != evidence.AxisOwn || gpu.Unit != "bytes" || gpu.Series.Last.Value != 79e9 {
		t.Errorf("gpu: %+v", gpu)
	}
	want := "old loss 0 1.5 @1700000001.000,old loss 1 NaN @1700000002.000,new loss 0 2 @1700000101.000,new acc 0 0.5 @1700000101.000,new loss 1 1 @1700000102.000,new acc 1 0.75 @1700000102.000," +
		"new loss 2 NaN @1700000103.000,new loss 3 1.7976931348623157e+308 @1700000104.000,new loss 4 -1.7976931348623157e+308 @1700000105.000,new loss 1 0.5 @1700000106.000,new loss 2 +Inf @1700000107.000,new system/gpu_0_memory_usage_megabytes 0 79000 @1700000101.000"
	if got := strings.Join(k.points, ","); got != want {
		t.Errorf("points:\n got %s\nwant %s", got, want)
	}
	if d := fmt.Sprint(k.Damages); !strings.Contains(d, "rows of metrics of runs that are not") || len(k.Damages) != 1 {
		t.Errorf("damage: %s", d)
	}
	// The diagnosis hears of the newest run that is not deleted.
	if len(k.Events) < 2 || k.Events[len(k.Events)-1].Attrs.Str("id") != "new" || len(k.Facts) == 0 {
		t.Errorf("events: %+v", k.Events)
	}
}

// TestSameBothWays reads stores from their bytes and with SQLite.
func TestSameBothWays(t *testing.T) {
	old := slices.Clone(schema)
	old[2] = "CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL)"
	many := []string{"INSERT INTO metrics WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) SELECT 'key'||(i%7), i/8.0, 1700000000000+i, CASE i%5 WHEN 0 THEN 'old' ELSE 'new' END, i/7, i%97=0 FROM n"}
	long := []string{"INSERT INTO params SELECT 'k'||value, printf('%.*c', value*400, 'x'), 'new' FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value+1 FROM n WHERE value < 60) SELECT * FROM n)"}
	for _, c := range []struct {
		name string
		dir  fstest.MapFS
	}{
		{"plain", made(t, slices.Concat(schema, content, many, long)...)},
		{"small pages", made(t, slices.Concat([]string{"PRAGMA page_size=512"}, schema, content, many, long)...)},
		{"log", made(t, slices.Concat([]string{"PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0"}, schema, content, many, long)...)},
		{"log over a database", made(t, slices.Concat([]string{"PRAGMA journal_mode=WAL"}, schema, content, []string{"PRAGMA wal_checkpoint(TRUNCATE)"}, many, []string{"DELETE FROM metrics WHERE step%9=0"})...)},
		{"hot journal", made(t, slices.Concat([]string{"PRAGMA cache_size=1"}, schema, content, many, []string{"BEGIN", "UPDATE metrics SET value=value+1"})...)},
		{"old columns", made(t, slices.Concat(old, []string{"INSERT INTO runs VALUES ('r', 'n', 'FAILED', 1700000000000, NULL, 'active', 1, NULL)", "INSERT INTO metrics VALUES ('loss', 1, 1700000000000, 'r')"})...)},
		{"no rowids", made(t, slices.Concat(schema[:3], []string{strings.TrimSuffix(schema[3], ")") + ") WITHOUT ROWID"}, schema[4:], content)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasPrefix(c.name, "log") && len(c.dir["x.db-wal"].Data) == 0 {
				t.Fatal("the log is empty")
			}
			got := read(t, c.dir, "x.db")
			db, err := sqlitestore.OpenCopy(context.Background(), files(input("x.db", c.dir["x.db"].Data, c.dir)))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			want := &kept{Collector: reader.NewCollector()}
			if err := readFrom(context.Background(), db, "x.db", want); err != nil {
				t.Fatal(err)
			}
			if len(got.points) == 0 || !slices.Equal(got.points, want.points) {
				t.Errorf("%d points, SQLite gives %d", len(got.points), len(want.points))
			}
			if len(got.runs) != len(want.runs) {
				t.Fatalf("%d runs, SQLite gives %d", len(got.runs), len(want.runs))
			}
			for i, r := range got.runs {
				w := want.runs[i]
				about := func(r *evidence.TrackedRun) string {
					text := fmt.Sprint(r.ID, r.Name, r.Project, r.Status, r.Started, r.Ended, r.Newest, len(r.Tracks))
					for _, s := range r.Settings {
						text += s.Name + s.Value
					}
					return text
				}
				if about(r) != about(w) {
					t.Errorf("run %d:\n got %.300s\nwant %.300s", i, about(r), about(w))
				}
			}
		})
	}
}

func TestStoreDamage(t *testing.T) {
	dir := made(t, slices.Concat([]string{"PRAGMA journal_mode=WAL"}, schema, content)...)
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		want   string
	}{
		{"log lost", func(m fstest.MapFS) { delete(m, "x.db-wal") }, "is no SQLite database"}, // all of it was in the log
		{"log broken", func(m fstest.MapFS) { m["x.db-wal"] = &fstest.MapFile{Data: []byte("no log")} }, "is no SQLite database"},
		{"foreign", func(m fstest.MapFS) {
			other := made(t, "CREATE TABLE t (a)")
			m["x.db"] = other["x.db"]
			delete(m, "x.db-wal")
		}, "none of MLflow's"},
		{"no database", func(m fstest.MapFS) { m["x.db"] = &fstest.MapFile{Data: []byte("some text\n")} }, "is no SQLite database"},
	} {
		m := fstest.MapFS{}
		for n, f := range dir {
			m[n] = f
		}
		c.change(m)
		err := New().Read(context.Background(), input("x.db", m["x.db"].Data, m), reader.NewCollector())
		if err == nil || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "none of MLflow's") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	done := made(t, slices.Concat([]string{"PRAGMA journal_mode=WAL"}, schema, content, []string{"PRAGMA wal_checkpoint(TRUNCATE)"})...)
	delete(done, "x.db-wal")
	k := read(t, done, "x.db")
	if !strings.Contains(fmt.Sprint(k.Damages), "missing-wal") {
		t.Errorf("a lost log: %v", k.Damages)
	}
}

func TestFiles(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	dir := fstest.MapFS{
		"meta.yaml":                &fstest.MapFile{Data: []byte("\xef\xbb\xbfartifact_uri: file:///x\r\nend_time: null\r\nexperiment_id: '7'\r\nlifecycle_stage: deleted\r\nrun_id: " + id + "\r\nrun_name: 'it''s'\r\nstart_time: 1700000000000\r\nstatus: 1\r\n")},
		"metrics/val/loss":         &fstest.MapFile{Data: []byte("1700000000000 0.5 0\n1700000001000 nan 1\n1700000002000 -inf 2\n1700000003000 0.2")},
		"metrics/loss":             &fstest.MapFile{Data: []byte("1700000000000 1.5\r\n\r\n1700000001000 1e999 1\nx\n1700000002000 1 2 3\n1700000003000 0.25 3\n\x00\x00\x00\x00")},
		"metrics/empty":            &fstest.MapFile{},
		"params/nested/lr":         &fstest.MapFile{Data: []byte("0.1\n")},
		"tags/mlflow.note.content": &fstest.MapFile{Data: []byte("a note\nof two lines\x1b[31m")},
	}
	k := read(t, dir, "m/7/"+id+"/meta.yaml")
	if len(k.runs) != 1 {
		t.Fatal(len(k.runs))
	}
	r := k.runs[0]
	if r.ID != id || r.Name != "it's" || r.Project != "7" || r.Status != evidence.RunOpen || r.StatusSaid != "RUNNING" || r.Folder != "m/7/"+id || r.Keeps != evidence.KeepsAll || r.Ended.Known() || !r.Started.Known() {
		t.Errorf("%+v", r)
	}
	want := id + " loss 0 1.5 @1700000000.000," + id + " loss 1 +Inf @1700000001.000," + id + " loss 3 0.25 @1700000003.000," + id + " val/loss 0 0.5 @1700000000.000," + id + " val/loss 1 NaN @1700000001.000," + id + " val/loss 2 -Inf @1700000002.000"
	if got := strings.Join(k.points, ","); got != want {
		t.Errorf("points:\n got %s\nwant %s", got, want)
	}
	if r.Settings[0].Name != "nested/lr" || r.Settings[0].Value != "0.1" || strings.Contains(fmt.Sprint(r.Notes), "\x1b") || !strings.Contains(fmt.Sprint(r.Notes), "two lines") {
		t.Errorf("settings %v, notes %q", r.Settings, r.Notes)
	}
	kinds := map[evidence.DamageKind]int{}
	for _, d := range r.Damage {
		kinds[d.Kind]++
	}
	if kinds[evidence.BadLine] != 2 || kinds[evidence.TruncatedTail] != 1 || kinds[evidence.ZeroFill] != 1 {
		t.Errorf("damage: %+v", r.Damage)
	}
	// A metric without its run's description.
	k = &kept{Collector: reader.NewCollector()}
	name := "m/7/" + id + "/metrics/val/loss"
	if err := New().Read(context.Background(), input(name, dir["metrics/val/loss"].Data, nil), k); err != nil {
		t.Fatal(err)
	}
	if r := k.runs[0]; r.ID != id || r.Folder != "m/7/"+id || r.Tracks[0].Name != "val/loss" || r.Tracks[0].NaN != 1 || r.Status != evidence.RunUnknown {
		t.Errorf("%+v", r)
	}
}

// TestBounds reads a store with more series than samples are kept for.
func TestBounds(t *testing.T) {
	k := read(t, made(t, slices.Concat(schema, []string{
		"INSERT INTO runs WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 499) SELECT printf('r%d', i), 'n', 'RUNNING', 1700000000000+i, NULL, 'active', 1, NULL FROM n",
		"INSERT INTO metrics WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 59999) SELECT 'k'||(i%4), i, 1700000000000+i, printf('r%d', i/120), i/4, 0 FROM n",
	})...), "x.db")
	points, sampled := int64(0), 0
	for _, r := range k.runs {
		for _, x := range r.Tracks {
			points += x.Series.Count
			sampled += x.Series.Sampled()
		}
	}
	if len(k.runs) != 500 || points != 60_000 || sampled > maxSampled {
		t.Errorf("%d runs, %d points, %d of them kept", len(k.runs), points, sampled)
	}
}

// TestShared reads what real runs left, where it is there.
func TestShared(t *testing.T) {
	root := "../../../../shared/data/mlflow"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no folder of real stores")
	}
	runs := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if New().Sniff(evidence.Artifact{Path: name}, data[:min(len(data), 4096)]) == reader.No || path.Base(path.Dir(name)) == "metrics" {
			return nil
		}
		k := &kept{Collector: reader.NewCollector()}
		if err := New().Read(context.Background(), input(name, data, os.DirFS(filepath.Dir(name))), k); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, r := range k.runs {
			runs++
			if len(r.Damage) > 0 {
				t.Errorf("%s: %v", name, r.Damage)
			}
		}
		return nil
	})
	if err != nil || runs < 7 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func FuzzRead(f *testing.F) {
	db, err := os.ReadFile("testdata/mlflow.db")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(db, false)
	f.Add([]byte("1700000000000 nan 3\n1700000000000 0.5\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, metric bool) {
		name := "x.db"
		if metric {
			name = "0123456789abcdef0123456789abcdef/metrics/loss"
		}
		k := &kept{Collector: reader.NewCollector()}
		_ = New().Read(context.Background(), input(name, data, nil), k)
		meta := &kept{Collector: reader.NewCollector()}
		if err := New().Read(context.Background(), input("a/meta.yaml", data, nil), meta); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkStore reads the metrics of a store of 240 000 values, or of the database that STORE
// names: walk from its bytes without doing anything with them, bytes and sqlite into
// tracked runs, from its bytes and with SQLite from a copy. scripts/bench/mlflow.sh measures a
// large one by CPU time.
func BenchmarkStore(b *testing.B) {
	name := os.Getenv("STORE")
	if name == "" {
		dir := made(b, slices.Concat(schema, []string{
			"INSERT INTO runs WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 9) SELECT printf('%032x', i), 'n', 'RUNNING', 1700000000000+i, NULL, 'active', 1, NULL FROM n",
			"INSERT INTO metrics WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 239999) SELECT 'train/key_'||(i%12), 2.5+i/1e6, 1700000000000+i*97, printf('%032x', i/24000), i/12, 0 FROM n",
		})...)
		name = filepath.Join(b.TempDir(), "x.db")
		if err := os.WriteFile(name, dir["x.db"].Data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	record := func(db *sqlitestore.Store) (int64, error) {
		s := &counted{Collector: reader.NewCollector()}
		err := readFrom(context.Background(), db, name, s)
		return s.points, err
	}
	walk := func(db *sqlitestore.Store) (n int64, err error) {
		sum := 0.0
		err = db.Scan(context.Background(), db.Table("metrics"), func(r *sqlitefile.Row) error {
			n++
			sum += r.Float(1) + float64(r.Int(2)+r.Int(4)+r.Int(5)) + float64(len(r.Bytes(0))+len(r.Bytes(3)))
			return nil
		}, func(d sqlitefile.Damage) { b.Error(d) })
		return n, err
	}
	for _, way := range []struct {
		name string
		open func(context.Context, sqlitestore.Files) (*sqlitestore.Store, error)
		read func(*sqlitestore.Store) (int64, error)
	}{{"walk", sqlitestore.Open, walk}, {"bytes", sqlitestore.Open, record}, {"sqlite", sqlitestore.OpenCopy, record}} {
		b.Run(way.name, func(b *testing.B) {
			points := int64(0)
			for b.Loop() {
				f, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				info, err := f.Stat()
				if err != nil {
					b.Fatal(err)
				}
				db, err := way.open(context.Background(), files(reader.Input{Artifact: evidence.Artifact{Path: name}, At: f, Size: info.Size()}))
				if err != nil {
					b.Fatal(err)
				}
				if points, err = way.read(db); err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(db.Close(), f.Close()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(points)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

type counted struct {
	*reader.Collector
	points int64
}

func (c *counted) Series(k evidence.SeriesKey) *evidence.Series { return evidence.NewSeries(k) }
func (c *counted) TrackedRun(r *evidence.TrackedRun) {
	for _, t := range r.Tracks {
		c.points += t.Series.Count
	}
}
