package diagnose

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// A rule says that an event of one kind explains events of other kinds by a
// mechanism.
type rule struct {
	name   string
	text   string
	from   []evidence.Kind
	to     []evidence.Kind
	same   bool                               // only on the same rank (an unstated rank fits any)
	any    bool                               // whatever the order: the two tell of one thing
	later  []evidence.Kind                    // of these kinds, only what is not known to come before
	within time.Duration                      // not later than this, where both have times; 0 no bound
	unless func(from, to *timeline.Item) bool // exception to the rule
	apart  time.Duration                      // not for an exception more than this before it; 0 no bound
}

// firstTold reports whether a, of two records of one step, is the one to quote: a line of a
// log before a tracker's, then the loss before the gradient norm and that before others, then
// by place.
func firstTold(a, b *timeline.Item) bool {
	rank := func(it *timeline.Item) int {
		n := 0
		if it.Attrs.Str("tracker") != "" {
			n = 10
		}
		switch it.Attrs.Str("metric") {
		case "loss":
		case "grad_norm":
			n++
		case "eval_loss":
			n += 2
		default:
			n += 3
		}
		return n
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a.Span.Artifact, b.Span.Artifact), cmp.Compare(a.Span.Offset, b.Span.Offset), strings.Compare(a.ID, b.ID)) < 0
}

