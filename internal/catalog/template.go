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

// Prose is a sentence for a reader without a run at hand: a placeholder gives its
// fallback; without one a letter stands for a number, N for the first, M and K for
// others, and the fact's name in words, between ‹ and ›, for anything else. What
// stands in parentheses alone only quotes what a run had, and is left out.
func Prose(text string) string {
	var b strings.Builder
	letters := map[string]string{}
	at := 0
	for _, s := range slots(text) {
		b.WriteString(text[at:s.start])
		at = s.end
		if s.hasFallback {
			b.WriteString(s.fallback)
			continue
		}
		if before := b.String(); strings.HasSuffix(before, " (") && strings.HasPrefix(text[at:], ")") {
			b.Reset()
			b.WriteString(strings.TrimSuffix(before, " ("))
			at++
			continue
		}
		b.WriteString(standIn(s.name, letters))
	}
	return b.String() + text[at:]
}

// standIn is what stands for the value of the fact n; letters are those in use.
func standIn(n string, letters map[string]string) string {
	if f := evidence.FactOf(n); f != nil && (f.Type == evidence.Int || f.Type == evidence.Float) || strings.HasPrefix(n, "seen.") {
		if _, ok := letters[n]; !ok && len(letters) < 3 {
			letters[n] = "NMK"[len(letters) : len(letters)+1]
		}
		if l := letters[n]; l != "" {
			return l
		}
	}
	name, ok := standInNames[n]
	switch f := evidence.FactOf(n); {
	case ok:
	case f != nil && f.Type == evidence.Ints:
		name = "numbers"
	default:
		_, name, _ = strings.Cut(n, ".")
		name = strings.NewReplacer("_", " ", ".", " ").Replace(name)
	}
	return "‹" + name + "›"
}

// standInNames are the names in words of facts whose own names do not say it.
var standInNames = map[string]string{
	"fault.what": "kind of fault", "cuda.what": "kind of fault", "exception.type": "type of the exception", "run.command": "command of the run",
	"run.world": "number of ranks", "run.alloc_conf": "allocator settings", "fix.alloc_conf": "new allocator settings", "run.kv_len": "cache length",
	"dist.stack_of_missing": "its stack", "nan.named_where": "where", "replay.avoided_by": "setting that avoids it", "gpu.foreign_bytes": "memory of others",
	"gpu.unlisted_bytes": "unlisted memory", "oom.plan_temp": "planned buffers", "oom.pool": "memory of the pool", "oom.unexplained": "unexplained memory",
	"oom.outside_allocator": "memory outside the allocator", "oom.kv_needed": "cache needed", "oom.kv_available": "cache available",
	"oom.allowed": "limit", "host.memory": "host memory", "host.address_limit": "limit on the address space", "disk.avail": "space left",
	"memory.before_fault": "memory before the fault", "memory.rounding_waste": "memory lost to rounding", "run.gpu_fraction": "fraction of the device",
	"oom.requested": "request", "oom.reserved_unallocated": "idle reserve",
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
