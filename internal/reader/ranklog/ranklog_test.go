package ranklog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

// plan is a small stand-in for the encyclopedia's lines.
var plan = evidence.Plan{Wordings: []evidence.Wording{
	{ID: "test/banner", Kind: evidence.LaunchMark, Literal: "***** Running training *****", Attrs: evidence.Attrs{"what": evidence.TextOf("banner")}},
	{ID: "test/timeout", Kind: evidence.CollTimeout, Literal: "Watchdog caught collective", Join: 4,
		Regexp: `Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<seq>-?\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<numel_in>\d+), NumelOut=\d+)?, Timeout\(ms\)=(?P<timeout_ms>\d+)\) ran for (?P<ran_ms>\d+)`},
	{ID: "test/exit", Kind: evidence.Exited, Literal: "failed (exitcode:", Regexp: `failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\)`},
	{ID: "test/stop", Kind: evidence.LauncherStop, Literal: "closing signal", Regexp: `Sending process (?P<pid>\d+) closing signal`, Attrs: evidence.Attrs{"signal": evidence.IntOf(15)}},
	{ID: "test/skip", Kind: evidence.OOMRecovered, Literal: "ran out of memory, skipping", Attrs: evidence.Attrs{"what": evidence.TextOf("skipped")}},
	{ID: "test/full", Kind: evidence.DiskFull, Literal: "[Errno 28] No space left", Exception: true},
	{ID: "test/mismatch", Kind: evidence.CheckpointBad, Literal: "size mismatch for", Regexp: `size mismatch for (?P<path>\S+): .*checkpoint`, Join: 3},
	{ID: "test/preempted", Kind: evidence.Preempted, Literal: "DUE TO PREEMPTION"},
	{ID: "test/resume", Kind: evidence.ResumeMark, Literal: "Resuming from checkpoint"},
	{ID: "test/restarts", Kind: evidence.LaunchMark, Literal: "restart count ", Attrs: evidence.Attrs{"what": evidence.TextOf("restart")}},
	{ID: "test/version", Literal: "torch version", Regexp: `torch version (?P<v>\S+)`, Facts: map[string]string{"run.torch": "{v}"}},
}}

func TestConformance(t *testing.T) {
	readertest.Run(t, ranklog.New(plan), readertest.Folder{
		FS: os.DirFS("testdata"),
		Write: func(name string, data []byte) error {
			return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
		},
	})
}

func TestSniff(t *testing.T) {
	r := ranklog.New(plan)
	for _, c := range []struct {
		path, head string
		want       reader.Confidence
	}{
		{"out.txt", "hello\nworld\n", reader.Maybe},
		{"out.txt", "step 1 loss 2.5\n", reader.Likely},
		{"job.log", "hello\n", reader.Likely},
		{"model.bin", "\x80\x02}q\x00\x00\x00\x00\x01\x02\x03\x00\x00\x00\x00", reader.No},
		{"ps.log", "\xff\xfea\x00b\x00c\x00", reader.Maybe},
		{"empty", "", reader.Maybe},
	} {
		if got := r.Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != c.want {
			t.Errorf("Sniff(%s, %q) = %d, want %d", c.path, c.head, got, c.want)
		}
	}
}
