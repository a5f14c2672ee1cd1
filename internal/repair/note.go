package repair

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// Bounds of what is put into a tracker.
const (
	maxJSON     = 4000 // bytes of Run.JSON
	maxNoted    = 8    // series named in Run.Note
	maxNameNote = 120  // bytes of a name in a note
	maxID       = 64   // bytes of a new id
)

// newID is an id for the copy of a run, which follows from the id, the points and what is done to them: the
// old one, cut to what W&B and SwanLab accept, with -fx and four hex digits.
func newID(r *evidence.TrackedRun, o PlanOptions, sum uint64) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %x %v %q", r.ID, path.Base(r.Folder), r.Writer, sum, o.Policy, o.Marker))
	tail := fmt.Sprintf("-fx%x", h[:2])
	id := strings.Map(func(c rune) rune {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '-':
			return c
		}
		return '_'
	}, cmp.Or(r.ID, path.Base(r.Folder)))
	if id == "" || id == "_" {
		id = "run"
	}
	return id[:min(len(id), maxID-len(tail))] + tail
}

// label names a run for people.
func label(r *Run) string {
	name := cmp.Or(r.Read.ID, r.Read.Name, r.Read.Folder, r.Read.Artifact)
	if r.Read.Writer != "" {
		name += " of " + r.Read.Writer
	}
	return textline.OneLine(name, maxNameNote)
}

// byName are the sums of a run's series over its files, in the order of their first point.
type byName struct {
	name               string
	a                  account
	failed, suspicious []stretch
}

func (r *Run) byName() []*byName {
	var list []*byName
	at := map[string]*byName{}
	for _, s := range r.order {
		n := at[s.key.name]
		if n == nil {
			n = &byName{name: s.key.name}
			at[s.key.name] = n
			list = append(list, n)
		}
		a := &s.state.seen
		if s.state.want != nil {
			a = s.state.want
		}
		n.a.add(a)
		n.failed = append(n.failed, s.failed...)
		n.suspicious = append(n.suspicious, s.suspicious...)
	}
	return list
}

// describe writes the notes of a run.
func (r *Run) describe() {
	var hit []*byName
	var total account
	for _, n := range r.byName() {
		total.add(&n.a)
		if n.a.dropped+n.a.held > 0 {
			hit = append(hit, n)
		}
	}
	if len(hit) == 0 && total.superseded == 0 {
		return
	}
	slices.SortStableFunc(hit, func(a, b *byName) int { return cmp.Compare(weight(a.name), weight(b.name)) })
	r.Short = r.short(hit, total)
	r.Note = r.note(hit, total)
	r.JSON = r.machine(hit, total)
}

// weight sorts losses and gradient norms before what else failed.
func weight(name string) int {
	switch n := strings.ToLower(name); {
	case strings.HasSuffix(n, "loss"):
		return 0
	case strings.Contains(n, "grad"):
		return 1
	case strings.Contains(n, "loss"):
		return 2
	}
	return 3
}

// steps says where a segment lies.
func (f *stretch) steps() string {
	switch {
	case f.first.step == evidence.None:
		return ""
	case f.first.step == f.last.step:
		return fmt.Sprintf("step %d", f.first.step)
	}
	return fmt.Sprintf("steps %d to %d", f.first.step, f.last.step)
}

// where says where a series failed.
func (n *byName) where() string {
	text := n.failed[0].steps()
	if more := len(n.failed) - 1; more > 0 && text != "" {
		text += fmt.Sprintf(" and %d more %s", more, plural(int64(more), "segment"))
	}
	return text
}

