// Package diagnose finds what failed first, what only followed, in which order
// memory failures and non-finite values came, and why: it links events, sets
// the initiating fault apart from its collateral, and weighs the entries of the
// encyclopedia against what is known.
package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// A Case is what is found out about one attempt.
type Case struct {
	Timeline *timeline.Timeline
	Index    int
	Attempt  *timeline.Attempt

	Lead        *timeline.Item // the initiating fault; nil when there is none
	LeadClass   evidence.Class
	Basis       string
	Standing    string // established, supported, undecidable
	Rivals      []*timeline.Item
	SameKind    bool // all rivals are of the lead's kind: which rank is open, what is not
	Elimination *Elimination
	// Eliminations are what is known by elimination of the lead and its rivals.
	Eliminations map[*timeline.Item]*Elimination
	Waiting      []int // ranks that wait in one collective, where nothing sets one of them apart; nil otherwise
	OnlyEffects  bool  // the lead is the first effect in evidence, not what caused it
	Links        []Link

	Memory *timeline.Item // device-memory failure to explain or order; nil if none
	NaN    *timeline.Item // non-finite value to explain or order; nil if none

	Outcome string
	World   int
	Stated  bool // the log says how many ranks there are; else World is the least that its ranks need
	Ranks   []int
	Notes   []Note // contradictions and side findings worth stating

	finishedAt map[int]int64 // source -> offset at which the run said that it was complete
	hang       *hang         // what dumps of the flight recorder show; nil without
	closed     bool          // a closing word stands after the last training line
	completed  bool          // the scheduler's record of the job says that it completed
	recovered  map[*timeline.Item]bool
	survivors  map[*evidence.Event]bool          // recovered, by the event itself
	before     *past                             // nil until asked for
	trained    map[trainer][]*evidence.Series    // by process; nil until asked for
	foldedInto map[*timeline.Item]*timeline.Item // victims that a link counts beside its own
	linkAt     map[*timeline.Item]int            // index into Links by its item; nil until asked for
}

// An Elimination is a rank found by what the others say.
type Elimination struct {
	Rank  int
	Why   string
	Spans []evidence.Span
	Ranks []int // the ranks that were ruled out
	Host  string
	Lost  bool // by peers that report it gone, not by waiting for it
}

// A Link says that one event is explained by another.
type Link struct {
	Item  *timeline.Item
	By    *timeline.Item
	Rule  string
	Text  string
	Count int
	Ranks []int
}

// A Note is a statement with its proof.
type Note struct {
	Text  string
	Spans []evidence.Span
}

// Examine reads one attempt:
//
//  1. Who took part, and whether the run says that it finished.
//  2. Set aside what was survived, re-printed, or happened after the end.
//  3. Candidates are the faults and outside stops left; drop those that another
//     one explains by a mechanism.
//  4. The lead is the candidate that is not known to come after another. Several
//     such candidates are rivals.
//  5. Without a candidate: a rank that works alone while others wait, the first
//     process that ended by itself, the rank that the others' timeouts leave
//     over, the earliest effect.
func Examine(tl *timeline.Timeline, index int) *Case {
	c := &Case{Timeline: tl, Index: index, Attempt: tl.Attempts[index],
		finishedAt: map[int]int64{}, recovered: map[*timeline.Item]bool{}, survivors: map[*evidence.Event]bool{}}
	c.members()
	c.finish()
	c.setAside()
	if c.hang = c.standstill(); c.hang != nil {
		c.Notes = append(c.Notes, c.hang.stragglers()...)
	}
	cands := c.candidates()
	cands = c.dropExplained(cands)
	switch {
	case len(cands) > 0:
		c.choose(cands)
	default:
		c.withoutWords()
	}
	c.promote()
	c.attribute()
	if c.Lead != nil && c.LeadClass == "" {
		c.LeadClass = classOf(c.Lead)
	}
	c.memoryAndNaN()
	c.Links = c.explainRest()
	c.firstTimeout()
	c.where()
	c.outcome()
	c.launcherHint()
	return c
}

// Undecided reports whether rivals of other kinds leave open what failed first.
func (c *Case) Undecided() bool { return len(c.Rivals) > 0 && !c.SameKind }

// Asked lists the event kinds whose entries the case asks: the lead's (who was
// found by elimination left others waiting), and, where it is undecided, the
// rivals', because what a rival could be belongs to the picture as well.
func (c *Case) Asked() []string {
	if c.Lead == nil {
		return nil
	}
	kinds := []string{string(c.Lead.Kind)}
	if c.Lead.Kind == "unknown" {
		kinds = []string{string(evidence.CollTimeout)}
		if c.Elimination != nil && c.Elimination.Lost {
			kinds = []string{string(evidence.PeerClosed)}
		}
	}
	if c.Undecided() {
		for _, r := range c.Rivals {
			kinds = append(kinds, string(r.Kind))
		}
	}
	return kinds
}

func classOf(it *timeline.Item) evidence.Class {
	if s := evidence.SpecOf(it.Kind); s != nil {
		return s.Class
	}
	return ""
}

func role(it *timeline.Item) evidence.Role {
	if s := evidence.SpecOf(it.Kind); s != nil {
		return s.Role
	}
	return 0
}

func isNaN(k evidence.Kind) bool {
	switch k {
	case evidence.NonfiniteValue, evidence.NonfiniteNamed, evidence.LossOmitted, evidence.ScaleFloor:
		return true
	}
	return false
}

