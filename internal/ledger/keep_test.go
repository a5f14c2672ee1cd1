package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A story is trials and acts, one a line, each a minute after the one before:
//
//	run ID COMMAND: RESULT        a trial of run; verify, boundary, recheck likewise
//	verified ID TRIALS: VERDICT   an act; rechecked likewise
//	close|reopen|note|confirm ID: TEXT
//
// A result is passed, oom, nan, killed, unfinished or interrupted. +inc behind a trial's id
// makes it for the incident; /LAUNCH makes it a process of a launch.
func story(t *testing.T, text string) (trials []incident.Trial, acts []incident.Act) {
	t.Helper()
	inc := IncidentID("demo train.py", "fp-oom")
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		at = at.Add(time.Minute)
		stamp := at.Format(time.RFC3339Nano)
		head, tail, _ := strings.Cut(line, ": ")
		words := strings.Fields(head)
		kind, id := words[0], words[1]
		switch kind {
		case "run", "verify", "boundary", "recheck":
			id, launch, _ := strings.Cut(id, "/")
			id, forIt := strings.CutSuffix(id, "+inc")
			ended := at.Add(30 * time.Second).Format(time.RFC3339Nano)
			tr := incident.Trial{ID: id, By: kind, Begun: stamp, Ended: &ended, Command: words[2:], Dir: "/w", Scenario: "demo train.py", Exit: &incident.Exit{Status: 1},
				Environment: &incident.Environment{Host: "n1", System: "linux"}}
			if forIt {
				tr.Incident = inc
			}
			if launch != "" {
				tr.Launch = &incident.Launch{ID: launch}
			}
			v := &incident.TrialVerdict{Standing: incident.Established}
			switch tail {
			case "passed":
				v.Result, tr.Exit.Status = incident.Passed, 0
			case "oom":
				*v = incident.TrialVerdict{Result: incident.OutOfMemory, Where: "host_memory", Class: "host_memory", Kind: "host_alloc_failed", Fingerprint: "fp-oom", Standing: incident.Established, Cause: "host-ram", Text: "Host memory ran out."}
			case "nan":
				*v = incident.TrialVerdict{Result: incident.TrialFailed, Class: "nonfinite", Kind: "nan", Fingerprint: "fp-nan", Standing: incident.Supported, Text: "The loss became NaN."}
			case "collective":
				*v = incident.TrialVerdict{Result: incident.TrialFailed, Class: "collective", Kind: "timeout", Fingerprint: "fp-coll", Standing: incident.Established, Text: "A collective timed out."}
			case "killed":
				v.Result, v.Standing, tr.Exit = incident.TrialUnclear, "", &incident.Exit{Status: 137, Signal: "SIGKILL"}
			case "unfinished":
				v.Result, tr.Exit, tr.Ended = incident.Unfinished, nil, nil
			case "interrupted":
				v.Result, tr.Exit = incident.TrialInterrupted, &incident.Exit{Status: 130, Stopped: "interrupt"}
			default:
				t.Fatalf("no result %q", tail)
			}
			tr.Verdict = v
			trials = append(trials, tr)
		case "verified", "rechecked":
			a := incident.Act{ID: id, Incident: inc, At: stamp, Kind: incident.ActVerified, Trials: words[2:], Result: &incident.Trials{By: incident.ByVerify, Verification: &incident.Verification{Verdict: tail}}}
			if kind == "rechecked" {
				a.Result.By = incident.ByRecheck
			}
			acts = append(acts, a)
		case "close", "reopen", "note":
			acts = append(acts, incident.Act{ID: id, Incident: inc, At: stamp, Kind: kind, Text: tail})
		case "confirm":
			acts = append(acts, incident.Act{ID: id, Incident: inc, At: stamp, Kind: incident.ActConfirmed, Text: tail})
		case "joint":
			acts = append(acts, incident.Act{ID: id, Launch: words[2], At: stamp, Kind: incident.ActJoint, Diagnosis: &incident.Incident{Fingerprint: tail, Findings: incident.Findings{FirstFault: &incident.Event{Text: "the first words"}}}})
		default:
			t.Fatalf("no line %q", line)
		}
	}
	return trials, acts
}

