package evidence

import (
	"strings"
	"sync"
)

// An Alias says what a source's own key means: the canonical series, the phase
// that the key implies, and, for sizes and times printed without a unit, what
// one unit of the number stands for.
type Alias struct {
	Name  string  // a name of SeriesNames; "" means: known, and not a series
	Phase string  // "eval" where the key says so, else ""
	Scale float64 // bytes or seconds per unit when the text states no unit; 0: none is to be assumed
	Peak  bool    // a peak since the last reset, not the value at that moment
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// SeriesAliases maps the keys that frameworks and trackers print to canonical
// series. Keys are lower case; the words of a key that is printed with spaces
// are joined by one space. Decimal unit names mean binary units in all of these
// sources except Composer, which divides by 1e9. The map is made at its first use.
var SeriesAliases = sync.OnceValue(func() map[string]Alias { return withHostNames(seriesAliases()) })

func seriesAliases() map[string]Alias {
	return map[string]Alias{
		"loss": {Name: "loss"}, "train_loss": {Name: "loss"}, "train loss": {Name: "loss"}, "training loss": {Name: "loss"},
		"training_loss": {Name: "loss"}, "lm loss": {Name: "loss"}, "lm_loss": {Name: "loss"}, "total_loss": {Name: "loss"},
		"total loss": {Name: "loss"}, "reduced_train_loss": {Name: "loss"}, "train/loss": {Name: "loss"}, "train/total_loss": {Name: "loss"},
		"loss/train/total": {Name: "loss"}, "batch_loss": {Name: "loss"}, "step_loss": {Name: "loss"}, "loss_step": {Name: "loss"},
		"train_loss_step": {Name: "loss"}, "train/loss_step": {Name: "loss"}, "average loss": {Name: "loss"}, "avg loss": {Name: "loss"}, "avg_loss": {Name: "loss"},
		"mean loss": {Name: "loss"}, "cost": {Name: "loss"}, "xent": {Name: "loss"}, "nll": {Name: "loss"}, "losses/total": {Name: "loss"},
		"train/ce_loss": {Name: "loss"}, "loss_metrics/global_avg_loss": {Name: "loss"},

		"eval_loss": {Name: "eval_loss", Phase: "eval"}, "eval loss": {Name: "eval_loss", Phase: "eval"}, "eval/loss": {Name: "eval_loss", Phase: "eval"},
		"val_loss": {Name: "eval_loss", Phase: "eval"}, "val loss": {Name: "eval_loss", Phase: "eval"}, "val/loss": {Name: "eval_loss", Phase: "eval"},
		"valid_loss": {Name: "eval_loss", Phase: "eval"}, "valid loss": {Name: "eval_loss", Phase: "eval"}, "valid/loss": {Name: "eval_loss", Phase: "eval"},
		"validation_loss": {Name: "eval_loss", Phase: "eval"}, "validation loss": {Name: "eval_loss", Phase: "eval"}, "validation/loss": {Name: "eval_loss", Phase: "eval"},
		"dev_loss": {Name: "eval_loss", Phase: "eval"}, "dev loss": {Name: "eval_loss", Phase: "eval"}, "test_loss": {Name: "eval_loss", Phase: "eval"},
		"test loss": {Name: "eval_loss", Phase: "eval"}, "test/loss": {Name: "eval_loss", Phase: "eval"}, "val_loss_epoch": {Name: "eval_loss", Phase: "eval"}, "loss value": {Name: "eval_loss", Phase: "eval"},

		"grad_norm": {Name: "grad_norm"}, "grad norm": {Name: "grad_norm"}, "gnorm": {Name: "grad_norm"}, "gradnorm": {Name: "grad_norm"},
		"grad-norm": {Name: "grad_norm"}, "gradient_norm": {Name: "grad_norm"}, "gradient norm": {Name: "grad_norm"}, "train/grad_norm": {Name: "grad_norm"},
		"total_norm": {Name: "grad_norm"}, "grad_norm/total": {Name: "grad_norm"}, "global_grad_norm": {Name: "grad_norm"}, "norm": {Name: "grad_norm"},
		"params norm": {}, "param norm": {}, "weight norm": {}, "params_norm": {}, "param_norm": {},

		"lr": {Name: "lr"}, "learning rate": {Name: "lr"}, "learning_rate": {Name: "lr"}, "base_lr": {Name: "lr"}, "train/learning_rate": {Name: "lr"}, "train/lr": {Name: "lr"},

		"loss scale": {Name: "loss_scale"}, "loss_scale": {Name: "loss_scale"}, "loss-scale": {Name: "loss_scale"}, "grad_scale": {Name: "loss_scale"},

		"reward": {Name: "reward"}, "train/reward": {Name: "reward"}, "objective/rlhf_reward": {Name: "reward"}, "episode_reward_mean": {Name: "reward"},
		"kl": {Name: "kl"}, "train/kl": {Name: "kl"}, "objective/kl": {Name: "kl"}, "approx_kl": {Name: "kl"},
		"ppl": {Name: "perplexity"}, "perplexity": {Name: "perplexity"}, "eval_ppl": {Name: "perplexity", Phase: "eval"}, "loss ppl": {Name: "perplexity", Phase: "eval"},
		"val_ppl": {Name: "perplexity", Phase: "eval"}, "eval/ppl": {Name: "perplexity", Phase: "eval"},

		"skipped": {Name: "skipped"},
		"seq_len": {Name: "seq_len"}, "seqlen": {Name: "seq_len"}, "len": {Name: "seq_len"}, "max_len": {Name: "seq_len"}, "max_seq_len": {Name: "seq_len"},
		"len max": {Name: "seq_len"}, "max len": {Name: "seq_len"}, "actual seqlen": {Name: "seq_len"}, "max_length": {},

		"time per iteration ms": {Name: "step_time", Scale: 1e-3}, "iter time s": {Name: "step_time", Scale: 1}, "dt": {Name: "step_time"},
		"step_time": {Name: "step_time", Scale: 1}, "step time": {Name: "step_time", Scale: 1}, "iter_time": {Name: "step_time", Scale: 1}, "step_timing in s": {Name: "step_time", Scale: 1},
		"train_step_timing in s": {Name: "step_time", Scale: 1},

		"cuda_alloc": {Name: "memory_allocated"}, "cuda alloc": {Name: "memory_allocated"}, "gpu_alloc": {Name: "memory_allocated"}, "alloc_between_steps": {Name: "memory_allocated"},
		"max_alloc": {Name: "memory_allocated", Peak: true}, "max_reserved": {Name: "memory_reserved", Peak: true},
		"allocated": {Name: "memory_allocated"}, "alloc": {Name: "memory_allocated"}, "memory allocated": {Name: "memory_allocated"},
		"memory_allocated": {Name: "memory_allocated"}, "current alloc": {Name: "memory_allocated"}, "memallocated": {Name: "memory_allocated", Scale: gib}, "ma": {Name: "memory_allocated"},
		"gpu allocated": {Name: "memory_allocated"}, "cuda allocated": {Name: "memory_allocated"}, "vram_allocated": {Name: "memory_allocated", Scale: gib},
		"max allocated": {Name: "memory_allocated", Peak: true}, "peak allocated": {Name: "memory_allocated", Peak: true}, "peak alloc": {Name: "memory_allocated", Peak: true}, "max alloc": {Name: "memory_allocated", Peak: true},
		"max_memory_allocated": {Name: "memory_allocated", Peak: true}, "max memory allocated": {Name: "memory_allocated", Peak: true}, "peak memory allocated": {Name: "memory_allocated", Peak: true},
		"maxmemallocated": {Name: "memory_allocated", Scale: gib, Peak: true}, "max_ma": {Name: "memory_allocated", Peak: true}, "max_mem": {Name: "memory_allocated", Scale: mib, Peak: true}, "max mem": {Name: "memory_allocated", Scale: mib, Peak: true},
		"memory/max_allocated gib": {Name: "memory_allocated", Scale: gib, Peak: true}, "memory/max_allocated (gib)": {Name: "memory_allocated", Scale: gib, Peak: true},
		"memory/max_active (gib)": {}, "memory/max_active gib": {}, "memory/current_allocated_mem": {Name: "memory_allocated", Scale: 1e9},
		"memory/peak_allocated_mem": {Name: "memory_allocated", Scale: 1e9, Peak: true}, "peak memory consumption": {Name: "memory_allocated", Scale: mib, Peak: true},

		"reserved": {Name: "memory_reserved"}, "rsv": {Name: "memory_reserved"}, "memory reserved": {Name: "memory_reserved"}, "memory_reserved": {Name: "memory_reserved"}, "ca": {Name: "memory_reserved"},
		"current cache": {Name: "memory_reserved"}, "vram_reserved": {Name: "memory_reserved", Scale: gib}, "memory gib": {Name: "memory_reserved", Scale: gib}, "memory(gib)": {Name: "memory_reserved", Scale: gib},
		"max reserved": {Name: "memory_reserved", Peak: true}, "peak reserved": {Name: "memory_reserved", Peak: true}, "max_memory_reserved": {Name: "memory_reserved", Peak: true}, "max_ca": {Name: "memory_reserved", Peak: true},
		"memory/device_reserved gib": {Name: "memory_reserved", Scale: gib}, "memory/device_reserved (gib)": {Name: "memory_reserved", Scale: gib}, "memory/peak_reserved_mem": {Name: "memory_reserved", Scale: 1e9, Peak: true},
		"memory/current_reserved_mem": {Name: "memory_reserved", Scale: 1e9},

		"memory_free": {Name: "memory_free"}, "device free": {Name: "memory_free"}, "gpu free": {Name: "memory_free"}, "free gpu ram": {Name: "memory_free", Scale: mib}, "free gpu memory": {Name: "memory_free", Scale: mib},
		"free memory": {}, "gb_free": {Name: "memory_free", Scale: gib}, "avail mem": {Name: "memory_free", Scale: gib}, "free vram": {Name: "memory_free", Scale: mib},

		"memory": {Name: "memory_used", Scale: mib}, "mem": {Name: "memory_used"}, "gpu_mem": {Name: "memory_used", Scale: mib}, "gpu mem": {Name: "memory_used", Scale: mib}, "gpu_mem_mib": {Name: "memory_used", Scale: mib},
		"gpu_mem_gb": {Name: "memory_used", Scale: gib}, "gpu_memory": {Name: "memory_used"}, "gpu memory": {Name: "memory_used"}, "mem usage": {Name: "memory_used", Scale: gib}, "vram": {Name: "memory_used"}, "memory_used": {Name: "memory_used"}, "using gb": {Name: "memory_used", Scale: gib},
		"memory/max_reserved(gib)": {Name: "memory_reserved", Scale: gib, Peak: true}, "memory/max_active(gib)": {},

		"host_memory": {Name: "host_memory"}, "node anon": {Name: "host_memory"}, "host anon": {Name: "host_memory"}, "anon": {Name: "host_memory"}, "virtual memory used": {Name: "host_memory"},
		"host mem": {Name: "host_memory"}, "host memory": {Name: "host_memory"}, "cpu mem": {Name: "host_memory"}, "cpu_mem": {Name: "host_memory"}, "rss": {Name: "host_memory"}, "ram used": {Name: "host_memory"},
		"proc.memory.rssmb": {Name: "host_memory", Scale: mib}, "system.proc.memory.rssmb": {Name: "host_memory", Scale: mib},
		"system/proc.memory.rssmb": {Name: "host_memory", Scale: mib}, "system/proc/memory/rssmb": {Name: "host_memory", Scale: mib},
	}
}

// hostNames are what loops call the host memory in use. A bare "ram" or "mem" is
// not among them: it may be the machine's total, or the device's.
var hostNames = []string{
	"rss", "rss_mem", "mem_rss", "rss_memory", "memory_rss", "host_rss", "host/rss", "cpu_rss", "process_rss", "proc_rss", "total_rss", "rss_total",
	"ram_used", "used_ram", "ram_usage", "cpu_ram_used", "host_ram_used", "host_mem", "host_mem_used", "host_memory", "host_memory_used",
	"cpu_mem", "cpu_mem_used", "cpu_mem_usage", "cpu_memory", "cpu_memory_used", "cpu_memory_usage",
}

// hostUnits are the units that a key of host memory ends with.
var hostUnits = []struct {
	name  string
	scale float64
}{{"bytes", 1}, {"kb", 1 << 10}, {"mb", mib}, {"mib", mib}, {"gb", gib}, {"gib", gib}}

// withHostNames adds hostNames to aliases: with a unit in the key, however it is
// joined ("host_rss_gb", "RSS (GB)"), and without, where the value has to state
// one.
func withHostNames(aliases map[string]Alias) map[string]Alias {
	for _, name := range hostNames {
		spaced := strings.ReplaceAll(name, "_", " ")
		for _, n := range []string{name, spaced} {
			aliases[n] = Alias{Name: "host_memory"}
			for _, u := range hostUnits {
				a := Alias{Name: "host_memory", Scale: u.scale}
				aliases[n+"_"+u.name], aliases[n+" "+u.name], aliases[n+" ("+u.name+")"] = a, a, a
			}
		}
	}
	return aliases
}

// SeriesBenign lists words of metric names that are not training health: the
// score of an empty class, a rate or a percentage may well be NaN or infinite
// in a healthy run. A word is what stands
// between two of _ / . - @ and spaces.
var SeriesBenign = map[string]bool{
	"acc": true, "acc1": true, "acc5": true, "accuracy": true, "accuracies": true, "precision": true, "recall": true, "f1": true, "iou": true, "miou": true, "aacc": true, "macc": true,
	"dice": true, "auc": true, "auroc": true, "map": true, "map50": true, "bleu": true, "rouge": true, "mfu": true, "flops": true, "tflops": true, "tps": true, "wps": true, "throughput": true,
	"second": true, "sec": true, "eta": true, "avg": true, "time": true, "runtime": true, "speed": true, "corr": true, "r2": true, "util": true, "best": true, "ppl": true, "perplexity": true, "s": true, "z": true,
}
