// Package tfevents writes the repaired copy of TensorBoard event files: the same folders and
// files, in which every event stays byte for byte but those that lose a value. Beside
// the files of an affected run lies one more, with the marker series and a note, which
// TensorBoard shows as parts of the run.
//
// What TensorBoard needs is kept: the metadata of a tag, which only its first value may have,
// goes to the next value that stays (plugin_event_accumulator.py of tensorboard 2.21: a
// tensor whose metadata is lost has no plugin, and its series disappears). Damaged records,
// at which TensorBoard's loaders stop, are left out.
package tfevents

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/tfevent"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/repair"
)

// New returns the format.
func New() repair.Format { return format{} }

type format struct{}

func (format) Name() string { return "tensorboard" }

// Claims implements repair.Format.
func (format) Claims(_ *repair.Source, runs []*evidence.TrackedRun) bool {
	return len(runs) > 0 && !slices.ContainsFunc(runs, func(r *evidence.TrackedRun) bool { return r.Tracker != "tensorboard" })
}

// NoteTag is the tag of the note. TensorBoard remembers one plugin for each tag, so that it
// cannot be that of the marker.
const NoteTag = "inquest/note"

// A folder is a run as TensorBoard shows it, with the files and writers that are repaired.
type folder struct {
	name  string // slash path below the source
	files []string
	runs  []*repair.Run
	start int64 // highest of its files' names, seconds since 1970

	pending map[string][]byte // metadata of tags whose first values were taken out
	shown   map[string]bool   // tags whose metadata the copy has
	session bool              // the hparams plugin has a session
	ended   bool              // whose end it has too
}

// beside are the files that TensorBoard or the framework keeps beside those of a run.
var beside = []string{"hparams.yaml", "projector_config.pbtxt"}

// Copy implements repair.Format.
func (format) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	c := &copier{ctx: ctx, src: src, out: out, plan: plan}
	for _, d := range c.folders() {
		for _, name := range d.files {
			if err := c.file(d, name); err != nil {
				return fmt.Errorf("%s: %w", src.Artifact(name), err)
			}
		}
		if err := c.mark(d); err != nil {
			return err
		}
		if err := c.beside(d); err != nil {
			return err
		}
	}
	c.tell()
	return nil
}

type copier struct {
	ctx  context.Context
	src  *repair.Source
	out  *repair.Out
	plan *repair.Plan

	damaged, broken int64 // stretches and records that were left out
	moved           int64 // tags whose metadata went to another value
	histos          int64 // values with elements that are not finite
	dropped         int64 // of those
	plugins         int64 // files of TensorBoard's plugins
	kept            int64 // sessions of the hparams plugin whose end stays
}

// folders finds the files of the runs that are repaired. Of a run that is not, no file is
// there; one that is empty belongs to whoever wrote to its folder.
func (c *copier) folders() []*folder {
	runs := map[repair.RunKey]*repair.Run{}
	for _, r := range c.plan.Runs() {
		runs[r.Key] = r
	}
	var list []*folder
	byName := map[string]*folder{}
	empty := map[string][]string{}
	for _, name := range c.src.Names() {
		n, ok := tfevent.ParseName(name)
		if !ok {
			continue
		}
		artifact, dir := c.src.Artifact(name), path.Dir(name)
		r := runs[repair.RunKey{Folder: path.Dir(artifact), Writer: n.Writer()}]
		if r == nil {
			if size, err := c.size(name); err == nil && size == 0 {
				empty[dir] = append(empty[dir], name)
			}
			continue
		}
		d := byName[dir]
		if d == nil {
			d = &folder{name: dir, pending: map[string][]byte{}, shown: map[string]bool{}}
			byName[dir] = d
			list = append(list, d)
		}
		d.files = append(d.files, name)
		if d.start = max(d.start, n.Start); !slices.Contains(d.runs, r) {
			d.runs = append(d.runs, r)
		}
	}
	for _, d := range list {
		d.files = append(d.files, empty[d.name]...)
		slices.Sort(d.files) // the order in which TensorBoard reads them
	}
	return list
}

