package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
)

// Holders says who holds the devices, from what the tools and the system said. It is pure.
// host is nil for a saved output, of which only the names can be told; source is then its
// path. err is what Read returned.
func Holders(st *State, host *Host, err error, version, source string) *incident.Holders {
	b := &builder{st: st, host: host}
	r := &incident.Holders{
		Schema: incident.HoldersSchema, Tool: incident.Tool{Name: "inquest", Version: version}, Source: source,
		By: textline.OneLine(st.Tool, 600), Driver: st.Driver, Place: incident.HolderPlace{Processes: SeesNone},
		Devices: []incident.HeldDevice{}, Strays: []incident.HolderStrays{}, Acts: []incident.HolderAct{}, Asked: []incident.HolderTool{}, Limits: []string{},
	}
	if r.Source == "" {
		r.Source = "live"
	}
	r.Taken = textline.OneLine(st.Taken, 60)
	if host != nil {
		r.Taken = host.Self.Now.UTC().Truncate(time.Second).Format(time.RFC3339)
		r.Place = incident.HolderPlace{Host: host.Self.Host, User: b.user(host.Self.UID), Container: host.Container, Processes: host.Sees}
		if r.Driver == "" && host.Presence.DriverVersion != "unknown" {
			r.Driver = host.Presence.DriverVersion
		}
	}
	for _, a := range st.Asked {
		r.Asked = append(r.Asked, incident.HolderTool{Command: a.Command, Answer: a.Answer, Detail: redact.Text(a.Detail)})
	}
	devices := b.devices()
	for i := range devices {
		r.Devices = append(r.Devices, b.device(&devices[i]))
	}
	b.children(r)
	for i := range r.Devices {
		r.Devices[i].Says = deviceSays(&r.Devices[i])
	}
	r.Strays = append(r.Strays, strays(r.Devices)...)
	b.status(r, err)
	b.acts(r)
	b.limits(r)
	return r
}

// Wanted are the processes that Survey is to look at for a state, and whether it is to search
// for others that have a device open.
func Wanted(st *State) (pids []int, search bool) {
	search = len(st.Devices) == 0
	for i := range st.Devices {
		d := &st.Devices[i]
		for _, p := range d.Processes {
			pids = append(pids, p.PID)
		}
		if u, ok := Unseen(d, st.Driver); ok && u.Lo > 0 || !ok && !d.Listed {
			search = true
		}
	}
	for _, p := range st.Unplaced {
		pids = append(pids, p.PID)
	}
	slices.Sort(pids)
	return slices.Compact(pids), search
}

// A builder makes a result.
type builder struct {
	st   *State
	host *Host // nil for a saved output
}

// devices are those of the tools; where the tools of a vendor named none, those of the system.
func (b *builder) devices() []Device {
	out := slices.Clone(b.st.Devices)
	has := func(vendor string) bool {
		return slices.ContainsFunc(b.st.Devices, func(d Device) bool { return d.Vendor == vendor })
	}
	if b.host != nil {
		none := textline.NoBytes
		if !has("nvidia") {
			for _, d := range b.host.Presence.DriverDevices {
				out = append(out, Device{Vendor: "nvidia", Index: None, BusID: d.BusID, Name: d.Name, UUID: d.UUID, Total: none, Used: none, Free: none, Reserved: none})
			}
		}
		if !has("amd") {
			out = append(out, b.host.Presence.AMD...)
		}
	}
	slices.SortStableFunc(out, func(x, y Device) int {
		return cmp.Or(-cmp.Compare(x.Vendor, y.Vendor), cmp.Compare(x.Index, y.Index), cmp.Compare(x.BusID, y.BusID))
	})
	return out
}

func sizeOf(v Bytes) *int64 {
	if !v.Known() {
		return nil
	}
	n := v.Lo
	return &n
}

