package record

import (
	"strings"
	"unicode/utf8"
)

// bounded is s, cut to at most n bytes at a character, with … where it was cut.
func bounded(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
