package ranklog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Of the lines at the start of an artifact survey looks at the first surveyAll, and
// at one in surveyEvery after them.
const (
	surveyAll   = 200
	surveyEvery = 8
)

// survey looks at the start of an artifact to decide what its prefixes
// mean: a number or word and a colon is a task or host only where
// nearly every line has one, because it is also how messages begin. Behind the first
// lines a part of them stands for all, but for the names of hosts.
func (s *session) survey(head []byte) framing {
	var f framing
	slurm := bytes.Contains(head, []byte("SLURM")) || strings.Contains(s.art.Path, "slurm")
	elastic := bytes.Contains(head, []byte("torchrun")) || bytes.Contains(head, []byte("torch.distributed.run")) || bytes.Contains(head, []byte("[default"))
	all, lines, tasks, brackets, teed, hooked := 0, 0, 0, 0, 0, 0
	taskValues, bracketValues := map[int]bool{}, map[int]bool{}
	hosts := map[string]int{}
	writers, shortWriters, shorts := map[int]int{}, map[int]int{}, 0
	names := map[string]int{}
	var pods podTally
	for i := 0; i < 4000 && len(head) > 0; i++ {
		raw, rest, _ := bytes.Cut(head, []byte("\n"))
		head = rest
		if cr := bytes.LastIndexByte(bytes.TrimRight(raw, "\r"), '\r'); cr >= 0 {
			raw = raw[cr+1:]
		}
		part := i >= surveyAll && i%surveyEvery != 0
		if part && bytes.Index(raw[:min(len(raw), 128)], []byte(": ")) < 2 {
			if len(bytes.TrimSpace(raw)) > 0 {
				all++
			}
			continue
		}
		text := clean(unframe(raw).body)
		if text == "" {
			continue
		}
		all++
		if i := strings.Index(text[:min(len(text), 65)], ": "); i > 1 && hostName(text[:i]) && !strings.HasSuffix(text[:i], "Error") &&
			strings.Trim(text[i+2:], "0123456789.eE+-") != "" { // a key and its number
			hosts[text[:i]]++
		}
		if part {
			continue
		}
		lines++
		pods.add(text)
		h := head0()
		probe := framing{srun: true}
		if n := probe.peelTask(text, &h); n > 0 {
			tasks++
			taskValues[h.key.task] = true
		}
		if text[0] == '[' {
			if v, e := decimal(text, 1); e > 1 && e < 7 && strings.HasPrefix(text[e:], "] ") {
				brackets++
				bracketValues[v] = true
			}
			if rest, ok := strings.CutPrefix(text, "[rank"); ok {
				if _, e := decimal(rest, 0); e > 0 && strings.HasPrefix(rest[e:], "]:") && len(rest) > e+2 {
					if c := rest[e+2]; c == ' ' && !strings.HasPrefix(rest[e+2:], "  ") || strings.HasPrefix(rest[e+2:], "   ") || c == '[' {
						hooked++
					} else {
						teed++
					}
				}
			}
		}
		// Who the lines themselves say they are from.
		h = head0()
		at := probe.peelLoggers(text, &h)
		statedRank(text[at:], &h, at > 0)
		if n, ok := shortRank(text); ok {
			shorts++
			shortWriters[n]++
		}
		if h.who.Rank != evidence.None && text[0] != '[' {
			writers[h.who.Rank]++
			names[h.who.Host]++
		}
	}
	f.srun = tasks*10 >= lines*8 && lines > 0 && (len(taskValues) >= 2 || slurm || lines >= 20)
	f.srunRank = f.srun && !elastic // else the task is a node
	f.bracket = brackets*10 >= lines*8 && lines >= 2 && len(bracketValues) >= 2 && ascendingIsRare(bracketValues, brackets)
	f.tee = teed > hooked && teed >= 2
	f.pods = pods.of(lines)
	total, numbered := 0, true
	for h, n := range hosts {
		total += n
		numbered = numbered && strings.ContainsAny(h, "0123456789")
	}
	if total*10 >= all*8 && len(hosts) >= 2 && len(hosts) <= 4096 && (numbered || total >= 2*len(hosts)) {
		f.hosts = map[string]bool{}
		for h := range hosts {
			f.hosts[h] = true
		}
	}
	if f.short = shorts >= 3 && shorts*2 >= lines; f.short {
		writers = shortWriters
	}
	s.owner(lines, writers, names)
	return f
}

// ascendingIsRare tells ranks from line numbers: ranks repeat.
func ascendingIsRare(values map[int]bool, lines int) bool { return len(values)*2 <= lines }

func head0() head { return head{who: evidence.Nobody(), key: noKey} }

