package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
)

// evidenceKind is the kind of artifact that holds others, as scan wrote them.
const evidenceKind = "evidence"

// unsought bounds an evidence file that cannot be sought in (a compressed one) and
// is kept in memory.
const unsought = 256 << 20

// A held is an artifact whose record lies in an evidence file.
type held struct {
	blocks *evidencefile.Blocks
	at     evidencefile.Place
	head   *evidencefile.Artifact // without its body
	path   string                 // in the record
}

// record reads it, under the name that it has here.
func (h *held) record() (*evidencefile.Artifact, error) {
	b, err := h.blocks.Artifact(h.at)
	if err != nil {
		return nil, err
	}
	a, err := evidencefile.Decode(b)
	if err != nil {
		return nil, err
	}
	a.Named = h.head.Named
	if h.head.Path != a.Path {
		rename(a, h.head.Path)
	}
	return a, nil
}

// file is what the walk is given in its place.
func (h *held) file() artifact.File {
	a := h.head
	f := artifact.File{Artifact: a.Artifact, Place: a.Place, Host: a.Host, Named: a.Named, Confidence: a.Confidence, ModTime: a.ModTime, Held: h,
		Open: func() (io.ReadCloser, error) { return nil, errors.New("only its evidence is at hand") }}
	f.Owner = evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}
	if !evidence.HostName(f.Host) {
		f.Host = ""
	}
	if a.Read { // what came of reading it is not the walk's
		f.Fate, f.Note = "", ""
	}
	return f
}

// unpack takes the evidence files out of seen and puts in what they hold. It
// returns the scans that they tell of.
func unpack(ctx context.Context, seen *artifact.Seen) ([]*evidencefile.Scan, error) {
	cache, err := evidencefile.NewCache()
	if err != nil {
		return nil, err
	}
	var files []artifact.File
	var scans []*evidencefile.Scan
	var all []*held
	known := map[string]bool{}
	for _, f := range seen.Files {
		if f.Kind != evidenceKind || f.Fate != "" {
			files = append(files, f)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, err := open(&f, cache, func(s *evidencefile.Scan) {
			if key := s.Key(); !known[key] {
				known[key] = true
				scans = append(scans, s)
			}
		})
		all = append(all, some...)
		if err != nil {
			seen.Problems = append(seen.Problems, artifact.Problem{Path: f.Path, Err: err})
			f.Fate, f.Note = "partly read", err.Error()
			if len(some) == 0 {
				f.Fate = "unreadable"
			}
			files = append(files, f)
		}
	}
	seen.Files = files
	slices.SortFunc(scans, func(a, b *evidencefile.Scan) int { return bytes.Compare([]byte(a.Key()), []byte(b.Key())) })
	one, problems := settled(files, all)
	for _, h := range one {
		seen.Files = append(seen.Files, h.file())
	}
	seen.Problems = append(seen.Problems, problems...)
	return scans, nil
}

// open reads the heads of what one evidence file holds.
func open(f *artifact.File, cache *evidencefile.Cache, scan func(*evidencefile.Scan)) (out []*held, err error) {
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	in, at := io.Reader(rc), f.At
	if at == nil {
		var buf bytes.Buffer
		n, rerr := io.Copy(&buf, io.LimitReader(rc, unsought+1))
		if n > unsought {
			rerr = &artifact.LimitError{What: "an evidence file that is compressed once more and larger than " + evidence.Bytes(unsought)}
		}
		in = bytes.NewReader(buf.Bytes())
		at = func() (io.ReaderAt, io.Closer, error) { return bytes.NewReader(buf.Bytes()), io.NopCloser(nil), nil }
		defer func() {
			if rerr != nil {
				err = rerr
			}
		}()
	}
	blocks := cache.Blocks(at)
	bad := error(nil)
	err = evidencefile.Read(in, scan, func(at evidencefile.Place, encoded []byte) {
		head, err := evidencefile.Head(encoded)
		if err != nil {
			bad = &evidencefile.Damage{Offset: at.Offset, What: err.Error()}
			return
		}
		out = append(out, &held{blocks, at, head, head.Path})
	})
	if err == nil {
		err = bad
	}
	return out, err
}

// settled keeps one of each artifact. The same artifact may be in several evidence
// files, read among fewer or more others, or lie here as well; different ones of
// one path (a folder of the same name on each host) are told apart by a number,
// which hangs on their content.
func settled(files []artifact.File, all []*held) ([]*held, []artifact.Problem) {
	here := map[string][]*artifact.File{}
	for i := range files {
		here[files[i].Path] = append(here[files[i].Path], &files[i])
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].path < all[j].path })
	var out []*held
	var problems []artifact.Problem
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].path == all[0].path {
			n++
		}
		group := all[:n]
		all = all[n:]
		group = slices.DeleteFunc(group, func(h *held) bool {
			return slices.ContainsFunc(here[h.path], func(f *artifact.File) bool { return f.ModTime.Equal(h.head.ModTime) && f.Place == h.head.Place })
		})
		if len(group) > 1 {
			group = distinct(group)
		}
		for k, h := range group {
			if k += len(here[h.path]); k > 0 {
				h.head.Path = fmt.Sprintf("%s#%d", h.path, k+1)
			}
		}
		if k := len(group) + len(here[group0(group)]); len(group) > 0 && k > 1 {
			problems = append(problems, artifact.Problem{Path: group[0].path, Err: fmt.Errorf("%d different artifacts have this path; the others are shown with #2 and on. Scan each host with a --host of its own", k)})
		}
		out = append(out, group...)
	}
	return out, problems
}

