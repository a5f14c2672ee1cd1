package ledger

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// trialOf is a trial of a command line, its words apart by blanks.
func trialOf(id, command, result string) incident.Trial {
	return incident.Trial{ID: id, Command: strings.Fields(command), Dir: "/home/ana/proj", Verdict: &incident.TrialVerdict{Result: result, Class: "device_memory"},
		Environment: &incident.Environment{Host: "node017", System: "linux", Kernel: "6.1", CPUs: 8, Memory: 64 << 30, Python: "/usr/bin/python3 3.11.4", Driver: "550.54",
			Variables: map[string]string{"NCCL_DEBUG": "INFO"}, Packages: map[string]string{"torch": "2.4.0"}, Limits: map[string]int64{"open_files": 1024},
			Git:     &incident.Git{Root: "/home/ana/proj", Commit: "0123456789abcdef", Branch: "main"},
			Devices: []incident.TrialDevice{{Name: "H100", UUID: "GPU-1", Memory: 80 << 30}}}}
}

func texts(list []incident.Change) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Of+": "+c.Text)
	}
	return strings.Join(out, "\n")
}

func TestCommands(t *testing.T) {
	for _, c := range []struct{ name, a, b, changes, expected string }{
		{"same", "python train.py --lr 1", "python train.py --lr 1", "", ""},
		{"value", "python train.py --lr 1e-4", "python train.py --lr 3e-4", "command: --lr 1e-4 → 3e-4", ""},
		{"equals sign and spelling", "python train.py --batch-size=8", "python train.py --batch_size 8", "", ""},
		{"number", "python train.py --lr 1e-4", "python train.py --lr 0.0001", "", "command: --lr 1e-4 → 0.0001: the same in other words"},
		{"switch added", "python train.py", "python train.py --bf16", "command: --bf16 added", ""},
		{"switch removed", "python train.py --bf16 --lr 1", "python train.py --lr 1", "command: --bf16 removed", ""},
		{"order of options", "python train.py --a 1 --b 2", "python train.py --b 2 --a 1", "", ""},
		{"switch before an argument", "python train.py --fp16 conf.yaml", "python train.py conf.yaml --fp16", "", ""},
		{"switch gone before an argument", "python train.py --fp16 conf.yaml", "python train.py conf.yaml", "command: --fp16 removed", ""},
		{"repeated", "python train.py --cb x --cb y", "python train.py --cb x --cb z", "command: --cb y → z", ""},
		{"repeated, another order", "python train.py --cb x --cb y", "python train.py --cb y --cb x", "command: --cb in another order: x y → y x", ""},
		{"several values", "python train.py --betas 0.9 0.95", "python train.py --betas 0.9 0.999", "command: --betas 0.9 0.95 → 0.9 0.999", ""},
		{"negative number", "python train.py --shift -1", "python train.py --shift -2", "command: --shift -1 → -2", ""},
		{"short", "python train.py -b8", "python train.py -b 4", "command: -b 8 → 4", ""},
		{"hydra", "python train.py optim.lr=1 +a=b", "python train.py optim.lr=2 ++a=b", "command: optim.lr 1 → 2", ""},
		{"launcher apart from script", "torchrun --nproc_per_node 8 train.py --nproc_per_node 1", "torchrun --nproc_per_node 4 train.py --nproc_per_node 1", "command: --nproc_per_node 8 → 4 (of the launcher)", ""},
		{"port", "torchrun --master_port 29500 train.py", "torchrun --master_port 29501 train.py", "", "command: --master_port 29500 → 29501: addresses and ports of one run"},
		{"another launcher", "python train.py", "torchrun train.py", "command: launcher python → torchrun", ""},
		{"another script", "python train.py", "python train2.py", "command: script train.py → train2.py", ""},
		{"same script by path", "python train.py", "python3 /home/ana/proj/train.py", "", "command: script train.py → /home/ana/proj/train.py: the same file of the same project"},
		{"module", "python -m pkg.train --lr 1", "python -m pkg.train2 --lr 1", "command: script pkg.train → pkg.train2", ""},
		{"launch module", "python -m torch.distributed.launch --nproc_per_node=2 train.py --x 1", "python -m torch.distributed.launch --nproc_per_node=2 train.py --x 2", "command: --x 1 → 2", ""},
		{"env words", "env A=1 python train.py", "env A=2 python train.py", "environment: A=1 → 2", ""},
		{"data", "python train.py --train_file a.json", "python train.py --train_file b.json", "data: --train_file a.json → b.json", ""},
		{"data argument", "python train.py a.jsonl", "python train.py b.jsonl", "data: argument 1 a.jsonl → b.jsonl", ""},
		{"no data", "python train.py --dataloader_num_workers 8", "python train.py --dataloader_num_workers 2", "command: --dataloader_num_workers 8 → 2", ""},
		{"output", "python train.py --output_dir /scratch/a", "python train.py --output_dir /scratch/b", "", "command: --output_dir /scratch/a → /scratch/b: where one run writes"},
		{"temporary", "python train.py --cache /tmp/x1/c", "python train.py --cache /tmp/y2/c", "", "command: --cache /tmp/x1/c → /tmp/y2/c: a folder for what is temporary"},
		{"dated", "python train.py --to r/2026-01-02_10-11-12", "python train.py --to r/2026-01-03_10-11-13", "", "command: --to r/2026-01-02_10-11-12 → r/2026-01-03_10-11-13: the time of one run"},
		{"micro-batch", "python train.py --per_device_train_batch_size 8 --gradient_accumulation_steps 4", "python train.py --per_device_train_batch_size 4 --gradient_accumulation_steps 8", "command: micro-batch 8 → 4, effective batch kept (accumulation 4 → 8)", ""},
		{"micro-batch, accumulation new", "python train.py --batch-size 8", "python train.py --batch-size 4 --accum 2", "command: micro-batch 8 → 4, effective batch kept (accumulation 1 → 2)", ""},
		{"micro-batch, product not kept", "python train.py --batch-size 8", "python train.py --batch-size 4 --accum 4", "command: --batch-size 8 → 4\ncommand: --accum 4 added", ""},
		{"micro-batch by hydra", "python train.py data.batch_size=8 trainer.accumulate_grad_batches=1", "python train.py data.batch_size=2 trainer.accumulate_grad_batches=4", "command: micro-batch 8 → 2, effective batch kept (accumulation 1 → 4)", ""},
		{"global batch stated", "python t.py --micro-batch-size 8 --global-batch-size 256", "python t.py --micro-batch-size 4 --global-batch-size 256", "command: --micro-batch-size 8 → 4, effective batch kept: --global-batch-size 256 in both", ""},
		{"evaluation batch is not the micro-batch", "python t.py --eval_batch_size 8 --accum 1", "python t.py --eval_batch_size 4 --accum 2", "command: --eval_batch_size 8 → 4\ncommand: --accum 1 → 2", ""},
		{"no script told", "./train --lr 1 --x", "./train --lr 2 --x", "command: --lr 1 → 2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(trialOf("t1", c.a, incident.OutOfMemory), trialOf("t2", c.b, incident.Passed))
			if s := texts(got.Changes); s != c.changes {
				t.Errorf("changes\n%s\nwant\n%s", s, c.changes)
			}
			if s := texts(got.Expected); s != c.expected {
				t.Errorf("expected\n%s\nwant\n%s", s, c.expected)
			}
		})
	}
}

