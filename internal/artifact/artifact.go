// Package artifact finds what a job left behind: it walks files, folders, globs
// and archives, asks which reader each file is for from its first bytes,
// attributes it to a job, attempt, host and rank by its name, and hands it on
// to be opened later, decompressed and bounded.
package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// The fates that a walk itself decides. "read" and "partly read" are the
// engine's to give, except that an empty file counts as read.
const (
	fateRead          = "read"
	fateUnreadable    = "unreadable"
	fateNotRecognised = "not recognised"
	fateOverLimit     = "over limit"
)

// Limits that have no option. They are far above what jobs leave and far below
// what harms a login node.
const (
	headLen         = 4 << 10  // bytes given to Sniff
	maxDepth        = 2        // archives inside archives; compression alone does not count
	maxLayers       = 2        // compression inside compression
	maxMembers      = 100_000  // members of one archive, nested ones included
	maxZipDirectory = 16 << 20 // bytes of a zip's directory
	maxName         = 4 << 10  // bytes of a member's name
	maxEntries      = 4 << 20  // files listed in all
	maxProblems     = 200      // problems kept one by one
	ratioFloor      = 64 << 20 // decompressed bytes before maxRatio applies
	maxRatio        = 1000     // decompressed over compressed bytes
	maxWindow       = 128 << 20
)

// Options say how to walk. The zero value is usable, but recognises nothing.
type Options struct {
	// Stdin is read for the path "-".
	Stdin io.Reader
	// Roots are folders, absolute, that are nobody's business: what lies in
	// one is named, and attributed, as if it were the current folder.
	Roots []string
	// MaxArchiveBytes bounds the decompressed bytes of one archive (what is in
	// it counted together) and of one compressed file; 0 means 64 GiB. Beyond
	// the first 64 MiB they may also not exceed 1000 times the compressed bytes.
	MaxArchiveBytes int64
	// MaxFiles bounds the files to read; 0 means 20000. Those of the newest job
	// are kept, and among them the surest.
	MaxFiles int
	// Sniff says which reader an artifact is for and how sure that is (10 maybe,
	// 50 likely, 90 sure); "" means that it is nobody's. The artifact has Path
	// and Size; the head is at most 4 KiB, decompressed, and must not be kept.
	// It is called by several goroutines at once.
	Sniff func(a evidence.Artifact, head []byte) (kind string, confidence int)
	// Probe is asked about a database that nobody knew by its first bytes: what it is, its
	// list of tables says, which can lie anywhere in it. It may be nil, is not asked about
	// compressed files, and called by several goroutines at once.
	Probe func(a evidence.Artifact, r io.ReaderAt) (kind string, confidence int)
	// Anchor says of a recognised file whether it belongs to another one, its anchor: the
	// folder that lies in and a pattern of its base name (see reader.Gatherer). Kind "" asks
	// whether any reader claims the place, so that a file that nobody knows by itself is
	// kept until it is clear whether its anchor is there. May be nil.
	Anchor func(kind, place string) (dir, pattern string, ok bool)
	// Exports looks at Parquet files in folders too, which hold exports of trackers there and
	// mostly training data elsewhere.
	Exports bool
	// All keeps every text that is not code, data or a document by its name, also
	// that which no reader claims (its Kind is "") or which looks like a data set.
	All bool
}

