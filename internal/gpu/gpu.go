// Package gpu reads the live state of the host's devices, through one runner of the vendors'
// command-line tools that tests replace, and what the system says of the processes that hold
// their memory. Nothing is linked against a vendor's library, and no process but the tools is
// ever started or signalled.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// Patience is how long all tools together may take where the context has no deadline of its
// own. A tool that hangs in the driver is given up then; what the others said counts.
const Patience = 2100 * time.Millisecond

// searching is how long, after the tools, processes that have a device open are searched for.
const searching = 400 * time.Millisecond

var (
	// ErrNoTool says that none of the vendors' tools is installed.
	ErrNoTool = errors.New("none of nvidia-smi, amd-smi and rocm-smi is installed")
	// ErrNoAnswer says that no installed tool named a device.
	ErrNoAnswer = errors.New("no device tool named a device")
	// ErrTooMuch says that a tool printed more than is read.
	ErrTooMuch = errors.New("printed more than is read")
)

// Bytes is the interval of sizes that a printed one stands for: tools cut off below one MiB.
// Hi is negative where none was stated.
type Bytes = textline.Bytes

// None is an index or a number of a process that is not stated.
const None = -1

// A State is what the tools said of the devices at one moment.
type State struct {
	Tool     string // the commands that answered, parted by "; "
	Driver   string // version
	Asked    []Asked
	Devices  []Device // by vendor and index
	Unplaced []Process
	Troubles []Trouble
	Taken    string // the time that a saved output states for itself, as printed
	rows     map[Process]int
}

// Answers of a tool.
const (
	Answered      = "answered"
	NotInstalled  = "not installed"
	DidNotAnswer  = "did not answer in time"
	Failed        = "failed"
	NotUnderstood = "answered with nothing that was understood"
)

// An Asked is one command that was run, and what came of it.
type Asked struct {
	Tool, Command, Answer string
	Detail                string // its own words, on one line
}

// A Device is one GPU. Sizes are intervals; what is not stated has none.
type Device struct {
	Vendor      string // nvidia, amd
	Index       int    // as its tool counts, None where not stated
	UUID, BusID string
	Name        string
	Total, Used Bytes
	Free        Bytes
	Reserved    Bytes // by driver and firmware, where the tool states it
	MIG         bool
	Slices      []Slice
	Processes   []Process
	// Listed says that the tool lists the processes of this device, so that an empty list
	// says that it sees none.
	Listed bool
	// NoneSaid says that it said so in words; a driver that may not show the processes
	// leaves its list empty without them.
	NoneSaid bool
	Bad      []string // values that could not be read: gpu-lost, unreadable
}

// A Slice is a MIG instance.
type Slice struct {
	GI, CI      int // None where not stated
	UUID        string
	Total, Used Bytes
}

// A Process holds memory of a device, as the tool has it: in the process numbers of the
// tool's own namespace.
type Process struct {
	PID    int
	Type   string // C compute, G graphics, C+G, M+C MPS client; "" where not stated
	Name   string // as printed, which may be cut at either end
	Used   Bytes
	GI, CI int // of its MIG instance, None where it is in none
	uuid   string
	bus    string
	index  int
}

// A Trouble is a message of a tool instead of an answer.
type Trouble struct {
	What   string // gpu-lost, no-device-handle, no-devices, no-driver, driver-library-mismatch, nvml-init, inforom-corrupt
	Text   string // the line
	Device int    // None where it speaks of all
	BusID  string
}

// A DeviceUse is the memory of one device for a sample: the lower ends of what is printed,
// None where it is not stated.
type DeviceUse struct {
	Vendor      string
	Index       int
	UUID, BusID string
	Name        string
	Used, Total int64
	// Own is by process; a value is None where the tool knows the process but not its bytes.
	// It is nil where the tool does not account for processes.
	Own map[int]int64
}

