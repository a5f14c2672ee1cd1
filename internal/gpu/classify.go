package gpu

import (
	"path"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// program is what a command line runs: its program without folders, and for an interpreter
// the module or script.
func program(args []string) (prog, target string) {
	if len(args) == 0 {
		return "", ""
	}
	prog = base(args[0])
	if !strings.HasPrefix(prog, "python") && prog != "bash" && prog != "sh" {
		return prog, ""
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-m" && i+1 < len(args):
			return prog, args[i+1]
		case a == "-c" && i+1 < len(args):
			return prog, "-c " + args[i+1]
		case (a == "-W" || a == "-X") && i+1 < len(args):
			i++
		case a == "" || a[0] == '-':
		default:
			return prog, a
		}
	}
	return prog, ""
}

func base(p string) string { return path.Base(strings.ReplaceAll(p, `\`, "/")) }

// short is a command for a sentence: python train.py, vllm.
func short(args []string, name string) string {
	prog, target := program(args)
	switch {
	case prog == "" || prog == ".":
		if name == "" || name[0] == '[' || name == "-" {
			return ""
		}
		prog = base(name)
	case strings.HasPrefix(target, "-c "):
		target = "-c …"
	case strings.Contains(target, "/"):
		target = base(target)
	}
	return textline.OneLine(strings.TrimSpace(prog+" "+target), 60)
}

// Programs and modules by what they do. A name stands for itself and for what continues it
// behind a point, a dash or a colon: vllm, vllm.entrypoints, VLLM::EngineCore.
var (
	mpsPrograms      = []string{"nvidia-cuda-mps-server", "nvidia-cuda-mps-control"}
	monitorPrograms  = []string{"nv-hostengine", "dcgm-exporter", "dcgm", "nvidia-persistenced", "nvtop", "nvitop", "gpustat", "nvidia-smi", "node_exporter", "nvidia-device-plugin", "gpud"}
	graphicsPrograms = []string{"Xorg", "Xwayland", "X", "gnome-shell", "kwin_x11", "kwin_wayland", "plasmashell", "firefox", "chrome", "chromium", "code", "mutter", "sddm-greeter", "gnome-control-center", "steam", "weston", "cinnamon", "xfwm4", "compiz", "dwm.exe", "explorer.exe"}
	servers          = []string{"vllm", "tritonserver", "text-generation-server", "text-generation-launcher", "sglang", "ollama", "llama-server", "lmdeploy", "torchserve", "xinference", "trtllm-serve", "mlc_llm", "lightllm", "ray::ServeReplica", "tensorflow_model_server", "triton_python_backend_stub"}
	kernels          = []string{"ipykernel_launcher", "ipykernel", "colab_kernel_launcher", "xpython_launcher", "xpython"}
	launchers        = []string{"torchrun", "torch.distributed", "accelerate", "deepspeed", "lightning", "horovodrun", "colossalai"}
	trainingScript   = lazyre.New(`(?i)(?:^|[/_.-])(?:pre|re)?(?:train|training|trainer|finetune|fine_tune|fine-tune|finetuning|sft|dpo|grpo|ppo|rlhf)(?:$|[/_.-])`)
	kernelFile       = lazyre.New(`kernel-([0-9A-Za-z-]{4,64})\.json`)
)

func among(list []string, name string) bool {
	name = strings.TrimSuffix(name, ".py")
	for _, n := range list {
		if len(name) >= len(n) && strings.EqualFold(name[:len(n)], n) && (len(name) == len(n) || strings.ContainsRune(".-:_ ", rune(name[len(n)]))) {
			return true
		}
	}
	return false
}

// exactly is among for names that continue into others' names.
func exactly(list []string, name string) bool {
	for _, n := range list {
		if name == n {
			return true
		}
	}
	return false
}

// kindOf says what a holder is and how that is known. args and env are empty where they
// cannot be read, name is what the tool prints.
func kindOf(typ, name string, args []string, comm string, env map[string]string) (kind, basis string) {
	prog, target := program(args)
	if prog == "" {
		prog = base(name)
	}
	file := base(target)
	code, isCode := strings.CutPrefix(target, "-c ")
	switch {
	case among(mpsPrograms, prog):
		return incident.HolderMPS, "its program is " + prog
	case among(monitorPrograms, prog):
		return incident.HolderMonitor, "its program is " + prog
	case isCode && (strings.Contains(code, "multiprocessing.spawn") || strings.Contains(code, "multiprocessing.forkserver") || strings.Contains(code, "multiprocessing.resource_tracker")):
		return incident.HolderWorker, "Python's multiprocessing started it"
	case comm == "pt_data_worker" || among([]string{"pt_data_worker"}, prog):
		return incident.HolderWorker, "it names itself " + textline.OneLine(comm, 20)
	case exactly([]string{"joblib.externals.loky.backend.popen_loky_posix"}, target):
		return incident.HolderWorker, "joblib started it"
	case among(kernels, target) || among(kernels, file) || among(kernels, prog):
		return incident.HolderNotebook, "it runs " + textline.OneLine(file, 60)
	case among(servers, prog) || among(servers, target) || among(servers, file):
		return incident.HolderInference, "it runs " + short(args, name)
	case among(launchers, prog) || among(launchers, target):
		return incident.HolderTraining, "it runs " + short(args, name)
	}
	for _, v := range [...]string{"TORCHELASTIC_RUN_ID", "LOCAL_RANK", "RANK"} {
		if _, ok := env[v]; ok {
			return incident.HolderTraining, "a launcher set " + v + " in its environment"
		}
	}
	switch {
	case target != "" && !isCode && trainingScript.MatchString(strings.TrimSuffix(target, ".py")):
		return incident.HolderTraining, "its script is named " + textline.OneLine(file, 60)
	case typ == "G" || exactly(graphicsPrograms, prog):
		return incident.HolderGraphics, graphicsBasis(typ, prog)
	case strings.Contains(typ, "C") || strings.HasPrefix(prog, "python"):
		return incident.HolderCompute, "the tool lists it as one that computes"
	}
	return incident.HolderUnknown, ""
}

func graphicsBasis(typ, prog string) string {
	if typ == "G" {
		return "the tool lists it as graphics"
	}
	return "its program is " + prog
}

// rankOf is the rank that a process's environment states, "" where none does.
func rankOf(env map[string]string) string {
	for _, v := range [...]string{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"} {
		if n, err := strconv.Atoi(env[v]); err == nil && n >= 0 {
			return strconv.Itoa(n)
		}
	}
	return ""
}

// reapers take over processes whose parent has ended; they start none of their own that
// holds a device, or none at all.
var reapers = []string{"systemd", "init", "tini", "dumb-init", "catatonit", "docker-init", "s6-svscan", "runsvdir", "sleep", "tail", "pause", "launchd"}

// orphanOf says how it is known that what started a process has ended, and whether that
// settles that nothing waits for it: "" where its parent is there, or may be meant to be gone.
func orphanOf(p *Proc, kind string, procs map[int]*Proc) (basis string, sure bool) {
	parent := procs[p.Parent]
	by := "process " + strconv.Itoa(p.Parent)
	switch {
	case p.Parent == 0 || p.PID == 1:
		return "", false
	case parent == nil:
		return "", false // it cannot be seen
	case !exactly(reapers, parent.Comm):
		return "", false
	case serviceOf(p.Cgroup) != "":
		return "", false // systemd started it
	}
	by += " (" + textline.OneLine(parent.Comm, 20) + ")"
	took := "its parent has ended, and " + by + " has taken it over"
	if kind == incident.HolderWorker {
		return took + "; a worker is of no use without what started it", true
	}
	for _, v := range [...]string{"TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMIX_RANK"} {
		if _, ok := p.Env[v]; ok {
			return took + "; " + v + " in its environment says that a launcher started it", true
		}
	}
	leaderGone := p.Session > 0 && p.Session != p.PID && procs[p.Session] == nil
	switch {
	case p.HangupIgnored:
		return "", false // nohup: it is meant to outlive its terminal
	case leaderGone:
		return took + "; the leader of its session has ended too: it is left over, or was detached on purpose", false
	}
	return "", false
}

// kernelOf is the id of a notebook's kernel, as its connection file is named.
func kernelOf(args []string) string {
	for _, a := range args {
		if m := kernelFile.FindStringSubmatch(a); m != nil {
			return m[1]
		}
	}
	return ""
}
