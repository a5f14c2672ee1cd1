package engine

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/reader"
)

// MemoryOptions say what Memory looks at in each snapshot.
type MemoryOptions = memory.Options

// MemoryReplay says what Memory tries in the simulated allocator.
type MemoryReplay = memory.Replay

// ParseChange reads one change to try in the simulated allocator: settings as in
// PYTORCH_CUDA_ALLOC_CONF, capacity:SIZE, empty_cache@EVENT, several with blanks between
// them. The error says what is wrong with it.
var ParseChange = memory.ParseChange

// snapshotKind is the kind of artifacts that hold memory snapshots.
const snapshotKind = "memsnap"

// maxNamed bounds the artifacts that are named one by one as no snapshots.
const maxNamed = 20

// Memory reads the memory snapshots among the paths, one after the other in the order
// of their paths, and says what each shows and how they differ. What is no snapshot is
// named under limits. The error is ctx's, or says why nothing could be looked at.
func Memory(ctx context.Context, o Options, mo MemoryOptions) (*incident.Memory, error) {
	seen, err := artifact.Look(ctx, o.Paths, o.look())
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	seen.Reduce()
	sort.SliceStable(seen.Files, func(i, j int) bool { return seen.Files[i].Path < seen.Files[j].Path })
	out := &incident.Memory{Schema: incident.MemorySchema, Tool: incident.Tool{Name: "inquest", Version: o.Version}, Snapshots: []incident.MemorySnapshot{},
		Limits: []incident.Statement{}, Artifacts: []incident.Artifact{}, NotFound: []string{}}
	limit := func(format string, args ...any) {
		out.Limits = append(out.Limits, incident.Statement{Text: fmt.Sprintf(format, args...), Spans: []evidence.Span{}})
	}
	byName, _ := o.readers()
	var files []*artifact.File
	others := 0
	for i := range seen.Files {
		switch f := &seen.Files[i]; {
		case f.Kind == snapshotKind:
			files = append(files, f)
		case f.Named && others < maxNamed:
			others++
			limit("%s is no memory snapshot and was not read%s.", f.Path, reason(f))
			out.Limits[len(out.Limits)-1].Spans = []evidence.Span{{Artifact: f.Path, Kind: "record"}}
		default:
			others++
		}
	}
	if others > maxNamed || others > 0 && len(out.Limits) == 0 {
		what := "%d other files are no memory snapshots and were not read."
		if others-len(out.Limits) == 1 {
			what = "%d other file is no memory snapshot and was not read."
		}
		limit(what, others-len(out.Limits))
	}
	mo.Buckets, mo.Largest = drawn(mo.Buckets, len(files)), drawn(mo.Largest, len(files))
	var prints []*memory.Print
	for n, f := range files {
		s, p, err := snapshot(ctx, f, byName[snapshotKind], mo, out)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out.Snapshots, prints = append(out.Snapshots, *s), append(prints, p)
		}
		if o.Progress != nil {
			o.Progress(n+1, len(files))
		}
	}
	limits, notFound := unseen(seen)
	out.Limits, out.NotFound = append(out.Limits, limits...), notFound
	if len(prints) > 1 {
		out.Change = memory.Change(prints, max(mo.Top, 10))
		out.Ranks = memory.Ranks(out.Snapshots)
	}
	mask(out)
	return out, nil
}

// drawn is how much of n for all files together one of them may draw: no file's picture
// is cut below what a screen shows.
func drawn(n, files int) int { return max(n/max(files, 1), min(n, 2048)) }

// reason says what a file that is no snapshot is, as far as that was seen.
func reason(f *artifact.File) string {
	switch {
	case f.Fate != "" && f.Note != "":
		return ": " + f.Note
	case f.Kind != "":
		return "; inquest diagnose reads it (" + f.Kind + ")"
	}
	return ""
}

// A wholeSink keeps the snapshot that a reader hands over, and what was damaged.
type wholeSink struct {
	*reader.Collector
	got *evidence.MemSnapshot
}

func (s *wholeSink) MemSnapshot(m *evidence.MemSnapshot) { s.got = m }

// snapshot reads and examines one file. It returns nil where nothing could be read;
// the artifact and what is wrong with it are put down either way.
func snapshot(ctx context.Context, f *artifact.File, r reader.Reader, mo MemoryOptions, out *incident.Memory) (*incident.MemorySnapshot, *memory.Print, error) {
	a := artifactOf(&f.Artifact)
	problem := func(sp evidence.Span, text string) {
		out.Limits = append(out.Limits, incident.Statement{Text: f.Path + ": " + text, Spans: []evidence.Span{sp}})
	}
	if f.Fate != "" || r == nil || f.Open == nil {
		out.Artifacts = append(out.Artifacts, a)
		return nil, nil, nil
	}
	sink := &wholeSink{Collector: reader.NewCollector()}
	file := openArtifact(f)
	defer file.Close()
	err := r.Read(ctx, file.in, sink)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if sum := file.sum; sum != nil {
		a.Size, a.Digest = sum.n, sum.String()
	}
	a.Fate = "read"
	for i, d := range sink.Damages {
		if a.Fate, a.Note = "partly read", d.Err.Error(); i < maxNamed {
			text := d.Err.Error()
			if d.Span.Offset > 0 {
				text = fmt.Sprintf("at byte %d: %s", d.Span.Offset, text)
			}
			problem(d.Span, text)
		}
	}
	if err != nil {
		a.Fate, a.Note = "partly read", err.Error()
		var over *artifact.LimitError
		if errors.As(err, &over) {
			a.Fate = "over limit"
		}
		problem(evidence.Span{Artifact: f.Path, Kind: "record", Offset: a.Size}, err.Error())
	}
	if sink.got == nil {
		a.Fate = "unreadable"
		out.Artifacts = append(out.Artifacts, a)
		return nil, nil, nil
	}
	m := sink.got
	sink.Collector = nil
	s, err := memory.Examine(ctx, m, mo)
	if err != nil {
		return nil, nil, err
	}
	if has := memory.Devices(m); len(s.Devices) == 0 && len(has) > 0 {
		problem(evidence.Span{Artifact: f.Path, Kind: "record"}, numbers(has)+", none of those that were asked for")
	}
	for i := range s.Devices {
		if o := s.Devices[i].Outside; o != nil && o.Bytes == 0 {
			problem(o.Spans[0], "what is outside the allocator "+o.Basis)
		}
	}
	s.Rank = opt(f.Owner.Rank)
	if h := f.Owner.Host; h != "" {
		s.Host = &h
	}
	for i := range s.Devices {
		a.Recognised += int64(s.Devices[i].Totals.Events + s.Devices[i].Totals.Blocks)
	}
	out.Artifacts = append(out.Artifacts, a)
	return s, memory.PrintOf(m, s.Rank, s.Host), nil
}

// numbers says which devices there are.
func numbers(devices []int) string {
	text := "it has GPU "
	for i, d := range devices {
		if i == 16 {
			return text + fmt.Sprintf(" and %d more", len(devices)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(d)
	}
	return text
}
