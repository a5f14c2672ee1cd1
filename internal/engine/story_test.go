package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/testkit/genjob"
)

// storyOf diagnoses a folder of files with its timeline and must not fail.
func storyOf(t testing.TB, files map[string]string, most int) (*incident.Incident, *incident.Timeline) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t, dir)
	o.Roots = []string{dir}
	inc, tl, err := engine.DiagnoseTimeline(context.Background(), o, most)
	if err != nil {
		t.Fatal(err)
	}
	checkStory(t, inc, tl, most)
	return inc, tl
}

// checkStory holds what is true of every timeline.
func checkStory(t testing.TB, inc *incident.Incident, tl *incident.Timeline, most int) {
	t.Helper()
	if len(tl.Events) > most || tl.Total < len(tl.Events) {
		t.Errorf("%d of %d events, at most %d", len(tl.Events), tl.Total, most)
	}
	dropped := 0
	for _, n := range tl.Dropped {
		dropped += n
	}
	if dropped+len(tl.Events) != tl.Total {
		t.Errorf("%d events and %d dropped are not %d", len(tl.Events), dropped, tl.Total)
	}
	sum, order := 0, map[string]int{}
	for i, a := range tl.Attempts {
		sum += a.Events
		order[a.ID] = i
		if !slices.IsSorted(a.Ranks) {
			t.Errorf("ranks %v", a.Ranks)
		}
	}
	if sum != tl.Total || len(tl.Attempts) != len(inc.Attempts) {
		t.Errorf("attempts have %d events of %d; %d attempts of %d", sum, tl.Total, len(tl.Attempts), len(inc.Attempts))
	}
	last, at := -1, 0
	first := map[string]int{}
	type process struct {
		artifact string
		rank     int
	}
	place := map[process]int64{}
	for i, e := range tl.Events {
		if e.N <= last || order[e.Attempt] < at {
			t.Errorf("event %d is number %d of attempt %s, behind %d", i, e.N, e.Attempt, last)
		}
		if order[e.Attempt] > at {
			clear(place)
		}
		last, at = e.N, order[e.Attempt]
		if e.Role == incident.RoleFirst {
			first[e.Attempt]++
		}
		if (e.Role != incident.RoleOther) != (e.Why != "") && e.Role != incident.RoleOther {
			t.Errorf("%s is %s for no reason", e.ID, e.Role)
		}
		if e.Span != nil && e.Span.Kind == "text" && e.Rank != nil && e.Span.Index == 0 {
			p := process{e.Span.Artifact, *e.Rank}
			if e.Span.Offset < place[p] {
				t.Errorf("%s of %s stands behind what comes after it in its file", e.ID, e.Span.Artifact)
			}
			place[p] = e.Span.Offset
		}
	}
	for i := range inc.Attempts {
		a := &inc.Attempts[i]
		if want := a.FirstFault != nil; most > 200 && want != (first[a.ID] == 1) {
			t.Errorf("attempt %s has %d first faults", a.ID, first[a.ID])
		}
	}
	if b, err := json.Marshal(tl); err != nil || strings.Contains(string(b), "null,\"ranks\"") {
		t.Errorf("%v", err)
	}
}

const oomLine = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.50 GiB of which 1.25 GiB is free.\n"

func timeoutLine(rank int, at string) string {
	return fmt.Sprintf("[rank%d]:[E%s ProcessGroupNCCL.cpp:629] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n", rank, at, rank)
}

// roles lists the events as kind, rank and role, in order.
func roles(tl *incident.Timeline) []string {
	var out []string
	for _, e := range tl.Events {
		rank := "-"
		if e.Rank != nil {
			rank = fmt.Sprint(*e.Rank)
		}
		s := e.Kind + " " + rank + " " + e.Role
		if e.Apart {
			s += " apart"
		}
		out = append(out, s)
	}
	return out
}

