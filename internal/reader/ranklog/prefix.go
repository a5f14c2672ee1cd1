package ranklog

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A head is what stood before a message: who wrote it, when, and how severe the
// writer thought it was.
type head struct {
	who   evidence.Who
	stamp evidence.Stamp
	level byte // D I W E F, 0 if none was written
	key   key  // identifies the writer for demultiplexing
}

// A key tells the writers of interleaved lines apart: the identity that line
// prefixes state, before anything in the message.
type key struct {
	rank, local, pid, task int
	host                   string
}

var noKey = key{evidence.None, evidence.None, evidence.None, evidence.None, ""}

// framing is what the head of an artifact told about how its lines begin.
type framing struct {
	srun     bool            // "N: " is srun --label
	srunRank bool            // and its task is a rank, not a node
	tee      bool            // [rankN]: without a blank is a torchrun tee prefix: local rank
	bracket  bool            // "[N] " is a rank (MPICH, Intel MPI)
	short    bool            // "[rN] " is a rank (training loops that print it on each of their lines)
	hosts    map[string]bool // "host: " prefixes (pdsh, clush)
	pods     map[string]bool // "pod container " prefixes (stern)
}

const maxPeel = 12 // prefixes of one line

// peel takes the prefixes of launchers and loggers off s, outermost first,
// and returns what they said and the offset of the message.
func (f *framing) peel(s string, h *head) int {
	at := 0
	logger := false
	for range maxPeel {
		n := f.peelWriter(s[at:], h, at)
		if n == 0 {
			n = peelLogger(s[at:], h)
			logger = logger || n > 0
		}
		if n == 0 {
			break
		}
		at += n
	}
	statedRank(s[at:], h, logger)
	if n, ok := shortRank(s[at:]); ok && f.short && h.key.rank == evidence.None {
		h.who.Rank = n
	}
	return at
}

// shortRank reads the rank of "[r3] …".
func shortRank(s string) (int, bool) {
	if len(s) < 5 || s[0] != '[' || s[1] != 'r' {
		return 0, false
	}
	n, e := decimal(s, 2)
	return n, e > 2 && e <= 7 && e+1 < len(s) && s[e] == ']' && s[e+1] == ' '
}

// peelWriter takes off one prefix that names a process, rank, host or pod.
func (f *framing) peelWriter(s string, h *head, at int) int {
	if s == "" {
		return 0
	}
	switch c := s[0]; {
	case c == '[':
		return f.peelBracket(s, h)
	case c == '(':
		return peelActor(s, h)
	case c == ' ' || isDigit(c) || c == 'P':
		if f.srun {
			return f.peelTask(s, h)
		}
	case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
		return f.peelName(s, h)
	}
	return 0
}

// decimal reads up to nine digits at s[i:] and returns the value and the end.
func decimal(s string, i int) (v, end int) {
	for end = i; end < len(s) && end < i+9 && isDigit(s[end]); end++ {
		v = v*10 + int(s[end]-'0')
	}
	return v, end
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.'
}

func (f *framing) peelBracket(s string, h *head) int {
	i := 1
	for i < len(s) && i < 40 && nameByte(s[i]) {
		i++
	}
	role := s[1:i]
	n, end := decimal(s, i)
	if end > i && strings.HasPrefix(s[end:], "]:") { // [rank3]: [default0]: [11]:
		end += 2
		after := s[end:]
		spaced := strings.HasPrefix(after, " ")
		switch {
		case role == "" || role == "rank" && (!f.tee || h.key.local != evidence.None):
			h.setRank(n)
			if spaced {
				end++
			}
		default:
			h.setLocal(n)
			if spaced && !f.tee && !strings.HasPrefix(after, "  ") {
				end++
			}
		}
		return end
	}
	if role == "" && end > 1 {
		if strings.HasPrefix(s[end:], ",") { // [1,3]<stderr>:text
			r, e := decimal(s, end+1)
			if e == end+1 || e >= len(s) || s[e] != ']' {
				return 0
			}
			return mpiTail(s, e, r, h)
		}
		if f.bracket && strings.HasPrefix(s[end:], "] ") { // [3] text
			h.setRank(n)
			return end + 2
		}
		return 0
	}
	if rest, ok := strings.CutPrefix(s, "[pod/"); ok { // [pod/train-0/pytorch] text
		pod, rest, ok := strings.Cut(rest, "/")
		ctr, _, ok2 := strings.Cut(rest, "] ")
		if ok && ok2 && len(pod) < 254 && len(ctr) < 254 {
			h.setHost(pod)
			return len("[pod/") + len(pod) + 1 + len(ctr) + 2
		}
	}
	if strings.HasPrefix(s, "[prterun-") { // [prterun-host-123@1,3]<stdout>: text
		if i := strings.IndexByte(s, '@'); i > 0 && i < 100 {
			_, e := decimal(s, i+1)
			if e < len(s) && s[e] == ',' {
				if r, e2 := decimal(s, e+1); e2 > e+1 && e2 < len(s) && s[e2] == ']' {
					return mpiTail(s, e2, r, h)
				}
			}
		}
	}
	return 0
}

