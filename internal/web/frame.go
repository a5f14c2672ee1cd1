package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/report"
)

//go:embed assets
var assets embed.FS

// A frame has the templates of all pages. Each file assets/NAME.html is the page NAME: it defines
// "main", the content, and may define "head", for what a page has beside the common styles and
// scripts. Files assets/NAME.part.html define templates that several pages share. All see the
// data of the page, and the functions of funcs.
type frame struct {
	pages map[string]*template.Template
}

// A tab is an entry of the navigation.
type tab struct{ Path, Title string }

var tabs = []tab{{"/", "Diagnose"}, {"/cases", "Cases"}, {"/incidents", "Incidents"}, {"/encyclopedia", "Encyclopedia"}}

// A framed page is what the template base is given.
type framed struct {
	Title   string
	Tabs    []tab
	Current string // the path of the tab that the page belongs to, "" for none
	Query   string // in the search box
	Version string
	Data    any
}

func newFrame(files *static) (*frame, error) {
	base, err := template.New("base").Funcs(funcs(files)).ParseFS(assets, "assets/base.html")
	if err != nil {
		return nil, err
	}
	if parts, err := fs.Glob(assets, "assets/*.part.html"); err != nil {
		return nil, err
	} else if len(parts) > 0 {
		if base, err = base.ParseFS(assets, parts...); err != nil {
			return nil, err
		}
	}
	names, err := fs.Glob(assets, "assets/*.html")
	if err != nil {
		return nil, err
	}
	f := &frame{pages: map[string]*template.Template{}}
	for _, name := range names {
		id := strings.TrimSuffix(path.Base(name), ".html")
		if id == "base" || strings.HasSuffix(id, ".part") {
			continue
		}
		t, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if t, err = t.ParseFS(assets, name); err != nil {
			return nil, err
		}
		if t.Lookup("main") == nil {
			return nil, fmt.Errorf("%s defines no main", name)
		}
		f.pages[id] = t
	}
	return f, nil
}

// funcs are what every template may call.
func funcs(files *static) template.FuncMap {
	return template.FuncMap{
		"static": files.path,     // the path of a file of assets, or of reports ("report/…")
		"bytes":  byteCount,      // 1536 → "1.5 KiB"
		"plural": plural,         // 2 "file" → "2 files"
		"both":   both,           // a row that sets two things side by side, with their names
		"when":   when,           // a time of a case, as a person reads it
		"line":   report.OneLine, // a text from elsewhere, printable and on one line
	}
}

// page is the one place that renders a page: the template assets/NAME.html with data, inside the
// frame. Nothing is sent before all of it is made, so that a page is whole or an error. title is
// that of the window.
func (s *site) page(w http.ResponseWriter, r *http.Request, status int, title, name string, data any) error {
	t := s.frame.pages[name]
	if t == nil {
		return fmt.Errorf("no template %s", name)
	}
	p := framed{Title: report.OneLine(title), Tabs: tabs, Current: tabOf(r.URL.Path), Version: s.Version, Data: data}
	if r.URL.Path == "/search" {
		p.Query = report.OneLine(r.URL.Query().Get("q"))
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "base", p); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	s.send(w, r, status, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// tabOf is the tab that a path belongs to.
func tabOf(p string) string {
	switch first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/"); first {
	case "":
		return "/"
	case "cases", "incidents", "encyclopedia":
		return "/" + first
	case "search":
		return "/encyclopedia"
	}
	return ""
}

// see answers a form that did its work: the browser goes to another page, by GET.
func see(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}
