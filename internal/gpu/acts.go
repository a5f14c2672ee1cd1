package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
)

// unseen says why memory may be in use that no process accounts for, and how to look.
func (b *builder) unseen(d *Device, out *incident.HeldDevice, u Bytes) *incident.HolderUnseen {
	base, how := Baseline(d, b.st.Driver)
	r := &incident.HolderUnseen{Reasons: []string{}, Look: []incident.HolderCommand{}}
	r.Lo, r.Hi = u.Lo, u.Hi
	less := "no process is listed"
	if n := len(d.Processes); n > 0 {
		var listed int64
		for i := range d.Processes {
			listed += d.Processes[i].Used.Lo
		}
		less = fmt.Sprintf("%s of it by %s", Size(listed), several(n, "process that is listed", "processes that are listed"))
	}
	r.Basis = fmt.Sprintf("%s in use, %s, and %s at most by the driver itself: %s", Size(d.Used.Lo), less, Size(base.Hi), how)
	if u.Lo == 0 {
		return r
	}
	because := func(format string, args ...any) { r.Reasons = append(r.Reasons, fmt.Sprintf(format, args...)) }
	if b.host != nil && b.host.Sees == SeesNamespace {
		because("processes outside of this container hold it: %s", b.host.Why)
	}
	if n := len(out.Opened); n > 0 {
		var who []string
		for i := range out.Opened[:min(n, 3)] {
			who = append(who, whoWords(&out.Opened[i]))
		}
		more := ""
		if n > 3 {
			more = fmt.Sprintf(" and %d more", n-3)
		}
		because("%s%s %s the device open, and the driver does not list %s", strings.Join(who, ", "), more, map[bool]string{true: "has", false: "have"}[n == 1], map[bool]string{true: "it", false: "them"}[n == 1])
	} else if b.host != nil && b.host.OpenersAll {
		because("the driver has not given back the memory of a process that has ended: every process here was looked at, and none that is not listed has the device open")
	}
	if b.host == nil && len(d.Processes) == 0 && !d.NoneSaid {
		because("the tool ran inside a container, whose view has no processes of the machine: its list is empty without saying so")
	}
	if b.host == nil || !b.host.OpenersAll {
		because("a process of another user, container or virtual machine, which the driver does not show here")
		because("a process that has ended, whose memory the driver has not given back: it, or a child of it, still has the device open or waits in the driver")
	}
	look := func(command, what string) {
		r.Look = append(r.Look, incident.HolderCommand{Command: command, For: what})
	}
	where := ""
	if b.host == nil {
		where = ", on that machine"
	} else if b.host.Sees == SeesNamespace {
		where = ", outside of this container"
	}
	look(opened(d.Vendor), "every process that has a device open, of all users"+where)
	if d.Vendor == "amd" {
		look("rocm-smi --showpids verbose", "the processes that the driver knows of"+where)
	} else {
		look("nvidia-smi -q -d PIDS", "every process that the driver lists, those that draw as well"+where)
	}
	look("ps -eo pid,user,stat,lstart,args", "a state of D waits in the driver, Z has ended"+where)
	b.around(look)
	r.Ask = "where these find nobody, the administrator of the machine: only a reset of the device, which ends everything on it, or a restart gives such memory back"
	return r
}

// opened is the command that lists the processes that have a device of a vendor open.
func opened(vendor string) string {
	if vendor == "amd" {
		return "sudo fuser -v /dev/kfd /dev/dri/renderD*"
	}
	return "sudo fuser -v /dev/nvidia*"
}

// around adds the commands that list what else runs on the machine, as far as something says
// that they apply here.
func (b *builder) around(look func(command, what string)) {
	if b.host == nil {
		return
	}
	host := b.host.Self.Host
	named := hostName(host)
	slurm, kube, docker := b.host.Around["SLURM_JOB_ID"] != "", b.host.Around["KUBERNETES_SERVICE_HOST"] != "", false
	for _, p := range b.host.Procs {
		if j := jobOf(p); j != nil && j.Scheduler == "slurm" {
			slurm = true
		}
		if c := containerOf(p.Cgroup); c != nil {
			kube = kube || c.Pod != ""
			docker = docker || c.Pod == "" && c.Runtime == "docker"
		}
	}
	if slurm && named {
		look("squeue -w "+host, "the jobs on this machine and their users")
	}
	if kube {
		look("kubectl get pods -A -o wide", "the pods of each machine; those of this one may hold its devices")
	}
	if docker {
		look("docker ps --no-trunc", "the containers of this machine")
	}
}

