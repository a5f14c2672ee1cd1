package trial

import (
	"fmt"
	"maps"

	"github.com/inquest-dev/inquest/internal/incident"
)

// mostRounds bounds how often smallest goes through all names. The first round does nearly all;
// a further one only looks whether a name that could not be made smaller now can.
const mostRounds = 4

// A reduction is the search for the smallest configuration that still fails in the same way.
type reduction struct {
	*hunt
	values map[string][]int64 // of each name, ascending
	at     map[string]int     // the configuration that fails, as an index for each name
	class  string
	kind   string
	seen   map[string][]incident.Trial // by values
}

// smallest looks for the smallest configuration that fails in the same way:
//
//  1. The whole, each name at the upper end of its range, is tried: how it fails is what is
//     looked for. Where an incident is named, it must be its failure.
//  2. One name after the other is made as small as it goes while the failure stays, by halving;
//     then all of them again, as long as that changes anything.
//  3. What is left is repeated, and so is the next smaller value of each name, which must not
//     fail so once.
//
// That is the smallest in each name for itself. A configuration in which several names are
// smaller at once and that fails again is not looked for.
func (h *hunt) smallest() error {
	r := &reduction{hunt: h, values: map[string][]int64{}, at: map[string]int{}, seen: map[string][]incident.Trial{}}
	per := 0
	for _, v := range h.Vary {
		r.values[v.Name] = ladderOf(v)
		r.at[v.Name] = len(r.values[v.Name]) - 1
		per += worst(len(r.values[v.Name])) + 1
	}
	h.b.Bound = 1 + mostRounds*per
	err := r.find()
	r.tell(err == nil)
	return err
}

func (r *reduction) find() error {
	s := &incident.Smallest{From: r.words(r.at), Values: r.words(r.at), Reduced: []incident.ReducedValue{}, Trials: []string{}}
	r.b.Smallest = s
	first, err := r.make(r.at)
	if err != nil {
		return err
	}
	v := first.Verdict
	if v.Result == incident.Passed {
		if r.Original != nil && r.Original.FirstFault != nil {
			return &stop{incident.NotDecided, fmt.Sprintf("the whole, %s, passed: it does not show the failure of the incident", valueWords(s.From))}
		}
		r.b.Answer = incident.AllPass
		return nil
	}
	r.class, r.kind = v.Class, v.Kind
	if o := r.Original; o != nil && o.FirstFault != nil {
		r.class, r.kind = o.FirstFault.Class, o.FirstFault.Kind
		if !sameFailure(r.class, r.kind, v) {
			return &stop{incident.OtherFailure, fmt.Sprintf("the whole, %s, failed in another way than the incident (%s, not %s). %s", valueWords(s.From), words(v.Kind), words(r.kind), v.Text)}
		}
	}
	if r.class == "" {
		return &stop{incident.NotDecided, fmt.Sprintf("how the whole, %s, failed cannot be told from other failures. %s", valueWords(s.From), v.Text)}
	}
	s.Class, s.Kind = r.class, r.kind
	for round := range mostRounds {
		changed, err := r.round(round == 0)
		if err != nil {
			return err
		}
		if !changed {
			break
		}
	}
	r.b.Trials = len(r.b.Points)
	r.repeat = true
	return r.confirm()
}