func TestTimelineOfRanks(t *testing.T) {
	_, tl := storyOf(t, map[string]string{
		"rank_0.log": "2026-01-05 10:00:01 step 8 loss 2.5\n2026-01-05 10:00:02 step 9 loss 2.4\n" + timeoutLine(0, "0105 10:10:05.000000"),
		"rank_1.log": "2026-01-05 10:00:01 step 8 loss 2.5\n2026-01-05 10:00:02 step 9 loss 2.4\n2026-01-05 10:00:03 ERROR " + oomLine,
		"rank_2.log": "2026-01-05 10:00:01 step 8 loss 2.5\n2026-01-05 10:00:02 step 9 loss 2.4\n" + timeoutLine(2, "0105 10:10:04.000000"),
	}, 1000)
	want := []string{"last_good 0 last_good", "device_oom 1 first", "collective_timeout 2 followed", "collective_timeout 0 followed"}
	got := roles(tl)
	for i := range got {
		got[i] = strings.TrimSuffix(got[i], " apart")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", roles(tl))
	}
	for _, e := range tl.Events {
		if e.Role == incident.RoleFollowed && !strings.Contains(e.Why, "others-wait") {
			t.Errorf("%s followed because %q", e.ID, e.Why)
		}
	}
	if g := tl.Events[0]; g.Span == nil || g.Span.Line != 2 || !strings.Contains(g.Span.Quote, "step 9") || g.Text != "step 9, loss 2.4" {
		t.Errorf("last good %+v", g)
	}
}

// TestTimelineOfAttempts has a failure that the first launch recovered from, another that ended
// it, and a launch that finished.
func TestTimelineOfAttempts(t *testing.T) {
	launch := "+ torchrun --nproc-per-node 1 train.py\n"
	_, tl := storyOf(t, map[string]string{"job.log": launch + "step 1 loss 2.5\n" + oomLine + "WARNING: ran out of memory, retrying batch\nstep 2 loss 2.4\nstep 3 loss 2.3\nstep 4 loss 2.2\nTraceback (most recent call last):\n  File \"train.py\", line 9, in main\n    load(shard)\nValueError: bad shard\n" +
		launch + "step 1 loss 2.5\nstep 2 loss 2.4\nTraining completed.\n"}, 1000)
	if len(tl.Attempts) != 2 || tl.Attempts[0].Outcome != incident.Failed {
		t.Fatalf("attempts %+v of %q", tl.Attempts, roles(tl))
	}
	all := strings.Join(roles(tl), "; ")
	if !strings.Contains(all, "device_oom - recovered") || !strings.Contains(all, "exception - first") {
		t.Errorf("%s", all)
	}
}

func TestTimelineWithoutOrder(t *testing.T) {
	_, tl := storyOf(t, map[string]string{"hostA/worker.log": "step 1 loss 2.5\nRuntimeError: CUDA error: an illegal memory access was encountered\n", "hostB/worker.log": "step 1 loss 2.5\n" + oomLine}, 1000)
	apart, rival := 0, 0
	for _, e := range tl.Events {
		if e.Apart {
			apart++
		}
		if e.Role == incident.RoleRival {
			rival++
			if !strings.HasPrefix(e.Why, "not ordered against the first fault: ") {
				t.Errorf("why %q", e.Why)
			}
		}
	}
	if apart == 0 || rival != 1 {
		t.Errorf("%q", roles(tl))
	}
}

// TestTimelineIsBounded takes out what says least first, and says what.
func TestTimelineIsBounded(t *testing.T) {
	files := map[string]string{}
	for r := range 64 {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, "2026-01-05 10:00:%02d step %d loss 2.5\n", i, i)
			fmt.Fprintf(&b, "2026-01-05 10:00:%02d Saving model checkpoint to out/checkpoint-%d\n", i, i)
		}
		if r == 7 {
			b.WriteString("2026-01-05 10:01:00 ERROR " + oomLine)
		} else {
			b.WriteString(timeoutLine(r, "0105 10:11:00.000000"))
		}
		files[fmt.Sprintf("rank_%d.log", r)] = b.String()
	}
	_, whole := storyOf(t, files, 1<<20)
	if len(whole.Events) != whole.Total || len(whole.Dropped) != 0 {
		t.Errorf("%d of %d events without a bound", len(whole.Events), whole.Total)
	}
	for _, most := range []int{0, 3, 66, 200} {
		inc, tl := storyOf(t, files, most)
		if len(tl.Events) != min(most, tl.Total) {
			t.Errorf("%d events where %d are allowed of %d", len(tl.Events), most, tl.Total)
		}
		if most > 0 && !slices.ContainsFunc(tl.Events, func(e incident.TimelineEvent) bool { return e.Role == incident.RoleFirst && e.ID == inc.FirstFault.ID }) {
			t.Errorf("no first fault among %d", most)
		}
		if most >= 200 {
			followed := 0
			for _, e := range tl.Events {
				if e.Role == incident.RoleFollowed {
					followed++
				}
			}
			if followed != 63 || tl.Dropped["collective_timeout"] != 0 {
				t.Errorf("%d of 63 that followed are among %d; dropped %v", followed, most, tl.Dropped)
			}
		}
		if most != 66 {
			continue
		}
		_, again := storyOf(t, files, most)
		a, _ := json.Marshal(tl)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Errorf("with %d events two timelines of one job differ", most)
		}
	}
}

