package history_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/history"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, history.New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"x.json", "{\n \"log_history\": [", reader.Sure},
		{"trainer_state.json", "{\"best_metric\": null, \"global_step\": 5,", reader.Sure},
		{"h.jsonl", "{\"step\": 1, \"loss\": 2.5}\n", reader.Sure},
		{"h.jsonl", "{\"loss\": 2.5}\n", reader.Likely},
		{"h.txt", "{\"loss\": 2.5}\n", reader.No},
		{"metrics.csv", "epoch,step,train_loss\n", reader.Sure},
		{"a.csv", "name,step\n", reader.Likely},
		{"job.log", "step 1, loss 2.5, lr 3\n", reader.No},
		{"job.log", "{'loss': 0.5, 'epoch': 0.1}\n", reader.No},
		{"c.log", "{\"log\":\"step 1 loss 2\\n\",\"stream\":\"stdout\"}\n", reader.No},
		{"config.json", "{\n  \"step\": 1,\n  \"loss\": 2.5,\n \"x\": {\n\"y\": 1}}\n", reader.No},
		{"wide.csv", ("step,train_loss" + strings.Repeat(",train/group/loss", 400))[:4096], reader.Sure},
		{"wide.csv", ("name,text" + strings.Repeat(",a word", 800))[:4096], reader.No},
		{"wide.log", ("step,train_loss" + strings.Repeat(",train/group/loss", 400))[:4096], reader.No},
		{"wide.jsonl", ("{\"step\": 1" + strings.Repeat(", \"train/group/loss\": 0.5", 400))[:4096], reader.Sure},
		{"smi.csv", "timestamp, index, memory.used [MiB]\n", reader.No},
		{"empty", "", reader.No},
	} {
		if got := history.New().Sniff(evidence.Artifact{Path: c.name}, []byte(c.head)); got != c.want {
			t.Errorf("%s %.200q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// Public files, read whole without damage and with the counts that their own
// last step implies.
func TestPublicFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "data")
	files, _ := filepath.Glob(filepath.Join(root, "trainer_state", "*.json"))
	more, _ := filepath.Glob(filepath.Join(root, "lightning_csv", "*.csv"))
	files = append(files, more...)
	if len(files) == 0 {
		t.Skip("no folder of public files beside the repository")
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		a := evidence.Artifact{Path: filepath.Base(f)}
		if got := history.New().Sniff(a, data[:min(len(data), 4096)]); got != reader.Sure {
			t.Errorf("%s: confidence %d", f, got)
		}
		c := reader.NewCollector()
		err = history.New().Read(context.Background(), reader.Input{Artifact: a, Open: func() (io.ReadCloser, error) { return os.Open(f) }, Size: int64(len(data))}, c)
		if err != nil {
			t.Errorf("%s: %v", f, err)
		}
		out := string(readertest.Dump(c))
		if len(c.Damages) > 0 || !strings.Contains(out, "loss") {
			t.Errorf("%s: got\n%s", f, out)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"{\"log_history\": [{\"loss\": NaN, \"step\": 1}, {\"loss\": 0.0, \"step\": 2}]}", "{\"step\": 1, \"loss\": 'inf'}\n{'step': 2, 'loss': nan}\n", "step,loss\n1,nan\n2,\n", "\"Step\";\"a - loss\"\n1;2\n",
		"{\"a\":[[[{", "{\"step\":1,\"loss\":\"\\\"", "Wall time,Step,Value\n1,2,nan\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readertest.Read(context.Background(), history.New(), nil, "x.jsonl", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
		}
	})
}
