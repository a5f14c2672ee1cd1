package desk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
)

// TestPutWhole compares what lies on the disk, however the file came.
func TestPutWhole(t *testing.T) {
	o := options(t)
	d := open(t, o)
	id := begin(t, d)
	for _, n := range []int64{0, 1, 4 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20} {
		for _, size := range []int{1 << 30, 256 << 10, 100_000, 4096, 511} {
			name := fmt.Sprintf("a/b/%d-%d", n, size)
			if got, err := d.Put(t.Context(), id, name, &parts{n: n, size: size, end: io.EOF}); got != n || err != nil {
				t.Fatalf("%d bytes by %d: %d (%v)", n, size, got, err)
			}
			b, err := os.ReadFile(filepath.Join(folderOf(t, o.Dir), id, name))
			if err != nil || int64(len(b)) != n || strings.Trim(string(b), "x") != "" {
				t.Fatalf("%d bytes by %d: on the disk %d (%v)", n, size, len(b), err)
			}
		}
	}
	if c, err := d.Case(id); err != nil || slices.ContainsFunc(c.Files, func(f incident.CaseFile) bool { return !f.Whole }) || len(c.Limits) > 0 {
		t.Errorf("case %+v (%v)", c, err)
	}
}

// TestPutCut ends uploads early: the case goes on, and what was cut can come again.
func TestPutCut(t *testing.T) {
	d := open(t, options(t))
	id := begin(t, d)
	broken := errors.New("connection reset")
	n, err := d.Put(t.Context(), id, "a.log", io.MultiReader(strings.NewReader(oom), &parts{end: broken}))
	if n != int64(len(oom)) || err != broken {
		t.Errorf("%d bytes, %v", n, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if _, err := d.Put(ctx, id, "b.log", &parts{n: 100, size: 10, end: io.EOF, each: stop}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if n, err := d.Put(t.Context(), id, "c.log", &parts{n: 9, size: 0, end: io.EOF}); !errors.Is(err, io.ErrNoProgress) || n != 0 {
		t.Errorf("nothing comes: %d, %v", n, err)
	}
	c, err := d.Case(id)
	if err != nil || len(c.Files) != 3 || len(c.Limits) != 3 || c.Files[0] != (incident.CaseFile{Name: "a.log", Bytes: int64(len(oom))}) || c.Bytes != int64(len(oom))+10 {
		t.Errorf("case %+v (%v)", c, err)
	}
	put(t, d, id, "b.log", "step 1 loss 2.5\n")
	put(t, d, id, "c.log", "step 1 loss 2.5\n")
	if _, err := d.Put(t.Context(), id, "b.log", strings.NewReader("")); !errors.Is(err, desk.ErrTwice) {
		t.Errorf("a whole file again: %v", err)
	}
	r := diagnose(t, d, id, desk.Handling{})
	if r.Incident.FirstFault == nil || !strings.Contains(text(t, r.Incident.Limits), "a.log") || strings.Contains(text(t, r.Incident.Limits), "b.log") {
		t.Errorf("limits %+v", r.Incident.Limits)
	}
	if c, err = d.Case(id); err != nil || len(c.Limits) != 1 || !strings.Contains(c.Limits[0], "a.log") || c.Bytes != int64(len(oom))+32 {
		t.Errorf("case %+v (%v)", c, err)
	}
}

func TestPutNames(t *testing.T) {
	d := open(t, options(t))
	id := begin(t, d, "logs/a.log", "x", "Readme", "x")
	for name, want := range map[string]error{
		"../x": desk.ErrName, "/etc/passwd": desk.ErrName, "nul": desk.ErrName,
		"logs/a.log": desk.ErrTwice, "logs/A.log": desk.ErrTwice, "LOGS/b.log": desk.ErrTwice, "logs": desk.ErrTwice, "Logs": desk.ErrTwice, "logs/a.log/b": desk.ErrTwice, "README": desk.ErrTwice, "readme/a": desk.ErrTwice,
		"logs/b.log": nil, "logs2/a.log": nil,
	} {
		if _, err := d.Put(t.Context(), id, name, strings.NewReader("y")); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if c, _ := d.Case(id); len(c.Files) != 4 {
		t.Errorf("files %v", c.Files)
	}
}

func TestPutLimits(t *testing.T) {
	o := options(t)
	o.Limits = desk.Limits{CaseBytes: 1000, AllBytes: 1500, Files: 3}
	d := open(t, o)
	id := begin(t, d, "a.log", oom)
	p := &parts{n: 1 << 40, size: 100, end: io.EOF}
	n, err := d.Put(t.Context(), id, "big.log", p)
	if !errors.Is(err, desk.ErrTooLarge) || n+int64(len(oom)) > 1000 || p.n < 1<<40-2000 {
		t.Errorf("%d bytes, %d left: %v", n, p.n, err)
	}
	if _, err := os.Stat(filepath.Join(folderOf(t, o.Dir), id, "big.log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was refused lies there: %v", err)
	}
	put(t, d, id, "big.log", "smaller")
	put(t, d, id, "c.log", "x")
	for range 3 {
		if _, err := d.Put(t.Context(), id, "d.log", strings.NewReader("x")); !errors.Is(err, desk.ErrTooMany) {
			t.Errorf("a file too many: %v", err)
		}
	}
	c, err := d.Case(id)
	if err != nil || len(c.Files) != 3 || len(c.Limits) != 2 || c.Bytes != int64(len(oom))+8 {
		t.Errorf("case %+v (%v)", c, err)
	}
	r := diagnose(t, d, id, desk.Handling{})
	if s := text(t, r.Incident.Limits); !strings.Contains(s, "big.log") || !strings.Contains(s, "only the first 3 files") {
		t.Errorf("limits %s", s)
	}

	// Together: what has ended gives way, what has not does not.
	second := begin(t, d, "a", strings.Repeat("x", 900))
	if err := d.Cancel(second); err != nil {
		t.Fatal(err)
	}
	third := begin(t, d, "a", strings.Repeat("x", 900))
	if state(d, id) != incident.CaseDone {
		t.Error("a case gave way although there was room")
	}
	fourth := begin(t, d)
	if n, err := d.Put(t.Context(), fourth, "a", &parts{n: 700, size: 100, end: io.EOF}); !errors.Is(err, desk.ErrTooLarge) || n != 600 {
		t.Errorf("more than all may have: %d, %v", n, err)
	}
	if state(d, id) != "" || state(d, third) != incident.CaseReceiving {
		t.Errorf("first %q, third %q", state(d, id), state(d, third))
	}
	put(t, d, fourth, "a", strings.Repeat("x", 600))
}

// TestPutCoincides meets what a case may be while a file of it comes.
func TestPutCoincides(t *testing.T) {
	for what, x := range map[string]struct {
		do   func(*desk.Desk, string) error
		want error
	}{
		"diagnose": {func(d *desk.Desk, id string) error {
			if err := d.Diagnose(id, desk.Handling{}); !errors.Is(err, desk.ErrState) {
				return fmt.Errorf("diagnose: %w", err)
			}
			return nil
		}, nil},
		"same": {func(d *desk.Desk, id string) error {
			if _, err := d.Put(context.Background(), id, "a.log", strings.NewReader("")); !errors.Is(err, desk.ErrTwice) {
				return fmt.Errorf("put: %w", err)
			}
			return nil
		}, nil},
		"cancel": {(*desk.Desk).Cancel, desk.ErrState},
		"remove": {(*desk.Desk).Remove, desk.ErrNoCase},
		"close":  {func(d *desk.Desk, _ string) error { return d.Close() }, desk.ErrClosed},
	} {
		t.Run(what, func(t *testing.T) {
			o := options(t)
			d := open(t, o)
			id := begin(t, d)
			reached, r, w := make(chan struct{}), (*io.PipeReader)(nil), (*io.PipeWriter)(nil)
			r, w = io.Pipe()
			ended := make(chan error)
			go func() {
				_, err := d.Put(t.Context(), id, "a.log", r)
				ended <- err
			}()
			go func() { w.Write([]byte("x")); close(reached) }()
			<-reached
			if err := x.do(d, id); err != nil {
				t.Fatal(err)
			}
			go func() { w.Write([]byte("y")); w.Close() }()
			err := <-ended
			r.Close()
			if !errors.Is(err, x.want) {
				t.Errorf("put: %v, want %v", err, x.want)
			}
			if what == "cancel" || what == "remove" {
				if _, err := os.Stat(filepath.Join(folderOf(t, o.Dir), id)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("files are left: %v", err)
				}
			}
		})
	}
}

func TestPutDated(t *testing.T) {
	o := options(t)
	d := open(t, o)
	id := begin(t, d)
	at := time.Date(2026, 7, 1, 9, 30, 0, 0, time.UTC)
	if _, err := d.PutDated(t.Context(), id, "a.log", at, strings.NewReader(oom)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(folderOf(t, o.Dir), id, "a.log")); err != nil || !info.ModTime().Equal(at) {
		t.Errorf("%v (%v)", info, err)
	}
	if _, err := d.PutDated(t.Context(), id, "cut.log", at, io.MultiReader(strings.NewReader(oom), iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(folderOf(t, o.Dir), id, "cut.log")); err != nil || !info.ModTime().Equal(at) {
		t.Errorf("of a file that ended early: %v (%v)", info, err)
	}
}

// A deaf reader is a slow one that does not hear that it is to stop.
type deaf struct{ *slow }

func (d deaf) Read(_ context.Context, in reader.Input, sink reader.Sink) error {
	return d.slow.Read(context.Background(), in, sink)
}

// TestPutWaits puts a file for which another case has to give way that is still read: who waits
// goes when it wants to.
func TestPutWaits(t *testing.T) {
	o, s := options(t), newSlow()
	o.Engine.Readers = append([]reader.Reader{deaf{s}}, o.Engine.Readers...)
	o.Limits.AllBytes = 10
	d := open(t, o)
	first := begin(t, d, "a.log", slowly)
	if err := d.Diagnose(first, desk.Handling{}); err != nil {
		t.Fatal(err)
	}
	<-s.began
	if err := d.Cancel(first); err != nil {
		t.Fatal(err)
	}
	second := begin(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	if n, err := d.Put(ctx, second, "b.log", &parts{n: 8, size: 8, end: io.EOF, each: cancel}); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if c, err := d.Case(second); err != nil || len(c.Files) != 1 || c.Files[0].Whole || c.Bytes != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	close(s.may)
	put(t, d, second, "b.log", "12345678")
}
