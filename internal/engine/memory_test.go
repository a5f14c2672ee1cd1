package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

func memoryOf(t *testing.T, mo engine.MemoryOptions, paths ...string) *incident.Memory {
	t.Helper()
	m, err := engine.Memory(context.Background(), options(t, paths...), mo)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMemory: files of a folder in the order of their paths, with rank and host by their
// names; what is no snapshot is named; one that is broken beside them takes nothing away.
func TestMemory(t *testing.T) {
	dir := laid(t, map[string]string{
		"b/rank_1.pickle": file("optimizer-first-step", "snapshot"),
		"b/rank_0.pickle": file("retained-graph", "snapshot"),
		"b/train.log":     file("retained-graph", "log"),
	})
	m := memoryOf(t, engine.MemoryOptions{}, dir)
	if len(m.Snapshots) != 2 || *m.Snapshots[0].Rank != 0 || *m.Snapshots[1].Rank != 1 || !strings.HasSuffix(m.Snapshots[0].Artifact, "b/rank_0.pickle") {
		t.Fatalf("%+v", m.Snapshots)
	}
	if m.Ranks == nil || len(m.Ranks.Rows) != 2 || m.Change != nil {
		t.Errorf("ranks %+v, change %+v", m.Ranks, m.Change)
	}
	if len(m.Limits) != 1 || !strings.Contains(m.Limits[0].Text, "1 other file") {
		t.Errorf("limits %+v", m.Limits)
	}
	for _, a := range m.Artifacts {
		if a.Fate != "read" || a.Digest == "" || a.Kind != "memsnap" {
			t.Errorf("%+v", a)
		}
	}
	if m := memoryOf(t, engine.MemoryOptions{}, file("retained-graph", "log")); len(m.Snapshots) != 0 || len(m.Limits) != 1 || !strings.Contains(m.Limits[0].Text, "is no memory snapshot") {
		t.Errorf("a log: %+v", m)
	}
	if _, err := engine.Memory(context.Background(), options(t, filepath.Join(dir, "gone")), engine.MemoryOptions{}); err == nil {
		t.Error("a path that does not exist is no error")
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := engine.Memory(ctx, options(t, dir), engine.MemoryOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestMemorySecrets: a secret in the name of a file or a function is masked wherever it
// would be shown.
func TestMemorySecrets(t *testing.T) {
	secret := "hf_" + strings.Repeat("aB3", 10)
	path := rewritten(t, "retained-graph", func(m *evidence.MemSnapshot) {
		for i := range m.Frames {
			m.Frames[i].Name = "f_" + secret + m.Frames[i].Name
			m.Frames[i].File = "/home/u/" + secret + "\x1b[31m/train.py"
		}
		m.Settings.Conf = "token:" + secret
	})
	b, err := json.Marshal(memoryOf(t, engine.MemoryOptions{Buckets: 10, Largest: 10}, path))
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(string(b), secret); i >= 0 {
		t.Errorf("a secret is shown: %s", b[max(0, i-80):i+len(secret)])
	}
	if strings.Contains(string(b), `\u001b`) {
		t.Error("a control character is in the result")
	}
}
