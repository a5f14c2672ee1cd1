package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// childVariable says to the test binary that it is a child, and what to do.
const childVariable = "INQUEST_TEST_MEMORY"

const mib = 1 << 20

// TestMemoryChild is no test: it is the child of those below. It does what its variable says,
// word by word: alloc=N has N MiB from then on, free gives them back, fork=WORDS starts a child
// that does WORDS (with , for a blank, and ; for one within), limit=N sets a limit of the
// address space, say prints a line, until=PATH waits for a file, leave ends it, and wait waits
// until its input ends.
func TestMemoryChild(t *testing.T) {
	script := os.Getenv(childVariable)
	if script == "" {
		t.Skip("runs as a child of other tests")
	}
	var held [][]byte
	for _, w := range strings.Fields(script) {
		name, arg, _ := strings.Cut(w, "=")
		switch name {
		case "alloc":
			n, _ := strconv.Atoi(arg)
			b := make([]byte, n*mib)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			held = append(held, b)
		case "free":
			held = nil
			debug.FreeOSMemory()
		case "fork":
			c := memoryChild(strings.ReplaceAll(strings.ReplaceAll(arg, ",", " "), ";", ","))
			c.Stdin, c.Stdout = os.Stdin, os.Stdout
			if err := c.Start(); err != nil {
				fmt.Println(err)
			}
		case "until":
			for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(5 * time.Millisecond) {
				if _, err := os.Stat(arg); err == nil {
					break
				}
			}
		case "leave":
			os.Exit(0)
		case "limit":
			n, _ := strconv.ParseUint(arg, 10, 64)
			if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: n * mib, Max: n * mib}); err != nil {
				fmt.Println(err)
			}
		case "say":
			fmt.Println("ready")
		case "wait":
			io.Copy(io.Discard, os.Stdin)
		}
	}
	_ = held
	os.Exit(0)
}

func memoryChild(script string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestMemoryChild$")
	c.Env = append(os.Environ(), childVariable+"="+script, "GOGC=off")
	return c
}

// A watched is a child with a sampler.
type watched struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.Closer
	out     *bufio.Reader
	sampler *sampler

	mu      sync.Mutex
	samples []incident.Sample
}

func startWatched(t *testing.T, script string, o Options) *watched {
	t.Helper()
	w := &watched{t: t, cmd: memoryChild(script)}
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.in, w.out = in, bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if o.Every == 0 {
		o.Every = 100 * time.Millisecond
	}
	o.Sampled = func(x incident.Sample) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.samples = append(w.samples, x)
	}
	w.sampler = newSampler(w.cmd.Process.Pid, o, time.Now())
	w.sampler.start()
	t.Cleanup(func() { w.cmd.Process.Kill() })
	return w
}

// said waits for the child's line.
func (w *watched) said() {
	w.t.Helper()
	if line, err := w.out.ReadString('\n'); err != nil || line != "ready\n" {
		w.t.Fatalf("the child said %q, %v", line, err)
	}
}

// until waits for a sample.
func (w *watched) until(what string, is func(incident.Sample) bool) {
	w.t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		for _, x := range w.samples {
			if is(x) {
				w.mu.Unlock()
				return
			}
		}
		w.mu.Unlock()
	}
	w.t.Fatalf("no sample with %s: %+v", what, w.samples[max(0, len(w.samples)-3):])
}

// end lets the child end and returns what was measured.
func (w *watched) end() (map[string]incident.Measure, []string) {
	w.t.Helper()
	w.in.Close()
	io.Copy(io.Discard, w.out)
	w.cmd.Wait()
	list, problems := w.sampler.stop(w.cmd.ProcessState)
	out := map[string]incident.Measure{}
	for _, m := range list {
		out[m.Name] = m
	}
	last := -1.0
	for _, x := range w.samples {
		if x.Seconds < last || x.Processes < 1 || x.Devices == nil {
			w.t.Errorf("an odd sample %+v", x)
		}
		last = x.Seconds
	}
	return out, problems
}

func TestSamplerOfOneProcess(t *testing.T) {
	w := startWatched(t, "alloc=96 free say wait", Options{})
	w.said() // whatever is looked at from now on, the kernel's mark has the 96 MiB
	w.mu.Lock()
	before := len(w.samples)
	w.mu.Unlock()
	w.until("one process", func(x incident.Sample) bool { return x.Processes == 1 && len(w.samples) > before })
	m, problems := w.end()
	if r := m[incident.Resident]; r.Peak < 96*mib || r.Peak > 400*mib || r.AtLeast || !strings.Contains(r.Basis, "mark") || r.Limit == nil || r.LimitBy != "host" {
		t.Errorf("%+v", r)
	}
	if s := m[incident.AddressSpace]; s.Peak < 96*mib || s.Limit != nil || !s.AtLeast {
		t.Errorf("%+v", s)
	}
	if len(problems) > 0 {
		t.Error(problems)
	}
}

func TestSamplerOfATree(t *testing.T) {
	w := startWatched(t, "fork=alloc=48,say,wait fork=fork=alloc=48;say;wait,wait wait", Options{})
	w.said()
	w.said()
	w.until("96 MiB in four processes", func(x incident.Sample) bool { return x.Resident > 96*mib && x.Processes >= 4 })
	m, _ := w.end()
	if r := m[incident.Resident]; r.Peak < 96*mib || !r.AtLeast || !strings.Contains(r.Basis, "processes together") {
		t.Errorf("%+v", r)
	}
}