// hostName reports whether a name may stand in a command.
func hostName(s string) bool {
	return s != "" && len(s) < 254 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == "" && s[0] != '-'
}

// absence says what is the matter where no tool named a device.
func (b *builder) absence() (status, says string) {
	var hung, failed, confused *Asked
	installed := false
	for i := range b.st.Asked {
		a := &b.st.Asked[i]
		switch a.Answer {
		case NotInstalled:
			continue
		case DidNotAnswer:
			hung = cmp.Or(hung, a)
		case Failed:
			failed = cmp.Or(failed, a)
		case NotUnderstood:
			confused = cmp.Or(confused, a)
		}
		installed = true
	}
	trouble := func(what string) *Trouble {
		for i := range b.st.Troubles {
			if b.st.Troubles[i].What == what {
				return &b.st.Troubles[i]
			}
		}
		return nil
	}
	here := ""
	if b.host != nil {
		here = b.present()
	}
	if t := trouble("driver-library-mismatch"); t != nil {
		return incident.HoldersNoDriver, "the NVIDIA driver that is loaded is of another version than its library, as after an update: the module has to be loaded again, or the machine restarted" + here
	}
	if t := trouble("no-driver"); t != nil {
		if b.host != nil && b.host.Presence.DriverVersion != "" {
			return incident.HoldersNoDriver, "nvidia-smi cannot talk to the NVIDIA driver, though its module is loaded" + here
		}
		return incident.HoldersNoDriver, "nvidia-smi is installed, but the NVIDIA driver is not loaded" + here
	}
	if t := trouble("no-devices"); t != nil {
		if b.host != nil && b.host.Presence.NVIDIA() {
			return incident.HoldersNoDriver, "the NVIDIA driver finds no device it can use" + here
		}
		return incident.HoldersNoDevice, "there is no GPU that can be used here: nvidia-smi finds none" + here
	}
	if t := trouble("nvml-init"); t != nil {
		return incident.HoldersNoDriver, "nvidia-smi cannot reach the NVIDIA driver: " + redact.Text(t.Text) + here
	}
	if len(b.st.Troubles) > 0 {
		return incident.HoldersNoAnswer, "no device was named: " + redact.Text(b.st.Troubles[0].Text) + here
	}
	switch {
	case b.host == nil:
		return incident.HoldersNoAnswer, "nothing of nvidia-smi, amd-smi or rocm-smi that names a device was recognised"
	case hung != nil:
		return incident.HoldersNoAnswer, "the devices could not be asked: " + hung.Tool + " did not answer in time; it, or the driver below it, hangs, or needs longer to start (--wait); what the devices hold is not known" + here
	case failed != nil:
		return incident.HoldersNoAnswer, "the devices could not be asked: " + failed.Tool + " failed: " + redact.Text(failed.Detail) + here
	case confused != nil:
		return incident.HoldersNoAnswer, "the devices could not be asked: " + confused.Tool + " answered with nothing that was understood" + here
	case installed:
		return incident.HoldersNoAnswer, "no tool named a device" + here
	case b.host.Presence.DXG:
		return incident.HoldersNoTool, "the devices are those of Windows (/dev/dxg), and no nvidia-smi was found to ask; it lies in /usr/lib/wsl/lib"
	case b.host.Presence.Any():
		return incident.HoldersNoTool, "none of nvidia-smi, amd-smi and rocm-smi is installed here, so what the devices hold cannot be asked" + here
	case b.host.Sees == SeesNone:
		return incident.HoldersNoDevice, "no GPU was found: none of nvidia-smi, amd-smi and rocm-smi is installed"
	}
	return incident.HoldersNoDevice, "there is no GPU here: no tool of NVIDIA's or AMD's, no device of theirs on the PCI bus, no device file"
}

