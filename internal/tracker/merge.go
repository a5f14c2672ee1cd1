package tracker

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Run is one run with all artifacts that hold parts of it.
type Run struct {
	Tracker, ID, Name, Project, Folder string
	Writer                             string // "" unless several wrote at the same time
	// Parts are what the artifacts hold, in the order of writing; those that only repeat
	// others are under Repeats.
	Parts   []*evidence.TrackedRun
	Repeats []*evidence.TrackedRun

	notes []string
	lines []*line
}

// A line is one series of a run over all its parts.
type line struct {
	name     string
	class    class
	meaning  string
	tracks   []*evidence.Track // one of each part that has it, in their order
	segments []segment
	more     int64 // segments that are not kept

	known map[int64]known // see points
}

// A segment is a stretch of rising steps with the track it is of. Its points from step
// from on were written again later, if superseded.
type segment struct {
	*evidence.Segment
	track      *evidence.Track
	part       int
	superseded bool
	from       int64
}

// class orders the series of a run by what a failure shows in first.
type class int

const (
	lossClass class = iota
	gradClass
	restClass
	machineClass
)

var (
	lossName = lazyre.New(`(^|[/._ -])loss($|[/._ -])|lm loss|nll|ppl|perplexity`)
	gradName = lazyre.New(`grad[_ -]?norm|^gnorm$|[/._]gnorm$`)
)

// canonical are the names that series have whatever a tracker calls them.
var canonical = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{"memory_used": true, "memory_fraction": true}
	for _, a := range evidence.SeriesAliases() {
		m[a.Name] = true
	}
	return m
})

func classify(t *evidence.Track) (class, string) {
	meaning := ""
	if name := t.Series.Key.Name; name != "" && canonical()[name] {
		meaning = name
	}
	low := strings.ToLower(t.Name)
	switch {
	case t.System || t.Axis == evidence.AxisOwn:
		return machineClass, meaning
	case meaning == "loss" || meaning == "eval_loss" || meaning == "" && lossName.MatchString(low):
		return lossClass, meaning
	case meaning == "grad_norm" || meaning == "" && gradName.MatchString(low):
		return gradClass, meaning
	}
	return restClass, meaning
}

// Patterns of folders that are parts of one run: what Hugging Face's Trainer saves at each
// checkpoint, and what OpenMMLab's runners make at each start.
var (
	checkpoint = lazyre.New(`(^|/)checkpoint-\d+$`)
	started    = lazyre.New(`(^|/)\d{8}_\d{6}(/vis_data)?$`)
	stamped    = lazyre.New(`\d{8}[_-]\d{6}`)
)

// home is the folder that all parts of a run lie in.
func home(r *evidence.TrackedRun) string {
	switch r.Tracker {
	case "trainer_state":
		if path.Base(r.Artifact) != "trainer_state.json" { // collected by hand
			return r.Artifact
		}
		return checkpoint.ReplaceAllString(r.Folder, "")
	case "mmengine", "mmcv":
		return started.ReplaceAllString(r.Folder, "")
	case "csv", "jsonl", "parquet": // whoever wrote them: nothing but the file tells a run
		return r.Artifact
	}
	return cmp.Or(r.Folder, r.Artifact)
}

// key tells runs apart, before their writers are looked at. Trackers that give a run
// an id of its own write a resumed one to another folder.
func key(r *evidence.TrackedRun) [3]string {
	switch {
	case r.ID == "":
		return [3]string{r.Tracker, "", home(r)}
	case slices.Contains([]string{"wandb", "swanlab", "comet", "neptune"}, r.Tracker):
		return [3]string{r.Tracker, r.ID, ""}
	}
	return [3]string{r.Tracker, r.ID, home(r)}
}

// Merge puts together the artifacts of each run, runs in the order of their first
// artifact. Several writers of one run stay apart where they wrote at the same time, or
// where nothing tells when; where one went on after the other they are one run.
func Merge(read []*evidence.TrackedRun) []*Run {
	groups := map[[3]string][]*evidence.TrackedRun{}
	var keys [][3]string
	for _, r := range read {
		k := key(r)
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], r)
	}
	var out []*Run
	for _, k := range keys {
		out = append(out, split(groups[k])...)
	}
	for _, r := range out {
		r.settle()
	}
	predecessors(out)
	return out
}

