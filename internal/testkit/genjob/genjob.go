// Package genjob builds failed jobs of many ranks with their truth. It shares no
// code with what is tested: a job is made from true times, the logs are what its
// processes, kernels and launchers would have printed by their own clocks, and the
// truth comes from the true times and from the evidence that was put into the files.
//
// # What can be decided
//
// A job has one initiating fault, its collateral, and sometimes a second failure
// that nothing explains by the first one. What the files allow to say is decided here
// as follows.
//
//   - Collateral (time-outs, closed peers, signals by the launcher, exit codes) never
//     competes with a fault that names itself: the mechanism tells which follows. A
//     signal competes with an exception and with a CUDA error that the kernel does not record,
//     since a process that is told to stop may end with one; there the times decide, or
//     the launcher's word that it sends the signals, or a failure beside it that no signal
//     brings about.
//   - A second failure on the same host has the same clock: the earlier one is decided
//     if both lines carry times that differ by more than their resolution and a second.
//   - On different hosts the clocks must be tied by what both hosts print of one event.
//     Synchronous training ties them by cause: no rank prints step n before every rank
//     has printed step n-1, because a collective stands between the two. So the
//     difference of two clocks is at least the greatest difference between the print of
//     step n-1 on one and step n on the other, and at most the same the other way round.
//     Time-outs in one collective tie them to a minute: ranks enter a collective
//     together unless one is missing. A communicator that all ranks join, where each says
//     when it was complete, ties them to half a minute. The failures are in order if the printed distance, corrected so, is beyond that bound.
//   - Nothing else ties two clocks: then the order is undecidable, whatever was printed,
//     unless the distance is beyond what clocks and zones can differ by (a day and more,
//     which is not built here).
//   - A line without a time is in no order with a line of another file; nor are two lines of
//     different ranks in one merged log, whose writer interleaves what it got when it got it.
//   - A rank that left no words is named by elimination if all others are there and waited.
//     If more than one rank left no words it cannot be named.
//   - An Xid belongs to a rank if files tie host and bus id, or the pid, to the rank.
//
// Jobs whose distance lies near the bound are not built: the distance is drawn until it is
// clearly on one side.
package genjob

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A Job is a set of files and what is true of them.
type Job struct {
	Files map[string]string
	Truth Truth
}

// A Place is a line of a file, 1-based.
type Place struct {
	File string
	Line int
}

// A Truth is what happened and whether the files show it.
type Truth struct {
	Ranks     int
	Class     string // see Classes
	Rank      int    // the rank that failed first; -1 for a stop from outside
	Lines     []Place
	Decidable bool
	Either    bool // a verdict may be right or open, but not wrong: a clock was set while the job ran
	Why       string
	Second    string // the class of the second failure, "" if there is none
}

// Classes are the kinds of fault that jobs are built with.
var Classes = []string{
	"device_oom", "host_oom", "nan", "xid", "ecc", "illegal_access", "exception", "disk_full", "killed", "worker", "time_limit", "preempted", "network", "hang", "missing",
}

// seconds are the classes of a second failure: each stands for itself.
var seconds = []string{"device_oom", "exception", "disk_full", "illegal_access"}

// start is when the job's first step ends.
var start = time.Date(2026, 3, 3, 14, 0, 0, 0, time.UTC)

// A clock is a host's: what it shows at a true time.
type clock struct {
	offset time.Duration
	drift  float64 // seconds per second
	zone   time.Duration
	set    time.Duration // by how much the clock was set at setAt
	setAt  time.Time
}

func (c clock) at(t time.Time) time.Time {
	x := t.Add(c.offset + time.Duration(c.drift*float64(t.Sub(start)))).Add(c.zone)
	if c.set != 0 && t.After(c.setAt) {
		x = x.Add(c.set)
	}
	return x
}

// instant is what the clock shows, with its zone.
func (c clock) instant(t time.Time) time.Time {
	return c.at(t).Add(-c.zone).In(time.FixedZone("", int(c.zone.Seconds())))
}

