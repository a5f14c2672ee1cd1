package cli

import (
	"bytes"
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

// What an error repeats cannot act on a terminal.
func TestErrorIsPrintable(t *testing.T) {
	var b bytes.Buffer
	a := &app{err: &b}
	a.complain(errors.New("unknown flag --\x1b[31m\u202e, caf\u00e9\nline 2"))
	if got, want := b.String(), "inquest: unknown flag --\\x1b[31m\\u202e, caf\u00e9\nline 2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
