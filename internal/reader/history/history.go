// Package history reads the metric files that trainers and light-weight loggers leave
// beside a log, and the exports of trackers: transformers' trainer_state.json, JSON lines
// (MMEngine's scalars.json, mmcv's .log.json, Ray Tune's result.json, LLaMA-Factory's
// trainer_log.jsonl, histories of W&B), JSON downloads (TensorBoard's triples, MLflow's
// metrics/get-history) and tables (Lightning's and Keras' CSVLogger, Ultralytics, panel exports of W&B,
// downloads of TensorBoard). How they are written down and what their columns mean is
// known to internal/format/rows.
package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

// New returns the reader of metric files.
func New() reader.Gatherer { return history{} }

type history struct{}

func (history) Name() string { return "history" }

// Sniff claims a JSON object with a log_history, lines of JSON objects that
// hold a step and a metric, tables whose header does, and what lies beside them by its
// name.
func (history) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if companion(baseOf(a.Path), head) {
		return reader.Likely
	}
	switch ok, sure := claims(a.Path, head); {
	case !ok:
		return reader.No
	case sure:
		return reader.Sure
	default:
		return reader.Likely
	}
}

func baseOf(name string) string {
	return strings.ToLower(reader.BaseOf(name))
}

// companion reports whether a file is none of rows and belongs to one: settings, or Ray's mark
// of a trial that failed, whose text is in error.txt.
func companion(base string, head []byte) bool {
	switch base {
	case "hparams.yaml":
		return len(head) > 0 && !bytes.HasPrefix(head, []byte("{"))
	case "params.json":
		return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	case "error.pkl":
		return len(head) > 1 && head[0] == 0x80
	}
	return false
}

var stamped = lazyre.New(`^\d{8}_\d{6}\.json$`)

// Anchor gives hparams.yaml to Lightning's table, the other files of a Ray trial to
// its result.json, and the second copy of MMEngine's scalars to the first.
func (history) Anchor(place string) (dir, pattern string, ok bool) {
	dir, base := path.Dir(place), path.Base(place)
	switch {
	case base == "hparams.yaml":
		return dir, "metrics.csv", true
	case base == "params.json", base == "progress.csv", base == "error.pkl":
		return dir, "result.json", true
	case path.Base(dir) == "vis_data" && stamped.MatchString(base):
		return dir, "scalars.json", true
	}
	return "", "", false
}

// claims reports whether the first bytes of a file are rows of metrics. sure is false where
// only name and columns together speak for it.
func claims(name string, head []byte) (ok, sure bool) {
	form, _ := rows.FormOf(name, head)
	switch form {
	case rows.Document:
		return true, true
	case rows.Lines:
		return claimsLines(baseOf(name), head)
	case rows.Table:
		return claimsTable(baseOf(name), head)
	}
	return false, false
}

// metric reports whether a lower-case key names a quantity of training.
func metric(key string) bool {
	_, ok := reader.AliasOf(key)
	return ok || reader.LossLike(key)
}

func stepName(key string) bool {
	for _, n := range rows.StepNames {
		if key == n {
			return true
		}
	}
	return false
}

// claimsLines judges JSON lines by the keys of the first objects.
func claimsLines(base string, head []byte) (ok, sure bool) {
	steps, metrics, objects := 0, 0, 0
	if at := bytes.LastIndexByte(head, ','); at > 2048 && bytes.IndexByte(head, '\n') < 0 {
		// The first object is longer than what was read: its whole members speak.
		head = append(bytes.Clone(head[:at]), '}')
	}
	d := rows.NewDecoder(bytes.NewReader(head), rows.Lines, "")
	for objects < 3 {
		p, err := d.Next()
		if err != nil {
			break
		}
		if p.Kind == rows.Between {
			continue
		}
		if p.Kind == rows.Bad && !(objects == 0 && errors.Is(p.Err, rows.ErrTorn)) || p.Line+int64(bytes.Count(p.Raw, []byte("\n"))) > int64(objects)+2 {
			break
		}
		objects++
		step, value := false, false
		for i := range p.Cells {
			c := &p.Cells[i]
			key := strings.ToLower(c.Name)
			if c.Number {
				step = step || stepName(key)
				value = value || metric(key) || key == "value" && len(p.Cells) < 8
			}
		}
		if step {
			steps++
		}
		if value {
			metrics++
		}
		if p.Kind == rows.Bad {
			break
		}
	}
	lines := strings.HasSuffix(base, ".jsonl") || strings.HasSuffix(base, ".ndjson") || strings.HasSuffix(base, ".log.json") || base == "scalars.json" || base == "result.json"
	switch {
	case objects == 0:
		return false, false
	case steps > 0 && metrics > 0:
		return true, true
	case lines && (steps > 0 || metrics > 0) || strings.HasSuffix(base, ".log.json"):
		return true, false
	}
	return false, false
}

