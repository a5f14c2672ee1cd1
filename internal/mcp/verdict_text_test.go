package mcp

import (
	"strings"
	"testing"
)

// What followed is told once for each kind and its ranks.
func TestCollateralIsFolded(t *testing.T) {
	v := &verdict{Collateral: []collateral{{Kind: "nonfinite_value", Count: 1}, {Kind: "collective_timeout", Ranks: "0-3", Count: 4}, {Kind: "nonfinite_value", Count: 2}}}
	v.Counts.Collateral = 3
	if got, want := v.text("c", 100), "Collateral, 3 groups: nonfinite_value ×3; collective_timeout ×4 (ranks 0-3)\n"; !strings.Contains(got+"\n", want) {
		t.Errorf("%s\nwithout %q", got, want)
	}
}