// present says what the system itself knows of the devices.
func (b *builder) present() string {
	p := &b.host.Presence
	var parts []string
	for _, vendor := range [...]struct{ key, name string }{{"nvidia", "NVIDIA"}, {"amd", "AMD"}} {
		if n := len(p.PCI[vendor.key]); n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s on the PCI bus (%s)", n, vendor.name, listed(p.PCI[vendor.key], 3)))
		}
	}
	if n := len(p.DriverDevices); n > 0 {
		parts = append(parts, fmt.Sprintf("%d known to the driver (%s)", n, p.DriverDevices[0].Name))
	}
	if len(p.Nodes) > 0 {
		parts = append(parts, "device files "+listed(p.Nodes, 3))
	}
	if len(parts) == 0 {
		if b.host.Sees == SeesNone {
			return ""
		}
		return "; the system shows no device of NVIDIA's or AMD's either"
	}
	return "; devices are there: " + strings.Join(parts, ", ")
}

func listed(all []string, n int) string {
	if len(all) <= n {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:n], ", "), len(all)-n)
}

// A claim is what one process holds over all devices.
type claim struct {
	h       *incident.Holder
	vendor  string
	devices []int
	bytes   int64
	known   bool
}

// acts says what may be done about each holder, those of most memory first.
func (b *builder) acts(r *incident.Holders) {
	var order []int
	claims := map[int]*claim{}
	each(r, func(i int, h *incident.Holder) {
		c := claims[h.PID]
		if c == nil {
			c = &claim{h: h, vendor: r.Devices[i].Vendor, known: true}
			claims[h.PID] = c
			order = append(order, h.PID)
		}
		if n := r.Devices[i].Index; n != nil && !slices.Contains(c.devices, *n) {
			c.devices = append(c.devices, *n)
		}
		if h.Bytes == nil {
			c.known = false
		} else {
			c.bytes += *h.Bytes
		}
	})
	asked := map[string]int{} // acts that ask for the holders of one owner
	for _, pid := range order {
		c := claims[pid]
		a, key := b.act(c, claims)
		if a.Kind == "" {
			continue
		}
		a.Devices, a.PIDs = append([]int{}, c.devices...), []int{pid}
		if c.known {
			n := c.bytes
			a.Bytes = &n
		}
		if i, again := asked[key]; again && key != "" {
			join(&r.Acts[i], &a)
			continue
		}
		if key != "" {
			asked[key] = len(r.Acts)
		}
		r.Acts = append(r.Acts, a)
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		if u := d.Unseen; u != nil && u.Lo > 0 {
			lo := u.Lo
			a := incident.HolderAct{Kind: incident.HolderActLook, PIDs: []int{}, Devices: []int{}, Bytes: &lo, Check: u.Look, Do: []incident.HolderCommand{}}
			if d.Index != nil {
				a.Devices = append(a.Devices, *d.Index)
			}
			a.Says = fmt.Sprintf("%s of %s is in use by nobody that is seen; look who has the device open", span(u.Lo, u.Hi), Named(d))
			if n, again := asked["unseen"]; again {
				join(&r.Acts[n], &a)
				r.Acts[n].Says = fmt.Sprintf("memory of devices %s is in use by nobody that is seen; look who has them open", numbers(r.Acts[n].Devices))
				continue
			}
			asked["unseen"] = len(r.Acts)
			r.Acts = append(r.Acts, a)
		}
	}
	for i := range r.Acts {
		if a := &r.Acts[i]; len(a.PIDs) > 1 {
			a.Says += "; the same goes for " + several(len(a.PIDs)-1, "process ", "processes: ")
			if len(a.PIDs) == 2 {
				a.Says = strings.TrimSuffix(a.Says, "1 process ") + "process "
			}
			a.Says += pidList(a.PIDs[1:])
		}
	}
	rank := map[string]int{incident.HolderActEnd: 0, incident.HolderActShut: 1, incident.HolderActAsk: 2, incident.HolderActLook: 3, incident.HolderActLeave: 4}
	slices.SortStableFunc(r.Acts, func(x, y incident.HolderAct) int {
		return cmp.Or(cmp.Compare(rank[x.Kind], rank[y.Kind]), -cmp.Compare(amount(&x), amount(&y)))
	})
}

func amount(a *incident.HolderAct) int64 {
	if a.Bytes == nil {
		return -1
	}
	return *a.Bytes
}