// told is an incident in one line.
func told(k *incident.Kept) string {
	s := k.Status
	if k.Closed {
		s += " closed"
	}
	if k.Fix != nil {
		s += fmt.Sprintf(" fix=%s single=%v", changeWords(k.Fix.Changes), k.Fix.Single)
	}
	for _, n := range k.NotHelped {
		s += " | " + n.Text
	}
	return s
}

func TestStatus(t *testing.T) {
	const b64, b32, b8 = "python train.py --batch-size 64", "python train.py --batch-size 32", "python train.py --batch-size 8"
	for _, test := range []struct{ name, story, want, says string }{
		{"a failure", "run t1 " + b64 + ": oom", "open", "nothing was tried"},
		{"a passing run makes no incident", "run t1 " + b64 + ": passed", "", ""},
		{"an interrupted run makes none", "run t1 " + b64 + ": interrupted", "", ""},
		{"a run without an end makes none", "run t1 " + b64 + ": unfinished", "", ""},
		{"it failed twice", "run t1 " + b64 + ": oom\nrun t2 " + b64 + ": oom", "unresolved", "failed again"},
		{"one retry passed", "run t1 " + b64 + ": oom\nrun t2+inc " + b64 + ": passed", "unresolved", "proves nothing"},
		{"a passing run that nobody tied to it", "run t1 " + b64 + ": oom\nrun t2 " + b32 + ": passed", "open", "nothing was tried"},
		{"verified after one change", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverify t3+inc " + b32 + ": passed\nverified a1 t2 t3: verified",
			"confirmed fix=--batch-size 64 → 32 single=true", "A verification succeeded after one change"},
		{"verified after two changes", "run t1 " + b64 + " --lr 1: oom\nverify t2+inc " + b32 + " --lr 2: passed\nverified a1 t2: verified",
			"unresolved fix=--batch-size 64 → 32; --lr 1 → 2 single=false", "2 things had changed"},
		{"verified with nothing changed", "run t1 " + b64 + ": oom\nverify t2+inc " + b64 + ": passed\nverified a1 t2: verified", "unresolved", "nothing changed that is on record"},
		{"verified, but the trial is not in the store", "run t1 " + b64 + ": oom\nverified a1 t9: verified", "unresolved", "is not known"},
		{"not verified", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": oom\nverified a1 t2: not_verified", "unresolved | did not help: --batch-size 64 → 32; take it back: --batch-size back to 64", "did not verify"},
		{"inconclusive", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: inconclusive", "unresolved", "inconclusive"},
		{"a verification that was ended before its verdict", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed", "unresolved", "proves nothing"},
		{"it came back", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrun t3 " + b32 + ": oom",
			"regressed fix=--batch-size 64 → 32 single=true", "with nothing changed that is on record"},
		{"it came back without its fix", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrun t3 " + b64 + ": oom",
			"regressed fix=--batch-size 64 → 32 single=true", "without the change that had solved it"},
		{"another failure is no regression", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrun t3 " + b32 + ": nan",
			"confirmed fix=--batch-size 64 → 32 single=true", "one change"},
		{"a search past the edge is no regression", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nboundary t3+inc " + b64 + ": oom",
			"confirmed fix=--batch-size 64 → 32 single=true", "one change"},
		{"rechecked", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrecheck t3+inc " + b32 + ": passed\nrechecked a2 t3: verified",
			"confirmed fix=--batch-size 64 → 32 single=true", "newest recheck"},
		{"a recheck that is not verified", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrecheck t3+inc " + b32 + ": nan\nrechecked a2 t3: not_verified",
			"regressed fix=--batch-size 64 → 32 single=true", "did not verify it"},
		{"a recheck that is inconclusive", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrecheck t3+inc " + b32 + ": unfinished\nrechecked a2 t3: inconclusive",
			"confirmed fix=--batch-size 64 → 32 single=true", "was inconclusive"},
		{"solved again", "run t1 " + b64 + ": oom\nverify t2+inc " + b32 + ": passed\nverified a1 t2: verified\nrun t3 " + b32 + ": oom\nverify t4+inc " + b8 + ": passed\nverified a2 t4: verified",
			"confirmed fix=--batch-size 32 → 8 single=true", "--batch-size 32 → 8"},
		{"a failed try, then the fix", "run t1 " + b64 + ": oom\nrun t2 " + b32 + ": oom\nverify t3+inc " + b8 + ": passed\nverified a1 t3: verified",
			"confirmed fix=--batch-size 64 → 8 single=true | did not help: --batch-size 64 → 32; another value of the same was the fix", "one change"},
		{"a change that did not help was kept", "run t1 " + b64 + " --lr 1: oom\nrun t2 " + b64 + " --lr 2: oom\nverify t3+inc " + b8 + " --lr 2: passed\nverified a1 t3: verified",
			"unresolved fix=--batch-size 64 → 8; --lr 1 → 2 single=false | did not help: --lr 1 → 2; another value of the same was the fix", "2 things had changed"},
		{"closed", "run t1 " + b64 + ": oom\nclose a1: not needed", "open closed", ""},
		{"closed and reopened", "run t1 " + b64 + ": oom\nclose a1: not needed\nreopen a2: again", "open", ""},
		{"a note changes nothing", "run t1 " + b64 + ": oom\nnote a1: seen", "open", "nothing was tried"},
		{"killed by nobody known", "run t1 " + b64 + ": killed", "open", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			trials, acts := story(t, test.story)
			kept := Keep(trials, acts)
			got, says := "", ""
			for i := range kept {
				if kept[i].Original == "t1" {
					got, says = told(&kept[i]), kept[i].Says
				}
			}
			if got != test.want || !strings.Contains(says, test.says) {
				t.Errorf("got  %s\nwant %s\nsays %q, want %q in it", got, test.want, says, test.says)
			}
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 1))
				r.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
				r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
				if again := Keep(trials, acts); !reflect.DeepEqual(kept, again) {
					t.Fatalf("another order gives\n%+v\nnot\n%+v", again, kept)
				}
			}
		})
	}
}

