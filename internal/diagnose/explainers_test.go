package diagnose

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// Where a rule holds within one rank only, other ranks' events are not even
// looked at; else those of all are, in order.
func TestExplainers(t *testing.T) {
	at := func(k evidence.Kind, rank int, id string) *timeline.Item {
		return &timeline.Item{Event: evidence.Event{Kind: k, Who: evidence.Who{Rank: rank}}, ID: id}
	}
	of := byKind([]*timeline.Item{
		at(evidence.CUDAAssert, 1, "a"), at(evidence.CUDAAssert, evidence.None, "b"), at(evidence.CUDAAssert, 2, "c"),
		at(evidence.CUDAAssert, 1, "d"), at(evidence.HostOOMKill, 7, "e"),
	})
	for _, c := range []struct {
		to   *timeline.Item
		want string
	}{
		{at(evidence.CUDAAssert, 1, ""), "abd"},
		{at(evidence.CUDAAssert, 3, ""), "b"},
		{at(evidence.CUDAAssert, evidence.None, ""), "abcd"},
		{at(evidence.WorkerKilled, 1, ""), "e"},
		{at(evidence.Finished, 1, ""), ""},
	} {
		got := ""
		for it := range of.explainers(c.to) {
			got += it.ID
		}
		if got != c.want {
			t.Errorf("%s on rank %d: %q, want %q", c.to.Kind, c.to.Who.Rank, got, c.want)
		}
	}
}

// However many events could explain one, few are tried, its own rank's among them.
func TestExplainersBound(t *testing.T) {
	var items []*timeline.Item
	for rank := range 5 * maxTries {
		items = append(items, &timeline.Item{Event: evidence.Event{Kind: evidence.SignalReceived, Who: evidence.Who{Rank: rank}}})
	}
	of := byKind(items)
	tried, own := 0, false
	for it := range of.explainers(&timeline.Item{Event: evidence.Event{Kind: evidence.Exception, Who: evidence.Who{Rank: 4 * maxTries}}}) {
		tried++
		own = own || it.Who.Rank == 4*maxTries
	}
	if tried != maxTries+1 || !own {
		t.Errorf("%d tried, own rank among them: %v", tried, own)
	}
}
