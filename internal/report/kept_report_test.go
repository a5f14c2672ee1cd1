package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inquest-dev/inquest/internal/incident"
)

// keptSamples are kept incidents in all of their states.
func keptSamples() map[string]*incident.Kept {
	at := func(n int) string { return fmt.Sprintf("2026-08-01T10:%02d:00Z", n) }
	limit := int64(2 << 30)
	ended, status, seconds := at(1), 1, 12.5
	trial := func(id string) incident.Trial {
		return incident.Trial{Schema: incident.TrialSchema, ID: id, By: incident.ByRun, Command: []string{"python", "train.py", "--batch-size", "64"}, Template: []string{}, Values: map[string]string{}, Set: map[string]string{},
			Scenario: "demo train.py", Begun: at(0), Ended: &ended, Exit: &incident.Exit{Status: 1}, Measures: []incident.Measure{}, Samples: []incident.Sample{}, Problems: []string{}, Verdict: &incident.TrialVerdict{Result: incident.OutOfMemory}}
	}
	change := incident.Change{Of: incident.ChangeCommand, Name: "--batch-size", From: "64", To: "32", Text: "--batch-size 64 → 32"}
	lr := incident.Change{Of: incident.ChangeCommand, Name: "--lr", From: "1", To: "2", Text: "--lr 1 → 2"}
	base := func() *incident.Kept {
		return &incident.Kept{Schema: incident.KeptSchema, ID: "i-0123456789", Fingerprint: "f", Scenario: "demo train.py", Status: incident.Open, Title: "Host memory ran out at step 1.", Says: "It failed, and nothing was tried since.",
			First: at(0), Last: at(0), Original: "t1", Symptom: "MemoryError: Unable to allocate 64 GiB", FollowUp: []string{"python", "train.py", "--name", "it's 64"}, NotHelped: []incident.NotHelped{}, Also: []string{}, Acts: []incident.Act{}, Problems: []string{},
			Cause:  &incident.KeptCause{Entry: "host-ram", Title: "The host ran out of main memory", Standing: incident.Supported},
			Trials: []incident.Trial{trial("t1")},
			Table: []incident.KeptRow{{Trial: "t1", Processes: 1, Failed: 1, By: incident.ByRun, Begun: at(0), Seconds: &seconds, Result: incident.OutOfMemory, Status: &status, Changes: []incident.Change{},
				Peak: &incident.Measure{Name: incident.AddressSpace, Peak: 2 << 30, Limit: &limit, LimitBy: "ulimit -v", AtLeast: true}}},
			Environment: &incident.Environment{Host: "node1", System: "linux", Kernel: "6.8", CPUs: 8, Memory: 64 << 30, Limits: map[string]int64{"address_space": 2 << 30, "open_files": 1024}, Variables: map[string]string{}, Python: "/usr/bin/python3 3.12",
				Packages: map[string]string{"torch": "2.9.0", "einops": "0.8"}, Git: &incident.Git{Commit: "0123456789abcdef", Branch: "main", Changed: true}, Devices: []incident.TrialDevice{{Name: "NVIDIA H200", Memory: 141 << 30}}}}
	}
	out := map[string]*incident.Kept{"open": base()}
	k := base()
	k.Status, k.Says, k.Fix = incident.Confirmed, "A verification succeeded after one change: --batch-size 64 → 32.", &incident.Fix{Changes: []incident.Change{change}, Trial: "t3", Act: "a1", Single: true, Unknown: []string{"code: no Git"}}
	k.Rollback = "--batch-size back to 64"
	k.Cause.Confirmed = true
	k.NotHelped = []incident.NotHelped{{Changes: []incident.Change{lr}, Trial: "t2", Text: "did not help: --lr 1 → 2; take it back: --lr back to 1"}}
	k.Table = append(k.Table, incident.KeptRow{Trial: "t2", Launch: "slurm-7", Processes: 8, Failed: 3, By: incident.ByRun, Begun: at(2), Result: incident.TrialFailed, Signal: "SIGKILL", Changes: []incident.Change{lr}, Compared: true},
		incident.KeptRow{Trial: "t3", Processes: 1, By: incident.ByVerify, Begun: at(3), Result: incident.Passed, Changes: []incident.Change{change}, Compared: true, Verdict: incident.Verified})
	k.Acts = []incident.Act{{ID: "a0", At: at(1), Kind: incident.ActNote, Text: "seen on node7 too", Trials: []string{}}, {ID: "a1", At: at(4), Kind: incident.ActVerified, Trials: []string{"t3"}, Result: &incident.Trials{By: incident.ByVerify, Verification: &incident.Verification{Verdict: incident.Verified}}}}
	out["confirmed"] = k
	k = base()
	k.Status, k.Closed, k.Fix = incident.Unresolved, true, &incident.Fix{Changes: []incident.Change{change, lr}, Trial: "t3", Act: "a1", Unknown: []string{}}
	k.Says = "The verification succeeded, but 2 things had changed since the failure."
	out["several changes"] = k
	k = base()
	k.Cause, k.Environment, k.Original, k.Symptom, k.FollowUp, k.Trials, k.Table, k.First = nil, nil, "", "", []string{}, []incident.Trial{}, []incident.KeptRow{}, "yesterday"
	k.Problems = []string{"the trial that failed first is not in this store"}
	out["nothing known"] = k
	k = base()
	hostile := "\x1b[31mred\x1b[0m \u202e<script>alert(1)</script> | `code` **bold** [link](http://x)\nnext line"
	k.Title, k.Says, k.Symptom, k.Scenario, k.FollowUp = hostile, hostile, hostile, hostile, []string{hostile, hostile}
	k.Cause.Title, k.Problems, k.Environment.Host = hostile, []string{hostile}, hostile
	k.Acts = []incident.Act{{ID: "a", At: hostile, Kind: hostile, Text: hostile, Trials: []string{}}, {ID: "b", At: at(1), Kind: incident.ActNote, Text: strings.Repeat("long ", 1000), Trials: []string{}}}
	k.NotHelped = []incident.NotHelped{{Changes: []incident.Change{}, Text: hostile}}
	for n := range 100 {
		k.Table = append(k.Table, incident.KeptRow{Trial: fmt.Sprint("t", n), By: hostile, Begun: at(n % 60), Result: hostile, Compared: true, Changes: []incident.Change{{Text: hostile}}})
	}
	out["hostile"] = k
	return out
}

