package timeline

import (
	"slices"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Stray is a record of the machine that is of no attempt, and why.
type Stray struct {
	Item *Item
	Why  string
}

// maxStrays bounds the strays that are kept; all are left out.
const maxStrays = 16

// machineFaults are the kinds of which the kernel keeps what struck any process of a host
// at any time.
var machineFaults = []evidence.Kind{
	evidence.Xid, evidence.SXid, evidence.DeviceLost, evidence.ECCError, evidence.LinkError, evidence.HostOOMKill,
}

// before the first line of a run its processes are being started.
const starting = 5 * time.Minute

// stray says why a record of the machine cannot be about any process of the job, "" if
// it can:
//
//   - it is of a host that is none of those on which all ranks are known to work, or
//     which the scheduler gives the job;
//   - it is of a device on which none of the ranks works, where those of all ranks are
//     known. What is wrong with a link may show at either end;
//   - it names a process that is none of the job's, by another program's name,
//     where the kernel's other records count processes as the job's own lines do;
//   - it is older or younger than every attempt that trained, by more than the clocks may
//     differ.
//
// A record about a process of the job is one only by its time: numbers of processes are
// given again.
func (t *Timeline) stray(it *Item, own *belongings) string {
	if it.Attempt >= 0 {
		return ""
	}
	if slices.Contains(schedulerStops, it.Kind) && it.Source >= 0 && evidence.Beside(t.Sources[it.Source].Artifact.Kind) {
		if it.Who.Host != "" && t.Sources[it.Source].Artifact.Kind == "slurm" && len(own.hosts) > 0 && !own.on(it.Who.Host) {
			return "no rank of the job works on " + it.Who.Host
		}
		return t.atOtherTime(it, own, false)
	}
	if !slices.Contains(machineFaults, it.Kind) {
		return ""
	}
	if own.process(it) {
		return t.atOtherTime(it, own, false)
	}
	if it.Who.Host != "" && len(own.hosts) > 0 && !own.on(it.Who.Host) {
		return "no rank of the job works on " + it.Who.Host
	}
	if it.Kind != evidence.HostOOMKill && it.Kind != evidence.SXid && it.Kind != evidence.LinkError && it.Attrs.Str("severity") != "link" {
		host := it.Who.Host
		if host == "" && !t.multi {
			host = own.only
		}
		if at := own.buses[host]; len(at) > 0 && it.Who.BusID != "" && !at[evidence.BusID(it.Who.BusID)] {
			return "no rank of the job works on the device at " + it.Who.BusID
		}
	}
	if name := it.Attrs.Str("name"); name != "" && pidOf(it) > 0 && own.allPIDs && !own.names[name] && (len(own.names) > 0 || slices.Contains(services, name)) {
		return "its process, " + name + ", is none of the job's"
	}
	return t.atOtherTime(it, own, own.agree)
}

// schedulerStops are the kinds by which records of a scheduler or cluster end a job.
var schedulerStops = []evidence.Kind{evidence.HostOOMSched, evidence.TimeLimit, evidence.Preempted, evidence.NodeFailure, evidence.Cancelled}

// services are programs, as the kernel names their processes, that are no part of any
// training job.
var services = []string{"java", "mysqld", "postgres", "mongod", "redis-server", "nginx", "httpd", "apache2", "node", "chrome", "chromium", "firefox", "Xorg", "gnome-shell", "kubelet", "dockerd", "containerd", "prometheus", "grafana", "elasticsearch", "clickhouse-ser", "influxd", "etcd", "systemd", "systemd-journal", "sshd", "snapd"}

// on reports whether a rank of the job works on a host, by its short or full name.
func (own *belongings) on(host string) bool {
	if own.hosts[host] {
		return true
	}
	for h := range own.hosts {
		if evidence.SameHost(h, host) {
			return true
		}
	}
	return false
}

// process reports whether a record names a process of the job: by its number, on a host
// that is not known to be another.
func (own *belongings) process(it *Item) bool {
	for h := range own.pids[pidOf(it)] {
		if h == "" || it.Who.Host == "" || evidence.SameHost(h, it.Who.Host) {
			return true
		}
	}
	return false
}

// pidOf is the process that a record of the kernel or a line of the run names.
func pidOf(it *Item) int {
	if v, ok := it.Attrs["pid"]; ok {
		return int(v.I)
	}
	return it.Who.PID
}

// belongings are what is known to be the job's.
type belongings struct {
	pids    map[int]map[string]bool    // and the hosts on which they are, "" where it is not known
	allPIDs bool                       // of every rank
	names   map[string]bool            // of its processes, in records of the machine that name one of pids
	hosts   map[string]bool            // empty unless those of all ranks are known
	buses   map[string]map[string]bool // by host, those of all its ranks
	only    string                     // the host of all ranks, where no line names it
	first   [][]*Item                  // by attempt that trained: the first and last times of its parts
	last    [][]*Item
	agree   bool // the kernel's clock and the run's: a record of one of pids stands within an attempt
	trained bool // every attempt did
}

// belong collects what is the job's.
func (t *Timeline) belong() *belongings {
	own := &belongings{pids: map[int]map[string]bool{}, names: map[string]bool{}, hosts: map[string]bool{}, buses: map[string]map[string]bool{}}
	world := 0
	for _, it := range t.Items {
		if it.Attempt < 0 {
			continue
		}
		if p := pidOf(it); p > 0 && it.Kind != evidence.GPUProcess && it.Kind != evidence.HostProcess && it.Stamp.Clock != "boot" {
			if own.pids[p] == nil {
				own.pids[p] = map[string]bool{}
			}
			own.pids[p][it.Who.Host] = true
		}
		world = max(world, it.Who.Rank+1, int(it.Attrs["world"].I))
	}
	if world > len(t.seats) { // not all ranks are known
		world = 0
	}
	t.places(own, world)
	own.allPIDs = world > 0
	for r := range world {
		own.allPIDs = own.allPIDs && t.Seat(r).PID != evidence.None
	}
	t.periods(own)
	for _, it := range t.Items {
		if it.Attempt >= 0 || it.Kind != evidence.Xid && it.Kind != evidence.HostOOMKill || !own.process(it) {
			continue
		}
		if n := it.Attrs.Str("name"); n != "" {
			own.names[n] = true
		}
		for i := range own.first[:min(len(own.first), maxPeriods)] {
			own.agree = own.agree || within(t, it, own.first[i], own.last[i])
		}
	}
	return own
}

// within reports whether it lies between the first and the last times of an attempt, by
// the clocks as they stand.
func within(t *Timeline, it *Item, first, last []*Item) bool {
	early := slices.ContainsFunc(first, func(x *Item) bool {
		d, ok := subtract(x.Stamp, it.Stamp)
		return ok && d >= 0
	})
	return early && slices.ContainsFunc(last, func(x *Item) bool {
		d, ok := subtract(it.Stamp, x.Stamp)
		return ok && d >= -starting
	})
}

// places collects the hosts and devices of the ranks.
func (t *Timeline) places(own *belongings, world int) {
	if world > 0 {
		placed, said := true, t.saidByLines()
		for r := range world {
			h := t.Seat(r).Host
			placed = placed && said[h] // a file may be named after a host by another name than its own
			own.hosts[h] = true
		}
		if !placed {
			clear(own.hosts)
		}
	}
	if len(own.hosts) == 0 {
		t.scheduled(own)
	}
	known, on, tables := map[string]bool{}, map[string]int{}, map[string]bool{}
	for r := range world {
		s := t.Seat(r)
		if _, ok := known[s.Host]; !ok {
			known[s.Host] = true
			own.buses[s.Host] = map[string]bool{}
		}
		known[s.Host] = known[s.Host] && s.BusID != ""
		own.buses[s.Host][evidence.BusID(s.BusID)] = true
		tables[s.Host] = tables[s.Host] || s.proof.Artifact == ""
		on[s.Host]++
	}
	for h, all := range known {
		if all && tables[h] { // the job may count devices from the first that it was given
			all = t.onThese(own.buses[h], h, own)
		}
		if !all || on[h] < 2 || h == "" && (t.multi || len(known) > 1) { // one process may drive devices that it does not name
			delete(own.buses, h)
		}
	}
	if len(known) == 1 {
		for h := range known {
			own.only = h
		}
		if own.only == "" && len(t.Hosts) == 1 && own.buses[""] != nil { // the kernel's log names its host, the run's do not
			own.buses[t.Hosts[0]] = own.buses[""]
		}
	}
}

// onThese reports whether what the kernel says of the job's processes on a host is of the
// devices at these bus ids, and that it says something.
func (t *Timeline) onThese(buses map[string]bool, host string, own *belongings) bool {
	some := false
	for _, it := range t.Items {
		b := evidence.BusID(it.Who.BusID)
		if b == "" || it.Attempt >= 0 || !slices.Contains(machineFaults, it.Kind) || !own.process(it) || host != "" && it.Who.Host != "" && it.Who.Host != host {
			continue
		}
		if !buses[b] {
			return false
		}
		some = true
	}
	return some
}

// saidByLines are the hosts that lines name; a file may be named after a host by another
// name than its own.
func (t *Timeline) saidByLines() map[string]bool {
	said := map[string]bool{}
	for i := range t.Sources {
		s := &t.Sources[i]
		if evidence.Beside(s.Artifact.Kind) {
			continue
		}
		for _, e := range s.Events {
			if h := e.Who.Host; h != "" {
				said[t.named(h)] = true
			}
		}
	}
	return said
}

// scheduled takes the hosts that the scheduler's record of the one job names.
func (t *Timeline) scheduled(own *belongings) {
	for _, it := range t.Items {
		if it.Kind == evidence.JobRecord {
			if it.Who.Host == "" {
				clear(own.hosts)
				return
			}
			own.hosts[it.Who.Host] = true
		}
	}
	for _, it := range t.Items {
		if it.Attempt >= 0 && it.Who.Host != "" && !evidence.Beside(t.Sources[it.Source].Artifact.Kind) && !own.hosts[it.Who.Host] {
			clear(own.hosts)
			return
		}
	}
}

// periods collects when each attempt ran, by each clock that tells.
func (t *Timeline) periods(own *belongings) {
	own.trained = true
	for _, a := range t.Attempts {
		var first, last []*Item
		add := func(src, rank int, host string, s evidence.Stamp) {
			if !usable(s) {
				return
			}
			x := &Item{Source: src, Attempt: evidence.None, clock: evidence.None}
			x.Stamp, x.Who = s, evidence.Nobody()
			x.Who.Host = host
			if i, ok := t.clocks.index[t.clockOf(host, src, rank, s)]; ok {
				x.clock = i
			}
			first = extreme(first, x, func(d time.Duration) bool { return d < 0 })
			last = extreme(last, x, func(d time.Duration) bool { return d > 0 })
		}
		for _, x := range a.Series {
			src, ok := t.sourceOf(x.Key.Artifact)
			if !ok || evidence.Beside(t.Sources[src].Artifact.Kind) {
				continue
			}
			rank := t.rankOf(src, x.Key.Rank)
			host := t.hostOf[rank]
			if host == "" {
				host = t.said[src]
			}
			from, to := ends(x)
			add(src, rank, host, from)
			add(src, rank, host, to)
		}
		own.trained = own.trained && len(first) > 0
		for _, it := range a.Items {
			if it.Attempt >= 0 && !evidence.Beside(t.Sources[it.Source].Artifact.Kind) {
				add(it.Source, it.Who.Rank, it.Who.Host, it.Stamp)
			}
		}
		own.first, own.last = append(own.first, first), append(own.last, last)
	}
}

// maxExtremes bounds the clocks of an attempt whose times are compared, maxPeriods the attempts:
// in a job of more no record is held to be of another time.
const (
	maxExtremes = 64
	maxPeriods  = 256
)

// extreme keeps of each clock the time that further holds of.
func extreme(list []*Item, x *Item, further func(time.Duration) bool) []*Item {
	for i, old := range list {
		if old.clock == x.clock && sameClock(old.Stamp, x.Stamp) {
			if further(x.Stamp.Time.Sub(old.Stamp.Time)) {
				list[i] = x
			}
			return list
		}
	}
	if len(list) < maxExtremes {
		list = append(list, x)
	}
	return list
}

// atOtherTime says how long before or after all attempts, of which each trained, a record
// was made.
// Agree says that the machine's clock and the run's are known to be alike.
func (t *Timeline) atOtherTime(it *Item, own *belongings, agree bool) string {
	if !usable(it.Stamp) || !own.trained || len(own.first) == 0 || len(own.first) > maxPeriods {
		return ""
	}
	apart := func(x *Item) (gap, bound time.Duration, ok bool) {
		d := t.measure(it, x, it.Stamp, x.Stamp)
		if !d.ok {
			if d.gap, d.ok = subtract(it.Stamp, x.Stamp); !d.ok {
				return 0, 0, false
			}
			d.bound = it.Stamp.Error + x.Stamp.Error + Skew + Zones
		}
		switch {
		case agree && it.Source >= 0:
			d.bound = min(d.bound, Skew)
		case (it.Stamp.Zone == "") != (x.Stamp.Zone == "") || it.Stamp.Zone == "" && d.by != byTie: // a container may keep another zone than its host
			d.bound = max(d.bound, Skew+Zones)
		}
		return d.gap, d.bound + starting, true
	}
	away := time.Duration(0)
	side := ""
	for i := range own.first {
		early, late := len(own.first[i]) > 0, len(own.last[i]) > 0
		var near time.Duration
		for _, x := range own.first[i] {
			d, bound, ok := apart(x)
			early = early && ok && d > bound
			if near == 0 || d < near {
				near = d
			}
		}
		if early {
			if side == "after" {
				return ""
			}
			if side = "before"; away == 0 || near < away {
				away = near
			}
			continue
		}
		near = 0
		for _, x := range own.last[i] {
			d, bound, ok := apart(x)
			late = late && ok && -d > bound+Zones // a rank that hangs prints nothing for as long as it likes
			if near == 0 || -d < near {
				near = -d
			}
		}
		if !late || side == "before" {
			return ""
		}
		if side = "after"; away == 0 || near < away {
			away = near
		}
	}
	return "it was made " + long(away) + " " + side + " the run"
}
