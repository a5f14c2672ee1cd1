// Package ledger says what trials make together: which of them are one launch and one incident,
// how an incident stands after them and after what was done with it, and what changed between
// two. It decides from records only, whatever their order; how they are kept is the store's.
package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Keep says which incidents trials and acts make, and how each stands. The order of what is
// passed does not matter; incidents come in the order of their ids. What only a diagnosis has
// (symptom, title of the cause, rollback) is added by Explain.
//
// Trials of one launch that run recorded are one unit: they fail together. Any other trial is a
// unit by itself. A unit that failed belongs to the incident of its scenario and fingerprint;
// a trial that was made for an incident belongs to that, whatever came of it.
func Keep(trials []incident.Trial, acts []incident.Act) []incident.Kept {
	return gather(trials, acts).all(true)
}

// Outline is Keep without NotHelped: that each trial need not be held against the first makes
// lists of large stores fast.
func Outline(trials []incident.Trial, acts []incident.Act) []incident.Kept {
	return gather(trials, acts).all(false)
}

// KeepOne is the incident that Keep returns with this id, null where there is none.
func KeepOne(trials []incident.Trial, acts []incident.Act, id string) *incident.Kept {
	k := gather(trials, acts)
	f := k.files[id]
	if f == nil {
		return nil
	}
	kept := k.kept(f, true)
	return &kept
}

// gather sorts trials and acts into the incidents that they are of.
func gather(trials []incident.Trial, acts []incident.Act) *keeping {
	acts = slices.Clone(acts)
	slices.SortFunc(acts, func(a, b incident.Act) int { return byTime(a.At, b.At, a.ID, b.ID) })
	k := &keeping{files: map[string]*file{}, byID: map[string]*incident.Trial{}, same: map[string]string{}}
	for i := range trials {
		k.byID[trials[i].ID] = &trials[i]
	}
	units := unitsOf(trials, acts)
	k.alias(units)
	for _, u := range units {
		k.put(u)
	}
	for i := range acts {
		k.act(&acts[i])
	}
	return k
}

// all are the incidents in the order of their ids.
func (k *keeping) all(whole bool) []incident.Kept {
	ids := sortedKeys(k.files, nil)
	out := make([]incident.Kept, 0, len(ids))
	for _, id := range ids {
		out = append(out, k.kept(k.files[id], whole))
	}
	return out
}

// kept tells one incident; whole says that NotHelped is asked for.
func (k *keeping) kept(f *file, whole bool) incident.Kept {
	kept := f.kept(k.byID, whole)
	for from, to := range k.same {
		if to == f.id {
			kept.Also = append(kept.Also, from)
		}
	}
	slices.Sort(kept.Also)
	return kept
}

// IncidentID is the id of the failure with this fingerprint in this scenario, in every store.
func IncidentID(scenario, fingerprint string) string {
	sum := sha256.Sum256([]byte(scenario + "\x00" + fingerprint))
	return "i-" + hex.EncodeToString(sum[:])[:10]
}

// byTime orders times in RFC 3339, UTC; equal ones by their ids.
func byTime(a, b, idA, idB string) int {
	// Fractions of a second have any number of digits: 10:00:00Z is before 10:00:00.5Z.
	x, y := strings.TrimSuffix(a, "Z"), strings.TrimSuffix(b, "Z")
	return cmp.Or(strings.Compare(x, y), strings.Compare(idA, idB))
}

// A unit is what failed or passed as one: the processes of a launch, or a single trial.
type unit struct {
	launch string // key, "" for a single trial
	trials []*incident.Trial
	best   *incident.Trial // whose failure stands for it; null where none failed
	joint  *incident.Act   // newest joint diagnosis
}

func (u *unit) begun() string { return u.trials[0].Begun }

// lead is the trial that stands for the unit, failed or not.
func (u *unit) lead() *incident.Trial {
	if u.best != nil {
		return u.best
	}
	return u.trials[0]
}

// explicit is the incident that its trials were made for.
func (u *unit) explicit() string {
	for _, t := range u.trials {
		if t.Incident != "" {
			return t.Incident
		}
	}
	return ""
}

// decided is the joint diagnosis of its processes, where that says which failed first. One that
// cannot order their failures prefers one of them by its place: that names no failure.
func (u *unit) decided() *incident.Incident {
	if u.joint == nil || u.joint.Diagnosis == nil || u.joint.Diagnosis.FirstFaultStanding == incident.Undecidable {
		return nil
	}
	return u.joint.Diagnosis
}

// fingerprint is that of its failure, and whether a diagnosis gave it.
func (u *unit) fingerprint() (print string, diagnosed bool) {
	if d := u.decided(); d != nil && d.Fingerprint != "" {
		return d.Fingerprint, true
	}
	if v := u.best.Verdict; v != nil && v.Fingerprint != "" {
		return v.Fingerprint, true
	}
	return "undiagnosed: " + endWords(u.best.Exit), false
}

