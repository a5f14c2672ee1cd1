package remedy_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/remedy"
)

const gib = 1 << 30

func known(facts map[string]evidence.Value) evidence.Known {
	k := evidence.Known{}
	for n, v := range facts {
		k.Set(n, v)
	}
	return k
}

func gibs(n float64) evidence.Value { return evidence.SizeOf(int64(n*gib), int64(n*gib)) }

// computed runs one calculation and returns the change that quotes its values.
func computed(name, change string, facts map[string]evidence.Value) (*incident.Remedy, string) {
	e := &catalog.Entry{ID: "x", Title: "X", Remedy: catalog.Remedy{Compute: name, Change: change}}
	r := remedy.Choose(&remedy.Leading{Entry: e, Standing: incident.Established}, known(facts), "", false)
	return r, r.Change
}

func TestMicroBatch(t *testing.T) {
	i, text := evidence.IntOf, evidence.TextOf
	type facts = map[string]evidence.Value
	tests := []struct {
		name                string
		facts               facts
		batch, accumulation int64 // 0: not computed
		effective           int64
	}{
		{"no batch stated", facts{}, 0, 0, 0},
		{"batch one cannot be cut", facts{"run.batch": i(1), "run.accumulation": i(4), "run.world": i(2)}, 0, 0, 8},
		{"half", facts{"run.batch": i(8)}, 4, 2, 8},
		{"two", facts{"run.batch": i(2)}, 1, 2, 2},
		{"accumulation is kept in", facts{"run.batch": i(8), "run.accumulation": i(3)}, 4, 6, 24},
		{"odd: the largest divisor below half", facts{"run.batch": i(9)}, 3, 3, 9},
		{"prime: one", facts{"run.batch": i(7)}, 1, 7, 7},
		{"odd with accumulation: any divisor of the product", facts{"run.batch": i(7), "run.accumulation": i(6)}, 3, 14, 42},
		{"the world multiplies the effective batch only", facts{"run.batch": i(8), "run.world": i(16)}, 4, 2, 128},
		{"zero accumulation is one", facts{"run.batch": i(8), "run.accumulation": i(0)}, 4, 2, 8},
		{"not a batch", facts{"run.batch": i(1 << 40)}, 0, 0, 0},
		// 20 GiB of states; (36+4-20)/8 = 2.5 GiB a sample; 40*0.94-20 = 17.6 GiB of room: 7 fit, 4 divides 8.
		{"known states", facts{"run.batch": i(8), "memory.after_init": gibs(20), "oom.capacity": gibs(40), "oom.allocated": gibs(36), "oom.requested": gibs(4)}, 4, 2, 8},
		// 16 samples of 0.5 GiB; room for 33, but never the present batch again.
		{"never the present batch", facts{"run.batch": i(16), "memory.after_init": gibs(20), "oom.capacity": gibs(40), "oom.allocated": gibs(27.5), "oom.requested": gibs(.5)}, 8, 2, 16},
		// 24 GiB a sample and 17.6 GiB of room: one is tried all the same.
		{"less than one fits", facts{"run.batch": i(2), "memory.after_init": gibs(20), "oom.capacity": gibs(40), "oom.allocated": gibs(60), "oom.requested": gibs(8)}, 1, 2, 2},
		{"memory outside the allocator takes room", facts{"run.batch": i(12), "memory.after_init": gibs(20), "oom.capacity": gibs(40), "oom.allocated": gibs(36), "oom.requested": gibs(8),
			"oom.outside_allocator": gibs(6)}, 4, 3, 12},
		{"states measured in the optimizer step are none", facts{"run.batch": i(8), "memory.after_init": gibs(39), "oom.phase": text("optimizer"), "oom.capacity": gibs(40),
			"oom.allocated": gibs(39.5), "oom.requested": gibs(1)}, 4, 2, 8},
		{"a garbage size measures nothing", facts{"run.batch": i(8), "memory.after_init": gibs(20), "oom.capacity": gibs(40), "oom.allocated": gibs(36), "oom.requested": gibs(1 << 21),
			"oom.bogus": evidence.BoolOf(true)}, 4, 2, 8},
		// 1e9 parameters in fp32 with Adam: 4+4+8 bytes each = 14.9 GiB; (30+2-14.9)/16 = 1.07 GiB a sample; 37.6-14.9 = 22.7: 21 fit.
		{"states from the parameter count", facts{"run.batch": i(16), "run.params": i(1e9), "oom.capacity": gibs(40), "oom.allocated": gibs(30), "oom.requested": gibs(2)}, 8, 2, 16},
	}
	for _, tt := range tests {
		r, _ := computed("micro_batch", "", tt.facts)
		got := func(n string) int64 {
			v, _ := r.Expected[n].(int64)
			return v
		}
		if got("micro_batch") != tt.batch || got("accumulation") != tt.accumulation || got("effective_batch") != tt.effective {
			t.Errorf("%s: %d x %d, effective %d; want %d x %d, effective %d", tt.name, got("micro_batch"), got("accumulation"), got("effective_batch"), tt.batch, tt.accumulation, tt.effective)
		}
		if b := got("micro_batch"); b > 0 {
			world := max(tt.facts["run.world"].I, 1)
			if b*got("accumulation")*world != got("effective_batch") {
				t.Errorf("%s: the effective batch is not kept", tt.name)
			}
		}
	}
}

