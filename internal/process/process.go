// Package process runs a command in the place of this one: it reads, writes, is signalled and
// ends as it would without, while what it prints is kept beside. It stands alone, without the
// rest of the program, so that a command can be started before that is initialised.
package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
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
	// Caught are the signals that this process was sent before the command could be started: it
	// gets them when it has. Nil where none were caught.
	Caught *Caught
}

// Caught are signals of ending that this process was sent since it began to catch them.
type Caught struct{ signals *signals }

// Catch keeps the signals of ending from ending this process, for a command that is to stand in
// its place and is not started yet.
func Catch() *Caught { return &Caught{catch(true)} }

// Release ends the catching. It has no effect where a command got the signals and has ended.
func (c *Caught) Release() { c.signals.release() }

// Why a command was ended, where the context does not name a cause of its own.
const (
	StoppedInterrupt = "interrupt"
	StoppedTime      = "time limit"
)

// An Exit is how a command ended.
type Exit struct {
	Status  int    // what a shell would report
	Signal  string // SIGKILL, …; "" where it ended by itself
	Core    bool   // a core was dumped
	Error   string // why it did not start
	Stopped string // this program ended it, and why; "" where it did not
}

// A Process is a command that was started, or that could not be: then it has ended already.
type Process struct {
	Begun time.Time // when it was started

	process *os.Process // nil where it did not start
	child   *child
	streams *streams
	signals *signals
	log     *logWriter
	notes   notes
	exit    Exit
}

// Start starts the command. From its first call on a failing write does not end this process.
// Wait and Finish are to be called once each, in this order.
func Start(o Options) *Process {
	p := &Process{log: newLog(o.Log)}
	if o.Forward && o.Caught != nil {
		p.signals = o.Caught.signals
	} else {
		p.signals = catch(o.Forward)
	}
	s, err := openStreams(o, p.log, &p.notes)
	p.Begun = time.Now()
	if err != nil {
		p.exit = Exit{Status: cannotRun, Error: "make its streams: " + err.Error()}
		return p
	}
	p.streams = s
	early := p.signals.waiting()
	c, err := start(o, s)
	survive()
	if err != nil {
		s.abandon()
		p.exit = notStarted(err)
		p.log.say("inquest: " + strings.Join(o.Command[:min(len(o.Command), 1)], "") + " did not start: " + p.exit.Error)
		return p
	}
	p.Begun = time.Now()
	p.follow(c.Process, !o.Forward, early)
	return p
}

// A Running is a command that was started already, in the place of this process, without a
// terminal.
type Running struct {
	Process *os.Process
	Begun   time.Time
	// Out and Err are what it prints; Err is nil where both outputs go to one place.
	Out, Err *os.File
	// Signals gets some of the signals to be passed on already.
	Signals chan os.Signal
	Early   int // how many of them came before the command was there
}

// Adopt makes a Process of one that was started already, as Start would have done with o.
func Adopt(o Options, r Running) *Process {
	p := &Process{Begun: r.Begun, signals: adopt(r.Signals), log: newLog(o.Log)}
	survive()
	p.streams = &streams{notes: &p.notes}
	p.streams.output(r.Out, o.Out, p.log)
	if r.Err != nil {
		p.streams.errors(r.Err, o.Err, p.log)
	}
	p.follow(r.Process, false, r.Early)
	return p
}

// follow begins to copy and to pass signals on, of which early came before the command was there.
func (p *Process) follow(command *os.Process, group bool, early int) {
	p.process, p.child = command, &child{process: command, streams: p.streams, group: group}
	p.signals.pass(p.child, early)
	p.streams.follow(command.Pid)
}

// PID is the command's process number, 0 where it did not start.
func (p *Process) PID() int {
	if p.process == nil {
		return 0
	}
	return p.process.Pid
}

// Position is how much of the output was given to the log by now, in bytes.
func (p *Process) Position() int64 { return p.log.position() }

// Wait waits for the command's end, and returns when that was. When ctx is cancelled or timeout,
// which is none where it is 0, is over, the command is ended, with what it started. The state is
// nil where it did not start.
func (p *Process) Wait(ctx context.Context, timeout time.Duration) (time.Time, *os.ProcessState) {
	if p.process == nil {
		return time.Now(), nil
	}
	over, stopped := make(chan struct{}), make(chan string, 1)
	go func() { stopped <- p.child.limit(ctx, timeout, over) }()
	state, err := p.process.Wait()
	at := time.Now()
	close(over)
	p.child.done()
	p.exit = exitOf(state, err)
	p.exit.Stopped = <-stopped
	return at, state
}

// A Rest is what is known when all of the output has been read.
type Rest struct {
	Exit     Exit
	LogBytes int64 // how much of the output the log took
	// MidLine says that the user's terminal shows an unfinished line.
	MidLine  bool
	Problems []string // what could not be kept or shown
	Unshown  []string // of these, what of the output the user did not get
}

// Finish reads what the command left, gives the terminal back and completes the log. A process
// that outlived the command is not waited for: see finish of the streams.
func (p *Process) Finish() Rest {
	r := Rest{Exit: p.exit}
	if p.process != nil {
		r.MidLine = p.streams.finish()
		if p.child.group {
			p.child.sweep()
		}
	}
	p.streams.restore()
	written, err := p.log.close()
	if r.LogBytes = written; err != nil {
		p.notes.add("the log is not complete: " + err.Error())
	}
	r.Problems, r.Unshown = p.notes.all(), p.notes.lost
	p.signals.release()
	return r
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
