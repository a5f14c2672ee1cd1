package catalog

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// maxInserted bounds one value put into a text, in bytes.
const maxInserted = 300

// placeholder is {group.name} or {group.name|fallback}. What looks otherwise
// (JSON, a Python f-string with brackets) is plain text.
var placeholder = lazyre.New(`\{([a-z][a-z0-9]*(?:\.[a-z][a-z0-9_]*)+)(?:\|([^{}]*))?\}`)

// extraGroups are groups of names that no fact declares: the calculations of
// package remedy, and configuration keys kept verbatim.
var extraGroups = []string{"fix.", "setting."}

// extraNames are single names that the remedy fills in.
var extraNames = []string{"run.command"}

// groups are the first parts of all declared names.
var groups = func() map[string]bool {
	m := map[string]bool{"seen": true, "fix": true, "setting": true}
	for i := range evidence.FactSpecs {
		g, _, _ := strings.Cut(evidence.FactSpecs[i].Name, ".")
		m[g] = true
	}
	return m
}()

// insertable reports whether a text may name n.
func insertable(n string) bool {
	if _, ok := declared(n); ok || slices.Contains(extraNames, n) {
		return true
	}
	return slices.ContainsFunc(extraGroups, func(g string) bool { return strings.HasPrefix(n, g) })
}

// A slot is one placeholder of a text.
type slot struct {
	start, end  int // byte offsets of the braces
	name        string
	fallback    string
	hasFallback bool
}

func slots(text string) []slot {
	var out []slot
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		s := slot{start: m[0], end: m[1], name: text[m[2]:m[3]]}
		if g, _, _ := strings.Cut(s.name, "."); !groups[g] {
			continue
		}
		if m[4] >= 0 {
			s.fallback, s.hasFallback = text[m[4]:m[5]], true
		}
		out = append(out, s)
	}
	return out
}

// TemplateNames returns the names that the placeholders of text ask for, in
// order of first appearance.
func TemplateNames(text string) []string {
	var out []string
	for _, s := range slots(text) {
		if !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	}
	return out
}

// Expand puts the values of facts into text. A placeholder whose fact is not
// known gives its fallback; without one it stays as written, and its name is
// among those returned. Values are bounded, stripped of control characters and
// never expanded again.
func Expand(text string, facts map[string]evidence.Value) (string, []string) {
	return expand(text, facts, Show)
}

// ExpandCommand is Expand for a command of a shell: a value is one word there, and
// nothing in it acts. Only run.command is put in as it is, because it is itself a
// command.
func ExpandCommand(text string, facts map[string]evidence.Value) (string, []string) {
	return expand(text, facts, func(name string, v evidence.Value) string {
		if name == "run.command" {
			return Show(name, v)
		}
		return ShellWord(Show(name, v))
	})
}

// ShellWord is s as one word of a POSIX shell: as it is where no character of it
// has a meaning there, else between quotes.
func ShellWord(s string) string {
	acts := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_@%+=:,./-…", r)
	}
	if s != "" && strings.IndexFunc(s, acts) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func expand(text string, facts map[string]evidence.Value, show func(string, evidence.Value) string) (string, []string) {
	var b strings.Builder
	var unknown []string
	at := 0
	for _, s := range slots(text) {
		b.WriteString(text[at:s.start])
		at = s.end
		switch v, ok := lookup(facts, s.name); {
		case ok:
			b.WriteString(show(s.name, v))
		case s.hasFallback:
			b.WriteString(s.fallback)
		default:
			b.WriteString(text[s.start:s.end])
			if !slices.Contains(unknown, s.name) {
				unknown = append(unknown, s.name)
			}
		}
	}
	b.WriteString(text[at:])
	return b.String(), unknown
}

// Plain is text for a reader without a run at hand: a placeholder gives its
// fallback or, without one, the fact's name in braces.
func Plain(text string) string {
	var b strings.Builder
	at := 0
	for _, s := range slots(text) {
		b.WriteString(text[at:s.start])
		if at = s.end; s.hasFallback {
			b.WriteString(s.fallback)
		} else {
			b.WriteString("{" + s.name + "}")
		}
	}
	return b.String() + text[at:]
}

// ExpandSentences is Expand for explanatory text: a sentence that names an
// unknown fact without a fallback is left out.
func ExpandSentences(text string, facts map[string]evidence.Value) string {
	var b strings.Builder
	for _, s := range sentences(text) {
		if out, unknown := Expand(s, facts); len(unknown) == 0 {
			b.WriteString(out)
		}
	}
	return strings.TrimSpace(b.String())
}

func lookup(facts map[string]evidence.Value, name string) (evidence.Value, bool) {
	if v, ok := facts[name]; ok && v.Valid() {
		return v, true
	}
	if strings.HasPrefix(name, seenPrefix) {
		return evidence.IntOf(0), true
	}
	return evidence.Value{}, false
}

// Show prints a fact's value for people, as Expand does: bytes with a unit also
// where the fact is a slope, no control characters, bounded.
func Show(name string, v evidence.Value) string {
	if v.T == evidence.Float && (strings.HasSuffix(name, "growth_per_step") || strings.HasSuffix(name, "growth_per_batch")) {
		return evidence.Bytes(int64(v.F))
	}
	s := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, v.String())
	if len(s) > maxInserted {
		s = s[:maxInserted]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return s
}

// sentences cuts text after each sentence and paragraph; joined, the parts give
// text again. A full stop ends a sentence when white space and then a capital,
// a quotation mark, a back-quote or a placeholder follow.
func sentences(text string) []string {
	var out []string
	start := 0
	for i := 0; i < len(text); i++ {
		end := 0
		switch c := text[i]; {
		case c == '\n' && i+1 < len(text) && text[i+1] == '\n':
			end = i
		case c == '.' || c == '!' || c == '?':
			end = i + 1
			for end < len(text) && strings.ContainsRune(`)"'`, rune(text[end])) {
				end++
			}
			r, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[end:], " \n"))
			if end == len(text) || text[end] != ' ' && text[end] != '\n' || !unicode.IsUpper(r) && !strings.ContainsRune("\"'`{(", r) {
				continue
			}
		default:
			continue
		}
		for end < len(text) && (text[end] == ' ' || text[end] == '\n') {
			end++
		}
		out = append(out, text[start:end])
		start, i = end, end-1
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