func TestEnvironments(t *testing.T) {
	for _, c := range []struct {
		name                       string
		change                     func(*incident.Trial)
		changes, expected, unknown string
	}{
		{"variable", func(t *incident.Trial) { t.Environment.Variables["NCCL_DEBUG"] = "WARN" }, "environment: NCCL_DEBUG=INFO → WARN", "", ""},
		{"variable set for the trial", func(t *incident.Trial) { t.Set = map[string]string{"NCCL_P2P_DISABLE": "1"} }, "environment: NCCL_P2P_DISABLE=1 added", "", ""},
		{"variable of this program", func(t *incident.Trial) { t.Set = map[string]string{"WANDB_MODE": "offline"} }, "", "environment: WANDB_MODE offline added: set by this program so that the trial destroys nothing", ""},
		{"scheduler", func(t *incident.Trial) {
			t.Environment.Variables["SLURM_JOB_ID"] = "2"
			t.Environment.Variables["MASTER_PORT"] = "1"
		}, "", "environment: MASTER_PORT 1 added: addresses and ports of one run\nenvironment: SLURM_JOB_ID 2 added: the scheduler's names of one job", ""},
		{"allocator", func(t *incident.Trial) {
			t.Environment.Allocator = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,roundup_power2_divisions:[256:1,512:2]"
		}, "setting: expandable_segments:True added in PYTORCH_CUDA_ALLOC_CONF\nsetting: roundup_power2_divisions:[256:1,512:2] added in PYTORCH_CUDA_ALLOC_CONF", "", ""},
		{"allocator set for the trial", func(t *incident.Trial) {
			t.Set = map[string]string{"PYTORCH_ALLOC_CONF": "max_split_size_mb:128"}
			t.Environment.Allocator = "max_split_size_mb:128"
		}, "setting: max_split_size_mb:128 added in PYTORCH_ALLOC_CONF", "", ""},
		{"version", func(t *incident.Trial) {
			t.Environment.Packages = map[string]string{"Torch": "2.5.1", "flash_attn": "2.6"}
		},
			"version: flash-attn 2.6 added\nversion: torch 2.4.0 → 2.5.1", "", ""},
		{"python", func(t *incident.Trial) { t.Environment.Python = "/opt/3.12.1/bin/python 3.12.2" }, "version: Python 3.11.4 → 3.12.2", "", ""},
		{"another copy of python", func(t *incident.Trial) { t.Environment.Python = "/opt/bin/python 3.11.4" }, "", "version: Python /usr/bin/python3 3.11.4 → /opt/bin/python 3.11.4: the same version at another place; the packages are compared", ""},
		{"driver", func(t *incident.Trial) { t.Environment.Driver = "560.1" }, "version: driver 550.54 → 560.1", "", ""},
		{"driver not told", func(t *incident.Trial) { t.Environment.Driver = "" }, "", "", "the driver: t2 has it not recorded"},
		{"commit", func(t *incident.Trial) { t.Environment.Git.Commit = "ffff" }, "code: code 0123456789ab → ffff; how much of it changed is not looked at", "", ""},
		{"working tree", func(t *incident.Trial) { t.Environment.Git.Changed, t.Environment.Git.Digest = true, "beef" }, "code: code 0123456789ab → 0123456789ab with changes beef; how much of it changed is not looked at", "", ""},
		{"branch only", func(t *incident.Trial) { t.Environment.Git.Branch = "try" }, "", "code: branch main → try: the same code", ""},
		{"no git", func(t *incident.Trial) { t.Environment.Git = nil }, "", "", "code: t2 has it not recorded: no Git working tree"},
		{"another host of the kind", func(t *incident.Trial) {
			t.Environment.Host, t.Environment.Devices[0].UUID, t.Environment.Memory = "node018", "GPU-2", 64<<30-4096
		},
			"", "machine: host node017 → node018: another machine; its kind is compared\nmachine: host memory 64.00 GiB → 64.00 GiB: within 1 % of each other, as machines of one kind are\nmachine: devices GPU-1 → GPU-2: other cards of the same kind", ""},
		{"other devices", func(t *incident.Trial) { t.Environment.Devices[0].Name = "A100" }, "machine: GPUs 1 × H100 with 80.00 GiB → 1 × A100 with 80.00 GiB", "", ""},
		{"limit", func(t *incident.Trial) {
			t.Environment.Limits = map[string]int64{"open_files": 1024, "address_space": 4 << 30}
		}, "machine: limit of address space none → 4.00 GiB", "", ""},
		{"room on a disk", func(t *incident.Trial) {
			t.Environment.Limits = map[string]int64{"open_files": 1024, "disk_free": 4 << 30}
		}, "", "", ""},
		{"kernel", func(t *incident.Trial) { t.Environment.Kernel = "6.2" }, "machine: kernel 6.1 → 6.2", "", ""},
		{"no environment", func(t *incident.Trial) { t.Environment = nil }, "", "", "environment variables: t2 has it not recorded\nversions: t2 has it not recorded\ncode: t2 has it not recorded: no Git working tree\nthe machine: t2 has it not recorded"},
		{"processes", func(t *incident.Trial) {
			t.Command = strings.Fields("torchrun --nproc_per_node 2 train.py")
			t.Environment.Variables["WORLD_SIZE"] = "2"
		}, "command: --nproc_per_node 4 → 2 (of the launcher), and what the launcher derives from it", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := trialOf("t1", "python train.py", incident.OutOfMemory), trialOf("t2", "python train.py", incident.Passed)
			if c.name == "processes" {
				a.Command = strings.Fields("torchrun --nproc_per_node 4 train.py")
				a.Environment.Variables["WORLD_SIZE"] = "4"
			}
			c.change(&b)
			got := Compare(a, b)
			if s := texts(got.Changes); s != c.changes {
				t.Errorf("changes\n%s\nwant\n%s", s, c.changes)
			}
			if s := texts(got.Expected); s != c.expected {
				t.Errorf("expected\n%s\nwant\n%s", s, c.expected)
			}
			if s := strings.Join(got.Unknown, "\n"); s != c.unknown {
				t.Errorf("unknown\n%s\nwant\n%s", s, c.unknown)
			}
		})
	}
}

