package timeline

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// elasticDir matches the folder that torchrun keeps for one worker of one start:
// attempt_<k>/<local rank>, below a folder of the run.
var elasticDir = lazyre.New(`(?:^|[/!])attempt_\d+/\d+$`)

// workerDir is the folder of the worker whose file a source is, "" where it lies in
// no such folder.
func workerDir(s *Source) string {
	dir := path.Dir(s.Artifact.Path)
	if s.Artifact.Owner.LocalRank == evidence.None || !elasticDir.MatchString(dir) {
		return ""
	}
	return dir
}

// workers gives the files of one worker's folder the rank that lines of any of them
// state, where all that state one state the same: output, errors and error file are of
// one process. An agent numbers its workers in a row, so that the rank of one tells those of
// the others below the same folder.
func (t *Timeline) workers() {
	rank := map[string]int{} // by folder
	for _, it := range t.Items {
		if dir := workerDir(&t.Sources[it.Source]); dir != "" && it.Who.Rank != evidence.None && role(it) != evidence.RoleExit {
			once(rank, dir, it.Who.Rank)
		}
	}
	base := map[string]int{} // by folder of the start: the rank of local rank 0
	for dir, r := range rank {
		local, err := strconv.Atoi(path.Base(dir))
		if r == evidence.None || err != nil || r < local {
			continue
		}
		once(base, path.Dir(dir), r-local)
	}
	for i := range t.Sources {
		s := &t.Sources[i]
		dir := workerDir(s)
		if dir == "" || s.Artifact.Owner.Rank != evidence.None {
			continue
		}
		if r, ok := rank[dir]; ok {
			if r != evidence.None {
				t.intro[i] = r
			}
		} else if b, ok := base[path.Dir(dir)]; ok && b != evidence.None {
			t.intro[i] = b + s.Artifact.Owner.LocalRank
		}
	}
}

// WorkerFolders is how many workers had a folder of torchrun in an attempt: of each
// agent, as many as its highest local rank says, also where they printed nothing.
func (t *Timeline) WorkerFolders(attempt int) int {
	starts := map[string]bool{}
	for _, p := range t.Attempts[attempt].Parts {
		if dir := workerDir(&t.Sources[p.Source]); dir != "" {
			starts[path.Dir(dir)] = true
		}
	}
	most := map[string]int{}
	for i := range t.Sources {
		if dir := workerDir(&t.Sources[i]); dir != "" && starts[path.Dir(dir)] {
			start := path.Dir(dir)
			most[start] = max(most[start], t.Sources[i].Artifact.Owner.LocalRank+1)
		}
	}
	n := 0
	for _, v := range most {
		n += v
	}
	return n
}

// oneNamed has a folder that is named for a host go by the host that the logs in it
// state, where they state one and no other folder's logs state the same.
func (t *Timeline) oneNamed() {
	of, back := map[string]string{}, map[string]string{}
	stated := func(m map[string]string, k, v string) {
		if old, ok := m[k]; ok && old != v {
			v = ""
		}
		m[k] = v
	}
	for i, h := range t.said {
		if o := t.Sources[i].Artifact.Owner.Host; o != "" {
			stated(of, o, h)
			stated(back, h, o)
		}
	}
	for i := range t.Sources {
		o := t.Sources[i].Artifact.Owner.Host
		if _, ok := t.said[i]; ok || o == "" {
			continue
		}
		if h := of[o]; h != "" && back[h] == o {
			t.said[i] = h
		}
	}
}

// NodeOf is the machine on which a pod ran, "" where no record says so or host is no pod.
func (t *Timeline) NodeOf(host string) (string, evidence.Span) {
	p := t.nodes[host]
	return p.node, p.proof
}

// Elsewhere reports whether an orchestrator's record of a node is of one on which none of the
// job's pods ran, where it is known of any where it did: what happens there happens to
// others. The job's pods are those whose logs are in evidence, or all where none has one.
func (t *Timeline) Elsewhere(it *Item) bool {
	if t.Sources[it.Source].Artifact.Kind != "kube" || it.Who.Host == "" || it.Who.Rank != evidence.None {
		return false
	}
	if _, pod := t.nodes[it.Who.Host]; pod || len(t.nodes) == 0 {
		return false
	}
	logged := map[string]bool{}
	for i := range t.Sources {
		if a := &t.Sources[i].Artifact; a.Owner.Host != "" && !evidence.Beside(a.Kind) {
			_, pod := t.nodes[a.Owner.Host]
			logged[a.Owner.Host] = pod
		}
	}
	any := false
	for _, pod := range logged {
		any = any || pod
	}
	for pod, p := range t.nodes {
		if p.node == it.Who.Host && (!any || logged[pod]) {
			return false
		}
	}
	return true
}

// A placing says on which machine a pod ran.
type placing struct {
	node  string
	proof evidence.Span
}

