//go:build linux || darwin

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// A screen is a terminal, and what was shown on it.
type screen struct {
	*os.File
	t     *testing.T
	shown bytes.Buffer
	more  chan []byte
}

// onTerminal starts c on a terminal of 31 rows and 97 columns.
func onTerminal(t *testing.T, c *exec.Cmd) *screen {
	t.Helper()
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 31, Cols: 97})
	if err != nil {
		t.Skip("no pseudo-terminal:", err)
	}
	s := &screen{File: f, t: t, more: make(chan []byte, 64)}
	t.Cleanup(func() { f.Close() })
	go func() {
		defer close(s.more)
		for {
			b := make([]byte, 4096)
			n, err := f.Read(b)
			if err != nil {
				return
			}
			s.more <- b[:n]
		}
	}()
	return s
}

// until waits until text was shown since the last call, and returns all of that.
func (s *screen) until(text string) string {
	s.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if i := strings.Index(s.shown.String(), text); i >= 0 {
			return string(s.shown.Next(i + len(text)))
		}
		select {
		case b, ok := <-s.more:
			if !ok {
				s.t.Fatalf("ended without %q: %q", text, s.shown.String())
			}
			s.shown.Write(b)
		case <-late:
			s.t.Fatalf("no %q: %q", text, s.shown.String())
		}
	}
}

func (s *screen) typeKeys(keys string) { io.WriteString(s, keys) }

// A command on a terminal has one: its size, also when that changes, its keys, and its signals.
func TestRunTerminal(t *testing.T) {
	c := exec.Command("inquest", "run", "--no-diagnose", "--sample", "0", "--store", t.TempDir(), "sh", "-c",
		`test -t 0 && test -t 1 && test -t 2 && stty size; trap 'stty size' WINCH; trap 'echo interrupted; exit 5' INT; read x; echo "read $x"; echo ready; while :; do sleep 0.02; done`)
	s := onTerminal(t, c)
	s.until("31 97")
	s.typeKeys("word\r")
	s.until("read word")
	s.until("ready")
	if err := pty.Setsize(s.File, &pty.Winsize{Rows: 44, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	s.until("44 120")
	s.typeKeys("\x03")
	s.until("interrupted")
	c.Wait()
	if got := c.ProcessState.ExitCode(); got != 5 {
		t.Errorf("status %d", got)
	}
}

// Streams that are no terminal stay what they are, beside one that is.
func TestRunPartTerminal(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := exec.Command("inquest", "run", "--no-diagnose", "--sample", "0", "--store", t.TempDir(), "sh", "-c",
		`test -t 0 && test -t 2 && ! test -t 1 && echo kept && echo shown >&2`)
	c.Stdout = out
	s := onTerminal(t, c)
	s.until("shown")
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(out.Name()); err != nil || string(b) != "kept\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// The terminal has its mode back, also where the command was killed or this program was told to
// end.
func TestRunRestores(t *testing.T) {
	for _, script := range []string{"exit 3", "kill -KILL $$", "kill -TERM $PPID; sleep 20"} {
		c := exec.Command("inquest", "run", "--no-diagnose", "--sample", "0", "--store", t.TempDir(), "sh", "-c", script)
		master, tty, err := pty.Open()
		if err != nil {
			t.Skip("no pseudo-terminal:", err)
		}
		before, err := term.GetState(int(tty.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		go io.Copy(io.Discard, master)
		c.Run()
		after, err := term.GetState(int(tty.Fd()))
		if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: mode %v, was %v; %v", script, after, before, err)
		}
		tty.Close()
		master.Close()
	}
}

// The stop key stops both, and a shell resumes both.
func TestRunStopKey(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash, whose jobs can be stopped")
	}
	c := exec.Command(shell, "--norc", "--noprofile", "--noediting", "-i")
	c.Env = append(os.Environ(), "PS1=$ ", "HISTFILE=")
	s := onTerminal(t, c)
	s.typeKeys("stty -echo; echo be''gun\r")
	s.until("begun")
	s.typeKeys("inquest run --no-diagnose --sample 0 --store '" + t.TempDir() + `' sh -c 'echo up; read x; echo "read $x"; exit 6'; echo "status $?"` + "\r")
	s.until("up")
	s.typeKeys("\x1a")
	s.until("Stopped")
	s.typeKeys("\rjobs; stty -a | grep -o '.icanon'; echo lis''ted\r")
	if listed := s.until("listed"); !strings.Contains(listed, "Stopped") || strings.Contains(listed, "-icanon") {
		t.Errorf("jobs and mode: %q", listed)
	}
	s.typeKeys("fg; echo status $?\r")
	s.until("sh -c")
	s.typeKeys("word\r")
	s.until("read word")
	s.until("status 6")
	s.typeKeys("exit\r")
	c.Wait()
}

// Behind a pipe the terminal is not this program's: it stays as it is, and its interrupt comes
// to the command once, from the system.
func TestRunPiped(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	c := exec.Command("sh", "-c", `inquest run --no-diagnose --sample 0 --store "$1" "$2" -uc "$3" | (trap "" INT; cat)`, "sh", t.TempDir(), python, `
import os, signal, sys, time
n = 0
def count(*_):
    global n
    n += 1
signal.signal(signal.SIGINT, count)
print("terminals", os.isatty(0), os.isatty(1), os.isatty(2), os.get_terminal_size(2).columns, "of", os.getpgrp() == os.tcgetpgrp(0))
end = time.time() + 20
while not n and time.time() < end:
    time.sleep(0.02)
time.sleep(0.3)
print("interrupts", n)
`)
	s := onTerminal(t, c)
	if shown := s.until(" of True"); !strings.Contains(shown, "terminals True False True 97") {
		t.Errorf("%q", shown)
	}
	s.typeKeys("\x03")
	if shown := s.until("interrupts 1"); !strings.Contains(shown, "\r\n") {
		t.Errorf("%q: the terminal is raw", shown)
	}
	c.Wait()
}
