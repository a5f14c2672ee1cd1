// Package testkit builds evidence for tests: a tiny language in which a script
// states what the logs of a job hold and what a stage must make of it. Only
// _test files import it.
package testkit

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// lineBytes is the length that every scripted line of a log has.
const lineBytes = 100

// defaultFile holds what a script places nowhere.
const defaultFile = "run.log"

// A Case is one situation of a script: the evidence, and what is expected of the
// stage under test.
type Case struct {
	Name    string
	Line    int // 1-based line of the script
	Sources []timeline.Source
	Use     map[string]string // settings of the stage under test, from "use" lines
	Expect  []Expectation

	ids    map[string]ref
	series map[evidence.SeriesKey]*evidence.Series
	at     []position // of each source
}

type ref struct{ source, event int }

type position struct{ line, offset int64 }

// An Expectation is one "expect" line.
type Expectation struct {
	Line int    // 1-based line of the script
	Not  bool   // "expect not …"
	What string // the first word: lead, collateral, fact, ...
	Args []string
	With map[string]string // the name=value words
}

func (e Expectation) String() string {
	s := "expect "
	if e.Not {
		s += "not "
	}
	s += e.What
	for _, a := range e.Args {
		s += " " + a
	}
	names := make([]string, 0, len(e.With))
	for n := range e.With {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		s += fmt.Sprintf(" %s=%s", n, e.With[n])
	}
	return s
}

// Arg returns the nth word after What, "" if there is none.
func (e Expectation) Arg(n int) string {
	if n < len(e.Args) {
		return e.Args[n]
	}
	return ""
}

// Run parses every script of a folder and calls check for each of its cases, as a
// subtest.
func Run(t *testing.T, dir fs.FS, check func(t *testing.T, c *Case)) {
	t.Helper()
	files, err := fs.Glob(dir, "*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no script in the folder (%v)", err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(dir, f)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := Parse(string(text))
		if err != nil {
			t.Errorf("%s:%v", f, err)
			continue
		}
		for _, c := range cases {
			t.Run(strings.TrimSuffix(f, ".txt")+"/"+c.Name, func(t *testing.T) {
				t.Helper()
				check(t, c)
			})
		}
	}
}

// Parse reads a script. Blank lines and lines that begin with # are skipped;
// words are separated by spaces and may be quoted as Go strings.
//
//	case NAME…                       begins a case
//	file FILE kind=K rank=R host=H attempt=A fate=F
//	                                 says who owns a log (all optional)
//	event [FILE] [TIME] [who…] KIND [attr=value…]
//	                                 one line of a log; who: id host rank local
//	                                 device bus pid launch step text stack chain
//	                                 quoted
//	series [FILE] [TIME] [key…] NAME STEP:VALUE…
//	                                 one line for each point; key: rank launch
//	                                 source trust phase unit; STEP may be - for none
//	skip [FILE] [lines=N] [bytes=N]  other lines of the log
//	fact [FILE] [rank=R] [launch=N] NAME=VALUE…
//	use name=value…                  settings of the stage under test
//	expect [not] WHAT words… name=value…
//
// Lines of one log stand in the order in which the script has them. Without FILE
// they are in run.log. TIME is 2026-01-31T10:00:00Z (with a zone),
// 2026-01-31T10:00:00 (without), 01-31T10:00:00 (no year), 10:00:00 (no date) or
// boot:12.5 (seconds).
// Attribute values have the type that the kind declares; sizes are A..B or one
// number, with the suffixes KiB, MiB and GiB.
func Parse(script string) ([]*Case, error) {
	var cases []*Case
	var c *Case
	for i, line := range strings.Split(script, "\n") {
		words, err := split(line)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		if words[0] == "case" {
			c = newCase(strings.Join(words[1:], " "), i+1)
			cases = append(cases, c)
			continue
		}
		if c == nil {
			return nil, fmt.Errorf("%d: %q before the first case", i+1, words[0])
		}
		verb := map[string]func([]string) error{
			"file": c.file, "event": c.event, "series": c.points, "skip": c.skip, "fact": c.fact, "use": c.use,
			"expect": func(w []string) error { return c.expect(w, i+1) },
		}[words[0]]
		if verb == nil {
			return nil, fmt.Errorf("%d: unknown word %q", i+1, words[0])
		}
		if err := verb(words[1:]); err != nil {
			return nil, fmt.Errorf("%d: %s: %w", i+1, words[0], err)
		}
	}
	return cases, nil
}

