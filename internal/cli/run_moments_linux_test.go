package cli

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Whenever the end is asked for, inquest ends, and leaves no command behind that nobody looks at.
func TestRunEndedAtAnyMoment(t *testing.T) {
	store := t.TempDir()
	for _, more := range [][]string{nil, {"--sample", "0"}} {
		for range 40 {
			c := exec.Command("inquest", append(append([]string{"run", "--store", store}, more...), "sleep", "60")...)
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // any moment will do
			c.Process.Signal(syscall.SIGTERM)
			late := time.AfterFunc(30*time.Second, func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
			c.Wait()
			if !late.Stop() {
				t.Fatalf("%q: it did not end", c.Args)
			}
			for deadline := time.Now().Add(10 * time.Second); !errors.Is(syscall.Kill(-c.Process.Pid, 0), syscall.ESRCH); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
					t.Fatalf("%q ended, %s, and left its command", c.Args, c.ProcessState)
				}
			}
		}
	}
}
