// Package record runs a command unchanged and keeps what it does: its log, which exists before
// the command starts, its memory and that of the devices that it uses, and how it ended. The
// command reads, writes, is signalled and ends as it would without it.
package record

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/process"
)

// Options say what to run and where its output goes.
type Options struct {
	Command []string
	Dir     string   // "" is this process's
	Env     []string // set beside this process's environment, NAME=value
	// Log, In, Out, Err, Forward and Caught are those of process.Options.
	Log          io.Writer
	In, Out, Err *os.File
	Forward      bool
	Caught       *process.Caught
	// Process is the command where it was started already; then all before it was said there.
	Process *process.Process
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
	Unshown []string // of Problems, what of the output the user did not get
}

// Run runs the command to its end. Cancelling ctx interrupts the command, then ends it. Run
// always returns a result; what failed is in Exit.Error and Problems. From its first call on a
// failing write does not end this process.
func Run(ctx context.Context, o Options) Result {
	p := o.Process
	if p == nil {
		p = process.Start(process.Options{Command: o.Command, Dir: o.Dir, Env: o.Env, Log: o.Log, In: o.In, Out: o.Out, Err: o.Err, Forward: o.Forward, Caught: o.Caught})
	}
	r := Result{Begun: p.Begun}
	var kills, atLimit *int64
	if pid := p.PID(); pid == 0 {
		r.Ended, _ = p.Wait(ctx, 0)
	} else {
		if sampled := o.Sampled; sampled != nil {
			o.Sampled = func(x incident.Sample) {
				x.Log = p.Position() // which step it was at, then
				sampled(x)
			}
		}
		var beside sync.WaitGroup
		if o.Started != nil {
			beside.Go(func() { o.Started(pid) })
		}
		smp := newSampler(pid, o, r.Begun)
		smp.start()
		var state *os.ProcessState
		r.Ended, state = p.Wait(ctx, o.Timeout)
		r.Measures, r.Problems = smp.stop(state)
		kills, atLimit = smp.kills()
		defer beside.Wait()
	}
	rest := p.Finish()
	r.Exit = incident.Exit{
		Status: rest.Exit.Status, Signal: rest.Exit.Signal, Core: rest.Exit.Core, Error: rest.Exit.Error, Stopped: rest.Exit.Stopped,
		OOMKills: kills, AtLimit: atLimit,
	}
	r.LogBytes, r.MidLine, r.Unshown = rest.LogBytes, rest.MidLine, rest.Unshown
	r.Problems = append(r.Problems, rest.Problems...)
	return r
}
