// Package engine knows the order of the stages: walk and read the artifacts,
// build the timeline, examine each attempt, compute its facts, weigh the
// entries, choose the remedy, and put the result down as an incident. Reading is
// the only stage that runs concurrently.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/detect"
	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// Options say what to diagnose and with what.
type Options struct {
	Paths []string  // files, folders, archives, globs, "-"
	Stdin io.Reader // for "-"
	// Roots are folders, absolute, that no report names: a path below one
	// is said relative to it, as if the user had named it from there.
	Roots    []string
	Baseline []string // paths of a run that worked, to compare with; may be empty
	// CompareHost names a host that is not suspected, to set beside that of the first
	// fault; "" compares none.
	CompareHost string
	All         bool // read every text, not only recognised kinds
	Readers     []reader.Reader
	Catalog     *catalog.Catalog
	Version     string
	// Limits are what is known beforehand not to be in what is read; the incident states them
	// first. Their spans name artifacts as reports do.
	Limits   []incident.Statement
	Workers  int                   // artifacts read at once; 0 is one
	Progress func(done, total int) // called after each artifact; may be nil
}

// maxWeighed bounds the attempts whose hypotheses are weighed: a sweep of
// thousands of launches lists them all and explains the first and the last ones.
const maxWeighed = 64

// Diagnose reads the job and returns its incident. The error is ctx's, or says
// why nothing at all could be read; whatever could not be read beside that is
// in the incident.
func Diagnose(ctx context.Context, o Options) (*incident.Incident, error) {
	return diagnosed(ctx, o, nil)
}

