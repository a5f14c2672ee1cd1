package report

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A repairView is the account of a repaired copy as reports speak of it.
type repairView struct{ *incident.Repair }

// A repairSum adds up what became of the points of all runs.
type repairSum struct {
	total, kept, dropped, held, superseded, suspect, left int64
	series                                                int // that something was done to
}

func (v *repairView) sum() repairSum {
	var s repairSum
	for i := range v.Runs {
		r := &v.Runs[i]
		s.total, s.kept = s.total+r.Total, s.kept+r.Kept
		for _, x := range r.Series {
			s.dropped, s.held, s.superseded, s.suspect = s.dropped+x.Dropped, s.held+x.Held, s.superseded+x.Superseded, s.suspect+x.Suspect
			if x.Dropped+x.Held+x.Superseded > 0 {
				s.series++
			}
			for _, f := range x.Suspicious {
				s.left += f.Suspect
			}
		}
	}
	return s
}

func (v *repairView) copyVariants() []string {
	if v.Output == "" {
		return []string{fmt.Sprintf("none was written: nothing in %s (%s) is to be repaired; --force writes one all the same", oneLine(v.Source), trackerWords(v.Format)), "none was written: nothing is to be repaired"}
	}
	s := fmt.Sprintf("%s (%s), a copy of %s", oneLine(v.Output), trackerWords(v.Format), oneLine(v.Source))
	return []string{s, fmt.Sprintf("%s (%s)", oneLine(v.Output), trackerWords(v.Format)), oneLine(v.Output)}
}

func (v *repairView) doneVariants() []string {
	s := v.sum()
	var parts []string
	for _, x := range []struct {
		n    int64
		what string
	}{{s.dropped, "dropped"}, {s.held, "replaced by the last finite value"}, {s.superseded, "superseded, taken out"}} {
		if x.n > 0 {
			parts = append(parts, thousands(x.n)+" "+x.what)
		}
	}
	text := fmt.Sprintf("%s; %s of %s kept", listed(parts, 5), thousands(s.kept), several(int(s.total), "point"))
	if len(parts) == 0 {
		text = fmt.Sprintf("nothing: all of %s are kept", several(int(s.total), "point"))
	}
	long := text
	if s.left > 0 {
		long += fmt.Sprintf("; %s that may not be real left in (--drop-suspect)", several(int(s.left), "value"))
	}
	return []string{long, text}
}

func (v *repairView) cleanVariants() []string {
	var first *incident.RepairedRun
	more := 0
	for i := range v.Runs {
		switch r := &v.Runs[i]; {
		case !slices.ContainsFunc(r.Series, func(s incident.RepairedSeries) bool { return s.Dropped+s.Held > 0 }):
		case first == nil:
			first = r
		default:
			more++
		}
	}
	if first == nil {
		return []string{"every value of the copy is as it was written: none failed"}
	}
	of := ""
	if len(v.Runs) > 1 {
		of = " of " + repairedLabel(first)
	}
	tail := ""
	if more > 0 {
		tail = fmt.Sprintf("; %s affected too", several(more, "other run"))
	}
	long, short := "no step"+of+" before the failed part was logged with a finite value", "no clean step"+of
	switch {
	case first.Clean == nil && first.First == nil:
		long, short = "the failed part"+of+" states no step", "the failed part"+of+" states no step"
	case first.Clean != nil:
		long, short = fmt.Sprintf("the curve%s is real up to step %s", of, thousands(*first.Clean)), fmt.Sprintf("up to step %s%s", thousands(*first.Clean), of)
	}
	out := []string{long, short}
	if full, brief := lastingWords(first); full != "" {
		out = []string{long + "; " + full, long + "; " + brief, short + "; " + brief, short}
	}
	for i := range out {
		out[i] += tail // a line about one run of several says that it is one
	}
	return out
}

