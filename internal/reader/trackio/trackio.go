// Package trackio reads the database of a Trackio project, <project>.db, as Trackio 0.1 to 0.43 leaves
// it (trackio/sqlite_storage.py, utils.py):
//
//	metrics         id, run_id, timestamp, run_name, step, metrics, log_id, space_id   one row a call of log
//	system_metrics  the same without step
//	configs         id, run_id, run_name, config, created_at                           one row a run
//	alerts          id, run_id, timestamp, run_name, title, text, level, step, alert_id
//
// Versions before 0.24 have no run_id: there a run is its name. The columns metrics and config hold JSON, as a
// blob, in older versions as text. At its top level NaN and the infinities are the strings "NaN",
// "Infinity" and "-Infinity"; what is nested is no metric. timestamp is ISO 8601 in UTC, of the batch in
// which the row was sent. A resumed run goes on in the same database, also at steps that it has already.
//
// The original is never opened with SQLite (format/sqlitestore); what a write-ahead log beside
// it has committed counts.
package trackio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/format/trackiorow"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	tracker  = "trackio"
	maxRuns  = 10_000
	together = 64  // runs that are read in one pass
	maxText  = 512 // bytes of a name or note
	maxNotes = 32  // alerts of a run that are noted
)

// New returns the reader.
func New() reader.Reader { return db{} }

type db struct{}

func (db) Name() string { return tracker }

// Sniff implements reader.Reader. The list of tables of newer versions does not fit on the first
// page; such a database is known by the version of its schema, which Trackio counts from 1,
// and its name.
func (db) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if !bytes.HasPrefix(head, []byte(sqlitefile.Magic)) || len(head) < 100 {
		return reader.No
	}
	at := reader.PlaceOf(a.Path)
	names, whole := sqlitefile.TablesIn(head)
	switch {
	case names["metrics"] && names["configs"] && names["system_metrics"]:
		return reader.Sure
	case whole || path.Ext(at) != ".db" || strings.Contains(path.Base(at), "mlflow") || names["experiments"] || names["alembic_version"]:
		return reader.No
	case path.Base(path.Dir(at)) == "trackio":
		return reader.Sure
	case len(names) == 0 && head[60]|head[61]|head[62] == 0 && head[63] >= 1 && head[63] < 32:
		return reader.Likely + 1
	}
	return reader.No
}

// Anchor implements reader.Gatherer: what SQLite keeps beside a database.
func (db) Anchor(at string) (dir, pattern string, ok bool) {
	of, ok := sqlitefile.Companion(at)
	if !ok || path.Ext(of) != ".db" {
		return "", "", false
	}
	return path.Dir(of), literal.Replace(path.Base(of)), true
}

// literal makes a name the pattern that matches it alone.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Read implements reader.Reader.
func (db) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	store, err := sqlitestore.Open(ctx, sqlitestore.Files{Name: reader.BaseOf(in.Artifact.Path), DB: in.At, Size: in.Size, Open: in.Open, Dir: in.Dir})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return reading(in, s, err)
	}
	defer store.Close()
	r := &project{store: store, artifact: in.Artifact.Path, sink: s, byKey: map[string]*run{}}
	for _, d := range store.Damage() {
		r.damage(d)
	}
	r.metrics, r.system, r.configs, r.alerts = store.Table("metrics"), store.Table("system_metrics"), store.Table("configs"), store.Table("alerts")
	if r.metrics.Column("metrics") < 0 || r.metrics.Column("run_name") < 0 {
		if len(r.lost) == 0 {
			return errors.New("a SQLite database without Trackio's tables")
		}
		return r.read(ctx) // of a damaged list of tables
	}
	if store.LostLog() {
		r.lost = append(r.lost, evidence.RunDamage{Kind: evidence.MissingLog, Span: r.span(0, 0), Text: "the write-ahead log is not beside the database: what was not yet moved into it is missing"})
	}
	if l := store.Log(); l != nil && l.Broken {
		r.lost = append(r.lost, evidence.RunDamage{Kind: evidence.BadTable, Span: r.span(0, 0), Text: "the write-ahead log is not one of this database and is left out"})
	}
	return r.read(ctx)
}

// reading says what is wrong with a database that cannot be opened: a cut or damaged one is damage.
func reading(in reader.Input, s reader.Sink, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return fmt.Errorf("read Trackio database: %w", err)
	}
	s.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}, fmt.Errorf("%s: %w", evidence.BadTable, err))
	return nil
}

// A project is a database while it is read.
type project struct {
	store    *sqlitestore.Store
	artifact string
	sink     reader.Sink

	metrics, system, configs, alerts *sqlitefile.Table
	runs                             []*run // in the order of their first row
	byKey                            map[string]*run
	more                             int64 // rows of runs beyond maxRuns
	passes                           int
	lost                             []evidence.RunDamage
}

