package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sort"
	"sync"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// The SHA-256 of small artifacts is computed, and of larger ones a checksum: SHA-256
// of a large log would cost more than all else that is done with it. The largest
// have none.
const (
	shaLimit    = 256 << 10
	digestLimit = 16 << 20
)

// A Reading is everything that was read of the newest job.
type Reading struct {
	Sources []timeline.Source   // in report order
	Raw     []*reader.Collector // Raw[i] belongs to Sources[i]; nil where nothing was read
	Files   []artifact.File     // Files[i] belongs to Sources[i]
	Walk    *artifact.Result
	Problem []Problem      // in report order
	Older   []artifact.Job // launches of the same folder that were not read
}

// A Problem is a part of an artifact that was not read, or not understood.
type Problem struct {
	Span evidence.Span
	Err  error
}

// Close releases what the walk holds.
func (r *Reading) Close() error { return r.Walk.Close() }

// look returns the options of the walk.
func (o *Options) look() artifact.Options {
	gatherers := map[string]reader.Gatherer{}
	for _, r := range o.Readers {
		if g, ok := r.(reader.Gatherer); ok {
			gatherers[r.Name()] = g
		}
	}
	return artifact.Options{Stdin: o.Stdin, Roots: o.Roots, All: o.All, Anchor: func(kind, place string) (dir, pattern string, ok bool) {
		if kind == "" {
			for _, g := range gatherers {
				if _, _, ok := g.Anchor(place); ok {
					return "", "", true
				}
			}
			return "", "", false
		}
		if g := gatherers[kind]; g != nil {
			return g.Anchor(place)
		}
		return "", "", false
	}, Probe: func(a evidence.Artifact, r io.ReaderAt) (string, int) {
		best, name := reader.No, ""
		for _, x := range o.Readers {
			if p, ok := x.(reader.Prober); ok {
				if c := p.Probe(a, r); c > best {
					best, name = c, x.Name()
				}
			}
		}
		return name, int(best)
	}, Sniff: func(a evidence.Artifact, head []byte) (string, int) {
		if evidencefile.Is(head) {
			return evidenceKind, int(reader.Sure)
		}
		best, name := reader.No, ""
		for _, r := range o.Readers {
			if c := r.Sniff(a, head); c > best {
				best, name = c, r.Name()
			}
		}
		return name, int(best)
	}}
}

// exports are the options of a walk for what experiment trackers left.
func (o *Options) exports() artifact.Options {
	a := o.look()
	a.Exports = true
	return a
}

// Read walks the paths and reads the newest job's artifacts, several at once.
// The order of the result depends only on the input. On cancellation it returns
// ctx.Err().
func Read(ctx context.Context, o Options) (*Reading, error) {
	seen, err := artifact.Look(ctx, o.Paths, o.look())
	if err != nil {
		return nil, err
	}
	return readSeen(ctx, o, seen, 0)
}

// readSeen is Read of what was looked at, which it closes. Of each series at least dense
// points are kept, if it is not 0.
func readSeen(ctx context.Context, o Options, seen *artifact.Seen, dense int) (*Reading, error) {
	byName, tables := o.readers()
	scans, err := unpack(ctx, seen)
	if err != nil {
		seen.Close()
		return nil, err
	}
	join(seen, scans)
	walk := seen.Result(o.look())
	out := &Reading{Walk: walk}
	chosen := make([]bool, len(walk.Files))
	for n, j := range walk.Jobs {
		if n > 0 {
			out.Older = append(out.Older, j)
			continue
		}
		for _, i := range j.Files {
			chosen[i] = true
		}
	}
	if len(walk.Jobs) == 0 {
		for i := range chosen {
			chosen[i] = true
		}
	}
	for i := range walk.Files {
		walk.Files[i].Head = nil // not looked at again; 4 KiB of each file add up
		if chosen[i] {
			out.Files = append(out.Files, walk.Files[i])
		}
	}
	results := make([]result, len(out.Files))
	// Records beside the run are few, and one of them tells of every rank.
	share := map[bool]int{}
	for i := range out.Files {
		share[evidence.Beside(out.Files[i].Kind)]++
	}
	work := make(chan int)
	var wg sync.WaitGroup
	workers := min(max(o.Workers, 1), max(len(out.Files), 1))
	var done sync.Mutex
	finished := 0
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range work {
				results[i] = readOne(ctx, &out.Files[i], byName[out.Files[i].Kind], tables, share[evidence.Beside(out.Files[i].Kind)], dense)
				if o.Progress != nil {
					done.Lock()
					finished++
					o.Progress(finished, len(out.Files))
					done.Unlock()
				}
			}
		}()
	}
	for i := range out.Files {
		if ctx.Err() != nil {
			break
		}
		work <- i
	}
	close(work)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		out.Close()
		return nil, err
	}
	for i := range results {
		out.Sources = append(out.Sources, results[i].source)
		out.Raw = append(out.Raw, results[i].collected)
		out.Files[i].Artifact = results[i].source.Artifact
		out.Problem = append(out.Problem, results[i].problems...)
	}
	nameHosts(out.Sources, o.CompareHost)
	for _, p := range walk.Problems {
		out.Problem = append(out.Problem, Problem{Span: evidence.Span{Artifact: p.Path, Kind: "text"}, Err: p.Err})
	}
	sort.SliceStable(out.Problem, func(i, j int) bool { return out.Problem[i].Span.Artifact < out.Problem[j].Span.Artifact })
	return out, nil
}

