// Package trackio writes repaired copies of Trackio projects: databases as reader/trackio reads them.
//
// A database is copied with its write-ahead log, and the copy is changed with SQLite: values that are
// not finite leave the JSON of their rows, the marker joins it, a row that has nothing left is deleted; an
// alert of level error and the key "inquest" of the configuration tell people. Log ids stay; what says
// that rows are still to be sent to a Space is taken out. The copy's folder can be TRACKIO_DIR.
// Source of the tables: trackio 0.43, trackio/sqlite_storage.py.
package trackio

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/format/trackiorow"
	"github.com/inquest-dev/inquest/internal/repair"
)

const (
	tracker = "trackio"
	title   = "inquest: non-finite segment"
	noted   = "inquest" // key of the configuration
	batch   = 500       // rows that are changed at a time
)

// New returns the format.
func New() repair.Format { return format{} }

type format struct{}

func (format) Name() string { return tracker }

// Claims implements repair.Format.
func (format) Claims(_ *repair.Source, runs []*evidence.TrackedRun) bool {
	return len(runs) > 0 && !slices.ContainsFunc(runs, func(r *evidence.TrackedRun) bool { return r.Tracker != tracker })
}

// Copy implements repair.Format.
func (format) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	names := src.Artifacts()
	stores := map[string]bool{}
	var list []string
	for _, run := range plan.Runs() {
		name, ok := names[run.Read.Artifact]
		if !ok {
			return fmt.Errorf("%s is no longer there", run.Read.Artifact)
		}
		if !stores[name] {
			stores[name] = true
			list = append(list, name)
		}
	}
	for _, name := range list {
		if err := copyStore(ctx, src, out, plan, name); err != nil {
			return fmt.Errorf("copy %s: %w", src.Artifact(name), err)
		}
	}
	if src.File != "" {
		return nil
	}
	mirrors := 0
	for _, name := range src.Names() {
		switch of, companion := sqlitefile.Companion(name); {
		case stores[name], companion && stores[of], path.Ext(name) == ".db", path.Ext(name) == ".lock":
		case companion && path.Ext(of) == ".db":
		case path.Ext(name) == ".parquet":
			mirrors++
		default:
			if err := out.CopyFile(ctx, src, name); err != nil {
				return err
			}
		}
	}
	if mirrors > 0 {
		plan.Left = append(plan.Left, fmt.Sprintf("%d Parquet files, which mirror the databases as they were, are not in the copy; Trackio writes them anew.", mirrors))
	}
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
	zeros    map[zero]bool       // marks of finite steps that were written
}

type zero struct {
	run  *repair.Run
	step int64
}

func (s *store) run(sql string, args ...any) error {
	return sqlitex.ExecuteTransient(s.conn, sql, &sqlitex.ExecOptions{Args: args})
}

func (s *store) has(table, column string) bool { return slices.Contains(s.columns[table], column) }

