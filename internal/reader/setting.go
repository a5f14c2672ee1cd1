package reader

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A SettingKey says which declared fact a configuration key sets.
type SettingKey struct {
	Fact string
	Weak bool // the key is used for other things too: a precise one goes before it
	Atom bool // rare enough to be looked for in every line of a log
	as   meaningOf
}

// A meaningOf is how a key's value becomes the fact's.
type meaningOf uint8

const (
	asIs      meaningOf = iota // the value, in the fact's type
	ifSet                      // true unless empty, none, false or zero
	ifNot                      // the opposite of a switch
	precision                  // a precision, in our words
	switchOn                   // the key names the precision, the value switches it on
	minutes                    // minutes, as seconds
	named                      // key=value as text
)

// SettingKeys is the one table of configuration keys, lower case, dashes as underscores,
// without what stands before the last point.
var SettingKeys = func() map[string]SettingKey {
	m := map[string]SettingKey{}
	add := func(fact string, as meaningOf, flags string, keys ...string) {
		for _, k := range keys {
			m[k] = SettingKey{Fact: fact, as: as, Weak: strings.Contains(flags, "weak"), Atom: strings.Contains(flags, "atom")}
		}
	}
	add("run.batch", asIs, "atom", "per_device_train_batch_size", "per_gpu_train_batch_size", "train_micro_batch_size_per_gpu", "micro_batch_size", "local_batch_size", "device_batch_size", "samples_per_gpu", "micro_train_batch_size")
	add("run.batch", asIs, "", "micro_batch", "microbatch", "microbatch_size", "device_microbatch_size", "per_device_batch_size")
	add("run.batch", asIs, "weak atom", "batch_size")
	add("run.batch", asIs, "weak", "train_batch_size", "batch", "bs", "mbs")
	add("run.eval_batch", asIs, "atom", "per_device_eval_batch_size", "eval_batch_size", "val_batch_size", "per_gpu_eval_batch_size", "eval_micro_batch_size")
	add("run.accumulation", asIs, "atom", "gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum_steps", "grad_accumulation_steps", "update_freq", "accum_iter", "accumulation_steps", "gradient_accumulation")
	add("run.accumulation", asIs, "", "grad_accum", "accum")
	add("run.seq_len", asIs, "atom", "max_seq_length", "cutoff_len", "sequence_len", "model_max_length", "seq_length", "block_size", "max_sequence_length", "sequence_length", "context_length", "max_seq_len")
	add("run.vocab", asIs, "atom", "vocab_size", "padded_vocab_size")
	add("run.seq_len", asIs, "weak", "cutoff", "max_seq", "context_len", "ctx_len", "max_length", "max_len", "seq_len", "imgsz", "resolution", "image_size", "img_size")
	add("run.world", asIs, "atom", "world_size", "num_processes")
	add("run.world", asIs, "atom", "slurm_ntasks")
	add("run.precision", precision, "atom", "mixed_precision")
	add("run.precision", precision, "", "precision", "compute_dtype", "amp_dtype")
	add("run.precision", precision, "weak", "torch_dtype", "dtype")
	add("run.precision", switchOn, "", "fp16", "bf16", "fp8", "use_fp16", "use_bf16", "pure_bf16", "use_amp", "amp", "half")
	add("run.optimizer", asIs, "", "optimizer", "optim", "optimizer_type", "optimizer_name", "optim_type")
	add("run.lr", asIs, "", "learning_rate", "lr", "base_lr", "peak_lr", "max_lr")
	add("run.checkpointing", ifSet, "atom", "gradient_checkpointing", "activation_checkpointing", "use_gradient_checkpointing", "recompute_granularity", "recompute_activations", "enable_activation_checkpointing", "grad_checkpointing", "checkpoint_activations", "activation_checkpoint")
	add("run.zero_stage", asIs, "atom", "zero_stage", "zero_optimization_stage")
	add("run.sharded", ifSet, "atom", "use_fsdp", "sharding_strategy", "fsdp_sharding_strategy", "enable_fsdp")
	add("run.sharded", ifSet, "", "fsdp")
	add("run.offload", ifSet, "atom", "cpu_offload", "offload_optimizer", "offload_optimizer_device", "offload_params", "fsdp_offload_params", "optimizer_cpu_offload", "enable_cpu_offload")
	add("run.lora", ifSet, "atom", "lora_rank", "lora_alpha", "use_lora", "use_peft", "load_in_4bit", "qlora")
	add("run.lora", ifSet, "", "lora_r")
	add("run.attention", asIs, "atom", "attn_implementation", "_attn_implementation", "attention_backend", "attention_implementation")
	add("run.attention", named, "atom", "use_flash_attn", "use_flash_attention_2", "flash_attention", "enable_flash_attn")
	add("run.alloc_conf", asIs, "atom", "pytorch_cuda_alloc_conf", "pytorch_alloc_conf", "pytorch_hip_alloc_conf")
	add("cuda.blocking", ifSet, "atom", "cuda_launch_blocking")
	add("run.workers", asIs, "atom", "dataloader_num_workers", "num_workers")
	add("run.workers", asIs, "weak", "workers", "loader_workers")
	add("run.generations", asIs, "atom", "num_generations", "n_samples_per_prompt", "rollout_n", "num_rollouts_per_prompt", "num_samples_per_prompt")
	add("run.kv_len", asIs, "atom", "max_model_len", "max_context_len")
	add("run.gpu_fraction", asIs, "atom", "gpu_memory_utilization", "vllm_gpu_memory_utilization", "mem_fraction_static", "xla_python_client_mem_fraction", "per_process_memory_fraction", "per_process_gpu_memory_fraction", "gpu_memory_fraction")
	add("run.map_location", asIs, "atom", "map_location")
	add("run.overlap", named, "atom", "overlap_grad_reduce", "overlap_param_gather", "overlap_comm", "overlap_p2p_comm")
	add("run.graphs", ifSet, "atom", "cuda_graphs", "use_cuda_graph", "enable_cuda_graph", "use_cuda_graphs")
	add("run.graphs", ifNot, "atom", "enforce_eager")
	add("run.trainable", asIs, "atom", "number_of_trainable_parameters", "trainable_params")
	add("run.anomaly_mode", ifSet, "atom", "detect_anomaly", "set_detect_anomaly", "anomaly_detection")
	add("run.resumed", ifSet, "atom", "resume_from_checkpoint", "resume_from")
	add("dist.timeout_s", asIs, "atom", "ddp_timeout", "dist_timeout_s")
	add("dist.timeout_s", minutes, "atom", "distributed_timeout_minutes")
	return m
}()