// rules are tried in order; the first that fits is quoted.
var rules = []rule{
	{name: "tracker-records-value", text: "a tracker's record of the same step of the run",
		from: []evidence.Kind{evidence.NonfiniteValue, evidence.NonfiniteNamed, evidence.LossOmitted}, to: []evidence.Kind{evidence.NonfiniteValue}, any: true,
		unless: func(from, to *timeline.Item) bool {
			return to.Attrs.Str("tracker") == "" || from.Step == evidence.None || from.Step != to.Step || !firstTold(from, to)
		}},
	{name: "hardware-fault-breaks-context", text: "a device fault breaks every CUDA call of the process on that device",
		from: []evidence.Kind{evidence.Xid, evidence.ECCError, evidence.DeviceLost, evidence.LinkError},
		to:   []evidence.Kind{evidence.CUDAFault, evidence.LibraryFailed, evidence.NativeCrash, evidence.Exception, evidence.DeviceConfig},
		same: true, any: true, later: []evidence.Kind{evidence.Exception, evidence.NativeCrash}, unless: func(from, to *timeline.Item) bool {
			return from.Kind == to.Kind || ofPython(to) || from.Kind == evidence.Xid && from.Attrs.Str("severity") == "application" || from.Kind != evidence.Xid && to.Kind != evidence.CUDAFault && to.Kind != evidence.LibraryFailed
		}},
	{name: "port-fails-under-job", text: "the adapter's port went down, as the kernel of its host says, and the library that sends over it reports the port",
		from: []evidence.Kind{evidence.NetworkFault}, to: []evidence.Kind{evidence.LinkError, evidence.NetworkFault}, any: true, later: []evidence.Kind{evidence.NetworkFault}, within: 10 * time.Minute,
		unless: func(from, to *timeline.Item) bool {
			return from.Attempt >= 0 || !slices.Contains(portDown, from.Attrs.Str("what")) || !onSameHost(from, to) || to.Attempt < 0 || to.Kind == evidence.LinkError && !slices.Contains(adapterWords, to.Attrs.Str("what"))
		}},
	{name: "others-wait-for-who-could-not-start", text: "a rank that cannot use its device never joins, and who waits for it at the start times out",
		from: []evidence.Kind{evidence.VersionClash, evidence.DeviceConfig, evidence.MissingDep}, to: []evidence.Kind{evidence.RendezvousFailed}, any: true,
		unless: func(_, to *timeline.Item) bool { // only a wait that ran out for ranks that were missing
			joined, ok := to.Attrs["joined"]
			expected, both := to.Attrs["expected"]
			return !ok || !both || joined.I >= expected.I
		}},
	{name: "one-device-told-twice", text: "the machine records the failure of one device in several ways",
		from: []evidence.Kind{evidence.Xid}, to: []evidence.Kind{evidence.ECCError, evidence.DeviceLost, evidence.LinkError},
		same: true, any: true, unless: func(from, _ *timeline.Item) bool { return from.Attrs.Str("severity") == "application" }},
	{name: "application-xid", text: "the driver's words for the fault that the process itself reports",
		from: []evidence.Kind{evidence.CUDAFault, evidence.CUDAAssert}, to: []evidence.Kind{evidence.Xid}, any: true, same: true,
		unless: func(_, to *timeline.Item) bool { return to.Attrs.Str("severity") != "application" }},
	{name: "host-oom-kills", text: "the kill for host memory ends the process",
		from: []evidence.Kind{evidence.HostOOMKill, evidence.HostOOMSched, evidence.HostOOMRay},
		to:   []evidence.Kind{evidence.WorkerKilled, evidence.NativeCrash, evidence.HostOOMSched, evidence.HostOOMRay, evidence.Exception, evidence.SignalReceived, evidence.StoreError}, any: true, apart: 2 * time.Minute,
		unless: func(from, to *timeline.Item) bool {
			if from.Kind == to.Kind || rankOfKill(from) > rankOfKill(to) {
				return true
			}
			// An exception elsewhere is another matter.
			otherRank := from.Who.Rank != to.Who.Rank && from.Who.Rank != evidence.None && to.Who.Rank != evidence.None
			otherHost := from.Who.Host != to.Who.Host && from.Who.Host != "" && to.Who.Host != ""
			return to.Kind == evidence.Exception && (otherRank || otherHost)
		}},
	{name: "kernel-saw-crash", text: "the kernel's record of the same crash",
		from: []evidence.Kind{evidence.WorkerKilled, evidence.NativeCrash}, to: []evidence.Kind{evidence.NativeCrash}, any: true,
		unless: func(from, to *timeline.Item) bool { return !evidence.SameCrash(&from.Event, &to.Event) }},
	{name: "assert-poisons-context", text: "after a device-side assertion every later CUDA call of the process fails",
		from: []evidence.Kind{evidence.CUDAAssert}, to: []evidence.Kind{evidence.CUDAFault, evidence.LibraryFailed, evidence.Exception, evidence.NativeCrash, evidence.CUDAAssert}, same: true},
	{name: "fault-poisons-context", text: "after a kernel fault every later CUDA call of the process fails",
		from: []evidence.Kind{evidence.CUDAFault}, to: []evidence.Kind{evidence.LibraryFailed, evidence.NativeCrash, evidence.CUDAFault}, same: true},
	{name: "shm-full-kills-worker", text: "a write to a full shared-memory mount ends the worker by a bus error",
		from: []evidence.Kind{evidence.ShmExhausted}, to: []evidence.Kind{evidence.WorkerKilled, evidence.NativeCrash, evidence.Exception, evidence.CollMisuse}, any: true},
	{name: "no-space-fails-write", text: "a full disk or quota fails the write",
		from: []evidence.Kind{evidence.DiskFull, evidence.DiskQuota}, to: []evidence.Kind{evidence.WriteFailed, evidence.CheckpointBad, evidence.Exception}, same: true},
	{name: "stop-ends-job", text: "who is told to stop goes through its own teardown",
		from: []evidence.Kind{evidence.TimeLimit, evidence.Preempted, evidence.NodeFailure}, to: []evidence.Kind{evidence.SignalReceived, evidence.Interrupted, evidence.TimeLimit, evidence.Preempted, evidence.Exception, evidence.NativeCrash}, any: true, later: []evidence.Kind{evidence.Exception, evidence.NativeCrash}, within: 10 * time.Minute,
		unless: func(from, to *timeline.Item) bool { return from.Kind == to.Kind }},
	{name: "one-stop-on-each-host", text: "the scheduler's daemon on each host records the one stop",
		from: hostStops, to: hostStops, any: true,
		unless: func(from, to *timeline.Item) bool {
			return from.Kind != to.Kind || jobOf(from) == "" || jobOf(from) != jobOf(to)
		}},
	{name: "stop-ends-job", text: "who is told to stop goes through its own teardown",
		from: []evidence.Kind{evidence.Cancelled}, to: []evidence.Kind{evidence.SignalReceived, evidence.Cancelled}, any: true, later: []evidence.Kind{evidence.Cancelled}, within: 10 * time.Minute,
		unless: func(_, to *timeline.Item) bool { return to.Attrs.Str("what") == "srun" }},
	{name: "failed-rank-stops-the-rest", text: "once a rank has failed, the launcher or the scheduler tells the others to stop",
		from: selfStanding, to: []evidence.Kind{evidence.SignalReceived}, any: true, later: []evidence.Kind{evidence.SignalReceived}},
	{name: "signal-cancels-step", text: "srun was told to stop and cancels its step",
		from: []evidence.Kind{evidence.SignalReceived}, to: []evidence.Kind{evidence.Cancelled}, within: 10 * time.Minute,
		unless: func(from, _ *timeline.Item) bool { return from.Attrs.Str("what") != "srun" }},
	{name: "signal-ends-job", text: "who is told to stop goes through its own teardown",
		from: []evidence.Kind{evidence.SignalReceived, evidence.Interrupted}, to: []evidence.Kind{evidence.Exception, evidence.Interrupted, evidence.NativeCrash, evidence.CUDAFault, evidence.SignalReceived}, within: 2 * time.Minute},
}