// peelLoggers takes only logger prefixes off.
func (f *framing) peelLoggers(s string, h *head) int {
	at := 0
	for range 3 {
		n := peelLogger(s[at:], h)
		if n == 0 {
			break
		}
		at += n
	}
	return at
}

// owner states whose artifact this is, where nearly all its lines name one rank. The
// name of a folder yields to them: it may be that of one run among several, and holds
// all ranks.
func (s *session) owner(lines int, writers map[int]int, names map[string]int) {
	if len(writers) != 1 || s.base.Rank != evidence.None && strings.Contains(s.art.Owner.Basis, "file name ") {
		return
	}
	for rank, n := range writers {
		if n < 2 || n*10 < lines*4 || rank == s.base.Rank {
			return
		}
		s.base.Rank = rank
	}
	host := ""
	if len(names) == 1 {
		for h := range names {
			host = h
		}
	}
	if s.base.Host == "" {
		s.base.Host = host
	}
	s.sink.Owner(evidence.Owner{Host: s.base.Host, Rank: s.base.Rank, LocalRank: evidence.None, Basis: "its lines name the rank"})
}

// identities are the lines that say which process or device a rank is, in forms
// that no prefix has.
var (
	ncclComm  = lazyre.New(`comm 0x[0-9a-f]+ rank (\d+) n[Rr]anks (\d+) cudaDev (\d+)(?: nvmlDev (\d+))?(?: busId ([0-9a-fA-F:.]+))?`)
	hfProcess = lazyre.New(`[Pp]rocess rank: (\d+)(?:, world size: (\d+))?, device: (?:cuda:|npu:|xpu:)(\d+)`)
	rayWorld  = lazyre.New(`\(ip=([\d.a-fA-F:]+), pid=(\d+)\) world_rank=(\d+), local_rank=(\d+)(?:, node_rank=\d+)?`)
)

// learn reads identities from m that no wording has read, and keeps them for later
// lines of the artifact.
func (s *session) learn(m *message) {
	who := m.who
	world, gpu := "", ""
	switch {
	case (strings.Contains(m.text, "cuda:") || strings.Contains(m.text, "bus")) && s.pairs(m):
		return
	case strings.Contains(m.text, " cudaDev "):
		if f := ncclComm.FindStringSubmatch(m.text); f != nil && who.PID != evidence.None {
			s.communicator(m, f)
		}
		return
	case strings.Contains(m.text, "rocess rank: "):
		f := hfProcess.FindStringSubmatch(m.text)
		if f == nil {
			return
		}
		if n, _ := decimal(f[1], 0); f[2] == "" { // older scripts print the local rank there
			who.LocalRank = n
		} else {
			who.Rank = n
		}
		world, gpu = f[2], f[3]
	case strings.Contains(m.text, "world_rank="):
		f := rayWorld.FindStringSubmatch(m.text)
		if f == nil {
			return
		}
		who.Host = f[1]
		who.PID, _ = decimal(f[2], 0)
		who.Rank, _ = decimal(f[3], 0)
		who.LocalRank, _ = decimal(f[4], 0)
	case strings.Contains(m.text, "RANK=") || strings.Contains(m.text, "WORLD_SIZE"), strings.Contains(m.text, "world_size"), strings.Contains(m.text, "world size"):
		s.introduce(m)
		return
	default:
		return
	}
	if !m.ranked {
		s.emit(s.rankInfo(m, who, world, gpu))
	}
}

// A line of nothing but names and values in which a process says who it is and where:
// "rank=3 local_rank=3 pid=4100 device=cuda:3", "host n4 rank 3 device cuda:3 bus 0000:5d:00.0".
var (
	onlyPairs = lazyre.New(`(?i)^(?:(?:global_rank|rank|local_rank|world_size|hostname|host|node|device|bus_id|bus|pci|pid|uuid|CUDA_VISIBLE_DEVICES)(?:=|: ?| )[\w.:,-]+(?:[ ,;|]+|$))+$`)
	onePair   = lazyre.New(`(?i)\b(global_rank|rank|local_rank|world_size|hostname|host|node|device|bus_id|bus|pci|pid|uuid|CUDA_VISIBLE_DEVICES)(?:=|: ?| )([\w.:,-]+)`)
)

