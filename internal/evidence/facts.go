package evidence

import "sync"

// A FactSpec declares one fact that an entry's condition may ask for. A fact
// that is not in evidence is unknown, which is not the same as false; How says
// how a person obtains it.
type FactSpec struct {
	Name string
	Type Type
	Doc  string
	// How is the command or look that obtains the fact; {names} of other facts
	// are filled in where known. "" for facts that are always known.
	How    string
	Cost   string // seconds, minutes, one short run, one full run
	Effect string // reads, reversible, changes
}

// recordSnapshot obtains what only a memory snapshot of the failing process shows.
const recordSnapshot = "torch.cuda.memory._record_memory_history() before the first step and torch.cuda.memory._dump_snapshot(\"oom.pickle\") when it fails, then inquest diagnose with the log and oom.pickle, or inquest memory oom.pickle"

// FactSpecs is the one list of facts, by group. All of them speak of one
// attempt and its leading fault. seen.<kind> (int, how many events of that
// kind the attempt has; 0 is known) exists for every kind and is not listed.
//
// Sizes are intervals: conditions use .lo and .hi. Where a size is compared,
// compare the ends that make the answer certain.
var FactSpecs = [...]FactSpec{
	// The device-memory failure that leads (or the first one of the attempt).
	{"oom.requested", Size, "bytes asked for", "rerun with PYTHONUNBUFFERED=1 and keep the whole exception text of the failing rank: its first sentence states the size", "one short run", "reads"},
	{"oom.capacity", Size, "bytes of the device", "nvidia-smi --query-gpu=index,name,memory.total --format=csv on {fault.host}", "seconds", "reads"},
	{"oom.free", Size, "bytes free on the device when the request failed, all processes", "nvidia-smi --query-gpu=index,memory.used,memory.free --format=csv -l 1 beside a rerun", "one short run", "reads"},
	{"oom.allocated", Size, "bytes in live tensors of this process", "print torch.cuda.memory_allocated() just before the failing call, or the exception's own figures", "one short run", "reads"},
	{"oom.reserved", Size, "bytes held by the allocator", "print torch.cuda.memory_reserved() just before the failing call", "one short run", "reads"},
	{"oom.reserved_unallocated", Size, "reserved but unallocated bytes", "print torch.cuda.memory_reserved() - torch.cuda.memory_allocated() just before the failing call", "one short run", "reads"},
	{"oom.reserve_short", Bool, "reserved but unallocated bytes are fewer than the request, and no replay serves the request within the same room", "print torch.cuda.memory_reserved() - torch.cuda.memory_allocated() just before the failing call", "one short run", "reads"},
	{"oom.private_pools", Size, "free bytes in private (CUDA graph) pools", "the exception text of PyTorch 2.2 or newer states it", "one short run", "reads"},
	{"oom.allowed", Size, "limit set for this process (memory fraction)", "grep set_per_process_memory_fraction and per_process_memory_fraction in the code and configuration", "minutes", "reads"},
	{"oom.this_process", Size, "all device memory of the failing process as the driver counts it", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv on {fault.host} during a rerun", "one short run", "reads"},
	{"oom.other_processes", Size, "device memory of other processes on that device", "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv on {fault.host}, before the launch", "seconds", "reads"},
	{"oom.outside_allocator", Size, "device memory of this process outside the allocator (context, NCCL, libraries): this process less reserved", "nvidia-smi per-process memory minus torch.cuda.memory_reserved() at the same moment on {fault.host}", "one short run", "reads"},
	{"oom.unexplained", Size, "capacity less free less everything that the message accounts for", "nvidia-smi on the host (outside the container) when the job runs and when it does not", "minutes", "reads"},
	{"oom.backend", Text, "cuda, hip, xpu, npu, mps, xla, tensorflow, ...", "", "", ""},
	{"oom.kind", Text, "event kind of the failure (device_oom, device_oom_raw, library_oom, nccl_oom, serve_start_oom, pinned_oom, managed_oom)", "", "", ""},
	{"oom.plan_temp", Size, "temporary buffers of one step in the compiler's memory plan", "keep the BufferAssignment statistics that XLA prints below the failure", "one short run", "reads"},
	{"oom.pool", Size, "device memory that the framework may use, as it states at start", "print jax.local_devices()[0].memory_stats()['bytes_limit']", "seconds", "reads"},
	{"oom.where", Text, "compile, runtime or startup, where the text says it", "", "", ""},
	{"oom.bogus", Bool, "the request is larger than any device (1 PiB or more, or at least 64 times this device's capacity)", "", "", ""},
	{"oom.phase", Text, "load, resume, setup, forward, backward, optimizer, evaluation, checkpoint, generation, collective or unknown: from the stack and the last phase marker", "", "", ""},
	{"oom.first_step", Bool, "no training step had completed in this attempt when it failed", "rerun with one log line per step (logging_steps=1, PYTHONUNBUFFERED=1)", "one short run", "reversible"},
	{"oom.points_before", Int, "training lines logged before the failure", "rerun with one log line per step (logging_steps=1, PYTHONUNBUFFERED=1)", "one short run", "reversible"},
	{"oom.step", Int, "last step logged before the failure", "rerun with one log line per step (logging_steps=1, PYTHONUNBUFFERED=1)", "one short run", "reversible"},
	{"oom.ranks", Int, "how many ranks report a device-memory failure of their own", "collect the log of every rank (torchrun --log-dir D --redirects 3)", "one full run", "reversible"},
	{"oom.all_ranks", Bool, "every rank of the job reports one, near in time", "collect the log of every rank (torchrun --log-dir D --redirects 3)", "one full run", "reversible"},
	{"oom.survived", Int, "how many were caught and survived in an attempt that no failure of device memory ended", "", "", ""},
	{"oom.recovered_before", Int, "how many were caught and survived earlier in the attempt", "", "", ""},
	{"oom.logits_exact", Bool, "the request equals micro-batch x sequence length x vocabulary x 2 or 4 bytes, as the allocator rounds it", "print the micro-batch, the padded sequence length and the vocabulary size of the failing batch", "seconds", "reads"},
	{"oom.retry_same_failure", Bool, "an exception handler tried again or went on and memory did not come back", "print torch.cuda.memory_allocated() in the handler after the exception object is gone", "one short run", "reversible"},
	{"oom.exact_tensor", Bool, "the request equals batch x heads x length^2 x bytes, or another product of shapes in the log, within rounding", "", "", ""},
	{"oom.kv_needed", Size, "KV cache that an engine's start-up message says it needs", "keep the engine's whole start-up message: it states the cache needed and the cache available", "one short run", "reads"},
	{"oom.kv_available", Size, "KV cache that an engine's start-up message says is available", "keep the engine's whole start-up message: it states the cache needed and the cache available", "one short run", "reads"},

	// Memory over time, from logged figures of this attempt.
	{"memory.growth_per_step", Float, "slope of allocated device memory over steps, bytes per step, when it is positive beyond its error", "log torch.cuda.memory_allocated() every step for about 100 steps", "one short run", "reversible"},
	{"memory.grows", Bool, "allocated device memory grows steadily over training steps", "log torch.cuda.memory_allocated() and the longest sequence of the batch every step for about 100 steps", "one short run", "reversible"},
	{"memory.allocated_flat", Bool, "allocated device memory stays within 3 per cent over the steps before the failure", "log torch.cuda.memory_allocated() every step for about 100 steps", "one short run", "reversible"},
	{"memory.reserved_grows", Bool, "reserved device memory grows over steps", "log torch.cuda.memory_reserved() every step for about 100 steps", "one short run", "reversible"},
	{"memory.eval_grows", Bool, "device memory grows batch by batch inside one evaluation", "print torch.cuda.memory_allocated() after each evaluation batch", "one short run", "reversible"},
	{"memory.eval_growth_per_batch", Float, "growth of device memory in bytes per evaluation batch", "print torch.cuda.memory_allocated() after each evaluation batch", "one short run", "reversible"},
	{"memory.steady_before_eval", Bool, "training steps ran at flat memory and evaluation then needed more", "print torch.cuda.max_memory_allocated() at the end of training steps and at the end of evaluation", "one short run", "reversible"},
	{"memory.peak_fraction", Float, "largest logged fraction of the device in use before the failure", "nvidia-smi --query-gpu=memory.used,memory.total --format=csv -l 1 beside a rerun", "one short run", "reads"},
	{"memory.device_grows", Bool, "the memory in use on a whole device, as sampled beside the run, climbs steadily up to the failure", "nvidia-smi --query-gpu=memory.used,memory.total --format=csv -l 1 beside a rerun", "one short run", "reads"},
	{"memory.outside_grows", Bool, "free device memory shrinks while reserved memory does not grow as much: growth outside the allocator", "log torch.cuda.mem_get_info() beside torch.cuda.memory_reserved() every step", "one short run", "reversible"},
	{"memory.retries", Int, "allocator retries or cache flushes reported", "", "", ""},
	{"memory.before_fault", Size, "allocated memory that the failing rank logged last before the failure", "print torch.cuda.memory_allocated() before optimizer.step() of the first step", "one short run", "reversible"},
	{"memory.after_init", Size, "allocated memory after model set-up, before the first step", "print torch.cuda.memory_allocated() after the model and optimizer are built and after the first optimizer step", "one short run", "reversible"},
	{"memory.ooms", Int, "requests that the allocator of the failing process counted as refused, caught ones included", "print torch.cuda.memory_stats()['num_ooms'] when it fails", "one short run", "reads"},
	{"memory.inactive_split", Size, "free pieces of segments that live blocks hold, which cannot go back to the driver", "print torch.cuda.memory_summary() when it fails and read Non-releasable memory", "one short run", "reads"},
	{"memory.rounding_waste", Size, "allocated less requested: what the rounding of sizes takes", "print torch.cuda.memory_summary() when it fails and compare Allocated with Requested memory", "one short run", "reads"},
	{"memory.pending_free", Size, "active less allocated: freed blocks that another stream may still use", "print torch.cuda.memory_summary() when it fails and compare Active with Allocated memory", "one short run", "reads"},

	// What a memory snapshot of the failing process shows, and its replay. Known only
	// where the snapshot is known to be of that process and failure.
	{"replay.expandable_avoids", Bool, "a replay of the recorded allocations fits under expandable segments", recordSnapshot + "; or rerun past the failing step with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True and nothing else changed", "one short run", "reversible"},
	{"replay.faithful", Bool, "a replay under the recorded settings reproduces the recorded history within tolerance", recordSnapshot, "one short run", "reversible"},
	{"replay.fits", Bool, "what was active and the failed request together are within the room that the allocator had", recordSnapshot, "one short run", "reversible"},
	{"replay.avoided_by", Text, "the allocator setting under which a faithful replay does not run out", recordSnapshot, "one short run", "reversible"},
	{"snapshot.graph_held", Bool, "a memory snapshot shows activations of past steps still alive", "record a memory snapshot over three steps and see what grows in inquest memory; or check whether the accumulated variable has a grad_fn", "one short run", "reversible"},
	{"snapshot.eval_outputs_kept", Bool, "a memory snapshot shows outputs of evaluation batches piling up", recordSnapshot, "one short run", "reversible"},
	{"snapshot.optimizer_states", Bool, "the request that failed, or what was allocated last before it, makes the optimizer's states", recordSnapshot, "one short run", "reversible"},
	{"snapshot.sequence_spike", Bool, "the last step before the failure allocated far more at the same places than the steps before it", recordSnapshot, "one short run", "reversible"},
	{"snapshot.checkpoint_copy", Bool, "a memory snapshot shows a loaded or gathered checkpoint beside the model", recordSnapshot, "one short run", "reversible"},
	{"snapshot.kv_cache", Bool, "a KV cache is the largest part of what was in use, by a memory snapshot", recordSnapshot, "one short run", "reversible"},
	{"snapshot.rank_imbalance", Bool, "the snapshots of several ranks differ far in what was active at their peaks", recordSnapshot + ", on every rank", "one short run", "reversible"},
	{"snapshot.outside_allocator", Bool, "most of the device's memory was outside this process's allocator when the request failed", recordSnapshot, "one short run", "reversible"},
	{"snapshot.layout", Bool, "it was a matter of layout: a faithful replay serves the refused request under another setting, nothing that piles up would have been room enough, and the rest of the step has room", recordSnapshot, "one short run", "reversible"},
	{"snapshot.grows", Bool, "what is in use piles up: over the steps, or over the batches of an evaluation", recordSnapshot, "one short run", "reversible"},
	{"snapshot.growth_per_step", Float, "bytes that stayed behind at each step, by a memory snapshot", recordSnapshot, "one short run", "reversible"},
	{"snapshot.growing_at", Text, "where the allocations that pile up were made, by a memory snapshot", recordSnapshot, "one short run", "reversible"},
	{"snapshot.largest_free", Size, "largest free block that the failed request could have had", recordSnapshot, "one short run", "reversible"},
	{"snapshot.peak", Size, "most bytes that were in use at once", recordSnapshot, "one short run", "reversible"},

	// Devices and processes beside the run.
	{"gpu.foreign_listed", Bool, "a process that is not of this job holds memory on that device", "nvidia-smi on {fault.host} before the launch: every pid on the device and its owner (ps -o pid,ppid,user,etime,cmd)", "seconds", "reads"},
	{"gpu.foreign_bytes", Size, "device memory of processes that are not of this job", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv on {fault.host} before the launch", "seconds", "reads"},
	{"gpu.unlisted_bytes", Size, "device memory in use that no listed process accounts for", "on the host itself: sudo fuser -v /dev/nvidia* (or lsof), to find holders that nvidia-smi cannot list", "seconds", "reads"},
	{"gpu.orphan_holder", Bool, "a holder of device memory whose parent is gone (parent pid 1) or that is older than this launch", "ps -o pid,ppid,user,etimes,cmd -p for each pid that nvidia-smi lists on {fault.host}", "seconds", "reads"},
	{"gpu.used_before_launch", Size, "device memory in use before the launch", "nvidia-smi on {fault.host} with the job stopped", "seconds", "reads"},
	{"gpu.free_at_start", Size, "device memory that the framework found free when it opened the device", "print torch.cuda.mem_get_info() as the first statement of the program", "seconds", "reads"},
	{"gpu.job_pids_on_device0", Int, "how many processes of this job hold memory on device 0", "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv on {fault.host} during a rerun", "one short run", "reads"},
	{"gpu.stray_pids", Int, "processes of this job that hold memory on device 0 and on another device too", "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv on {fault.host} during a rerun: pids that appear on two devices", "one short run", "reads"},
	{"gpu.full_by_job", Bool, "samples show the device filled by this job's own process", "nvidia-smi --query-gpu=memory.used,memory.total --format=csv -l 1 beside a rerun", "one short run", "reads"},
	{"gpu.free_at_fault", Size, "device memory free at the fault by a sample beside the run", "nvidia-smi --query-gpu=timestamp,memory.free --format=csv -l 1 beside a rerun", "one short run", "reads"},

	{"gpu.ecc_uncorrectable", Int, "memory errors that could not be corrected on the fault's device since its driver was loaded", "nvidia-smi --query-gpu=index,pci.bus_id,ecc.errors.uncorrected.volatile.total --format=csv on {fault.host}", "seconds", "reads"},
	{"gpu.repair_pending", Bool, "the fault's device waits for a reset, a row remapping or the retirement of pages, one of them failed, or it does not answer on its bus", "nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT on {fault.host}", "seconds", "reads"},
	{"gpu.throttled", Text, "why the clocks of the fault's device were held down: hw-thermal, power-brake, hw", "nvidia-smi -q -d PERFORMANCE,TEMPERATURE on {fault.host}", "seconds", "reads"},
	{"gpu.test_failed", Text, "a device test that failed on the fault's host", "dcgmi diag -r 2 on {fault.host}, with the job stopped", "minutes", "reads"},

	// The run.
	{"run.stack", Text, "pytorch, hf, lightning, deepspeed, fsdp, megatron, torchtitan, jax, tensorflow, vllm, ... the framework that the log shows", "", "", ""},
	{"run.frameworks", Text, "all frameworks seen, space separated", "", "", ""},
	{"run.batch", Int, "micro-batch per device", "print the micro-batch per device (per_device_train_batch_size or the loader's batch_size)", "seconds", "reads"},
	{"run.eval_batch", Int, "evaluation batch per device", "print the evaluation batch per device", "seconds", "reads"},
	{"run.accumulation", Int, "gradient accumulation steps", "print the accumulation steps from the configuration", "seconds", "reads"},
	{"run.seq_len", Int, "longest sequence that the configuration allows (or image size)", "print max_length / block_size and the longest sample of the failing batch", "seconds", "reads"},
	{"run.vocab", Int, "vocabulary size of the model", "print model.config.vocab_size", "seconds", "reads"},
	{"run.world", Int, "number of ranks", "echo $WORLD_SIZE in the job", "seconds", "reads"},
	{"run.precision", Text, "precision of the run: fp16, bf16, fp16-true, bf16-true, fp32, fp8", "print the precision flags (fp16, bf16, torch_dtype) of the run", "seconds", "reads"},
	{"run.optimizer", Text, "optimizer name as stated", "print(optimizer) at start", "seconds", "reads"},
	{"run.lr", Float, "learning rate at or just before the fault", "print the learning rate schedule up to the fault", "seconds", "reads"},
	{"run.params", Int, "number of parameters", "print sum(p.numel() for p in model.parameters())", "seconds", "reads"},
	{"run.trainable", Int, "number of trainable parameters", "print sum(p.numel() for p in model.parameters() if p.requires_grad)", "seconds", "reads"},
	{"run.checkpointing", Bool, "activation (gradient) checkpointing is on", "print model.is_gradient_checkpointing, or the gradient_checkpointing flag", "seconds", "reads"},
	{"run.zero_stage", Int, "DeepSpeed ZeRO stage", "print zero_optimization.stage of the DeepSpeed configuration", "seconds", "reads"},
	{"run.sharded", Bool, "parameters or optimizer states are sharded (FSDP, ZeRO 2 or 3)", "print the sharding settings (FSDP strategy, ZeRO stage)", "seconds", "reads"},
	{"run.offload", Bool, "optimizer or parameters are off-loaded to the host", "print the offload settings", "seconds", "reads"},
	{"run.lora", Bool, "adapters only are trained (LoRA, QLoRA)", "print(model.peft_config) or the trainable parameter count", "seconds", "reads"},
	{"run.attention", Text, "attention implementation as stated", "print model.config._attn_implementation and torch.backends.cuda.cudnn_sdp_enabled()", "seconds", "reads"},
	{"run.alloc_conf", Text, "PYTORCH_CUDA_ALLOC_CONF as stated", "echo $PYTORCH_CUDA_ALLOC_CONF $PYTORCH_ALLOC_CONF in the job's environment", "seconds", "reads"},
	{"run.resumed", Bool, "the attempt continued from a checkpoint", "", "", ""},
	{"run.map_location", Text, "map_location used to load the checkpoint", "grep torch.load in the resume code: is map_location='cpu' given, and is the loaded dictionary deleted after use?", "minutes", "reads"},
	{"run.anomaly_mode", Bool, "autograd anomaly detection is on", "grep set_detect_anomaly and detect_anomaly in the code", "minutes", "reads"},
	{"run.no_grad_eval", Bool, "evaluation runs under no_grad or inference_mode", "print(torch.is_grad_enabled()) inside the evaluation step, or whether the model's output there has a grad_fn", "one short run", "reversible"},
	{"run.overlap", Text, "communication overlap settings as stated", "rerun three steps with gradient-reduce and parameter-gather overlap switched the other way", "one short run", "reversible"},
	{"run.generations", Int, "samples per prompt in group-based RL", "print num_generations", "seconds", "reads"},
	{"run.kv_len", Int, "sequence length for which a KV cache is built", "print the max_seq_len or max_model_len given to the cache", "seconds", "reads"},
	{"run.gpu_fraction", Float, "fraction of device memory given to an engine or allocator", "print gpu_memory_utilization, mem_fraction_static or XLA_PYTHON_CLIENT_MEM_FRACTION", "seconds", "reads"},
	{"run.wsl", Bool, "runs under WSL (Windows)", "uname -r (contains microsoft under WSL)", "seconds", "reads"},
	{"run.container", Bool, "runs in a container", "cat /proc/1/cgroup", "seconds", "reads"},
	{"run.progressed", Bool, "training steps were logged in this attempt", "", "", ""},
	{"run.shm_of_host", Bool, "runs under Apptainer or Singularity, which show the host's own /dev/shm", "", "", ""},
	{"run.scheduler", Text, "what started the job and may end it (slurm, kubernetes)", "env | grep -E '^(SLURM_JOB_ID|KUBERNETES_SERVICE_HOST)='", "seconds", "reads"},
	{"run.torch", Text, "PyTorch version", "python -c 'import torch; print(torch.__version__, torch.version.cuda)'", "seconds", "reads"},
	{"run.workers", Int, "data-loader workers per rank", "print num_workers of the loader", "seconds", "reads"},
	{"worker.crash_recorded", Bool, "the kernel records a crash of the very worker process that the loader says was ended by that signal", "dmesg -T | grep -E 'segfault|general protection|invalid opcode' on {fault.host}, and compare its pid with the worker's", "seconds", "reads"},
	{"run.graphs", Bool, "CUDA graphs are captured or used", "grep CUDAGraph, cuda_graph, reduce-overhead in the code and configuration", "minutes", "reads"},
	{"run.same_config_fits", Bool, "the same configuration is known to fit (it ran before, or from scratch)", "run the same command from scratch, without resuming, for ten steps", "one short run", "reversible"},
	{"run.smaller_batch_fits", Bool, "another attempt with a smaller micro-batch went past the step at which this one failed", "rerun ten steps with half the micro-batch and everything else unchanged", "one short run", "reversible"},

	// The batch at the fault.
	{"batch.length", Int, "longest sequence of the failing batch, where logged", "log the longest sequence and the number of tokens of each batch (and rank), and rerun to the failure", "one short run", "reversible"},
	{"batch.count", Int, "samples in the failing batch, where logged", "log the number of samples of each batch", "one short run", "reversible"},
	{"batch.typical_length", Int, "usual longest sequence per batch", "log the longest sequence of each batch", "one short run", "reversible"},
	{"batch.length_ratio", Float, "failing batch's longest sequence over the usual one", "log the longest sequence of each batch and rerun to the failure", "one short run", "reversible"},
	{"batch.longest_before", Int, "longest sequence among the earlier batches that passed", "log the longest sequence of each batch", "one short run", "reversible"},
	{"run.batches", Int, "batches of an epoch, as a rank states it", "print len(loader) on each rank", "one short run", "reads"},
	{"batch.fewer_ranks", Ints, "ranks with fewer batches in an epoch than others", "print len(loader) on each rank", "one short run", "reads"},
	{"batch.rank_imbalance", Float, "largest over smallest logged batch length across ranks at that step", "log the token count of each rank's batch at the failing step", "one short run", "reversible"},

	// Non-finite values.
	{"nan.metric", Text, "metric that showed it first (loss, grad_norm, ...)", "", "", ""},
	{"nan.step", Int, "step at which it was first seen", "rerun with one log line per step (logging_steps=1)", "one short run", "reversible"},
	{"nan.at_start", Bool, "within the first ten logged steps of the attempt", "rerun with one log line per step (logging_steps=1)", "one short run", "reversible"},
	{"nan.immediately", Bool, "the very first logged value is already non-finite", "rerun with one log line per step (logging_steps=1)", "one short run", "reversible"},
	{"nan.grad_first", Bool, "the gradient norm was non-finite while the loss of that step was still finite (raw trust)", "log the unfiltered loss and the gradient norm every step (logging_nan_inf_filter=False, logging_steps=1)", "one short run", "reversible"},
	{"nan.loss_spiked", Bool, "the loss rose to three times its recent median or more before it", "log the loss of every step over the last hundred steps before it", "one short run", "reversible"},
	{"nan.loss_ratio", Float, "largest finite loss before it over the recent median", "log the loss of every step over the last hundred steps before it", "one short run", "reversible"},
	{"nan.grad_spiked", Bool, "the gradient norm rose to ten times its recent median or more before it", "log the gradient norm every step over the last hundred steps before it", "one short run", "reversible"},
	{"nan.isolated", Bool, "single non-finite values between finite ones: the weights stayed finite", "log the gradient norm every step after it", "one short run", "reversible"},
	{"nan.persistent", Bool, "every value after the first one is non-finite", "log the gradient norm every step after it", "one short run", "reversible"},
	{"nan.hidden", Bool, "the framework replaced, omitted or clamped non-finite values in what it printed", "", "", ""},
	{"nan.named_where", Text, "module, operator or parameter that a guard named", "rerun the last steps before it with torch.autograd.set_detect_anomaly(True), from the last good checkpoint", "one short run", "reversible"},
	{"nan.overflows", Int, "longest run of consecutive loss-scale overflows", "print scaler.get_scale() every step", "one short run", "reversible"},
	{"nan.scale_floor", Bool, "the loss scale fell to its minimum", "print scaler.get_scale() every step", "one short run", "reversible"},
	{"nan.bf16_finite", Bool, "the same data stays finite in bf16 or fp32", "rerun the last steps before it from the same checkpoint in bf16 (or fp32): does it stay finite?", "one short run", "reversible"},
	{"nan.lower_lr_finite", Bool, "a run at a lower learning rate stays finite", "rerun to that step with a tenth of the learning rate and gradient clipping: does it stay finite?", "one short run", "reversible"},
	{"nan.other_kernel_finite", Bool, "another attention or kernel backend stays finite on the same step", "rerun that step with another attention backend (attn_implementation=eager, or torch.backends.cuda.enable_cudnn_sdp(False)): does it stay finite?", "one short run", "reversible"},
	{"nan.overlap_off_finite", Bool, "the run stays finite when communication overlap or buffer reuse is changed", "rerun three steps with the overlap and buffer-reuse settings changed: does it stay finite?", "one short run", "reversible"},
	{"nan.same_batch", Bool, "the same batch reproduces it", "save the batch at that step and run it alone from the last good checkpoint", "one short run", "reversible"},
	{"nan.input_at_fault", Bool, "the run states right before the first non-finite value, for the same rank, that an input is not finite", "log whether the inputs of each batch are finite, with step and rank", "one short run", "reversible"},
	{"nan.masked_rows", Int, "attention rows with every key masked that the run counted", "print (~mask).all(-1).sum() of each attention mask at that step", "one short run", "reversible"},
	{"nan.input_finite", Bool, "the inputs of that batch are finite", "assert torch.isfinite on inputs and labels of the batch at that step", "one short run", "reversible"},
	{"nan.empty_labels", Bool, "the batch has no valid label (all ignored or masked)", "count the labels that are not ignored in the batch at that step", "one short run", "reversible"},
	{"nan.degenerate_std", Bool, "a warning that a standard deviation is taken over one value", "", "", ""},
	{"nan.single_sample_group", Bool, "a statistic over one sample (group of one, std with one value)", "print the group size over which mean and standard deviation are taken", "seconds", "reads"},
	{"nan.memory_fine", Bool, "device memory was flat and below its limit when it began", "nvidia-smi --query-gpu=memory.used,memory.total --format=csv -l 5 beside a rerun", "one short run", "reads"},
	{"nan.after_oom_recovery", Bool, "it follows a caught out-of-memory in the same attempt", "", "", ""},
	{"nan.one_rank", Bool, "one rank alone shows it first", "log loss and gradient norm per rank, before the reduction", "one short run", "reversible"},
	{"nan.hardware_signs", Bool, "Xid, ECC or recomputation mismatch on that device", "dmesg -T | grep -i xid and nvidia-smi -q -d ECC on {fault.host}", "seconds", "reads"},
	{"nan.cause_known", Bool, "always unknown: which operation made the first non-finite value", "rerun the last steps before step {nan.step} from the last good checkpoint with torch.autograd.set_detect_anomaly(True) and note the first operator", "one short run", "reversible"},

	// Change from the attempt before.
	{"changed.batch", Bool, "micro-batch differs from the attempt before", "compare the two launch commands", "seconds", "reads"},
	{"changed.effective_batch", Bool, "micro-batch x accumulation x ranks differs from the attempt before", "compare micro-batch x accumulation x ranks of the two launch commands", "seconds", "reads"},
	{"changed.precision", Bool, "precision differs from the attempt before", "compare the two launch commands", "seconds", "reads"},
	{"changed.lr", Bool, "learning rate differs from the attempt before", "compare the two launch commands", "seconds", "reads"},
	{"changed.anomaly_mode", Bool, "anomaly mode was switched on since the attempt before", "compare the two launch commands", "seconds", "reads"},
	{"changed.after_oom", Bool, "the attempt before ended out of device memory", "", "", ""},
	{"changed.after_nan", Bool, "the attempt before ended with non-finite values", "", "", ""},

	// Host memory.
	{"host.kill_recorded", Bool, "kernel, scheduler, container runtime or Ray recorded a host-memory kill", "dmesg -T | grep -i -E 'oom|killed process' on {fault.host}; sacct -j JOB --format=State,ExitCode,MaxRSS,ReqMem; kubectl describe pod", "seconds", "reads"},
	{"host.constraint", Text, "memcg or none: container limit or whole host", "dmesg -T | grep oom-kill:constraint on {fault.host}", "seconds", "reads"},
	{"host.limit", Size, "memory limit of the job or container", "cat /sys/fs/cgroup/memory.max in the job; scontrol show job JOB | grep -i mem", "seconds", "reads"},
	{"host.used", Size, "memory of the job at or near the kill", "sacct -j JOB --format=JobID,MaxRSS,ReqMem, or cat /sys/fs/cgroup/memory.peak", "seconds", "reads"},
	{"host.near_limit", Bool, "recorded use reached 95 per cent of the limit", "sacct -j JOB --format=JobID,MaxRSS,ReqMem", "seconds", "reads"},
	{"host.grows", Bool, "host memory grows steadily over steps", "log the resident size of each rank and worker every few minutes (ps -o pid,rss,cmd)", "one short run", "reads"},
	{"host.growth_per_step", Float, "growth of host memory in bytes per step", "log the resident size of each rank and worker every few minutes (ps -o pid,rss,cmd)", "one short run", "reads"},
	{"host.caching", Bool, "the log says that data are cached in RAM", "grep the loader for in-memory caches (cache_images, cache=True, lru_cache)", "minutes", "reads"},
	{"host.during_load", Bool, "the kill came while weights were loaded", "", "", ""},
	{"host.copies", Int, "ranks on the host that load a whole copy each", "print the resident size of each rank during loading (ps -o pid,rss,cmd)", "one short run", "reads"},
	{"host.signal", Int, "signal that ended the process (9 SIGKILL)", "", "", ""},
	{"host.shm_size", Size, "size of the shared-memory mount", "df -h /dev/shm inside the container", "seconds", "reads"},
	{"host.shm_full", Bool, "the shared-memory mount is full", "df -h /dev/shm inside the container while the job runs", "seconds", "reads"},
	{"host.who_killed", Text, "who sent SIGKILL", "dmesg -T | grep -i -E 'killed process|oom-kill' on {fault.host}, memory.events of the job's cgroup, and the scheduler's record of the job", "seconds", "reads"},
	{"host.free", Size, "host memory free at the fault", "free -g on {fault.host} beside a rerun (under WSL: the memory limit in .wslconfig)", "seconds", "reads"},
	{"host.limit_by", Text, "what host.limit is of: host (all its memory) or cgroup (the job's own limit)", "cat /sys/fs/cgroup/memory.max in the job, and free -g on {fault.host}", "seconds", "reads"},
	{"host.memory", Size, "main memory of the host", "free -g on {fault.host}", "seconds", "reads"},
	{"host.address_limit", Size, "largest address space that a process of the run may have (ulimit -v)", "ulimit -v in the shell that starts the run, or grep 'address space' /proc/PID/limits of the run", "seconds", "reads"},
	{"host.address_space", Size, "largest address space that a process of the run was seen with", "grep VmPeak /proc/PID/status of the run, shortly before it fails; inquest run records it", "one short run", "reads"},
	{"host.address_short", Bool, "that limit leaves no room beside the largest address space seen: less than was asked for, or less than a twentieth of it", "rerun under inquest run, which records both", "one short run", "reads"},
	{"host.limit_stated", Bool, "the job asked the scheduler for a fixed amount of host memory", "scontrol show job JOB | grep -i mem, or the job script", "seconds", "reads"},

	// Collectives and ranks.
	{"dist.timeout_s", Float, "watchdog timeout in seconds", "grep 'Timeout(ms)' in the rank logs", "seconds", "reads"},
	{"dist.missing_ranks", Ints, "ranks that no timeout names while the others time out", "collect the log of every rank, and the flight recorder dumps (TORCH_NCCL_TRACE_BUFFER_SIZE=2000)", "one full run", "reversible"},
	{"dist.lagging_ranks", Ints, "ranks with the lowest sequence number in a group", "flight recorder dumps of every rank (TORCH_NCCL_TRACE_BUFFER_SIZE=2000)", "one full run", "reversible"},
	{"dist.stuck_ranks", Ints, "ranks that enqueued collectives and did not complete them, though others completed them", "flight recorder dumps of every rank (TORCH_NCCL_TRACE_BUFFER_SIZE=2000)", "one full run", "reversible"},
	{"dist.op_mismatch", Bool, "different operations or sizes at the same sequence number", "flight recorder dumps of every rank (TORCH_NCCL_TRACE_BUFFER_SIZE=2000)", "one full run", "reversible"},
	{"dist.other_fault", Bool, "another rank shows a fault of its own", "collect the log of every rank", "one full run", "reversible"},
	{"dist.rank0_alone", Bool, "rank 0 alone was in validation, preprocessing or saving while the others waited", "print a line per rank when it enters and leaves validation, saving and preprocessing", "one short run", "reversible"},
	{"dist.alone_seconds", Float, "how long that work was to take", "time the part that only rank 0 runs", "one short run", "reads"},
	{"dist.alone_over_timeout", Bool, "that work takes longer than the watchdog timeout", "time the part that only rank 0 runs", "one short run", "reads"},
	{"dist.at_start", Bool, "no step had completed", "", "", ""},
	{"dist.network_named", Bool, "a network device, port or link error is named", "ibstat, dmesg -T | grep -i mlx5 and the switch's port counters on the hosts named", "minutes", "reads"},
	{"dist.comms", Int, "communicators created per process", "NCCL_DEBUG=INFO and grep -c 'Init COMPLETE' per rank", "one short run", "reads"},
	{"dist.comms_growing", Bool, "communicators are still being created after training began", "NCCL_DEBUG=INFO and watch for 'Init COMPLETE' after the first steps", "one short run", "reads"},
	{"dist.stack_of_missing", Text, "where the missing rank was", "py-spy dump --pid PID of the missing rank while the others wait, or TORCH_NCCL_DUMP_ON_TIMEOUT=1", "one full run", "reads"},
	{"dist.oom_skipped_rank", Bool, "one rank caught out of memory and skipped a collective", "grep 'out of memory' in every rank's log before the timeout", "seconds", "reads"},
	{"dist.oom_rank_apart", Bool, "the rank that caught out of memory is then in another collective than most, or behind them", "compare the sequence number, operation and size in the time-outs of all ranks with the rank whose log has 'out of memory'", "minutes", "reads"},
	{"dist.late_blocked", Bool, "the kernel reports a process of the late rank as blocked", "dmesg -T | grep 'blocked for more' on {fault.host}, and compare the process ids with those of the rank and its loader's workers", "minutes", "reads"},
	{"dist.data_wait", Bool, "the stack or timing shows waiting for data", "log data_time per step and rank; py-spy dump of the slow rank", "one short run", "reads"},

	// Devices.
	{"xid.code", Int, "leading Xid", "dmesg -T | grep -i xid on {fault.host}", "seconds", "reads"},
	{"xid.severity", Text, "whether the driver logged a fault code (Xid) and what kind it is: hardware, application, consequence, notice, driver, link", "dmesg -T | grep -i xid on {fault.host}", "seconds", "reads"},
	{"xid.name", Text, "what the driver's source calls the leading Xid", "", "", ""},
	{"xid.family", Text, "what the leading Xid is about: memory, bus, link, c2c, firmware", "", "", ""},
	{"xid.certain", Bool, "the leading Xid proves by itself that hardware failed", "", "", ""},
	{"xid.meaning", Text, "what the leading Xid means", "", "", ""},
	{"xid.action", Text, "what the leading Xid calls for", "", "", ""},
	{"xid.who", Text, "who acts on the leading Xid: user, operator, vendor", "", "", ""},
	{"sxid.code", Int, "leading SXid", "dmesg -T | grep -i sxid on {fault.host}, and /var/log/fabricmanager.log", "seconds", "reads"},
	{"sxid.name", Text, "what the driver's source calls the leading SXid", "", "", ""},
	{"sxid.meaning", Text, "what the leading SXid means", "", "", ""},
	{"sxid.action", Text, "what the leading SXid calls for", "", "", ""},
	{"sxid.who", Text, "who acts on the leading SXid: user, operator, vendor", "", "", ""},
	{"xid.on_fault_device", Bool, "the Xid's device or pid is that of the failing rank", "nvidia-smi --query-gpu=index,pci.bus_id,uuid --format=csv on {fault.host}", "seconds", "reads"},
	{"cuda.what", Text, "illegal_access, misaligned, launch_failure, assert, ...", "", "", ""},
	{"cuda.blocking", Bool, "CUDA_LAUNCH_BLOCKING was set, so the Python line is the culprit", "rerun with CUDA_LAUNCH_BLOCKING=1", "one short run", "reversible"},
	{"cuda.assert_index", Bool, "the failed assertion checks an index or label range", "rerun with CUDA_LAUNCH_BLOCKING=1, or on the CPU", "one short run", "reversible"},
	{"cuda.repeatable", Bool, "the fault recurs on another device with the same data", "rerun the same step on another device", "one short run", "reversible"},

	// Exits, storage, environment.
	{"exit.code", Int, "exit code of the first process that ended", "echo $? of the launcher, sacct -j JOB --format=ExitCode", "seconds", "reads"},
	{"exit.signal", Int, "signal of the first process that ended", "", "", ""},
	{"stop.sender", Text, "who told the job to stop: preemption, time limit, person, node failure, user and his name or number", "sacct -j JOB --format=JobID,State,ExitCode,Elapsed,Timelimit,Restarts; kubectl get events; the cloud's audit log of that machine", "seconds", "reads"},
	{"disk.avail", Size, "space left where it was written", "df -h and df -i on the checkpoint path; quota -s (lfs quota -u on Lustre)", "seconds", "reads"},
	{"disk.full_shown", Bool, "df, quota or the error number shows that space or quota is used up", "df -h and df -i on the checkpoint path; quota -s (lfs quota -u on Lustre)", "seconds", "reads"},
	{"exception.type", Text, "exception type", "", "", ""},
	{"trace.functions", Text, "functions of the stack, outermost first, separated by ' > '", "keep the whole traceback of the failing rank (torchrun --log-dir D --redirects 3, @record on main)", "one full run", "reversible"},
	{"trace.source", Text, "source lines of the stack, separated by newlines", "keep the whole traceback of the failing rank (torchrun --log-dir D --redirects 3, @record on main)", "one full run", "reversible"},
	{"trace.files", Text, "files of the stack, separated by newlines", "keep the whole traceback of the failing rank (torchrun --log-dir D --redirects 3, @record on main)", "one full run", "reversible"},

	// The leading fault.
	{"fault.kind", Text, "event kind of the leading fault", "", "", ""},
	{"fault.rank", Int, "its rank", "", "", ""},
	{"fault.host", Text, "its host", "", "", ""},
	{"fault.text", Text, "its line", "", "", ""},
	{"fault.what", Text, "its variant (attribute what)", "", "", ""},
	{"order.certain", Bool, "the evidence orders the leading fault against its rivals", "timestamps (or step numbers) on every line of every rank, from clocks known to agree (chronyc tracking on each host)", "one full run", "reversible"},
}

var factByName = sync.OnceValue(func() map[string]*FactSpec {
	m := make(map[string]*FactSpec, len(FactSpecs))
	for i := range FactSpecs {
		m[FactSpecs[i].Name] = &FactSpecs[i]
	}
	return m
})

// FactOf returns the declaration of fact n, or nil. seen.<kind> facts are
// declared by their kinds.
func FactOf(n string) *FactSpec { return factByName()[n] }

// SeriesNames are the canonical names of series.
var SeriesNames = map[string]string{
	"loss": "training loss", "eval_loss": "evaluation loss", "grad_norm": "gradient norm before clipping",
	"lr": "learning rate", "loss_scale": "loss scale of a scaler", "memory_allocated": "allocated device memory, bytes",
	"memory_reserved": "reserved device memory, bytes", "memory_free": "free device memory, bytes", "memory_used": "device memory in use, allocator or driver not stated, bytes",
	"memory_fraction": "used fraction of the device, 0..1", "host_memory": "host memory in use, bytes", "seq_len": "longest sequence of the batch",
	"skipped": "cumulative skipped steps", "step_time": "seconds per step", "reward": "mean reward", "kl": "KL divergence", "perplexity": "perplexity",
}