// portDown is what kernels say of an adapter whose port is gone, adapterWords what NCCL hears of
// its adapter.
var (
	portDown     = []string{"port-module", "link-down", "adapter-health"}
	adapterWords = []string{"ib-port-error", "ib-async-fatal"}
)

// onSameHost reports whether both are said to be of one host.
func onSameHost(a, b *timeline.Item) bool { return a.Who.Host != "" && a.Who.Host == b.Who.Host }

// pythonErrors are what Python's own operations raise, of values that are on the host: no call to
// a device ends so.
var pythonErrors = []string{"ValueError", "KeyError", "TypeError", "IndexError", "AttributeError", "NameError", "ImportError", "ModuleNotFoundError", "FileNotFoundError", "PermissionError", "UnicodeDecodeError", "JSONDecodeError", "ZeroDivisionError", "NotImplementedError", "UnboundLocalError", "SyntaxError"}

func ofPython(it *timeline.Item) bool {
	t := it.Attrs.Str("type")
	return it.Kind == evidence.Exception && slices.Contains(pythonErrors, t[strings.LastIndexByte(t, '.')+1:])
}

var hostStops = []evidence.Kind{evidence.TimeLimit, evidence.Preempted, evidence.NodeFailure}

// jobOf is the scheduler's job whose end it records, "" if it names none.
func jobOf(it *timeline.Item) string {
	_, id, _ := strings.Cut(timeline.StepID(it), " ")
	job, _, _ := strings.Cut(id, ".")
	return job
}

// selfStanding are faults that no signal to stop brings about: beside one of them the
// signals to other ranks are how the rest of the job was ended.
var selfStanding = []evidence.Kind{
	evidence.DeviceOOM, evidence.DeviceOOMRaw, evidence.LibraryOOM, evidence.NCCLOOM, evidence.PinnedOOM, evidence.ManagedOOM,
	evidence.HostAllocFailed, evidence.ShmExhausted, evidence.WorkerKilled,
	evidence.NonfiniteValue, evidence.NonfiniteNamed, evidence.LossOmitted, evidence.ScaleFloor, evidence.SDCSuspected,
	evidence.Xid, evidence.SXid, evidence.ECCError, evidence.LinkError, evidence.DeviceLost, evidence.CUDAAssert,
	evidence.CollDesync, evidence.CollMisuse, evidence.NetworkFault,
	evidence.DiskFull, evidence.DiskQuota, evidence.CheckpointBad, evidence.ShapeMismatch, evidence.IndexRange, evidence.MissingDep,
}