// TestUnits groups the processes of launches.
func TestUnits(t *testing.T) {
	trials, acts := story(t, `
		run t1/job python train.py: collective
		run t2/job python train.py: oom
		run t3/job python train.py: passed
		run t4/job2 python train.py: collective
		run t5 python train.py: collective`)
	kept := Keep(trials, acts)
	byID := map[string]*incident.Kept{}
	for i := range kept {
		byID[kept[i].ID] = &kept[i]
	}
	oom, coll := byID[IncidentID("demo train.py", "fp-oom")], byID[IncidentID("demo train.py", "fp-coll")]
	if len(kept) != 2 || oom == nil || coll == nil {
		t.Fatalf("%d incidents", len(kept))
	}
	if oom.Original != "t2" || len(oom.Trials) != 3 || oom.Status != incident.Open {
		t.Errorf("the words of the rank that ran out of memory stand for its launch: %s of %d trials, %s", oom.Original, len(oom.Trials), oom.Status)
	}
	if coll.Original != "t4" || len(coll.Trials) != 2 {
		t.Errorf("original %s of %d", coll.Original, len(coll.Trials))
	}
	if l := Unjoined(oom); len(l) != 1 || l[0].Key != "job" || len(l[0].Trials) != 3 {
		t.Errorf("unjoined %+v", l)
	}
	if l := Unjoined(coll); len(l) != 0 {
		t.Errorf("one process failed alone: %+v", l)
	}

	// Diagnosed together it may turn out to be another failure: what was kept under the first
	// id goes along.
	acts = append(acts, incident.Act{ID: "n", Incident: oom.ID, Kind: incident.ActNote, At: "2026-08-02T00:00:00Z", Text: "note"},
		incident.Act{ID: "j", Launch: "job", Kind: incident.ActJoint, At: "2026-08-02T00:00:00Z", Trials: []string{"t1", "t2", "t3"}, Diagnosis: &incident.Incident{Fingerprint: "fp-joint", Findings: incident.Findings{FirstFault: &incident.Event{Text: "the first words"}}}})
	kept = Keep(trials, acts)
	i := slices.IndexFunc(kept, func(k incident.Kept) bool { return k.ID == IncidentID("demo train.py", "fp-joint") })
	if i < 0 || len(kept) != 2 {
		t.Fatalf("%d incidents, the joint one at %d", len(kept), i)
	}
	if k := kept[i]; !slices.Equal(k.Also, []string{oom.ID}) || len(k.Acts) != 2 || k.Symptom != "the first words" || len(Unjoined(&k)) != 0 {
		t.Errorf("also %q, %d acts, symptom %q", k.Also, len(k.Acts), k.Symptom)
	}
}