func numbers(n []int) string {
	var out []string
	for _, i := range n {
		out = append(out, strconv.Itoa(i))
	}
	return strings.Join(out, ", ")
}

// join adds what a second act of the same sort is about to the first.
func join(to, a *incident.HolderAct) {
	for _, d := range a.Devices {
		if !slices.Contains(to.Devices, d) {
			to.Devices = append(to.Devices, d)
		}
	}
	slices.Sort(to.Devices)
	if to.Bytes != nil && a.Bytes != nil {
		sum := *to.Bytes + *a.Bytes
		to.Bytes = &sum
	} else {
		to.Bytes = nil
	}
	to.PIDs = append(to.PIDs, a.PIDs...)
	for _, c := range a.Check {
		if !slices.Contains(to.Check, c) && len(to.Check) < 12 {
			to.Check = append(to.Check, c)
		}
	}
}

// act says what may be done about one process. key is the same for those that one act is for.
func (b *builder) act(c *claim, claims map[int]*claim) (a incident.HolderAct, key string) {
	h := c.h
	pid := strconv.Itoa(h.PID)
	a = incident.HolderAct{PID: h.PID, Check: []incident.HolderCommand{}, Do: []incident.HolderCommand{}}
	check := func(command, what string) {
		a.Check = append(a.Check, incident.HolderCommand{Command: command, For: what})
	}
	do := func(command, what string) {
		a.Do = append(a.Do, incident.HolderCommand{Command: command, For: what})
	}
	is := "process " + pid
	if s := Short(h); s != "" {
		is += " (" + s + ")"
	}
	if h.Rank != "" {
		is += ", rank " + h.Rank
	}
	if h.Started != "" {
		is += ", started " + h.Started
	}
	same := func() {
		check("ps -o pid,ppid,stat,lstart,args -p "+pid, "that it is the same one: it began "+orElse(h.Started, "when the list says")+", and its parent is "+strconv.Itoa(h.Parent))
	}
	switch {
	case h.State == incident.HolderDead:
		a.Kind, key = incident.HolderActLook, "dead"
		a.Says = fmt.Sprintf("%s does not exist any more, and its memory is still accounted for: it is given back when the last process that has the device open ends", is)
		check(opened(c.vendor), "what has a device open; a child of it may")
		return a, key
	case h.Whose == incident.HolderNobodys && (b.host == nil || b.host.Sees == SeesNone):
		return a, "" // a saved output, or a system that tells nothing: a limit says so
	case h.Whose == incident.HolderNobodys:
		a.Kind, key = incident.HolderActLook, "hidden"
		a.Says = "whose process " + pid + " is cannot be seen from here; its number counts where the driver runs, which is outside of this container"
		if b.host.Sees != SeesNamespace {
			a.Says = "whose process " + pid + " is cannot be seen from here: " + b.host.Why
		}
		check("ps -o pid,user,stat,lstart,args -p "+pid, "on the machine itself, or as its administrator")
		return a, key
	case h.Whose == incident.HolderOthers:
		return b.ask(c, is)
	}
	// Yours.
	sure := false
	if p := b.host.Procs[h.PID]; p != nil && h.Orphan != "" {
		_, sure = orphanOf(p, h.Kind, b.host.Procs)
	}
	provenHere := b.host.Procs[h.PID] != nil && len(b.host.Procs[h.PID].Open) > 0
	switch {
	case h.State == incident.HolderZombie:
		a.Kind = incident.HolderActLook
		a.Says = fmt.Sprintf("%s has ended; process %d, its parent, has not taken notice, and its memory is given back when it does or ends", is, h.Parent)
		check("ps -o pid,ppid,stat,lstart,args -p "+strconv.Itoa(h.Parent), "what its parent is")
	case h.State == incident.HolderWaiting && h.Orphan != "":
		a.Kind = incident.HolderActLook
		a.Says = is + " waits in the kernel or the driver, where no signal reaches it: it ends, if it was told to, when the driver lets it go; a restart of the machine is for its administrator to decide"
		check("ps -o pid,stat,wchan:32,lstart,args -p "+pid, "whether it still waits (D), and where")
	case h.Orphan != "" && provenHere:
		a.Kind = incident.HolderActEnd
		a.Says = "yours, left over: " + is + "; " + h.Orphan
		if !sure {
			a.Says = "yours, perhaps left over: " + is + "; " + h.Orphan
		}
		same()
		if h.Job != nil && h.Job.Scheduler == "slurm" {
			check("squeue -j "+h.Job.ID, "whether its job still runs")
		}
		what := "asks it to end"
		if !sure {
			what = "asks it to end: only where nobody waits for it"
		}
		do("kill "+pid, what)
		if h.State == incident.HolderStopped {
			do("kill -CONT "+pid, "it is stopped, and acts on that only when it goes on")
		}
	case h.Kind == incident.HolderNotebook:
		a.Kind = incident.HolderActShut
		a.Says = "yours: " + is + " is the kernel of a notebook, and keeps its memory until it is shut down"
		id := ""
		if p := b.host.Procs[h.PID]; p != nil {
			id = kernelOf(p.Args)
		}
		same()
		if id != "" {
			a.Says += "; in Jupyter's list of what is running it is kernel " + id
		}
		do("kill "+pid, "the same as Kernel, Shut Down in the notebook: its variables are lost")
	case h.ChildOf != 0 && claims[h.ChildOf] != nil:
		return incident.HolderAct{}, "" // with what started it
	case h.State == incident.HolderStopped:
		a.Kind = incident.HolderActLook
		a.Says = "yours: " + is + " is stopped; it does nothing and keeps its memory until it goes on"
		same()
		do("kill -CONT "+pid, "lets it go on")
	default:
		a.Kind, key = incident.HolderActLeave, "leave "+h.Kind
		what := map[string]string{
			incident.HolderTraining: "it trains", incident.HolderWorker: "it works for another process", incident.HolderInference: "it serves a model", incident.HolderGraphics: "it draws your desktop",
			incident.HolderMPS: "it is MPS, which others compute through", incident.HolderMonitor: "it watches the devices",
		}[h.Kind]
		if what == "" {
			what = "it runs"
		}
		a.Says = "yours, and " + what + ": " + is
		if h.Service != "" {
			a.Says += "; systemd runs it as " + h.Service
			check("systemctl status "+quoted(h.Service), "what it is for")
		}
	}
	return a, key
}

