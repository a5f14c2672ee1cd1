package web

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

var verdictRoutes = []route{
	{"GET /cases/{id}/timeline", (*site).showTimeline},
	{"GET /cases/{id}/lines", (*site).showLines},
	{"GET /cases/{id}/memory", (*site).showMemory},
	{"GET /cases/{id}/tracker", (*site).showTracker},
	{"GET /cases/{id}/report.html", (*site).download},
	{"GET /cases/{id}/report.json", (*site).download},
	{"GET /cases/{id}/report.md", (*site).download},
	{"GET /cases/{id}/report.txt", (*site).download},
	{"GET /cases/{id}/report.sarif", (*site).download},
}

// A casePage is what all pages of an ended case have: which case, and its other pages.
type casePage struct {
	Case  *incident.Case
	Tabs  []caseTab
	Parts *report.Parts
}

// A caseTab leads to another page of the same case.
type caseTab struct {
	Title, Href string
	Here        bool
}

// A verdictPage is what the template of the verdict sees.
type verdictPage struct {
	casePage
	Readers   []caseTab
	Downloads []downloadLink
}

type downloadLink struct{ Name, Title string }

// readers are those whom a report can be made for, by the names that report has for them.
var readers = []struct{ name, title string }{{report.Engineer, "Engineer"}, {report.OnCall, "On call"}, {report.Executive, "Executive"}}

// ended shows a case to which nothing more happens: its verdict, or why there is none.
func (s *site) ended(w http.ResponseWriter, r *http.Request, c *incident.Case) error {
	if c.State != incident.CaseDone {
		return s.page(w, r, http.StatusOK, c.Name, "verdict-none", c)
	}
	result, err := s.Desk.Result(r.Context(), c.ID)
	if err != nil {
		return err
	}
	who := r.URL.Query().Get("for")
	if !slices.ContainsFunc(readers, func(x struct{ name, title string }) bool { return x.name == who }) {
		who = report.Engineer
	}
	parts, err := report.PartsOf(result.Incident, report.Framing{For: who, Link: linkOf(c.ID)})
	if err != nil {
		return err
	}
	p := &verdictPage{casePage: newCasePage(c, result, "")}
	p.Parts = parts
	for _, x := range readers {
		href := casePath(c.ID, "")
		if x.name != report.Engineer {
			href += "?for=" + x.name
		}
		p.Readers = append(p.Readers, caseTab{x.title, href, x.name == who})
	}
	for _, d := range downloads {
		if slices.Contains(report.Formats(), d.format) {
			name := "report." + d.ending
			if who != report.Engineer && d.format != "json" && d.format != "sarif" {
				name += "?for=" + who
			}
			p.Downloads = append(p.Downloads, downloadLink{casePath(c.ID, name), d.title})
		}
	}
	return s.page(w, r, http.StatusOK, parts.Title, "verdict", p)
}

// newCasePage knows the pages that a case has; part is the one that is shown.
func newCasePage(c *incident.Case, result *desk.Result, part string) casePage {
	p := casePage{Case: c}
	put := func(title, name string) { p.Tabs = append(p.Tabs, caseTab{title, casePath(c.ID, name), name == part}) }
	put("Verdict", "")
	put("Timeline", "timeline")
	has := func(kinds ...string) bool {
		return slices.ContainsFunc(result.Incident.Artifacts, func(a incident.Artifact) bool { return slices.Contains(kinds, a.Kind) })
	}
	if has("memsnap") {
		put("Memory", "memory")
	}
	if has("aim", "clearml", "comet", "dvclive", "history", "mlflow", "neptune", "parquet", "swanlab", "tfevents", "trackio", "wandb") {
		put("Tracker", "tracker")
	}
	return p
}

// linkOf leads from a place to its line in its context.
func linkOf(id string) func(*evidence.Span) string {
	return func(sp *evidence.Span) string { return spanPath(id, sp) }
}

// downloads are the formats of a report by the ending of their address.
var downloads = []struct{ ending, format, title string }{
	{"html", "html", "HTML, one file"},
	{"md", "markdown", "Markdown"},
	{"txt", "text", "Text"},
	{"json", "json", "JSON"},
	{"sarif", "sarif", "SARIF"},
}

// download gives the report of a case as a file.
func (s *site) download(w http.ResponseWriter, r *http.Request) error {
	_, result, err := s.done(r)
	if err != nil {
		return err
	}
	ending := r.URL.Path[strings.LastIndexByte(r.URL.Path, '.')+1:]
	for _, d := range downloads {
		if d.ending != ending || !slices.Contains(report.Formats(), d.format) {
			continue
		}
		var b bytes.Buffer
		if err := report.Write(&b, d.format, result.Incident, report.Options{Full: true, For: r.URL.Query().Get("for")}); err != nil {
			return err
		}
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="inquest-%s.%s"`, attachmentName(result.Incident.ID), d.ending))
		s.send(w, r, http.StatusOK, report.MediaType(d.format), b.Bytes())
		return nil
	}
	return errNowhere
}

// done is the case that a request names and its result; the error is desk.ErrState while there is
// none.
func (s *site) done(r *http.Request) (*incident.Case, *desk.Result, error) {
	c, err := s.Desk.Case(r.PathValue("id"))
	if err != nil {
		return nil, nil, err
	}
	if !c.Ended() {
		return nil, nil, &failure{http.StatusConflict, "The case is still being read", "Its page shows how far it is, and its verdict when there is one.", nil}
	}
	result, err := s.Desk.Result(r.Context(), c.ID)
	return c, result, err
}

// attachmentName is s with nothing in it but letters, digits and hyphens.
func attachmentName(s string) string {
	return cutTo(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, s), 60)
}
