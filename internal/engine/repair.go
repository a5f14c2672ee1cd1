package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/repair"
	"github.com/inquest-dev/inquest/internal/tracker"
)

// RepairOptions say what is copied, to where and how.
type RepairOptions struct {
	Path   string // the run, the store it lies in, or one file
	Output string // a folder that does not exist, or is empty
	Policy incident.RepairPolicy
	Marker string // name of the marker series, "" for repair.DefaultMarker
	// Run names the runs that are repaired, as TrackerOptions.Run does.
	Run string
	// Only names the format where the source has data of several.
	Only string
	// Force writes a copy also where there is nothing to repair.
	Force bool
	// Ended says that no process writes the runs any more. Otherwise a run whose tracker says
	// that it runs is left so if it was written to in the ten minutes before Now.
	Ended   bool
	Now     time.Time
	Formats []repair.Format
	// Write renders the manifest (json) and the note beside the copy (markdown).
	Write func(w io.Writer, format string, r *incident.Repair) error
	// Notice is told what the user should know and no result holds; may be nil.
	Notice func(string)
}

// ErrNotRepaired is wrapped by the errors of sources that hold nothing that can be repaired.
var ErrNotRepaired = errors.New("no repaired copy")

// Repair writes a repaired copy of what experiment trackers left at a path, and checks
// it: the source is read twice to plan, copied, the copy is read with the same readers
// and set against the account, and the source is compared with what it was. Only then the
// copy gets its name; on any error, and on cancellation, there is none. Where nothing is
// to be repaired the result has no Output, and nothing is written.
func Repair(ctx context.Context, o Options, ro RepairOptions) (*incident.Repair, error) {
	src, err := repair.OpenSource(ctx, ro.Path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := repair.Refused(src, ro.Output); err != nil {
		return nil, err
	}
	o.Paths = []string{ro.Path}
	m := &mending{o: o, ro: ro, src: src}
	seen, err := m.find(ctx)
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	if err := m.decide(ctx); err != nil {
		return nil, m.blame(ctx, err)
	}
	if !m.plan.Changed() && !ro.Force {
		return m.nothing(ctx)
	}
	out, err := repair.Begin(src, ro.Output)
	if err != nil {
		return nil, err
	}
	res, err := m.write(ctx, out)
	if err != nil {
		return nil, errors.Join(m.blame(ctx, err), out.Discard())
	}
	if err := out.Finish(); err != nil {
		return nil, err
	}
	if left := out.Leftovers(); len(left) > 0 && ro.Notice != nil {
		ro.Notice(repair.LeftOver(left))
	}
	return res, nil
}

// A mending is one repair.
type mending struct {
	o      Options
	ro     RepairOptions
	src    *repair.Source
	files  []*artifact.File // that hold tracked runs, in the order of their paths
	names  map[string]string
	format repair.Format
	plan   *repair.Plan
	runs   []*evidence.TrackedRun // as they were read, of every file that has them
	damage []incident.RunDamage
	left   []string
	alive  bool
}

// blame is the error of a repair: where the source changed, that is why.
func (m *mending) blame(ctx context.Context, err error) error {
	if errors.Is(err, repair.ErrChanged) || errors.Is(err, ErrNotRepaired) {
		return err
	}
	if _, changed := m.src.Verify(ctx); errors.Is(changed, repair.ErrChanged) {
		return changed
	}
	return err
}

// find looks for the files that hold tracked runs.
func (m *mending) find(ctx context.Context) (*artifact.Seen, error) {
	seen, err := artifact.Look(ctx, m.o.Paths, m.o.exports())
	if err != nil {
		return nil, err
	}
	seen.Reduce()
	sort.SliceStable(seen.Files, func(i, j int) bool { return seen.Files[i].Path < seen.Files[j].Path })
	m.names = map[string]string{}
	for _, name := range m.src.Names() {
		m.names[m.src.Artifact(name)] = name
	}
	for i := range seen.Files {
		f := &seen.Files[i]
		if !tracked(f.Kind) {
			continue
		}
		switch _, plain := m.names[f.Path]; {
		case f.Fate != "" && f.Size == 0:
		case f.Fate != "":
			m.leave("%s was not read, and is not in the copy: %s.", f.Path, cmp.Or(f.Note, f.Fate))
		case !plain || f.At == nil:
			m.leave("%s is compressed, lies in an archive or is no UTF-8, and is not in the copy; unpack or convert it to repair it.", f.Path)
		default:
			if err := m.include(f); err != nil {
				seen.Close()
				return nil, err
			}
			m.files = append(m.files, f)
			m.alive = m.alive || m.fresh(f)
			continue
		}
	}
	return seen, nil
}

// include makes the files that belong to a file that was named alone part of the source.
func (m *mending) include(f *artifact.File) error {
	if m.src.File == "" {
		return nil
	}
	dir := path.Dir(m.src.Path)
	var names []string
	for _, b := range f.Beside {
		name := strings.TrimPrefix(b.Path, dir+"/")
		if m.names[b.Path] == "" && fs.ValidPath(name) && m.src.Artifact(name) == b.Path {
			names = append(names, name)
			m.names[b.Path] = name
		}
	}
	return m.src.Include(names...)
}

func (m *mending) leave(format string, args ...any) {
	m.left = append(m.left, fmt.Sprintf(format, args...))
}

// fresh reports whether a file, or one that belongs to it, was written to so lately that a
// process may still do so.
func (m *mending) fresh(f *artifact.File) bool {
	if m.ro.Ended || m.ro.Now.IsZero() {
		return false
	}
	return m.ro.Now.Sub(f.ModTime) < tracker.DefaultStale || slices.ContainsFunc(f.Beside, func(b *artifact.File) bool { return m.ro.Now.Sub(b.ModTime) < tracker.DefaultStale })
}

// watch takes the digests of the files that a reader is about to read.
func (m *mending) watch(ctx context.Context, f *artifact.File) error {
	of := []string{f.Path}
	for _, b := range f.Beside {
		of = append(of, b.Path)
	}
	for _, p := range of {
		name, ok := m.names[p]
		if !ok {
			continue
		}
		if err := m.src.Watch(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// pass reads files once, each wholly.
func (m *mending) pass(ctx context.Context, files []*artifact.File, to taker) error {
	byName, _ := m.o.readers()
	for _, f := range files {
		r := byName[f.Kind]
		if r == nil {
			continue
		}
		sink := &runSink{Collector: reader.NewCollector(), points: leastPoints, take: to.TrackedRun}
		_, _, err := readInto(ctx, f, r, sink, func(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) error {
			to.Point(r, t, p, wall)
			return nil
		}, "")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Path, err)
		}
	}
	return nil
}

// A taker takes the points and runs of a reading.
type taker interface {
	reader.Tracked
	reader.EveryPoint
}

// decide reads the source twice and makes the plan.
func (m *mending) decide(ctx context.Context) error {
	if len(m.files) == 0 {
		return m.none(nil)
	}
	p := repair.NewPlanner(repair.PlanOptions{Policy: m.ro.Policy, Marker: m.ro.Marker, Alive: m.alive})
	for _, f := range m.files {
		if err := m.watch(ctx, f); err != nil {
			return err
		}
	}
	if err := m.pass(ctx, m.files, p); err != nil {
		return err
	}
	read := p.Read()
	chosen, err := m.choose(read)
	if err != nil {
		return err
	}
	var files []*artifact.File
	for _, f := range m.files {
		if slices.ContainsFunc(m.runs, func(r *evidence.TrackedRun) bool { return r.Artifact == f.Path }) {
			files = append(files, f)
		}
	}
	if err := p.Again(func(r *evidence.TrackedRun) bool { return chosen[r] }); err != nil {
		return err
	}
	if err := m.pass(ctx, files, p); err != nil {
		return err
	}
	m.plan, err = p.Plan()
	return err
}

// choose decides which format is written, and which runs are repaired.
func (m *mending) choose(read []*evidence.TrackedRun) (map[*evidence.TrackedRun]bool, error) {
	of := map[string][]*evidence.TrackedRun{}
	var formats []repair.Format
	for _, r := range read {
		for _, f := range m.ro.Formats {
			if f.Claims(m.src, []*evidence.TrackedRun{r}) {
				if of[f.Name()] == nil {
					formats = append(formats, f)
				}
				of[f.Name()] = append(of[f.Name()], r)
				break
			}
		}
	}
	if m.ro.Only != "" {
		formats = slices.DeleteFunc(formats, func(f repair.Format) bool { return f.Name() != m.ro.Only })
	}
	switch {
	case len(formats) == 0:
		return nil, m.none(read)
	case len(formats) > 1:
		var has []string
		for _, f := range formats {
			has = append(has, f.Name())
		}
		return nil, fmt.Errorf("%w: %s has data of several formats: %s; choose one with --only, and repair once for each", ErrNotRepaired, m.src.Path, strings.Join(has, ", "))
	}
	m.format = formats[0]
	chosen := map[*evidence.TrackedRun]bool{}
	ids := map[string]bool{}
	for _, r := range of[m.format.Name()] {
		if ids[cmp.Or(r.ID, r.Name, path.Base(r.Folder))] = true; !wanted(m.ro.Run, r) {
			continue
		}
		chosen[r] = true
		m.runs = append(m.runs, r)
		for _, d := range r.Damage {
			m.damage = append(m.damage, incident.RunDamage{Kind: string(d.Kind), Text: d.Text, Bytes: d.Bytes, Records: d.Records, Span: d.Span})
		}
	}
	if len(chosen) == 0 {
		list := slices.Sorted(maps.Keys(ids))
		text := strings.Join(list[:min(len(list), 20)], ", ")
		if n := len(list) - 20; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		return nil, fmt.Errorf("%w: no run of %s is called %s; it has %s", ErrNotRepaired, m.src.Path, m.ro.Run, text)
	}
	return chosen, nil
}

// readOnly says of trackers whose data is read and not written why that is so.
var readOnly = map[string]string{
	"comet":   "Comet's offline archives are read only: Comet uploads nothing but what its own client packed",
	"clearml": "ClearML's offline folders are read only: it wrote 0 for each value that was not finite, so nothing in them tells which zeros are real",
	"neptune": "Neptune's folders are read only: its client never stored a value that is not finite",
	"aim":     "Aim's store is read only: its files are a database of its own",
	// Of these the log itself is written, and this source has none.
	"wandb":   "the run's log, run-*.wandb, is not there; its other files hold only the last value of each series",
	"swanlab": "a run is repaired from its log of the present version, run-*.swanlab, and there is none",
	"trackio": "a project is repaired from its database, and there is none",
}

// none says why nothing can be repaired.
func (m *mending) none(read []*evidence.TrackedRun) error {
	if m.ro.Only != "" && len(read) > 0 {
		var has []string
		for _, r := range read {
			if !slices.Contains(has, r.Tracker) {
				has = append(has, r.Tracker)
			}
		}
		return fmt.Errorf("%w: %s has no data of the format %s; it has %s", ErrNotRepaired, m.src.Path, m.ro.Only, strings.Join(has, ", "))
	}
	for _, r := range read {
		if why := readOnly[r.Tracker]; why != "" {
			return fmt.Errorf("%w: %s: %s", ErrNotRepaired, r.Artifact, why)
		}
	}
	for _, r := range read {
		return fmt.Errorf("%w: %s: data of %s is read only", ErrNotRepaired, r.Artifact, r.Tracker)
	}
	if len(m.left) > 0 {
		return fmt.Errorf("%w: %s", ErrNotRepaired, m.left[0])
	}
	return fmt.Errorf("%w: nothing of an experiment tracker was found in %s", ErrNotRepaired, m.src.Path)
}

// result is what is common to all results.
func (m *mending) result() *incident.Repair {
	return &incident.Repair{Schema: incident.RepairSchema, Tool: incident.Tool{Name: "inquest", Version: m.o.Version}, Format: m.format.Name(),
		Source: m.src.Path, Policy: m.plan.Policy, Marker: m.plan.Marker, Files: []incident.RepairFile{}, Runs: []incident.RepairedRun{},
		Damage: append([]incident.RunDamage{}, m.damage...), Changes: append([]string{}, m.plan.Changes...), Left: append([]string{}, m.left...), Checks: []incident.RepairCheck{}}
}

// nothing is the result where there is nothing to repair.
func (m *mending) nothing(ctx context.Context) (*incident.Repair, error) {
	res := m.result()
	res.Runs = m.plan.Read()
	m.plan.Left = nil
	m.leaving(res)
	var err error
	if res.Files, err = m.src.Verify(ctx); err != nil {
		return nil, err
	}
	mask(res)
	return res, nil
}

// leaving adds what is left as it is.
func (m *mending) leaving(res *incident.Repair) {
	res.Left = append(res.Left, m.plan.Left...)
	open := 0
	for _, r := range m.plan.Runs() {
		if r.Read.Status == evidence.RunOpen && r.Read.StatusSaid != "" && m.alive {
			open++
		}
	}
	if open > 0 {
		res.Left = append(res.Left, fmt.Sprintf("The status of %d of the runs, which says that they run: the source was written to in the last %d minutes (--ended if it has ended).", open, int(tracker.DefaultStale.Minutes())))
	}
}

// write makes the copy, checks it, and puts down what was done.
func (m *mending) write(ctx context.Context, out *repair.Out) (*incident.Repair, error) {
	if err := m.format.Copy(ctx, m.src, out, m.plan); err != nil {
		return nil, fmt.Errorf("write the copy: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	runs, err := m.plan.Result()
	if err != nil {
		return nil, fmt.Errorf("write the copy: %w", err)
	}
	again, err := m.reread(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("read the copy: %w", err)
	}
	res := m.result()
	res.Runs, res.Output, res.Checks = runs, filepath.ToSlash(filepath.Clean(m.ro.Output)), m.plan.Checks(again)
	m.named(res, again, out)
	if res.Files, err = m.src.Verify(ctx); err != nil {
		return nil, err
	}
	res.Checks = append(res.Checks, incident.RepairCheck{Name: "source", Holds: true, Detail: "every file that was read has the same bytes, size and time as before, and no other file of the source came, went or was written to"})
	for _, c := range res.Checks {
		if !c.Holds {
			return nil, fmt.Errorf("the copy is not right and was removed: %s: %s", c.Name, c.Detail)
		}
	}
	m.leaving(res)
	res.Undo = m.undo(res.Output)
	mask(res)
	for _, f := range [...]struct{ name, format string }{{repair.ManifestName, "json"}, {repair.NoteName, "markdown"}} {
		var text bytes.Buffer
		if err := m.ro.Write(&text, f.format, res); err != nil {
			return nil, err
		}
		if err := out.Beside(f.name, text.Bytes()); err != nil {
			return nil, err
		}
	}
	return res, ctx.Err()
}

// opened is how a tracker's own pages are opened on a folder, and on a file where that has a
// way of its own.
var opened = map[string]struct{ folder, file string }{
	"tensorboard":   {"tensorboard --logdir %s", ""},
	"wandb":         {"wandb sync %s", "wandb sync %s"},
	"mlflow-files":  {"mlflow ui --backend-store-uri %s", ""},
	"mlflow-sqlite": {"", "mlflow ui --backend-store-uri sqlite:///%s"},
	"trackio":       {"TRACKIO_DIR=%s trackio show", ""},
	"swanlab":       {"swanlab watch %s", ""},
}

// undo says how the copy is got rid of.
func (m *mending) undo(output string) string {
	text := fmt.Sprintf("Remove %s: nothing else was written, and %s is as it was.", output, m.src.Path)
	at, how := m.src.Path, opened[m.format.Name()]
	command := how.folder
	if m.src.File != "" {
		if command = how.file; command == "" {
			command, at = how.folder, path.Dir(at)
		}
	}
	if command == "" {
		return text
	}
	if strings.ContainsFunc(at, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%", r))
	}) {
		at = "'" + strings.ReplaceAll(at, "'", `'\''`) + "'"
	}
	return text + " To look at the source again: " + fmt.Sprintf(command, at)
}

// reread reads the finished copy as the source was read.
func (m *mending) reread(ctx context.Context, out *repair.Out) (*repair.Recount, error) {
	src, err := repair.OpenSource(ctx, out.Dir())
	if err != nil {
		return nil, err
	}
	defer src.Close()
	c := mending{o: m.o, src: src}
	c.o.Paths = []string{out.Dir()}
	seen, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	again := repair.NewRecount(func(r *evidence.TrackedRun) bool {
		return m.format.Claims(src, []*evidence.TrackedRun{r}) && !m.plan.Passive(m.before(r, out))
	})
	return again, c.pass(ctx, c.files, again)
}

// before is the key that a run of the copy had in the source, if it has not got a new id.
func (m *mending) before(r *evidence.TrackedRun, out *repair.Out) repair.RunKey {
	key := repair.KeyOf(r)
	if rest, ok := strings.CutPrefix(key.Folder, filepath.ToSlash(out.Dir())); ok {
		key.Folder = m.src.Path + rest
		if m.src.File != "" {
			key.Folder = path.Dir(m.src.Path) + rest
		}
		key.Folder = path.Clean(key.Folder)
	}
	return key
}

// named puts down under which id and with which status the copy has each run.
func (m *mending) named(res *incident.Repair, again *repair.Recount, out *repair.Out) {
	byKey := map[repair.RunKey]*evidence.TrackedRun{}
	for _, r := range again.Runs {
		if key := m.before(r, out); byKey[key] == nil {
			byKey[key] = r
		}
	}
	for i, run := range m.plan.Runs() {
		to := &res.Runs[i]
		if r := byKey[repair.RunKey{ID: run.NewID, Writer: run.Key.Writer}]; r != nil {
			to.NewID, to.Status = r.ID, string(r.Status)
		} else if r := byKey[run.Key]; r != nil {
			to.Status = string(r.Status)
		}
	}
}
