package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
)

// compareRoutes are comparisons of incidents and their trials; that of two entries is of the
// encyclopedia.
var compareRoutes = []route{
	{"GET /incidents/compare", (*site).compareIncidents},
	{"GET /incidents/{id}/compare", (*site).compareTrials},
}

// A bothPage is a page that sets two things side by side, and the form that chooses them.
type bothPage struct {
	A, B     []choice // what can be chosen
	Problem  string   // why nothing is compared
	Left, To link     // the two
	Rows     []bothRow
}

// A bothRow is what both sides say of one thing.
type bothRow struct {
	Label string
	A, B  [][]explain.Piece
	LinkA *link // before what A says
	LinkB *link
	Same  bool // both say the same
}

// A namedRow is a row with the names of both sides, for pages too narrow for columns.
type namedRow struct {
	bothRow
	Left, Right string
}

// both is a function of the templates.
func both(left, right string, row bothRow) namedRow { return namedRow{row, left, right} }

// compareEntries sets two entries side by side.
func (s *site) compareEntries(w http.ResponseWriter, r *http.Request) error {
	a, b := r.URL.Query().Get("a"), r.URL.Query().Get("b")
	p := struct {
		bothPage
		Tell   []tellLine
		Shared []string
		Facts  []bothRow
	}{bothPage: bothPage{A: s.know.choices(a), B: s.know.choices(b)}}
	status := http.StatusOK
	x, y := s.know.to(a), s.know.to(b)
	switch {
	case a == "" && b == "":
	case a == "" || b == "":
		p.Problem = "Choose two entries."
	case x == nil || y == nil:
		p.Problem, status = "There is no entry of that name. Choose two of these.", http.StatusNotFound
	case a == b:
		p.Problem = "That is one entry twice. Choose another."
	default:
		ea, err := s.know.Entry(a)
		if err != nil {
			return err
		}
		eb, err := s.know.Entry(b)
		if err != nil {
			return err
		}
		c := explain.Compare(ea, eb)
		p.Left, p.To = *x, *y
		for _, kind := range c.Shared {
			p.Shared = append(p.Shared, strings.ReplaceAll(kind, "_", " "))
		}
		for _, t := range c.Tell {
			p.Tell = append(p.Tell, tellLine{*s.know.to(t.Of), inline(t.Text)})
		}
		for _, row := range c.Rows {
			p.Rows = append(p.Rows, bothRow{Label: row.Aspect, A: pieces(row.A), B: pieces(row.B)})
		}
		for _, f := range c.Facts {
			p.Facts = append(p.Facts, bothRow{Label: f.Fact + ": " + f.Means, A: pieces(f.A), B: pieces(f.B)})
		}
	}
	return s.page(w, r, status, "Compare two failures", "compare-entries", p)
}

// A tellLine says how an entry differs from the other.
type tellLine struct {
	Link link
	Text []explain.Piece
}

// choices are all entries, by area.
func (k *knowledge) choices(chosen string) []choice {
	var out []choice
	for _, h := range k.Entries() {
		i := slices.IndexFunc(out, func(c choice) bool { return c.Name == areaName(h.Area) })
		if i < 0 {
			i, out = len(out), append(out, choice{Name: areaName(h.Area)})
		}
		out[i].Options = append(out[i].Options, option{h.ID, h.Title, h.ID == chosen})
	}
	return out
}

// A trialsPage compares two trials.
type trialsPage struct {
	Incident incidentHead
	A, B     []option
	Problem  string
	Parts    *report.Parts
	Swapped  bool // B began before A
}