// members counts the ranks that the attempt shows.
func (c *Case) members() {
	ranks := map[int]bool{}
	for _, it := range c.Attempt.Items {
		if it.Who.Rank >= 0 {
			ranks[it.Who.Rank] = true
		}
		if v, ok := it.Attrs["world"]; ok {
			c.World = max(c.World, int(v.I))
		}
		if v, ok := it.Attrs["peers"]; ok {
			c.World = max(c.World, int(v.I)+1)
		}
	}
	for _, s := range c.Attempt.Series {
		if s.Key.Rank >= 0 {
			ranks[s.Key.Rank] = true
		}
	}
	for _, p := range c.Attempt.Parts {
		if r := c.Timeline.Sources[p.Source].Artifact.Owner.Rank; r >= 0 {
			ranks[r] = true
		}
	}
	for _, f := range c.Attempt.Facts {
		if f.Name == "run.world" {
			c.World = max(c.World, int(f.Value.I))
		}
	}
	stated := c.World
	c.World = max(c.World, c.Timeline.WorkerFolders(c.Index))
	for _, it := range c.Attempt.Items {
		if it.Attempt >= 0 && it.Stamp.Clock != "boot" {
			c.World = max(c.World, it.Who.LocalRank+1) // its host alone has as many
		}
	}
	for r := range ranks {
		c.Ranks = append(c.Ranks, r)
		c.World = max(c.World, r+1)
	}
	sort.Ints(c.Ranks)
	c.Stated = stated == c.World
}

// finish notes where the run says that it is complete: by words, by a step
// counter that reaches its total without memory or space running out behind it, or by the validation of the last epoch. Words after which training goes on in the same
// file ended a stage, not the run. A mere closing word ("done") after the last
// training line counts only while nothing failed: it may have closed anything. So
// do the results of an evaluation and the footer of a tracker, which ends a
// process that failed as well.
func (c *Case) finish() {
	for _, it := range c.Attempt.Items {
		if it.Kind == evidence.JobRecord && it.Attrs.Str("state") == "COMPLETED" && it.Attrs["code"].I == 0 && !strings.Contains(it.Attrs.Str("job"), ".") {
			c.closed, c.completed = true, true // the scheduler's own record of the whole job
		}
		if it.Kind != evidence.Finished || it.Attempt < 0 || c.pointsAfter(it) >= 2 {
			continue
		}
		switch it.Attrs.Str("what") {
		case "closing-word":
			c.closed = c.closed || c.pointsBefore(it) || c.lastLines(it)
			continue
		case "evaluation", "wandb-end":
			c.closed = true
			continue
		}
		if _, ok := c.finishedAt[it.Source]; !ok {
			c.finishedAt[it.Source] = it.Span.Offset
		}
	}
	total, epochs := map[string]int64{}, map[string]int64{}
	for _, f := range c.Attempt.Facts {
		switch f.Name {
		case "setting.total_steps":
			total[f.Span.Artifact] = f.Value.I
		case "setting.epochs":
			epochs[f.Span.Artifact], _ = strconv.ParseInt(f.Value.String(), 10, 64)
		}
	}
	for _, s := range c.Attempt.Series {
		n, e := total[s.Key.Artifact], epochs[s.Key.Artifact]
		switch {
		case n > 0 && s.Key.Name == "loss" && s.Last.Step >= n:
		case e > 0 && s.Key.Source == "keras" && s.Key.Name == "eval_loss" && s.Count >= e: // validated behind every epoch
		default:
			continue
		}
		for _, p := range c.Attempt.Parts {
			if c.Timeline.Sources[p.Source].Artifact.Path == s.Key.Artifact && !c.raisedBehind(p.Source, s.Last.Offset) {
				if at, ok := c.finishedAt[p.Source]; !ok || s.Last.Offset < at {
					c.finishedAt[p.Source] = s.Last.Offset
				}
			}
		}
	}
}

// raisedBehind reports whether a source shows behind offset a traceback that no teardown
// leaves: memory or space ran out, so its last step, evaluation or save failed, whatever
// the counter says.
func (c *Case) raisedBehind(source int, offset int64) bool {
	return slices.ContainsFunc(c.Attempt.Items, func(it *timeline.Item) bool {
		switch it.Kind {
		case evidence.HostAllocFailed, evidence.DiskFull, evidence.DiskQuota, evidence.WriteFailed:
		default:
			if !it.Kind.DeviceMemory() {
				return false
			}
		}
		return it.Source == source && it.Span.Offset > offset && it.Attempt >= 0 && len(it.Stack) > 0 && !it.Quoted
	})
}

func (c *Case) afterFinish(it *timeline.Item) bool {
	at, ok := c.finishedAt[it.Source]
	return ok && it.Span.Offset > at
}

// Recovered reports whether the run went on after it.
func (c *Case) Recovered(e *evidence.Event) bool {
	return c.survivors[e]
}

// setAside marks survived faults.
func (c *Case) setAside() {
	for _, it := range c.Attempt.Items {
		if role(it) != evidence.RoleFault || it.Attempt < 0 {
			continue
		}
		switch {
		case isNaN(it.Kind):
			c.recovered[it] = c.isolated(it)
		case it.Kind == evidence.Xid, it.Kind == evidence.SXid:
		case c.handled(it):
			c.recovered[it] = true
		default:
			c.recovered[it] = c.survived(it)
		}
		if c.recovered[it] {
			c.survivors[&it.Event] = true
		}
	}
}

// handled reports whether a handler speaks of it within three lines and the same
// process went on: it logged training, failed once more, or came to a later step.
func (c *Case) handled(it *timeline.Item) bool {
	if !it.Kind.DeviceMemory() {
		return false
	}
	p := c.past()
	lines := p.handlers[part{it.Source, it.Who.Launch}]
	n, _ := slices.BinarySearch(lines, it.Span.Line-3)
	if n == len(lines) || lines[n] > it.Span.Line+3 {
		return false
	}
	k := process{part{it.Source, it.Who.Launch}, it.Who.Rank}
	return p.lastMemory[k] > it.Span.Line+3 || c.pointsAfter(it) > 0 || it.Step >= 0 && p.lastStep[k] > it.Step
}