// A line stands in a file with its true time; seq keeps the order of one writer.
type line struct {
	at      time.Time
	text    string
	stamped bool
	mark    int // 1 first fault, 2 second
}

// A builder makes one job.
type builder struct {
	*rand.Rand
	n, per     int
	hosts      []string
	clocks     []clock
	style      string // framing of rank logs
	layout     string // names of files
	printers   string // who logs steps: all, one of each host, the first rank, nobody
	identity   string // what ties rank, host, device and pid
	step       time.Duration
	steps      int
	timeout    time.Duration
	class      string
	culprit    int
	failAt     time.Time
	ranks      [][]line
	others     map[string][]line
	gone       map[int]bool        // ranks whose file is missing
	printed    []map[int]time.Time // by rank: when it printed which step
	entered    map[int]time.Time   // by rank: when it entered the collective that timed out
	hostSaid   map[int]bool        // ranks whose host a line names, where the files in general do not
	kernelSaid bool                // the kernel's log holds the fault of the process as well
	joined     map[int]time.Time   // by rank: when it said that its communicator was complete
	set        bool                // a clock was set while the job ran
	tasked     bool                // srun names the culprit by its task
	signalled  map[int]bool        // ranks that were told to stop by a signal
	agents     bool                // a launcher's log is there
	named      bool                // a launcher's log names the culprit
	tied       bool                // the kernel's device or process can be tied to the rank
	second     string
	secondBy   int
	secondAt   time.Time
}

func (b *builder) pick(s ...string) string { return s[b.IntN(len(s))] }

// one reports true once in n.
func (b *builder) one(n int) bool { return b.IntN(n) == 0 }

func (b *builder) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(b.Int64N(int64(hi-lo)+1))
}

func (b *builder) host(r int) int { return r / b.per }

func (b *builder) local(r int) int { return r % b.per }

func (b *builder) pid(r int) int { return 41000 + 7*b.local(r) + 100*b.host(r)%9000 }

func (b *builder) bus(r int) string {
	return []string{"0f", "2d", "4e", "5d", "9a", "ab", "bb", "db"}[b.local(r)]
}

func (b *builder) setup() {
	b.per = 8
	if b.n == 8 && b.one(2) {
		b.per = 4
	}
	zones := []time.Duration{0, 0, time.Hour, 2 * time.Hour, -5 * time.Hour, 5*time.Hour + 30*time.Minute, -8 * time.Hour}
	prefix := b.pick("node-", "gpu-node-", "dgx-a")
	zone := zones[b.IntN(len(zones))]
	several := b.one(2)
	for h := range (b.n + b.per - 1) / b.per {
		b.hosts = append(b.hosts, fmt.Sprintf("%s%02d", prefix, h+1))
		c := clock{offset: b.between(-10*time.Minute, 10*time.Minute), drift: (b.Float64()*2 - 1) * 1e-4, zone: zone}
		if several {
			c.zone = zones[b.IntN(len(zones))]
		}
		b.clocks = append(b.clocks, c)
	}
	b.style = b.pick("plain", "logged", "logged", "cri", "kubectl", "deepspeed", "titan", "bare", "nemo", "fairseq", "zoned", "absl")
	b.layout = b.pick("host", "host", "flat", "torchrun", "slurm", "renamed", "merged", "tee")
	if b.n == 1024 && b.onelog() {
		b.layout = "host"
	}
	b.printers = b.pick("all", "all", "hosts", "first")
	b.identity = b.pick("nccl", "hf", "env", "words")
	if b.n == 1024 {
		b.printers = b.pick("hosts", "first")
	}
	b.step = b.between(400*time.Millisecond, 6*time.Second)
	b.steps = 12 + b.IntN(20)
	if h := b.IntN(len(b.clocks)); b.one(8) {
		b.clocks[h].set = b.between(20*time.Second, 8*time.Minute)
		b.clocks[h].setAt = start.Add(time.Duration(b.steps/2) * b.step)
		b.set = true
	}
	if b.n == 1024 {
		b.steps = 6
	}
	b.timeout = []time.Duration{10 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Minute}[b.IntN(4)]
	b.class = Classes[b.IntN(len(Classes))]
	b.culprit = b.IntN(b.n)
	b.ranks = make([][]line, b.n)
	b.printed = make([]map[int]time.Time, b.n)
	b.entered = map[int]time.Time{}
	b.hostSaid = map[int]bool{}
	b.joined = map[int]time.Time{}
	b.signalled = map[int]bool{}
	if b.onelog() && (b.style == "cri" || b.style == "kubectl") {
		b.style = "plain"
	}
}