// pods fills t.nodes from the orchestrator's records. Of a pod that is said to run on
// two machines nothing is kept.
func (t *Timeline) pods() {
	t.nodes = map[string]placing{}
	for _, it := range t.Items {
		node := it.Attrs.Str("nodes")
		if it.Kind != evidence.JobRecord && it.Kind != evidence.JobEvent || node == "" || it.Who.Host == "" || t.Sources[it.Source].Artifact.Kind != "kube" {
			continue
		}
		old, ok := t.nodes[it.Who.Host]
		switch {
		case !ok:
			t.nodes[it.Who.Host] = placing{node, it.Span}
		case old.node != node:
			t.nodes[it.Who.Host] = placing{}
		}
	}
	for _, it := range t.Items {
		if it.Kind == evidence.NodeFailure && t.Sources[it.Source].Artifact.Kind == "kube" {
			if p := t.nodes[it.Who.Host]; p.node != "" { // the machine failed, and the pod with it
				it.Who.Host = p.node
			}
		}
	}
}

// mostOrdinals is up to how many hosts their numbers are in the same order by value and by
// letters, in either of which launchers number them.
const mostOrdinals = 10

// ordinal splits a name that ends in a number of one digit.
func ordinal(host string) (stem string, n int, ok bool) {
	i := len(host) - 1
	if i < 1 || host[i] < '0' || host[i] > '9' || host[i-1] >= '0' && host[i-1] <= '9' {
		return "", 0, false
	}
	return host[:i], int(host[i] - '0'), true
}

// perHost is how many processes each host of the job has and how many the job has, as
// its launch states them; zeros where launches differ or none does.
func (t *Timeline) perHost() (per, world int) {
	for i := range t.Sources {
		for _, f := range t.Sources[i].Facts {
			n := int(f.Value.I)
			switch f.Name {
			case "setting.nproc_per_node", "setting.nproc-per-node":
				v, err := strconv.Atoi(f.Value.S)
				if err != nil || per != 0 && per != v {
					return 0, 0
				}
				per = v
			case "run.world":
				if world != 0 && world != n {
					return 0, 0
				}
				world = n
			}
		}
	}
	if per < 1 || world < per || world%per != 0 {
		return 0, 0
	}
	return per, world
}

// seatsByNumber gives rank to the processes of hosts that show only local ranks, where
// the evidence determines which host of the job it is: the launch states how many
// processes each host has, the hosts are numbered, and hosts below and above it show
// by their ranks that their numbers are their places.
func (t *Timeline) seatsByNumber() {
	per, world := t.perHost()
	if per < 2 || world/per < 2 || world/per > mostOrdinals {
		return
	}
	place := map[string]int{} // by host
	for _, it := range t.Items {
		if it.Who.Rank != evidence.None && it.Who.Host != "" && role(it) != evidence.RoleExit && it.Stamp.Clock != "boot" {
			once(place, it.Who.Host, it.Who.Rank/per)
		}
	}
	known := map[string]map[int]bool{} // stem -> numbers that are places
	wrong := map[string]bool{}
	for _, h := range slices.Sorted(maps.Keys(place)) {
		stem, n, ok := ordinal(h)
		if !ok {
			continue
		}
		if place[h] != n {
			wrong[stem] = true
			continue
		}
		if known[stem] == nil {
			known[stem] = map[int]bool{}
		}
		known[stem][n] = true
	}
	for _, it := range t.Items {
		w := &it.Who
		if w.Rank != evidence.None || w.LocalRank < 0 || w.LocalRank >= per {
			continue
		}
		stem, n, ok := ordinal(w.Host)
		if !ok || wrong[stem] || n >= world/per {
			continue
		}
		below, above := known[stem][n], known[stem][n]
		for k := range known[stem] {
			below, above = below || k < n, above || k > n
		}
		if below && above {
			w.Rank = n*per + w.LocalRank
		}
	}
}

// downReasons are the words by which the scheduler says that a node does not answer any
// more, in its state or the reason that it keeps.
var downReasons = lazyre.New(`(?i)not responding|unexpectedly rebooted|^down|not_responding|no_respond`)

// maxGone bounds the records of lost nodes; where so many are lost, none is named.
const maxGone = 256

// maxLists bounds the lists of nodes that records of the job show.
const maxLists = 64

// allocations are the lists of nodes that accounting shows, each once.
func (t *Timeline) allocations() (lists []string) {
	for _, it := range t.Items {
		if n := it.Attrs.Str("nodes"); it.Kind == evidence.JobRecord && n != "" && len(lists) < maxLists && !slices.Contains(lists, n) {
			lists = append(lists, n)
		}
	}
	return lists
}

// longDown is how far the scheduler's record of a node may lie from the failure of the job.
const longDown = time.Hour