// Value gives the fact's value for the text of a setting.
func (k SettingKey) Value(key, text string) (evidence.Value, bool) {
	low := strings.ToLower(text)
	off := low == "" || low == "none" || low == "null" || low == "false" || low == "0" || low == "no" || low == "off" || low == "no_shard" || low == "[]"
	switch k.as {
	case ifSet:
		return evidence.BoolOf(!off), true
	case ifNot:
		return evidence.BoolOf(off), true
	case switchOn:
		if name, ok := precisions[low]; ok && low != "no" && strings.Contains(key, "amp") {
			return evidence.TextOf(name), true
		}
		if off || low != "true" && low != "1" && low != "yes" {
			return evidence.Value{}, false
		}
		name := strings.TrimPrefix(key, "use_")
		switch name {
		case "pure_bf16":
			name = "bf16-true"
		case "amp", "half":
			name = "fp16"
		}
		return evidence.TextOf(name), true
	case precision:
		name, ok := precisions[strings.TrimPrefix(low, "torch.")]
		if ok && strings.HasSuffix(key, "dtype") && key != "compute_dtype" && key != "amp_dtype" && name != "fp32" {
			name += "-true" // of the weights themselves
			name = strings.Replace(name, "-true-true", "-true", 1)
		}
		return evidence.TextOf(name), ok
	case minutes:
		f, err := strconv.ParseFloat(text, 64)
		return evidence.FloatOf(f * 60), err == nil
	case named:
		return evidence.TextOf(key + "=" + text), true
	}
	if off && low != "0" && low != "false" {
		return evidence.Value{}, false
	}
	spec := evidence.FactOf(k.Fact)
	if spec == nil {
		return evidence.Value{}, false
	}
	if low == "auto" && spec.Type != evidence.Text {
		return evidence.Value{}, false
	}
	return ParseValue(text, spec.Type)
}

// precisions are the spellings of a precision.
var precisions = map[string]string{
	"fp16": "fp16", "16": "fp16", "16-mixed": "fp16", "float16": "fp16", "half": "fp16", "amp_fp16": "fp16",
	"bf16": "bf16", "bf16-mixed": "bf16", "bfloat16": "bf16", "amp_bf16": "bf16",
	"16-true": "fp16-true", "bf16-true": "bf16-true",
	"32": "fp32", "32-true": "fp32", "fp32": "fp32", "float32": "fp32", "no": "fp32", "tf32": "fp32", "64": "fp64", "64-true": "fp64",
	"fp8": "fp8", "transformer-engine": "fp8",
}

// SettingName is a configuration key as the table and the facts named setting.* have it,
// and the part behind its last point or slash. Both are empty where it can be none.
func SettingName(key string) (name, short string) {
	name = strings.ToLower(strings.ReplaceAll(strings.Trim(key, "-./"), "-", "_"))
	if name == "" || len(name) > 100 {
		return "", ""
	}
	return name, name[strings.LastIndexAny(name, "./")+1:]
}

// SettingKeyOf finds what a key means, by its name or by the part behind its last point.
func SettingKeyOf(name, short string) (SettingKey, bool) {
	k, ok := SettingKeys[name]
	if !ok {
		k, ok = SettingKeys[short]
	}
	return k, ok
}

// Settings states the keys of one configuration as facts: each as it is written, and what it
// means where the key is known.
type Settings struct {
	s       Sink
	broad   []evidence.Fact // of broad names, which yield to precise ones
	precise map[string]bool
}

// NewSettings returns the settings of one configuration, stated to s.
func NewSettings(s Sink) *Settings { return &Settings{s: s, precise: map[string]bool{}} }

// Add states one key. What a broad name means is stated by Close.
func (c *Settings) Add(key, value string, at evidence.Span) {
	name, short := SettingName(key)
	value = strings.TrimSpace(value)
	if name == "" || value == "" {
		return
	}
	c.s.Fact(evidence.Fact{Name: "setting." + name, Value: evidence.TextOf(value), Who: evidence.Nobody(), Span: at})
	k, ok := SettingKeyOf(name, short)
	if !ok {
		return
	}
	v, ok := k.Value(short, value)
	if !ok {
		return
	}
	f := evidence.Fact{Name: k.Fact, Value: v, Who: evidence.Nobody(), Span: at}
	if k.Weak {
		c.broad = append(c.broad, f)
		return
	}
	c.precise[k.Fact] = true
	c.s.Fact(f)
}

// Close states what broad names mean that no precise one went before.
func (c *Settings) Close() {
	for _, f := range c.broad {
		if !c.precise[f.Name] {
			c.s.Fact(f)
		}
	}
	c.broad = nil
}
