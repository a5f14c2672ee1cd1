package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// The tables of a store that are read (MLflow 3.17; older ones lack some columns):
//
//	experiments     experiment_id, name
//	runs            run_uuid, name, status, start_time, end_time, lifecycle_stage, experiment_id
//	params, tags    key, value, run_uuid
//	metrics         key, value, timestamp, run_uuid, step, is_nan; a row for each logged value
//	latest_metrics  key, run_uuid, timestamp; one row for each series
//	logged_model_metrics  metric_value, ...; copies of the metrics logged with a model
//
// Times are milliseconds since 1970. NaN is is_nan with the value 0.

// A store is one database while it is read.
type store struct {
	db      *sqlitestore.Store
	ctx     context.Context
	path    string
	sink    reader.Sink
	runs    []*storedRun // by rowid
	byID    map[string]*storedRun
	older   int64 // runs beyond the bound
	tracks  int
	all     []*reader.Track
	points  int // kept of each series
	text    int64
	strange map[string]int64 // rows that fit nothing, by what is wrong with them
	damage  []evidence.RunDamage
}

// A storedRun is one row of runs, and what is recorded of it.
type storedRun struct {
	rowid, offset int64
	id, name      string
	status        string
	stage         string
	experiment    string
	start, end    int64 // ms
	newest        int64 // ms, of the newest point
	series        int64 // as latest_metrics has them
	rec           *reader.Recording
	full          bool // its series are beyond the bound
	tracks        map[string]*storedTrack
	last          *storedTrack
}

// A storedTrack is a series with the one that came behind it last time: trainers log the
// same names in the same order at each step.
type storedTrack struct {
	name string
	*reader.Track
	next *storedTrack
}

// files says where a database and what belongs to it lie.
func files(in reader.Input) sqlitestore.Files {
	return sqlitestore.Files{Name: path.Base(slash(in.Artifact.Path)), DB: in.At, Size: in.Size, Open: in.Open, Dir: in.Dir}
}

func readStore(ctx context.Context, in reader.Input, s reader.Sink) error {
	db, err := sqlitestore.Open(ctx, files(in))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if in.At != nil && in.Size < 4096 && cutHeader(in) {
			s.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "block", Length: in.Size}, errors.New(string(evidence.TruncatedTail)+": the database ends in its first page"))
			return nil
		}
		return err
	}
	return errors.Join(readFrom(ctx, db, in.Artifact.Path, s), db.Close())
}

// cutHeader reports whether what is there of a file is the beginning of a database.
func cutHeader(in reader.Input) bool {
	head := make([]byte, min(in.Size, int64(len(sqlitefile.Magic))))
	n, _ := in.At.ReadAt(head, 0)
	return n == len(head) && string(head) == sqlitefile.Magic[:n]
}

// readFrom reads the runs of an open store.
func readFrom(ctx context.Context, db *sqlitestore.Store, name string, s reader.Sink) error {
	st := &store{db: db, ctx: ctx, path: name, sink: s, byID: map[string]*storedRun{}, strange: map[string]int64{}, points: maxSampled / 32}
	for _, d := range db.Damage() {
		st.damaged("", d)
	}
	if db.Table("runs") == nil || db.Table("metrics") == nil {
		if len(st.damage) > 0 {
			for _, d := range st.damage {
				s.Damage(d.Span, errors.New(string(d.Kind)+": "+d.Text))
			}
			return nil
		}
		return errors.New("is a SQLite database, but none of MLflow's: it has no tables runs and metrics")
	}
	if l := db.Log(); l != nil && l.Broken {
		st.lost(evidence.MissingLog, "the write-ahead log beside the database is no log of it and was left out")
	}
	if db.LostLog() {
		st.lost(evidence.MissingLog, "the write-ahead log (-wal) is missing although the index of one (-shm) is there: the last transactions are lost")
	}
	steps := []func() error{st.listRuns, st.choose, st.settings, st.metrics, st.models}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	st.close()
	return nil
}

// lost notes damage that is of no one table.
func (st *store) lost(kind evidence.DamageKind, text string) {
	st.damage = append(st.damage, evidence.RunDamage{Kind: kind, Span: evidence.Span{Artifact: st.path, Kind: "block"}, Text: text})
}

