//go:build !unix

package process

import (
	"os"
	"os/signal"
)

// signals are the interrupts that this process gets while the command runs.
type signals struct{ got chan os.Signal }

// catch keeps an interrupt from ending this process before the command: the console sends it to
// both.
func catch(forward bool) *signals {
	s := &signals{got: make(chan os.Signal, 1)}
	if forward {
		signal.Notify(s.got, os.Interrupt)
	}
	return s
}

// adopt is catch for a command whose signals go to got.
func adopt(got chan os.Signal) *signals { return &signals{got: got} }

func survive() {}

// pass has nothing to do: the command got what this process got.
func (s *signals) pass(*child, int) {}

func (s *signals) waiting() int { return 0 }

func (s *signals) release() { signal.Stop(s.got) }

// stop ends the command, in the one way that there is.
func (c *child) stop(force) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.process.Kill()
	}
}

func (c *child) sweep() {}

func widen(*os.File) {}