// id is that of its failure.
func (u *unit) id() string {
	print, _ := u.fingerprint()
	return IncidentID(u.best.Scenario, print)
}

// endWords says how a command ended.
func endWords(e *incident.Exit) string {
	switch {
	case e == nil:
		return "no end on record"
	case e.Error != "":
		return "not started, status " + strconv.Itoa(e.Status)
	case e.Signal != "":
		return e.Signal
	}
	return "status " + strconv.Itoa(e.Status)
}

// HasFailed reports whether a trial is one of a failure: it ended badly, or what it printed
// says that it did. What somebody interrupted has failed only where it shows a fault of its own.
func HasFailed(t *incident.Trial) bool {
	v := t.Verdict
	if v == nil {
		return t.Exit != nil && t.Exit.Status != 0 && t.Exit.Stopped == ""
	}
	switch v.Result {
	case incident.OutOfMemory, incident.TrialFailed, incident.TimedOut:
		return true
	case incident.TrialUnclear:
		return v.Class != "" || t.Exit != nil && t.Exit.Status != 0 && t.Exit.Stopped == ""
	case incident.TrialInterrupted:
		return v.Class != "" && v.Class != "external_stop"
	}
	return false
}

// victim reports whether a first fault of this class is often what follows another process's.
func victim(class string) bool {
	switch class {
	case "", "collective", "process_exit", "external_stop":
		return true
	}
	return false
}

// better orders the failures of one unit, the one with the best words first.
func better(a, b *incident.Trial) int {
	key := func(t *incident.Trial) (n int) {
		v := t.Verdict
		if v == nil {
			return 100
		}
		if victim(v.Class) {
			n += 10
		}
		switch v.Standing {
		case incident.Established:
		case incident.Supported:
			n++
		default:
			n += 2
		}
		if v.Fingerprint == "" {
			n += 4
		}
		return n
	}
	return cmp.Or(cmp.Compare(key(a), key(b)), byTime(a.Begun, b.Begun, a.ID, b.ID))
}

// unitsOf groups trials, oldest unit first.
func unitsOf(trials []incident.Trial, acts []incident.Act) []*unit {
	joint := map[string]*incident.Act{}
	for i := range acts {
		if a := &acts[i]; a.Kind == incident.ActJoint && a.Launch != "" {
			joint[a.Launch] = a
		}
	}
	units := launches(trials)
	for _, u := range units {
		u.joint = joint[u.launch]
		for _, t := range u.trials {
			if HasFailed(t) && (u.best == nil || better(t, u.best) < 0) {
				u.best = t
			}
		}
	}
	slices.SortFunc(units, func(a, b *unit) int { return byTime(a.begun(), b.begun(), a.trials[0].ID, b.trials[0].ID) })
	return units
}

// A keeping is what Keep has gathered.
type keeping struct {
	files map[string]*file
	byID  map[string]*incident.Trial
	same  map[string]string // id of a failure -> id of the incident that it turned out to be
}

// alias finds the ids by which the failure of a launch may have been named before all of its
// processes were known, or were diagnosed together.
func (k *keeping) alias(units []*unit) {
	own := map[string]bool{}
	for _, u := range units {
		if u.best != nil {
			own[u.id()] = true
		}
	}
	for _, u := range units {
		for _, t := range u.trials {
			if u.best == nil || u.launch == "" || !HasFailed(t) {
				continue
			}
			alone := unit{trials: []*incident.Trial{t}, best: t}
			if id := alone.id(); !own[id] && k.same[id] == "" {
				k.same[id] = u.id()
			}
		}
	}
}

// resolve is the incident that an id means.
func (k *keeping) resolve(id string) string {
	if to := k.same[id]; to != "" {
		return to
	}
	return id
}

// A file is what belongs to one incident.
type file struct {
	id, scenario, fingerprint string
	undiagnosed               bool
	units                     []*unit // oldest first
	acts                      []*incident.Act
}

func (k *keeping) file(id string) *file {
	f := k.files[id]
	if f == nil {
		f = &file{id: id}
		k.files[id] = f
	}
	return f
}

// put puts a unit into the incident that it belongs to.
func (k *keeping) put(u *unit) {
	id := k.resolve(u.explicit())
	if id == "" && u.best == nil {
		return
	}
	own := ""
	print, diagnosed := "", true
	if u.best != nil {
		print, diagnosed = u.fingerprint()
		own = IncidentID(u.best.Scenario, print)
	}
	if id == "" {
		id = own
	}
	f := k.file(id)
	if id == own && f.fingerprint == "" {
		f.scenario, f.fingerprint, f.undiagnosed = u.best.Scenario, print, !diagnosed
	}
	f.units = append(f.units, u)
}

