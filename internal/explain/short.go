package explain

import (
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/catalog"
)

// Short is the first sentence of an entry's quick answer, plain.
func Short(e *catalog.Entry) string { return firstSentence(plain(e.Quick)) }

// firstSentence cuts text behind the first mark of an end that a capital or code follows.
func firstSentence(text string) string {
	for i, r := range text {
		if r != '.' && r != '!' && r != '?' {
			continue
		}
		rest := text[i+1:]
		next := []rune(strings.TrimLeft(rest, " "))
		if len(next) > 0 && strings.HasPrefix(rest, " ") && (unicode.IsUpper(next[0]) || next[0] == '`') && !abbreviated(text[:i]) {
			return text[:i+1]
		}
	}
	return text
}

// abbreviated reports whether a dot behind text ends an abbreviation.
func abbreviated(text string) bool {
	last := text[strings.LastIndexByte(text, ' ')+1:]
	return last == "e.g" || last == "i.e" || last == "vs" || last == "no" || last == "cf"
}
