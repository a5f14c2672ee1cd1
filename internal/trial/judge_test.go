package trial

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// fault is an incident that such an event leads.
func fault(class, kind, standing string, change ...func(*incident.Incident)) *incident.Incident {
	inc := &incident.Incident{Outcome: incident.Failed, Facts: map[string]incident.Fact{}}
	inc.FirstFault, inc.FirstFaultStanding = &incident.Event{Class: class, Kind: kind}, standing
	for _, c := range change {
		c(inc)
	}
	return inc
}

func healthy(change ...func(*incident.Incident)) *incident.Incident {
	inc := &incident.Incident{Outcome: incident.FinishedRun, Facts: map[string]incident.Fact{}}
	for _, c := range change {
		c(inc)
	}
	return inc
}

func rivals(list ...incident.Event) func(*incident.Incident) {
	return func(inc *incident.Incident) { inc.FirstFaultRivals = list }
}

func TestJudge(t *testing.T) {
	cause := func(name, standing string) func(*incident.Incident) {
		return func(inc *incident.Incident) {
			inc.Hypotheses = []incident.Hypothesis{{Cause: name, Standing: standing}}
		}
	}
	kills := int64(2)
	none := int64(0)
	for _, c := range []struct {
		name   string
		exit   incident.Exit
		inc    *incident.Incident
		result string
		where  string
		says   string // part of Text or Survived
	}{
		{"it passed", incident.Exit{}, healthy(), incident.Passed, "", "status 0"},
		{"not diagnosed", incident.Exit{}, nil, incident.Passed, "", "could not be diagnosed"},
		{"memory that was caught", incident.Exit{}, healthy(func(inc *incident.Incident) { inc.Facts["oom.survived"] = incident.Fact{Text: "2"} }), incident.Passed, "", "ran out and was caught, 2"},
		{"a loss that is not finite", incident.Exit{}, fault("nonfinite", "nonfinite_value", incident.Established), incident.Passed, "", "became non-finite"},
		{"a failure that was outlived", incident.Exit{}, fault("code", "exception", incident.Established, func(inc *incident.Incident) { inc.Outcome = incident.FinishedRun }), incident.Passed, "", "went on to its end"},
		{"a status that was lost", incident.Exit{}, fault("device_memory", "device_oom", incident.Established), incident.OutOfMemory, "device_memory", "did not pass the failure on"},
		{"a status that was lost, order unknown", incident.Exit{}, fault("device_memory", "device_oom", incident.Undecidable, rivals(incident.Event{Class: "collective", Kind: "collective_timeout"})), incident.TrialUnclear, "", "not known"},
		{"a message of another failure", incident.Exit{}, fault("code", "exception", incident.Established), incident.TrialUnclear, "", "which of the two holds"},
		{"a rank that did not end well", incident.Exit{}, healthy(func(inc *incident.Incident) {
			inc.Ranks = []incident.Rank{{Rank: 0, Fate: "finished"}, {Rank: 3, Fate: "timed out waiting"}}
		}), incident.TrialUnclear, "", "rank 3 timed out waiting"},
		{"ranks that say nothing", incident.Exit{}, healthy(func(inc *incident.Incident) {
			inc.Ranks = []incident.Rank{{Rank: 0, Fate: "finished"}, {Rank: 1, Fate: "unknown"}}
		}), incident.Passed, "", ""},

		{"device memory", incident.Exit{Status: 1}, fault("device_memory", "device_oom", incident.Established), incident.OutOfMemory, "device_memory", "Device memory ran out"},
		{"host memory", incident.Exit{Status: 1}, fault("host_memory", "host_alloc_failed", incident.Supported), incident.OutOfMemory, "host_memory", "Host memory"},
		{"shared memory", incident.Exit{Status: 135, Signal: "SIGBUS"}, fault("shared_memory", "shm_exhausted", incident.Established), incident.OutOfMemory, "shared_memory", "Shared memory"},
		{"a kernel's kill that the log has", incident.Exit{Status: 137, Signal: "SIGKILL"}, fault("host_memory", "host_oom_kill", incident.Established), incident.OutOfMemory, "host_memory", ""},
		{"a kernel's kill that the kernel counted", incident.Exit{Status: 137, Signal: "SIGKILL", OOMKills: &kills}, fault("process_exit", "process_exit", incident.Established), incident.OutOfMemory, "host_memory", "counted 2"},
		{"the same without a diagnosis", incident.Exit{Status: 137, Signal: "SIGKILL", OOMKills: &kills}, nil, incident.OutOfMemory, "host_memory", "counted 2"},
		{"a worker that the kernel killed", incident.Exit{Status: 1, OOMKills: &kills}, nil, incident.OutOfMemory, "host_memory", "counted 2"},
		{"a kill beside another failure", incident.Exit{Status: 1, OOMKills: &kills}, fault("code", "exception", incident.Established), incident.TrialFailed, "", "exception"},
		{"a kill by nobody known", incident.Exit{Status: 137, Signal: "SIGKILL", OOMKills: &none}, nil, incident.TrialUnclear, "", "by whom"},
		{"a kill that a shell reports", incident.Exit{Status: 137}, fault("process_exit", "process_exit", incident.Established), incident.TrialUnclear, "", "by whom"},
		{"a worker killed by nobody known", incident.Exit{Status: 1}, fault("process_exit", "worker_killed", incident.Established, cause("killed-unknown", incident.Supported)), incident.TrialUnclear, "", "by whom"},
		{"a crash", incident.Exit{Status: 139, Signal: "SIGSEGV"}, fault("process_exit", "native_crash", incident.Established), incident.TrialFailed, "", "native crash"},
		{"a failure of the code", incident.Exit{Status: 1}, fault("code", "shape_mismatch", incident.Established), incident.TrialFailed, "", "shape mismatch"},
		{"memory that only followed", incident.Exit{Status: 1}, fault("code", "exception", incident.Established, func(inc *incident.Incident) {
			inc.Collateral = []incident.Collateral{{Event: incident.Event{Class: "device_memory", Kind: "device_oom"}}}
		}), incident.TrialFailed, "", "as a consequence"},
		{"nothing says why", incident.Exit{Status: 3}, healthy(), incident.TrialFailed, "", "nothing that it printed says why"},
		{"memory or another failure", incident.Exit{Status: 1}, fault("device_memory", "device_oom", incident.Undecidable, rivals(incident.Event{Class: "device_fault", Kind: "xid"})), incident.TrialUnclear, "", "xid"},
		{"memory on two ranks", incident.Exit{Status: 1}, fault("device_memory", "device_oom", incident.Undecidable, rivals(incident.Event{Class: "device_memory", Kind: "device_oom"})), incident.OutOfMemory, "device_memory", ""},
		{"another failure or memory", incident.Exit{Status: 1}, fault("code", "exception", incident.Undecidable, rivals(incident.Event{Class: "device_memory", Kind: "device_oom"})), incident.TrialUnclear, "", "device oom"},
		{"two other failures", incident.Exit{Status: 1}, fault("code", "exception", incident.Undecidable, rivals(incident.Event{Class: "data", Kind: "index_out_of_range"})), incident.TrialFailed, "", "index out of range"},
		{"undecidable without rivals", incident.Exit{Status: 1}, fault("code", "exception", incident.Undecidable), incident.TrialFailed, "", "exception"},
		{"a garbage size", incident.Exit{Status: 1}, fault("device_memory", "device_oom", incident.Established, cause("bogus-allocation-size", incident.Established)), incident.TrialFailed, "", "larger than any device"},
		{"a garbage size that is only possible", incident.Exit{Status: 1}, fault("device_memory", "device_oom", incident.Established, cause("bogus-allocation-size", incident.Possible)), incident.OutOfMemory, "device_memory", ""},
		{"a status with several meanings", incident.Exit{Status: 1}, fault("device_memory", "library_oom", incident.Established, func(inc *incident.Incident) { inc.FirstFault.Attrs = map[string]any{"certain": false} }), incident.TrialUnclear, "", "other things too"},
		{"preempted", incident.Exit{Status: 143}, fault("external_stop", "preempted", incident.Established), incident.TrialInterrupted, "", "from outside"},
		{"a signal from outside", incident.Exit{Status: 143, Signal: "SIGTERM"}, nil, incident.TrialInterrupted, "", "from outside"},

		{"its time was over", incident.Exit{Status: 143, Signal: "SIGTERM", Stopped: incident.StoppedTime}, fault("device_memory", "device_oom", incident.Established), incident.TimedOut, "", "time limit"},
		{"an interrupt", incident.Exit{Status: 130, Signal: "SIGINT", Stopped: incident.StoppedInterrupt}, nil, incident.TrialInterrupted, "", "interrupt"},
		{"the disk budget", incident.Exit{Status: 143, Stopped: incident.StoppedDisk}, nil, incident.TrialUnclear, "", "disk budget"},
		{"it did not start", incident.Exit{Status: 127, Error: "no such file"}, nil, incident.TrialFailed, "", "did not start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(c.exit, c.inc)
			if v.Result != c.result || v.Where != c.where || !strings.Contains(v.Text+v.Survived, c.says) {
				t.Errorf("%s %s: %q %q", v.Result, v.Where, v.Text, v.Survived)
			}
			if v.Text == "" {
				t.Error("nothing is said")
			}
			if v.Survived != "" && v.Result != incident.Passed {
				t.Errorf("%s, survived %q", v.Result, v.Survived)
			}
		})
	}
}
