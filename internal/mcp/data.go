package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// What was read from logs, file names, processes and trackers is data. In an answer it stands
// only between these marks, and so does every sentence in which a value from there may stand.
// No text that is quoted can hold a mark: the brackets that make one are replaced in it.
const (
	openMark  = "⟦data⟧"
	closeMark = "⟦end⟧"
)

// brackets replaces what makes a mark, and what looks like it.
var brackets = strings.NewReplacer("⟦", "[", "⟧", "]", "〚", "[", "〛", "]", "⟬", "[", "⟭", "]")

// clean leaves of s what can be seen: no terminal sequences, control characters, bidirectional
// overrides, invisible or private code points, and no brackets of marks. Bytes that are no UTF-8
// become question marks; more than four combining marks in a row are dropped. Lines end in \n
// where lines is set, and are joined by a blank otherwise.
func clean(s string, lines bool) string {
	s = evidence.Escapes.ReplaceAllString(strings.ToValidUTF8(s, "?"), "")
	marks := 0
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			if marks++; marks > 4 {
				return -1
			}
			return r
		}
		marks = 0
		switch {
		case r == '\n' && lines:
			return r
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError:
			return '?'
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return brackets.Replace(s)
}

// quote is s as data, on one line, in at most max bytes of JSON, marks included. What was cut
// off is shown by an ellipsis. Nothing stays nothing.
func quote(s string, max int) string { return marked(s, max, false) }

// quoteLines is quote for text whose line ends mean something, as those of code do.
func quoteLines(s string, max int) string { return marked(s, max, true) }

func marked(s string, max int, lines bool) string {
	s = bounded(s, 4*max)
	if s = strings.TrimSpace(clean(s, lines)); s == "" {
		return ""
	}
	room := max - len(openMark) - len(closeMark)
	return openMark + cut(s, room) + closeMark
}

// quoteAll quotes at most n of texts, each in at most max bytes. It is never nil.
func quoteAll(texts []string, n, max int) []string {
	out := []string{}
	for _, t := range texts {
		if q := quote(t, max); q != "" && len(out) < n {
			out = append(out, q)
		}
	}
	return out
}

// unquoted is what a caller means that hands back a quoted text with its marks.
func unquoted(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSuffix(strings.TrimPrefix(s, openMark), closeMark)
}

// own is a text of the program's own, as of the encyclopedia, in at most max bytes of JSON. It
// is cleaned as well, because folders of --rules add to it.
func own(s string, max int) string { return cut(strings.TrimSpace(clean(s, true)), max) }

// word is what is an id, a name of ours or a number in all but hostile input, as it is; and
// anything else quoted.
func word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return quote(s, 80)
}

// phrase is word for what may be several words of ours, as a cost is: it is one of those that
// the program says, or quoted.
func phrase(s string) string {
	if _, ok := phrases[s]; ok {
		return s
	}
	return word(s)
}

// phrases are the words of costs, of which came first in a tracked run, and of what an offset of
// clocks means.
var phrases = map[string]struct{}{
	"one short run": {}, "one full run": {},
	"nonfinite first": {}, "memory first": {}, "only nonfinite": {}, "only memory": {},
	"same clock": {}, "flush delay": {}, "time zone": {},
}

var plainWord = lazyre.New(`^[A-Za-z0-9][A-Za-z0-9_.:/%+-]{0,47}$|^$`)

// cut is s in at most room bytes of JSON, with an ellipsis where something was left out.
func cut(s string, room int) string {
	if jsonSize(s) <= room {
		return s
	}
	room -= len("…")
	n := 0
	for i, r := range s {
		if n += runeSize(r); n > room {
			return s[:i] + "…"
		}
	}
	return s
}

// bounded is s without what lies behind its first max bytes, so that no more of it is looked at.
func bounded(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// jsonSize is the bytes that s takes within a string of JSON, as encoding/json writes it.
func jsonSize(s string) int {
	n := 0
	for _, r := range s {
		n += runeSize(r)
	}
	return n
}

func runeSize(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\t', r == '\r':
		return 2
	case r == '<', r == '>', r == '&', r < ' ', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return 6
	}
	return utf8.RuneLen(r)
}