// lastingWords say how long a run is affected, and what that means for its checkpoints; in
// full and briefly.
func lastingWords(r *incident.RepairedRun) (full, brief string) {
	const keeps = ": a checkpoint from there on may hold what failed"
	switch {
	case r.First == nil:
		return "", ""
	case r.Since == nil:
		return fmt.Sprintf("affected from step %s on, finite again at the end", thousands(*r.First)), "finite again at the end"
	case *r.Since == *r.First:
		brief = fmt.Sprintf("affected from step %s to the end", thousands(*r.Since))
		return brief + keeps, brief
	}
	brief = fmt.Sprintf("step %s is affected, and from %s all to the end", thousands(*r.First), thousands(*r.Since))
	return fmt.Sprintf("step %s is affected, then finite values follow, and from step %s it is affected to the end%s", thousands(*r.First), thousands(*r.Since), keeps), brief
}

func (v *repairView) checkVariants() []string {
	bad := 0
	first := ""
	for _, c := range v.Checks {
		if !c.Holds {
			if bad++; first == "" {
				first = oneLine(c.Name)
			}
		}
	}
	changed := 0
	for _, f := range v.Files {
		if !f.Same {
			changed++
		}
	}
	src := fmt.Sprintf("the source (%s) is unchanged", several(len(v.Files), "file"))
	if changed > 0 {
		src = fmt.Sprintf("%d of %s of the source CHANGED meanwhile", changed, several(len(v.Files), "file"))
	}
	switch {
	case v.Output == "":
		return []string{src}
	case len(v.Checks) == 0:
		return []string{"the copy was not checked; " + src}
	case bad > 0:
		return []string{fmt.Sprintf("%d of %d FAIL: %s; %s", bad, len(v.Checks), first, src), fmt.Sprintf("%d of %d FAIL: %s", bad, len(v.Checks), first)}
	case len(v.Checks) == 1:
		return []string{"the check holds; " + src}
	}
	return []string{fmt.Sprintf("all %d checks hold; %s", len(v.Checks), src), fmt.Sprintf("all %d checks hold", len(v.Checks))}
}

func (v *repairView) undoVariants() []string {
	if v.Output == "" {
		return []string{"nothing was written"}
	}
	if v.Undo == "" {
		return []string{"remove the copy"}
	}
	return []string{oneLine(v.Undo)}
}

// segmentWords say where an affected part of a series lies, and why it is affected.
func segmentWords(f *incident.FailedSegment) string {
	where := "without a step"
	switch {
	case f.FirstStep != nil && f.LastStep != nil && *f.FirstStep != *f.LastStep:
		where = fmt.Sprintf("steps %s to %s", thousands(*f.FirstStep), thousands(*f.LastStep))
	case f.FirstStep != nil:
		where = "step " + thousands(*f.FirstStep)
	}
	var parts []string
	if n := countWords(f.NaN, f.PosInf, f.NegInf); n != "" {
		parts = append(parts, n)
	}
	if f.Suspect > 0 {
		parts = append(parts, thousands(f.Suspect)+" suspect")
	}
	if len(parts) > 0 {
		where += ": " + strings.Join(parts, ", ")
	}
	if f.Reason != "" {
		where += "; " + strings.TrimSuffix(oneLine(f.Reason), ".")
	}
	return where
}

// accountColumns head the accounts of series, accountCells fill all but the first.
var accountColumns = []gridColumn{{"series", false, 0}, {"values", true, 1}, {"kept", true, 2}, {"dropped", true, 3}, {"held", true, 4}, {"superseded", true, 6}, {"of them not finite", false, 5}}

func accountCells(s *incident.RepairedSeries) []string {
	of := countWords(s.NaN, s.PosInf, s.NegInf)
	if s.Suspect > 0 {
		if of != "" {
			of += ", "
		}
		of += thousands(s.Suspect) + " suspect"
	}
	if of == "" {
		of = "–"
	}
	return []string{thousands(s.Count), thousands(s.Kept), thousands(s.Dropped), thousands(s.Held), thousands(s.Superseded), of}
}

// repairedLabel is what a run of the copy is called.
func repairedLabel(r *incident.RepairedRun) string {
	for _, s := range []string{r.Name, r.ID} {
		if s = oneLine(s); s != "" {
			return s
		}
	}
	return "run"
}