// round makes each name as small as it goes, and reports whether one became smaller.
func (r *reduction) round(first bool) (changed bool, err error) {
	for _, v := range r.Vary {
		top := r.at[v.Name]
		if top == 0 {
			continue
		}
		if !first {
			same, err := r.fails(v.Name, top-1)
			if err != nil {
				return changed, err
			}
			if !same {
				continue
			}
			top--
		}
		l := newLadder(top+1, 0, top)
		l.try = func(i int) (outcome, error) {
			same, err := r.fails(v.Name, i)
			if same {
				return fails, err
			}
			return passes, err
		}
		err := l.search()
		changed = changed || l.high < r.at[v.Name]
		r.at[v.Name] = l.high
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// fails reports whether the configuration fails in the same way with name at its value i. It was
// asked before, where it is known.
func (r *reduction) fails(name string, i int) (bool, error) {
	at := maps.Clone(r.at)
	at[name] = i
	if seen := r.seen[keyOf(r.words(at))]; len(seen) > 0 {
		return r.same(&seen[0]), nil
	}
	t, err := r.make(at)
	if err != nil {
		return false, err
	}
	return r.same(t), nil
}

func (r *reduction) same(t *incident.Trial) bool {
	return sameFailure(r.class, r.kind, t.Verdict)
}

func (r *reduction) make(at map[string]int) (*incident.Trial, error) {
	w := r.words(at)
	t, err := r.one(w)
	if t != nil {
		r.seen[keyOf(w)] = append(r.seen[keyOf(w)], *t)
	}
	return t, err
}

func (r *reduction) words(at map[string]int) map[string]string {
	values := map[string]int64{}
	for n, i := range at {
		values[n] = r.values[n][i]
	}
	return with(values, map[string]string{})
}

// again tries a configuration until want of it were the same as before, or one was not.
func (r *reduction) again(at map[string]int, same bool) (bool, error) {
	for {
		seen := r.seen[keyOf(r.words(at))]
		for i := range seen {
			if r.same(&seen[i]) != same {
				return false, nil
			}
		}
		if len(seen) >= r.Repeats {
			return true, nil
		}
		if _, err := r.make(at); err != nil {
			return false, err
		}
	}
}

// confirm is step 3. A smaller value that fails after all is the new configuration.
func (r *reduction) confirm() error {
	for {
		ok, err := r.again(r.at, true)
		if err != nil {
			return err
		}
		if !ok {
			r.b.Answer = incident.Flaky
			return nil
		}
		smaller := ""
		for _, v := range r.Vary {
			if r.at[v.Name] == 0 {
				continue
			}
			at := maps.Clone(r.at)
			at[v.Name]--
			ok, err := r.again(at, false)
			if err != nil {
				return err
			}
			if ok {
				continue
			}
			each, err := r.again(at, true)
			if err != nil {
				return err
			}
			if each {
				smaller = v.Name
				break
			}
			r.out.Limits = append(r.out.Limits, fmt.Sprintf("%s fails in the same way too, but not each time.", valueWords(r.words(at))))
		}
		if smaller == "" {
			r.b.Answer = incident.Found
			return nil
		}
		r.at[smaller]--
	}
}

// tell writes down what was found; complete says that the search came to its end.
func (r *reduction) tell(complete bool) {
	s := r.b.Smallest
	if r.b.Trials == 0 {
		r.b.Trials = len(r.b.Points)
	}
	s.Values = r.words(r.at)
	for _, t := range r.seen[keyOf(s.Values)] {
		s.Of++
		if r.same(&t) {
			s.Failed++
		}
		s.Trials = append(s.Trials, t.ID)
	}
	for _, v := range r.Vary {
		all := r.values[v.Name]
		x := incident.ReducedValue{Name: v.Name, From: all[len(all)-1], To: all[r.at[v.Name]]}
		if r.at[v.Name] > 0 {
			below := all[r.at[v.Name]-1]
			at := maps.Clone(r.at)
			at[v.Name]--
			seen := r.seen[keyOf(r.words(at))]
			switch {
			case len(seen) > 0:
				x.Below = &below
				x.Says = r.below(below, seen)
			case complete:
				x.Says = "smaller values were not tried"
			default:
				x.Says = "whether it can be smaller was not tried"
			}
		} else {
			x.Says = "the smallest of its range"
		}
		s.Reduced = append(s.Reduced, x)
	}
	odd := map[string]bool{}
	for _, p := range r.b.Points {
		switch p.Result {
		case incident.TimedOut, incident.TrialUnclear:
			if !odd[p.Result] {
				odd[p.Result] = true
				r.out.Limits = append(r.out.Limits, fmt.Sprintf("With %s a trial ended in a way that decides nothing (%s); it counts as not failing in the same way.", valueWords(p.Values), words(p.Result)))
			}
		}
	}
}

// below says what a smaller value did.
func (r *reduction) below(value int64, seen []incident.Trial) string {
	passed, other, same := 0, 0, 0
	for i := range seen {
		switch {
		case r.same(&seen[i]):
			same++
		case seen[i].Verdict.Result == incident.Passed:
			passed++
		default:
			other++
		}
	}
	switch {
	case same > 0:
		return fmt.Sprintf("with %d it fails in the same way %d of %d times", value, same, len(seen))
	case other == 0:
		return fmt.Sprintf("with %d it passes (%d of %d)", value, passed, len(seen))
	case passed == 0:
		return fmt.Sprintf("with %d it fails in another way (%d of %d)", value, other, len(seen))
	}
	return fmt.Sprintf("with %d it passes %d of %d times and else fails in another way", value, passed, len(seen))
}
