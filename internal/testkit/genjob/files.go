package genjob

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"
)

// New builds the job of a seed, with one of the numbers of ranks given. The same seed
// gives the same job.
func New(seed string, sizes ...int) *Job {
	for try := 0; ; try++ {
		sum := sha256.Sum256([]byte(fmt.Sprint(seed, "/", try)))
		b := &builder{Rand: rand.New(rand.NewChaCha8(sum)), others: map[string][]line{}, gone: map[int]bool{}}
		b.n = sizes[b.IntN(len(sizes))]
		b.setup()
		b.train()
		b.fail()
		b.collateral()
		b.launcher()
		b.lose()
		decidable, why, clear := b.decide()
		if !clear {
			continue
		}
		j := b.files()
		j.Truth.Ranks, j.Truth.Class, j.Truth.Rank, j.Truth.Second = b.n, b.class, b.culprit, b.second
		j.Truth.Decidable, j.Truth.Why = decidable, why
		j.Truth.Either = b.set && b.second != ""
		if b.stopped() {
			j.Truth.Rank = -1
		}
		return j
	}
}

func (b *builder) stopped() bool { return b.class == "time_limit" || b.class == "preempted" }

// silent reports whether the first fault has no words.
func (b *builder) silent() bool {
	return b.class == "killed" || b.class == "hang" || b.class == "missing"
}

// onelog reports whether several ranks share a log: all of the job, as srun -l writes
// it, or those of a host, as torchrun --tee does.
func (b *builder) onelog() bool { return b.layout == "merged" || b.layout == "tee" }

// framed reports whether the container's runtime set a time with a zone before each line.
func (b *builder) framed() bool {
	return !b.onelog() && (b.style == "cri" || b.style == "kubectl")
}

// lose takes files away.
func (b *builder) lose() {
	if b.class == "missing" {
		b.gone[b.culprit] = true
	}
	if b.onelog() || b.silent() && b.named || !b.one(3) {
		return
	}
	for range 1 + b.IntN(max(1, b.n/8)) {
		if r := b.IntN(b.n); r != b.culprit && (b.second == "" || r != b.secondBy) {
			b.gone[r] = true
		}
	}
}

// knowsHosts reports whether the files tie all ranks to hosts by name.
func (b *builder) knowsHosts() bool {
	return b.identity != "hf" || b.layout == "host" || b.layout == "torchrun" || b.layout == "tee"
}

// knowsHost reports whether the files tie one rank to its host.
func (b *builder) knowsHost(r int) bool { return b.knowsHosts() || b.hostSaid[r] }

// signals reports whether a file shows a signal to a rank.
func (b *builder) signals() bool {
	for r := range b.signalled {
		if !b.gone[r] {
			return true
		}
	}
	return false
}

// dated reports whether the line of a failure carries a time.
func (b *builder) dated(class string) bool {
	return b.framed() || b.announced() && class != "network"
}

// announced reports whether a logged error with a time stands above each traceback.
func (b *builder) announced() bool {
	switch b.style {
	case "logged", "nemo", "fairseq", "zoned":
		return true
	}
	return false
}

// decide says whether the files show what came first. clear is false where that is
// near a bound, or where only the rank is open.
func (b *builder) decide() (decidable bool, why string, clear bool) {
	missing := len(b.gone)
	if b.class == "missing" {
		missing--
	}
	switch b.class {
	case "time_limit", "preempted":
		return true, "the scheduler names the stop", true
	case "killed", "hang", "missing":
		if b.tasked { // a task is a rank only where the rank is known to work there, and not the host's own number
			return true, "srun names the task that was killed", b.knowsHosts() && b.culprit != b.host(b.culprit)
		}
		if b.named {
			return true, "the launcher names the rank that was killed", true
		}
		return missing == 0, fmt.Sprintf("%d other files are missing", missing), true
	case "xid", "ecc":
		return true, "the kernel names the device, and files tie it to the rank", b.tied
	case "host_oom":
		return true, "the kernel names the process, and files tie it to the rank", b.identity == "nccl" || b.named && !b.tasked
	}
	if b.signals() && !b.agents && b.second != "device_oom" && b.second != "disk_full" && (b.class == "exception" || b.class == "illegal_access" && !b.kernelSaid) && !(b.framed() && b.knowsHosts()) {
		return false, "a signal on another rank carries no time, or no host", true
	}
	if b.second == "" {
		return true, "no other failure competes", true
	}
	if !b.dated(b.class) || !b.dated(b.second) {
		return false, "the failures carry no times", true
	}
	gap := b.shown(b.secondBy, b.secondAt).Sub(b.shown(b.culprit, b.failAt))
	if b.knowsHost(b.culprit) && b.knowsHost(b.secondBy) && b.host(b.culprit) == b.host(b.secondBy) {
		return gap > 5*time.Second, "one clock", gap > 5*time.Second || gap < time.Second/2
	}
	lo, hi, by := b.tie()
	if by == "" {
		return false, "nothing ties the clocks", true
	}
	if gap-hi > 4*time.Second {
		return true, by, true
	}
	return false, by, gap-hi <= 0 && gap-lo >= 0
}

// shown is the time that a rank's log gives to a true time: with a zone the
// instant, without one the wall clock.
func (b *builder) shown(r int, at time.Time) time.Time {
	c := b.clocks[b.host(r)]
	if b.framed() || b.style == "zoned" {
		c.zone = 0
	}
	return c.at(at).Truncate(b.resolution())
}