func (c *copier) size(name string) (int64, error) {
	f, err := c.src.FS.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// mark writes the file with the marker series and the note.
func (c *copier) mark(d *folder) error {
	marks := map[int64]repair.Mark{}
	var notes []string
	newest := float64(d.start)
	for _, r := range d.runs {
		newest = max(newest, r.Newest)
		if !r.Affected {
			continue
		}
		notes = append(notes, r.Note)
		for _, m := range r.Marks() {
			if old, ok := marks[m.Step]; ok {
				m.Value = max(m.Value, old.Value)
				if m.Wall == 0 || old.Wall > 0 && old.Wall < m.Wall {
					m.Wall = old.Wall
				}
			}
			marks[m.Step] = m
		}
	}
	if len(notes) == 0 {
		return nil
	}
	list := make([]repair.Mark, 0, len(marks))
	for _, m := range marks {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b repair.Mark) int { return cmp.Compare(a.Step, b.Step) })
	wall := func(w float64) float64 {
		if w > 0 {
			return w
		}
		return newest
	}
	b := tfrecord.Append(nil, tfevent.VersionEvent(newest))
	var first repair.Mark
	if i := slices.IndexFunc(list, func(m repair.Mark) bool { return m.Value == 1 }); i >= 0 {
		first = list[i]
	}
	for _, m := range list {
		b = tfrecord.Append(b, tfevent.ScalarEvent(wall(m.Wall), m.Step, c.plan.Marker, float32(m.Value)))
	}
	b = tfrecord.Append(b, tfevent.TextEvent(wall(first.Wall), first.Step, NoteTag, strings.Join(notes, "\n\n")))
	switch {
	case d.session && d.ended:
		c.kept++
	case d.session:
		b = tfrecord.Append(b, tfevent.SessionEndEvent(newest, tfevent.StatusFailure))
	}
	if d.start == 0 {
		d.start = int64(newest)
	}
	f, err := c.out.Create(path.Join(d.name, fmt.Sprintf("events.out.tfevents.%010d.inquest.0.0", d.start+1)))
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// beside copies what belongs to a run and is no event file.
func (c *copier) beside(d *folder) error {
	if c.src.File != "" {
		return nil
	}
	for _, name := range c.src.Names() {
		switch {
		case path.Dir(name) == d.name && slices.Contains(beside, path.Base(name)):
			if err := c.out.CopyFile(c.ctx, c.src, name); err != nil {
				return err
			}
		case strings.HasPrefix(name, path.Join(d.name, "plugins")+"/"):
			c.plugins++
		}
	}
	return nil
}

// tell says what was done beside the points.
func (c *copier) tell() {
	change := func(n int64, format string) {
		if n > 0 {
			c.plan.Changes = append(c.plan.Changes, fmt.Sprintf(format, n))
		}
	}
	leave := func(n int64, format string) {
		if n > 0 {
			c.plan.Left = append(c.plan.Left, fmt.Sprintf(format, n))
		}
	}
	change(c.damaged, "Damaged parts of event files are left out: %d, listed under damage. TensorBoard reads a file up to its first one only.")
	change(c.broken, "Intact records that are no events, or not all of one, are left out or cut: %d.")
	change(c.moved, "The metadata of a series stands with its first value: for %d series that value was taken out, and the next one has it now.")
	change(c.dropped, "Histograms and tensors with elements that are not finite are taken out: %d.")
	leave(c.histos-c.dropped, "%d histograms and tensors have elements that are not finite, and stay as they are (--include-tensors takes them out).")
	leave(c.plugins, "%d files of TensorBoard's plugins (profiles and the like) are not in the copy.")
	leave(c.kept, "The status of %d hparams sessions: TensorBoard shows the one that was written first, whatever follows.")
}
