package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A dumpTruth is what the generator of testdata/flightrec says of a job.
type dumpTruth struct {
	Ranks      []int  `json:"ranks"`
	Open       bool   `json:"open"` // ranks wait, and nothing sets one of them apart
	Unknown    []int  `json:"unknown"`
	Group      string `json:"group"`
	Seq        int64  `json:"seq"`
	Op         string `json:"op"`
	Missing    []int  `json:"missing"`
	Behind     []int  `json:"behind"`
	Mismatched []int  `json:"mismatched"`
	Says       string `json:"says"`
	Cause      string `json:"cause"`
	Note       string `json:"note"`
}

// TestFlightRecorder diagnoses the dumps of small jobs whose truth a generator
// knows, as the pickles that PyTorch writes and as its JSON.
func TestFlightRecorder(t *testing.T) {
	dirs, _ := filepath.Glob("testdata/flightrec/*/truth.json")
	if len(dirs) < 15 {
		t.Fatalf("%d jobs, want 15 at least", len(dirs))
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want dumpTruth
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			dumps, _ := filepath.Glob(filepath.Join(dir, "_dump_*"))
			checkDumps(t, diagnose(t, dumps...), want)
			if !strings.HasPrefix(filepath.Base(dir), "cut") { // what is cut has no JSON of its own
				checkDumps(t, diagnose(t, asJSON(t, dumps)...), want)
			}
		})
	}
}

func checkDumps(t *testing.T, inc *incident.Incident, want dumpTruth) {
	t.Helper()
	got := named(inc)
	if !slices.Equal(got, want.Ranks) {
		t.Errorf("ranks %v are named, want %v (%s)", got, want.Ranks, inc.FirstFaultBasis)
	}
	if want.Note != "" && !slices.ContainsFunc(inc.Contributing, func(s incident.Statement) bool { return strings.Contains(s.Text, want.Note) }) {
		t.Errorf("nothing says %q: %+v", want.Note, inc.Contributing)
	}
	switch {
	case want.Open:
		if inc.FirstFault == nil || inc.FirstFaultStanding != incident.Undecidable {
			t.Errorf("standing is %q, want an open verdict", inc.FirstFaultStanding)
		}
	case len(want.Ranks) == 0:
		if inc.FirstFault != nil {
			t.Errorf("a fault is claimed: %s", inc.FirstFaultBasis)
		}
		return
	case len(want.Ranks) == 1 && inc.FirstFaultStanding != incident.Supported:
		t.Errorf("standing is %q, want supported", inc.FirstFaultStanding)
	}
	if !strings.Contains(inc.FirstFaultBasis, want.Says) {
		t.Errorf("basis %q does not say %q", inc.FirstFaultBasis, want.Says)
	}
	for _, r := range want.Unknown {
		if !slices.ContainsFunc(inc.Limits, func(l incident.Statement) bool {
			return strings.Contains(l.Text, "ank "+strconv.Itoa(r)+" left no dump")
		}) {
			t.Errorf("no limit says that rank %d left no dump: %v", r, inc.Limits)
		}
	}
	if want.Cause != "" && (len(inc.Hypotheses) == 0 || inc.Hypotheses[0].Cause != want.Cause) {
		t.Errorf("the first hypothesis is not %s", want.Cause)
	}
	if want.Group == "" {
		return
	}
	for _, g := range inc.Groups {
		if g.Name != want.Group {
			continue
		}
		if want.Seq > 0 && (g.Seq == nil || *g.Seq != want.Seq) || g.Op != want.Op ||
			!slices.Equal(g.Missing, want.Missing) && len(g.Missing)+len(want.Missing) > 0 ||
			!slices.Equal(g.Behind, want.Behind) && len(g.Behind)+len(want.Behind) > 0 ||
			!slices.Equal(g.Mismatched, want.Mismatched) && len(g.Mismatched)+len(want.Mismatched) > 0 {
			t.Errorf("group %+v (number %v), want %+v", g, deref(g.Seq), want)
		}
		return
	}
	t.Errorf("group %s is not among %v", want.Group, inc.Groups)
}

