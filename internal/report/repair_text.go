package report

import (
	"fmt"
	"io"
	"reflect"

	"github.com/charmbracelet/lipgloss"

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
	s := fmt.Sprintf("%s (%s), a copy of %s", oneLine(v.Output), trackerWords(v.Format), oneLine(v.Source))
	return []string{s, fmt.Sprintf("%s (%s)", oneLine(v.Output), trackerWords(v.Format)), oneLine(v.Output)}
}

func (v *repairView) doneVariants() []string {
	s := v.sum()
	var parts []string
	if s.dropped > 0 || v.Policy.Nonfinite != "hold" {
		parts = append(parts, thousands(s.dropped)+" dropped")
	}
	if s.held > 0 || v.Policy.Nonfinite == "hold" {
		parts = append(parts, thousands(s.held)+" replaced by the last finite value")
	}
	if s.superseded > 0 {
		parts = append(parts, thousands(s.superseded)+" superseded taken out")
	}
	parts = append(parts, thousands(s.kept)+" kept")
	text := fmt.Sprintf("of %s: %s", several(int(s.total), "point"), listed(parts, 5))
	if s.dropped+s.held+s.superseded == 0 {
		text = fmt.Sprintf("nothing: all %s are kept", several(int(s.total), "point"))
	}
	long := text
	if s.left > 0 {
		long += fmt.Sprintf("; %s that may not be real left in (--drop-suspect)", several(int(s.left), "value"))
	}
	return []string{long, text}
}

func (v *repairView) cleanVariants() []string {
	for i := range v.Runs {
		r := &v.Runs[i]
		if r.Kept == r.Total {
			continue
		}
		name := oneLine(r.Name)
		if name == "" {
			name = oneLine(r.ID)
		}
		of := ""
		if len(v.Runs) > 1 && name != "" {
			of = " of " + name
		}
		if r.Clean == nil {
			return []string{"no step" + of + " before the failed part was logged with a finite value", "no clean step" + of}
		}
		return []string{fmt.Sprintf("the curve%s is real up to step %s; a checkpoint from after it holds what failed", of, thousands(*r.Clean)), fmt.Sprintf("up to step %s%s", thousands(*r.Clean), of)}
	}
	return []string{"no point was affected"}
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
	case len(v.Checks) == 0:
		return []string{"the copy was not checked; " + src}
	case bad > 0:
		return []string{fmt.Sprintf("%d of %s FAIL: %s; %s", bad, several(len(v.Checks), "check"), first, src), fmt.Sprintf("%d of %s FAIL: %s", bad, several(len(v.Checks), "check"), first)}
	case len(v.Checks) == 1:
		return []string{"the check holds; " + src}
	}
	return []string{fmt.Sprintf("all %d checks hold; %s", len(v.Checks), src), fmt.Sprintf("all %d checks hold", len(v.Checks))}
}

func (v *repairView) undoVariants() []string {
	if v.Undo == "" {
		return []string{"remove the copy"}
	}
	return []string{oneLine(v.Undo)}
}

func writeRepairText(w io.Writer, r *incident.Repair, o Options) error {
	r = copyClean(reflect.ValueOf(r)).Interface().(*incident.Repair)
	p := newPage(&incident.Incident{}, o)
	v := &repairView{r}
	plain := lipgloss.NewStyle()
	p.head("Copy", v.copyVariants(), p.strong)
	p.head("Did", v.doneVariants(), p.strong)
	p.head("Real", v.cleanVariants(), plain)
	p.head("Checks", v.checkVariants(), plain)
	p.head("Undo", v.undoVariants(), plain)
	_, err := io.WriteString(w, p.text())
	return err
}
