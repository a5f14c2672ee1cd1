package allocator

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// seeds is n, or fewer with -short or where INQUEST_ALLOC_SEEDS says so.
func seeds(t *testing.T, n uint64) uint64 {
	if testing.Short() {
		return n / 20
	}
	if most, err := strconv.ParseUint(os.Getenv("INQUEST_ALLOC_SEEDS"), 10, 32); err == nil {
		n = min(n, most)
	}
	t.Log("seeds:", n)
	return n
}

// repeats says whether the replay is the record, address by address.
func repeats(f *Fidelity) bool {
	return f.SameAddress == f.Allocs && f.Matched == f.Segments && f.Extra == 0 && f.CurveWorst == 0 && f.FinalSame &&
		f.OOMsSame == f.OOMs && f.OOMsExtra == 0 && f.Forced == 0
}

// TestModelFidelity holds the replay to histories that an independent model of the
// allocator made. Where the record holds all that decides, it must be repeated
// exactly. What it does not hold: when captures ran, and what a memory fraction
// allows; those cases are counted apart. A few of the others differ, because a
// history without a failure shows neither how much the driver had nor which of two
// explanations of a flush is the right one.
func TestModelFidelity(t *testing.T) {
	var whole, exact, cut, cutExact, rest, restExact int
	for seed := range seeds(t, 3000) {
		c := allocmodel.New(seed, 150)
		r, err := Examine(context.Background(), c.Snapshot(), c.Device.Index, Options{})
		if err != nil {
			t.Fatal(seed, err)
		}
		f := &r.Fidelity
		if f.Allocs+f.OOMs == 0 {
			continue
		}
		same := repeats(f)
		if f.OK && f.CurveWorst > max(toleranceBytes, r.Recorded.Reserved/100) {
			t.Errorf("seed %d: %+v", seed, f)
		}
		switch {
		case c.Run.Captured > 0 || c.Device.Limit > 0:
			rest++
			restExact += int(b2i(same))
		case c.Snap.Ring > 0:
			cut++
			cutExact += int(b2i(same))
		default:
			whole++
			exact += int(b2i(same))
			if !same && testing.Verbose() {
				t.Logf("seed %d: %s; %d of %d addresses", seed, f.Why, f.SameAddress, f.Allocs)
			}
		}
	}
	t.Logf("exact: %d of %d whole histories, %d of %d that begin in the middle, %d of %d with a limit or captures", exact, whole, cutExact, cut, restExact, rest)
	if float64(exact) < .998*float64(whole)-2 || float64(cutExact) < .95*float64(cut) || float64(restExact) < .8*float64(rest) {
		t.Error("too few")
	}
}

// TestModelAnswers holds the answers to what the model says becomes of the same
// requests under the other setting.
func TestModelAnswers(t *testing.T) {
	var right, wrong, open, cut, cutOpen int
	for seed := range seeds(t, 1000) {
		c := allocmodel.New(seed, 150)
		if len(c.Run.Failed) == 0 || c.Device.Limit > 0 || c.Run.Unseen > 0 {
			continue // the room is not known, or calls of empty_cache left no entry
		}
		changes, settings := alternatives(c)
		r, err := Examine(context.Background(), c.Snapshot(), c.Device.Index, Options{Try: changes})
		if err != nil {
			t.Fatal(seed, err)
		}
		for i := range r.Answers {
			a := &r.Answers[i]
			dev := c.Device
			if a.Settings.Limit > 0 {
				dev.Limit = a.Settings.Limit // what garbage collection is said to need
			}
			want := Avoided
			if len(c.Under(settings[i], dev).Failed) > 0 {
				want = NotAvoided
			}
			if c.Snap.Ring > 0 {
				cut++
			}
			switch a.Verdict {
			case CannotTell:
				open++
				if c.Snap.Ring > 0 {
					cutOpen++
				}
			case want:
				right++
			default:
				wrong++
				t.Logf("seed %d, %v: %v, it is %v: %s", seed, a.Change, a.Verdict, want, a.Why)
			}
		}
	}
	t.Logf("%d right, %d wrong, %d open (of %d that begin in the middle, %d)", right, wrong, open, cut, cutOpen)
	if right == 0 || wrong > 0 || float64(open-cutOpen) > .06*float64(right) {
		t.Error("the answers are not good enough")
	}
}

// alternatives are the settings that differ from c's and that a change can express.
func alternatives(c *allocmodel.Case) (changes []Change, settings []allocmodel.Settings) {
	for _, alt := range c.Settings.Alternatives() {
		if alt.MaxSplit < 0 && c.Settings.MaxSplit > 0 || c.Settings.Roundup != alt.Roundup && alt.Roundup == [16]int64{} ||
			c.Settings.GCThreshold > 0 && alt.GCThreshold == 0 {
			continue
		}
		conf := alt.Conf()
		if !alt.Expandable {
			conf = "expandable_segments:False," + conf
		}
		changes = append(changes, Change{Conf: conf})
		settings = append(settings, alt)
	}
	return changes, settings
}
