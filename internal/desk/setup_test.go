package desk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/all"
)

// knowledge is the encyclopedia.
var knowledge = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load(encyclopedia.FS) })

// options are what a test's desk works with.
func options(t testing.TB) desk.Options {
	t.Helper()
	c, err := knowledge()
	if err != nil {
		t.Fatal(err)
	}
	return desk.Options{Dir: t.TempDir(), Engine: engine.Options{Catalog: c, Readers: all.Readers(c.Plan()), Version: "test", Workers: 1}}
}

// open makes a desk that is closed with the test, when its folder must be gone.
func open(t testing.TB, o desk.Options) *desk.Desk {
	t.Helper()
	d, err := desk.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("the closed desk left %v (%v)", left, err)
		}
	})
	return d
}

// oom is the log of a run that ran out of memory.
const oom = `step 1 loss 2.5
step 2 loss 2.4
Traceback (most recent call last):
  File "/app/pretrain.py", line 61, in main
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.50 GiB of which 1.25 GiB is free.
`

// begin opens a case with these files, pairs of name and text.
func begin(t testing.TB, d *desk.Desk, files ...string) string {
	t.Helper()
	c, err := d.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		put(t, d, c.ID, files[i], files[i+1])
	}
	return c.ID
}

func put(t testing.TB, d *desk.Desk, id, name, text string) {
	t.Helper()
	n, err := d.Put(t.Context(), id, name, strings.NewReader(text))
	if err != nil || n != int64(len(text)) {
		t.Fatalf("put %s: %d bytes, %v", name, n, err)
	}
}

// diagnose waits for the result.
func diagnose(t testing.TB, d *desk.Desk, id string, h desk.Handling) *desk.Result {
	t.Helper()
	if err := d.Diagnose(id, h); err != nil {
		t.Fatal(err)
	}
	r, err := d.Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// state of a case; "" where there is none.
func state(d *desk.Desk, id string) string {
	c, err := d.Case(id)
	if err != nil {
		return ""
	}
	return c.State
}

// A slow reader reads what begins with slowly for as long as it is let: it says when it began
// and returns when it may, or its context ends.
type slow struct {
	began chan string // names of artifacts
	may   chan struct{}
}

func newSlow() *slow { return &slow{make(chan string, 100), make(chan struct{})} }

const slowly = "SLOWLY\n"

func (s *slow) Name() string { return "slow" }

func (s *slow) Sniff(_ evidence.Artifact, head []byte) reader.Confidence {
	if bytes.HasPrefix(head, []byte(slowly)) {
		return reader.Sure
	}
	return reader.No
}

func (s *slow) Read(ctx context.Context, in reader.Input, _ reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, f); err != nil {
		return err
	}
	s.began <- in.Artifact.Path
	select {
	case <-s.may:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// with adds a slow reader to the options.
func (s *slow) with(o desk.Options) desk.Options {
	o.Engine.Readers = append([]reader.Reader{s}, o.Engine.Readers...)
	return o
}

// text is everything that v says.
func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// parts gives n bytes in parts of a size, and then end.
type parts struct {
	n    int64
	size int
	end  error
	each func() // called before each part; may be nil
}

func (p *parts) Read(b []byte) (int, error) {
	if p.n == 0 {
		return 0, p.end
	}
	if p.each != nil {
		p.each()
	}
	n := int(min(int64(min(len(b), p.size)), p.n))
	for i := range b[:n] {
		b[i] = 'x'
	}
	p.n -= int64(n)
	return n, nil
}