func TestComputedValues(t *testing.T) {
	text := evidence.TextOf
	type facts = map[string]evidence.Value
	tests := []struct {
		compute, change string
		facts           facts
		want            string
	}{
		{"alloc_conf", "{fix.alloc_conf}", facts{}, "expandable_segments:True"},
		{"alloc_conf", "{fix.alloc_conf}", facts{"run.alloc_conf": text("garbage_collection_threshold:0.8, max_split_size_mb:128")}, "garbage_collection_threshold:0.8,expandable_segments:True"},
		{"alloc_conf", "{fix.alloc_conf}", facts{"run.alloc_conf": text(`"expandable_segments:False"`)}, "expandable_segments:True"},
		{"alloc_conf", "{fix.alloc_conf}", facts{"run.alloc_conf": text("unset")}, "expandable_segments:True"},
		{"alloc_conf", "{fix.alloc_conf}", facts{"run.alloc_conf": text("expandable_segments:False,garbage_collection_threshold:0.8"), "replay.avoided_by": text("max_split_size_mb:64")}, "expandable_segments:False,garbage_collection_threshold:0.8,max_split_size_mb:64"},
		{"alloc_conf", "{fix.alloc_conf}", facts{"replay.avoided_by": text("max_split_size_mb:64"), "replay.expandable_avoids": evidence.BoolOf(true)}, "expandable_segments:True"},
		{"gpu_fraction", "{fix.gpu_fraction|none}", facts{"oom.free": gibs(30), "oom.capacity": gibs(40)}, "0.73"},
		{"gpu_fraction", "{fix.gpu_fraction|none}", facts{"oom.free": gibs(.5), "oom.capacity": gibs(40)}, "none"},
		{"gpu_fraction", "{fix.gpu_fraction|none}", facts{"oom.free": gibs(30)}, "none"},
		{"mem_limit", "{fix.mem_limit_gib|none} {fix.mem_now|none}", facts{"host.used": gibs(64)}, "none none"}, // perhaps one process of many under an unknown limit
		{"mem_limit", "{fix.mem_now} to {fix.mem_limit_gib}G", facts{"host.limit": gibs(200)}, "200G to 250G"},
		{"mem_limit", "{fix.mem_now} to {fix.mem_limit_gib}G", facts{"host.limit": gibs(1.5)}, "1536M to 2G"},
		{"mem_limit", "{fix.mem_limit_gib|none}", facts{"host.used": gibs(60), "host.limit": gibs(64)}, "80"},
		{"mem_limit", "{fix.mem_limit_gib|none}", facts{}, "none"},
		{"shm_size", "{fix.shm_gib}", facts{}, "8"},
		{"eval_batch", "{fix.eval_batch|none}", facts{}, "none"},
		{"eval_batch", "{fix.eval_batch|none}", facts{"run.eval_batch": evidence.IntOf(1)}, "none"},
		{"eval_batch", "{fix.eval_batch|none}", facts{"run.eval_batch": evidence.IntOf(48)}, "24"},
		{"eval_batch", "{fix.eval_batch|none}", facts{"run.eval_batch": evidence.IntOf(48), "run.batch": evidence.IntOf(6)}, "24"}, // nobody knows that 6 fits
		{"eval_batch", "{fix.eval_batch|none}", facts{"run.eval_batch": evidence.IntOf(48), "run.batch": evidence.IntOf(6), "run.progressed": evidence.BoolOf(true)}, "6"},
		{"eval_batch", "{fix.eval_batch|none}", facts{"run.eval_batch": evidence.IntOf(6), "run.batch": evidence.IntOf(6), "run.progressed": evidence.BoolOf(true)}, "3"},
		{"shm_size", "{fix.shm_gib}", facts{"run.workers": evidence.IntOf(4), "run.world": evidence.IntOf(8)}, "32"},
		{"shm_size", "{fix.shm_gib}", facts{"run.workers": evidence.IntOf(16), "run.world": evidence.IntOf(512)}, "64"},
		{"lr_cut", "{fix.lr|a tenth}", facts{"run.lr": evidence.FloatOf(3e-4)}, "3e-05"},
		{"lr_cut", "{fix.lr|a tenth}", facts{}, "a tenth"},
		{"seq_cap", "{fix.seq_cap|none}", facts{"batch.length": evidence.IntOf(9000), "batch.typical_length": evidence.IntOf(500)}, "1024"},
		{"seq_cap", "{fix.seq_cap|none}", facts{"batch.length": evidence.IntOf(900), "batch.typical_length": evidence.IntOf(500)}, "none"},
		{"workers", "Free the host: {fix.fewer_workers|halve the loader workers}.", facts{"run.workers": evidence.IntOf(9)}, "Free the host: cut the loader workers of each rank from 9 to 4."},
		{"workers", "Free the host: {fix.fewer_workers|halve the loader workers}.", facts{}, "Free the host: halve the loader workers."},
		{"none", "plain", facts{}, "plain"},
	}
	for _, tt := range tests {
		if _, got := computed(tt.compute, tt.change, tt.facts); got != tt.want {
			t.Errorf("%s of %v: %q, want %q", tt.compute, tt.facts, got, tt.want)
		}
	}
}