// A File is an artifact that can be opened. Open and At may be called by
// several goroutines and as often as wanted, until Result.Close.
type File struct {
	// Artifact has the path as the report names it: relative as the user gave
	// it, members of archives as outer!inner, quoted in Go's manner if it holds
	// anything that does not print. Fate is "" for what is to be read; else it is
	// one of the five fates with the reason in Note, and Open gives an error
	// (nothing, if the file is empty) unless it is "not recognised".
	evidence.Artifact
	// Open reads from the start, decompressed and as UTF-8. Damage in the middle
	// is an error after the bytes before it; a limit is a *LimitError.
	Open func() (io.ReadCloser, error)
	// At is nil unless the bytes lie somewhere as they are.
	At      func() (io.ReaderAt, io.Closer, error)
	ModTime time.Time // zero if unknown
	Head    []byte    // what Sniff saw

	Named      bool    // by the user, one by one
	Place      string  // slash path for attribution; an archive is a folder
	Host       string  // whose it is by the word of who collected it; "" if nobody said
	Confidence int     // of Sniff
	Beside     []*File // files that belong to this one and are none of their own, by place
	Held       any     // what the caller keeps with the file; the walk carries it along

	disk      string // name on disk, "" for members of archives
	companion bool   // no reader knows it, and one says that such a file belongs to another
}

// PassedOver counts what was seen and not read, by extension or reason. Bytes
// is as stored.
type PassedOver struct {
	What         string
	Count, Bytes int64
}

// A Problem is a path that could not be looked at, or not fully.
type Problem struct {
	Path string // as in File
	Err  error
}

// A Job is a group of files that one submitted run left.
type Job struct {
	ID     string    // the scheduler's id, or the run folder, or "" for what was named together
	Basis  string    // how the files are known to belong together
	Files  []int     // its own: indices into Result.Files, ascending
	Shared []int     // files beside those of several jobs that name none: whose they are, names cannot tell
	Newest time.Time // the latest modification time of its own files; zero if unknown
}

// A Result is what a walk found.
type Result struct {
	// Files holds what is to be read, and what looked like an artifact but
	// cannot be read (Fate is set). Order: newest job first, then path.
	Files []File
	// PassedOver is sorted by What.
	PassedOver []PassedOver
	// Problems is sorted by path. Every file with the fate unreadable or over
	// limit has one.
	Problems []Problem
	// Missing are those of them that are a named path which does not exist, or is
	// nothing that can be read.
	Missing []Problem
	// Jobs is newest first: by scheduler id when all have one (ids only grow), by
	// the time in the folder's name when all have one, else by modification
	// time. Every file is in Files of one job or in Shared of several.
	Jobs []Job

	spool *spool
}

// Close releases what members of archives were kept in. No file may be opened
// afterwards.
func (r *Result) Close() error {
	if r == nil || r.spool == nil {
		return nil
	}
	return r.spool.close()
}

// A LimitError says that reading stopped at a limit of ours.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return "over limit: " + e.What }

// Look looks at the paths: files, folders, archives, globs (as path.Match has
// them), and "-" for standard input. Nothing is read past its first 4 KiB
// except archives that have to be read in order and standard input; what is in
// those and recognised is kept, compressed, in memory and then in a temporary
// file until Close. Seen.Result puts in order what was seen; before, what was seen
// elsewhere can be joined.
//
// The error is ctx's, or names the paths when none of them exists; a missing
// one among others is a Problem.
func Look(ctx context.Context, paths []string, o Options) (*Seen, error) {
	if len(paths) == 0 {
		return nil, errors.New("no path named")
	}
	if o.MaxArchiveBytes <= 0 {
		o.MaxArchiveBytes = 64 << 30
	}
	if o.Sniff == nil {
		o.Sniff = func(evidence.Artifact, []byte) (string, int) { return "", 0 }
	}
	w := &walker{o: o, spool: newSpool(spoolMemory, spoolDisk), named: map[string]bool{}}
	f := &found{}
	err := w.walk(ctx, paths, f)
	if err != nil {
		w.spool.close()
		return nil, err
	}
	gather(f, o.Anchor)
	if err := w.around(ctx, f); err != nil {
		w.spool.close()
		return nil, err
	}
	return &Seen{Files: f.files, Passed: listed(f.passed), Alike: listed(f.alike), Problems: f.problems, Missing: f.missing, spool: w.spool}, nil
}

