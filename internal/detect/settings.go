package detect

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// stacks orders framework names from the one whose settings a person changes to
// the one below it.
var stacks = []string{"vllm", "sglang", "torchtitan", "megatron", "nemo", "trl", "axolotl", "llamafactory", "unsloth", "hf", "lightning", "ultralytics", "mmengine", "detectron2", "fairseq", "keras", "maxtext", "deepspeed", "composer", "accelerate", "diffusers", "fsdp", "torchtune", "timm", "tensorflow", "jax", "transformers", "pytorch"}

// settings takes over the stated facts; the last statement of a name counts, as
// later configuration overrides earlier, except that run.frameworks gathers.
func settings(in Input, f evidence.Known) {
	seen := map[string]bool{}
	var spans []evidence.Span
	for _, s := range in.Stated {
		if s.Name == "run.frameworks" {
			for _, w := range strings.Fields(s.Value.S) {
				if !seen[w] {
					seen[w] = true
					spans = append(spans, s.Span)
				}
			}
			continue
		}
		if old, ok := f[s.Name]; ok && s.Name == "run.overlap" && !strings.Contains(old.Value.S, s.Value.S) {
			f.Set(s.Name, evidence.TextOf(old.Value.S+" "+s.Value.S), append(old.Spans, s.Span)...) // several switches, all of them matter
			continue
		}
		f.Set(s.Name, s.Value, s.Span)
	}
	for _, s := range in.Series {
		if w, ok := sourceStack[s.Key.Source]; ok && !seen[w] {
			seen[w] = true
			spans = append(spans, s.Span(s.First))
		}
	}
	for _, e := range in.Events {
		for _, fr := range e.Stack {
			for dir, w := range fileStack {
				if !seen[w] && strings.Contains(fr.File, dir) {
					seen[w] = true
					spans = append(spans, e.Span)
				}
			}
		}
		switch {
		case e.Kind == evidence.DeviceOOM && !seen["pytorch"]:
			switch e.Attrs.Str("backend") {
			case "cuda", "hip", "xpu", "npu", "mps":
				seen["pytorch"] = true
				spans = append(spans, e.Span)
			case "xla":
				seen["jax"] = true
			case "tensorflow":
				seen["tensorflow"] = true
			}
		}
	}
	var all []string
	for _, w := range stacks {
		if seen[w] {
			all = append(all, w)
		}
	}
	if len(all) > 0 {
		f.Set("run.frameworks", evidence.TextOf(strings.Join(all, " ")), clip(spans)...)
		f.Set("run.stack", evidence.TextOf(all[0]), clip(spans)...)
	}
	if in.World > 1 {
		if _, ok := f["run.world"]; !ok {
			f.Set("run.world", evidence.IntOf(int64(in.World)))
		}
	}
	if z, ok := f["run.zero_stage"]; ok {
		if _, done := f["run.sharded"]; !done {
			f.Set("run.sharded", evidence.BoolOf(z.Value.I >= 2), z.Spans...)
		}
	}
	resumed := false
	var at []evidence.Span
	in.each(evidence.ResumeMark, func(e *evidence.Event) { resumed, at = true, append(at, e.Span) })
	f.Set("run.resumed", evidence.BoolOf(resumed), clip(at)...)
	if e := in.first(evidence.AnomalyMode); e != nil {
		f.Set("run.anomaly_mode", evidence.BoolOf(true), e.Span)
	}
	if _, ok := f["run.lr"]; !ok {
		if x, p := lrAtFault(in); x != nil {
			f.Set("run.lr", evidence.FloatOf(p.Value), x.Span(p))
		}
	}
}

// lrAtFault is the learning rate logged last before the non-finite value or the
// leading fault, or the last one of all.
func lrAtFault(in Input) (*evidence.Series, evidence.Point) {
	e := in.NaN
	if e == nil {
		e = in.Lead
	}
	for _, s := range in.named("lr", "") {
		if !s.HasFinite {
			continue
		}
		at := s.LastFinite()
		if e != nil && s.Key.Artifact == e.Span.Artifact {
			for p := range s.All() {
				if p.Offset <= e.Span.Offset && finite(p.Value) {
					at = p
				}
			}
		}
		return s, at
	}
	return nil, evidence.Point{}
}

