package evidencefile

import (
	"maps"
	"slices"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Bounds of one record's lists. They are above what readers keep.
const (
	maxEvents  = 1 << 16
	maxSeries  = 1 << 16
	maxFacts   = 1 << 16
	maxDamages = 1 << 12
	maxOwners  = 1 << 8
	maxAttrs   = 1 << 8
	maxFrames  = 1 << 10
	maxInts    = 1 << 16
	maxQuotes  = 1 << 22
	maxLines   = 64
	maxTallies = 1 << 16
	// MaxPoints bounds the points of all series of one record.
	MaxPoints = 1 << 20
)

// A Scan is what one scan saw and did not read. The counts of several add up.
type Scan struct {
	// Of is a digest of what the scan was of, so that the same scan met twice
	// counts once, and two scans that passed over the same count twice.
	Of       string
	Passed   []Tally // by reason
	Alike    []Tally // by extension
	Problems []Problem
	More     int
	Missing  []Problem
}

// Key is the same for the same scan only.
func (s *Scan) Key() string { return string(s.encode()) }

// A Tally counts files that were not read.
type Tally struct {
	What         string
	Count, Bytes int64
}

// A Problem is something that could not be read, and why.
type Problem struct {
	Span evidence.Span // at least the artifact
	Text string
}

// An Artifact is one artifact with all that was read from it.
type Artifact struct {
	evidence.Artifact
	Place      string
	Host       string
	Named      bool
	Confidence int
	ModTime    time.Time

	Read    bool // a reader read it; else Fate says what the walk found
	CutLine bool // the last line has no end
	Share   int  // among how many artifacts it was read: what is kept of it shrinks with that
	Events  []evidence.Event
	Series  []*evidence.Series
	Facts   []evidence.Fact
	Owners  []evidence.Owner
	Damages []Problem
	Failed  *Problem // what ended the reading, if anything did

	// Dropped counts what was over a limit.
	DroppedEvents, DroppedSeries, DroppedFacts, DroppedDamages int64

	// Quotes are the texts of the spans that Spans lists, in its order, and Around
	// the lines around those that Places lists, in its order.
	Quotes []string
	Around []Lines
}

// Lines are the lines around one place: the first one's number, 0 where there is
// nothing, and the texts.
type Lines struct {
	First int64
	Texts []string
}

// A Spot is one span of an artifact, for looking up its quote.
type Spot struct {
	Line, Offset, Length int64
	Column               int
}

// SpotOf returns the spot of a span.
func SpotOf(s *evidence.Span) Spot { return Spot{s.Line, s.Offset, s.Length, s.Column} }

// Spans lists the spots of a whose text a report can quote, each once: of the
// events, the facts, the damages and the kept points of the series.
func (a *Artifact) Spans() []Spot {
	var out []Spot
	seen := map[Spot]bool{}
	add := func(s *evidence.Span) {
		if k := SpotOf(s); s.Quote == "" && s.Length > 0 && s.Artifact == a.Path && !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for i := range a.Events {
		add(&a.Events[i].Span)
	}
	for i := range a.Facts {
		add(&a.Facts[i].Span)
	}
	for i := range a.Damages {
		add(&a.Damages[i].Span)
	}
	for _, s := range a.Series {
		points(s, func(p *evidence.Point) {
			sp := s.Span(*p)
			add(&sp)
		})
	}
	return out
}

// Places lists the spots of a around which a report can quote lines, each line
// once: events that can be part of a failure, and points that can be the last good
// one, now or when a is reduced.
func (a *Artifact) Places() []Spot {
	var out []Spot
	seen := map[Spot]bool{}
	add := func(s *evidence.Span) {
		k := Spot{Line: s.Line, Offset: s.Offset, Length: s.Length}
		if s.Kind == "text" && s.Line > 0 && s.Artifact == a.Path && !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for i := range a.Events {
		if tellsOfFailure(&a.Events[i]) {
			add(&a.Events[i].Span)
		}
	}
	lastGood(a.Events, a.Series, true, func(s *evidence.Series, p *evidence.Point) {
		sp := s.Span(*p)
		add(&sp)
	})
	return out
}

func tellsOfFailure(e *evidence.Event) bool {
	spec := evidence.SpecOf(e.Kind)
	return spec != nil && spec.Role != evidence.RoleContext && spec.Role != evidence.RoleProgress
}

// NearFailure reports whether sp is the place of a point of series that is the last
// good one of all or before one of the events of its own artifact: the lines
// around such a point are kept.
func NearFailure(sp *evidence.Span, events []evidence.Event, series []*evidence.Series) bool {
	found := false
	lastGood(events, series, false, func(s *evidence.Series, p *evidence.Point) {
		found = found || p.Line == sp.Line && p.Offset == sp.Offset && s.Key.Artifact == sp.Artifact
	})
	return found
}

// lastGood visits the finite training losses and gradient norms that are the last
// of all, the last before the first non-finite one, or the last kept one before an
// event; with all also those that are so when the series is reduced.
func lastGood(events []evidence.Event, series []*evidence.Series, all bool, fn func(*evidence.Series, *evidence.Point)) {
	var ends []int64
	for i := range events {
		if tellsOfFailure(&events[i]) {
			ends = append(ends, events[i].Span.Offset)
		}
	}
	slices.Sort(ends)
	for _, s := range series {
		if s.Key.Name != "loss" && s.Key.Name != "grad_norm" || s.Key.Phase == "eval" || !s.HasFinite {
			continue
		}
		p := s.LastFinite()
		fn(s, &p)
		if s.HasBefore {
			fn(s, &s.LastBeforeBad)
		}
		if len(ends) == 0 {
			continue
		}
		before(s, ends, fn)
		if !all {
			continue
		}
		st := s.State()
		st.Sample = slices.Clone(st.Sample)
		coarse, err := evidence.Restore(s.Key, st)
		for most := evidence.MaxPoints / 2; err == nil && most >= 8; most /= 2 {
			coarse.Reduce(most)
			before(coarse, ends, fn)
		}
	}
}

// before visits the points of s of which one of ends comes before the next, zeros
// counted and not counted.
func before(s *evidence.Series, ends []int64, fn func(*evidence.Series, *evidence.Point)) {
	for _, zeros := range []bool{true, false} {
		var last *evidence.Point
		at := 0
		for p := range s.All() {
			if p.Value-p.Value != 0 || !zeros && p.Value == 0 {
				continue
			}
			n := at
			for n < len(ends) && ends[n] <= p.Offset {
				n++
			}
			if last != nil && n > at {
				fn(s, last)
			}
			at = n
			q := p
			last = &q
		}
		if last != nil && at < len(ends) {
			fn(s, last)
		}
	}
}

// points visits every point that s holds.
func points(s *evidence.Series, fn func(*evidence.Point)) {
	if s.Count == 0 {
		return
	}
	k := s.State()
	for i := range k.Sample {
		fn(&k.Sample[i])
	}
	for _, p := range singles(&k) {
		fn(p)
	}
}

// singles lists the points that k holds beside its sample.
func singles(k *evidence.SeriesState) []*evidence.Point {
	return []*evidence.Point{&k.First, &k.Last, &k.FirstBad, &k.LastBeforeBad, &k.Min, &k.Max, &k.LastFinite}
}

// Head returns what of a record the walk needs, without the rest.
func Head(encoded []byte) (*Artifact, error) {
	c, a := newDecoding(encoded), &Artifact{}
	c.head(a)
	return a, c.err
}

// Decode returns the record, or an error that says what in it is damaged or not
// declared.
func Decode(encoded []byte) (*Artifact, error) {
	c, a := newDecoding(encoded), &Artifact{}
	c.head(a)
	c.body(a)
	if c.err == nil && len(c.buf) > 0 {
		c.fail()
	}
	if c.err == nil {
		c.err = check(a)
	}
	return a, c.err
}

// Encode returns the record's bytes, which depend on nothing but a.
func (a *Artifact) Encode() []byte {
	c := newEncoder()
	c.head(a)
	c.body(a)
	return c.buf
}

func (s *Scan) encode() []byte {
	c := newEncoder()
	c.scan(s)
	return c.buf
}

func decodeScan(b []byte) (*Scan, error) {
	c, s := newDecoding(b), &Scan{}
	c.scan(s)
	if c.err == nil && len(c.buf) > 0 {
		c.fail()
	}
	return s, c.err
}

func (c *coder) scan(s *Scan) {
	tally := func(t *Tally) {
		c.text(&t.What)
		c.int64(&t.Count)
		c.int64(&t.Bytes)
	}
	c.text(&s.Of)
	each(c, &s.Passed, maxTallies, tally)
	each(c, &s.Alike, maxTallies, tally)
	each(c, &s.Problems, maxDamages, c.problem)
	c.int(&s.More)
	each(c, &s.Missing, maxTallies, c.problem)
}

func (c *coder) problem(p *Problem) {
	c.span(&p.Span)
	c.text(&p.Text)
}

func (c *coder) head(a *Artifact) {
	c.text(&a.Path)
	c.text(&a.Kind)
	c.int64(&a.Size)
	c.text(&a.Digest)
	c.text(&a.Fate)
	c.text(&a.Note)
	c.text(&a.Place)
	c.text(&a.Host)
	c.bool(&a.Named)
	c.int(&a.Confidence)
	c.time(&a.ModTime)
	c.bool(&a.Read)
	c.bool(&a.CutLine)
	c.int(&a.Share)
}

func (c *coder) body(a *Artifact) {
	each(c, &a.Events, maxEvents, c.event)
	c.series(a)
	each(c, &a.Facts, maxFacts, func(f *evidence.Fact) {
		c.text(&f.Name)
		c.value(&f.Value)
		c.who(&f.Who)
		c.span(&f.Span)
	})
	each(c, &a.Owners, maxOwners, func(o *evidence.Owner) {
		c.text(&o.Job)
		c.text(&o.Attempt)
		c.text(&o.Host)
		c.int(&o.Rank)
		c.int(&o.LocalRank)
		c.text(&o.Basis)
	})
	each(c, &a.Damages, maxDamages, c.problem)
	failed := a.Failed != nil
	if c.bool(&failed); failed {
		if c.reading {
			a.Failed = &Problem{}
		}
		c.problem(a.Failed)
	}
	c.int64(&a.DroppedEvents)
	c.int64(&a.DroppedSeries)
	c.int64(&a.DroppedFacts)
	c.int64(&a.DroppedDamages)
	each(c, &a.Quotes, maxQuotes, c.text)
	each(c, &a.Around, maxQuotes, func(l *Lines) {
		c.int64(&l.First)
		each(c, &l.Texts, maxLines, c.text)
	})
}

func (c *coder) event(e *evidence.Event) {
	kind := string(e.Kind)
	c.text(&kind)
	e.Kind = evidence.Kind(kind)
	c.who(&e.Who)
	c.stamp(&e.Stamp)
	c.int64(&e.Step)
	c.float(&e.Epoch)
	c.text(&e.Text)
	c.attrs(&e.Attrs)
	c.span(&e.Span)
	c.text(&e.Line)
	each(c, &e.Stack, maxFrames, func(f *evidence.Frame) {
		c.text(&f.File)
		c.int(&f.Line)
		c.text(&f.Function)
		c.text(&f.Source)
	})
	c.text(&e.Chain)
	c.bool(&e.Quoted)
}

// attrs codes the attributes by name; nil and empty are told apart, as programs
// do.
func (c *coder) attrs(a *evidence.Attrs) {
	set := *a != nil
	if c.bool(&set); !set {
		*a = nil
		return
	}
	type named struct {
		name  string
		value evidence.Value
	}
	var list []named
	for _, n := range slices.Sorted(maps.Keys(*a)) {
		list = append(list, named{n, (*a)[n]})
	}
	each(c, &list, maxAttrs, func(x *named) {
		c.text(&x.name)
		c.value(&x.value)
	})
	if c.reading {
		*a = evidence.Attrs{}
		for _, x := range list {
			(*a)[x.name] = x.value
		}
	}
}

// series codes all series, and each stamp of their points once.
func (c *coder) series(a *Artifact) {
	var stamps []evidence.Stamp
	index := map[evidence.Stamp]int{}
	number := func(s *evidence.Stamp) int {
		if s == nil {
			return 0
		}
		n, ok := index[*s]
		if !ok {
			stamps = append(stamps, *s)
			n = len(stamps)
			index[*s] = n
		}
		return n
	}
	if !c.reading {
		for _, s := range a.Series {
			k := s.State()
			for i := range k.Sample {
				number(k.Sample[i].Stamp)
			}
			for _, p := range singles(&k) {
				number(p.Stamp)
			}
		}
	}
	left := MaxPoints
	each(c, &stamps, MaxPoints, c.stamp)
	if c.reading { // shared, as points of one line share it
		for i := range stamps {
			index[stamps[i]] = i + 1
		}
	}
	each(c, &a.Series, maxSeries, func(s **evidence.Series) {
		var key evidence.SeriesKey
		var k evidence.SeriesState
		if !c.reading {
			key, k = (*s).Key, (*s).State()
		}
		c.key(&key)
		c.state(&k, number, stamps, &left)
		if c.reading && c.err == nil {
			var err error
			if *s, err = evidence.Restore(key, k); err != nil {
				c.fail()
			}
		}
	})
}

func (c *coder) key(k *evidence.SeriesKey) {
	c.text(&k.Name)
	c.text(&k.Source)
	c.text(&k.Artifact)
	c.int(&k.Rank)
	c.int(&k.Launch)
	c.text(&k.Unit)
	trust := string(k.Trust)
	c.text(&trust)
	k.Trust = evidence.Trust(trust)
	c.text(&k.Phase)
	c.bool(&k.Records)
}

func (c *coder) state(k *evidence.SeriesState, number func(*evidence.Stamp) int, stamps []evidence.Stamp, left *int) {
	for _, n := range []*int64{&k.Count, &k.Bad, &k.Zeros, &k.BadRun, &k.LongestBadRun, &k.Stride, &k.MoreRuns, &k.From} {
		c.int64(n)
	}
	for _, b := range []*bool{&k.HasBefore, &k.HasFinite, &k.FiniteAfterBad} {
		c.bool(b)
	}
	c.int(&k.Most)
	level := int(k.Level)
	c.int(&level)
	k.Level = uint8(level)
	last := evidence.Mark{}
	mark := func(m *evidence.Mark) {
		for _, n := range [][2]*int64{{&m.Step, &last.Step}, {&m.Ordinal, &last.Ordinal}, {&m.Line, &last.Line}, {&m.Offset, &last.Offset}} {
			d := *n[0] - *n[1]
			c.int64(&d)
			*n[0] = *n[1] + d
		}
		last = *m
	}
	each(c, &k.Runs, evidence.MaxRuns, func(r *evidence.Run) {
		mark(&r.First)
		mark(&r.Last)
	})
	n := c.count(len(k.Sample))
	if *left -= n; c.reading && *left < 0 {
		c.fail()
		return
	}
	if c.reading {
		k.Sample = make([]evidence.Point, n)
	}
	all := make([]*evidence.Point, 0, n+8)
	for i := range k.Sample {
		all = append(all, &k.Sample[i])
	}
	c.points(append(all, singles(k)...), number, stamps)
}

// points codes points column by column, each number as what it is more than the
// one before: neighbours are alike.
func (c *coder) points(list []*evidence.Point, number func(*evidence.Stamp) int, stamps []evidence.Stamp) {
	column := func(field func(*evidence.Point) *int64) {
		last := int64(0)
		for _, p := range list {
			v := field(p)
			d := *v - last
			c.int64(&d)
			*v = last + d
			last = *v
		}
	}
	column(func(p *evidence.Point) *int64 { return &p.Step })
	column(func(p *evidence.Point) *int64 { return &p.Ordinal })
	column(func(p *evidence.Point) *int64 { return &p.Line })
	column(func(p *evidence.Point) *int64 { return &p.Offset })
	for _, p := range list {
		n := int64(p.Length)
		c.int64(&n)
		p.Length = int32(n)
	}
	for _, p := range list {
		c.float(&p.Value)
	}
	last := 0
	for _, p := range list {
		at := number(p.Stamp)
		d := at - last
		c.int(&d)
		at = last + d
		last = at
		if c.reading {
			if at < 0 || at > len(stamps) {
				c.fail()
				return
			}
			if p.Stamp = nil; at > 0 {
				p.Stamp = &stamps[at-1]
			}
		}
	}
}
