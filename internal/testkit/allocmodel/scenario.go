package allocmodel

import (
	"fmt"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Scenario is a training run that ends for want of memory, with the log that it
// would have printed. All of them train the same small language model on a card of 24 GB with the
// settings that PyTorch starts with, and record from the first allocation on.
type Scenario struct {
	Name, About string
	// Holds says whether expandable segments would have held the recorded requests, the one that failed
	// included. Where memory grows without end that only puts the failure off.
	Holds bool
	// Saved says whether with them the program would have come to its end.
	Saved bool
	Case  *Case
	Log   string
}

// Snapshot is what was written when memory ran out.
func (s *Scenario) Snapshot() *evidence.MemSnapshot { return s.Case.Snapshot() }

// Scenarios lists them all.
func Scenarios() []*Scenario {
	var out []*Scenario
	for _, x := range []struct {
		name, about  string
		holds, saved bool
		write        func(*decoder)
	}{
		{"fragmentation", "Lengths differ from step to step; free blocks of the wrong sizes pile up until the logits of step 4 find none. With expandable segments the program comes to its end.", true, true,
			func(d *decoder) { d.run(1977, 802, 654, 1394, 1436, 678) }},
		{"does-not-fit", "The same program meets a sample that is too long. As much lies idle as in fragmentation, but no setting makes room for it.", false, false,
			func(d *decoder) { d.hidden, d.batch = 2048, 16; d.run(1028, 632, 788, 1431, 2199) }},
		{"retained-graph", "backward(retain_graph=True) and a list of losses: every step leaves its activations behind.", false, false,
			func(d *decoder) {
				d.retain = true
				d.layers, d.batch = 4, 8
				d.run(480, 480, 480, 480, 480, 480, 480, 480, 480, 480)
			}},
		{"optimizer-first-step", "Forward and backward fit; the states of AdamW, which appear at the first step of the optimizer, do not.", false, false,
			func(d *decoder) { d.hidden, d.batch = 5120, 4; d.run(512, 512) }},
		{"eval-outputs", "Training is steady; the evaluation after it keeps the logits of every batch on the device. Expandable segments would hold the batch that failed, and not many more.", true, false,
			func(d *decoder) {
				d.layers = 3
				d.run(640, 640)
				for range 20 {
					d.evaluate(1420, true)
				}
			}},
	} {
		d := newDecoder()
		x.write(d)
		s := &Scenario{Name: x.name, About: x.about, Holds: x.holds, Saved: x.saved, Case: &Case{
			Program: &d.Program, Settings: Default(), Options: Options{FreeStacks: true},
			Device: Device{Capacity: 24207 << 20, Other: 472<<20 + 5<<16},
		}}
		s.Case.Run = Simulate(d.Ops, s.Case.Settings, s.Case.Device, s.Case.Options)
		s.Log = s.log(d)
		out = append(out, s)
	}
	return out
}

// run loads the model, unless it is there, and trains one step of each length.
func (d *decoder) run(lengths ...int64) {
	d.load()
	for _, n := range lengths {
		d.train(n)
	}
}

// FormatSize renders a size as PyTorch's messages do (format_size).
func FormatSize(n int64) string {
	f := float64(n)
	switch {
	case n <= 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n <= 1<<20:
		return fmt.Sprintf("%.2f KiB", f/(1<<10))
	case n <= 1<<30:
		return fmt.Sprintf("%.2f MiB", f/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", f/(1<<30))
}

// Message is the text of the last failure as PyTorch 2.2 to 2.9 word it, for a device that no other
// process uses. It is "" if nothing failed.
func (r *Run) Message() string {
	if len(r.Failed) == 0 {
		return ""
	}
	a := r.At
	limit, private := "", ""
	if r.Device.Limit > 0 {
		limit = FormatSize(r.Device.Limit) + " allowed; "
	}
	if a.PrivateFree > 0 {
		private = "with " + FormatSize(a.PrivateFree) + " allocated in private pools (e.g., CUDA Graphs), "
	}
	return fmt.Sprintf("CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of which %s is free. "+
		"Including non-PyTorch memory, this process has %s memory in use. %sOf the allocated memory %s is allocated by PyTorch, %sand %s is reserved by PyTorch but unallocated. "+
		"If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "+
		"See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		FormatSize(a.Asked), r.Device.Index, FormatSize(r.Device.Capacity), FormatSize(a.Free),
		FormatSize(r.Device.Capacity-a.Free), limit, FormatSize(a.Allocated+a.PrivateFree), private, FormatSize(a.Reserved-a.Allocated-a.PrivateFree))
}

// source holds the lines of code that the tracebacks show.
var source = map[string]string{
	"train.py:158":         "main(parse_args())",
	"train.py:131":         "loss = train_step(model, optimizer, batch)",
	"train.py:137":         "evaluate(model, held_out)",
	"train.py:84":          "outputs.append(model(ids))",
	"train.py:55":          "logits = model(batch[\"ids\"])",
	"train.py:56":          "loss = language_loss(logits, batch[\"labels\"])",
	"train.py:61":          "optimizer.step()",
	"train.py:38":          "return F.cross_entropy(logits.float().view(-1, logits.size(-1)), labels.view(-1))",
	"model.py:138":         "x = self.embed(ids)",
	"model.py:142":         "x = block(x)",
	"model.py:145":         "return self.head(self.norm(x))",
	"model.py:84":          "h = self.norm1(x)",
	"model.py:85":          "x = x + self.attention(h)",
	"model.py:86":          "h = self.norm2(x)",
	"model.py:87":          "h = self.mlp(h)",
	"model.py:88":          "return x + h",
	"model.py:41":          "q, k, v = self.qkv(x).chunk(3, dim=-1)",
	"model.py:47":          "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
	"model.py:52":          "return self.proj(y)",
	"model.py:66":          "h = self.up(x)",
	"model.py:67":          "h = F.gelu(h)",
	"model.py:68":          "return self.down(h)",
	"module.py:1739":       "return self._call_impl(*args, **kwargs)",
	"module.py:1750":       "return forward_call(*args, **kwargs)",
	"linear.py:125":        "return F.linear(input, self.weight, self.bias)",
	"normalization.py:217": "return F.layer_norm(",
	"functional.py:3494":   "return torch._C._nn.cross_entropy_loss(",
	"optimizer.py:493":     "out = func(*args, **kwargs)",
	"adamw.py:229":         "has_complex = self._init_group(",
	"adamw.py:178":         "state[\"exp_avg\"] = torch.zeros_like(",
}

// log is what the run prints: its parameters, a line for each step with what was allocated at its
// end, and the traceback of the failure.
func (s *Scenario) log(d *decoder) string {
	var b strings.Builder
	r := s.Case.Run
	line := func(us int64, format string, a ...any) {
		t := time.UnixMicro(us).UTC()
		fmt.Fprintf(&b, "%s INFO train: %s\n", strings.Replace(t.Format("2006-01-02 15:04:05.000"), ".", ",", 1), fmt.Sprintf(format, a...))
	}
	first := r.Events[0].Time
	params := int64(0)
	for _, p := range d.params {
		params += p / 2
	}
	line(first-2_413_000, "torch 2.6.0+cu124, one GPU, %s", FormatSize(s.Case.Device.Capacity))
	line(first-2_412_000, "recording allocations; the history is written to snapshot.pickle when memory runs out")
	line(first-40_000, "model: %d layers, hidden %d, vocabulary %d, %.2f M parameters, bfloat16", d.layers, d.hidden, d.vocab, float64(params)/1e6)
	line(first-39_000, "AdamW(lr=0.0003, fused=True), batch %d, sequences of up to 3072 tokens", d.batch)
	step := 0
	for i, a := range r.Annotations {
		if a.Start || i == 0 {
			continue
		}
		ev := 0
		for k := range r.Events {
			if r.Events[k].Time <= a.Time {
				ev = k
			}
		}
		line(a.Time, "step %d loss %.4f grad_norm %.3f allocated %.2f GiB reserved %.2f GiB", step, 10.41-0.31*float64(step)+0.07*float64(step*step%5), 4.8-0.4*float64(step%4),
			float64(r.Active[ev])/(1<<30), float64(r.Reserved[ev])/(1<<30))
		step++
	}
	last := r.Events[len(r.Events)-1]
	line(last.Time+1_204_000, "out of memory: history written to snapshot.pickle")
	b.WriteString("Traceback (most recent call last):\n")
	stack := s.Case.Program.Stacks[last.Stack]
	for i := len(stack) - 1; i >= 0; i-- {
		f := s.Case.Program.Frames[stack[i]]
		if f.Line == 0 {
			continue
		}
		fmt.Fprintf(&b, "  File \"%s\", line %d, in %s\n", f.File, f.Line, f.Name)
		if code := source[fmt.Sprintf("%s:%d", f.File[strings.LastIndex(f.File, "/")+1:], f.Line)]; code != "" {
			fmt.Fprintf(&b, "    %s\n", code)
		}
	}
	b.WriteString("torch.OutOfMemoryError: " + r.Message() + "\n")
	return b.String()
}
