package kube_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/kube"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

var newReader = sync.OnceValues(func() (reader.Reader, error) {
	c, err := catalog.Load(os.DirFS("../../../encyclopedia"))
	if err != nil {
		return nil, err
	}
	return kube.New(ranklog.New(c.Plan())), nil
})

func theReader(t testing.TB) reader.Reader {
	t.Helper()
	r, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(t), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	r := theReader(t)
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"pod.json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {`, reader.Sure},
		{"pod.json", `{"kind":"PodList","apiVersion":"v1","items":[`, reader.Sure},
		{"job.yaml", "apiVersion: batch/v1\r\nkind: Job\r\nmetadata:\r\n", reader.Sure},
		{"list.yaml", "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n", reader.Sure},
		{"pods.txt", "NAME    READY   STATUS    RESTARTS   AGE\nx-0     0/1     Error     0          3m\n", reader.Sure},
		{"ev.txt", "$ kubectl get events\nLAST SEEN   TYPE      REASON   OBJECT   MESSAGE\n", reader.Sure},
		{"d.txt", "Name:         x-0\nNamespace:    ml\nPriority:     0\n", reader.Sure},
		{"service.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n", reader.No},
		{"cfg.json", `{"apiVersion": "v1", "kind": "Config", "clusters": []}`, reader.No},
		{"wandb.yaml", "kind: Pod\nlr: 0.1\n", reader.No},
		{"train.log", "Name: resnet\nNamespace: x\nepoch 1\n", reader.No},
		{"train.log", "2026-06-01T10:00:00Z stdout F step 1 loss 2.0\n", reader.No},
		{"sacct.txt", "JobID|State|ExitCode\n1|FAILED|1:0\n", reader.No},
		{"ps.txt", "USER PID COMMAND\nada 7 sleep\n", reader.No},
		{"empty", "", reader.No},
	} {
		if got := r.Sniff(evidence.Artifact{Path: c.name}, []byte(c.head)); got != c.want {
			t.Errorf("%s %q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// list lists kinds, variants, hosts, ranks and starts of what is said to have
// happened.
func list(c *reader.Collector) string {
	var b strings.Builder
	for _, e := range c.Events {
		if evidence.SpecOf(e.Kind).Role == evidence.RoleContext {
			continue
		}
		fmt.Fprintf(&b, "%s %s host=%s rank=%d %s\n", e.Kind, e.Attrs.Str("what"), e.Who.Host, e.Who.Rank, e.Who.Attempt)
	}
	return b.String()
}

// TestForms: JSON on several lines and on one, JSON without kinds, YAML and the
// description of the same pods say the same.
func TestForms(t *testing.T) {
	r := theReader(t)
	read := func(name, text string) string {
		c, err := readertest.Read(context.Background(), r, nil, name, []byte(text))
		if err != nil || len(c.Damages) > 0 {
			t.Fatalf("%s: %v, %v", name, err, c.Damages)
		}
		return list(c)
	}
	data, err := os.ReadFile("testdata/pods.json")
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	want := read("pods.json", string(data))
	if strings.Count(want, "host_oom_sched") != 1 || !strings.Contains(want, "host_oom_sched kubernetes host=fit-worker-2 rank=2") {
		t.Fatalf("got\n%s", want)
	}
	short, _ := json.Marshal(v)
	if got := read("short.json", string(short)); got != want {
		t.Errorf("on one line:\n%s", got)
	}
	v["kind"] = "PodList"
	var each strings.Builder
	for _, x := range v["items"].([]any) {
		one, _ := json.Marshal(x)
		each.Write(append(one, '\n'))
		delete(x.(map[string]any), "kind")
	}
	if got := read("each.json", each.String()); got != want {
		t.Errorf("one object on each line:\n%s", got)
	}
	short, _ = json.Marshal(v)
	if got := read("bare.json", string(short)); got != want {
		t.Errorf("without kinds:\n%s", got)
	}
	two, err := yaml.JSONToYAML(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := read("pods.yaml", string(two)); got != want {
		t.Errorf("YAML:\n%s", got)
	}
}

// TestLongList: pods of a large job are read within bounds, and none is lost.
func TestLongList(t *testing.T) {
	data, err := os.ReadFile("testdata/pods.json")
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	items := v["items"].([]any)
	one, _ := json.Marshal(items[2])
	var all []string
	for i := range 1024 {
		all = append(all, strings.ReplaceAll(string(one), "fit-worker-2", fmt.Sprintf("fit-worker-%d", i)))
	}
	text := `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(all, ",") + `]}`
	c, err := readertest.Read(context.Background(), theReader(t), nil, "pods.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(list(c), "host_oom_sched"); n != 1024 || c.Dropped.Events > 0 {
		t.Errorf("%d pods killed, %d events dropped", n, c.Dropped.Events)
	}
}

// TestPublicFiles reads public files of Kubernetes and compares what is found with
// a dump that holds kinds, values and places, and none of their text.
func TestPublicFiles(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/data/kubernetes/*")
	if len(files) == 0 {
		t.Skip("no folder of public files beside the repository")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		if theReader(t).Sniff(evidence.Artifact{Path: base}, data[:min(len(data), 4096)]) != reader.Sure {
			t.Errorf("%s is not recognised", base)
		}
		c, err := readertest.Read(context.Background(), theReader(t), nil, base, data)
		if err != nil {
			t.Fatalf("%s: %v", base, err)
		}
		for i := range c.Events {
			c.Events[i].Text = ""
		}
		got := readertest.Dump(c)
		golden := filepath.Join("testdata", "public", strings.TrimSuffix(base, filepath.Ext(base))+".events")
		if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", base, got, want)
		}
		if len(c.Damages) > 0 {
			t.Errorf("%s: %v", base, c.Damages)
		}
		// Each status, condition and event is accounted for.
		text := string(data)
		var states, conditions, rows int
		for _, e := range c.Events {
			switch e.Kind {
			case evidence.JobRecord:
				states++
			case evidence.JobEvent:
				if e.Attrs["count"].Valid() || !strings.Contains(e.Attrs.Str("state"), "=") {
					rows++
				} else {
					conditions++
				}
			}
		}
		if n := strings.Count(text, "   Normal  ") + strings.Count(text, "   Warning  ") + strings.Count(text, "\n  Normal  "); n != rows {
			t.Errorf("%s: %d rows of events, %d found", base, n, rows)
		}
		if n := strings.Count(text, `"lastTransitionTime"`); n != conditions {
			t.Errorf("%s: %d conditions, %d found", base, n, conditions)
		}
		if n := strings.Count(text, `"restartCount"`) + strings.Count(text, `"phase"`) + strings.Count(text, "Pods Statuses:"); n != states {
			t.Errorf("%s: %d states, %d found", base, n, states)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, name := range files {
		if ext := filepath.Ext(name); ext == ".events" || ext == ".md" {
			continue
		}
		if data, err := os.ReadFile(name); err == nil {
			f.Add(string(data))
		}
	}
	r := theReader(f)
	f.Fuzz(func(t *testing.T, text string) {
		r.Sniff(evidence.Artifact{Path: "x"}, []byte(text))
		c, err := readertest.Read(context.Background(), r, nil, "x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
			if e.Who.Rank < evidence.None {
				t.Fatalf("rank %d", e.Who.Rank)
			}
		}
	})
}
