package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/desk"
)

// TestExamples runs every example of docs/api.md against a server.
func TestExamples(t *testing.T) {
	for _, program := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	script, n := "", 0
	for i, part := range strings.Split(string(page), "```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			script += code
			n += strings.Count(code, "curl ")
		}
	}
	if n < 15 {
		t.Fatalf("%d examples were found", n)
	}
	s := newSite(t, desk.Limits{}, nil)
	dir := t.TempDir()
	for _, name := range []string{"rank_0.log", "rank_1.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(oom), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "AT="+s.URL, "no_proxy=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
	}
	for _, want := range []string{"event: end", "inquest.timeline/v1", "inquest.lines/v1", "inquest.incidents/v1", "CUDA out of memory"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no example shows %q", want)
		}
	}
}
