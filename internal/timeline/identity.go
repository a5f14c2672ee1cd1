package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Conflict is a contradiction between two statements of who runs where. Neither
// wins: what hangs on them stays open.
type Conflict struct {
	Text  string
	Spans []evidence.Span
}

// maxConflicts bounds the conflicts that are kept.
const maxConflicts = 16

func (t *Timeline) conflict(text string, spans ...evidence.Span) {
	if len(t.Conflicts) < maxConflicts && !slices.ContainsFunc(t.Conflicts, func(c Conflict) bool { return c.Text == text }) {
		t.Conflicts = append(t.Conflicts, Conflict{text, spans})
	}
}

// A Seat is where a rank works, as far as the artifacts say.
type Seat struct {
	Rank, LocalRank, Device, PID int
	Host, BusID, UUID            string
	physical                     int           // device index on the host
	proof                        evidence.Span // of the bus id
}

// Seat returns what is known of a rank.
func (t *Timeline) Seat(rank int) Seat {
	if s := t.seats[rank]; s != nil {
		return *s
	}
	return Seat{Rank: rank, LocalRank: evidence.None, Device: evidence.None, PID: evidence.None}
}

// pidOn and slotOn name a process and a place on a host.
type pidOn struct {
	host string
	pid  int
}

type slotOn struct {
	host string
	slot int
}

type busOn struct{ host, bus string }

// identify completes who each event is about.
//
//  1. The artifact's owner fills rank and host that the line does not state. A
//     host in the lines themselves counts before one in the artifact's name. Where each
//     of several artifacts introduces one rank, what it says is about that rank.
//     The files in one worker's folder are of one process, and a host goes by one name.
//  2. A pid that any line ties to a rank gives the rank to lines with the pid; a
//     host and a local rank do so likewise.
//  3. Where every process of a host works on a device of its own (NCCL names pid
//     and device on each line), the device is the local rank; a local rank is
//     the global rank where the job shows one host only.
//  4. A rank works on one host: what any of its lines says holds for all. A host's short
//     name and its full one are one host. What the kernel says of a rank's pid is about that rank.
//  5. A device is known by its bus id: from the rank's own lines, or from
//     the index that a table of the host's devices gives to it. A record of the kernel about
//     that bus id belongs to the rank.
//  6. A device fault in the kernel's words gets the rank whose CUDA error tells
//     of the same kind of fault, if only one rank and one device show any and no
//     statement about hosts speaks against it.
func (t *Timeline) identify() {
	t.nameHosts()
	several := t.introduced()
	t.workers()
	byPID, bySlot := map[pidOn]int{}, map[slotOn]int{}
	hosts := map[string]bool{}
	t.said = t.hostsSaid()
	t.oneNamed()
	t.pods()
	t.failedNodes()
	for _, it := range t.Items {
		o := t.Sources[it.Source].Artifact.Owner
		w := &it.Who
		if w.Rank == evidence.None && !several[it.Source] {
			w.Rank = t.rankOf(it.Source, evidence.None)
		}
		if w.LocalRank == evidence.None && (w.Rank == evidence.None || w.Rank == t.rankOf(it.Source, evidence.None) || o.LocalRank == w.Rank) {
			w.LocalRank = o.LocalRank
		}
		if w.Host == "" {
			w.Host = t.named(o.Host)
			if h, ok := t.said[it.Source]; ok && o.Host != "" {
				w.Host = h
			}
		}
		if w.Host != "" && it.Kind != evidence.NodeState && it.Kind != evidence.JobEvent { // these tell of hosts of a whole cluster
			hosts[w.Host] = true
		}
	}

	t.seatsByNumber()
	for _, it := range t.Items {
		w := &it.Who
		if w.Rank == evidence.None {
			continue
		}
		if w.PID != evidence.None {
			once(byPID, pidOn{w.Host, w.PID}, w.Rank)
			once(byPID, pidOn{"", w.PID}, w.Rank)
			if node, _ := t.NodeOf(w.Host); node != "" {
				once(byPID, pidOn{node, w.PID}, w.Rank)
			}
		}
		if w.LocalRank != evidence.None && w.Host != "" {
			once(bySlot, slotOn{w.Host, w.LocalRank}, w.Rank)
		}
	}
	for h := range hosts {
		t.Hosts = append(t.Hosts, h)
	}
	sort.Strings(t.Hosts)
	t.multi = len(t.Hosts) > 1
	devices := t.ownDevices()
	elsewhere := t.beyondOneHost()
	whole := t.localIsGlobal(len(devices) > 0)
	for _, it := range t.Items {
		w := &it.Who
		if w.Rank == evidence.None && w.PID != evidence.None {
			if r, ok := byPID[pidOn{w.Host, w.PID}]; ok {
				w.Rank = r
			} else if r, ok := byPID[pidOn{"", w.PID}]; ok && (w.Host == "" || !t.multi) {
				w.Rank = r
			}
		}
		if d, ok := devices[pidOn{w.Host, w.PID}]; ok && w.PID != evidence.None && w.LocalRank == evidence.None && w.Rank == evidence.None {
			w.LocalRank = d
		}
		if w.Rank != evidence.None || w.LocalRank == evidence.None {
			continue
		}
		if r, ok := bySlot[slotOn{w.Host, w.LocalRank}]; ok {
			w.Rank = r
		} else if whole && !elsewhere {
			w.Rank = w.LocalRank
		}
	}
	t.placeRanks()
	t.processRanks()
	t.seat()
	t.single = t.oneHost()
	t.tasks()
	t.devices()
	t.onlyDevice()
}

