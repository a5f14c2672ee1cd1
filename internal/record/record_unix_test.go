//go:build unix

package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// orphaned waits for the end of the process whose number log begins with.
func orphaned(t *testing.T, log string) {
	t.Helper()
	var pid int
	if _, err := fmt.Sscan(log, &pid); err != nil {
		t.Fatalf("log %q: %v", log, err)
	}
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// zombie reports whether a process has ended and only its number is left, because whoever
// adopts orphans here does not ask for their ends.
func zombie(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(status), ") Z ")
}

// A time limit ends the command and what it started.
func TestTimeout(t *testing.T) {
	var log bytes.Buffer
	r := Run(context.Background(), Options{Command: []string{"sh", "-c", "sleep 60 & echo $!; wait"}, Log: &log, Timeout: 300 * time.Millisecond})
	if r.Exit.Stopped != incident.StoppedTime || r.Exit.Signal != "SIGTERM" || r.Exit.Status != 128+int(syscall.SIGTERM) {
		t.Errorf("exit %+v", r.Exit)
	}
	orphaned(t, log.String())
}

// Cancelling interrupts the command.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var log bytes.Buffer
	r := Run(ctx, Options{Command: []string{"sh", "-c", `trap 'echo stopping; exit 8' INT; sleep 60 & echo $!; wait`}, Log: &log, Started: func(int) {
		time.Sleep(300 * time.Millisecond) // the trap is set meanwhile, on any machine that is not stuck
		cancel()
	}})
	if r.Exit.Stopped != incident.StoppedInterrupt {
		t.Errorf("exit %+v", r.Exit)
	}
	orphaned(t, log.String())
}

// A trial that cannot start says so.
func TestNotStarted(t *testing.T) {
	for _, o := range []Options{
		{Command: []string{"absent-command"}},
		{Command: []string{"true"}, Dir: "/no/such/folder"},
		{Command: nil},
	} {
		var log bytes.Buffer
		o.Log = &log
		r := Run(context.Background(), o)
		if r.Exit.Error == "" || r.Exit.Status != 127 || !strings.Contains(log.String(), r.Exit.Error) {
			t.Errorf("%q in %q: %+v, log %q", o.Command, o.Dir, r.Exit, log.String())
		}
	}
}

// What is set is set, the folder is the folder, and PATH is the command's.
func TestDirAndEnv(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/own-command", []byte("#!/bin/sh\npwd; echo $NAME\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := Run(context.Background(), Options{Command: []string{"own-command"}, Dir: dir, Env: []string{"NAME=value", "PATH=" + dir + ":/bin:/usr/bin"}, Log: &log})
	if r.Exit.Status != 0 || !strings.HasSuffix(log.String(), "\nvalue\n") || r.LogBytes != int64(log.Len()) {
		t.Errorf("%+v, log %q", r, log.String())
	}
}

// A log that stands still holds nothing up.
func TestStuckLog(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	log := &stuck{until: release}
	done := make(chan Result, 1)
	go func() {
		done <- Run(context.Background(), Options{Command: []string{"sh", "-c", "head -c 30000000 /dev/zero; exit 3"}, Log: log})
	}()
	select {
	case r := <-done:
		if r.Exit.Status != 3 || !strings.Contains(strings.Join(r.Problems, "\n"), "the log is not complete") {
			t.Errorf("%+v", r)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("still waiting")
	}
}

type stuck struct{ until chan struct{} }

func (s *stuck) Write(p []byte) (int, error) { <-s.until; return len(p), nil }
