package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// The statuses are a promise to scripts, and docs/cli.md states each of them.
func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("disk on fire"), 1},
		{fmt.Errorf("walk: %w", fs.ErrNotExist), 1},
		{errUnread, 1},
		{fmt.Errorf("%w: unknown flag", errUsage), 2},
		{errFault, 3},
		{fmt.Errorf("read: %w", context.Canceled), 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
		if row := fmt.Sprintf("\n| %d | ", c.want); !strings.Contains(cliDoc(), row) {
			t.Errorf("docs/cli.md does not state status %d", c.want)
		}
	}
}
