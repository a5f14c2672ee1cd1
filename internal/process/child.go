package process

import (
	"context"
	"os"
	"sync"
	"time"
)

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
		why = StoppedInterrupt
		if cause := context.Cause(ctx); cause != ctx.Err() {
			why = cause.Error()
		}
		c.stop(gently)
	case <-alarm:
		why = StoppedTime
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
	lost []string // of list, what the user did not get to see
}

// unshown notes that output did not reach the user.
func (n *notes) unshown(text string) {
	n.add(text)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = append(n.lost, text)
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
