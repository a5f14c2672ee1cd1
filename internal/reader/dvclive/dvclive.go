// Package dvclive reads the folder of DVCLive, dvclive/ unless it was named:
//
//	plots/metrics/<name>.tsv  a table for each metric: [timestamp (ms),] step, <base of the name>; a name has folders as parts
//	metrics.json              the last values, nested by the parts of the names, and step; text where not finite
//	params.yaml               the parameters
//
// Each row of a table is written and closed at once, so that a kill costs no more than a cut line. A row has a
// timestamp where the call asked for one, whatever the header says. Values that are not finite are nan, inf
// and -inf; a text is no value. Source: dvclive 3.49, plots/metric.py, live.py and monitor_system.py.
package dvclive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsonline"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/plainyaml"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	tracker  = "dvclive"
	tables   = "plots/metrics/" // below the folder
	summary  = "metrics.json"
	params   = "params.yaml"
	system   = "system/" // begins the names of measurements of the machine
	maxFile  = 16 << 20
	maxRow   = 4 << 10
	maxText  = 512
	maxNotes = 64
)

// New returns the reader.
func New() reader.Reader { return live{} }

type live struct{}

func (live) Name() string { return tracker }

// Sniff implements reader.Reader. The names of summary and parameters are those of many other
// files: they count in a folder that is called after DVCLive.
func (live) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	at := reader.PlaceOf(a.Path)
	if name, _, ok := split(at); ok {
		first, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\ufeff")), []byte("\n"))
		if header(string(first), path.Base(name)) {
			return reader.Sure
		}
		return reader.No
	}
	if path.Base(at) == summary && strings.Contains(path.Base(path.Dir(at)), tracker) && bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
		return reader.Sure
	}
	return reader.No
}

// split returns the name of the metric of a table, and the folder that it lies in; the path
// has slashes only.
func split(at string) (name, folder string, ok bool) {
	stem, ok := strings.CutSuffix(at, ".tsv")
	i := strings.LastIndex("/"+stem, "/"+tables)
	if !ok || i < 0 {
		return "", "", false
	}
	return stem[i+len(tables):], strings.TrimSuffix(stem[:i], "/"), true
}

// header reports whether a line is the header of the table of a metric.
func header(line, base string) bool {
	cols := strings.Split(strings.TrimRight(line, "\r"), "\t")
	n := len(cols)
	return (n == 2 || n == 3 && cols[0] == "timestamp") && cols[n-2] == "step" && strings.Trim(cols[n-1], `"`) == base
}

// Anchor implements reader.Gatherer: the parameters belong to the summary.
func (live) Anchor(at string) (dir, pattern string, ok bool) {
	if path.Base(at) == params && strings.Contains(path.Base(path.Dir(at)), tracker) {
		return path.Dir(at), summary, true
	}
	return "", "", false
}

// Read implements reader.Reader.
func (live) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open DVCLive file: %w", err)
	}
	defer rc.Close()
	src := reader.Stopping(ctx, rc)
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	rec.Run.Status = evidence.RunUnknown
	rec.Run.Cannot = []string{"How the run ended: DVCLive's folder has no status, no exit code and no console output."}
	if name, _, ok := split(reader.PlaceOf(in.Artifact.Path)); ok {
		// The folder as it is called: the same number of bytes before the tables.
		rec.Run.Folder = strings.TrimRight(in.Artifact.Path[:len(in.Artifact.Path)-len(tables)-len(name)-len(".tsv")], "/!")
		err = table(ctx, src, rec, name)
	} else {
		if i := strings.LastIndexAny(in.Artifact.Path, "/!"); i > 0 {
			rec.Run.Folder = in.Artifact.Path[:i]
		}
		err = last(ctx, src, in.Dir, rec)
	}
	if err != nil {
		return err
	}
	if rec.Run.Folder == "" {
		rec.Run.Folder = "."
	}
	rec.Close()
	return nil
}

var errRow = errors.New("no row of a step and a value")

