package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/repair"
)

// batch is how many rows are looked at before those among them are changed.
const batch = 20_000

// Database is the format of stores in SQLite. A copy is one file, without a write-ahead
// log; in it, in one transaction, rows that are not finite are deleted, the table of latest values is made
// anew from what is left, and marker, tags and status are written.
func Database() repair.Format { return database{} }

type database struct{}

func (database) Name() string { return "mlflow-sqlite" }

// Claims implements repair.Format.
func (database) Claims(_ *repair.Source, runs []*evidence.TrackedRun) bool { return ours(runs, false) }

// Copy implements repair.Format.
func (database) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	at := src.Artifacts()
	var list []string
	for _, run := range plan.Runs() {
		name, ok := at[run.Read.Artifact]
		if !ok {
			return fmt.Errorf("%s %w", run.Read.Artifact, errGone)
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	for _, name := range list {
		if err := copyStore(ctx, src, out, plan, name); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("copy %s: %w", src.Artifact(name), err)
		}
	}
	others := 0
	for _, name := range src.Names() {
		of, companion := sqlitefile.Companion(name)
		if !slices.Contains(list, name) && !(companion && slices.Contains(list, of)) {
			others++
		}
	}
	if others > 0 {
		plan.Left = append(plan.Left, "Not in the copy: "+evidence.Several(int64(others), "other file")+" of the source, among them what artifacts of runs lie there.")
	}
	plan.Left = append(plan.Left, "Locations of artifacts in the copy are those of the source.")
	return nil
}

// copyStore copies a database and changes the copy.
func copyStore(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, name string) error {
	to, err := out.Path(name)
	if err != nil {
		return err
	}
	return sqlitestore.Change(ctx, src.FS, name, to, func(conn *sqlite.Conn) error {
		s := &store{conn: conn, plan: plan, artifact: src.Artifact(name)}
		return s.change(ctx)
	})
}

// A store is the copy of a database while it is changed.
type store struct {
	conn     *sqlite.Conn
	plan     *repair.Plan
	artifact string
	columns  map[string][]string // by table
	models   bool                // there are copies of metrics with logged models
	latest   map[series]*point   // of the rows that stay
}

type series struct{ run, key string }

// A point is what latest_metrics holds of a series; there is no row where some is false.
type point struct {
	value        float64
	millis, step int64
	some         bool
	changed      bool
}

// after reports whether p comes after q by MLflow's rule: step, then time, then value.
func (p point) after(q *point) bool {
	return !q.some || cmp.Or(cmp.Compare(p.step, q.step), cmp.Compare(p.millis, q.millis), cmp.Compare(p.value, q.value)) > 0
}

func (s *store) run(sql string, args ...any) error {
	return sqlitex.ExecuteTransient(s.conn, sql, &sqlitex.ExecOptions{Args: args})
}

func (s *store) has(table, column string) bool { return slices.Contains(s.columns[table], column) }

// column is a column, or a constant in place of one that an old store lacks.
func (s *store) column(table, name, otherwise string) string {
	if s.has(table, name) {
		return `"` + name + `"`
	}
	return otherwise
}

// change makes all changes in one transaction.
func (s *store) change(ctx context.Context) error {
	s.columns, s.latest = map[string][]string{}, map[series]*point{}
	for _, pragma := range []string{"PRAGMA trusted_schema=OFF", "PRAGMA temp_store=MEMORY"} {
		if err := s.run(pragma); err != nil {
			return err
		}
	}
	written := []string{"metrics", "latest_metrics", "tags", "runs", "logged_model_metrics"}
	var odd error
	err := sqlitex.ExecuteTransient(s.conn, "SELECT s.type, s.tbl_name, c.name FROM sqlite_schema s LEFT JOIN pragma_table_info(s.name) c ON s.type='table' ORDER BY s.rowid, c.cid", &sqlitex.ExecOptions{ResultFunc: func(q *sqlite.Stmt) error {
		switch table := strings.ToLower(q.ColumnText(1)); q.ColumnText(0) {
		case "table":
			s.columns[table] = append(s.columns[table], strings.ToLower(q.ColumnText(2)))
		case "trigger":
			if slices.Contains(written, table) {
				odd = fmt.Errorf("a change of its table %s sets off a trigger, which none of MLflow's does", table)
			}
		}
		return nil
	}})
	if err = errors.Join(err, odd); err != nil {
		return err
	}
	if !s.has("metrics", "key") || !s.has("metrics", "value") || !s.has("metrics", "run_uuid") || !s.has("runs", "run_uuid") {
		return errors.New("the database has no tables of runs and metrics that can be changed")
	}
	s.models = s.has("logged_model_metrics", "run_id") && s.has("logged_model_metrics", "metric_value")
	if err := s.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if s.models {
		if err := s.run("CREATE TEMP TABLE inquest_gone (run TEXT, key TEXT, millis INTEGER, step INTEGER, value)"); err != nil {
			return err
		}
	}
	for _, do := range []func(context.Context) error{s.metrics, s.marks, s.latests, s.copies, s.tell} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return s.run("COMMIT")
}