func index(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

func (b *builder) device(d *Device) incident.HeldDevice {
	out := incident.HeldDevice{
		Index: index(d.Index), Vendor: d.Vendor, UUID: d.UUID, BusID: d.BusID, Name: d.Name,
		Total: sizeOf(d.Total), Used: sizeOf(d.Used), Free: sizeOf(d.Free),
		Slices: []incident.HeldSlice{}, Holders: []incident.Holder{}, Opened: []incident.Holder{}, Troubles: []string{},
	}
	if out.Free == nil && out.Total != nil && out.Used != nil && !d.Reserved.Known() {
		free := max(0, *out.Total-*out.Used)
		out.Free = &free
	}
	for _, s := range d.Slices {
		out.Slices = append(out.Slices, incident.HeldSlice{GPUInstance: index(s.GI), ComputeInstance: index(s.CI), UUID: s.UUID, Total: sizeOf(s.Total), Used: sizeOf(s.Used)})
	}
	for i := range d.Processes {
		out.Holders = append(out.Holders, b.holder(&d.Processes[i]))
	}
	slices.SortStableFunc(out.Holders, func(x, y incident.Holder) int {
		return cmp.Or(-cmp.Compare(held(&x), held(&y)), cmp.Compare(x.PID, y.PID))
	})
	for _, what := range d.Bad {
		out.Troubles = append(out.Troubles, map[string]string{"gpu-lost": "the device is lost to the driver", "unreadable": "the tool could not read some of its values"}[what])
	}
	for _, t := range b.st.Troubles {
		if t.Device != None && t.Device == d.Index || t.BusID != "" && strings.EqualFold(t.BusID, d.BusID) {
			out.Troubles = append(out.Troubles, redact.Text(t.Text))
		}
	}
	b.opened(d, &out)
	if d.Used.Known() {
		base, basis := Baseline(d, b.st.Driver)
		out.Baseline = &incident.HolderInterval{Lo: base.Lo, Hi: base.Hi, Basis: basis}
	}
	if u, ok := Unseen(d, b.st.Driver); ok && b.placed(&u) {
		out.Unseen = b.unseen(d, &out, u)
	}
	return out
}

// placed takes from what is unseen of a device what processes without a known device may hold
// of it; it is false where that is not known.
func (b *builder) placed(u *Bytes) bool {
	for i := range b.st.Unplaced {
		n, known := b.st.Unplaced[i].Accounted()
		if !known {
			return false
		}
		u.Lo = max(0, u.Lo-n.Hi)
	}
	return true
}

// held orders holders: those of unknown size behind all others.
func held(h *incident.Holder) int64 {
	if h.Bytes == nil {
		return -1
	}
	return *h.Bytes
}

// holder is one row of a tool, with what the system says of its process.
func (b *builder) holder(p *Process) incident.Holder {
	h := incident.Holder{PID: p.PID, Type: p.Type, Name: redact.Text(p.Name), State: incident.HolderNotShown, Whose: incident.HolderNobodys, Basis: []string{}}
	if bytes, ok := p.Accounted(); ok {
		h.Bytes = sizeOf(bytes)
	} else if p.Used.Known() {
		h.Basis = append(h.Basis, "the driver prints 0 MiB for it, less than any context takes: it does not account for it")
	} else {
		h.Basis = append(h.Basis, "the driver does not say how much it holds")
	}
	if p.GI != None {
		h.Slice = "gi " + strconv.Itoa(p.GI)
		if p.CI != None {
			h.Slice += " ci " + strconv.Itoa(p.CI)
		}
	}
	proc, why := b.proc(p.PID)
	if proc != nil {
		b.describe(&h, proc)
		return h
	}
	kind, basis := kindOf(p.Type, p.Name, nil, "", nil)
	h.Kind = kind
	if basis != "" {
		h.Basis = append(h.Basis, "kind: "+basis)
	}
	if b.host != nil {
		h.Basis = append(h.Basis, why)
		if b.host.Sees == SeesAll && b.host.Procs[p.PID] == nil {
			h.State = incident.HolderDead
		}
	}
	return h
}

// proc is the process that a tool means by a number, nil where it cannot be seen or where
// another may be meant; why says so.
func (b *builder) proc(pid int) (p *Proc, why string) {
	if b.host == nil {
		return nil, ""
	}
	p = b.host.Procs[pid]
	switch {
	case p == nil && b.host.Sees == SeesAll:
		return nil, fmt.Sprintf("state: no process %d exists, and every process of this machine can be seen", pid)
	case p == nil:
		return nil, fmt.Sprintf("process %d cannot be seen from here: %s", pid, b.host.Why)
	case b.host.Sees == SeesAll || b.host.Sees == SeesOwn:
		return p, ""
	case p.OpenRead && len(p.Open) == 0:
		return nil, fmt.Sprintf("the process that is number %d here has no device open: another one is meant, outside of this namespace of numbers", pid)
	case !p.OpenRead:
		return nil, fmt.Sprintf("whether the process that is number %d here is the one that is meant is not known: what it has open cannot be read", pid)
	}
	return p, ""
}

// describe fills in what the system says of a process.
func (b *builder) describe(h *incident.Holder, p *Proc) {
	h.Command = commandOf(p)
	h.Parent = p.Parent
	if p.UID != None {
		uid := p.UID
		h.UID, h.User = &uid, b.user(p.UID)
		h.Whose = incident.HolderOthers
		if p.UID == b.host.Self.UID {
			h.Whose = incident.HolderYours
		}
		h.Basis = append(h.Basis, fmt.Sprintf("whose: it runs as uid %d", p.UID))
	}
	if !p.Started.IsZero() {
		h.Started = p.Started.Format(time.RFC3339)
	}
	h.State = stateOf(p.State)
	if p.State != 0 {
		h.Basis = append(h.Basis, fmt.Sprintf("state: %c in /proc/%d/stat", p.State, p.PID))
	}
	kind, basis := kindOf(h.Type, h.Name, p.Args, p.Comm, p.Env)
	h.Kind = kind
	if basis != "" {
		h.Basis = append(h.Basis, "kind: "+redact.Text(basis))
	}
	h.Container, h.Job, h.Service = containerOf(p.Cgroup), jobOf(p), serviceOf(p.Cgroup)
	if h.Container == nil && (p.Env["APPTAINER_CONTAINER"] != "" || p.Env["SINGULARITY_CONTAINER"] != "") {
		h.Container = &incident.HolderContainer{Runtime: "apptainer", Basis: "APPTAINER_CONTAINER of its environment"}
	}
	h.Rank = rankOf(p.Env)
	h.Orphan, _ = orphanOf(p, h.Kind, b.host.Procs)
	if p.OpenRead && len(p.Open) == 0 {
		h.Basis = append(h.Basis, "it has no device file open: it may be ending, or another one may be meant")
	}
	if p.HangupIgnored {
		h.Basis = append(h.Basis, "it ignores SIGHUP, as what nohup starts: it is meant to outlive its terminal")
	}
}

// commandOf is the command line of a process for people: one line, secrets masked, bounded.
func commandOf(p *Proc) string {
	if len(p.Args) == 0 {
		if p.Comm == "" {
			return ""
		}
		return "[" + textline.OneLine(p.Comm, 40) + "]"
	}
	return textline.OneLine(redact.Text(strings.Join(p.Args, " ")), 300)
}

func stateOf(c byte) string {
	switch c {
	case 'R', 'S', 'I', 'W', 'P':
		return incident.HolderRunning
	case 'D':
		return incident.HolderWaiting
	case 'T', 't':
		return incident.HolderStopped
	case 'Z', 'X', 'x':
		return incident.HolderZombie
	}
	return incident.HolderNotShown
}

func (b *builder) user(uid int) string {
	if b.host == nil || uid == None {
		return ""
	}
	if name := b.host.Users[uid]; name != "" {
		return textline.OneLine(name, 64)
	}
	return fmt.Sprintf("uid %d", uid)
}

// opened adds the processes that have the device open and are on no tool's list. To have it
// open alone does not hold memory: CUDA opens every device that it may see.
func (b *builder) opened(d *Device, out *incident.HeldDevice) {
	if b.host == nil {
		return
	}
	node, basis := b.node(d)
	if node == "" {
		return
	}
	for _, pid := range b.host.Openers {
		p := b.host.Procs[pid]
		if p == nil || !slices.Contains(p.Open, node) || b.listed(pid) || len(out.Opened) >= 64 {
			continue
		}
		h := incident.Holder{PID: pid, State: incident.HolderNotShown, Whose: incident.HolderNobodys, Basis: []string{fmt.Sprintf("it has %s open%s, which alone holds no memory", node, basis)}}
		b.describe(&h, p)
		out.Opened = append(out.Opened, h)
	}
}

// listed reports whether a tool lists the process on any device.
func (b *builder) listed(pid int) bool {
	for i := range b.st.Devices {
		if slices.ContainsFunc(b.st.Devices[i].Processes, func(p Process) bool { return p.PID == pid }) {
			return true
		}
	}
	return slices.ContainsFunc(b.st.Unplaced, func(p Process) bool { return p.PID == pid })
}

// node is the file of a device, "" where it is not known, and how that is known.
func (b *builder) node(d *Device) (node, basis string) {
	if d.Vendor != "nvidia" {
		if len(b.st.Devices) <= 1 && len(b.host.Presence.PCI["amd"]) <= 1 {
			return "/dev/kfd", ""
		}
		return "", ""
	}
	for _, dd := range b.host.Presence.DriverDevices {
		if dd.Minor != None && (dd.UUID != "" && dd.UUID == d.UUID || sameBus(dd.BusID, d.BusID)) {
			return "/dev/nvidia" + strconv.Itoa(dd.Minor), ""
		}
	}
	if d.Index == None {
		return "", ""
	}
	return "/dev/nvidia" + strconv.Itoa(d.Index), " (taken for this device by its number)"
}

// sameBus compares bus ids whose domains may have four or eight digits.
func sameBus(x, y string) bool {
	return x != "" && y != "" && strings.EqualFold(strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0"))
}

// children names, of each holder that another one started, that one.
func (b *builder) children(r *incident.Holders) {
	if b.host == nil {
		return
	}
	holders := map[int]bool{}
	each(r, func(_ int, h *incident.Holder) { holders[h.PID] = true })
	each(r, func(_ int, h *incident.Holder) {
		if h.Parent == 0 {
			return
		}
		for pid, n := h.Parent, 0; pid > 1 && n < maxAncestors; n++ {
			if holders[pid] && pid != h.PID {
				h.ChildOf = pid
				if p, up := b.host.Procs[h.PID], b.host.Procs[pid]; p != nil && up != nil && h.Kind == incident.HolderCompute && p.Comm == up.Comm {
					h.Kind = incident.HolderWorker
					h.Basis = append(h.Basis, fmt.Sprintf("kind: process %d, which holds memory too, started it", pid))
				}
				return
			}
			p := b.host.Procs[pid]
			if p == nil {
				return
			}
			pid = p.Parent
		}
	})
}

// each calls fn with every holder and the place of its device.
func each(r *incident.Holders, fn func(device int, h *incident.Holder)) {
	for i := range r.Devices {
		for j := range r.Devices[i].Holders {
			fn(i, &r.Devices[i].Holders[j])
		}
	}
}

// near two amounts of one pattern: contexts of one program differ by little.
func alike(lo, hi int64) bool { return hi <= lo*3/2 || hi-lo <= 200*mib }

// strays finds devices on which several processes hold a small context of about the same size
// while each holds much more on one other device, each on another one. Sizes are set against
// each other: how large a context is depends on the device and what is loaded.
func strays(devices []incident.HeldDevice) []incident.HolderStrays {
	type place struct {
		device int
		bytes  *int64
	}
	of := map[int][]place{} // by process
	for i := range devices {
		for _, h := range devices[i].Holders {
			if h.Slice == "" && h.Type != "G" {
				of[h.PID] = append(of[h.PID], place{i, h.Bytes})
			}
		}
	}
	var out []incident.HolderStrays
	for i := range devices {
		d := &devices[i]
		if d.Index == nil {
			continue
		}
		s := incident.HolderStrays{Device: *d.Index, Vendor: d.Vendor, PIDs: []int{}, Own: []int{}}
		var lo, hi, sum int64
		known := true
		taken := map[int]bool{i: true}
		names := map[string]bool{}
		holders := slices.Clone(d.Holders)
		slices.SortFunc(holders, func(x, y incident.Holder) int { return cmp.Compare(x.PID, y.PID) })
		for _, h := range holders {
			at := of[h.PID]
			if len(at) != 2 {
				continue
			}
			other := at[0]
			if other.device == i {
				other = at[1]
			}
			o := &devices[other.device]
			if taken[other.device] || o.Vendor != d.Vendor || o.Index == nil {
				continue
			}
			if h.Bytes == nil || other.bytes == nil {
				known = false
			} else {
				if *h.Bytes*2 > *other.bytes {
					continue // as much here as there: it works on both
				}
				if len(s.PIDs) == 0 || *h.Bytes < lo {
					lo = *h.Bytes
				}
				hi = max(hi, *h.Bytes)
				sum += *h.Bytes
			}
			taken[other.device] = true
			names[program1(&h)] = true
			s.PIDs, s.Own = append(s.PIDs, h.PID), append(s.Own, *o.Index)
		}
		if len(s.PIDs) < 2 || len(names) > 1 || known && !alike(lo, hi) {
			continue
		}
		if !known && !slices.ContainsFunc(d.Holders, func(h incident.Holder) bool { return len(of[h.PID]) == 1 }) {
			continue // without sizes: one of the job must have this device for its own
		}
		s.Says = fmt.Sprintf("%d processes that have a device of their own also hold a context on device %d", len(s.PIDs), s.Device)
		if known {
			s.Bytes = &sum
			s.Says += fmt.Sprintf(": %s in all", Size(sum))
			if lo != hi {
				s.Says += fmt.Sprintf(", %s to %s each", Size(lo), Size(hi))
			}
		}
		s.Advice = "choose the device before the first use of CUDA (torch.cuda.set_device(local_rank)), and load checkpoints with a map_location; it takes effect when the job is started again"
		s.Entry = "all-ranks-on-gpu0"
		out = append(out, s)
	}
	return out
}

// program1 is the program of a holder, by which processes of one job are alike.
func program1(h *incident.Holder) string {
	if h.Command != "" {
		head, _, _ := strings.Cut(h.Command, " ")
		return base(head)
	}
	return base(h.Name)
}

// Size is a size in words: GiB with one decimal, below one GiB whole MiB.
func Size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// span is an interval in words.
func span(lo, hi int64) string {
	a, b := Size(lo), Size(hi)
	if a == b {
		return a
	}
	return strings.TrimSuffix(a, " "+unitOf(b)) + " to " + b
}

func unitOf(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

// of is one size of another: 71.2 of 80.0 GiB.
func of(used, total int64) string {
	u, t := Size(used), Size(total)
	return strings.TrimSuffix(u, " "+unitOf(t)) + " of " + t
}

// Named is what a device is called: by its number, else by its place on the bus.
func Named(d *incident.HeldDevice) string {
	switch {
	case d.Index != nil:
		return fmt.Sprintf("device %d", *d.Index)
	case d.BusID != "":
		return "the device at " + d.BusID
	}
	return "a device"
}

// deviceSays is the answer for one device.
func deviceSays(d *incident.HeldDevice) string {
	var b strings.Builder
	b.WriteString(Named(d) + ": ")
	switch {
	case d.Used == nil && len(d.Troubles) > 0:
		b.WriteString(d.Troubles[0])
	case d.Used == nil:
		b.WriteString("how much is in use is not known")
	case d.Total != nil:
		b.WriteString(of(*d.Used, *d.Total) + " used")
	default:
		b.WriteString(Size(*d.Used) + " used")
	}
	var parts []string
	const most = 3
	unknown := 0
	for i := range d.Holders {
		h := &d.Holders[i]
		if h.Bytes == nil {
			unknown++
			continue
		}
		if len(parts) < most {
			parts = append(parts, Size(*h.Bytes)+" by "+whoWords(h))
		}
	}
	if rest := len(d.Holders) - unknown - len(parts); rest > 0 {
		var sum int64
		for i := range d.Holders {
			if h := &d.Holders[i]; h.Bytes != nil && i >= most {
				sum += *h.Bytes
			}
		}
		parts = append(parts, fmt.Sprintf("%s by %d more", Size(sum), rest))
	}
	if u := d.Unseen; u != nil && u.Lo > 0 {
		parts = append(parts, span(u.Lo, u.Hi)+" by nobody that is seen")
	}
	switch {
	case unknown == 1 && len(d.Holders) == 1:
		parts = append(parts, "by "+whoWords(&d.Holders[0])+", of which the driver does not say how much it holds")
	case unknown > 0:
		parts = append(parts, fmt.Sprintf("%d processes hold memory of which the driver does not say how much", unknown))
	}
	if len(parts) > 0 {
		b.WriteString("; " + strings.Join(parts, ", "))
	} else if d.Used != nil && d.Unseen != nil {
		b.WriteString("; no process holds any")
	}
	return b.String()
}

// whoWords names a holder in a sentence.
func whoWords(h *incident.Holder) string {
	s := "process"
	switch {
	case h.State == incident.HolderDead:
		s = "a process that no longer exists,"
	case h.Whose == incident.HolderYours:
		s = "your process"
	case h.Whose == incident.HolderOthers:
		s = h.User + "'s process"
	}
	s += " " + strconv.Itoa(h.PID)
	if c := Short(h); c != "" {
		s += " (" + c + ")"
	}
	return s
}

// Short is a holder's command for a sentence.
func Short(h *incident.Holder) string {
	if h.Command != "" && h.Command[0] != '[' {
		return redact.Text(short(strings.Fields(h.Command), h.Name))
	}
	return redact.Text(short(nil, h.Name))
}

// status says what became of the question as a whole.
func (b *builder) status(r *incident.Holders, err error) {
	measured := slices.ContainsFunc(r.Devices, func(d incident.HeldDevice) bool { return d.Used != nil })
	if measured || err == nil && len(r.Devices) > 0 {
		r.Status = incident.HoldersAnswered
		r.Says = sum(r)
		return
	}
	r.Status, r.Says = b.absence()
}

// sum is the answer over all devices: that of the only one, or of all in numbers.
func sum(r *incident.Holders) string {
	if len(r.Devices) == 1 {
		return r.Devices[0].Says
	}
	var used, total, yours, others, hidden, dead, unseenLo, unseenHi int64
	busy, silent, unstated := 0, 0, map[int]bool{}
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Used == nil {
			silent++
		} else if used += *d.Used; d.Total != nil {
			total += *d.Total
		}
		if Busy(d) {
			busy++
		}
		for j := range d.Holders {
			h := &d.Holders[j]
			switch {
			case h.Bytes == nil:
				unstated[h.PID] = true
			case h.State == incident.HolderDead:
				dead += *h.Bytes
			case h.Whose == incident.HolderYours:
				yours += *h.Bytes
			case h.Whose == incident.HolderOthers:
				others += *h.Bytes
			default:
				hidden += *h.Bytes
			}
		}
		if u := d.Unseen; u != nil && u.Lo > 0 {
			unseenLo, unseenHi = unseenLo+u.Lo, unseenHi+u.Hi
		}
	}
	n := len(r.Devices)
	if silent == n {
		s := fmt.Sprintf("how much memory of the %d devices is in use is not stated", n)
		if busy > 0 {
			s += fmt.Sprintf("; processes hold some of %d of them", busy)
		}
		return s
	}
	if busy == 1 && silent == 0 {
		for i := range r.Devices {
			if d := &r.Devices[i]; Busy(d) {
				return d.Says + "; " + restFree(n-1)
			}
		}
	}
	s := fmt.Sprintf("%d of %d devices are in use, %s", busy, n, of(used, total))
	if busy == 0 {
		s = fmt.Sprintf("none of the %d devices is in use (%s)", n, of(used, total))
	}
	if silent > 0 {
		s += fmt.Sprintf(", and of %d it is not stated", silent)
	}
	var parts []string
	for _, p := range [...]struct {
		n  int64
		by string
	}{{yours, "you"}, {others, "other users"}, {dead, "processes that no longer exist"}, {hidden, "processes that cannot be seen from here"}} {
		if p.n > 0 {
			by := p.by
			if r.Source != "live" {
				by = "the processes that are listed"
			}
			parts = append(parts, Size(p.n)+" by "+by)
		}
	}
	if len(unstated) > 0 {
		parts = append(parts, several(len(unstated), "process", "processes")+" of which the driver does not say how much")
	}
	if unseenLo > 0 {
		parts = append(parts, span(unseenLo, unseenHi)+" by nobody that is seen")
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	return s
}

// restFree says that the rest of the devices is free.
func restFree(n int) string {
	if n == 1 {
		return "the other device is free"
	}
	return fmt.Sprintf("the other %d devices are free", n)
}

// several is a number with its noun.
func several(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// Busy reports whether a device has a holder, or memory in use beyond what the driver takes.
func Busy(d *incident.HeldDevice) bool {
	return len(d.Holders) > 0 || d.Unseen != nil && d.Unseen.Lo > 0 || d.Used != nil && d.Baseline != nil && *d.Used > d.Baseline.Hi
}
