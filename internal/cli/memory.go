package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

var (
	errNoSnapshot = errors.New("no memory snapshot in what was named")
	errNoDevice   = errors.New("none of the GPUs of --device in what was named")
)

// What the timeline of a report draws: one column a pixel of a wide screen, and the
// allocations that can be told apart on it. A page can be zoomed, so it gets more, to be
// shared by all snapshots; JSON without --full has an eighth. Text draws nothing.
const (
	timelineBuckets = 2048
	timelineBlocks  = 2048
	pageBuckets     = 1 << 17
	pageBlocks      = 1 << 15
	segmentBlocks   = 20_000 // of segments, in all
)

const memoryLong = `memory reads snapshots of PyTorch's caching allocator (the pickle of
torch.cuda.memory._dump_snapshot, a list of segments, the page of trace_plot, a
profiler's memory timeline; plain or compressed, in folders and archives, or - for
standard input) without executing anything in them. It says what the peak was and
who made it, what grew, how the reserve is cut up, where requests were refused, and
how the ranks differ.

The recorded history is run through a simulation of the allocator, first under the
recorded settings: how well that repeats the record is printed as its fidelity. Only
where it is inside its tolerance are other settings answered for. --replay says which:

  (not given)           where a request was refused, expandable_segments:True
  auto                  search the settings that matter for this history
  off                   no replay
  'KEY:VALUE,...'       these settings, as in PYTORCH_CUDA_ALLOC_CONF
  'capacity:SIZE'       a smaller or larger card: what the allocator may have in all
  'empty_cache@EVENT'   torch.cuda.empty_cache() before that entry of the history

It may be given more than once; one value may hold several, with blanks between
them, that are tried together. An answer is avoided, not avoided or cannot tell. It
needs the room that the allocator had: an entry of a refused request shows it, or
--capacity states it.

--from and --to are numbers of entries, 0 the oldest, between which growth is asked for.

Status: 0 a snapshot was read; 1 none could be, or none has a GPU of --device;
2 wrong usage; 130 interrupted.`

const memoryExample = `  inquest memory oom.pickle
  inquest memory --replay auto oom.pickle
  inquest memory --replay expandable_segments:True --replay max_split_size_mb:128 oom.pickle
  inquest memory --capacity 80GiB --replay 'capacity:40GiB expandable_segments:True' train.pickle.gz
  inquest memory snapshots/                    every rank's, side by side
  inquest memory before.pickle after.pickle    what grew in between
  inquest memory --format html -o memory.html oom.pickle`

// memoryFlags are the values of the flags of inquest memory.
type memoryFlags struct {
	output
	replay        []string
	capacity      string
	devices       []int
	top, from, to int
}

func memoryCommand(a *app) *cobra.Command {
	var m memoryFlags
	cmd := &cobra.Command{
		Use:     "memory SNAPSHOT...",
		Short:   "Say what memory snapshots show, and whether another setting would have avoided the failure",
		Long:    memoryLong,
		Example: memoryExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name a memory snapshot, a folder or archive of them, or - for standard input", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.memory(cmd, args, &m) },
	}
	f := cmd.Flags()
	m.fileFlag(cmd)
	m.reportFlags(cmd, "", report.MemoryFormats(), "; in JSON the whole timeline and segment map")
	f.StringArrayVar(&m.replay, "replay", nil, "auto, off, or a change to try in the simulated allocator; see above")
	f.StringVar(&m.capacity, "capacity", "", "the device's memory, as 80GiB or in bytes: torch.cuda.get_device_properties(0).total_memory")
	f.IntSliceVar(&m.devices, "device", nil, "only this GPU, as the process numbers it; several with commas")
	f.IntVar(&m.top, "top", 10, "rows of each table")
	f.IntVar(&m.from, "from", 0, "what grew since this entry of the history")
	f.IntVar(&m.to, "to", 0, "what grew up to this entry of the history")
	return cmd
}

// memory runs the command.
func (a *app) memory(cmd *cobra.Command, args []string, m *memoryFlags) error {
	mo, err := m.options(cmd)
	if err != nil {
		return err
	}
	if err := m.spares(args); err != nil {
		return err
	}
	o, err := a.options(args)
	if err != nil {
		return err
	}
	o.All, o.Progress = true, a.progress()
	a.warnMissing(args, m.format)
	got, err := engine.Memory(cmd.Context(), o, mo)
	if err != nil {
		return err
	}
	if err := a.write(m.output, func(w io.Writer, ro report.Options) error { return report.WriteMemory(w, m.format, got, ro) }); err != nil {
		return err
	}
	if len(got.Snapshots) == 0 {
		return errNoSnapshot
	}
	if len(m.devices) > 0 && !slices.ContainsFunc(got.Snapshots, func(s incident.MemorySnapshot) bool { return len(s.Devices) > 0 }) {
		return errNoDevice
	}
	return nil
}

