package report

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

func TestFaultWords(t *testing.T) {
	rank := 2
	for _, c := range []struct {
		kind  string
		attrs map[string]any
		rank  *int
		want  string
	}{
		{"process_exit", map[string]any{"code": int64(-9)}, &rank, "killed by SIGKILL (exit -9)"},
		{"launcher_summary", map[string]any{"code": float64(137)}, nil, "a process was killed by SIGKILL (exit 137)"},
		{"process_exit", map[string]any{"signal": int64(15)}, &rank, "ended by SIGTERM"},
		{"process_exit", map[string]any{"code": int64(1)}, &rank, "exit code 1"},
		{"process_exit", map[string]any{"code": int64(1)}, nil, "a process ended with exit code 1"},
		{"process_exit", map[string]any{"code": int64(-35)}, &rank, "ended by signal 35 (exit -35)"},
		{"process_exit", nil, &rank, "a process ended"},
		{"worker_killed", map[string]any{"signal": int64(9)}, nil, "a DataLoader worker was killed by SIGKILL"},
		{"worker_killed", nil, nil, "a DataLoader worker was killed"},
		{"native_crash", map[string]any{"signal": int64(11)}, &rank, "a crash in native code (SIGSEGV)"},
	} {
		e := &incident.Event{Kind: c.kind, Class: "process_exit", Attrs: c.attrs, Rank: c.rank}
		if got := faultWords(e); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.kind, c.attrs, got, c.want)
		}
	}
}

func TestFirstNamesEvaluation(t *testing.T) {
	frame := &incident.Frame{File: "train.py", Line: 131, Function: "evaluate"}
	for _, c := range []struct {
		event incident.Event
		phase any
		want  bool
	}{
		{incident.Event{Class: "device_memory"}, "evaluation", true},
		{incident.Event{Class: "device_memory"}, "forward", false},
		{incident.Event{Class: "code"}, "evaluation", false},
		{incident.Event{Class: "code", Frame: frame}, nil, true},
		{incident.Event{Class: "nonfinite", Attrs: map[string]any{"metric": "eval_loss"}}, nil, true},
	} {
		inc := &incident.Incident{Findings: incident.Findings{FirstFault: &c.event}, Facts: map[string]incident.Fact{"oom.phase": {Value: c.phase}}}
		line, _, _ := strings.Cut(render(t, "text", inc, Options{}), "\n")
		if strings.Contains(line, " in evaluation") != c.want {
			t.Errorf("%+v: %s", c, line)
		}
	}
}
