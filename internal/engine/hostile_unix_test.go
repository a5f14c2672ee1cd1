//go:build unix

package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
)

// TestSpecialFiles: what is no regular file is never opened; a pipe would wait
// for a writer for ever.
func TestSpecialFiles(t *testing.T) {
	dir := job(t, map[string]string{"train.log": oomTail})
	pipe := filepath.Join(dir, "rank_0.log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling.log")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	inc, err := engine.Diagnose(ctx, options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if inc.FirstFault == nil || len(inc.Artifacts) != 1 {
		t.Errorf("first fault %+v, artifacts %+v", inc.FirstFault, inc.Artifacts)
	}
	if _, err := engine.Diagnose(ctx, options(t, pipe)); ctx.Err() != nil {
		t.Errorf("a pipe was waited for: %v", err)
	}
}
