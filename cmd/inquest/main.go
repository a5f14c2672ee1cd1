// Command inquest establishes from a training run's own records what failed
// first, why, and what to change.
package main

import (
	"os"

	"github.com/inquest-dev/inquest/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
