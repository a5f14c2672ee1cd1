package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/repair"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
)

// A points file is the simplest tracker there can be: a line "run ID STATUS", then one line
// for each point: series, step, time, value.
type pointsReader struct{}

func (pointsReader) Name() string { return "points" }

func (pointsReader) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if bytes.HasPrefix(head, []byte("run ")) && strings.HasSuffix(a.Path, ".pts") {
		return reader.Sure
	}
	return reader.No
}

func (pointsReader) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	rec := reader.NewRecording(s, "points", in.Artifact.Path)
	rec.Run.Folder = path.Dir(in.Artifact.Path)
	sc := bufio.NewScanner(reader.Stopping(ctx, rc))
	for n := int64(1); sc.Scan(); n++ {
		w := strings.Fields(sc.Text())
		if len(w) == 3 && w[0] == "run" {
			rec.Run.ID, rec.Run.StatusSaid = w[1], w[2]
			if rec.Run.Status = evidence.RunFinished; w[2] == "running" {
				rec.Run.Status = evidence.RunOpen
			}
			continue
		}
		name, step, wall, v, err := pointOf(w)
		if err != nil {
			return err
		}
		rec.Track(name, false, v).Add(step, wall, v, reader.Place{Line: n})
	}
	if err := sc.Err(); err != nil {
		return err
	}
	rec.Close()
	return nil
}

func pointOf(w []string) (name string, step int64, wall, v float64, err error) {
	if len(w) != 4 {
		return "", 0, 0, 0, fmt.Errorf("%d words in a line", len(w))
	}
	step, e1 := strconv.ParseInt(w[1], 10, 64)
	wall, e2 := strconv.ParseFloat(w[2], 64)
	v, e3 := strconv.ParseFloat(w[3], 64)
	return w[0], step, wall, v, errors.Join(e1, e2, e3)
}

// pointsFormat writes repaired copies of points files. during is called after each line
// that is written; spoil changes lines.
type pointsFormat struct {
	during func() error
	spoil  func(line string) string
}

func (pointsFormat) Name() string { return "points" }

func (pointsFormat) Claims(_ *repair.Source, runs []*evidence.TrackedRun) bool {
	return slices.ContainsFunc(runs, func(r *evidence.TrackedRun) bool { return r.Tracker == "points" })
}

func (f pointsFormat) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	for _, name := range src.Names() {
		if !strings.HasSuffix(name, ".pts") {
			if err := out.CopyFile(ctx, src, name); err != nil {
				return err
			}
			continue
		}
		if err := f.copy(ctx, src, out, plan, name); err != nil {
			return err
		}
	}
	return nil
}

func (f pointsFormat) copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, name string) (err error) {
	in, err := src.FS.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	to, err := out.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	put := func(line string) error {
		if f.spoil != nil {
			line = f.spoil(line)
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err
		}
		if f.during != nil {
			return f.during()
		}
		return ctx.Err()
	}
	var run *repair.Run
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		w := strings.Fields(sc.Text())
		if w[0] == "run" {
			run = plan.Run(repair.RunKey{ID: w[1]})
			if run.Status != "" {
				w[2] = string(run.Status)
			}
			if err := put(strings.Join(w, " ") + "\n"); err != nil {
				return err
			}
			continue
		}
		series, step, wall, v, err := pointOf(w)
		if err != nil {
			return err
		}
		act, v := run.Series(src.Artifact(name), series).Next(step, wall, v)
		if act == repair.Drop {
			continue
		}
		if err := put(fmt.Sprintln(series, step, wall, strconv.FormatFloat(v, 'g', -1, 64))); err != nil {
			return err
		}
	}
	for _, m := range run.Marks() {
		if err := put(fmt.Sprintln(plan.Marker, m.Step, m.Wall, m.Value)); err != nil {
			return err
		}
	}
	return sc.Err()
}

// fix repairs with the points format alone.
func fix(t testing.TB, ctx context.Context, source, output string, f repair.Format, change func(*engine.RepairOptions)) (*incident.Repair, error) {
	t.Helper()
	ro := engine.RepairOptions{Path: source, Output: output, Policy: incident.RepairPolicy{Nonfinite: repair.DropValues}, Formats: []repair.Format{f},
		Write: repairtest.Write}
	if change != nil {
		change(&ro)
	}
	return engine.Repair(ctx, engine.Options{Readers: []reader.Reader{pointsReader{}}, Version: "test"}, ro)
}