// mpiTail finishes an Open MPI tag whose "]" stands at s[e].
func mpiTail(s string, e, rank int, h *head) int {
	e++
	for _, t := range []string{"<stdout>", "<stderr>", "<stddiag>"} {
		if strings.HasPrefix(s[e:], t) {
			e += len(t)
			break
		}
	}
	if e >= len(s) || s[e] != ':' {
		return 0
	}
	e++
	if strings.HasPrefix(s[e:], " ") && s[1] == 'p' {
		e++
	}
	h.setRank(rank)
	return e
}

// peelActor reads Ray's and vLLM's "(Name pid=1, ip=10.0.0.1) " and "(raylet) ".
func peelActor(s string, h *head) int {
	end := strings.IndexByte(s[:min(len(s), 160)], ')')
	if end < 0 || end+1 < len(s) && s[end+1] != ' ' {
		return 0
	}
	in := s[1:end]
	i := strings.Index(in, "pid=")
	if i < 0 {
		if in != "raylet" && !strings.HasPrefix(in, "autoscaler") && !strings.HasPrefix(in, "raylet,") {
			return 0
		}
	} else {
		pid, e := decimal(in, i+4)
		if e == i+4 {
			return 0
		}
		h.who.PID, h.key.pid = pid, pid
	}
	if i := strings.Index(in, "ip="); i >= 0 {
		host, _, _ := strings.Cut(in[i+3:], ",")
		h.setHost(host)
	}
	return min(end+2, len(s))
}

// peelTask reads srun --label: " 3: text", "P0  3: text".
func (f *framing) peelTask(s string, h *head) int {
	i := 0
	if s[0] == 'P' {
		_, e := decimal(s, 1)
		if e == 1 || e >= len(s) || s[e] != ' ' {
			return 0
		}
		i = e
	}
	for i < len(s) && i < 8 && s[i] == ' ' {
		i++
	}
	n, e := decimal(s, i)
	if e == i || e-i > 5 || e >= len(s) || s[e] != ':' || e+1 < len(s) && s[e+1] != ' ' || h.key.task != evidence.None {
		return 0
	}
	h.key.task = n
	if f.srunRank {
		h.who.Rank = n
	}
	return min(e+2, len(s))
}

func (f *framing) peelName(s string, h *head) int {
	if strings.HasPrefix(s, "wandb: ") {
		return len("wandb: ")
	}
	if i := strings.Index(s[:min(len(s), 80)], " | "); i > 0 && composeName(s[:i]) { // worker-1  | text
		h.setHost(strings.TrimRight(s[:i], " "))
		return i + 3
	}
	if n := peelNCCL(s, h); n > 0 {
		return n
	}
	i := strings.IndexByte(s[:min(len(s), 64)], ':')
	if i > 0 && f.hosts[s[:i]] && i+1 < len(s) && s[i+1] == ' ' {
		h.setHost(s[:i])
		return i + 2
	}
	if pod, _, n := podPrefix(s); n > 0 && f.pods[pod] { // fit-worker-0 pytorch text
		h.setHost(pod)
		return n
	}
	for _, stream := range []string{" [stderr] ", " [stdout] "} { // node7 [stderr] text
		if i := strings.Index(s[:min(len(s), 76)], stream); i > 0 && hostName(s[:i]) {
			h.setHost(s[:i])
			return i + len(stream)
		}
	}
	return 0
}

// podPrefix takes the pod and the container that stern sets before a line, and
// returns the offset of what follows. Both are DNS labels.
func podPrefix(s string) (pod, container string, n int) {
	label := func(s string) int {
		i := 0
		for i < len(s) && i < 64 && (s[i] >= 'a' && s[i] <= 'z' || isDigit(s[i]) || s[i] == '-') {
			i++
		}
		if i == 0 || i == len(s) || s[i] != ' ' || s[0] == '-' || s[i-1] == '-' {
			return 0
		}
		return i
	}
	i := label(s)
	if i == 0 || strings.IndexByte(s[:i], '-') < 0 {
		return "", "", 0
	}
	j := label(s[i+1:])
	if j == 0 {
		return "", "", 0
	}
	return s[:i], s[i+1 : i+1+j], i + j + 2
}

// A podTally counts the lines that begin like stern's.
type podTally struct {
	lines            int
	pods, containers map[string]bool
}

func (t *podTally) add(text string) {
	pod, container, n := podPrefix(text)
	if n == 0 || len(t.pods) > 4096 {
		return
	}
	if t.pods == nil {
		t.pods, t.containers = map[string]bool{}, map[string]bool{}
	}
	t.lines++
	t.pods[pod], t.containers[container] = true, true
}

// of returns the pods, nil if lines do not all but always begin with one of a few
// containers and pods with ordinals or random parts in their names.
func (t *podTally) of(lines int) map[string]bool {
	if t.lines*10 < lines*9 || t.lines < 4 || len(t.containers) > 4 || len(t.pods) > t.lines/2 {
		return nil
	}
	for p := range t.pods {
		if !strings.ContainsAny(p, "0123456789") {
			return nil
		}
	}
	return t.pods
}

