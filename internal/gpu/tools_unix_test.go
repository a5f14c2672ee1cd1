//go:build unix

package gpu_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
)

// fake puts a nvidia-smi of a shell's script before all others.
func fake(t *testing.T, script string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to write a tool in")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!"+sh+"\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestToolsThatDoNotAnswer: whatever a tool does, there is an answer, and it says what the
// tool did. That each ends at all is the test: none of these tools ends by itself in time.
func TestToolsThatDoNotAnswer(t *testing.T) {
	for _, c := range []struct{ name, script, answer string }{
		{"hangs", "sleep 600", gpu.DidNotAnswer},
		{"ignores signals", "trap '' TERM INT HUP; while :; do sleep 60; done", gpu.DidNotAnswer},
		{"is stopped", "kill -STOP $$", gpu.DidNotAnswer},
		{"prints without end", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", gpu.DidNotAnswer},
		{"prints zeros without end", "cat /dev/zero", gpu.Failed},
		{"fails", "echo 'NVIDIA-SMI has failed because it couldn'\\''t communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.'; exit 9", gpu.Failed},
		{"fails in silence", "exit 3", gpu.Failed},
		{"dies", "kill -SEGV $$", gpu.Failed},
		{"prints garbage", "echo '<<<>>> 12,,,,'; echo ']]]'", gpu.NotUnderstood},
		{"prints binary", "head -c 70000 /dev/urandom", gpu.NotUnderstood},
		{"prints nothing", "exit 0", gpu.NotUnderstood},
		{"leaves its output to another", "sleep 600 & echo no table", gpu.NotUnderstood},
		{"leaves its output to another group", "setsid sleep 20 & echo no table", gpu.NotUnderstood},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake(t, c.script)
			ctx, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			st, err := gpu.Read(ctx, gpu.Tools)
			if !errors.Is(err, gpu.ErrNoAnswer) || len(st.Devices) > 0 {
				t.Fatalf("%v, devices %v", err, st.Devices)
			}
			if got := st.Asked[0].Answer; got != c.answer && !(c.answer == gpu.DidNotAnswer && got == gpu.Failed && c.name == "prints without end") {
				t.Errorf("%+v, want %s", st.Asked[0], c.answer)
			}
			for _, a := range st.Asked {
				if strings.ContainsAny(a.Detail, "\n\x00\x1b") || len(a.Detail) > 400 {
					t.Errorf("words of a tool are not bounded and on one line: %q", a.Detail)
				}
			}
		})
	}
}
