// Package desk takes what people and programs hand over to be diagnosed, keeps it in a folder of
// its own, diagnoses one case after the other, and answers questions about what came of it. The
// web page, the HTTP API and the tools for agents stand on it; it knows nothing of HTTP.
//
// A case goes receiving → waiting → reading → done, failed or cancelled. What was handed over is
// removed with its case: when the case is removed, when it is the oldest of more than Limits.Cases
// that have ended, and when the desk is closed.
package desk

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Errors that callers tell apart.
var (
	ErrNoCase   = errors.New("no such case")         // never there, or removed since
	ErrName     = errors.New("not a name of a file") // absolute, with .., a device's name, too long, not UTF-8
	ErrTwice    = errors.New("a file of that name is there already")
	ErrTooLarge = errors.New("larger than is taken") // a file, a case, or all cases together
	ErrTooMany  = errors.New("more than are taken")  // files of a case, cases that have not ended
	ErrState    = errors.New("not in this state")    // a file for a case that is being read, a result before its end
	ErrClosed   = errors.New("closed")
)

// Limits bound what a desk takes. Zero values are the defaults of DefaultLimits.
type Limits struct {
	CaseBytes int64 // of all files of one case
	AllBytes  int64 // of all cases together, on the disk
	Files     int   // of one case
	Cases     int   // that have ended and are kept
	Open      int   // that have not ended
}

// DefaultLimits are for one person's machine.
var DefaultLimits = Limits{CaseBytes: 64 << 30, AllBytes: 128 << 30, Files: 65536, Cases: 64, Open: 1024}

// Options are what a desk works with.
type Options struct {
	Dir    string         // holds the desk's own folder, which New makes and Close removes; "" is the system's temporary folder
	Engine engine.Options // readers, catalogue, version, workers; paths, standard input and progress are the desk's
	// Workers is how many cases are diagnosed at once; 0 is one. Each has Engine.Workers.
	Workers int
	Limits  Limits
	Now     func() time.Time
}

// A Result is what a diagnosis gave.
type Result struct {
	Incident *incident.Incident
	Timeline *incident.Timeline
}

// A Handling is what is asked of the diagnosis of a case.
type Handling struct {
	Baseline    string // another case, of a run that worked; "" compares with none
	CompareHost string
	All         bool // read every text
}

// A Desk keeps cases. All methods may be called concurrently.
type Desk struct{}

// New makes a desk and its folder.
func New(o Options) (*Desk, error) { panic("to be written") }

// Begin opens a case in state receiving.
func (d *Desk) Begin(name string) (*incident.Case, error) { panic("to be written") }

// Put writes one file of a case while it comes, and returns the bytes that came. When r or
// ctx ends it early the file stays, as not whole; the error is r's or ctx's.
func (d *Desk) Put(ctx context.Context, id, name string, r io.Reader) (int64, error) {
	panic("to be written")
}

// Local opens a case of paths of this machine, which are read where they lie and never
// removed.
func (d *Desk) Local(name string, paths []string) (*incident.Case, error) { panic("to be written") }

// Diagnose ends the receiving and puts the case in line.
func (d *Desk) Diagnose(id string, h Handling) error { panic("to be written") }

// Cancel ends a case that has not ended; its files go.
func (d *Desk) Cancel(id string) error { panic("to be written") }

// Remove forgets a case and removes its files.
func (d *Desk) Remove(id string) error { panic("to be written") }

// Case is a copy of the case as it is now. Cases are all, the newest first.
func (d *Desk) Case(id string) (*incident.Case, error) { panic("to be written") }

func (d *Desk) Cases() []incident.Case { panic("to be written") }

// Watch calls fn with the case as it is, and again whenever it has changed, at most ten
// times a second and always with its end; it returns when the case or ctx has ended.
func (d *Desk) Watch(ctx context.Context, id string, fn func(*incident.Case) error) error {
	panic("to be written")
}

// Result waits for the end of the case.
func (d *Desk) Result(ctx context.Context, id string) (*Result, error) { panic("to be written") }

// Lines is the window of lines from line n-before to n+after of an artifact, named as the
// incident names it; offset, where it is not negative, says which line is n.
func (d *Desk) Lines(ctx context.Context, id, artifact string, n, offset int64, before, after int) (*incident.Lines, error) {
	panic("to be written")
}

// Memory and Tracker are what inquest memory and inquest tracker show say of the case's
// files; the error says where there is nothing of the kind among them.
func (d *Desk) Memory(ctx context.Context, id string) (*incident.Memory, error) {
	panic("to be written")
}

func (d *Desk) Tracker(ctx context.Context, id string) (*incident.Tracker, error) {
	panic("to be written")
}

func (d *Desk) Close() error { panic("to be written") }
