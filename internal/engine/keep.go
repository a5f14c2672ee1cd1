package engine

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/redact"
)

// gather reads one of n artifacts. What it returns holds no secret and is all that
// the later stages ask of the artifact, but for the quotes. Of each series at least dense
// points are kept; 0 leaves it to n.
func gather(ctx context.Context, f *artifact.File, r reader.Reader, tables []reader.Tabular, n, dense int) *evidencefile.Artifact {
	out := &evidencefile.Artifact{Artifact: f.Artifact, Place: f.Place, Host: f.Host, Named: f.Named, Confidence: f.Confidence, ModTime: f.ModTime, Share: n}
	if out.Fate != "" {
		return out
	}
	if r == nil || f.Open == nil {
		out.Fate = "not recognised"
		return out
	}
	out.Read = true
	sink := reader.NewShare(n)
	sink.Densely(dense)
	lines := f.Artifact
	lines.Owner.Host = "" // the timeline fills it in where no line says otherwise
	file := openArtifact(f)
	defer file.Close()
	file.in.Artifact = lines
	err := r.Read(ctx, file.in, snapshotSink{sink, ctx})
	sum := file.sum
	_, tabular := r.(reader.Tabular)
	if tabular && err == nil && sum != nil && sum.n <= besideMost {
		err = beside(ctx, f, r, tables, lines, sink)
	}
	if sum != nil {
		out.Size, out.Digest = sum.n, sum.String()
		out.CutLine = sum.n > 0 && sum.last != '\n'
	}
	if !tabular {
		events, facts := embedded(ctx, f, tables, sink.Events)
		for _, e := range events {
			sink.Event(e)
		}
		for _, x := range facts {
			sink.Fact(x)
		}
	}
	sink.Settle(n) // a reader holds back what may go on (a traceback, a wrapped line)
	out.Fate = "read"
	if err != nil && ctx.Err() == nil {
		var limit *artifact.LimitError
		switch {
		case errors.As(err, &limit):
			out.Fate = "over limit"
		case sum == nil || sum.n == 0:
			out.Fate = "unreadable"
		default:
			out.Fate = "partly read"
		}
		out.Note = err.Error()
		out.Failed = &evidencefile.Problem{Span: evidence.Span{Artifact: f.Path, Kind: "text", Offset: out.Size}, Text: err.Error()}
	}
	put(out, sink)
	unsecret(out)
	onlyHosts(out)
	return out
}

// onlyHosts drops what stands where a host's name is expected and can be none.
func onlyHosts(a *evidencefile.Artifact) {
	keep := func(s *string) {
		if !evidence.HostName(*s) {
			*s = ""
		}
	}
	keep(&a.Host)
	for i := range a.Events {
		keep(&a.Events[i].Who.Host)
		keep(&a.Events[i].Stamp.Host)
	}
	for i := range a.Facts {
		keep(&a.Facts[i].Who.Host)
	}
	for i := range a.Owners {
		keep(&a.Owners[i].Host)
	}
}

// put puts down what a collector holds.
func put(a *evidencefile.Artifact, c *reader.Collector) {
	a.Events, a.Series, a.Facts, a.Owners = c.Events, c.Metrics, c.Facts, c.Owners
	a.Damages = nil
	for _, d := range c.Damages {
		a.Damages = append(a.Damages, evidencefile.Problem{Span: d.Span, Text: d.Err.Error()})
	}
	a.DroppedEvents, a.DroppedSeries, a.DroppedFacts, a.DroppedDamages = c.Dropped.Events, c.Dropped.Series, c.Dropped.Facts, c.Dropped.Damages
}

// collector is the inverse of put.
func collector(a *evidencefile.Artifact) *reader.Collector {
	c := reader.NewCollector()
	c.Events, c.Metrics, c.Facts, c.Owners = a.Events, a.Series, a.Facts, a.Owners
	for _, d := range a.Damages {
		c.Damages = append(c.Damages, reader.Damage{Span: d.Span, Err: errors.New(d.Text)})
	}
	c.Dropped.Events, c.Dropped.Series, c.Dropped.Facts, c.Dropped.Damages = a.DroppedEvents, a.DroppedSeries, a.DroppedFacts, a.DroppedDamages
	return c
}

// settle reduces a to what one of n artifacts keeps, and its quotes with it.
func settle(a *evidencefile.Artifact, n int) {
	if !a.Read || n <= a.Share {
		return
	}
	spots, places := a.Spans(), a.Places()
	c := collector(a)
	c.Settle(n)
	put(a, c)
	a.Share = n
	a.Quotes = pick(a.Quotes, spots, a.Spans())
	a.Around = pick(a.Around, places, a.Places())
}

