package artifact

import (
	"cmp"
	"path"
	"slices"
)

// Seen is what looking at some of a job's files yields, before anything is said
// that depends on all of them together: which files are a data set, which belong
// to one job, how many are too many. What several of them saw can be joined, in
// any order.
type Seen struct {
	Files    []File
	Passed   []PassedOver // by reason
	Alike    []PassedOver // by extension: files of a data set that are not in Files
	Problems []Problem
	More     int // problems beyond those listed
	Missing  []Problem

	spool *spool
}

// Join adds what other saw elsewhere. Other's files are no longer other's.
func (s *Seen) Join(other *Seen) {
	s.Files = append(s.Files, other.Files...)
	s.Passed = append(s.Passed, other.Passed...)
	s.Alike = append(s.Alike, other.Alike...)
	s.Problems = append(s.Problems, other.Problems...)
	s.More += other.More
	s.Missing = append(s.Missing, other.Missing...)
}

// Close releases what members of archives were kept in, where no Result was made.
func (s *Seen) Close() error {
	if s.spool == nil {
		return nil
	}
	return s.spool.close()
}

// Reduce drops the files that Result is certain to drop as a data set, whatever
// is joined, and lists no more problems than Result keeps.
func (s *Seen) Reduce() {
	count := map[string]int{}
	for _, t := range s.Alike {
		count[t.What] += int(t.Count)
	}
	for i := range s.Files {
		s.Files[i].attribute()
		if f := &s.Files[i]; doubtful(f, f.Owner) {
			count[extension(f.Place)]++
		}
	}
	s.Files = slices.DeleteFunc(s.Files, func(f File) bool {
		ext := extension(f.Place)
		if count[ext] < manyAlike || !doubtful(&f, f.Owner) {
			return false
		}
		s.Alike = append(s.Alike, PassedOver{ext, 1, max(f.Size, 0)})
		return true
	})
	s.Alike, s.Passed = listed(tallies(s.Alike)), listed(tallies(s.Passed))
	slices.SortStableFunc(s.Problems, byPath)
	if n := len(s.Problems) - maxProblems; n > 0 {
		s.Problems, s.More = s.Problems[:maxProblems], s.More+n
	}
}

func byPath(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Err.Error(), b.Err.Error()))
}

// attribute fills the owner from the names, and from who collected the file.
func (f *File) attribute() {
	f.Owner = ownerOf(f.Place)
	if f.Host == "" || f.Owner.Host == f.Host {
		return
	}
	f.Owner.Host = f.Host
	if f.Owner.Basis != "" {
		f.Owner.Basis += ", "
	}
	f.Owner.Basis += "host named when it was scanned"
}

func listed(m map[string]tally) []PassedOver {
	var out []PassedOver
	for what, t := range m {
		out = append(out, PassedOver{what, t.count, t.bytes})
	}
	slices.SortFunc(out, func(a, b PassedOver) int { return cmp.Compare(a.What, b.What) })
	return out
}

func tallies(list []PassedOver) map[string]tally {
	out := make(map[string]tally)
	for _, p := range list {
		t := out[p.What]
		out[p.What] = tally{t.count + p.Count, t.bytes + p.Bytes}
	}
	return out
}

// Together returns for each file how many files are certain to be in one job with
// it, itself included, whatever is joined. The files' owners are known after
// Reduce.
func (s *Seen) Together() []int {
	type class struct{ job, dir string }
	of := func(f *File) class {
		if f.Owner.Job != "" {
			return class{job: f.Owner.Job}
		}
		return class{dir: path.Dir(f.Place)}
	}
	n := map[class]int{}
	for i := range s.Files {
		if f := &s.Files[i]; f.Fate == "" && !doubtful(f, f.Owner) {
			n[of(f)]++
		}
	}
	out := make([]int, len(s.Files))
	for i := range out {
		out[i] = max(n[of(&s.Files[i])], 1)
	}
	return out
}
