package engine

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"reflect"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/redact"
)

const (
	quoteLen    = 400      // bytes of one quoted span
	contextLen  = 4 << 10  // bytes read on each side of a line for its context
	contextSide = 4        // lines on each side
	contextMax  = 12       // places with context
	streamLimit = 64 << 20 // compressed artifacts are read again for quotes up to this size
)

var digits = lazyre.New(`[0-9]+`)

// clean makes a piece of an artifact printable: no escapes, no control
// characters, valid UTF-8, bounded. Secrets are masked first: half of one no
// longer looks like it.
func clean(b []byte) string { return cleanTo(b, quoteLen) }

// cleanTo is clean with a bound of its own, in bytes.
func cleanTo(b []byte, most int) string {
	s := evidence.Escapes.ReplaceAllString(string(b), "")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = redact.Text(strings.TrimRight(s, " "))
	if len(s) > most {
		n := most
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}

// quotes fills every span of the incident with the text that it names, and adds
// the lines around the ones that matter most. Each artifact is opened once: at
// the offsets where it can be sought in, else from its start.
func (s *Study) quotes(ctx context.Context, inc *incident.Incident) error {
	byArtifact := map[string][]*evidence.Span{}
	collect(reflect.ValueOf(inc), func(sp *evidence.Span) {
		if sp.Quote == "" && sp.Artifact != "" && sp.Length > 0 {
			byArtifact[sp.Artifact] = append(byArtifact[sp.Artifact], sp)
		}
		sp.Quote = quoteOf([]byte(sp.Quote))
	})
	around := s.around(inc)
	for i := range s.Reading.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := &s.Reading.Files[i]
		spans, places := byArtifact[f.Path], around[f.Path]
		if len(spans)+len(places) == 0 || f.Open == nil {
			continue
		}
		if h, ok := f.Held.(*held); ok {
			if a, err := h.record(); err == nil {
				inc.Context = append(inc.Context, quoted(a, spans, places)...)
			}
			continue
		}
		inc.Context = append(inc.Context, fill(f, spans, places)...)
	}
	sort.SliceStable(inc.Context, func(i, j int) bool { return order(around, inc.Context[i]) < order(around, inc.Context[j]) })
	collect(reflect.ValueOf(inc), func(sp *evidence.Span) { sp.Quote = redact.Text(sp.Quote) })
	return nil
}

// A place is a line whose neighbours are quoted.
type place struct {
	line, offset, length int64
	rank                 int // order of importance
}

func order(around map[string][]place, q incident.Quote) int {
	for _, p := range around[q.Artifact] {
		if p.line == q.Mark {
			return p.rank
		}
	}
	return len(around) + contextMax
}

// around lists the places worth their context: the first fault, its rivals, the
// memory and non-finite events, the last good point, the first collateral.
func (s *Study) around(inc *incident.Incident) map[string][]place {
	out := map[string][]place{}
	n := 0
	add := func(sp *evidence.Span) {
		if sp == nil || n >= contextMax || sp.Kind != "text" || sp.Line == 0 {
			return
		}
		for _, p := range out[sp.Artifact] {
			if d := p.line - sp.Line; d >= -1 && d <= 1 {
				return
			}
		}
		out[sp.Artifact] = append(out[sp.Artifact], place{sp.Line, sp.Offset, sp.Length, n})
		n++
	}
	event := func(e *incident.Event) {
		if e != nil {
			add(e.Span)
		}
	}
	event(inc.FirstFault)
	for i := range inc.FirstFaultRivals {
		if i < 2 {
			event(&inc.FirstFaultRivals[i])
		}
	}
	event(inc.Order.MemoryEvent)
	event(inc.Order.NonfiniteEvent)
	if g := inc.LastGood; g != nil && g.Span != nil && s.nearFailure(g.Span) {
		add(g.Span)
	}
	for i := range inc.Collateral {
		if i < 4 {
			event(&inc.Collateral[i].Event)
		}
	}
	return out
}

// nearFailure reports whether the lines around the last good value are worth
// quoting: it stands before a failure in its own artifact, or is its last.
func (s *Study) nearFailure(sp *evidence.Span) bool {
	for i := range s.Reading.Sources {
		if src := &s.Reading.Sources[i]; src.Artifact.Path == sp.Artifact {
			return evidencefile.NearFailure(sp, src.Events, src.Series)
		}
	}
	return false
}

