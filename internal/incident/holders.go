package incident

// HoldersSchema is the name and version of the result of inquest gpus.
const HoldersSchema = "inquest.holders/v1"

// What became of the question who holds the devices.
const (
	HoldersAnswered = "answered"  // devices were named, with what is known of their memory
	HoldersNoDevice = "no_device" // the machine has none
	HoldersNoTool   = "no_tool"   // there are devices, and no tool that tells of them
	HoldersNoDriver = "no_driver" // a tool is there and cannot reach the driver
	HoldersNoAnswer = "no_answer" // a tool hung, failed, or said nothing that was understood
)

// Kinds of holders.
const (
	HolderTraining  = "training"  // a rank, or a program of a training framework
	HolderNotebook  = "notebook"  // the kernel of a notebook
	HolderWorker    = "worker"    // started by another Python process: a data loader's worker, say
	HolderInference = "inference" // a server of models
	HolderGraphics  = "graphics"  // draws the desktop, or on it
	HolderMPS       = "mps"       // server or control daemon of MPS
	HolderMonitor   = "monitor"   // watches the devices
	HolderCompute   = "compute"   // computes; no more is known
	HolderUnknown   = "unknown"
)

// States of a holder.
const (
	HolderRunning  = "running"
	HolderStopped  = "stopped"  // by a signal or a debugger: it does nothing and keeps its memory
	HolderWaiting  = "waiting"  // in the kernel or driver, where no signal reaches it
	HolderZombie   = "zombie"   // it has ended, and its parent has not taken notice
	HolderDead     = "dead"     // no such process exists, and its memory is still accounted for
	HolderNotShown = "no_state" // not visible from here
)

// Whose a holder is.
const (
	HolderYours   = "yours"
	HolderOthers  = "another_user"
	HolderNobodys = "unknown"
)

// Holders says which process holds how much of which device, whose it is, and what may be
// done about it. Sizes are bytes, and the lower ends of what the tools print, which cut off
// below one MiB. Nothing that it names was done.
type Holders struct {
	Schema  string       `json:"schema"`
	Tool    Tool         `json:"tool"`
	Source  string       `json:"source"` // live, or the path of a saved output
	Taken   string       `json:"taken"`  // RFC 3339, UTC; of a saved output as it states it; "" where not known
	Status  string       `json:"status"`
	Says    string       `json:"says"` // the answer in one sentence
	By      string       `json:"by"`   // the commands that answered
	Driver  string       `json:"driver"`
	Place   HolderPlace  `json:"place"`
	Devices []HeldDevice `json:"devices"` // by vendor and index
	// Strays are contexts that several processes hold on one device beside their own ones.
	Strays []HolderStrays `json:"stray_contexts"`
	Acts   []HolderAct    `json:"acts"` // what may be done, most memory first
	Asked  []HolderTool   `json:"asked"`
	Limits []string       `json:"limits"` // what could not be seen, and why
}

// A HolderPlace is from where the question was asked.
type HolderPlace struct {
	Host      string `json:"host"`      // "" for a saved output
	User      string `json:"user"`      // "" where not known
	Container string `json:"container"` // how it is known that this is one; "" where it is not
	// Processes says how many of the machine's processes can be seen: all, own_namespace,
	// own_user, none.
	Processes string `json:"processes"`
}

// A HolderTool is a command that was run, and what came of it.
type HolderTool struct {
	Command string `json:"command"`
	Answer  string `json:"answer"`
	Detail  string `json:"detail"` // its own words
}

// A HeldDevice is one device, or what is known of it.
type HeldDevice struct {
	Index    *int            `json:"index"` // as its tool counts
	Vendor   string          `json:"vendor"`
	UUID     string          `json:"uuid"`
	BusID    string          `json:"bus_id"`
	Name     string          `json:"name"`
	Total    *int64          `json:"total"`
	Used     *int64          `json:"used"`
	Free     *int64          `json:"free"`
	Slices   []HeldSlice     `json:"slices"`  // MIG instances
	Holders  []Holder        `json:"holders"` // most memory first
	Says     string          `json:"says"`
	Baseline *HolderInterval `json:"baseline"` // what the driver may take for itself of Used; null where Used is not known
	// Unseen is memory in use that no process and no driver accounts for; null where that
	// cannot be told. Its lower end above zero says that there is some.
	Unseen *HolderUnseen `json:"unseen"`
	// Opened are processes that have the device open and that no tool lists: they may hold
	// what is unseen.
	Opened   []Holder `json:"opened"`
	Troubles []string `json:"troubles"` // values that could not be read, messages of the tool
}

