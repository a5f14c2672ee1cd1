package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestTrialRecords diagnoses folders as inquest run leaves them: the record of how a process ended
// decides what its output leaves open, and no more.
func TestTrialRecords(t *testing.T) {
	record := func(name string) string {
		data, err := os.ReadFile(filepath.Join("../reader/trialrecord/testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const (
		trained = "step 1 loss 2.31 grad_norm 1.2 lr 0.1\nstep 2 loss 2.21 grad_norm 1.1 lr 0.1\n"
		trace   = "Traceback (most recent call last):\n  File \"fit.py\", line 40, in <module>\n    h = torch.relu(x @ w)\n"
		refused = "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 1834003200 bytes. Error code 12 (Cannot allocate memory)\n"
	)
	for _, c := range []struct {
		record, log     string
		outcome, class  string
		cause, standing string
	}{
		{"limit", trained + trace + refused, incident.Failed, "host_memory", "address-space-limit", incident.Established},
		{"limit", trained + trace + "MemoryError\n", incident.Failed, "host_memory", "address-space-limit", incident.Supported},
		{"limit", trace + "terminate called after throwing an instance of 'std::bad_alloc'\n", incident.Failed, "host_memory", "address-space-limit", incident.Supported},
		{"killed", trained, incident.Failed, "host_memory", "cgroup-limit", incident.Established},
		{"killed", "", incident.Failed, "host_memory", "cgroup-limit", incident.Established},
		{"bare", trained, incident.Failed, "process_exit", "killed-unknown", incident.Supported},
		{"near", trained, incident.Failed, "process_exit", "host-ram", incident.Supported},
		{"gpu", trained, incident.Failed, "process_exit", "code-error", incident.Possible},
		{"stopped", trained, incident.Interrupted, "external_stop", "time-limit", incident.Established},
		{"interrupted", trained, incident.Interrupted, "external_stop", "interrupted", incident.Established},
		{"missing", "", incident.Failed, "environment", "missing-dependency", incident.Established},
		{"passed", trained, incident.FinishedRun, "", "", ""},
		// A status that a shell lost is no proof that all went well.
		{"passed", trained + trace + refused, incident.Failed, "host_memory", "host-ram", incident.Supported},
		// The record of a run that failed does not make a failure of memory out of anything else.
		{"limit", trained + trace + "ValueError: bad width\n", incident.Failed, "code", "code-error", incident.Supported},
	} {
		inc := diagnose(t, job(t, map[string]string{"trial/record.jsonl": record(c.record), "trial/output.log": c.log}))
		if len(inc.Attempts) != 1 {
			t.Errorf("%s: %d attempts, want one of record and log", c.record, len(inc.Attempts))
		}
		class := ""
		if inc.FirstFault != nil {
			class = inc.FirstFault.Class
		}
		got, standing := cause(inc)
		if inc.Outcome != c.outcome || class != c.class || got != c.cause || standing != c.standing {
			t.Errorf("%s with %.60q: %s %s, %s %s; want %s %s, %s %s", c.record, c.log, inc.Outcome, class, standing, got, c.outcome, c.class, c.standing, c.cause)
		}
	}
}
