// Package timeline merges what the artifacts of a job say into attempts and
// answers, for any two events, which came first and how that is known. It never
// guesses: without a basis the answer is Unknown.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Source is one artifact with everything that was read from it, events and
// facts in artifact order.
type Source struct {
	Artifact evidence.Artifact
	Events   []evidence.Event
	Series   []*evidence.Series
	Facts    []evidence.Fact
	Lines    int64 // lines in the artifact, 0 if it has none
	CutLine  bool  // the last line has no end
}

// An Item is an event with its place in the timeline.
type Item struct {
	evidence.Event
	ID      string // e1, e2, ... in artifact order, then offset
	Source  int    // index into Timeline.Sources
	Attempt int    // index into Timeline.Attempts; -1 for the machine's own records
	clock   int    // index into clocks.names; -1 without a time of day
}

// An Attempt is one start of the job: the parts of all artifacts that belong
// to it.
type Attempt struct {
	ID      string // "1", "2", ... in order of start; the folder's own name where there is one
	Parts   []Part
	Items   []*Item // its own and, after them, the machine's records; by source, then offset
	Series  []*evidence.Series
	Facts   []evidence.Fact
	Command string // what started it, where the log shows it
	Start   evidence.Stamp
	End     evidence.Stamp
}

// A Part is one launch of one artifact.
type Part struct {
	Source, Launch int
	Span           evidence.Span
}

// A Timeline is all events of one job.
type Timeline struct {
	Sources    []Source
	Items      []*Item
	Attempts   []*Attempt
	Hosts      []string
	Strays     []Stray    // records of the machine that are of no attempt, at most maxStrays
	StrayCount int        // all of them
	Unshared   int        // machine records without a place that are not listed with every attempt, see maxShared
	all        []int      // 0 to len(Attempts)-1, see every
	multi      bool       // more than one host is in evidence
	single     bool       // nothing speaks against one host for all
	Conflicts  []Conflict // statements of who runs where that exclude each other
	seats      map[int]*Seat
	intro      map[int]int       // by source: the one rank that its lines introduce
	hostOf     map[int]string    // by rank, where all its lines agree
	said       map[int]string    // by source: the host whose log its lines say it is
	short      map[string]string // full name of a host -> the short one that others use
	paths      map[string]int    // index into Sources
	tracked    []bool            // by source: an experiment tracker's record of runs
	clocks     *clocks
	nodes      map[string]placing
	down       map[*Item]evidence.Span // failures of machines that another record names
}

// Build orders sources (already in report order) into a timeline.
//
//  1. Number the events.
//  2. Complete identities: what the artifact's owner says fills what the line
//     leaves out; pids and devices lead to ranks.
//  3. Cut every run artifact into launches and group launches of different
//     artifacts into attempts.
//  4. Mark what a merged log repeats of the ranks' own files.
//  5. Compare the hosts' clocks by the events that several of them saw.
//  6. Attach records of the machine (nvidia-smi, kernel, accounting) to every
//     attempt that they can concern, within maxShared.
func Build(sources []Source) *Timeline {
	sources = trialOwners(sources)
	t := &Timeline{Sources: sources, tracked: make([]bool, len(sources))}
	for i := range sources {
		t.tracked[i] = tracked(&sources[i])
		for j := range sources[i].Events {
			it := &Item{Event: sources[i].Events[j], Source: i, Attempt: -1}
			restate(it, sources[i].CutLine && it.Span.Offset+it.Span.Length >= sources[i].Artifact.Size)
			t.Items = append(t.Items, it)
		}
	}
	t.fromSnapshots()
	for i, it := range t.Items {
		it.ID = fmt.Sprintf("e%d", i+1)
	}
	t.firstIsOriginal()
	t.identify()
	t.group()
	t.copies()
	t.errorFiles()
	t.compareClocks()
	t.share()
	return t
}

// again is how many lines after a message its repetition is still the same
// failure told twice (what(), a logger and the exception).
const again = 50

