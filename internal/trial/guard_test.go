package trial

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes files, with their folders, below a new folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		p := filepath.Join(dir, filepath.FromSlash(n))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGuard(t *testing.T) {
	dir := tree(t, "out/checkpoint-500/model.safetensors", "out/trainer_state.json", "logs/a.txt", "data/train.jsonl", "llama/model.safetensors", "runs/exp1/events.out.tfevents.1.host", "one.pt", "train.py", "with space/x.ckpt", "scratch/t1/checkpoint-1/model.pt")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "out"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		name    string
		command string // words, parted by |
		env     []string
		writes  []string
		reads   []string
		refused string // part of the argument named; "" is allowed
	}{
		{name: "output folder", command: "python|train.py|--output_dir|out", refused: "--output_dir out"},
		{name: "joined", command: "python|train.py|--output-dir=out", refused: "--output-dir=out"},
		{name: "other spelling", command: "python|train.py|--Output_Dir=./out/../out", refused: "out"},
		{name: "hydra", command: "python|train.py|hydra.run.dir=out", refused: "hydra.run.dir=out"},
		{name: "lightning", command: "python|train.py|fit|--trainer.default_root_dir=out", refused: "default_root_dir"},
		{name: "override added", command: "python|train.py|+trainer.default_root_dir=out", refused: "default_root_dir"},
		{name: "short", command: "python|train.py|-o|out", refused: "-o out"},
		{name: "logs without checkpoints", command: "python|train.py|--logging_dir|logs", refused: "--logging_dir logs"},
		{name: "file", command: "python|train.py|--save|one.pt", refused: "--save one.pt"},
		{name: "through a link", command: "python|train.py|--save_dir|link", refused: "--save_dir link"},
		{name: "below what stands", command: "python|train.py|--output_dir|out/checkpoint-500", refused: "out/checkpoint-500"},
		{name: "new below what stands", command: "python|train.py|--output_dir|out/new"},
		{name: "in a shell's words", command: "bash|-c|cd x && python train.py --output_dir 'out' --lr 1", refused: "out"},
		{name: "redirection", command: "bash|-c|python train.py > one.pt", refused: "one.pt"},
		{name: "unnamed", command: "python|train.py|out", refused: "out"},
		{name: "unnamed tracker", command: "python|train.py|runs", refused: "runs"},
		{name: "unknown option", command: "python|train.py|--where=out", refused: "--where=out"},
		{name: "unknown option, apart", command: "python|train.py|--where|out", refused: "out"},
		{name: "with blanks", command: "python|train.py|--output_dir|with space", refused: "with space"},
		{name: "variable", command: "python|train.py", env: []string{"OUTPUT_DIR=out"}, refused: "OUTPUT_DIR=out"},
		{name: "resume in the output", command: "python|train.py|--output_dir|out|--resume_from_checkpoint|out/checkpoint-500", refused: "--output_dir out"},
		{name: "address", command: "python|train.py|--output_dir|s3://bucket/x", refused: "s3://bucket/x"},
		{name: "upload", command: "python|train.py|--push_to_hub", refused: "--push_to_hub"},
		{name: "upload said", command: "python|train.py|--push_to_hub|True", refused: "--push_to_hub True"},
		{name: "several, the last", command: "torchrun|--nproc_per_node|8|train.py|--lr|1|--ckpt_dir|out", refused: "--ckpt_dir out"},

		{name: "empty", command: "python|train.py|--output_dir|empty"},
		{name: "absent", command: "python|train.py|--output_dir|none"},
		{name: "no upload", command: "python|train.py|--push_to_hub=False"},
		{name: "resume", command: "python|train.py|--resume_from_checkpoint|out/checkpoint-500"},
		{name: "resume joined", command: "python|train.py|--resume=out"},
		{name: "model", command: "python|train.py|--model_name_or_path|llama"},
		{name: "model by a short name", command: "python|serve.py|--model|llama"},
		{name: "a model's output", command: "python|train.py|--model_dir|llama", refused: "--model_dir llama"},
		{name: "data", command: "python|train.py|--data_dir|data|--dataset|data"},
		{name: "a number", command: "python|train.py|--save_steps|500|--checkpoint_every=10"},
		{name: "a folder without checkpoints", command: "python|train.py|data"},
		{name: "rendezvous", command: "python|train.py|--init_method|tcp://h:1"},
		{name: "allowed", command: "python|train.py|--output_dir|out", writes: []string{"out"}},
		{name: "allowed above", command: "python|train.py|--output_dir|out/checkpoint-500", writes: []string{"link"}},
		{name: "allowed beside", command: "python|train.py|--output_dir|out", writes: []string{"ou"}, refused: "out"},
		{name: "allowed below only", command: "python|train.py|--output_dir|out", writes: []string{"out/checkpoint-500"}, refused: "out"},
		{name: "only read", command: "python|train.py|out", reads: []string{"out"}},
		{name: "output is not only read", command: "python|train.py|--output_dir|out", reads: []string{"out"}, refused: "out"},
		{name: "scratch", command: "python|train.py|--output_dir|scratch/t1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Guard{Dir: dir, Own: []string{filepath.Join(dir, "scratch")}, Writes: under(dir, c.writes), Reads: under(dir, c.reads)}
			err := g.Check(strings.Split(c.command, "|"), c.env)
			if c.refused == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var o *Overwrite
			if !errors.As(err, &o) || !errors.Is(err, ErrOverwrite) {
				t.Fatalf("not refused: %v", err)
			}
			if !strings.Contains(o.Argument, c.refused) {
				t.Errorf("argument %q, want %q in it", o.Argument, c.refused)
			}
			if s := err.Error(); !strings.Contains(s, "--allow-writes") || !strings.Contains(s, "{OUT}") {
				t.Errorf("no way out said: %s", s)
			}
		})
	}
}

