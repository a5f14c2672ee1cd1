package catalog

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// factEvent as a wording's event says that the line only states facts.
const factEvent = "fact"

// identity are the groups that any wording may capture: the reader moves them
// into the event's Who, Step and Epoch.
var identity = map[string]evidence.Type{
	"rank": evidence.Int, "local_rank": evidence.Int, "device": evidence.Int, "gpu": evidence.Int, "pid": evidence.Int,
	"step": evidence.Int, "epoch": evidence.Float, "host": evidence.Text, "bus_id": evidence.Text,
}

// wording types l, a line of file f, with what it looks up in t. The lint reports what is wrong with it, so
// a constant that does not convert is an error here only.
func wording(f *LineFile, l *Line, t *tables) (evidence.Wording, error) {
	w := evidence.Wording{ID: l.ID, Kind: evidence.Kind(l.Event), Kinds: f.Kinds, Literal: l.Literal, Fold: l.Fold, Regexp: l.Regexp,
		Not: l.Not, Facts: l.Facts, Join: l.Join, Raw: l.Raw, Exception: l.Exception, Weak: l.Weak, Over: l.Over}
	if l.Event == factEvent {
		w.Kind = ""
	}
	for _, n := range sortedKeys(l.Attrs) {
		t, ok := attrType(w.Kind, n)
		if !ok {
			return w, fmt.Errorf("attribute %s is not declared by %s", n, l.Event)
		}
		v, err := Convert(t, l.Attrs[n])
		if err != nil {
			return w, fmt.Errorf("attribute %s: %w", n, err)
		}
		if w.Attrs == nil {
			w.Attrs = evidence.Attrs{}
		}
		w.Attrs[n] = v
	}
	for _, n := range sortedKeys(l.Lookup) {
		if at, ok := attrType(w.Kind, n); !ok || at != evidence.Text {
			return w, fmt.Errorf("lookup: %s is not a text attribute of %s", n, l.Event)
		}
	}
	var err error
	w.Lookups, err = t.lookups(l.Lookup)
	return w, err
}

// attrType is the declared type of attribute n of kind, or of an identity.
func attrType(kind evidence.Kind, n string) (evidence.Type, bool) {
	if s := evidence.SpecOf(kind); s != nil {
		if a := s.Attr(n); a != nil {
			return a.Type, true
		}
	}
	t, ok := identity[n]
	return t, ok
}

var sizeText = lazyre.New(`^([0-9][0-9,_]*(?:\.[0-9]+)?)\s*([kKMGTP]i?B|[kKMGTP]|[kmg]b|[Bb]ytes?|[Bb]|)$`)

// ungroup removes thousands separators.
var ungroup = strings.NewReplacer(",", "", "_", "")

// Convert reads the text of a constant or sample as type t. A size is "512
// bytes", "2.50 GiB", "1,024 kB" or a plain count of bytes; units are binary,
// as the emitters use them. The interval is that of the digits written.
func Convert(t evidence.Type, s string) (evidence.Value, error) {
	s = strings.TrimSpace(s)
	if t == evidence.Text {
		return evidence.TextOf(s), nil
	}
	digits := ungroup.Replace(s)
	switch t {
	case evidence.Int:
		i, err := strconv.ParseInt(digits, 0, 64)
		if err != nil {
			if i, err = strconv.ParseInt(digits, 10, 64); err != nil { // leading zeros
				return evidence.Value{}, fmt.Errorf("%q is not an integer", s)
			}
		}
		return evidence.IntOf(i), nil
	case evidence.Float:
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return evidence.Value{}, fmt.Errorf("%q is not a number", s)
		}
		return evidence.FloatOf(f), nil
	case evidence.Bool:
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			return evidence.BoolOf(true), nil
		case "false", "no", "off", "0":
			return evidence.BoolOf(false), nil
		}
		return evidence.Value{}, fmt.Errorf("%q is not true or false", s)
	case evidence.Size:
		return convertSize(s)
	case evidence.Ints:
		var l []int64
		for _, p := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,[]()", r) }) {
			i, err := strconv.ParseInt(p, 10, 64)
			if err != nil {
				return evidence.Value{}, fmt.Errorf("%q is not a list of integers", s)
			}
			l = append(l, i)
		}
		slices.Sort(l)
		return evidence.IntsOf(l), nil
	}
	return evidence.Value{}, errors.New("unknown type")
}

func convertSize(s string) (evidence.Value, error) {
	m := sizeText.FindStringSubmatch(s)
	if m == nil {
		return evidence.Value{}, fmt.Errorf("%q is not a size", s)
	}
	number := ungroup.Replace(m[1])
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return evidence.Value{}, fmt.Errorf("%q is not a size", s)
	}
	unit := 1.0
	if m[2] != "" {
		if i := strings.IndexByte("KMGTP", strings.ToUpper(m[2])[0]); i >= 0 {
			unit = float64(int64(1) << (10 * (i + 1)))
		}
	}
	half := 0.0
	if i := strings.IndexByte(number, '.'); i >= 0 {
		half = 0.5
		for range len(number) - i - 1 {
			half /= 10
		}
	} else if unit > 1 {
		half = 0.5
	}
	if (f+1)*unit >= 1<<63 {
		return evidence.Value{}, fmt.Errorf("%q is too large for a size", s)
	}
	return evidence.RoundedSize(f*unit, half*unit), nil
}

