package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

var update = flag.Bool("update", false, "rewrite samples, golden files, the schema and docs/incident.md")

// samples are the incidents that every format is tried on. They are written to
// testdata/NAME.json with -update; the tests read the files.
var samples = []struct {
	name  string
	build func() *incident.Incident
}{
	{"oom", oomSample},
	{"hidden-nan", hiddenNaNSample},
	{"collateral", collateralSample},
	{"undecidable", undecidableSample},
	{"elimination", eliminationSample},
	{"finished", finishedSample},
	{"attempts", attemptsSample},
	{"hostile", hostileSample},
}

func TestSamplesAreCurrent(t *testing.T) {
	for _, s := range samples {
		compare(t, filepath.Join("testdata", s.name+".json"), stored(t, s.build()))
	}
}

// stored is an incident as its file.
func stored(t testing.TB, inc *incident.Incident) []byte {
	fillSlices(reflect.ValueOf(inc))
	b, err := json.MarshalIndent(inc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// compare checks got against a golden file, or writes it with -update.
func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./internal/report -update writes it)", err)
	}
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			old := "(end of file)"
			if i < len(w) {
				old = w[i]
			}
			t.Errorf("%s:%d\n got %s\nwant %s\n(go test ./internal/report -update accepts it)", path, i+1, g[i], old)
			return
		}
	}
	t.Errorf("%s: got %d lines, want %d", path, len(g), len(w))
}