func plural(n int64, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// what counts the affected points of a series by what they were.
func (n *byName) what() string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{n.a.nan, "NaN"}, {n.a.posInf, "+Inf"}, {n.a.negInf, "-Inf"}, {n.a.suspect, "suspect"}} {
		if p.n > 0 {
			parts = append(parts, strconv.FormatInt(p.n, 10)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

// done says what became of the affected points.
func done(a account) string {
	switch {
	case a.held == 0:
		return "taken out"
	case a.dropped == 0:
		return "replaced by the last finite value"
	}
	return fmt.Sprintf("taken out (%d) or replaced by the last finite value (%d)", a.dropped, a.held)
}

// lasting says from which step on a run is affected to its end, where that is not the first
// affected one.
func (r *Run) lasting() string {
	switch {
	case r.First == evidence.None || r.First == r.Since:
		return ""
	case r.Since == evidence.None:
		return "finite again at the end"
	}
	return fmt.Sprintf("first affected at step %d, to the end from step %d on", r.First, r.Since)
}

func (r *Run) short(hit []*byName, total account) string {
	if len(hit) == 0 {
		return fmt.Sprintf("inquest: repaired copy; %d points whose steps were written again later were taken out", total.superseded)
	}
	n := hit[0]
	text := "inquest: repaired copy; " + textline.OneLine(n.name, maxNameNote) + " failed"
	if w := n.where(); w != "" {
		text += " at " + w
	}
	text += " (" + n.what() + ")"
	if len(hit) > 1 {
		text += fmt.Sprintf(", %d more series", len(hit)-1)
	}
	text += "; " + done(total)
	if r.Clean != evidence.None {
		text += fmt.Sprintf("; last clean step %d", r.Clean)
	}
	if w := r.lasting(); w != "" {
		text += "; " + w
	}
	return text
}

// code is a name in Markdown.
func code(name string) string {
	return "`" + strings.ReplaceAll(textline.OneLine(name, maxNameNote), "`", "'") + "`"
}

func (r *Run) note(hit []*byName, total account) string {
	var b strings.Builder
	b.WriteString("**Repaired copy**, written by inquest. The source was not changed.\n")
	if len(hit) > 0 {
		fmt.Fprintf(&b, "\n%d of %d points were %s; `%s` is 1 where they stood.\n\n", total.dropped+total.held, total.count, done(total), strings.ReplaceAll(textline.OneLine(r.plan.Marker, maxNameNote), "`", "'"))
		for i, n := range hit {
			if i == maxNoted {
				fmt.Fprintf(&b, "- %d more series\n", len(hit)-i)
				break
			}
			fmt.Fprintf(&b, "- %s: %s", code(n.name), n.what())
			if w := n.where(); w != "" {
				b.WriteString(" at " + w)
			}
			b.WriteString("\n")
		}
		if r.Clean != evidence.None {
			fmt.Fprintf(&b, "\nLast clean step: %d.\n", r.Clean)
		}
		if w := r.lasting(); w != "" {
			fmt.Fprintf(&b, "\n%s.\n", strings.ToUpper(w[:1])+w[1:])
		}
		if total.held > 0 {
			b.WriteString("\nHeld values are synthetic: the run never logged them.\n")
		}
	}
	if total.superseded > 0 {
		fmt.Fprintf(&b, "\n%d points whose steps were written again by a later part of the run were taken out.\n", total.superseded)
	}
	return b.String()
}

// A machineNote is what Run.JSON holds.
type machineNote struct {
	By         string          `json:"by"`
	Policy     string          `json:"policy"`
	Marker     string          `json:"marker"`
	Clean      *int64          `json:"last_clean_step"`
	First      *int64          `json:"first_affected_step"`
	Since      *int64          `json:"affected_to_end_from"`
	Dropped    int64           `json:"dropped"`
	Held       int64           `json:"held"`
	Superseded int64           `json:"superseded"`
	Series     []machineSeries `json:"series"`
	More       int             `json:"more_series"`
}

type machineSeries struct {
	Name string `json:"name"`
	// Segments are first step, last step and points of each; a step is null where none was
	// stated.
	Segments [][3]*int64 `json:"segments"`
	More     int         `json:"more_segments"`
}

func (r *Run) machine(hit []*byName, total account) string {
	m := machineNote{By: "inquest", Policy: r.plan.Policy.Nonfinite, Marker: textline.OneLine(r.plan.Marker, maxNameNote), Clean: known(r.Clean), First: known(r.First), Since: known(r.Since),
		Dropped: total.dropped, Held: total.held, Superseded: total.superseded, Series: []machineSeries{}}
	marker, _ := json.Marshal(m.Marker)
	room := maxJSON - 512 - len(marker) // for what stands around the series
	for i, n := range hit {
		s := machineSeries{Name: textline.OneLine(n.name, maxNameNote), Segments: [][3]*int64{}}
		name, _ := json.Marshal(s.Name)
		need := len(name) + 64
		if need > room {
			m.More = len(hit) - i
			break
		}
		room -= need
		for j := range n.failed {
			f := &n.failed[j]
			points := f.points()
			const each = 3*20 + 6 // three numbers with what stands between them
			if each > room {
				s.More = len(n.failed) - j
				break
			}
			room -= each
			s.Segments = append(s.Segments, [3]*int64{known(f.first.step), known(f.last.step), &points})
		}
		m.Series = append(m.Series, s)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic("repair: a note that is no JSON: " + err.Error()) // numbers and valid text only
	}
	return string(b)
}
