package ledger

import (
	"errors"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

func TestTrialNamed(t *testing.T) {
	all := []incident.Trial{{ID: "t1-aa"}, {ID: "t1-ab"}, {ID: "t2"}, {ID: "t2-c"}}
	for _, c := range []struct{ name, want, err string }{
		{"t1-aa", "t1-aa", ""},
		{"t2", "t2", ""}, // its own id, though another begins with it
		{"t2-", "t2-c", ""},
		{"t1", "", `more than one trial begins with "t1": t1-aa, t1-ab`},
		{"t", "", `no trial "t" is kept`}, // too short to mean one
		{"", "", `no trial "" is kept`},
		{"t1-aa-longer", "", "no trial"},
	} {
		got, err := TrialNamed(all, c.name)
		var named *NameError
		switch {
		case c.err != "":
			if !errors.As(err, &named) || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%q: %v; want %s", c.name, err, c.err)
			}
		case err != nil || got.ID != c.want:
			t.Errorf("%q: %v, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestBeforeAfter(t *testing.T) {
	for _, c := range []struct{ name, story, want, err string }{
		{"one trial", "run a python train.py: oom", "a ", "nothing to compare with"},
		{"the last of all", "run a python train.py: oom\nrun b+inc python train.py --bs 2: passed\nrun c+inc python train.py --bs 1: oom", "a c", ""},
		{"a verification before a later run", "run a python train.py: oom\nverify b+inc python train.py --bs 2: passed\nrun c+inc python train.py --bs 1: oom", "a b", ""},
		{"the last verification", "run a python train.py: oom\nverify b+inc python train.py --bs 2: oom\nverify c+inc python train.py --bs 1: passed", "a c", ""},
		{"ranks of the failed launch are no trial since", "run a/L python train.py: oom\nrun b/L python train.py: oom", "a ", "nothing to compare with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			trials, acts := story(t, c.story)
			k := KeepOne(trials, acts, IncidentID("demo train.py", "fp-oom"))
			if k == nil {
				t.Fatal("no incident")
			}
			x, y, err := BeforeAfter(k)
			got := ""
			if x != nil {
				got = x.ID + " "
			}
			if y != nil {
				got += y.ID
			}
			if got != c.want || (err == nil) != (c.err == "") || err != nil && (!errors.Is(err, ErrOneTrial) || !strings.HasPrefix(err.Error(), c.err)) {
				t.Errorf("%q, %v; want %q, %s", got, err, c.want, c.err)
			}
		})
	}
	if x, _, err := BeforeAfter(&incident.Kept{ID: "i-1", Original: "gone"}); x != nil || !errors.Is(err, ErrNoOriginal) || errors.Is(err, ErrOneTrial) {
		t.Errorf("without the trial of its failure: %v, %v", x, err)
	}
}

func TestTriedSince(t *testing.T) {
	all := []incident.Trial{{ID: "a", Scenario: "s", Begun: "2026-01-01"}, {ID: "b", Scenario: "s", Begun: "2026-01-02"}, {ID: "c", Scenario: "s", Begun: "2026-01-03"}, {ID: "d", Scenario: "other", Begun: "2026-01-04"}, {ID: "e", Begun: "2026-01-05"}}
	if y := TriedSince(&all[0], all); y == nil || y.ID != "c" {
		t.Errorf("since a: %v; want c", y)
	}
	for i := 2; i < len(all); i++ {
		if y := TriedSince(&all[i], all); y != nil {
			t.Errorf("since %s: %s; want none", all[i].ID, y.ID)
		}
	}
}

func TestFilter(t *testing.T) {
	all := []incident.KeptLine{
		{ID: "1", Status: incident.Open, Scenario: "Demo train.py", Last: "2026-01-03T00:00:00Z"},
		{ID: "2", Status: incident.Confirmed, Scenario: "demo eval.py", Last: "2026-01-02T00:00:00Z"},
		{ID: "3", Status: incident.Open, Closed: true, Scenario: "demo train.py", Last: "2026-01-01T00:00:00Z"},
	}
	for _, c := range []struct {
		name string
		f    Filter
		want string
	}{
		{"all that are not closed", Filter{}, "1 2"},
		{"closed ones too", Filter{All: true}, "1 2 3"},
		{"a state", Filter{States: []string{incident.Open}}, "1"},
		{"a state, closed too", Filter{States: []string{incident.Open}, All: true}, "1 3"},
		{"closed only", Filter{States: []string{Closed}}, "3"},
		{"a scenario in any case", Filter{Scenario: "TRAIN"}, "1"},
		{"since", Filter{Since: "2026-01-03T00:00:00Z"}, "1"},
		{"none", Filter{States: []string{incident.Regressed}}, ""},
	} {
		l := &incident.Incidents{Incidents: append([]incident.KeptLine{}, all...)}
		c.f.Apply(l)
		var ids []string
		for _, k := range l.Incidents {
			ids = append(ids, k.ID)
		}
		if got := strings.Join(ids, " "); got != c.want || l.Hidden != len(all)-len(ids) {
			t.Errorf("%s: %q, %d hidden; want %q", c.name, got, l.Hidden, c.want)
		}
	}
}

func TestNoteText(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{" the node was drained \n", "the node was drained", ""},
		{"bad \xff byte", "bad ? byte", ""},
		{" \n\t", "", "the note is empty"},
		{strings.Repeat("x", MaxNote), strings.Repeat("x", MaxNote), ""},
		{strings.Repeat("x", MaxNote+1), "", "the note is longer than 65536 bytes"},
	} {
		got, err := NoteText(c.text)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%.20q: %.20q, %v; want %.20q, %s", c.text, got, err, c.want, c.err)
		}
	}
}