// load reads a sample as a stored incident.
func load(t testing.TB, name string) *incident.Incident {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if *update { // the files may not have been written yet
		for _, s := range samples {
			if s.name == name {
				b, err = stored(t, s.build()), nil
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	inc := new(incident.Incident)
	if err := json.Unmarshal(b, inc); err != nil {
		t.Fatal(err)
	}
	return inc
}

// fillSlices makes nil slices and maps empty, as the engine does.
func fillSlices(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillSlices(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if strings.Contains(v.Type().Field(i).Tag.Get("json"), "omitempty") && v.Field(i).IsZero() {
				continue
			}
			fillSlices(v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillSlices(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if v.Type().Elem() == reflect.TypeFor[incident.Fact]() {
			for _, k := range v.MapKeys() {
				f := v.MapIndex(k).Interface().(incident.Fact)
				fillSlices(reflect.ValueOf(&f))
				v.SetMapIndex(k, reflect.ValueOf(f))
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// at is a span of the line with this text; its offset supposes 80 bytes a line.
func at(file string, line int64, quote string) evidence.Span {
	return evidence.Span{Artifact: file, Kind: "text", Line: line, Column: 1, Offset: 80 * (line - 1), Length: int64(len(quote)), Quote: quote}
}

func spans(s ...evidence.Span) []evidence.Span { return s }

func says(text string, s ...evidence.Span) incident.Statement {
	return incident.Statement{Text: text, Spans: s}
}

// stampOf is a wall-clock time on the day of all samples, in seconds after 09:00.
func stampOf(seconds float64) *incident.Time {
	t := time.Date(2025, 3, 14, 9, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
	return &incident.Time{UTC: ptr(t.Format(time.RFC3339Nano)), Written: t.Format("2006-01-02 15:04:05.000"), Zone: "Z", ErrorS: .0005, Clock: "wall"}
}

func quoteAround(file string, mark int64, lines ...string) incident.Quote {
	n := int64(len(lines))
	return incident.Quote{Artifact: file, Line: mark - n/2, Mark: mark, Lines: lines}
}

// event is an event on a rank (-1: none stated) of attempt 1.
func event(id, kind, class string, rank int, sp evidence.Span) incident.Event {
	e := incident.Event{ID: id, Kind: kind, Class: class, Attempt: "1", Text: sp.Quote, Attrs: map[string]any{}, Span: &sp, KnownBy: "words"}
	if rank >= 0 {
		e.Rank = ptr(rank)
	}
	return e
}

// base is an incident without findings.
func base(id, outcome string, arts ...incident.Artifact) *incident.Incident {
	return &incident.Incident{
		Schema: incident.Schema, Tool: incident.Tool{Name: "inquest", Version: "0.1.0"}, ID: "inq-" + id, Fingerprint: id + "00ff", Status: "open", Outcome: outcome,
		Findings:  incident.Findings{Order: incident.Order{Relation: incident.Neither, Basis: "no device-memory failure and no non-finite training value is in evidence", SameAttempt: true, Linked: incident.LinkNo}},
		Artifacts: arts, Facts: map[string]incident.Fact{},
	}
}

func artifact(path, kind string, size int64, rank int) incident.Artifact {
	a := incident.Artifact{Path: path, Kind: kind, Size: size, Digest: fmt.Sprintf("sha256:%064x", size), Fate: "read", Owner: incident.Owner{Basis: "content"}}
	if rank >= 0 {
		a.Owner.Rank, a.Owner.Basis = ptr(rank), "file name"
	}
	return a
}

// finish copies the verdict to the attempt it belongs to.
func finish(inc *incident.Incident, command string) *incident.Incident {
	inc.Attempts = append(inc.Attempts, incident.Attempt{ID: "1", Outcome: inc.Outcome, Command: command, Findings: inc.Findings})
	return inc
}

// logged is a logged series; bad values come as NaN from f.
func logged(name, unit, trust string, rank int, from, to, by int64, f func(step float64) float64) incident.Series {
	s := incident.Series{Name: name, Attempt: "1", Source: "generic", Unit: unit, Trust: trust, Reduction: "none"}
	if rank >= 0 {
		s.Rank = ptr(rank)
	}
	for step := from; step <= to; step += by {
		p := incident.Point{Step: ptr(step), Ordinal: s.Count, Line: 40 + s.Count}
		if v := f(float64(step)); math.IsNaN(v) {
			p.Text = "nan"
			s.Bad++
		} else {
			p.Value = ptr(math.Round(v*1e4) / 1e4)
		}
		s.Points = append(s.Points, p)
		s.Count++
	}
	return s
}

func gib(f float64) float64 { return math.Round(f * (1 << 30)) }

// oomSample: one process, out of device memory in the second step.
func oomSample() *incident.Incident {
	const log = "finetune.log"
	inc := base("5f2c08b1a4d7", incident.Failed, artifact(log, "ranklog", 48211, -1))
	msg := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total capacity of 23.64 GiB of which 611.00 MiB is free. Of the allocated memory 21.87 GiB is allocated by PyTorch, and 402.15 MiB is reserved by PyTorch but unallocated."
	proof := at(log, 118, msg)
	f := event("e7", "device_oom", "device_memory", -1, proof)
	f.Device, f.Step = ptr(0), ptr[int64](2)
	f.Attrs = map[string]any{"requested": map[string]any{"lo": 1336934728, "hi": 1347672145}, "gpu": 0, "what": "allocation"}
	f.Frame = &incident.Frame{File: "/home/lena/caption/finetune.py", Line: 204, Function: "train_step", Source: "loss = model(images, tokens).loss"}
	inc.FirstFault, inc.FirstFaultBasis, inc.FirstFaultStanding = &f, "it is the only failure in evidence", incident.Established
	inc.Order = incident.Order{Relation: incident.OOMOnly, Basis: "no non-finite training value is in evidence", SameAttempt: true, Linked: incident.LinkNo, MemoryEvent: &f}
	good := at(log, 96, "step 1/4000 loss 3.4127 lr 2.0e-05 mem 20.31GiB")
	inc.LastGood = &incident.LastGood{Step: ptr[int64](1), Loss: ptr(3.4127), Span: &good}
	batch := at(log, 12, "  per_device_train_batch_size: 12")
	inc.Hypotheses = []incident.Hypothesis{
		{Cause: "batch-or-activation-too-large", Entry: "batch-or-activation-too-large", Standing: incident.Supported, Title: "One step of this batch needs more memory than the card has",
			Why: "The step itself needs more memory than the card has.",
			For: []incident.Statement{
				says("It failed in the forward pass of the first steps, with 21.87 GiB of 23.64 GiB held by live tensors of this process and 611.00 MiB free against a request of 1.25 GiB.", proof, good),
				says("The allocator's idle reserve (402.15 MiB) is smaller than the request (1.25 GiB), so it is capacity and not fragmentation.", proof)},
			Missing: []incident.Missing{{Fact: "whether half the micro-batch passes the same step", Name: "run.smaller_batch_fits", How: "rerun ten steps with half of 12 and everything else unchanged", Cost: "one short run", Effect: "reversible"}},
			Readings: map[string]string{"executive": "The job was set to work on more data at once than the accelerator has room for. It needs a smaller portion per step; results do not change.",
				"engineer": "Capacity, not fragmentation: cut the micro-batch and accumulate.", "on_call": "Restarting repeats it at the same step. Return it to the owner with the new batch size."}},
		{Cause: "missing-activation-checkpointing", Entry: "missing-activation-checkpointing", Standing: incident.Possible, Title: "Activations are kept that could be computed again",
			For:     []incident.Statement{says("gradient_checkpointing is off.", at(log, 19, "  gradient_checkpointing: false"))},
			Against: []incident.Statement{},
			Missing: []incident.Missing{{Fact: "how much of the peak is activations", Name: "memory.after_init", How: "print torch.cuda.memory_allocated() right after the first optimizer step", Cost: "one short run", Effect: "reversible"}}},
		{Cause: "fragmentation", Entry: "fragmentation", Standing: incident.RuledOut, Title: "The allocator holds enough free memory, but not in one piece",
			Against: []incident.Statement{says("Even all of the reserved rest (402.15 MiB) would not have held the request (1.25 GiB).", proof)}},
	}
	inc.Remedy = &incident.Remedy{Entry: "batch-or-activation-too-large", Scope: "config", Change: "Set the micro-batch from 12 to 6 and gradient accumulation from 2 to 4; the effective batch stays 24.",
		Why:     "Activations grow with the micro-batch; accumulation keeps the update the same.",
		Edits:   []incident.Edit{{Stack: "hf", Where: "TrainingArguments", From: "per_device_train_batch_size=12, gradient_accumulation_steps=2", To: "per_device_train_batch_size=6, gradient_accumulation_steps=4"}},
		Command: "python finetune.py --config caption.yaml --per_device_train_batch_size 6 \\\n  --gradient_accumulation_steps 4 --max_steps 50", Verify: "50 steps with a peak of torch.cuda.max_memory_allocated() below 21 GiB that no longer rises after step 3.",
		Rollback: "Put the two numbers back.", Risks: []string{"Batch norm sees fewer samples at once."}, Cost: "up to 10 per cent of throughput", Expected: map[string]any{"shows": "loss at step 1 within 1 per cent of 3.4127 and a flat peak"},
		Effect: "reversible", NextFailure: "If micro-batch 1 fails as well, the model states are what does not fit.", Alternatives: []string{"gradient_checkpointing=True, about a third slower, keeps the micro-batch"}}
	inc.Checklist = []incident.CheckItem{
		{Item: "It failed in the first steps", State: "yes", Spans: spans(proof, good), How: "Look for the last step line above the exception."},
		{Item: "Live tensors of this process hold at least three quarters of the card", State: "yes", Spans: spans(proof)},
		{Item: "No other process holds memory on the device", State: "unknown", How: "nvidia-smi on the host before the launch."},
		{Item: "A smaller micro-batch passes", State: "no", How: "Rerun ten steps with half the micro-batch."},
	}
	inc.Facts["run.batch"] = incident.Fact{Value: 12, Text: "12", Spans: spans(batch)}
	inc.Facts["run.accumulation"] = incident.Fact{Value: 2, Text: "2", Spans: spans(at(log, 13, "  gradient_accumulation_steps: 2"))}
	inc.Facts["oom.requested"] = incident.Fact{Value: map[string]any{"lo": 1336934728, "hi": 1347672145}, Unit: "bytes", Text: "1.25 GiB", Spans: spans(proof)}
	inc.Facts["oom.allocated"] = incident.Fact{Value: map[string]any{"lo": 23477606154, "hi": 23488343572}, Unit: "bytes", Text: "21.87 GiB", Spans: spans(proof)}
	inc.Context = []incident.Quote{
		{Artifact: log, Line: 114, Mark: 118, Lines: []string{"Traceback (most recent call last):", `  File "/home/lena/caption/finetune.py", line 204, in train_step`, "    loss = model(images, tokens).loss", "           ^^^^^^^^^^^^^^^^^^^^^^^^^^", msg}},
		quoteAround(log, 96, "step 0/4000 loss 3.4391 lr 1.0e-05 mem 20.31GiB", good.Quote, ""),
	}
	return finish(inc, "python finetune.py --config caption.yaml")
}

// hiddenNaNSample: the framework prints 0.0 for a loss that is not finite.
func hiddenNaNSample() *incident.Incident {
	const log, hist = "runs/asr-base/train.log", "runs/asr-base/trainer_state.json"
	inc := base("91aa3de07c52", incident.Interrupted, artifact(log, "ranklog", 903344, -1), artifact(hist, "history", 210442, -1))
	bad := at(log, 3121, "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.00081, 'epoch': 0.62}")
	last := at(log, 3096, "{'loss': 2.1834, 'grad_norm': 41.7, 'learning_rate': 0.00082, 'epoch': 0.61}")
	f := event("e3", "nonfinite_value", "nonfinite", -1, bad)
	f.Step, f.Epoch = ptr[int64](3100), ptr(.62)
	f.Attrs = map[string]any{"metric": "grad_norm", "value": "nan", "trust": "raw", "hidden": true}
	inc.FirstFault, inc.FirstFaultBasis, inc.FirstFaultStanding = &f, "every later non-finite value in this file comes after it", incident.Established
	first := incident.LastGood{Step: ptr[int64](3100), Value: "grad norm nan", Span: &bad}
	good := incident.LastGood{Step: ptr[int64](3075), Loss: ptr(2.1834), Span: &last}
	inc.LastGood = &good
	inc.Order = incident.Order{Relation: incident.NaNOnly, Basis: "no device-memory failure is in evidence", SameAttempt: true, Linked: incident.LinkNo, NonfiniteEvent: &f,
		NonfiniteBracket: &incident.Bracket{LastFinite: &good, FirstSeen: &first, Stride: ptr[int64](25), Trust: "filtered"}}
	inc.Hypotheses = []incident.Hypothesis{
		{Cause: "nan-precision-overflow", Entry: "nan-precision-overflow", Standing: incident.Possible, Title: "Values left the range of 16-bit floats",
			For:     []incident.Statement{says("The run computes in fp16.", at(log, 8, "fp16=True,")), says("The gradient norm rose from 1.9 to 41.7 in the 200 steps before.", last)},
			Against: []incident.Statement{says("No loss-scale message is in the log.")},
			Missing: []incident.Missing{{Fact: "whether the same steps stay finite in bf16", Name: "nan.in_bf16", How: "resume from step 3000 with bf16 for 200 steps", Cost: "one short run", Effect: "reversible"}},
			Readings: map[string]string{"executive": "The arithmetic in use has too small a range for the values that the model reached. A wider format is the usual answer.", "engineer": "Overflow is likeliest; a bf16 rerun decides.",
				"on_call": "The run trained on nothing since step 3100. Stop it; no checkpoint after step 3075 is of use."}},
		{Cause: "nan-lr-batch-mismatch", Entry: "nan-lr-batch-mismatch", Standing: incident.Possible, Title: "The learning rate is too high for this batch and moment",
			For:     []incident.Statement{says("The learning rate was still near its peak (0.00082).", last)},
			Missing: []incident.Missing{{Fact: "whether a tenth of the learning rate stays finite", Name: "nan.lower_lr", How: "resume from step 3000 with learning_rate 0.00008", Cost: "one short run", Effect: "reversible"}}},
	}
	inc.Remedy = &incident.Remedy{Entry: "nan-precision-overflow", Scope: "measure", Effect: "reversible", Cost: "one short run", Change: "Measure before changing anything: find out whether the same steps stay finite in bf16.",
		Why:     `The evidence does not decide between "Values left the range of 16-bit floats" and "The learning rate is too high for this batch and moment"; this is the cheapest fact that tells them apart.`,
		Command: "resume from step 3000 with bf16 for 200 steps", Verify: "Run inquest again on the new log: the answer moves a hypothesis up or rules it out.", Rollback: "Nothing to undo.", Expected: map[string]any{},
		Logging: &incident.Edit{Stack: "hf", Where: "TrainingArguments", From: "logging_nan_inf_filter=True", To: "logging_nan_inf_filter=False"}}
	inc.Contributing = []incident.Statement{says("The framework replaced or left out non-finite values in what it printed; the curve in a tracker cannot show where they began.", bad)}
	inc.Limits = []incident.Statement{says("The tracker cannot show the loss after step 3075: it holds 0.0 where the value was not finite.", bad)}
	inc.Series = []incident.Series{
		logged("loss", "", "filtered", -1, 25, 3400, 25, func(s float64) float64 {
			if s >= 3100 {
				return 0
			}
			return 2.1 + 6*math.Exp(-s/500) + .05*math.Sin(s/40)
		}),
		logged("grad_norm", "", "raw", -1, 25, 3400, 25, func(s float64) float64 {
			if s >= 3100 {
				return math.NaN()
			}
			return 1.9 + 40*math.Exp((s-3075)/60) + .2*math.Sin(s/30)
		}),
	}
	inc.Facts["run.precision"] = incident.Fact{Value: "fp16-mixed", Text: "fp16-mixed", Spans: spans(at(log, 8, "fp16=True,"))}
	inc.Context = []incident.Quote{quoteAround(log, 3121, "  4%|▍         | 3098/78000", "  4%|▍         | 3099/78000", bad.Quote, "  4%|▍         | 3101/78000", "  4%|▍         | 3102/78000")}
	return finish(inc, "python -m asr.train --fp16 --learning_rate 1e-3")
}

// collateralSample: eight ranks, one runs out of memory, seven wait for it.
func collateralSample() *incident.Incident {
	file := func(r int) string { return fmt.Sprintf("logs/rank%d.log", r) }
	inc := base("c0de77e19b34", incident.Failed)
	for r := range 8 {
		inc.Artifacts = append(inc.Artifacts, artifact(file(r), "ranklog", 72000+int64(r), r))
	}
	cut := artifact("logs/dmesg-node-b.txt.gz", "kernlog", 1<<20, -1)
	cut.Fate, cut.Note, cut.Owner.Host = "partly read", "gzip ends early: 1.00 MiB read", "node-b"
	inc.Artifacts = append(inc.Artifacts, cut)
	inc.PassedOver = []incident.PassedOver{{What: ".pt", Count: 14, Bytes: 41 << 30}}
	msg := "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.40 GiB. GPU 1 has a total capacity of 79.11 GiB of which 1.02 GiB is free."
	proof := at(file(5), 2210, msg)
	f := event("e41", "device_oom", "device_memory", 5, proof)
	f.LocalRank, f.Host, f.Device, f.Step, f.Time = ptr(1), ptr("node-b"), ptr(1), ptr[int64](1874), stampOf(3600)
	inc.FirstFault, inc.FirstFaultBasis, inc.FirstFaultStanding = &f, "it stands 600 s before every other failure, and the hosts' clocks agree within 0.2 s", incident.Established
	inc.Order = incident.Order{Relation: incident.OOMOnly, Basis: "no non-finite training value is in evidence", SameAttempt: true, Linked: incident.LinkNo, MemoryEvent: &f}
	good := at(file(5), 2198, "2025-03-14 09:59:52.100 step 1873 loss 1.8820 len 3968")
	inc.LastGood = &incident.LastGood{Step: ptr[int64](1873), Loss: ptr(1.882), Time: stampOf(3592.1), Span: &good}
	wait := event("e55", "collective_timeout", "collective", 0, at(file(0), 2207, "[rank0]:[E314] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=8388608) ran for 600041 milliseconds before timing out."))
	wait.Time = stampOf(4199.2)
	down := event("e63", "launcher_stop", "process_exit", -1, at(file(0), 2214, "W0314 Sending process 20115 closing signal SIGTERM"))
	down.Time = stampOf(4203.5)
	inc.Collateral = []incident.Collateral{
		{Event: wait, Ranks: []int{0, 1, 2, 3, 4, 6, 7}, Count: 7, ExplainedBy: incident.Explained{Event: "e41", Rule: "peers-wait", Text: "its peers waited in the next collective until the watchdog's 600 s had passed"}},
		{Event: down, Count: 8, ExplainedBy: incident.Explained{Event: "e41", Rule: "launcher-ends-all", Text: "the launcher ends all processes when one has failed"}},
	}
	longest := at(file(5), 2205, "2025-03-14 09:59:58.900 batch 1874 longest sample 15872 tokens")
	inc.Hypotheses = []incident.Hypothesis{
		{Cause: "sequence-spike", Entry: "sequence-spike", Standing: incident.Established, Title: "One batch was far longer than the others",
			For: []incident.Statement{says("The failing batch's longest sample had 15872 tokens; the median of the 1873 batches before was 3904.", longest, good), says("1873 steps had passed with the same settings.", good)},
			Readings: map[string]string{"executive": "One unusually long record needed four times the usual memory. Limiting the length solves it.", "engineer": "Cap or bucket the length; 15872 against a median of 3904.",
				"on_call": "Not a hardware fault; node-b is fine. A restart from the checkpoint at step 1800 fails again at the same batch unless the length is capped."}},
		{Cause: "retained-graph", Entry: "retained-graph", Standing: incident.RuledOut, Title: "Graphs of past steps are kept alive",
			Against: []incident.Statement{says("Allocated memory at the start of a step did not grow over 1873 steps.", good)}},
	}
	inc.Remedy = &incident.Remedy{Entry: "sequence-spike", Scope: "data", Effect: "changes", Change: "Cap the sequence length at 7808 tokens; 0.3 per cent of the samples are cut.",
		Why: "The largest length that passed was 7744.", Edits: []incident.Edit{{Stack: "any", Where: "collate function", From: "max_length=None", To: "max_length=7808"}},
		Command: "torchrun --nnodes 2 --nproc-per-node 4 train.py --max-length 7808 --resume ckpt/1800", Verify: "Steps 1870 to 1900 pass, with a peak below 74 GiB on rank 5.", Rollback: "Remove the cap.",
		Risks: []string{"Cut samples lose their end."}, Expected: map[string]any{"shows": "step 1874 logged on all ranks"}}
	inc.HostComparison = &incident.HostComparison{Suspect: "node-b", Fresh: "node-c", Says: "They differ in 1 of 2 things that were compared.",
		Rows: []incident.HostRow{{Name: "driver", Suspect: "550.54.15", Fresh: "550.90.07", Differs: true, Spans: spans(proof)}, {Name: "step time", Suspect: "0.81 s", Fresh: "0.8 s", Spans: spans(proof)}}}
	kept := at(file(0), 2102, "2025-03-14 09:58:41.000 saved checkpoint at step 1800 to ckpt/1800")
	inc.OnCall = &incident.OnCall{Restart: incident.Restart{Unchanged: "repeats", Standing: incident.Established, From: "latest", Why: "the same run fails again at the same point, on any host", Spans: spans(proof)},
		Cordon:    []incident.Cordon{},
		Lost:      &incident.Lost{Checkpoint: "ckpt/1800", FromStep: ptr[int64](1800), ToStep: ptr[int64](1874), Steps: ptr[int64](74), Seconds: ptr(79.0), Why: "since the last checkpoint that the logs name", Spans: spans(kept)},
		Reproduce: &incident.Reproduce{Needs: "one_rank", Ranks: ptr(1), Hosts: ptr(1), FromStep: ptr[int64](1800), ToStep: ptr[int64](1874), Why: "one rank meets it alone, with the data that rank 5 had", Command: "torchrun --nnodes 1 --nproc-per-node 1 train.py"}}
	inc.Contributing = []incident.Statement{says("The launcher names rank 0 as its first observed failure; that is the first exit it noticed.", at(file(0), 2219, "  rank      : 0 (local_rank: 0)"))}
	inc.Limits = []incident.Statement{says("logs/dmesg-node-b.txt.gz: gzip ends early; what the kernel wrote after 09:41 was not read.")}
	for r := range 8 {
		rk := incident.Rank{Rank: r, LocalRank: ptr(r % 4), Host: ptr([]string{"node-a", "node-b"}[r/4]), Device: ptr(r % 4), PID: ptr(20110 + r), Attempt: "1", LastStep: ptr[int64](1873), LastTime: stampOf(4199 + float64(r)/10), Fate: "timed out waiting", Artifacts: []string{file(r)}}
		if r == 5 {
			rk.Fate, rk.LastTime = "failed first", stampOf(3600)
		}
		inc.Ranks = append(inc.Ranks, rk)
	}
	inc.Hosts = []incident.Host{{Host: "node-a", OffsetS: ptr(0.0), ErrorS: ptr(0.2), Zone: "Z", Basis: "reference"}, {Host: "node-b", OffsetS: ptr(-.05), ErrorS: ptr(.2), Zone: "Z", Basis: "both log the same barrier"}}
	inc.Groups = []incident.Group{{Name: "default_pg", Members: []int{0, 1, 2, 3, 4, 6, 7}, Seq: ptr[int64](48213), Op: "ALLREDUCE", Missing: []int{5}}}
	for _, r := range []int{0, 5} {
		inc.Series = append(inc.Series, logged("memory_allocated", "bytes", "raw", r, 1400, 1873, 11, func(s float64) float64 {
			return gib(52 + 6*math.Sin(s*float64(r+1)/17) + 3*math.Cos(s/5))
		}))
	}
	inc.Series = append(inc.Series, logged("loss", "", "raw", 0, 3, 1873, 17, func(s float64) float64 { return 1.85 + 7*math.Exp(-s/260) }))
	inc.Facts["batch.length"] = incident.Fact{Value: 15872, Text: "15872", Spans: spans(longest)}
	inc.Context = []incident.Quote{
		quoteAround(file(5), 2210, longest.Quote, "[rank5]: Traceback (most recent call last):", msg, "[rank5]: ", "2025-03-14 10:00:01.000 closing data loader"),
		quoteAround(file(0), 2207, "2025-03-14 09:59:52.300 step 1873 loss 1.8820 len 3776", wait.Text, "[rank0]: terminate called"),
	}
	return finish(inc, "torchrun --nnodes 2 --nproc-per-node 4 train.py")
}

// undecidableSample: two hosts with clocks that cannot be compared.
func undecidableSample() *incident.Incident {
	const a, b = "hostA/worker.log", "hostB/worker.log"
	inc := base("07d1e4aa90bc", incident.Failed, artifact(a, "ranklog", 31877, 0), artifact(b, "ranklog", 30112, 1))
	f := event("e5", "cuda_fault", "cuda_error", 0, at(a, 402, "RuntimeError: CUDA error: an illegal memory access was encountered"))
	f.Host = ptr("hostA")
	f.Time = &incident.Time{Written: "14:02:11", ErrorS: .5, Clock: "wall"}
	r := event("e9", "device_oom", "device_memory", 1, at(b, 377, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which 54.00 MiB is free."))
	r.Host = ptr("hostB")
	r.Time = &incident.Time{Written: "21:02:09", ErrorS: .5, Clock: "wall"}
	inc.FirstFault, inc.FirstFaultStanding = &f, incident.Undecidable
	inc.FirstFaultBasis = "the two hosts write a time of day without a zone and log no common event, so their clocks cannot be compared; it is preferred by kind only"
	inc.FirstFaultRivals = []incident.Event{r}
	inc.Order = incident.Order{Relation: incident.OOMOnly, Basis: "no non-finite training value is in evidence", SameAttempt: true, Linked: incident.LinkNo, MemoryEvent: &r}
	inc.Hypotheses = []incident.Hypothesis{
		{Cause: "undetermined", Entry: "undetermined", Standing: incident.Possible, Title: "Which of the failures came first decides the cause",
			For:     []incident.Statement{says("Rank 0 reports an illegal memory access and rank 1 runs out of memory, and neither explains the other.", *f.Span, *r.Span)},
			Missing: []incident.Missing{{Fact: "the offset between the clocks of hostA and hostB", Name: "host.offset", How: "run date -u on both hosts at the same moment, or chronyc tracking on each", Cost: "seconds", Effect: "reads"}}},
		{Cause: "illegal-access", Entry: "illegal-access", Standing: incident.Possible, Title: "A kernel read or wrote outside its memory", For: []incident.Statement{says("Rank 0 says so.", *f.Span)}},
		{Cause: "rank-imbalance", Entry: "rank-imbalance", Standing: incident.Possible, Title: "One rank needs more memory than the others", For: []incident.Statement{says("Only rank 1 ran out of memory.", *r.Span)}},
	}
	inc.Remedy = &incident.Remedy{Entry: "undetermined", Scope: "measure", Effect: "reads", Cost: "seconds", Change: "Measure before changing anything: find out the offset between the clocks of hostA and hostB.",
		Why: "It orders the two failures.", Command: "for h in hostA hostB; do ssh $h date -u +%s.%N; done", Verify: "Run inquest again with the two times at hand.", Rollback: "Nothing to undo.", Expected: map[string]any{}}
	inc.Limits = []incident.Statement{says("The job has 4 ranks; words of 2 of them are in evidence. What the others printed could change the verdict.")}
	inc.Ranks = []incident.Rank{{Rank: 0, Host: ptr("hostA"), Attempt: "1", Fate: "failed", LastTime: f.Time, Artifacts: []string{a}}, {Rank: 1, Host: ptr("hostB"), Attempt: "1", Fate: "failed", LastTime: r.Time, Artifacts: []string{b}}}
	inc.Hosts = []incident.Host{{Host: "hostA", Basis: "no shared event bounds this host's clock"}, {Host: "hostB", Basis: "no shared event bounds this host's clock"}}
	inc.Context = []incident.Quote{quoteAround(a, 402, "14:02:09 step 88 loss 0.913", f.Text, "14:02:11 aborting"), quoteAround(b, 377, "21:02:08 step 88 loss 0.907", r.Text, "")}
	return finish(inc, "")
}

// eliminationSample: 31 of 32 ranks wait for the one that left no words.
func eliminationSample() *incident.Incident {
	inc := base("e1f0aa558c21", incident.Failed)
	var others []int
	for r := range 32 {
		if r != 19 {
			others = append(others, r)
			inc.Artifacts = append(inc.Artifacts, artifact(fmt.Sprintf("out/%02d/stderr", r), "ranklog", 20000+int64(r), r))
		}
	}
	last := at("out/00/stderr", 611, "[rank0]: Watchdog: WorkNCCL(SeqNum=9120, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800087 milliseconds before timing out.")
	store := at("out/07/stderr", 590, "still waiting for keys: rank_19 of 32")
	f := incident.Event{ID: "x1", Kind: "unknown", Class: "hang", Rank: ptr(19), LocalRank: ptr(3), Host: ptr("gpu-022"), Device: ptr(3), Attempt: "1", Attrs: map[string]any{}, KnownBy: "elimination",
		Eliminated: []incident.Elimination{{Ranks: others, Why: "each waited in the collective with sequence number 9120 until its watchdog ended it", Spans: spans(last)}, {Ranks: []int{7}, Why: "its store names rank 19 as the one not heard of", Spans: spans(store)}}}
	inc.FirstFault, inc.FirstFaultBasis, inc.FirstFaultStanding = &f, "all other ranks reached sequence number 9120 and waited there for rank 19", incident.Supported
	w := event("e2", "collective_timeout", "collective", 0, last)
	w.Time = stampOf(7200)
	inc.Collateral = []incident.Collateral{{Event: w, Ranks: others, Count: 31, ExplainedBy: incident.Explained{Event: "x1", Rule: "missing-rank", Text: "they waited for rank 19 for the whole time-out of 1800 s"}}}
	inc.Hypotheses = []incident.Hypothesis{{Cause: "killed-unknown", Entry: "killed-unknown", Standing: incident.Possible, Title: "The process was ended from outside, by whom is not known",
		For:     []incident.Statement{says("Rank 19 has no log, and nothing in the others' logs says why.")},
		Missing: []incident.Missing{{Fact: "what ended the process of rank 19 on gpu-022", Name: "exit.reason", How: "ssh gpu-022 dmesg -T | grep -iE 'oom|xid|killed'", Cost: "seconds", Effect: "reads"}},
		Readings: map[string]string{"executive": "One of 32 machines' processes vanished and the others waited half an hour for it.", "on_call": "Look at gpu-022 first: kernel log, then scheduler record. The other 31 ranks are victims. Keep gpu-022 out of the next launch until it is known.",
			"engineer": "Rank 19 never joined sequence number 9120."}}}
	inc.Remedy = &incident.Remedy{Entry: "killed-unknown", Scope: "measure", Effect: "reads", Cost: "seconds", Change: "Measure before changing anything: find out what ended the process of rank 19 on gpu-022.",
		Why: "A killed process, a lost device and a full host look the same from the other ranks.", Command: "ssh gpu-022 dmesg -T | grep -iE 'oom|xid|killed'", Verify: "Run inquest again with the kernel log of gpu-022 beside the rank logs.", Rollback: "Nothing to undo.", Expected: map[string]any{}}
	inc.Limits = []incident.Statement{says("No artifact of rank 19 was found.")}
	for r := range 32 {
		rk := incident.Rank{Rank: r, LocalRank: ptr(r % 8), Host: ptr(fmt.Sprintf("gpu-%03d", 20+r/8)), Device: ptr(r % 8), Attempt: "1", LastStep: ptr[int64](455), LastTime: stampOf(7200), Fate: "timed out waiting", Artifacts: []string{fmt.Sprintf("out/%02d/stderr", r)}}
		if r == 19 {
			rk.Fate, rk.LastStep, rk.LastTime, rk.Artifacts = "failed first", nil, nil, nil
		}
		inc.Ranks = append(inc.Ranks, rk)
	}
	inc.Groups = []incident.Group{{Name: "0", Members: others, Seq: ptr[int64](9120), Op: "_ALLGATHER_BASE", Missing: []int{19}}}
	inc.Context = []incident.Quote{quoteAround("out/00/stderr", 611, "iteration 455 | lm loss 2.71", last.Quote, "")}
	return finish(inc, "srun python pretrain.py")
}

// finishedSample: nothing failed.
func finishedSample() *incident.Incident {
	const log = "job-3381.out"
	inc := base("00a1b2c3d4e5", incident.FinishedRun, artifact(log, "ranklog", 1200345, -1))
	good := at(log, 15022, "epoch 12 step 60000 loss 0.4411")
	inc.LastGood = &incident.LastGood{Step: ptr[int64](60000), Loss: ptr(.4411), Span: &good}
	inc.Series = []incident.Series{logged("loss", "", "raw", -1, 0, 60000, 1000, func(s float64) float64 { return .44 + 4*math.Exp(-s/9000) })}
	return finish(inc, "python train.py")
}

// attemptsSample: out of memory, then a smaller batch in fp16, then NaN.
func attemptsSample() *incident.Incident {
	const log = "slurm-88213.out"
	inc := base("b4d2f1907e66", incident.Failed, artifact(log, "ranklog", 510233, -1))
	oom := event("e4", "device_oom", "device_memory", -1, at(log, 310, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB."))
	oom.Device, oom.Step = ptr(0), ptr[int64](0)
	nan := event("e19", "nonfinite_value", "nonfinite", -1, at(log, 2044, "step 410 | loss nan | grad_norm nan"))
	nan.Attempt, nan.Step = "2", ptr[int64](410)
	nan.Attrs = map[string]any{"metric": "loss", "value": "nan"}
	first := inc.Findings
	first.FirstFault, first.FirstFaultBasis, first.FirstFaultStanding = &oom, "it is the only failure of this launch", incident.Established
	first.Order = incident.Order{Relation: incident.OOMOnly, Basis: "no non-finite training value is in evidence", SameAttempt: true, Linked: incident.LinkNo, MemoryEvent: &oom}
	inc.Attempts = []incident.Attempt{{ID: "1", Spans: spans(at(log, 1, "+ srun python train.py --batch 32")), Outcome: incident.Failed, Command: "python train.py --batch 32", Findings: first}}
	last := at(log, 2039, "step 400 | loss 3.902 | grad_norm 88.1")
	inc.FirstFault, inc.FirstFaultBasis, inc.FirstFaultStanding = &nan, "it is the first failure of the launch that ended the job", incident.Established
	good := incident.LastGood{Step: ptr[int64](400), Loss: ptr(3.902), Span: &last}
	seen := incident.LastGood{Step: ptr[int64](410), Value: "loss nan", Span: nan.Span}
	inc.LastGood = &good
	inc.Order = incident.Order{Relation: incident.OOMFirst, Basis: "both stand in the same file, in this order", SameAttempt: false, Linked: incident.LinkUnknown, MemoryEvent: &oom, NonfiniteEvent: &nan,
		NonfiniteBracket: &incident.Bracket{LastFinite: &good, FirstSeen: &seen, Stride: ptr[int64](10), Trust: "raw"}}
	inc.Hypotheses = []incident.Hypothesis{{Cause: "nan-precision-overflow", Entry: "nan-precision-overflow", Standing: incident.Supported, Title: "Values left the range of 16-bit floats",
		For:     []incident.Statement{says("The launch that stayed finite until it ran out of memory computed in fp32; this one computes in fp16.", at(log, 402, "precision: fp16"), at(log, 9, "precision: fp32"))},
		Against: []incident.Statement{says("The batch changed as well, from 32 to 8.", at(log, 398, "batch: 8"))},
		Missing: []incident.Missing{{Fact: "whether the loss stays finite in bf16 at batch 8", Name: "nan.in_bf16", How: "python train.py --batch 8 --bf16 --steps 500", Cost: "one short run", Effect: "reversible"}}}}
	inc.Remedy = &incident.Remedy{Entry: "nan-precision-overflow", Scope: "config", Effect: "reversible", Change: "Compute in bf16 instead of fp16; batch 8 stays.", Why: "bf16 has the range of fp32.",
		Edits: []incident.Edit{{Stack: "any", Where: "command line", From: "--fp16", To: "--bf16"}}, Command: "python train.py --batch 8 --bf16 --steps 500", Verify: "Steps 400 to 500 log a finite loss and gradient norm.", Rollback: "Back to --fp16.", Expected: map[string]any{}}
	inc.Series = []incident.Series{logged("loss", "", "raw", -1, 0, 600, 10, func(s float64) float64 {
		if s >= 410 {
			return math.NaN()
		}
		return 3.9 + 7*math.Exp(-s/80)
	})}
	inc.Series[0].Attempt = "2"
	inc.Context = []incident.Quote{quoteAround(log, 2044, last.Quote, nan.Text, "step 420 | loss nan | grad_norm nan"), quoteAround(log, 310, "    x = self.attn(x)", oom.Text, "srun: error: task 0: Exited with exit code 1")}
	inc.Attempts = append(inc.Attempts, incident.Attempt{ID: "2", Spans: spans(at(log, 390, "+ srun python train.py --batch 8 --fp16")), Outcome: incident.Failed, Command: "python train.py --batch 8 --fp16", Findings: inc.Findings,
		ChangedFrom: &incident.Changed{ID: "1", Diffs: []incident.Diff{{Name: "batch", From: "32", To: "8", Spans: spans(at(log, 398, "batch: 8"))}, {Name: "precision", From: "fp32", To: "fp16", Spans: spans(at(log, 402, "precision: fp16"))}}}})
	inc.Baseline = &incident.Baseline{Paths: []string{"good/slurm-88001.out"}, Diffs: []incident.Diff{{Name: "torch", From: "2.5.1", To: "2.6.0"}}}
	return inc
}

// hostileSample: every text tries something.
func hostileSample() *incident.Incident {
	const evil = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script><img src=x onerror=alert(2)> [link](javascript:alert(3)) ![i](http://evil.example/i.png) @everyone #1 ``` `x` ~~~ | a | \u202egnp.exe \u200b\U000e0041 www.evil.example a@b.example $x$ --> ]]> \xff\xfe {{.}} ${x}"
	path := "logs/\"><svg onload=alert(4)>|`rank`.log"
	inc := base("bad0bad0bad0", incident.Failed, artifact(path, "ranklog", 666, 0))
	sp := at(path, 3, evil)
	f := event("e1\"><b>", "device_oom", "device_memory", 0, sp)
	f.Host, f.Attrs = ptr("node<1>@here"), map[string]any{"what": evil, "nested": []any{evil, map[string]any{"k\x1b": evil}}}
	f.Frame = &incident.Frame{File: "a`b.py", Line: 1, Function: "<lambda>", Source: "x = '</script><!--'"}
	inc.FirstFault, inc.FirstFaultBasis, inc.FirstFaultStanding = &f, "basis "+evil, incident.Established
	inc.Order = incident.Order{Relation: incident.OOMOnly, Basis: evil, SameAttempt: true, Linked: incident.LinkNo, MemoryEvent: &f}
	inc.Hypotheses = []incident.Hypothesis{{Cause: "x", Entry: "x", Standing: incident.Supported, Title: "# title\n# second " + evil, Why: evil, For: []incident.Statement{says("- for\n\n<b>bold</b> "+evil, sp)}, Against: []incident.Statement{says("1. "+evil, sp)},
		Missing: []incident.Missing{{Fact: evil, How: evil, Cost: evil, Effect: "changes"}}, Readings: map[string]string{"executive": evil, "on_call": evil}}}
	inc.Remedy = &incident.Remedy{Entry: "x", Scope: "<b>", Change: evil, Edits: []incident.Edit{{Stack: "any", Where: evil, From: "```\n" + evil, To: "````\n" + evil}}, Command: "````\n" + evil + "\n~~~~", Verify: evil, Rollback: evil, Risks: []string{evil}, Expected: map[string]any{"shows": evil}, Effect: evil}
	inc.Checklist = []incident.CheckItem{{Item: evil, State: "unknown", How: evil, Spans: spans(sp)}}
	inc.HostComparison = &incident.HostComparison{Suspect: evil, Fresh: evil, Says: evil, Rows: []incident.HostRow{{Name: evil, Suspect: evil, Fresh: evil, Differs: true, Spans: spans(sp)}}}
	inc.OnCall = &incident.OnCall{Restart: incident.Restart{Unchanged: "repeats", Standing: incident.Supported, From: "latest", Why: evil, Spans: spans(sp)},
		Cordon:    []incident.Cordon{{Host: evil, BusID: evil, Standing: incident.Established, Why: evil, Compare: evil, Spans: spans(sp)}},
		Lost:      &incident.Lost{Checkpoint: evil, Why: evil, Spans: spans(sp)},
		Reproduce: &incident.Reproduce{Needs: "one_rank", Why: evil, Command: evil}}
	inc.Limits = []incident.Statement{says(evil, at("other.log", 1, evil))}
	inc.Facts["setting.</script>"] = incident.Fact{Value: evil, Text: evil, Spans: spans(sp)}
	inc.Series = []incident.Series{logged("loss", "", "raw", 0, 1, 9, 1, func(s float64) float64 { return 1 / s })}
	inc.Series[0].Source = evil
	inc.Context = []incident.Quote{{Artifact: path, Line: 1, Mark: 3, Lines: []string{"``````````", "</pre></table>", evil}}}
	inc.Artifacts[0].Note = evil
	inc.PassedOver = []incident.PassedOver{{What: evil, Count: 1, Bytes: 1}}
	return finish(inc, evil)
}
