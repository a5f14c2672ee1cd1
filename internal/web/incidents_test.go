package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/store"
)

// hostile is text that would steer a page that took it for markup.
const hostile = "\x1b[31m\u202e</pre><script>alert(1)</script><img src=x onerror=alert(1)> {{.Store}} \"' ="

var begun = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// trial is one of a store made by a test.
type trial struct {
	id, scenario, fingerprint, result, text string
	by                                      string
	of                                      string // the incident that it was made for
	launch                                  string
	command                                 []string
	minute                                  int
	diagnosis                               *incident.Incident
}

// keep stores trials.
func keep(t testing.TB, s *store.Store, trials ...trial) {
	t.Helper()
	for _, x := range trials {
		at := begun.Add(time.Duration(x.minute) * time.Minute).Format(time.RFC3339Nano)
		if x.by == "" {
			x.by = incident.ByRun
		}
		var launch *incident.Launch
		if x.launch != "" {
			launch = &incident.Launch{ID: x.launch, Launcher: "slurm"}
		}
		w, err := s.Begin(incident.Trial{Launch: launch, Schema: incident.TrialSchema, ID: x.id, By: x.by, Incident: x.of, Command: x.command, Dir: "/w", Scenario: x.scenario, Begun: at})
		if err != nil {
			t.Fatal(err)
		}
		status := 1
		if x.result == incident.Passed {
			status = 0
		}
		verdict := &incident.TrialVerdict{Result: x.result, Text: x.text}
		if x.result != incident.Passed {
			verdict.Class, verdict.Kind, verdict.Standing, verdict.Fingerprint, verdict.Cause, verdict.Where = "device_memory", "device_oom", incident.Supported, x.fingerprint, "fragmentation", "device_memory"
		}
		records := []incident.Record{
			{At: at, Kind: incident.RecordEnvironment, Environment: &incident.Environment{Host: "node" + x.id, System: "linux", Packages: map[string]string{"torch": "2.9.0"}, Limits: map[string]int64{}, Variables: map[string]string{}}},
			{At: at, Kind: incident.RecordEnded, Ended: &incident.Ended{At: at, Exit: incident.Exit{Status: status}}},
		}
		if x.diagnosis != nil {
			records = append(records, incident.Record{At: at, Kind: incident.RecordDiagnosis, Diagnosis: x.diagnosis})
		}
		for _, r := range append(records, incident.Record{At: at, Kind: incident.RecordVerdict, Verdict: verdict}) {
			if err := w.Put(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// diagnosed is a small diagnosis whose first fault has that text.
func diagnosed(text string) *incident.Incident {
	span := &evidence.Span{Artifact: "output.log", Kind: "text", Line: 3, Quote: text}
	return &incident.Incident{Schema: incident.Schema, Fingerprint: "fp", Outcome: incident.Failed, Status: incident.Open,
		Findings: incident.Findings{FirstFaultStanding: incident.Established, FirstFault: &incident.Event{Kind: "device_oom", Class: "device_memory", Text: text, Span: span},
			Hypotheses: []incident.Hypothesis{{Entry: "fragmentation", Cause: "fragmentation", Title: "Reserved memory lies in pieces that no request fits", Standing: incident.Supported}}}}
}

// storeOfTwo has an incident with a trial that was made to mend it, and another incident.
func storeOfTwo(t testing.TB) (s *store.Store, first, second string) {
	t.Helper()
	s = store.Open(filepath.Join(t.TempDir(), "store"))
	first, second = ledger.IncidentID("demo train.py", "fp-a"), ledger.IncidentID("demo eval.py", "fp-b")
	keep(t, s,
		trial{id: "ta-1", scenario: "demo train.py", fingerprint: "fp-a", result: incident.OutOfMemory, text: "Device memory ran out at step 3.", command: []string{"python", "train.py", "--batch-size", "64"}, diagnosis: diagnosed("CUDA out of memory. Tried to allocate 2.00 GiB")},
		trial{id: "ta-2", scenario: "demo train.py", result: incident.Passed, text: "It passed.", by: incident.ByVerify, of: first, command: []string{"python", "train.py", "--batch-size", "32"}, minute: 5},
		trial{id: "tb-1", scenario: "demo eval.py", fingerprint: "fp-b", result: incident.OutOfMemory, text: "Device memory ran out while evaluating.", command: []string{"python", "eval.py"}, minute: 10, diagnosis: diagnosed("CUDA out of memory. Tried to allocate 7.00 GiB")},
	)
	return s, first, second
}

func TestIncidents(t *testing.T) {
	s, first, second := storeOfTwo(t)
	v := visit(t, s)
	page := v.get(200, "/incidents")
	wants(t, page, `href="/incidents/`+first+`"`, `href="/incidents/`+second+`"`, `href="/encyclopedia/fragmentation"`, "Device memory ran out at step 3", "1 of 2 trials failed", "Compare two", "3 trials in")
	if strings.Index(page, "/incidents/"+second+`"`) > strings.Index(page, "/incidents/"+first+`"`) {
		t.Error("the one that failed last is not first")
	}
	page = v.get(200, "/incidents?scenario=EVAL")
	if wants(t, page, second, "1 more is not shown"); strings.Contains(page, `href="/incidents/`+first) {
		t.Error("an incident of another scenario is shown")
	}
	wants(t, v.get(200, "/incidents?status=confirmed"), "None stands so")
	wants(t, v.get(200, "/incidents?status=nonsense&page=-3"), first)
	wants(t, v.get(200, "/incidents?page=999"), first)
	if _, err := s.Act(incident.Act{Incident: first, Kind: incident.ActClose}); err != nil {
		t.Fatal(err)
	}
	if page := v.get(200, "/incidents"); strings.Contains(page, `href="/incidents/`+first+`"`) {
		t.Error("a closed incident is shown")
	}
	wants(t, v.get(200, "/incidents?closed=1"), `href="/incidents/`+first+`"`, ">closed<")
}

func TestManyIncidents(t *testing.T) {
	s := store.Open(t.TempDir())
	for i := range perPage + 1 {
		keep(t, s, trial{id: fmt.Sprintf("t-%03d", i), scenario: fmt.Sprintf("demo %d.py", i), fingerprint: "f", result: incident.OutOfMemory, minute: i})
	}
	v := visit(t, s)
	wants(t, v.get(200, "/incidents?closed=1"), "demo 50.py", `href="/incidents?closed=1&amp;page=2" rel="next"`)
	wants(t, v.get(200, "/incidents?closed=1&page=2"), "demo 0.py", `rel="prev"`)
}

func TestNoIncidents(t *testing.T) {
	v := visit(t, store.Open(filepath.Join(t.TempDir(), "none")))
	wants(t, v.get(200, "/incidents"), "Nothing is kept yet", "inquest run -- python train.py", "The store: <code>")
	wants(t, v.get(404, "/incidents/i-1"), "There is no such incident")
	v = visit(t, nil)
	wants(t, v.get(200, "/incidents"), "Nothing is kept yet", "No store is open")
	for _, path := range []string{"/incidents/i-1", "/incidents/i-1/compare", "/incidents/compare", "/incidents/compare?a=x&b=y"} {
		wants(t, v.get(404, path), "There are no incidents here")
	}
	if w := v.post("/incidents/i-1/notes", url.Values{"text": {"x"}}); w.Code != 404 {
		t.Errorf("a note without a store: status %d", w.Code)
	}
}

func TestIncident(t *testing.T) {
	s, first, second := storeOfTwo(t)
	v := visit(t, s)
	page := v.get(200, "/incidents/"+first)
	wants(t, page, "<h1>Device memory ran out at step 3</h1>", "CUDA out of memory", "Trials", "Compare two trials", "Commands", "inquest verify --incident "+first, "python train.py --batch-size 64", "The diagnosis of the failure",
		`href="/encyclopedia/fragmentation"`, `action="/incidents/`+first+`/notes"`, "Compare with another incident", "--batch-size 64 → 32")
	for _, name := range []string{first[:6], "ta-1", "last"} {
		v.get(200, "/incidents/"+name)
	}
	wants(t, v.get(404, "/incidents/i-nonesuch"), "There is no such incident", "the newest is "+second)
	wants(t, v.get(404, "/incidents/"+url.PathEscape("../../etc")), "There is no such incident")
	wants(t, v.get(404, "/incidents/"+url.PathEscape(hostile)), "There is no such incident")
}

// TestLaunch shows an incident of which two processes of one launch failed.
func TestLaunch(t *testing.T) {
	s := store.Open(t.TempDir())
	keep(t, s,
		trial{id: "t-1", launch: "slurm-7", scenario: "demo train.py", fingerprint: "f", result: incident.OutOfMemory, text: "Device memory ran out."},
		trial{id: "t-2", launch: "slurm-7", scenario: "demo train.py", fingerprint: "f", result: incident.OutOfMemory, text: "Device memory ran out."})
	page := visit(t, s).get(200, "/incidents/last")
	wants(t, page, "were not diagnosed together", "2 of 2 ranks")
	if strings.Contains(page, "The diagnosis of the failure</summary>") {
		t.Error("a diagnosis is shown where there is none")
	}
}

func TestCompareTrials(t *testing.T) {
	s, first, _ := storeOfTwo(t)
	v := visit(t, s)
	path := "/incidents/" + first + "/compare"
	wants(t, v.get(200, path), "--batch-size 64 → 32", "What changed", "Side by side", `<option value="ta-1" selected>`, `<option value="ta-2" selected>`)
	wants(t, v.get(200, path+"?a=ta-2&b=ta-1"), "--batch-size 64 → 32", "the one that began first")
	wants(t, v.get(200, path+"?a=ta-1&b=tb-1"), "eval.py", `<option value="tb-1" selected>`)
	wants(t, v.get(200, path+"?a=ta-1&b=ta-1"), "one trial twice")
	wants(t, v.get(404, path+"?a=ta-1&b=nonesuch"), "no trial &#34;nonesuch&#34; is kept")
	wants(t, v.get(404, path+"?a=ta&b=ta-1"), "more than one trial begins with")
	wants(t, v.get(404, path+"?a=ta-1&b="+url.QueryEscape(hostile)), "is kept")
	wants(t, v.get(200, "/incidents/tb-1/compare"), "nothing to compare with")
}

func TestCompareIncidents(t *testing.T) {
	s, first, second := storeOfTwo(t)
	v := visit(t, s)
	v.get(200, "/incidents/compare")
	wants(t, v.get(200, "/incidents/compare?a="+first), "Choose two incidents")
	wants(t, v.get(200, "/incidents/compare?a="+first+"&b=ta-1"), "one incident twice")
	page := v.get(200, "/incidents/compare?a="+second+"&b="+first)
	wants(t, page, "Tried to allocate 2.00 GiB", "Tried to allocate 7.00 GiB", "train.py → eval.py", "What differs between the runs that failed", "Neither was made to mend the other", `<option value="`+second+`" selected>`, "nodeta-1", "nodetb-1", ">same<", "What failed</th>")
	if strings.Contains(page, "take it back") {
		t.Error("two incidents are compared as a failure and its remedy")
	}
	v.get(404, "/incidents/compare?a="+first+"&b=nonesuch")
}

func TestNotes(t *testing.T) {
	s, first, _ := storeOfTwo(t)
	v := visit(t, s)
	path := "/incidents/" + first + "/notes"
	w := v.post(path, url.Values{"text": {"  drained at 14:10 by <ops>, password=hunter2hunter2\n" + hostile}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/incidents/"+first+"#acts" {
		t.Fatalf("status %d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	page := v.get(200, "/incidents/"+first)
	wants(t, page, "drained at 14:10 by &lt;ops&gt;", "&lt;script&gt;alert(1)")
	if strings.Contains(page, "hunter2") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("the note shows a secret or steers the page")
	}
	wants(t, v.checked(422, path, v.post(path, url.Values{"text": {" \n "}})), `role="alert"`, "the note is empty", `aria-invalid="true"`)
	long := strings.Repeat("é", ledger.MaxNote/2+1)
	wants(t, v.checked(422, path, v.post(path, url.Values{"text": {long}})), "the note is longer than 65536 bytes", "éééé")
	wants(t, v.checked(413, path, v.post(path, url.Values{"text": {strings.Repeat("x", 4*ledger.MaxNote)}})), "The note is too long")
	v.checked(404, path, v.post("/incidents/i-nonesuch/notes", url.Values{"text": {"x"}}))

	// What a page of another site, or no form at all, sends is refused.
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("text=x"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://evil.example")
	if w := v.send(r); w.Code != http.StatusForbidden {
		t.Errorf("from another site: status %d", w.Code)
	}
	r = httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"text":"x"}`))
	r.Header.Set("Content-Type", "application/json")
	if w := v.send(r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("no form: status %d", w.Code)
	}
	k, err := s.Find(t.Context(), first)
	if err != nil || len(k.Acts) != 1 {
		t.Errorf("%d acts are kept, want 1: %v", len(k.Acts), err)
	}
}

// TestNotWritable adds a note to a store whose acts cannot be written.
func TestNotWritable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of folders are not what keeps a file from being written")
	}
	s, first, _ := storeOfTwo(t)
	// A file in the place of the folder stops every user, root too.
	if err := os.WriteFile(filepath.Join(s.Dir(), "acts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := visit(t, s)
	path := "/incidents/" + first + "/notes"
	wants(t, v.checked(500, path, v.post(path, url.Values{"text": {"seen on node7"}})), "The note was not kept", "seen on node7</textarea>")
}

// TestHostileStore shows a store in which every text is hostile.
func TestHostileStore(t *testing.T) {
	s := store.Open(t.TempDir())
	d := diagnosed(hostile)
	d.Hypotheses[0].Entry, d.Hypotheses[0].Title = hostile, hostile
	keep(t, s,
		trial{id: "t-1", scenario: hostile, fingerprint: hostile, result: incident.OutOfMemory, text: hostile, command: []string{hostile, hostile}, diagnosis: d},
		trial{id: "t-2", scenario: hostile, fingerprint: hostile + "2", result: incident.OutOfMemory, text: hostile, command: []string{"x", hostile}, minute: 1, diagnosis: d},
		trial{id: "t-3", scenario: hostile, fingerprint: hostile, result: hostile, text: strings.Repeat(hostile, 2000), command: []string{"y"}, minute: 2},
	)
	v := visit(t, s)
	for _, path := range []string{"/incidents", "/incidents/t-1", "/incidents/t-1/compare", "/incidents/t-1/compare?a=t-1&b=t-2", "/incidents/compare?a=t-1&b=t-2"} {
		page := v.get(200, path)
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") || strings.ContainsAny(page, "\x1b\u202e") {
			t.Errorf("%s: hostile text reached the page", path)
		}
	}
}