// nameHosts finds which names of hosts are the full name of one that goes by its first
// part elsewhere, and gives their lines that one.
func (t *Timeline) nameHosts() {
	names := map[string]bool{}
	for _, it := range t.Items {
		names[it.Who.Host] = true
	}
	for i := range t.Sources {
		names[t.Sources[i].Artifact.Owner.Host] = true
	}
	t.short = map[string]string{}
	full := map[string]string{}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		first, _, domain := strings.Cut(n, ".")
		if !domain || !names[first] || !strings.ContainsFunc(first, unicode.IsLetter) {
			continue
		}
		if old, ok := full[first]; ok { // hosts of that name in two domains
			delete(t.short, old)
			continue
		}
		full[first], t.short[n] = n, first
	}
	for _, it := range t.Items {
		it.Who.Host = t.named(it.Who.Host)
	}
}

// named is the name by which a host goes in the timeline.
func (t *Timeline) named(host string) string {
	if h, ok := t.short[host]; ok {
		return h
	}
	return host
}

// beyondOneHost reports whether the job is larger than one host though none is named: two logs
// each have a line of the same local rank, and the log states more ranks than there are local ones.
func (t *Timeline) beyondOneHost() bool {
	world, locals, twice := 0, 0, false
	in := map[int]int{} // local rank -> source
	for _, it := range t.Items {
		if evidence.Beside(t.Sources[it.Source].Artifact.Kind) {
			continue
		}
		world = max(world, int(it.Attrs["world"].I))
		if it.Kind == evidence.RendezvousFailed && it.Attrs.Str("what") == "store-clients" {
			world = max(world, int(it.Attrs["expected"].I))
		}
		l := it.Who.LocalRank
		if l == evidence.None {
			continue
		}
		locals = max(locals, l+1)
		if src, ok := in[l]; ok && src != it.Source {
			twice = true
		}
		in[l] = it.Source
	}
	return twice && world > locals
}

// processRanks gives records of the kernel that name a process of the job the rank of
// that process. Local ranks have become ranks by then, so launchers' lines count.
func (t *Timeline) processRanks() {
	of := map[pidOn]int{}
	for _, it := range t.Items {
		if p := pidOf(it); it.Who.Rank != evidence.None && p > 0 && !slices.Contains(machineFaults, it.Kind) && !evidence.Beside(t.Sources[it.Source].Artifact.Kind) {
			once(of, pidOn{it.Who.Host, p}, it.Who.Rank)
			once(of, pidOn{"", p}, it.Who.Rank)
		}
	}
	for _, it := range t.Items {
		p := pidOf(it)
		if p <= 0 || it.Who.Rank != evidence.None || it.Kind != evidence.Xid && it.Kind != evidence.HostOOMKill {
			continue
		}
		r, ok := of[pidOn{it.Who.Host, p}]
		if !ok {
			r, ok = of[pidOn{"", p}]
			ok = ok && (r == evidence.None || t.hostOf[r] == "" || it.Who.Host == "")
		}
		if ok {
			it.Who.Rank = r
		}
	}
}