// firstIsOriginal sees to it that of a message and its repetition the earlier
// one counts: a reader that holds a traceback back may have met the repetition
// first.
func (t *Timeline) firstIsOriginal() {
	for i, it := range t.Items {
		if !it.Quoted {
			continue
		}
		original := true
		for j := i - 1; j >= 0 && t.Items[j].Source == it.Source && it.Span.Line-t.Items[j].Span.Line <= again; j-- {
			if x := t.Items[j]; x.Kind == it.Kind && !x.Quoted && x.Who.Rank == it.Who.Rank {
				original = false
				break
			}
		}
		for j := i + 1; original && j < len(t.Items) && t.Items[j].Source == it.Source && t.Items[j].Span.Line-it.Span.Line <= again; j++ {
			if x := t.Items[j]; x.Kind == it.Kind && !x.Quoted && strings.HasPrefix(x.Text, "what():") {
				it.Quoted, x.Quoted = false, true
				break
			}
		}
	}
}

// pins are the calls that page-lock host memory.
var pins = []string{"pin_memory", "_pin", "cudaHostAlloc", "cudaHostRegister", "get_accelerator().pin"}

// lostPeer are the exceptions by which Python's multiprocessing says that the
// process at the other end of a connection is gone.
var lostPeer = []string{"ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "EOFError", "FileNotFoundError"}

// restate names by its stack what the words leave open: the runtime says "out of
// memory" for page-locked host memory as well as for the device's, and a loader
// worker that is gone shows as a broken connection when the main process fetches
// the file descriptor of the batch that it left behind
// (torch/multiprocessing/reductions.py, rebuild_storage_fd). What a collective
// failed of is not known where the log is cut inside the message, but that one failed is.
func restate(it *Item, cut bool) {
	if it.Kind == evidence.Exception && slices.Contains(lostPeer, it.Attrs.Str("type")) {
		for _, f := range it.Stack {
			if f.Function == "rebuild_storage_fd" || f.Function == "rebuild_storage_filename" {
				it.Kind, it.Attrs = evidence.WorkerExited, nil
				return
			}
		}
	}
	if it.Kind == evidence.Exception && cut && strings.HasSuffix(it.Attrs.Str("type"), "DistBackendError") {
		it.Kind, it.Attrs = evidence.CollTeardown, nil
		return
	}
	if it.Kind != evidence.DeviceOOMRaw && it.Kind != evidence.ManagedOOM || len(it.Stack) == 0 {
		return
	}
	last := it.Stack[len(it.Stack)-1]
	for _, p := range pins {
		if strings.Contains(last.Function, p) || strings.Contains(last.Source, p) {
			it.Kind = evidence.PinnedOOM
		}
	}
}

// runlike reports whether a source is a log of the run itself rather than a
// record about the machine.
func runlike(s *Source) bool {
	if evidence.Beside(s.Artifact.Kind) { // a worker's error file is part of the attempt in whose folder it lies
		return errorFile(s) && s.Artifact.Owner.Attempt != "" && len(s.Events) > 0
	}
	for _, x := range s.Series {
		if x.Key.Name != "host_memory" {
			return true
		}
	}
	for _, e := range s.Events {
		spec := evidence.SpecOf(e.Kind)
		if spec == nil || e.Stamp.Clock == "boot" {
			continue
		}
		switch e.Kind {
		case evidence.RankInfo:
			return true
		case evidence.Xid, evidence.SXid, evidence.HostOOMKill, evidence.LinkError, evidence.DeviceLost, evidence.NetworkFault, evidence.Preempted, evidence.NodeFailure:
			continue // the machine's own words; they need another sign of a run
		}
		if spec.Role != evidence.RoleContext {
			return true
		}
	}
	return false
}

// laterTry matches the word by which a file name calls itself a later try.
var laterTry = lazyre.New(`(?:^|[-_.])((?:retry|rerun|relaunch|restart|attempt|resume)(?:e?d)?[-_.]?\d*)(?:[-_.]|$)`)

// retryName reports whether a file's name calls itself a later try, and which:
// the word and what follows it, less the ending.
func retryName(path string) (bool, string) {
	base := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	m := laterTry.FindStringSubmatchIndex(base)
	if m == nil {
		return false, ""
	}
	if dot := strings.LastIndexByte(base, '.'); dot >= m[3] {
		base = base[:dot]
	}
	return true, base[m[2]:]
}

// attemptKey is the order in which launches come: named attempts by name, then
// files that call themselves retries, then the ordinal inside the file.
type attemptKey struct {
	named  string
	later  string
	series int
	launch int
}

func (t *Timeline) group() {
	key := func(src, launch int) attemptKey {
		a := &t.Sources[src].Artifact
		k := attemptKey{named: a.Owner.Attempt, launch: launch}
		if a.Owner.Attempt == "" {
			if ok, w := retryName(a.Path); ok && a.Owner.Rank == evidence.None {
				k.later = w
			}
		}
		return k
	}
	series := t.sequence()
	key = t.onlyNamed(key)
	parts := map[attemptKey][]Part{}
	var keys []attemptKey
	run := make([]bool, len(t.Sources))
	beside := make([]bool, len(t.Sources)) // tracked, and there are logs of launches
	logs := false
	for i := range t.Sources {
		s := &t.Sources[i]
		run[i] = runlike(s)
		beside[i] = run[i] && t.tracked[i]
		logs = logs || run[i] && !beside[i]
	}
	recorded := t.trialLogs() // a record's launch is what its log holds
	for i := range t.Sources {
		s := &t.Sources[i]
		beside[i] = beside[i] && logs
		if _, ok := recorded[i]; !run[i] || beside[i] || ok {
			continue
		}
		launches := map[int]evidence.Span{}
		note := func(l int, sp evidence.Span) {
			if old, ok := launches[l]; !ok || sp.Offset < old.Offset {
				launches[l] = sp
			}
		}
		for _, e := range s.Events {
			note(e.Who.Launch, e.Span)
		}
		for _, x := range s.Series {
			if x.Count > 0 {
				note(x.Key.Launch, x.Span(x.First))
			}
		}
		var ls []int
		for l := range launches {
			ls = append(ls, l)
		}
		sort.Ints(ls)
		for _, l := range ls {
			k := key(i, l)
			k.series = series[i]
			if _, ok := parts[k]; !ok {
				keys = append(keys, k)
			}
			parts[k] = append(parts[k], Part{Source: i, Launch: l, Span: launches[l]})
		}
	}
	sort.SliceStable(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if a.series != b.series {
			return a.series < b.series
		}
		if a.named != b.named {
			return cmp.Or(evidence.Natural(a.named, b.named), strings.Compare(a.named, b.named)) < 0
		}
		if a.later != b.later {
			return cmp.Or(evidence.Natural(a.later, b.later), strings.Compare(a.later, b.later)) < 0
		}
		return a.launch < b.launch
	})
	index := map[attemptKey]int{}
	for i, k := range keys {
		index[k] = i
		t.Attempts = append(t.Attempts, &Attempt{ID: fmt.Sprint(i + 1), Parts: parts[k]})
	}
	if len(t.Attempts) == 0 {
		t.Attempts = []*Attempt{{ID: "1"}}
		for i := range t.Sources {
			t.Attempts[0].Parts = append(t.Attempts[0].Parts, Part{Source: i})
			run[i] = true
		}
		index = nil
	}
	first, last := map[int]int{}, map[int]int{} // attempts of a trial's log, by its record
	for record, log := range recorded {
		first[record], last[record] = -1, -1
		for n, a := range t.Attempts {
			if slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Source == log }) {
				if first[record] < 0 {
					first[record] = n
				}
				last[record] = n
			}
		}
	}
	placed := map[Part]int{}
	var logSeries [][]*evidence.Series
	of := func(src, launch int) int {
		if !run[src] {
			return -1
		}
		if n, ok := last[src]; ok { // how it ended
			return n
		}
		if beside[src] {
			p := Part{Source: src, Launch: launch}
			n, ok := placed[p]
			if !ok {
				n = t.placeTracked(src, launch, logSeries)
				placed[p] = n
				t.Attempts[n].Parts = append(t.Attempts[n].Parts, p)
			}
			return n
		}
		if index == nil {
			return 0
		}
		k := key(src, launch)
		k.series = series[src]
		return index[k]
	}
	if logs && slices.Contains(beside, true) {
		logSeries = t.logged(beside, of)
	}
	from := map[*Attempt]int{} // source of its command
	for _, it := range t.Items {
		it.Attempt = of(it.Source, it.Who.Launch)
		if n, ok := first[it.Source]; ok && it.Kind == evidence.LaunchMark {
			it.Attempt = n
		}
		if it.Who.Attempt == evidence.Earlier {
			it.Attempt = -1
		}
		if it.Attempt >= 0 {
			a := t.Attempts[it.Attempt]
			a.Items = append(a.Items, it)
			if it.Kind == evidence.LaunchMark && it.Attrs.Str("what") != "note" {
				if c := it.Attrs.Str("command"); c != "" && (a.Command == "" || running(c) > running(a.Command) || it.Source == from[a] && running(c) == running(a.Command) && running(c) > 0) {
					a.Command, from[a] = c, it.Source
				}
			}
			a.span(it.Stamp)
		}
	}
	for i := range t.Sources {
		for _, x := range t.Sources[i].Series {
			if n := of(i, x.Key.Launch); n >= 0 {
				t.Attempts[n].Series = append(t.Attempts[n].Series, x)
				first, last := ends(x)
				t.Attempts[n].span(first)
				t.Attempts[n].span(last)
				continue
			}
			for _, a := range t.Attempts {
				a.Series = append(a.Series, x)
			}
		}
		for _, f := range t.Sources[i].Facts {
			if beside[i] { // the configuration of all that it records
				for n, a := range t.Attempts {
					if slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Source == i }) {
						t.Attempts[n].Facts = append(t.Attempts[n].Facts, f)
					}
				}
				continue
			}
			if n := of(i, f.Who.Launch); n >= 0 {
				k, ok := first[i]
				if !ok {
					k = n
				}
				for ; k <= n; k++ { // what a trial's record states is of all launches that its log holds
					t.Attempts[k].Facts = append(t.Attempts[k].Facts, f)
				}
				continue
			}
			for _, a := range t.Attempts {
				a.Facts = append(a.Facts, f)
			}
		}
	}
}

