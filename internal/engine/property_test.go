package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A synthetic job: ranks with a log each, one fault of one kind on one rank, the
// others time out or lose their peer, and the launcher says what it saw.
type synthetic struct {
	ranks, perHost int
	faulty         int
	fault          fault
	noise          int                   // healthy lines beside training, for each rank
	shift          map[int]time.Duration // how far a host's clock is off
	stamped        bool                  // lines carry times
	silent         map[int]bool          // ranks whose log ends with training
	without        string                // lines that hold it are left out
}

// A fault is what the faulty rank prints.
type fault struct {
	name, kind string
	lines      []string
	exit       int
	proof      string // the words that prove it
}

var faults = []fault{
	{"out of memory", "device_oom", []string{
		"Traceback (most recent call last):",
		`  File "/app/pretrain.py", line 88, in <module>`,
		"    main()",
		`  File "/app/pretrain.py", line 61, in main`,
		"    loss = model(batch)",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.50 GiB of which 1.25 GiB is free. Including non-PyTorch memory, this process has 46.20 GiB memory in use. Of the allocated memory 44.10 GiB is allocated by PyTorch, and 900.00 MiB is reserved by PyTorch but unallocated.",
	}, 1, "out of memory"},
	{"an exception", "exception", []string{
		"Traceback (most recent call last):",
		`  File "/app/pretrain.py", line 88, in <module>`,
		"    main()",
		`  File "/app/shards.py", line 19, in open_shard`,
		"    raise ValueError(f'shard {i} has no index')",
		"ValueError: shard 7731 has no index",
	}, 1, "ValueError"},
	{"a full disk", "disk_full", []string{
		"Traceback (most recent call last):",
		`  File "/app/pretrain.py", line 88, in <module>`,
		"    main()",
		`  File "/app/pretrain.py", line 70, in main`,
		"    torch.save(state, path)",
		"OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_40.pt'",
	}, 1, "No space left"},
	{"an index assertion", "cuda_assert", []string{
		"/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectSmallIndex: block: [3,0,0], thread: [17,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
		"Traceback (most recent call last):",
		`  File "/app/pretrain.py", line 61, in main`,
		"    loss = model(batch)",
		"RuntimeError: CUDA error: device-side assert triggered",
	}, 1, "ssert"},
}

const steps = 40

// files writes the job's logs.
func (s synthetic) files() map[string]string {
	out := map[string]string{}
	start := time.Date(2026, 4, 2, 10, 0, 0, 0, time.UTC)
	for r := range s.ranks {
		host := r / s.perHost
		at := func(d time.Duration) time.Time { return start.Add(d + s.shift[host]) }
		stamp := func(d time.Duration) string {
			if !s.stamped {
				return ""
			}
			return at(d).Format("2006-01-02 15:04:05,000") + " "
		}
		var b strings.Builder
		line := func(format string, args ...any) {
			if l := fmt.Sprintf(format, args...); s.without == "" || !strings.Contains(l, s.without) {
				fmt.Fprintln(&b, l)
			}
		}
		line("%sINFO host node-%02d rank %d local_rank %d world_size %d", stamp(0), host, r, r%s.perHost, s.ranks)
		last := steps
		for i := 1; i <= last; i++ {
			line("%sINFO step %d | loss %.4f | lr 1.0e-04", stamp(time.Duration(i)*time.Second), i, 3-float64(i)/100)
			if s.noise > 0 && i%(steps/s.noise) == 0 {
				line("%sINFO prefetched shard %d in %d ms", stamp(time.Duration(i)*time.Second), i, 10+i)
			}
		}
		end := time.Duration(steps) * time.Second
		switch {
		case s.silent[r]:
		case r == s.faulty:
			for _, l := range s.fault.lines {
				line("%s", l)
			}
		case r%2 == 0:
			glog := ""
			if s.stamped {
				glog = "[E" + strings.TrimPrefix(at(end+601*time.Second).Format("0102 15:04:05.000000000"), "0") + " ProcessGroupNCCL.cpp:616]"
			}
			line("[rank%d]:%s [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.", r, glog, r)
		default:
			line("Traceback (most recent call last):")
			line(`  File "/app/pretrain.py", line 63, in main`)
			line("    loss.backward()")
			line("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, remote process exited or there was a network error, NCCL version 2.20.5")
		}
		out[fmt.Sprintf("rank_%d.log", r)] = b.String()
	}
	var b strings.Builder
	fmt.Fprintln(&b, "W0402 10:11:00.000000 900 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 901 closing signal SIGTERM")
	fmt.Fprintf(&b, "E0402 10:11:01.000000 900 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: %d) local_rank: %d (pid: %d) of binary: /usr/bin/python3\n", s.fault.exit, s.faulty%s.perHost, 1000+s.faulty)
	out["launcher.log"] = b.String()
	return out
}

func base(f fault) synthetic {
	return synthetic{ranks: 4, perHost: 4, faulty: 2, fault: f, stamped: true}
}

// leads checks that a job's first fault is the one that was put in.
func leads(t *testing.T, s synthetic, what string) *incident.Incident {
	t.Helper()
	inc := diagnose(t, job(t, s.files()))
	if inc.FirstFault == nil {
		t.Errorf("%s: no first fault", what)
		return inc
	}
	if inc.FirstFault.Kind != s.fault.kind || rank(inc) != s.faulty {
		t.Errorf("%s: first fault is %s of rank %d (%s: %s), want %s of rank %d", what, inc.FirstFault.Kind, rank(inc), inc.FirstFaultStanding, inc.FirstFaultBasis, s.fault.kind, s.faulty)
	}
	if inc.FirstFaultStanding != incident.Established {
		t.Errorf("%s: standing is %s: %s", what, inc.FirstFaultStanding, inc.FirstFaultBasis)
	}
	if inc.Outcome != incident.Failed {
		t.Errorf("%s: outcome is %s", what, inc.Outcome)
	}
	return inc
}