// pick returns the values of the keys that are left.
func pick[T any](values []T, keys, left []evidencefile.Spot) []T {
	if len(values) != len(keys) {
		return nil // there were none to be had
	}
	of := make(map[evidencefile.Spot]T, len(keys))
	for i, k := range keys {
		of[k] = values[i]
	}
	out := make([]T, len(left))
	for i, k := range left {
		out[i] = of[k]
	}
	return out
}

// unsecret masks the secrets in what was read, before anything is made of it, so
// that an evidence file holds none and says the same as the log.
func unsecret(a *evidencefile.Artifact) {
	masked := func(s string) string {
		// A secret may be cut in pieces by the colours of a terminal.
		if bare := evidence.Escapes.ReplaceAllString(s, ""); bare != s {
			if out := redact.Text(bare); out != bare {
				return out
			}
		}
		return redact.Text(s)
	}
	mask := func(s *string) { *s = masked(*s) }
	for i := range a.Events {
		e := &a.Events[i]
		mask(&e.Text)
		mask(&e.Span.Quote)
		for n, v := range e.Attrs {
			if s := masked(v.S); s != v.S {
				e.Attrs = maps.Clone(e.Attrs)
				v.S = s
				e.Attrs[n] = v
			}
		}
		for k := range e.Stack {
			mask(&e.Stack[k].Source)
		}
	}
	for i := range a.Facts {
		f := &a.Facts[i]
		mask(&f.Value.S)
		mask(&f.Span.Quote)
		if f.Value.S != "" {
			if named := f.Name + "=" + f.Value.S; redact.Text(named) != named {
				_, f.Value.S, _ = strings.Cut(redact.Text(named), "=")
			}
		}
	}
	for i := range a.Damages {
		mask(&a.Damages[i].Text)
		mask(&a.Damages[i].Span.Quote)
	}
	if a.Failed != nil {
		mask(&a.Failed.Text)
	}
	mask(&a.Note)
}

// quote fills in the texts of everything in a that a report can quote.
func quote(a *evidencefile.Artifact, f *artifact.File) {
	if !a.Read || f.Open == nil {
		return
	}
	spots, around := a.Spans(), a.Places()
	spans := make([]evidence.Span, len(spots))
	refs := make([]*evidence.Span, len(spots))
	for i, s := range spots {
		spans[i] = evidence.Span{Line: s.Line, Column: s.Column, Offset: s.Offset, Length: s.Length}
		refs[i] = &spans[i]
	}
	places := make([]place, len(around))
	for i, s := range around {
		places[i] = place{line: s.Line, offset: s.Offset, length: s.Length}
	}
	quotes := fill(f, refs, places)
	a.Quotes = make([]string, len(spans))
	for i := range spans {
		a.Quotes[i] = spans[i].Quote
	}
	a.Around = nil
	for _, q := range quotes {
		a.Around = append(a.Around, evidencefile.Lines{First: q.Line, Texts: q.Lines})
	}
}

// quoted is fill for an artifact whose texts are in evidence.
func quoted(a *evidencefile.Artifact, spans []*evidence.Span, places []place) []incident.Quote {
	text := map[evidencefile.Spot]string{}
	if spots := a.Spans(); len(spots) == len(a.Quotes) {
		for i, s := range spots {
			text[s] = a.Quotes[i]
		}
	}
	for _, sp := range spans {
		sp.Quote = text[evidencefile.SpotOf(sp)]
	}
	at := map[evidencefile.Spot]int{}
	if spots := a.Places(); len(spots) == len(a.Around) {
		for i, s := range spots {
			at[s] = i
		}
	}
	var out []incident.Quote
	for _, p := range places {
		if i, ok := at[evidencefile.Spot{Line: p.line, Offset: p.offset, Length: p.length}]; ok {
			l := a.Around[i]
			out = append(out, incident.Quote{Artifact: a.Path, Line: l.First, Mark: p.line, Lines: append([]string{}, l.Texts...)})
		}
	}
	return out
}

// rename gives a another path.
func rename(a *evidencefile.Artifact, path string) {
	old := a.Path
	span := func(s *evidence.Span) {
		if s.Artifact == old {
			s.Artifact = path
		}
	}
	for i := range a.Events {
		span(&a.Events[i].Span)
	}
	for i := range a.Facts {
		span(&a.Facts[i].Span)
	}
	for i := range a.Damages {
		span(&a.Damages[i].Span)
	}
	if a.Failed != nil {
		span(&a.Failed.Span)
	}
	for _, s := range a.Series {
		if s.Key.Artifact == old {
			s.Key.Artifact = path
		}
	}
	a.Path = path
}
