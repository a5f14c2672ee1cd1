// Package slurm reads what the commands and daemons of Slurm 17.11 to 25.05 print
// about a job: sacct (columns, -P, -p, --json), scontrol show job and node,
// squeue, sinfo -R, seff, job scripts, the environment of a job, and the logs of slurmctld and slurmd.
// What slurmstepd and srun print into the job's own log is the business of the
// reader of logs.
//
// A row of accounting is a job_record. Where the state of the job says by itself
// how it ended (OUT_OF_MEMORY, TIMEOUT, DEADLINE, NODE_FAIL, BOOT_FAIL,
// PREEMPTED, CANCELLED, FAILED with a code or signal), the row that says it
// nearest is that event as well: once for each job, and only where the table is
// about one job or the artifact is known to belong to one. Times are the
// cluster's local time; Slurm prints no zone.
package slurm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxLine  = 64 << 10 // bytes of a line that are looked at
	maxQuote = 1024     // bytes of a line kept as a quote
	maxRows  = 8192     // rows of accounting that are held against each other
	maxJSON  = 64 << 20 // bytes of a JSON document
	headFull = 4000     // a head of this length means that more follows
)

var errLongLine = errors.New("over limit: line longer than 64 KiB")

// New returns the reader.
func New() reader.Reader { return slurm{} }

type slurm struct{}

func (slurm) Name() string { return "slurm" }

// Tabular marks the tables here as such that stand inside job logs too.
func (slurm) Tabular() {}

// Sniff claims job scripts, JSON of the commands, and texts of which nearly every
// line of the head is one of a known table or daemon. A long file named like
// a job's log is left to the reader of logs, unless a daemon wrote it.
func (slurm) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if len(head) == 0 || strings.IndexByte(string(head), 0) >= 0 {
		return reader.No
	}
	text := strings.TrimPrefix(string(head), "\xef\xbb\xbf")
	switch {
	case strings.HasPrefix(text, "#!"):
		if strings.Contains(text, "\n#SBATCH ") {
			return reader.Sure
		}
		return reader.No
	case isJSON(text):
		return reader.Sure
	}
	full := len(head) >= headFull
	lines := strings.Split(text, "\n")
	if full {
		lines = lines[:len(lines)-1] // the last one is cut
	}
	p := newParser(discard{}, evidence.Artifact{Path: a.Path})
	taken, all, daemon := 0, 0, 0
	env := strings.Contains(text, "\nSLURM_JOB_ID=")
	for i, s := range lines {
		if strings.TrimSpace(s) == "" {
			continue
		}
		all++
		l := line{raw: s, text: textline.Clean(s), num: int64(i + 1)}
		if isDaemon(l.text) {
			daemon++
		}
		if p.feed(l) || env && assignment.MatchString(l.text) {
			taken++
		}
		if p.tables == 0 && daemon == 0 && all > 8 && !env {
			return reader.No
		}
	}
	if p.tables == 0 && daemon == 0 || taken*10 < all*9 {
		return reader.No
	}
	switch strings.ToLower(path.Ext(a.Path)) {
	case ".log", ".out", ".err":
		if full && daemon*2 < all {
			return reader.No
		}
	}
	if p.tables == 0 && daemon*2 < all {
		return reader.No
	}
	return reader.Sure
}