// A writing is what one writer left of a run.
type writing struct {
	who         string
	parts       []*evidence.TrackedRun
	first, last float64 // seconds since 1970; 0 unknown
	points      int64
}

// repairer is the writer of the event file that marks a repaired copy.
const repairer = "inquest.0"

// split tells the writers of one run apart.
func split(parts []*evidence.TrackedRun) []*Run {
	inOrder(parts)
	var all []*writing
	for _, p := range parts {
		i := slices.IndexFunc(all, func(w *writing) bool { return w.who == p.Writer })
		if i < 0 {
			i = len(all)
			all = append(all, &writing{who: p.Writer})
		}
		w := all[i]
		w.parts = append(w.parts, p)
		for _, t := range p.Tracks {
			w.points += t.Series.Count
			if t.FirstWall > 0 && (w.first == 0 || t.FirstWall < w.first) {
				w.first = t.FirstWall
			}
			w.last = max(w.last, t.LastWall)
		}
	}
	var chains [][]*writing
	var empty, marks []*writing
	slices.SortStableFunc(all, func(a, b *writing) int { return cmp.Compare(a.first, b.first) })
	for _, w := range all {
		if w.who == repairer && len(all) > 1 {
			marks = append(marks, w)
			continue
		}
		if w.points == 0 && len(all) > 1 {
			empty = append(empty, w)
			continue
		}
		best := -1
		for i, c := range chains {
			end := c[len(c)-1]
			if end.last > 0 && w.first >= end.last && (best < 0 || hostOf(end.who) == hostOf(w.who)) {
				best = i
			}
		}
		if best < 0 {
			chains = append(chains, []*writing{w})
			continue
		}
		chains[best] = append(chains[best], w)
	}
	if len(chains) == 0 && len(empty) > 0 {
		chains, empty = [][]*writing{empty}, nil
	}
	var out []*Run
	for i, c := range chains {
		r := &Run{}
		if len(chains) > 1 {
			r.Writer = c[len(c)-1].who
		}
		var names []string
		for _, w := range c {
			r.Parts = append(r.Parts, w.parts...)
			if w.who != "" {
				names = append(names, w.who)
			}
		}
		if len(names) > 1 {
			r.notes = append(r.notes, "Written by one process after the other: "+listed(names, 4)+".")
		}
		if i == 0 {
			for _, w := range marks {
				r.Parts = append(r.Parts, w.parts...)
				r.notes = append(r.notes, w.parts[0].Artifact+" is what inquest marked the failed segment with: this is a repaired copy.")
			}
			for _, w := range empty {
				r.Parts = append(r.Parts, w.parts...)
				r.notes = append(r.notes, fmt.Sprintf("%s opened %s and logged nothing.", cmp.Or(w.who, "A process"), w.parts[0].Artifact))
			}
		}
		inOrder(r.Parts)
		out = append(out, r)
	}
	return out
}

// hostOf is the host of a writer host.pid.
func hostOf(writer string) string {
	if i := strings.LastIndexByte(writer, '.'); i > 0 {
		return writer[:i]
	}
	return writer
}

// inOrder puts parts into the order in which they were written: checkpoints by how far they
// come, others by the time in the name of their folder, by when they began, and by
// name, in which TensorBoard reads the files of a run.
func inOrder(parts []*evidence.TrackedRun) {
	slices.SortStableFunc(parts, func(a, b *evidence.TrackedRun) int {
		if a.Tracker == "trainer_state" && b.Tracker == a.Tracker {
			if c := cmp.Compare(lastStep(a), lastStep(b)); c != 0 {
				return c
			}
		}
		if x, y := folderTime(a), folderTime(b); x != "" && y != "" && x != y {
			return strings.Compare(x, y)
		}
		if a.Folder != b.Folder && a.Started.Known() && b.Started.Known() {
			if c := a.Started.Time.Compare(b.Started.Time); c != 0 {
				return c
			}
		}
		return cmp.Or(strings.Compare(path.Base(a.Artifact), path.Base(b.Artifact)), strings.Compare(a.Artifact, b.Artifact))
	})
}