// A run is one run of the project.
type run struct {
	key, name, id string
	newest        string // timestamp
	order         int
	rec           *reader.Recording
	alerts        int
}

func (p *project) span(row, offset int64) evidence.Span {
	return evidence.Span{Artifact: p.artifact, Kind: "record", Record: row, Offset: offset}
}

func (p *project) damage(d sqlitefile.Damage) {
	if len(p.lost) < 1000 {
		p.lost = append(p.lost, evidence.RunDamage{Kind: evidence.BadTable, Span: p.span(0, d.Offset), Text: d.Text, Records: d.Rows})
	}
}

// columns are the places of the columns that rows of all tables have.
type columns struct{ id, name, time, step, body int }

func of(t *sqlitefile.Table, body string) columns {
	return columns{t.Column("run_id"), t.Column("run_name"), t.Column("timestamp"), t.Column("step"), t.Column(body)}
}

// key is what a row calls its run: the id, and the name in versions without one.
func (c columns) key(r *sqlitefile.Row) (key, id string) {
	if c.id >= 0 {
		if id := r.Text(c.id); id != "" {
			return "id " + id, id
		}
	}
	return "name " + r.Text(c.name), ""
}

// read finds the runs, and then reads some of them at a time.
func (p *project) read(ctx context.Context) error {
	for _, t := range []*sqlitefile.Table{p.metrics, p.system} {
		if err := p.find(ctx, t); err != nil {
			return err
		}
	}
	newest := 0
	for i, r := range p.runs {
		if r.newest > p.runs[newest].newest {
			newest = i
		}
	}
	apart := reader.Apart(p.sink)
	for first := 0; first < len(p.runs); first += together {
		some := p.runs[first:min(first+together, len(p.runs))]
		for i, r := range some {
			s := p.sink
			if first+i != newest {
				if s = apart; s == nil {
					continue
				}
			}
			r.rec = reader.NewRecording(s, tracker, p.artifact)
			p.begin(r)
		}
		if err := p.pass(ctx); err != nil {
			return err
		}
		for _, r := range some {
			if r.rec != nil {
				p.end(r, r == p.runs[newest])
				r.rec = nil
			}
		}
	}
	if len(p.runs) == 0 {
		for _, d := range p.lost {
			p.sink.Damage(d.Span, errors.New(string(d.Kind)+": "+d.Text))
		}
	}
	return nil
}

// find lists the runs of a table.
func (p *project) find(ctx context.Context, t *sqlitefile.Table) error {
	c := of(t, "metrics")
	if t == nil || c.name < 0 || c.body < 0 {
		return nil
	}
	return p.scan(ctx, t, func(row *sqlitefile.Row) error {
		key, id := c.key(row)
		r := p.byKey[key]
		if r == nil {
			if len(p.runs) >= maxRuns {
				p.more++
				return nil
			}
			r = &run{key: key, id: id, name: row.Text(c.name), order: len(p.runs)}
			p.byKey[key] = r
			p.runs = append(p.runs, r)
		}
		if c.time >= 0 {
			if at := string(row.Bytes(c.time)[:min(len(row.Bytes(c.time)), 40)]); at > r.newest {
				r.newest = at
			}
		}
		return nil
	}, p.damage)
}

// scan goes over the rows of a table, and over nothing where there is none.
func (p *project) scan(ctx context.Context, t *sqlitefile.Table, row func(*sqlitefile.Row) error, damage func(sqlitefile.Damage)) error {
	if t == nil {
		return nil
	}
	n := 0
	err := p.store.Scan(ctx, t, func(r *sqlitefile.Row) error {
		if n++; n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return row(r)
	}, damage)
	if err != nil && ctx.Err() == nil {
		damage(sqlitefile.Damage{Text: err.Error()})
		return nil
	}
	return err
}

// begin states what a run is called.
func (p *project) begin(r *run) {
	run := &r.rec.Run
	run.ID, run.Name = trackiorow.RunID(r.id, r.name), textline.OneLine(r.name, maxText)
	run.Project = strings.TrimSuffix(reader.BaseOf(p.artifact), ".db")
	run.Folder = p.artifact
	run.Status = evidence.RunOpen
	run.Cannot = []string{"How the run ended: Trackio stores no status, no exit code and no console output.",
		"The time of a single point: a row has the time of the batch that it was sent in.",
		"The last second or so before a kill: values are sent by a thread of their own."}
}