// maxShared bounds the machine's records that are listed with attempts only
// because no time places them, all attempts together; each may have minShared.
// The last attempt, which the verdict is mostly about, has them all.
const (
	maxShared = 1 << 16
	minShared = 16
)

// share lists the machine's records with the attempts that they concern.
func (t *Timeline) share() {
	last := len(t.Attempts) - 1
	most := max(maxShared/len(t.Attempts), minShared)
	listed := make([]int, len(t.Attempts))
	own := t.belong()
	of := t.processes()
	for _, it := range t.Items {
		if it.Attempt >= 0 {
			continue
		}
		if why := t.stray(it, own); why != "" {
			if t.StrayCount++; len(t.Strays) < maxStrays {
				t.Strays = append(t.Strays, Stray{it, why})
			}
			continue
		}
		in := t.concerns(it)
		if n, ok := of[pidOf(it)]; ok && n >= 0 && slices.Contains(machineFaults, it.Kind) {
			in = t.every()[n : n+1]
		}
		left := false
		for _, n := range in {
			if len(in) > placed && n != last {
				if listed[n] >= most {
					left = true
					continue
				}
				listed[n]++
			}
			t.Attempts[n].Items = append(t.Attempts[n].Items, it)
		}
		if left {
			t.Unshared++
		}
	}
}

