package memsnap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A dump writes a snapshot as testdata/tools/dump.py writes the pickle.
type dump struct {
	bytes.Buffer
	s      *evidence.MemSnapshot
	stacks map[uint32]int
}

func escaped(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		if c := s[i]; c >= 0x21 && c < 0x7f && c != '\'' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stack is the number of a stack, counted in the order in which they are met.
func (d *dump) stack(id uint32) int {
	n, ok := d.stacks[id]
	if !ok {
		n = len(d.stacks)
		d.stacks[id] = n
		fmt.Fprintf(d, "stack %d", n)
		for _, f := range d.s.Stacks[id] {
			x := &d.s.Frames[f]
			fmt.Fprintf(d, " %s %s %d", escaped(x.Name), escaped(x.File), x.Line)
		}
		d.WriteByte('\n')
	}
	return n
}

func (d *dump) pool(i uint16) string {
	p := d.s.Pools[i]
	return fmt.Sprintf("%d,%d", p[0], p[1])
}

func dumped(s *evidence.MemSnapshot) []byte {
	d := &dump{s: s, stacks: map[uint32]int{0: 0}}
	blocks := 0
	var sums [3]int64
	for i := range s.Segments {
		g := &s.Segments[i]
		n := d.stack(g.Stack)
		fmt.Fprintf(d, "segment %d %d %d %d %d %d %d %s %d %d %d\n", g.Device, g.Addr, g.Total, g.Allocated, g.Active, g.Requested, s.Streams[g.Stream], d.pool(g.Pool), digit(g.Small), digit(g.Expandable), n)
		for _, b := range s.BlocksOf(g) {
			n := d.stack(b.Stack)
			fmt.Fprintf(d, "block %d %d %d %d %d\n", b.Addr, b.Size, b.Requested, b.State, n)
			blocks++
		}
		sums[0] += g.Total
		sums[1] += g.Allocated
		sums[2] += g.Active
	}
	events := 0
	for i := range s.Traces {
		t := &s.Traces[i]
		events += t.Len()
		fmt.Fprintf(d, "trace %d %d\n", i, t.Len())
		for _, e := range t.All() {
			n := d.stack(e.Stack)
			note := s.Notes[e.Note]
			fmt.Fprintf(d, "%v %d %d %d %d %s %s %s %s %d\n", e.Action, e.Addr, e.Size, e.Time, s.Streams[e.Stream], d.pool(e.Pool), escaped(note.Category), escaped(note.Context), escaped(note.User), n)
		}
	}
	if s.Has.Settings {
		x := &s.Settings
		th := strconv.FormatFloat(x.GCThreshold, 'g', -1, 64)
		if !strings.ContainsAny(th, ".e") {
			th += ".0"
		}
		fmt.Fprintf(d, "settings %s %d %s %d %d %d", escaped(x.Conf), x.MaxSplit, th, digit(x.Expandable), x.MaxEntries, digit(s.Has.Overflowed))
		for _, r := range x.Roundup {
			fmt.Fprintf(d, " %d", r)
		}
		d.WriteByte('\n')
	}
	for _, a := range s.Annotations {
		fmt.Fprintf(d, "annotation %s %d %d %d\n", escaped(a.Name), digit(a.Start), a.Device, a.Time)
	}
	fmt.Fprintf(d, "totals %d %d %d %d %d %d\n", len(s.Segments), blocks, events, sums[0], sums[1], sums[2])
	return d.Bytes()
}

func python(t *testing.T, args ...string) []byte {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

// same compares what Decode makes of files with what Python does, value by value.
func same(t *testing.T, names []string) {
	t.Helper()
	out := python(t, append([]string{"testdata/tools/dump.py"}, names...)...)
	for _, name := range names {
		var want []byte
		_, out, _ = bytes.Cut(out, []byte("\n")) // "file ..."
		want, out, _ = bytes.Cut(out, []byte("end\n"))
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Decode(context.Background(), f, Options{})
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Damage) > 0 {
			t.Errorf("%s: %v", name, s.Damage)
		}
		if got := dumped(s); !bytes.Equal(got, want) {
			t.Errorf("%s: %s", name, difference(string(got), string(want)))
		}
	}
}

func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d\n got %.300s\nwant %.300s", i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
		}
	}
	return fmt.Sprintf("%d lines, Python has %d", len(g), len(w))
}

// TestPublic compares the public snapshots.
func TestPublic(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/data/memory_snapshots/*")
	if len(files) == 0 {
		t.Skip("no shared/data/memory_snapshots beside the repository")
	}
	same(t, files)
}

// TestRecorded compares what PyTorch 2.3 to 2.15 wrote of their own allocators.
func TestRecorded(t *testing.T) {
	files, _ := filepath.Glob("../../../testdata/allocator/*/*.pickle.gz")
	if len(files) == 0 {
		t.Error("no recordings")
	}
	same(t, files)
}

// TestGenerated compares snapshots of every form and version, as CPython and as PyTorch's
// C++ writer put them down, with what is odd but allowed.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	python(t, "testdata/tools/make.py", "random", dir)
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	slices.Sort(files)
	if len(files) < 40 {
		t.Errorf("%d files were made", len(files))
	}
	same(t, files)
}
