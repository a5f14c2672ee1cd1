package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/redact"
)

// A Scanned says what a scan wrote.
type Scanned struct {
	Artifacts  int   // records written
	Recognised int   // of them, those that a reader read
	Read       int   // of them, those read now
	Bytes      int64 // that they hold, decompressed
	Unread     []Problem
	Damaged    bool // an evidence file among the paths could not be read to its end
}

// Scan reads the paths as Diagnose does, but the artifacts of every launch, and
// writes what it read to w as an evidence file. Evidence files among the paths are
// merged in. A Diagnose of the result is that of the paths. The name, where it is
// given, comes before the path of each artifact read now, and host is whose it is.
func Scan(ctx context.Context, o Options, name, host string, w io.Writer) (*Scanned, error) {
	seen, err := artifact.Look(ctx, o.Paths, o.look())
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	for i := range seen.Files {
		f := &seen.Files[i]
		if f.Kind == evidenceKind && f.Fate == "" {
			continue
		}
		f.Host = host
		if name != "" {
			f.Path, f.Place = below(name, f.Path), below(name, f.Place)
		}
	}
	scans, err := unpack(ctx, seen)
	if err != nil {
		return nil, err
	}
	out := &Scanned{}
	for _, p := range seen.Problems {
		out.Unread = append(out.Unread, Problem{Span: evidence.Span{Artifact: p.Path}, Err: p.Err})
	}
	for i := range seen.Files {
		out.Damaged = out.Damaged || seen.Files[i].Kind == evidenceKind && seen.Files[i].Held == nil
	}
	seen.Reduce()
	sort.SliceStable(seen.Files, func(i, j int) bool { return stored(&seen.Files[i]) < stored(&seen.Files[j]) })
	if s := own(seen, name, o.Paths); s != nil {
		scans = append(scans, s)
	}
	slices.SortFunc(scans, func(a, b *evidencefile.Scan) int { return strings.Compare(a.Key(), b.Key()) })
	ew, err := evidencefile.NewWriter(w)
	if err != nil {
		return nil, err
	}
	for _, s := range scans {
		if err := ew.Scan(s); err != nil {
			return nil, err
		}
	}
	if err := records(ctx, o, seen, ew, out); err != nil {
		return nil, err
	}
	return out, ew.Close()
}

// below puts path below a folder of the name.
func below(name, path string) string {
	return strings.TrimSuffix(name, "/") + "/" + strings.TrimLeft(path, "/")
}

// stored is the path that a file's record has.
func stored(f *artifact.File) string {
	if h, ok := f.Held.(*held); ok {
		return h.path
	}
	return redact.Text(f.Path)
}

