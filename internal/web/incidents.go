package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
)

// incidentRoutes are the pages of what is kept of failed runs. They show commands, and run none.
var incidentRoutes = []route{
	{"GET /incidents", (*site).incidents},
	{"GET /incidents/{id}", (*site).incident},
	{"POST /incidents/{id}/notes", (*site).note},
}

// errNoStore is answered where inquest serves without a store.
var errNoStore = &failure{status: http.StatusNotFound, title: "There are no incidents here",
	todo: "inquest serve was started without a store of incidents. Start it again with the folder in which inquest run keeps its trials."}

// perPage is how many incidents a page lists.
const perPage = 50

// statusTones colour how an incident stands; the word always stands beside it.
var statusTones = map[string]string{incident.Open: "open", incident.Confirmed: "good", incident.Unresolved: "bad", incident.Regressed: "bad"}

type incidentListPage struct {
	Store    string // its folder, "" where none is open
	Lines    []incidentLine
	States   []option
	Scenario string
	All      bool
	Filtered bool
	Empty    bool // nothing at all is kept
	Hidden   int
	Closed   int // hidden because they are closed
	Trials   int
	A, B     []choice // two to compare; none where there are not two
	Before   string   // path of the page before, "" on the first
	After    string
	Problems []string
}

// An incidentLine is an incident in short.
type incidentLine struct {
	link
	ID, Status, Tone, Says string
	Closed                 bool
	Cause                  *link
	CauseID                string // where the encyclopedia has no entry of that name
	Last, Scenario         string
	Trials, Failed         int
}

// incidents lists the incidents of the store.
func (s *site) incidents(w http.ResponseWriter, r *http.Request) error {
	if s.Store == nil {
		return s.page(w, r, http.StatusOK, "Incidents", "incidents", incidentListPage{Empty: true})
	}
	l, err := s.Store.List(r.Context())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	scenario, _ := bounded(q.Get("scenario"))
	f := ledger.Filter{Scenario: scenario, All: q.Get("closed") != ""}
	if state := q.Get("status"); slices.Contains(ledger.States, state) {
		f.States = []string{state}
	}
	p := incidentListPage{Store: report.OneLine(s.Store.Dir()), Scenario: scenario, All: f.All, Empty: len(l.Incidents) == 0, Trials: l.Trials,
		Filtered: len(f.States) > 0 || scenario != "" || f.All, Problems: lines(l.Problems)}
	for _, state := range ledger.States {
		p.States = append(p.States, option{state, state, slices.Contains(f.States, state)})
	}
	if len(l.Incidents) > 1 {
		p.A, p.B = incidentChoices(l, l.Incidents[1].ID), incidentChoices(l, l.Incidents[0].ID)
	}
	for i := range l.Incidents {
		if l.Incidents[i].Closed {
			p.Closed++
		}
	}
	f.Apply(l)
	p.Hidden = l.Hidden
	if f.All {
		p.Closed = 0
	}
	n, _ := strconv.Atoi(q.Get("page"))
	n = min(max(n, 1), 1+max(0, len(l.Incidents)-1)/perPage)
	from := (n - 1) * perPage
	to := min(from+perPage, len(l.Incidents))
	for i := from; i < to; i++ {
		p.Lines = append(p.Lines, s.incidentLine(&l.Incidents[i]))
	}
	page := func(n int) string {
		v := url.Values{}
		for _, name := range []string{"status", "scenario", "closed"} {
			if q.Get(name) != "" {
				v.Set(name, q.Get(name))
			}
		}
		v.Set("page", strconv.Itoa(n))
		return "/incidents?" + v.Encode()
	}
	if n > 1 {
		p.Before = page(n - 1)
	}
	if to < len(l.Incidents) {
		p.After = page(n + 1)
	}
	return s.page(w, r, http.StatusOK, "Incidents", "incidents", p)
}

func (s *site) incidentLine(k *incident.KeptLine) incidentLine {
	return incidentLine{link: link{incidentPath(k.ID), report.OneLine(strings.TrimSuffix(k.Title, "."))}, ID: report.OneLine(k.ID), Status: report.OneLine(k.Status), Tone: statusTones[k.Status], Says: report.OneLine(k.Says),
		Closed: k.Closed, Cause: s.know.to(k.Cause), CauseID: report.OneLine(k.Cause), Last: report.Stamp(k.Last), Scenario: report.OneLine(k.Scenario), Trials: k.Trials, Failed: k.Failed}
}

func incidentPath(id string) string { return "/incidents/" + url.PathEscape(id) }

func lines(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, report.OneLine(t))
	}
	return out
}

// kept is the incident that a name means: its id, the beginning of one, a trial, a launch, or
// last.
func (s *site) kept(r *http.Request, name string) (*incident.Kept, error) {
	if s.Store == nil {
		return nil, errNoStore
	}
	k, err := s.Store.Find(r.Context(), name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &failure{status: http.StatusNotFound, title: "There is no such incident", todo: "The page of incidents lists all that are kept.", err: err}
	}
	return k, err
}

