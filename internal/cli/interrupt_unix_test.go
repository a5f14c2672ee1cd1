//go:build unix

package cli

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"time"
)

// An interrupt also ends a run that waits for standard input.
func TestInterruptWhileWaiting(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	status := make(chan int, 1)
	go func() {
		var o, e bytes.Buffer
		status <- Main([]string{"diagnose", "-"}, in, &o, &e)
	}()
	time.Sleep(200 * time.Millisecond) // the signal handler is set before anything is read
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-status:
		if got != 130 {
			t.Errorf("status %d, want 130", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting")
	}
}
