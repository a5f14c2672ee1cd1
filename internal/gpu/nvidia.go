package gpu

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/nvsmi"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

const smi = "nvidia-smi"

// Fields of --query-gpu. Drivers before 510 do not know memory.reserved, those before 450
// not mig.mode.current, and refuse the whole query for it.
const (
	queryBase   = "index,uuid,pci.bus_id,name,driver_version,memory.total,memory.used,memory.free"
	queryAll    = queryBase + ",memory.reserved,mig.mode.current"
	querySample = "index,uuid,pci.bus_id,memory.used,memory.total"
	queryApps   = "gpu_uuid,gpu_bus_id,pid,process_name,used_gpu_memory"
)

// readNVIDIA asks nvidia-smi: queries first, whose values are whole; then -q -x where the
// queries fail or leave something open (instances of MIG, graphics processes, which no query
// lists); the plain table where that fails as well.
func readNVIDIA(ctx context.Context, run Runner) *State {
	n := &nvidia{st: &State{}, ctx: ctx, run: run}
	if !n.query("--query-gpu=" + queryAll) {
		return n.finish()
	}
	if len(n.st.Devices) == 0 && n.invalid {
		n.query("--query-gpu=" + queryBase)
	}
	if len(n.st.Devices) > 0 {
		if n.query("--query-compute-apps="+queryApps) && n.ok {
			n.listed()
		}
		if n.open() {
			more := &nvidia{st: &State{}, ctx: ctx, run: run}
			if more.ask("-q", "-x"); len(more.st.Devices) == len(n.st.Devices) {
				more.listed()
				more.st.Asked = append(n.st.Asked, more.st.Asked...)
				more.st.Tool = n.st.Tool + "; " + more.st.Tool
				more.fill(n.st.Devices)
				return more.finish()
			}
			n.st.Asked = append(n.st.Asked, more.st.Asked...)
		}
		return n.finish()
	}
	if n.silent() {
		return n.finish()
	}
	if n.ask("-q", "-x"); len(n.st.Devices) > 0 {
		n.listed()
	} else if !n.silent() {
		n.ask()
	}
	return n.finish()
}

// sampleNVIDIA asks for the memory in use alone.
func sampleNVIDIA(ctx context.Context, run Runner) *State {
	n := &nvidia{st: &State{}, ctx: ctx, run: run}
	if n.query("--query-gpu=" + querySample); len(n.st.Devices) > 0 {
		if n.query("--query-compute-apps=gpu_uuid,gpu_bus_id,pid,used_gpu_memory") && n.ok {
			n.listed()
		}
	}
	return n.finish()
}

// An nvidia collects what nvidia-smi prints.
type nvidia struct {
	st      *State
	ctx     context.Context
	run     Runner
	ok      bool // the last command succeeded
	invalid bool // it refused a field of the query
	gone    bool // not installed, or given up
}

// query runs one query; it reports whether to go on asking the tool.
func (n *nvidia) query(flag string) bool {
	n.ask(flag, "--format=csv")
	return !n.gone
}

// silent reports whether asking on is of no use.
func (n *nvidia) silent() bool { return n.gone || n.ctx.Err() != nil }

// ask runs nvidia-smi once and takes in what it prints.
func (n *nvidia) ask(args ...string) {
	if n.silent() {
		return
	}
	command := strings.TrimSpace(smi + " " + strings.Join(args, " "))
	out, err := n.run(n.ctx, smi, args...)
	text := string(out)
	n.ok, n.invalid = err == nil, strings.Contains(text, "is not a valid field to query") || strings.Contains(errText(err), "is not a valid field to query")
	n.gone = errors.Is(err, exec.ErrNotFound) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	before := len(n.st.Devices) + len(n.st.Unplaced) + len(n.st.Troubles)
	n.take(text)
	understood := len(n.st.Devices)+len(n.st.Unplaced)+len(n.st.Troubles) > before || strings.Contains(command, "compute-apps") && (strings.TrimSpace(text) == "" || strings.Contains(text, "pid"))
	n.st.asked(smi, command, text, err, understood)
	n.ok = n.ok && understood
	if n.ok {
		n.st.answered(command)
	}
}