// pairs reads such a line. It counts where it states a rank and a device; a rank that the
// line itself was prefixed with must be the same. It says whether the line is one.
func (s *session) pairs(m *message) bool {
	if m.ranked || len(m.text) > 512 || !onlyPairs.MatchString(m.text) {
		return false
	}
	who, world, gpu, list := m.who, "", "", ""
	ranked := false
	for _, f := range onePair.FindAllStringSubmatch(m.text, 16) {
		value := strings.TrimRight(f[2], ",")
		n, end := decimal(value, 0)
		whole := end > 0 && end == len(value)
		switch strings.ToLower(f[1]) {
		case "rank", "global_rank":
			if !whole || who.Rank != evidence.None && who.Rank != n {
				return false
			}
			who.Rank, ranked = n, true
		case "local_rank":
			if !whole || who.LocalRank != evidence.None && who.LocalRank != n {
				return false
			}
			who.LocalRank, ranked = n, true
		case "world_size":
			world = value
		case "pid":
			if whole {
				who.PID = n
			}
		case "host", "hostname", "node":
			if strings.ContainsAny(value, "-.0123456789") && !whole && !strings.EqualFold(value, "localhost") {
				who.Host = strings.TrimRight(value, ".-")
			}
		case "device":
			if i, ok := strings.CutPrefix(value, "cuda:"); ok {
				gpu = i
			}
		case "bus", "bus_id", "pci":
			if strings.Count(value, ":") >= 1 {
				who.BusID = value
			}
		case "cuda_visible_devices":
			list = value
		}
	}
	if !ranked || gpu == "" && who.BusID == "" {
		return false
	}
	e := s.rankInfo(m, who, world, gpu)
	if i, _ := decimal(gpu, 0); list != "" && gpu != "" {
		if all := strings.Split(list, ","); i < len(all) {
			setInt(e.Attrs, "physical", all[i])
		}
	}
	s.emit(e)
	return true
}

// An introduction is one line or, as env prints it, several, in which a process says
// its rank and the number of ranks, and perhaps its host and device.
var (
	ownRank  = lazyre.New(`(?:^|[^A-Za-z_])(?:(?:(?:[Gg]lobal|GLOBAL)[_ ])?(?:RANK|[Rr]ank))\W{1,3}(\d{1,6})\b`)
	ownLocal = lazyre.New(`(?:LOCAL_RANK|[Ll]ocal[_ ][Rr]ank)\W{1,3}(\d{1,4})\b`)
	ownWorld = lazyre.New(`(?:^|[^A-Za-z_])(?:WORLD_SIZE|[Ww]orld[_ ][Ss]ize)\W{1,3}(\d{1,7})\b`)
	ownHost  = lazyre.New(`(?:^|[^A-Za-z_])(?:HOSTNAME|SLURMD_NODENAME|[Hh]ostname|[Hh]ost|node)(?:=|: |: '| = | )([A-Za-z][\w.-]{1,62})`)
	ownPID   = lazyre.New(`(?:^|[^A-Za-z_])(?:pid|PID)\W{1,3}(\d{1,9})\b`)
	visible  = lazyre.New(`CUDA_VISIBLE_DEVICES\W{1,3}(\d{1,3}(?:, ?\d{1,3})*)`)
	oneEntry = lazyre.New(`^(?:RANK|LOCAL_RANK|WORLD_SIZE|HOSTNAME|SLURMD_NODENAME|CUDA_VISIBLE_DEVICES)=\S+$`)
	// A rank of one of these is not the global one.
	ofGroup = lazyre.New(`(?i)(?:tp|pp|dp|cp|ep|sp|tensor|pipeline|data|model|expert|context|sequence|parallel|node|group|role|machine|mp|local)[-_ ]*$`)
)

// introduce reads an introduction. Entries of env on lines of their own are kept until
// rank and world are both there.
func (s *session) introduce(m *message) {
	text := m.text
	if len(text) > 4096 || strings.ContainsAny(text, "{}") && !strings.Contains(text, "RANK") {
		return
	}
	if oneEntry.MatchString(text) {
		if len(s.env) > 512 {
			s.env = ""
		}
		s.env += " " + text
		text = s.env
	}
	world := ownWorld.FindStringSubmatch(text)
	at := ownRank.FindStringSubmatchIndex(text)
	if at == nil || ofGroup.MatchString(text[:at[0]+1]) {
		return
	}
	if world == nil { // a process that names itself, with its number on the host
		if !ownPID.MatchString(text) || !ownLocal.MatchString(text) || strings.Contains(text, "xit") {
			return
		}
		world = []string{"", ""}
	}
	s.env = ""
	if m.ranked {
		return
	}
	who := m.who
	n, _ := decimal(text[at[2]:at[3]], 0)
	size, _ := decimal(world[1], 0)
	if world[1] != "" && n >= size || who.Rank != evidence.None && who.Rank != n {
		return
	}
	who.Rank = n
	if f := ownLocal.FindStringSubmatch(text); f != nil {
		who.LocalRank, _ = decimal(f[1], 0)
	}
	if f := ownHost.FindStringSubmatch(text); f != nil && strings.ContainsAny(f[1], "-.0123456789") && !strings.EqualFold(f[1], "localhost") {
		who.Host = strings.TrimRight(f[1], ".-")
	}
	if f := ownPID.FindStringSubmatch(text); f != nil {
		who.PID, _ = decimal(f[1], 0)
	}
	e := s.rankInfo(m, who, world[1], "")
	if f := visible.FindStringSubmatch(text); f != nil {
		list := strings.Split(f[1], ",")
		i := 0
		if len(list) > 1 {
			i = who.LocalRank
		}
		if i >= 0 && i < len(list) {
			setInt(e.Attrs, "physical", strings.TrimSpace(list[i]))
		}
	}
	s.emit(e)
}