func newCase(name string, line int) *Case {
	return &Case{Name: name, Line: line, Use: map[string]string{}, ids: map[string]ref{}, series: map[evidence.SeriesKey]*evidence.Series{}}
}

// split cuts a line into words; a quoted part of a word may hold spaces.
func split(line string) ([]string, error) {
	var out []string
	rest := strings.TrimSpace(line)
	for rest != "" && rest[0] != '#' {
		word := ""
		for rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			if rest[0] == '"' {
				q, err := strconv.QuotedPrefix(rest)
				if err != nil {
					return nil, fmt.Errorf("quoted word: %w", err)
				}
				s, err := strconv.Unquote(q)
				if err != nil {
					return nil, fmt.Errorf("quoted word: %w", err)
				}
				word += s
				rest = rest[len(q):]
				continue
			}
			word += rest[:1]
			rest = rest[1:]
		}
		out = append(out, word)
		rest = strings.TrimLeft(rest, " \t")
	}
	return out, nil
}

// source returns the index of a log, which is made when first named.
func (c *Case) source(path string) int {
	for i := range c.Sources {
		if c.Sources[i].Artifact.Path == path {
			return i
		}
	}
	c.Sources = append(c.Sources, timeline.Source{Artifact: evidence.Artifact{Path: path, Kind: "ranklog", Fate: "read", Size: -1,
		Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}})
	c.at = append(c.at, position{line: 1})
	return len(c.Sources) - 1
}

// next is the span of the log's next line.
func (c *Case) next(src int) evidence.Span {
	p := &c.at[src]
	sp := evidence.Span{Artifact: c.Sources[src].Artifact.Path, Kind: "text", Line: p.line, Column: 1, Offset: p.offset, Length: lineBytes - 1}
	p.line++
	p.offset += lineBytes
	c.Sources[src].Lines = p.line - 1
	return sp
}

// leading takes FILE and TIME from the front of words.
func (c *Case) leading(words []string) (src int, st evidence.Stamp, rest []string) {
	src = -1
	for len(words) > 0 {
		w := words[0]
		if s, ok := stamp(w); ok {
			st = s
		} else if !strings.Contains(w, "=") && strings.ContainsAny(w, "./") && src < 0 {
			src = c.source(w)
		} else {
			break
		}
		words = words[1:]
	}
	if src < 0 {
		src = c.source(defaultFile)
	}
	return src, st, words
}

var layouts = []struct {
	layout string
	half   time.Duration
	set    func(*evidence.Stamp)
}{
	{"2006-01-02T15:04:05.999Z07:00", time.Second / 2, func(s *evidence.Stamp) { s.Zone = "Z" }},
	{"2006-01-02T15:04:05.999", time.Second / 2, func(s *evidence.Stamp) {}},
	{"01-02T15:04:05.999", time.Second / 2, func(s *evidence.Stamp) { s.NoYear = true }},
	{"15:04:05.999", time.Second / 2, func(s *evidence.Stamp) { s.NoDate = true }},
}

func stamp(w string) (evidence.Stamp, bool) {
	if b, ok := strings.CutPrefix(w, "boot:"); ok {
		f, err := strconv.ParseFloat(b, 64)
		return evidence.Stamp{Time: time.Unix(0, int64(f*1e9)).UTC(), Written: w, Clock: "boot", Error: time.Microsecond}, err == nil
	}
	for _, l := range layouts {
		t, err := time.Parse(l.layout, w)
		if err != nil {
			continue
		}
		s := evidence.Stamp{Time: t.UTC(), Written: w, Clock: "wall", Error: l.half}
		if strings.Contains(w, ".") {
			s.Error = time.Millisecond / 2
		}
		l.set(&s)
		return s, true
	}
	return evidence.Stamp{}, false
}