func TestInitiatingFault(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			whole := leads(t, base(f), "as it is")
			var causes []string
			for _, h := range whole.Hypotheses {
				causes = append(causes, h.Cause+" "+h.Standing)
			}

			for _, r := range []int{0, 1, 3} {
				s := base(f)
				s.faulty = r
				leads(t, s, fmt.Sprintf("renumbered to rank %d", r))
			}

			s := base(f)
			s.ranks, s.silent = 8, map[int]bool{4: true, 5: true, 6: true, 7: true}
			leads(t, s, "with ranks that show nothing")

			s = base(f)
			s.noise = 5
			leads(t, s, "with other lines")

			s = base(f)
			s.silent = map[int]bool{0: true}
			leads(t, s, "without the collateral of one rank")
			s.silent = map[int]bool{0: true, 1: true, 3: true}
			leads(t, s, "without any collateral")

			s = base(f)
			s.ranks, s.perHost = 8, 4
			for _, d := range []time.Duration{-20 * time.Second, 20 * time.Second} {
				s.shift = map[int]time.Duration{1: d}
				leads(t, s, fmt.Sprintf("with the other host's clock off by %s", d))
			}

			s = base(f)
			s.stamped = false
			leads(t, s, "without times")

			s = base(f)
			s.without = f.proof
			proofless := diagnose(t, job(t, s.files()))
			if p := proofless.FirstFault; p != nil && p.Kind == f.kind && proofless.FirstFaultStanding == incident.Established {
				t.Errorf("without its proof it is still established: %s", p.Text)
			}
			for _, h := range proofless.Hypotheses {
				if h.Standing == incident.Established && standing(whole, h.Cause) != incident.Established {
					t.Errorf("without its proof another cause is established: %s; with it: %s", h.Cause, strings.Join(causes, ", "))
				}
			}
		})
	}
}

// TestOrderOfFiles: in which order files are named and read changes nothing.
func TestOrderOfFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dirs := []string{job(t, base(faults[0]).files())}
	examples, _ := filepath.Glob(filepath.Join(root, "examples", "*"))
	for _, d := range examples {
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			dirs = append(dirs, d)
		}
	}
	for _, dir := range dirs {
		files := filesOf(t, dir)
		want := encode(t, diagnose(t, files...))
		for range 3 {
			rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
			o := options(t, files...)
			o.Workers = 1 + rng.IntN(4)
			inc, err := engine.Diagnose(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := encode(t, inc); !bytes.Equal(got, want) {
				t.Errorf("%s: another result in the order %v:\n%s", dir, files, firstDiff(want, got))
			}
		}
	}
}

// TestSameBytes: the same input gives the same bytes.
func TestSameBytes(t *testing.T) {
	examples, _ := filepath.Glob(filepath.Join(root, "examples", "*"))
	for _, dir := range append(examples, job(t, base(faults[1]).files())) {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			continue
		}
		want := encode(t, diagnose(t, dir))
		for range 4 {
			if got := encode(t, diagnose(t, dir)); !bytes.Equal(got, want) {
				t.Errorf("%s: %s", dir, firstDiff(want, got))
			}
		}
	}
}

func firstDiff(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// TestPrefixes: what a log that is still being written shows is a result too, and
// once a fault is established by what stands before the cut it is the same as in
// the whole log, or nothing that the whole log contradicts.
func TestPrefixes(t *testing.T) {
	logs := map[string]string{}
	for name, text := range base(faults[0]).files() {
		if name == "rank_2.log" {
			logs[name] = text
		}
	}
	for _, name := range []string{"single-gpu-oom/train.log", "oom-then-nan/session.log", "nan-memory-fine/sft.log", "eight-ranks/rank_5.log"} {
		if b, err := os.ReadFile(filepath.Join(root, "examples", filepath.FromSlash(name))); err == nil {
			logs[name] = string(b)
		}
	}
	names := make([]string, 0, len(logs))
	for n := range logs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, name := range names {
		text := logs[name]
		file := filepath.Join(job(t, map[string]string{"train.log": ""}), "train.log")
		whole := log(t, text)
		var seen []int64 // offsets of the first faults and rivals of the whole log
		for _, a := range whole.Attempts {
			if a.FirstFault != nil && a.FirstFault.Span != nil {
				seen = append(seen, a.FirstFault.Span.Offset)
			}
			for _, r := range a.FirstFaultRivals {
				seen = append(seen, r.Span.Offset)
			}
		}
		const samples = 60
		for i := range samples + 1 {
			n := len(text) * i / samples
			if err := os.WriteFile(file, []byte(text[:n]), 0o666); err != nil {
				t.Fatal(err)
			}
			inc := diagnose(t, file)
			f := inc.FirstFault
			if f == nil || inc.FirstFaultStanding != incident.Established {
				continue
			}
			if f.Span != nil && f.Span.Offset+f.Span.Length > int64(n) {
				t.Errorf("%s: the first %d bytes show a fault at %d", name, n, f.Span.Offset)
			}
			if f.Span != nil && !slices.Contains(seen, f.Span.Offset) && f.Class != "nonfinite" && !collateralAt(whole, f.Span.Offset) {
				t.Errorf("%s: the first %d bytes establish %s at line %d (%s), the whole log does not know it", name, n, f.Kind, f.Span.Line, f.Text)
			}
		}
	}
}

func collateralAt(inc *incident.Incident, offset int64) bool {
	for _, a := range inc.Attempts {
		for _, c := range a.Collateral {
			if c.Event.Span != nil && c.Event.Span.Offset == offset {
				return true
			}
		}
	}
	return false
}