func folderTime(r *evidence.TrackedRun) string {
	if r.Tracker == "tensorboard" {
		return ""
	}
	all := stamped.FindAllString(r.Folder, -1)
	if len(all) == 0 {
		return ""
	}
	return strings.Replace(all[len(all)-1], "-", "_", 1)
}

func lastStep(r *evidence.TrackedRun) int64 {
	last := int64(evidence.None)
	for _, t := range r.Tracks {
		for _, s := range t.Segments {
			last = max(last, s.Last.Step)
		}
	}
	return last
}

// settle sets parts aside that only repeat others, and joins the series.
func (r *Run) settle() {
	r.setAside()
	first, last := r.Parts[0], r.Parts[len(r.Parts)-1]
	r.Tracker = first.Tracker
	r.Folder = last.Folder
	if h := home(last); len(r.Parts) > 1 && first.Folder != last.Folder && (first.Tracker == "trainer_state" || first.Tracker == "mmengine" || first.Tracker == "mmcv") {
		r.Folder = h
	}
	for _, p := range r.Parts {
		r.ID, r.Name, r.Project = cmp.Or(p.ID, r.ID), cmp.Or(p.Name, r.Name), cmp.Or(p.Project, r.Project)
	}
	index := map[string]*line{}
	for i, p := range r.Parts {
		for _, t := range p.Tracks {
			if t.Series == nil || t.Series.Count == 0 {
				continue
			}
			l := index[t.Name]
			if l == nil {
				l = &line{name: t.Name}
				l.class, l.meaning = classify(t)
				index[t.Name] = l
				r.lines = append(r.lines, l)
			}
			l.tracks = append(l.tracks, t)
			for j := range t.Segments {
				l.segments = append(l.segments, segment{Segment: &t.Segments[j], track: t, part: i})
			}
			l.more += t.MoreSegments
		}
	}
	for _, l := range r.lines {
		l.supersede()
	}
	slices.SortStableFunc(r.lines, func(a, b *line) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(rank(a.meaning), rank(b.meaning)), evidence.Natural(a.name, b.name), strings.Compare(a.name, b.name))
	})
}

// rank puts the losses of the training before others.
func rank(meaning string) int {
	if meaning == "loss" {
		return 0
	}
	return 1
}

// supersede marks what a later stretch wrote again.
func (l *line) supersede() {
	low, any := int64(math.MaxInt64), false
	for i := len(l.segments) - 1; i >= 0; i-- {
		s := &l.segments[i]
		if any && s.Last.Step >= low {
			s.superseded, s.from = true, low
		}
		if s.First.Step != evidence.None {
			low, any = min(low, s.First.Step), true
		}
	}
}

// setAside takes out parts whose points another part of the same folder has as well:
// two forms of one log, and checkpoints whose history a later one goes on with.
func (r *Run) setAside() {
	if len(r.Parts) < 2 {
		return
	}
	gone := make([]bool, len(r.Parts))
	for i, a := range r.Parts {
		for j, b := range r.Parts {
			if i == j || gone[j] || a.Folder != b.Folder && a.Tracker != "trainer_state" || !repeats(a, b) {
				continue
			}
			gone[i] = true
			n := int64(0)
			for _, t := range a.Tracks {
				n = max(n, t.Series.Count)
			}
			if a.Tracker != "trainer_state" {
				r.notes = append(r.notes, fmt.Sprintf("%s holds what %s holds; its points are not counted twice.", a.Artifact, b.Artifact))
			}
			break
		}
	}
	var kept []*evidence.TrackedRun
	for i, p := range r.Parts {
		if gone[i] {
			r.Repeats = append(r.Repeats, p)
		} else {
			kept = append(kept, p)
		}
	}
	r.Parts = kept
	if n := len(r.Repeats); n > 0 && kept[0].Tracker == "trainer_state" {
		files := "file"
		if n > 1 {
			files = "files"
		}
		r.notes = append(r.notes, fmt.Sprintf("The history of %d earlier %s is part of that of %s.", n, files, kept[len(kept)-1].Artifact))
	}
}