func under(dir string, names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, filepath.Join(dir, n))
	}
	return out
}

// What the first trial made, later trials may name; it is told.
func TestGuardOwnOutput(t *testing.T) {
	dir := t.TempDir()
	g := &Guard{Dir: dir}
	cmd := []string{"python", "train.py", "--output_dir", "new"}
	if err := g.Check(cmd, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "new", "checkpoint-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.Check(cmd, nil); err != nil {
		t.Fatal(err)
	}
	if got := g.Shared(); len(got) != 1 || filepath.Base(got[0]) != "new" {
		t.Errorf("shared %q", got)
	}
	if err := (&Guard{Dir: dir}).Check(cmd, nil); err == nil {
		t.Error("another series writes over it")
	}
}

func TestScratch(t *testing.T) {
	ckpt := tree(t, "a/model.pt", "b.txt")
	s := &Scratch{Root: filepath.Join(t.TempDir(), "series"), Checkpoint: ckpt, Disk: 1}
	a, err := s.New("t1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.New("t1")
	if err != nil || a == b {
		t.Fatalf("%q, %q, %v", a, b, err)
	}
	if _, err := os.Stat(filepath.Join(a, CheckpointCopy, "a", "model.pt")); err != nil {
		t.Error(err)
	}
	if HoldsCheckpoint(a) {
		t.Error("the copy that it was given counts as its own")
	}
	if err := os.WriteFile(filepath.Join(a, "last.ckpt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if !HoldsCheckpoint(a) {
		t.Error("its own checkpoint is not seen")
	}
	ctx, stop := s.Watch(t.Context())
	<-ctx.Done()
	stop()
	if err := s.Remove(a); err != nil {
		t.Error(err)
	}
	if err := s.Remove(ckpt); err == nil {
		t.Error("a folder of somebody else was removed")
	}
	for _, v := range Variables("/o", false) {
		if n, _, _ := strings.Cut(v, "="); !ours(n) {
			t.Errorf("%s is not ours", n)
		}
	}
}
