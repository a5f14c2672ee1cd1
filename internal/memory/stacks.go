package memory

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A phase is what a stack shows of the part of the program that allocated: that
// of its innermost frame which tells.
type phase uint8

const (
	unclear phase = iota
	forward
	backward
	optimizer
	load // a checkpoint is read
	save // a checkpoint or a full state is put together
)

// An origin is whose a frame is.
type origin uint8

const (
	noise   origin = iota // of the interpreter, the unwinder or the allocator
	native                // C++ of which only the symbol is known
	library               // Python that is installed: site-packages, the standard library, PyTorch
	torch                 // of these, PyTorch
	own                   // Python that is none of these
)

// noiseNames and noiseFiles are what viewers leave out of stacks, and what the
// interpreter adds (the list of torch/utils/viz/MemoryViz.js, and names that
// CPython 3.8 to 3.13 shows with them).
var (
	noiseNames = []string{"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "_start", "__libc_start", "__libc_init", "PyEval_", "PyObject_", "PyFunction_",
		"PyRun_", "Py_RunMain", "Py_BytesMain", "PyVectorcall", "PyCFunction", "PyNumber_", "PyDescr_", "PyType_", "_PyMethod", "pthread_", "start_thread", "execute_native_thread_routine",
		"CUDACachingAllocator::", "CUDAAllocator", "DeviceCachingAllocator", "method_vectorcall", "slot_tp_", "cfunction_", "default_error_condition"}
	noiseFiles = []string{"core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c", "Objects/call.c", "Objects/methodobject.c", "pycore_ceval.h", "ceval.c",
		"cpython/abstract.h", "CUDACachingAllocator.cpp"}
	noiseWhole = []string{"clone", "__clone", "clone3", "type_call", "object_vacall", "main"}
)

// torchDirs are the folders of PyTorch's Python sources, as they stand in a
// checkout or a build where no site-packages is in the path.
var torchDirs = []string{"torch/nn/", "torch/autograd/", "torch/optim/", "torch/cuda/", "torch/distributed/", "torch/utils/", "torch/_dynamo/", "torch/_inductor/", "torch/_functorch/",
	"torch/fx/", "torch/amp/", "torch/_tensor.py", "torch/functional.py", "torch/serialization.py", "torch/_ops.py", "torch/storage.py", "torch/_utils.py", "torch/_compile.py", "torch/jit/"}

// python reports whether file is Python source: a path, or what the interpreter
// calls what was typed or built in place of one.
func python(file string) bool {
	return strings.HasSuffix(file, ".py") || strings.HasSuffix(file, ".pyx") || strings.HasPrefix(file, "<stdin>") || strings.HasPrefix(file, "<ipython-input") ||
		file == "<string>" || strings.Contains(file, "ipykernel_") || strings.HasSuffix(file, ".ipynb")
}

// below is the part of file behind the last of the folders that hold installed
// packages, "" where it is in none.
func below(file string) string {
	for _, dir := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(file, dir); i >= 0 {
			return file[i+len(dir):]
		}
	}
	return ""
}