const failedRun = `run r1 running
loss 10 1010 2.5
lr 10 1010 0.1
loss 20 1020 2
lr 20 1020 0.1
loss 30 1030 NaN
lr 30 1030 0.1
loss 40 1040 +Inf
`

// tree writes files into a new folder.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRepair(t *testing.T) {
	src := tree(t, map[string]string{"a/x.pts": failedRun, "a/config.bin": "\x00\x01", "b/y.pts": "run r2 finished\nloss 1 1 1\n"})
	if err := os.Chmod(filepath.Join(src, "a/x.pts"), 0o400); err != nil {
		t.Fatal(err)
	}
	before := repairtest.State(t, src)
	out := filepath.Join(t.TempDir(), "copy")
	res, err := fix(t, t.Context(), src, out, pointsFormat{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	repairtest.Unchanged(t, src, before)
	got, err := os.ReadFile(filepath.Join(out, "a/x.pts"))
	if err != nil {
		t.Fatal(err)
	}
	want := `run r1 failed
loss 10 1010 2.5
lr 10 1010 0.1
loss 20 1020 2
lr 20 1020 0.1
lr 30 1030 0.1
inquest/failed_segment 20 1020 0
inquest/failed_segment 30 1030 1
inquest/failed_segment 40 1040 1
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if names := repairtest.Names(t, out); !slices.Equal(names, []string{"a/config.bin", "a/x.pts", "b/y.pts", "inquest-repair.json", "inquest-repair.md"}) {
		t.Errorf("the copy has %q", names)
	}
	if info, err := os.Stat(filepath.Join(out, "a/x.pts")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions of the copy: %v %v", info.Mode(), err)
	}
	var manifest incident.Repair
	data, err := os.ReadFile(filepath.Join(out, repair.ManifestName))
	if err == nil {
		err = json.Unmarshal(data, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Schema != incident.RepairSchema || len(manifest.Runs) != 2 || len(manifest.Files) != 3 || len(manifest.Checks) != 4 {
		t.Errorf("manifest: %s", data)
	}
	r := manifest.Runs[0]
	if r.ID != "r1" || r.NewID != "" || r.Status != "finished" || r.Was != "running-or-dead" || *r.Clean != 20 || r.Total != 7 || r.Kept != 5 || len(r.Series) != 1 {
		t.Errorf("run: %+v", r)
	}
	if s := r.Series[0]; s.Count != 4 || s.Kept != 2 || s.NaN != 1 || s.PosInf != 1 || *s.Segments[0].FirstStep != 30 || *s.Segments[0].LastWall != 1040 {
		t.Errorf("series: %+v", s)
	}
	for _, c := range res.Checks {
		if !c.Holds {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}

	// Twice gives the same bytes, but for where it lies.
	again := filepath.Join(t.TempDir(), "copy")
	if _, err := fix(t, t.Context(), src, again, pointsFormat{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range repairtest.Names(t, out) {
		a, _ := os.ReadFile(filepath.Join(out, name))
		b, _ := os.ReadFile(filepath.Join(again, name))
		if !bytes.Equal(bytes.ReplaceAll(a, []byte(filepath.ToSlash(out)), nil), bytes.ReplaceAll(b, []byte(filepath.ToSlash(again)), nil)) {
			t.Errorf("%s differs between two repairs", name)
		}
	}

	// The copy needs no repair itself.
	res, err = fix(t, t.Context(), out, filepath.Join(t.TempDir(), "none"), pointsFormat{}, nil)
	if err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the copy of a copy: %v, %v", res, err)
	}
	res, err = fix(t, t.Context(), out, filepath.Join(t.TempDir(), "none"), pointsFormat{}, func(o *engine.RepairOptions) { o.Marker = "other" })
	if err != nil || res.Output != "" {
		t.Errorf("the copy of a copy: %v, %v", res, err)
	}
}

// The suite of all formats.
func TestRepairSuite(t *testing.T) {
	repairtest.Run(t, pointsReader{}, pointsFormat{}, tree(t, map[string]string{"a/x.pts": failedRun + "loss 15 1050 2\nloss 20 1051 1.5\nlr 20 1052 0\n", "b/y.pts": "run r2 running\nloss 1 1 NaN\nloss 2 2 -0\n"}))
}

func TestRepairOneFile(t *testing.T) {
	src := tree(t, map[string]string{"x.pts": failedRun, "other.pts": failedRun})
	before := repairtest.State(t, src)
	out := filepath.Join(t.TempDir(), "copy")
	res, err := fix(t, t.Context(), filepath.Join(src, "x.pts"), out, pointsFormat{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	repairtest.Unchanged(t, src, before)
	if names := repairtest.Names(t, out); !slices.Equal(names, []string{"inquest-repair.json", "inquest-repair.md", "x.pts"}) || len(res.Files) != 1 {
		t.Errorf("the copy has %q of %v", names, res.Files)
	}
}

func TestRepairNothing(t *testing.T) {
	src := tree(t, map[string]string{"x.pts": "run r finished\nloss 1 1 1\n"})
	out := filepath.Join(t.TempDir(), "copy")
	res, err := fix(t, t.Context(), src, out, pointsFormat{}, nil)
	if err != nil || res.Output != "" || len(res.Runs) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("something was written")
	}
	if res, err = fix(t, t.Context(), src, out, pointsFormat{}, func(o *engine.RepairOptions) { o.Force = true }); err != nil || res.Output == "" {
		t.Errorf("forced: %+v, %v", res, err)
	}
}

// A run that may be alive keeps its status.
func TestRepairAlive(t *testing.T) {
	src := tree(t, map[string]string{"x.pts": "run r running\nloss 1 1 1\n"})
	now := time.Now().Add(time.Minute)
	for _, c := range []struct {
		now   time.Time
		ended bool
		wrote bool
	}{{now, false, false}, {now, true, true}, {now.Add(time.Hour), false, true}} {
		out := filepath.Join(t.TempDir(), "copy")
		res, err := fix(t, t.Context(), src, out, pointsFormat{}, func(o *engine.RepairOptions) { o.Now, o.Ended = c.now, c.ended })
		if err != nil || (res.Output != "") != c.wrote {
			t.Errorf("%+v: %+v, %v", c, res, err)
		}
		if !c.wrote && (len(res.Left) != 1 || !strings.Contains(res.Left[0], "--ended")) {
			t.Errorf("left: %q", res.Left)
		}
	}
}

func TestRepairChoice(t *testing.T) {
	src := tree(t, map[string]string{"a/x.pts": failedRun, "b/y.pts": strings.Replace(failedRun, "r1", "r2", 1)})
	out := filepath.Join(t.TempDir(), "copy")
	res, err := fix(t, t.Context(), src, out, pointsFormat{}, func(o *engine.RepairOptions) { o.Run = "r2" })
	if err != nil || len(res.Runs) != 1 || res.Runs[0].ID != "r2" {
		t.Fatalf("%+v, %v", res, err)
	}
	if got, _ := os.ReadFile(filepath.Join(out, "a/x.pts")); string(got) != failedRun {
		t.Errorf("a run that was not asked for: %s", got)
	}
	for _, c := range []struct{ run, only, want string }{{"r3", "", "no run of .* is called r3; it has r1, r2"}, {"", "wandb", "no data of the format wandb; it has points"}} {
		_, err := fix(t, t.Context(), src, filepath.Join(t.TempDir(), "copy"), pointsFormat{}, func(o *engine.RepairOptions) { o.Run, o.Only = c.run, c.only })
		if err == nil || !errors.Is(err, engine.ErrNotRepaired) || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := fix(t, t.Context(), tree(t, map[string]string{"x.txt": "hello"}), out+"2", pointsFormat{}, nil); err == nil || !strings.Contains(err.Error(), "nothing of an experiment tracker") {
		t.Errorf("nothing there: %v", err)
	}
}

// Where the copy may not lie.
func TestRepairRefused(t *testing.T) {
	src := tree(t, map[string]string{"a/x.pts": failedRun})
	base := filepath.Dir(src)
	link := filepath.Join(base, "link")
	for name, target := range map[string]string{"link": src, "inner": filepath.Join(src, "a"), "nowhere": filepath.Join(base, "gone")} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Skip(err)
		}
	}
	full := filepath.Join(base, "full")
	if err := os.MkdirAll(full, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"full/x", "file"} {
		if err := os.WriteFile(filepath.Join(base, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before := repairtest.State(t, base)
	for _, c := range []struct{ source, out, want string }{
		{src, src, "is the source"},
		{src, src + "/.", "is the source"},
		{src, link, "is the source"},
		{link, src, "is the source"},
		{src, filepath.Join(src, "copy"), "lies in the source"},
		{src, filepath.Join(src, "a", "copy"), "lies in the source"},
		{src, filepath.Join(base, "inner", "copy"), "lies in the source"},
		{src, filepath.Join(base, "inner"), "lies in the source"},
		{link, filepath.Join(src, "copy"), "lies in the source"},
		{src, base, "contains the source"},
		{filepath.Join(src, "a", "x.pts"), filepath.Join(src, "a"), "contains the source"},
		{filepath.Join(src, "a", "x.pts"), filepath.Join(src, "a", "x.pts"), "is the source"},
		{src, full, "not empty"},
		{src, filepath.Join(base, "file"), "is no folder"},
		{src, filepath.Join(base, "nowhere"), "leads nowhere"},
		{src, filepath.Join(base, "no", "such"), "does not exist"},
		{src, "", "is no name"},
	} {
		_, err := fix(t, t.Context(), c.source, c.out, pointsFormat{}, nil)
		if !errors.Is(err, repair.ErrOutput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.source, c.out, err, c.want)
		}
	}
	repairtest.Unchanged(t, base, before)
	// A file's own folder is no source: the copy may lie beside the file.
	if _, err := fix(t, t.Context(), filepath.Join(src, "a", "x.pts"), filepath.Join(src, "a", "copy"), pointsFormat{}, nil); err != nil {
		t.Error(err)
	}
	// An empty folder becomes the copy, also by a link to it.
	empty := filepath.Join(base, "empty")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(empty, filepath.Join(base, "to-empty")); err != nil {
		t.Fatal(err)
	}
	if _, err := fix(t, t.Context(), filepath.Join(src, "a", "x.pts"), filepath.Join(base, "to-empty"), pointsFormat{}, nil); err != nil || len(repairtest.Names(t, empty)) != 3 {
		t.Errorf("%v %q", err, repairtest.Names(t, empty))
	}
}

// Links in the source are neither followed nor copied.
func TestRepairLinks(t *testing.T) {
	outside := tree(t, map[string]string{"secret.pts": failedRun})
	src := tree(t, map[string]string{"x.pts": failedRun})
	if err := os.Symlink(filepath.Join(outside, "secret.pts"), filepath.Join(src, "y.pts")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(outside, filepath.Join(src, "dir")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "copy")
	if _, err := fix(t, t.Context(), src, out, pointsFormat{}, nil); err != nil {
		t.Fatal(err)
	}
	if names := repairtest.Names(t, out); !slices.Equal(names, []string{"inquest-repair.json", "inquest-repair.md", "x.pts"}) {
		t.Errorf("the copy has %q", names)
	}
}

// Nothing is left of a repair that does not come to its end, whatever ends it.
func TestRepairGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		format func(src string, stop context.CancelFunc) pointsFormat
	}{
		"writer fails": {"no space left", func(string, context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error { return errors.New("no space left on device") }}
		}},
		"cancelled": {"context canceled", func(_ string, stop context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error { stop(); return nil }}
		}},
		"value differs": {"the copy is not right", func(string, context.CancelFunc) pointsFormat {
			return pointsFormat{spoil: func(l string) string { return strings.Replace(l, "2.5", "2.25", 1) }}
		}},
		"NaN left": {"not finite", func(string, context.CancelFunc) pointsFormat {
			return pointsFormat{spoil: func(l string) string { return strings.Replace(l, "2.5", "NaN", 1) }}
		}},
		"no marks": {"0 of 1 affected runs", func(string, context.CancelFunc) pointsFormat {
			return pointsFormat{spoil: func(l string) string {
				if strings.HasPrefix(l, "inquest") {
					return ""
				}
				return l
			}}
		}},
		"source written to": {"x.pts was written to", func(src string, _ context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error {
				return os.WriteFile(filepath.Join(src, "x.pts"), []byte(failedRun+"loss 50 1050 1\n"), 0o666)
			}}
		}},
		"other file written to": {"other was written to", func(src string, _ context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error { return os.WriteFile(filepath.Join(src, "other"), []byte("yy"), 0o666) }}
		}},
		"bytes changed behind the time": {"other has other bytes", func(src string, _ context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error {
				at := filepath.Join(src, "other")
				info, err := os.Stat(at)
				if err != nil {
					return err
				}
				return errors.Join(os.WriteFile(at, []byte("z"), 0o666), os.Chtimes(at, info.ModTime(), info.ModTime()))
			}}
		}},
		"new file": {"late is new", func(src string, _ context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error { return os.WriteFile(filepath.Join(src, "late"), nil, 0o666) }}
		}},
		"file gone": {"other is gone", func(src string, _ context.CancelFunc) pointsFormat {
			return pointsFormat{during: func() error { os.Remove(filepath.Join(src, "other")); return nil }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			src := tree(t, map[string]string{"x.pts": failedRun, "other": "x"})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			to := t.TempDir()
			_, err := fix(t, ctx, src, filepath.Join(to, "copy"), c.format(src, stop), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(to); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A folder that may only be read is copied as any other.
func TestRepairReadOnlySource(t *testing.T) {
	src := tree(t, map[string]string{"a/x.pts": failedRun})
	for _, c := range []struct {
		name string
		mode fs.FileMode
	}{{"a/x.pts", 0o444}, {"a", 0o555}, {"", 0o555}} {
		at := filepath.Join(src, c.name)
		if err := os.Chmod(at, c.mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(at, 0o777) })
	}
	before := repairtest.State(t, src)
	if _, err := fix(t, t.Context(), src, filepath.Join(t.TempDir(), "copy"), pointsFormat{}, nil); err != nil {
		t.Error(err)
	}
	repairtest.Unchanged(t, src, before)
}

// What a killed repair left is named and not used.
func TestRepairLeftover(t *testing.T) {
	src := tree(t, map[string]string{"x.pts": failedRun})
	to := t.TempDir()
	old := filepath.Join(to, "copy.partial-0badcafe")
	if err := os.Mkdir(old, 0o777); err != nil {
		t.Fatal(err)
	}
	said := ""
	if _, err := fix(t, t.Context(), src, filepath.Join(to, "copy"), pointsFormat{}, func(o *engine.RepairOptions) { o.Notice = func(s string) { said = s } }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "copy.partial-0badcafe") {
		t.Errorf("said %q", said)
	}
	_, err := fix(t, t.Context(), src, filepath.Join(to, "copy"), pointsFormat{}, nil)
	if err == nil || !strings.Contains(err.Error(), "copy.partial-0badcafe") {
		t.Errorf("%v", err)
	}
}

// Random runs with failures, resumes and repeated steps.
func TestRepairRandom(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		files := map[string]string{}
		for n := range 1 + r.IntN(3) {
			var b strings.Builder
			fmt.Fprintf(&b, "run r%d %s\n", n%2, []string{"running", "finished"}[r.IntN(2)])
			for s := range 1 + r.IntN(3) {
				step := r.IntN(5)
				for i := range r.IntN(100) {
					v := r.NormFloat64() * math.Pow(10, float64(r.IntN(20)-10))
					switch r.IntN(8) {
					case 0:
						v = math.NaN()
					case 1:
						v = math.Inf(1 - 2*r.IntN(2))
					}
					fmt.Fprintf(&b, "s%d %d %d %v\n", s, step, 1000*n+i+1, v)
					if step += r.IntN(3); r.IntN(20) == 0 {
						step /= 2
					}
				}
			}
			files[fmt.Sprintf("f%d.pts", n)] = b.String()
		}
		src := tree(t, files)
		policy := incident.RepairPolicy{Nonfinite: []string{repair.DropValues, repair.HoldValues}[r.IntN(2)], Dedupe: r.IntN(2) == 0}
		res, err := fix(t, t.Context(), src, filepath.Join(t.TempDir(), "copy"), pointsFormat{}, func(o *engine.RepairOptions) { o.Policy, o.Force = policy, true })
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		for _, run := range res.Runs {
			for _, s := range run.Series {
				if s.Count != s.Kept+s.Dropped+s.Held+s.Superseded {
					t.Errorf("seed %d: %+v", seed, s)
				}
			}
		}
	}
}
