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
		{errInconclusive, 4},
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

func TestUnicodeLocale(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", true}, {"", "", "en_US.UTF-8", true}, {"", "", "C", false}, {"", "", "de_DE.ISO-8859-1", false}, {"C", "", "en_US.UTF-8", false}, {"", "C.utf8", "C", true}, {"POSIX", "en_US.UTF-8", "en_US.UTF-8", false},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_CTYPE": c.ctype, "LANG": c.lang}
		if got := unicodeLocale(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