// compareTrials says what changed between two trials of an incident, chosen by a and b, else the
// two that tell most of it.
func (s *site) compareTrials(w http.ResponseWriter, r *http.Request) error {
	k, err := s.kept(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	p := trialsPage{Incident: s.head(k)}
	status := http.StatusOK
	a, b := r.URL.Query().Get("a"), r.URL.Query().Get("b")
	var x, y *incident.Trial
	if a == "" && b == "" {
		x, y, err = s.Store.PairOf(r.Context(), k)
	} else {
		x, y, err = s.Store.Pair(r.Context(), a, b)
	}
	var named *ledger.NameError
	switch {
	case err == nil && x.ID == y.ID:
		p.Problem = "That is one trial twice. Choose another."
	case err == nil:
		if x.Begun > y.Begun {
			x, y, p.Swapped = y, x, true
		}
		c := ledger.Compare(*x, *y)
		if p.Parts, err = report.ComparisonPartsOf(&c); err != nil {
			return err
		}
	case errors.As(err, &named):
		p.Problem, status = err.Error(), http.StatusNotFound
	case errors.Is(err, ledger.ErrOneTrial), errors.Is(err, ledger.ErrNoOriginal):
		p.Problem = err.Error()
	default:
		return err
	}
	if x != nil {
		a = x.ID
	}
	if y != nil {
		b = y.ID
	}
	p.A, p.B = trialOptions(k, x, a), trialOptions(k, y, b)
	return s.page(w, r, status, "What changed between two trials", "compare-trials", p)
}

// maxOptions bounds what a form lets choose from, the newest first.
const maxOptions = 300

// trialOptions are the trials of an incident, the newest first, and also, where it is none of
// them, the one that is chosen.
func trialOptions(k *incident.Kept, also *incident.Trial, chosen string) []option {
	var out []option
	put := func(t *incident.Trial) {
		text := report.TrialWords(t)
		if t.ID == k.Original {
			text += " (the failure)"
		}
		out = append(out, option{t.ID, text, t.ID == chosen})
	}
	if also != nil && !slices.ContainsFunc(k.Trials, func(t incident.Trial) bool { return t.ID == also.ID }) {
		put(also)
	}
	for i := len(k.Trials) - 1; i >= 0; i-- {
		if t := &k.Trials[i]; len(out) < maxOptions || t.ID == k.Original || t.ID == chosen {
			put(t)
		}
	}
	return out
}

// An incidentsPage compares two incidents.
type incidentsPage struct {
	bothPage
	Differs *report.Parts // between the trials that failed
	NoTrial string        // why those are not compared
}

// compareIncidents sets two incidents side by side: what each failed of, and what differs
// between the trials that failed.
func (s *site) compareIncidents(w http.ResponseWriter, r *http.Request) error {
	if s.Store == nil {
		return errNoStore
	}
	l, err := s.Store.List(r.Context())
	if err != nil {
		return err
	}
	a, b := r.URL.Query().Get("a"), r.URL.Query().Get("b")
	p := incidentsPage{}
	status := http.StatusOK
	switch {
	case a == "" && b == "":
	case a == "" || b == "":
		p.Problem = "Choose two incidents."
	default:
		x, err := s.kept(r, a)
		if err != nil {
			return err
		}
		y, err := s.kept(r, b)
		if err != nil {
			return err
		}
		a, b = x.ID, y.ID
		if a == b {
			p.Problem = "That is one incident twice. Choose another."
			break
		}
		if err := s.sideBySide(&p, x, y); err != nil {
			return err
		}
	}
	p.A, p.B = incidentChoices(l, a), incidentChoices(l, b)
	return s.page(w, r, status, "Compare two incidents", "compare-incidents", p)
}

func (s *site) sideBySide(p *incidentsPage, x, y *incident.Kept) error {
	hx, hy := s.head(x), s.head(y)
	p.Left, p.To = link{hx.Href, hx.ID}, link{hy.Href, hy.ID}
	row := func(label, a, b string) {
		a, b = report.OneLine(a), report.OneLine(b)
		if a != "" || b != "" {
			p.Rows = append(p.Rows, bothRow{Label: label, A: prose(a), B: prose(b), Same: a == b})
		}
	}
	row("What failed", x.Title, y.Title)
	row("First fault, in its own words", x.Symptom, y.Symptom)
	row("Status", hx.StatusWords(), hy.StatusWords())
	row("Why it stands so", x.Says, y.Says)
	cause := bothRow{Label: "Cause", LinkA: hx.Cause, LinkB: hy.Cause, A: prose(hx.Sure), B: prose(hy.Sure)}
	cause.Same = hx.Sure == hy.Sure && (hx.Cause == nil) == (hy.Cause == nil) && (hx.Cause == nil || *hx.Cause == *hy.Cause)
	p.Rows = append(p.Rows, cause)
	row("Fix", hx.Fix, hy.Fix)
	row("Scenario", x.Scenario, y.Scenario)
	row("Failed first", report.Stamp(x.First), report.Stamp(y.First))
	row("Failed last", report.Stamp(x.Last), report.Stamp(y.Last))
	row("Trials", plural(len(x.Trials), "trial"), plural(len(y.Trials), "trial"))
	// Both environments label by label, in the order of the first.
	ex, ey := report.EnvironmentPairs(x.Environment), report.EnvironmentPairs(y.Environment)
	of := func(all []report.Pair, label string) string {
		for _, p := range all {
			if p.Label == label {
				return p.Text
			}
		}
		return ""
	}
	told := map[string]bool{}
	for _, e := range slices.Concat(ex, ey) {
		if !told[e.Label] {
			told[e.Label] = true
			row(e.Label, of(ex, e.Label), of(ey, e.Label))
		}
	}
	tx, ty := original(x), original(y)
	if tx == nil || ty == nil {
		p.NoTrial = "The trial of one of the failures is not on record, so that the two cannot be compared."
		return nil
	}
	first, second := x.ID, y.ID
	if tx.Begun > ty.Begun {
		tx, ty, first, second = ty, tx, second, first
	}
	c := ledger.Compare(*tx, *ty)
	var err error
	p.Differs, err = report.DifferencePartsOf(&c, first, second)
	return err
}

func prose(text string) [][]explain.Piece {
	if text == "" {
		return nil
	}
	return [][]explain.Piece{{{Text: text}}}
}

// original is the trial of the failure, null where it is not on record.
func original(k *incident.Kept) *incident.Trial {
	for i := range k.Trials {
		if k.Trials[i].ID == k.Original {
			return &k.Trials[i]
		}
	}
	return nil
}

// incidentChoices are the incidents of a store, those that failed last first.
func incidentChoices(l *incident.Incidents, chosen string) []choice {
	var all []option
	for i := range l.Incidents {
		if k := &l.Incidents[i]; len(all) < maxOptions || k.ID == chosen {
			all = append(all, option{k.ID, report.OneLine(strings.TrimSuffix(k.Title, ".")) + " · " + k.ID, k.ID == chosen})
		}
	}
	return []choice{{"Those that failed last come first", all}}
}
