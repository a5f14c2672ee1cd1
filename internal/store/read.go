package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/incident"
)

// readers is how many files are read at once: over a network it is the waiting that takes time.
const readers = 8

// ErrNotFound is for what the store does not have.
var ErrNotFound = errors.New("not in the store")

// A found is a file of the truth: a trial's records or an act.
type found struct {
	path  string // below the store, with slashes
	id    string
	act   bool
	size  int64
	mtime int64 // nanoseconds
}

func (f *found) name(s *Store) string { return filepath.Join(s.dir, filepath.FromSlash(f.path)) }

// walk lists the files of the truth in the order of their paths. Links, and what this program
// does not write, are passed over; what is in the place of a file or a folder and is not one
// is named.
func (s *Store) walk(ctx context.Context) ([]found, []string, error) {
	var out []found
	var problems []string
	for _, top := range []string{"acts", "trials"} {
		months, err := s.folder(top)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				if top == "trials" { // nothing can be said of what is kept
					return nil, nil, fmt.Errorf("read store: %w", err)
				}
				problems = append(problems, top+": "+reason(err))
			}
			continue
		}
		for _, m := range months {
			rel := top + "/" + m.Name()
			if !m.IsDir() {
				if m.Type()&fs.ModeSymlink != 0 {
					problems = append(problems, bounded(rel, 200)+": a link; it is not followed")
				}
				continue
			}
			entries, err := s.folder(rel)
			if err != nil {
				problems = append(problems, bounded(rel, 200)+": "+reason(err))
				continue
			}
			for _, e := range entries {
				if err := ctx.Err(); err != nil {
					return nil, nil, err
				}
				f, problem := s.look(rel, e, top == "acts")
				if problem != "" {
					problems = append(problems, bounded(rel+"/"+e.Name(), 200)+": "+problem)
				}
				if f != nil {
					out = append(out, *f)
				}
			}
		}
	}
	return out, problems, nil
}

// folder lists a folder of the store that is one itself, not a link to one.
func (s *Store) folder(rel string) ([]fs.DirEntry, error) {
	name := filepath.Join(s.dir, filepath.FromSlash(rel))
	st, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, errors.New("it is no folder; links are not followed")
	}
	return os.ReadDir(name)
}

// look is the file that an entry of a month is or holds.
func (s *Store) look(rel string, e fs.DirEntry, act bool) (*found, string) {
	f := &found{act: act}
	if act {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !isID(id) {
			return nil, "" // being written, or beside an act
		}
		f.path, f.id = rel+"/"+e.Name(), id
	} else {
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			return nil, "a link; it is not followed"
		case !e.IsDir():
			return nil, ""
		case !isID(e.Name()):
			return nil, "its name is no id of a trial"
		}
		f.path, f.id = rel+"/"+e.Name()+"/"+recordFile, e.Name()
	}
	st, err := os.Lstat(f.name(s))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "" // its folder was made a moment ago
	case err != nil:
		return nil, reason(err)
	case !st.Mode().IsRegular():
		return nil, errNotRegular.Error()
	}
	f.size, f.mtime = st.Size(), st.ModTime().UnixNano()
	return f, ""
}

// A kept is what a file of the truth holds: a trial without samples and diagnosis, or an act.
type kept struct {
	Trial *incident.Trial `json:"trial,omitempty"`
	Act   *incident.Act   `json:"act,omitempty"`
}

// read reads a file of the truth.
func (s *Store) read(f *found) (*kept, error) {
	if f.act {
		a, err := s.readAct(f)
		return &kept{Act: a}, err
	}
	r, err := s.readTrial(f, false)
	if err != nil {
		return nil, err
	}
	return &kept{Trial: &r.Trial}, nil
}

func (s *Store) readTrial(f *found, samples bool) (*Reading, error) {
	file, _, err := openRegular(f.name(s))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return foldTrial(filepath.Dir(f.name(s)), f.id, file, samples)
}

// readAll reads files, some at once, and returns what they hold in their order, or why one could
// not be read. The error is the context's.
func (s *Store) readAll(ctx context.Context, files []found) ([]*kept, []error, error) {
	out, errs := make([]*kept, len(files)), make([]error, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(readers, len(files)) {
		wg.Go(func() {
			for i := range next {
				out[i], errs[i] = s.read(&files[i])
			}
		})
	}
	for i := range files {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	for i, err := range errs {
		if err != nil {
			out[i] = nil
		}
	}
	return out, errs, nil
}

// A Contents is all that a store has.
type Contents struct {
	Trials   []incident.Trial // oldest first, without samples
	Acts     []incident.Act   // oldest first
	Problems []string         // what could not be read
}

// newContents sorts what files hold.
func newContents(all []*kept, problems []string) *Contents {
	c := &Contents{Trials: []incident.Trial{}, Acts: []incident.Act{}, Problems: list(problems)}
	for _, k := range all {
		switch {
		case k == nil:
		case k.Trial != nil:
			c.Trials = append(c.Trials, *k.Trial)
		case k.Act != nil:
			c.Acts = append(c.Acts, *k.Act)
		}
	}
	slices.SortStableFunc(c.Trials, func(a, b incident.Trial) int { return byTime(a.Begun, b.Begun, a.ID, b.ID) })
	slices.SortStableFunc(c.Acts, func(a, b incident.Act) int { return byTime(a.At, b.At, a.ID, b.ID) })
	return c
}

// byTime orders times in RFC 3339, UTC; equal ones by their ids.
func byTime(a, b, idA, idB string) int {
	return cmp.Or(strings.Compare(strings.TrimSuffix(a, "Z"), strings.TrimSuffix(b, "Z")), strings.Compare(idA, idB))
}

// Contents returns all trials and acts.
func (s *Store) Contents(ctx context.Context) (*Contents, error) {
	v, err := s.view(ctx, true)
	if err != nil {
		return nil, err
	}
	return v.contents, nil
}

// Trials returns all trials, oldest first, without their samples, and what of the store could
// not be read. A store that does not exist has none.
func (s *Store) Trials(ctx context.Context) ([]incident.Trial, []string, error) {
	c, err := s.Contents(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.Trials, c.Problems, nil
}

// Trial returns a trial with its samples and its diagnosis. The error is ErrNotFound where the
// store has none with this id.
func (s *Store) Trial(id string) (*Reading, error) {
	if !isID(id) {
		return nil, fmt.Errorf("trial %q: %w", bounded(id, 80), ErrNotFound)
	}
	months, err := s.folder("trials")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read trial: %w", err)
	}
	for _, m := range months {
		if !m.IsDir() {
			continue
		}
		f := &found{path: "trials/" + m.Name() + "/" + id + "/" + recordFile, id: id}
		if st, err := os.Lstat(filepath.Dir(f.name(s))); err != nil || !st.IsDir() {
			continue
		}
		r, err := s.readTrial(f, true)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read trial %s: %w", id, err)
		}
		settle(&r.Trial, filepath.Dir(f.name(s)))
		return r, nil
	}
	return nil, fmt.Errorf("trial %q: %w", id, ErrNotFound)
}