// once notes that key means v; None if it means several.
func once[K comparable](m map[K]int, key K, v int) {
	if old, ok := m[key]; ok && old != v {
		v = evidence.None
	}
	m[key] = v
}

// introduced finds the artifacts whose lines name several ranks, which are no rank's
// file whatever their name says, and fills t.intro: where each of at least two artifacts
// without an owner introduces itself as one rank, each as another, that is whose it is. A launch
// of one worker on each of several nodes introduces it as well: its rank is that of its node.
func (t *Timeline) introduced() (several map[int]bool) {
	several = map[int]bool{}
	first, intro := map[int]int{}, map[int]int{}
	for _, it := range t.Items {
		r := it.Who.Rank
		if it.Kind == evidence.LaunchMark {
			if n, ok := nodeOf(it.Attrs.Str("command")); ok {
				once(intro, it.Source, n)
			}
		}
		if r == evidence.None {
			continue
		}
		if old, ok := first[it.Source]; ok && old != r {
			several[it.Source] = true
		}
		first[it.Source] = r
		if it.Kind == evidence.RankInfo {
			once(intro, it.Source, r)
		}
	}
	by := map[int]int{} // rank -> source
	for src, r := range intro {
		s := &t.Sources[src]
		if r == evidence.None || several[src] || s.Artifact.Owner.Rank != evidence.None || !runlike(s) {
			delete(intro, src)
			continue
		}
		once(by, r, src)
	}
	for src, r := range intro {
		if by[r] != src { // two logs of one rank, or two runs
			delete(intro, src)
		}
	}
	owners := 0
	for i := range t.Sources {
		if t.Sources[i].Artifact.Owner.Rank != evidence.None {
			owners++
		}
	}
	t.intro = map[int]int{}
	for src, r := range intro {
		alone := t.Sources[src].Artifact.Owner.LocalRank != evidence.None
		if len(intro)+owners >= 2 || alone {
			t.intro[src] = r
		}
	}
	return several
}

// nodeOf returns the rank of the node that a launch command names (torchrun and
// torch.distributed.launch, with - or _) where it starts one worker on each of several.
func nodeOf(command string) (int, bool) {
	node, each, nodes := evidence.None, evidence.None, evidence.None
	words := strings.Fields(command)
	for i, w := range words {
		name, value, assigned := strings.Cut(strings.ReplaceAll(strings.TrimLeft(w, "-"), "-", "_"), "=")
		if !strings.HasPrefix(w, "--") {
			continue
		}
		if !assigned && i+1 < len(words) {
			value = words[i+1]
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			continue
		}
		switch name {
		case "node_rank":
			node = n
		case "nproc_per_node":
			each = n
		case "nnodes":
			nodes = n
		}
	}
	return node, each == 1 && nodes > 1 && node >= 0 && node < nodes
}

// rankOf is the rank of a line of a source that states rank.
func (t *Timeline) rankOf(src, rank int) int {
	if rank != evidence.None {
		return rank
	}
	if r := t.Sources[src].Artifact.Owner.Rank; r != evidence.None {
		return r
	}
	if r, ok := t.intro[src]; ok {
		return r
	}
	return evidence.None
}

// sourceOf finds the source of an artifact.
func (t *Timeline) sourceOf(path string) (int, bool) {
	if t.paths == nil {
		t.paths = map[string]int{}
		for i := range t.Sources {
			t.paths[t.Sources[i].Artifact.Path] = i
		}
	}
	i, ok := t.paths[path]
	return i, ok
}

// placeRanks fills the host of lines whose rank states it elsewhere.
func (t *Timeline) placeRanks() {
	t.hostOf = map[int]string{}
	stated := map[int]*Item{}
	for _, it := range t.Items {
		r, h := it.Who.Rank, it.Who.Host
		if r == evidence.None || h == "" || it.Stamp.Clock == "boot" {
			continue
		}
		old, ok := t.hostOf[r]
		switch {
		case !ok:
			t.hostOf[r], stated[r] = h, it
		case old == "" || evidence.SameHost(old, h) || t.nodes[old].node == h:
		case t.nodes[h].node == old: // the pod says more than the machine
			t.hostOf[r], stated[r] = h, it
		default: // a relaunch elsewhere, a rank of another job, or a wrong statement
			if it.Who.Launch == stated[r].Who.Launch && it.Kind == evidence.RankInfo && stated[r].Kind == evidence.RankInfo {
				t.conflict(fmt.Sprintf("Rank %d is said to run on %s and on %s; neither is taken.", r, old, h), stated[r].Span, it.Span)
			}
			t.hostOf[r] = ""
		}
	}
	for _, it := range t.Items {
		if it.Who.Host == "" && it.Who.Rank != evidence.None {
			it.Who.Host = t.hostOf[it.Who.Rank]
		}
	}
}

