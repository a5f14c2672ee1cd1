package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

var readers = []string{Engineer, OnCall, Executive}

func render(t testing.TB, format string, inc *incident.Incident, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, inc, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden renders every sample in every format; text in three widths and in
// full, text and markdown for every reader. The pages for on-call and executive
// are checked by structure, in html_test.go.
func TestGolden(t *testing.T) {
	for _, s := range samples {
		inc := load(t, s.name)
		golden := func(name, format string, o Options) {
			t.Helper()
			compare(t, filepath.Join("testdata", "golden", s.name+name), []byte(render(t, format, inc, o)))
		}
		for _, width := range []int{60, 100, 200} {
			golden(fmt.Sprintf(".%d.txt", width), "text", Options{Width: width})
		}
		golden(".full.txt", "text", Options{Full: true})
		golden(".on-call.txt", "text", Options{For: OnCall})
		golden(".executive.txt", "text", Options{For: Executive})
		golden(".md", "markdown", Options{})
		golden(".on-call.md", "markdown", Options{For: OnCall})
		golden(".executive.md", "markdown", Options{For: Executive})
		golden(".json", "json", Options{})
		golden(".sarif", "sarif", Options{})
		golden(".chat.md", "chat", Options{})
		golden(".termination.txt", "termination", Options{})
		golden(".html", "html", Options{})
	}
}

func TestTextKeepsItsBounds(t *testing.T) {
	for _, s := range samples {
		inc := load(t, s.name)
		for _, who := range readers {
			for _, width := range []int{40, 47, 60, 61, 79, 80, 100, 133, 200} {
				for _, full := range []bool{false, true} {
					for _, color := range []bool{false, true} {
						out := render(t, "text", inc, Options{Width: width, For: who, Full: full, Color: color})
						if !color && strings.Contains(out, "\x1b") {
							t.Errorf("%s %s %d: an escape without colour", s.name, who, width)
						}
						plain := evidence.Escapes.ReplaceAllString(out, "")
						if color && plain != render(t, "text", inc, Options{Width: width, For: who, Full: full}) {
							t.Errorf("%s %s %d: colour changes the words", s.name, who, width)
						}
						lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
						if !full && len(lines) > shortLines {
							t.Errorf("%s %s %d: %d lines", s.name, who, width, len(lines))
						}
						for i, l := range lines {
							if n := columns(l); n > width {
								t.Errorf("%s %s %d: line %d has %d columns: %s", s.name, who, width, i+1, n, l)
							}
						}
						for i, label := range []string{"First ", "Sure ", "Do ", "Check ", "Order "} {
							if !strings.HasPrefix(lines[i], label) {
								t.Errorf("%s %s %d: line %d does not begin with %q: %s", s.name, who, width, i+1, label, lines[i])
							}
						}
					}
				}
			}
		}
	}
}

// TestShortTextKeepsWhatMatters gives the shortest report the longest incident
// and expects the most important lines in it.
func TestShortTextKeepsWhatMatters(t *testing.T) {
	inc := load(t, "collateral")
	inc.HostComparison = nil // there only where it was asked for, and then before what is cut
	for range 30 {
		inc.Collateral = append(inc.Collateral, inc.Collateral[1])
		inc.Hypotheses = append(inc.Hypotheses, inc.Hypotheses[1])
		inc.Contributing = append(inc.Contributing, inc.Contributing[0])
		inc.Hypotheses[0].For = append(inc.Hypotheses[0].For, says("A minor sentence."))
		inc.Limits = append(inc.Limits, inc.Limits[0])
	}
	for _, width := range []int{60, 100} {
		out := strings.Join(strings.Fields(render(t, "text", inc, Options{Width: width})), " ")
		for _, want := range []string{
			"rank5.log:2210", "torch.OutOfMemoryError", "it stands 600 s before every other failure", "Cap the sequence length at 7808 tokens",
			"max_length=None -> max_length=7808", "--max-length 7808", "peak below 74 GiB", "One batch was far longer than the others", "15872 tokens; the median",
			"collective timeout, 7 times", "1 partly read (dmesg-node-b.txt.gz)", "gzip ends early", "more: --full",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("width %d: %q is missing from\n%s", width, want, out)
			}
		}
	}
}

func TestSameBytes(t *testing.T) {
	for _, s := range samples {
		for _, f := range Formats() {
			if a, b := render(t, f, load(t, s.name), Options{}), render(t, f, load(t, s.name), Options{}); a != b {
				t.Errorf("%s as %s differs from run to run", s.name, f)
			}
		}
	}
}