// act gives an act to its incident: the one that it names, or that of its launch.
func (k *keeping) act(a *incident.Act) {
	id := k.resolve(a.Incident)
	if a.Kind == incident.ActJoint {
		id = ""
		for fid, f := range k.files { // a launch is one unit, and in one of them
			if a.Launch != "" && slices.ContainsFunc(f.units, func(u *unit) bool { return u.launch == a.Launch }) {
				id = fid
			}
		}
	}
	if id != "" {
		f := k.file(id)
		f.acts = append(f.acts, a)
	}
}

// first is the first unit that failed as the incident did; null where the store has none.
func (f *file) first() *unit {
	for _, u := range f.units {
		if f.ownFailure(u) {
			return u
		}
	}
	return nil
}

// ownFailure reports whether u failed in the incident's own way.
func (f *file) ownFailure(u *unit) bool {
	if u.best == nil {
		return false
	}
	return u.id() == f.id
}

// kept tells the incident.
func (f *file) kept(byID map[string]*incident.Trial, whole bool) incident.Kept {
	k := incident.Kept{Schema: incident.KeptSchema, ID: f.id, Fingerprint: f.fingerprint, Scenario: f.scenario, Status: incident.Open,
		FollowUp: []string{}, NotHelped: []incident.NotHelped{}, Also: []string{}, Table: []incident.KeptRow{}, Trials: []incident.Trial{}, Acts: []incident.Act{}, Problems: []string{}}
	n := 0
	for _, u := range f.units {
		n += len(u.trials)
	}
	k.Trials = make([]incident.Trial, 0, n)
	for _, u := range f.units {
		for _, t := range u.trials {
			bare := *t
			bare.Samples = []incident.Sample{}
			k.Trials = append(k.Trials, bare)
		}
	}
	slices.SortFunc(k.Trials, func(a, b incident.Trial) int { return byTime(a.Begun, b.Begun, a.ID, b.ID) })
	for _, a := range f.acts {
		k.Acts = append(k.Acts, *a)
	}
	origin := f.first()
	for _, u := range f.units {
		if f.ownFailure(u) {
			k.Last = u.best.Begun
		}
	}
	if origin == nil {
		f.withoutOrigin(&k)
		// Of what failed in another way nothing is said here but that it is there.
		for _, u := range f.units {
			if u.best != nil {
				origin = u
				break
			}
		}
	} else {
		k.First = origin.best.Begun
	}
	if origin != nil {
		t := origin.best
		k.Original, k.Environment = t.ID, t.Environment
		k.FollowUp = slices.Clone(t.Command)
		if v := t.Verdict; v != nil {
			k.Title = v.Text
			if v.Cause != "" {
				k.Cause = &incident.KeptCause{Entry: v.Cause, Title: v.Cause, Standing: v.Standing}
			}
		}
		if d := origin.decided(); d != nil {
			Explain(&k, d)
		} else if origin.joint != nil {
			k.Problems = append(k.Problems, "diagnosed together, the failures of its processes cannot be ordered: the one with the best words of its own is told")
		}
	}
	if k.Title == "" {
		k.Title = "failure of " + cmp.Or(f.scenario, "an unnamed scenario")
	}
	if f.undiagnosed {
		k.Problems = append(k.Problems, "no diagnosis names this failure: trials are taken for the same by how they ended only")
	}
	f.judge(&k, origin, byID, whole)
	return k
}

// withoutOrigin says that the failure itself is not in the store.
func (f *file) withoutOrigin(k *incident.Kept) {
	k.Problems = append(k.Problems, "the trial that failed first is not in this store")
	for _, u := range f.units {
		if k.First == "" {
			k.First = u.begun()
		}
		k.Last, k.Scenario = u.begun(), cmp.Or(k.Scenario, u.lead().Scenario)
	}
	for _, a := range f.acts {
		if k.First == "" {
			k.First = a.At
		}
		k.Last = cmp.Or(k.Last, a.At)
	}
}

// Line is an incident in short.
func Line(k *incident.Kept) incident.KeptLine {
	l := incident.KeptLine{ID: k.ID, Fingerprint: k.Fingerprint, Scenario: k.Scenario, Status: k.Status, Closed: k.Closed, Title: k.Title, Says: k.Says,
		First: k.First, Last: k.Last, Original: k.Original, Trials: len(k.Trials)}
	if k.Cause != nil {
		l.Cause = k.Cause.Entry
	}
	for i := range k.Trials {
		if HasFailed(&k.Trials[i]) {
			l.Failed++
		}
	}
	return l
}
