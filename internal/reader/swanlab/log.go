package swanlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/swanrecord"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// Bounds of one log.
const (
	maxColumns = 1 << 16 // of the machine
	maxNames   = 1 << 12 // of series that are remembered
	maxText    = 1 << 10 // bytes of a name or word that is kept
	maxError   = 64 << 10
)

// A logFile is a record log while it is read.
type logFile struct {
	rec     *reader.Recording
	console reader.Console
	system  map[string]bool   // keys of columns that are measurements of the machine
	names   map[string]string // of series by their keys
	media   int64             // records of images, texts, ... which are no series
	ended   bool
}

// readLog reads a record log of version 1 or 2.
func (r swan) readLog(ctx context.Context, in reader.Input, src io.Reader, s reader.Sink) error {
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	rec.Run.Folder = reader.FolderOf(in.Artifact.Path)
	l := &logFile{rec: rec, system: map[string]bool{}, names: map[string]string{}}
	records := leveldblog.NewReader(src, ident)
	for n := int64(1); ; {
		x, err := records.Next()
		var d *leveldblog.Damage
		switch {
		case err == io.EOF:
			return l.finish(ctx, r.log, in, records.Version())
		case errors.As(err, &d):
			rec.Damage(evidence.RunDamage{Kind: evidence.DamageKind(d.Kind), Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Record: n, Offset: d.Offset, Length: d.Bytes}, Text: d.Text, Bytes: d.Bytes})
			continue
		case err != nil:
			return err
		}
		at := reader.Place{Line: n, Offset: x.Offset, Length: int32(x.Length)}
		n++
		switch records.Version() {
		case 1:
			err = l.backup(x.Data, at)
		case 2:
			err = l.record(x.Data, at)
		default:
			return fmt.Errorf("a SwanLab log of version %d: 1 and 2 are known", records.Version())
		}
		if err != nil {
			rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: l.span(at, ""), Text: err.Error(), Records: 1})
		}
	}
}

func (l *logFile) span(at reader.Place, quote string) evidence.Span {
	return evidence.Span{Artifact: l.rec.Run.Artifact, Kind: "record", Record: at.Line, Offset: at.Offset, Length: int64(at.Length), Quote: quote}
}

// finish reads the console output and states the run.
func (l *logFile) finish(ctx context.Context, log reader.Reader, in reader.Input, version byte) error {
	run := &l.rec.Run
	settings(in.Dir, run.Folder, l.rec)
	if version == 1 {
		if id := folderID(run.Folder); id != "" {
			run.ID = id // as the dashboard's database has it, in which the run may be too
		}
		run.Cannot = append(run.Cannot, "The sign of an infinity: this version of SwanLab stores both as INF.",
			"What was logged at a step that a series had already: the SDK overwrites or drops it.")
	} else {
		run.Cannot = append(run.Cannot, "What was logged at a step that a series had already, or before it: the SDK drops it.")
	}
	if !l.ended {
		run.Status = evidence.RunOpen
		run.Cannot = append(run.Cannot, "The last moments before a kill: records are written through a buffer, and nothing says that the run ended.")
	}
	if l.media > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("%d records of media", l.media))
	}
	if err := l.console.Read(ctx, log, l.rec); err != nil {
		return err
	}
	l.rec.Close()
	return nil
}

func (l *logFile) note(name, text string) {
	if text != "" && len(l.rec.Run.Notes) < 64 {
		l.rec.Run.Notes = append(l.rec.Run.Notes, name+": "+textline.OneLine(text, maxText))
	}
}

// record reads a record of version 2 (format/swanrecord), and in it
//
//	StartRecord   1 project · 2 workspace · 4 name · 5 description · 6 tags · 7 group · 8 job_type · 10 id ·
//	              11 resume {0 never, 1 allow, 2 must} · 12 started_at
//	FinishRecord  1 state {0 running, 1 finished, 2 crashed, 3 aborted} · 2 error · 3 finished_at
//	ColumnRecord  1 class {1 custom, 2 system} · 2 type {1 scalar} · 3 key
//	LogRecord     1 line, without its end · 2 level · 3 timestamp · 4 epoch
func (l *logFile) record(data []byte, at reader.Place) error {
	x, err := swanrecord.Decode(data)
	if err != nil {
		return err
	}
	switch x.Kind {
	case swanrecord.Start:
		return l.start(x.Body, x.Wall)
	case swanrecord.Finish:
		return l.end(x.Body, x.Wall, at)
	case swanrecord.Column:
		return l.column(x.Body)
	case swanrecord.Scalar:
		p, err := x.Point()
		if err == nil {
			l.add(l.name(p.Key), p.Step, p.Wall, p.Value, at)
		}
		return err
	case swanrecord.Media:
		l.media++
	case swanrecord.Log:
		return l.line(x.Body, x.Wall, at)
	}
	return nil
}