// claimsTable judges a table by its header.
func claimsTable(base string, head []byte) (ok, sure bool) {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n\x00")
	line, _, whole := bytes.Cut(text, []byte("\n"))
	delim := rows.Delimiter(line)
	ext := strings.HasSuffix(base, ".csv") || strings.HasSuffix(base, ".tsv")
	if delim == 0 {
		return false, false
	}
	if !whole && len(text) > 2048 {
		// A header longer than what was read, of hundreds of metrics: its whole cells speak.
		if !ext {
			return false, false
		}
		text = line[:bytes.LastIndexByte(line, delim)]
	}
	d := rows.NewDecoder(bytes.NewReader(text), rows.Table, "")
	p, err := d.Next()
	if err != nil || p.Kind != rows.Header {
		return false, false
	}
	step, value := false, false
	for i := range p.Cells {
		key := strings.ToLower(p.Cells[i].Name)
		if i := strings.LastIndex(key, " - "); i >= 0 {
			key = key[i+3:] // of a panel export
		}
		if strings.ContainsAny(key, "[]{}|:") || len(key) > 200 {
			return false, false
		}
		step = step || stepName(key) || key == "epoch"
		value = value || metric(key) || key == "value"
	}
	switch {
	case step && value && (ext || delim != ' '):
		return true, true
	case ext && step:
		return true, false
	}
	return false, false
}

// Read streams the file into s.
func (history) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	b := bufio.NewReaderSize(reader.Stopping(ctx, f), 1<<16)
	head, err := b.Peek(4096)
	if len(head) == 0 {
		if err == io.EOF {
			err = nil
		}
		return err
	}
	if companion(baseOf(in.Artifact.Path), head) {
		return readAlone(b, in.Artifact.Path, s)
	}
	form, member := rows.FormOf(in.Artifact.Path, head)
	if form == rows.None {
		form = rows.Lines
	}
	r := &reading{artifact: in.Artifact.Path, ctx: ctx, in: in}
	r.out = reader.NewRows(s, in.Artifact.Path, rows.NewLayout(in.Artifact.Path, form, member))
	r.out.Opened = r.opened
	d := rows.NewDecoder(b, form, member)
	for {
		p, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		r.piece(p)
	}
	r.close()
	return nil
}

// A reading is the state of one Read.
type reading struct {
	ctx      context.Context
	in       reader.Input
	artifact string
	out      *reader.Rows
	p        *rows.Piece // the present one
	bad      int64       // records that could not be read
	zeros    int64       // NUL bytes behind the last row
	done     bool        // Ray: the last row says done
	doneAt   evidence.Span
}

func (r *reading) piece(p *rows.Piece) {
	r.p = p
	if p.Kind != rows.Between {
		r.zeros = 0
	}
	switch p.Kind {
	case rows.Between:
		r.zeros += int64(bytes.Count(p.Raw, []byte{0}))
	case rows.Header:
		r.out.Layout.Header(p.Cells)
	case rows.Member:
		r.member(&p.Cells[0])
	case rows.Row:
		if p.Err != nil {
			r.damage(evidence.OverBound, p.Err)
		}
		r.out.Add(p.Cells, r.place, r.span)
		if r.out.Layout.Tracker == "ray" {
			r.trial(p.Cells)
		}
	case rows.Bad:
		r.lost(p)
	}
}

// lost notes a piece that cannot be read. Of many lines the first is damage and the others
// are counted.
func (r *reading) lost(p *rows.Piece) {
	switch {
	case errors.Is(p.Err, rows.ErrTorn):
		r.damage(evidence.TruncatedTail, p.Err)
	case errors.Is(p.Err, rows.ErrLong):
		r.damage(evidence.OverBound, p.Err)
	default:
		if r.bad++; r.bad == 1 {
			r.damage(evidence.BadLine, p.Err)
		}
	}
}

func (r *reading) damage(kind evidence.DamageKind, err error) {
	r.out.Damage(evidence.RunDamage{Kind: kind, Span: evidence.Span{Artifact: r.artifact, Kind: "text", Line: r.p.Line, Offset: r.p.Offset}, Text: err.Error(), Bytes: int64(len(r.p.Raw)), Records: 1})
}

func (r *reading) place(c *rows.Cell) reader.Place {
	offset, line, _, quote := r.p.Place(c)
	return reader.Place{Line: line, Offset: offset, Length: int32(len(quote))}
}

func (r *reading) span(c *rows.Cell) evidence.Span {
	offset, line, column, quote := r.p.Place(c)
	return evidence.Span{Artifact: r.artifact, Kind: "text", Line: line, Column: column, Offset: offset, Length: int64(len(quote)), Quote: string(quote)}
}

// close states what shows at the end alone.
func (r *reading) close() {
	at := evidence.Span{Artifact: r.artifact, Kind: "text"}
	if r.bad > 1 {
		r.out.Damage(evidence.RunDamage{Kind: evidence.BadLine, Span: at, Text: fmt.Sprintf("%d more lines are not records of the format", r.bad-1), Records: r.bad - 1})
	}
	if r.zeros > 0 {
		r.out.Damage(evidence.RunDamage{Kind: evidence.ZeroFill, Span: at, Text: fmt.Sprintf("%d zero bytes at the end", r.zeros), Bytes: r.zeros})
	}
	if n := r.out.Layout.EpochLength(); n > 0 {
		r.out.Each(func(rec *reader.Recording) {
			rec.Run.Cannot = append(rec.Run.Cannot, fmt.Sprintf("Iterations begin anew in each epoch: steps are (epoch - 1) x %d + iteration, by the highest iteration that was logged, and may be too low.", n))
		})
	}
	if r.out.Layout.Tracker == "ray" {
		r.out.Each(r.trialStatus)
	}
	r.out.Close()
}
