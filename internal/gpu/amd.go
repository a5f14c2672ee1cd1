package gpu

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/amdsmi"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// The commands of AMD's tools. amd-smi needs one for each part; it takes a second to start,
// so they run side by side.
var (
	amdParts  = [][]string{{"static", "--asic", "--bus", "--vram", "--driver", "--json"}, {"metric", "--mem-usage", "--json"}, {"process", "--json"}}
	amdSample = [][]string{{"metric", "--mem-usage", "--json"}, {"process", "--json"}}
	rocmParts = []string{"--showproductname", "--showuniqueid", "--showbus", "--showmeminfo", "vram", "--showpids", "--showdriverversion", "--json"}
)

// readAMD asks amd-smi; rocm-smi, which came before it, where that names no device.
func readAMD(ctx context.Context, run Runner) *State { return amdState(ctx, run, amdParts) }

func sampleAMD(ctx context.Context, run Runner) *State { return amdState(ctx, run, amdSample) }

func amdState(ctx context.Context, run Runner, parts [][]string) *State {
	type answer struct {
		out []byte
		err error
	}
	answers := make([]chan answer, len(parts))
	for i, args := range parts {
		answers[i] = make(chan answer, 1)
		go func() {
			out, err := run(ctx, "amd-smi", args...)
			answers[i] <- answer{out, err}
		}()
	}
	a := &amd{st: &State{}}
	for i, args := range parts {
		got := <-answers[i]
		a.answer("amd-smi", args, got.out, got.err)
	}
	if missing := a.st.Asked[0].Answer == NotInstalled; missing {
		a.st.Asked = a.st.Asked[:1] // once is enough
	}
	if !a.useful() && ctx.Err() == nil {
		b := &amd{st: &State{}}
		out, err := run(ctx, "rocm-smi", rocmParts...)
		b.answer("rocm-smi", rocmParts, out, err)
		b.st.Asked = append(a.st.Asked, b.st.Asked...)
		a = b
	}
	a.st.place()
	return a.st
}

// useful reports whether the memory of a device is known.
func (a *amd) useful() bool {
	for _, d := range a.st.Devices {
		if d.Used.Known() {
			return true
		}
	}
	return false
}

// An amd collects what AMD's tools print.
type amd struct {
	st *State
}

// answer takes in what one command printed.
func (a *amd) answer(tool string, args []string, out []byte, err error) {
	command := tool + " " + strings.Join(args, " ")
	text := string(out)
	before := len(a.st.Unplaced)
	parsed := a.json(text)
	understood := parsed || len(a.st.Unplaced) > before
	a.st.asked(tool, command, text, err, understood)
	if err != nil && (errors.Is(err, exec.ErrNotFound) || !understood) || !understood {
		return
	}
	a.st.answered(command)
	if strings.Contains(command, "process ") || strings.Contains(command, "--showpids") {
		for i := range a.st.Devices {
			a.st.Devices[i].Listed = true
		}
	}
}

// json reads a document; warnings may stand before it. It reports whether there was one
// that names a device.
func (a *amd) json(text string) bool {
	i := strings.IndexAny(text, "[{")
	if i < 0 {
		return false
	}
	before := len(a.st.Devices)
	amdsmi.JSON(strings.NewReader(text[i:]), func(int64) textline.Line { return textline.Line{} }, a) // what stands before damage counts
	return len(a.st.Devices) > before || before > 0 && strings.Contains(text[i:], `"gpu"`)
}

func (a *amd) Version(of, text string, _ textline.Line) {
	if of == "driver" && a.st.Driver == "" {
		a.st.Driver = textline.OneLine(text, 64)
	}
}

func (a *amd) Device(d amdsmi.Device) {
	if d.Index < 0 && d.BusID == "" {
		return
	}
	at := a.st.find(d.Index, "", "")
	if at == nil {
		if len(a.st.Devices) == maxDevices {
			return
		}
		a.st.Devices = append(a.st.Devices, Device{Vendor: "amd", Index: d.Index, Total: textline.NoBytes, Used: textline.NoBytes, Free: textline.NoBytes, Reserved: textline.NoBytes})
		at = &a.st.Devices[len(a.st.Devices)-1]
	}
	text := func(to *string, v string) {
		if v != "" {
			*to = textline.OneLine(v, 120)
		}
	}
	text(&at.UUID, d.UUID)
	text(&at.BusID, d.BusID)
	text(&at.Name, d.Name)
	if d.Total.Known() {
		at.Total = d.Total
	}
	if d.Used.Known() {
		at.Used = d.Used
	} else if at.Total.Known() && !math.IsNaN(d.UsedPercent) && !at.Used.Known() {
		// A percentage without decimals, rounded either way.
		lo, hi := math.Max(0, d.UsedPercent-1), math.Min(100, d.UsedPercent+1)
		at.Used = Bytes{Lo: int64(float64(at.Total.Lo) / 100 * lo), Hi: int64(float64(at.Total.Hi) / 100 * hi)}
	}
	if d.Free.Known() {
		at.Free = d.Free
	}
}

func (a *amd) Process(p amdsmi.Process) {
	if p.PID < 0 {
		return
	}
	a.st.add(Process{PID: p.PID, Type: "C", Name: textline.OneLine(p.Name, maxText), Used: p.Used, GI: None, CI: None, index: p.GPU})
}
