package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// shownValues is how many values a short report has a row of.
const shownValues = 14

func writeBoundaryText(w io.Writer, t *incident.Trials, o Options) error {
	v := newBoundaryView(t)
	p := newPage(&incident.Incident{}, o)
	style := p.strong
	switch v.tone() {
	case "good":
		style = p.good
	case "bad":
		style = p.bad
	}
	plain := lipgloss.NewStyle()
	p.head("Answer", []string{upper(v.Says), upper(v.shortAnswer())}, style)
	if v.Smallest == nil {
		p.head("Margin", v.marginVariants(), plain)
	}
	p.head("Sure", v.sureVariants(), plain)
	p.head("Trials", v.trialsVariants(), plain)
	p.head("Next", v.nextVariants(), p.strong)
	if columns(v.Says) > p.width-7 {
		p.para(0, "", sentence(upper(v.Says)))
	}
	p.boundaryEdges(v)
	p.boundarySmallest(v)
	p.boundaryValues(v)
	if len(v.Limits) > 0 {
		p.section("What to know")
		for i, l := range v.Limits {
			p.at(min(1+i/2, 4), func() { p.para(2, "! ", sentence(l)) })
		}
	}
	if p.full {
		p.section("Trials")
		for i := range v.Points {
			p.para(2, fmt.Sprintf("%d. ", i+1), pointWords(&v.Points[i]))
			if v.Points[i].Text != "" {
				p.para(5, "", sentence(v.Points[i].Text))
			}
		}
		p.section("Command")
		p.para(2, "", commandWords(v.Template))
		p.para(2, "", "Series "+oneLine(v.ID)+".")
	}
	_, err := io.WriteString(w, p.text())
	return err
}

// shortAnswer is the answer where the whole sentence is too long.
func (v *boundaryView) shortAnswer() string {
	if v.Smallest != nil {
		return assignments(v.Smallest.Values) + ": " + kindWords(v.Boundary.Answer)
	}
	if len(v.Edges) == 1 {
		e := &v.Edges[0]
		switch {
		case e.Largest != nil && e.Smallest != nil:
			return fmt.Sprintf("%s=%d passes, %d fails", oneLine(e.Name), e.Largest.Value, e.Smallest.Value)
		case e.Largest != nil:
			return fmt.Sprintf("%s=%d passes", oneLine(e.Name), e.Largest.Value)
		case e.Smallest != nil:
			return fmt.Sprintf("%s=%d fails", oneLine(e.Name), e.Smallest.Value)
		}
	}
	return kindWords(v.Boundary.Answer)
}

func (p *page) boundaryEdges(v *boundaryView) {
	if len(v.Edges) > 1 {
		p.section("Largest " + oneLine(v.Edges[0].Name) + " that passes, smallest that fails")
		for i := range v.Edges {
			c := edgeCells(&v.Edges[i])
			p.at(1+i/6, func() {
				p.para(2, "", fmt.Sprintf("%s: passes %s, fails %s, margin %s%s", c[0], c[1], c[2], c[3], notFound(c[4])))
			})
		}
	}
	for i := range v.Edges {
		if s := fitWords(&v.Edges[i]); s != "" && (i == 0 || p.full) {
			p.at(2, func() { p.para(2, "", sentence(upper(s))) })
		}
		for j, f := range v.Edges[i].Flaky {
			if j == 3 && !p.full {
				break
			}
			p.at(1, func() {
				p.para(2, "? ", fmt.Sprintf("%s passed %d of %d times.", assignments(f.Values), f.Passed, f.Of))
			})
		}
	}
}

func notFound(answer string) string {
	if answer == incident.Found {
		return ""
	}
	return " (" + answer + ")"
}

func (p *page) boundarySmallest(v *boundaryView) {
	if v.Smallest == nil || len(v.Smallest.Reduced) == 0 {
		return
	}
	p.section("Made smaller, from " + assignments(v.Smallest.From))
	for i := range v.Smallest.Reduced {
		p.at(1, func() { p.para(2, "", sentence(reducedWords(&v.Smallest.Reduced[i]))) })
	}
}

// boundaryValues writes what each value did, with a bar of its peak. The bars are as long as
// the peak is of the limit, or of the highest peak where no limit is known.
func (p *page) boundaryValues(v *boundaryView) {
	rows := v.rows()
	if len(rows) == 0 {
		return
	}
	whole, limited, measure := int64(0), false, ""
	for _, r := range rows {
		if r.peak != nil {
			whole, measure = max(whole, *r.peak), r.measure
		}
		if r.limit != nil {
			whole, limited = max(whole, *r.limit), true
		}
	}
	title := "By value"
	if measure != "" {
		title += ": peak " + measureWords(measure)
		if limited {
			title += ", of a limit of " + evidence.Bytes(limitOf(rows))
		}
	}
	p.section(title)
	left, mid, end := 0, 0, 0
	for _, r := range rows {
		left, mid, end = max(left, columns(assignments(r.values))), max(mid, columns(r.came())), max(end, columns(r.peakWords()))
	}
	near := v.nearEdge(rows)
	for i := range rows {
		r := &rows[i]
		name := assignments(r.values)
		cells := pad(name, left+2) + pad(r.came(), mid+2) + pad(r.peakWords(), end+2)
		room := p.width - 2 - columns(cells)
		bar := ""
		if r.peak != nil && whole > 0 && room >= 8 {
			bar = barOf(*r.peak, whole, min(room, 40), p.ascii)
		}
		if room < 0 {
			cells = name + ": " + r.came() + ", peak " + r.peakWords()
		}
		rank := 2
		if !near[i] {
			rank = 3
		}
		if !p.full && len(rows) > shownValues && !near[i] {
			continue
		}
		p.at(rank, func() { p.para(2, "", strings.TrimRight(cells+bar, " ")) })
	}
	if !p.full && len(rows) > shownValues {
		n := 0
		for _, x := range near {
			if !x {
				n++
			}
		}
		p.at(3, func() { p.para(2, "", several(n, "value")+" further from the edge: --full") })
	}
}

// nearEdge marks the rows of a short report: those next to where passing ends.
func (v *boundaryView) nearEdge(rows []valueRow) []bool {
	out := make([]bool, len(rows))
	edge := map[string]bool{}
	for i := range v.Edges {
		for _, x := range []*incident.EdgeValue{v.Edges[i].Largest, v.Edges[i].Smallest} {
			if x != nil {
				edge[assignments(x.Values)] = true
			}
		}
	}
	for i := range rows {
		if edge[assignments(rows[i].values)] || len(edge) == 0 {
			for j := max(0, i-3); j <= min(len(rows)-1, i+3); j++ {
				out[j] = true
			}
		}
	}
	n := 0
	for i := range out {
		if out[i] {
			if n++; n > shownValues {
				out[i] = false
			}
		}
	}
	return out
}

func limitOf(rows []valueRow) int64 {
	for _, r := range rows {
		if r.limit != nil {
			return *r.limit
		}
	}
	return 0
}

// barOf draws part of whole in n columns.
func barOf(part, whole int64, n int, ascii bool) string {
	k := int(float64(part) / float64(whole) * float64(n))
	k = min(max(k, 0), n)
	if ascii {
		return strings.Repeat("#", k) + strings.Repeat(".", n-k)
	}
	return strings.Repeat("█", k) + strings.Repeat("░", n-k)
}

// commandWords is a command as it may be typed: words that a shell would part stand in quotes.
func commandWords(words []string) string {
	var out []string
	for _, w := range words {
		w = oneLine(w)
		if w == "" || strings.ContainsAny(w, " \t\"'$`\\|&;<>()*?[]{}!#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}