func listSamples() map[string]*incident.Incidents {
	line := incident.KeptLine{ID: "i-0123456789", Status: incident.Open, Title: "Host memory ran out.", Scenario: "demo train.py", First: "2026-08-01T10:00:00Z", Last: "2026-08-01T10:00:00Z", Trials: 3, Failed: 2}
	hostile := line
	hostile.Title, hostile.Scenario, hostile.Last = "\x1b[31m<b>\n|x|", "\u202e", "\x07"
	return map[string]*incident.Incidents{
		"empty":  {Schema: incident.IncidentsSchema, Store: "/s", Incidents: []incident.KeptLine{}, Problems: []string{}},
		"passed": {Schema: incident.IncidentsSchema, Store: "/s", Trials: 7, Incidents: []incident.KeptLine{}, Problems: []string{}},
		"some":   {Schema: incident.IncidentsSchema, Store: "/s", Trials: 7, Incidents: []incident.KeptLine{line, hostile}, Hidden: 2, Problems: []string{"trials/2026-10: a link; it is not followed"}},
		"hidden": {Schema: incident.IncidentsSchema, Store: "/s", Trials: 7, Hidden: 1, Incidents: []incident.KeptLine{}, Problems: []string{}},
	}
}

// TestKeptReports renders every sample in every format and width: text keeps to its width and
// its lines, nothing hostile gets through, and the same gives the same.
func TestKeptReports(t *testing.T) {
	type written struct {
		name  string
		write func(*bytes.Buffer, string, Options) error
		has   []string
	}
	var all []written
	for name, k := range keptSamples() {
		all = append(all, written{"kept " + name, func(b *bytes.Buffer, f string, o Options) error { return WriteKept(b, f, k, o) }, KeptFormats()})
	}
	for name, l := range listSamples() {
		all = append(all, written{"list " + name, func(b *bytes.Buffer, f string, o Options) error { return WriteIncidents(b, f, l, o) }, IncidentsFormats()})
	}
	for _, s := range all {
		for _, format := range s.has {
			for _, o := range []Options{{Width: 40}, {Width: 100}, {Width: 200}, {Width: 80, Full: true}} {
				var b, again bytes.Buffer
				if err := s.write(&b, format, o); err != nil {
					t.Fatalf("%s, %s: %v", s.name, format, err)
				}
				if err := s.write(&again, format, o); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
					t.Errorf("%s, %s: the second time it is another", s.name, format)
				}
				text := b.String()
				if strings.ContainsAny(text, "\x1b\x07\u202e") {
					t.Errorf("%s, %s: a control character gets through", s.name, format)
				}
				switch format {
				case "text":
					lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
					for _, l := range lines {
						if columns(l) > o.Width {
							t.Errorf("%s, width %d: %q", s.name, o.Width, l)
						}
					}
					if !o.Full && len(lines) > shortLines {
						t.Errorf("%s, width %d: %d lines", s.name, o.Width, len(lines))
					}
				case "html":
					if strings.Contains(text, "<script") {
						t.Errorf("%s: a script gets through", s.name)
					}
					if _, err := html.Parse(&b); err != nil {
						t.Errorf("%s: %v", s.name, err)
					}
				}
			}
		}
	}
}

// TestKeptFirstLines are what a lead reads.
func TestKeptFirstLines(t *testing.T) {
	for name, want := range map[string]string{
		"open": `Failed Host memory ran out at step 1 (demo train.py)
Status open: It failed, and nothing was tried since.
Cause  The host ran out of main memory (supported by the evidence, not confirmed)
Fix    none is verified`,
		"confirmed": `Failed Host memory ran out at step 1 (demo train.py)
Status confirmed: A verification succeeded after one change: --batch-size 64 → 32.
Cause  The host ran out of main memory (confirmed by a verification)
Fix    --batch-size 64 → 32`,
		"several changes": `Failed Host memory ran out at step 1 (demo train.py)
Status unresolved, closed: The verification succeeded, but 2 things had changed since the failure.
Cause  The host ran out of main memory (supported by the evidence, not confirmed)
Fix    not proved, 2 things changed at once: --batch-size 64 → 32; --lr 1 → 2`,
	} {
		var b bytes.Buffer
		if err := WriteKept(&b, "text", keptSamples()[name], Options{Width: 120}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		if got := strings.Join(lines[:4], "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
