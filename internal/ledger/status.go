package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A happening is a unit or an act of an incident, in the order of time.
type happening struct {
	at, id string
	unit   *unit
	act    *incident.Act
}

// A standing is how an incident stands while what happened is gone through.
type standing struct {
	file   *file
	kept   *incident.Kept
	byID   map[string]*incident.Trial
	origin *unit
	// base is the failure that a verification is held against: the original one, or the one
	// with which a confirmed incident came back.
	base *incident.Trial
	// passed is how many trials passed since that no verification judges.
	passed   int
	fixed    *incident.Trial // with which it was confirmed
	until    string          // begin of the first of these; what failed later did not fail for want of a fix
	reverted map[string]bool // trials whose change was taken back
	named    string          // entry that somebody named as the confirmed cause
}

// judge goes through what happened, and says how the incident stands. The states:
//
//	open        it failed, and nothing was tried since
//	unresolved  something was tried since, and no verification succeeded after one known change
//	confirmed   a verification succeeded, and one thing had changed since the failure
//	regressed   it was confirmed, and failed in the same way again
//
// Closing is apart from that.
func (f *file) judge(k *incident.Kept, origin *unit, byID map[string]*incident.Trial, whole bool) {
	s := &standing{file: f, kept: k, byID: byID, origin: origin, reverted: map[string]bool{}}
	if origin != nil {
		s.base = origin.best
	}
	var all []happening
	judged := map[string]bool{} // trials that a verification judges: they are not told by themselves
	for _, a := range f.acts {
		all = append(all, happening{at: a.At, id: a.ID, act: a})
		if a.Kind == incident.ActVerified {
			for _, id := range a.Trials {
				judged[id] = true
			}
		}
	}
	for _, u := range f.units {
		if u != origin && !judged[u.lead().ID] {
			all = append(all, happening{at: u.begun(), id: u.lead().ID, unit: u})
		}
	}
	slices.SortFunc(all, func(a, b happening) int { return byTime(a.at, b.at, a.id, b.id) })
	k.Says = "It failed, and nothing was tried since."
	for _, h := range all {
		if h.act != nil {
			s.act(h.act)
		} else {
			s.unit(h.unit)
		}
	}
	if whole {
		s.notHelped()
	}
	if k.Cause != nil && s.named != "" && k.Status == incident.Confirmed {
		if k.Cause.Entry != s.named {
			k.Cause.Entry, k.Cause.Title, k.Cause.Standing = s.named, s.named, incident.Supported
		}
		k.Cause.Confirmed = true
	}
	if k.Fix != nil {
		k.Rollback = reversed(k.Fix.Changes)
	}
}

// unit takes a unit that no verification judges.
func (s *standing) unit(u *unit) {
	k := s.kept
	if u.best == nil {
		if u.lead().Verdict != nil && u.lead().Verdict.Result == incident.Unfinished {
			return
		}
		s.passed++
		if k.Status == incident.Open || k.Status == incident.Unresolved {
			k.Status = incident.Unresolved
			k.Says = "It passed once since, without a verification: that proves nothing yet."
			if s.passed > 1 {
				k.Says = fmt.Sprintf("It passed %d times since, without a verification: that proves nothing yet.", s.passed)
			}
		}
		return
	}
	own := s.file.ownFailure(u)
	switch {
	case k.Status == incident.Confirmed && own && regresses(u, s.fixed):
		k.Status = incident.Regressed
		k.Says = "It was confirmed as solved, and failed in the same way again on " + day(u.best.Begun) + " (trial " + u.best.ID + ")" + s.whatOfFix(u.best) + "."
		s.base = u.best
	case k.Status == incident.Open || k.Status == incident.Unresolved:
		k.Status = incident.Unresolved
		switch {
		case own:
			k.Says = "It failed again, and no verification has succeeded."
		default:
			k.Says = "What was tried since failed in another way, and no verification has succeeded."
		}
	}
}

// regresses reports whether a failure after a confirmation is one that the fix should have
// kept from happening. A search for a boundary fails on purpose.
func regresses(u *unit, fixed *incident.Trial) bool {
	switch u.best.By {
	case incident.ByBoundary:
		return false
	case incident.ByVerify:
		// Somebody tries something else, unless it is what was verified.
		return fixed != nil && len(Compare(*fixed, *u.best).Changes) == 0
	}
	return true
}

