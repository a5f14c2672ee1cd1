// Package gpu reads the live state of the host's devices, through one runner of the vendors'
// command-line tools that tests replace, and what the system says of the processes that hold
// their memory. Nothing is linked against a vendor's library, and no process but the tools is
// ever started or signalled.
package gpu

import (
	"context"
	"os/exec"
)

// A Runner runs a vendor's tool and returns what it printed on its standard output. An error
// wraps exec.ErrNotFound where the tool is not installed.
type Runner func(ctx context.Context, tool string, args ...string) ([]byte, error)

// Tools is the Runner of the real tools.
func Tools(ctx context.Context, tool string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, tool, args...).Output()
}