// between holds the rules by which one kind can explain another, in their order.
var between = func() map[[2]evidence.Kind][]*rule {
	m := map[[2]evidence.Kind][]*rule{}
	for i := range rules {
		for _, from := range rules[i].from {
			for _, to := range rules[i].to {
				k := [2]evidence.Kind{from, to}
				m[k] = append(m[k], &rules[i])
			}
		}
	}
	return m
}()

// rankOfKill orders the records of one host-memory kill from the one nearest to
// the kill.
func rankOfKill(it *timeline.Item) int {
	switch it.Kind {
	case evidence.HostOOMKill:
		return 0
	case evidence.HostOOMRay:
		return 1
	case evidence.HostOOMSched:
		return 2
	}
	return 3
}

// explains returns the first rule by which a explains b.
func (c *Case) explains(a, b *timeline.Item) *rule {
	for _, r := range between[[2]evidence.Kind{a.Kind, b.Kind}] {
		if r.same && a.Who.Rank != b.Who.Rank && a.Who.Rank != evidence.None && b.Who.Rank != evidence.None {
			continue
		}
		if r.same && (c.Timeline.OtherDevice(a, b) || c.Timeline.OtherDevice(b, a)) {
			continue
		}
		if r.unless != nil && r.unless(a, b) {
			continue
		}
		if !r.any || slices.Contains(r.later, b.Kind) {
			if rel := c.Timeline.Order(a, b); rel == timeline.After || rel != timeline.Before && !r.any {
				continue
			}
		}
		if d, bound, ok := c.Timeline.Gap(a, b); ok && (r.within > 0 && d.Abs() > r.within+bound || r.apart > 0 && b.Kind == evidence.Exception && -d > r.apart+bound) {
			continue
		}
		return r
	}
	return nil
}

// dropExplained removes candidates that another candidate explains. Of two that
// explain each other the earlier stays: in time where that is known, else in the
// list.
func (c *Case) dropExplained(cands []*timeline.Item) []*timeline.Item {
	gone, at := map[*timeline.Item]bool{}, map[*timeline.Item]int{}
	for i, it := range cands {
		at[it] = i
	}
	earlier := func(a, b *timeline.Item) bool {
		return before(c.Timeline, a, b) || at[a] < at[b] && !before(c.Timeline, b, a)
	}
	of := byKind(cands)
	for _, b := range cands {
		for a := range of.explainers(b) {
			if a != b && !gone[a] && c.explains(a, b) != nil && (c.explains(b, a) == nil || earlier(a, b)) {
				gone[b] = true
				break
			}
		}
	}
	return slices.DeleteFunc(cands, func(it *timeline.Item) bool { return gone[it] })
}

// kinds holds events by kind, each kind's in order.
type kinds map[evidence.Kind]*alike

// An alike holds the events of one kind, and where each rank's stand among them.
type alike struct {
	items []*timeline.Item
	of    map[int][]int
}

func byKind(items []*timeline.Item) kinds {
	k := kinds{}
	for _, it := range items {
		a := k[it.Kind]
		if a == nil {
			a = &alike{of: map[int][]int{}}
			k[it.Kind] = a
		}
		a.of[it.Who.Rank] = append(a.of[it.Who.Rank], len(a.items))
		a.items = append(a.items, it)
	}
	return k
}

// maxTries is how many events of one kind are tried as the explanation of another,
// far above the number that a job of a thousand ranks leaves. What an event
// beyond them would explain stays a failure of its own.
const maxTries = 1024

