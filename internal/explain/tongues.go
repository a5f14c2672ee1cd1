package explain

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A phrase is words of another language, folded, and what they are in English.
type phrase struct {
	text    string
	parts   []string // text at its stars: behind each but the last more letters may follow within the word
	english string
}

// tongues are the phrases of assets/tongues.txt by their first rune, the longest first.
var tongues = sync.OnceValue(func() map[rune][]phrase {
	data, err := assets.ReadFile("assets/tongues.txt")
	if err != nil {
		panic(err) // a broken build
	}
	out := map[rune][]phrase{}
	for line := range strings.Lines(string(data)) {
		english, list, ok := strings.Cut(line, " = ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for p := range strings.SplitSeq(list, "|") {
			text := fold(p)
			first, _ := utf8.DecodeRuneInString(text)
			if last, _ := utf8.DecodeLastRuneInString(text); unicode.Is(unicode.Hangul, last) {
				text += "*" // particles follow nouns without a blank
			}
			if text != "" && !slices.ContainsFunc(out[first], func(q phrase) bool { return q.text == text }) {
				out[first] = append(out[first], phrase{text, strings.Split(text, "*"), english})
			}
		}
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b phrase) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return out
})

// accents takes the marks from letters, which many people do not type.
var accents = strings.NewReplacer("à", "a", "á", "a", "â", "a", "ã", "a", "ä", "a", "å", "a", "ç", "c", "è", "e", "é", "e", "ê", "e", "ë", "e",
	"ì", "i", "í", "i", "î", "i", "ï", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ö", "o", "ø", "o", "ù", "u", "ú", "u", "û", "u", "ü", "u",
	"ß", "ss", "œ", "oe", "æ", "ae", "ё", "е", "’", "'", "‘", "'", "„", `"`, "“", `"`, "”", `"`, "«", `"`, "»", `"`)

// fold is text in the form in which it is compared: lower case, without accents, wide
// forms of ASCII as ASCII, single blanks.
func fold(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' { // the wide forms of ! to ~
			r = r - '！' + '!'
		}
		return unicode.ToLower(r)
	}, text)
	return strings.Join(strings.Fields(accents.Replace(text)), " ")
}

// translate is text, folded, with the phrases of other languages as English words; what
// it does not know stays.
func translate(text string) string {
	text = fold(text)
	known := tongues()
	var b strings.Builder
	before := ' '
scan:
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unspaced(r) || !wordRune(before) || unspaced(before) {
			for _, p := range known[r] {
				end, ok := p.at(text, i)
				if !ok {
					continue
				}
				b.WriteString(" " + p.english + " ")
				before, i = ' ', end
				continue scan
			}
		}
		if unspaced(r) != unspaced(before) && wordRune(r) && wordRune(before) {
			b.WriteByte(' ') // nan变成 are two words
		}
		b.WriteString(text[i : i+n])
		before, i = r, i+n
	}
	return b.String()
}

// at reports whether p stands in text at i, and where it ends.
func (p *phrase) at(text string, i int) (end int, ok bool) {
	end = i
	for n, part := range p.parts {
		if !strings.HasPrefix(text[end:], part) {
			return 0, false
		}
		end += len(part)
		next, size := utf8.DecodeRuneInString(text[end:])
		last, _ := utf8.DecodeLastRuneInString(text[i:end])
		if n == len(p.parts)-1 {
			return end, part == "" || end == len(text) || unspaced(last) || unspaced(next) || !wordRune(next)
		}
		for size > 0 && wordRune(next) && !unspaced(next) && !unspaced(last) {
			end += size
			next, size = utf8.DecodeRuneInString(text[end:])
		}
	}
	return end, true
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// unspaced reports whether r is of a script that sets no blanks between words.
func unspaced(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー'
}
