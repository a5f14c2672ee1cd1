package explain

import "github.com/inquest-dev/inquest/internal/catalog"

// maxEdits is how far a name may be from the one that was meant.
const maxEdits = 2

// Nearest returns the one of names that differs from a mistyped name by the
// fewest edits, at most two and less than half of it; "" where there is none.
// Of equals it is the first.
func Nearest(name string, names []string) string {
	best, least := "", maxEdits+1
	for _, n := range names {
		if d := len(n) - len(name); d > maxEdits || d < -maxEdits {
			continue
		}
		if d := edits(name, n); d > 0 && d < least && 2*d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// Meant is the id of the entry that a mistyped id stands for, "" where none is
// near.
func Meant(c *catalog.Catalog, id string) string {
	var ids []string
	for _, h := range c.Entries() {
		ids = append(ids, h.ID)
	}
	return Nearest(id, ids)
}

// edits is the number of bytes put in, taken out, replaced or swapped with a
// neighbour that turn a into b.
func edits(a, b string) int {
	var before []int
	prev, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, prev, row = prev, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := 1
			if a[i-1] == b[j-1] {
				d = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+d)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
