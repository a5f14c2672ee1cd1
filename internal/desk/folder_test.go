package desk_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/desk"
)

// ownerOf names the folder for which the test binary is a process with a desk.
const ownerOf = "INQUEST_TEST_DESK"

// TestOwner is that process: it says when it has its desk, and lives until it is killed.
func TestOwner(t *testing.T) {
	dir := os.Getenv(ownerOf)
	if dir == "" {
		t.Skip("is the process that TestLeft kills")
	}
	o := options(t)
	o.Dir = dir
	d, err := desk.New(o)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, d, "logs/a.log", oom)
	os.Stdout.WriteString("ready\n")
	bufio.NewReader(os.Stdin).ReadByte()
}

// TestLeft removes the folder of a desk whose process was killed, when it was, and no other.
func TestLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	o := options(t)
	foreign := filepath.Join(o.Dir, "inquest-desk-foreign") // has no lock: not known to be a desk's
	if err := os.MkdirAll(filepath.Join(foreign, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(o.Dir, "inquest-desk-file")
	if err := os.WriteFile(beside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOwner$")
	cmd.Env = append(os.Environ(), ownerOf+"="+o.Dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("%q (%v)", line, err)
	}
	count := func(want int) {
		t.Helper()
		if m, err := filepath.Glob(filepath.Join(o.Dir, "inquest-desk-*")); err != nil || len(m) != want {
			t.Errorf("folders %v, want %d", m, want)
		}
	}
	count(3)
	mine, err := desk.New(o) // while the other lives
	if err != nil {
		t.Fatal(err)
	}
	count(4)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	count(4)
	more, err := desk.New(o)
	if err != nil {
		t.Fatal(err)
	}
	count(4) // its own, mine, and the two that are none
	begin(t, mine, "a.log", oom)
	if err := mine.Close(); err != nil {
		t.Error(err)
	}
	if err := more.Close(); err != nil {
		t.Error(err)
	}
	count(2)
}

// TestMode looks at who may look.
func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing on Windows")
	}
	o := options(t)
	d := open(t, o)
	begin(t, d, "logs/deep/a.log", oom)
	err := filepath.WalkDir(folderOf(t, o.Dir), func(name string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNoFolder names what could not be made.
func TestNoFolder(t *testing.T) {
	o := options(t)
	o.Dir = filepath.Join(o.Dir, "missing")
	if _, err := desk.New(o); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), o.Dir) {
		t.Errorf("%v", err)
	}
}