func errText(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

// take reads text, of whatever form of nvidia-smi it is.
func (n *nvidia) take(text string) {
	var cur nvsmi.Table
	textline.Each(context.WithoutCancel(n.ctx), strings.NewReader(text), func(l textline.Line) {
		if cur != nil {
			if cur.Line(l) != nvsmi.Foreign {
				return
			}
			cur.End()
			cur = nil
		}
		cur, _ = nvsmi.Begin(l, "", n) // rows without a header mean nothing
	}, func(textline.Line) {})
	if cur != nil {
		cur.End()
	}
}

// Bounds of what one answer may hold.
const (
	maxDevices   = 256
	maxProcesses = 4096
	maxText      = 300
)

func (n *nvidia) Version(v nvsmi.Version) {
	if v.Of == "driver" && n.st.Driver == "" {
		n.st.Driver = textline.OneLine(v.Text, 32)
	}
}

func (n *nvidia) Taken(written string, _ textline.Line) { n.st.Taken = written }

func (n *nvidia) Test(nvsmi.Test) {}

func (n *nvidia) Trouble(t nvsmi.Trouble) {
	if len(n.st.Troubles) < maxDevices {
		n.st.Troubles = append(n.st.Troubles, Trouble{What: t.What, Text: textline.OneLine(strings.TrimSpace(t.At.Text), maxText), Device: t.GPU, BusID: t.BusID})
	}
}

func (n *nvidia) Device(d nvsmi.Device) {
	if d.Slice != "" {
		if at := n.find(d.Index, "", d.BusID); at != nil && len(at.Slices) < maxDevices {
			at.Slices = append(at.Slices, Slice{GI: d.GI, CI: d.CI, UUID: d.UUID, Total: d.Total, Used: d.Used})
		}
		return
	}
	if !nvsmi.IsBus(d.BusID) {
		d.BusID = ""
	}
	if d.Index == None && d.BusID == "" {
		return
	}
	at := n.find(d.Index, d.UUID, d.BusID)
	if at == nil {
		if len(n.st.Devices) == maxDevices {
			return
		}
		n.st.Devices = append(n.st.Devices, Device{Vendor: "nvidia", Index: d.Index, Total: textline.NoBytes, Used: textline.NoBytes, Free: textline.NoBytes, Reserved: textline.NoBytes})
		at = &n.st.Devices[len(n.st.Devices)-1]
	}
	text := func(to *string, v string) {
		if v != "" {
			*to = textline.OneLine(v, 120)
		}
	}
	text(&at.UUID, d.UUID)
	text(&at.BusID, d.BusID)
	text(&at.Name, d.Name)
	size := func(to *Bytes, v Bytes) {
		if v.Known() {
			*to = v
		}
	}
	size(&at.Total, d.Total)
	size(&at.Used, d.Used)
	size(&at.Free, d.Free)
	size(&at.Reserved, d.Reserved)
	at.MIG = at.MIG || d.MIG == "Enabled"
	at.Listed = at.Listed || d.Listed || d.Empty
	at.NoneSaid = at.NoneSaid || d.Empty
	for _, s := range d.States {
		if s.What == "gpu-lost" || s.What == "unreadable" {
			at.Bad = append(at.Bad, s.What)
		}
	}
}

func (n *nvidia) Process(p nvsmi.Process) {
	if p.PID < 0 {
		return
	}
	if p.Type == "" {
		p.Type = "C" // the query of those that compute has no column for it
	}
	row := Process{
		PID: p.PID, Type: p.Type, Name: textline.OneLine(p.Name, maxText), Used: p.Used, GI: p.GI, CI: p.CI,
		uuid: p.UUID, bus: p.BusID, index: p.GPU,
	}
	n.st.add(row)
}

// add takes in a row of a list of processes. A loop states the same one again and again: the
// last row counts.
func (s *State) add(row Process) {
	if s.rows == nil {
		s.rows = map[Process]int{}
	}
	key := row
	key.Used, key.Name, key.Type = Bytes{}, "", ""
	if i, again := s.rows[key]; again && i < len(s.Unplaced) {
		s.Unplaced[i] = row
		return
	}
	if len(s.Unplaced) < maxProcesses {
		s.rows[key] = len(s.Unplaced)
		s.Unplaced = append(s.Unplaced, row)
	}
}

// find is the device that a row speaks of, nil where none is known.
func (n *nvidia) find(index int, uuid, bus string) *Device { return n.st.find(index, uuid, bus) }

func (s *State) find(index int, uuid, bus string) *Device {
	if strings.HasPrefix(uuid, "MIG-") { // of an instance; the device has another
		uuid = ""
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		switch {
		case uuid != "" && d.UUID != "":
			if uuid == d.UUID {
				return d
			}
		case bus != "" && d.BusID != "":
			if strings.EqualFold(bus, d.BusID) {
				return d
			}
		case index != None && index == d.Index:
			return d
		}
	}
	return nil
}

// open reports whether the queries leave open who holds the memory.
func (n *nvidia) open() bool {
	if n.silent() {
		return false
	}
	n.place()
	for i := range n.st.Devices {
		d := &n.st.Devices[i]
		if d.MIG || !d.Listed {
			return true
		}
		if b, ok := Unseen(d, n.st.Driver); ok && b.Lo > 0 {
			return true
		}
	}
	return len(n.st.Unplaced) > 0
}

// fill gives the devices of the second answer what only the first one states.
func (n *nvidia) fill(first []Device) {
	for _, f := range first {
		d := n.find(f.Index, f.UUID, f.BusID)
		if d == nil {
			continue
		}
		if d.Index == None {
			d.Index = f.Index
		}
		if d.Name == "" {
			d.Name = f.Name
		}
		if d.UUID == "" {
			d.UUID = f.UUID
		}
		if !d.Used.Known() {
			d.Used, d.Total, d.Free = f.Used, f.Total, f.Free
		}
		if !d.Reserved.Known() {
			d.Reserved = f.Reserved
		}
	}
}

// listed notes that the answer lists the processes of all devices.
func (n *nvidia) listed() {
	for i := range n.st.Devices {
		n.st.Devices[i].Listed = true
	}
}

func (n *nvidia) finish() *State {
	n.place()
	return n.st
}

// place puts each process to its device.
func (n *nvidia) place() { n.st.place() }

func (s *State) place() {
	var left []Process
	for _, p := range s.Unplaced {
		d := s.find(p.index, p.uuid, p.bus)
		if d == nil && p.index == None && p.uuid == "" && p.bus == "" && len(s.Devices) == 1 {
			d = &s.Devices[0]
		}
		if d == nil {
			left = append(left, p)
			continue
		}
		d.Listed = true
		d.Processes = append(d.Processes, p)
	}
	s.Unplaced, s.rows = left, nil
}
