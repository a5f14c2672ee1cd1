package scan_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// trainingLog returns n bytes of what trainers, launchers and libraries print on
// ordinary days, each form a fair share of the lines: it says which bytes stand
// beside each other in logs.
func trainingLog(n int) []byte {
	r := rand.New(rand.NewPCG(21, 22))
	var b bytes.Buffer
	for step := 0; b.Len() < n; step++ {
		forms := logForms[:]
		if r.IntN(2) == 0 {
			forms = forms[:4] // lines of every step are most of a log
		}
		line := forms[r.IntN(len(forms))](r, step)
		switch r.IntN(12) {
		case 0:
			line = fmt.Sprintf("[rank%d]: %s", r.IntN(64), line)
		case 1:
			line = fmt.Sprintf("%d: %s", r.IntN(64), line)
		case 2:
			line = fmt.Sprintf("\x1b[36m(Worker pid=%d, ip=10.1.%d.%d)\x1b[0m %s", r.IntN(1<<16), r.IntN(8), r.IntN(256), line)
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.Bytes()[:n]
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func clock(r *rand.Rand) string {
	return fmt.Sprintf("2026-%02d-%02d %02d:%02d:%02d,%03d", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
}

var sitePackages = "/opt/conda/lib/python3.11/site-packages/"

var logForms = [...]func(r *rand.Rand, step int) string{
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("{'loss': %.4f, 'grad_norm': %.15f, 'learning_rate': %.16g, 'epoch': %.2f}", 1+2*r.Float64(), 2*r.Float64(), r.Float64()*5e-5, float64(step)/9000)
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf(" [%s] iteration %8d/  250000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size: %5d | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | num zeros: %d | params norm: %.3f | number of skipped iterations: %3d | number of nan iterations: %3d |",
			clock(r), step, step*512, 9000*r.Float64(), 500*r.Float64(), r.Float64()*1e-4, 512, 1+2*r.Float64(), r.Float64(), r.IntN(1<<30), 300*r.Float64(), 0, 0)
	},
	func(r *rand.Rand, step int) string {
		var line strings.Builder
		for i := range 1 + r.IntN(6) {
			done := (step + i) % 40
			fmt.Fprintf(&line, "\r%s:  %2d%%|%s%s| %d/8000 [%02d:%02d<%d:%02d:%02d, %5.2f%s, loss=%.3g, v_num=%d]", pick(r, "Epoch 4", "Training", "Steps", "train"), done*2, strings.Repeat("\u2588", done), strings.Repeat(" ", 40-done),
				step+i, r.IntN(60), r.IntN(60), r.IntN(9), r.IntN(60), r.IntN(60), 9*r.Float64(), pick(r, "it/s", "it/s", "s/it"), 1+2*r.Float64(), r.IntN(9))
		}
		return line.String()
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("gpu-node-%03d:%d:%d [%d] NCCL INFO ", r.IntN(128), 1000+r.IntN(1<<15), 1000+r.IntN(1<<15), r.IntN(8)) + pick(r,
			fmt.Sprintf("Channel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM", r.IntN(24), r.IntN(8), r.IntN(8), r.IntN(8), r.IntN(8)),
			fmt.Sprintf("Trees [0] %d/-1/-1->%d->%d [1] %d/%d/-1->%d->-1", r.IntN(8), r.IntN(8), r.IntN(8), r.IntN(8), r.IntN(8), r.IntN(8)),
			fmt.Sprintf("AllReduce: opCount %x sendbuff 0x7f%010x recvbuff 0x7f%010x acc (nil) count %d datatype 9 op 0 root 0 comm 0x55%010x [nranks=%d] stream 0x55%010x task 0 globalrank %d", step, r.Int64N(1<<40), r.Int64N(1<<40), r.IntN(1<<26), r.Int64N(1<<40), 64, r.Int64N(1<<40), r.IntN(64)),
			fmt.Sprintf("NET/IB : Using [0]mlx5_%d:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB bond0:10.2.%d.%d<0>", r.IntN(8), r.IntN(256), r.IntN(256)),
			"Connected all rings, use ring PXN 0 GDR 1", "Connected all trees", "Using network Socket", "comm 0x"+fmt.Sprintf("%x rank %d nranks 64 cudaDev %d nvmlDev %d busId %x commId 0x%x - Init START", r.Int64N(1<<40), r.IntN(64), r.IntN(8), r.IntN(8), r.IntN(1<<20), r.Int64()))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("%s - %s - %s - step=%d tokens/s=%.1f mfu=%.2f%% mem=%.1fGB data_time=%.4fs", clock(r), pick(r, "INFO", "DEBUG", "WARNING"), pick(r, "__main__", "trainer", "train.loop"), step, 1e5*r.Float64(), 60*r.Float64(), 80*r.Float64(), r.Float64())
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[%s] [INFO] [timer.py:%d:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=%.6f, CurrSamplesPerSec=%.6f, MemAllocated=%.2fGB, MaxMemAllocated=%.2fGB", clock(r), 200+r.IntN(99), step*4, step, 99*r.Float64(), 99*r.Float64(), 80*r.Float64(), 80*r.Float64())
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("\x1b[32m%s\x1b[0m | \x1b[1m%-8s\x1b[0m | \x1b[36m%s\x1b[0m:%d - %s step_%d/rank_%d.%s in %.2f s", clock(r), "INFO", pick(r, "trainer.loop", "checkpoint.manager", "data.loader"), r.IntN(900), pick(r, "Saving checkpoint to /ckpt/run/", "Saved model state to /mnt/out/", "Loaded shard of"), step, r.IntN(64), pick(r, "pt", "safetensors", "distcp"), 90*r.Float64())
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("%storch/%s.py:%d: %s: %s", sitePackages, pick(r, "utils/checkpoint", "utils/data/dataloader", "nn/parallel/distributed", "optim/lr_scheduler", "autograd/graph"), r.IntN(3000), pick(r, "UserWarning", "FutureWarning"),
			pick(r, "the use_reentrant parameter should be passed explicitly.", "This DataLoader will create 8 worker processes in total. Our suggested max number of worker in current system is 4.", "find_unused_parameters=True was specified, but no unused parameters were found in the forward pass.",
				"Detected call of lr_scheduler.step() before optimizer.step().")) + "\n  warnings.warn("
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("  File \"%s%s.py\", line %d, in %s\n    return %s(*args, **kwargs)", sitePackages, pick(r, "torch/nn/modules/module", "torch/_tensor", "transformers/trainer", "lightning/pytorch/trainer/call", "accelerate/utils/operations", "megatron/core/pipeline_parallel/schedules"), r.IntN(4000),
			pick(r, "forward", "_call_impl", "_wrapped_call_impl", "train_step", "backward", "<module>", "inner_training_loop"), pick(r, "self._call_impl", "forward_call", "func", "self.model"))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[%s] %s [%s] shard %05d-of-08192.%s opened: rows=%d bytes=%d errors=0 retries=%d from s3://bucket/tokens/part-%05d", clock(r), pick(r, "INFO", "WARNING"), pick(r, "dataset", "loader", "prefetch"), r.IntN(8192), pick(r, "parquet", "arrow", "tar"), r.IntN(1<<20), r.IntN(1<<30), r.IntN(3), r.IntN(8192))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[%s] torch.distributed.%s: [INFO] [default] %s, rank=%d, world_size=%d, local_rank=%d, restart_count=%d, master_addr=gpu-node-%03d, master_port=%d", clock(r), pick(r, "elastic.agent.server.api", "run", "launcher.api"), pick(r, "starting workers for entrypoint: python", "worker group heartbeat ok", "Rendezvous complete for workers. Result:"), r.IntN(64), 64, r.IntN(8), 0, r.IntN(128), 29500+r.IntN(100))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("step %d: train loss %.4f, val loss %.4f, lr %.3e, dt %.2fms, tok/sec: %.0f, norm: %.4f", step, 3*r.Float64(), 3*r.Float64(), r.Float64()*1e-3, 900*r.Float64(), 1e6*r.Float64(), r.Float64())
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[%02d/%02d %02d:%02d:%02d] eta: %d:%02d:%02d  iter: %d  total_loss: %.4f  loss_cls: %.4f  loss_box_reg: %.4f  time: %.4f  data_time: %.4f  lr: %.5g  max_mem: %dM", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(9), r.IntN(60), r.IntN(60), step, 2*r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64()*1e-2, r.IntN(80000))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("wandb: %s", pick(r, "Tracking run with wandb version 0.17.4", "Run data is saved locally in /workspace/wandb/run-20260304_101112-"+fmt.Sprintf("%x", r.IntN(1<<30)), "Syncing run proud-river-"+fmt.Sprint(r.IntN(900)), "View project at https://wandb.ai/team/project", "        train/loss "+fmt.Sprintf("%.5f", r.Float64()), "train/global_step "+fmt.Sprint(step)))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[%5d.%06d] %s", r.IntN(99999), r.IntN(1000000), pick(r, "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms", "mlx5_core 0000:86:00.0 eth2: Link up", "perf: interrupt took too long (2507 > 2500), lowering kernel.perf_event_max_sample_rate to 79000", "systemd[1]: Started Session 12 of user root.", "nvme nvme1: 64/0/0 default/read/poll queues", "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready"))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("%s: %v,", pick(r, "hidden_size", "num_attention_heads", "per_device_train_batch_size", "gradient_accumulation_steps", "seq_length", "max_position_embeddings", "warmup_ratio", "\"architectures\"", "\"torch_dtype\"", "\"vocab_size\""), pick(r, "4096", "32", "1", "true", "bfloat16", "0.03", "[\"LlamaForCausalLM\"]", "null"))
	},
	func(r *rand.Rand, step int) string {
		return fmt.Sprintf("%s %s: %s", pick(r, "INFO", "WARNING", "DEBUG"), clock(r), pick(r, "Loading checkpoint shards: 100%", "Some weights of the model checkpoint were not used when initializing", "Using auto half precision backend", "***** Running training *****", "  Num examples = 1,048,576", "  Instantaneous batch size per device = 4", "Token indices sequence length is longer than the specified maximum sequence length for this model (9001 > 8192).", "Avg prompt throughput: 12.3 tokens/s, Avg generation throughput: 456.7 tokens/s, Running: 32 reqs, Swapped: 0 reqs, Pending: 4 reqs, GPU KV cache usage: 31.4%."))
	},
}
