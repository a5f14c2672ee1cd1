//go:build unix

package process

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// passed are the signals that the command gets when this process gets them. Those of a fault in
// this process, of its children, and of the terminal's job control are not among them.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGXCPU, syscall.SIGIO, syscall.SIGCONT, syscall.SIGWINCH,
}

// signals are those that this process gets while the command runs.
type signals struct {
	got  chan os.Signal
	over chan struct{}

	forward  bool
	released sync.Once
}

// catch keeps the usual signals of ending from ending this process, where the command stands in
// its place. A signal that was ignored when this process started is ignored by the command as
// well. Each signal that is caught costs a turn between two threads, so that the others wait for
// the command's start.
func catch(forward bool) *signals {
	s := &signals{got: make(chan os.Signal, 64), over: make(chan struct{}), forward: forward}
	if forward {
		s.notify(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	}
	return s
}

// adopt is catch for a command that stands in the place of this process already, whose signals
// go to got.
func adopt(got chan os.Signal) *signals {
	return &signals{got: got, over: make(chan struct{}), forward: true}
}

func (s *signals) notify(list ...os.Signal) {
	for _, sig := range list {
		if !signal.Ignored(sig) {
			signal.Notify(s.got, sig)
		}
	}
}

// survive keeps this process from being ended by what it writes, to a closed pipe or past a
// limit of the size of files: the output, the log and what is told at the end may be either.
var survive = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ) })

// waiting is how many signals wait for a command.
func (s *signals) waiting() int { return len(s.got) }

// pass gives signals to the command until it has ended. The first of them, as many as early says,
// came before it was there: nobody else has sent it those.
func (s *signals) pass(c *child, early int) {
	if s.forward {
		s.notify(passed...)
		s.notify(more...)
	}
	go func() {
		for range early {
			c.kill((<-s.got).(syscall.Signal), false)
		}
		for {
			select {
			case sig := <-s.got:
				c.signal(sig.(syscall.Signal))
			case <-s.over:
				return
			}
		}
	}()
}

// release ends the catching.
func (s *signals) release() {
	s.released.Do(func() {
		signal.Stop(s.got)
		close(s.over)
	})
}

// signal gives the command a signal that this process got.
func (c *child) signal(sig syscall.Signal) {
	t := c.streams.terminal
	switch sig {
	case syscall.SIGWINCH:
		if t != nil {
			t.resize()
		}
		if c.streams.session() {
			return // the system has told the command
		}
	case syscall.SIGCONT:
		if c.streams.session() {
			t.resume()
		}
	case syscall.SIGINT, syscall.SIGQUIT:
		if !c.streams.session() && inForeground() {
			return // the terminal has sent it to the command as well
		}
	}
	c.kill(sig, false)
}

// kill sends sig to the command, or to its whole process group.
func (c *child) kill(sig syscall.Signal, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if all && (c.group || c.streams.session()) {
		unix.Kill(-c.process.Pid, sig)
		return
	}
	c.process.Signal(sig)
}

// stop ends the command.
func (c *child) stop(how force) {
	sig := map[force]syscall.Signal{gently: syscall.SIGINT, firmly: syscall.SIGTERM, atOnce: syscall.SIGKILL}[how]
	c.kill(sig, true)
	if how != atOnce {
		c.kill(syscall.SIGCONT, true)
	}
}

// sweep ends what is left of the command's own process group once it has ended, so that nothing
// of one trial holds memory in the next. A group that has members keeps its number.
func (c *child) sweep() {
	if c.group {
		unix.Kill(-c.process.Pid, syscall.SIGKILL)
	}
}

// inForeground reports whether the process group of this process is the one that the
// controlling terminal sends its signals to.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	g, err := ioctl(tty, func(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	return err == nil && g == unix.Getpgrp()
}

// ioctl asks about an open file without changing how it is read.
func ioctl[T any](f *os.File, ask func(fd int) (T, error)) (T, error) {
	var v T
	raw, err := f.SyscallConn()
	if err != nil {
		return v, err
	}
	if cerr := raw.Control(func(fd uintptr) { v, err = ask(int(fd)) }); cerr != nil {
		return v, cerr
	}
	return v, err
}
