package ranklog

import (
	"regexp"
	"testing"
)

// TestFrameLine compares frameLine with the expression that it stands for.
func TestFrameLine(t *testing.T) {
	form := regexp.MustCompile(`^[\s|+\-]*File "([^"]*)", line (\d+)(?:,? in (.*))?$`)
	for _, text := range []string{
		`  File "/srv/a b.py", line 12, in step`, `File "x", line 1`, `  |   File "<string>", line 3 in main`, `+-| File "", line 0, in `,
		`  File "x.py", line , in f`, `  File "x.py", line 7,`, `  File "x.py", line 7 of 9`, `  File "x"y", line 7`, `  File 'x', line 7`, `File "x`, `File "`, "", "see File \"x\", line 7",
		"  File \"x\", line 7, in a\nb", "\t\n File \"x\ny\", line 7", `  File "x", line 7,, in f`, `  File "x", line 7in f`,
	} {
		path, line, in, ok := frameLine(text)
		want := form.FindStringSubmatch(text)
		if ok != (want != nil) {
			t.Errorf("%q: got %v, want %q", text, ok, want)
		} else if ok && (path != want[1] || line != want[2] || in != want[3]) {
			t.Errorf("%q: got %q %q %q, want %q", text, path, line, in, want)
		}
	}
}
