package swanlab

import (
	"context"
	"errors"
	"fmt"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/sqlitestore"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// maxStored bounds the runs that are read of the dashboard's database.
const maxStored = 10_000

// An experiment is one row of the dashboard's database:
//
//	experiment  id, project_id, run_id (name of the folder), name, description, status {-1 crashed, 0 running, 1 finished},
//	            version, create_time, finish_time (not in older versions), update_time   times in UTC
//	project     id, name, ...
type experiment struct {
	row, offset, project                                   int64
	id, name, description, version, made, finished, update string
	status                                                 int64
}

// readStore reads the dashboard's database, which lists runs; their points lie in their
// folders.
func (swan) readStore(ctx context.Context, in reader.Input, s reader.Sink) error {
	name := reader.BaseOf(in.Artifact.Path)
	store, err := sqlitestore.Open(ctx, sqlitestore.Files{Name: name, DB: in.At, Size: in.Size, Open: in.Open, Dir: in.Dir})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	damage := func(d sqlitefile.Damage) {
		s.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "record", Offset: d.Offset}, fmt.Errorf("%s: %s", evidence.BadTable, d.Text))
	}
	if err != nil {
		damage(sqlitefile.Damage{Text: err.Error()})
		return nil
	}
	defer store.Close()
	lost := store.Damage()
	for _, d := range lost {
		damage(d)
	}
	t := store.Table("experiment")
	if t.Column("run_id") < 0 || t.Column("status") < 0 {
		if len(lost) > 0 {
			return nil
		}
		return errors.New("a database without the tables of SwanLab's dashboard")
	}
	projects := map[int64]string{}
	if p := store.Table("project"); p.Column("name") >= 0 && p.Column("id") >= 0 {
		id, name := p.Column("id"), p.Column("name")
		if err := store.Scan(ctx, p, func(r *sqlitefile.Row) error {
			if len(projects) < maxStored {
				projects[r.Int(id)] = textline.OneLine(r.Text(name), maxText)
			}
			return nil
		}, damage); err != nil {
			return err
		}
	}
	list, more, err := experiments(ctx, store, t, damage)
	if err != nil {
		return err
	}
	newest := 0
	for i, x := range list {
		if x.update >= list[newest].update {
			newest = i
		}
	}
	for i, x := range list {
		to := s
		if i != newest {
			if to = reader.Apart(s); to == nil {
				continue
			}
		}
		rec := reader.NewRecording(to, tracker, in.Artifact.Path)
		x.state(&rec.Run, projects[x.project], reader.FolderOf(in.Artifact.Path))
		if i == newest && more > 0 {
			rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: rec.Run.StatusSpan, Records: more, Text: fmt.Sprintf("runs beyond the first %d are not read", maxStored)})
		}
		rec.Close()
	}
	return nil
}

// experiments reads the rows of the runs.
func experiments(ctx context.Context, store *sqlitestore.Store, t *sqlitefile.Table, damage func(sqlitefile.Damage)) (list []experiment, more int64, err error) {
	err = store.Scan(ctx, t, func(r *sqlitefile.Row) error {
		if len(list) >= maxStored {
			more++
			return nil
		}
		text := func(column string) string {
			i := t.Column(column)
			if i < 0 {
				return ""
			}
			b := r.Bytes(i)
			return textline.OneLine(string(b[:min(len(b), 4*maxText)]), maxText)
		}
		x := experiment{row: r.ID, offset: r.Offset, id: text("run_id"), name: text("name"), description: text("description"), version: text("version"),
			made: text("create_time"), finished: text("finish_time"), update: text("update_time"), status: r.Int(t.Column("status"))}
		if i := t.Column("project_id"); i >= 0 {
			x.project = r.Int(i)
		}
		list = append(list, x)
		return nil
	}, damage)
	return list, more, err
}

// state puts down what a row says of its run.
func (x *experiment) state(run *evidence.TrackedRun, project, folder string) {
	run.ID, run.Name, run.Project = x.id, x.name, project
	run.Folder = folder + "/" + x.id
	run.Started = reader.StampAt(stamp(x.made))
	switch x.status {
	case 0:
		run.Status, run.StatusSaid = evidence.RunOpen, "running (0)"
	case 1:
		run.Status, run.StatusSaid = evidence.RunFinished, "finished (1)"
	case -1:
		run.Status, run.StatusSaid = evidence.RunCrashed, "crashed (-1)"
	default:
		run.Status, run.StatusSaid = evidence.RunUnknown, fmt.Sprintf("status %d", x.status)
	}
	if x.status != 0 {
		run.Ended = reader.StampAt(stamp(x.finished))
	}
	run.StatusSpan = evidence.Span{Artifact: run.Artifact, Kind: "row", Table: "experiment", Row: x.row, Offset: x.offset, Quote: fmt.Sprintf("run_id %s, status %d", x.id, x.status)}
	run.Cannot = []string{"Any value: the dashboard's database lists runs, whose points lie in the files of their folders."}
	if x.version != "" {
		run.Notes = append(run.Notes, "SwanLab "+x.version)
	}
	if x.description != "" {
		run.Notes = append(run.Notes, "description: "+x.description)
	}
}