// say adds lines to a rank's log.
func (b *builder) say(r int, at time.Time, mark int, text ...string) {
	for i, t := range text {
		l := line{at: at.Add(time.Duration(i) * time.Microsecond), text: t}
		if i == len(text)-1 {
			l.mark = mark
		}
		b.ranks[r] = append(b.ranks[r], l)
	}
}

// log adds a line that the rank's logger writes, with its time if the style has one.
func (b *builder) log(r int, at time.Time, level, text string) {
	b.ranks[r] = append(b.ranks[r], line{at: at, text: b.logger(r, at, level, text), stamped: b.style != "bare"})
}

func (b *builder) logger(r int, at time.Time, level, text string) string {
	t := b.clocks[b.host(r)].at(at)
	switch b.style {
	case "plain":
		return t.Format("2006-01-02 15:04:05,000") + " " + level + " " + text
	case "logged":
		return t.Format("2006-01-02 15:04:05,000") + " - trainer - " + level + " - " + text
	case "deepspeed":
		return "[" + t.Format("2006-01-02 15:04:05,000") + "] [" + level + "] [engine.py:88:run] " + text
	case "nemo":
		return "[NeMo " + level[:1] + " " + t.Format("2006-01-02 15:04:05") + " loop:42] " + text
	case "fairseq":
		return t.Format("2006-01-02 15:04:05") + " | " + level + " | train_inner | " + text
	case "zoned":
		return b.clocks[b.host(r)].instant(at).Format("2006-01-02T15:04:05.000Z07:00") + " " + level + " " + text
	case "absl":
		return level[:1] + t.Format("0102 15:04:05.000000") + " 140123 loop.py:48] " + text
	case "titan":
		return "[titan] " + t.Format("2006-01-02 15:04:05,000") + " - root - " + level + " - " + text
	}
	return text
}

// glog is a line of torch's C++ side.
func (b *builder) glog(r int, at time.Time, file, text string) string {
	t := b.clocks[b.host(r)].at(at)
	return fmt.Sprintf("[rank%d]:[E%d%s %s] %s", r, int(t.Month()), t.Format("02 15:04:05.000000000"), file, text)
}

func (b *builder) prints(r int) bool {
	switch b.printers {
	case "all":
		return true
	case "hosts":
		return b.local(r) == 0
	}
	return r == 0
}

