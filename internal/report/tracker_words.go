package report

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// trackerWords names the tracker of a run; one without a name that people write keeps its own.
func trackerWords(tracker string) string {
	if n := evidence.TrackerNames[tracker].Short; n != "" {
		return n
	}
	if tracker == "" {
		return "tracker"
	}
	return oneLine(tracker)
}

// runLabel is what a run is called in a row: its name, else the id, else its folder's
// last part.
func runLabel(r *incident.TrackedRun) string {
	for _, s := range []string{r.Name, r.ID, path.Base(r.Folder)} {
		if s = oneLine(s); s != "" && s != "." && s != "/" {
			if r.Writer != "" {
				s += " (" + oneLine(r.Writer) + ")"
			}
			return s
		}
	}
	if r.Writer != "" {
		return oneLine(r.Writer)
	}
	return "run"
}

// runName is a run as a sentence names it.
func runName(r *incident.TrackedRun) string { return trackerWords(r.Tracker) + " run " + runLabel(r) }

// thousands prints a step or a count with its thousands apart.
func thousands(n int64) string { return evidence.Count(int(n)) }

// valueWords prints a value of a series, non-finite ones by their usual names.
func valueWords(n incident.Number) string {
	switch v := float64(n); {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	default:
		return number(v)
	}
}