// repairedLine says what of a run itself is another in the copy, "" where nothing is.
func repairedLine(r *incident.RepairedRun) string {
	var parts []string
	if r.NewID != "" {
		parts = append(parts, fmt.Sprintf("is run %s in the copy, so that an upload cannot overwrite %s", oneLine(r.NewID), oneLine(r.ID)))
	}
	if r.Status != r.Was {
		was := oneLine(r.Was)
		if was == "" {
			was = "nothing"
		}
		parts = append(parts, fmt.Sprintf("its status is %s; the source says %s", statusWords(r.Status), was))
	}
	if len(parts) == 0 {
		return ""
	}
	return repairedLabel(r) + ": " + strings.Join(parts, "; ")
}

// markerLine says how the failed part is marked.
func (v *repairView) markerLine() string {
	if v.Marker == "" {
		return ""
	}
	return "Series " + oneLine(v.Marker) + ": 1 in each failed segment, 0 at the finite step before and after it"
}

// policyWords say what was asked for.
func policyWords(o incident.RepairPolicy) string {
	parts := []string{"values that are not finite are dropped"}
	if o.Nonfinite == "hold" {
		parts[0] = "values that are not finite are replaced by the last finite one: those are not measured"
	}
	if o.Suspects {
		parts = append(parts, "suspect values are dropped too")
	} else {
		parts = append(parts, "suspect values are listed and left in")
	}
	if o.Dedupe {
		parts = append(parts, "what was written again later is taken out")
	}
	if o.Tensors {
		parts = append(parts, "tensors and histograms with such values are dropped")
	}
	return strings.Join(parts, "; ")
}

// how says in sentences what was done, and what of the runs is another in the copy; of at
// most so many runs.
func (v *repairView) how(runs int) []string {
	out := []string{upper(policyWords(v.Policy))}
	if s := v.markerLine(); s != "" {
		out = append(out, s)
	}
	for i := range v.Runs[:min(len(v.Runs), runs)] {
		if s := repairedLine(&v.Runs[i]); s != "" {
			out = append(out, s)
		}
	}
	return append(out, v.Changes...)
}

func checkLine(c *incident.RepairCheck) (mark, text string) {
	mark, text = "[x] ", oneLine(c.Name)
	if !c.Holds {
		mark = "[ ] "
		text += " does NOT hold"
	}
	if c.Detail != "" {
		text += ": " + oneLine(c.Detail)
	}
	return mark, text
}

// intact reports whether every check holds and no file of the source changed.
func (v *repairView) intact() bool {
	return !slices.ContainsFunc(v.Checks, func(c incident.RepairCheck) bool { return !c.Holds }) && !slices.ContainsFunc(v.Files, func(f incident.RepairFile) bool { return !f.Same })
}

func cleanedRepair(r *incident.Repair) *incident.Repair {
	return copyClean(reflect.ValueOf(r)).Interface().(*incident.Repair)
}

// lines are the first lines of a report, in full.
func (v *repairView) lines() []labelled {
	lines := labelledLines([]string{"Copy", "Did", "Real", "Checks", "Undo"}, v.copyVariants, v.doneVariants, v.cleanVariants, v.checkVariants, v.undoVariants)
	if v.Output != "" {
		lines[0].Text = sentence(v.copyVariants()[0]) // begins with a path
	}
	return lines
}

