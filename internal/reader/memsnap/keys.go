package memsnap

// Indices in texts of the keys that mean something. They are entered first.
const (
	kSegments = 1 + iota
	kDeviceTraces
	kSettings
	kAnnotations
	kDevice
	kAddress
	kTotalSize
	kAllocatedSize
	kActiveSize
	kRequestedSize
	kStream
	kSegmentType
	kSegmentPool
	kIsExpandable
	kFrames
	kBlocks
	kSize
	kState
	kHistory
	kAddr
	kRealSize
	kName
	kFilename
	kLine
	kAction
	kDeviceFree
	kTime
	kCategory
	kContext
	kUser
	kPool
	kStage
	kConf
	kConfNew
	kMaxSplit
	kMaxCached
	kThreshold
	kExpandable
	kRoundup
	kOverflowed
	kMaxEntries
	keys // how many, with 0 for the empty string
)

// Words that values have.
const (
	wAlloc         = keys + iota // actions, in the order of evidence.MemAction
	wFree          = wAlloc + 10 // evidence.MemFree
	wInactive      = wFree + 1
	wActive        = wInactive + 1
	wPending       = wActive + 1
	wAwaiting      = wPending + 1
	wSmall         = wAwaiting + 1
	wStart         = wSmall + 1
	wNotApplicable = wStart + 1
	wPower         = wNotApplicable + 1 // "1", "2", "4", ... "32768"
	wPowers        = 16
	wordsKnown     = wPower + wPowers
)

// known are the strings of the constants above, in their order.
var known = [wordsKnown]string{
	"", "segments", "device_traces", "allocator_settings", "external_annotations",
	"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks",
	"size", "state", "history",
	"addr", "real_size",
	"name", "filename", "line",
	"action", "device_free", "time_us", "category", "compile_context", "user_metadata", "pool_id",
	"stage",
	"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "max_split_size", "max_cached_size", "garbage_collection_threshold", "expandable_segments", "roundup_power2_divisions", "trace_alloc_overflowed", "trace_alloc_max_entries",

	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "user_defined", "free",
	"inactive", "active_allocated", "active_pending_free", "active_awaiting_free",
	"small", "START", "N/A",
	"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096", "8192", "16384", "32768",
}

// A set says which keys a dict has.
type set uint64

func keyed(keys ...uint) (s set) {
	for _, k := range keys {
		s |= 1 << k
	}
	return s
}

func (s set) has(k uint) bool { return s>>k&1 != 0 }

var (
	anyFrame    = keyed(kName, kFilename, kLine)
	anyPlace    = keyed(kAddr, kDeviceFree) // of an entry whose action is missing
	anyEntry    = keyed(kSize, kStream, kTime, kContext, kUser, kPool)
	anySegment  = keyed(kBlocks, kTotalSize)
	anyPast     = keyed(kAddr, kRealSize)
	anyTop      = keyed(kSegments, kDeviceTraces)
	anySettings = keyed(kConf, kConfNew, kMaxSplit, kMaxCached, kThreshold, kExpandable, kRoundup, kOverflowed, kMaxEntries)
)