// train writes set-up and healthy steps. A step ends on all ranks within a tenth of
// its length.
func (b *builder) train() {
	for r := range b.n {
		at := start.Add(-40*time.Second + b.between(0, 2*time.Second))
		h := b.hosts[b.host(r)]
		switch b.identity {
		case "nccl":
			b.joined[r] = at
			b.say(r, at, 0, fmt.Sprintf("%s:%d:%d [%d] NCCL INFO ncclCommInitRank comm 0x55d0c0de%02x rank %d nranks %d cudaDev %d nvmlDev %d busId %s000 commId 0x6b1f00c4 - Init COMPLETE",
				h, b.pid(r), b.pid(r)+400, b.local(r), b.local(r), r, b.n, b.local(r), b.local(r), b.bus(r)))
		case "hf":
			b.log(r, at, "INFO", fmt.Sprintf("Process rank: %d, world size: %d, device: cuda:%d, distributed training: True, compute dtype: torch.bfloat16", r, b.n, b.local(r)))
		case "env":
			b.say(r, at, 0, fmt.Sprintf("RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d LOCAL_WORLD_SIZE=%d HOSTNAME=%s MASTER_ADDR=%s MASTER_PORT=29500", r, b.local(r), b.n, b.per, h, b.hosts[0]))
		case "words":
			b.log(r, at, "INFO", fmt.Sprintf("host %s rank %d local_rank %d world_size %d", h, r, b.local(r), b.n))
		}
		for i := 1; i <= b.steps; i++ {
			if b.prints(r) {
				if b.printed[r] == nil {
					b.printed[r] = map[int]time.Time{}
				}
				end := start.Add(time.Duration(i)*b.step + b.between(0, b.step/10))
				if b.style != "bare" {
					b.printed[r][i] = end
				}
				b.log(r, end, "INFO", fmt.Sprintf("step %d | loss %.4f | lr 1.0e-04", i, 3-float64(i)/100))
			}
		}
	}
	b.failAt = start.Add(time.Duration(b.steps)*b.step + b.step/3)
}

// Traceback lines before the last, by what was going on.
func (b *builder) trace(r int, at time.Time, mark int, last ...string) {
	frames := [][]string{
		{`  File "/workspace/train.py", line 214, in <module>`, "    main()", `  File "/workspace/train.py", line 171, in main`, "    loss = model(batch)"},
		{`  File "/opt/app/pretrain.py", line 88, in <module>`, "    run(cfg)", `  File "/opt/app/loop.py", line 61, in run`, "    out = step(batch)"},
	}[b.IntN(2)]
	var text []string
	if b.announced() {
		b.log(r, at, "ERROR", "training failed")
	}
	text = append(text, "Traceback (most recent call last):")
	text = append(text, frames...)
	text = append(text, last...)
	if b.style == "plain" && b.Uint64()%2 == 0 { // torch's own excepthook
		for i := range text {
			text[i] = fmt.Sprintf("[rank%d]: %s", r, text[i])
		}
	}
	b.say(r, at, mark, text...)
}