// Result groups the files into jobs and puts everything in order. The Seen is
// used up: the Result closes what it held.
func (s *Seen) Result(o Options) *Result {
	if o.MaxFiles <= 0 {
		o.MaxFiles = 20_000
	}
	r := &Result{Files: s.Files, spool: s.spool}
	f := &found{passed: tallies(s.Passed), alike: tallies(s.Alike), problems: s.Problems, missing: s.Missing}
	sort.SliceStable(r.Files, func(i, j int) bool { return r.Files[i].Path < r.Files[j].Path })
	for i := range r.Files {
		r.Files[i].attribute()
	}
	if !o.All {
		dropData(r, f)
	}
	group(r)
	limit(r, f, o.MaxFiles)
	for what, n := range f.passed {
		r.PassedOver = append(r.PassedOver, PassedOver{what, n.count, n.bytes})
	}
	r.PassedOver = fold(r.PassedOver)
	r.Problems, r.Missing = f.problems, f.missing
	slices.SortStableFunc(r.Problems, byPath)
	slices.SortStableFunc(r.Missing, byPath)
	if n := len(r.Problems) - maxProblems; n > 0 || s.More > 0 {
		r.Problems = append(r.Problems[:min(maxProblems, len(r.Problems)):maxProblems],
			Problem{Path: "", Err: fmt.Errorf("%d more files or folders that could not be looked at", max(n, 0)+s.More)})
	}
	return r
}

// limit drops files beyond the first most, the least sure of the oldest jobs first,
// and all but the first of those that could not be read.
func limit(r *Result, f *found, most int) {
	var read, settled []int
	for i := range r.Files {
		if r.Files[i].Fate == "" {
			read = append(read, i)
		} else {
			settled = append(settled, i)
		}
	}
	drop := make(map[int]bool)
	if n := len(read) - most; n > 0 {
		sort.SliceStable(read, func(i, j int) bool {
			return r.Files[read[i]].Confidence >= sure && r.Files[read[j]].Confidence < sure
		})
		what := fmt.Sprintf("beyond the first %d files", most)
		for _, i := range read[most:] {
			drop[i] = true
			f.pass(what, r.Files[i].Size)
		}
		f.problem("", &LimitError{fmt.Sprintf("more than %d files to read; %d were left out", most, n)})
	}
	for _, i := range settled[min(maxProblems, len(settled)):] {
		drop[i] = true
		f.pass(r.Files[i].Fate, r.Files[i].Size)
	}
	if len(drop) > 0 {
		r.drop(drop)
	}
}

// drop removes files and renumbers the jobs' lists.
func (r *Result) drop(gone map[int]bool) {
	at := make([]int, len(r.Files))
	kept := r.Files[:0]
	for i, file := range r.Files {
		at[i] = len(kept)
		if !gone[i] {
			kept = append(kept, file)
		}
	}
	r.Files = kept
	left := func(list []int) []int {
		out := list[:0]
		for _, i := range list {
			if !gone[i] {
				out = append(out, at[i])
			}
		}
		return out
	}
	jobs := r.Jobs[:0]
	for _, job := range r.Jobs {
		job.Files, job.Shared = left(job.Files), left(job.Shared)
		if len(job.Files) > 0 {
			jobs = append(jobs, job)
		}
	}
	r.Jobs = jobs
}

// maxReasons bounds the lines of PassedOver: names are the writer's to choose.
const maxReasons = 60

// fold sorts by What and folds the rarest into one when there are many.
func fold(p []PassedOver) []PassedOver {
	if len(p) > maxReasons {
		sort.Slice(p, func(i, j int) bool {
			if p[i].Count != p[j].Count {
				return p[i].Count > p[j].Count
			}
			return p[i].What < p[j].What
		})
		rest := PassedOver{What: "other"}
		for _, x := range p[maxReasons:] {
			rest.Count += x.Count
			rest.Bytes += x.Bytes
		}
		p = append(p[:maxReasons:maxReasons], rest)
	}
	sort.Slice(p, func(i, j int) bool { return p[i].What < p[j].What })
	return p
}