// TestRestarts tells the restarts of a launch apart.
func TestRestarts(t *testing.T) {
	trials, _ := story(t, "run t1/job python train.py: oom\nrun t2/job python train.py: oom")
	trials[1].Launch.Restart = 1
	kept := Keep(trials, nil)
	if len(kept) != 1 || kept[0].Status != incident.Unresolved || kept[0].Last != trials[1].Begun {
		t.Errorf("%+v", kept)
	}
	Tabulate(&kept[0])
	if len(kept[0].Table) != 2 || kept[0].Table[1].Launch != "job#1" {
		t.Errorf("table %+v", kept[0].Table)
	}
}

// TestUndiagnosed keeps a failure that no diagnosis names, and says so.
func TestUndiagnosed(t *testing.T) {
	trials, _ := story(t, "run t1 python train.py: killed\nrun t2 python train.py: killed\nrun t3 python train.py: oom")
	kept := Keep(trials, nil)
	if len(kept) != 2 {
		t.Fatalf("%d incidents", len(kept))
	}
	for _, k := range kept {
		if k.Original == "t1" && (len(k.Trials) != 2 || !strings.Contains(strings.Join(k.Problems, ""), "no diagnosis")) {
			t.Errorf("%d trials, problems %q", len(k.Trials), k.Problems)
		}
	}
}

// TestOrphans keeps what was made for an incident whose failure is not in the store.
func TestOrphans(t *testing.T) {
	trials, acts := story(t, "verify t2+inc python train.py: passed\nverified a1 t2: verified\nnote a2: seen")
	kept := Keep(trials, acts)
	if len(kept) != 1 || kept[0].Status != incident.Unresolved || len(kept[0].Problems) != 1 || kept[0].First != trials[0].Begun {
		t.Errorf("%+v", kept)
	}
	kept = Keep(nil, acts)
	if len(kept) != 1 || len(kept[0].Acts) != 2 || kept[0].First == "" {
		t.Errorf("%+v", kept)
	}
}

// TestCause confirms a cause only by the change that it calls for, or where somebody names it.
func TestCause(t *testing.T) {
	diagnosis := &incident.Incident{Fingerprint: "fp-oom", Findings: incident.Findings{
		FirstFault: &incident.Event{Text: "MemoryError"},
		Hypotheses: []incident.Hypothesis{{Cause: "host-ram", Entry: "host-ram", Title: "The host ran out", Standing: incident.Supported}},
		Remedy: &incident.Remedy{Entry: "host-ram", Change: "Lower the batch", Command: "python train.py --batch-size 64 --lr 1",
			Edits: []incident.Edit{{Where: "command", From: "train.py --batch_size 64 --lr 1", To: "train.py --batch_size 32 --lr 1"}}, Rollback: "Put the batch back."},
	}}
	for _, test := range []struct {
		name, change, more, entry string
		confirmed                 bool
	}{
		{"the change that it calls for", "--batch-size 32 --lr 1", "", "host-ram", true},
		{"another change", "--batch-size 64 --lr 2", "", "host-ram", false},
		{"another change, and somebody names the cause", "--batch-size 64 --lr 2", "\nconfirm a2: host-ram", "host-ram", true},
		{"somebody names another cause", "--batch-size 64 --lr 2", "\nconfirm a2: retained-graph", "retained-graph", true},
	} {
		trials, acts := story(t, "run t1 python train.py --batch-size 64 --lr 1: oom\nverify t2+inc python train.py "+test.change+": passed\nverified a1 t2: verified"+test.more)
		k := Keep(trials, acts)[0]
		Explain(&k, diagnosis)
		if k.Status != incident.Confirmed || k.Cause.Entry != test.entry || k.Cause.Confirmed != test.confirmed || k.Symptom != "MemoryError" {
			t.Errorf("%s: %s, cause %+v", test.name, k.Status, k.Cause)
		}
		if !strings.Contains(k.Rollback, "back to") || strings.Contains(k.Rollback, "Put the batch back.") != (test.more == "" && test.confirmed) {
			t.Errorf("%s: rollback %q", test.name, k.Rollback)
		}
	}
	// Before a verification nobody confirms.
	trials, acts := story(t, "run t1 python train.py: oom\nconfirm a1: retained-graph")
	if k := Keep(trials, acts)[0]; k.Status != incident.Open || k.Cause.Confirmed || k.Cause.Entry != "host-ram" {
		t.Errorf("%s, %+v", k.Status, k.Cause)
	}
}