// fault prints a failure of class on rank r.
func (b *builder) fault(class string, r int, at time.Time, mark int) {
	h := b.host(r)
	switch class {
	case "device_oom":
		b.trace(r, at, mark, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU "+fmt.Sprint(b.local(r))+" has a total capacity of 79.11 GiB of which 1.06 GiB is free. Including non-PyTorch memory, this process has 78.02 GiB memory in use. Of the allocated memory 74.30 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated.")
	case "nan":
		if b.one(2) {
			b.hostSaid[r] = true
			b.trace(r, at, mark, fmt.Sprintf("RuntimeError: Rank %d, node %s, device %d, iteration %d: Unexpected result nan (message='found NaN in local forward loss calculation')", r, b.hosts[h], b.local(r), b.steps+1))
		} else {
			b.trace(r, at, mark, "FloatingPointError: Loss became infinite or NaN at iteration="+fmt.Sprint(b.steps+1)+"!")
		}
	case "illegal_access":
		b.trace(r, at, mark, b.pick("torch.AcceleratorError", "RuntimeError")+": CUDA error: an illegal memory access was encountered")
		b.say(r, at.Add(time.Millisecond), 0, "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
			"For debugging consider passing CUDA_LAUNCH_BLOCKING=1")
	case "exception":
		b.trace(r, at, mark, b.pick("ValueError: shard 7731 has no index", "KeyError: 'position_ids'", "AssertionError: tokenizer vocabulary 32000 does not match 32064", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"))
	case "disk_full":
		b.trace(r, at, mark, fmt.Sprintf("OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_%d/rank%d.pt'", b.steps, r))
	case "worker":
		b.trace(r, at, mark, fmt.Sprintf("RuntimeError: DataLoader worker (pid %d) is killed by signal: %s. ", b.pid(r)+3, b.pick("Killed", "Segmentation fault")))
	case "network":
		b.hostSaid[r] = true
		b.say(r, at, mark, fmt.Sprintf("%s:%d:%d [%d] transport/net_ib.cc:120 NCCL WARN NET/IB : mlx5_%d:1 async fatal event: local catastrophic error", b.hosts[h], b.pid(r), b.pid(r)+410, b.local(r), b.local(r)))
	}
}

// kern adds a line to the kernel log of a host.
func (b *builder) kern(h int, at time.Time, mark int, text string) {
	t := b.clocks[h].at(at)
	form := b.Uint64() % 4
	name, prefix := fmt.Sprintf("%s/dmesg.txt", b.hosts[h]), ""
	if b.layout != "host" {
		name = fmt.Sprintf("dmesg_%s.txt", b.hosts[h])
	}
	switch form {
	case 0:
		prefix = fmt.Sprintf("[%d.%06d] ", 180000+int(at.Sub(start).Seconds()), b.IntN(1e6))
	case 1:
		prefix = "[" + t.Format("Mon Jan _2 15:04:05 2006") + "] "
	case 2:
		prefix = t.Format("Jan _2 15:04:05") + " " + b.hosts[h] + " kernel: "
	default:
		prefix = at.Add(b.clocks[h].offset).UTC().Format("2006-01-02T15:04:05.000000Z07:00") + " " + b.hosts[h] + " kernel: "
	}
	b.others[name] = append(b.others[name], line{at: at, text: prefix + text, mark: mark})
}

// fail writes the initiating fault, and sometimes a second one.
func (b *builder) fail() {
	r, at := b.culprit, b.failAt
	switch b.class {
	case "xid", "ecc":
		text := fmt.Sprintf("NVRM: Xid (PCI:0000:%s:00): 79, pid=%d, name=python3, GPU has fallen off the bus.", b.bus(r), b.pid(r))
		said := b.pick("CUDA error: unspecified launch failure", "CUDA error: unknown error")
		if b.class == "ecc" {
			text = fmt.Sprintf("NVRM: Xid (PCI:0000:%s:00): 94, pid=%d, name=python3, Contained: CE User Channel (0x9). RST: No, D-RST: No", b.bus(r), b.pid(r))
			said = "CUDA error: uncorrectable ECC error encountered"
		}
		if b.one(2) {
			text = strings.Replace(text, fmt.Sprintf("pid=%d, name=python3", b.pid(r)), "pid='<unknown>', name=<unknown>", 1)
		}
		b.kern(b.host(r), at, 1, text)
		b.tied = b.identity == "nccl"
		if b.one(2) {
			b.trace(r, at.Add(300*time.Millisecond), 0, "RuntimeError: "+said)
			b.tied = true
		}
		if !b.tied && b.knowsHosts() {
			b.smi(b.host(r))
			b.tied = true
		}
	case "host_oom":
		b.kern(b.host(r), at, 1, fmt.Sprintf("Memory cgroup out of memory: Killed process %d (python3) total-vm:126237120kB, anon-rss:98765432kB, file-rss:1268kB, shmem-rss:0kB, UID:0 pgtables:205104kB oom_score_adj:0", b.pid(r)))
	case "time_limit", "preempted":
		b.stop(at)
	case "killed", "hang", "missing":
	default:
		b.fault(b.class, r, at, 1)
		if b.class == "illegal_access" && b.one(2) {
			b.kernelSaid = true
			b.kern(b.host(r), at.Add(-100*time.Millisecond), 0, fmt.Sprintf("NVRM: Xid (PCI:0000:%s:00): 31, pid=%d, name=python3, Ch 00000012, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_3 faulted @ 0x7e21_08000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ", b.bus(r), b.pid(r)))
		}
		if b.one(2) {
			b.second = seconds[b.IntN(len(seconds))]
			for b.secondBy = b.IntN(b.n); b.secondBy == r; b.secondBy = b.IntN(b.n) {
			}
			b.secondAt = at.Add([]time.Duration{b.step / 20, 20 * time.Second, 100 * time.Second, 5 * time.Minute}[b.IntN(4)])
			b.fault(b.second, b.secondBy, b.secondAt, 2)
		}
	}
}

// smi adds a table of the host's devices: index, bus id and uuid.
func (b *builder) smi(h int) {
	name := fmt.Sprintf("%s/nvidia-smi.csv", b.hosts[h])
	if b.layout != "host" {
		name = fmt.Sprintf("nvidia-smi.%s.csv", b.hosts[h])
	}
	var out []line
	add := func(s string) { out = append(out, line{at: start, text: s}) }
	add("index, name, pci.bus_id, uuid, memory.total [MiB], memory.used [MiB]")
	for d := range b.per {
		add(fmt.Sprintf("%d, NVIDIA H100 80GB HBM3, 00000000:%s:00.0, GPU-5f0c1d22-0a1b-4c3d-8e9f-%012d, 81559 MiB, 70211 MiB", d, strings.ToUpper(b.bus(d)), h*100+d))
	}
	b.others[name] = out
}

// stop writes what Slurm's daemon prints on each host.
func (b *builder) stop(at time.Time) {
	why := "TIME LIMIT"
	if b.class == "preempted" {
		why = "PREEMPTION"
	}
	for h := range b.hosts {
		seen := at.Add(b.between(0, 2*time.Second))
		t := b.clocks[h].at(seen).Format("2006-01-02T15:04:05")
		name := fmt.Sprintf("%s/slurmstepd.err", b.hosts[h])
		if b.layout != "host" {
			name = fmt.Sprintf("stepd-%s.log", b.hosts[h])
		}
		b.others[name] = append(b.others[name], line{at: seen, mark: 1, text: fmt.Sprintf("slurmstepd: error: *** STEP 88120.0 ON %s CANCELLED AT %s DUE TO %s ***", b.hosts[h], t, why)})
	}
}

// collateral writes what the fault does to the other ranks.
func (b *builder) collateral() {
	outside := b.class == "time_limit" || b.class == "preempted"
	waits := b.class == "hang" || b.class == "killed" || b.class == "missing"
	closes := !waits && b.one(3)
	seq := 4*b.steps + 3
	for r := range b.n {
		if r == b.culprit && !outside || b.second != "" && r == b.secondBy {
			continue
		}
		entered := b.failAt.Add(b.between(0, b.step/2))
		switch {
		case outside:
			at := b.failAt.Add(b.between(time.Second, 3*time.Second))
			if b.one(2) {
				b.say(r, at, 0, fmt.Sprintf("[rank: %d] Received SIGTERM: 15", r))
			}
		case closes:
			at := b.failAt.Add(b.between(time.Second, 4*time.Second))
			if b.one(4) {
				continue
			}
			b.trace(r, at, 0, fmt.Sprintf("torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:%d, remote process exited or there was a network error, NCCL version 2.27.5", 88))
		case !waits && b.host(r) == b.host(b.culprit) && b.one(2):
			b.signalled[r] = true
			b.say(r, b.failAt.Add(b.between(2*time.Second, 4*time.Second)), 0, fmt.Sprintf("[rank: %d] Received SIGTERM: 15", r))
		default:
			ran := b.timeout + b.between(0, 800*time.Millisecond)
			at := entered.Add(ran)
			b.entered[r] = entered
			b.say(r, at, 0, b.glog(r, at, "ProcessGroupNCCL.cpp:632", fmt.Sprintf("[PG ID 0 PG GUID 0(default_pg) Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, Timeout(ms)=%d) ran for %d milliseconds before timing out.", r, seq, b.timeout.Milliseconds(), ran.Milliseconds())))
			b.say(r, at.Add(time.Second), 0, b.glog(r, at.Add(time.Second), "ProcessGroupNCCL.cpp:685", "To avoid data inconsistency, we are taking the entire process down."))
		}
	}
}

// launcher writes the agents' words, which name what each noticed first.
func (b *builder) launcher() {
	if b.class == "time_limit" || b.class == "preempted" || b.one(4) {
		return
	}
	if b.one(4) && b.n < 1024 {
		b.srun()
		return
	}
	outside := map[string]bool{"hang": true, "network": true}
	for h, name := range b.hosts {
		if b.n > 64 && h > 3 && h != b.host(b.culprit) {
			continue
		}
		first := h*b.per + b.IntN(b.per)
		code, at := -6, b.failAt.Add(b.timeout+2*time.Second)
		if h == b.host(b.culprit) && !outside[b.class] && !b.one(3) {
			first, code, at = b.culprit, 1, b.failAt.Add(time.Second)
			if b.class == "killed" || b.class == "host_oom" || b.class == "missing" {
				code = -9
			}
		} else if first == b.culprit {
			continue
		}
		b.agents = true
		b.hostSaid[first] = true
		b.named = b.named || first == b.culprit
		t := b.clocks[h].at(at)
		g := t.Format("0102 15:04:05.000000")
		file := fmt.Sprintf("%s/agent.log", name)
		if b.layout != "host" {
			file = fmt.Sprintf("agent-%s.log", name)
		}
		why := "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
		if code < 0 {
			why = fmt.Sprintf("Signal %d (%s) received by PID %d", -code, map[int]string{6: "SIGABRT", 9: "SIGKILL"}[-code], b.pid(first))
		}
		for i, s := range []string{
			fmt.Sprintf("W%s %d torch/distributed/elastic/multiprocessing/api.py:897] Sending process %d closing signal SIGTERM", g, 900+h, b.pid(h*b.per)+1),
			fmt.Sprintf("E%s %d torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: %d) local_rank: %d (pid: %d) of binary: /usr/bin/python3", g, 900+h, code, b.local(first), b.pid(first)),
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
			"============================================================",
			"/workspace/train.py FAILED",
			"------------------------------------------------------------",
			"Failures:",
			"  <NO_OTHER_FAILURES>",
			"------------------------------------------------------------",
			"Root Cause (first observed failure):",
			"[0]:",
			"  time      : " + t.Format("2006-01-02_15:04:05"),
			"  host      : " + name,
			fmt.Sprintf("  rank      : %d (local_rank: %d)", first, b.local(first)),
			fmt.Sprintf("  exitcode  : %d (pid: %d)", code, b.pid(first)),
			"  error_file: <N/A>",
			"  traceback : " + why,
			"============================================================",
		} {
			b.others[file] = append(b.others[file], line{at: at.Add(time.Duration(i) * time.Microsecond), text: s})
		}
	}
}

// srun says which task ended how, each as it learns of it, without times.
func (b *builder) srun() {
	at := b.failAt.Add(2 * time.Second)
	add := func(s string) {
		b.others["slurm-48120.out"] = append(b.others["slurm-48120.out"], line{at: at, text: s})
	}
	h := b.hosts[b.host(b.culprit)]
	switch b.class {
	case "killed", "host_oom":
		b.named, b.tasked = true, true
		add(fmt.Sprintf("srun: error: %s: task %d: Killed", h, b.culprit))
	case "hang", "network", "missing":
	default:
		b.named = true
		add(fmt.Sprintf("srun: error: %s: task %d: Exited with exit code 1", h, b.culprit))
	}
	for r := range b.n {
		if _, waited := b.entered[r]; waited && b.one(3) {
			add(fmt.Sprintf("srun: error: %s: task %d: Aborted (core dumped)", b.hosts[b.host(r)], r))
		}
	}
}