// A past says where handlers spoke, memory ran out and processes gave up, failed
// and ended.
type past struct {
	handlers   map[part][]int64         // lines, ascending
	lastMemory map[process]int64        // line of the last memory failure
	lastStep   map[process]int64        // the last step at which anything is told of it
	lastExit   map[int]map[int]int64    // source, rank -> offset of the last exit; of any rank under anyRank
	gaveUp     map[int][]*timeline.Item // source -> failed collectives, by offset
	failed     []*timeline.Item         // the run's own failures that carry a time, one for each second
	pids       map[int64]bool           // of the run's own lines
}

type part struct{ source, launch int }

type process struct {
	part
	rank int
}

const anyRank = -2

// past is computed once.
func (c *Case) past() *past {
	if c.before != nil {
		return c.before
	}
	p := &past{handlers: map[part][]int64{}, lastMemory: map[process]int64{}, lastStep: map[process]int64{}, lastExit: map[int]map[int]int64{}, gaveUp: map[int][]*timeline.Item{}, pids: map[int64]bool{}}
	moments := map[evidence.Stamp]bool{}
	for _, x := range c.Attempt.Items {
		if x.Attempt >= 0 {
			p.pids[int64(x.Who.PID)] = true
			if x.Stamp.Known() && role(x) >= evidence.RoleFault {
				moment := x.Stamp
				moment.Time, moment.Written, moment.Error = moment.Time.Truncate(time.Second), "", 0
				if x.Kind == evidence.CollTimeout || !moments[moment] { // a time-out's wait began earlier
					moments[moment] = moments[moment] || x.Kind != evidence.CollTimeout
					p.failed = append(p.failed, x)
				}
			}
		}
		switch x.Kind {
		case evidence.CollTimeout, evidence.CollTeardown, evidence.PeerClosed, evidence.CollDesync:
			p.gaveUp[x.Source] = append(p.gaveUp[x.Source], x)
		}
		at := part{x.Source, x.Who.Launch}
		if x.Attempt >= 0 && !x.Quoted {
			k := process{at, x.Who.Rank}
			p.lastStep[k] = max(p.lastStep[k], x.Step)
		}
		switch {
		case x.Kind == evidence.OOMRecovered:
			p.handlers[at] = append(p.handlers[at], x.Span.Line)
		case x.Kind.DeviceMemory() && !x.Quoted:
			k := process{at, x.Who.Rank}
			p.lastMemory[k] = max(p.lastMemory[k], x.Span.Line)
		case role(x) == evidence.RoleExit:
			if p.lastExit[x.Source] == nil {
				p.lastExit[x.Source] = map[int]int64{}
			}
			for _, r := range []int{x.Who.Rank, anyRank} {
				p.lastExit[x.Source][r] = max(p.lastExit[x.Source][r], x.Span.Offset)
			}
		}
	}
	for _, l := range p.handlers {
		slices.Sort(l)
	}
	for _, l := range p.gaveUp {
		slices.SortStableFunc(l, func(a, b *timeline.Item) int { return cmp.Compare(a.Span.Offset, b.Span.Offset) })
	}
	c.before = p
	return p
}

// stdoutBuffer is how much of a process's buffered output may come out after the
// traceback that followed it.
const stdoutBuffer = 16 << 10

// survived reports whether the same process went on training after it. A
// message without a traceback (a logger printed it) is survived when one more
// training line follows. A traceback may be followed by buffered lines of before
// it, so it needs more: lines beyond the buffer, or times that are later.
func (c *Case) survived(it *timeline.Item) bool {
	n := c.pointsAfter(it)
	if n == 0 {
		return false
	}
	if len(it.Stack) == 0 && it.Chain == "" {
		return n >= 1 && !c.exitsAfter(it) || n >= 50 || n >= 2 && c.trainedLater(it)
	}
	if n < 3 {
		return false
	}
	return slices.ContainsFunc(c.ownSeries(it), func(s *evidence.Series) bool { return s.Last.Offset-it.Span.Offset > stdoutBuffer }) || c.trainedLater(it)
}

// trainedLater reports whether a training line of the same process carries a later
// time, so that it is not buffered output of before.
func (c *Case) trainedLater(it *timeline.Item) bool {
	for _, s := range c.ownSeries(it) {
		for p := range s.All() {
			if at := p.When(); p.Offset > it.Span.Offset && it.Stamp.Known() && at.Known() && at.Clock == it.Stamp.Clock && at.Time.After(it.Stamp.Time.Add(time.Second)) {
				return true
			}
		}
	}
	return false
}

func (c *Case) exitsAfter(it *timeline.Item) bool {
	last := c.past().lastExit[it.Source]
	if it.Who.Rank == evidence.None {
		return last[anyRank] > it.Span.Offset
	}
	return max(last[it.Who.Rank], last[evidence.None]) > it.Span.Offset
}

// A trainer is a process by the series that it logs: ranks below 0 and 0 are one,
// since a single process states none.
type trainer struct {
	artifact     string
	launch, rank int
}

// ownSeries returns the series of training progress of it's own process. They
// are looked up: a log of thousands of ranks has as many series as failures.
func (c *Case) ownSeries(it *timeline.Item) []*evidence.Series {
	if c.trained == nil {
		c.trained = map[trainer][]*evidence.Series{}
		for _, s := range c.Attempt.Series {
			switch s.Key.Name {
			case "loss", "grad_norm", "lr", "perplexity":
				if s.Key.Phase != "eval" {
					k := trainer{s.Key.Artifact, s.Key.Launch, max(s.Key.Rank, 0)}
					c.trained[k] = append(c.trained[k], s)
				}
			}
		}
	}
	return c.trained[trainer{it.Span.Artifact, it.Who.Launch, max(it.Who.Rank, 0)}]
}

// lastLines reports whether it stands at the very end of a log of some length.
func (c *Case) lastLines(it *timeline.Item) bool {
	n := c.Timeline.Sources[it.Source].Lines
	return it.Span.Line >= 10 && n > 0 && n-it.Span.Line <= 2
}