// Read asks the tools, all vendors at once: of each the first form that answers. It returns
// within Patience, or by ctx's deadline where it has one. What could be learned is returned
// also with an error, which is ErrNoTool, ErrNoAnswer or that of ctx. run must bear to be
// called from several goroutines.
func Read(ctx context.Context, run Runner) (*State, error) {
	outer := ctx
	ctx, stop := patient(ctx)
	defer stop()
	return read(outer, ctx, run, readNVIDIA, readAMD)
}

// Memory is Read for a sample: memory in use of each device and process, by the cheapest
// commands, without names.
func Memory(ctx context.Context, run Runner) ([]DeviceUse, error) {
	outer := ctx
	ctx, stop := patient(ctx)
	defer stop()
	st, err := read(outer, ctx, run, sampleNVIDIA, sampleAMD)
	var out []DeviceUse
	for _, d := range st.Devices {
		u := DeviceUse{Vendor: d.Vendor, Index: d.Index, UUID: d.UUID, BusID: d.BusID, Name: d.Name, Used: low(d.Used), Total: low(d.Total)}
		if d.Listed {
			u.Own = map[int]int64{}
			for _, p := range d.Processes {
				before, twice := u.Own[p.PID]
				if u.Own[p.PID] = low(p.Used); twice && before >= 0 && p.Used.Known() {
					u.Own[p.PID] += before // one process in two instances
				}
			}
		}
		out = append(out, u)
	}
	return out, err
}

func low(b Bytes) int64 {
	if !b.Known() {
		return None
	}
	return b.Lo
}

func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, Patience)
}

// read runs the readers of both vendors side by side and joins what they found.
func read(outer, ctx context.Context, run Runner, readers ...func(context.Context, Runner) *State) (*State, error) {
	found := make([]chan *State, len(readers))
	for i, f := range readers {
		found[i] = make(chan *State, 1)
		go func() { found[i] <- f(ctx, run) }()
	}
	st := &State{}
	installed := false
	for _, c := range found {
		s := <-c
		st.join(s)
		for _, a := range s.Asked {
			installed = installed || a.Answer != NotInstalled
		}
	}
	switch {
	case outer.Err() != nil && errors.Is(outer.Err(), context.Canceled):
		return st, outer.Err()
	case len(st.Devices) > 0:
		return st, nil
	case !installed:
		return st, ErrNoTool
	}
	return st, ErrNoAnswer
}

// join adds what another vendor's tool said.
func (s *State) join(o *State) {
	if o.Tool != "" {
		if s.Tool != "" {
			s.Tool += "; "
		}
		s.Tool += o.Tool
	}
	if s.Driver == "" {
		s.Driver = o.Driver
	}
	s.Asked = append(s.Asked, o.Asked...)
	s.Devices = append(s.Devices, o.Devices...)
	s.Unplaced = append(s.Unplaced, o.Unplaced...)
	s.Troubles = append(s.Troubles, o.Troubles...)
}

// asked notes how a command fared; out is what it printed.
func (s *State) asked(tool, command, out string, err error, understood bool) {
	a := Asked{Tool: tool, Command: command, Answer: Answered}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		a.Answer = NotInstalled
		s.Asked = append(s.Asked, a)
		return
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		a.Answer = DidNotAnswer
	case err != nil:
		a.Answer, a.Detail = Failed, words(out, err)
	case !understood:
		a.Answer, a.Detail = NotUnderstood, textline.OneLine(first(out), 200)
	}
	s.Asked = append(s.Asked, a)
}

// answered adds a command to those that the state is from.
func (s *State) answered(command string) {
	if s.Tool != "" {
		s.Tool += "; "
	}
	s.Tool += command
}

// words is what a tool that failed said: of its standard output or error the first line
// that has any.
func words(out string, err error) string {
	var exit *exec.ExitError
	said := first(out)
	if errors.As(err, &exit) && said == "" {
		said = first(string(exit.Stderr))
	}
	if said == "" {
		return textline.OneLine(err.Error(), 200)
	}
	return textline.OneLine(fmt.Sprintf("%s (%v)", said, err), 300)
}
