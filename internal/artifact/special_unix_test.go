//go:build unix

package artifact

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSpecialFiles(t *testing.T) {
	dir := tree(t, map[string]string{"a.log": "log line", "sub/b.log": "log line"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(syscall.Mkfifo(filepath.Join(dir, "pipe.log"), 0o644))
	if l, err := net.Listen("unix", filepath.Join(dir, "s.log")); err == nil {
		defer l.Close()
	} else {
		t.Skipf("socket: %v", err)
	}
	outside := tree(t, map[string]string{"far.log": "log line"})
	must(os.Symlink("a.log", filepath.Join(dir, "latest.log")))
	must(os.Symlink("..", filepath.Join(dir, "sub", "loop")))
	must(os.Symlink(dir, filepath.Join(dir, "self")))
	must(os.Symlink(outside, filepath.Join(dir, "out")))
	must(os.Symlink("gone", filepath.Join(dir, "dangling.log")))
	must(os.Symlink("knot", filepath.Join(dir, "knot")))
	check(t, show(walk(t, Options{}, dir), dir), `
	file R/a.log ranklog
	file R/sub/b.log ranklog
	passed link out of the folder: 1, 0 bytes
	passed link that leads nowhere: 2, 0 bytes
	passed link to what is read under its own name: 3, 0 bytes
	problem R/pipe.log: is a named pipe; not read
	problem R/s.log: is a socket; not read
	`)

	// A link that the user names is followed, and what it leads to read once.
	check(t, show(walk(t, Options{}, filepath.Join(dir, "latest.log"), filepath.Join(dir, "a.log")), dir), `
	file R/latest.log ranklog
	`)
	// A pipe that the user names is not opened.
	_, err := look(context.Background(), []string{filepath.Join(dir, "pipe.log")}, Options{})
	if err == nil || !strings.Contains(err.Error(), "is a named pipe; not read") {
		t.Errorf("named pipe: %v", err)
	}
	// Nor is one that took the place of a file.
	if _, _, err := open(filepath.Join(dir, "pipe.log")); err == nil {
		t.Error("open of a pipe: no error")
	}
}
