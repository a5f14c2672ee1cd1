// Package record runs a command unchanged and keeps what it does: its log, which exists before
// the command starts, its memory and that of the devices that it uses, and how it ended. The
// command reads, writes, is signalled and ends as it would without it.
package record

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Options say what to run and where its output goes.
type Options struct {
	Command []string
	Dir     string   // "" is this process's
	Env     []string // set beside this process's environment, NAME=value
	// Log is where all output is kept, in the order in which it arrived. It may be nil, and
	// may fail or stand still at any time: the command goes on.
	Log io.Writer
	// In, Out and Err are the streams that the command would have without this program. Out and
	// Err may be nil: then output is only kept. In may be nil: the null device. Where Out or Err
	// is a terminal the command gets a pseudo-terminal in its place; where In and Out are, In is
	// that terminal too, and the command has a session of its own on it.
	In, Out, Err *os.File
	// Forward says that the command stands in the place of this process: it gets the signals
	// that this process gets, which does not die of them, and stays in its process group.
	// Without it the command and what it starts are a group of their own, which is ended
	// together.
	Forward bool
	// Every is the time between two samples of memory; 0 takes none.
	Every   time.Duration
	Share   float64       // of one CPU that sampling may take; 0 is what a run may cost
	Tools   gpu.Runner    // nil samples no device
	Timeout time.Duration // 0 is none
	// Started is called once when the command has started, and Sampled for each sample, both
	// from another goroutine than Run's caller's; they may be nil. Run returns after the last
	// call of both.
	Started func(pid int)
	Sampled func(incident.Sample)
}

// A Result is what came of it.
type Result struct {
	Begun, Ended time.Time
	Exit         incident.Exit
	Measures     []incident.Measure
	LogBytes     int64    // how much of the output Log took
	Problems     []string // what could not be recorded
	// MidLine says that the user's terminal shows an unfinished line of the command's.
	MidLine bool
}

// Run runs the command to its end. Cancelling ctx interrupts the command, then ends it. Run
// always returns a result; what failed is in Exit.Error and Problems. From its first call on a
// failing write does not end this process.
func Run(ctx context.Context, o Options) Result {
	var notes notes
	signals := catch(o.Forward)
	defer signals.release()
	log := newLog(o.Log)
	s, err := openStreams(o, log, &notes)
	defer s.restore()
	r := Result{Begun: time.Now()}
	if err != nil {
		r.Exit = incident.Exit{Status: 126, Error: "make its streams: " + err.Error()}
		return ended(r, log, &notes)
	}
	c, err := start(o, s)
	survive()
	if err != nil {
		s.abandon()
		r.Exit = notStarted(err)
		log.say("inquest: " + strings.Join(o.Command[:min(len(o.Command), 1)], "") + " did not start: " + r.Exit.Error)
		return ended(r, log, &notes)
	}
	r.Begun = time.Now()
	child := &child{process: c.Process, streams: s, group: !o.Forward}
	signals.pass(child)
	s.follow(c.Process.Pid)
	if sampled := o.Sampled; sampled != nil {
		o.Sampled = func(x incident.Sample) {
			x.Log = log.position() // which step it was at, then
			sampled(x)
		}
	}
	var beside sync.WaitGroup
	if o.Started != nil {
		beside.Go(func() { o.Started(c.Process.Pid) })
	}
	smp := newSampler(c.Process.Pid, o, r.Begun)
	smp.start()
	over, stopped := make(chan struct{}), make(chan string, 1)
	go func() { stopped <- child.limit(ctx, o.Timeout, over) }()
	err = c.Wait()
	r.Ended = time.Now()
	close(over)
	child.done()
	measures, problems := smp.stop(c.ProcessState)
	r.Measures = measures
	notes.add(problems...)
	r.Exit = exitOf(c.ProcessState, err)
	r.Exit.OOMKills, r.Exit.AtLimit = smp.kills()
	r.Exit.Stopped = <-stopped
	r.MidLine = s.finish()
	if child.group {
		child.sweep()
	}
	beside.Wait()
	return ended(r, log, &notes)
}

// start starts the command on s.
func start(o Options, s *streams) (*exec.Cmd, error) {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return nil, fmt.Errorf("no command is named: %w", exec.ErrNotFound)
	}
	env := os.Environ()
	if len(o.Env) > 0 {
		env = append(env, o.Env...)
	}
	name, err := lookUp(o.Command[0], o.Dir, env)
	if err != nil {
		return nil, err
	}
	make := func(argv ...string) *exec.Cmd {
		c := &exec.Cmd{Path: name, Args: argv, Dir: o.Dir, Stdin: s.in, Stdout: s.out, Stderr: s.err, SysProcAttr: s.attributes(!o.Forward)}
		if len(o.Env) > 0 {
			c.Env = env
		}
		return c
	}
	c := make(o.Command...)
	err = c.Start()
	if shell := shellFor(err, name, o.Dir); shell != "" {
		script := name
		name = shell
		c = make(append([]string{"sh", script}, o.Command[1:]...)...)
		err = c.Start()
	}
	return c, err
}

// ended closes the log and completes r.
func ended(r Result, log *logWriter, n *notes) Result {
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	written, err := log.close()
	r.LogBytes = written
	if err != nil {
		n.add("the log is not complete: " + err.Error())
	}
	r.Problems = n.all()
	return r
}

// A child is the running command.
type child struct {
	process *os.Process
	streams *streams
	group   bool // it is the first of its own process group

	mu    sync.Mutex
	ended bool
}

// done says that the command has ended; its number may be another process's from now on.
func (c *child) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// endGrace is how long a command that was asked to end may take.
const endGrace = 10 * time.Second

// limit ends the command when ctx is cancelled or the time is over, gently first, and says why;
// "" where the command ended before that. It returns when over is closed.
func (c *child) limit(ctx context.Context, timeout time.Duration, over <-chan struct{}) string {
	var alarm <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		alarm = t.C
	}
	why := ""
	select {
	case <-over:
		return ""
	case <-ctx.Done():
		why = incident.StoppedInterrupt
		if cause := context.Cause(ctx); cause != nil && cause.Error() == incident.StoppedDisk {
			why = incident.StoppedDisk
		}
		c.stop(gently)
	case <-alarm:
		why = incident.StoppedTime
		c.stop(firmly)
	}
	select {
	case <-over:
	case <-time.After(endGrace):
		c.stop(atOnce)
		<-over
	}
	return why
}

// Ways to end a command.
type force int

const (
	gently force = iota // as Ctrl-C does
	firmly
	atOnce
)

// notes are what could not be recorded. Its methods may be called concurrently.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(text ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text...)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list
}