// pointsBefore reports whether the file has training lines before it.
func (c *Case) pointsBefore(it *timeline.Item) bool {
	for _, s := range c.ownSeries(it) {
		if s.First.Offset < it.Span.Offset {
			return true
		}
	}
	return false
}

// pointsAfter counts training lines of the same process after it.
func (c *Case) pointsAfter(it *timeline.Item) int64 {
	n := int64(0)
	for _, s := range c.ownSeries(it) {
		if s.Last.Offset <= it.Span.Offset {
			continue
		}
		at := int64(0)
		for p := range s.All() {
			if p.Offset <= it.Span.Offset {
				at = p.Ordinal + 1
			}
		}
		n = max(n, s.Count-at)
	}
	return n
}

// longestIsolated is how many non-finite values in a row can still be single bad
// batches. A longer run is the state of the weights, also where finite values
// follow: then another start follows, or another metric.
const longestIsolated = 5

// settledAgain is how many finite values after a short run of others show that the weights were
// finite, whatever comes later.
const settledAgain = 10

// isolated reports whether the metric was finite again to the end, or for long before the
// next value that was not, so that the weights stayed finite.
func (c *Case) isolated(it *timeline.Item) bool {
	if it.Kind == evidence.ScaleFloor || it.Kind == evidence.NonfiniteNamed && len(it.Stack) > 0 {
		return false
	}
	metric := it.Attrs.Str("metric")
	kept := false
	for _, s := range c.Attempt.Series {
		if s.Key.Artifact != it.Span.Artifact || s.Key.Launch != it.Who.Launch {
			continue
		}
		if s.Key.Name != metric && !(metric == "" && s.Key.Name == "loss") {
			continue
		}
		kept = true
		if it.Attrs["hidden"].True() {
			return s.Last.Value != 0 && s.Count > 0 && s.Last.Offset > it.Span.Offset
		}
		if s.Bad > 0 && s.FiniteAfterBad && s.LongestBadRun <= longestIsolated && (s.BadRun == 0 || s.BadRun <= 2 && s.Bad > 2*s.BadRun) {
			return true
		}
		if settled(s, max(it.Span.Line, it.Span.Record)) {
			return true
		}
		if s.Bad == 0 && s.Last.Offset > it.Span.Offset { // named by a guard, and the metric never showed it
			return true
		}
	}
	return !kept && it.Attrs.Str("tracker") != "" && c.lossStaysFinite(it)
}

// lossStaysFinite reports whether the training loss that the same tracker recorded is finite from
// the step of it to the end, and for long: what was not finite (a ratio of the user's own, of
// which no series is kept) did not reach the weights.
func (c *Case) lossStaysFinite(it *timeline.Item) bool {
	if it.Step < 0 {
		return false
	}
	after := 0
	for _, s := range c.Attempt.Series {
		if s.Key.Name != "loss" || s.Key.Phase == "eval" || s.Key.Artifact != it.Span.Artifact || s.Key.Launch != it.Who.Launch {
			continue
		}
		for p := range s.All() {
			switch {
			case p.Step < it.Step:
			case math.IsNaN(p.Value) || math.IsInf(p.Value, 0) || p.Value == 0: // a filter writes 0 for NaN
				return false
			case p.Step > it.Step:
				after++
			}
		}
	}
	return after > settledAgain
}

// settled reports whether the run of non-finite values that begins at a line (or record) is
// short, and many finite values follow before the next one.
func settled(s *evidence.Series, line int64) bool {
	for i, r := range s.Runs {
		if r.First.Line != line || r.Len() > longestIsolated || i+1 >= len(s.Runs) {
			continue
		}
		return s.Runs[i+1].First.Ordinal-r.Last.Ordinal > settledAgain
	}
	return false
}

// candidates are the events that can have started the failure.
func (c *Case) candidates() []*timeline.Item {
	var out, machine []*timeline.Item
	jobFault, killReported := false, false
	for _, it := range c.Attempt.Items {
		r := role(it)
		if r != evidence.RoleFault && r != evidence.RoleStop || c.recovered[it] || it.Quoted || c.afterFinish(it) {
			continue
		}
		switch sev := it.Attrs.Str("severity"); {
		case it.Kind == evidence.Xid && (sev == "consequence" || sev == "notice"):
			continue
		case it.Kind == evidence.SXid && sev == "nonfatal":
			continue
		}
		if it.Attempt < 0 {
			machine = append(machine, it)
			continue
		}
		if c.completed && c.beside(it) { // no log of the run is there, but the scheduler saw it end well
			continue
		}
		if c.recorded(it, out) >= 0 { // the records are all there is
			continue
		}
		out = append(out, it)
		killReported = killReported || it.Kind == evidence.HostOOMSched || it.Kind == evidence.HostOOMRay
		switch classOf(it) {
		case evidence.DeviceFault, evidence.CUDAError, evidence.Collective, evidence.ProcessExit:
		default:
			jobFault = jobFault || r == evidence.RoleFault
		}
	}
	// A watchdog that gave up waiting ends its process by an uncaught C++ exception.
	out = slices.DeleteFunc(out, func(it *timeline.Item) bool {
		return it.Kind == evidence.NativeCrash && c.gaveUpBefore(it)
	})
	// One line can tell of one failure in two ways (a norm that is not finite and
	// a loss that is left out): the first way counts.
	type telling struct {
		source int
		line   int64
		class  evidence.Class
	}
	told := map[telling]bool{}
	out = slices.DeleteFunc(out, func(it *timeline.Item) bool {
		t := telling{it.Source, it.Span.Line, classOf(it)}
		again := told[t]
		told[t] = true
		return again
	})
	out = c.stops(out)
	out = c.launcherStops(out)
	survived := c.Complete() && !slices.ContainsFunc(c.Attempt.Items, c.broke)
	for _, it := range machine {
		if survived && !ended(it) || (it.Kind == evidence.HostOOMKill || it.Kind == evidence.HostOOMSched) && c.Timeline.Elsewhere(it) {
			continue
		}
		if i := c.recorded(it, out); i >= 0 {
			if x := out[i]; x.Attempt < 0 && x.Who.Rank == evidence.None && x.Who.Host == "" {
				out[i] = it // which may say where
			}
			continue
		}
		if c.tied(it) || !jobFault && !c.Complete() || it.Kind == evidence.HostOOMKill && killReported {
			out = append(out, it)
		}
	}
	// A generic exception in a chain gives way to the named fault that arose
	// while it was handled (a probe that failed first).
	out = slices.DeleteFunc(out, func(it *timeline.Item) bool {
		if it.Kind != evidence.Exception || it.Chain != "context" {
			return false
		}
		for _, x := range out {
			if x != it && x.Source == it.Source && x.Who.Rank == it.Who.Rank && x.Kind != evidence.Exception && x.Chain != "" && x.Span.Offset > it.Span.Offset && x.Span.Line-it.Span.Line < 200 {
				return true
			}
		}
		return false
	})
	return out
}

