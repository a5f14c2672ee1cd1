package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

var (
	errNoHolders = errors.New("who holds the devices could not be found out")
	errNoSuchGPU = errors.New("none of the devices of --device is there")
)

const gpusLong = `gpus says which process holds how much memory of which device: whether it is yours,
whose else, of which container or scheduler's job, a notebook's kernel, a worker, a
server, one that is left over from a launcher that died, or one that has ended; how
much is in use that no process accounts for; and which ranks hold a second context on
another rank's device. It says what you may do about each: commands are printed, and
none is run.

It asks nvidia-smi, amd-smi or rocm-smi, and reads /proc. A tool that hangs is given
up in time for an answer within three seconds; --wait gives it longer, as the driver
needs where it is not kept loaded (no persistence mode).

A FILE is what such a tool printed earlier, perhaps on another machine (several are
taken together as of one machine, - is standard input): what it shows is told, and
that the rest needs the machine.

Status: 0 it was answered, also that there is no GPU, no tool or no driver; 1 a tool
hung, failed, or said nothing that was understood; 2 wrong usage; 130 interrupted, as
--watch ends.`

const gpusExample = `  inquest gpus
  inquest gpus --all --device 0
  inquest gpus --watch                     again every two seconds, in place
  inquest gpus --watch 10 --format json    a line each ten seconds
  inquest gpus nvidia-smi.txt              an output that somebody saved
  ssh node-12 nvidia-smi | inquest gpus -`

// gpusFlags are the values of the flags of inquest gpus.
type gpusFlags struct {
	output
	watch   string
	wait    time.Duration
	all     bool
	devices []int
}

func gpusCommand(a *app) *cobra.Command {
	var g gpusFlags
	cmd := &cobra.Command{
		Use:     "gpus [FILE...]",
		Short:   "Say which process holds how much memory of which GPU, and what may be done about it",
		Long:    gpusLong,
		Example: gpusExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.gpus(cmd, args, &g) },
	}
	f := cmd.Flags()
	g.fileFlag(cmd)
	g.reportFlags(cmd, "", report.HoldersFormats(), "")
	f.StringVar(&g.watch, "watch", "", "ask again every so many seconds, until interrupted")
	f.Lookup("watch").NoOptDefVal = "2"
	f.DurationVar(&g.wait, "wait", 0, "how long the tools may take, as 30s; 0 is about two seconds")
	f.BoolVar(&g.all, "all", false, "devices that are free as well")
	f.IntSliceVar(&g.devices, "device", nil, "only the device of this number; several with commas")
	return cmd
}

// gpus runs the command.
func (a *app) gpus(cmd *cobra.Command, args []string, g *gpusFlags) error {
	every, args, err := g.every(cmd, args)
	if err != nil {
		return err
	}
	if err := errors.Join(g.checkWidth(), g.checkReport(report.HoldersFormats())); err != nil {
		return err
	}
	switch {
	case g.wait < 0 || g.wait > time.Hour:
		return fmt.Errorf("%w: --wait %s; up to an hour", errUsage, g.wait)
	case slices.ContainsFunc(g.devices, func(d int) bool { return d < 0 }):
		return fmt.Errorf("%w: --device is the number of a device, 0 or more", errUsage)
	case every > 0 && len(args) > 0:
		return fmt.Errorf("%w: --watch asks this machine; a saved output does not change", errUsage)
	case every > 0 && g.format != "text" && g.format != "json":
		return fmt.Errorf("%w: --watch writes text or json", errUsage)
	case every > 0 && g.file != "" && g.file != "-":
		return fmt.Errorf("%w: --watch writes to standard output", errUsage)
	}
	if err := g.spares(args); err != nil {
		return err
	}
	if every > 0 {
		return a.watchGPUs(cmd.Context(), g, every)
	}
	var h *incident.Holders
	if len(args) > 0 {
		h, err = a.savedGPUs(args, g.devices)
	} else {
		h, err = g.look(cmd.Context())
	}
	if err != nil {
		return err
	}
	if err := a.write(g.output, func(w io.Writer, o report.Options) error { return report.WriteHolders(w, g.format, g.shown(h), o) }); err != nil {
		return err
	}
	switch {
	case len(g.devices) > 0 && len(h.Devices) == 0 && h.Status == incident.HoldersAnswered:
		return errNoSuchGPU
	case h.Status == incident.HoldersNoAnswer:
		return errNoHolders
	}
	return nil
}

