package timeline

import "testing"

func TestRunning(t *testing.T) {
	for command, want := range map[string]int{
		"cd runs && ls": 0, "nvidia-smi": 0, "vim conf.yaml": 0, "source venv/bin/activate": 0,
		"python fit.py --lr 1e-3": 1, "CUDA_VISIBLE_DEVICES=1 python3.11 -u fit.py": 1, "./go.sh 8": 1, "python": 0,
		"torchrun --nproc_per_node 8 fit.py": 2, "accelerate launch fit.py": 2, "/opt/bin/srun python fit.py": 2, "python -m torch.distributed.run fit.py": 2,
	} {
		if got := running(command); got != want {
			t.Errorf("running(%q) is %d, want %d", command, got, want)
		}
	}
}
