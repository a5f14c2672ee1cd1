package report

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestParts checks that what another page frames is what the report's own file shows, and
// that it works under a policy without inline styles and scripts.
func TestParts(t *testing.T) {
	for _, s := range samples {
		for _, who := range readers {
			t.Run(s.name+"/"+who, func(t *testing.T) {
				inc := load(t, s.name)
				parts, err := PartsOf(inc, Framing{For: who})
				if err != nil {
					t.Fatal(err)
				}
				page := render(t, "html", inc, Options{For: who})
				for _, s := range parts.Sections {
					if !strings.Contains(page, string(s.HTML)) {
						t.Errorf("section %s is another one in the file", s.ID)
					}
				}
				checkParts(t, parts)
			})
		}
	}
	for name, m := range memoryResults(t) {
		parts, err := MemoryPartsOf(m)
		if err != nil {
			t.Fatal(err)
		}
		page := renderMemory(t, "html", m, Options{})
		for _, s := range parts.Sections {
			if !strings.Contains(page, string(s.HTML)) {
				t.Errorf("%s: section %s is another one in the file", name, s.ID)
			}
		}
		checkParts(t, parts)
	}
}

// checkParts checks what must hold of all parts.
func checkParts(t *testing.T, p *Parts) {
	t.Helper()
	if p.Title == "" || len(p.Verdict) == 0 && len(p.Sections) == 0 {
		t.Error("nothing is said")
	}
	ids := map[string]bool{}
	for _, s := range p.Sections {
		doc, err := html.Parse(strings.NewReader(string(s.HTML)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(s.HTML), `<section id="`+s.ID+`"`) {
			t.Errorf("section %s begins with %.60s", s.ID, s.HTML)
		}
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Data == "script" || n.Data == "style" {
				t.Errorf("section %s has an element %s", s.ID, n.Data)
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("section %s: <%s %s>", s.ID, n.Data, a.Key)
				}
				if a.Key == "id" {
					if ids[a.Val] {
						t.Errorf("id %q occurs twice", a.Val)
					}
					ids[a.Val] = true
				}
			}
		}
	}
	files := PartFiles()
	for _, name := range append(append([]string(nil), p.Styles...), p.Scripts...) {
		if files[name] == "" {
			t.Errorf("there is no file %s", name)
		}
	}
}

// TestPartsLink checks that a framed report leads to its places in their context, by the names
// that the incident has.
func TestPartsLink(t *testing.T) {
	inc := load(t, "oom")
	const odd = "a\u202eb\"&.log"
	for i := range inc.Artifacts {
		if inc.Artifacts[i].Path == inc.FirstFault.Span.Artifact {
			inc.Artifacts[i].Path = odd
		}
	}
	inc.FirstFault.Span.Artifact = odd
	asked := map[string]bool{}
	parts, err := PartsOf(inc, Framing{Link: func(sp *evidence.Span) string {
		asked[sp.Artifact] = true
		return fmt.Sprintf("/lines?line=%d", sp.Line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("/lines?line=%d", inc.FirstFault.Span.Line)
	if parts.First != want || !asked[odd] {
		t.Errorf("the first fault leads to %q, not %q; asked: %v", parts.First, want, asked)
	}
	for _, s := range parts.Sections {
		if s.ID == "evidence" && !strings.Contains(string(s.HTML), `<a class="open" href="`+want+`">`) {
			t.Error("the evidence does not lead to its context")
		}
	}
}