func TestSays(t *testing.T) {
	one, two := "python train.py --lr 1", "python train.py --lr 2"
	for _, c := range []struct{ a, before, b, after, effect, says string }{
		{one, incident.OutOfMemory, two, incident.Passed, incident.Helped, "one thing changed: --lr 1 → 2. It helped: out of memory before, passed after; only a verification shows that it lasts."},
		{one, incident.OutOfMemory, two, incident.OutOfMemory, incident.DidNotHelp, "one thing changed: --lr 1 → 2. It did not help: out of memory before and after, in the same way; take it back."},
		{one, incident.OutOfMemory, two, incident.TrialFailed, incident.AnotherFailure, "one thing changed: --lr 1 → 2. The first failure did not come back, but another did: out of memory, then failed; whether it helped cannot be told from that."},
		{one, incident.Passed, two, incident.TrialFailed, incident.MadeWorse, "one thing changed: --lr 1 → 2. It made it worse: passed before, failed after."},
		{one, incident.Passed, two, incident.Passed, incident.BothPassed, "one thing changed: --lr 1 → 2. Both passed: there was nothing to help."},
		{one, incident.OutOfMemory, two, incident.Unfinished, incident.EffectUnknown, "one thing changed: --lr 1 → 2. Whether it helped cannot be told: out of memory, then unfinished."},
		{one, incident.OutOfMemory, one, incident.Passed, incident.Helped, "nothing that is recorded changed; if the result differs, it is not deterministic or something unrecorded changed. The first failed and the second passed: one pass without a change is no fix."},
		{one, incident.OutOfMemory, two + " --x", incident.Passed, incident.Helped, "2 things changed: --lr 1 → 2; --x added; more than one thing changed: which of them helped is not shown. Together they helped: out of memory before, passed after; only a verification shows that it lasts."},
	} {
		got := Compare(trialOf("t1", c.a, c.before), trialOf("t2", c.b, c.after))
		if got.Effect != c.effect || got.Says != c.says {
			t.Errorf("%s %s, %s %s\n got %s: %s\nwant %s: %s", c.a, c.before, c.b, c.after, got.Effect, got.Says, c.effect, c.says)
		}
	}
}