func deref(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// named lists the ranks that the verdict names: the first fault's and its rivals'.
func named(inc *incident.Incident) []int {
	out := []int{}
	if inc.FirstFault == nil {
		return out
	}
	for _, e := range append([]incident.Event{*inc.FirstFault}, inc.FirstFaultRivals...) {
		if e.Rank != nil {
			out = append(out, *e.Rank)
		}
		if e.KnownBy != "elimination" || len(e.Eliminated) == 0 {
			return []int{-1}
		}
	}
	slices.Sort(out)
	return out
}

// TestPublicDumps names the ranks of the injected faults from the dumps of 16 ranks alone,
// as pickles and as JSON, with group and collective.
func TestPublicDumps(t *testing.T) {
	dir := outside(t, "data/nccl_flight_recorder")
	for _, c := range []struct {
		job   string
		ranks []int
		says  []string // of each rank
		group [2]incident.Group
	}{
		{"gpu_error_1st", []int{12, 14},
			[]string{"rank 12 never enqueued", "rank 14 did not complete _all_gather_base, sequence number 42806, of TENSOR_MODEL_PARALLEL_GROUP (group 42), which it had enqueued and rank 15 completed"},
			[2]incident.Group{{Name: "41", Op: "_reduce_scatter_base", Missing: []int{12}}, {Name: "42", Op: "_all_gather_base", Behind: []int{14}}}},
		{"lock_gil_1st", []int{9, 14},
			[]string{"rank 9 never enqueued all_to_all, sequence number 45265, of EXPERT_MODEL_PARALLEL_GROUP (group 72)", "rank 14 never enqueued all_to_all"},
			[2]incident.Group{{Name: "37", Op: "_reduce_scatter_base", Missing: []int{9}}, {Name: "38", Op: "_reduce_scatter_base", Missing: []int{14}}}},
	} {
		t.Run(c.job, func(t *testing.T) {
			dumps, _ := filepath.Glob(filepath.Join(dir, c.job, "_dump_*"))
			if len(dumps) != 16 {
				t.Skipf("%d dumps are here, not 16", len(dumps))
			}
			inc := diagnose(t, dumps...)
			other := diagnose(t, asJSON(t, dumps)...)
			for form, inc := range map[string]*incident.Incident{"pickle": inc, "JSON": other} {
				if got := named(inc); !slices.Equal(got, c.ranks) {
					t.Errorf("%s: ranks %v are named, want %v", form, got, c.ranks)
					continue
				}
				for i, e := range append([]incident.Event{*inc.FirstFault}, inc.FirstFaultRivals...) {
					if !strings.Contains(e.Eliminated[0].Why, c.says[i]) || len(e.Eliminated[0].Spans) == 0 {
						t.Errorf("%s: %q does not say %q", form, e.Eliminated[0].Why, c.says[i])
					}
				}
				for _, want := range c.group {
					ok := false
					for _, g := range inc.Groups {
						ok = ok || g.Name == want.Name && g.Op == want.Op && slices.Equal(g.Missing, want.Missing) && slices.Equal(g.Behind, want.Behind)
					}
					if !ok {
						t.Errorf("%s: no group is %+v", form, want)
					}
				}
			}
			if a, b := groupsText(t, inc), groupsText(t, other); a != b || inc.FirstFaultBasis != other.FirstFaultBasis {
				t.Errorf("pickle and JSON differ:\n%s\n%s", a, b)
			}
		})
	}
}

func groupsText(t *testing.T, inc *incident.Incident) string {
	t.Helper()
	b, err := json.Marshal(inc.Groups)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// asJSON writes dumps in the form of PyTorch's dump_json: keys in order, numbers of
// pg_status as text, 0 for a time that is not known, no frames, no empty entries.
func asJSON(t *testing.T, dumps []string) []string {
	t.Helper()
	dir := t.TempDir()
	var out []string
	for _, name := range dumps {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := pickle.Read(bytes.NewReader(data), pickle.Options{})
		if err != nil {
			t.Fatal(err)
		}
		top := plainJSON(v, "").(map[string]any)
		if l, ok := top["entries"].([]any); ok && len(l) == 0 {
			delete(top, "entries")
		}
		text, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.Base(name)+".json")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

func plainJSON(v *pickle.Value, key string) any {
	switch v.Kind {
	case pickle.KindNone:
		return 0
	case pickle.KindBool:
		return v.Int != 0
	case pickle.KindInt:
		if strings.HasPrefix(key, "last_") {
			return strconv.FormatInt(v.Int, 10)
		}
		return v.Int
	case pickle.KindFloat:
		return v.Float()
	case pickle.KindList, pickle.KindTuple:
		out := []any{}
		for _, x := range v.Items {
			out = append(out, plainJSON(x, ""))
		}
		return out
	case pickle.KindDict:
		out := map[string]any{}
		for i := 0; i+1 < len(v.Items); i += 2 {
			if k := v.Items[i].Text; k != "frames" {
				out[k] = plainJSON(v.Items[i+1], k)
			}
		}
		return out
	}
	return v.Text
}

// TestGlooDumps reads dumps that PyTorch 2.15 wrote with Gloo on three processes, of which the
// last left out a call: states stay "scheduled", groups have no members.
func TestGlooDumps(t *testing.T) {
	for _, dir := range []string{"gloo", "gloo_json"} {
		dumps, _ := filepath.Glob("testdata/flightrec/" + dir + "/*_rank_*")
		inc := diagnose(t, dumps...)
		if got := named(inc); len(dumps) != 3 || !slices.Equal(got, []int{2}) || !strings.Contains(inc.FirstFaultBasis, "rank 2 never enqueued all_reduce, sequence number 4,") {
			t.Errorf("%s: ranks %v of %d dumps: %s", dir, got, len(dumps), inc.FirstFaultBasis)
		}
	}
}

// TestDumpsBesideLogs puts the dumps of a job in which rank 2 never came beside logs: what the
// run says itself counts first.
func TestDumpsBesideLogs(t *testing.T) {
	with := func(files map[string]string) *incident.Incident {
		t.Helper()
		all := map[string]string{}
		for name, text := range files {
			all[name] = text
		}
		dumps, _ := filepath.Glob("testdata/flightrec/never/_dump_*")
		for _, d := range dumps {
			data, err := os.ReadFile(d)
			if err != nil {
				t.Fatal(err)
			}
			all["dumps/"+filepath.Base(d)] = string(data)
		}
		return diagnose(t, job(t, all))
	}
	steps := "step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\n"
	for name, c := range map[string]struct {
		files       map[string]string
		kind, basis string
		rank        int
	}{
		"the waiting ranks' time-outs follow": {map[string]string{
			"rank0.log": steps + timedOut(0, 5, "08:50:13.208453123"), "rank1.log": steps + timedOut(1, 5, "08:50:13.218453123"), "rank3.log": steps + timedOut(3, 5, "08:50:13.228453123"), "rank2.log": steps},
			"unknown", "never enqueued all_reduce, sequence number 5", 2},
		"out of memory in its log leads": {map[string]string{
			"rank0.log": steps + timedOut(0, 5, "08:50:13.208453123"), "rank2.log": steps + "Traceback (most recent call last):\n  File \"/app/train.py\", line 3, in <module>\n    step()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"},
			"device_oom", "", 2},
		"a note beside the dumps is no output of the run": {map[string]string{"notes.log": "Rank 2, kind: stopped by hand\nstarted by operator\n"},
			"unknown", "never enqueued all_reduce, sequence number 5", 2},
		"a run that goes on and says nothing of it is not accused": {map[string]string{"rank0.log": steps, "rank1.log": steps, "rank2.log": steps, "rank3.log": steps},
			"", "", -1},
	} {
		inc := with(c.files)
		if c.kind == "" {
			if inc.FirstFault != nil {
				t.Errorf("%s: %s is claimed: %s", name, inc.FirstFault.Kind, inc.FirstFaultBasis)
			}
			continue
		}
		if f := inc.FirstFault; f == nil || f.Kind != c.kind || f.Rank == nil || *f.Rank != c.rank || !strings.Contains(inc.FirstFaultBasis, c.basis) {
			t.Errorf("%s: first fault %+v: %s", name, f, inc.FirstFaultBasis)
		}
		if len(inc.Groups) == 0 || !slices.Equal(inc.Groups[0].Missing, []int{2}) {
			t.Errorf("%s: groups %+v", name, inc.Groups)
		}
	}
}

// TestMonitoredBarrier takes the ranks from the words of the barrier.
func TestMonitoredBarrier(t *testing.T) {
	trace := "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/app/train.py\", line 9, in <module>\n[rank0]:     dist.monitored_barrier()\n"
	inc := log(t, "step 1 loss 2.5\n"+trace+"[rank0]: RuntimeError: [Rank 0]: Ranks 3, 6 failed to pass monitoredBarrier in 90000 ms\n")
	if got := named(inc); !slices.Equal(got, []int{3, 6}) || inc.FirstFaultStanding != incident.Undecidable {
		t.Errorf("ranks %v, %s: %s", got, inc.FirstFaultStanding, inc.FirstFaultBasis)
	}
	inc = log(t, "step 1 loss 2.5\n"+trace+"[rank0]: RuntimeError: Rank 2 failed to pass monitoredBarrier in 45000 ms\n")
	if got := named(inc); !slices.Equal(got, []int{2}) || inc.FirstFaultStanding != incident.Supported {
		t.Errorf("ranks %v, %s: %s", got, inc.FirstFaultStanding, inc.FirstFaultBasis)
	}
}

// TestDumpsOfTwoLaunches holds the dumps of two launches in two folders apart: the
// later ones count.
func TestDumpsOfTwoLaunches(t *testing.T) {
	dir := t.TempDir()
	for name, from := range map[string]string{"first": "finished", "second": "never"} {
		dumps, _ := filepath.Glob("testdata/flightrec/" + from + "/_dump_*")
		for _, d := range dumps {
			data, err := os.ReadFile(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name, filepath.Base(d)), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	inc := diagnose(t, dir)
	if got := named(inc); !slices.Equal(got, []int{2}) || !strings.Contains(inc.FirstFaultBasis, "sequence number 5") {
		t.Errorf("ranks %v: %s", got, inc.FirstFaultBasis)
	}
}