func writeRepairText(w io.Writer, r *incident.Repair, o Options) error {
	r = cleanedRepair(r)
	p := newPage(&incident.Incident{}, o)
	v := &repairView{r}
	plain := lipgloss.NewStyle()
	checks := p.good
	if !v.intact() {
		checks = p.bad
	}
	p.head("Copy", v.copyVariants(), p.strong)
	p.head("Did", v.doneVariants(), p.strong)
	p.head("Real", v.cleanVariants(), plain)
	p.head("Checks", v.checkVariants(), checks)
	p.head("Undo", v.undoVariants(), plain)
	p.repairSeries(v)
	p.section("How")
	p.at(3, func() { p.para(2, "", sentence(upper(policyWords(r.Policy)))) })
	if s := v.markerLine(); s != "" {
		p.at(2, func() { p.para(2, "", sentence(s)) })
	}
	for i := range r.Runs {
		if s := repairedLine(&r.Runs[i]); s != "" {
			p.at(2+min(i, 3), func() { p.para(2, "- ", sentence(s)) })
		}
	}
	for i, s := range r.Changes {
		p.at(3+min(i/3, 3), func() { p.para(2, "- ", sentence(s)) })
	}
	if len(r.Left) > 0 {
		p.section("Left as it is")
		for i, s := range r.Left {
			p.at(2+min(i/2, 3), func() { p.para(2, "- ", sentence(s)) })
		}
	}
	if len(r.Damage) > 0 {
		p.section("Damage in the source")
		for i := range r.Damage {
			p.at(3+min(i, 3), func() { p.para(2, "! ", sentence(p.damageLine(&r.Damage[i]))) })
		}
	}
	if len(r.Checks) > 0 {
		p.section("Checked")
		for i := range r.Checks {
			mark, text := checkLine(&r.Checks[i])
			rank := 4 + min(i/3, 2)
			if !r.Checks[i].Holds {
				rank = 1
			}
			p.at(rank, func() { p.para(2, mark, text) })
		}
	}
	p.repairFiles(v)
	_, err := io.WriteString(w, p.text())
	return err
}

// touched are the series that something was done to, or is to be said of, each with its
// run's name where there are several.
func (v *repairView) touched(all bool) (names []string, list []*incident.RepairedSeries) {
	for i := range v.Runs {
		r := &v.Runs[i]
		for j := range r.Series {
			s := &r.Series[j]
			if s.Kept == s.Count && len(s.Suspicious) == 0 && !all {
				continue
			}
			name := oneLine(s.Name)
			if len(v.Runs) > 1 {
				name = repairedLabel(r) + ": " + name
			}
			names, list = append(names, name), append(list, s)
		}
	}
	return names, list
}

// repairSeries writes the accounts of series, with their segments.
func (p *page) repairSeries(v *repairView) {
	names, list := v.touched(p.full)
	if len(list) == 0 {
		return
	}
	most := 12
	if p.full {
		most = len(list)
	}
	var rows [][]string
	for i, s := range list[:min(most, len(list))] {
		rows = append(rows, append([]string{names[i]}, accountCells(s)...))
	}
	p.grid("What became of the values", accountColumns, rows, func(row int) int { return 1 + row/3 })
	if rest := len(list) - len(rows); rest > 0 {
		p.at(2, func() { p.para(2, "", thousands(int64(rest))+" more") })
	}
	for i, s := range list[:len(rows)] {
		for n := range s.Segments {
			p.at(3+min(i+n, 6), func() { p.para(2, "- ", sentence(names[i]+", "+segmentWords(&s.Segments[n]))) })
		}
		for n := range s.Suspicious {
			p.at(2+min(i+n, 6), func() { p.para(2, "? ", sentence(names[i]+", left in, "+segmentWords(&s.Suspicious[n]))) })
		}
	}
}

// repairFiles lists the files of the source, those that changed in any case.
func (p *page) repairFiles(v *repairView) {
	if len(v.Files) == 0 {
		return
	}
	p.section("Source")
	for i := range v.Files {
		f := &v.Files[i]
		switch {
		case !f.Same:
			p.at(1, func() { p.para(2, "! ", oneLine(f.Path)+" CHANGED while it was read") })
		case p.full:
			p.para(2, "- ", fmt.Sprintf("%s: %s, %s, SHA-256 %s", oneLine(f.Path), evidence.Bytes(f.Size), instant(&f.ModTime), oneLine(f.SHA256)))
		}
	}
	if !p.full {
		var bytes int64
		for _, f := range v.Files {
			bytes += f.Size
		}
		text := fmt.Sprintf("%s, %s", several(len(v.Files), "file"), evidence.Bytes(bytes))
		if v.Output != "" {
			text += "; digests, sizes and times before and after are in the manifest"
		}
		p.at(5, func() { p.para(2, "", text+".") })
	}
}