// A matcher applies one wording to text. Its regular expressions compile when
// they are first needed; it may be used concurrently.
type matcher struct {
	w       evidence.Wording
	lookup  map[string]string // attribute -> table.column, from which w.Lookups were made
	literal string            // folded when w.Fold is set
	once    sync.Once
	re, not *regexp.Regexp
	err     error
}

func newMatcher(w evidence.Wording, lookup map[string]string) *matcher {
	m := &matcher{w: w, lookup: lookup, literal: w.Literal}
	if w.Fold {
		m.literal = strings.ToLower(w.Literal)
	}
	return m
}

func (m *matcher) compile() error {
	m.once.Do(func() {
		if m.w.Regexp != "" {
			m.re, m.err = regexp.Compile(m.w.Regexp)
		}
		if m.err == nil && m.w.Not != "" {
			m.not, m.err = regexp.Compile(m.w.Not)
		}
	})
	return m.err
}

// hasLiteral reports whether the literal stands in f.
func (m *matcher) hasLiteral(f form) bool {
	if m.w.Fold {
		return strings.Contains(f.folded, m.literal)
	}
	return strings.Contains(f.text, m.literal)
}

// match returns the named groups that the wording captures from text, or false
// when it does not take it. Empty captures are left out.
func (m *matcher) match(text string) (map[string]string, bool) {
	if m.compile() != nil || m.not != nil && m.not.MatchString(text) {
		return nil, false
	}
	if m.re == nil {
		return nil, true
	}
	sub := m.re.FindStringSubmatch(text)
	if sub == nil {
		return nil, false
	}
	got := map[string]string{}
	for i, n := range m.re.SubexpNames() {
		if n != "" && sub[i] != "" {
			got[n] = sub[i]
		}
	}
	return got, true
}

// attrs are the attributes of the event that the wording makes of what it captured; a
// capture that is no value of its type is left out.
func (m *matcher) attrs(groups map[string]string) evidence.Attrs {
	out := maps.Clone(m.w.Attrs)
	if out == nil {
		out = evidence.Attrs{}
	}
	for n, s := range groups {
		if t, ok := attrType(m.w.Kind, n); ok {
			if v, err := Convert(t, s); err == nil {
				out[n] = v
			}
		}
	}
	for i := range m.w.Lookups {
		l := &m.w.Lookups[i]
		if v := l.Of(groups[l.Group]); v != "" {
			out[l.Attr] = evidence.TextOf(v)
		}
	}
	return out
}

const levelWords = `(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)`

// prefixes are what log systems put before a message. The readers know many
// more; these are enough to try a wording on a line as somebody pastes it.
var prefixes = lazyre.New(`^\s*(?:` + strings.Join([]string{
	`\x1b\[[0-9;]*[A-Za-z]`,
	`\[(?:[A-Za-z_.-]+)?\d+\]:?\s*`,               // [rank3]: [default0]: [1]:
	`\[\d+,\d+\]<\w+>:\s*`,                        // [1,3]<stderr>:
	`\d+:\s+`,                                     // srun --label
	`\(\w+ (?:pid|rank)=\d+(?:, ip=[\d.]+)?\)\s*`, // Ray actors
	`\[titan\]\s*`,                                // torchtitan
	`\[?\d{4}[-/]\d\d[-/]\d\d[T ,_]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[\s:,|-]*`,
	`\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[\s:|-]*`,
	`[A-Z][a-z]{2}\s+\d+ \d\d:\d\d:\d\d \S+ `,             // syslog
	`[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ \S+\]\s*`,      // glog
	`\[\s*\d+\.\d{6}\]\s*`,                                // kernel
	`\[?` + levelWords + `\]?\s*[|:-]\s*[\w.]+\s*[|:]\s*`, // INFO | fairseq.trainer |
	`[\w.]+ - ` + levelWords + ` - `,                      // root - INFO -
	`\[?` + levelWords + `\]?[\s:|-]+`,
	`\[[\w./-]+\.(?:py|cc|cpp|cu):\d+(?::\w+)?\]:?\s*`, // [engine.py:12:step]
}, "|") + `)`)

// A form is one way in which a pasted text is tried, and the same in lower
// case.
type form struct{ text, folded string }

// variants returns the forms of a pasted text: the whole, its lines joined, its
// lines, and each of them as more and more prefixes are peeled off.
func variants(text string) []form {
	out := peel(nil, text)
	if !strings.Contains(text, "\n") {
		return out
	}
	out = peel(out, strings.ReplaceAll(text, "\n", " "))
	for l := range strings.SplitSeq(text, "\n") {
		out = peel(out, strings.TrimRight(l, "\r"))
	}
	return out
}

// maxPeel bounds the prefixes of one line.
const maxPeel = 6

func peel(out []form, text string) []form {
	for range maxPeel + 1 {
		out = append(out, form{text, strings.ToLower(text)})
		rest := strings.TrimPrefix(text, prefixes.FindString(text))
		if rest == text || rest == "" {
			break
		}
		text = rest
	}
	return out
}

// take tries m on the forms of a sample or pasted text.
func (m *matcher) take(forms []form) (map[string]string, bool) {
	for _, f := range forms {
		if !m.hasLiteral(f) {
			continue
		}
		if got, ok := m.match(f.text); ok {
			return got, true
		}
	}
	return nil, false
}
