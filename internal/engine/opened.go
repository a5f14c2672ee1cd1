package engine

import (
	"io"
	"slices"
	"sync"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
)

// An opening is an artifact while a reader has it: what it is given, and the sum of what it
// read of it in order, nil where it read nothing so.
type opening struct {
	in     reader.Input
	sum    *digest
	opened []io.Closer
}

// openArtifact makes what a reader of f is given. The opening is to be closed.
func openArtifact(f *artifact.File) *opening {
	o := &opening{}
	o.in = reader.Input{Artifact: f.Artifact, Size: f.Size, Dir: f.Dir(), Open: func() (io.ReadCloser, error) {
		rc, err := f.Open()
		if err != nil {
			return nil, err
		}
		o.sum = newDigest(rc, f.Size)
		return o.sum, nil
	}}
	if f.At != nil {
		o.in.At = readerAt(sync.OnceValues(func() (io.ReaderAt, error) { // few readers ask for it
			at, closer, err := f.At()
			if err == nil {
				o.opened = append(o.opened, closer)
			}
			return at, err
		}))
	}
	return o
}

// Close closes what was opened for reading at a place.
func (o *opening) Close() {
	for _, c := range o.opened {
		c.Close()
	}
}

// A readerAt opens what it reads at its first use.
type readerAt func() (io.ReaderAt, error)

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	at, err := r()
	if err != nil {
		return 0, err
	}
	return at.ReadAt(p, off)
}

// artifactOf puts down an artifact as it is known.
func artifactOf(a *evidence.Artifact) incident.Artifact {
	return incident.Artifact{Path: a.Path, Kind: a.Kind, Size: a.Size, Digest: a.Digest, Fate: a.Fate, Note: a.Note,
		Owner: incident.Owner{Job: a.Owner.Job, Attempt: a.Owner.Attempt, Host: a.Owner.Host, Rank: opt(a.Owner.Rank), Basis: a.Owner.Basis}}
}

// unseen states what could not be looked at, but for the named paths that are not there: those
// it lists.
func unseen(seen *artifact.Seen) (limits []incident.Statement, notFound []string) {
	notFound = []string{}
	for _, p := range seen.Problems {
		if slices.ContainsFunc(seen.Missing, func(m artifact.Problem) bool { return m.Path == p.Path }) {
			continue
		}
		limits = append(limits, incident.Statement{Text: p.Path + ": " + p.Err.Error(), Spans: []evidence.Span{{Artifact: p.Path, Kind: "record"}}})
	}
	for _, p := range seen.Missing {
		notFound = append(notFound, p.Path+": "+p.Err.Error())
	}
	slices.Sort(notFound)
	return limits, notFound
}
