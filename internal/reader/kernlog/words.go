package kernlog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/scan"
)

// sources are those of the plan's wordings that stand in kernel logs and the
// journal.
var sources = []string{"kernel", "host-memory", "storage", "scheduler"}

// words are the wordings of the plan, with one matcher over their literals.
type words struct {
	matcher *scan.Matcher
	of      [][]*wording // by atom
}

type wording struct {
	evidence.Wording
	once    sync.Once
	re, not *regexp.Regexp
	fails   bool
}

func newWords(plan evidence.Plan) *words {
	w := &words{}
	var atoms []scan.Atom
	index := map[scan.Atom]int{}
	for _, p := range plan.Wordings {
		source, _, _ := strings.Cut(p.ID, "/")
		if p.Kind == "" || p.Literal == "" || !slices.Contains(sources, source) || len(p.Kinds) > 0 && !slices.Contains(p.Kinds, "ranklog") && !slices.Contains(p.Kinds, "kernlog") {
			continue
		}
		a := scan.Atom{Text: p.Literal, Fold: p.Fold}
		i, ok := index[a]
		if !ok {
			i = len(atoms)
			index[a] = i
			atoms = append(atoms, a)
			w.of = append(w.of, nil)
		}
		w.of[i] = append(w.of[i], &wording{Wording: p})
	}
	if len(atoms) > 0 {
		w.matcher = scan.New(atoms)
	}
	return w
}

func (w *wording) compile() {
	w.once.Do(func() {
		var err error
		if w.Regexp != "" {
			if w.re, err = regexp.Compile(w.Regexp); err != nil {
				w.fails = true
			}
		}
		if w.Not != "" {
			if w.not, err = regexp.Compile(w.Not); err != nil {
				w.fails = true
			}
		}
	})
}

// A found is a wording that takes a text, with what it captured.
type found struct {
	w      *wording
	groups []string
}

// match returns the events that a record states.
func (w *words) match(r *record) []evidence.Event {
	if w.matcher == nil || r.text == "" {
		return nil
	}
	hits := w.matcher.Scan([]byte(r.text+" "), nil)
	if len(hits) == 0 {
		return nil
	}
	var got []found
	seen := map[*wording]bool{}
	for _, h := range hits {
		for _, x := range w.of[h.Atom] {
			if seen[x] {
				continue
			}
			seen[x] = true
			text := r.text
			if x.Raw {
				text = r.line
			}
			if x.compile(); x.fails || x.not != nil && x.not.MatchString(text) {
				continue
			}
			if x.re == nil {
				got = append(got, found{w: x})
			} else if g := x.re.FindStringSubmatch(text); g != nil {
				got = append(got, found{x, g})
			}
		}
	}
	var out []evidence.Event
	for _, f := range got {
		if slices.ContainsFunc(got, func(o found) bool { return o.w != f.w && slices.Contains(o.w.Over, f.w.ID) }) {
			continue
		}
		if e, ok := r.event(f); ok {
			out = append(out, e)
		}
	}
	return out
}

// event makes the event of a wording that took r.
func (r *record) event(f found) (evidence.Event, bool) {
	spec := evidence.SpecOf(f.w.Kind)
	if spec == nil {
		return evidence.Event{}, false
	}
	e := r.blank(f.w.Kind)
	e.Line = f.w.ID
	for n, v := range f.w.Attrs {
		e.Attrs[n] = v
	}
	if f.w.re != nil {
		names := f.w.re.SubexpNames()
		for i, n := range names {
			if n != "" && f.groups[i] != "" {
				capture(&e, spec, n, f.groups[i])
			}
		}
		for i := range f.w.Lookups {
			l := &f.w.Lookups[i]
			if g := slices.Index(names, l.Group); g > 0 && f.groups[g] != "" {
				if v := l.Of(f.groups[g]); v != "" {
					e.Attrs[l.Attr] = evidence.TextOf(v)
				}
			}
		}
	}
	if e.Who.BusID == "" {
		e.Who.BusID = r.device
	}
	if e.Who.BusID == "" && about(spec) {
		e.Who.BusID = busID(pciName.FindString(r.text))
	}
	return e, true
}

// about reports whether an event of that kind speaks of a device, so that a bus id
// in its text is that device's.
func about(s *evidence.Spec) bool {
	return s.Class == evidence.DeviceFault || s.Kind == evidence.NetworkFault
}

// blank is an event of kind at r with what the frame says.
func (r *record) blank(kind evidence.Kind) evidence.Event {
	e := evidence.Event{Kind: kind, Who: evidence.Nobody(), Stamp: r.stamp, Step: evidence.None, Text: textline.Cut(strings.TrimSpace(r.line), maxQuote), Attrs: evidence.Attrs{}, Span: r.span}
	e.Who.Host = r.host
	e.Stamp.Host = r.host
	if !r.kernel {
		e.Who.PID = r.pid
	}
	return e
}

// capture stores one named group: an attribute, part of the identity, or both.
func capture(e *evidence.Event, spec *evidence.Spec, name, text string) {
	if a := spec.Attr(name); a != nil {
		if v, ok := convert(text, a.Type); ok {
			e.Attrs[name] = v
		}
	}
	switch name {
	case "host":
		e.Who.Host = textline.Cut(text, 253)
	case "bus_id":
		e.Who.BusID = busID(text)
	case "pid":
		if n := number(text); n != evidence.None {
			e.Who.PID = n
		}
	}
}

var pciName = lazyre.New(`\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b`)

// busID brings a PCI address to one form: four digits of domain unless it has more,
// bus and device in lower case, no function.
func busID(s string) string {
	s, _, _ = strings.Cut(strings.ToLower(s), ".")
	domain, rest, ok := strings.Cut(s, ":")
	if !ok {
		return ""
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return textline.Cut(domain+":"+rest, 32)
}

// convert reads a captured text as a value of type t.
func convert(text string, t evidence.Type) (evidence.Value, bool) {
	text = strings.TrimSpace(text)
	switch t {
	case evidence.Text:
		return evidence.TextOf(textline.Cut(text, maxQuote)), text != ""
	case evidence.Int:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
		return evidence.IntOf(n), err == nil
	case evidence.Float:
		f, err := strconv.ParseFloat(text, 64)
		return evidence.FloatOf(f), err == nil
	case evidence.Size:
		return size(text)
	}
	return evidence.Value{}, false
}

var sizeText = lazyre.New(`^(\d{1,15})(?:\.\d+)? ?([kKMGT]?)i?[bB]?$`)

// size reads a whole number of a binary unit. The kernel counts whole pages, so
// that its kB are exact.
func size(text string) (evidence.Value, bool) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return evidence.Value{}, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return evidence.Value{}, false
	}
	unit := int64(1)
	if m[2] != "" {
		unit <<= 10 * (1 + strings.Index("KMGT", strings.ToUpper(m[2])))
	}
	if n > (1<<62)/unit {
		return evidence.Value{}, false
	}
	return evidence.SizeOf(n*unit, n*unit), true
}
