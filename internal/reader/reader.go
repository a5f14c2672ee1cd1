// Package reader is the contract between the artifacts of a job and the
// evidence in them: what a Reader is, what it is given and where it puts what it
// finds. Package all lists the readers; readertest is the suite that each must
// pass.
package reader

import (
	"context"
	"io"
	"io/fs"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Confidence says how sure a reader is that an artifact is its own.
type Confidence int

const (
	No     Confidence = 0
	Maybe  Confidence = 10 // readable as text, nothing better known
	Likely Confidence = 50 // typical words, name or shape
	Sure   Confidence = 90 // magic bytes or an unmistakable header
)

// A Reader turns one kind of artifact into evidence. It may be used by several
// goroutines at once, each with its own Input and Sink.
type Reader interface {
	// Name is also the artifact kind that the reader assigns.
	Name() string

	// Sniff reports how sure the reader is that a is its own, from the path and
	// the first bytes (at most 4 KiB). It reads nothing itself.
	Sniff(a evidence.Artifact, head []byte) Confidence

	// Read streams in to s. It returns nil at a clean end and at a truncated
	// one (after s.Damage); an error means nothing more can be had from in.
	// It stops within a chunk of ctx being done and then returns ctx.Err().
	Read(ctx context.Context, in Input, s Sink) error
}

// A Prober is a Reader of databases whose first bytes need not say what they are. It is
// asked about a SQLite database that no reader knew by Sniff, and may read of it what it
// needs for an answer: the list of tables, not their rows.
type Prober interface {
	Reader
	Probe(a evidence.Artifact, r io.ReaderAt) Confidence
}

// Tabular is implemented by readers of tables that people print into job logs
// (nvidia-smi, df, ps, ...): where a log announces such a table, the engine hands
// them the lines from its header on. They pass over what they do not know.
type Tabular interface {
	Reader
	Tabular()
}

// A Tallier is a Sink that keeps accounts: how much of an artifact a reader met of
// each sort. Readers of formats whose every line must be accounted for state it
// where the Sink takes it.
type Tallier interface {
	Tally(what string, n int64)
}

// Snapshots is a Sink that takes memory snapshots whole: they are handed over once
// read, before the events that point into them, and belong to the sink from then on.
type Snapshots interface {
	MemSnapshot(*evidence.MemSnapshot)
}

// An Input is one artifact, opened, bounded and closed by the engine.
type Input struct {
	Artifact evidence.Artifact
	Open     func() (io.ReadCloser, error) // decompressed, from the start; a stream may be opened once
	At       io.ReaderAt                   // nil for streams and compressed files
	Size     int64                         // after decompression; -1 if unknown
	Dir      fs.FS                         // its folder, for formats that span files; may be nil
}

// A Sink receives what a Reader finds. The engine owns it: it counts, bounds
// and orders. A Reader never keeps what it has handed over, except that the
// Series it asked for may be added to until Read returns. A Sink belongs to one
// Read call and is used by one goroutine.
type Sink interface {
	Event(evidence.Event)
	Series(evidence.SeriesKey) *evidence.Series // the same key gives the same series
	Fact(evidence.Fact)
	Owner(evidence.Owner) // what the content says of the artifact's owner
	Damage(evidence.Span, error)
}

// Stopping returns r as long as ctx is not done, and ctx's error then.
func Stopping(ctx context.Context, r io.Reader) io.Reader { return stopping{ctx, r} }

type stopping struct {
	ctx context.Context
	r   io.Reader
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