// explainers yields the events of the kinds that some rule lets explain to, in
// the order of Specs, then their own. Where all such rules hold within one rank,
// other ranks' events are left out: thousands of ranks that fail alike would
// else be held against each other. For the same reason other ranks' events end
// after maxTries of a kind.
func (k kinds) explainers(to *timeline.Item) iter.Seq[*timeline.Item] {
	return func(yield func(*timeline.Item) bool) {
		for i := range evidence.Specs {
			a := k[evidence.Specs[i].Kind]
			if a == nil {
				continue
			}
			by := between[[2]evidence.Kind{evidence.Specs[i].Kind, to.Kind}]
			if len(by) == 0 {
				continue
			}
			if to.Who.Rank == evidence.None || slices.ContainsFunc(by, func(r *rule) bool { return !r.same }) {
				for _, it := range a.items[:min(len(a.items), maxTries)] {
					if !yield(it) {
						return
					}
				}
				if to.Who.Rank == evidence.None {
					continue
				}
				own := a.of[to.Who.Rank]
				n, _ := slices.BinarySearch(own, maxTries)
				for _, i := range own[n:min(len(own), n+maxTries)] {
					if !yield(a.items[i]) {
						return
					}
				}
				continue
			}
			own, open := a.of[to.Who.Rank], a.of[evidence.None]
			for len(own)+len(open) > 0 {
				next := &own
				if len(own) == 0 || len(open) > 0 && open[0] < own[0] {
					next = &open
				}
				if !yield(a.items[(*next)[0]]) {
					return
				}
				*next = (*next)[1:]
			}
		}
	}
}

// why names the mechanism by which the lead ends in b, where no rule names a
// closer cause.
func (c *Case) why(b *timeline.Item) (string, string) {
	lead := c.Lead
	switch role(b) {
	case evidence.RoleEffect:
		if c.OnlyEffects {
			switch b.Kind {
			case evidence.CollTimeout:
				return "waited-as-well", "it waited for another rank until its time-out, which accuses no rank that waited"
			case evidence.PeerClosed, evidence.StoreError:
				return "lost-as-well", "it reports, as the first one does, that another process is gone"
			case evidence.CollTeardown:
				return "gave-up", "a rank that gave up waiting, or lost its peers, tears its group down"
			}
		}
		switch b.Kind {
		case evidence.CollTimeout:
			return "peer-gone-others-wait", subject(lead) + " stopped taking part in collectives; who waits for it times out"
		case evidence.PeerClosed, evidence.StoreError, evidence.CollTeardown:
			return "peer-gone-connections-close", "when " + subject(lead) + " ends, its connections close on the others"
		case evidence.LauncherStop:
			if c.LeadClass == evidence.ExternalStop {
				return "launcher-is-stopped", "the launcher is told to stop and ends its workers"
			}
			return "launcher-stops-the-rest", "the launcher stops the remaining workers once one has failed"
		case evidence.Cancelled:
			if c.LeadClass == evidence.ExternalStop {
				return "scheduler-cancels-each", "the scheduler says so for the job and for each of its steps"
			}
			return "scheduler-cancels-the-rest", "the scheduler cancels the step once a task has failed"
		case evidence.WrapperError:
			return "wrapper-reports", "a wrapper reports that something under it failed"
		case evidence.WorkerExited:
			return "parent-reports-worker", "the parent reports a worker that is gone"
		}
		return "follows", "it reports that something else failed"
	case evidence.RoleExit:
		if c.LeadClass == evidence.ExternalStop {
			return "stop-ends-process", "the process ends because it is told to"
		}
		return "process-ends", "the process ends after the failure"
	case evidence.RoleStop:
		return "teardown", "the job is torn down after the failure"
	}
	if b.Quoted {
		return "same-text-again", "the same text is printed again"
	}
	if b.Kind == lead.Kind && b.Who.Rank == lead.Who.Rank {
		return "same-failure-again", "the same failure of the same process is reported again"
	}
	if b.Kind == lead.Kind {
		return "same-failure-elsewhere", "the same failure on another rank, later"
	}
	return "later-in-the-same-attempt", "it comes later in an attempt that had already failed"
}

// subject names the process of an event: by rank, else by host.
func subject(it *timeline.Item) string {
	if it.Who.Rank >= 0 {
		return fmt.Sprintf("rank %d", it.Who.Rank)
	}
	if it.Who.Host != "" {
		return "a rank on " + it.Who.Host
	}
	return "a rank"
}