// standard reports whether file belongs to Python's own library.
func standard(file string) bool {
	if strings.HasPrefix(file, "<frozen ") {
		return true
	}
	i := strings.LastIndex(file, "lib/python")
	if i < 0 || i > 0 && file[i-1] != '/' {
		return false
	}
	rest := file[i+len("lib/python"):]
	return rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

func originOf(f *evidence.MemFrame) origin {
	file := strings.ReplaceAll(f.File, `\`, "/")
	if !python(file) {
		if slices.Contains(noiseWhole, f.Name) || has(f.Name, noiseNames) || has(file, noiseFiles) {
			return noise
		}
		return native
	}
	if in := below(file); in != "" {
		if strings.HasPrefix(in, "torch/") || strings.HasPrefix(in, "functorch/") {
			return torch
		}
		return library
	}
	for _, d := range torchDirs {
		if i := strings.LastIndex(file, d); i == 0 || i > 0 && file[i-1] == '/' {
			return torch
		}
	}
	if standard(file) {
		return library
	}
	return own
}

func has(s string, any []string) bool {
	for _, a := range any {
		if strings.Contains(s, a) {
			return true
		}
	}
	return false
}

// phaseOf is what one frame tells of the phase.
func phaseOf(f *evidence.MemFrame, s origin) phase {
	file := strings.ReplaceAll(f.File, `\`, "/")
	switch {
	case s == native:
		if strings.Contains(f.Name, "torch::autograd::Engine::") || strings.Contains(f.Name, "torch::autograd::PyNode::apply") {
			return backward
		}
		return unclear
	case s == noise:
		return unclear
	}
	in := below(file)
	if in == "" {
		in = file
	}
	named := func(names ...string) bool { return slices.Contains(names, f.Name) }
	at := func(ends ...string) bool {
		for _, e := range ends {
			if in == e || strings.HasSuffix(in, "/"+e) {
				return true
			}
		}
		return false
	}
	switch {
	case at("torch/nn/modules/module.py"):
		switch {
		case named("_call_impl", "_wrapped_call_impl", "__call__", "_slow_forward"):
			return forward
		case named("load_state_dict", "_load_from_state_dict"):
			return load
		case named("state_dict", "_save_to_state_dict"):
			return save
		}
	case at("torch/autograd/__init__.py", "torch/autograd/graph.py", "torch/_tensor.py") && named("backward", "grad", "_engine_run_backward"):
		return backward
	case strings.Contains(in, "torch/optim/") && !at("torch/optim/lr_scheduler.py", "torch/optim/swa_utils.py"):
		switch {
		case named("load_state_dict"):
			return load
		case named("state_dict"):
			return save
		case named("zero_grad", "__init__", "add_param_group"):
			return unclear
		}
		return optimizer
	case strings.HasPrefix(in, "apex/optimizers/") || strings.HasPrefix(in, "bitsandbytes/optim/") || strings.Contains(in, "deepspeed/ops/adam/"):
		if named("step") || named("init_state", "update_step") {
			return optimizer
		}
	case at("torch/serialization.py", "safetensors/torch.py") || strings.Contains(in, "torch/distributed/checkpoint/"):
		switch {
		case strings.Contains(f.Name, "load") || named("restore_location", "persistent_load", "_cuda_deserialize"):
			return load
		case strings.Contains(f.Name, "save"):
			return save
		}
	case named("load_checkpoint", "_load_checkpoint", "load_state_dict", "from_pretrained", "_load_state_dict_into_model", "resume_from_checkpoint"):
		return load
	case named("save_checkpoint", "_save_checkpoint", "save_pretrained", "state_dict", "full_state_dict", "get_full_state_dict", "get_model_state_dict", "consolidate_state_dict", "_gather_full_state_dict", "save_model"):
		return save
	case at("torch/nn/functional.py"), named("forward"):
		return forward
	}
	return unclear
}

// evaluates reports whether a function is, by its name, one that evaluates or
// tests a model.
func evaluates(name string) bool {
	switch name {
	case "evaluate", "evaluation_loop", "prediction_step", "prediction_loop", "validation_step", "validation_epoch", "validate", "eval_step", "eval_loop", "test_step", "predict_step", "eval_epoch",
		"validation_loop", "run_validation", "run_eval", "run_evaluation", "do_eval", "valid_step", "valid_epoch", "eval_model", "evaluate_model", "validate_model", "validate_epoch", "test_epoch", "test_model":
		return true
	}
	return false
}

// stackFacts is what is known of one stack.
type stackFacts struct {
	label uint32 // index of stacks.labels: innermost frame of the user's own code, or what stands in for it
	own   bool   // the label is a frame of the user's own code
	phase phase
	eval  bool // some frame evaluates a model
	again bool // forward code that runs again within backward
}

// stacks holds what is known of the stacks of one snapshot.
type stacks struct {
	m       *evidence.MemSnapshot
	facts   []stackFacts
	labels  []string
	origins []origin
	used    map[uint32]int // stack -> index in list
	list    []incident.MemoryStack
}

func newStacks(m *evidence.MemSnapshot) *stacks {
	s := &stacks{m: m, origins: make([]origin, len(m.Frames)), facts: make([]stackFacts, max(len(m.Stacks), 1)), used: map[uint32]int{}}
	phases := make([]phase, len(m.Frames))
	evals := make([]bool, len(m.Frames))
	for i := range m.Frames {
		f := &m.Frames[i]
		s.origins[i] = originOf(f)
		phases[i] = phaseOf(f, s.origins[i])
		evals[i] = s.origins[i] > native && evaluates(f.Name)
	}
	ids := map[string]uint32{}
	id := func(label string) uint32 {
		n, ok := ids[label]
		if !ok {
			n = uint32(len(s.labels))
			ids[label] = n
			s.labels = append(s.labels, label)
		}
		return n
	}
	for i := range s.facts {
		x := &s.facts[i]
		var frames []uint32
		if i < len(m.Stacks) {
			frames = m.Stacks[i]
		}
		label, isOwn := s.label(frames)
		x.label, x.own = id(label), isOwn
		for _, f := range frames {
			if int(f) >= len(phases) {
				continue
			}
			if x.phase == unclear {
				x.phase = phases[f]
			} else if x.phase == forward && phases[f] == backward {
				x.again = true
			}
			x.eval = x.eval || evals[f]
		}
	}
	return s
}

// of returns what is known of a stack; one that the file does not have is as none.
func (s *stacks) of(stack uint32) *stackFacts {
	if int(stack) >= len(s.facts) {
		return &s.facts[0]
	}
	return &s.facts[stack]
}

// frames are the indices of a stack's frames that the file has.
func (s *stacks) frames(stack uint32) []uint32 {
	if int(stack) >= len(s.m.Stacks) {
		return nil
	}
	return s.m.Stacks[stack]
}

// label names what allocated: the innermost frame of the user's own code; where
// there is none the innermost frame of an installed package that is not PyTorch,
// then of PyTorch; then what the C++ frames show.
func (s *stacks) label(frames []uint32) (string, bool) {
	var lib, tor *evidence.MemFrame
	for _, f := range frames {
		if int(f) >= len(s.origins) {
			continue
		}
		switch x := &s.m.Frames[f]; s.origins[f] {
		case own:
			return place(x), true
		case library:
			if lib == nil && !standard(strings.ReplaceAll(x.File, `\`, "/")) {
				lib = x
			} else if lib == nil && tor == nil && below(x.File) != "" {
				lib = x
			}
		case torch:
			if tor == nil {
				tor = x
			}
		}
	}
	switch {
	case lib != nil:
		return place(lib), false
	case len(frames) == 0:
		return noStack, false
	}
	if node := s.node(frames); node == accumulation {
		return "accumulation of gradients (no Python frame)", false
	} else if node != "" {
		return "backward of " + node + " (no Python frame)", false
	}
	if tor != nil {
		return place(tor), false
	}
	if op := s.op(frames); op != "" {
		return op + " (no Python frame)", false
	}
	for _, f := range frames {
		if int(f) < len(s.origins) && s.origins[f] == native {
			return symbol(s.m.Frames[f].Name) + " (no Python frame)", false
		}
	}
	return "only frames of the interpreter", false
}

// noStack is the label of an allocation without frames.
const noStack = "no stack recorded"

// place is a Python frame as people cite it: function and the end of its path.
func place(f *evidence.MemFrame) string {
	file := strings.ReplaceAll(f.File, `\`, "/")
	if in := below(file); in != "" {
		file = in
	}
	dir, name := path.Split(file)
	if dir = path.Base(strings.TrimSuffix(dir, "/")); dir != "." && dir != "/" && dir != "" && !strings.HasPrefix(name, "<") {
		name = dir + "/" + name
	}
	return bounded(f.Name, 80) + " (" + bounded(name, 80) + ":" + strconv.Itoa(f.Line) + ")"
}

func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// accumulation is the node that adds up gradients.
const accumulation = "AccumulateGrad"

// node is the autograd node whose backward allocated, as bmm for
// torch::autograd::generated::BmmBackward0::apply.
func (s *stacks) node(frames []uint32) string {
	for _, f := range frames {
		if int(f) >= len(s.m.Frames) {
			continue
		}
		name := s.m.Frames[f].Name
		if i := strings.Index(name, "Backward"); i >= 0 && strings.HasPrefix(name, "torch::autograd::") {
			head := name[:i]
			if j := strings.LastIndex(head, "::"); j >= 0 {
				head = head[j+2:]
			}
			if head != "" {
				return bounded(head, 60)
			}
		}
		if strings.HasPrefix(name, "torch::autograd::AccumulateGrad") {
			return accumulation
		}
	}
	return ""
}

// op is the operator that allocated, as mul_Tensor for at::_ops::mul_Tensor::call.
func (s *stacks) op(frames []uint32) string {
	for _, f := range frames {
		if int(f) >= len(s.m.Frames) {
			continue
		}
		name := s.m.Frames[f].Name
		if rest, ok := strings.CutPrefix(name, "at::_ops::"); ok {
			op, _, _ := strings.Cut(rest, "::")
			return bounded(op, 60)
		}
	}
	return ""
}

// symbol is a demangled C++ name without its parameters.
func symbol(name string) string {
	if i := strings.IndexByte(name, '('); i > 0 && !strings.HasPrefix(name[i:], "(anonymous") {
		name = name[:i]
	}
	return bounded(name, 80)
}

// name is a stack in a few words: its label, and the operator where the C++
// frames show one.
func (s *stacks) name(stack uint32) string {
	l := s.labels[s.of(stack).label]
	if op := s.op(s.frames(stack)); op != "" && !strings.HasPrefix(l, op+" ") {
		return l + ", " + op
	}
	return l
}

// Bounds of a stack that a report lists.
const (
	maxStacks = 5000 // of a report
	maxFrames = 48
	maxSymbol = 160
)

// index lists a stack among those that the report names, and returns its place
// there; nil for none.
func (s *stacks) index(stack uint32) *int {
	if stack == 0 || int(stack) >= len(s.m.Stacks) {
		return nil
	}
	n, ok := s.used[stack]
	if !ok && len(s.list) == maxStacks {
		return nil
	}
	if !ok {
		n = len(s.list)
		s.used[stack] = n
		x := incident.MemoryStack{Index: int(stack), Frames: []string{}}
		if f := s.of(stack); f.own {
			x.Own = s.labels[f.label]
		}
		for _, f := range s.frames(stack) {
			if int(f) >= len(s.origins) || s.origins[f] == noise {
				continue
			}
			if len(x.Frames) == maxFrames {
				x.Frames = append(x.Frames, "…")
				break
			}
			x.Frames = append(x.Frames, s.frame(f))
		}
		s.list = append(s.list, x)
	}
	return &n
}

func (s *stacks) frame(f uint32) string {
	x := &s.m.Frames[f]
	text := bounded(x.Name, maxSymbol)
	if x.File == "" || x.File == "??" {
		return text
	}
	text += " (" + bounded(x.File, maxSymbol)
	if x.Line > 0 {
		text += ":" + strconv.Itoa(x.Line)
	}
	return text + ")"
}

// cacheNames are functions that make a KV cache: of vLLM, SGLang, gpt-fast, Transformers.
var cacheNames = []string{"kv_cache", "setup_caches", "init_memory_pool", "StaticCache", "_create_buffers", "initialize_cache"}

// cache reports whether a stack is of code that makes a KV cache.
func (s *stacks) cache(stack uint32) bool {
	for _, f := range s.frames(stack) {
		if int(f) < len(s.origins) && s.origins[f] >= library && has(s.m.Frames[f].Name, cacheNames) {
			return true
		}
	}
	return false
}