// beside reports whether it is of an artifact that tells of the machine, not of the run.
func (c *Case) beside(it *timeline.Item) bool {
	return it.Source >= 0 && evidence.Beside(c.Timeline.Sources[it.Source].Artifact.Kind) && role(it) == evidence.RoleFault
}

// broke reports whether it is a word of the run's own that something failed or ended badly.
func (c *Case) broke(it *timeline.Item) bool {
	if it.Attempt < 0 || it.Quoted || c.recovered[it] {
		return false
	}
	switch role(it) {
	case evidence.RoleFault, evidence.RoleEffect:
		return true
	case evidence.RoleExit:
		code, ok := it.Attrs["code"]
		return !ok || code.I != 0
	}
	return false
}

// ended reports whether a record of the machine can have ended a run that says it completed and
// shows no failure: a fault of a device or a kill that such a run got over is none of its end.
func ended(it *timeline.Item) bool {
	switch classOf(it) {
	case evidence.DeviceFault, evidence.HostMemory:
		return false
	}
	return true
}

// launcherStops drops the signals that workers received where the launcher says that
// it sends them, nothing says that the launcher was told to stop itself, and a fault is there for
// which it did so.
func (c *Case) launcherStops(cands []*timeline.Item) []*timeline.Item {
	sent, told := false, false
	for _, it := range c.Attempt.Items {
		switch it.Kind {
		case evidence.LauncherStop:
			sent = sent || it.Attempt >= 0
		case evidence.SignalReceived, evidence.Interrupted, evidence.TimeLimit, evidence.Preempted, evidence.NodeFailure, evidence.Cancelled:
			told = told || !workerSignal(it)
		}
	}
	if !sent || told || !slices.ContainsFunc(cands, func(it *timeline.Item) bool { return role(it) == evidence.RoleFault }) {
		return cands
	}
	return slices.DeleteFunc(cands, workerSignal)
}

// workerSignal reports whether a process of the training itself says that it was told
// to stop.
func workerSignal(it *timeline.Item) bool {
	if it.Kind != evidence.SignalReceived {
		return false
	}
	switch it.Attrs.Str("what") {
	case "sigterm", "signal", "sigterm-bypassed", "lightning":
		return true
	}
	return false
}

// abortAfter is how many lines behind a collective's failure an abort belongs to
// it.
const abortAfter = 80

// gaveUpBefore reports whether the process that aborts at it had said shortly
// before that a collective failed, with no fault of its own in between.
func (c *Case) gaveUpBefore(it *timeline.Item) bool {
	said := c.past().gaveUp[it.Source]
	n, _ := slices.BinarySearchFunc(said, it.Span.Offset, func(x *timeline.Item, at int64) int { return cmp.Compare(x.Span.Offset, at) })
	for n--; n >= 0 && it.Span.Line-said[n].Span.Line <= abortAfter; n-- {
		if r := said[n].Who.Rank; r == it.Who.Rank || r == evidence.None || it.Who.Rank == evidence.None {
			return true
		}
	}
	return false
}

// tied reports whether a machine record is tied to this job: by pid, by rank, or
// by lying within the attempt's time.
func (c *Case) tied(it *timeline.Item) bool {
	if it.Who.Rank != evidence.None {
		return true
	}
	pid := int64(it.Who.PID)
	if v, ok := it.Attrs["pid"]; ok {
		pid = v.I
	}
	p := c.past()
	return pid > 0 && p.pids[pid] || slices.ContainsFunc(p.failed[:min(len(p.failed), maxHeads)], func(x *timeline.Item) bool {
		d, bound, ok := c.Timeline.Gap(it, x)
		return ok && d >= -time.Minute-bound && d <= 2*time.Hour+bound
	})
}

// loose reports whether a record of a device fault may be another job's: no rank, process or
// device of this one is named in it.
func (c *Case) loose(it *timeline.Item) bool {
	switch it.Kind {
	case evidence.Xid, evidence.DeviceLost, evidence.ECCError, evidence.LinkError:
	default:
		return false
	}
	if it.Attempt >= 0 || it.Who.Rank != evidence.None {
		return false
	}
	v, ok := it.Attrs["pid"]
	return !ok || !c.past().pids[v.I]
}

// Bounds of the comparison of candidates, far above what a job of a thousand
// ranks needs: what lies beyond them stays a rival.
const (
	maxHeads   = 4096 // processes compared with each other, moments of failures that a machine record is held against
	maxMembers = 64   // events of one process that others are compared with
)