// damaged notes a part of a table that cannot be read.
func (st *store) damaged(table string, d sqlitefile.Damage) {
	if len(st.damage) >= 256 {
		return
	}
	text := d.Text
	if table != "" {
		text = "table " + table + ": " + text
	}
	st.damage = append(st.damage, evidence.RunDamage{Kind: evidence.BadTable, Records: d.Rows, Text: textline.OneLine(text, 300),
		Span: evidence.Span{Artifact: st.path, Kind: "block", Table: table, Offset: d.Offset, Record: int64(d.Page)}})
}

// scan reads a table that may be missing, with the columns of those names: -1 for one that
// the table does not have.
func (st *store) scan(table string, columns []string, row func(r *sqlitefile.Row, at []int) error) error {
	t := st.db.Table(table)
	if t == nil {
		return nil
	}
	resolve := func(t *sqlitefile.Table) []int {
		at := make([]int, len(columns))
		for i, c := range columns {
			at[i] = t.Column(c)
		}
		return at
	}
	at := resolve(t)
	asked := st.db.Why() != nil
	err := st.db.Scan(st.ctx, t, func(r *sqlitefile.Row) error {
		if !asked && st.db.Why() != nil { // the columns are those of the copy now
			asked, at = true, resolve(st.db.Table(table))
		}
		return row(r, at)
	}, func(d sqlitefile.Damage) { st.damaged(table, d) })
	if err != nil && st.ctx.Err() == nil {
		return fmt.Errorf("read table %s: %w", table, err)
	}
	return err
}

func text(r *sqlitefile.Row, i int) string {
	if i < 0 {
		return ""
	}
	switch r.Kind(i) {
	case sqlitefile.Text, sqlitefile.Blob:
		return r.Text(i)
	case sqlitefile.Integer:
		return strconv.FormatInt(r.Int(i), 10)
	}
	return ""
}

func number(r *sqlitefile.Row, i int) int64 {
	if i < 0 {
		return 0
	}
	return r.Int(i)
}

