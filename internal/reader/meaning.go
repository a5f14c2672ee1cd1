package reader

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Meaning is what a tracker's own name of a series says.
type Meaning struct {
	Name   string // canonical, or the lower-case own name of a loss; "" where the name says nothing
	Known  bool   // the diagnosis has a use for it
	Phase  string // train, eval
	Unit   string // bytes, seconds, steps, fraction
	Scale  float64
	Quiet  bool   // a value that is not finite says nothing of the training
	Peak   bool   // a peak since the last reset
	Device string // "gpu0" for a measurement of one device
	Axis   evidence.Axis
}

// MeaningOf reads the name of a series. A size whose name and source state no unit is taken
// for bytes if its first value is too large for anything else, and has no meaning
// otherwise. system says that the tracker measured it of the machine.
func MeaningOf(name string, system bool, first float64) Meaning {
	key := strings.ToLower(name)
	m := Meaning{Scale: 1, Quiet: benign(key) || slices.Contains(counters, key), Phase: phase(key)}
	if strings.HasSuffix(key, "__min") || strings.HasSuffix(key, "__max") {
		m.Quiet = true // W&B's exports put the extremes of what a row stands for beside its mean
		return m
	}
	if strings.HasSuffix(key, " vs samples") || strings.HasPrefix(key, "train/samples/") {
		m.Axis = evidence.AxisSamples
		key = strings.TrimSuffix(key, " vs samples")
	}
	if a, b, ok := strings.Cut(key, "/"); ok && a == b {
		key = a // ClearML's metric and variant
	}
	if d, ok := deviceMeaning(key, first); ok {
		d.Axis = evidence.AxisOwn
		return d
	}
	if system {
		m.Quiet, m.Phase, m.Axis = true, "", evidence.AxisOwn
	}
	a, known := AliasOf(key)
	known = known && !(system && key == "memory") // of W&B before 0.17: per cent of the host's
	switch {
	case known:
		m.Name, m.Known = a.Name, true
		if a.Phase != "" {
			m.Phase = a.Phase
		}
		if m.Name == "loss" && m.Phase == "eval" {
			m.Name = "eval_loss"
		}
		m.fit(a, first)
	case !system && LossLike(key):
		m.Name, m.Known = key, true
	}
	if m.Axis == evidence.AxisSamples && m.Known {
		m.Name += " by samples"
	}
	return m
}

// fit sets unit and scale of a canonical series.
func (m *Meaning) fit(a evidence.Alias, first float64) {
	m.Peak = a.Peak
	switch {
	case strings.HasPrefix(a.Name, "memory_") && a.Name != "memory_fraction" || a.Name == "host_memory":
		m.Unit, m.Scale, m.Quiet = "bytes", a.Scale, true
		if a.Scale == 0 || first >= 1<<24 {
			m.Scale = 1
			if !(first >= 1<<24) {
				m.Unit, m.Known = "", false
			}
		}
	case a.Name == "step_time":
		m.Unit, m.Quiet = "seconds", true
		if a.Scale > 0 {
			m.Scale = a.Scale
		}
	case a.Name == "skipped":
		m.Unit, m.Quiet = "steps", true
	case a.Name == "memory_fraction":
		m.Unit, m.Quiet = "fraction", true
	case slices.Contains([]string{"lr", "loss_scale", "perplexity", "seq_len"}, a.Name):
		m.Quiet = true
	}
}

// What trackers call the memory in use of one device, with the unit of the number:
// W&B's gpu.0.memoryAllocatedBytes, MLflow's gpu_0_memory_usage_megabytes (1e6),
// Trackio's gpu/0/allocated_memory (GiB), SwanLab's gpu.0.mem.value (MB), ClearML's
// gpu_0_mem_used_gb, DVCLive's system/vram/usage (GB)/0, Comet's gpu.0.used_memory.
// They are compiled at the first such name: most runs have none.
var deviceMemory = sync.OnceValue(func() []deviceName {
	return []deviceName{
		{lazyre.New(`(?:^|[./])gpu\.(?:process\.)?(\d+)\.memoryallocatedbytes(?:/l:.*)?$`), "device_memory", "bytes", 1},
		{lazyre.New(`(?:^|[./])gpu\.(\d+)\.memoryused(?:/l:.*)?$`), "device_memory", "bytes", 0},
		{lazyre.New(`(?:^|[./])gpu\.(?:process\.)?(\d+)\.memoryallocated(?:/l:.*)?$`), "memory_fraction", "fraction", 0.01},
		{lazyre.New(`(?:^|/)gpu_(\d+)_memory_usage_megabytes$`), "device_memory", "bytes", 1e6},
		{lazyre.New(`(?:^|/)gpu_(\d+)_memory_usage_percentage$`), "memory_fraction", "fraction", 0.01},
		{lazyre.New(`^gpu/(\d+)/allocated_memory$`), "device_memory", "bytes", 1 << 30},
		{lazyre.New(`^gpu/(\d+)/memory_usage$`), "memory_fraction", "fraction", 1},
		{lazyre.New(`(?:^|\.)gpu\.(\d+)\.mem\.value$`), "device_memory", "bytes", 1 << 20},
		{lazyre.New(`(?:^|\.)gpu\.(\d+)\.mem\.pct$`), "memory_fraction", "fraction", 0.01},
		{lazyre.New(`gpu_(\d+)_mem_used_gb$`), "device_memory", "bytes", 1 << 30},
		{lazyre.New(`(?:^|\.)gpu\.(\d+)\.used_memory$`), "device_memory", "bytes", 1},
		{lazyre.New(`(?:^|\.)gpu\.(\d+)\.percent\.used_memory$`), "memory_fraction", "fraction", 0.01},
		{lazyre.New(`gpu_(\d+)_mem_usage$`), "memory_fraction", "fraction", 0.01},
		{lazyre.New(`vram/usage \(gb\)/(\d+)$`), "device_memory", "bytes", 1e9},
		{lazyre.New(`vram/usage \(%\)/(\d+)$`), "memory_fraction", "fraction", 0.01},
	}
})