// processes maps the pids of the run's own lines to the one attempt that has them, None
// where several do.
func (t *Timeline) processes() map[int]int {
	of := map[int]int{}
	for _, it := range t.Items {
		if p := pidOf(it); it.Attempt >= 0 && p > 0 {
			once(of, p, it.Attempt)
		}
	}
	return of
}

// placed is among how many attempts a record can lie and still count as placed
// by its time.
const placed = 4

// onlyNamed lets the one attempt that has a name (torchrun's attempt_0 folder)
// take the files beside it that name none, such as the launcher's own output.
// Of several names the launches of such a file take one each, in order, where there are as many
// and its lines restart the workers; else it stays open to which of them they belong.
func (t *Timeline) onlyNamed(key func(src, launch int) attemptKey) func(src, launch int) attemptKey {
	var names []string
	for i := range t.Sources {
		if n := t.Sources[i].Artifact.Owner.Attempt; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(evidence.Natural(a, b), strings.Compare(a, b)) })
	restarts := map[int]bool{}
	if len(names) > 1 {
		for i := range t.Sources {
			restarts[i] = t.launcherOf(i, len(names))
		}
	}
	return func(src, launch int) attemptKey {
		k := key(src, launch)
		switch {
		case k.later != "" || k.named != "":
		case len(names) == 1:
			k.named = names[0]
		case restarts[src] && launch < len(names):
			k.named, k.launch = names[launch], 0
		}
		return k
	}
}

