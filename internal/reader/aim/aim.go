// Package aim reads the list of runs of an Aim repository: .aim/run_metadata.sqlite
// (aim/storage/structured/sql_engine/models.py of Aim 3). The values that runs logged lie
// beside it in RocksDB, which is not read; whoever wants them exports them.
package aim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// New returns the reader.
func New() reader.Reader { return aim{} }

type aim struct{}

func (aim) Name() string { return "aim" }

// Bounds of a repository.
const (
	maxRuns  = 10_000
	maxNames = 100_000
	maxText  = 200 // bytes of a name or note
	maxNotes = 64
)

// Export is a line of Python that writes the values of a repository to a CSV file.
const Export = `python -c "import aim; aim.Repo('.').query_metrics('True').dataframe().to_csv('aim.csv')"`

// Sniff knows the database by its name and its tables, as far as its first page shows
// them.
func (aim) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if !bytes.HasPrefix(head, []byte(sqlitefile.Magic)) {
		return reader.No
	}
	tables, whole := sqlitefile.TablesIn(head)
	named := path.Base(strings.ReplaceAll(reader.PlaceOf(a.Path), `\`, "/")) == "run_metadata.sqlite"
	switch {
	case tables["run"] && tables["experiment"] && tables["note"], named && (!whole || tables["run"]):
		return reader.Sure
	}
	return reader.No
}

// Anchor gives the files that SQLite keeps beside a database to it.
func (aim) Anchor(p string) (dir, pattern string, ok bool) {
	if db, ok := sqlitefile.Companion(p); ok {
		return path.Dir(db), strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path.Base(db)), true
	}
	return "", "", false
}

// A run is one row of the table of runs.
type run struct {
	id  int64
	is  evidence.TrackedRun
	rec *reader.Recording
}

// Read lists the runs.
func (aim) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	name := path.Base(strings.ReplaceAll(reader.PlaceOf(in.Artifact.Path), `\`, "/"))
	db, err := sqlitestore.Open(ctx, sqlitestore.Files{Name: name, DB: in.At, Size: in.Size, Open: in.Open, Dir: in.Dir})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if in.At != nil && in.Size >= 0 && in.Size < 4096 {
			s.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "block", Length: in.Size}, errors.New(string(evidence.TruncatedTail)+": "+err.Error()))
			return nil
		}
		return err
	}
	return errors.Join(list(ctx, db, in.Artifact.Path, s), db.Close())
}

func list(ctx context.Context, db *sqlitestore.Store, artifact string, s reader.Sink) error {
	damage := func(d sqlitefile.Damage) {
		s.Damage(evidence.Span{Artifact: artifact, Kind: "block", Offset: d.Offset, Record: int64(d.Page)}, errors.New(string(evidence.BadTable)+": "+textline.OneLine(d.Text, maxText)))
	}
	for _, d := range db.Damage() {
		damage(d)
	}
	if db.Table("run") == nil {
		if len(db.Damage()) > 0 {
			return nil
		}
		return errors.New("is a SQLite database, but not Aim's: it has no table run")
	}
	if db.LostLog() {
		s.Damage(evidence.Span{Artifact: artifact, Kind: "block"}, errors.New(string(evidence.MissingLog)+": the write-ahead log (-wal) is missing although the index of one (-shm) is there: the last transactions are lost"))
	}
	names := func(table, key, value string) (map[int64]string, error) {
		got := map[int64]string{}
		t := db.Table(table)
		if t == nil {
			return got, nil
		}
		return got, db.Scan(ctx, t, func(r *sqlitefile.Row) error {
			t := db.Table(table)
			if k, v := t.Column(key), t.Column(value); k >= 0 && v >= 0 && len(got) < maxNames {
				got[r.Int(k)] = textline.OneLine(r.Text(v), maxText)
			}
			return nil
		}, damage)
	}
	experiments, err := names("experiment", "id", "name")
	if err != nil {
		return err
	}
	tags, err := names("tag", "id", "name")
	if err != nil {
		return err
	}
	runs, err := rows(ctx, db, artifact, s, experiments, damage)
	if err != nil {
		return err
	}
	byID := map[int64]*run{}
	for _, r := range runs {
		byID[r.id] = r
	}
	add := func(table, column string, text func(r *sqlitefile.Row, at int) string) error {
		t := db.Table(table)
		if t == nil {
			return nil
		}
		return db.Scan(ctx, t, func(r *sqlitefile.Row) error {
			t := db.Table(table)
			k, v := t.Column("run_id"), t.Column(column)
			if k < 0 || v < 0 {
				return nil
			}
			if run := byID[r.Int(k)]; run != nil && len(run.rec.Run.Notes) < maxNotes {
				run.rec.Run.Notes = append(run.rec.Run.Notes, text(r, v))
			}
			return nil
		}, damage)
	}
	if err := add("run_tag", "tag_id", func(r *sqlitefile.Row, at int) string { return "tag " + tags[r.Int(at)] }); err != nil {
		return err
	}
	if err := add("note", "content", func(r *sqlitefile.Row, at int) string {
		return textline.OneLine("note: "+string(r.Bytes(at)), maxText)
	}); err != nil {
		return err
	}
	for _, r := range runs {
		r.rec.Close()
	}
	return nil
}

// rows reads the table of runs. The newest, the last one, is what the diagnosis hears of.
func rows(ctx context.Context, db *sqlitestore.Store, artifact string, s reader.Sink, experiments map[int64]string, damage func(sqlitefile.Damage)) ([]*run, error) {
	var runs []*run
	more := 0
	err := db.Scan(ctx, db.Table("run"), func(r *sqlitefile.Row) error {
		t := db.Table("run")
		text := func(column string) string {
			if i := t.Column(column); i >= 0 {
				return textline.OneLine(r.Text(i), maxText)
			}
			return ""
		}
		number := func(column string) int64 {
			if i := t.Column(column); i >= 0 {
				return r.Int(i)
			}
			return 0
		}
		if len(runs) >= maxRuns {
			runs = runs[1:]
			more++
		}
		x := &run{id: number("id"), is: evidence.TrackedRun{Tracker: "aim", Artifact: artifact, Keeps: evidence.KeepsAll}}
		runs = append(runs, x)
		to := &x.is
		to.ID, to.Name, to.Project, to.Folder = text("hash"), text("name"), experiments[number("experiment_id")], path.Dir(artifact)
		to.Started, to.Ended = stamp(text("created_at")), stamp(text("finalized_at"))
		to.Cannot = append(to.Cannot, "What the run logged lies in RocksDB and is not read; in the folder that holds .aim, "+Export+" exports it as a table that inquest reads.",
			"Whether a run without an end is alive or was killed.")
		to.Status = evidence.RunOpen
		quote := "run " + to.ID + " has no time of an end"
		if to.Ended.Known() {
			to.Status = evidence.RunFinished
			quote = "run " + to.ID + " was ended at " + to.Ended.Written
		}
		to.StatusSpan = evidence.Span{Artifact: artifact, Kind: "row", Table: "run", Row: r.ID, Offset: r.Offset, Quote: quote}
		if number("is_archived") != 0 {
			to.Notes = append(to.Notes, "archived in Aim")
		}
		if d := text("description"); d != "" {
			to.Notes = append(to.Notes, "description: "+d)
		}
		return nil
	}, damage)
	if more > 0 {
		s.Damage(evidence.Span{Artifact: artifact, Kind: "block", Table: "run"}, fmt.Errorf("%s: more than %d runs; %d older ones are not listed", evidence.OverBound, maxRuns, more))
	}
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	apart := reader.Apart(s)
	if apart == nil {
		runs = runs[len(runs)-1:]
	}
	for i, r := range runs {
		to := s
		if i < len(runs)-1 {
			to = apart
		}
		r.rec = reader.NewRecording(to, "aim", artifact)
		r.rec.Run = r.is
	}
	return runs, nil
}

// stamp reads a time as SQLAlchemy writes it, which Aim keeps in UTC.
func stamp(text string) evidence.Stamp {
	t, err := time.Parse("2006-01-02 15:04:05.999999", text)
	if err != nil {
		return evidence.Stamp{}
	}
	return reader.StampAt(float64(t.UnixMicro()) / 1e6)
}