// change makes all changes in one transaction.
func (s *store) change(ctx context.Context) error {
	s.columns, s.zeros = map[string][]string{}, map[zero]bool{}
	if err := s.run("PRAGMA trusted_schema=OFF"); err != nil {
		return err
	}
	odd := ""
	err := sqlitex.ExecuteTransient(s.conn, "SELECT s.type, s.name, c.name FROM sqlite_schema s LEFT JOIN pragma_table_info(s.name) c ON s.type='table' ORDER BY s.rowid, c.cid", &sqlitex.ExecOptions{ResultFunc: func(q *sqlite.Stmt) error {
		switch q.ColumnText(0) {
		case "table":
			s.columns[q.ColumnText(1)] = append(s.columns[q.ColumnText(1)], q.ColumnText(2))
		case "trigger", "view":
			odd = q.ColumnText(0)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	if odd != "" {
		return fmt.Errorf("the database has a %s, which none of Trackio's has", odd)
	}
	if !s.has("metrics", "metrics") || !s.has("metrics", "run_name") {
		return errors.New("the database has no table of metrics that can be changed")
	}
	if err := s.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, table := range []string{"metrics", "system_metrics"} {
		if err := s.rows(ctx, table); err != nil {
			return err
		}
	}
	for _, run := range s.plan.Runs() {
		if run.Read.Artifact != s.artifact || !run.Affected {
			continue
		}
		if err := s.tell(run); err != nil {
			return err
		}
	}
	if err := s.unsend(); err != nil {
		return err
	}
	return s.run("COMMIT")
}

// A row is one row of metrics.
type row struct {
	id     int64
	run    *repair.Run
	step   int64
	wall   float64
	body   []byte
	binary bool
}

// rows goes over a table in the order of its rowids.
func (s *store) rows(ctx context.Context, table string) error {
	if !s.has(table, "metrics") || !s.has(table, "run_name") {
		return nil
	}
	column := func(name string) string {
		if s.has(table, name) {
			return name
		}
		return "NULL"
	}
	q, _, err := s.conn.PrepareTransient(fmt.Sprintf("SELECT rowid, %s, run_name, %s, %s, metrics FROM %s WHERE rowid > ? ORDER BY rowid LIMIT %d", column("run_id"), column("step"), column("timestamp"), table, batch))
	if err != nil {
		return err
	}
	defer q.Finalize()
	update, _, err := s.conn.PrepareTransient("UPDATE " + table + " SET metrics = ? WHERE rowid = ?")
	if err != nil {
		return err
	}
	defer update.Finalize()
	remove, _, err := s.conn.PrepareTransient("DELETE FROM " + table + " WHERE rowid = ?")
	if err != nil {
		return err
	}
	defer remove.Finalize()
	for last := int64(-1 << 63); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var list []row
		if err := q.Reset(); err != nil {
			return err
		}
		q.BindInt64(1, last)
		for {
			more, err := q.Step()
			if err != nil {
				return err
			}
			if !more {
				break
			}
			list = append(list, s.row(q))
		}
		if len(list) == 0 {
			return nil
		}
		last = list[len(list)-1].id
		for i := range list {
			if err := s.edit(&list[i], update, remove); err != nil {
				return err
			}
		}
	}
}

// row reads a row as the reader does.
func (s *store) row(q *sqlite.Stmt) row {
	r := row{id: q.ColumnInt64(0), step: evidence.None, binary: q.ColumnType(5) == sqlite.TypeBlob}
	r.run = s.plan.Run(repair.RunKey{ID: trackiorow.RunID(textOf(q, 1), textOf(q, 2))})
	if q.ColumnType(3) == sqlite.TypeInteger {
		r.step = q.ColumnInt64(3)
	}
	r.wall = trackiorow.Time(textOf(q, 4))
	if t := q.ColumnType(5); t == sqlite.TypeBlob || t == sqlite.TypeText {
		r.body = make([]byte, q.ColumnLen(5))
		q.ColumnBytes(5, r.body)
	}
	return r
}

// textOf is a text or blob, and nothing for anything else.
func textOf(q *sqlite.Stmt, i int) string {
	if t := q.ColumnType(i); t != sqlite.TypeText && t != sqlite.TypeBlob {
		return ""
	}
	b := make([]byte, q.ColumnLen(i))
	q.ColumnBytes(i, b)
	return string(b)
}

// edit asks about the values of a row and writes what is left of it.
func (s *store) edit(r *row, update, remove *sqlite.Stmt) error {
	if r.run.Passive {
		return nil
	}
	list, err := trackiorow.Scalars(r.body)
	if err != nil {
		return nil // the reader made nothing of it
	}
	type change struct {
		from int
		text string // in place of key and value; "" to leave them out
	}
	var changes []change
	failed := false
	for _, x := range list {
		action, v := r.run.Series(s.artifact, x.Key).Next(r.step, r.wall, x.Value)
		switch action {
		case repair.Drop:
			changes = append(changes, change{x.From, ""})
			failed = failed || x.Value-x.Value != 0
		case repair.Hold:
			changes = append(changes, change{x.From, string(r.body[x.From:x.At]) + strconv.FormatFloat(v, 'g', -1, 64)})
			failed = true
		}
	}
	value, marked := r.run.Mark(r.step)
	switch z := (zero{r.run, r.step}); {
	case r.step == evidence.None:
		value, marked = 1, failed
	case value == 0 && marked:
		marked = !s.zeros[z]
		s.zeros[z] = true
	case marked:
		marked = failed
	}
	if len(changes) == 0 && !marked {
		return nil
	}
	n, err := trackiorow.Object(r.body)
	if err != nil {
		return err
	}
	var parts []string
	for _, x := range n.Items {
		text := string(r.body[x.From:x.End])
		if len(changes) > 0 && changes[0].from == x.From {
			text = changes[0].text
			changes = changes[1:]
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	if marked {
		parts = append(parts, trackiorow.Quote(s.plan.Marker)+":"+strconv.FormatFloat(value, 'f', 1, 64))
	}
	if len(parts) == 0 {
		remove.BindInt64(1, r.id)
		return step(remove)
	}
	body := "{" + strings.Join(parts, ",") + "}"
	if r.binary {
		update.BindBytes(1, []byte(body))
	} else {
		update.BindText(1, body)
	}
	update.BindInt64(2, r.id)
	return step(update)
}

// step runs a statement that gives no rows, once.
func step(q *sqlite.Stmt) error {
	_, err := q.Step()
	return errors.Join(err, q.Reset())
}

// tell puts the note into the alerts and the configuration of a run.
func (s *store) tell(run *repair.Run) error {
	id, name, err := s.identity(run)
	if err != nil || name == "" {
		return err
	}
	at, first := run.Newest, int64(evidence.None)
	for _, m := range run.Marks() {
		if m.Value == 1 {
			first = m.Step
			if m.Wall > 0 {
				at = m.Wall
			}
			break
		}
	}
	if s.has("alerts", "title") && s.has("alerts", "run_name") {
		cols, args := []string{"timestamp", "run_name", "title", "text", "level"}, []any{trackiorow.FormatTime(at), name, title, run.Short, "error"}
		if first != evidence.None {
			cols, args = append(cols, "step"), append(args, first)
		}
		if err := s.insert("alerts", id, cols, args); err != nil {
			return err
		}
	} else {
		s.plan.Left = append(s.plan.Left, fmt.Sprintf("Run %s has no alert: this version of Trackio knows none.", run.Read.Name))
	}
	if !s.has("configs", "config") || !s.has("configs", "run_name") {
		return nil
	}
	where, key := "run_name = ?", any(name)
	if id != nil && s.has("configs", "run_id") {
		where, key = "run_id = ?", id
	}
	var rowid int64
	var body []byte
	binary, found := false, false
	err = sqlitex.ExecuteTransient(s.conn, "SELECT rowid, config FROM configs WHERE "+where+" ORDER BY rowid DESC LIMIT 1", &sqlitex.ExecOptions{Args: []any{key}, ResultFunc: func(q *sqlite.Stmt) error {
		rowid, found, binary = q.ColumnInt64(0), true, q.ColumnType(1) == sqlite.TypeBlob
		body = []byte(textOf(q, 1))
		return nil
	}})
	if err != nil {
		return err
	}
	entry := trackiorow.Quote(noted) + ":" + run.JSON
	if !found {
		return s.insert("configs", id, []string{"run_name", "config", "created_at"}, []any{name, []byte("{" + entry + "}"), trackiorow.FormatTime(at)})
	}
	n, err := trackiorow.Object(body)
	if err != nil {
		s.plan.Left = append(s.plan.Left, fmt.Sprintf("The configuration of run %s, which is no JSON object, does not name the repair.", run.Read.Name))
		return nil
	}
	parts := []string{}
	for _, x := range n.Items {
		if x.Key != noted {
			parts = append(parts, string(body[x.From:x.End]))
		}
	}
	text := "{" + strings.Join(append(parts, entry), ",") + "}"
	if binary {
		return s.run("UPDATE configs SET config = ? WHERE rowid = ?", []byte(text), rowid)
	}
	return s.run("UPDATE configs SET config = ? WHERE rowid = ?", text, rowid)
}

// insert adds a row, with the run's id where the table has one.
func (s *store) insert(table string, id any, cols []string, args []any) error {
	if id != nil && s.has(table, "run_id") {
		cols, args = append(cols, "run_id"), append(args, id)
	}
	return s.run("INSERT INTO "+table+" ("+strings.Join(cols, ", ")+") VALUES (?"+strings.Repeat(", ?", len(cols)-1)+")", args...)
}

// identity is the id and name of a run as its rows have them; id is nil where they have none.
func (s *store) identity(run *repair.Run) (id any, name string, err error) {
	for _, table := range []string{"metrics", "system_metrics"} {
		if !s.has(table, "run_name") {
			continue
		}
		ids := "NULL"
		if s.has(table, "run_id") {
			ids = "run_id"
		}
		err := sqlitex.ExecuteTransient(s.conn, fmt.Sprintf("SELECT %s, run_name FROM %s GROUP BY 1, 2 ORDER BY max(rowid)", ids, table), &sqlitex.ExecOptions{ResultFunc: func(q *sqlite.Stmt) error {
			if trackiorow.RunID(textOf(q, 0), textOf(q, 1)) != run.Read.ID {
				return nil
			}
			if name = textOf(q, 1); textOf(q, 0) != "" {
				id = textOf(q, 0)
			}
			return nil
		}})
		if err != nil || name != "" {
			return id, name, err
		}
	}
	return nil, "", nil
}

// unsend takes out what says that rows are to be sent to a Space.
func (s *store) unsend() error {
	changed := 0
	for _, table := range []string{"metrics", "system_metrics", "traces"} {
		if !s.has(table, "space_id") {
			continue
		}
		if err := s.run("UPDATE " + table + " SET space_id = NULL WHERE space_id IS NOT NULL"); err != nil {
			return err
		}
		changed += s.conn.Changes()
	}
	if s.has("pending_uploads", "space_id") {
		if err := s.run("DELETE FROM pending_uploads"); err != nil {
			return err
		}
		changed += s.conn.Changes()
	}
	if s.has("project_metadata", "key") {
		if err := s.run("DELETE FROM project_metadata WHERE key = 'space_id'"); err != nil {
			return err
		}
		changed += s.conn.Changes()
	}
	if changed > 0 {
		s.plan.Changes = append(s.plan.Changes, fmt.Sprintf("%s: %d entries that say what is to be sent to a Space are taken out, so that nothing of the copy is uploaded.", path.Base(s.artifact), changed))
	}
	return nil
}
