package remedy

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

func cause(standing, unchanged, from, needs, suspect string) Cause {
	return Cause{Standing: standing, Entry: &catalog.Entry{ID: "c-" + unchanged, Area: "device", Rerun: catalog.Rerun{Unchanged: unchanged, From: from, Needs: needs, Suspect: suspect}}}
}

func fault(host string) *incident.Event {
	rank, step := 5, int64(140)
	e := &incident.Event{Rank: &rank, Step: &step, Span: &evidence.Span{Artifact: "a.log", Line: 3}}
	if host != "" {
		e.Host = &host
	}
	return e
}

var unknownRun = Run{Began: evidence.None, Reached: evidence.None, Good: evidence.None}

// TestRestart: equal causes that disagree leave the answer open, and of the
// checkpoints the older one serves them all.
func TestRestart(t *testing.T) {
	f := func(want, from string, undecided bool, causes ...Cause) {
		t.Helper()
		r := unknownRun
		r.Fault, r.Undecided = fault("n1"), undecided
		got := OnCall(causes, nil, nil, r).Restart
		if got.Unchanged != want || got.From != from {
			t.Errorf("got %s from %s, want %s from %s", got.Unchanged, got.From, want, from)
		}
	}
	repeats := cause(incident.Established, "repeats", "latest", "one_rank", "")
	f("repeats", "latest", false, repeats)
	f("unknown", "latest", true, repeats)
	a, b := cause(incident.Possible, "repeats", "latest", "one_rank", ""), cause(incident.Possible, "safe", "before", "job", "")
	f("unknown", "before", false, a, b)
	f("repeats", "latest", false, a, a)
	if OnCall(nil, nil, nil, unknownRun) != nil {
		t.Error("without a cause there is nothing to decide on")
	}
}

// TestCordon: only a host that the cause suspects, and only on more than a guess.
func TestCordon(t *testing.T) {
	f := func(want int, c Cause, host string, undecided bool) {
		t.Helper()
		r := unknownRun
		r.Fault, r.Undecided = fault(host), undecided
		if got := OnCall([]Cause{c}, nil, nil, r).Cordon; len(got) != want {
			t.Errorf("%s %s: %d hosts to cordon, want %d", c.Standing, host, len(got), want)
		}
	}
	f(1, cause(incident.Established, "elsewhere", "latest", "device", "host"), "n1", false)
	f(1, cause(incident.Supported, "elsewhere", "latest", "device", "host"), "n1", false)
	f(0, cause(incident.Possible, "elsewhere", "latest", "device", "host"), "n1", false)
	f(0, cause(incident.Established, "elsewhere", "latest", "device", "host"), "n1", true)
	f(0, cause(incident.Established, "elsewhere", "latest", "device", "host"), "", false)
	f(0, cause(incident.Established, "repeats", "latest", "one_rank", ""), "n1", false)
}

func TestLost(t *testing.T) {
	f := func(from string, r Run, path string, steps int64) {
		t.Helper()
		l := lost(from, r)
		if l.Checkpoint != path || steps < 0 != (l.Steps == nil) || l.Steps != nil && *l.Steps != steps {
			t.Errorf("got %+v, want %s and %d steps", l, path, steps)
		}
	}
	saves := []Saved{{Step: 100, Path: "s100"}, {Step: 130, Path: "s130"}}
	f("latest", Run{Began: 0, Reached: 141, Good: 120, Saved: saves}, "s130", 11)
	f("before", Run{Began: 0, Reached: 141, Good: 120, Saved: saves}, "s100", 41)
	f("before", Run{Began: 0, Reached: 141, Good: 90, Saved: saves}, "", 141)
	f("start", Run{Began: 0, Reached: 141, Good: 120, Saved: saves}, "", 141)
	f("latest", Run{Began: evidence.None, Reached: 141, Good: 141}, "", -1)
	f("latest", Run{Began: evidence.None, Reached: evidence.None, Good: evidence.None, Saved: []Saved{{Step: evidence.None, Path: "last.pt"}}}, "last.pt", -1)
	for path, want := range map[string]int64{"out/checkpoint-2600/model.safetensors": 2600, "ckpt/global_step0200": 200, "runs/2024/last.pt": evidence.None, "a/step_000300/rank_7.pt": 300, "out/d12/model_004000.pt": 4000} {
		if got := StepOfPath(path); got != want {
			t.Errorf("StepOfPath(%q) is %d, want %d", path, got, want)
		}
	}
	if got := resumedAt("train.py --lr 1 --resume /ckpt/a/step_17000"); got != 17000 {
		t.Errorf("resumedAt is %d", got)
	}
}

func TestWithSize(t *testing.T) {
	f := func(in string, ranks, hosts int, want string) {
		t.Helper()
		if got, ok := withSize(in, ranks, hosts); got != want || ok != (want != "") {
			t.Errorf("withSize(%q, %d, %d)\n got %q %v\nwant %q", in, ranks, hosts, got, ok, want)
		}
	}
	f("torchrun --nnodes 4 --nproc_per_node=8 --node_rank 2 --rdzv_endpoint n1:29400 train.py --lr 1", 1, 1, "torchrun --standalone --nnodes 1 --nproc_per_node=1 train.py --lr 1")
	f("torchrun --nnodes 4 --nproc-per-node 8 train.py", 2, 2, "torchrun --nnodes 2 --nproc-per-node 1 train.py")
	f("accelerate launch --num_processes 16 --num_machines 2 sft.py", 2, 1, "accelerate launch --num_processes 2 --num_machines 1 sft.py")
	f("deepspeed --num_gpus 8 train.py", 1, 1, "deepspeed --num_gpus 1 train.py")
	f("srun -N 4 -n 32 python train.py", 1, 1, "srun -N 1 -n 1 python train.py")
	f("mpirun -np 16 python train.py", 2, 1, "mpirun -np 2 python train.py")
	f("torchrun train.py", 1, 1, "")
	f("python train.py", 1, 1, "")
	f("torchrun --nproc_per_node 8 train.py", 3, 2, "")
}

// TestReproduce: sharded states need their ranks; a run without a launcher is its
// own smallest form.
func TestReproduce(t *testing.T) {
	c := cause(incident.Established, "repeats", "latest", "one_rank", "")
	c.Entry.Area = "device-memory"
	r := unknownRun
	r.Fault, r.World, r.Hosts, r.Command = fault("n1"), 16, 2, "torchrun --nnodes 2 --nproc_per_node 8 train.py"
	got := OnCall([]Cause{c}, nil, evidence.Known{}, r).Reproduce
	if got.Needs != "one_rank" || got.Command != "torchrun --nnodes 1 --nproc_per_node 1 train.py" || *got.ToStep != 140 {
		t.Errorf("got %+v", got)
	}
	known := evidence.Known{}
	known.Set("run.sharded", evidence.BoolOf(true))
	if got := OnCall([]Cause{c}, nil, known, r).Reproduce; got.Needs != "job" || *got.Ranks != 16 || got.Command != r.Command {
		t.Errorf("sharded: got %+v", got)
	}
	r.World, r.Command = 0, "python fit.py"
	if got := OnCall([]Cause{c}, nil, evidence.Known{}, r).Reproduce; got.Command != "python fit.py" {
		t.Errorf("alone: got %+v", got)
	}
	if got := OnCall([]Cause{cause(incident.Established, "safe", "latest", "none", "")}, nil, nil, r).Reproduce; got != nil {
		t.Errorf("nothing to reproduce: got %+v", got)
	}
}
