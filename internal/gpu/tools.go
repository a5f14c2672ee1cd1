package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A Runner runs a vendor's tool and returns what it printed on its standard output. An error
// wraps exec.ErrNotFound where the tool is not installed, context.DeadlineExceeded or
// context.Canceled where it was given up; what it printed before is returned with any error.
type Runner func(ctx context.Context, tool string, args ...string) ([]byte, error)

const (
	maxOutput = 8 << 20 // of a tool: nvidia-smi -q -x of 16 devices has 0.5 MiB
	maxErrors = 4 << 10
	// lingering is how long the output of a tool that has ended, or was ended, is waited for:
	// a process that it started may hold the pipe.
	lingering = 150 * time.Millisecond
	// undying is how much longer an ended tool is waited for. One that waits in the driver
	// cannot be killed; it is left behind.
	undying = 250 * time.Millisecond
)

// places are where tools lie that PATH does not name.
var places = map[string][]string{
	"nvidia-smi": {"/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/run/nvidia/driver/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", `C:\Windows\System32\nvidia-smi.exe`, `C:\Program Files\NVIDIA Corporation\NVSMI\nvidia-smi.exe`},
	"amd-smi":    {"/opt/rocm/bin/amd-smi"},
	"rocm-smi":   {"/opt/rocm/bin/rocm-smi"},
}

// find is where a tool lies; an error wraps exec.ErrNotFound.
func find(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	if err == nil {
		return path, nil
	}
	for _, p := range places[tool] {
		if !filepath.IsAbs(p) {
			continue
		}
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			if _, err := exec.LookPath(p); err == nil {
				return p, nil
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrDot) || errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s: %w", tool, exec.ErrNotFound)
	}
	return "", err
}

// Tools is the Runner of the real tools. It returns soon after ctx is done whatever the tool
// does: a tool that ignores signals is killed with its process group, one whose descendants
// hold its output is not waited for, and one that cannot be killed is left behind.
func Tools(ctx context.Context, tool string, args ...string) ([]byte, error) {
	path, err := find(tool)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	outer := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, said := &bounded{limit: maxOutput, over: stop}, &bounded{limit: maxErrors}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, said, lingering
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", tool, err)
	}
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if errors.Is(err, exec.ErrWaitDelay) { // it has ended, and others hold its output
			endGroup(cmd)
			err = nil
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		late := time.NewTimer(lingering + undying)
		defer late.Stop()
		select {
		case err = <-done:
		case <-late.C:
			err = errors.New("it cannot be ended")
		}
	}
	switch {
	case out.full():
		return out.bytes(), fmt.Errorf("%s: %w", tool, ErrTooMuch)
	case outer.Err() != nil && err != nil:
		return out.bytes(), fmt.Errorf("%s: %w", tool, outer.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		exit.Stderr = said.bytes()
	}
	return out.bytes(), err
}

// A bounded keeps the first limit bytes that are written to it; where there are more, it
// calls over, which may be nil, and drops them.
type bounded struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int
	more  bool
	over  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := b.limit - b.buf.Len(); len(p) > room {
		b.buf.Write(p[:room])
		b.more = true
		if b.over != nil {
			b.over()
		}
		return len(p), nil
	}
	return b.buf.Write(p)
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

func (b *bounded) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.more && b.over != nil
}

// first is the first line of a text that is not blank.
func first(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