// earliest returns the candidates that are not known to come after another one.
// Of one process's own log only its first can be; the others of that log still
// may tell that something came after them.
func (c *Case) earliest(cands []*timeline.Item) []*timeline.Item {
	type owner struct {
		source, attempt, rank, local int
		host                         string
	}
	groups := map[owner][]*timeline.Item{}
	var order []owner
	for _, it := range cands {
		p := owner{it.Source, it.Attempt, it.Who.Rank, evidence.None, it.Who.Host}
		if it.Who.Rank == evidence.None {
			p.local = it.Who.LocalRank
		}
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], it)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b *timeline.Item) int { return cmp.Compare(a.Span.Offset, b.Span.Offset) })
	}
	type member struct {
		of owner
		it *timeline.Item
	}
	var others []member
	for _, q := range order[:min(len(order), maxHeads)] {
		for _, b := range groups[q][:min(len(groups[q]), maxMembers)] {
			others = append(others, member{q, b})
		}
	}
	// What came before one mostly came before the next as well: it is asked first.
	last := 0
	after := func(a *timeline.Item, p owner) bool {
		is := func(m member) bool {
			return m.of != p && c.Timeline.Order(a, m.it) == timeline.After && !(c.loose(m.it) && !c.loose(a))
		}
		if len(others) > 0 && is(others[last]) {
			return true
		}
		n := slices.IndexFunc(others, is)
		if n >= 0 {
			last = n
		}
		return n >= 0
	}
	var first []*timeline.Item
	for i, p := range order {
		for _, a := range groups[p] {
			if a.Span.Offset > groups[p][0].Span.Offset {
				break
			}
			if i >= maxHeads || !after(a, p) {
				first = append(first, a)
			}
		}
	}
	return first
}

// choose picks the lead among candidates that nothing explains.
func (c *Case) choose(cands []*timeline.Item) {
	tl := c.Timeline
	first := c.earliest(cands)
	if len(first) == 0 { // a cycle of contradicting bases: nothing is decided
		first = cands
	}
	sort.SliceStable(first, func(i, j int) bool {
		a, b := first[i], first[j]
		if la, lb := c.loose(a), c.loose(b); la != lb {
			return lb
		}
		if ta, tb := evidence.SpecOf(a.Kind).Tie, evidence.SpecOf(b.Kind).Tie; ta != tb {
			return ta < tb
		}
		if a.Span.Artifact != b.Span.Artifact {
			return a.Span.Artifact < b.Span.Artifact
		}
		return a.Span.Offset < b.Span.Offset
	})
	c.Lead = first[0]
	if len(first) > 1 {
		c.Rivals = first[1:]
		c.SameKind = true
		for _, r := range c.Rivals {
			c.SameKind = c.SameKind && r.Kind == c.Lead.Kind
		}
		c.Standing = incident.Undecidable
		_, why := tl.Compare(c.Lead, c.Rivals[0])
		if c.loose(c.Rivals[0]) && !c.loose(c.Lead) {
			why = "nothing ties that record of the machine to a device or process of this job"
		}
		against := fmt.Sprintf("%d other faults", len(c.Rivals))
		if r := c.Rivals[0]; len(c.Rivals) == 1 {
			against = fmt.Sprintf("%s at %s", strings.ReplaceAll(string(r.Kind), "_", " "), spot(r.Span))
		}
		c.Basis = "not decided against " + against + ": " + why
		return
	}
	c.Standing = incident.Established
	if len(cands) == 1 {
		c.Basis = "the only failure in evidence that nothing else explains"
		return
	}
	tellings := 1
	var next *timeline.Item
	for _, it := range cands {
		switch {
		case it == c.Lead:
		case retold(c.Lead, it):
			tellings++
		case before(tl, c.Lead, it) && (next == nil || before(tl, it, next)):
			next = it
		}
	}
	switch {
	case next != nil:
		_, basis := tl.Compare(c.Lead, next)
		at := fmt.Sprintf("line %d", next.Span.Line)
		if next.Span.Line == 0 {
			at = spot(next.Span)
		}
		c.Basis = fmt.Sprintf("it comes before the next failure (%s, %s); basis: %s", strings.ReplaceAll(string(next.Kind), "_", " "), at, basis)
		return
	case tellings == len(cands):
		c.Basis = fmt.Sprintf("the first of %d lines that tell of the only failure in evidence that nothing else explains", tellings)
		return
	}
	c.Basis = "earliest by every basis that the evidence offers"
}

// spot is where a span stands: a line, or what its format counts instead.
func spot(s evidence.Span) string {
	switch {
	case s.Line > 0:
		return fmt.Sprintf("%s:%d", s.Artifact, s.Line)
	case s.Record > 0:
		return fmt.Sprintf("%s record %d", s.Artifact, s.Record)
	case s.Row > 0:
		return fmt.Sprintf("%s row %d", s.Artifact, s.Row)
	}
	return s.Artifact
}

// retold reports whether b tells of a's failure once more: the same failure of
// the same process in the same log.
func retold(a, b *timeline.Item) bool {
	if a.Kind != b.Kind || a.Source != b.Source || a.Who.Rank != b.Who.Rank || a.Who.Rank == evidence.None && a.Who.LocalRank != b.Who.LocalRank || a.Who.Host != b.Who.Host || a.Attrs.Str("type") != b.Attrs.Str("type") {
		return false
	}
	p, ok := a.Attrs["pid"]
	q, both := b.Attrs["pid"]
	return !ok || !both || p.I == q.I
}

// firstTimeout adds to the basis how long before the first time-out in a
// collective the lead stands, where both carry times further apart than clocks of
// different hosts may be.
func (c *Case) firstTimeout() {
	l := c.Lead
	if l == nil || l.Source < 0 || l.Kind == evidence.CollTimeout || c.Standing == incident.Undecidable {
		return
	}
	var first *timeline.Item
	var gap, bound time.Duration
	for _, it := range c.Attempt.Items {
		if it.Kind != evidence.CollTimeout || it.Quoted || it.Attempt < 0 {
			continue
		}
		if d, e, ok := c.Timeline.Reported(l, it); ok && (first == nil || d < gap) {
			first, gap, bound = it, d, e
		}
	}
	if first == nil || gap <= bound {
		return
	}
	name := first.Span.Artifact
	c.Basis += fmt.Sprintf("; it stands %s before the first time-out in a collective (%s:%d)", gap.Round(time.Second), name[strings.LastIndexByte(name, '/')+1:], first.Span.Line)
}

