package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// enough ends a watch after so many writes.
type enough struct {
	bytes.Buffer
	left int
	stop func()
}

func (w *enough) Write(p []byte) (int, error) {
	if w.left--; w.left == 0 {
		w.stop()
	}
	return w.Buffer.Write(p)
}

// TestWatchGPUs: into a pipe, each answer is one line of JSON or one block of text.
func TestWatchGPUs(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		ctx, stop := context.WithCancel(context.Background())
		out := &enough{left: 3, stop: stop}
		g := &gpusFlags{output: output{format: format, width: 80}}
		if err := (&app{out: out}).watchGPUs(ctx, g, time.Millisecond); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", format, err)
		}
		if format == "json" {
			dec := json.NewDecoder(&out.Buffer)
			n := 0
			for ; dec.More(); n++ {
				var h incident.Holders
				if err := dec.Decode(&h); err != nil || h.Schema != incident.HoldersSchema {
					t.Fatalf("%v, schema %q", err, h.Schema)
				}
			}
			if n != 3 {
				t.Errorf("%d answers", n)
			}
			continue
		}
		if n := len(strings.Split(out.String(), "\n\n20")); n != 3 || strings.ContainsRune(out.String(), '\x1b') {
			t.Errorf("%d blocks: %q", n, out.String())
		}
	}
}

// TestWatchEndsWithItsReader: a reader that has gone ends it.
func TestWatchEndsWithItsReader(t *testing.T) {
	err := (&app{out: broken{}}).watchGPUs(context.Background(), &gpusFlags{output: output{format: "text", width: 80}}, time.Millisecond)
	if !errors.Is(err, errWrite) {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestInPlace(t *testing.T) {
	if got := string(inPlace("a\nb\nc\n", 3, false)); got != "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J" {
		t.Errorf("%q", got)
	}
	if got := string(inPlace("a\n", 24, true)); !strings.HasPrefix(got, "\x1b[2J\x1b[H") {
		t.Errorf("%q", got)
	}
}