// options checks the flags and says what they ask for.
func (m *memoryFlags) options(cmd *cobra.Command) (engine.MemoryOptions, error) {
	mo := engine.MemoryOptions{Top: m.top, Devices: m.devices}
	if err := m.checkWidth(); err != nil {
		return mo, err
	}
	if err := m.checkReport(report.MemoryFormats()); err != nil {
		return mo, err
	}
	switch {
	case m.format == "html":
		mo.Buckets, mo.Largest, mo.Blocks = pageBuckets, pageBlocks, segmentBlocks
	case m.format == "json" && m.full:
		mo.Buckets, mo.Largest, mo.Blocks = timelineBuckets, timelineBlocks, segmentBlocks
	case m.format == "json":
		mo.Buckets, mo.Largest, mo.Blocks = timelineBuckets/8, timelineBlocks/8, segmentBlocks/8
	}
	var err error
	if mo.Replay, err = replayOptions(m.replay); err != nil {
		return mo, err
	}
	if m.capacity != "" {
		if mo.Capacity, err = size(m.capacity); err != nil {
			return mo, fmt.Errorf("%w: --capacity %w", errUsage, err)
		}
	}
	if m.top < 1 || m.top > 10_000 {
		return mo, fmt.Errorf("%w: --top %d; 1 to 10000", errUsage, m.top)
	}
	if slices.ContainsFunc(m.devices, func(d int) bool { return d < 0 }) {
		return mo, fmt.Errorf("%w: --device is the number of a GPU as the process sees it, 0 or more", errUsage)
	}
	if mo.From, err = entry(cmd, "from", m.from); err != nil {
		return mo, err
	}
	if mo.To, err = entry(cmd, "to", m.to); err != nil {
		return mo, err
	}
	if mo.From != nil && mo.To != nil && m.from > m.to {
		return mo, fmt.Errorf("%w: --from %d lies behind --to %d", errUsage, m.from, m.to)
	}
	return mo, nil
}

// entry is the value n of a flag that names an entry of the history, nil where it was
// not given.
func entry(cmd *cobra.Command, flag string, n int) (*int, error) {
	switch {
	case !cmd.Flags().Changed(flag):
		return nil, nil
	case n < 0:
		return nil, fmt.Errorf("%w: --%s is the number of an entry, 0 the oldest", errUsage, flag)
	}
	return &n, nil
}

// replayOptions reads the values of --replay.
func replayOptions(values []string) (engine.MemoryReplay, error) {
	var r engine.MemoryReplay
	for _, v := range values {
		switch v {
		case "off":
			r.Off = true
		case "auto":
			r.Auto = true
		default:
			if err := change(v); err != nil {
				return r, fmt.Errorf("%w: --replay %q: %w", errUsage, v, err)
			}
			c, err := engine.ParseChange(v)
			if err != nil {
				return r, fmt.Errorf("%w: --replay %q: %w", errUsage, v, err)
			}
			r.Try = append(r.Try, c)
		}
	}
	if r.Off && len(values) > 1 {
		return r, fmt.Errorf("%w: --replay off stands alone", errUsage)
	}
	return r, nil
}

// change says what is wrong with the form of a change to try.
func change(text string) error {
	for _, w := range strings.Fields(text) {
		if n, ok := strings.CutPrefix(w, "capacity:"); ok {
			if _, err := size(n); err != nil {
				return err
			}
		} else if !strings.ContainsAny(w, ":@") && !strings.Contains(text, "[") {
			return fmt.Errorf("%q is no change: KEY:VALUE as in PYTORCH_CUDA_ALLOC_CONF, capacity:SIZE or empty_cache@EVENT; auto and off stand alone", w)
		}
	}
	return nil
}

// size reads a size of a device. What is below any device's is a number that lacks its unit.
func size(text string) (int64, error) {
	n, err := evidence.ParseBytes(text)
	if err == nil && n < 1<<20 {
		err = fmt.Errorf("%q is %s, less than any device has; with a unit it is 80GiB, say", text, evidence.Bytes(n))
	}
	return n, err
}