// diagnosed is Diagnose; more, where it is not nil, sees the study before what was read is
// released.
func diagnosed(ctx context.Context, o Options, more func(*Study, *incident.Incident) error) (*incident.Incident, error) {
	r, err := Read(ctx, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := Examine(r)
	s.weigh(o.Catalog)
	inc, err := s.incident(ctx, o)
	if err != nil {
		return nil, err
	}
	if more != nil {
		if err := more(s, inc); err != nil {
			return nil, err
		}
	}
	if len(o.Baseline) > 0 {
		b := o
		b.Paths, b.Baseline, b.Limits, b.Progress = o.Baseline, nil, nil, nil
		if inc.Baseline, err = baseline(ctx, b, s); err != nil {
			return nil, fmt.Errorf("read baseline: %w", err)
		}
		mask(inc.Baseline)
	}
	return inc, nil
}

// A Study is a reading on its way to an incident.
type Study struct {
	Reading  *Reading
	Timeline *timeline.Timeline
	Cases    []*diagnose.Case
	Known    []evidence.Known
	Weighed  [][]diagnose.Hypothesis
	Main     int // the attempt that the verdict is about
	Ended    int // the attempt that ended the job
}

// Examine builds the timeline and finds each attempt's faults and facts.
func Examine(r *Reading) *Study {
	s := &Study{Reading: r, Timeline: timeline.Build(r.Sources)}
	var prev *detect.Previous
	var all []*detect.Previous
	for i := range s.Timeline.Attempts {
		c := diagnose.Examine(s.Timeline, i)
		known := detect.Run(input(c, prev))
		if e := c.Elimination; e != nil { // a fault without words states no rank itself
			if e.Rank != evidence.None {
				known.Set("fault.rank", evidence.IntOf(int64(e.Rank)), e.Spans...)
			}
			known.Set("fault.kind", evidence.TextOf(string(c.Lead.Kind)), e.Spans...)
		}
		ended(c, known)
		waited(c, known)
		dumped(c, known)
		s.Cases = append(s.Cases, c)
		s.Known = append(s.Known, known)
		prev = &detect.Previous{Facts: known, Class: c.LeadClass, Nonfinite: c.LeadClass == evidence.Nonfinite, Memory: c.LeadClass == evidence.DeviceMemory}
		for _, x := range c.Attempt.Series {
			if x.Key.Name == "loss" {
				prev.Points = max(prev.Points, x.Count)
				if x.First.Step == 0 || x.First.Step == 1 {
					sp := x.Span(x.First)
					prev.Opening = &sp
				}
			}
		}
		all = append(all, prev)
	}
	detect.Across(all)
	s.pickMain()
	return s
}

// ended takes code and signal of the end from the process that leads, where one
// does, and not from whichever exit stands first in the order of files.
func ended(c *diagnose.Case, known evidence.Known) {
	if c.Lead == nil || c.Lead.Kind != evidence.Exited && c.Lead.Kind != evidence.LauncherSummary {
		return
	}
	code, coded := c.Lead.Attrs["code"]
	signal, signalled := c.Lead.Attrs["signal"]
	if !signalled && coded && code.I < 0 {
		signal, signalled = evidence.IntOf(-code.I), true
	}
	if !coded && !signalled {
		return
	}
	for name, v := range map[string]struct {
		value evidence.Value
		known bool
	}{"exit.code": {code, coded}, "exit.signal": {signal, signalled}, "host.signal": {signal, signalled}} {
		if delete(known, name); v.known {
			known.Set(name, v.value, c.Lead.Span)
		}
	}
}

// waited takes back what a rank that waited does not show: it is not the failing
// one, and who is missing is open where the number of ranks is.
func waited(c *diagnose.Case, known evidence.Known) {
	if !c.OnlyEffects || c.Lead.Kind != evidence.CollTimeout {
		return
	}
	delete(known, "fault.rank")
	delete(known, "fault.host")
	if !c.Stated {
		delete(known, "dist.missing_ranks")
	}
}

// dumped states what dumps of the flight recorder show of the collectives: they
// know more of them than the messages of the watchdog.
func dumped(c *diagnose.Case, known evidence.Known) {
	ints := func(name string, ranks []int, spans []evidence.Span) {
		l := make([]int64, len(ranks))
		for i, r := range ranks {
			l[i] = int64(r)
		}
		delete(known, name)
		known.Set(name, evidence.IntsOf(l), spans...)
	}
	lagging, stuck, proof := c.Late()
	if len(lagging) > 0 {
		ints("dist.lagging_ranks", lagging, proof)
	}
	if c.Recorded() {
		ints("dist.stuck_ranks", stuck, proof)
	}
	if differ, compared, spans := c.Mismatch(); compared && !known["dist.op_mismatch"].Value.True() {
		delete(known, "dist.op_mismatch")
		known.Set("dist.op_mismatch", evidence.BoolOf(differ), spans...)
	}
}

// pickMain chooses the attempt to speak about: the last one, unless it shows
// neither a failure nor its end; then the last that failed.
func (s *Study) pickMain() {
	s.Main = len(s.Cases) - 1
	s.Ended = s.Main
	if c := s.Cases[s.Main]; c.Lead != nil || c.Outcome == incident.FinishedRun {
		return
	}
	for i := len(s.Cases) - 1; i >= 0; i-- {
		if s.Cases[i].Lead != nil {
			s.Main = i
			return
		}
	}
}

// input hands a case to the detectors.
func input(c *diagnose.Case, prev *detect.Previous) detect.Input {
	in := detect.Input{Series: c.Attempt.Series, Stated: c.Attempt.Facts, World: c.World, Before: prev, Recovered: c.Recovered}
	items := map[*evidence.Event]*timeline.Item{}
	for _, it := range c.Attempt.Items {
		in.Events = append(in.Events, &it.Event)
		items[&it.Event] = it
	}
	ref := func(it *timeline.Item) *evidence.Event {
		if it == nil || it.Source < 0 {
			return nil
		}
		return &it.Event
	}
	in.Lead, in.Memory, in.NaN = ref(c.Lead), ref(c.Memory), ref(c.NaN)
	in.After = func(a, b *evidence.Event) bool {
		x, y := items[a], items[b]
		if x == nil || y == nil {
			return false
		}
		return c.Timeline.Order(x, y) == timeline.After
	}
	return in
}

// saidAgain reports whether a wording that is not from memory tells of the same
// kind of failure as the lead, so that the lead's own wording decides nothing alone.
func saidAgain(c *diagnose.Case, weak map[string]bool) bool {
	return slices.ContainsFunc(c.Attempt.Items, func(it *timeline.Item) bool {
		return it.Kind == c.Lead.Kind && it.Line != "" && !weak[it.Line]
	})
}

// weigh ranks the entries for every attempt that has a lead.
func (s *Study) weigh(cat *catalog.Catalog) {
	s.Weighed = make([][]diagnose.Hypothesis, len(s.Cases))
	weak := map[string]bool{}
	for _, w := range cat.Plan().Wordings {
		if w.Weak {
			weak[w.ID] = true
		}
	}
	for i, c := range s.Cases {
		cat.StateCodes(s.Known[i])
		if c.Lead == nil || i >= maxWeighed && i != s.Main && i != s.Ended {
			continue
		}
		caps := diagnose.Caps{Undecided: c.Undecided(), Weak: weak[c.Lead.Line] && !saidAgain(c, weak), First: i == 0}
		if c.Lead.Source >= 0 {
			if a := s.Reading.Sources[c.Lead.Source].Artifact; a.Fate != "read" {
				caps.Damaged = cmp.Or(a.Note, a.Fate)
			}
		}
		h := diagnose.Weigh(cat, c.Asked(), s.Known[i], caps)
		if caps.Undecided || len(h) == 0 {
			if e, err := cat.Entry("undetermined"); err == nil {
				h = append([]diagnose.Hypothesis{diagnose.Open(e, c, s.Known[i])}, drop(h, "undetermined")...)
			}
		}
		for n := range h {
			if h[n].Entry.ID == "undetermined" {
				h[n] = diagnose.Absent(h[n], c, s.Known[i])
			}
		}
		for n := range h {
			namesOf(c).fillMissing(h[n].Missing)
		}
		s.Weighed[i] = h
	}
}

func drop(h []diagnose.Hypothesis, id string) []diagnose.Hypothesis {
	out := h[:0]
	for _, x := range h {
		if x.Entry.ID != id {
			out = append(out, x)
		}
	}
	return out
}
