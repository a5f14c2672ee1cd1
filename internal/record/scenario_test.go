package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// words splits a command line of the tables at blanks; '…' holds a word with blanks together.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

func TestProgram(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"python train.py", "train.py"},
		{"python3.12 -u train.py --lr 1e-4 --out x.py", "train.py"},
		{"python -uB src/train.py", "src/train.py"},
		{"python -X faulthandler -W ignore::UserWarning train.py", "train.py"},
		{"python -Xfaulthandler -Wignore train.py", "train.py"},
		{"/opt/venv/bin/python -m train.main --batch 4", "-m train.main"},
		{"python -um train.main", "-m train.main"},
		{"python -mtrain.main", "-m train.main"},
		{"python -c 'import x; x.run()' a", "python -c 98d3"},
		{"python -", "python -"},
		{"python", "python"},
		{"python -u", "python"},
		{"./train.py --epochs 2", "train.py"},
		{"./bin/train --epochs 2", "bin/train"},
		{"/usr/bin/make all", "make all"},
		{"env CUDA_VISIBLE_DEVICES=0,1 PYTHONUNBUFFERED=1 python train.py", "train.py"},
		{"env -u LD_PRELOAD -i A=b python train.py", "train.py"},
		{"CUDA_VISIBLE_DEVICES=0 python train.py", "train.py"},
		{"nohup python train.py", "train.py"},
		{"time -p python train.py", "train.py"},
		{"/usr/bin/time -v -o t.txt python train.py", "train.py"},
		{"nice -n 10 ionice -c 2 -n 0 python train.py", "train.py"},
		{"nice -10 python train.py", "train.py"},
		{"numactl --cpunodebind=0 --membind=0 python train.py", "train.py"},
		{"numactl -N 0 -m 0 python train.py", "train.py"},
		{"numactl --interleave all python train.py", "train.py"},
		{"numactl -l python train.py", "train.py"},
		{"taskset -c 0-15 python train.py", "train.py"},
		{"taskset 0xff python train.py", "train.py"},
		{"timeout -k 10 3600 python train.py", "train.py"},
		{"timeout --signal=INT 2h python train.py", "train.py"},
		{"stdbuf -oL -eL python train.py", "train.py"},
		{"prlimit --as=4000000000 python train.py", "train.py"},
		{"strace -f -o out.txt -e trace=memory python train.py", "train.py"},
		{"gdb -batch -ex run -ex bt --args python train.py", "train.py"},
		{"sudo -E -u me python train.py", "train.py"},

		{"torchrun train.py", "train.py"},
		{"torchrun --nproc_per_node 8 train.py --nproc 3", "train.py"},
		{"torchrun --nproc-per-node=8 --nnodes=2 --node_rank 0 --master_addr 10.0.0.1 --master_port 29500 src/train.py cfg.yaml", "src/train.py"},
		{"torchrun --standalone --nnodes=1:4 --nproc_per_node=gpu train.py", "train.py"},
		{"torchrun --rdzv_backend c10d --rdzv_endpoint h0:29400 --rdzv_id 12 --max_restarts 3 train.py", "train.py"},
		{"torchrun --nproc_per_node 8 -m pkg.train --x 1", "-m pkg.train"},
		{"torchrun -m --nproc_per_node 8 pkg.train --x 1", "-m pkg.train"},
		{"torchrun --nproc_per_node 8 --no-python ./wrapper.sh train.py", "wrapper.sh"},
		{"torchrun --nproc_per_node 8 --no_python bash -c 'python train.py'", "train.py"},
		{"torchrun --new-option value train.py", "train.py"},
		{"torchrun --nproc_per_node 2 --tee 3 --log-dir logs ./train", "train"},
		{"python -m torch.distributed.run --nproc_per_node=4 train.py", "train.py"},
		{"python -m torch.distributed.launch --nproc_per_node 4 --use_env train.py", "train.py"},
		{"python -u -m torch.distributed.launch --nproc_per_node=4 --master_port=29501 tools/train.py configs/a.py --launcher pytorch", "tools/train.py"},

		{"accelerate launch train.py", "train.py"},
		{"accelerate launch --num_processes 8 --mixed_precision bf16 --multi_gpu train.py --mixed_precision no", "train.py"},
		{"accelerate launch --config_file fsdp.yaml --main_process_port 29501 scripts/sft.py --model m", "scripts/sft.py"},
		{"accelerate launch -m axolotl.cli.train examples/a.yml", "-m axolotl.cli.train"},
		{"accelerate launch --num_processes=2 --module pkg.train", "-m pkg.train"},
		{"accelerate-launch --cpu train.py", "train.py"},
		{"python -m accelerate.commands.launch --num_processes 2 train.py", "train.py"},
		{"deepspeed train.py --deepspeed ds.json", "train.py"},
		{"deepspeed --num_gpus=8 --master_port 29501 train.py --deepspeed ds.json", "train.py"},
		{"deepspeed --include localhost:0,1 --hostfile hosts train.py", "train.py"},
		{"deepspeed --module pkg.train", "-m pkg.train"},
		{"horovodrun -np 4 -H a:2,b:2 python train.py", "train.py"},
		{"composer -n 8 train.py", "train.py"},
		{"composer -n 8 -m pkg.train", "-m pkg.train"},
		{"colossalai run --nproc_per_node 4 --hostfile h train.py", "train.py"},

		{"srun python train.py", "train.py"},
		{"srun -N 2 --ntasks-per-node=8 --gres gpu:8 --cpu-bind none python -u train.py", "train.py"},
		{"srun --nodes=2 -l -u --kill-on-bad-exit=1 torchrun --nproc_per_node 8 train.py", "train.py"},
		{"srun --container-image img.sqsh --container-mounts /a:/b bash -c 'cd /b && python -u train.py --x 1'", "train.py"},
		{"mpirun -np 4 python train.py", "train.py"},
		{"mpirun --allow-run-as-root -np 8 -H a:4,b:4 -x NCCL_DEBUG=INFO -x PATH -mca pml ob1 --bind-to none python train.py", "train.py"},
		{"mpiexec -n 4 -genv A 1 -ppn 2 ./train", "train"},
		{"mpiexec.hydra -n 4 -env A 1 python3 train.py", "train.py"},
		{"jsrun -n 6 -a 1 -g 1 -c 7 python train.py", "train.py"},
		{"flux run -n 4 -g 1 python train.py", "train.py"},

		{"uv run train.py", "train.py"},
		{"uv run --with torch --python 3.12 train.py", "train.py"},
		{"uv run python -m pkg.train", "-m pkg.train"},
		{"uv run -m pkg.train", "-m pkg.train"},
		{"uv run --no-sync -- torchrun --nproc-per-node 2 train.py", "train.py"},
		{"poetry run python train.py", "train.py"},
		{"pixi run -e gpu python train.py", "train.py"},
		{"conda run -n env --no-capture-output python train.py", "train.py"},
		{"micromamba run -n env python train.py", "train.py"},
		{"singularity exec --nv -B /data:/data img.sif python train.py", "train.py"},
		{"apptainer exec --nv --bind /data img.sif torchrun --nproc_per_node 4 train.py", "train.py"},
		{"docker run --rm --gpus all --shm-size 8g -v /a:/b img:tag python train.py", "train.py"},
		{"docker run --rm --gpus=all --ipc=host img:tag python -m pkg.train", "-m pkg.train"},
		{"docker ps", "docker ps"},

		{"bash run.sh --lr 1", "run.sh"},
		{"bash -x run.sh", "run.sh"},
		{"bash -o pipefail run.sh", "run.sh"},
		{"sh -c 'python train.py --lr 1'", "train.py"},
		{"bash -lc 'source env.sh; export A=1; cd sub && exec python -u train.py > log 2>&1'", "train.py"},
		{"bash -c 'ulimit -v 4000000; python train.py'", "train.py"},
		{"bash -c 'A=1 B=2 torchrun --nproc_per_node 2 train.py 2>&1 | tee log.txt'", "train.py"},
		{"bash -c 'python prepare.py && python train.py; echo done'", "train.py"},
		{"bash -c 'for i in 1 2; do python train.py $i; done'", "bash -c 2"},
		{"bash", "bash"},

		{"nsys profile -o rep -t cuda,nvtx --stats true python train.py", "train.py"},
		{"ncu --set full -o rep python train.py", "train.py"},
		{"compute-sanitizer --tool memcheck python train.py", "train.py"},
		{"py-spy record -o p.svg -- python train.py", "train.py"},
		{"python -m cProfile -o out.prof train.py", "train.py"},
		{"python -m pdb -c continue train.py", "train.py"},
		{"python -m debugpy --listen 0.0.0.0:5678 --wait-for-client train.py", "train.py"},
		{"python -m memray run -o m.bin train.py", "train.py"},
		{"memray run train.py", "train.py"},
		{"coverage run --source pkg -m pkg.train", "-m pkg.train"},
		{"inquest run -- python train.py", "train.py"},
		{"inquest run torchrun --nproc_per_node 2 train.py", "train.py"},

		{"llamafactory-cli train a.yaml", "llamafactory-cli train"},
		{"axolotl train a.yml", "axolotl train"},
		{"tune run --nproc_per_node 2 full_finetune_distributed --config c", "tune run"},
		{"make train", "make train"},
		{"pytest -x tests/test_train.py", "pytest"},
		{"fairseq-train data --arch a", "fairseq-train"},
		{"true", "true"},
		{"ray job submit --address http://h:8265 --working-dir . -- python train.py", "train.py"},
	} {
		got := programOf(words(c.line), "/home/me/proj", "/home/me/proj")
		if strings.HasSuffix(c.want, " -c 98d3") || strings.HasSuffix(c.want, " -c 2") { // a digest follows
			prefix := c.want[:strings.LastIndex(c.want, " ")+1]
			if !strings.HasPrefix(got, prefix) || len(got) != len(prefix)+8 {
				t.Errorf("%s: %q, want %s and a digest", c.line, got, prefix)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestProgramOfOddWords(t *testing.T) {
	for _, argv := range [][]string{nil, {""}, {"", ""}, {"-"}, {"--"}, {"python", ""}, {"python", "-c"}, {"python", "-m"}, {"env"}, {"env", "A=b"}, {"A=b"}, {"torchrun"}, {"torchrun", "-m"}, {"torchrun", "--"}, {"docker", "run"}, {"docker"}, {"bash", "-c"}, {"bash", "-c", ""}, {"bash", "-c", "'"}, {"bash", "-c", "a | "}, {"bash", "-c", "\\"}, {"timeout", "5"}, {"srun", "-n"}, {"a/"}, {"/"}, {`\`}, {"python", "-W"}, {"uv", "run", "-m"}, {"bash", "-o"}, {"bash", "--rcfile"}} {
		programOf(argv, "/a", "/a") // no panic
	}
	deep := slices.Repeat([]string{"env"}, 100000)
	programOf(deep, "/a", "/a")
	programOf([]string{"bash", "-c", strings.Repeat("bash -c ", 10000)}, "/a", "/a")
}

func FuzzProgram(f *testing.F) {
	f.Add("bash -c 'cd x && python train.py | tee y'")
	f.Add("srun -n 2 torchrun --nproc_per_node 2 -m a.b")
	f.Add("python -um")
	f.Fuzz(func(t *testing.T, line string) {
		argv := words(line)
		p := findProgram(argv)
		if p.path == "" && p.module == "" && p.code == "" && p.name == "" && len(argv) > 0 && argv[0] != "" && !strings.Contains(line, "-") && baseName(argv[0]) != "" && !strings.Contains(line, "=") {
			t.Logf("%q has no name", argv)
		}
		s := Scenario("/", argv)
		if len(s) > maxScenario+1 || strings.ContainsAny(s, "\n\x1b\x00") {
			t.Fatalf("%q: %q", line, s)
		}
		MaskCommand(argv)
	})
}

func TestScenario(t *testing.T) {
	root := filepath.Join(t.TempDir(), "checkout-17")
	write(t, filepath.Join(root, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(root, "src", "train.py"), "")
	inner := filepath.Join(root, "src")
	check := func(dir, line, want string) {
		t.Helper()
		if got := Scenario(dir, words(line)); got != want {
			t.Errorf("%s in %s: %q, want %q", line, dir, got, want)
		}
	}
	check(root, "python src/train.py", "checkout-17 src/train.py")
	check(inner, "python train.py --lr 1", "checkout-17 src/train.py")
	check(inner, "torchrun ../other.py", "checkout-17 other.py")
	check(root, "python /elsewhere/lib/train.py", "checkout-17 train.py")
	check(root, "python "+filepath.Join(inner, "train.py"), "checkout-17 src/train.py")
	for url, want := range map[string]string{
		"git@github.com:org/llm-train.git":                    "llm-train",
		"https://user:s3cretpass@git.example.org/org/ner.git": "ner",
		"https://git.example.org/org/ner/":                    "ner",
		"/srv/git/ner.git":                                    "ner",
		"ssh://git@example.org:2222/a/b":                      "b",
		`C:\repos\vision`:                                     "vision",
	} {
		write(t, filepath.Join(root, ".git", "config"), "[core]\n\tbare = false\n[remote \"up\"]\n\turl = /x/y.git\n[remote \"origin\"]\n\turl = "+url+"\n")
		check(root, "python src/train.py", want+" src/train.py")
	}
	plain := filepath.Join(t.TempDir(), "no git here")
	if err := os.MkdirAll(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	if root, _ := findGit(plain); root == "" {
		check(plain, "python train.py", "no git here train.py")
	}
	got := Scenario("", []string{"python", "a\x1b[31m\nb" + strings.Repeat("ü", 500) + ".py"})
	if strings.ContainsAny(got, "\x1b\n") || len(got) > maxScenario+1 {
		t.Errorf("%q", got)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMaskCommand(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"python train.py --api-key abcdef123456", "python train.py --api-key [masked]"},
		{"python train.py --api_key=abcdef123456 --lr 1", "python train.py --api_key=[masked] --lr 1"},
		{"python train.py --api-key 'two words 12'", "python train.py --api-key [masked]"},
		{"python train.py --password 'hunter2'", "python train.py --password [masked]"},
		{"python train.py --hf_token 'abcdefghij'", "python train.py --hf_token [masked]"},
		{"env WANDB_API_KEY=0123456789abcdef python train.py", "env WANDB_API_KEY=[masked] python train.py"},
		{"python train.py --token hf_abcdefghijklmnopqrstuvwxyz", "python train.py --token [masked]"},
		{"python train.py --max-tokens 512 --pad-token <pad> --num_tokens=128", "python train.py --max-tokens 512 --pad-token <pad> --num_tokens=128"},
		{"python train.py --key-dim 64 --tokenizer gpt2 --monkey business", "python train.py --key-dim 64 --tokenizer gpt2 --monkey business"},
		{"python train.py --db postgres://me:sesame123@db.example.org/x", "python train.py --db postgres://me:[masked]@db.example.org/x"},
		{"curl -u me:sesame123 http://x", "curl -u me:[masked] http://x"},
		{"sshpass -p sesame123 ssh h", "sshpass -p [masked] ssh h"},
		{"bash -c 'WANDB_API_KEY=0123456789abcdef python train.py'", "bash -c 'WANDB_API_KEY=[masked] python train.py'"},
		{"python train.py --api-key $KEY", "python train.py --api-key $KEY"},
		{"python train.py +secrets.password=abcdef12", "python train.py +secrets.password=[masked]"},
	} {
		in := words(c.line)
		before := slices.Clone(in)
		if got := MaskCommand(in); !slices.Equal(got, words(c.want)) {
			t.Errorf("%s: %q", c.line, got)
		}
		if !slices.Equal(in, before) {
			t.Errorf("%s: changed", c.line)
		}
	}
	if got := MaskCommand(nil); got == nil || len(got) != 0 {
		t.Errorf("nil gives %#v", got)
	}
}
