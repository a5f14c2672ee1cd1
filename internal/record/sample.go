package record

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A sampler looks at the memory of a running command, beside it: at its process tree through
// the proc file system, at its memory cgroup and at the devices. It never stops the command
// nor makes it wait. Where the kernel keeps marks of its own, they count for what happened
// between two looks.
//
// A look at a small tree costs some ten microseconds, so that the sampler looks more often than
// it reports: ticks update the peaks, and of the ticks between two samples the highest is given
// away. The time between two ticks grows with what they cost, so that all of it stays below
// share of one CPU.
type sampler struct {
	pid       int
	launchers []string // in its command line
	every     time.Duration
	begun     time.Time
	emit      func(incident.Sample)
	tools     gpu.Runner
	memory    watcher      // nil where this system tells nothing of another process's memory
	devices   *deviceWatch // nil where no tool is asked

	quit, done chan struct{}
	stopped    sync.Once

	mu      sync.Mutex // guards what follows
	peaks   peaks
	pace    pacer
	pids    []int // of the command's processes at the last look
	problem problems
	ending  ending // known when done is closed
	closed  bool   // nothing is given away any more
}

// share is the part of one CPU that sampling may take.
const share = 0.004

// Times between two ticks: the first ones follow quickly, for commands that live short.
const (
	firstTick = 10 * time.Millisecond
	tick      = 100 * time.Millisecond
	slowTick  = 250 * time.Millisecond // where samples are far apart
	slowest   = 30 * time.Second       // however much a look costs
)

// waking is what it costs this program to wake up for a look, beside the look itself: measured
// on a busy machine with two CPUs.
const waking = 200 * time.Microsecond

// stopWait bounds how long stop waits for a look that is under way.
const stopWait = 250 * time.Millisecond

// A watcher tells the memory of one command's processes, as the system knows it.
type watcher interface {
	// look is the state at this moment. It returns false when no process of the command is
	// left. cancelled is asked between two processes.
	look(cancelled func() bool) (look, bool)
	// end is called once, after the command has ended.
	end() ending
}

// newSampler makes a sampler for the command that was started as pid. begun is when; the
// seconds of samples count from it.
func newSampler(pid int, o Options, begun time.Time) *sampler {
	return &sampler{pid: pid, launchers: findProgram(o.Command).launchers, every: o.Every, begun: begun, emit: o.Sampled, tools: o.Tools,
		pace: pacer{share: o.Share}, memory: watch(pid), quit: make(chan struct{}), done: make(chan struct{})}
}

// start begins to sample, in another goroutine. Without a time between samples nothing is
// sampled.
func (s *sampler) start() {
	if s.every <= 0 {
		close(s.done)
		return
	}
	if s.tools != nil {
		s.devices = watchDevices(s.tools, s.every, s.processes)
	}
	go s.run()
}

func (s *sampler) run() {
	defer close(s.done)
	if s.memory == nil {
		return
	}
	cancelled := func() bool {
		select {
		case <-s.quit:
			return true
		default:
			return false
		}
	}
	longest := min(max(tick, s.every/4), slowTick)
	if s.every < tick {
		longest = max(s.every, firstTick)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := firstTick
	for {
		select {
		case <-s.quit:
			s.flush()
			e := s.memory.end()
			s.mu.Lock()
			s.ending = e
			s.mu.Unlock()
			return
		case <-timer.C:
		}
		begun, before := time.Now(), busy()
		l, alive := s.memory.look(cancelled)
		cost := busy() - before
		if all := time.Since(begun); cost < 0 || cost > all {
			cost = all // another thread went on with it
		}
		if alive {
			s.take(l)
		}
		next = min(2*next, longest)
		wait := max(next, s.pace.after(cost+waking))
		s.mu.Lock()
		s.peaks.apart = wait
		s.mu.Unlock()
		timer.Reset(wait)
	}
}

// take counts a look and gives away the sample that is due.
func (s *sampler) take(l look) {
	at := time.Since(s.begun)
	s.mu.Lock()
	s.peaks.add(l)
	if l.partial {
		s.mu.Unlock()
		return
	}
	s.pids = l.pids
	due := s.pace.due(l.sample(at), at, s.every)
	if n := len(due); n > 0 && s.devices != nil {
		due[n-1].Devices = s.devices.latest()
	}
	s.mu.Unlock()
	s.give(due)
}

// processes are the numbers of the command's processes at the last look.
func (s *sampler) processes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pids
}

// flush gives away what is left.
func (s *sampler) flush() {
	s.mu.Lock()
	rest := s.pace.rest()
	if n := len(rest); n > 0 && s.devices != nil {
		rest[n-1].Devices = s.devices.latest()
	}
	s.mu.Unlock()
	s.give(rest)
}

func (s *sampler) give(samples []incident.Sample) {
	if s.emit == nil {
		return
	}
	for _, x := range samples {
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return
		}
		s.emit(x)
	}
}

// stop ends the sampling after the command has ended; ps is how. It returns the peaks, and what
// could not be looked at. It does not wait long for anything.
func (s *sampler) stop(ps *os.ProcessState) ([]incident.Measure, []string) {
	s.stopped.Do(func() { close(s.quit) })
	late := time.NewTimer(stopWait)
	defer late.Stop()
	select {
	case <-s.done:
	case <-late.C:
		s.mu.Lock()
		s.problem.add("memory: the last look at the processes did not return in %s; peaks are of those before it", stopWait)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.every <= 0 {
		return s.measures(ps, ending{}), s.problem.list
	}
	e := s.ending
	if s.memory == nil {
		s.problem.add("memory: on this system only the largest memory of one process is known, when it has ended")
	}
	for _, l := range s.launchers {
		if elsewhere(l) {
			s.problem.add("memory: what %s starts need not be a process of this command; where it is not, its memory was not looked at", l)
		}
	}
	for _, p := range e.problems {
		s.problem.add("%s", p)
	}
	return s.measures(ps, e), s.problem.list
}

// kills are the kernel's counts of the command's memory cgroup, for Exit; they are known after
// stop.
func (s *sampler) kills() (kills, atLimit *int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peaks.kills, s.peaks.atLimit
}

// problems are sentences of what could not be recorded, each once and few of them.
type problems struct{ list []string }

const maxProblems = 32

func (p *problems) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, have := range p.list {
		if have == text {
			return
		}
	}
	if len(p.list) < maxProblems {
		p.list = append(p.list, text)
	}
}
