package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// compactChecks holds what every summary keeps.
func compactChecks(t *testing.T, inc *incident.Incident, before string) {
	t.Helper()
	chat := render(t, "chat", inc, Options{})
	if n := utf8.RuneCountInString(chat); n > ChatMost || !utf8.ValidString(chat) {
		t.Errorf("a chat's summary has %d characters", n)
	}
	if !strings.HasPrefix(chat, chatBegins) {
		t.Errorf("it begins %.40q", chat)
	}
	message := Termination(inc, before)
	if len(message) > TerminationMost || !utf8.ValidString(message) {
		t.Errorf("a termination message has %d bytes", len(message))
	}
	for _, text := range []string{chat, message} {
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%U in %q", r, text)
				break
			}
		}
		if strings.Contains(text, "\n\n") || !strings.HasSuffix(text, "\n") {
			t.Errorf("not one block of lines: %q", text)
		}
	}
	if !strings.Contains(message, "First     ") {
		t.Errorf("no first line in %q", message)
	}
	var page bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(chat), &page); err != nil {
		t.Fatal(err)
	}
	html := page.String()
	for _, bad := range []string{"<a ", "<img", "<script", "<h1", "<h2", "<table", "<blockquote", "<del>", "<input", "<!-- raw"} {
		if strings.Contains(html, bad) {
			t.Errorf("%s in the summary %q as %s", bad, chat, html)
		}
	}
	outside := spansOf(html)
	for _, bad := range []string{"@", "://", "www.", "#1", "&lt;!"} {
		if strings.Contains(outside, bad) {
			t.Errorf("%q stands outside of code in %q", bad, chat)
		}
	}
}

// spansOf is a page without what stands in code.
func spansOf(html string) string {
	var b strings.Builder
	for {
		at := strings.Index(html, "<code>")
		if at < 0 {
			b.WriteString(html)
			return b.String()
		}
		b.WriteString(html[:at])
		_, html, _ = strings.Cut(html, "</code>")
	}
}

func TestCompact(t *testing.T) {
	all := map[string]*incident.Incident{"nothing": {}, "hostile as built": hostileSample(), "broken": brokenSample()}
	for _, s := range samples {
		all[s.name] = load(t, s.name)
	}
	for name, inc := range all {
		t.Run(name, func(t *testing.T) { compactChecks(t, inc, "killed by SIGKILL (inquest trial t1)") })
	}
	if got := Termination(nil, "ended with\nstatus 1\x1b[0m", ""); got != "ended with status 1\n" {
		t.Errorf("without a diagnosis %q", got)
	}
}

// FuzzCompact puts a log's words wherever they can stand in a summary.
func FuzzCompact(f *testing.F) {
	f.Add("CUDA out of memory", "train.py", int64(7))
	f.Add("@here <!channel> [x](http://a.example) `a``b` \x1b[31m \u202e evil.example", "`\n# x", int64(-1))
	f.Add(strings.Repeat("é \xff", 9000), strings.Repeat("a.b/", 5000), int64(1<<62))
	f.Add("```\n- x\n1. y\n> z\n***\n| a |", "~~~", int64(0))
	f.Fuzz(func(t *testing.T, text, name string, n int64) {
		sp := &evidence.Span{Artifact: name, Line: n, Quote: text, Kind: "text"}
		host := name
		compactChecks(t, &incident.Incident{ID: name, Tool: incident.Tool{Name: "inquest", Version: text}, Findings: incident.Findings{
			FirstFault:         &incident.Event{Text: text, Span: sp, Class: text, Kind: name, Host: &host, Frame: &incident.Frame{File: name, Source: text, Function: name, Line: 1}},
			FirstFaultStanding: incident.Supported,
			Hypotheses:         []incident.Hypothesis{{Entry: name, Title: text, Standing: text}},
			Remedy:             &incident.Remedy{Change: text, Verify: name + text},
			Collateral:         []incident.Collateral{{Event: incident.Event{Kind: text}, Count: 3}},
			Order:              incident.Order{Relation: incident.NoRelation, Basis: text},
		}, Limits: []incident.Statement{{Text: text}, {Text: name}}}, text)
	})
}