// every is the time between two answers, 0 where one is asked for. The seconds may stand
// behind --watch as a word of their own.
func (g *gpusFlags) every(cmd *cobra.Command, args []string) (time.Duration, []string, error) {
	if !cmd.Flags().Changed("watch") {
		return 0, args, nil
	}
	text := g.watch
	if len(args) == 1 && text == cmd.Flags().Lookup("watch").NoOptDefVal {
		if _, err := strconv.ParseFloat(args[0], 64); err == nil {
			if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
				text, args = args[0], nil
			}
		}
	}
	s, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
	if err != nil || !(s >= 0.1 && s <= 86400) {
		return 0, nil, fmt.Errorf("%w: --watch %q; 0.1 to 86400 seconds", errUsage, text)
	}
	return time.Duration(s * float64(time.Second)), args, nil
}

// look asks this machine.
func (g *gpusFlags) look(ctx context.Context) (*incident.Holders, error) {
	if g.wait > 0 {
		bounded, stop := context.WithTimeout(ctx, g.wait)
		defer stop()
		ctx = bounded
	}
	return gpu.Look(ctx, gpu.Tools, "/", self(), version(), g.devices)
}

// self is who asks.
func self() gpu.Self {
	s := gpu.Self{UID: os.Getuid(), PID: os.Getpid(), Now: time.Now()}
	s.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		s.User = u.Username
	}
	return s
}

// shown is what of a result is printed: programs get all of it.
func (g *gpusFlags) shown(h *incident.Holders) *incident.Holders {
	if g.all || g.format == "json" || len(g.devices) > 0 {
		return h
	}
	return gpu.Used(h)
}

// maxSaved is how much of a saved output is read.
const maxSaved = 16 << 20

// savedGPUs reads what tools printed earlier.
func (a *app) savedGPUs(paths []string, devices []int) (*incident.Holders, error) {
	var all bytes.Buffer
	for _, path := range paths {
		in := a.in
		if path != "-" {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			if st, err := f.Stat(); err == nil && st.IsDir() {
				return nil, fmt.Errorf("%w: %s is a folder; name what a tool printed", errUsage, path)
			}
			in = f
		}
		if all.Len() > 0 {
			all.WriteByte('\n')
		}
		if _, err := io.Copy(&all, io.LimitReader(in, maxSaved)); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return gpu.Saved(all.Bytes(), version(), strings.Join(paths, ", "), devices), nil
}

// watchGPUs answers again and again: on a terminal in place, else in blocks of text or lines
// of JSON. It ends with the context.
func (a *app) watchGPUs(ctx context.Context, g *gpusFlags, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	f, isFile := a.out.(*os.File)
	screen := isFile && g.format == "text" && term.IsTerminal(int(f.Fd()))
	for n := 0; ; n++ {
		h, err := g.look(ctx)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		switch {
		case g.format == "json":
			if err := json.NewEncoder(&b).Encode(h); err != nil {
				return err
			}
		default:
			if n > 0 && !screen {
				b.WriteByte('\n')
			}
			fmt.Fprintln(&b, h.Taken)
			if err := report.WriteHolders(&b, g.format, g.shown(h), g.options(a.out)); err != nil {
				return err
			}
		}
		text := b.Bytes()
		if screen {
			_, height, err := term.GetSize(int(f.Fd()))
			if err != nil || height < 2 { // a terminal that does not know its size
				height = 24
			}
			text = inPlace(b.String(), height, n == 0)
		}
		if _, err := a.out.Write(text); err != nil {
			return fmt.Errorf("%w: %w", errWrite, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// inPlace is text that replaces what is on a screen of so many lines: each line ends what
// stood there before, and what is below is cleared.
func inPlace(text string, height int, first bool) []byte {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if room := max(height-1, 1); len(lines) > room {
		lines = lines[:room]
	}
	begin := "\x1b[H"
	if first {
		begin = "\x1b[2J\x1b[H"
	}
	return []byte(begin + strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J")
}