// unitWords is valueWords with the unit of its series.
func unitWords(s *incident.TrackedSeries, n incident.Number) string {
	v := float64(n)
	switch {
	case !finite(v):
		return valueWords(n)
	case s.Unit == "bytes" && math.Abs(v) < 1<<62:
		return evidence.Bytes(int64(v))
	case s.Unit == "" || s.Unit == "bytes":
		return valueWords(n)
	}
	return valueWords(n) + " " + oneLine(s.Unit)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// axisWord is what the steps of a series count.
func axisWord(axis string) string {
	switch axis {
	case "samples":
		return "sample"
	case "epoch":
		return "epoch"
	case "own":
		return "reading"
	}
	return "step"
}

// instant is a time as reports print it: without a fraction, in UTC, as one word.
func instant(t *string) string {
	if t == nil {
		return ""
	}
	at, err := time.Parse(time.RFC3339Nano, *t)
	if err != nil {
		return oneLine(*t)
	}
	return at.UTC().Format("2006-01-02T15:04:05Z")
}

// pointPlace says where in a run a point is: by its step, else its time.
func pointPlace(p *incident.TrackedPoint, axis string) string {
	switch {
	case p.Step != nil:
		return axisWord(axis) + " " + thousands(*p.Step)
	case p.Time != nil:
		return instant(p.Time)
	}
	return "a point without a step"
}

// seriesOf finds a series of a run by its name, nil where it is not listed.
func seriesOf(r *incident.TrackedRun, name string) *incident.TrackedSeries {
	for i := range r.Series {
		if r.Series[i].Name == name {
			return &r.Series[i]
		}
	}
	return nil
}

func axisOf(r *incident.TrackedRun, name string) string {
	if s := seriesOf(r, name); s != nil {
		return s.Axis
	}
	return ""
}

// onsetWords say where a series ceased to be finite: "loss is NaN at step 120".
func onsetWords(o *incident.Onset, axis string) string {
	return fmt.Sprintf("%s is %s at %s", oneLine(o.Series), valueWords(o.At.Value), pointPlace(&o.At, axis))
}

// beforeWords say what was last finite before an onset.
func beforeWords(o *incident.Onset, axis string) string {
	if o.Before == nil {
		return "no finite value was logged before it"
	}
	return fmt.Sprintf("%s at %s", valueWords(o.Before.Value), pointPlace(o.Before, axis))
}

// betweenWords say in which steps the true beginning lies, "" where that is not known.
func betweenWords(o *incident.Onset, axis string) string {
	if o.Before == nil || o.Before.Step == nil || o.At.Step == nil {
		return ""
	}
	word := axisWord(axis)
	from, to := *o.Before.Step, *o.At.Step
	switch {
	case to == from+1:
		return "it began at " + word + " " + thousands(to)
	case to > from:
		return fmt.Sprintf("it began in %ss %s to %s", word, thousands(from+1), thousands(to))
	}
	return ""
}

// strideWords say how often a series was logged, "" where that is not known.
func strideWords(stride int64, axis string) string {
	switch {
	case stride == 1:
		return "logged at every " + axisWord(axis)
	case stride > 1:
		return fmt.Sprintf("logged every %s %ss", thousands(stride), axisWord(axis))
	}
	return ""
}

// A runView is one run as reports speak of it.
type runView struct {
	*incident.TrackedRun
	all int // runs in the result
}

// leadingRun is the run that the first lines speak of: the first in which a loss or
// gradient norm ceased to be finite, else any series, else the first.
func leadingRun(runs []incident.TrackedRun) *runView {
	best, rank := -1, 4
	for i := range runs {
		r := &runs[i]
		n := 3
		switch {
		case r.First != nil && isCurve(meaningOf(r, r.First.Series)):
			n = 0
		case r.First != nil:
			n = 1
		case suspects(r) > 0:
			n = 2
		}
		if n < rank {
			best, rank = i, n
		}
	}
	if best < 0 {
		return nil
	}
	return &runView{&runs[best], len(runs)}
}

func meaningOf(r *incident.TrackedRun, name string) string {
	if s := seriesOf(r, name); s != nil {
		return s.Meaning
	}
	return ""
}

// isCurve reports whether a series of that meaning is one that a run's failure is told by.
func isCurve(meaning string) bool {
	return meaning == "loss" || meaning == "eval_loss" || meaning == "grad_norm"
}

func suspects(r *incident.TrackedRun) int64 {
	n := int64(0)
	for i := range r.Series {
		n += r.Series[i].Suspects
	}
	return n
}

func nonfinite(s *incident.TrackedSeries) int64 { return s.NaN + s.PosInf + s.NegInf }

// countWords list how many values of which kind are not finite.
func countWords(nan, pos, neg int64) string {
	var p []string
	for _, x := range []struct {
		n    int64
		what string
	}{{nan, "NaN"}, {pos, "+Inf"}, {neg, "-Inf"}} {
		if x.n > 0 {
			p = append(p, thousands(x.n)+" "+x.what)
		}
	}
	return strings.Join(p, ", ")
}

// spanWords are the steps and the times that a run covers.
func (v *runView) spanWords() (steps, times string) {
	var low, high *int64
	var first, last *string
	for i := range v.Series {
		s := &v.Series[i]
		if s.System || s.Axis != "" && s.Axis != "step" {
			continue
		}
		for _, p := range []*incident.TrackedPoint{s.First, s.Last, s.Max, s.Min} {
			if p == nil {
				continue
			}
			if p.Step != nil && (low == nil || *p.Step < *low) {
				low = p.Step
			}
			if p.Step != nil && (high == nil || *p.Step > *high) {
				high = p.Step
			}
			if p.Time != nil && (first == nil || *p.Time < *first) {
				first = p.Time
			}
		}
	}
	if first == nil {
		first = v.Started
	}
	if last = v.Newest; last == nil {
		last = v.Ended
	}
	if low != nil {
		steps = fmt.Sprintf("steps %s to %s", thousands(*low), thousands(*high))
	}
	if first != nil && last != nil {
		times = instant(first) + " to " + instant(last)
	}
	return steps, times
}

// runVariants say which run it is, from long to short.
func (v *runView) runVariants() []string {
	name := runName(v.TrackedRun)
	if v.ID != "" && v.ID != runLabel(v.TrackedRun) {
		name += " (" + oneLine(v.ID) + ")"
	}
	short := runName(v.TrackedRun)
	if v.all > 1 {
		name, short = fmt.Sprintf("1 of %d: %s", v.all, name), fmt.Sprintf("1 of %d: %s", v.all, short)
	}
	long := name
	if v.Project != "" {
		long += " of " + oneLine(v.Project)
	}
	steps, times := v.spanWords()
	n := int64(len(v.Series)) + v.MoreSeries
	count := several(int(n), "series")
	if n != 1 {
		count = thousands(n) + " series"
	}
	with := ": " + count
	if steps != "" {
		with += ", " + steps
	}
	if times == "" {
		return []string{long + with, name + with, name, short}
	}
	return []string{long + with + ", " + times, name + with + ", " + times, name + with, short + with, name, short}
}

// brokeVariants say where the run ceased to be finite.
func (v *runView) brokeVariants() []string {
	if o := v.First; o != nil {
		axis := axisOf(v.TrackedRun, o.Series)
		s := onsetWords(o, axis)
		long := s
		if o.At.Step != nil && o.At.Time != nil {
			long += " (" + instant(o.At.Time) + ")"
		}
		tail := ""
		if b := betweenWords(o, axis); b != "" {
			tail = "; " + b
		}
		others := ""
		if n := v.broken(); n > 1 {
			others = fmt.Sprintf("; %d of %d series are affected", n, len(v.Series))
		}
		return []string{long + tail + others, s + tail + others, s + tail, s}
	}
	if n := suspects(v.TrackedRun); n > 0 {
		for i := range v.Series {
			s := &v.Series[i]
			if s.Suspects == 0 {
				continue
			}
			at := "not shown: " + several(int(s.Suspects), "value") + " of " + oneLine(s.Name) + " may stand for ones that were not finite"
			if len(s.Doubtful) > 0 && s.Doubtful[0].First != nil {
				at += ", from " + axisWord(s.Axis) + " " + thousands(*s.Doubtful[0].First) + " on"
			}
			if why := s.Why; len(why) > 0 {
				return []string{at + ": " + oneLine(why[0]), at}
			}
			return []string{at}
		}
	}
	if len(v.Series) == 0 {
		return []string{"not shown: the run has no series"}
	}
	switch v.Keeps {
	case string(evidence.KeepsAll):
		return []string{"nowhere: every value of every series is finite", "nowhere: all values are finite"}
	case string(evidence.Dropped):
		return []string{"not shown: all stored values are finite, but this tracker never stores one that is not", "not shown: this tracker stores finite values only"}
	case string(evidence.Zeroed):
		return []string{"not shown: all stored values are finite, but this tracker writes 0 for one that is not", "not shown: this tracker writes 0 instead"}
	case string(evidence.Replaced):
		return []string{"not shown: all stored values are finite, but the trainer may have replaced ones that were not", "not shown: the trainer may have replaced such values"}
	case string(evidence.Clamped):
		return []string{"nowhere: all stored values are finite, and none is an infinity that was clamped", "nowhere: all values are finite"}
	}
	return []string{"nowhere: all stored values are finite"}
}

// broken counts the series with a value that is not finite.
func (v *runView) broken() int {
	n := 0
	for i := range v.Series {
		if !v.Series[i].System && nonfinite(&v.Series[i]) > 0 {
			n++
		}
	}
	return n
}

// lastVariants say what was last finite before the run broke, and how often it was logged;
// of a run that did not, what it recorded last.
func (v *runView) lastVariants() []string {
	if o := v.First; o != nil {
		axis := axisOf(v.TrackedRun, o.Series)
		s := beforeWords(o, axis)
		if o.Before != nil {
			s = "finite: " + oneLine(o.Series) + " " + s
		}
		long := s
		if w := strideWords(o.Stride, axis); w != "" {
			long += "; " + w
		}
		after := ""
		if x := seriesOf(v.TrackedRun, o.Series); x != nil {
			switch {
			case x.Later != nil:
				after = "; where only the latest writing of each step counts, at " + pointPlace(&x.Later.At, axis)
			case healed(v.TrackedRun, x):
				after = "; written again later, and finite there"
			case x.Recovers:
				after = "; it is finite again later"
			case x.Last != nil && x.Last.Step != nil && o.At.Step != nil && *x.Last.Step > *o.At.Step:
				after = fmt.Sprintf("; recorded on to %s, never finite again", pointPlace(x.Last, axis))
			}
		}
		short := s
		if o.Before != nil {
			short = "finite: " + beforeWords(o, axis)
		}
		if w := strideWords(o.Stride, axis); w != "" {
			return []string{long + after, long, short + "; " + strings.TrimPrefix(w, "logged "), short}
		}
		return []string{long + after, long, short}
	}
	var s *incident.TrackedSeries
	for i := range v.Series {
		x := &v.Series[i]
		if x.Last != nil && !x.System && (s == nil || isCurve(x.Meaning) && !isCurve(s.Meaning)) {
			s = x
		}
	}
	if s == nil {
		return []string{"nothing of the training is recorded", "nothing recorded"}
	}
	last := fmt.Sprintf("%s %s at %s", oneLine(s.Name), unitWords(s, s.Last.Value), pointPlace(s.Last, s.Axis))
	long := last
	if s.Last.Step != nil && s.Last.Time != nil {
		long += " (" + instant(s.Last.Time) + ")"
	}
	if w := strideWords(s.Stride, s.Axis); w != "" {
		return []string{long + "; " + w, last + "; " + w, last}
	}
	return []string{long, last}
}

// statusWords names a status.
func statusWords(status string) string {
	switch status {
	case string(evidence.RunOpen):
		return "running or dead"
	case "":
		return string(evidence.RunUnknown)
	}
	return oneLine(status)
}

// statusVariants say what the tracker says of the run's end, and what that is worth.
func (v *runView) statusVariants() []string {
	s := statusWords(v.Status)
	said := s
	if v.Said != "" {
		said += fmt.Sprintf(" (it says %s)", strconv.Quote(oneLine(v.Said)))
	}
	if v.Exit != nil && !strings.Contains(v.Said, strconv.FormatInt(*v.Exit, 10)) {
		said += fmt.Sprintf(", exit code %d", *v.Exit)
	}
	if b := lowerPlain(strings.TrimSuffix(oneLine(v.Basis), ".")); b != "" {
		return []string{said + ": " + b, s + ": " + b} // the end is cut
	}
	return []string{said, s}
}

// ordinary are words that begin a sentence and are no names.
var ordinary = lazyre.New(`^(The|Its|It|No|A|An|Nothing|There|This|That|What|Since|Where) `)

// lowerPlain is lower for what begins with a word that is no name.
func lowerPlain(s string) string {
	if ordinary.MatchString(s) {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// damageVariants say what of the run's files is damaged.
func (v *runView) damageVariants() []string { return damageVariants(v.Damage) }

func damageVariants(all []incident.RunDamage) []string {
	if len(all) == 0 {
		return []string{"none found in its files", "none found"}
	}
	var bytes, records int64
	for _, d := range all {
		bytes, records = bytes+d.Bytes, records+d.Records
	}
	s := several(len(all), "place")
	lost := ""
	if records > 0 {
		lost += ", " + several(int(records), "record")
	}
	if bytes > 0 {
		lost += ", " + evidence.Bytes(bytes)
	}
	if lost != "" {
		lost += " lost"
	}
	first := kindOfDamage(all[0].Kind)
	if all[0].Text != "" {
		first += ", " + strings.TrimSuffix(oneLine(all[0].Text), ".")
	}
	return []string{s + lost + ": " + first, s + ": " + first, s + lost, s}
}

// kindOfDamage is a kind of damage in words.
func kindOfDamage(kind string) string {
	if w, ok := map[string]string{
		string(evidence.TruncatedTail): "cut off at the end", string(evidence.BadChecksum): "bad checksum", string(evidence.BadLine): "bad line", string(evidence.BadRecord): "bad record", string(evidence.ZeroFill): "filled with zeros",
		string(evidence.MissingLog): "write-ahead log missing", string(evidence.BadTable): "bad table", string(evidence.ClockJump): "jump of the clock", string(evidence.OverBound): "over a limit",
	}[kind]; ok {
		return w
	}
	return oneLine(kind)
}

// damageLine is one damaged place.
func (w *words) damageLine(d *incident.RunDamage) string {
	s := kindOfDamage(d.Kind)
	if d.Text != "" {
		s += ": " + strings.TrimSuffix(oneLine(d.Text), ".")
	}
	if d.Records > 0 {
		s += ", " + several(int(d.Records), "record") + " lost"
	}
	if d.Bytes > 0 {
		s += ", " + evidence.Bytes(d.Bytes) + " lost"
	}
	if p := w.near(&d.Span); p != "" {
		s += " [" + p + "]"
	}
	return s
}

// resumeLine says where a run's writing began again.
func (w *words) resumeLine(r *incident.Resume) string {
	s := "writing began again"
	if r.From != nil {
		s += " at step " + thousands(*r.From)
	}
	if r.After != nil {
		s += ", after step " + thousands(*r.After)
	}
	if r.From != nil && r.After != nil && *r.From <= *r.After {
		s += fmt.Sprintf("; steps %s to %s stand twice", thousands(*r.From), thousands(*r.After))
	}
	if r.Time != nil {
		s += ", " + instant(r.Time)
	}
	if r.Basis != "" {
		s += ": " + strings.TrimSuffix(oneLine(r.Basis), ".")
	}
	if p := w.near(&r.Span); p != "" {
		s += " [" + p + "]"
	}
	return s
}

// doubtLine says which values only look finite.
func doubtLine(s *incident.TrackedSeries, d *incident.Doubt) string {
	text := fmt.Sprintf("%s: %s", oneLine(s.Name), several(int(d.Count), "value"))
	if d.First != nil {
		text += fmt.Sprintf(" at %s %s", axisWord(s.Axis), thousands(*d.First))
		if d.Last != nil && *d.Last != *d.First {
			text = strings.Replace(text, " at "+axisWord(s.Axis), " at "+axisWord(s.Axis)+"s", 1) + " to " + thousands(*d.Last)
		}
	}
	return text + " may stand for values that were not finite: " + oneLine(d.Reason)
}
