package evidence

import (
	"strings"
	"sync"
)

// A Kind names a kind of event. Kinds are declared in Specs and nowhere else.
type Kind string

// A Class is the coarse family of a fault, as the incident states it.
type Class string

const (
	DeviceMemory Class = "device_memory"
	HostMemory   Class = "host_memory"
	SharedMemory Class = "shared_memory"
	Nonfinite    Class = "nonfinite"
	Collective   Class = "collective"
	DeviceFault  Class = "device_fault"
	CUDAError    Class = "cuda_error"
	ProcessExit  Class = "process_exit"
	ExternalStop Class = "external_stop"
	Storage      Class = "storage"
	Environment  Class = "environment"
	Data         Class = "data"
	Code         Class = "code"
	Hang         Class = "hang"
)

// A Role says what an event of a kind can be in the story of a run.
type Role uint8

const (
	RoleContext   Role = iota + 1 // state of the machine or configuration, read beside the run
	RoleProgress                  // the run moved on: launch, phase, finish
	RoleNotice                    // pressure or a benign message; never ends a run
	RoleRecovered                 // a failure that was handled
	RoleFault                     // can start a failure
	RoleStop                      // somebody or something outside ended the run
	RoleEffect                    // normally a consequence of a fault elsewhere
	RoleExit                      // a process ended; says that, not why
)

func (r Role) String() string {
	return [...]string{"invalid", "context", "progress", "notice", "recovered", "fault", "stop", "effect", "exit"}[r]
}

// An AttrSpec declares one attribute of a kind.
type AttrSpec struct {
	Name string
	Type Type
	Doc  string
}

// A Spec declares one kind of event.
type Spec struct {
	Kind  Kind
	Doc   string
	Class Class // of the fault; "" for context, progress and notices
	Role  Role
	// Tie orders faults that the evidence cannot order otherwise (same ten
	// seconds, no basis): smaller first.
	Tie   int
	Attrs []AttrSpec
}

const (
	DeviceOOM        Kind = "device_oom"
	DeviceOOMRaw     Kind = "device_oom_raw"
	LibraryOOM       Kind = "library_oom"
	NCCLOOM          Kind = "nccl_oom"
	ServeStartOOM    Kind = "serve_start_oom"
	PinnedOOM        Kind = "pinned_oom"
	ManagedOOM       Kind = "managed_oom"
	KernelResource   Kind = "kernel_resource"
	OOMRecovered     Kind = "oom_recovered"
	MemPressure      Kind = "mem_pressure"
	MemReport        Kind = "mem_report"
	MemSnapshotted   Kind = "mem_snapshot"
	MemSnapshotOOM   Kind = "mem_snapshot_oom"
	MemFinding       Kind = "mem_finding"
	MemReplay        Kind = "mem_replay"
	MemSummary       Kind = "mem_summary"
	HostOOMKill      Kind = "host_oom_kill"
	HostOOMSched     Kind = "host_oom_sched"
	HostOOMRay       Kind = "host_oom_ray"
	HostAllocFailed  Kind = "host_alloc_failed"
	HostMemReport    Kind = "host_mem_report"
	ShmExhausted     Kind = "shm_exhausted"
	WorkerKilled     Kind = "worker_killed"
	WorkerExited     Kind = "worker_exited"
	NonfiniteValue   Kind = "nonfinite_value"
	NonfiniteNamed   Kind = "nonfinite_named"
	LossOmitted      Kind = "loss_omitted"
	ScaleOverflow    Kind = "scale_overflow"
	ScaleFloor       Kind = "scale_floor"
	AnomalyMode      Kind = "anomaly_mode"
	SDCSuspected     Kind = "sdc_suspected"
	NumericWarning   Kind = "numeric_warning"
	Xid              Kind = "xid"
	SXid             Kind = "sxid"
	ECCError         Kind = "ecc_error"
	LinkError        Kind = "link_error"
	DeviceLost       Kind = "device_lost"
	CUDAFault        Kind = "cuda_fault"
	CUDAAssert       Kind = "cuda_assert"
	DeviceConfig     Kind = "device_config"
	LibraryFailed    Kind = "library_failed"
	CollTimeout      Kind = "collective_timeout"
	CollState        Kind = "collective_state"
	CollRecord       Kind = "collective_record"
	PeerClosed       Kind = "peer_closed"
	CollDesync       Kind = "collective_desync"
	CollMisuse       Kind = "collective_misuse"
	CollTeardown     Kind = "collective_teardown"
	StoreError       Kind = "store_error"
	RendezvousFailed Kind = "rendezvous_failed"
	PortInUse        Kind = "port_in_use"
	NetworkFault     Kind = "network_fault"
	Stall            Kind = "stall"
	RankPhase        Kind = "rank_phase"
	Exception        Kind = "exception"
	NativeCrash      Kind = "native_crash"
	Exited           Kind = "process_exit"
	LauncherSummary  Kind = "launcher_summary"
	LauncherStop     Kind = "launcher_stop"
	WrapperError     Kind = "wrapper_error"
	TimeLimit        Kind = "time_limit"
	Preempted        Kind = "preempted"
	Cancelled        Kind = "cancelled"
	NodeFailure      Kind = "node_failure"
	Interrupted      Kind = "interrupted"
	SignalReceived   Kind = "signal_received"
	DiskFull         Kind = "disk_full"
	DiskQuota        Kind = "disk_quota"
	WriteFailed      Kind = "write_failed"
	CheckpointBad    Kind = "checkpoint_bad"
	FileSystem       Kind = "file_system"
	NetworkRead      Kind = "network_read"
	MissingDep       Kind = "missing_dependency"
	AccessDenied     Kind = "access_denied"
	VersionClash     Kind = "version_clash"
	FDLimit          Kind = "fd_limit"
	ShapeMismatch    Kind = "shape_mismatch"
	IndexRange       Kind = "index_out_of_range"
	BadConfig        Kind = "bad_config"
	LaunchMark       Kind = "launch"
	ResumeMark       Kind = "resume"
	PhaseMark        Kind = "phase"
	Finished         Kind = "run_finished"
	CheckpointSaved  Kind = "checkpoint_saved"
	RankInfo         Kind = "rank_info"
	GPUUsage         Kind = "gpu_usage"
	GPUProcess       Kind = "gpu_process"
	GPUHealth        Kind = "gpu_health"
	DeviceTest       Kind = "device_test"
	ProcessStack     Kind = "process_stack"
	HostProcess      Kind = "host_process"
	DiskUsage        Kind = "disk_usage"
	QuotaUsage       Kind = "quota_usage"
	JobRecord        Kind = "job_record"
	NodeState        Kind = "node_state"
	JobEvent         Kind = "job_event"
	CommCreated      Kind = "comm_created"
	BatchShape       Kind = "batch_shape"
	Embedded         Kind = "embedded_table"
	TrackerRun       Kind = "tracker_run"
)