// own puts down what this scan itself saw and did not read; nil if that is
// nothing.
func own(seen *artifact.Seen, name string, paths []string) *evidencefile.Scan {
	s := &evidencefile.Scan{More: seen.More}
	put := func(list []artifact.Problem) (out []evidencefile.Problem) {
		for _, p := range list {
			if name != "" && p.Path != "" {
				p.Path = below(name, p.Path)
			}
			out = append(out, evidencefile.Problem{Span: evidence.Span{Artifact: redact.Text(p.Path)}, Text: redact.Text(p.Err.Error())})
		}
		return out
	}
	for _, t := range seen.Passed {
		s.Passed = append(s.Passed, evidencefile.Tally(t))
	}
	for _, t := range seen.Alike {
		s.Alike = append(s.Alike, evidencefile.Tally(t))
	}
	s.Problems, s.Missing = put(seen.Problems), put(seen.Missing)
	if len(s.Passed)+len(s.Alike)+len(s.Problems)+len(s.Missing)+s.More == 0 {
		return nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", name, paths)
	for i := range seen.Files {
		if f := &seen.Files[i]; f.Held == nil {
			fmt.Fprintf(h, "%q %d %d", f.Path, f.Size, f.ModTime.UnixNano())
		}
	}
	s.Of = fmt.Sprintf("%x", h.Sum(nil)[:8])
	return s
}

// records writes a record for each file, in their order. Files are read several at
// once; as many results as there are workers wait to be written.
func records(ctx context.Context, o Options, seen *artifact.Seen, ew *evidencefile.Writer, out *Scanned) error {
	byName, tables := o.readers()
	together := seen.Together()
	type encoded struct {
		a   *evidencefile.Artifact
		buf []byte
		err error
	}
	results := make([]chan encoded, len(seen.Files))
	for i := range results {
		results[i] = make(chan encoded, 1)
	}
	workers := max(o.Workers, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ahead := make(chan struct{}, 2*workers)
	work := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range work {
				var e encoded
				if e.err = ctx.Err(); e.err == nil {
					e.a, e.err = record(ctx, &seen.Files[i], byName[seen.Files[i].Kind], tables, together[i])
				}
				if e.err == nil {
					e.buf = fitting(e.a)
				}
				results[i] <- e
			}
		}()
	}
	go func() {
		defer close(work)
		for i := range results {
			select {
			case ahead <- struct{}{}:
				work <- i
			case <-ctx.Done():
				for ; i < len(results); i++ {
					results[i] <- encoded{err: ctx.Err()}
				}
				return
			}
		}
	}()
	var first error
	for i := range results {
		e := <-results[i]
		if e.err == nil && first == nil {
			e.err = ew.Artifact(e.a.Path, e.buf)
		}
		if first == nil && e.err == nil {
			<-ahead
			out.Artifacts++
			out.Bytes += max(e.a.Size, 0)
			if e.a.Read {
				out.Recognised++
				if seen.Files[i].Held == nil {
					out.Read++
				}
			}
			if o.Progress != nil {
				o.Progress(i+1, len(results))
			}
		} else if first == nil {
			first = e.err
			stop()
		}
	}
	wg.Wait()
	return first
}

// record reads one file, or takes its record from where it lies.
func record(ctx context.Context, f *artifact.File, r reader.Reader, tables []reader.Tabular, n int) (*evidencefile.Artifact, error) {
	if h, ok := f.Held.(*held); ok {
		b, err := h.blocks.Artifact(h.at)
		if err != nil {
			return nil, err
		}
		a, err := evidencefile.Decode(b)
		if err != nil {
			return refused(h.head, err), nil
		}
		a.Named = h.head.Named
		settle(a, n)
		return a, nil
	}
	a := gather(ctx, f, r, tables, n, 0)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	known := *f // with the size, by which a stream is read again or not
	known.Size = a.Size
	quote(a, &known)
	a.Place = redact.Text(a.Place)
	a.Owner = evidence.Owner{}
	if path := redact.Text(a.Path); path != a.Path {
		rename(a, path)
	}
	return a, nil
}

// refused stands for a record that cannot be taken, and why.
func refused(head *evidencefile.Artifact, err error) *evidencefile.Artifact {
	a := *head
	a.Read, a.Fate, a.Note = true, "unreadable", err.Error()
	if !evidence.HostName(a.Host) {
		a.Host = ""
	}
	a.Failed = &evidencefile.Problem{Span: evidence.Span{Artifact: a.Path, Kind: "text"}, Text: err.Error()}
	return &a
}

// fitting encodes a so that it can be read again, with less of it where it is too
// much.
func fitting(a *evidencefile.Artifact) []byte {
	for {
		points := 0
		for _, s := range a.Series {
			points += len(s.State().Sample)
		}
		if points <= evidencefile.MaxPoints {
			if b := a.Encode(); len(b) <= evidencefile.MaxRecord {
				return b
			}
		}
		if a.Share > 1<<12 { // nothing becomes less any more
			a.Quotes, a.Around = nil, nil
			a.Series = a.Series[:min(len(a.Series), 1000)]
			return a.Encode()
		}
		settle(a, 2*a.Share)
	}
}

// readers indexes the readers by the kind that each is for.
func (o *Options) readers() (map[string]reader.Reader, []reader.Tabular) {
	byName := map[string]reader.Reader{}
	var tables []reader.Tabular
	for _, r := range o.Readers {
		byName[r.Name()] = r
		if t, ok := r.(reader.Tabular); ok {
			tables = append(tables, t)
		}
	}
	return byName, tables
}
