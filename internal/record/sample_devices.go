package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A deviceWatch asks the vendors' tools for the memory of the host's devices, beside the
// looks at the processes. A tool takes its time, and some of the driver's: it is asked the more
// seldom the more it takes of a CPU, and given up when it does not answer. Nothing waits for it.
type deviceWatch struct {
	cancel context.CancelFunc
	every  time.Duration

	mu     sync.Mutex              // guards what follows
	asked  int                     // answers
	fresh  []incident.DeviceSample // the last answer, until a sample has it
	ours   bool                    // the tool's process numbers are those of this process's namespace
	peaks  []devicePeak
	gaveUp string
}

// A devicePeak is what was highest on one device.
type devicePeak struct {
	vendor            string
	index             int
	used, own, total  int64
	ownSeen, ownKnown bool
}

const (
	deviceFirst    = time.Second     // no framework has a device sooner
	deviceTick     = 2 * time.Second // between two questions at least
	deviceSlowest  = time.Minute     // and at most, however much they take
	devicePatience = 2500 * time.Millisecond
	deviceTries    = 3 // questions without an answer, one after the other
)

// watchDevices begins to ask. tree returns the numbers of the command's processes.
func watchDevices(tools gpu.Runner, every time.Duration, tree func() []int) *deviceWatch {
	ctx, cancel := context.WithCancel(context.Background())
	d := &deviceWatch{cancel: cancel, every: max(deviceTick, every), ours: firstNamespace()}
	go d.run(ctx, tools, tree)
	return d
}

func (d *deviceWatch) run(ctx context.Context, tools gpu.Runner, tree func() []int) {
	start, failed := time.Now(), 0
	if !sleep(ctx, deviceFirst) {
		return
	}
	for {
		before := childrenBusy()
		begun := time.Now()
		asking, done := context.WithTimeout(ctx, devicePatience)
		uses, err := gpu.Memory(asking, tools)
		done()
		if ctx.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, gpu.ErrNoTool):
			return
		case len(uses) == 0:
			if failed++; failed == deviceTries {
				d.mu.Lock()
				d.gaveUp = fmt.Sprintf("devices: their memory was not recorded any further: %v, %d times", err, failed)
				d.mu.Unlock()
				return
			}
		default:
			failed = 0
			d.take(uses, tree())
		}
		cost := childrenBusy() - before
		if cost <= 0 {
			cost = time.Since(begun) // what it takes is not known: as much as it took in all
		}
		// At first the questions follow as the command grows older: one that ends soon is seen too.
		wait := min(time.Duration(float64(cost)/share), time.Since(start), deviceSlowest)
		if !sleep(ctx, max(d.every, wait)) {
			return
		}
	}
}

// sleep returns false when ctx is done before the time is over.
func sleep(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// take counts an answer; pids are the command's processes.
func (d *deviceWatch) take(uses []gpu.DeviceUse, pids []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	for _, u := range uses {
		for pid := range u.Own {
			d.ours = d.ours || slices.Contains(pids, pid)
		}
	}
	d.fresh = d.fresh[:0:0]
	for _, u := range uses {
		own, known := d.own(u, pids)
		p := d.peak(u)
		p.total, p.used = max(p.total, u.Total), max(p.used, u.Used)
		p.ownKnown = p.ownKnown && known
		s := incident.DeviceSample{Index: u.Index, Used: u.Used}
		if known {
			p.own, p.ownSeen = max(p.own, own), p.ownSeen || own > 0
			s.Own = &own
		}
		if u.Index >= 0 && u.Used >= 0 {
			d.fresh = append(d.fresh, s)
		}
	}
}

// own is the memory that the command's processes have on a device. It is known where the tool
// accounts for processes and counts them as this process does.
func (d *deviceWatch) own(u gpu.DeviceUse, pids []int) (int64, bool) {
	if u.Own == nil || !d.ours {
		return 0, false
	}
	sum := int64(0)
	for _, pid := range pids {
		n, ok := u.Own[pid]
		if ok && n < 0 {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

func (d *deviceWatch) peak(u gpu.DeviceUse) *devicePeak {
	for i := range d.peaks {
		if p := &d.peaks[i]; p.vendor == u.Vendor && p.index == u.Index {
			return p
		}
	}
	d.peaks = append(d.peaks, devicePeak{vendor: u.Vendor, index: u.Index, ownKnown: true})
	return &d.peaks[len(d.peaks)-1]
}

// latest is the last answer, once: it belongs to one sample.
func (d *deviceWatch) latest() []incident.DeviceSample {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := append([]incident.DeviceSample{}, d.fresh...)
	d.fresh = nil
	return out
}

// end stops asking. It does not wait for a tool that is being asked.
func (d *deviceWatch) end() ([]incident.Measure, string) {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []incident.Measure
	for _, p := range d.peaks {
		if p.index < 0 || p.used <= 0 || p.ownKnown && !p.ownSeen {
			continue // nothing of the command was ever there
		}
		index := p.index
		m := incident.Measure{Name: incident.DeviceMemory, Device: &index, Peak: p.used, AtLeast: true}
		of := "by whomever"
		if p.ownKnown {
			m.Peak, of = p.own, fmt.Sprintf("by the command's processes; by all processes %d bytes", p.used)
		}
		m.Basis = fmt.Sprintf("asked %d times, at least %s apart, what is in use on it %s", d.asked, d.every, of)
		out = append(out, withLimit(m, p.total, "device"))
	}
	return out, d.gaveUp
}

// firstNamespace reports whether this process is in the system's first process namespace, whose
// numbers the drivers use.
func firstNamespace() bool {
	to, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && to == "pid:[4026531836]" // PROC_PID_INIT_INO
}