// mostOnHost is how many ranks a host may have.
const mostOnHost = 16

// oneHost reports whether all of the job ran on one host: it is one process, or the local
// rank of its last one is the global one, and the artifacts name no second host.
func (t *Timeline) oneHost() bool {
	if t.multi {
		return false
	}
	world, local := 0, map[int]int{}
	for _, it := range t.Items {
		world = max(world, it.Who.Rank+1, int(it.Attrs["world"].I))
		if it.Kind == evidence.RankInfo && it.Who.LocalRank != evidence.None {
			local[it.Who.Rank] = it.Who.LocalRank
		}
	}
	l, ok := local[world-1]
	return world <= 1 || ok && l == world-1
}

// seat collects what the lines of each rank say of its process and device.
func (t *Timeline) seat() {
	t.seats = map[int]*Seat{}
	for _, it := range t.Items {
		w := it.Who
		if w.Rank == evidence.None || it.Stamp.Clock == "boot" || evidence.Beside(t.Sources[it.Source].Artifact.Kind) {
			continue
		}
		s := t.seats[w.Rank]
		if s == nil {
			s = &Seat{Rank: w.Rank, LocalRank: evidence.None, Device: evidence.None, PID: evidence.None, physical: evidence.None, Host: t.hostOf[w.Rank]}
			t.seats[w.Rank] = s
		}
		if s.LocalRank == evidence.None {
			s.LocalRank = w.LocalRank
		}
		if s.PID == evidence.None {
			s.PID = w.PID
		}
		if s.Device == evidence.None {
			s.Device = w.Device
		}
		if v, ok := it.Attrs["physical"]; ok && s.physical == evidence.None {
			s.physical = int(v.I)
		}
		if b := evidence.BusID(w.BusID); b != "" && s.BusID == "" && (it.Kind == evidence.RankInfo || it.Kind == evidence.CommCreated) {
			s.BusID, s.proof = b, it.Span
		}
	}
}

