package trial

import (
	"math"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A peak that was missed between two samples does not bend the line.
func TestFitMissedPeak(t *testing.T) {
	limit := int64(1000)
	peaks := []peak{{16, 5, true}, {24, 290, true}, {27, 320, true}, {29, 340, true}, {30, 350, true}}
	f := fitOf(incident.AddressSpace, peaks, &limit)
	if f == nil || math.Abs(f.B-10) > 1e-9 || math.Abs(f.A-50) > 1e-9 || f.Residual != 0 || f.Edge == nil || *f.Edge != 95 {
		t.Errorf("%+v", f)
	}
	for i := range peaks {
		peaks[i].atLeast = false
	}
	if f := fitOf(incident.AddressSpace, peaks, &limit); f == nil || f.Residual < 50 {
		t.Errorf("peaks that are exact count as they are: %+v", f)
	}
	if f := fitOf(incident.AddressSpace, []peak{{4, 1, true}, {4, 2, true}}, &limit); f != nil {
		t.Errorf("one value gives no line: %+v", f)
	}
}
