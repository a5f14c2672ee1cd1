package all_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/swanrecord"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/repair/all"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
)

// A row is what a run logs at once.
type row struct {
	step   int64
	wall   float64
	values map[string]float64
}

func (r row) names() []string { return slices.Sorted(maps.Keys(r.values)) }

// randomRun is a run with failures, resumes and steps that are logged twice.
func randomRun(r *rand.Rand) []row {
	var rows []row
	step, wall, poisoned := int64(r.IntN(3)), 1_700_000_000.0, false
	for range 20 + r.IntN(200) {
		row := row{step: step, wall: wall, values: map[string]float64{}}
		for _, name := range []string{"loss", "grad_norm", "eval_acc"} {
			if r.IntN(4) == 0 {
				continue
			}
			v := float64(float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(12)-6))))
			if poisoned && r.IntN(3) > 0 || r.IntN(15) == 0 {
				v = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
			}
			row.values[name] = v
		}
		if len(row.values) > 0 {
			rows = append(rows, row)
		}
		wall += float64(1 + r.IntN(5))
		switch r.IntN(25) {
		case 0:
			step = max(step-int64(r.IntN(40)), 0) // resumed
			poisoned = false
		case 1:
			poisoned = true
		case 2: // logged twice
		default:
			step += int64(1 + r.IntN(10))
		}
	}
	return rows
}