// A HolderInterval is a size that is known to lie between two, and how that is known.
type HolderInterval struct {
	Lo    int64  `json:"lo"`
	Hi    int64  `json:"hi"`
	Basis string `json:"basis"`
}

// A HolderUnseen is memory in use that no process accounts for: why that may be, and how to look.
type HolderUnseen struct {
	HolderInterval
	Reasons []string        `json:"reasons"` // likeliest here first
	Look    []HolderCommand `json:"look"`    // in this order
	Ask     string          `json:"ask"`     // whom to ask where that finds nothing
}

// A HolderCommand is printed for somebody to run; it never is.
type HolderCommand struct {
	Command string `json:"command"`
	For     string `json:"for"`
}

// A HeldSlice is a MIG instance.
type HeldSlice struct {
	GPUInstance     *int   `json:"gpu_instance"`
	ComputeInstance *int   `json:"compute_instance"`
	UUID            string `json:"uuid"`
	Total           *int64 `json:"total"`
	Used            *int64 `json:"used"`
}

// A Holder is a process that holds memory of a device.
type Holder struct {
	PID   int    `json:"pid"`
	Bytes *int64 `json:"bytes"` // null where the driver does not account for it
	Slice string `json:"slice"` // MIG instance; "" where it is in none
	Type  string `json:"type"`  // as the tool has it: C compute, G graphics, M+C under MPS
	Name  string `json:"name"`  // as the tool prints it, which cuts
	// Command is the whole command line, secrets masked and bounded; "" where it cannot be read.
	Command string `json:"command"`
	User    string `json:"user"` // name, or "uid N"; "" where not known
	UID     *int   `json:"uid"`
	Started string `json:"started"` // RFC 3339, UTC; "" where not known
	State   string `json:"state"`
	Kind    string `json:"kind"`
	Whose   string `json:"whose"`
	// Basis says how state, kind and whose are known.
	Basis     []string         `json:"basis"`
	Container *HolderContainer `json:"container"` // null where nothing says that it is in one
	Job       *HolderJob       `json:"job"`       // null where nothing names one
	Service   string           `json:"service"`   // the systemd unit that it belongs to; "" where it is none
	Parent    int              `json:"parent"`    // process; 0 where not known
	ChildOf   int              `json:"child_of"`  // another holder that started it; 0 where none did
	Rank      string           `json:"rank"`      // as its environment states; "" where that cannot be read or does not
	Orphan    string           `json:"orphan"`    // how it is known that what started it has ended; "" where it is not
}

// A HolderContainer is the container that a process runs in.
type HolderContainer struct {
	Runtime string `json:"runtime"` // docker, podman, containerd, cri-o, lxc, …
	ID      string `json:"id"`
	Pod     string `json:"pod"` // uid of the Kubernetes pod
	Basis   string `json:"basis"`
}

// A HolderJob is the scheduler's job that a process belongs to.
type HolderJob struct {
	Scheduler string `json:"scheduler"` // slurm, pbs, lsf, …
	ID        string `json:"id"`
	Step      string `json:"step"`
	Basis     string `json:"basis"`
}

// HolderStrays are the contexts that several processes of one job hold on one device while
// each has its own elsewhere.
type HolderStrays struct {
	Device int    `json:"device"`
	Vendor string `json:"vendor"`
	PIDs   []int  `json:"pids"`
	Own    []int  `json:"own"`   // their own devices, in the order of PIDs
	Bytes  *int64 `json:"bytes"` // in all; null where the driver does not account for one
	Says   string `json:"says"`
	Advice string `json:"advice"`
	Entry  string `json:"entry"` // of the encyclopedia
}

// Kinds of acts.
const (
	HolderActEnd   = "end"   // a process of yours that nothing waits for
	HolderActShut  = "shut"  // a notebook's kernel of yours
	HolderActLeave = "leave" // it runs
	HolderActAsk   = "ask"   // somebody else's
	HolderActLook  = "look"  // nobody's that is seen
)

// A HolderAct is what may be done about a holder.
type HolderAct struct {
	Kind    string          `json:"kind"`
	PID     int             `json:"pid"`  // the first of PIDs, 0 where it is about no process
	PIDs    []int           `json:"pids"` // all that it is about
	Devices []int           `json:"devices"`
	Bytes   *int64          `json:"bytes"` // over all devices; null where not known
	Says    string          `json:"says"`
	Check   []HolderCommand `json:"check"` // to be sure first, or to find out whom to ask
	Do      []HolderCommand `json:"do"`    // only then; empty where nothing is advised
}
