package smi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// An env is the output of python -m torch.utils.collect_env (PyTorch 1.0 to 2.9),
// and of what was made after it (vLLM, whose copy has titles between lines of "=",
// and behind the topology of the devices the environment's variables): a name and a
// value a line, the text of lscpu, lists of packages. Of names only the known ones
// are taken, so that a job log which begins so is not.
//
//	Collecting environment information...
//	PyTorch version: 2.6.0+cu124
//	GPU models and configuration:
//	GPU 0: NVIDIA H100 80GB HBM3
//	Nvidia driver version: 560.35.03
//	[pip3] nvidia-nccl-cu12==2.21.5
type env struct {
	p     *parser
	part  envPart
	lines int
}

type envPart uint8

const (
	envHead envPart = iota
	envCPU          // lscpu, whose names are not listed here
	envPackages
	envVariables
)

// maxCPU bounds the lines of lscpu.
const maxCPU = 120

func environment(p *parser, text string) table {
	switch {
	case strings.HasPrefix(text, "Collecting environment information..."), strings.HasPrefix(text, "PyTorch version: "):
		return &env{p: p}
	case text == "Environment Variables":
		return &env{p: p, part: envVariables}
	}
	return nil
}

// facts names what a line of collect_env states. Names begin as printed.
var facts = [...]struct{ label, fact string }{
	{"PyTorch version", "setting.torch_version"},
	{"CUDA used to build PyTorch", "setting.torch_cuda"},
	{"ROCM used to build PyTorch", "setting.torch_rocm"},
	{"OS", "setting.os"},
	{"Libc version", "setting.libc_version"},
	{"Python version", "setting.python_version"},
	{"Python platform", "setting.platform"},
	{"Is CUDA available", "setting.cuda_available"},
	{"CUDA runtime version", "setting.cuda_runtime"},
	{"CUDA_MODULE_LOADING set to", "setting.cuda_module_loading"},
	{"Nvidia driver version", "setting.driver_version"},
	{"cuDNN version", "setting.cudnn_version"},
	{"HIP runtime version", "setting.hip_runtime"},
	{"MIOpen runtime version", "setting.miopen_version"},
	{"vLLM Version", "setting.vllm_version"},
}

// packages are those whose version a verdict may hang on.
var packages = map[string]string{
	"torch": "setting.pip_torch", "triton": "setting.pip_triton", "transformers": "setting.pip_transformers", "deepspeed": "setting.pip_deepspeed", "vllm": "setting.pip_vllm", "flash_attn": "setting.pip_flash_attn", "flash-attn": "setting.pip_flash_attn",
	"transformer_engine": "setting.pip_transformer_engine", "nvidia-nccl-cu11": "setting.nccl_version", "nvidia-nccl-cu12": "setting.nccl_version", "nvidia-nccl-cu13": "setting.nccl_version", "numpy": "setting.pip_numpy",
}

// labels are the other names of collect_env, and the titles of vLLM's copy.
var labels = [...]string{
	"Is debug build", "GCC version", "Clang version", "CMake version", "GPU models and configuration", "Is XNNPACK available", "Is XPU available", "XPU used to build PyTorch", "Caching allocator config", "CPU", "Versions of relevant libraries",
	"ROCM Version", "Neuron SDK Version", "vLLM Build Flags", "CUDA Archs", "GPU Topology", "Intel GPU driver version", "Intel GPU models", "Level zero version",
	"System Info", "PyTorch Info", "Python Environment", "CUDA / GPU Info", "CPU Info", "vLLM Info", "Environment Variables",
}

func (t *env) line(l textline.Line) string {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return "blank"
	}
	t.lines++
	switch {
	case strings.HasPrefix(text, "Collecting environment information..."):
		if t.lines > 1 {
			return "foreign"
		}
		return "header"
	case strings.Trim(text, "=") == "":
		return "rule"
	case strings.HasPrefix(text, "[pip3] "), strings.HasPrefix(text, "[pip] "), strings.HasPrefix(text, "[conda] "):
		_, rest, _ := strings.Cut(text, "] ")
		return t.pack(rest, l)
	case t.gpu(text, l):
		return "row"
	case t.part == envVariables:
		return t.variable(text, l)
	case strings.HasPrefix(text, "/") && t.part == envHead:
		return "note" // the files of cuDNN
	}
	if class := t.field(text, l); class != "foreign" {
		return class
	}
	if t.part == envCPU && t.lines < maxCPU && (strings.Contains(text, ":") || strings.HasPrefix(l.Text, "  ")) {
		return "field"
	}
	return "foreign"
}

// field takes a name of collect_env with its value, or a title.
func (t *env) field(text string, l textline.Line) string {
	name, value, stated := strings.Cut(text, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	for _, f := range facts {
		if !stated || name != f.label {
			continue
		}
		if value != "" && value != "N/A" && value != "Could not collect" && !strings.HasPrefix(value, "Probably one of") {
			t.p.fact(f.fact, value, l)
		}
		return "field"
	}
	for _, known := range labels {
		if name != known && !strings.HasPrefix(name, known+" (") {
			continue
		}
		switch known {
		case "CPU", "CPU Info":
			t.part, t.lines = envCPU, 0
		case "Versions of relevant libraries":
			t.part = envPackages
		case "Environment Variables":
			t.part = envVariables
		}
		t.gpu(value, l)
		if value == "" {
			return "header"
		}
		return "field"
	}
	return "foreign"
}

// variables are those whose value a verdict may hang on, by how they begin.
var variables = [...]string{"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NCCL_", "TORCH_NCCL_", "PYTORCH_"}

func (t *env) variable(text string, l textline.Line) string {
	if text == "Environment Variables" {
		return "header"
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || name != strings.ToUpper(name) || strings.ContainsAny(name, " \t") {
		return "foreign"
	}
	for _, v := range variables {
		if strings.HasPrefix(name, v) && len(name) < 64 {
			t.p.fact("setting."+strings.ToLower(name), value, l)
			break
		}
	}
	return "field"
}

// gpu reads "GPU 0: NVIDIA H100 80GB HBM3", and a MIG instance below it.
func (t *env) gpu(text string, l textline.Line) bool {
	rest, ok := strings.CutPrefix(text, "GPU ")
	if !ok {
		return strings.HasPrefix(text, "MIG ") && strings.Contains(text, "Device ")
	}
	index, name, ok := strings.Cut(rest, ": ")
	n := 0
	for _, c := range index {
		if c < '0' || c > '9' || n > 1<<16 {
			return false
		}
		n = n*10 + int(c-'0')
	}
	if !ok || index == "" {
		return false
	}
	a := attrs{"gpu": evidence.IntOf(int64(n))}
	a.text("name", strings.TrimSpace(name))
	t.p.event(evidence.GPUUsage, l, who(n, "", evidence.None), t.p.stamp, evidence.Attrs(a))
	return true
}

// pack reads "torch==2.6.0" or conda's "torch    2.6.0    pypi_0    pypi".
func (t *env) pack(text string, l textline.Line) string {
	name, version, ok := strings.Cut(text, "==")
	if !ok {
		if f := strings.Fields(text); len(f) > 1 {
			name, version = f[0], f[1]
		}
	}
	if fact := packages[strings.ToLower(name)]; fact != "" && version != "" {
		t.p.fact(fact, strings.TrimSpace(version), l)
	}
	return "row"
}

func (t *env) end() {}
