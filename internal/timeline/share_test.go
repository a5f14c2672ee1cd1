package timeline

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestShare: records without a time are listed with every launch while they are
// few; beside thousands of launches their number is bounded, but for the last.
func TestShare(t *testing.T) {
	for _, c := range []struct{ launches, records, first, unshared int }{
		{4, 4000, 4000, 0},
		{4000, 4000, minShared, 4000 - minShared},
	} {
		tl := &Timeline{}
		for range c.launches {
			tl.Attempts = append(tl.Attempts, &Attempt{})
		}
		for range c.records {
			tl.Items = append(tl.Items, &Item{Event: evidence.Event{Kind: evidence.Xid}, Attempt: -1})
		}
		tl.share()
		listed := 0
		for _, a := range tl.Attempts {
			listed += len(a.Items)
		}
		first, last := len(tl.Attempts[0].Items), len(tl.Attempts[c.launches-1].Items)
		if first != c.first || last != c.records || tl.Unshared != c.unshared || listed > maxShared+c.records {
			t.Errorf("%d launches, %d records: first %d, last %d, unshared %d, in all %d", c.launches, c.records, first, last, tl.Unshared, listed)
		}
	}
}