// quoted is a unit's name as a shell takes it: systemd writes a dash in one as \x2d.
func quoted(name string) string {
	if strings.Contains(name, `\`) {
		return "'" + name + "'"
	}
	return name
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// ask says whom to ask for somebody else's process, and the command that shows more.
func (b *builder) ask(c *claim, is string) (a incident.HolderAct, key string) {
	h := c.h
	a = incident.HolderAct{Kind: incident.HolderActAsk, PID: h.PID, Check: []incident.HolderCommand{}, Do: []incident.HolderCommand{}}
	check := func(command, what string) {
		a.Check = append(a.Check, incident.HolderCommand{Command: command, For: what})
	}
	who := h.User
	key = "ask " + h.User
	if h.Job != nil {
		who += fmt.Sprintf(" (%s job %s)", h.Job.Scheduler, h.Job.ID)
		key += " " + h.Job.Scheduler + h.Job.ID
		switch h.Job.Scheduler {
		case "slurm":
			check("squeue -j "+h.Job.ID, "its user, name, state and time")
		case "pbs":
			check("qstat -f '"+h.Job.ID+"'", "its user, name and state")
		case "lsf":
			check("bjobs -l '"+h.Job.ID+"'", "its user, name and state")
		case "sge":
			check("qstat -j "+h.Job.ID, "its user, name and state")
		case "flux":
			check("flux jobs "+h.Job.ID, "its user, name and state")
		}
	}
	if k := h.Container; k != nil {
		key += " " + k.Pod + k.ID
		id := k.ID[:min(len(k.ID), 12)]
		switch {
		case k.Pod != "":
			who += " (pod " + k.Pod + ")"
			check("kubectl get pods -A -o custom-columns=NAMESPACE:.metadata.namespace,POD:.metadata.name,UID:.metadata.uid | grep "+k.Pod, "the name and namespace of the pod")
		case k.Runtime == "docker" || k.Runtime == "podman":
			who += " (" + k.Runtime + " container " + id + ")"
			check(k.Runtime+" ps --filter id="+id, "the container's name and image")
		case k.Runtime == "containerd" || k.Runtime == "cri-o":
			who += " (container " + id + ")"
			check("sudo crictl ps --id "+id, "the container's name and pod")
		case k.ID != "":
			who += " (" + k.Runtime + " " + redact.Text(k.ID) + ")"
		}
	}
	if h.Service != "" {
		check("systemctl status "+quoted(h.Service), "the service that it is of")
	}
	if strings.HasPrefix(h.User, "uid ") && h.UID != nil {
		check(fmt.Sprintf("getent passwd %d", *h.UID), "the user's name")
	}
	check("ps -o pid,user,stat,lstart,args -p "+strconv.Itoa(h.PID), "what it is")
	a.Says = "ask " + who + ": " + is
	return a, key
}

// limits says what could not be seen.
func (b *builder) limits(r *incident.Holders) {
	limit := func(format string, args ...any) {
		if len(r.Limits) < 40 {
			r.Limits = append(r.Limits, fmt.Sprintf(format, args...))
		}
	}
	if b.host == nil {
		if len(r.Devices) > 0 {
			limit("this is a saved output: whose the processes are, whether they run still, and what may be done about them, only the machine can tell (inquest gpus there)")
		}
	} else if r.Status != incident.HoldersNoDevice && b.host.Sees != SeesAll {
		limit("%s", b.host.Why)
	}
	for _, a := range b.st.Asked {
		if a.Answer == Answered || a.Answer == NotInstalled || len(r.Devices) == 0 {
			continue
		}
		said := ""
		if a.Detail != "" {
			said = ": " + redact.Text(a.Detail)
		}
		limit("%s %s%s", a.Command, a.Answer, said)
	}
	var unlisted, unaccounted, divided, unstated []string
	for i := range r.Devices {
		d := &r.Devices[i]
		at := b.find(d)
		name := strings.TrimPrefix(strings.TrimPrefix(Named(d), "the device "), "device ")
		switch {
		case d.Used == nil:
			unstated = append(unstated, name)
		case at != nil && !at.Listed:
			unlisted = append(unlisted, name)
		case d.Unseen == nil && len(d.Holders) > 0:
			unaccounted = append(unaccounted, name)
		}
		if at != nil && at.MIG && len(d.Slices) == 0 {
			divided = append(divided, name)
		}
	}
	for _, l := range [...]struct {
		of   []string
		text string
	}{
		{unstated, "how much memory is in use is not stated"},
		{unlisted, "no list of processes was had, so how much of the memory in use is seen cannot be told"},
		{unaccounted, "the driver does not account for each process, so whether others hold memory as well cannot be told"},
		{divided, "divided into instances (MIG), and what each of them holds was not stated"},
	} {
		if len(l.of) > 0 {
			of := "device " + l.of[0]
			if len(l.of) > 1 {
				of = "devices " + strings.Join(l.of, ", ")
			}
			limit("%s: %s", of, l.text)
		}
	}
	if n := len(b.st.Unplaced); n > 0 {
		var pids []int
		for _, p := range b.st.Unplaced {
			pids = append(pids, p.PID)
		}
		limit("%s listed without a device that is known: %s", several(n, "process was", "processes were"), pidList(pids))
	}
	if b.host != nil && len(r.Devices) == 0 && len(b.host.Openers) > 0 {
		limit("device files are open in %s; which device each of them uses, and how much it holds, is not known", several(len(b.host.Openers), "process", "processes")+" ("+pidList(b.host.Openers)+")")
	}
	if b.host != nil && b.host.Searched && !b.host.OpenersAll && len(r.Devices) > 0 {
		limit("which processes of other users have a device open can be seen by the administrator only")
	}
}

func (b *builder) find(d *incident.HeldDevice) *Device {
	for i := range b.st.Devices {
		x := &b.st.Devices[i]
		if x.Vendor == d.Vendor && x.UUID == d.UUID && x.BusID == d.BusID && (d.Index == nil && x.Index == None || d.Index != nil && x.Index == *d.Index) {
			return x
		}
	}
	return nil
}

// pidList is the first few of processes.
func pidList(pids []int) string {
	const most = 8
	if n := len(pids) - most; n > 0 {
		return numbers(pids[:most]) + fmt.Sprintf(" and %d more", n)
	}
	return numbers(pids)
}