// A deviceName is a pattern of names, and what the number of such a series is.
type deviceName struct {
	pattern *lazyre.Regexp
	name    string
	unit    string
	scale   float64
}

// deviceMeaning reads the names that trackers give to the memory of one device.
func deviceMeaning(key string, first float64) (Meaning, bool) {
	if !strings.Contains(key, "gpu") && !strings.Contains(key, "vram") {
		return Meaning{}, false
	}
	for _, d := range deviceMemory() {
		g := d.pattern.FindStringSubmatch(key)
		if g == nil {
			continue
		}
		if _, err := strconv.Atoi(g[1]); err != nil {
			continue
		}
		m := Meaning{Name: d.name, Known: true, Unit: d.unit, Scale: d.scale, Quiet: true, Device: "gpu" + g[1]}
		if d.scale == 0 {
			if m.Scale = 1; !(first >= 1<<24) {
				m.Known, m.Unit = false, ""
			}
		}
		return m, true
	}
	return Meaning{}, false
}

// AliasOf finds the canonical series of a lower-case key; trackers separate the parts of a
// name by '/' or '.'.
func AliasOf(key string) (evidence.Alias, bool) {
	if rest, ok := strings.CutPrefix(key, "devicestatsmonitor."); ok { // the hook that measured it
		_, key, _ = strings.Cut(rest, "/")
	}
	a, ok := trackedOnly[key]
	if !ok {
		a, ok = evidence.SeriesAliases()[key]
	}
	if !ok {
		a, ok = evidence.SeriesAliases()[strings.ReplaceAll(key, ".", "/")]
	}
	return a, ok && a.Name != ""
}

// trackedOnly are names that are logged to trackers and not printed: Megatron-LM's
// (training.py, training_log) and those of torch.cuda.memory_stats, which Lightning's
// DeviceStatsMonitor logs.
var trackedOnly = map[string]evidence.Alias{
	"learning-rate": {Name: "lr"}, "iteration-time": {Name: "step_time", Scale: 1}, "lm loss validation": {Name: "eval_loss", Phase: "eval"},
	"mem-allocated-bytes": {Name: "memory_allocated", Scale: 1}, "mem-max-allocated-bytes": {Name: "memory_allocated", Scale: 1, Peak: true}, "mem-reserved-bytes": {Name: "memory_reserved", Scale: 1},
	"allocated_bytes.all.current": {Name: "memory_allocated", Scale: 1}, "allocated_bytes.all.peak": {Name: "memory_allocated", Scale: 1, Peak: true},
	"reserved_bytes.all.current": {Name: "memory_reserved", Scale: 1}, "reserved_bytes.all.peak": {Name: "memory_reserved", Scale: 1, Peak: true},
}

// LossLike reports whether a lower-case key names a loss of some sort.
func LossLike(key string) bool {
	return strings.HasSuffix(key, "loss") || strings.HasSuffix(key, "loss_step") || strings.HasSuffix(key, "loss_epoch") ||
		strings.HasPrefix(key, "loss/") || strings.HasPrefix(key, "losses/") || strings.HasPrefix(key, "loss_") && !strings.HasPrefix(key, "loss_scal") && !strings.HasPrefix(key, "loss_weight")
}

// benign reports whether a value of the metric that is not finite is no sign about the training.
func benign(key string) bool {
	for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return strings.ContainsRune("_/.-@ ", r) }) {
		if evidence.SeriesBenign[part] {
			return true
		}
	}
	return false
}

// phase reads the phase from a lower-case key.
func phase(key string) string {
	for _, w := range [...]string{"eval", "val", "valid", "validation", "test", "dev"} {
		if strings.HasPrefix(key, w) && len(key) > len(w) && strings.ContainsRune("_/.", rune(key[len(w)])) || strings.Contains(key, "/"+w+"/") {
			return "eval"
		}
	}
	return "train"
}

// counters are names whose value counts and says nothing of the training, lower case.
var counters = append([]string{"epoch", "epochs", "pid", "_runtime"}, rows.StepNames[:]...)
