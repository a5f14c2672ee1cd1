package slurm

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"x.sh", "#!/bin/bash\n#SBATCH --mem=4G\nsrun x\n", reader.Sure},
		{"x.sh", "#!/bin/bash\npython x.py\n", reader.No},
		{"slurm-1.out", "JobID|State\n1|FAILED\nepoch 1\nloss 2\nloss 3\n", reader.No},
		{"slurm-1.out", "slurmstepd: error: *** JOB 1 ON n CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n", reader.No},
		{"ctld.log", strings.Repeat("[2026-06-01T12:09:58.413] error: Nodes vg08 not responding\n", 100), reader.Sure},
		{"train.log", strings.Repeat("[2026-06-01 12:09:58,413] step 4 loss 2.1\n", 100), reader.No},
		{"a.json", `{"meta": {"plugin": {}, "Slurm": {"version": {}}}, "jobs": []}`, reader.Sure},
		{"a.json", `{"jobs": 3, "note": "Slurm"}`, reader.No},
		{"free.txt", "              total        used        free\nMem: 1 2 3\n", reader.No},
		{"empty", "", reader.No},
	} {
		if got := New().Sniff(evidence.Artifact{Path: c.name}, []byte(c.head)); got != c.want {
			t.Errorf("%s %.40q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// read reads text as the artifact name of job.
func read(t *testing.T, name, job, text string) *reader.Collector {
	t.Helper()
	c := reader.NewCollector()
	err := New().Read(context.Background(), input(name, job, text), c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kindsOf lists what is said to have happened.
func kindsOf(c *reader.Collector) string {
	var out []string
	for _, e := range c.Events {
		if evidence.SpecOf(e.Kind).Role != evidence.RoleContext {
			out = append(out, string(e.Kind)+" "+e.Attrs.Str("what"))
		}
	}
	return strings.Join(out, ", ")
}

// TestWhose: of a table of several jobs, and of a cluster's log, only what is
// known to be about the artifact's own job is how that ended.
func TestWhose(t *testing.T) {
	for _, c := range []struct{ file, job, want string }{
		{"sacct_several.txt", "", ""},
		{"sacct_several.txt", "7201", "time_limit slurm"},
		{"sacct_several.txt", "7202", "cancelled slurm-user"},
		{"sacct_several.txt", "7299", ""},
		{"slurmctld.log", "", ""},
		{"slurmctld.log", "4390", "time_limit slurm"},
		{"slurmctld.log", "4413", "node_failure slurm, node_failure slurm"},
		{"slurmctld.log", "4410_3", "node_failure slurm"},
		{"slurmctld.log", "4391", "process_exit slurm"},
		{"slurmctld.log", "4392", "host_oom_sched slurm-state"},
		{"slurmctld.log", "4393", "preempted slurm-preemption"},
		{"sacct_parsable.txt", "7100_3", "host_oom_sched slurm-state"},
		{"sacct_requeued.txt", "6001", "time_limit slurm"},
		{"lists.txt", "", "preempted slurm-preemption"}, // of seff, which is about one job
		{"lists.txt", "4410_4", ""},
	} {
		text, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(read(t, c.file, c.job, string(text))); got != c.want {
			t.Errorf("%s of job %q: %q, want %q", c.file, c.job, got, c.want)
		}
	}
}

// TestOtherJob: the memory of another job is not this one's.
func TestOtherJob(t *testing.T) {
	for _, e := range read(t, "sacct.txt", "1", "JobID|State|MaxRSS|ReqMem\n2|RUNNING|5G|6G\n").Events {
		if e.Attrs["max_rss"].Valid() || e.Attrs["req_mem"].Valid() {
			t.Errorf("%+v", e)
		}
	}
}

func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"node[001-004,7]":   "node001 node002 node003 node004 node7",
		"a1,b[2-3]-ib,c":    "a1 b2-ib b3-ib c",
		"r[1-2]n[09-10]":    "r1n09 r1n10 r2n09 r2n10",
		"n[1-4096]x[1-9]":   "",
		"n[1-5000]":         "",
		"n[2-1]":            "",
		"n[1-2":             "",
		"None assigned":     "",
		"(null)":            "",
		"":                  "",
		"n]":                "",
		"vg[07-+":           "",
		"n[99999999999-1]":  "",
		"x[1-2],,":          "",
		"a[1-2][1-2][1][1]": "a1111 a1211 a2111 a2211",
	} {
		got, ok := hosts(list)
		if strings.Join(got, " ") != want || ok != (want != "") {
			t.Errorf("hosts(%q) = %v, %v, want %q", list, got, ok, want)
		}
	}
}

// TestEnviron: ranks get hosts only where the environment leaves nothing open.
func TestEnviron(t *testing.T) {
	text, err := os.ReadFile("testdata/environ.txt")
	if err != nil {
		t.Fatal(err)
	}
	ranks := func(text string) int {
		n := 0
		for _, e := range read(t, "env.txt", "", text).Events {
			if e.Kind == evidence.RankInfo {
				n++
			}
		}
		return n
	}
	if n := ranks(string(text)); n != 12 {
		t.Errorf("%d ranks, want 12", n)
	}
	for _, change := range [][2]string{{"=block", "=cyclic"}, {"SLURM_DISTRIBUTION=block\n", ""}, {"NTASKS=12", "NTASKS=13"}, {"4(x3)", "4(x2)"}, {"4(x3)", "999999(x999999)"}, {"ON_NODE=4", "ON_NODE=8"}, {"rk[01-03]", "rk[01-0"}} {
		if n := ranks(strings.Replace(string(text), change[0], change[1], 1)); n != 0 {
			t.Errorf("%q for %q: %d ranks", change[1], change[0], n)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string][2]int64{
		"64G": {64 << 30, 64 << 30}, "204800Mn": {200 << 30, 200 << 30}, "16": {16 << 20, 16 << 20}, "0": {0, 0}, "1.5T": {3 << 39, 3 << 39}, "62.00 GB": {62 << 30, 62 << 30},
	} {
		if v, ok := size(text, mib, false); !ok || v.Lo != want[0] || v.Hi != want[1] {
			t.Errorf("size(%q) = %+v, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "G", "1.2.3G", "5X", "99999999999T", "1e9", "-4G"} {
		if v, ok := size(text, mib, false); ok {
			t.Errorf("size(%q) = %+v", text, v)
		}
	}
	if v, _ := size("66060288K", 1, true); v.Lo != 66060288<<10 || v.Hi != 66060288<<10+1023 {
		t.Errorf("a measured size is %+v", v)
	}
	if v, ok := size("0.1", 1, true); !ok || v.Lo != 0 || v.Hi != 1 {
		t.Errorf("a tenth of a byte is %+v", v)
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".events") && !strings.HasSuffix(name, ".md") {
			f.Add(string(data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		New().Sniff(evidence.Artifact{Path: "x.txt"}, []byte(text))
		c, err := readertest.Read(context.Background(), New(), nil, "x.txt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
			for _, v := range e.Attrs {
				if v.T == evidence.Size && (v.Lo < 0 || v.Hi < v.Lo) {
					t.Fatalf("size %d..%d", v.Lo, v.Hi)
				}
			}
		}
	})
}

func input(name, job, text string) reader.Input {
	return reader.Input{
		Artifact: evidence.Artifact{Path: name, Owner: evidence.Owner{Job: job, Rank: evidence.None, LocalRank: evidence.None}},
		Open:     func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		Size:     int64(len(text)),
	}
}
