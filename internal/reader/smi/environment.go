package smi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// An env is the output of python -m torch.utils.collect_env (PyTorch 1.0 to 2.9),
// and of what was made after it (vLLM, whose copy has titles between lines of "=" and
// the topology of the devices at its end): a name and a value a line, lists of
// packages, and the text of lscpu.
//
//	Collecting environment information...
//	PyTorch version: 2.6.0+cu124
//	GPU models and configuration:
//	GPU 0: NVIDIA H100 80GB HBM3
//	Nvidia driver version: 560.35.03
//	[pip3] nvidia-nccl-cu12==2.21.5
type env struct {
	p     *parser
	list  string // the name whose values follow, one a line
	lines int
}

func environment(p *parser, text string) table {
	if strings.HasPrefix(text, "Collecting environment information...") || strings.HasPrefix(text, "PyTorch version: ") {
		return &env{p: p}
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
	}
	if name, rest, ok := strings.Cut(text, "] "); ok && (name == "[pip3" || name == "[pip" || name == "[conda") {
		return t.pack(rest, l)
	}
	if t.gpu(text, l) {
		return "row"
	}
	if strings.HasPrefix(text, "GPU0") || text == "Legend:" {
		return "foreign" // the topology is a table of its own
	}
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		// Titles of vLLM's copy stand between rules; a list's values may be paths.
		if t.list != "" && strings.HasPrefix(text, "/") || strings.HasPrefix(l.Text, "  ") {
			return "note"
		}
		return t.other(text)
	}
	if len(name) > 80 || strings.Contains(name, " - ") {
		return "foreign"
	}
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "GPU ") && t.gpu(value, l) {
		return "row"
	}
	t.list = name
	for _, f := range facts {
		if strings.HasPrefix(name, f.label) && value != "" && value != "N/A" && value != "Could not collect" && !strings.HasPrefix(value, "Probably one of") {
			t.p.fact(f.fact, value, l)
			break
		}
	}
	return "field"
}

// other takes a line without a colon: a title, or a variable of vLLM's copy.
func (t *env) other(text string) string {
	if name, _, ok := strings.Cut(text, "="); ok && name == strings.ToUpper(name) && !strings.Contains(name, " ") {
		return "field"
	}
	if len(text) < 60 && strings.Contains(text, "Info") || strings.HasPrefix(text, "Versions of relevant libraries") || text == "CUDA / GPU Info" {
		return "header"
	}
	return "foreign"
}

// gpu reads "GPU 0: NVIDIA H100 80GB HBM3", and a MIG instance below it.
func (t *env) gpu(text string, l textline.Line) bool {
	rest, ok := strings.CutPrefix(text, "GPU ")
	if !ok {
		return strings.HasPrefix(text, "MIG ") && strings.Contains(text, "Device")
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