// where adds to the basis which record says on what machine the lead happened, where
// its own line does not.
func (c *Case) where() {
	l := c.Lead
	if l == nil || l.Source < 0 || l.Who.Host == "" {
		return
	}
	place := func(s evidence.Span) string {
		return fmt.Sprintf("%s:%d", s.Artifact[strings.LastIndexByte(s.Artifact, '/')+1:], s.Line)
	}
	if sp, ok := c.Timeline.NamedBy(l); ok {
		c.Basis += fmt.Sprintf("; the scheduler's record calls %s gone (%s)", l.Who.Host, place(sp))
	} else if node, sp := c.Timeline.NodeOf(l.Who.Host); node != "" {
		c.Basis += fmt.Sprintf("; the pod ran on node %s (%s)", node, place(sp))
	} else if pod := c.Timeline.Seat(l.Who.Rank).Host; l.Who.Rank != evidence.None && pod != "" {
		if node, sp := c.Timeline.NodeOf(pod); node == l.Who.Host {
			c.Basis += fmt.Sprintf("; the rank's pod %s ran on that node (%s)", pod, place(sp))
		}
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// oddOnes finds the ranks that are in another collective, by operation or size,
// than most that report the same sequence number of the same group. Sizes, and
// the ranks of a group without a name, count only where every rank of the job is at that
// number: groups count for themselves, and two of them may meet by chance.
func (c *Case) oddOnes(timeouts []*timeline.Item) ([]*timeline.Item, string) {
	type place struct {
		group string
		seq   int64
	}
	at := map[place]map[int]*timeline.Item{}
	var order []place
	for _, it := range timeouts {
		seq, ok := it.Attrs["seq"]
		if !ok || it.Attrs.Str("op") == "" || it.Who.Rank < 0 {
			continue
		}
		p := place{it.Attrs.Str("group"), seq.I}
		if at[p] == nil {
			at[p] = map[int]*timeline.Item{}
			order = append(order, p)
		}
		if at[p][it.Who.Rank] == nil {
			at[p][it.Who.Rank] = it
		}
	}
	for _, p := range order {
		if odd, rest := parted(at[p], func(it *timeline.Item) string { return it.Attrs.Str("op") }); len(odd) == 1 {
			return odd, fmt.Sprintf("rank %d is in %s where %d others are in %s, at the same sequence number %d", odd[0].Who.Rank, odd[0].Attrs.Str("op"), len(rest), rest[0].Attrs.Str("op"), p.seq)
		}
		if c.World == 0 || len(at[p]) < c.World {
			continue
		}
		odd, rest := parted(at[p], func(it *timeline.Item) string {
			if !sized(it.Attrs.Str("op")) {
				return ""
			}
			return it.Attrs.Str("op") + " of " + it.Attrs["numel_in"].String() + " elements"
		})
		if len(odd) == 0 {
			continue
		}
		var ranks []int
		for _, it := range odd {
			ranks = append(ranks, it.Who.Rank)
		}
		op := func(it *timeline.Item) string {
			return it.Attrs.Str("op") + " of " + it.Attrs["numel_in"].String() + " elements"
		}
		return odd, fmt.Sprintf("%s %s in %s where %d others are in %s, at the same sequence number %d", RankList(ranks), plural(len(ranks), "is", "are"), op(odd[0]), len(rest), op(rest[0]), p.seq)
	}
	return nil, ""
}

// sized reports whether all ranks of a group call an operation with the same size: not
// a send or receive, nor one with a root or with a split of its own.
func sized(op string) bool {
	switch op = strings.ToUpper(op); {
	case op == "SEND", op == "RECV", op == "RECVANYSOURCE", op == "COALESCED", op == "UNKNOWN":
		return false
	}
	return !strings.HasPrefix(op, "GATHER") && !strings.HasPrefix(op, "SCATTER") && !strings.HasPrefix(op, "ALLTOALL")
}

// parted returns the ranks that say another thing than most of them, where all
// but they say the same and are two at least; nil where somebody says nothing.
func parted(who map[int]*timeline.Item, says func(*timeline.Item) string) (odd, most []*timeline.Item) {
	sides := map[string][]*timeline.Item{}
	for _, r := range slices.Sorted(maps.Keys(who)) {
		s := says(who[r])
		if s == "" {
			return nil, nil
		}
		sides[s] = append(sides[s], who[r])
	}
	if len(sides) != 2 {
		return nil, nil
	}
	for _, s := range slices.Sorted(maps.Keys(sides)) {
		if 2*len(sides[s]) > len(who) {
			most = sides[s]
		} else {
			odd = sides[s]
		}
	}
	if len(most) < 2 || len(odd) == 0 {
		return nil, nil
	}
	return odd, most
}

// absentee moves the lead from a store that counts too few workers to the worker that
// says in another log that it never reached the store: that is who is missing there. Who
// lost a connection that it had is another matter. Of several, which failed first stays open.
func (c *Case) absentee() {
	l := c.Lead
	if l == nil || l.Kind != evidence.RendezvousFailed || len(c.Rivals) > 0 {
		return
	}
	var out []*timeline.Item
	for _, it := range c.Attempt.Items {
		what := it.Attrs.Str("what")
		if it.Kind != evidence.StoreError || what != "client-timeout" && what != "client-connect" || it.Quoted || it.Attempt < 0 || it.Source == l.Source {
			continue
		}
		if !slices.ContainsFunc(out, func(x *timeline.Item) bool { return x.Source == it.Source && x.Who.Rank == it.Who.Rank }) {
			out = append(out, it)
		}
	}
	if len(out) == 0 {
		return
	}
	c.Basis = fmt.Sprintf("the store counts too few workers (%s:%d), and this one says that it never reached it", l.Span.Artifact, l.Span.Line)
	c.Lead, c.Rivals, c.LeadClass = out[0], out[1:], evidence.Collective
	c.Standing = incident.Supported
	if len(out) > 1 {
		c.SameKind, c.Standing = true, incident.Undecidable
		c.Basis = fmt.Sprintf("the store counts too few workers (%s:%d), and %d say that they never reached it", l.Span.Artifact, l.Span.Line, len(out))
	}
}

// promote moves the lead from the end of a process to its beginning: the floor
// of a loss scale to the first of the unbroken overflows that led there.
func (c *Case) promote() {
	c.absentee()
	if c.Lead == nil || c.Lead.Kind != evidence.ScaleFloor {
		return
	}
	first := c.Lead
	for i := len(c.Attempt.Items) - 1; i >= 0; i-- {
		x := c.Attempt.Items[i]
		if x.Kind != evidence.ScaleOverflow || x.Source != first.Source || x.Span.Offset >= first.Span.Offset || x.Who.Launch != first.Who.Launch {
			continue
		}
		if evidence.LossesBetween(c.Attempt.Series, x.Span.Artifact, x.Span.Offset, first.Span.Offset) >= 3 {
			break
		}
		first = x
	}
	if first != c.Lead {
		c.Basis = fmt.Sprintf("first of the unbroken run of overflows that ends at the floor of the loss scale (line %d)", c.Lead.Span.Line)
		c.Lead, c.LeadClass = first, evidence.Nonfinite
	}
}

// memoryAndNaN picks the attempt's device-memory failure and its non-finite
// value: the lead where it is one, else the first unsurvived, else the first
// survived where the other of the two is there (of non-finite values only a loss
// that was so more than once: a skipped step of a scaler is no event).
func (c *Case) memoryAndNaN() {
	var survived, skippedNaN *timeline.Item
	for _, it := range c.Attempt.Items {
		if it.Quoted || it.Attempt < 0 || c.afterFinish(it) {
			continue
		}
		switch {
		case it.Kind.DeviceMemory() || it.Kind == evidence.OOMRecovered:
			if it.Kind == evidence.OOMRecovered || c.recovered[it] {
				if survived == nil || survived.Kind == evidence.OOMRecovered && it.Kind != evidence.OOMRecovered && it.Span.Line-survived.Span.Line <= 3 {
					survived = it
				}
			} else if c.Memory == nil || before(c.Timeline, it, c.Memory) {
				c.Memory = it
			}
		case isNaN(it.Kind) && c.recovered[it]:
			if skippedNaN == nil && strings.Contains(it.Attrs.Str("metric"), "loss") && c.badValues(it) > 1 {
				skippedNaN = it
			}
		case isNaN(it.Kind):
			if c.NaN == nil || before(c.Timeline, it, c.NaN) {
				c.NaN = it
			}
		}
	}
	if c.Lead != nil {
		if c.Lead.Kind.DeviceMemory() {
			c.Memory = c.Lead
		}
		if isNaN(c.Lead.Kind) || c.Lead.Kind == evidence.ScaleOverflow {
			c.NaN = c.Lead
		}
	}
	if c.NaN == nil && skippedNaN != nil && c.Memory != nil {
		c.NaN = skippedNaN
	}
	if c.Memory == nil && survived != nil && (c.NaN != nil || c.Lead != nil && c.LeadClass == evidence.DeviceMemory) {
		c.Memory = survived
	}
}

// badValues counts the non-finite values of the series that it belongs to.
func (c *Case) badValues(it *timeline.Item) int64 {
	for _, s := range c.Attempt.Series {
		if s.Key.Artifact == it.Span.Artifact && s.Key.Launch == it.Who.Launch && s.Key.Name == it.Attrs.Str("metric") {
			return s.Bad
		}
	}
	return 0
}

func before(tl *timeline.Timeline, a, b *timeline.Item) bool {
	return tl.Order(a, b) == timeline.Before
}

// outcome says how the attempt ended.
func (c *Case) outcome() {
	progress := false
	for _, s := range c.Attempt.Series {
		switch s.Key.Name {
		case "loss", "lr", "grad_norm":
			progress = true
		case "eval_loss", "reward": // of a loop that prints no other: at a step, or it may be a mere evaluation
			progress = progress || s.Last.Step > 0
		}
	}
	switch {
	case c.Lead != nil && c.LeadClass == evidence.ExternalStop:
		c.Outcome = incident.Interrupted
	case c.Lead != nil:
		c.Outcome = incident.Failed
	case len(c.finishedAt) > 0 || c.closed || c.endedWell():
		c.Outcome = incident.FinishedRun
	case progress && !c.followed():
		c.Outcome = incident.Running
	default:
		c.Outcome = incident.Unclear
	}
}

// endedWell reports whether the record of a trial says that its process ended with status 0. It is
// asked where nothing failed: a shell or launcher can lose the status of what it ran.
func (c *Case) endedWell() bool {
	return slices.ContainsFunc(c.Attempt.Items, func(it *timeline.Item) bool {
		code, ok := it.Attrs["code"]
		return it.Kind == evidence.Exited && ok && code.I == 0 && it.Attrs.Str("what") == "trial"
	})
}

// followed reports whether a later launch stands in one of the attempt's own
// files: then it is over, however it ended.
func (c *Case) followed() bool {
	for _, a := range c.Timeline.Attempts[c.Index+1:] {
		for _, p := range a.Parts {
			if slices.ContainsFunc(c.Attempt.Parts, func(own timeline.Part) bool { return own.Source == p.Source }) {
				return true
			}
		}
	}
	return false
}

// Complete reports whether the attempt says that it ran to its end.
func (c *Case) Complete() bool { return len(c.finishedAt) > 0 || c.closed }