func (c *Case) file(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("no file named")
	}
	a := &c.Sources[c.source(words[0])].Artifact
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		var err error
		switch k {
		case "kind":
			a.Kind = v
		case "fate":
			a.Fate = v
		case "host":
			a.Owner.Host = v
		case "attempt":
			a.Owner.Attempt = v
		case "rank":
			a.Owner.Rank, err = strconv.Atoi(v)
		case "local":
			a.Owner.LocalRank, err = strconv.Atoi(v)
		default:
			err = fmt.Errorf("unknown word %q", k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Case) event(words []string) error {
	src, st, words := c.leading(words)
	e := evidence.Event{Who: evidence.Nobody(), Stamp: st, Step: evidence.None, Attrs: evidence.Attrs{}}
	id := ""
	for len(words) > 0 && strings.Contains(words[0], "=") {
		k, v, _ := strings.Cut(words[0], "=")
		n, bad := strconv.Atoi(v) // of the words that are numbers
		switch k {
		case "id":
			id, bad = v, nil
		case "host":
			e.Who.Host, bad = v, nil
		case "bus":
			e.Who.BusID, bad = v, nil
		case "text":
			e.Text, bad = v, nil
		case "line":
			e.Line, bad = v, nil
		case "chain":
			e.Chain, bad = v, nil
		case "quoted":
			e.Quoted, bad = v == "true", nil
		case "stack":
			for _, f := range strings.Split(v, ">") {
				file, fn, _ := strings.Cut(strings.TrimSpace(f), ":")
				fn, source, _ := strings.Cut(fn, "|")
				e.Stack = append(e.Stack, evidence.Frame{File: file, Function: fn, Source: source, Line: 1})
			}
			bad = nil
		case "rank":
			e.Who.Rank = n
		case "local":
			e.Who.LocalRank = n
		case "device":
			e.Who.Device = n
		case "pid":
			e.Who.PID = n
		case "launch":
			e.Who.Launch = n
		case "step":
			e.Step = int64(n)
		default:
			bad = fmt.Errorf("unknown word %q before the kind", k)
		}
		if bad != nil {
			return bad
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return fmt.Errorf("no kind")
	}
	e.Kind = evidence.Kind(words[0])
	spec := evidence.SpecOf(e.Kind)
	if spec == nil {
		return fmt.Errorf("no kind %q", words[0])
	}
	for _, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		a := spec.Attr(k)
		if !ok || a == nil {
			return fmt.Errorf("kind %s has no attribute %q", e.Kind, k)
		}
		x, err := value(a.Type, v)
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		e.Attrs[k] = x
	}
	if e.Text == "" {
		e.Text = strings.Join(words, " ")
	}
	e.Span = c.next(src)
	if id != "" {
		c.ids[id] = ref{src, len(c.Sources[src].Events)}
	}
	c.Sources[src].Events = append(c.Sources[src].Events, e)
	return nil
}

func (c *Case) points(words []string) error {
	src, st, words := c.leading(words)
	k := evidence.SeriesKey{Source: "generic", Artifact: c.Sources[src].Artifact.Path, Rank: evidence.None, Trust: evidence.Raw}
	for len(words) > 0 && strings.Contains(words[0], "=") {
		n, v, _ := strings.Cut(words[0], "=")
		var err error
		switch n {
		case "rank":
			k.Rank, err = strconv.Atoi(v)
		case "launch":
			k.Launch, err = strconv.Atoi(v)
		case "source":
			k.Source = v
		case "trust":
			k.Trust = evidence.Trust(v)
		case "phase":
			k.Phase = v
		case "unit":
			k.Unit = v
		default:
			err = fmt.Errorf("unknown word %q", n)
		}
		if err != nil {
			return err
		}
		words = words[1:]
	}
	if len(words) == 0 || evidence.SeriesNames[words[0]] == "" {
		return fmt.Errorf("no series named in %q", words)
	}
	k.Name = words[0]
	s := c.series[k]
	if s == nil {
		s = evidence.NewSeries(k)
		c.series[k] = s
		c.Sources[src].Series = append(c.Sources[src].Series, s)
	}
	for _, w := range words[1:] {
		step, v, ok := strings.Cut(w, ":")
		p := evidence.Point{Step: evidence.None}
		var err error
		if step != "-" {
			if p.Step, err = strconv.ParseInt(step, 10, 64); err != nil {
				return err
			}
		}
		if p.Value, err = number(v); err != nil || !ok {
			return fmt.Errorf("point %q is not STEP:VALUE", w)
		}
		sp := c.next(src)
		p.Line, p.Offset, p.Length = sp.Line, sp.Offset, int32(sp.Length)
		if st.Known() && (s.WillSample() || math.IsNaN(p.Value) || math.IsInf(p.Value, 0)) {
			p.Stamp = &st
		}
		s.Add(p)
	}
	return nil
}

func (c *Case) skip(words []string) error {
	src, _, words := c.leading(words)
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case err != nil:
			return err
		case k == "lines":
			c.at[src].line += n
			c.at[src].offset += n * lineBytes
		case k == "bytes":
			c.at[src].offset += n
		default:
			return fmt.Errorf("unknown word %q", k)
		}
	}
	return nil
}