// rankInfo is the event that says which process and device a rank is.
func (s *session) rankInfo(m *message, who evidence.Who, world, gpu string) *evidence.Event {
	e := s.event(evidence.RankInfo, m)
	e.Who = who
	e.Attrs = evidence.Attrs{}
	if who.Rank != evidence.None {
		e.Attrs["rank"] = evidence.IntOf(int64(who.Rank))
	}
	if who.LocalRank != evidence.None {
		e.Attrs["local_rank"] = evidence.IntOf(int64(who.LocalRank))
	}
	if who.PID != evidence.None {
		e.Attrs["pid"] = evidence.IntOf(int64(who.PID))
	}
	if who.Host != "" {
		e.Attrs["host"] = evidence.TextOf(who.Host)
	}
	setInt(e.Attrs, "gpu", gpu)
	setInt(e.Attrs, "world", world)
	if g, ok := e.Attrs["gpu"]; ok {
		e.Who.Device = int(g.I)
	}
	return e
}

// A member is what a process is in the largest communicator that it joined.
type member struct {
	rank, size int
	event      *evidence.Event
}

// communicator reads NCCL's "comm 0x… rank 3 nranks 8 cudaDev 3 …". Groups of
// tensor or pipeline parallelism number their ranks themselves, so only a
// process's largest communicator counts, and in the end only the largest of all.
func (s *session) communicator(m *message, f []string) {
	k := procKey{m.who.Host, m.who.PID}
	size, _ := decimal(f[2], 0)
	if len(s.comms) >= maxWriters || size <= max(1, s.comms[k].size) {
		return
	}
	who := m.who
	who.Rank, _ = decimal(f[1], 0)
	who.BusID = f[5]
	e := s.rankInfo(m, who, f[2], f[3])
	setInt(e.Attrs, "physical", f[4])
	e.Attrs["joined"] = evidence.BoolOf(strings.Contains(m.text, "Init COMPLETE"))
	s.comms[k] = member{who.Rank, size, e}
	s.world = max(s.world, size)
}

// rankOf is the global rank of a process, None if unknown.
func (s *session) rankOf(who evidence.Who) int {
	if who.PID == evidence.None {
		return evidence.None
	}
	for _, k := range [...]procKey{{who.Host, who.PID}, {"", who.PID}} {
		if r, ok := s.pids[k]; ok {
			return r
		}
		if c, ok := s.comms[k]; ok && c.size == s.world {
			return c.rank
		}
	}
	return evidence.None
}

// flushComms emits what the communicators told, unless more processes joined
// groups of the largest size than one such group holds: then it is not the world.
func (s *session) flushComms() {
	var in []*evidence.Event
	for _, c := range s.comms {
		if c.size == s.world {
			in = append(in, c.event)
		}
	}
	if len(in) <= s.world {
		slices.SortFunc(in, func(a, b *evidence.Event) int { return cmp.Compare(a.Span.Offset, b.Span.Offset) })
		for _, e := range in {
			s.emit(e)
		}
	}
	clear(s.comms)
	s.world = 0
}

// mapRank keeps what a rank_info event says.
func (s *session) mapRank(e *evidence.Event) {
	rank := e.Who.Rank
	if v, ok := e.Attrs["rank"]; ok {
		rank = int(v.I)
	}
	if rank == evidence.None || len(s.pids) >= maxWriters {
		return
	}
	if e.Who.PID != evidence.None {
		s.pids[procKey{e.Who.Host, e.Who.PID}] = rank
		if _, ok := s.pids[procKey{"", e.Who.PID}]; !ok {
			s.pids[procKey{"", e.Who.PID}] = rank
		}
	}
}

// sortedNames lists the keys of m in order.
func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
