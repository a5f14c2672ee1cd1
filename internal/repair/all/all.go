// Package all lists the formats of repaired copies.
package all

import (
	"github.com/inquest-dev/inquest/internal/repair"
	"github.com/inquest-dev/inquest/internal/repair/history"
)

// Formats returns one of each.
func Formats() []repair.Format {
	return []repair.Format{
		history.TrainerState(),
		history.Tables(),
		history.Lines(),
	}
}
