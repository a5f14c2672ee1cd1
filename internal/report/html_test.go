package report

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inquest-dev/inquest/internal/incident"
)

func unmarshal(t testing.TB, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestPage checks what must hold of every page: one file that loads nothing, a
// policy that allows exactly its own styles and script, no handler attributes,
// unique ids, links that lead somewhere, headings in order, names on regions,
// and the incident in it.
func TestPage(t *testing.T) {
	for _, s := range samples {
		for _, who := range readers {
			t.Run(s.name+"/"+who, func(t *testing.T) { checkPage(t, load(t, s.name), who) })
		}
	}
}

func checkPage(t *testing.T, inc *incident.Incident, who string) {
	page := render(t, "html", inc, Options{For: who})
	if n := len(page); n > 600<<10 {
		t.Errorf("the page has %d bytes", n)
	}
	checkMarkup(t, page, func(body string) {
		var back incident.Incident
		unmarshal(t, []byte(body), &back)
		if back.ID != inc.ID || len(back.Series) != len(inc.Series) || back.FirstFault != nil && back.FirstFault.Text != inc.FirstFault.Text {
			t.Error("the incident in the page is another")
		}
	})
}

// checkMarkup checks what TestPage says of any page; data sees each element that holds
// JSON.
func checkMarkup(t *testing.T, page string, data func(body string)) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	var links, labels []string
	var policy string
	level, h1 := 0, 0
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("a comment: %q", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			key := strings.ToLower(a.Key)
			switch {
			case strings.HasPrefix(key, "on"), key == "style", key == "srcset", key == "src", key == "action", key == "formaction", key == "background", key == "poster":
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			case key == "href":
				if !strings.HasPrefix(a.Val, "#") {
					t.Errorf("<%s href=%q> leaves the page", n.Data, a.Val)
				}
				links = append(links, a.Val[1:])
			case key == "id":
				if ids[a.Val] {
					t.Errorf("id %q occurs twice", a.Val)
				}
				ids[a.Val] = true
			case key == "aria-labelledby", key == "data-copy":
				labels = append(labels, a.Val)
			}
		}
		switch n.Data {
		case "iframe", "object", "embed", "img", "link", "base", "form", "audio", "video":
			t.Errorf("element %s", n.Data)
		case "meta":
			if v, _ := attr(n, "http-equiv"); v == "Content-Security-Policy" {
				policy, _ = attr(n, "content")
			}
		case "h1", "h2", "h3", "h4":
			now := int(n.Data[1] - '0')
			if now > level+1 {
				t.Errorf("heading %s %q after one of level %d", n.Data, text(n), level)
			}
			level = now
			if now == 1 {
				h1++
			}
			if strings.TrimSpace(text(n)) == "" {
				t.Errorf("an empty %s", n.Data)
			}
		case "style":
			css := text(n)
			if strings.Contains(css, "url(") || strings.Contains(css, "@import") {
				t.Error("the styles load something")
			}
			if !strings.Contains(policy, "style-src '"+hashOf(css)+"'") {
				t.Error("the policy does not allow the styles")
			}
		case "script":
			body := text(n)
			if typ, _ := attr(n, "type"); typ == "application/json" {
				data(body)
				continue
			}
			if !strings.Contains(policy, "script-src '"+hashOf(body)+"'") {
				t.Error("the policy does not allow the script")
			}
		case "svg":
			hidden, _ := attr(n, "aria-hidden")
			_, named := attr(n, "aria-label")
			if inside(n, "svg") || hidden == "true" || named {
				continue
			}
			t.Error("a drawing without a name")
		case "button":
			if typ, _ := attr(n, "type"); typ != "button" {
				t.Error("a button that would submit")
			}
		case "th":
			if _, ok := attr(n, "scope"); !ok {
				t.Errorf("a heading cell without scope: %q", text(n))
			}
		}
		if role, _ := attr(n, "role"); role == "region" {
			if _, ok := attr(n, "aria-label"); !ok {
				t.Error("a region without a name")
			}
		}
	}
	if h1 != 1 {
		t.Errorf("%d headings of the first level", h1)
	}
	for _, id := range append(links, labels...) {
		if !ids[id] {
			t.Errorf("nothing has the id %q", id)
		}
	}
	for _, part := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is weak: %s", policy)
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
}

func inside(n *html.Node, element string) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == element {
			return true
		}
	}
	return false
}

// TestPageHasItsParts checks that a rich incident fills every section, in the
// order of its reader, and that the timeline stays bounded.
func TestPageHasItsParts(t *testing.T) {
	inc := load(t, "collateral")
	at := -1
	page := render(t, "html", inc, Options{})
	for _, id := range []string{"verdict", "timeline", "evidence", "causes", "change", "plots", "followed", "ranks", "facts", "files"} {
		i := strings.Index(page, `<section id="`+id+`"`)
		if i < at {
			t.Errorf("section %s is missing or out of order", id)
		}
		at = i
	}
	page = render(t, "html", inc, Options{For: Executive})
	for _, id := range []string{"evidence", "facts", "ranks"} {
		if strings.Contains(page, `<section id="`+id+`"`) {
			t.Errorf("executives get section %s", id)
		}
	}
	for i := range 1000 {
		inc.Ranks = append(inc.Ranks, incident.Rank{Rank: 8 + i, Fate: "timed out waiting"})
		inc.Collateral[0].Ranks = append(inc.Collateral[0].Ranks, 8+i)
	}
	v := newView(cleaned(inc), Options{For: Engineer}, nil)
	if n := len(v.Timeline.Lanes); n > maxLanes+1 {
		t.Errorf("%d lanes", n)
	}
	found := false
	for _, l := range v.Timeline.Lanes {
		found = found || l.Label == "rank 5" && l.Bad
	}
	if !found {
		t.Error("the rank that failed first lost its lane")
	}
}

// TestCurves checks that the first non-finite value is marked and the failed
// part shaded.
func TestCurves(t *testing.T) {
	plots := plotsOf(load(t, "hidden-nan"))
	if len(plots) != 2 {
		t.Fatalf("%d plots", len(plots))
	}
	norm := plots[1]
	if len(norm.Bad) != 1 || norm.BadFrom != "3100" || norm.ShadeX == "" || !strings.Contains(norm.Caption, "nan at step 3100") {
		t.Errorf("gradient norm: %+v", norm)
	}
	if loss := plots[0]; loss.ShadeX == "" || len(loss.Bad) != 0 || !strings.Contains(loss.Caption, "proves nothing") {
		t.Errorf("loss: %+v", loss)
	}
	mem := plotsOf(load(t, "collateral"))
	if len(mem) != 2 || len(mem[1].Lines) != 2 || mem[1].BadTo != "1874" || mem[1].YLow != "0 bytes" {
		t.Errorf("memory: %+v", mem)
	}
}
