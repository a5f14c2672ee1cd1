package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// masked is what is written in the place of a secret.
const masked = "[masked]"

func TestTellingVariables(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"CUDA_VISIBLE_DEVICES", "0,1", "0,1"},
		{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "expandable_segments:True"},
		{"WANDB_API_KEY", "0123456789abcdef0123", masked},
		{"WANDB_API_KEY", "abc", masked},
		{"HF_TOKEN", "x", masked},
		{"HF_TOKEN", "", ""},
		{"HF_TOKEN_PATH", "/home/me/.cache/token", "/home/me/.cache/token"},
		{"COMET_API_KEY", "two words", masked},
		{"MLFLOW_TRACKING_PASSWORD", "12345", masked},
		{"MLFLOW_TRACKING_URI", "https://me:sesame123@ml.example.org/x", "https://me:[masked]@ml.example.org/x"},
		{"TOKENIZERS_PARALLELISM", "false", "false"},
		{"NCCL_DEBUG", "INFO", "INFO"},
		{"SLURM_JOB_ID", "4711", "4711"},
		{"XLA_FLAGS", "--xla_gpu_x=true", "--xla_gpu_x=true"},
		{"LD_PRELOAD", strings.Repeat("/lib/x.so:", 200), ""},
		{"MY_SECRET", "abcdef", "-"},
		{"AWS_SECRET_ACCESS_KEY", "abcdef", "-"},
		{"HOME", "/home/me", "-"},
	} {
		got, ok := telling(variables{c.name: c.value})[c.name]
		switch {
		case c.want == "-":
			if ok {
				t.Errorf("%s is kept", c.name)
			}
		case len(c.value) > maxValue:
			if len(got) > maxValue || !strings.HasSuffix(got, "…") {
				t.Errorf("%s has %d bytes", c.name, len(got))
			}
		case !ok || got != c.want:
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	many := variables{}
	for i := range 5000 {
		many[fmt.Sprintf("CUDA_%d", i)] = "1"
	}
	if n := len(telling(many)); n != maxVariables {
		t.Errorf("%d variables", n)
	}
}

func TestAllocatorSettings(t *testing.T) {
	got := allocator(variables{"TF_GPU_ALLOCATOR": "cuda_malloc_async", "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".8"})
	if want := "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 XLA_PYTHON_CLIENT_MEM_FRACTION=.8 TF_GPU_ALLOCATOR=cuda_malloc_async"; got != want {
		t.Error(got)
	}
	if got := allocator(variables{}); got != "" {
		t.Error(got)
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	none := func(_ context.Context, tool string, _ ...string) ([]byte, error) {
		return nil, fmt.Errorf("%s: %w", tool, exec.ErrNotFound)
	}
	e, problems := Environment(context.Background(), dir, []string{filepath.Join(dir, "no-such-program")}, none)
	if e.System == "" || e.CPUs < 1 || e.Host == "" || e.Packages == nil || e.Devices == nil || e.Variables == nil || e.Limits == nil || e.Python != "" {
		t.Errorf("%+v", e)
	}
	if top, _ := findGit(dir); top == "" && (e.Git != nil || len(problems) > 0) {
		t.Errorf("%+v %v", e.Git, problems)
	}
	b, err := json.Marshal(e)
	if err != nil || strings.Contains(string(b), "null") && e.Git != nil {
		t.Errorf("%s %v", b, err)
	}
}

func TestEnvironmentHasTheDevices(t *testing.T) {
	tools := func(_ context.Context, tool string, args ...string) ([]byte, error) {
		if tool != "nvidia-smi" {
			return nil, fmt.Errorf("%s: %w", tool, exec.ErrNotFound)
		}
		if strings.Contains(strings.Join(args, " "), "--query-gpu") {
			return []byte("index, uuid, pci.bus_id, name, driver_version, memory.total [MiB], memory.used [MiB], memory.free [MiB], memory.reserved [MiB], mig.mode.current\n0, GPU-aaaaaaaa-1111-2222-3333-444444444444, 00000000:01:00.0, NVIDIA A30, 570.86.15, 24576 MiB, 10 MiB, 24000 MiB, 566 MiB, Disabled\n"), nil
		}
		return []byte("gpu_uuid, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n"), nil
	}
	e, _ := Environment(context.Background(), t.TempDir(), []string{"true"}, tools)
	if len(e.Devices) != 1 || e.Devices[0].Name != "NVIDIA A30" || e.Devices[0].Memory != 24576<<20 || e.Driver != "570.86.15" {
		t.Errorf("%+v %s", e.Devices, e.Driver)
	}
}

// What is asked does not go on for longer than its context.
func TestEnvironmentEndsInTime(t *testing.T) {
	hang := func(ctx context.Context, _ string, _ ...string) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, problems := Environment(ctx, t.TempDir(), []string{"true"}, hang)
	if len(problems) != 1 || !errors.Is(ctx.Err(), context.Canceled) {
		t.Error(problems)
	}
}
