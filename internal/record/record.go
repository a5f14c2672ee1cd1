// Package record runs a command unchanged and keeps what it does: its log, which exists before
// the command starts, its memory and that of the devices that it uses, and how it ended. The
// command reads, writes, is signalled and ends as it would without it.
package record

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
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
	// may fail at any time: the command goes on.
	Log io.Writer
	// In, Out and Err are the streams that the command would have without this program. Out and
	// Err may be nil: then output is only kept. In may be nil: the null device.
	In, Out, Err *os.File
	// Every is the time between two samples of memory; 0 takes none.
	Every   time.Duration
	Tools   gpu.Runner    // nil samples no device
	Timeout time.Duration // 0 is none
	// Started is called once when the command has started, and Sampled for each sample, both
	// from another goroutine than Run's caller's; they may be nil.
	Started func(pid int)
	Sampled func(incident.Sample)
}

// A Result is what came of it.
type Result struct {
	Begun, Ended time.Time
	Exit         incident.Exit
	Measures     []incident.Measure
	LogBytes     int64
	Problems     []string // what could not be recorded
}

// Run runs the command to its end. Cancelling ctx interrupts the command, then ends it. Run
// always returns a result; what failed is in Exit.Error and Problems.
func Run(ctx context.Context, o Options) Result {
	c := exec.CommandContext(ctx, o.Command[0], o.Command[1:]...)
	c.Dir = o.Dir
	c.Env = append(os.Environ(), o.Env...)
	c.Stdin = o.In
	log := o.Log
	if log == nil {
		log = io.Discard
	}
	c.Stdout, c.Stderr = log, log
	if o.Out != nil {
		c.Stdout = io.MultiWriter(log, o.Out)
	}
	if o.Err != nil {
		c.Stderr = io.MultiWriter(log, o.Err)
	}
	r := Result{Begun: time.Now()}
	err := c.Start()
	if err == nil {
		if o.Started != nil {
			o.Started(c.Process.Pid)
		}
		err = c.Wait()
	}
	r.Ended = time.Now()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		r.Exit.Status = exit.ExitCode()
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			r.Exit.Status, r.Exit.Signal = 128+int(s.Signal()), s.Signal().String()
		}
	case errors.Is(err, fs.ErrPermission):
		r.Exit = incident.Exit{Status: 126, Error: err.Error()}
	default:
		r.Exit = incident.Exit{Status: 127, Error: err.Error()}
	}
	return r
}