// An incidentHead is what pages about an incident say of it first.
type incidentHead struct {
	link
	ID, Title, Status, Tone string
	Closed                  bool
	Cause                   *link  // in the encyclopedia
	CauseName               string // where the encyclopedia has none
	Sure                    string // how sure the cause is
	Fix                     string
}

// StatusWords are the status with what else is to be said of it.
func (h incidentHead) StatusWords() string {
	if h.Closed {
		return h.Status + ", closed"
	}
	return h.Status
}

func (s *site) head(k *incident.Kept) incidentHead {
	h := incidentHead{link: link{incidentPath(k.ID), ""}, ID: report.OneLine(k.ID), Title: report.OneLine(strings.TrimSuffix(k.Title, ".")), Status: report.OneLine(k.Status), Tone: statusTones[k.Status], Closed: k.Closed}
	h.Text = h.Title
	h.Sure = "no diagnosis names one"
	if c := k.Cause; c != nil {
		h.Cause, h.CauseName = s.know.to(c.Entry), report.OneLine(c.Entry)
		h.Sure = report.OneLine(c.Standing) + " by the evidence, not confirmed"
		if c.Confirmed {
			h.Sure = "confirmed by a verification"
		}
		if h.Cause == nil {
			h.Sure = h.CauseName + ", " + h.Sure
		}
	}
	h.Fix = "none is verified"
	if f := k.Fix; f != nil {
		var all []string
		for _, c := range f.Changes {
			all = append(all, report.OneLine(c.Text))
		}
		h.Fix = strings.Join(all[:min(len(all), 6)], "; ")
		if !f.Single {
			h.Fix = "not proved, several things changed at once: " + h.Fix
		}
	}
	return h
}

// A command is one to copy.
type command struct{ ID, Says, Line string }

type incidentPage struct {
	incidentHead
	Parts     *report.Parts
	Before    []report.Section // of the incident, up to its trials
	After     []report.Section
	FollowUp  string
	Compare   bool // there are two trials to compare
	A, B      []option
	Others    []choice // incidents to compare with
	Commands  []command
	Unjoined  bool // processes of a launch were not diagnosed together
	Diagnosis *report.Parts
	Note      string // a text that was not kept
	Problem   string // why
	MaxNote   int
}

// incident shows the whole story of one incident.
func (s *site) incident(w http.ResponseWriter, r *http.Request) error {
	k, err := s.kept(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.showIncident(w, r, http.StatusOK, k, "", "")
}

// notShown are the sections of an incident's report that its page shows in another way, and those
// of a diagnosis that need more than the page has.
var notShown = []string{"follow-up", "plots"}

// showIncident shows k; note is a text that was not kept, and problem says why.
func (s *site) showIncident(w http.ResponseWriter, r *http.Request, status int, k *incident.Kept, note, problem string) error {
	parts, err := report.KeptPartsOf(k)
	if err != nil {
		return err
	}
	p := incidentPage{incidentHead: s.head(k), Parts: parts, FollowUp: report.CommandLine(k.FollowUp), Unjoined: len(ledger.Unjoined(k)) > 0, Note: note, Problem: problem, MaxNote: ledger.MaxNote}
	for _, x := range parts.Sections {
		switch {
		case slices.Contains(notShown, x.ID):
		case slices.Contains([]string{"symptom", "fix", "not-helped", "trials"}, x.ID):
			p.Before = append(p.Before, x)
		default:
			p.After = append(p.After, x)
		}
	}
	if len(k.Trials) > 1 {
		p.Compare = true
		x, y, _ := ledger.BeforeAfter(k)
		a, b := k.Original, k.Trials[len(k.Trials)-1].ID
		if x != nil && y != nil {
			a, b = x.ID, y.ID
		}
		p.A, p.B = trialOptions(k, nil, a), trialOptions(k, nil, b)
	}
	id := report.OneLine(k.ID)
	p.Commands = []command{
		{"cmd-show", "The whole story, with the diagnosis", "inquest incident show " + id + " --full"},
		{"cmd-verify", "Show that one change mends it: your command, with the change made", "inquest verify --incident " + id + " -- COMMAND"},
		{"cmd-export", "A bundle to hand on, with names and secrets taken out", "inquest incident export " + id},
	}
	if k.Status == incident.Confirmed || k.Status == incident.Regressed {
		p.Commands = slices.Insert(p.Commands, 2, command{"cmd-recheck", "Run the stored test again, as after an update", "inquest incident recheck " + id})
	}
	if l, err := s.Store.List(r.Context()); err == nil && len(l.Incidents) > 1 {
		l.Incidents = slices.DeleteFunc(l.Incidents, func(o incident.KeptLine) bool { return o.ID == k.ID })
		p.Others = incidentChoices(l, "")
	}
	if k.Diagnosis != nil {
		if p.Diagnosis, err = report.PartsOf(k.Diagnosis, report.Framing{}); err != nil {
			return err
		}
		p.Diagnosis.Sections = slices.DeleteFunc(p.Diagnosis.Sections, func(x report.Section) bool { return slices.Contains(notShown, x.ID) })
	}
	return s.page(w, r, status, p.Title, "incident", p)
}