// launcherOf reports whether a source is a launcher's own log of n starts of the workers.
func (t *Timeline) launcherOf(src, n int) bool {
	s := &t.Sources[src]
	if s.Artifact.Owner.Attempt != "" || s.Artifact.Owner.Rank != evidence.None || len(s.Series) > 0 {
		return false
	}
	last, words := 0, false
	for _, e := range s.Events {
		last = max(last, e.Who.Launch)
		words = words || e.Kind == evidence.Exited || e.Kind == evidence.LauncherSummary || e.Kind == evidence.LauncherStop
	}
	return words && last == n-1
}

// copies marks what a launcher's merged output repeats of the ranks' own files
// (torchrun --tee): the same words of the same rank. The own file has them in
// their order.
func (t *Timeline) copies() {
	type words struct {
		kind    evidence.Kind
		rank    int
		attempt int
		text    string
	}
	own := map[words]bool{}
	for pass := range 2 {
		for _, it := range t.Items {
			if it.Who.Rank == evidence.None || it.Attempt < 0 || it.Text == "" {
				continue
			}
			w := words{it.Kind, it.Who.Rank, it.Attempt, bare(it.Text)}
			o := t.Sources[it.Source].Artifact.Owner
			switch merged := o.Rank == evidence.None && o.LocalRank == evidence.None; {
			case pass == 0 && !merged:
				own[w] = true
			case pass == 1 && merged && own[w]:
				it.Quoted = true
			}
		}
	}
}

// rankTags are the prefixes that torchrun and torch.distributed set before the
// lines of a rank.
var rankTags = lazyre.New(`^(?:\[(?:[A-Za-z_]+|rank)\d+\]:\s*)+`)

func bare(text string) string { return rankTags.ReplaceAllString(text, "") }

// concerns lists the attempts that a machine record can belong to: those in
// whose time it lies and those whose time is not known; all of them, if it lies
// in none.
func (t *Timeline) concerns(it *Item) []int {
	if it.Who.Attempt == evidence.Earlier {
		return t.every()[:len(t.Attempts)-1]
	}
	const slack = 5 * time.Minute
	dated := it.Stamp.Known() && it.Stamp.Clock == "wall"
	if !dated {
		return t.every()
	}
	var in []int
	within := false
	for n, a := range t.Attempts {
		known := a.Start.Known() && a.End.Known()
		if known {
			d1, ok1 := between(a.Start, it.Stamp)
			d2, ok2 := between(it.Stamp, a.End)
			if known = ok1 && ok2; known && (d1 < -slack || d2 < -slack) {
				continue
			}
		}
		within = within || known
		in = append(in, n)
	}
	if within {
		return in
	}
	return t.every()
}