// token is a number as Python's json writes it.
func token(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case v-v != 0 && v > 0:
		return "Infinity"
	case v-v != 0:
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// makers write a run as each format has it.
var makers = map[string]func(t *testing.T, dir string, rows []row){
	"tensorboard": func(t *testing.T, dir string, rows []row) {
		event := func(step int64, wall float64, field int, body []byte) []byte {
			b := protowire.AppendDouble(nil, 1, wall)
			if step != 0 {
				b = protowire.AppendVarint(b, 2, uint64(step))
			}
			return tfrecord.Append(nil, protowire.AppendBytes(b, field, body))
		}
		data := event(0, rows[0].wall, 3, []byte("brain.Event:2"))
		for _, r := range rows {
			var summary []byte
			for _, name := range r.names() {
				summary = protowire.AppendBytes(summary, 1, protowire.AppendFloat(protowire.AppendBytes(nil, 1, name), 2, float32(r.values[name])))
			}
			data = append(data, event(r.step, r.wall, 5, summary)...)
		}
		save(t, filepath.Join(dir, "run", "events.out.tfevents.1700000000.host.1.0"), data)
	},
	"wandb": func(t *testing.T, dir string, rows []row) {
		var b bytes.Buffer
		w := leveldblog.NewWriter(&b, wandblog.Header)
		w.Write(wandblog.Make(nil, 1, wandblog.Run, protowire.AppendBytes(nil, 1, "abcd1234")))
		for i, r := range rows {
			body := wandblog.AppendItem(nil, 1, "_timestamp", strconv.FormatFloat(r.wall, 'f', -1, 64))
			for _, name := range r.names() {
				body = wandblog.AppendItem(body, 1, name, token(r.values[name]))
			}
			body = protowire.AppendBytes(body, 2, protowire.AppendVarint(nil, 1, uint64(r.step)))
			w.Write(wandblog.Make(nil, int64(i+2), wandblog.History, body))
		}
		w.Flush()
		save(t, filepath.Join(dir, "offline-run-20231114_221320-abcd1234", "run-abcd1234.wandb"), b.Bytes())
	},
	"swanlab": func(t *testing.T, dir string, rows []row) {
		var b bytes.Buffer
		w := leveldblog.NewWriter(&b, swanrecord.Ident+"\x02")
		w.Write(swanrecord.Encode(-1, rows[0].wall, swanrecord.Start, []byte("\x0a\x03toy\x52\x01x")))
		n := int64(0)
		for _, r := range rows {
			for _, name := range r.names() {
				n++
				w.Write(swanrecord.Encode(n, r.wall, swanrecord.Scalar, swanrecord.EncodePoint(name, r.step, r.wall, r.values[name])))
			}
		}
		w.Flush()
		save(t, filepath.Join(dir, "run-20231114_221320-x", "run-x.swanlab"), b.Bytes())
	},
	"mlflow-files": func(t *testing.T, dir string, rows []row) {
		const id = "0123456789abcdef0123456789abcdef"
		at := filepath.Join(dir, "mlruns", "0", id)
		save(t, filepath.Join(at, "meta.yaml"), []byte("artifact_uri: file:///x\nend_time: null\nexperiment_id: '0'\nlifecycle_stage: active\nrun_id: "+id+"\nrun_name: toy\nstart_time: 1700000000000\nstatus: 1\nuser_id: me\n"))
		lines := map[string]string{}
		for _, r := range rows {
			for _, name := range r.names() {
				v := strings.NewReplacer("NaN", "nan", "+Inf", "inf", "-Inf", "-inf").Replace(strconv.FormatFloat(r.values[name], 'g', -1, 64))
				lines[name] += fmt.Sprintf("%d %s %d\n", int64(r.wall*1000), v, r.step)
			}
		}
		for name, text := range lines {
			save(t, filepath.Join(at, "metrics", name), []byte(text))
		}
	},
	"mlflow-sqlite": func(t *testing.T, dir string, rows []row) {
		conn := database(t, "../../reader/mlflow/testdata/mlflow.db", filepath.Join(dir, "mlflow.db"))
		run(t, conn, "DELETE FROM latest_metrics")
		run(t, conn, "DELETE FROM metrics")
		for _, r := range rows {
			for _, name := range r.names() {
				v, nan := r.values[name], 0
				switch {
				case math.IsNaN(v):
					v, nan = 0, 1
				case v-v != 0:
					v = math.Copysign(math.MaxFloat64, v)
				}
				run(t, conn, "INSERT INTO metrics VALUES (?, ?, ?, (SELECT run_uuid FROM runs WHERE name = 'killed'), ?, ?)", name, v, int64(r.wall*1000), r.step, nan)
			}
		}
		run(t, conn, "INSERT OR REPLACE INTO latest_metrics SELECT key, value, timestamp, step, is_nan, run_uuid FROM metrics ORDER BY step, timestamp")
	},
	"trackio": func(t *testing.T, dir string, rows []row) {
		conn := database(t, "../../reader/trackio/testdata/old.db", filepath.Join(dir, "toy.db"))
		run(t, conn, "DELETE FROM metrics")
		for _, r := range rows {
			values := map[string]any{}
			for name, v := range r.values {
				values[name] = v
				if v-v != 0 {
					values[name] = token(v)
				}
			}
			text, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Unix(int64(r.wall), 0).UTC().Format("2006-01-02T15:04:05+00:00")
			run(t, conn, "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, 'one', ?, ?)", at, r.step, string(text))
		}
	},
	"trainer_state": func(t *testing.T, dir string, rows []row) {
		var b strings.Builder
		b.WriteString("{\n  \"best_metric\": null,\n  \"global_step\": 99,\n  \"log_history\": [")
		for i, r := range rows {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n    {\n")
			for _, name := range r.names() {
				fmt.Fprintf(&b, "      %q: %s,\n", name, token(r.values[name]))
			}
			fmt.Fprintf(&b, "      \"step\": %d\n    }", r.step)
		}
		b.WriteString("\n  ],\n  \"max_steps\": 100\n}\n")
		save(t, filepath.Join(dir, "trainer_state.json"), []byte(b.String()))
	},
	"csv": func(t *testing.T, dir string, rows []row) {
		b := []byte("step,loss,grad_norm,eval_acc\r\n")
		for _, r := range rows {
			b = strconv.AppendInt(b, r.step, 10)
			for _, name := range []string{"loss", "grad_norm", "eval_acc"} {
				if b = append(b, ','); slices.Contains(r.names(), name) {
					b = append(b, strings.ToLower(strings.Replace(strconv.FormatFloat(r.values[name], 'g', -1, 64), "+Inf", "inf", 1))...)
				}
			}
			b = append(b, "\r\n"...)
		}
		save(t, filepath.Join(dir, "version_0", "metrics.csv"), b)
	},
	"parquet": func(t *testing.T, dir string, rows []row) {
		type line struct {
			Step     int64    `parquet:"step"`
			Loss     *float64 `parquet:"loss,optional"`
			GradNorm *float64 `parquet:"grad_norm,optional"`
			EvalAcc  *float64 `parquet:"eval_acc,optional"`
		}
		var b bytes.Buffer
		w := parquet.NewGenericWriter[line](&b)
		for _, r := range rows {
			at := func(name string) *float64 {
				if v, ok := r.values[name]; ok {
					return &v
				}
				return nil
			}
			if _, err := w.Write([]line{{r.step, at("loss"), at("grad_norm"), at("eval_acc")}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(dir, "history.parquet"), b.Bytes())
	},
	"jsonl": func(t *testing.T, dir string, rows []row) {
		var b strings.Builder
		for _, r := range rows {
			fmt.Fprintf(&b, `{"step": %d`, r.step)
			for _, name := range r.names() {
				fmt.Fprintf(&b, ", %q: %s", name, token(r.values[name]))
			}
			b.WriteString("}\n")
		}
		save(t, filepath.Join(dir, "history.jsonl"), []byte(b.String()))
	},
}

func save(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// database copies a store and opens the copy until the test ends.
func database(t *testing.T, from, to string) *sqlite.Conn {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	save(t, to, data)
	conn, err := sqlite.OpenConn(to, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	run(t, conn, "PRAGMA synchronous=OFF")
	run(t, conn, "PRAGMA journal_mode=WAL")
	return conn
}

func run(t *testing.T, conn *sqlite.Conn, sql string, args ...any) {
	t.Helper()
	if err := sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: args}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Random runs through every format that is written: nothing is lost but what is not finite
// or, where asked for, was written again; the engine compares the values themselves.
func TestRandom(t *testing.T) {
	for _, f := range all.Formats() {
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			write := makers[f.Name()]
			if write == nil {
				t.Fatal("no random run of this format is made")
			}
			for seed := range uint64(4) {
				rows := randomRun(rand.New(rand.NewPCG(seed, 3)))
				dir := filepath.Join(t.TempDir(), "src")
				write(t, dir, rows)
				var total, finite int64
				for _, r := range rows {
					for _, v := range r.values {
						if total++; v-v == 0 {
							finite++
						}
					}
				}
				before := repairtest.State(t, dir)
				for name, policy := range repairtest.Policies {
					res, _, err := fix(t, dir, policy, "")
					if err != nil {
						t.Errorf("seed %d, %s: %v", seed, name, err)
						continue
					}
					if res.Format != f.Name() {
						t.Errorf("seed %d: written as %s", seed, res.Format)
					}
					var got, kept, held, superseded, suspect int64
					for _, run := range res.Runs {
						got, kept = got+run.Total, kept+run.Kept
						for _, s := range run.Series {
							if s.Count != s.Kept+s.Dropped+s.Held+s.Superseded {
								t.Errorf("seed %d, %s: %+v", seed, name, s)
							}
							held, superseded, suspect = held+s.Held, superseded+s.Superseded, suspect+s.Suspect
						}
					}
					switch {
					case got != total:
						t.Errorf("seed %d, %s: %d points were read, %d are there", seed, name, got, total)
					case !policy.Dedupe && !policy.Suspects && kept != finite:
						t.Errorf("seed %d, %s: %d points are kept, %d are finite", seed, name, kept, finite)
					case policy.Dedupe != (superseded > 0), (policy.Nonfinite == "hold") != (held > 0), !policy.Suspects && suspect > 0 && f.Name() != "mlflow-sqlite":
						t.Errorf("seed %d, %s: %d held, %d superseded, %d suspect", seed, name, held, superseded, suspect)
					}
				}
				repairtest.Unchanged(t, dir, before)
			}
		})
	}
}