// FuzzCompare checks that any two commands and variables can be compared: twice with the same
// bytes, with nothing changed where they are equal, and with each difference told once in both
// directions.
func FuzzCompare(f *testing.F) {
	f.Add("torchrun --nproc_per_node=2 train.py --lr 1 a=b ~c -x -1", "python -m x.y -b8 --fp16 data.json", "PYTORCH_ALLOC_CONF", "a:[1,2],b:c")
	f.Add("bash -c --", "env A=1", "SLURM_JOB_ID", "1")
	f.Fuzz(func(t *testing.T, p, q, name, value string) {
		a, b := trialOf("t1", p, incident.Passed), trialOf("t2", q, incident.TrialFailed)
		b.Environment.Variables = maps.Clone(b.Environment.Variables)
		b.Environment.Variables[name] = value
		one, _ := json.Marshal(Compare(a, b))
		two, _ := json.Marshal(Compare(a, b))
		if string(one) != string(two) {
			t.Fatal("not the same twice")
		}
		for _, x := range []incident.Trial{a, b} {
			if c := Compare(x, x); len(c.Changes)+len(c.Expected) > 0 {
				t.Fatalf("a trial differs from itself: %s %s", texts(c.Changes), texts(c.Expected))
			}
		}
		if x, y := Compare(a, b), Compare(b, a); len(x.Changes) != len(y.Changes) {
			t.Fatalf("%s\nand back\n%s", texts(x.Changes), texts(y.Changes))
		}
		for _, c := range Compare(a, b).Changes {
			if c.From == c.To && !strings.Contains(c.Text, "order") || !slices.Contains(kindsOfChange, c.Of) {
				t.Fatalf("%+v", c)
			}
		}
	})
}