// sourceStack names the framework that prints a metric format.
var sourceStack = map[string]string{
	"hf": "hf", "megatron": "megatron", "titan": "torchtitan", "torchtitan": "torchtitan", "lightning": "lightning", "deepspeed": "deepspeed",
	"nemo": "nemo", "fairseq": "fairseq", "detectron2": "detectron2", "mmengine": "mmengine", "mmcv": "mmengine", "ultralytics": "ultralytics",
	"timm": "timm", "composer": "composer", "keras": "keras", "maxtext": "maxtext", "vllm": "vllm", "sglang": "sglang", "diffusers": "diffusers",
}

// fileStack names the framework by a folder in a traceback's file names. A
// model of transformers also runs in loops that know no Trainer.
var fileStack = map[string]string{
	"/transformers/": "transformers", "/transformers/trainer": "hf", "/lightning/": "lightning", "/pytorch_lightning/": "lightning", "/deepspeed/": "deepspeed", "/megatron/": "megatron",
	"/torchtitan/": "torchtitan", "/vllm/": "vllm", "/sglang/": "sglang", "/jax/": "jax", "/tensorflow/": "tensorflow", "/keras/": "keras",
	"/fairseq/": "fairseq", "/mmengine/": "mmengine", "/detectron2/": "detectron2", "/ultralytics/": "ultralytics", "/accelerate/": "accelerate",
	"/diffusers/": "diffusers", "/torch/": "pytorch", "/trl/": "trl", "/composer/": "composer", "/timm/": "timm", "/torchtune/": "torchtune", "/fsdp/": "fsdp",
}

// changes compares with the attempt before.
func changes(in Input, f evidence.Known) {
	p := in.Before
	if p == nil {
		return
	}
	f.Set("changed.after_oom", evidence.BoolOf(p.Memory))
	f.Set("changed.after_nan", evidence.BoolOf(p.Nonfinite))
	diff := func(fact, name string) {
		a, ok1 := p.Facts[name]
		b, ok2 := f[name]
		if ok1 && ok2 {
			f.Set(fact, evidence.BoolOf(a.Value.String() != b.Value.String()), append(append([]evidence.Span(nil), a.Spans...), b.Spans...)...)
		}
	}
	diff("changed.batch", "run.batch")
	if a, ok := effective(p.Facts, f); ok {
		f.Set("changed.effective_batch", evidence.BoolOf(a), f["run.batch"].Spans...)
	}
	diff("changed.precision", "run.precision")
	diff("changed.lr", "run.lr")
	if on, ok := f.Bool("run.anomaly_mode"); ok && on {
		was, _ := p.Facts.Bool("run.anomaly_mode")
		f.Set("changed.anomaly_mode", evidence.BoolOf(!was), f["run.anomaly_mode"].Spans...)
	}
}

// effective compares the effective batch (micro-batch x accumulation x ranks) of
// two attempts. It is unknown where one lacks its micro-batch, or where only one
// states accumulation.
func effective(a, b evidence.Known) (changed, known bool) {
	size := func(k evidence.Known) int64 {
		return k["run.batch"].Value.I * max(k["run.accumulation"].Value.I, 1) * max(k["run.world"].Value.I, 1)
	}
	_, acc1 := a["run.accumulation"]
	_, acc2 := b["run.accumulation"]
	x, y := size(a), size(b)
	return x != y, x > 0 && y > 0 && acc1 == acc2
}

// maxAcross is far above the number of launches that somebody varies by hand; what
// restarts itself more often does not change its settings.
const maxAcross = 128