var (
	attrRank   = AttrSpec{"rank", Int, "global rank, when the text names it"}
	attrPID    = AttrSpec{"pid", Int, "process id"}
	attrGPU    = AttrSpec{"gpu", Int, "device index as that process sees it"}
	attrCode   = AttrSpec{"code", Int, "exit code or error number"}
	attrSignal = AttrSpec{"signal", Int, "signal number"}
	attrWhat   = AttrSpec{"what", Text, "short name of the variant, see the line file"}
	attrUUID   = AttrSpec{"uuid", Text, "of the device or MIG instance, as the driver names it"}
	attrHost   = AttrSpec{"host", Text, "host name, when the text names it"}
)

// Specs is the one list of event kinds. Readers emit only what it declares, and
// the catalogue refuses an entry or wording that names anything else. Identity
// attributes (rank, local_rank, device, host, pid, bus_id) may be captured by a
// wording of any kind: the reader moves them into Who.
var Specs = [...]Spec{
	// Device memory.
	{DeviceOOM, "a framework's device allocator refused a request, with its figures", DeviceMemory, RoleFault, 30, []AttrSpec{
		{"backend", Text, "cuda, hip, xpu, npu, mps, musa, mlu, xla, tensorflow, cupy, onnxruntime, tensorrt, ggml, paddle"},
		{"form", Text, "A, B, B', C, D, E, F, async, snapshot (from the history of one alone), or the emitter's own"},
		{"requested", Size, "bytes asked for"}, {"capacity", Size, "bytes of the device"}, {"free", Size, "bytes free on the device, all processes"},
		{"allocated", Size, "bytes in live tensors of this process"}, {"reserved", Size, "bytes held by the allocator"},
		{"unallocated", Size, "reserved but not allocated"}, {"private_pools", Size, "free bytes in private pools"},
		{"allowed", Size, "limit set for this process"}, {"this_process", Size, "all device memory of this process, from NVML"},
		{"other_processes", Size, "sum over the other processes listed"}, {"processes", Int, "number of processes listed"},
		{"unlisted_process", Bool, "only foreign-looking pids are listed, none as this process"},
		attrGPU, {"retried", Bool, "the text says that a retry with less follows"},
		{"where", Text, "compile, runtime, startup"}, {"operator", Text, "operator or buffer named as largest"}}},
	{DeviceOOMRaw, "the driver or runtime refused device memory outside a framework's allocator; no figures", DeviceMemory, RoleFault, 30, []AttrSpec{attrWhat, attrGPU, {"requested", Size, "bytes asked for, when printed"}}},
	{LibraryOOM, "a CUDA library could not get memory for its handle or workspace", DeviceMemory, RoleFault, 31, []AttrSpec{{"library", Text, "cublas, cudnn, cusparse, cusolver, cufft"}, attrWhat, {"certain", Bool, "false where the status has other meanings too"}}},
	{NCCLOOM, "NCCL could not get device memory", DeviceMemory, RoleFault, 30, []AttrSpec{attrWhat, {"requested", Size, "bytes asked for"}, attrGPU}},
	{ServeStartOOM, "an inference engine's start-up memory budget does not fit", DeviceMemory, RoleFault, 30, []AttrSpec{attrWhat, {"free", Size, ""}, {"capacity", Size, ""}, {"wanted", Size, "bytes wanted at start"}, {"fraction", Float, "configured fraction of the device"}, {"kv_needed", Size, "KV cache needed"}, {"kv_available", Size, "KV cache available"}, {"max_len", Int, "configured longest sequence"}}},
	{PinnedOOM, "page-locked host memory was refused", HostMemory, RoleFault, 32, []AttrSpec{attrWhat}},
	{ManagedOOM, "managed (unified, paged) memory was refused", DeviceMemory, RoleFault, 32, []AttrSpec{attrWhat}},
	{KernelResource, "one kernel needs more on-chip memory, registers or threads than the device has; not device memory", CUDAError, RoleFault, 50, []AttrSpec{attrWhat, {"required", Int, ""}, {"limit", Int, ""}}},
	{OOMRecovered, "out of memory was caught and handled by the framework or user code", DeviceMemory, RoleRecovered, 0, []AttrSpec{attrWhat, {"from", Int, "batch before"}, {"to", Int, "batch after"}}},
	{MemPressure, "the allocator works near its limit (retries, cache flushes); not a failure", "", RoleNotice, 0, []AttrSpec{attrWhat, {"count", Int, ""}}},
	{MemReport, "device memory figures printed by the run", "", RoleContext, 0, []AttrSpec{attrWhat, {"allocated", Size, ""}, {"reserved", Size, ""}, {"free", Size, ""}, {"capacity", Size, ""}, {"peak_allocated", Size, ""}, {"peak_reserved", Size, ""}}},
	{MemSnapshotted, "a memory snapshot or memory timeline of one device, at the moment when it was taken", "", RoleContext, 0, []AttrSpec{attrGPU, {"form", Text, "dict, segments, trace_plot, timeline"}, {"segments", Int, ""}, {"blocks", Int, ""}, {"events", Int, "entries of its history; of a timeline: states"}, {"ooms", Int, "entries that record a failure"},
		{"reserved", Size, "bytes of the segments"}, {"allocated", Size, "bytes in live blocks"}, {"active", Size, "allocated, and freed but still awaited by a stream; of a timeline: at its last state"}, {"requested", Size, "bytes asked for, of the active ones"}, {"peak", Size, "of a timeline: most bytes alive"}, {"cut", Bool, "the file is damaged: what follows in it is unknown"}}},
	{MemSnapshotOOM, "the history in a memory snapshot records that a request failed", "", RoleContext, 0, []AttrSpec{attrGPU, {"requested", Size, "bytes of the block, rounded"}, {"free", Size, "bytes free on the device, all processes"}, {"reserved", Size, "bytes of the segments at that moment"}, {"event", Int, "index in the device's history"}, {"last", Bool, "the history ends with it, save for frees and other failures"}}},
	{MemFinding, "what the history in a memory snapshot shows of one declared fact", "", RoleContext, 0, []AttrSpec{attrGPU, {"fact", Text, "declared fact"}, {"holds", Bool, "its value, where it is a yes or no"}, {"bytes", Size, "its value, or what it is about"}, {"number", Float, "its value"}, {"words", Text, "its value"}}},
	{MemReplay, "the history in a memory snapshot, run through the simulated allocator", "", RoleContext, 0, []AttrSpec{attrGPU, {"faithful", Bool, "under the recorded settings it repeats the record within tolerance"}, {"why", Text, "what is out of tolerance, or that nothing is"},
		{"event", Int, "the refused request that it is about, as an index in the device's history"}, {"room", Size, "what the allocator could have in all"}, {"fits", Bool, "what was in use and the request are within the room"}, {"in_use", Size, "then"}, {"request", Size, "rounded"}, {"largest_free", Size, "block then"},
		{"expandable", Text, "avoided, not_avoided or cannot_tell: with expandable segments"}, {"expandable_peak", Size, "most reserved then"}, {"avoided_by", Text, "setting under which it does not run out; empty where none of those tried is"}, {"margin", Size, "room less the peak then"}}},
	{MemSummary, "the counters of PyTorch's allocator for one device, as memory_summary or memory_stats prints them", "", RoleContext, 0, []AttrSpec{{"what", Text, "summary (the table) or stats"}, attrGPU,
		{"allocated", Size, "in live tensors, rounded"}, {"peak_allocated", Size, ""}, {"active", Size, "allocated, and freed blocks that another stream may still use"}, {"peak_active", Size, ""},
		{"requested", Size, "as asked for, before rounding"}, {"peak_requested", Size, ""}, {"reserved", Size, "held from the driver"}, {"peak_reserved", Size, ""},
		{"inactive", Size, "free, in segments that are partly in use: inactive_split, non-releasable"}, {"peak_inactive", Size, ""},
		{"retries", Int, "times that the cache was flushed to try again"}, {"ooms", Int, "requests refused"}}},

	// Host and shared memory.
	{HostOOMKill, "the kernel's OOM killer ended a process", HostMemory, RoleFault, 20, []AttrSpec{attrPID, {"name", Text, "process name, at most 15 bytes"}, {"constraint", Text, "memcg, none, cpuset"}, {"rss", Size, "anonymous resident bytes"}, {"shmem", Size, "shared resident bytes"}, {"group", Text, "control group whose limit was reached"}, {"limit", Size, "of that group"}, {"used", Size, "by that group"}, {"invoker", Text, "process whose request could not be met"}, {"tasks", Int, "processes in the table printed"}, {"largest", Text, "largest process of that table"}, {"largest_pid", Int, ""}, {"largest_rss", Size, ""}, attrWhat}},
	{HostOOMSched, "scheduler, container runtime or service manager reports a host-memory kill", HostMemory, RoleFault, 20, []AttrSpec{attrWhat, {"limit", Size, ""}, {"used", Size, ""}, {"task", Int, "srun task id"}, {"count", Int, "kills reported"}}},
	{HostOOMRay, "Ray's memory monitor ended a worker because the node ran low on host memory", HostMemory, RoleFault, 20, []AttrSpec{attrPID, {"limit", Size, "node memory"}, {"used", Size, "node memory in use"}, {"process_used", Size, "memory of the ended worker"}}},
	{HostAllocFailed, "the process could not get host memory", HostMemory, RoleFault, 33, []AttrSpec{attrWhat, {"requested", Size, ""}}},
	{HostMemReport, "host memory figures printed by the run or beside it", "", RoleContext, 0, []AttrSpec{attrWhat, {"used", Size, ""}, {"limit", Size, ""}, {"by", Text, "what the limit is of, where it is known: host, cgroup"}, {"shm", Size, ""}, {"rss", Size, ""}}},
	{ShmExhausted, "the shared-memory mount is full", SharedMemory, RoleFault, 21, []AttrSpec{attrWhat, {"requested", Size, ""}, {"by", Text, "dataloader, nccl, torch"}}},
	{WorkerKilled, "a data-loader worker was ended by a signal", ProcessExit, RoleFault, 40, []AttrSpec{attrPID, attrSignal, attrWhat}},
	{WorkerExited, "a data-loader worker went away, reason not stated", ProcessExit, RoleEffect, 60, []AttrSpec{attrPID}},

	// Numerics.
	{NonfiniteValue, "a logged loss, gradient norm or other training metric is not finite, or is provably a replaced non-finite value", Nonfinite, RoleFault, 35, []AttrSpec{{"metric", Text, "loss, grad_norm, eval_loss, ..."}, {"value", Text, "as printed"}, {"trust", Text, "raw, filtered, omitted, smoothed"}, {"hidden", Bool, "the emitter replaced the value"}, {"tracker", Text, "that recorded it; none where it stands in a log"}}},
	{NonfiniteNamed, "a guard says in words that a value is not finite", Nonfinite, RoleFault, 34, []AttrSpec{attrWhat, {"where", Text, "module, operator, parameter or bucket named"}, {"iteration", Int, ""}, attrRank}},
	{LossOmitted, "Megatron-style step line whose loss field vanished", Nonfinite, RoleFault, 35, []AttrSpec{{"metric", Text, ""}, {"value", Text, ""}}},
	{ScaleOverflow, "the loss scaler skipped a step; normal while it searches for its scale", Nonfinite, RoleNotice, 0, []AttrSpec{{"from", Float, "scale before"}, {"to", Float, "scale after"}}},
	{ScaleFloor, "the loss scale reached its minimum: gradients stay non-finite", Nonfinite, RoleFault, 35, []AttrSpec{{"scale", Float, ""}}},
	{AnomalyMode, "autograd anomaly detection is on", "", RoleContext, 0, nil},
	{SDCSuspected, "recomputation on the same data gave another result: suspect hardware", DeviceFault, RoleFault, 12, []AttrSpec{attrWhat, attrRank}},
	{NumericWarning, "a warning that names a numerical hazard (degenerate std, empty slice, invalid value)", "", RoleNotice, 0, []AttrSpec{attrWhat}},

	// Devices.
	{Xid, "NVIDIA driver fault code", DeviceFault, RoleFault, 10, []AttrSpec{{"xid", Int, "code"}, {"severity", Text, "hardware, application, consequence, notice, driver, link"}, attrPID, {"name", Text, "process name, at most 15 bytes"}, {"detail", Text, ""}}},
	{SXid, "NVSwitch fault code", DeviceFault, RoleFault, 11, []AttrSpec{{"sxid", Int, "code"}, {"severity", Text, "fatal, nonfatal"}}},
	{ECCError, "uncorrectable ECC error reported by the CUDA runtime or nvidia-smi", DeviceFault, RoleFault, 10, []AttrSpec{attrWhat}},
	{LinkError, "NVLink, InfiniBand or PCIe link error", DeviceFault, RoleFault, 13, []AttrSpec{attrWhat}},
	{DeviceLost, "the device fell off the bus or cannot be reached", DeviceFault, RoleFault, 10, []AttrSpec{attrWhat}},
	{CUDAFault, "a kernel fault poisoned the CUDA context (illegal access, misaligned address, launch failure)", CUDAError, RoleFault, 41, []AttrSpec{attrWhat, attrCode}},
	{CUDAAssert, "a device-side assertion failed", CUDAError, RoleFault, 40, []AttrSpec{attrWhat, {"condition", Text, "the asserted expression"}, {"kernel", Text, "source file of the kernel"}}},
	{DeviceConfig, "the devices, driver or build do not fit the program", Environment, RoleFault, 45, []AttrSpec{attrWhat}},
	{LibraryFailed, "a CUDA library call failed; often a second report of an earlier fault", CUDAError, RoleFault, 55, []AttrSpec{{"library", Text, ""}, attrWhat}},

	// Collectives.
	{CollTimeout, "a rank gave up waiting for its peers in a collective", Collective, RoleEffect, 70, []AttrSpec{attrRank, {"group", Text, "process group"}, {"seq", Int, "sequence number"}, {"op", Text, ""}, {"numel_in", Int, ""}, {"timeout_ms", Int, ""}, {"ran_ms", Int, ""}}},
	{CollState, "a watchdog states the last enqueued and completed work", Collective, RoleNotice, 0, []AttrSpec{attrRank, {"group", Text, ""}, {"work", Int, ""}, {"last_enqueued", Int, ""}, {"last_completed", Int, ""}}},
	{CollRecord, "a flight recorder's dump says where a rank is in a process group", "", RoleContext, 0, []AttrSpec{{"group", Text, "name"}, {"desc", Text, "what the program calls it"}, {"members", Text, "global ranks, as 0-3,6"},
		{"enqueued", Int, "highest collective recorded"}, {"completed", Int, "collectives completed up to this one"}, {"completed_ns", Int, "when that was noticed, nanoseconds since 1970 by the host's clock"}, {"last_enqueued", Int, "last work enqueued, of either sort; -1 for none"}, {"last_started", Int, ""}, {"last_completed", Int, ""},
		{"seq", Int, "of the oldest call that is not completed"}, {"record", Int, "its number in the record of all groups"}, {"op", Text, ""}, {"state", Text, "scheduled, started"}, {"timeout_ms", Int, ""},
		{"calls", Text, "recorded collectives around it: seq op in out types state ms; ..."}, {"waits", Text, "sends and receives not completed: verb rank seq record; ..."}, {"p2p", Bool, "sends or receives are recorded"}, {"cut", Bool, "the dump is damaged: what follows in it is unknown"}}},
	{PeerClosed, "a peer vanished: connection closed or reset, remote process exited", Collective, RoleEffect, 72, []AttrSpec{attrWhat, {"peer", Text, "host or local rank named"}}},
	{CollDesync, "ranks issued different collectives", Collective, RoleFault, 48, []AttrSpec{attrWhat}},
	{CollMisuse, "collective library used wrongly (duplicate device, mixed versions)", Collective, RoleFault, 46, []AttrSpec{attrWhat}},
	{CollTeardown, "a process ends itself because a collective failed elsewhere", Collective, RoleEffect, 75, []AttrSpec{attrWhat, attrRank}},
	{StoreError, "the rendezvous store cannot be reached", Collective, RoleEffect, 73, []AttrSpec{attrWhat}},
	{RendezvousFailed, "not all workers met at start", Collective, RoleFault, 58, []AttrSpec{attrWhat, {"joined", Int, ""}, {"expected", Int, ""}}},
	{PortInUse, "the port is taken on that host", Environment, RoleFault, 44, []AttrSpec{{"port", Int, ""}}},
	{NetworkFault, "a network device or fabric reports a fault", Collective, RoleFault, 47, []AttrSpec{attrWhat}},
	{Stall, "silence much longer than the step time, or a hang probe", Hang, RoleFault, 65, []AttrSpec{{"seconds", Float, "silence"}, {"step_seconds", Float, "median step"}, {"name", Text, "task, where the kernel names one"}}},
	{RankPhase, "one rank alone does work that the others wait for (validation, preprocessing, saving)", Hang, RoleNotice, 0, []AttrSpec{attrRank, attrWhat, {"count", Int, "items"}, {"seconds", Float, "duration stated"}, {"ends", Bool, "the line says that it is over"}, {"waits", Bool, "a rank says that it waits for the main process to do it"}, {"done", Int, "items done, as a progress bar counts"}, {"elapsed", Text, "time since its begin, as a progress bar prints it"}}},

	// Processes.
	{Exception, "an uncaught Python exception that no wording claims", Code, RoleFault, 52, []AttrSpec{{"type", Text, "exception type, qualified as printed"}, {"message", Text, ""}, {"thread", Text, ""}}},
	{NativeCrash, "the process crashed in native code (segmentation fault, abort, heap corruption)", ProcessExit, RoleFault, 56, []AttrSpec{attrWhat, attrSignal, {"name", Text, "task, where the kernel names one"}}},
	{Exited, "a process ended with a code or signal", ProcessExit, RoleExit, 80, []AttrSpec{attrCode, attrSignal, attrPID, {"local_rank", Int, ""}, {"task", Int, "srun task"}, attrWhat}},
	{LauncherSummary, "a launcher's summary row of one failed worker; 'first observed' is a hint only", ProcessExit, RoleExit, 85, []AttrSpec{attrRank, {"local_rank", Int, ""}, attrCode, attrSignal, attrPID, {"first_observed", Bool, ""}, {"has_error_file", Bool, ""}}},
	{LauncherStop, "the launcher stops a worker", ProcessExit, RoleEffect, 90, []AttrSpec{attrPID, attrSignal}},
	{WrapperError, "a wrapper's own error that points at another one above", ProcessExit, RoleEffect, 88, []AttrSpec{attrWhat}},

	// Outside.
	{TimeLimit, "the scheduler ended the job at its time limit", ExternalStop, RoleStop, 57, []AttrSpec{attrWhat}},
	{Preempted, "preemption, requeue or spot termination", ExternalStop, RoleStop, 57, []AttrSpec{attrWhat}},
	{Cancelled, "the scheduler cancelled the step; reason not stated", ExternalStop, RoleEffect, 76, []AttrSpec{attrWhat, {"by", Text, "user who cancelled, as the scheduler names him"}}},
	{NodeFailure, "the scheduler reports a failed node", ExternalStop, RoleStop, 57, []AttrSpec{attrWhat, attrHost}},
	{Interrupted, "a person interrupted the run (keyboard)", ExternalStop, RoleStop, 58, []AttrSpec{attrWhat}},
	{SignalReceived, "the process or its launcher was told to stop by a signal; sender unknown", ExternalStop, RoleStop, 59, []AttrSpec{attrSignal, attrWhat}},

	// Storage and environment.
	{DiskFull, "no space left on a disk", Storage, RoleFault, 42, []AttrSpec{{"path", Text, ""}}},
	{DiskQuota, "a quota is used up", Storage, RoleFault, 42, []AttrSpec{{"path", Text, ""}}},
	{WriteFailed, "writing a file failed, reason not stated", Storage, RoleFault, 43, []AttrSpec{attrWhat, {"path", Text, ""}}},
	{CheckpointBad, "a checkpoint cannot be read or does not fit the model", Storage, RoleFault, 43, []AttrSpec{attrWhat, {"path", Text, ""}}},
	{FileSystem, "a file system failed (stale handle, input/output error, not connected)", Storage, RoleFault, 43, []AttrSpec{attrWhat, {"path", Text, ""}}},
	{NetworkRead, "a download or service could not be reached", Environment, RoleFault, 54, []AttrSpec{attrWhat, attrCode}},
	{MissingDep, "a module, library or symbol is missing", Environment, RoleFault, 44, []AttrSpec{attrWhat, {"name", Text, ""}}},
	{AccessDenied, "permission or authorisation refused", Environment, RoleFault, 44, []AttrSpec{attrWhat, {"path", Text, ""}}},
	{VersionClash, "two components were built for different versions", Environment, RoleFault, 44, []AttrSpec{attrWhat}},
	{FDLimit, "a process limit (open files, threads) is reached", Environment, RoleFault, 44, []AttrSpec{attrWhat}},
	{ShapeMismatch, "tensor shapes, types or devices do not fit", Code, RoleFault, 50, []AttrSpec{attrWhat}},
	{IndexRange, "an index or label is out of range, seen on the host", Data, RoleFault, 49, []AttrSpec{attrWhat}},
	{BadConfig, "a setting is invalid", Code, RoleFault, 50, []AttrSpec{attrWhat}},

	// Progress.
	{LaunchMark, "a launch begins: shell command, launcher line, training banner, restart", "", RoleProgress, 0, []AttrSpec{attrWhat, {"command", Text, ""}, {"restart", Int, ""}}},
	{ResumeMark, "the run continues from a checkpoint", "", RoleProgress, 0, []AttrSpec{{"path", Text, ""}, {"step", Int, ""}}},
	{PhaseMark, "the run enters a phase", "", RoleProgress, 0, []AttrSpec{{"phase", Text, "load, setup, train, evaluation, checkpoint, generation, compile, optimizer, end"}, {"path", Text, "where a checkpoint is being written"}}},
	{Finished, "the run says that it is complete", "", RoleProgress, 0, []AttrSpec{attrWhat}},
	{CheckpointSaved, "a checkpoint was written", "", RoleProgress, 0, []AttrSpec{{"path", Text, ""}, {"step", Int, ""}}},
	{RankInfo, "maps a rank to host, device or pid", "", RoleContext, 0, []AttrSpec{attrRank, {"local_rank", Int, ""}, attrPID, attrGPU, attrHost, {"world", Int, ""}, {"peers", Int, "other ranks of its group"}, {"physical", Int, "device index on the host, as nvidia-smi counts"}, {"joined", Bool, "it has joined the communicator of all ranks"}}},

	// The machine beside the run.
	{GPUUsage, "used and total memory of one device", "", RoleContext, 0, []AttrSpec{attrGPU, {"used", Size, ""}, {"total", Size, ""}, {"free", Size, ""}, {"util", Float, "per cent"}, {"name", Text, ""}, {"no_processes", Bool, "the table lists no process at all"}, attrUUID,
		{"slice", Text, "the MIG instance that the figures are of"}, {"mig", Text, "MIG mode: Enabled, Disabled"}, {"persistence", Bool, ""}, {"temp", Float, "degrees Celsius"}, {"temp_memory", Float, "degrees Celsius"}, {"power", Float, "watts"}, {"power_cap", Float, "watts"},
		{"ecc_volatile", Int, "errors that could not be corrected since the driver was loaded"}, {"ecc_aggregate", Int, "the same over the life of the board"}, {"links", Text, "how it reaches the other devices, as topo -m names it"}}},
	{GPUProcess, "a process and the device memory it holds", "", RoleContext, 0, []AttrSpec{attrPID, attrGPU, {"used", Size, ""}, {"name", Text, ""}, attrUUID}},
	{GPUHealth, "a counter of a device that is not zero, or a state that is not as it should be; the past of the device, or its present", "", RoleContext, 0, []AttrSpec{{"what", Text, "ecc-volatile-uncorrectable, ecc-aggregate-uncorrectable, remap-pending, remap-failure, retire-pending, throttle-hw-thermal, unreadable, reset-required, nvlink-inactive, ..."}, attrGPU, attrUUID, {"count", Int, "where it is a counter"}, {"value", Text, "as printed"}}},
	{DeviceTest, "the result of one device test (dcgmi diag)", "", RoleContext, 0, []AttrSpec{{"name", Text, "of the test"}, {"result", Text, "pass, fail, warn, skip"}, attrGPU, {"detail", Text, "what the test says of it"}}},
	{ProcessStack, "where a thread of a process stood at a moment (py-spy dump, faulthandler); its Stack holds the innermost frames", "", RoleContext, 0, []AttrSpec{{"what", Text, "py-spy, faulthandler"}, {"thread", Text, "its name"}, {"state", Text, "active, idle, current, as printed"}, {"main", Bool, "the thread that began the process"}, {"top", Text, "innermost function"}}},
	{HostProcess, "a row of ps", "", RoleContext, 0, []AttrSpec{attrPID, {"ppid", Int, ""}, {"elapsed", Int, "seconds"}, {"state", Text, ""}, {"command", Text, ""}, {"rss", Size, ""}}},
	{DiskUsage, "a row of df", "", RoleContext, 0, []AttrSpec{{"mount", Text, ""}, {"size", Size, ""}, {"used", Size, ""}, {"avail", Size, ""}, {"percent", Int, ""}}},
	{QuotaUsage, "a row of quota", "", RoleContext, 0, []AttrSpec{{"mount", Text, ""}, {"used", Size, ""}, {"quota", Size, ""}, {"limit", Size, ""}, {"exceeded", Bool, ""}}},
	{JobRecord, "a row of the scheduler's accounting or of its job script", "", RoleContext, 0, []AttrSpec{{"job", Text, ""}, {"state", Text, ""}, attrCode, attrSignal, {"max_rss", Size, ""}, {"req_mem", Size, ""}, {"limit", Text, "time limit"}, {"reason", Text, ""}, {"nodes", Text, "host list, as printed"}, {"task", Int, "task of max_rss"}, {"restarts", Int, ""}}},
	{JobEvent, "a row of the orchestrator's event list, or a condition of a pod or job", "", RoleContext, 0, []AttrSpec{{"object", Text, "kind/name"}, {"reason", Text, ""}, {"state", Text, "Normal, Warning, or a condition and its status"}, {"count", Int, "how often"}, {"nodes", Text, "the node that a pod was assigned to"}}},
	{NodeState, "what the scheduler says of a host: down, drained, not ready, under pressure", "", RoleContext, 0, []AttrSpec{{"state", Text, ""}, {"reason", Text, ""}, {"nodes", Text, "host list, as printed"}}},
	{CommCreated, "a communicator was created", "", RoleContext, 0, []AttrSpec{{"nranks", Int, "its size"}}},
	{Embedded, "a table of the machine (nvidia-smi, df, ps, ...) begins inside a job log", "", RoleContext, 0, []AttrSpec{attrWhat}},
	{TrackerRun, "a run as an experiment tracker's files record it, at its newest point", "", RoleContext, 0, []AttrSpec{{"tracker", Text, "tensorboard, wandb, mlflow, trackio, ..."}, {"id", Text, "the tracker's own"}, {"folder", Text, "of the run or of the store"}, {"writer", Text, "who of several wrote it"},
		{"status", Text, "finished, failed, killed, crashed, running-or-dead, unknown"}, {"said", Text, "the tracker's own word for it"}, attrCode, {"keeps", Text, "what it makes of values that are not finite: kept, clamped, zeroed, dropped, replaced"},
		{"series", Int, ""}, {"points", Int, "of all series of the training"}, {"last_step", Int, "highest step of those"}, {"damaged", Int, "damaged parts"}}},
	{BatchShape, "the shape of one batch (lengths, sentences, tokens)", "", RoleContext, 0, []AttrSpec{{"length", Int, "longest sequence"}, {"count", Int, "samples"}, {"tokens", Int, ""}, {"batch", Int, "batch ordinal"}}},
}