// LinkOf returns the link that explains it, alone or folded with its like; nil for none.
func (c *Case) LinkOf(it *timeline.Item) *Link {
	if head, ok := c.foldedInto[it]; ok {
		it = head
	}
	if c.linkAt == nil {
		c.linkAt = make(map[*timeline.Item]int, len(c.Links))
		for i := range c.Links {
			c.linkAt[c.Links[i].Item] = i
		}
	}
	if i, ok := c.linkAt[it]; ok {
		return &c.Links[i]
	}
	return nil
}

// explainRest links every other failure event of the attempt to what explains
// it and folds equal victims: same kind and cause (and, for faults, the same
// words but for numbers).
func (c *Case) explainRest() []Link {
	if c.Lead == nil {
		return nil
	}
	rival := map[*timeline.Item]bool{}
	for _, r := range c.Rivals {
		rival[r] = true
	}
	type key struct{ kind, text, by string }
	type victim struct{ link, rank int }
	index, hit := map[key]int{}, map[victim]bool{}
	c.foldedInto = map[*timeline.Item]*timeline.Item{}
	var out []Link
	var named []*timeline.Item
	for _, it := range c.Attempt.Items {
		if (role(it) == evidence.RoleFault || role(it) == evidence.RoleStop) && it != c.Lead && !c.recovered[it] {
			named = append(named, it)
		}
	}
	of := byKind(named)
	for _, it := range c.Attempt.Items {
		if it == c.Lead || rival[it] || c.recovered[it] || c.afterFinish(it) {
			continue
		}
		switch role(it) {
		case evidence.RoleFault, evidence.RoleStop, evidence.RoleEffect, evidence.RoleExit:
		default:
			continue
		}
		by := c.Lead
		name, text := "", ""
		if r := c.explains(c.Lead, it); r != nil {
			name, text = r.name, r.text
		} else {
			for a := range of.explainers(it) {
				if a == it {
					continue
				}
				if r := c.explains(a, it); r != nil {
					by, name, text = a, r.name, r.text
					break
				}
			}
		}
		if name == "" {
			name, text = c.why(it)
		}
		k := key{kind: string(it.Kind), by: by.ID + name}
		if role(it) == evidence.RoleFault { // different faults differ in their words; victims only in who reports
			k.text = mask(it.Text)
		}
		if i, ok := index[k]; ok {
			out[i].Count++
			c.foldedInto[it] = out[i].Item
			if it.Who.Rank >= 0 && !hit[victim{i, it.Who.Rank}] {
				hit[victim{i, it.Who.Rank}] = true
				out[i].Ranks = append(out[i].Ranks, it.Who.Rank)
			}
			continue
		}
		l := Link{Item: it, By: by, Rule: name, Text: text, Count: 1, Ranks: []int{}}
		if it.Who.Rank >= 0 {
			hit[victim{len(out), it.Who.Rank}] = true
			l.Ranks = append(l.Ranks, it.Who.Rank)
		}
		index[k] = len(out)
		out = append(out, l)
	}
	for i := range out {
		sort.Ints(out[i].Ranks)
	}
	// Faults first, then what hit the most ranks; what launchers and wrappers say
	// of it comes last.
	order := func(l Link) int {
		switch {
		case role(l.Item) == evidence.RoleFault || role(l.Item) == evidence.RoleStop:
			return 0
		case l.Item.Kind == evidence.WrapperError || l.Item.Kind == evidence.LauncherStop || l.Item.Kind == evidence.LauncherSummary:
			return 2
		}
		return 1
	}
	sort.SliceStable(out, func(i, j int) bool {
		if a, b := order(out[i]), order(out[j]); a != b {
			return a < b
		}
		return len(out[i].Ranks) > len(out[j].Ranks)
	})
	return out
}

// mask replaces numbers, so that victims that differ only in them are equal.
func mask(s string) string {
	var b strings.Builder
	in := false
	for _, r := range s {
		if r >= '0' && r <= '9' {
			if !in {
				b.WriteByte('#')
			}
			in = true
			continue
		}
		in = false
		b.WriteRune(r)
		if b.Len() > 200 {
			break
		}
	}
	return b.String()
}
