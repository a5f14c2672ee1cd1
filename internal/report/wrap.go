package report

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/inquest-dev/inquest/internal/lazyre"
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

// fitted is fit that ends what it cuts at the end of a clause or a word.
func fitted(n int, variants ...string) string {
	for _, v := range variants {
		if columns(v) <= n {
			return v
		}
	}
	return shorten(variants[len(variants)-1], n)
}

// remark is what a sentence says in parentheses.
var remark = lazyre.New(` \([^()]*\)`)

// leading are words that want another one behind them.
var leading = map[string]bool{"a": true, "an": true, "the": true, "of": true, "on": true, "in": true, "to": true, "at": true, "by": true, "for": true, "from": true,
	"with": true, "without": true, "and": true, "or": true, "every": true, "each": true, "that": true, "below": true, "above": true, "per": true, "as": true, "is": true, "no": true}

// shorten cuts s to n columns: remarks in parentheses go first; then it ends
// behind a clause that takes most of the room, else behind a word.
func shorten(s string, n int) string {
	s = oneLine(s)
	if columns(s) <= n {
		return s
	}
	if !strings.ContainsAny(s, "|$`=") { // which begin or join what is typed
		s = remark.ReplaceAllString(s, "")
		if columns(s) <= n {
			return s
		}
	}
	head, _ := split(s, n-1) // one column more than the words can have
	at := strings.LastIndexByte(head, ' ')
	if at <= 0 || columns(head[:at]) < n/2 { // one long word
		return cut(s, n)
	}
	head = head[:at]
	for i := len(head) - 1; i > 0 && columns(head[:i]) >= n/2; i-- {
		if i+1 < len(head) && head[i+1] != ' ' {
			continue
		}
		if c := head[i]; c == '.' || c == ';' || (c == ':' || c == ',') && columns(head[:i]) >= n*2/3 {
			head = head[:i+1]
			break
		}
	}
	for {
		at := strings.LastIndexByte(head, ' ')
		if at <= 0 || !leading[head[at+1:]] {
			break
		}
		head = head[:at]
	}
	if strings.HasSuffix(head, ".") || strings.HasSuffix(head, ";") {
		return strings.TrimRight(head, ";") + " …"
	}
	return strings.TrimRight(strings.TrimRight(head, " "), ",:") + " …"
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