// whatOfFix says whether the fix was in place in a trial that failed again.
func (s *standing) whatOfFix(t *incident.Trial) string {
	if s.fixed == nil || s.kept.Fix == nil {
		return ""
	}
	diff := Compare(*s.fixed, *t).Changes
	if len(diff) == 0 {
		return ", with nothing changed that is on record"
	}
	for _, c := range s.kept.Fix.Changes {
		for _, d := range diff {
			if d.Of == c.Of && d.Name == c.Name && d.To == c.From {
				return ", without the change that had solved it"
			}
		}
	}
	return "; changed since the verification: " + changeWords(diff)
}

// act takes an act.
func (s *standing) act(a *incident.Act) {
	k := s.kept
	switch a.Kind {
	case incident.ActClose:
		k.Closed = true
	case incident.ActReopen:
		k.Closed = false
	case incident.ActReverted:
		for _, id := range a.Trials {
			s.reverted[id] = true
		}
	case incident.ActConfirmed:
		if k.Status == incident.Confirmed {
			s.named = strings.TrimSpace(a.Text)
		}
	case incident.ActVerified:
		s.verified(a)
	}
}

// verified takes the judgement of a verification or a recheck.
func (s *standing) verified(a *incident.Act) {
	k := s.kept
	verdict := incident.Inconclusive
	by := incident.ByVerify
	if a.Result != nil {
		if a.Result.By != "" {
			by = a.Result.By
		}
		if a.Result.Verification != nil {
			verdict = a.Result.Verification.Verdict
		}
	}
	name := map[string]string{incident.ByVerify: "verification", incident.ByRecheck: "recheck"}[by]
	if name == "" {
		name = "verification"
	}
	on := " of " + day(a.At)
	t := s.trialOf(a)
	if t != nil && len(t.Command) > 0 && (verdict == incident.Verified || k.Status != incident.Confirmed) {
		k.FollowUp = slices.Clone(t.Command)
	}
	switch {
	case verdict == incident.Verified && k.Status == incident.Confirmed:
		if by == incident.ByRecheck {
			k.Says = s.confirmedWords() + " The newest recheck, " + day(a.At) + ", verified it again."
		}
	case verdict == incident.Verified:
		s.prove(a, t, name+on)
	case k.Status == incident.Confirmed && verdict == incident.NotVerified && (by == incident.ByRecheck || s.unchanged(t)):
		k.Status = incident.Regressed
		k.Says = "It was confirmed as solved, but the " + name + on + " did not verify it."
		if t != nil {
			k.Says = strings.TrimSuffix(k.Says, ".") + " (trial " + t.ID + ")" + s.whatOfFix(t) + "."
			s.base = t
		}
	case k.Status == incident.Confirmed && by == incident.ByRecheck:
		k.Says = s.confirmedWords() + " The newest recheck, " + day(a.At) + ", was inconclusive."
	case k.Status == incident.Confirmed, k.Status == incident.Regressed:
		// Something else was tried; what was confirmed or came back stands.
	case verdict == incident.NotVerified:
		k.Status, k.Says = incident.Unresolved, "The "+name+on+" did not verify a solution"+because(a)
	default:
		k.Status, k.Says = incident.Unresolved, "The "+name+on+" was inconclusive"+because(a)
	}
}

// because is why a verification has the verdict that it has, in its own words.
func because(a *incident.Act) string {
	if a.Result == nil || a.Result.Verification == nil || a.Result.Verification.Says == "" {
		return "."
	}
	says := a.Result.Verification.Says
	if r := []rune(says); len(r) > 300 {
		says = string(r[:300]) + "…"
	}
	return ": " + strings.TrimSuffix(says, ".") + "."
}

// unchanged reports whether t is what was confirmed.
func (s *standing) unchanged(t *incident.Trial) bool {
	return t != nil && s.fixed != nil && len(Compare(*s.fixed, *t).Changes) == 0
}

// trialOf is the trial that stands for a verification: the first that passed where it
// verified, else the first that failed, else the first.
func (s *standing) trialOf(a *incident.Act) *incident.Trial {
	var all []*incident.Trial
	for _, id := range a.Trials {
		if t := s.byID[id]; t != nil {
			all = append(all, t)
		}
	}
	if len(all) == 0 && a.Result != nil {
		for i := range a.Result.Trials {
			all = append(all, &a.Result.Trials[i])
		}
	}
	want := incident.Passed
	verified := a.Result != nil && a.Result.Verification != nil && a.Result.Verification.Verdict == incident.Verified
	for _, t := range all {
		if verified && resultOf(*t) == want || !verified && HasFailed(t) {
			return t
		}
	}
	if len(all) > 0 {
		return all[0]
	}
	return nil
}