// TestNothingSteers checks that no format carries a character that a terminal, a
// bidirectional renderer or an editor would act on or hide.
func TestNothingSteers(t *testing.T) {
	inc := hostileSample() // as built: the JSON file has lost what is no UTF-8
	for _, f := range Formats() {
		for _, who := range readers {
			for _, full := range []bool{false, true} {
				out := render(t, f, inc, Options{For: who, Full: full})
				if !utf8.ValidString(out) {
					t.Errorf("%s for %s is not UTF-8", f, who)
				}
				for i, r := range out {
					if r != '\n' && !unicode.IsPrint(r) && !(f == "html" && r == '\u00a0') {
						t.Errorf("%s for %s: %U at byte %d: %q", f, who, r, i, out[max(0, i-30):min(len(out), i+30)])
						break
					}
				}
			}
		}
	}
}

func TestJSONKeepsValues(t *testing.T) {
	inc := load(t, "hostile")
	var back incident.Incident
	unmarshal(t, []byte(render(t, "json", inc, Options{})), &back)
	if got, want := back.FirstFault.Text, inc.FirstFault.Text; got != want {
		t.Errorf("text is %q after a round trip, was %q", got, want)
	}
	if !strings.ContainsRune(back.FirstFault.Text, '\U000e0041') || !strings.ContainsRune(back.FirstFault.Text, '\u202e') {
		t.Error("invisible characters did not survive the round trip")
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := Write(&bytes.Buffer{}, "docx", load(t, "oom"), Options{}); err == nil {
		t.Error("no error for an unknown format")
	}
}

// TestIncidentOfAnotherVersion renders an incident with next to nothing in it.
func TestIncidentOfAnotherVersion(t *testing.T) {
	sparse := []*incident.Incident{{}, {Findings: incident.Findings{FirstFault: &incident.Event{}, Hypotheses: []incident.Hypothesis{{}}, Remedy: &incident.Remedy{}, Collateral: []incident.Collateral{{}}}, Attempts: make([]incident.Attempt, 2), Ranks: make([]incident.Rank, 2), Baseline: &incident.Baseline{}, HostComparison: &incident.HostComparison{Rows: make([]incident.HostRow, 1)}, OnCall: &incident.OnCall{Cordon: make([]incident.Cordon, 1), Lost: &incident.Lost{}, Reproduce: &incident.Reproduce{}}}}
	for _, inc := range sparse {
		for _, f := range Formats() {
			for _, who := range readers {
				render(t, f, inc, Options{For: who, Full: true})
			}
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want []string
	}{
		{"", 20, []string{""}},
		{"one two", 20, []string{"one two"}},
		{"aaaaaaaaaa bbbbbbbbbb cc", 20, []string{"aaaaaaaaaa", "bbbbbbbbbb cc"}},
		{strings.Repeat("x", 45), 20, []string{strings.Repeat("x", 20), strings.Repeat("x", 20), "xxxxx"}},
		{strings.Repeat("語", 12), 20, []string{strings.Repeat("語", 10), "語語"}},
	} {
		if got := wrap(c.in, c.n); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                           "plain",
		"\x1b[31mred\x1b[0m":              "red",
		"\x1b]0;title\x07after":           "after",
		"a\u202eb\u2066c\u200dd":          "abcd",
		"a\tb\u00a0c\r\nd":                "a b c\nd",
		"\xff\xfe":                        "?",
		"e\u0301":                         "e\u0301",
		"z" + strings.Repeat("\u0336", 9): "z" + strings.Repeat("\u0336", 4),
		"tag\U000e0041":                   "tag",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if n := len(clean(strings.Repeat("ü", maxText))); n > maxText+3 {
		t.Errorf("a long text has %d bytes", n)
	}
}

func TestShortNamesAreDistinct(t *testing.T) {
	w := newWords(&incident.Incident{Artifacts: []incident.Artifact{{Path: "a/0/stderr"}, {Path: "a/1/stderr"}, {Path: "b/1/stderr"}, {Path: "b.tar!x/y.log"}, {Path: "lone"}}})
	for path, want := range map[string]string{"a/0/stderr": "0/stderr", "a/1/stderr": "a/1/stderr", "b/1/stderr": "b/1/stderr", "b.tar!x/y.log": "y.log", "lone": "lone"} {
		if got := w.short[path]; got != want {
			t.Errorf("short name of %s is %q, want %q", path, got, want)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	inc := load(b, "collateral")
	for _, f := range Formats() {
		b.Run(f, func(b *testing.B) {
			for b.Loop() {
				render(b, f, inc, Options{})
			}
		})
	}
}