// pass reads the tables for the runs that have a recording.
func (p *project) pass(ctx context.Context) error {
	known := func(sqlitefile.Damage) {} // noted before
	damage := p.damage
	if p.passes++; p.passes > 1 {
		damage = known
	}
	c := of(p.configs, "config")
	if c.body >= 0 && c.name >= 0 {
		if err := p.scan(ctx, p.configs, func(row *sqlitefile.Row) error {
			if r := p.recorded(c, row); r != nil {
				p.config(r, row, c)
			}
			return nil
		}, damage); err != nil {
			return err
		}
	}
	for _, t := range []*sqlitefile.Table{p.metrics, p.system} {
		c := of(t, "metrics")
		if c.body < 0 || c.name < 0 {
			continue
		}
		if err := p.scan(ctx, t, func(row *sqlitefile.Row) error {
			if r := p.recorded(c, row); r != nil {
				p.row(r, row, c, t == p.system)
			}
			return nil
		}, known); err != nil {
			return err
		}
	}
	c = of(p.alerts, "title")
	if c.body < 0 || c.name < 0 {
		return nil
	}
	text, level := p.alerts.Column("text"), p.alerts.Column("level")
	return p.scan(ctx, p.alerts, func(row *sqlitefile.Row) error {
		r := p.recorded(c, row)
		if r == nil {
			return nil
		}
		if r.alerts++; r.alerts > maxNotes {
			return nil
		}
		note := "alert"
		if level >= 0 {
			note += " " + row.Text(level)
		}
		if c.step >= 0 && row.Kind(c.step) == sqlitefile.Integer {
			note += fmt.Sprintf(" at step %d", row.Int(c.step))
		}
		note += ": " + row.Text(c.body)
		if text >= 0 && len(row.Bytes(text)) > 0 {
			note += ": " + string(row.Bytes(text)[:min(len(row.Bytes(text)), 2*maxText)])
		}
		r.rec.Run.Notes = append(r.rec.Run.Notes, textline.OneLine(note, maxText))
		return nil
	}, damage)
}

// recorded is the run of a row, nil where it is not among those that are being read.
func (p *project) recorded(c columns, row *sqlitefile.Row) *run {
	key, _ := c.key(row)
	if r := p.byKey[key]; r != nil && r.rec != nil {
		return r
	}
	return nil
}

// end states what is lost of the database, for its newest run, and closes the recording.
func (p *project) end(r *run, newest bool) {
	if newest {
		for _, d := range p.lost {
			r.rec.Damage(d)
		}
		if p.more > 0 {
			r.rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: p.span(0, 0), Records: p.more, Text: fmt.Sprintf("runs beyond the first %d are not read", maxRuns)})
		}
	}
	if n := r.alerts - maxNotes; n > 0 {
		r.rec.Run.Notes = append(r.rec.Run.Notes, fmt.Sprintf("%d more alerts", n))
	}
	r.rec.Close()
}

// row reads one row of metrics.
func (p *project) row(r *run, row *sqlitefile.Row, c columns, system bool) {
	body := row.Bytes(c.body)
	at := reader.Place{Line: row.ID, Offset: row.Offset, Length: int32(len(body))}
	step, wall := int64(evidence.None), 0.0
	if c.step >= 0 && row.Kind(c.step) == sqlitefile.Integer {
		step = row.Int(c.step)
	}
	if c.time >= 0 {
		wall = trackiorow.Time(row.Text(c.time))
	}
	list, err := trackiorow.Scalars(body)
	if err != nil {
		r.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: p.span(row.ID, row.Offset), Records: 1, Text: fmt.Sprintf("the metrics of row %d: %v", row.ID, err)})
	}
	for _, x := range list {
		if t := r.rec.Track(x.Key, system, x.Value); t != nil {
			t.Add(step, wall, x.Value, at)
		}
	}
}

// config states the configuration of a run.
func (p *project) config(r *run, row *sqlitefile.Row, c columns) {
	body := row.Bytes(c.body)
	n, err := trackiorow.Object(body)
	if err != nil {
		r.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: p.span(row.ID, row.Offset), Records: 1, Text: fmt.Sprintf("the configuration in row %d: %v", row.ID, err)})
		return
	}
	run := &r.rec.Run
	if wall := trackiorow.Time(n.Str("_Created")); wall > 0 {
		run.Notes = append(run.Notes, "last opened "+reader.StampAt(wall).Written)
	}
	if g := n.Str("_Group"); g != "" {
		run.Notes = append(run.Notes, "group: "+textline.OneLine(g, maxText))
	}
	var walk func(n *jsontree.Node, prefix string, depth int)
	walk = func(n *jsontree.Node, prefix string, depth int) {
		for _, x := range n.Items {
			name := prefix + x.Key
			switch {
			case depth == 0 && slices.Contains([]string{"_Username", "_Created", "_Group"}, x.Key):
			case x.Sort == jsontree.Object && depth < 8 && len(x.Items) > 0:
				walk(x, name+".", depth+1)
			default:
				raw := textline.OneLine(string(body[x.At:min(x.End, x.At+4<<10)]), 4<<10)
				value := raw
				if x.Sort == jsontree.String {
					value = x.Text
				}
				r.rec.Setting(name, value, evidence.Span{Artifact: p.artifact, Kind: "row", Table: "configs", Row: row.ID, Offset: row.Offset, Quote: textline.OneLine(x.Key+": "+raw, maxText)})
			}
		}
	}
	walk(n, "", 0)
}