func (c *Case) fact(words []string) error {
	src, _, words := c.leading(words)
	who := evidence.Nobody()
	sp := c.next(src)
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=VALUE", w)
		}
		n, numeric := strconv.Atoi(v)
		switch {
		case k == "rank" && numeric == nil:
			who.Rank = n
			continue
		case k == "launch" && numeric == nil:
			who.Launch = n
			continue
		}
		t := evidence.Text
		if spec := evidence.FactOf(k); spec != nil {
			t = spec.Type
		} else if !strings.HasPrefix(k, "setting.") {
			return fmt.Errorf("no fact %q", k)
		} else if numeric == nil {
			t = evidence.Int
		}
		x, err := value(t, v)
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		c.Sources[src].Facts = append(c.Sources[src].Facts, evidence.Fact{Name: k, Value: x, Who: who, Span: sp})
	}
	return nil
}

func (c *Case) use(words []string) error {
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%q is not name=value", w)
		}
		c.Use[k] = v
	}
	return nil
}

func (c *Case) expect(words []string, line int) error {
	e := Expectation{Line: line, With: map[string]string{}}
	if len(words) > 0 && words[0] == "not" {
		e.Not, words = true, words[1:]
	}
	if len(words) == 0 {
		return fmt.Errorf("nothing expected")
	}
	e.What = words[0]
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			e.With[k] = v
		} else {
			e.Args = append(e.Args, w)
		}
	}
	c.Expect = append(c.Expect, e)
	return nil
}

// number parses a decimal, "nan" or "inf", with a binary size suffix.
func number(s string) (float64, error) {
	for suffix, by := range map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			f, err := strconv.ParseFloat(n, 64)
			return f * by, err
		}
	}
	return strconv.ParseFloat(s, 64)
}

// value parses a value of a declared type. A size is A..B or one number, whose
// suffix the lower end may leave out; ints are separated by commas.
func value(t evidence.Type, s string) (evidence.Value, error) {
	switch t {
	case evidence.Int:
		n, err := strconv.ParseInt(s, 10, 64)
		return evidence.IntOf(n), err
	case evidence.Float:
		f, err := number(s)
		return evidence.FloatOf(f), err
	case evidence.Bool:
		b, err := strconv.ParseBool(s)
		return evidence.BoolOf(b), err
	case evidence.Size:
		lo, hi, ranged := strings.Cut(s, "..")
		if !ranged {
			hi = lo
		}
		a, err := number(lo)
		if err != nil {
			return evidence.Value{}, err
		}
		b, err := number(hi)
		if err != nil {
			return evidence.Value{}, err
		}
		return evidence.SizeOf(int64(math.Round(a)), int64(math.Round(b))), nil
	case evidence.Ints:
		var l []int64
		for _, w := range strings.Split(s, ",") {
			if w == "" {
				continue
			}
			n, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				return evidence.Value{}, err
			}
			l = append(l, n)
		}
		return evidence.IntsOf(l), nil
	}
	return evidence.TextOf(s), nil
}