// table reads the table of a metric.
func table(ctx context.Context, src io.Reader, rec *reader.Recording, name string) error {
	shown := textline.OneLine(name, maxText)
	return jsonline.Each(ctx, src, maxRow, func(l jsonline.Line) error {
		text := string(l.Text)
		if header(text, path.Base(name)) { // again where a folder was written anew
			return nil
		}
		step, wall, v, number, err := row(text)
		if l.Long {
			err = errors.New("a row of more than 4 KiB")
		}
		if err == nil && !l.Ended {
			err = errRow // the value may go on
		}
		if err != nil {
			kind := evidence.BadLine
			if !l.Ended {
				kind, err = evidence.TruncatedTail, errors.New("the table ends within a row")
			}
			rec.Damage(evidence.RunDamage{Kind: kind, Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Record: l.N, Offset: l.Offset, Length: l.Size, Quote: textline.OneLine(text, maxText)}, Bytes: l.Size, Records: 1, Text: err.Error()})
			return nil
		}
		if !number {
			return nil
		}
		if t := rec.Track(shown, strings.HasPrefix(name, system), v); t != nil {
			t.Add(step, wall, v, reader.Place{Line: l.N, Offset: l.Offset, Length: int32(l.Size)})
		}
		return nil
	})
}

// row reads step and value, the last two fields of a row, and the time before them. number is
// false for a text.
func row(text string) (step int64, wall, v float64, number bool, err error) {
	cols := strings.Split(strings.TrimRight(text, "\r"), "\t")
	n := len(cols)
	if n != 2 && n != 3 {
		return 0, 0, 0, false, errRow
	}
	if step, err = strconv.ParseInt(cols[n-2], 10, 64); err != nil {
		return 0, 0, 0, false, errRow
	}
	if n == 3 {
		ms, err := strconv.ParseFloat(cols[0], 64)
		if err != nil {
			return 0, 0, 0, false, errRow
		}
		wall = ms / 1e3
	}
	v, err = strconv.ParseFloat(cols[n-1], 64)
	return step, wall, v, err == nil || math.IsInf(v, 0), nil
}

// last reads the summary and, beside it, the parameters.
func last(ctx context.Context, src io.Reader, dir fs.FS, rec *reader.Recording) error {
	rec.Run.Cannot = append(rec.Run.Cannot, "Any value but the last of each metric from "+summary+" alone: the tables in "+tables+" have the others.")
	data, err := io.ReadAll(io.LimitReader(src, maxFile))
	if err != nil {
		return err
	}
	n, _, err := jsontree.Parse(data, 0, nil)
	if err != nil && len(bytes.TrimSpace(data)) > 0 {
		rec.Damage(evidence.RunDamage{Kind: evidence.TruncatedTail, Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "pointer", Offset: int64(len(data))}, Text: "the summary: " + err.Error()})
	}
	var bad []string
	var walk func(n *jsontree.Node, prefix string, depth int)
	walk = func(n *jsontree.Node, prefix string, depth int) {
		for name, x := range n.Pairs() {
			switch {
			case x.Sort == jsontree.Object && depth < 32:
				walk(x, prefix+name+"/", depth+1)
			case depth == 0 && name == "step":
				rec.Run.Notes = append(rec.Run.Notes, "last step "+textline.OneLine(x.Text, maxText))
			case slices.Contains([]string{"nan", "inf", "-inf", "NaN", "Infinity", "-Infinity"}, x.Text) && len(bad) < maxNotes:
				bad = append(bad, textline.OneLine(prefix+name+" is "+x.Text, maxText))
			}
		}
	}
	walk(n, "", 0)
	for _, b := range bad {
		rec.Run.Notes = append(rec.Run.Notes, "at the end "+b)
	}
	if dir == nil {
		return ctx.Err()
	}
	f, err := dir.Open(params)
	if err != nil {
		return ctx.Err()
	}
	data, err = io.ReadAll(io.LimitReader(reader.Stopping(ctx, f), maxFile))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	artifact := strings.TrimSuffix(rec.Run.Artifact, summary) + params
	items, passed := plainyaml.Parse(data)
	for _, i := range items {
		rec.Setting(textline.OneLine(i.Name(), maxText), i.Value, evidence.Span{Artifact: artifact, Kind: "pointer", Pointer: textline.OneLine(i.Name(), maxText), Line: int64(i.Line), Offset: int64(i.Offset), Length: int64(i.Length),
			Quote: textline.OneLine(string(data[i.Offset:i.Offset+i.Length]), maxText)})
	}
	if passed > 0 {
		rec.Damage(evidence.RunDamage{Kind: evidence.BadLine, Span: evidence.Span{Artifact: artifact, Kind: "pointer"}, Records: int64(passed), Text: fmt.Sprintf("%d lines of the parameters are not understood", passed)})
	}
	return nil
}
