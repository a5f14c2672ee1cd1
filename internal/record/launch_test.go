package record

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// env makes an environment of pairs that stand in one text.
func env(text string, more ...string) []string { return append(strings.Fields(text), more...) }

const (
	batch = "SLURM_JOB_ID=4711 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=16 SLURM_JOB_NUM_NODES=2 "
	srun1 = "SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURM_NTASKS=16 SLURM_STEP_NUM_TASKS=16 SLURM_LOCALID=3 "
	agent = "TORCHELASTIC_RUN_ID=none MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 GROUP_RANK=0 GROUP_WORLD_SIZE=1 TORCHELASTIC_MAX_RESTARTS=3 "
)

func TestLaunch(t *testing.T) {
	for _, c := range []struct {
		name, env, launcher, id string
		rank, size, restart     int
		weak                    bool
	}{
		{name: "nothing", env: "PATH=/bin RANK=0"},
		{name: "a single process", env: "RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=29500"},
		{name: "a batch script around srun", env: batch},
		{name: "the shell of an allocation", env: "SLURM_JOB_ID=4711 SLURM_NTASKS=16 SLURM_JOB_NUM_NODES=2"},
		{name: "the shell of an allocation, in a step", env: "SLURM_JOB_ID=4711 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=16 SLURM_STEP_NUM_TASKS=1"},
		{name: "srun --pty bash", env: "SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=1"},
		{name: "a task of srun", env: srun1 + "SLURM_PROCID=11", launcher: "slurm", id: "slurm:4711.0", rank: 11, size: 16},
		{name: "a requeued one", env: srun1 + "SLURM_PROCID=11 SLURM_RESTART_COUNT=2", launcher: "slurm", id: "slurm:4711.0.r2", rank: 11, size: 16, restart: 2},
		{name: "of a named cluster", env: srun1 + "SLURM_PROCID=0 SLURM_CLUSTER_NAME=alps", launcher: "slurm", id: "slurm:alps.4711.0", rank: 0, size: 16},
		{name: "of two parts", env: "SLURM_JOB_ID=4712 SLURM_HET_SIZE=2 SLURM_JOB_ID_HET_GROUP_0=4711 SLURM_STEP_ID=0 SLURM_NTASKS=16 SLURM_STEP_NUM_TASKS=16 SLURM_PROCID=9", launcher: "slurm", id: "slurm:4711.0", rank: 9, size: 16},
		{name: "torchrun with an id", env: "TORCHELASTIC_RUN_ID=abc123 RANK=2 LOCAL_RANK=0 WORLD_SIZE=4 GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=33211 TORCHELASTIC_RESTART_COUNT=1", launcher: "torchelastic", rank: 2, size: 4, restart: 1, weak: true},
		{name: "torchrun without", env: agent + "RANK=2 LOCAL_RANK=2 TORCHELASTIC_RESTART_COUNT=0", launcher: "torchelastic", rank: 2, size: 4, weak: true},
		{name: "torchrun on one host", env: agent + "RANK=2 LOCAL_RANK=2 TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_ERROR_FILE=/tmp/torchelastic_x1/none_y2/attempt_0/2/error.json", launcher: "torchelastic", rank: 2, size: 4},
		{name: "torchrun within Slurm", env: srun1 + "SLURM_PROCID=1 TORCHELASTIC_RUN_ID=9 RANK=9 LOCAL_RANK=1 WORLD_SIZE=16 GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=1", launcher: "torchelastic", rank: 9, size: 16},
		{name: "mpirun", env: "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=3 PMIX_NAMESPACE=prterun-h1-77@1", launcher: "openmpi", rank: 3, size: 8, weak: true},
		{name: "mpirun within PBS", env: "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 PMIX_NAMESPACE=77 PBS_JOBID=12.head", launcher: "openmpi", id: "openmpi:77.12.head", rank: 3, size: 8},
		{name: "Hydra", env: "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 PMI_PORT=h1:41234 LSB_JOBID=9", launcher: "pmi", rank: 1, size: 4},
		{name: "Hydra without an id", env: "PMI_RANK=1 PMI_SIZE=4"},
		{name: "PALS", env: "PALS_APID=a-b-c PALS_RANKID=5 PALS_LOCAL_RANKID=1 PMI_SIZE=8", launcher: "pals", id: "pals:a-b-c", rank: 5, size: 8},
		{name: "Flux", env: "FLUX_JOB_ID=f23 FLUX_TASK_RANK=1 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_SIZE=2", launcher: "flux", id: "flux:f23", rank: 1, size: 2},
		{name: "jsrun", env: "JSM_NAMESPACE_RANK=1 JSM_NAMESPACE_SIZE=6 JSM_NAMESPACE_LOCAL_RANK=1 LSB_JOBID=77 PMIX_NAMESPACE=3", launcher: "jsrun", id: "jsrun:3.77", rank: 1, size: 6},
		{name: "an indexed job", env: "KUBERNETES_SERVICE_HOST=10.0.0.1 JOB_COMPLETION_INDEX=3 HOSTNAME=train-a-3-x7k2p", launcher: "kubernetes", rank: 3, size: -1, weak: true},
		{name: "a PyTorchJob", env: "KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=ft-worker-1 MASTER_ADDR=ft-master-0 MASTER_PORT=23456 WORLD_SIZE=3 RANK=2", launcher: "kubernetes", rank: 2, size: 3, weak: true},
		{name: "a pod of one", env: "KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=web-1"},
		{name: "DeepSpeed", env: "RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.1.1.1 MASTER_PORT=29500", launcher: "environment", rank: 1, size: 2, weak: true},
		{name: "no numbers", env: "RANK=x LOCAL_RANK=-1 WORLD_SIZE=99999999999999999999 MASTER_ADDR=h SLURM_STEP_ID=-1 SLURM_JOB_ID=x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Launch(env(c.env))
			if c.launcher == "" {
				if l != nil {
					t.Fatalf("%+v, want none", *l)
				}
				return
			}
			if l == nil {
				t.Fatal("none")
			}
			if l.Launcher != c.launcher || c.id != "" && l.ID != c.id || l.Restart != c.restart || l.Weak != c.weak {
				t.Errorf("%+v", *l)
			}
			if l.Rank == nil || *l.Rank != c.rank {
				t.Errorf("rank %v", l.Rank)
			}
			if size := value(l.WorldSize); size != c.size {
				t.Errorf("size %d", size)
			}
			if !strings.HasPrefix(l.ID, c.launcher+":") || len(l.ID) > 90 || strings.ContainsAny(l.ID, "/ ") {
				t.Errorf("id %q", l.ID)
			}
			for n := range l.Variables {
				if !strings.Contains(c.env, n+"=") {
					t.Errorf("a variable %s that was not there", n)
				}
			}
		})
	}
}