// Across sets what only the comparison of all attempts shows: whether the same
// configuration, or the same with a smaller micro-batch, got past the point at
// which an attempt ran out of memory, and whether one changed setting kept the
// values finite. An attempt is compared with the maxAcross before it and after it.
func Across(attempts []*Previous) {
	for i, a := range attempts {
		if !a.Memory && !a.Nonfinite {
			continue
		}
		first := max(i-maxAcross, 0)
		near := attempts[first:min(i+maxAcross+1, len(attempts))]
		for j, b := range near {
			if first+j != i {
				compareFinite(a, b)
			}
		}
		if !a.Memory {
			continue
		}
		for j, b := range near {
			if first+j == i || b.Memory || b.Points <= a.Points {
				continue
			}
			mine, ok1 := a.Facts["run.batch"]
			theirs, ok2 := b.Facts["run.batch"]
			if !ok1 || !ok2 {
				continue
			}
			spans := append(append([]evidence.Span(nil), mine.Spans...), theirs.Spans...)
			switch same := sameShape(a.Facts, b.Facts); {
			case same && theirs.Value.I < mine.Value.I:
				a.Facts.Set("run.smaller_batch_fits", evidence.BoolOf(true), spans...)
			case same && theirs.Value.I == mine.Value.I:
				a.Facts.Set("run.same_config_fits", evidence.BoolOf(true), spans...)
			}
		}
	}
}

// trials maps a setting to the fact that a launch with another value of it stayed
// finite where this one did not.
var trials = []struct{ setting, fact string }{
	{"run.precision", "nan.bf16_finite"},
	{"run.lr", "nan.lower_lr_finite"},
	{"run.attention", "nan.other_kernel_finite"},
	{"run.overlap", "nan.overlap_off_finite"},
}

// compareFinite sets, for an attempt that became non-finite, what another attempt
// proves that differs from it in one setting only and stayed finite for longer.
func compareFinite(a, b *Previous) {
	if !a.Nonfinite || b.Nonfinite || b.Memory || b.Points <= a.Points {
		return
	}
	differs := -1
	for i, t := range trials {
		x, ok1 := a.Facts[t.setting]
		y, ok2 := b.Facts[t.setting]
		if ok1 != ok2 || ok1 && x.Value.String() != y.Value.String() {
			if differs >= 0 || !ok1 || !ok2 {
				return // several things differ, or one is not stated
			}
			differs = i
		}
	}
	if differs < 0 {
		return
	}
	t := trials[differs]
	x, y := a.Facts[t.setting], b.Facts[t.setting]
	switch t.setting {
	case "run.precision":
		if wide := y.Value.S; wide != "bf16" && wide != "fp32" && wide != "bf16-true" {
			return
		}
	case "run.lr":
		if y.Value.F >= x.Value.F {
			return
		}
	}
	a.Facts.Set(t.fact, evidence.BoolOf(true), append(append([]evidence.Span(nil), x.Spans...), y.Spans...)...)
}

// sameWidth reports whether two names of precisions are of numbers as wide, so that tensors
// take as much memory: bf16 and fp16, each as mixed precision or each throughout.
func sameWidth(a, b string) bool {
	half := func(s string) string { return strings.Replace(strings.Replace(s, "bf16", "16", 1), "fp16", "16", 1) }
	return strings.Contains(a, "16") && half(a) == half(b)
}

// sameShape reports whether two attempts state no precision of another width, and no different sequence
// length, world size, checkpointing or model.
func sameShape(a, b evidence.Known) bool {
	if p, q := a["run.precision"], b["run.precision"]; differ(a, b, "run.precision") && !sameWidth(p.Value.S, q.Value.S) {
		return false
	}
	for _, n := range []string{"run.seq_len", "run.world", "run.checkpointing", "run.zero_stage", "run.offload", "run.params", "run.trainable", "run.lora"} {
		if differ(a, b, n) {
			return false
		}
	}
	for n := range a {
		if strings.HasPrefix(n, "setting.") && ofModel(n) && differ(a, b, n) {
			return false
		}
	}
	return true
}

func differ(a, b evidence.Known, name string) bool {
	x, ok1 := a[name]
	y, ok2 := b[name]
	return ok1 && ok2 && x.Value.String() != y.Value.String()
}

// ofModel reports whether a setting's name speaks of which model is built, or
// how large: model_dim, n_layer, hidden-size, lora_rank.
func ofModel(name string) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(strings.TrimPrefix(name, "setting.")), func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == '/' }) {
		switch w {
		case "model", "arch", "architecture", "backbone", "depth", "layer", "layers", "width", "dim", "hidden", "embd", "embed", "embedding", "head", "heads", "ffn", "mlp", "intermediate", "experts", "vocab", "lora", "resolution":
			return true
		}
	}
	return false
}
