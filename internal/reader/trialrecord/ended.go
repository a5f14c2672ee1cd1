package trialrecord

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
)

// samples adds the memory of the process tree and of the devices to their series.
func (p *pass) samples(list []*jsontree.Node) {
	for _, n := range list {
		seconds, err := strconv.ParseFloat(n.Str("s"), 64)
		if err != nil || seconds < 0 || seconds > 1e9 {
			continue
		}
		if v, ok := whole(n.Get("processes"), 1<<40); ok {
			p.tree = max(p.tree, v)
		}
		var at *evidence.Stamp
		if !p.began.IsZero() {
			t := p.began.Add(time.Duration(seconds * float64(time.Second)))
			at = &evidence.Stamp{Time: t, Written: t.Format(time.RFC3339Nano), Zone: "Z", Error: 50 * time.Millisecond, Clock: "wall", Host: p.who.Host}
		}
		add := func(name, source string, x *jsontree.Node) {
			v, ok := whole(x, maxSize)
			if !ok {
				return
			}
			p.s.Series(evidence.SeriesKey{Name: name, Source: source, Artifact: p.a.Path, Rank: p.who.Rank, Unit: "bytes", Trust: evidence.Raw}).
				Add(evidence.Point{Step: evidence.None, Value: float64(v), Line: p.l.N, Offset: p.l.Offset + int64(n.From), Length: int32(min(n.End-n.From, math.MaxInt32)), Stamp: at})
		}
		add("host_memory", "trial", n.Get("resident"))
		for i, d := range n.List("devices") {
			if index, ok := whole(d.Get("index"), 1<<16); ok && i < maxDevices {
				add("device_memory", "trial gpu "+strconv.FormatInt(index, 10), d.Get("used"))
			}
		}
	}
}

// signals are the numbers of signals that have the same one on all systems that count them so, and
// those of Linux.
var signals = map[string]int64{
	"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9, "SIGUSR1": 10,
	"SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15, "SIGXCPU": 24, "SIGXFSZ": 25,
}

// asks are the signals by which somebody asks a process to end; no process sends them to itself.
var asks = map[int64]bool{1: true, 2: true, 3: true, 15: true}

// ended takes how the command ended.
func (p *pass) ended(n *jsontree.Node) {
	exit := n.Get("exit")
	if exit == nil || exit.Sort != jsontree.Object {
		return
	}
	at := p.stamp(n.Get("at"))
	status, known := whole(exit.Get("status"), 1<<31)
	p.measures(n.List("measures"), at)
	if !known {
		return
	}
	if stopped := exit.Get("stopped"); stopped != nil && stopped.Text != "" {
		p.stopped(stopped, at)
	} else if status != 0 {
		p.killed(n, exit, at)
	}
	if err := exit.Get("error"); err != nil && err.Text != "" {
		kind := evidence.MissingDep
		if status == 126 {
			kind = evidence.AccessDenied
		}
		p.s.Event(p.event(kind, err, at, evidence.Attrs{"what": evidence.TextOf("command")}))
		return
	}
	attrs := evidence.Attrs{"what": evidence.TextOf("trial")}
	signal := signals[exit.Str("signal")]
	if signal > 0 {
		attrs["signal"] = evidence.IntOf(signal)
	} else {
		attrs["code"] = evidence.IntOf(status)
	}
	if by := exit.Get("stopped"); asks[signal] && (by == nil || by.Text == "") {
		p.s.Event(p.event(evidence.SignalReceived, exit, at, attrs))
		return
	}
	if p.who.PID > 0 {
		attrs["pid"] = evidence.IntOf(int64(p.who.PID))
	}
	p.s.Event(p.event(evidence.Exited, exit, at, attrs))
}

// stopped takes that this program ended the command.
func (p *pass) stopped(why *jsontree.Node, at evidence.Stamp) {
	kind := evidence.TimeLimit
	if strings.Contains(why.Text, "interrupt") {
		kind = evidence.Interrupted
	}
	p.s.Event(p.event(kind, why, at, evidence.Attrs{"what": evidence.TextOf("inquest")}))
}

// killed takes that the kernel counted kills for memory in the command's cgroup while it ran. They
// are about the command where something of it was killed: a signal that cannot be caught, or a
// status other than 0, which a parent gives that lost a child.
func (p *pass) killed(n, exit *jsontree.Node, at evidence.Stamp) {
	kills, ok := whole(exit.Get("oom_kills"), 1<<40)
	if sig := exit.Str("signal"); !ok || kills == 0 || sig != "" && sig != "SIGKILL" {
		return
	}
	attrs := evidence.Attrs{"what": evidence.TextOf("cgroup-events"), "count": evidence.IntOf(kills)}
	// Only the group whose limit is reached counts that it was.
	if full, ok := whole(exit.Get("at_limit"), 1<<40); ok && full > 0 {
		attrs["what"] = evidence.TextOf("cgroup-count")
	}
	if m := measure(n.List("measures"), "cgroup"); m != nil {
		if v, ok := size(m.Get("peak")); ok {
			attrs["used"] = v
		}
		if v, ok := size(m.Get("limit")); ok {
			attrs["limit"] = v
		}
	}
	p.s.Event(p.event(evidence.HostOOMSched, exit.Get("oom_kills"), at, attrs))
}

// measures takes the highest uses of memory: of the cgroup against its limit where it has one, else
// of the process tree against the memory of the host; and of the largest address space.
func (p *pass) measures(list []*jsontree.Node, at evidence.Stamp) {
	if m := measure(list, "address_space"); m != nil {
		v, ok := size(m.Get("peak"))
		at := m
		// What one process has in memory lies in its address space, and the kernel's mark of it is of
		// the very end, where the address space is as it was looked at last.
		if own := measure(list, "resident"); own != nil && p.tree == 1 {
			if r, fits := size(own.Get("peak")); fits && r.Lo > v.Lo {
				v, at, ok = r, own, true
			}
		}
		if ok {
			p.fact("host.address_space", v, at)
		}
		if v, ok := size(m.Get("limit")); ok {
			p.fact("host.address_limit", v, m)
		}
	}
	if m := measure(list, "cgroup"); m != nil {
		used, ok := size(m.Get("peak"))
		limit, limited := size(m.Get("limit"))
		if ok && limited && (p.memory == 0 || limit.Lo < p.memory) {
			p.s.Event(p.event(evidence.HostMemReport, m, at, evidence.Attrs{"what": evidence.TextOf("trial"), "by": evidence.TextOf("cgroup"), "used": used, "limit": limit}))
			return
		}
	}
	if m := measure(list, "resident"); m != nil {
		attrs := evidence.Attrs{"what": evidence.TextOf("trial")}
		used, ok := size(m.Get("peak"))
		if !ok {
			return
		}
		attrs["used"], attrs["rss"] = used, used
		if p.memory > 0 {
			attrs["limit"], attrs["by"] = evidence.SizeOf(p.memory, p.memory), evidence.TextOf("host")
		}
		p.s.Event(p.event(evidence.HostMemReport, m, at, attrs))
	}
}

// measure is the first measure of a name that is of no one rank or of this one.
func measure(list []*jsontree.Node, name string) *jsontree.Node {
	for _, m := range list {
		if m.Str("name") == name {
			return m
		}
	}
	return nil
}