// TestTimelineHoldsNoSecret masks and cleans what logs say.
func TestTimelineHoldsNoSecret(t *testing.T) {
	_, tl := storyOf(t, map[string]string{"rank_0.log": "step 1 loss 2.5\nValueError: \x1b[31mtoken=hf_" + strings.Repeat("aBcD3fGh", 5) + " \u202e refused " + strings.Repeat("x", 5000) + "\n"}, 100)
	for _, e := range tl.Events {
		if strings.Contains(e.Text, "aBcD") || strings.ContainsAny(e.Text, "\x1b\u202e") || len(e.Text) > 500 {
			t.Errorf("%q", e.Text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := engine.DiagnoseTimeline(ctx, options(t, t.TempDir()), 10); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestTimelineOfAThousandRanks folds what a job of a thousand ranks with a million lines that
// tell of something says.
func TestTimelineOfAThousandRanks(t *testing.T) {
	ranks, lines := 1024, 1000
	if testing.Short() {
		ranks, lines = 64, 100
	}
	files := map[string]string{}
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "2026-01-05 10:%02d:%02d Saving model checkpoint to out/checkpoint-%d\n", i/60, i%60, i)
	}
	for r := range ranks {
		files[fmt.Sprintf("rank_%d.log", r)] = b.String() + timeoutLine(r, "0105 10:30:00.000000")
	}
	files["rank_9.log"] = b.String() + "2026-01-05 10:20:00 ERROR " + oomLine
	_, tl := storyOf(t, files, 5000)
	if len(tl.Attempts) != 1 || len(tl.Attempts[0].Ranks) != ranks || tl.Total < 2*ranks {
		t.Errorf("%d attempts, %d events", len(tl.Attempts), tl.Total)
	}
	followed := 0
	for _, e := range tl.Events {
		if e.Role == incident.RoleFollowed {
			followed++
		}
	}
	if followed != ranks-1 {
		t.Errorf("%d ranks followed", followed)
	}
}

// TestTimelineWithoutWords has a first fault that left none.
func TestTimelineWithoutWords(t *testing.T) {
	files := map[string]string{}
	for r := range 4 {
		files[fmt.Sprintf("rank_%d.log", r)] = "2026-01-05 10:00:01 world_size=4 rank=" + fmt.Sprint(r) + "\n2026-01-05 10:00:02 step 9 loss 2.4\n"
		if r != 2 {
			files[fmt.Sprintf("rank_%d.log", r)] += timeoutLine(r, "0105 10:10:05.000000")
		}
	}
	inc, tl := storyOf(t, files, 1000)
	if inc.FirstFault == nil || inc.FirstFault.KnownBy != "elimination" {
		t.Fatalf("the first fault is %+v", inc.FirstFault)
	}
	at := slices.IndexFunc(tl.Events, func(e incident.TimelineEvent) bool { return e.Role == incident.RoleFirst })
	if at < 0 || tl.Events[at].KnownBy != "elimination" || len(tl.Events[at].Eliminated) == 0 {
		t.Fatalf("%q", roles(tl))
	}
	for i, e := range tl.Events {
		if (e.Role == incident.RoleFollowed) != (i > at) && e.Role != incident.RoleLastGood {
			t.Errorf("%q", roles(tl))
			break
		}
	}
}

// TestTimelineOfGeneratedJobs holds what is true of every timeline for jobs whose truth is known:
// what led stands before all that only followed from it, unless a clock says otherwise.
func TestTimelineOfGeneratedJobs(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 10
	}
	for i := range n {
		j := genjob.New(fmt.Sprintf("timeline %d", i), 8, 8, 8, 64)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := job(t, j.Files)
			inc, tl, err := engine.DiagnoseTimeline(t.Context(), options(t, dir), 1<<16)
			if err != nil {
				t.Fatal(err)
			}
			checkStory(t, inc, tl, 1<<16)
			lead := map[string]int{}
			for n, e := range tl.Events {
				if e.Role == incident.RoleFirst {
					lead[e.ID] = n
				}
			}
			for n, e := range tl.Events {
				if _, by, ok := strings.Cut(e.Why, ", by "); ok && e.Role == incident.RoleFollowed && e.Apart {
					if at, is := lead[strings.TrimSuffix(by, ")")]; is && n < at {
						t.Errorf("%s (%s) stands before %s, which explains it, and nothing orders the two", e.ID, e.Kind, by)
					}
				}
			}
		})
	}
}
