//go:build unix

package cli

import (
	"syscall"

	"github.com/inquest-dev/inquest/internal/testkit/heard"
)

func heardSignals() { heard.All(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM) }
