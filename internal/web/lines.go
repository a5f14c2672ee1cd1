package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

// Lines of a window, on each side of the one that is asked for.
const (
	linesAround = 60
	linesMost   = 400
)

// A linesPage is what the template of a window into an artifact sees.
type linesPage struct {
	casePage
	Artifact, Name string // as the incident has it; its last element
	Shown          *incident.Lines
	Rows           []lineRow
	Mark           int64
	First, Last    int64
	Earlier, Later string // addresses of the windows beside it, "" where there is nothing
	Text           string // address of the same window as text
	Start          string // address of the first lines
	Limits         []string
}

// A lineRow is one line with what the diagnosis says of it.
type lineRow struct {
	incident.Line
	Href  string
	Roles []lineRole
}

type lineRole struct{ Role, Title, Why string }

// A linesQuery is a window that is asked for.
type linesQuery struct {
	artifact      string
	line, offset  int64
	before, after int
	mark          int64
}

// showLines shows a line in its context.
func (s *site) showLines(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	q, err := readLinesQuery(v)
	if err != nil {
		return err
	}
	c, result, err := s.done(r)
	if err != nil {
		return err
	}
	shown, err := s.Desk.Lines(r.Context(), c.ID, q.artifact, q.line, q.offset, q.before, q.after)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return &failure{http.StatusNotFound, "These lines cannot be shown", "The files that were read stand at the end of the verdict, each by the name that it has here.", err}
	}
	if v.Get("as") == "text" {
		var b bytes.Buffer
		for _, l := range shown.Lines {
			b.WriteString(l.Text)
			b.WriteByte('\n')
		}
		s.send(w, r, http.StatusOK, "text/plain; charset=utf-8", b.Bytes())
		return nil
	}
	p := newLinesPage(c.ID, q, shown, result.Timeline)
	p.casePage = newCasePage(c, result, "lines")
	return s.page(w, r, http.StatusOK, p.Name, "lines", p)
}

// readLinesQuery reads the parameters of a window.
func readLinesQuery(v url.Values) (linesQuery, error) {
	q := linesQuery{artifact: v.Get("artifact"), before: linesAround, after: linesAround, offset: -1}
	if q.artifact == "" {
		return q, &failure{http.StatusBadRequest, "No artifact is named", "Follow a link from the verdict, or name one of the artifacts that it lists: ?artifact=NAME&line=1.", nil}
	}
	number := func(name string, to *int64, least int64) error {
		s := strings.TrimSpace(v.Get(name))
		if s == "" {
			return nil
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < least {
			return &failure{http.StatusBadRequest, "There is no such line", "Lines are counted from 1, offsets in bytes from 0.", nil}
		}
		*to = n
		return nil
	}
	before, after := int64(q.before), int64(q.after)
	mark := int64(-1)
	for _, err := range []error{number("line", &q.line, 1), number("offset", &q.offset, 0), number("before", &before, 0), number("after", &after, 0), number("mark", &mark, 0)} {
		if err != nil {
			return q, err
		}
	}
	q.before, q.after = int(min(before, linesMost)), int(min(after, linesMost))
	if q.line == 0 && q.offset < 0 {
		q.line = 1
	}
	q.mark = mark
	return q, nil
}

// newLinesPage makes the page of a window; what the timeline says of its lines stands beside them.
func newLinesPage(id string, q linesQuery, shown *incident.Lines, t *incident.Timeline) *linesPage {
	p := &linesPage{Artifact: q.artifact, Name: report.OneLine(q.artifact[strings.LastIndexByte(q.artifact, '/')+1:]), Shown: shown, Mark: q.mark, Limits: shown.Limits}
	if p.Mark < 0 {
		for _, l := range shown.Lines {
			if l.Marked {
				p.Mark = l.N
				break
			}
		}
	}
	path := func(line, offset int64, before, after int, more ...string) string {
		v := url.Values{"artifact": {q.artifact}, "line": {strconv.FormatInt(line, 10)}, "before": {strconv.Itoa(before)}, "after": {strconv.Itoa(after)}, "mark": {strconv.FormatInt(max(p.Mark, 0), 10)}}
		if offset >= 0 {
			v.Set("offset", strconv.FormatInt(offset, 10))
		}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return casePath(id, "lines") + "?" + v.Encode()
	}
	p.Text = path(max(q.line, 1), q.offset, q.before, q.after, "as", "text")
	if q.line == 0 {
		p.Text = strings.Replace(p.Text, "line=1&", "", 1)
	}
	p.Start = path(1, 0, 0, 2*linesAround)
	if n := len(shown.Lines); n > 0 {
		first, last := shown.Lines[0], shown.Lines[n-1]
		p.First, p.Last = first.N, last.N
		if shown.Before {
			p.Earlier = path(first.N, first.Offset, 2*linesAround, 0)
		}
		if shown.After {
			p.Later = path(last.N, last.Offset, 0, 2*linesAround)
		}
	}
	roles := map[int64][]lineRole{}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Span == nil || e.Span.Artifact != q.artifact || e.Span.Line < p.First || e.Span.Line > p.Last || len(roles[e.Span.Line]) == 4 {
			continue
		}
		title := words(e.Kind)
		if e.Role != incident.RoleOther {
			title = roleTitle(e.Role) + ": " + title
		}
		roles[e.Span.Line] = append(roles[e.Span.Line], lineRole{e.Role, title, report.OneLine(e.Why)})
	}
	for _, l := range shown.Lines {
		p.Rows = append(p.Rows, lineRow{l, linesPath(id, q.artifact, l.N, l.Offset), roles[l.N]})
	}
	return p
}

// roleTitle is a role as people read it.
func roleTitle(role string) string {
	for _, r := range timelineRoles {
		if r.Name == role {
			return r.Title
		}
	}
	return words(role)
}