// composeName reports whether s, blanks at its end apart, is a service or
// algorithm instance: letters, digits and dashes that end in "-N" or "-xxxxx".
func composeName(s string) bool {
	s = strings.TrimRight(s, " ")
	i := strings.LastIndexByte(s, '-')
	if i <= 0 || i == len(s)-1 || !hostName(s) {
		return false
	}
	return isDigit(s[len(s)-1]) || strings.HasPrefix(s, "algo-")
}

// hostName reports whether s can be a host name.
func hostName(s string) bool {
	if len(s) < 2 || len(s) > 63 {
		return false
	}
	for _, c := range []byte(s) {
		if !nameByte(c) && !isDigit(c) {
			return false
		}
	}
	return s[0] >= 'A'
}

// peelNCCL reads "host:pid:tid [dev] " where NCCL's own words follow; these
// stay in the message.
func peelNCCL(s string, h *head) int {
	i := strings.IndexByte(s[:min(len(s), 64)], ':')
	if i < 1 || !strings.Contains(s[i:min(len(s), i+400)], "NCCL ") {
		return 0
	}
	pid, e := decimal(s, i+1)
	if e == i+1 || e >= len(s) || s[e] != ':' || !hostName(s[:i]) {
		return 0
	}
	_, e2 := decimal(s, e+1)
	if e2 == e+1 || !strings.HasPrefix(s[e2:], " ") {
		return 0
	}
	h.who.Host, h.who.PID = s[:i], pid
	if h.key == noKey {
		h.key.pid, h.key.host = pid, s[:i]
	}
	if strings.HasPrefix(s[e2:], " [") {
		if d, e3 := decimal(s, e2+2); e3 > e2+2 && strings.HasPrefix(s[e3:], "] ") {
			h.who.Device = d
			return e3 + 2
		}
	}
	return e2 + 1
}

func (h *head) setRank(n int) {
	if h.who.Rank != n {
		h.who.LocalRank = evidence.None
	}
	h.who.Rank, h.key.rank = n, n
	if h.key.local != evidence.None {
		h.who.LocalRank = h.key.local
	}
}

func (h *head) setLocal(n int) {
	if h.who.LocalRank != n {
		h.who.Rank = evidence.None
	}
	h.who.LocalRank, h.key.local = n, n
}

func (h *head) setHost(s string) {
	h.who.Host, h.key.host = s, s
}

// statedRank reads a rank that the message itself begins with, without taking
// it off: "[Rank 3] …", "[PG ID 0 PG GUID 0(default_pg) Rank 1] …",
// "[rank: 3] …", "[RANK 3] …", "node1 rank 3: …", "rank 3 | …". A rank inside a process group other
// than the default one is not a global rank.
func statedRank(s string, h *head, logger bool) {
	if h.key.rank != evidence.None || len(s) < 6 {
		return
	}
	set := func(n int) { h.who.Rank = n }
	if s[0] == '[' {
		end := strings.IndexByte(s[:min(len(s), 120)], ']')
		if end < 0 {
			return
		}
		in := s[1:end]
		if logger && hostName(in) && strings.ContainsAny(in, "-.0123456789") && strings.HasPrefix(s[end+1:], " rank ") { // "[node7] rank 3 | …" behind a time
			if n, e := decimal(s, end+len("] rank ")); e > end+len("] rank ") && e < len(s) && (s[e] == ':' || s[e] == ']' || strings.HasPrefix(s[e:], " | ")) {
				set(n)
				h.who.Host = in
			}
			return
		}
		i := lastFold(in, "rank")
		if i < 0 || i > 0 && in[i-1] != ' ' || strings.HasPrefix(in, "PG") && !strings.Contains(in, "default_pg") && !strings.HasPrefix(in, "PG 0 ") && !strings.HasPrefix(in, "PG ID 0 ") {
			return
		}
		j := i + 4
		for j < len(in) && (in[j] == ' ' || in[j] == ':') {
			j++
		}
		if n, e := decimal(in, j); e > j && e == len(in) {
			set(n)
		}
		return
	}
	host := ""
	if logger {
		if i := strings.IndexByte(s[:min(len(s), 64)], ' '); i > 0 && hostName(s[:i]) && !strings.EqualFold(s[:i], "rank") {
			host, s = s[:i], s[i+1:]
		}
	}
	if len(s) < 6 || lastFold(s[:4], "rank") != 0 || s[4] != ' ' && s[4] != '=' {
		return
	}
	if n, e := decimal(s, 5); e > 5 && e < len(s) && (s[e] == ':' || s[e] == ']' || strings.HasPrefix(s[e:], " | ")) {
		set(n)
		if host != "" && strings.ContainsAny(host, "-.0123456789") {
			h.who.Host = host
		}
	}
}

// lastFold is the last index in s of the lower-case word w, in either case.
func lastFold(s, w string) int {
	for i := len(s) - len(w); i >= 0; i-- {
		if strings.EqualFold(s[i:i+len(w)], w) {
			return i
		}
	}
	return -1
}