var byKind = sync.OnceValue(func() map[Kind]*Spec {
	m := make(map[Kind]*Spec, len(Specs))
	for i := range Specs {
		m[Specs[i].Kind] = &Specs[i]
	}
	return m
})

// SpecOf returns the declaration of k, or nil if it is not declared.
func SpecOf(k Kind) *Spec { return byKind()[k] }

// Attr returns the declaration of attribute n of s, or nil.
func (s *Spec) Attr(n string) *AttrSpec {
	for i := range s.Attrs {
		if s.Attrs[i].Name == n {
			return &s.Attrs[i]
		}
	}
	return nil
}

// DeviceMemory reports whether k is a failure to get device memory.
func (k Kind) DeviceMemory() bool {
	switch k {
	case DeviceOOM, DeviceOOMRaw, LibraryOOM, NCCLOOM, ServeStartOOM, ManagedOOM:
		return true
	}
	return false
}

// kernelCrash reports whether e is the kernel's own record of a crash, which names the task.
func kernelCrash(e *Event) bool {
	if e.Kind != NativeCrash {
		return false
	}
	_, named := e.Attrs["name"]
	return named || strings.HasPrefix(e.Attrs.Str("what"), "kernel-")
}

// SameCrash reports whether the kernel records at kernel the crash that log tells of: one
// process, one signal, and no two hosts.
func SameCrash(log, kernel *Event) bool {
	if !kernelCrash(kernel) || kernelCrash(log) {
		return false
	}
	pid := func(e *Event) int64 {
		if v, ok := e.Attrs["pid"]; ok {
			return v.I
		}
		return int64(e.Who.PID)
	}
	if p := pid(log); p <= 0 || p != pid(kernel) {
		return false
	}
	a, b := log.Attrs["signal"].I, kernel.Attrs["signal"].I
	return (a == 0 || b == 0 || a == b) && (log.Who.Host == "" || kernel.Who.Host == "" || SameHost(log.Who.Host, kernel.Who.Host))
}

// SameHost reports whether two names can be one host's, with and without its domain.
func SameHost(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}