func group0(g []*held) string {
	if len(g) == 0 {
		return ""
	}
	return g[0].path
}

// distinct keeps of records that say the same the fullest one, and orders what
// differs by the artifact, however much is kept of it.
func distinct(group []*held) []*held {
	share := 0
	for _, h := range group {
		share = max(share, h.head.Share)
	}
	type keyed struct {
		h   *held
		key [sha256.Size]byte
	}
	var list []keyed
	for _, h := range group {
		a, err := h.record()
		if err != nil {
			list = append(list, keyed{h, [sha256.Size]byte{}})
			continue
		}
		a.Named = false
		settle(a, share)
		a.Share = share
		list = append(list, keyed{h, sha256.Sum256(a.Encode())})
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		x, y := a.h.head, b.h.head
		return cmp.Or(cmp.Compare(x.Size, y.Size), cmp.Compare(x.Digest, y.Digest), x.ModTime.Compare(y.ModTime), bytes.Compare(a.key[:], b.key[:]))
	})
	var out []*held
	for i, x := range list {
		if i == 0 || x.key != list[i-1].key {
			out = append(out, x.h)
			continue
		}
		kept := out[len(out)-1]
		named := kept.head.Named || x.h.head.Named
		if x.h.head.Share < kept.head.Share {
			kept = x.h
			out[len(out)-1] = kept
		}
		kept.head.Named = named
	}
	return out
}

// join adds what scans saw and did not read.
func join(seen *artifact.Seen, scans []*evidencefile.Scan) {
	for _, s := range scans {
		seen.Join(&artifact.Seen{Passed: counts(s.Passed), Alike: counts(s.Alike), Problems: problemsOf(s.Problems), More: s.More, Missing: problemsOf(s.Missing)})
	}
}

func counts(list []evidencefile.Tally) []artifact.PassedOver {
	var out []artifact.PassedOver
	for _, t := range list {
		out = append(out, artifact.PassedOver(t))
	}
	return out
}

func problemsOf(list []evidencefile.Problem) []artifact.Problem {
	var out []artifact.Problem
	for _, p := range list {
		out = append(out, artifact.Problem{Path: p.Span.Artifact, Err: errors.New(p.Text)})
	}
	return out
}