// failedNodes names the machine of a failure for which the scheduler names none: the only
// one of the job's nodes that its records call gone, near the time of the failure
// where both have one.
func (t *Timeline) failedNodes() {
	t.down = map[*Item]evidence.Span{}
	for _, it := range t.Items {
		if it.Kind == evidence.NodeFailure && it.Who.Host != "" {
			return // one of them names its machine itself
		}
	}
	lists := t.allocations()
	var gone []*Item
	for _, x := range t.Items {
		if x.Kind != evidence.NodeState || x.Who.Host == "" || len(gone) >= maxGone || !downReasons.MatchString(x.Attrs.Str("reason")) && !downReasons.MatchString(x.Attrs.Str("state")) {
			continue
		}
		if slices.ContainsFunc(lists, func(l string) bool { return inList(l, x.Who.Host) }) {
			gone = append(gone, x)
		}
	}
	for _, it := range t.Items {
		if it.Kind != evidence.NodeFailure || it.Who.Host != "" || len(gone) >= maxGone {
			continue
		}
		node, proof, several := "", evidence.Span{}, false
		for _, x := range gone {
			if it.Stamp.Known() && x.Stamp.Known() && it.Stamp.Time.Sub(x.Stamp.Time).Abs() > longDown {
				continue
			}
			several = several || node != "" && node != x.Who.Host
			if node == "" {
				node, proof = x.Who.Host, x.Span
			}
		}
		if node != "" && !several {
			it.Who.Host, t.down[it] = node, proof
		}
	}
}

// NamedBy is the record that names the machine of a failure whose own line does not.
func (t *Timeline) NamedBy(it *Item) (evidence.Span, bool) {
	sp, ok := t.down[it]
	return sp, ok
}

// inList reports whether a host is in a list as Slurm prints it: names and prefixes with
// ranges in brackets, gpu-c[001-004,007],login1.
func inList(list, host string) bool {
	for list != "" {
		end, depth := len(list), 0
		for i := range len(list) {
			switch list[i] {
			case '[':
				depth++
			case ']':
				depth--
			}
			if list[i] == ',' && depth == 0 {
				end = i
				break
			}
		}
		one := list[:end]
		list = strings.TrimPrefix(list[end:], ",")
		prefix, ranges, ok := strings.Cut(one, "[")
		if !ok {
			if one == host {
				return true
			}
			continue
		}
		ranges, rest, _ := strings.Cut(ranges, "]")
		number, begins := strings.CutPrefix(host, prefix)
		number, ends := strings.CutSuffix(number, rest)
		if !begins || !ends || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		for _, r := range strings.Split(ranges, ",") {
			lo, hi, ok := strings.Cut(r, "-")
			if !ok {
				hi = lo
			}
			if len(number) == len(lo) && len(lo) == len(hi) && lo <= number && number <= hi {
				return true
			}
		}
	}
	return false
}

// nodesOf counts the hosts of a list as Slurm prints it; 0 where it is no such list.
func nodesOf(list string) int {
	n, depth := 0, 0
	for i := 0; i < len(list); {
		switch list[i] {
		case '[':
			depth = 1
			j := strings.IndexByte(list[i:], ']')
			if j < 0 {
				return 0
			}
			for _, r := range strings.Split(list[i+1:i+j], ",") {
				lo, hi, is := strings.Cut(r, "-")
				if !is {
					hi = lo
				}
				a, errA := strconv.Atoi(lo)
				b, errB := strconv.Atoi(hi)
				if errA != nil || errB != nil || b < a || b-a > 1<<20 {
					return 0
				}
				n += b - a + 1
			}
			i += j + 1
		case ',':
			if depth == 0 {
				n++
			}
			depth = 0
			i++
		default:
			i++
		}
	}
	if depth == 0 && list != "" {
		n++
	}
	return n
}

// localIsGlobal reports whether local ranks are ranks: the evidence is of one host, it
// shows more than a launcher's word on a local rank (devices says that each process
// has one of its own), and neither the launch, nor a host's
// number within the job, nor a rank that differs from its local one speaks of more hosts.
func (t *Timeline) localIsGlobal(devices bool) bool {
	if t.multi {
		return false
	}
	if per, world := t.perHost(); world > 0 {
		return per == world
	}
	for _, h := range t.Hosts {
		for _, role := range []string{"-worker-", "-launcher-", "-trainer-"} {
			if _, n, ok := strings.Cut(h, role); ok && n != "0" { // the first replica of a role, or one more beside a master
				return false
			}
		}
	}
	shown := devices || len(t.Hosts) == 1
	starts := map[string]bool{}
	for i := range t.Sources {
		if dir := workerDir(&t.Sources[i]); dir != "" {
			starts[path.Dir(path.Dir(dir))] = true
		}
	}
	shown = shown || len(starts) == 1
	local := evidence.None
	for _, it := range t.Items {
		w := it.Who
		local = max(local, w.LocalRank)
		switch {
		case it.Stamp.Clock == "boot":
		case w.Rank == evidence.None: // other launchers than torchrun number the processes of the whole run
			shown = shown || w.LocalRank != evidence.None && it.Attrs.Str("what") != "torchelastic"
		case w.LocalRank != evidence.None && w.LocalRank != w.Rank:
			return false
		default:
			shown = true
		}
	}
	world := 0
	for i := range t.Sources {
		for _, f := range t.Sources[i].Facts {
			if f.Name == "run.world" {
				world = max(world, int(f.Value.I))
			}
		}
	}
	return shown || world > 0 && 2*(local+1) > world // two hosts of as many would be more than all
}
