package ranklog

import (
	"regexp"
	"testing"
)

func TestDemand(t *testing.T) {
	tests := []struct {
		expr, literal, text string
		want                bool
	}{
		{`(?i)\b(?:skipped|retr(?:y|ied)ing)\b.*out of memory`, "out of memory", "went out of memory, giving up", false},
		{`(?i)\b(?:skipped|retr(?:y|ied)ing)\b.*out of memory`, "out of memory", "SKIPPED one: out of memory", true},
		{`(?i)\bretry`, "", "\u212aept, no retries", true}, // the Kelvin sign is a k there
		{`took (\d+)s of (?:wall|clock) time`, "took ", "took 3s of clock time", true},
		{`took (\d+)s of (?:wall|clock) time`, "took ", "took 3s of Clock time", false},
		{`lost (?:a rank|x+)?`, "lost", "lost it", true},
		{`(?s)(?i:gone) away`, "", "GONE away", true},
		{`(?si)gone`, "", "GONE", true},
	}
	for _, tt := range tests {
		if got := demandOf(tt.expr, tt.literal).metBy(tt.text); got != tt.want {
			t.Errorf("%s beyond %q met by %q: got %v", tt.expr, tt.literal, tt.text, got)
		}
	}
}

func TestBareWords(t *testing.T) {
	const expr = `(?i)\btry setting|see docs|\bconsider\b`
	words := bareWords(expr)
	if len(words) != 3 {
		t.Fatalf("got %v", words)
	}
	for _, text := range []string{"Try Setting it", "retry setting", "(see docs)", "oversee docs", "consider", "considered", "un consider", "x_consider", ""} {
		got := (&wording{not: regexp.MustCompile(expr), notWords: words}).refuses(text)
		if want := regexp.MustCompile(expr).MatchString(text); got != want {
			t.Errorf("%q: got %v, the expression says %v", text, got, want)
		}
	}
	for _, other := range []string{`plain`, `(?i)a.c`, `(?i)x|`, `(?i)caf\x{e9}`} {
		if got := bareWords(other); got != nil {
			t.Errorf("%s: got %v", other, got)
		}
	}
}
