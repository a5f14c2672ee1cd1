package remedy

import (
	"fmt"
	"math"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// calculations fill {fix.*} values from this run's own; an entry names one. A
// value that cannot be computed is left out, and the entry's text falls back.
var calculations = map[string]func(evidence.Known, map[string]evidence.Value){
	"micro_batch":  microBatch,
	"eval_batch":   evalBatch,
	"seq_cap":      seqCap,
	"alloc_conf":   allocConf,
	"gpu_fraction": gpuFraction,
	"mem_limit":    memLimit,
	"shm_size":     shmSize,
	"lr_cut":       lrCut,
	"workers":      workers,
	"bf16":         bf16,
}

func compute(name string, known evidence.Known, values map[string]evidence.Value) {
	if f := calculations[name]; f != nil {
		f(known, values)
	}
}

// headroom is the share of the device left free by a computed micro-batch:
// fragmentation and batches a little larger than the failing one live there.
const headroom = 0.06

// microBatch cuts the micro-batch and raises accumulation so that the effective
// batch stays.
//
//  1. States (weights, gradients, optimizer) are taken from the allocation after
//     set-up if the log shows it, else from the parameter counts.
//  2. What the failing process held beyond the states, plus the request, is what
//     one micro-batch needs at least; it is taken as proportional to the batch.
//  3. The largest divisor of batch x accumulation that fits is taken, never more
//     than half of the present batch when the estimate rests on no state size.
func microBatch(known evidence.Known, values map[string]evidence.Value) {
	const most = 1 << 20 // beyond this the log's number is no batch
	b := values["run.batch"].I
	acc := max(values["run.accumulation"].I, 1)
	world := max(values["run.world"].I, 1)
	if b < 1 || b > most || acc > most || world > most {
		return
	}
	effective := b * acc
	values["fix.effective_batch"] = evidence.IntOf(effective * world)
	if b == 1 {
		return // nothing left to cut
	}
	limit := b / 2
	basis := "half of the present micro-batch"
	states, ok := stateBytes(values)
	capacity, alloc, req := values["oom.capacity"].Mid(), values["oom.allocated"].Mid(), values["oom.requested"].Mid()
	if ok && capacity > 0 && alloc > states && !values["oom.bogus"].True() {
		outside := values["oom.outside_allocator"].Mid()
		room := float64(capacity)*(1-headroom) - float64(outside) - float64(states)
		per := float64(alloc+req-states) / float64(b)
		if per > 0 && room > 0 {
			limit = min(b-1, int64(math.Floor(room/per)))
			basis = fmt.Sprintf("%s of states and at least %s for each sample in %s", evidence.Bytes(states), evidence.Bytes(int64(per)), evidence.Bytes(capacity))
		}
	}
	best := int64(1)
	for n := int64(1); n <= max(limit, 1); n++ {
		if effective%n == 0 {
			best = n
		}
	}
	values["fix.micro_batch"] = evidence.IntOf(best)
	values["fix.accumulation"] = evidence.IntOf(effective / best)
	values["fix.basis"] = evidence.TextOf(basis)
}

// evalBatch cuts the evaluation batch to the one that training runs with, which
// keeps activations and gradients beside the same samples; where that is unknown
// or no smaller, to half.
func evalBatch(_ evidence.Known, values map[string]evidence.Value) {
	n, train := values["run.eval_batch"].I, values["run.batch"].I
	switch {
	case n <= 1 || n > 1<<20:
	case train >= 1 && train < n && values["run.progressed"].True():
		values["fix.eval_batch"] = evidence.IntOf(train)
		values["fix.basis"] = evidence.TextOf("training runs with it and keeps more for each sample")
	default:
		values["fix.eval_batch"] = evidence.IntOf(n / 2)
		values["fix.basis"] = evidence.TextOf("half of the present evaluation batch")
	}
}

// stateBytes estimates weights, gradients and optimizer states of one rank.
func stateBytes(values map[string]evidence.Value) (int64, bool) {
	if v, ok := values["memory.after_init"]; ok && v.Lo > 0 && values["oom.phase"].S != "optimizer" {
		return v.Mid(), true
	}
	n, ok := values["run.params"]
	if !ok || values["run.sharded"].True() {
		return 0, false
	}
	weight := int64(4)
	switch p := values["run.precision"].S; {
	case strings.HasSuffix(p, "-true"), p == "bf16", p == "fp16":
		weight = 2
	}
	trainable := n.I
	if t, ok := values["run.trainable"]; ok {
		trainable = t.I
	}
	perTrained := weight // gradient
	switch o := strings.ToLower(values["run.optimizer"].S); {
	case strings.Contains(o, "8bit"):
		perTrained += 2
	case strings.Contains(o, "sgd"), strings.Contains(o, "adafactor"):
		perTrained += 4
	default:
		perTrained += 8 // two moments in fp32
	}
	return n.I*weight + trainable*perTrained, true
}

// seqCap is the largest length of a batch that passed, rounded up to 64.
func seqCap(_ evidence.Known, values map[string]evidence.Value) {
	n := values["batch.typical_length"].I
	if n <= 0 {
		return
	}
	if f := values["batch.length"].I; f > 2*n {
		values["fix.seq_cap"] = evidence.IntOf((n*2 + 63) / 64 * 64)
	}
}

// allocConf adds to the allocator settings in force what a replay of the recorded
// allocations proves to be enough; without one, expandable segments.
func allocConf(_ evidence.Known, values map[string]evidence.Value) {
	conf := strings.Trim(values["run.alloc_conf"].S, `"' `)
	if conf == "unset" || conf == "None" {
		conf = ""
	}
	add := "expandable_segments:True"
	if v := values["replay.avoided_by"].S; v != "" && !values["replay.expandable_avoids"].True() {
		add = v
	}
	drop := map[string]bool{"": true}
	for kv := range strings.SplitSeq(add, ",") {
		k, _, _ := strings.Cut(kv, ":")
		drop[strings.TrimSpace(k)] = true
	}
	if drop["expandable_segments"] {
		drop["max_split_size_mb"] = true // has no effect with it
	}
	var keep []string
	for kv := range strings.SplitSeq(conf, ",") {
		k, _, _ := strings.Cut(kv, ":")
		if !drop[strings.TrimSpace(k)] {
			keep = append(keep, strings.TrimSpace(kv))
		}
	}
	values["fix.alloc_conf"] = evidence.TextOf(strings.Join(append(keep, add), ","))
}

// gpuFraction is the share of the device that is free now, less 2 per cent.
func gpuFraction(_ evidence.Known, values map[string]evidence.Value) {
	free, capacity := values["oom.free"], values["oom.capacity"]
	if capacity.Lo <= 0 || free.Lo <= 0 {
		return
	}
	f := math.Floor((float64(free.Lo)/float64(capacity.Hi)-.02)*100) / 100
	if f > 0 {
		values["fix.gpu_fraction"] = evidence.FloatOf(f)
	}
}

// memLimit is a quarter above the limit, in whole gibibytes. What a record says
// was used can be one process's share of what the limit counts, and a multiple
// of that could be a cut: without a limit there is no number.
func memLimit(_ evidence.Known, values map[string]evidence.Value) {
	limit := values["host.limit"].Hi
	if limit <= 0 {
		return
	}
	if now := values["host.limit"].Mid(); now%(1<<30) == 0 {
		values["fix.mem_now"] = evidence.TextOf(fmt.Sprintf("%dG", now>>30))
	} else {
		values["fix.mem_now"] = evidence.TextOf(fmt.Sprintf("%dM", now>>20))
	}
	g := (max(limit, values["host.used"].Hi)/4*5 + 1<<30 - 1) >> 30
	values["fix.mem_limit"] = evidence.SizeOf(g<<30, g<<30)
	values["fix.mem_limit_gib"] = evidence.IntOf(g)
}

// shmSize allows 1 GiB for each worker of each rank on the host, at least 8 GiB:
// a worker keeps two prefetched batches there.
func shmSize(_ evidence.Known, values map[string]evidence.Value) {
	g := max(8, max(values["run.workers"].I, 1)*max(values["run.world"].I, 1))
	values["fix.shm_gib"] = evidence.IntOf(min(g, 64))
}

// bf16 is the precision to change to; the run's own command then asks for it.
func bf16(_ evidence.Known, values map[string]evidence.Value) {
	values["fix.precision"] = evidence.TextOf("bf16")
}

// workers is half of the loader workers of a rank.
func workers(_ evidence.Known, values map[string]evidence.Value) {
	if n := values["run.workers"].I; n > 1 {
		values["fix.workers"] = evidence.IntOf(n / 2)
		values["fix.fewer_workers"] = evidence.TextOf(fmt.Sprintf("cut the loader workers of each rank from %d to %d", n, n/2))
	}
}

// lrCut is a tenth of the present learning rate.
func lrCut(_ evidence.Known, values map[string]evidence.Value) {
	if lr := values["run.lr"].F; lr > 0 {
		values["fix.lr"] = evidence.FloatOf(lr / 10)
	}
}
