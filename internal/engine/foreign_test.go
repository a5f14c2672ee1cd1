package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/evidencefile"
)

// evidenceOf writes an evidence file that holds one encoded record.
func evidenceOf(t testing.TB, dir string, record []byte) string {
	t.Helper()
	var b bytes.Buffer
	w, err := evidencefile.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Artifact("rank_0.log", record); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kept.inq")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func keptFault(kind evidence.Kind, host string) []byte {
	who := evidence.Who{Host: host, Rank: 0, LocalRank: evidence.None, Device: evidence.None}
	span := evidence.Span{Artifact: "rank_0.log", Kind: "text", Line: 3, Offset: 90, Length: 20}
	a := &evidencefile.Artifact{Artifact: evidence.Artifact{Path: "rank_0.log", Kind: "ranklog", Size: 200, Fate: "read"}, Read: true, Share: 1,
		Events: []evidence.Event{{Kind: kind, Who: who, Step: evidence.None, Text: "failed", Span: span}}}
	return a.Encode()
}

// TestForeignEvidence: a record that this program cannot weigh is named as such,
// and nothing of it reaches the incident.
func TestForeignEvidence(t *testing.T) {
	for _, record := range [][]byte{keptFault("quantum_fault", "node-1"), keptFault(evidence.DeviceOOM, "$(id)"), {1, 2, 3}} {
		inc, err := engine.Diagnose(context.Background(), options(t, evidenceOf(t, t.TempDir(), record)))
		if err != nil {
			t.Fatal(err)
		}
		if inc.FirstFault != nil || len(inc.Artifacts) != 1 || inc.Artifacts[0].Fate != "unreadable" || inc.Artifacts[0].Note == "" {
			t.Errorf("first fault %v, artifacts %+v", inc.FirstFault, inc.Artifacts)
		}
	}
}

// FuzzEvidence: no record of an evidence file makes the engine panic.
func FuzzEvidence(f *testing.F) {
	f.Add(keptFault(evidence.DeviceOOM, "node-1"))
	f.Add(keptFault("quantum_fault", "node-1"))
	f.Add(keptFault(evidence.Exited, "$(id)"))
	f.Fuzz(func(t *testing.T, record []byte) {
		if len(record) > 64<<10 {
			return
		}
		if _, err := engine.Diagnose(context.Background(), options(t, evidenceOf(t, t.TempDir(), record))); err != nil {
			t.Fatal(err)
		}
	})
}

// TestKeptSecrets: an evidence file holds no secret, not even one that the colours
// of a terminal cut in pieces.
func TestKeptSecrets(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "train.log")
	if err := os.WriteFile(log, []byte("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    f()\nRuntimeError: refused \x1b[31mhf_abcdefgZqXw\x1b[0mcdefghijklmnopqrst\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var kept bytes.Buffer
	if _, err := engine.Scan(context.Background(), options(t, log), "", "", &kept); err != nil {
		t.Fatal(err)
	}
	records := 0
	err := evidencefile.Read(&kept, func(*evidencefile.Scan) {}, func(_ evidencefile.Place, record []byte) {
		records++
		if bytes.Contains(record, []byte("ZqXw")) || !bytes.Contains(record, []byte("[masked]")) {
			t.Errorf("%q", record)
		}
	})
	if err != nil || records != 1 {
		t.Errorf("%d records, %v", records, err)
	}
}
