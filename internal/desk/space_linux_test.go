package desk_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/inquest-dev/inquest/internal/desk"
)

// TestFull fills a disk of one mebibyte.
func TestFull(t *testing.T) {
	o := options(t)
	if err := syscall.Mount("tmpfs", o.Dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no small disk can be had: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(o.Dir, 0); err != nil {
			t.Error(err)
		}
	})
	d := open(t, o)
	id := begin(t, d)
	p := &parts{n: 1 << 40, size: 64 << 10, end: io.EOF}
	_, err := d.Put(t.Context(), id, "big.log", p)
	if !errors.Is(err, desk.ErrSpace) || strings.Contains(err.Error(), o.Dir) || 1<<40-p.n > 2<<20 {
		t.Errorf("%d bytes taken: %v", 1<<40-p.n, err)
	}
	put(t, d, id, "a.log", oom) // there is room again
	c, err := d.Case(id)
	if err != nil || len(c.Files) != 1 || len(c.Limits) != 1 || !strings.Contains(c.Limits[0], "no space") || c.Bytes != int64(len(oom)) {
		t.Errorf("case %+v (%v)", c, err)
	}
}