// collect calls fn for every span in v.
func collect(v reflect.Value, fn func(*evidence.Span)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			if sp, ok := v.Interface().(*evidence.Span); ok {
				fn(sp)
				return
			}
			collect(v.Elem(), fn)
		}
	case reflect.Struct:
		if v.CanAddr() {
			if sp, ok := v.Addr().Interface().(*evidence.Span); ok {
				fn(sp)
				return
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collect(v.Field(i), fn)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), fn)
		}
	case reflect.Map:
		if v.Type().Elem() != reflect.TypeFor[incident.Fact]() {
			return
		}
		for _, k := range v.MapKeys() {
			f := v.MapIndex(k).Interface().(incident.Fact)
			collect(reflect.ValueOf(f.Spans), fn)
		}
	}
}

// fill reads f for its spans and places.
func fill(f *artifact.File, spans []*evidence.Span, places []place) []incident.Quote {
	if f.At != nil {
		at, closer, err := f.At()
		if err == nil {
			defer closer.Close()
			return fillAt(f.Path, at, spans, places)
		}
	}
	if f.Size > streamLimit {
		return nil
	}
	rc, err := f.Open()
	if err != nil {
		return nil
	}
	defer rc.Close()
	return fillStream(f.Path, rc, spans, places)
}

func fillAt(path string, at io.ReaderAt, spans []*evidence.Span, places []place) []incident.Quote {
	buf := make([]byte, 0, 2*contextLen+quoteLen)
	read := func(off, n int64) []byte {
		buf = buf[:min(n, int64(cap(buf)))]
		got, _ := at.ReadAt(buf, off)
		return buf[:got]
	}
	for _, sp := range spans {
		sp.Quote = quoteOf(read(sp.Offset, min(sp.Length, 4*quoteLen)))
	}
	var out []incident.Quote
	for _, p := range places {
		from := max(0, p.offset-contextLen)
		before := read(from, p.offset-from)
		var head []string
		if len(before) > 0 {
			lines := bytes.Split(bytes.TrimSuffix(before, []byte("\n")), []byte("\n"))
			if from > 0 {
				lines = lines[1:]
			}
			for _, l := range lines[max(0, len(lines)-contextSide):] {
				head = append(head, quoteOf(l))
			}
		}
		after := read(p.offset, contextLen)
		lines := bytes.Split(after, []byte("\n"))
		q := incident.Quote{Artifact: path, Line: p.line - int64(len(head)), Mark: p.line, Lines: append([]string{}, head...)}
		for _, l := range lines[:min(len(lines), contextSide+1)] {
			q.Lines = append(q.Lines, quoteOf(l))
		}
		if n := len(q.Lines); n > 0 && q.Lines[n-1] == "" {
			q.Lines = q.Lines[:n-1]
		}
		out = append(out, q)
	}
	return out
}

// quoteOf is what a person sees of a line: the last frame of a progress bar.
func quoteOf(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	return clean(line)
}

func fillStream(path string, r io.Reader, spans []*evidence.Span, places []place) []incident.Quote {
	sort.Slice(spans, func(i, j int) bool { return spans[i].Line < spans[j].Line })
	want := map[int64]bool{}
	for _, sp := range spans {
		want[sp.Line] = true
	}
	for _, p := range places {
		for l := p.line - contextSide; l <= p.line+contextSide; l++ {
			want[l] = true
		}
	}
	text := map[int64][]byte{}
	br := bufio.NewReaderSize(r, 64<<10)
	for n := int64(1); ; n++ {
		var line []byte
		more := true
		for more {
			part, prefix, err := br.ReadLine()
			if err != nil {
				n = -1
				break
			}
			if want[n] && len(line) < 64<<10 {
				line = append(line, part...)
			}
			more = prefix
		}
		if n < 0 {
			break
		}
		if want[n] {
			text[n] = line
		}
	}
	for _, sp := range spans {
		line := text[sp.Line]
		if c := sp.Column - 1; c > 0 && c < len(line) {
			line = line[c:]
		}
		sp.Quote = quoteOf(line[:min(int64(len(line)), max(sp.Length, 1))])
	}
	var out []incident.Quote
	for _, p := range places {
		q := incident.Quote{Artifact: path, Mark: p.line, Lines: []string{}}
		for l := p.line - contextSide; l <= p.line+contextSide; l++ {
			if t, ok := text[l]; ok {
				if q.Line == 0 {
					q.Line = l
				}
				q.Lines = append(q.Lines, quoteOf(t))
			}
		}
		out = append(out, q)
	}
	return out
}