// TestPeak picks the memory that tells most of a trial.
func TestPeak(t *testing.T) {
	limit := func(n int64) *int64 { return &n }
	for i, test := range []struct {
		where    string
		measures []incident.Measure
		want     string
	}{
		{"", nil, ""},
		{"", []incident.Measure{{Name: incident.AddressSpace, Peak: 9}, {Name: incident.Resident, Peak: 5}}, incident.Resident},
		{"host_memory", []incident.Measure{{Name: incident.Resident, Peak: 5}, {Name: incident.AddressSpace, Peak: 9, Limit: limit(10)}, {Name: incident.DeviceMemory, Peak: 80, Limit: limit(80)}}, incident.AddressSpace},
		{"device_memory", []incident.Measure{{Name: incident.CgroupMemory, Peak: 5, Limit: limit(5)}, {Name: incident.DeviceMemory, Peak: 70, Limit: limit(80)}}, incident.DeviceMemory},
	} {
		got := ""
		if m := peak(&incident.Trial{Verdict: &incident.TrialVerdict{Where: test.where}, Measures: test.measures}); m != nil {
			got = m.Name
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", strconv.Itoa(i), got, test.want)
		}
	}
}

// A name that a later start has as well, as the address of rank 0, makes one launch only of what
// ran at the same time, each rank once.
func TestWeakLaunches(t *testing.T) {
	trials, acts := story(t, `
		run a/env a: oom
		run b/env a: oom
		run c/env a: nan
		run d/env a: nan
		run e/env a: oom
		run f/env a: passed
	`)
	rank := func(n int) *int { return &n }
	times := []struct {
		begun, ended string
		rank         *int
	}{
		{"10:00:00Z", "10:00:00.5Z", rank(0)}, // failed before the other had started
		{"10:00:02Z", "10:00:40Z", rank(1)},
		{"10:00:45Z", "10:01:30Z", rank(0)}, // the next try, at once
		{"10:00:45.5Z", "", rank(1)},
		{"11:00:00Z", "11:30:00Z", nil},
		{"12:00:00Z", "12:30:00Z", nil}, // not the same by its time alone
	}
	for i, x := range times {
		trials[i].Launch.Rank, trials[i].Launch.Weak, trials[i].Begun = x.rank, true, "2026-08-01T"+x.begun
		if trials[i].Ended = nil; x.ended != "" {
			end := "2026-08-01T" + x.ended
			trials[i].Ended = &end
		}
	}
	var got []string
	for _, u := range launches(trials) {
		var ids []string
		for _, o := range u.trials {
			ids = append(ids, o.ID)
		}
		got = append(got, u.launch+"="+strings.Join(ids, ","))
	}
	if want := []string{"env@a=a,b", "env@c=c,d", "env@e=e", "env@f=f"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	kept := Keep(trials, acts)
	if len(kept) != 2 {
		t.Fatalf("%d incidents: a weak name made one of two failures", len(kept))
	}
	if s := Siblings(trials, "d"); len(s) != 2 || s[0].ID != "c" {
		t.Errorf("siblings of d: %v", s)
	}
	for i := range trials {
		trials[i].Launch.Weak = false
	}
	if u := launches(trials); len(u) != 1 {
		t.Errorf("%d launches of one that its launcher names", len(u))
	}
}