// tasks gives the end of a task that srun reports to the rank of that number, where the
// rank works on the host that srun names and the tasks are processes of training, not one
// launcher for each host: then some host has two, or the number is not the host's own. Where
// accounting shows how many nodes the job had, a number as high as that or higher
// says so as well, and no word of that rank is needed.
func (t *Timeline) tasks() {
	ordinal := map[string]int{} // of the hosts, by their lowest rank
	var ranks []int
	for r := range t.seats {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	for _, r := range ranks {
		if h := t.seats[r].Host; h != "" {
			if _, ok := ordinal[h]; !ok {
				ordinal[h] = len(ordinal)
			}
		}
	}
	nodes := 0
	for _, l := range t.allocations() {
		if n := nodesOf(l); nodes == 0 || n == nodes {
			nodes = n
		} else { // records of several jobs, or of steps on some of the nodes
			nodes = 1 << 30
		}
	}
	on, two := map[string]int{}, false
	for _, it := range t.Items {
		if n, ok := taskOf(it); ok {
			old, seen := on[it.Who.Host]
			two = two || seen && old != n
			on[it.Who.Host] = n
		}
	}
	for _, it := range t.Items {
		n, ok := taskOf(it)
		if !ok || it.Who.Rank != evidence.None {
			continue
		}
		if nodes > 0 && n >= nodes {
			it.Who.Rank = n
			continue
		}
		if s := t.seats[n]; s != nil && s.Host != "" && evidence.SameHost(s.Host, it.Who.Host) && (two || ordinal[s.Host] != n) {
			it.Who.Rank = n
		}
	}
}

// taskOf is the task of srun whose end it reports.
func taskOf(it *Item) (int, bool) {
	v, ok := it.Attrs["task"]
	return int(v.I), ok && it.Who.Host != "" && (it.Kind == evidence.Exited || it.Kind == evidence.HostOOMSched && it.Attrs.Str("what") == "srun" && strings.Contains(it.Text, fmt.Sprintf("task %d:", v.I)))
}

// devices ties ranks to devices by bus id, from their own lines or a table of the
// host's devices, and gives records that name a bus id their rank.
func (t *Timeline) devices() {
	table, ids, size := map[slotOn]string{}, map[busOn]string{}, map[string]int{}
	for _, it := range t.Items {
		if it.Kind != evidence.GPUUsage && it.Kind != evidence.GPUProcess {
			continue
		}
		b, d := evidence.BusID(it.Who.BusID), it.Who.Device
		if v, ok := it.Attrs["gpu"]; ok && d == evidence.None {
			d = int(v.I)
		}
		if b == "" {
			continue
		}
		if u := it.Attrs.Str("uuid"); u != "" {
			ids[busOn{it.Who.Host, b}] = u
		}
		if d == evidence.None {
			continue
		}
		k := slotOn{it.Who.Host, d}
		old, ok := table[k]
		switch {
		case !ok:
			table[k] = b
			size[it.Who.Host]++
		case old != b:
			table[k] = "" // the devices were numbered anew
		}
	}
	t.bySMI(table, size)
	rankAt := map[busOn]int{}
	var ranks []int
	for r := range t.seats {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	for _, r := range ranks {
		s := t.seats[r]
		if s.BusID == "" {
			continue
		}
		if s.UUID == "" {
			s.UUID = ids[busOn{s.Host, s.BusID}]
		}
		k := busOn{s.Host, s.BusID}
		if old, ok := rankAt[k]; ok && old != evidence.None && (s.Host != "" || !t.multi && len(ranks) <= mostOnHost) {
			t.conflict(fmt.Sprintf("Ranks %d and %d are both said to use the device at %s%s; a fault of that device belongs to neither.", old, r, s.BusID, onHost(s.Host)), proofs(t.seats[old], s)...)
		}
		once(rankAt, k, r)
	}
	for _, it := range t.Items {
		if it.Who.BusID == "" || it.Who.Rank != evidence.None {
			continue
		}
		b := evidence.BusID(it.Who.BusID)
		r, ok := rankAt[busOn{it.Who.Host, b}]
		if !ok && (it.Who.Host == "" || !t.multi) {
			r, ok = onlyBus(rankAt, b)
		}
		if ok {
			it.Who.Rank = r
		}
	}
}

func proofs(seats ...*Seat) (out []evidence.Span) {
	for _, s := range seats {
		if s != nil && s.proof.Artifact != "" {
			out = append(out, s.proof)
		}
	}
	return out
}

func onHost(h string) string {
	if h == "" {
		return ""
	}
	return " of " + h
}

// onlyBus is the rank on a bus id that only one host has in evidence.
func onlyBus(rankAt map[busOn]int, b string) (int, bool) {
	rank, n := evidence.None, 0
	for k, r := range rankAt {
		if k.bus == b {
			rank, n = r, n+1
		}
	}
	return rank, n == 1
}

// bySMI gives ranks whose device index is known the bus id that the table of their
// host has at that index. A local rank is taken for the index only where the
// host has exactly as many devices as the job's hosts have local ranks, so that all are
// visible in order.
func (t *Timeline) bySMI(table map[slotOn]string, size map[string]int) {
	locals := 0
	for _, s := range t.seats {
		locals = max(locals, s.LocalRank+1)
	}
	for _, s := range t.seats {
		if s.BusID != "" {
			continue
		}
		host := s.Host
		if _, ok := size[host]; !ok && !t.multi && len(size) == 1 {
			for h := range size {
				host = h
			}
		}
		d := s.physical
		if d == evidence.None {
			d = s.Device
		}
		if d == evidence.None || s.physical == evidence.None && d == 0 && s.LocalRank > 0 { // with one visible device each, all say 0
			d = s.LocalRank
			if d == evidence.None || locals != size[host] {
				continue
			}
		}
		s.BusID = table[slotOn{host, d}]
	}
}

// onlyDevice gives the kernel's records of device faults the rank that tells of one,
// where there is one such rank and one such device.
func (t *Timeline) onlyDevice() {
	words := []evidence.Kind{evidence.ECCError, evidence.LinkError, evidence.DeviceLost, evidence.CUDAFault}
	kernels := []evidence.Kind{evidence.Xid, evidence.DeviceLost}
	rank, ranks, devices := evidence.None, map[int]bool{}, map[busOn]bool{}
	for _, it := range t.Items {
		if slices.Contains(words, it.Kind) && it.Who.Rank != evidence.None && it.Stamp.Clock != "boot" {
			rank = it.Who.Rank
			ranks[rank] = true
		}
		if slices.Contains(kernels, it.Kind) {
			devices[busOn{it.Who.Host, cmp.Or(evidence.BusID(it.Who.BusID), it.Who.BusID)}] = true
		}
	}
	if len(ranks) != 1 || len(devices) != 1 {
		return
	}
	for _, it := range t.Items {
		if own, b := evidence.BusID(t.Seat(rank).BusID), evidence.BusID(it.Who.BusID); own != "" && b != "" && own != b {
			continue // the rank says on which device it works
		}
		if h := t.hostOf[rank]; slices.Contains(kernels, it.Kind) && it.Who.Rank == evidence.None && (h == "" || it.Who.Host == "" || evidence.SameHost(h, it.Who.Host)) {
			it.Who.Rank = rank
		}
	}
}

// OtherDevice reports whether a record of the machine names another GPU than the one on
// which the rank of b says that it works. A link is named by the port at either end.
func (t *Timeline) OtherDevice(record, b *Item) bool {
	if record.Attempt >= 0 || record.Kind == evidence.LinkError || record.Who.Rank != evidence.None || b.Who.Rank == evidence.None {
		return false
	}
	x, y := evidence.BusID(record.Who.BusID), evidence.BusID(t.Seat(b.Who.Rank).BusID)
	return x != "" && y != "" && x != y
}

// hostsSaid returns, by source, the host whose log the lines say it is. Such is
// the one that torchrun's summary names, since each agent lists its own workers
// only, or else the one that most of the log's events state while none states
// another. Lines that tell of the end of a process, perhaps of one elsewhere
// (srun, mpirun), do not count.
func (t *Timeline) hostsSaid() map[int]string {
	type tally struct {
		events, stating int
		summary, lines  map[string]bool
	}
	of := map[int]*tally{}
	for _, it := range t.Items {
		n := of[it.Source]
		if n == nil {
			n = &tally{summary: map[string]bool{}, lines: map[string]bool{}}
			of[it.Source] = n
		}
		n.events++
		if it.Who.Host == "" || it.Stamp.Clock == "boot" {
			continue
		}
		_, agent := it.Attrs["first_observed"]
		switch r := role(it); {
		case it.Kind == evidence.LauncherSummary && agent:
			n.summary[it.Who.Host] = true
		case r == evidence.RoleExit || r == evidence.RoleStop:
		default:
			n.stating++
			n.lines[it.Who.Host] = true
		}
	}
	said := map[int]string{}
	for i, n := range of {
		from := n.summary
		if len(from) == 0 && n.stating*2 > n.events {
			from = n.lines
		}
		if len(from) == 1 {
			for h := range from {
				said[i] = h
			}
		}
	}
	return said
}

func role(it *Item) evidence.Role {
	if s := evidence.SpecOf(it.Kind); s != nil {
		return s.Role
	}
	return 0
}

// ownDevices maps the processes of the run's own lines to their device, if at
// least two are seen and no two of a host share one.
func (t *Timeline) ownDevices() map[pidOn]int {
	of := map[pidOn]int{}
	taken := map[slotOn]pidOn{}
	for _, it := range t.Items {
		w := it.Who
		if w.PID == evidence.None || w.Device == evidence.None || it.Kind == evidence.GPUProcess || it.Stamp.Clock == "boot" {
			continue
		}
		k := pidOn{w.Host, w.PID}
		if d, ok := of[k]; ok && d != w.Device {
			return nil
		}
		slot := slotOn{w.Host, w.Device}
		if p, ok := taken[slot]; ok && p != k {
			return nil
		}
		of[k], taken[slot] = w.Device, k
	}
	if len(of) < 2 {
		return nil
	}
	return of
}