func (l *logFile) start(data []byte, wall float64) error {
	run := &l.rec.Run
	var tags []string
	var description, group, job string
	m := protowire.Decode(data)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			run.Project = swanrecord.Name(m.Bytes())
		case 2<<3 | protowire.Bytes:
			if w := swanrecord.Name(m.Bytes()); w != "" {
				l.note("workspace", w)
			}
		case 4<<3 | protowire.Bytes:
			run.Name = swanrecord.Name(m.Bytes())
		case 5<<3 | protowire.Bytes:
			description = swanrecord.Name(m.Bytes())
		case 6<<3 | protowire.Bytes:
			if len(tags) < 64 {
				tags = append(tags, swanrecord.Name(m.Bytes()))
			}
		case 7<<3 | protowire.Bytes:
			group = swanrecord.Name(m.Bytes())
		case 8<<3 | protowire.Bytes:
			job = swanrecord.Name(m.Bytes())
		case 10<<3 | protowire.Bytes:
			run.ID = swanrecord.Name(m.Bytes())
		case 12<<3 | protowire.Bytes:
			wall = swanrecord.Time(m.Bytes())
		}
	}
	run.Started = reader.StampAt(wall)
	l.note("description", description)
	l.note("tags", strings.Join(tags, ", "))
	l.note("group", group)
	l.note("job type", job)
	return m.Err()
}

var states = []struct {
	said   string
	status evidence.RunStatus
}{
	{"RUNNING", evidence.RunOpen}, {"FINISHED", evidence.RunFinished}, {"CRASHED", evidence.RunCrashed}, {"ABORTED", evidence.RunKilled},
}

func (l *logFile) end(data []byte, wall float64, at reader.Place) error {
	run := &l.rec.Run
	state := uint64(0)
	var failure []byte
	m := protowire.Decode(data)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			state = m.Uint()
		case 2<<3 | protowire.Bytes:
			failure = m.Bytes()
		case 3<<3 | protowire.Bytes:
			wall = swanrecord.Time(m.Bytes())
		}
	}
	if l.ended { // the first one counts, as when SwanLab itself reads the file
		return m.Err()
	}
	l.ended = true
	run.Ended = reader.StampAt(wall)
	run.Status, run.StatusSaid = evidence.RunUnknown, fmt.Sprintf("state %d", state)
	if state < uint64(len(states)) {
		run.Status, run.StatusSaid = states[state].status, states[state].said
	}
	run.StatusSpan = l.span(at, "state "+run.StatusSaid)
	if len(failure) > 0 {
		l.console.Add(append(failure[:min(len(failure), maxError):min(len(failure), maxError)], '\n'), at, wall)
	}
	return m.Err()
}

func (l *logFile) column(data []byte) error {
	class := uint64(0)
	key := ""
	m := protowire.Decode(data)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Varint:
			class = m.Uint()
		case 3<<3 | protowire.Bytes:
			key = swanrecord.Name(m.Bytes())
		}
	}
	if class == 2 && len(l.system) < maxColumns {
		l.system[key] = true
	}
	return m.Err()
}

// name is a key as it is shown, remembered for the points that follow.
func (l *logFile) name(key []byte) string {
	name, ok := l.names[string(key)]
	if !ok {
		if name = swanrecord.Name(key); len(l.names) < maxNames && len(key) <= maxText {
			l.names[string(key)] = name
		}
	}
	return name
}

// add puts down one point.
func (l *logFile) add(key string, step int64, wall, v float64, at reader.Place) {
	if t := l.rec.Track(key, l.system[key] || strings.HasPrefix(key, systemPrefix), v); t != nil {
		t.Add(step, wall, v, at)
	}
}

func (l *logFile) line(data []byte, wall float64, at reader.Place) error {
	var line []byte
	m := protowire.Decode(data)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			line = m.Bytes()
		case 3<<3 | protowire.Bytes:
			wall = swanrecord.Time(m.Bytes())
		}
	}
	l.console.Add(append(line[:len(line):len(line)], '\n'), at, wall)
	return m.Err()
}