func entry() *catalog.Entry {
	return &catalog.Entry{ID: "leak", Title: "A leak", Rollback: "undo", Risks: []string{"slow with {run.batch}", "always"}, Remedy: catalog.Remedy{
		Scope: "code", Change: "Detach the loss.", Command: "run {run.command}", Verify: "again", Effect: "changes",
		Edits: []catalog.Edit{
			{Stack: "hf", Where: "TrainingArguments", From: "{run.batch}", To: "detach"},
			{Stack: "pytorch", Where: "loop", From: "loss", To: "loss.detach()"},
			{Stack: "deepspeed", Where: "config", From: "x", To: "{run.zero_stage}"},
			{Stack: "any", Where: "anywhere", From: "x", To: "y"},
		}}}
}

func TestChange(t *testing.T) {
	k := known(map[string]evidence.Value{"run.frameworks": evidence.TextOf("hf pytorch"), "oom.requested": gibs(2)})
	r := remedy.Choose(&remedy.Leading{Entry: entry(), Standing: incident.Supported}, k, "python t.py", false)
	if r.Entry != "leak" || r.Scope != "code" || r.Change != "Detach the loss." || r.Command != "run python t.py" || r.Rollback != "undo" {
		t.Errorf("remedy is %+v", r)
	}
	if want := []string{"always"}; !reflect.DeepEqual(r.Risks, want) {
		t.Errorf("risks are %q, want %q: a sentence whose fact is unknown is left out", r.Risks, want)
	}
	if want := map[string]any{"observed_requested_bytes": map[string]int64{"lo": 2 * gib, "hi": 2 * gib}}; !reflect.DeepEqual(r.Expected, want) {
		t.Errorf("expected is %v, want %v", r.Expected, want)
	}
	if r.Logging != nil || r.Alternatives == nil || r.Edits == nil {
		t.Errorf("logging %v, alternatives %v, edits %v", r.Logging, r.Alternatives, r.Edits)
	}
	if r := remedy.Choose(&remedy.Leading{Entry: entry(), Standing: incident.Supported}, k, "", false); r.Command != "" {
		t.Errorf("a command with an unknown part is %q", r.Command)
	}
	if remedy.Choose(nil, k, "", true) != nil {
		t.Error("a remedy without a hypothesis")
	}
}

func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		frameworks string
		more       map[string]evidence.Value
		stack, to  string
		from       string
	}{
		{"hf pytorch", nil, "hf", "detach", "the present value"},
		{"hf pytorch", map[string]evidence.Value{"run.batch": evidence.IntOf(4)}, "hf", "detach", "4"},
		{"deepspeed pytorch", nil, "pytorch", "loss.detach()", "loss"}, // deepspeed's needs a value that is unknown
		{"deepspeed pytorch", map[string]evidence.Value{"run.zero_stage": evidence.IntOf(3)}, "deepspeed", "3", "x"},
		{"jax", nil, "pytorch", "loss.detach()", "loss"},
		{"transformers pytorch", nil, "pytorch", "loss.detach()", "loss"}, // no Trainer, no TrainingArguments
		{"", nil, "pytorch", "loss.detach()", "loss"},
	} {
		facts := map[string]evidence.Value{"run.frameworks": evidence.TextOf(tt.frameworks)}
		for n, v := range tt.more {
			facts[n] = v
		}
		r := remedy.Choose(&remedy.Leading{Entry: entry(), Standing: incident.Established}, known(facts), "", false)
		if len(r.Edits) != 1 || r.Edits[0].Stack != tt.stack || r.Edits[0].To != tt.to || r.Edits[0].From != tt.from {
			t.Errorf("%q %v: edits are %+v", tt.frameworks, tt.more, r.Edits)
		}
	}
}

