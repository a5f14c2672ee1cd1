package record

import (
	"math/bits"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// given runs a pacer over looks that are apart seconds from each other and returns the samples.
func given(looks int, apart, every time.Duration, at func(i int) incident.Sample) []incident.Sample {
	var p pacer
	var out []incident.Sample
	for i := range looks {
		x := at(i)
		t := time.Duration(i) * apart
		x.Seconds = t.Seconds()
		out = append(out, p.due(x, t, every)...)
	}
	return append(out, p.rest()...)
}

func TestPacerLosesNoPeak(t *testing.T) {
	cgroup := int64(0)
	out := given(3000, 100*time.Millisecond, 5*time.Second, func(i int) incident.Sample {
		x := incident.Sample{Processes: 1, Resident: 100, AddressSpace: 100, Cgroup: &cgroup}
		switch i {
		case 777:
			x.Resident = 900
		case 779:
			x.AddressSpace = 800
		case 781:
			n := int64(700)
			x.Cgroup = &n
		case 2999: // the last of all
			x.Resident = 950
		}
		return x
	})
	var resident, space, charged int64
	last := -1.0
	for _, x := range out {
		resident, space, charged = max(resident, x.Resident), max(space, x.AddressSpace), max(charged, *x.Cgroup)
		if x.Seconds <= last {
			t.Fatalf("%v stands behind %v", x.Seconds, last)
		}
		last = x.Seconds
	}
	if resident != 950 || space != 800 || charged != 700 {
		t.Errorf("%d %d %d of 950 800 700", resident, space, charged)
	}
	if len(out) > 75 {
		t.Errorf("%d samples in 300 s, one in 5 s", len(out))
	}
	first := 0
	for _, x := range out {
		if x.Seconds < earliest.Seconds() {
			first++
		}
	}
	if first < 3 {
		t.Errorf("%d samples of a command that lives for a moment", first)
	}
}

// A month of growth, which sets a new peak at each look.
func TestPacerIsBounded(t *testing.T) {
	const seconds = 30 * 24 * 3600
	out := given(seconds, time.Second, time.Second, func(i int) incident.Sample {
		return incident.Sample{Resident: int64(i), AddressSpace: int64(i)}
	})
	if most := step * (1 + bits.Len(seconds/step)); len(out) > most || len(out) < step {
		t.Errorf("%d samples of a month, at most %d", len(out), most)
	}
	if out[len(out)-1].Resident != seconds-1 {
		t.Error("the last is not the highest")
	}
	// Address space grows while memory shrinks: each look is a peak of one kind.
	out = given(100000, time.Second, time.Second, func(i int) incident.Sample {
		return incident.Sample{Resident: int64(100000 - i), AddressSpace: int64(i)}
	})
	if len(out) > 3*step*(1+bits.Len(100000/step)) {
		t.Errorf("%d samples", len(out))
	}
}

func TestPacerKeepsItsShare(t *testing.T) {
	var p pacer
	for range 100 {
		p.after(2 * time.Millisecond)
	}
	if got := p.after(2 * time.Millisecond); got < 490*time.Millisecond || got > 510*time.Millisecond {
		t.Errorf("%s after looks of 2 ms", got)
	}
	p = pacer{}
	if got := p.after(20 * time.Millisecond); got > 150*time.Millisecond {
		t.Errorf("%s after a first look that was interrupted", got)
	}
	if got := p.after(300 * time.Microsecond); got > 150*time.Millisecond {
		t.Errorf("%s after it and a usual one", got)
	}
	p.after(time.Hour)
	if got := p.after(time.Hour); got != slowest {
		t.Errorf("%s after looks of an hour", got)
	}
	if got := (&pacer{}).after(0); got != 0 {
		t.Errorf("%s after a look that cost nothing", got)
	}
}