// Read streams the text into s.
func (slurm) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer f.Close()
	b := bufio.NewReaderSize(f, maxLine)
	if head, _ := b.Peek(4096); isJSON(strings.TrimPrefix(string(head), "\xef\xbb\xbf")) {
		return readJSON(ctx, in, b, s)
	}
	p := newParser(s, in.Artifact)
	var l line
	for l.num = 1; ; l.num++ {
		if l.num%256 == 1 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		size, err := p.next(ctx, b, &l)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.text = textline.Clean(l.raw)
		if l.raw != "" {
			p.feed(l)
		}
		l.off += size
		if err == io.EOF {
			p.close()
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// next reads the next line into l and returns how many bytes it takes from
// l.off on. Of a line over maxLine the beginning is kept.
func (p *parser) next(ctx context.Context, b *bufio.Reader, l *line) (int64, error) {
	part, err := b.ReadSlice('\n')
	size := int64(len(part))
	l.raw = strings.TrimRight(string(part), "\r\n")
	if l.num == 1 {
		trimmed := strings.TrimPrefix(l.raw, "\xef\xbb\xbf")
		mark := int64(len(l.raw) - len(trimmed))
		l.off, size, l.raw = l.off+mark, size-mark, trimmed
	}
	for long := false; errors.Is(err, bufio.ErrBufferFull); {
		if !long {
			long = true
			p.s.Damage(p.span(*l), errLongLine)
		}
		if ctx.Err() != nil {
			return size, ctx.Err()
		}
		part, err = b.ReadSlice('\n')
		size += int64(len(part))
	}
	return size, err
}

// A line is one line: as it stands, without escapes, and where it stands.
type line struct {
	raw, text string
	num, off  int64
	column    int // 1-based; 0 stands for the first
}

// A table reads the lines below its header. row reports whether the line was
// part of it.
type table interface {
	row(p *parser, l line) bool
	end(p *parser)
}

// A parser goes through the lines and knows what stands around a table.
type parser struct {
	s        reader.Sink
	artifact string
	job      string // that the artifact belongs to, "" if not known
	cur      table
	tables   int
}

func newParser(s reader.Sink, a evidence.Artifact) *parser {
	return &parser{s: s, artifact: a.Path, job: a.Owner.Job}
}

// headers are tried on every line.
var headers = [...]func(*parser, string) table{sacctHeader, jobHeader, nodeHeader, squeueHeader, sinfoHeader, seffHeader, scriptHeader, environHeader}

// feed takes one line and reports whether it knew what to do with it.
func (p *parser) feed(l line) bool {
	text := strings.TrimSpace(l.text)
	if text == "" {
		return true
	}
	if _, is := p.cur.(*script); is {
		return p.cur.row(p, l)
	}
	if p.daemon(l) {
		return true
	}
	for _, f := range headers {
		if t := f(p, text); t != nil {
			p.close()
			p.cur = t
			p.tables++
			if first, ok := t.(interface{ first(p *parser, l line) }); ok {
				first.first(p, l)
			}
			return true
		}
	}
	if p.cur != nil && p.cur.row(p, l) {
		return true
	}
	if text[0] == '#' || strings.HasPrefix(text, "$ ") || strings.HasPrefix(text, "+ ") {
		p.close()
		return true
	}
	return false
}

func (p *parser) close() {
	if p.cur != nil {
		p.cur.end(p)
		p.cur = nil
	}
}

func (p *parser) span(l line) evidence.Span {
	q := l.raw[:min(len(l.raw), maxQuote)]
	return evidence.Span{Artifact: p.artifact, Kind: "text", Line: l.num, Column: max(l.column, 1), Offset: l.off, Length: int64(len(q)), Quote: q}
}

func (p *parser) event(kind evidence.Kind, l line, attrs evidence.Attrs) evidence.Event {
	return evidence.Event{Kind: kind, Who: evidence.Nobody(), Step: evidence.None, Text: strings.TrimSpace(textline.Cut(l.text, maxQuote)), Attrs: attrs, Span: p.span(l)}
}

func (p *parser) fact(name string, v evidence.Value, l line) {
	p.s.Fact(evidence.Fact{Name: name, Value: v, Who: evidence.Nobody(), Span: p.span(l)})
}

// ours reports whether a record about job can be about the artifact's own. Tasks
// of an array and parts of a het job are jobs of their own, which a bare number
// leaves open.
func (p *parser) ours(job string) bool {
	if p.job == "" || job == "" {
		return true
	}
	job, _, _ = strings.Cut(job, ".")
	own, _, _ := strings.Cut(p.job, ".")
	return job == own || mainJob(job) == mainJob(own) && (job == mainJob(job) || own == mainJob(own))
}

// mainJob is the number that an array (4410_7), het job (4410+1) or step (4410.0)
// is counted under.
func mainJob(job string) string {
	if i := strings.IndexAny(job, "_+."); i >= 0 {
		return job[:i]
	}
	return job
}

// discard is the sink of Sniff.
type discard struct{}

func (discard) Event(evidence.Event)                         {}
func (discard) Series(k evidence.SeriesKey) *evidence.Series { return evidence.NewSeries(k) }
func (discard) Fact(evidence.Fact)                           {}
func (discard) Owner(evidence.Owner)                         {}
func (discard) Damage(evidence.Span, error)                  {}
