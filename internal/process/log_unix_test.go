//go:build unix

package process

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// failing fails while on is set.
type failing struct {
	mu   sync.Mutex
	on   bool
	kept bytes.Buffer
}

func (f *failing) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.on {
		return 0, syscall.ENOSPC
	}
	return f.kept.Write(p)
}

func (f *failing) set(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = on
}

// What a log refused is marked where it is missing, once the log takes something again.
func TestLogMarksGap(t *testing.T) {
	f := &failing{}
	l := newLog(f)
	settle := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for len(l.waiting) > 0 || l.writing {
			l.changed.Wait()
		}
	}
	l.write([]byte("one\n"))
	settle()
	f.set(true)
	l.write([]byte("two\n"))
	settle()
	f.set(false)
	l.write([]byte("three\n"))
	taken, err := l.close()
	if want := "one\n\n[inquest: 4 bytes of output are missing here: the log could not be written]\nthree\n"; f.kept.String() != want {
		t.Errorf("log %q, want %q", f.kept.String(), want)
	}
	if taken != 10 || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "4 bytes are missing") {
		t.Errorf("took %d, %v", taken, err)
	}
}