// resolution is to what the times of the logs are written.
func (b *builder) resolution() time.Duration {
	if b.style == "nemo" || b.style == "fairseq" {
		return time.Second
	}
	return time.Millisecond
}

// tie bounds by how much the clock of the second failure is ahead of the
// first one's.
func (b *builder) tie() (lo, hi time.Duration, by string) {
	of := func(r int) (out []int) {
		if !b.knowsHost(r) {
			return []int{r}
		}
		for x := range b.n {
			if b.host(x) == b.host(r) && !b.gone[x] && b.knowsHost(x) {
				out = append(out, x)
			}
		}
		return out
	}
	lo, hi = -1<<62, 1<<62
	steps := func(r int) map[int]time.Time {
		m := map[int]time.Time{}
		for i, at := range b.printed[r] {
			m[i] = b.shown(r, at)
		}
		return m
	}
	for _, x := range of(b.culprit) {
		for _, y := range of(b.secondBy) {
			a, c := steps(x), steps(y)
			for n := range a {
				if t, ok := c[n+1]; ok {
					hi, by = min(hi, t.Sub(a[n])+b.resolution()), "steps"
				}
				if t, ok := c[n-1]; ok {
					lo = max(lo, t.Sub(a[n])-b.resolution())
				}
			}
		}
	}
	mark := func(at map[int]time.Time, width time.Duration, what string) {
		for _, x := range of(b.culprit) {
			for _, y := range of(b.secondBy) {
				p, ok1 := at[x]
				q, ok2 := at[y]
				if ok1 && ok2 {
					d := b.shown(y, q).Sub(b.shown(x, p))
					lo, hi = max(lo, d-width), min(hi, d+width)
					if by == "" {
						by = what
					}
				}
			}
		}
	}
	if b.framed() { // else the line carries no time
		mark(b.joined, 30*time.Second, "one communicator")
	}
	if b.style != "zoned" { // the watchdog writes no zone; in which one it is nothing tells
		mark(b.entered, time.Minute, "time-outs of one collective")
	}
	return lo, hi, by
}

// path names a rank's log.
func (b *builder) path(r int) string {
	h := b.hosts[b.host(r)]
	switch b.layout {
	case "host":
		return fmt.Sprintf("%s/rank_%d.log", h, r)
	case "flat":
		return fmt.Sprintf("rank_%d.log", r)
	case "torchrun":
		return fmt.Sprintf("%s/none_ab12cd34/attempt_0/%d/stderr.log", h, b.local(r))
	case "slurm":
		return fmt.Sprintf("train_48120_%d.err", r)
	case "renamed":
		return fmt.Sprintf("collected (%d).txt", (r*7919+13)%104729)
	}
	return "job.log"
}

// files lays the lines out.
func (b *builder) files() *Job {
	j := &Job{Files: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(b.others)) {
		b.put(j, name, b.others[name], func(l line) string { return l.text })
	}
	switch b.layout {
	case "merged":
		b.merge(j, "job.log", 0, b.n)
		return j
	case "tee":
		for h, name := range b.hosts {
			b.merge(j, "train-"+name+".log", h*b.per, (h+1)*b.per)
		}
		return j
	}
	for r, lines := range b.ranks {
		if b.gone[r] {
			continue
		}
		sort.SliceStable(lines, func(i, k int) bool { return lines[i].at.Before(lines[k].at) })
		b.put(j, b.path(r), lines, func(l line) string {
			t := b.clocks[b.host(r)].instant(l.at)
			switch b.style {
			case "cri":
				return t.Format("2006-01-02T15:04:05.000000000Z07:00") + " stderr F " + l.text
			case "kubectl":
				return t.UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + l.text
			}
			return l.text
		})
		if r != b.culprit && (b.second == "" || r != b.secondBy) && !b.signalled[r] && b.one(9) && len(lines) > 0 {
			text := j.Files[b.path(r)]
			j.Files[b.path(r)] = text[:len(text)-1-min(b.IntN(25), len(lines[len(lines)-1].text)/2)]
		}
	}
	return j
}

// merge writes one log of the ranks from lo to hi, in the order in which the writers'
// buffers came: the culprit's last.
func (b *builder) merge(j *Job, name string, lo, hi int) {
	type from struct {
		line
		rank int
	}
	var all []from
	for r := lo; r < hi; r++ {
		lines := b.ranks[r]
		if b.gone[r] {
			continue
		}
		sort.SliceStable(lines, func(i, k int) bool { return lines[i].at.Before(lines[k].at) })
		for _, l := range lines {
			if r == b.culprit && !l.at.Before(b.failAt) {
				l.at = l.at.Add(2 * b.timeout)
			}
			all = append(all, from{l, r})
		}
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].at.Before(all[k].at) })
	var lines []line
	for _, l := range all {
		if b.layout == "tee" {
			l.text = fmt.Sprintf("[default%d]:%s", b.local(l.rank), l.text)
		} else {
			l.text = fmt.Sprintf("%4d: %s", l.rank, l.text)
		}
		lines = append(lines, l.line)
	}
	b.put(j, name, lines, func(l line) string { return l.text })
}

func (b *builder) put(j *Job, name string, lines []line, frame func(line) string) {
	var out strings.Builder
	for i, l := range lines {
		out.WriteString(frame(l))
		out.WriteByte('\n')
		if l.mark == 1 {
			j.Truth.Lines = append(j.Truth.Lines, Place{name, i + 1})
		}
	}
	j.Files[name] = out.String()
}