// A row is one row of metrics that is taken out or gets another value.
type row struct {
	id     int64
	series series
	point
	stored float64 // value as the row has it
	hold   bool
}

// metrics asks about every row in the order of the rowids, as the reader did.
func (s *store) metrics(ctx context.Context) error {
	q, _, err := s.conn.PrepareTransient(fmt.Sprintf(`SELECT rowid, key, value, %s, run_uuid, %s, %s FROM metrics WHERE rowid > ? ORDER BY rowid LIMIT %d`,
		s.column("metrics", "timestamp", "0"), s.column("metrics", "step", "NULL"), s.column("metrics", "is_nan", "0"), batch))
	if err != nil {
		return err
	}
	defer q.Finalize()
	var list []row
	for last := int64(math.MinInt64); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := q.Reset(); err != nil {
			return err
		}
		q.BindInt64(1, last)
		list = list[:0]
		n := 0
		for ; ; n++ {
			more, err := q.Step()
			if err != nil {
				return err
			}
			if !more {
				break
			}
			last = q.ColumnInt64(0)
			if r, ok := s.decide(q); ok {
				list = append(list, r)
			}
		}
		if n == 0 {
			return nil
		}
		for i := range list {
			if err := s.edit(&list[i]); err != nil {
				return err
			}
		}
	}
}

// decide asks about one row. It returns those that are to be changed.
func (s *store) decide(q *sqlite.Stmt) (row, bool) {
	r := row{id: q.ColumnInt64(0), series: series{q.ColumnText(4), q.ColumnText(1)}, stored: q.ColumnFloat(2)}
	r.millis, r.step, r.some = q.ColumnInt64(3), q.ColumnInt64(5), true
	run := s.plan.Run(repair.RunKey{ID: mlflowfile.Name(r.series.run)})
	if run.Passive {
		return r, false
	}
	v := r.stored
	if q.ColumnInt64(6) != 0 {
		v = math.NaN()
	} else if t := q.ColumnType(2); t != sqlite.TypeFloat && t != sqlite.TypeInteger {
		return r, false // the reader made nothing of it
	}
	step := r.step
	if q.ColumnType(5) == sqlite.TypeNull {
		step = evidence.None
	}
	action, v := run.Series(s.artifact, mlflowfile.Key(r.series.key)).Next(step, wall(r.millis), v)
	l := s.latest[r.series]
	if l == nil {
		l = &point{}
		s.latest[r.series] = l
	}
	r.value = v
	if action != repair.Keep {
		l.changed = true
	}
	if action != repair.Drop && r.point.after(l) {
		changed := l.changed
		*l = r.point
		l.changed = changed
	}
	r.hold = action == repair.Hold
	return r, action != repair.Keep
}

// wall is a time in milliseconds as seconds, 0 where it is none.
func wall(ms int64) float64 {
	if ms <= 0 {
		return 0
	}
	return float64(ms) / 1000
}

// edit takes a row out, or puts the held value into it. Another row may have that
// value at that step and time, which the key does not allow: then it goes a millisecond
// later.
func (s *store) edit(r *row) error {
	if s.models {
		if err := s.run("INSERT INTO inquest_gone VALUES (?, ?, ?, ?, ?)", r.series.run, r.series.key, r.millis, r.step, r.stored); err != nil {
			return err
		}
	}
	if !r.hold {
		return s.run("DELETE FROM metrics WHERE rowid = ?", r.id)
	}
	set, args := "value = ?", []any{r.value}
	if s.has("metrics", "is_nan") {
		set += ", is_nan = 0"
	}
	later := s.has("metrics", "timestamp")
	if later {
		set += ", timestamp = ?"
	}
	for shift := range int64(1000) {
		a := args
		if later {
			a = append(slices.Clone(args), r.millis+shift)
		}
		if err := s.run("UPDATE OR IGNORE metrics SET "+set+" WHERE rowid = ?", append(slices.Clone(a), r.id)...); err != nil {
			return err
		}
		if s.conn.Changes() > 0 {
			return nil
		}
	}
	return fmt.Errorf("no room for a held value of %s", r.series.key)
}