type result struct {
	source    timeline.Source
	collected *reader.Collector
	problems  []Problem
}

// readOne reads one of n artifacts, from itself or from its evidence.
func readOne(ctx context.Context, f *artifact.File, r reader.Reader, tables []reader.Tabular, n, dense int) result {
	var a *evidencefile.Artifact
	if h, ok := f.Held.(*held); ok {
		var err error
		if a, err = h.record(); err != nil {
			a = &evidencefile.Artifact{Artifact: f.Artifact}
			a.Fate, a.Note = "unreadable", err.Error()
			a.Failed = &evidencefile.Problem{Span: evidence.Span{Artifact: f.Path, Kind: "text"}, Text: err.Error()}
		}
		settle(a, n)
		a.Quotes, a.Around = nil, nil // read again where they are wanted
	} else {
		a = gather(ctx, f, r, tables, n, dense)
	}
	res := result{source: timeline.Source{Artifact: a.Artifact, Events: a.Events, Series: a.Series, Facts: a.Facts, CutLine: a.CutLine}}
	own := &res.source.Artifact
	own.Owner = f.Owner
	if a.Read {
		res.collected = collector(a)
		mergeOwner(&own.Owner, a.Owners)
	}
	problem := func(p evidencefile.Problem) {
		res.problems = append(res.problems, Problem{Span: p.Span, Err: errors.New(p.Text)})
	}
	for _, d := range a.Damages {
		problem(d)
	}
	if a.DroppedEvents+a.DroppedSeries+a.DroppedFacts > 0 {
		problem(evidencefile.Problem{Span: evidence.Span{Artifact: a.Path, Kind: "text"},
			Text: fmt.Sprintf("more in it than is kept: %d events, %d series and %d settings were counted only", a.DroppedEvents, a.DroppedSeries, a.DroppedFacts)})
	}
	if a.Failed != nil {
		problem(*a.Failed)
	}
	return res
}

// mergeOwner fills what the name did not say with what the content says. Where
// both speak and differ, the content of the file counts.
func mergeOwner(o *evidence.Owner, said []evidence.Owner) {
	for _, s := range said {
		if s.Host != "" && o.Host != s.Host {
			if o.Host != "" && o.Basis != "" {
				o.Basis += "; its lines name the host"
			}
			o.Host = s.Host
		}
		if s.Job != "" && o.Job == "" {
			o.Job = s.Job
		}
		if s.Rank != evidence.None && o.Rank != s.Rank {
			o.Rank = s.Rank
			if o.Basis != "" && s.Basis != "" {
				o.Basis += "; "
			}
			o.Basis += s.Basis
		}
		if s.LocalRank != evidence.None && o.LocalRank == evidence.None {
			o.LocalRank = s.LocalRank
		}
	}
}

// digest sums what passes through while it is small.
type digest struct {
	in    io.ReadCloser
	sha   hash.Hash
	crc   uint32
	n     int64
	last  byte // the last byte read
	ended bool
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newDigest sums what is read of in; size is what is expected, -1 if unknown.
func newDigest(in io.ReadCloser, size int64) *digest {
	d := &digest{in: in}
	if size <= shaLimit {
		d.sha = sha256.New()
	}
	return d
}

func (d *digest) Read(p []byte) (int, error) {
	n, err := d.in.Read(p)
	d.n += int64(n)
	if n > 0 {
		d.last = p[n-1]
	}
	if d.sha != nil && d.n <= shaLimit {
		d.sha.Write(p[:n])
	}
	if d.n <= digestLimit {
		d.crc = crc32.Update(d.crc, castagnoli, p[:n])
	}
	if err == io.EOF {
		d.ended = true
	}
	return n, err
}

// String is "" where not all was read, or too much.
func (d *digest) String() string {
	switch {
	case !d.ended || d.n > digestLimit:
		return ""
	case d.sha != nil && d.n <= shaLimit:
		return fmt.Sprintf("sha256:%x", d.sha.Sum(nil))
	}
	return fmt.Sprintf("crc32c:%08x", d.crc)
}

func (d *digest) Close() error { return d.in.Close() }
