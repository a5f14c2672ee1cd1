package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/report"
)

var errNoSnapshot = errors.New("no memory snapshot in what was named")

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

func memoryCommand(a *app) *cobra.Command {
	var out output
	var replay []string
	var capacity string
	var devices []int
	var top, from, to int
	cmd := &cobra.Command{
		Use:   "memory SNAPSHOT...",
		Short: "Say what memory snapshots show, and whether another setting would have avoided the failure",
		Long: `memory reads snapshots of PyTorch's caching allocator (the pickle of
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

Status: 0 a snapshot was read; 1 none could be; 2 wrong usage; 130 interrupted.`,
		Example: `  inquest memory oom.pickle
  inquest memory --replay auto oom.pickle
  inquest memory --replay expandable_segments:True --replay max_split_size_mb:128 oom.pickle
  inquest memory --capacity 80GiB --replay 'capacity:40GiB expandable_segments:True' train.pickle.gz
  inquest memory snapshots/                    every rank's, side by side
  inquest memory before.pickle after.pickle    what grew in between
  inquest memory --format html -o memory.html oom.pickle`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name a memory snapshot, a folder or archive of them, or - for standard input", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.checkWidth(); err != nil {
				return err
			}
			if err := errors.Join(oneOf("format", out.format, report.MemoryFormats()...), oneOf("color", out.color, "auto", "always", "never")); err != nil {
				return err
			}
			mo := engine.MemoryOptions{Top: top, Devices: devices}
			switch {
			case out.format == "html":
				mo.Buckets, mo.Largest, mo.Blocks = pageBuckets, pageBlocks, segmentBlocks
			case out.format == "json" && out.full:
				mo.Buckets, mo.Largest, mo.Blocks = timelineBuckets, timelineBlocks, segmentBlocks
			case out.format == "json":
				mo.Buckets, mo.Largest, mo.Blocks = timelineBuckets/8, timelineBlocks/8, segmentBlocks/8
			}
			var err error
			if mo.Replay, err = replayOptions(replay); err != nil {
				return err
			}
			if capacity != "" {
				if mo.Capacity, err = sizeOf(capacity); err != nil {
					return fmt.Errorf("%w: --capacity %w", errUsage, err)
				}
			}
			if top < 1 || top > 10_000 {
				return fmt.Errorf("%w: --top %d; 1 to 10000", errUsage, top)
			}
			if slices.ContainsFunc(devices, func(d int) bool { return d < 0 }) {
				return fmt.Errorf("%w: --device is the number of a GPU as the process sees it, 0 or more", errUsage)
			}
			for flag, n := range map[string]*int{"from": &from, "to": &to} {
				if cmd.Flags().Changed(flag) && *n < 0 {
					return fmt.Errorf("%w: --%s is the number of an entry, 0 the oldest", errUsage, flag)
				}
			}
			if cmd.Flags().Changed("from") {
				mo.From = &from
			}
			if cmd.Flags().Changed("to") {
				mo.To = &to
			}
			if mo.From != nil && mo.To != nil && from > to {
				return fmt.Errorf("%w: --from %d lies behind --to %d", errUsage, from, to)
			}
			if err := out.spares(args); err != nil {
				return err
			}
			o, err := a.options(args)
			if err != nil {
				return err
			}
			o.All, o.Progress = true, a.progress()
			a.warnMissing(args, out.format)
			m, err := engine.Memory(cmd.Context(), o, mo)
			if err != nil {
				return err
			}
			if err := a.write(out, func(w io.Writer, ro report.Options) error { return report.WriteMemory(w, out.format, m, ro) }); err != nil {
				return err
			}
			if len(m.Snapshots) == 0 {
				return errNoSnapshot
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&out.format, "format", "text", strings.Join(report.MemoryFormats()[:len(report.MemoryFormats())-1], ", ")+" or html")
	f.StringVarP(&out.file, "output", "o", "", "write to this file; - is standard output")
	f.BoolVar(&out.full, "full", false, "print everything, not only the first 40 lines' worth; in JSON the whole timeline and segment map")
	f.StringVar(&out.color, "color", "auto", "auto, always or never (NO_COLOR is respected)")
	out.widthFlag(cmd)
	f.StringArrayVar(&replay, "replay", nil, "auto, off, or a change to try in the simulated allocator; see above")
	f.StringVar(&capacity, "capacity", "", "the device's memory, as 80GiB or in bytes: torch.cuda.get_device_properties(0).total_memory")
	f.IntSliceVar(&devices, "device", nil, "only this GPU, as the process numbers it; several with commas")
	f.IntVar(&top, "top", 10, "rows of each table")
	f.IntVar(&from, "from", 0, "what grew since this entry of the history")
	f.IntVar(&to, "to", 0, "what grew up to this entry of the history")
	return cmd
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

// units are what a size may end in, in any case. GB and the like are powers of 1000.
var units = []struct {
	name string
	of   float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// sizeOf reads a size as people write it: 80GiB, 79.15 GiB, 84987740160.
func sizeOf(text string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	for _, u := range units {
		num, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(f > 0) || math.IsInf(f, 0) || f*u.of > 1<<50 {
			break
		}
		return int64(f * u.of), nil
	}
	return 0, fmt.Errorf("%q is no size: bytes, or a number with KiB, MiB, GiB, KB, MB or GB", text)
}