// repeats reports whether b has all points of a: of each series as many from the
// beginning on, as far as they are kept.
func repeats(a, b *evidence.TrackedRun) bool {
	of := map[string]*evidence.Track{}
	for _, t := range b.Tracks {
		of[t.Name] = t
	}
	long, points := false, false
	for _, t := range a.Tracks {
		if t.Series.Count == 0 {
			continue
		}
		points = true
		o := of[t.Name]
		if o == nil || o.Series.Count < t.Series.Count || t.FirstWall > 0 && o.FirstWall > 0 && t.FirstWall != o.FirstWall {
			return false
		}
		long = long || t.Series.Count > 1
		if !begins(t.Series, o.Series) {
			return false
		}
	}
	return points && long
}

// begins reports whether b begins with the points of a, as far as both are kept.
func begins(a, b *evidence.Series) bool {
	x, y := a.Points(), b.Points()
	j, met := 0, 0
	for i := range x {
		for j < len(y) && y[j].Ordinal < x[i].Ordinal {
			j++
		}
		if j == len(y) || y[j].Ordinal != x[i].Ordinal {
			continue
		}
		if y[j].Step != x[i].Step || !equal(x[i].Value, y[j].Value, 1e-6) {
			return false
		}
		met++
	}
	return met > 0
}

// equal reports whether two values are the same within a share of them; what is not finite
// is equal to its like.
func equal(a, b, share float64) bool {
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		return math.IsNaN(a) && math.IsNaN(b)
	case math.IsInf(a, 0) || math.IsInf(b, 0):
		return a == b
	}
	return math.Abs(a-b) <= share*max(math.Abs(a), math.Abs(b))
}

// version is a folder that Lightning numbers.
var version = lazyre.New(`^(.*/|)version_(\d+)(?:/metrics\.csv)?$`)

// predecessors names for each of Lightning's numbered folders the one before it: a resumed
// run goes on in a folder of its own.
func predecessors(runs []*Run) {
	for _, r := range runs {
		m := version.FindStringSubmatch(r.Folder)
		if m == nil {
			continue
		}
		var before *Run
		for _, o := range runs {
			n := version.FindStringSubmatch(o.Folder)
			if n == nil || o.Tracker != r.Tracker || n[1] != m[1] || evidence.Natural(n[2], m[2]) >= 0 {
				continue
			}
			if before == nil || evidence.Natural(o.Folder, before.Folder) > 0 {
				before = o
			}
		}
		if before == nil {
			continue
		}
		text := fmt.Sprintf("%s lies before it; what a resumed run logged earlier stands there", before.Folder)
		from, to := r.firstStep(), before.lastStep()
		switch {
		case from == evidence.None || to == evidence.None:
		case from > 1 && from <= to+1:
			text += fmt.Sprintf(": it comes to step %d, and this one begins at step %d", to, from)
		case from > to:
			text += fmt.Sprintf(": it comes to step %d, and this one begins at step %d, so steps between are in neither", to, from)
		default:
			text += fmt.Sprintf(", but this one begins at step %d anew", from)
		}
		r.notes = append(r.notes, text+".")
	}
}

// firstStep is the lowest step of the training, None if there is none.
func (r *Run) firstStep() int64 {
	first := int64(evidence.None)
	for _, l := range r.lines {
		if l.class == machineClass || l.tracks[0].Axis != evidence.AxisStep {
			continue
		}
		for _, s := range l.segments {
			if s.First.Step != evidence.None && (first == evidence.None || s.First.Step < first) {
				first = s.First.Step
			}
		}
	}
	return first
}

// lastStep is the highest step of the training, None if there is none.
func (r *Run) lastStep() int64 {
	last := int64(evidence.None)
	for _, l := range r.lines {
		if l.class == machineClass || l.tracks[0].Axis != evidence.AxisStep {
			continue
		}
		for _, s := range l.segments {
			last = max(last, s.Last.Step)
		}
	}
	return last
}

// listed joins the first most of names.
func listed(names []string, most int) string {
	if n := len(names) - most; n > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
