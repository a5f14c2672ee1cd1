//go:build unix

package process

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/testkit/heard"
)

// What this process was sent before the command was started, the command gets when it is.
func TestCaught(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		heard.All(sig)
		caught := Catch()
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); caught.signals.waiting() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s was not caught", sig)
			}
		}
		p := Start(Options{Command: []string{"sleep", "60"}, Forward: true, Caught: caught})
		p.Wait(context.Background(), 30*time.Second)
		if e := p.Finish().Exit; e.Status != 128+int(sig) || e.Stopped != "" {
			t.Errorf("%s: the command ended so: %+v", sig, e)
		}
		caught.Release()
	}
}
