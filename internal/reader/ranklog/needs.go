package ranklog

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A demand is what a text must hold for an expression to match it: of each set
// one. Looking for a few literals takes a twentieth of the time of an expression
// that begins with an alternation, and most lines that hold a wording's literal
// hold nothing else of it.
type demand struct {
	sets [][]string
	fold bool // the literals are in lower case and match in either
}

const (
	minNeed  = 3  // bytes of a literal that tells something
	maxNeeds = 32 // literals of one set
)

// demandOf returns the demand of expr beyond literal, which the text is known to
// hold.
func demandOf(expr, literal string) demand {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return demand{}
	}
	d := demand{fold: strings.Contains(expr, "(?i")}
	if d.fold {
		literal = strings.ToLower(literal)
	}
	for _, set := range needs(re, d.fold) {
		given := false
		for _, text := range set {
			given = given || strings.Contains(literal, text)
		}
		if !given {
			d.sets = append(d.sets, set)
		}
	}
	return d
}

// needs returns sets of literals of which each match of re holds one each, in
// lower case where fold says so.
func needs(re *syntax.Regexp, fold bool) (sets [][]string) {
	switch re.Op {
	case syntax.OpLiteral:
		if text := string(re.Rune); len(text) >= minNeed && isASCII(text) && (fold || re.Flags&syntax.FoldCase == 0) {
			if fold {
				text = strings.ToLower(text)
			}
			return [][]string{{text}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0], fold)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0], fold)
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			sets = append(sets, needs(sub, fold)...)
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			of := needs(sub, fold)
			if len(of) == 0 {
				return nil
			}
			if all = append(all, longest(of)...); len(all) > maxNeeds {
				return nil
			}
		}
		return [][]string{all}
	}
	return sets
}

// longest returns the set whose shortest literal is the longest.
func longest(sets [][]string) []string {
	best, most := sets[0], 0
	for _, set := range sets {
		least := len(set[0])
		for _, text := range set {
			least = min(least, len(text))
		}
		if least > most {
			best, most = set, least
		}
	}
	return best
}

// metBy reports whether text may match. Some letters beyond ASCII match ASCII
// ones where case doesn't count, so a text that has any always may.
func (d demand) metBy(text string) bool {
	if d.fold && len(d.sets) > 0 {
		if !isASCII(text) {
			return true
		}
		text = strings.ToLower(text)
	}
next:
	for _, set := range d.sets {
		for _, need := range set {
			if strings.Contains(text, need) {
				continue next
			}
		}
		return false
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// A bareWord is a literal in lower case that may have to begin or end a word.
type bareWord struct {
	text        string
	left, right bool
}

// bareWords returns what expr matches if that is nothing but literals in either
// case, each with \b beside it or not; nil for any other expression.
func bareWords(expr string) (out []bareWord) {
	rest, ok := strings.CutPrefix(expr, "(?i)")
	if !ok {
		return nil
	}
	for _, part := range strings.Split(rest, "|") {
		var w bareWord
		part, w.left = strings.CutPrefix(part, `\b`)
		part, w.right = strings.CutSuffix(part, `\b`)
		if part == "" || !isASCII(part) || regexp.QuoteMeta(part) != part {
			return nil
		}
		w.text = strings.ToLower(part)
		out = append(out, w)
	}
	return out
}

// in reports whether low, a text in lower case, has the word.
func (w bareWord) in(low string) bool {
	for at := 0; ; at++ {
		next := strings.Index(low[at:], w.text)
		if next < 0 {
			return false
		}
		at += next
		if (!w.left || wordEdge(low, at)) && (!w.right || wordEdge(low, at+len(w.text))) {
			return true
		}
	}
}

// wordEdge reports whether \b matches at s[i:].
func wordEdge(s string, i int) bool {
	before := i > 0 && isWordByte(s[i-1])
	after := i < len(s) && isWordByte(s[i])
	return before != after
}

func isWordByte(c byte) bool { return isLetter(c) || c-'0' <= 9 || c == '_' }
