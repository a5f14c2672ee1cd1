// Package desk takes what people and programs hand over to be diagnosed, keeps it in a folder of
// its own, diagnoses one case after the other, and answers questions about what came of it. The
// web page, the HTTP API and the tools for agents stand on it; it knows nothing of HTTP.
//
// A case goes receiving → waiting → reading → done, failed or cancelled. What was handed over is
// removed with its case: when the case is removed, when it is the oldest of more than Limits.Cases
// that have ended or room is wanted for another, and when the desk is closed.
package desk

import (
	"cmp"
	"errors"
	"sync"
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
	ErrSpace    = errors.New("no space is left on the disk")
	ErrFailed   = errors.New("nothing of it could be answered") // the result of a case that failed
	ErrNothing  = errors.New("nothing of the kind among the files")
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

// DefaultLimits are for one person's machine. The result of a case is in memory for as long as it
// is kept; that of a job of 1024 ranks takes 4 to 6 MiB.
var DefaultLimits = Limits{CaseBytes: 64 << 30, AllBytes: 128 << 30, Files: 65536, Cases: 64, Open: 1024}

// Options are what a desk works with.
type Options struct {
	Dir    string         // holds the desk's own folder, which New makes and Close removes; "" is the system's temporary folder
	Engine engine.Options // readers, catalogue, version, workers; paths, standard input and progress are the desk's
	// Workers is how many cases are diagnosed at once; 0 is one. Each has Engine.Workers.
	Workers int
	Limits  Limits
	Now     func() time.Time // nil is the system's clock
	// Title is the headline of a result; nil takes the words of the first fault.
	Title func(*incident.Incident) string
}

// A Desk keeps cases. All methods may be called concurrently; an id that there is not, or no
// longer, is ErrNoCase in each of them, and once the desk is closed all is ErrClosed.
type Desk struct {
	o      Options
	folder *folder
	clear  sync.WaitGroup // cases whose files are not removed yet

	mu      sync.Mutex
	closed  bool
	cases   map[string]*held
	begun   int            // cases ever
	going   int            // that have not ended
	ended   []*held        // and are kept, in the order in which they ended
	leaving map[*held]bool // whose files are to go, and are not gone
	used    int64          // bytes on the disk
	line    line
	heavy   chan struct{} // one for each reading of snapshots or trackers that may go on at once
}

// New makes a desk and its folder, and removes those that desks of the same user left in
// Options.Dir when their processes were killed. The error says what folder could not be made.
func New(o Options) (*Desk, error) {
	o.Workers = max(o.Workers, 1)
	o.Limits = o.Limits.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Title == nil {
		o.Title = headline
	}
	f, err := newFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Desk{o: o, folder: f, cases: map[string]*held{}, leaving: map[*held]bool{}, line: line{workers: o.Workers}, heavy: make(chan struct{}, o.Workers)}, nil
}

// filled is l with the defaults in place of zeros.
func (l Limits) filled() Limits {
	l.CaseBytes = cmp.Or(l.CaseBytes, DefaultLimits.CaseBytes)
	l.AllBytes = cmp.Or(l.AllBytes, DefaultLimits.AllBytes)
	l.Files = cmp.Or(l.Files, DefaultLimits.Files)
	l.Cases = cmp.Or(l.Cases, DefaultLimits.Cases)
	l.Open = cmp.Or(l.Open, DefaultLimits.Open)
	return l
}

// Limits are those that the desk keeps, none of them zero.
func (d *Desk) Limits() Limits { return d.o.Limits }

// Close cancels what has not ended, waits until nothing is read any more and removes the desk's
// folder. Whoever waits for a case sees it cancelled.
func (d *Desk) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	for _, c := range d.cases {
		d.drop(c)
	}
	d.mu.Unlock()
	d.clear.Wait()
	return d.folder.remove()
}