// The middle process ends; what it started stays the command's.
func TestSamplerKeepsOrphans(t *testing.T) {
	sign := filepath.Join(t.TempDir(), "sign")
	w := startWatched(t, "fork=fork=alloc=64;say;wait,until="+sign+",leave wait", Options{})
	w.said()
	w.until("64 MiB in three processes", func(x incident.Sample) bool { return x.Resident > 64*mib && x.Processes == 3 })
	write(t, sign, "")
	w.mu.Lock()
	w.samples = nil
	w.mu.Unlock()
	w.until("64 MiB after the middle process", func(x incident.Sample) bool { return x.Resident > 64*mib && x.Processes == 2 })
	w.end()
}

func TestSamplerSeesTheLimit(t *testing.T) {
	w := startWatched(t, "limit=8192 alloc=32 say wait", Options{})
	w.said()
	w.until("a look", func(x incident.Sample) bool { return x.Resident > 32*mib })
	m, _ := w.end()
	if s := m[incident.AddressSpace]; s.Limit == nil || *s.Limit != 8192*mib || s.LimitBy != "ulimit -v" {
		t.Errorf("%+v", s)
	}
}

func TestSamplerOfNothing(t *testing.T) {
	for range 20 {
		c := exec.Command("true")
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		s := newSampler(c.Process.Pid, Options{Every: time.Second}, time.Now())
		s.start()
		c.Wait()
		measures, _ := s.stop(c.ProcessState)
		for _, m := range measures {
			if m.Name == incident.Resident && m.Peak > 64*mib {
				t.Errorf("true has %d bytes: those of the process that started it", m.Peak)
			}
		}
	}
	s := newSampler(1<<30, Options{Every: time.Millisecond}, time.Now())
	s.start()
	if m, _ := s.stop(nil); len(m) > 0 && m[0].Name == incident.Resident {
		t.Errorf("a process that is not there: %+v", m)
	}
	s = newSampler(os.Getpid(), Options{}, time.Now())
	s.start()
	if m, p := s.stop(nil); len(p) > 0 || len(m) > 0 {
		t.Errorf("without samples: %+v %v", m, p)
	}
}

// A tool that hangs is not waited for.
func TestSamplerAndAToolThatHangs(t *testing.T) {
	asked := make(chan bool, 100)
	release := make(chan bool)
	defer close(release)
	hang := func(ctx context.Context, tool string, args ...string) ([]byte, error) {
		asked <- true
		<-release // whatever the context says
		return nil, errors.New("late")
	}
	w := startWatched(t, "say wait", Options{Tools: hang})
	w.said()
	<-asked
	done := make(chan bool)
	go func() { w.end(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the end waits for the tool")
	}
}

func TestDevicesOfTheCommand(t *testing.T) {
	tools := func(_ context.Context, tool string, args ...string) ([]byte, error) {
		switch line := strings.Join(args, " "); {
		case tool != "nvidia-smi":
			return nil, fmt.Errorf("%s: %w", tool, exec.ErrNotFound)
		case strings.Contains(line, "--query-gpu"):
			return []byte("index, uuid, pci.bus_id, memory.used [MiB], memory.total [MiB]\n0, GPU-aaaaaaaa-1111-2222-3333-444444444444, 00000000:01:00.0, 900 MiB, 16384 MiB\n1, GPU-bbbbbbbb-1111-2222-3333-444444444444, 00000000:02:00.0, 70 MiB, 16384 MiB\n"), nil
		default:
			return []byte("gpu_uuid, gpu_bus_id, pid, used_gpu_memory [MiB]\nGPU-aaaaaaaa-1111-2222-3333-444444444444, 00000000:01:00.0, 4242, 500 MiB\nGPU-aaaaaaaa-1111-2222-3333-444444444444, 00000000:01:00.0, 99, 300 MiB\n"), nil
		}
	}
	for _, c := range []struct {
		name     string
		first    bool
		pids     []int
		measures int
		peak     int64
		own      bool
	}{
		{"its process is listed", false, []int{4242}, 1, 500 * mib, true},
		{"in the first namespace, not on a device", true, []int{7}, 0, 0, true},
		{"in a container whose numbers the tool does not know", false, []int{7}, 2, 900 * mib, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deviceWatch{every: time.Second, ours: c.first, cancel: func() {}}
			uses, err := gpu.Memory(context.Background(), tools)
			if err != nil {
				t.Fatal(err)
			}
			d.take(uses, c.pids)
			s := d.latest()
			if len(s) != 2 || s[0].Used != 900*mib || (s[0].Own != nil) != c.own {
				t.Errorf("%+v", s)
			}
			if again := d.latest(); len(again) != 0 || again == nil {
				t.Errorf("an answer stands in two samples: %+v", again)
			}
			m, problem := d.end()
			if problem != "" || len(m) != c.measures || len(m) > 0 && (m[0].Peak != c.peak || *m[0].Limit != 16384*mib || !m[0].AtLeast) {
				t.Errorf("%+v %s", m, problem)
			}
		})
	}
}
