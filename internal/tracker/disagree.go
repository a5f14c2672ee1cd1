package tracker

import "github.com/inquest-dev/inquest/internal/incident"

// Disagreements says where two trackers of one run do not hold the same.
func Disagreements(runs []*Run) []incident.Statement { return []incident.Statement{} }