// TestEditsOfScheduler: what a person edits is what the job was started with.
func TestEditsOfScheduler(t *testing.T) {
	e := entry()
	e.Remedy.Edits = []catalog.Edit{
		{Stack: "slurm", Where: "job script", From: "x", To: "--mem=9G"},
		{Stack: "kubernetes", Where: "limits", From: "x", To: "9Gi"},
		{Stack: "any", Where: "request", From: "x", To: "more"},
	}
	for _, tt := range []struct{ scheduler, want string }{{"slurm", "slurm"}, {"kubernetes", "kubernetes"}, {"", "any"}} {
		facts := map[string]evidence.Value{"seen.job_record": evidence.IntOf(2), "seen.host_oom_sched": evidence.IntOf(1)}
		if tt.scheduler != "" {
			facts["run.scheduler"] = evidence.TextOf(tt.scheduler)
		}
		r := remedy.Choose(&remedy.Leading{Entry: e, Standing: incident.Established}, known(facts), "", false)
		if len(r.Edits) != 1 || r.Edits[0].Stack != tt.want {
			t.Errorf("%q: edits are %+v", tt.scheduler, r.Edits)
		}
	}
}

// TestCases: the first case that is known to hold takes the place of the
// entry's own remedy, with its own risks and way back.
func TestCases(t *testing.T) {
	e := entry()
	e.Cases = []catalog.Case{
		{When: "a", Remedy: catalog.Remedy{Scope: "config", Change: "A."}},
		{When: "b", Remedy: catalog.Remedy{Scope: "config", Change: "B."}, Risks: []string{"of b"}, Rollback: "undo b"},
	}
	f := func(holds, change, rollback string, risks ...string) {
		t.Helper()
		r := remedy.Choose(&remedy.Leading{Entry: e, Standing: incident.Supported, Holds: func(w string) bool { return w == holds }}, known(nil), "", false)
		if r.Change != change || r.Rollback != rollback || !reflect.DeepEqual(r.Risks, risks) {
			t.Errorf("%q holds: %q, %q, %q", holds, r.Change, r.Rollback, r.Risks)
		}
	}
	f("", "Detach the loss.", "undo", "always")
	f("b", "B.", "undo b", "of b")
}

// TestMeasure: an undecided cause calls for the fact that decides, not for a
// change.
func TestMeasure(t *testing.T) {
	l := &remedy.Leading{Entry: entry(), Standing: incident.Possible, Missing: []incident.Missing{{Fact: "Whether the loss is kept.", Name: "run.batch", How: "look", Cost: "seconds", Effect: "reads"}}}
	r := remedy.Choose(l, known(nil), "python t.py", false)
	if r.Scope != "measure" || r.Command != "look" || r.Effect != "reads" || r.Cost != "seconds" || len(r.Edits) != 0 {
		t.Errorf("remedy is %+v", r)
	}
	if want := "Measure before changing anything: find out whether the loss is kept."; r.Change != want {
		t.Errorf("change is %q, want %q", r.Change, want)
	}
	if want := []string{"If the answer confirms it: Detach the loss."}; !reflect.DeepEqual(r.Alternatives, want) {
		t.Errorf("alternatives are %q", r.Alternatives)
	}
	if strings.Contains(r.Why, "between") {
		t.Errorf("without a rival: %q", r.Why)
	}
	l.Rival = "Another"
	if r := remedy.Choose(l, known(nil), "", false); !strings.Contains(r.Why, `between "A leak" and "Another"`) {
		t.Errorf("with a rival: %q", r.Why)
	}
	l.Missing = nil
	if r := remedy.Choose(l, known(nil), "", false); r.Scope != "code" {
		t.Errorf("nothing to measure: scope is %q", r.Scope)
	}
}

func TestLoggingEdit(t *testing.T) {
	for frameworks, want := range map[string]string{"": "pytorch", "hf deepspeed": "hf", "accelerate": "pytorch", "accelerate deepspeed": "deepspeed", "lightning pytorch": "lightning", "megatron": "megatron"} {
		r := remedy.Choose(&remedy.Leading{Entry: entry(), Standing: incident.Supported}, known(map[string]evidence.Value{"run.frameworks": evidence.TextOf(frameworks)}), "", true)
		switch {
		case r.Logging == nil:
			t.Errorf("%q: no change to the logging", frameworks)
		case r.Logging.Stack != want || r.Logging.Where == "" || r.Logging.From == "" || r.Logging.To == "":
			t.Errorf("%q: logging is %+v, want that of %s", frameworks, r.Logging, want)
		}
	}
}
