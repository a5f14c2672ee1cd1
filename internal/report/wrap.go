package report

import (
	"strings"

	"github.com/rivo/uniseg"
)

// columns is the width of s on a terminal.
func columns(s string) int { return uniseg.StringWidth(s) }

func pad(s string, n int) string {
	if d := n - columns(s); d > 0 {
		return s + strings.Repeat(" ", d)
	}
	return s
}

// cut shortens s to n columns on one line, with an ellipsis where something is
// missing.
func cut(s string, n int) string {
	s = oneLine(s)
	if columns(s) <= n {
		return s
	}
	head, _ := split(s, n-1)
	return strings.TrimRight(head, " ") + "…"
}

// split divides s after at most n columns, between characters as people see
// them. The head holds at least one character.
func split(s string, n int) (head, rest string) {
	w := 0
	g := uniseg.NewGraphemes(s)
	for g.Next() {
		from, _ := g.Positions()
		if w += g.Width(); w > n && from > 0 {
			return s[:from], s[from:]
		}
	}
	return s, ""
}

// fit returns the first variant that has at most n columns, else the last one
// cut. Variants go from the longest to the shortest.
func fit(n int, variants ...string) string {
	for _, v := range variants {
		if columns(v) <= n {
			return v
		}
	}
	return cut(variants[len(variants)-1], n)
}

// wrap breaks s at blanks into lines of at most n columns; a longer word is
// broken anywhere.
func wrap(s string, n int) []string {
	n = max(n, 20)
	var out []string
	line, width := "", 0
	flush := func() {
		if line != "" {
			out = append(out, line)
		}
		line, width = "", 0
	}
	for _, word := range strings.Fields(oneLine(s)) {
		w := columns(word)
		if width > 0 && width+1+w > n {
			flush()
		}
		for w > n {
			var head string
			head, word = split(word, n)
			out = append(out, head)
			w = columns(word)
		}
		if width > 0 {
			line += " "
			width++
		}
		line += word
		width += w
	}
	flush()
	if len(out) == 0 {
		out = []string{""}
	}
	return out
}
