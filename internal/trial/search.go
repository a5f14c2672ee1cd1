package trial

import "math/bits"

// An outcome is what a value of a search was seen to do.
type outcome uint8

const (
	undecided outcome = iota
	passes
	fails
)

// A ladder is a search for the edge among n values in the order of memory: those below the edge
// pass, the others fail, and the edge is one of 0, …, n. It asks about single values, so it is
// the same search for a run of minutes and for a test.
type ladder struct {
	n         int
	low, high int // values below low pass, high and above fail; the edge is within
	trials    int
	bound     int
	// guess says where the edge is thought to be, between low and high; false where nothing
	// is thought.
	guess func(low, high int) (edge int, ok bool)
	try   func(i int) (outcome, error)
}

// newLadder searches among edges from low to high.
func newLadder(n, low, high int) *ladder {
	return &ladder{n: n, low: low, high: high, bound: worst(high - low + 1)}
}

// worst is how many trials tell c possible edges apart: the logarithm of c, rounded up.
func worst(c int) int {
	if c <= 1 {
		return 0
	}
	return bits.Len(uint(c - 1))
}

// search narrows low and high until they meet. It never makes more than bound trials, whatever
// the guesses are: a guess is followed only as far as halving can still end within the bound.
//
//  1. With r trials left after the next, each of its two answers must leave at most 2^r edges.
//     That bounds the value to try from both sides.
//  2. Where an edge is guessed, the value below it is to be tried, and the edge itself when
//     that is known to pass; else the middle.
//  3. What is to be tried is moved within the bounds of 1.
func (s *ladder) search() error {
	for s.low < s.high {
		left := s.bound - s.trials - 1
		least, most := s.low, s.high-1
		if left < bits.UintSize-2 {
			least, most = max(least, s.high-1<<left), min(most, s.low+1<<left-1)
		}
		at := s.low + (s.high-s.low)/2
		if s.guess != nil {
			if edge, ok := s.guess(s.low, s.high); ok {
				if at = edge - 1; at < s.low {
					at = edge
				}
			}
		}
		at = min(max(at, least), most)
		s.trials++
		r, err := s.try(at)
		if err != nil {
			return err
		}
		if r == passes {
			s.low = at + 1
		} else {
			s.high = at
		}
	}
	return nil
}

// A tally counts what values did.
type tally struct{ passed, failed []int }

func newTally(n int) *tally { return &tally{make([]int, n), make([]int, n)} }

func (t *tally) add(i int, r outcome) {
	switch r {
	case passes:
		t.passed[i]++
	case fails:
		t.failed[i]++
	}
}

// settle looks for the value nearest to begin, in the direction of step, for which holds; it
// returns n or -1 where none of the range does. It goes in steps that double, and halves what it
// stepped over.
func settle(begin, step, n int, holds func(i int) (bool, error)) (int, error) {
	last := begin // the last that does not hold, or begin itself before it is asked
	ok, err := holds(begin)
	if ok || err != nil {
		return begin, err
	}
	good := -1
	for d := 1; ; d *= 2 {
		i := begin + step*d
		i = min(max(i, 0), n-1)
		if i == last || (i-last)*step <= 0 {
			break
		}
		if ok, err = holds(i); err != nil {
			return last, err
		}
		if ok {
			good = i
			break
		}
		last = i
	}
	if good < 0 {
		if step > 0 {
			return n, nil
		}
		return -1, nil
	}
	for (good-last)*step > 1 {
		m := last + (good-last)/2
		if ok, err = holds(m); err != nil {
			return good, err
		}
		if ok {
			good = m
		} else {
			last = m
		}
	}
	return good, nil
}

// confirmed asks about value i until want has come k times, or anything else once. It reports
// whether it came each time.
func (t *tally) confirmed(i, k int, want outcome, try func(int) (outcome, error)) (bool, error) {
	for {
		good, bad := t.passed[i], t.failed[i]
		if want == fails {
			good, bad = bad, good
		}
		if bad > 0 || good >= k {
			return bad == 0, nil
		}
		if _, err := try(i); err != nil {
			return false, err
		}
	}
}

// crossed are pairs of values of which the smaller failed and the larger passed, the nearest
// pair for each larger one.
func (t *tally) crossed() [][2]int {
	var out [][2]int
	bad := -1
	for i := range t.passed {
		if t.passed[i] > 0 && bad >= 0 {
			out = append(out, [2]int{bad, i})
		}
		if t.failed[i] > 0 {
			bad = i
		}
	}
	return out
}