func value(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

// Ranks of one launch have one id, and another launch another.
func TestLaunchesAreToldApart(t *testing.T) {
	one := func(text string) *incident.Launch {
		t.Helper()
		l := Launch(env(text))
		if l == nil {
			t.Fatalf("no launch in %s", text)
		}
		return l
	}
	same := func(a, b string) {
		t.Helper()
		if x, y := one(a), one(b); x.ID != y.ID {
			t.Errorf("%s and %s", x.ID, y.ID)
		}
	}
	differ := func(a, b string) {
		t.Helper()
		if x, y := one(a), one(b); x.ID == y.ID {
			t.Errorf("both %s", x.ID)
		}
	}
	same(srun1+"SLURM_PROCID=0", srun1+"SLURM_PROCID=15")
	differ(srun1+"SLURM_PROCID=0", srun1+"SLURM_PROCID=0 SLURM_RESTART_COUNT=1")
	differ(srun1+"SLURM_PROCID=0", strings.Replace(srun1, "STEP_ID=0", "STEP_ID=1", 1)+"SLURM_PROCID=0")
	file := func(agent, attempt, rank string) string {
		return " TORCHELASTIC_ERROR_FILE=/tmp/torchelastic_" + agent + "/none_a/attempt_" + attempt + "/" + rank + "/error.json"
	}
	same(agent+"RANK=0 TORCHELASTIC_RESTART_COUNT=0"+file("a", "0", "0"), agent+"RANK=3 TORCHELASTIC_RESTART_COUNT=0"+file("a", "0", "3"))
	differ(agent+"RANK=0 TORCHELASTIC_RESTART_COUNT=0"+file("a", "0", "0"), agent+"RANK=0 TORCHELASTIC_RESTART_COUNT=0"+file("b", "0", "0"))
	differ(agent+"RANK=0 TORCHELASTIC_RESTART_COUNT=0"+file("a", "0", "0"), agent+"RANK=0 TORCHELASTIC_RESTART_COUNT=1"+file("a", "1", "0"))
	same("KUBERNETES_SERVICE_HOST=x JOB_COMPLETION_INDEX=3 HOSTNAME=train-3-x7k2p", "KUBERNETES_SERVICE_HOST=x JOB_COMPLETION_INDEX=0 HOSTNAME=train-0-aaaaa")
	differ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=2")
}

func TestLaunchKeepsNoSecret(t *testing.T) {
	l := Launch(env("RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=hf_abcdefghijklmnopqrstuvwxyz0123", "MASTER_ADDR="+strings.Repeat("x", 10000)))
	if l == nil {
		t.Fatal("none")
	}
	for n, v := range l.Variables {
		if strings.Contains(v, "hf_") || len(v) > maxValue {
			t.Errorf("%s=%.40s", n, v)
		}
	}
	if strings.Contains(l.ID, "hf_") {
		t.Error(l.ID)
	}
}