// every lists all attempts.
func (t *Timeline) every() []int {
	for n := len(t.all); n < len(t.Attempts); n++ {
		t.all = append(t.all, n)
	}
	return t.all
}

// sequence orders run artifacts that are whole logs of their own in time: files
// without rank, whose time ranges do not touch, are one launch after another.
func (t *Timeline) sequence() []int {
	out := make([]int, len(t.Sources))
	type ranged struct {
		i        int
		from, to time.Time
	}
	var rs []ranged
	for i := range t.Sources {
		s := &t.Sources[i]
		if s.Artifact.Owner.Rank != evidence.None || s.Artifact.Owner.Attempt != "" || !runlike(s) || !hasMarks(s) {
			continue
		}
		var r ranged
		r.i = i
		add := func(st evidence.Stamp) {
			if !st.Known() || st.Clock != "wall" || st.NoDate || st.NoYear {
				return
			}
			if r.from.IsZero() || st.Time.Before(r.from) {
				r.from = st.Time
			}
			if r.to.IsZero() || st.Time.After(r.to) {
				r.to = st.Time
			}
		}
		for _, e := range s.Events {
			add(e.Stamp)
		}
		for _, x := range s.Series {
			first, last := ends(x)
			add(first)
			add(last)
		}
		if !r.from.IsZero() {
			rs = append(rs, r)
		}
	}
	if len(rs) < 2 {
		return out
	}
	sort.SliceStable(rs, func(i, j int) bool { return rs[i].from.Before(rs[j].from) })
	n, end := 0, rs[0].to
	for _, r := range rs {
		if r.from.After(end) {
			n++
		}
		out[r.i] = n
		if r.to.After(end) {
			end = r.to
		}
	}
	return out
}

var (
	launcher = lazyre.New(`(?:^|[\s/])(?:torchrun|accelerate launch|deepspeed|srun|mpirun|mpiexec|horovodrun|python[\d.]* -m torch\.distributed\.(?:run|launch))(?:\s|$)`)
	program  = lazyre.New(`(?:^|[\s/])(?:python[\d.]*\s|(?:bash|sh)\s+\S|\S+\.(?:py|sh)(?:\s|$))`)
)

// running ranks a shell command by how surely it starts a training run: a
// launcher, then a program or script, then anything else. What is typed before
// a run (cd, ls, an editor) stands in the same launch.
func running(command string) int {
	switch {
	case launcher.MatchString(command):
		return 2
	case program.MatchString(command):
		return 1
	}
	return 0
}

// hasMarks reports whether a source shows its own beginning, so that it can be
// told from the continuation or another stream of the same launch.
func hasMarks(s *Source) bool {
	for _, e := range s.Events {
		if e.Kind == evidence.LaunchMark {
			return true
		}
	}
	return false
}

// ends returns the first and the last time that a series carries: not every
// point has one.
func ends(s *evidence.Series) (first, last evidence.Stamp) {
	for p := range s.All() {
		if t := p.When(); t.Known() {
			if !first.Known() {
				first = t
			}
			last = t
		}
	}
	return first, last
}

func (a *Attempt) span(s evidence.Stamp) {
	if !s.Known() || s.Clock != "wall" || s.NoDate {
		return
	}
	if !a.Start.Known() || sameClock(s, a.Start) && s.Time.Before(a.Start.Time) {
		a.Start = s
	}
	if !a.End.Known() || sameClock(s, a.End) && s.Time.After(a.End.Time) {
		a.End = s
	}
}

// sameClock reports whether two stamps can be compared.
func sameClock(a, b evidence.Stamp) bool {
	return a.Clock == b.Clock && a.NoYear == b.NoYear && a.NoDate == b.NoDate && (a.Zone == "") == (b.Zone == "")
}