// listRuns reads experiments, runs and how many series each has.
func (st *store) listRuns() error {
	names := map[int64]string{}
	err := st.scan("experiments", []string{"experiment_id", "name"}, func(r *sqlitefile.Row, at []int) error {
		if len(names) < maxNames {
			names[number(r, at[0])] = textline.OneLine(text(r, at[1]), maxNote)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = st.scan("runs", []string{"run_uuid", "name", "status", "start_time", "end_time", "lifecycle_stage", "experiment_id"}, func(r *sqlitefile.Row, at []int) error {
		if len(st.runs) >= maxListed {
			st.older++
			return nil
		}
		run := &storedRun{rowid: r.ID, offset: r.Offset, id: mlflowfile.Name(text(r, at[0])), name: textline.OneLine(text(r, at[1]), maxNote), status: textline.OneLine(text(r, at[2]), 32),
			start: number(r, at[3]), end: number(r, at[4]), stage: textline.OneLine(text(r, at[5]), 32)}
		experiment := number(r, at[6])
		if run.experiment = names[experiment]; run.experiment == "" {
			run.experiment = strconv.FormatInt(experiment, 10)
		}
		st.runs = append(st.runs, run)
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range st.runs {
		st.byID[r.id] = r
	}
	return st.scan("latest_metrics", []string{"run_uuid", "timestamp"}, func(r *sqlitefile.Row, at []int) error {
		if at[0] < 0 {
			return nil
		}
		if run := st.byID[string(r.Bytes(at[0]))]; run != nil {
			run.series++
			run.newest = max(run.newest, number(r, at[1]))
		}
		return nil
	})
}

// choose decides which runs are read, the newest ones, and which of them is the newest of
// all: the diagnosis hears of that one.
func (st *store) choose() error {
	order := slices.Clone(st.runs)
	slices.SortStableFunc(order, func(a, b *storedRun) int {
		return cmp.Or(cmp.Compare(deleted(a), deleted(b)), -cmp.Compare(max(a.newest, a.start), max(b.newest, b.start)), -cmp.Compare(a.rowid, b.rowid))
	})
	apart := reader.Apart(st.sink)
	series := int64(0)
	for i, r := range order {
		if i >= maxRuns || i > 0 && apart == nil {
			if i >= maxRuns {
				st.older++
			}
			continue
		}
		sink := st.sink
		if i > 0 {
			sink = apart
		}
		series += r.series
		r.full = i > 0 && series > maxAllTracks
		r.rec = reader.NewRecording(sink, Tracker, st.path)
		r.tracks = map[string]*storedTrack{}
		st.begin(r)
	}
	if st.older > 0 {
		st.lost(evidence.OverBound, fmt.Sprintf("more than %d runs in the store; %d older ones are not read", maxRuns, st.older))
	}
	st.runs = slices.DeleteFunc(st.runs, func(r *storedRun) bool { return r.rec == nil })
	return nil
}

func deleted(r *storedRun) int {
	if r.stage == "deleted" {
		return 1
	}
	return 0
}

// begin states what the row of a run says.
func (st *store) begin(r *storedRun) {
	run := &r.rec.Run
	run.ID, run.Name, run.Project, run.Folder = r.id, r.name, r.experiment, st.path
	run.Keeps = evidence.Clamped
	run.Status, run.StatusSaid = statusOf(r.status), r.status
	run.StatusSpan = evidence.Span{Artifact: st.path, Kind: "row", Table: "runs", Row: r.rowid, Offset: r.offset, Quote: "run " + r.id + " has the status " + r.status}
	run.Started, run.Ended = reader.StampAt(wall(r.start)), reader.StampAt(wall(r.end))
	run.Cannot = append(run.Cannot, "An infinity is stored as the largest finite number, 1.7976931348623157e308; such values are listed as suspect.", "Console output is not kept.")
	if r.stage == "deleted" {
		note(run, "deleted in MLflow, and still in the database")
	}
	if r.full {
		note(run, fmt.Sprintf("over limit: the series of this run are counted only, because the store has more than %d", maxAllTracks))
	}
	if why := st.db.Why(); why != nil {
		note(run, "read by SQLite from a copy: "+why.Error())
	}
	if l := st.db.Log(); l != nil && l.Uncommitted > 0 {
		note(run, fmt.Sprintf("the write-ahead log ends in %d pages of a transaction that was not committed", l.Uncommitted))
	}
}

// settings reads params and tags.
func (st *store) settings() error {
	over := int64(0)
	take := func(r *sqlitefile.Row, at []int) *storedRun {
		if at[0] < 0 || at[1] < 0 || at[2] < 0 {
			return nil
		}
		run := st.byID[string(r.Bytes(at[2]))]
		if run == nil || run.rec == nil {
			return nil
		}
		if st.text += int64(len(r.Bytes(at[0])) + len(r.Bytes(at[1]))); st.text > maxText {
			run.rec.Run.MoreSettings++
			over++
			return nil
		}
		return run
	}
	columns := []string{"key", "value", "run_uuid"}
	err := st.scan("params", columns, func(r *sqlitefile.Row, at []int) error {
		if run := take(r, at); run != nil {
			name := textline.OneLine(r.Text(at[0]), maxNote)
			run.rec.Setting(name, textline.OneLine(text(r, at[1]), maxSetting), evidence.Span{Artifact: st.path, Kind: "row", Table: "params", Row: r.ID, Offset: r.Offset, Quote: name + " = " + textline.OneLine(text(r, at[1]), maxNote)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = st.scan("tags", columns, func(r *sqlitefile.Row, at []int) error {
		if run := take(r, at); run != nil {
			tag(&run.rec.Run, r.Text(at[0]), text(r, at[1]))
		}
		return nil
	})
	if over > 0 {
		st.lost(evidence.OverBound, fmt.Sprintf("more than %d bytes of params and tags in the store; %d of them are counted only", maxText, over))
	}
	return err
}

// maxSetting bounds the bytes of a param that is kept; a Recording bounds it again.
const maxSetting = 4096

// metrics reads the points of all runs in the order in which they were logged.
func (st *store) metrics() error {
	var run *storedRun
	var id []byte
	return st.scan("metrics", []string{"key", "value", "timestamp", "run_uuid", "step", "is_nan"}, func(r *sqlitefile.Row, at []int) error {
		if at[0] < 0 || at[1] < 0 || at[3] < 0 {
			return errors.New("columns key, value and run_uuid are missing")
		}
		if b := r.Bytes(at[3]); run == nil || !bytes.Equal(b, id) {
			if run = st.byID[string(b)]; run == nil {
				st.strange["of runs that are not in the table of runs"]++
				return nil
			}
			id = append(id[:0], b...)
		}
		if run.rec == nil {
			return nil // not read
		}
		v := r.Float(at[1])
		if at[5] >= 0 && r.Int(at[5]) != 0 {
			v = math.NaN()
		} else if k := r.Kind(at[1]); k != sqlitefile.Real && k != sqlitefile.Integer {
			st.strange["without a number for a value"]++
			return nil
		}
		t := run.track(st, r.Bytes(at[0]), v)
		if t == nil {
			return nil
		}
		step := int64(evidence.None)
		if at[4] >= 0 {
			step = r.Int(at[4])
		}
		t.Add(step, wall(number(r, at[2])), v, reader.Place{Line: r.ID, Offset: r.Offset})
		if v == Clamp || v == -Clamp {
			t.Suspect(1, clampReason)
		}
		return nil
	})
}

// track returns the track of a key of the run, nil where there are too many.
func (run *storedRun) track(st *store, key []byte, first float64) *reader.Track {
	last := run.last
	if last != nil && last.next != nil && last.next.name == string(key) {
		run.last = last.next
		return last.next.Track
	}
	t := run.tracks[string(key)]
	if t == nil {
		if t = st.newTrack(run, string(key), first); t == nil {
			return nil
		}
	}
	if last != nil {
		last.next = t
	}
	run.last = t
	return t.Track
}

// newTrack makes a track, and makes room for it by thinning the samples of all.
func (st *store) newTrack(run *storedRun, key string, first float64) *storedTrack {
	if run.full || st.tracks >= maxAllTracks {
		if !run.full {
			run.full = true
			st.lost(evidence.OverBound, fmt.Sprintf("more than %d series in the store; later ones of run %s are counted only", maxAllTracks, run.id))
		}
		return nil
	}
	t := &storedTrack{name: key, Track: run.rec.Track(mlflowfile.Key(key), system(key), first)}
	if t.Track == nil {
		return nil
	}
	st.tracks++
	run.tracks[key] = t
	st.all = append(st.all, t.Track)
	for st.points > 8 && st.tracks*st.points > maxSampled {
		st.points /= 2
		for _, x := range st.all {
			x.Series.Reduce(st.points)
		}
	}
	t.Series.Reduce(st.points)
	return t
}

// models counts the copies of metrics that belong to logged models. They add nothing to
// what the runs hold, and a NaN among them is the number 0.
func (st *store) models() error {
	n := map[*storedRun]int64{}
	err := st.scan("logged_model_metrics", []string{"run_id"}, func(r *sqlitefile.Row, at []int) error {
		if at[0] >= 0 {
			if run := st.byID[string(r.Bytes(at[0]))]; run != nil && run.rec != nil {
				n[run]++
			}
		}
		return nil
	})
	for run, count := range n {
		note(&run.rec.Run, fmt.Sprintf("%d values are stored again with logged models, where NaN is 0", count))
	}
	return err
}

// close hands the runs over.
func (st *store) close() {
	for _, what := range sorted(st.strange) {
		st.damage = append(st.damage, evidence.RunDamage{Kind: evidence.BadRecord, Records: st.strange[what], Text: fmt.Sprintf("rows of metrics %s: %d", what, st.strange[what]),
			Span: evidence.Span{Artifact: st.path, Kind: "block", Table: "metrics"}})
	}
	told := false
	for _, r := range st.runs {
		if r.full {
			r.rec.Run.MoreTracks = max(r.series-int64(len(r.tracks)), 1)
		}
		for _, d := range st.damage {
			if told {
				r.rec.Run.Damage = append(r.rec.Run.Damage, d)
			} else {
				r.rec.Damage(d)
			}
		}
		told = true
		r.rec.Close()
	}
	if !told {
		for _, d := range st.damage {
			st.sink.Damage(d.Span, errors.New(string(d.Kind)+": "+d.Text))
		}
	}
}

func sorted(m map[string]int64) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
