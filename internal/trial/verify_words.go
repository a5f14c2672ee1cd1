package trial

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// counted is a number with the one or the other word behind it.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return evidence.Count(n) + " " + many
}

func bytesText(n int64) string {
	if n < 0 {
		return "-" + evidence.Bytes(-n)
	}
	return evidence.Bytes(n)
}

// numberText is a number with at most four digits that count.
func numberText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func percentText(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
