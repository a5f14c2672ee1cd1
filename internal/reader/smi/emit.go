package smi

import (
	"fmt"
	"math"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/amdsmi"
	"github.com/inquest-dev/inquest/internal/format/nvsmi"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// attrs builds attributes of what is stated.
type attrs evidence.Attrs

func (a attrs) text(name, v string) {
	if v != "" {
		a[name] = evidence.TextOf(clip(v, 256))
	}
}

func (a attrs) size(name string, b textline.Bytes) {
	if b.Known() {
		a[name] = evidence.SizeOf(b.Lo, b.Hi)
	}
}

func (a attrs) float(name string, v float64) {
	if !math.IsNaN(v) {
		a[name] = evidence.FloatOf(v)
	}
}

func (a attrs) int(name string, n int64) {
	if n >= 0 {
		a[name] = evidence.IntOf(n)
	}
}

// who is the identity of a device: its index counts on this host only.
func who(index int, bus string, pid int) evidence.Who {
	w := evidence.Nobody()
	w.Device, w.BusID, w.PID = index, bus, pid
	return w
}

// nvidia takes the rows of NVIDIA's tools.
type nvidia parser

func (n *nvidia) Version(v nvsmi.Version) {
	p := (*parser)(n)
	switch v.Of {
	case "driver":
		p.fact("setting.driver_version", v.Text, v.At)
	case "cuda":
		p.fact("setting.driver_cuda", v.Text, v.At)
	case "dcgm":
		p.fact("setting.dcgm_version", v.Text, v.At)
	}
}

func (n *nvidia) Taken(written string, _ textline.Line) {
	p := (*parser)(n)
	if m, ok := textline.Date(written); ok {
		p.stamp = stampOf(m)
	}
}

func (n *nvidia) Device(d nvsmi.Device) {
	p := (*parser)(n)
	if d.UUID != "" && d.Slice == "" && d.Index != nvsmi.None && len(p.index) < maxDevices {
		if p.index == nil {
			p.index = map[string]int{}
		}
		p.index[d.UUID] = d.Index
	}
	a := attrs{}
	a.int("gpu", int64(d.Index))
	a.text("name", d.Name)
	a.text("uuid", d.UUID)
	a.text("slice", d.Slice)
	a.text("mig", d.MIG)
	a.text("links", d.Links)
	a.size("used", d.Used)
	a.size("total", d.Total)
	a.size("free", d.Free)
	a.float("util", d.Util)
	a.float("temp", d.Temp)
	a.float("temp_memory", d.MemTemp)
	a.float("power", d.Power)
	a.float("power_cap", d.Cap)
	a.int("ecc_volatile", d.Volatile)
	a.int("ecc_aggregate", d.Aggregate)
	if d.Persistence != "" {
		a["persistence"] = evidence.BoolOf(d.Persistence == "On")
	}
	if d.Listed {
		a["no_processes"] = evidence.BoolOf(d.Empty)
	}
	st := p.taken(d.Taken)
	w := who(d.Index, d.BusID, evidence.None)
	p.event(evidence.GPUUsage, d.At, w, st, evidence.Attrs(a))
	if d.Taken != "" && !p.changed(d) {
		return
	}
	for _, s := range d.States {
		p.state(d.Index, d.BusID, d.UUID, s.What, s.Count, s.Text, s.At, st)
	}
}

// changed reports whether the states of a device are others than in its sample
// before: a loop repeats them every second.
func (p *parser) changed(d nvsmi.Device) bool {
	key := fmt.Sprint(d.Index, d.BusID, d.UUID)
	var now strings.Builder
	for _, s := range d.States {
		fmt.Fprintf(&now, "%s %d\n", s.What, s.Count)
	}
	before, known := p.states[key]
	if p.states == nil {
		p.states = map[string]string{}
	}
	if known || len(p.states) < maxDevices {
		p.states[key] = now.String()
	}
	return before != now.String()
}

// state files a counter or condition of a device.
func (p *parser) state(index int, bus, uuid, what string, count int64, value string, at textline.Line, st evidence.Stamp) {
	w := who(index, bus, evidence.None)
	if what == "gpu-lost" {
		if !p.embedded {
			p.event(evidence.DeviceLost, at, w, st, evidence.Attrs{"what": evidence.TextOf("gpu-is-lost")})
		}
		return
	}
	a := attrs{"what": evidence.TextOf(what)}
	a.int("gpu", int64(index))
	a.text("uuid", uuid)
	a.int("count", count)
	a.text("value", value)
	p.event(evidence.GPUHealth, at, w, st, evidence.Attrs(a))
}

func (n *nvidia) Process(r nvsmi.Process) {
	p := (*parser)(n)
	if index, ok := p.index[r.UUID]; ok && r.GPU == nvsmi.None {
		r.GPU = index
	}
	a := attrs{}
	a.int("gpu", int64(r.GPU))
	a.int("pid", int64(r.PID))
	a.text("name", r.Name)
	a.text("uuid", r.UUID)
	a.size("used", r.Used)
	p.event(evidence.GPUProcess, r.At, who(r.GPU, r.BusID, r.PID), p.taken(r.Taken), evidence.Attrs(a))
}

// troubles says what a message is, in the words that the wordings for job logs use
// for the same message.
var troubles = map[string]struct {
	kind evidence.Kind
	what string
}{
	"gpu-lost":                {evidence.DeviceLost, "no-device-handle"},
	"no-device-handle":        {evidence.DeviceLost, "no-device-handle"},
	"no-devices":              {evidence.DeviceConfig, "no-devices"},
	"no-driver":               {evidence.DeviceConfig, "no-driver"},
	"nvml-init":               {evidence.DeviceConfig, "nvml-init"},
	"driver-library-mismatch": {evidence.VersionClash, "nvml-driver-library"},
}

func (n *nvidia) Trouble(t nvsmi.Trouble) {
	p := (*parser)(n)
	if p.embedded {
		return
	}
	if k, ok := troubles[t.What]; ok {
		p.event(k.kind, t.At, who(t.GPU, t.BusID, evidence.None), p.stamp, evidence.Attrs{"what": evidence.TextOf(k.what)})
		return
	}
	p.state(t.GPU, t.BusID, "", t.What, evidence.None, "", t.At, p.stamp)
}

func (n *nvidia) Test(t nvsmi.Test) {
	p := (*parser)(n)
	a := attrs{"name": evidence.TextOf(t.Name), "result": evidence.TextOf(t.Result)}
	a.int("gpu", int64(t.GPU))
	a.text("detail", t.Detail)
	p.event(evidence.DeviceTest, t.At, who(t.GPU, "", evidence.None), p.stamp, evidence.Attrs(a))
}

// amd takes the rows of AMD's tools.
type amd parser

func (n *amd) Version(of, text string, at textline.Line) {
	p := (*parser)(n)
	switch of {
	case "driver":
		p.fact("setting.driver_version", text, at)
	case "rocm":
		p.fact("setting.rocm_version", text, at)
	}
}

func (n *amd) Device(d amdsmi.Device) {
	p := (*parser)(n)
	a := attrs{}
	a.int("gpu", int64(d.Index))
	a.text("name", d.Name)
	a.text("uuid", d.UUID)
	a.size("used", d.Used)
	a.size("total", d.Total)
	a.size("free", d.Free)
	if !d.Used.Known() && d.Total.Known() && !math.IsNaN(d.UsedPercent) {
		// A percentage without decimals, rounded either way.
		lo, hi := math.Max(0, d.UsedPercent-1), math.Min(100, d.UsedPercent+1)
		a["used"] = evidence.SizeOf(int64(float64(d.Total.Lo)/100*lo), int64(float64(d.Total.Hi)/100*hi))
	}
	a.float("util", d.Util)
	a.float("temp", d.Temp)
	a.float("temp_memory", d.MemTemp)
	a.float("power", d.Power)
	a.float("power_cap", d.Cap)
	a.int("ecc_volatile", d.Uncorrectable)
	st := p.taken(d.Taken)
	p.event(evidence.GPUUsage, d.At, who(d.Index, d.BusID, evidence.None), st, evidence.Attrs(a))
	for _, s := range d.States {
		p.state(d.Index, d.BusID, d.UUID, s.What, s.Count, s.Text, s.At, st)
	}
}

func (n *amd) Process(r amdsmi.Process) {
	p := (*parser)(n)
	a := attrs{}
	a.int("gpu", int64(r.GPU))
	a.int("pid", int64(r.PID))
	a.text("name", r.Name)
	a.size("used", r.Used)
	p.event(evidence.GPUProcess, r.At, who(r.GPU, "", r.PID), p.stamp, evidence.Attrs(a))
}