// marks writes the marker series of the runs.
func (s *store) marks(context.Context) error {
	for _, run := range s.runs() {
		id := run.Read.ID
		l := &point{changed: true}
		for _, m := range run.Marks() {
			p := point{value: m.Value, millis: wallOf(run, m), step: stepOf(m), some: true, changed: true}
			cols, args := []string{"key", "value", "run_uuid"}, []any{s.plan.Marker, p.value, id}
			for _, c := range []struct {
				name  string
				value int64
			}{{"timestamp", p.millis}, {"step", p.step}, {"is_nan", 0}} {
				if s.has("metrics", c.name) {
					cols, args = append(cols, c.name), append(args, c.value)
				}
			}
			if err := s.insert("metrics", cols, args); err != nil {
				return err
			}
			if p.after(l) {
				*l = p
			}
		}
		if l.some {
			s.latest[series{id, s.plan.Marker}] = l
		}
	}
	return nil
}

// runs are those of this database that are marked.
func (s *store) runs() (list []*repair.Run) {
	for _, run := range s.plan.Runs() {
		if run.Read.Artifact == s.artifact && run.Affected {
			list = append(list, run)
		}
	}
	return list
}

func (s *store) insert(table string, cols []string, args []any) error {
	return s.run(`INSERT INTO `+table+` ("`+strings.Join(cols, `", "`)+`") VALUES (?`+strings.Repeat(", ?", len(cols)-1)+")", args...)
}

// latests makes the rows of latest_metrics anew of series that were changed.
func (s *store) latests(ctx context.Context) error {
	if !s.has("latest_metrics", "key") || !s.has("latest_metrics", "run_uuid") || !s.has("latest_metrics", "value") {
		return nil
	}
	var changed []series
	for k, l := range s.latest {
		if l.changed {
			changed = append(changed, k)
		}
	}
	slices.SortFunc(changed, func(a, b series) int { return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.key, b.key)) })
	for _, k := range changed {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.run("DELETE FROM latest_metrics WHERE key = ? AND run_uuid = ?", k.key, k.run); err != nil {
			return err
		}
		l := s.latest[k]
		if !l.some {
			continue
		}
		cols, args := []string{"key", "value", "run_uuid"}, []any{k.key, l.value, k.run}
		for _, c := range []struct {
			name  string
			value int64
		}{{"timestamp", l.millis}, {"step", l.step}, {"is_nan", 0}} {
			if s.has("latest_metrics", c.name) {
				cols, args = append(cols, c.name), append(args, c.value)
			}
		}
		if err := s.insert("latest_metrics", cols, args); err != nil {
			return err
		}
	}
	return nil
}

// copies takes out what is stored again with logged models of the values that were taken
// out; NaN is 0 there.
func (s *store) copies(context.Context) error {
	if !s.models {
		return nil
	}
	err := s.run(`DELETE FROM logged_model_metrics WHERE rowid IN (SELECT m.rowid FROM logged_model_metrics m JOIN inquest_gone g ON m.run_id = g.run AND m.metric_name = g.key
 AND m.metric_timestamp_ms = g.millis AND m.metric_step = g.step AND (m.metric_value IS NULL OR m.metric_value = g.value))`)
	if err != nil {
		return err
	}
	if n := s.conn.Changes(); n > 0 {
		s.plan.Changes = append(s.plan.Changes, fmt.Sprintf("%s: taken out as well: %s stored again with logged models.", path.Base(s.artifact), evidence.Several(int64(n), "value")))
	}
	return s.run("DROP TABLE inquest_gone")
}

// tell writes tags and statuses.
func (s *store) tell(context.Context) error {
	for _, run := range s.plan.Runs() {
		if run.Read.Artifact != s.artifact {
			continue
		}
		if run.Status != "" && s.has("runs", "status") {
			word, _ := statusWord(run.Status)
			if err := s.run("UPDATE runs SET status = ? WHERE run_uuid = ?", word, run.Read.ID); err != nil {
				return err
			}
			if run.Newest > 0 && s.has("runs", "end_time") {
				if err := s.run("UPDATE runs SET end_time = ? WHERE run_uuid = ? AND end_time IS NULL", millis(run.Newest), run.Read.ID); err != nil {
					return err
				}
			}
		}
	}
	if !s.has("tags", "key") || !s.has("tags", "value") || !s.has("tags", "run_uuid") {
		return nil
	}
	for _, run := range s.runs() {
		had := ""
		err := sqlitex.ExecuteTransient(s.conn, "SELECT value FROM tags WHERE key = ? AND run_uuid = ?", &sqlitex.ExecOptions{Args: []any{tagNote, run.Read.ID}, ResultFunc: func(q *sqlite.Stmt) error {
			had = q.ColumnText(0)
			return nil
		}})
		if err != nil {
			return err
		}
		for _, t := range [][2]string{{tagNote, described(had, run.Note)}, {tagRepaired, "true"}, {tagSegment, run.JSON}} {
			if err := s.run("DELETE FROM tags WHERE key = ? AND run_uuid = ?", t[0], run.Read.ID); err != nil {
				return err
			}
			if err := s.insert("tags", []string{"key", "value", "run_uuid"}, []any{t[0], t[1], run.Read.ID}); err != nil {
				return err
			}
		}
	}
	return nil
}
