package allocmodel

import (
	"fmt"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A script writes a program with stacks as a real one has.
type script struct {
	Program
	frames map[evidence.MemFrame]uint32
	known  map[string]uint32
	next   int
}

func newScript() *script {
	return &script{Program: Program{Stacks: [][]uint32{nil}}, frames: map[evidence.MemFrame]uint32{}, known: map[string]uint32{}}
}

// at is the stack of frames, innermost first.
func (s *script) at(parts ...[]evidence.MemFrame) uint32 {
	var ids []uint32
	for _, part := range parts {
		for _, f := range part {
			id, ok := s.frames[f]
			if !ok {
				id = uint32(len(s.Frames))
				s.frames[f] = id
				s.Frames = append(s.Frames, f)
			}
			ids = append(ids, id)
		}
	}
	key := fmt.Sprint(ids)
	n, ok := s.known[key]
	if !ok {
		n = uint32(len(s.Stacks))
		s.known[key] = n
		s.Stacks = append(s.Stacks, ids)
	}
	return n
}

func (s *script) do(op Op) { s.Ops = append(s.Ops, op) }

func (s *script) alloc(size int64, stack uint32) int {
	s.next++
	s.do(Op{Kind: Alloc, ID: s.next, Size: size, Stack: stack, Wait: 90})
	return s.next
}

func (s *script) free(stack uint32, ids ...int) {
	for _, id := range ids {
		s.do(Op{Kind: Free, ID: id, Stack: stack})
	}
}

const site = "/home/noor/envs/lm/lib/python3.11/site-packages/torch/"

func py(name, file string, line int) evidence.MemFrame {
	return evidence.MemFrame{Name: name, File: file, Line: line}
}

func own(name, file string, line int) evidence.MemFrame {
	return py(name, "/home/noor/decoder/"+file, line)
}

func cpp(name string) evidence.MemFrame { return evidence.MemFrame{Name: name, File: "??"} }

// through are the frames of calls of modules: the function of a module, as nn.Module calls it.
func through(f ...evidence.MemFrame) []evidence.MemFrame {
	var out []evidence.MemFrame
	for _, x := range f {
		out = append(out, x, py("_call_impl", site+"nn/modules/module.py", 1750), py("_wrapped_call_impl", site+"nn/modules/module.py", 1739))
	}
	return out
}

type frames = []evidence.MemFrame

var (
	device = frames{
		cpp("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(signed char, unsigned long, CUstream_st*)"),
		cpp("at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType, std::optional<c10::Device>, std::optional<c10::MemoryFormat>)"),
	}
	autograd = frames{
		cpp("torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&, torch::autograd::Node*, torch::autograd::InputBuffer&, std::shared_ptr<torch::autograd::ReadyQueue> const&)"),
		cpp("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"),
	}
	linear = through(py("forward", site+"nn/modules/linear.py", 125))
	norm   = through(py("forward", site+"nn/modules/normalization.py", 217))
)

func op(name string) frames { return frames{cpp("at::_ops::" + name + "::call(at::Tensor const&)")} }
func node(name string) frames {
	return frames{cpp("torch::autograd::generated::" + name + "::apply(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)")}
}

// A decoder is a small language model that is trained by train.py.
type decoder struct {
	*script
	hidden, layers, vocab, batch int64

	params []int64 // sizes
	grads  []int
	states bool
	step   int
	retain bool // backward(retain_graph=True), and the losses are kept
}

func newDecoder() *decoder {
	return &decoder{script: newScript(), hidden: 2560, layers: 6, vocab: 32000, batch: 12}
}

var top = frames{own("main", "train.py", 131), own("<module>", "train.py", 158)}

// load puts the parameters on the device.
func (d *decoder) load() {
	h := d.hidden
	st := d.at(device, op("_to_copy"), frames{py("convert", site+"nn/modules/module.py", 1341), py("_apply", site+"nn/modules/module.py", 928), py("_apply", site+"nn/modules/module.py", 903), py("to", site+"nn/modules/module.py", 1355), own("main", "train.py", 104), own("<module>", "train.py", 158)})
	add := func(n int64) {
		d.alloc(n*2, st)
		d.params = append(d.params, n*2)
	}
	add(d.vocab * h)
	for range d.layers {
		for _, n := range []int64{h, 3 * h * h, h * h, h, 4 * h * h, 4 * h * h} {
			add(n)
		}
	}
	add(h)
	add(d.vocab * h)
}

// a call of the model in the training step.
func (d *decoder) inStep(line int) frames {
	return append(frames{own("train_step", "train.py", line)}, top...)
}

type saved struct {
	ids  []int
	loss []int
}

// forward runs the model over length tokens of each sample, and the loss. Without gradients
// nothing but the logits is left.
func (d *decoder) forward(length int64, caller, lossAt frames, grad bool) saved {
	var s saved
	tokens := d.batch * length
	unit := tokens * d.hidden * 2
	model := func(line int) frames {
		return append(through(own("forward", "model.py", line)), caller...)
	}
	in := func(line int, inner frames) frames {
		return append(append(inner, through(own("forward", "model.py", line))...), model(142)...)
	}
	keep := func(size int64, stack uint32) int {
		x := d.alloc(size, stack)
		s.ids = append(s.ids, x)
		return x
	}
	release := d.at(frames{cpp("c10::TensorImpl::release_resources()")}, in(88, nil))
	ids := d.alloc(tokens*8, d.at(device, op("_to_copy"), caller))
	s.ids = append(s.ids, ids)
	x := keep(unit, d.at(device, op("embedding"), through(py("forward", site+"nn/modules/sparse.py", 190)), model(138)))
	for range d.layers {
		from := len(s.ids)
		keep(unit, d.at(device, op("layer_norm"), in(84, norm)))
		keep(3*unit, d.at(device, op("linear"), linear, through(own("forward", "model.py", 41)), in(85, nil)))
		keep(unit, d.at(device, op("scaled_dot_product_attention"), through(own("forward", "model.py", 47)), in(85, nil)))
		proj := d.alloc(unit, d.at(device, op("linear"), linear, through(own("forward", "model.py", 52)), in(85, nil)))
		y := d.alloc(unit, d.at(device, op("add"), in(85, nil)))
		d.free(release, proj)
		keep(unit, d.at(device, op("layer_norm"), in(86, norm)))
		keep(4*unit, d.at(device, op("linear"), linear, through(own("forward", "model.py", 66)), in(87, nil)))
		keep(4*unit, d.at(device, op("gelu"), through(own("forward", "model.py", 67)), in(87, nil)))
		down := d.alloc(unit, d.at(device, op("linear"), linear, through(own("forward", "model.py", 68)), in(87, nil)))
		z := d.alloc(unit, d.at(device, op("add"), in(88, nil)))
		d.free(release, down)
		if grad {
			s.ids = append(s.ids, y, z)
			continue
		}
		d.free(release, append(s.ids[from:], y, x)...)
		s.ids = s.ids[:from-1]
		s.ids = append(s.ids, z)
		x = z
	}
	logits := d.alloc(tokens*d.vocab*2, d.at(device, op("linear"), linear, model(145)))
	if !grad {
		d.free(release, s.ids...)
		return saved{loss: []int{logits}}
	}
	inLoss := append(frames{own("language_loss", "train.py", 38)}, lossAt...)
	at := append(frames{py("cross_entropy", site+"nn/functional.py", 3494)}, inLoss...)
	full := d.alloc(tokens*d.vocab*4, d.at(device, op("_to_copy"), inLoss))
	soft := d.alloc(tokens*d.vocab*4, d.at(device, op("log_softmax"), at))
	loss := d.alloc(4, d.at(device, op("nll_loss_nd"), at))
	d.free(d.at(frames{cpp("c10::TensorImpl::release_resources()")}, at), full)
	s.loss = []int{loss, logits, soft}
	return s
}

// backward goes back over what was saved.
func (d *decoder) backward(length int64, s saved) {
	tokens := d.batch * length
	unit := tokens * d.hidden * 2
	release := d.at(frames{cpp("torch::autograd::Node::release_variables()")}, autograd)
	if d.retain {
		s.ids, s.loss = nil, nil
	}
	drop := func(n int) {
		n = min(n, len(s.ids))
		d.free(release, s.ids[len(s.ids)-n:]...)
		s.ids = s.ids[:len(s.ids)-n]
	}
	grad := func(name string) {
		if len(d.grads) < len(d.params) {
			d.grads = append(d.grads, d.alloc(d.params[len(d.params)-1-len(d.grads)], d.at(device, op("mm"), node(name), autograd)))
		}
	}
	soft := d.alloc(tokens*d.vocab*4, d.at(device, op("_log_softmax_backward_data"), node("LogSoftmaxBackward0"), autograd))
	if len(s.loss) > 0 {
		d.free(release, s.loss[2])
	}
	lg := d.alloc(tokens*d.vocab*2, d.at(device, op("_to_copy"), node("ToCopyBackward0"), autograd))
	d.free(release, soft)
	if len(s.loss) > 0 {
		d.free(release, s.loss[1])
	}
	x := d.alloc(unit, d.at(device, op("mm"), node("MmBackward0"), autograd))
	grad("MmBackward0")
	grad("NativeLayerNormBackward0")
	d.free(release, lg)
	for range d.layers {
		a := d.alloc(4*unit, d.at(device, op("mm"), node("AddmmBackward0"), autograd))
		grad("AddmmBackward0")
		b := d.alloc(4*unit, d.at(device, op("gelu_backward"), node("GeluBackward0"), autograd))
		d.free(release, a)
		drop(4)
		grad("AddmmBackward0")
		grad("NativeLayerNormBackward0")
		c := d.alloc(unit, d.at(device, op("native_layer_norm_backward"), node("NativeLayerNormBackward0"), autograd))
		d.free(release, b)
		e := d.alloc(3*unit, d.at(device, op("_scaled_dot_product_flash_attention_backward"), node("ScaledDotProductFlashAttentionBackward0"), autograd))
		drop(2)
		grad("AddmmBackward0")
		grad("AddmmBackward0")
		grad("NativeLayerNormBackward0")
		d.free(release, x)
		drop(2)
		x = d.alloc(unit, d.at(device, op("native_layer_norm_backward"), node("NativeLayerNormBackward0"), autograd))
		d.free(release, c, e)
	}
	grad("EmbeddingBackward0")
	d.free(release, x)
	drop(2)
}

// optimize is AdamW, fused: its states appear at the first step, in single precision.
func (d *decoder) optimize() {
	if d.states {
		return
	}
	d.states = true
	st := d.at(device, op("zeros_like"), frames{py("_init_group", site+"optim/adamw.py", 178), py("step", site+"optim/adamw.py", 229), py("wrapper", site+"optim/optimizer.py", 493)}, d.inStep(61))
	for _, n := range d.params {
		d.alloc(n*2, st)
		d.alloc(n*2, st)
	}
}

// train is one step; set_to_none gives the gradients back at its end.
func (d *decoder) train(length int64) {
	name := fmt.Sprintf("ProfilerStep#%d", d.step)
	d.step++
	d.do(Op{Kind: StepStart, Name: name, Wait: 81_000})
	s := d.forward(length, d.inStep(55), d.inStep(56), true)
	d.backward(length, s)
	d.optimize()
	d.free(d.at(frames{py("zero_grad", site+"optim/optimizer.py", 963)}, d.inStep(62)), d.grads...)
	d.grads = nil
	if !d.retain {
		d.free(d.at(d.inStep(64)), s.loss[0])
	}
	d.do(Op{Kind: StepEnd, Name: name, Wait: 412_000})
}

// evaluate runs over one held-out batch without gradients.
func (d *decoder) evaluate(length int64, keep bool) {
	in := frames{own("evaluate", "train.py", 84), own("main", "train.py", 137), own("<module>", "train.py", 158)}
	s := d.forward(length, in, nil, false)
	d.do(Op{Kind: Done, Wait: 160_000})
	if !keep {
		d.free(d.at(in), s.loss...)
	}
}