// prove holds a verification that succeeded against the failure: what changed between them is
// the fix. It confirms only where that is one thing.
func (s *standing) prove(a *incident.Act, t *incident.Trial, name string) {
	k := s.kept
	unproved := incident.Unresolved
	if k.Status == incident.Regressed {
		unproved = incident.Regressed
	}
	if t == nil || s.base == nil {
		k.Status, k.Says = unproved, "The "+name+" succeeded, but what had changed since the failure is not known: one of the two trials is not in this store."
		return
	}
	c := Compare(*s.base, *t)
	if len(c.Changes) == 0 {
		k.Status = unproved
		k.Says = "The " + name + " succeeded with nothing changed that is on record: why it failed before is not shown."
		return
	}
	fix := &incident.Fix{Changes: c.Changes, Trial: t.ID, Act: a.ID, Single: len(c.Changes) == 1, Unknown: append([]string{}, c.Unknown...)}
	k.Fix = fix
	if !fix.Single {
		k.Status = unproved
		k.Says = fmt.Sprintf("The %s succeeded, but %d things had changed since the failure (%s): which of them solved it is not shown.", name, len(c.Changes), changeWords(c.Changes))
		return
	}
	if s.until == "" {
		s.until = t.Begun
	}
	k.Status, s.fixed = incident.Confirmed, t
	s.named = ""
	k.Says = s.confirmedWords()
}

// confirmedWords says what was confirmed.
func (s *standing) confirmedWords() string {
	fix := s.kept.Fix
	says := "A verification succeeded after one change: " + changeWords(fix.Changes) + "."
	if len(fix.Unknown) > 0 {
		says += " Not everything could be compared: " + strings.Join(fix.Unknown[:min(3, len(fix.Unknown))], "; ") + "."
	}
	return says
}

// maxNotHelped bounds the changes that are listed of one incident, as after a sweep.
const maxNotHelped = 100

// notHelped names the changes that were tried and did not help, until one did.
func (s *standing) notHelped() {
	if s.origin == nil {
		return
	}
	k := s.kept
	told := map[string]bool{}
	for _, u := range s.file.units {
		t := u.best
		if u == s.origin || t == nil || t.By == incident.ByBoundary || s.reverted[t.ID] || s.until != "" && byTime(t.Begun, s.until, "", "") >= 0 {
			continue
		}
		c := Compare(*s.origin.best, *t)
		if len(c.Changes) == 0 || c.Effect == incident.EffectUnknown {
			continue
		}
		key := changeWords(c.Changes)
		if told[key] {
			continue
		}
		told[key] = true
		text := "did not help: " + key
		switch {
		case c.Effect == incident.AnotherFailure:
			text = "failed in another way: " + key + "; whether it helped cannot be told"
		case k.Fix != nil && sameThings(c.Changes, k.Fix.Changes):
			text += "; another value of the same was the fix"
		default:
			text += "; take it back: " + reversed(c.Changes)
		}
		k.NotHelped = append(k.NotHelped, incident.NotHelped{Changes: c.Changes, Trial: t.ID, Text: text})
		if len(k.NotHelped) == maxNotHelped {
			k.Problems = append(k.Problems, fmt.Sprintf("of the changes that did not help only the first %d are listed", maxNotHelped))
			break
		}
	}
}

// sameThings reports whether all that a changed b changed too.
func sameThings(a, b []incident.Change) bool {
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y incident.Change) bool { return x.Of == y.Of && x.Name == y.Name }) {
			return false
		}
	}
	return true
}

// changeWords puts changes in words.
func changeWords(all []incident.Change) string {
	const most = 4
	var out []string
	for i, c := range all {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		out = append(out, c.Text)
	}
	return strings.Join(out, "; ")
}

// reversed says how changes are taken back.
func reversed(all []incident.Change) string {
	const most = 8
	var out []string
	for i, c := range all {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		switch {
		case c.Name == "":
			out = append(out, "undo "+c.Text)
		case c.From == "" && c.To == "":
			out = append(out, "undo: "+c.Text)
		case c.From == "":
			out = append(out, "remove "+c.Name)
		case c.To == "":
			out = append(out, "put back "+c.Name+" "+brief(c.From))
		default:
			out = append(out, c.Name+" back to "+brief(c.From))
		}
	}
	return strings.Join(out, "; ")
}

// day is the day of a time in RFC 3339.
func day(at string) string {
	if len(at) < len("2006-01-02") {
		return "unknown date"
	}
	return at[:len("2006-01-02")]
}
