package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A pciList is lspci, short or with -v to -vvv and a dump (pciutils 3.x). Of it only
// NVIDIA's display and compute devices are told. One that no longer answers on the
// bus reads as ones: its revision is ff, and lspci cannot tell its kind of header.
//
//	3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)
//		LnkSta:	Speed 32GT/s, Width x8 (downgraded)
//	5d:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev ff) (prog-if ff)
//		!!! Unknown header type 7f
type pciList struct {
	out  Out
	cur  Device
	open bool
}

// pciClasses begin the names of the classes that a list of a host's devices has
// (pci.ids, class names).
var pciClasses = [...]string{
	"3D controller", "VGA compatible controller", "Host bridge", "PCI bridge", "ISA bridge", "Bridge", "RAM memory", "System peripheral", "SMBus", "USB controller", "SATA controller", "Ethernet controller", "Infiniband controller", "Network controller",
	"Non-Volatile memory controller", "Non-Essential Instrumentation", "Performance counters", "Communication controller", "Encryption controller", "Audio device", "Memory controller", "RAID bus controller", "Serial bus controller", "Unassigned class", "IOMMU", "PIC", "Co-processor", "Processing accelerators", "Signal processing controller",
}

func lspci(_ textline.Line, text string, out Out) Table {
	if _, _, _, ok := pciDevice(text); ok {
		return &pciList{out: out}
	}
	return nil
}

// pciDevice reads the first line of a device.
func pciDevice(text string) (bus, class, name string, ok bool) {
	bus, rest, ok := strings.Cut(text, " ")
	full := bus
	if strings.Count(bus, ":") == 1 {
		full = "0000:" + bus // lspci leaves out the domain where all are in the first
	}
	if !ok || !IsBus(full) {
		return "", "", "", false
	}
	class, name, ok = strings.Cut(rest, ": ")
	if !ok {
		return "", "", "", false
	}
	for _, c := range pciClasses {
		if class == c || strings.HasPrefix(class, c+" [") {
			return full, c, name, true
		}
	}
	return "", "", "", false
}

func (t *pciList) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	if l.Text[0] == ' ' || l.Text[0] == '\t' {
		t.detail(text, l)
		return Field
	}
	if isDump(text) {
		return Note
	}
	bus, class, name, ok := pciDevice(text)
	if !ok {
		return Foreign
	}
	t.End()
	vendor, model, _ := strings.Cut(name, "NVIDIA Corporation ")
	if vendor != "" || class != "3D controller" && class != "VGA compatible controller" || !strings.Contains(name, "NVIDIA Corporation") {
		return Row
	}
	t.cur, t.open = newDevice(), true
	t.cur.BusID, t.cur.At = bus, l
	model, rev, _ := strings.Cut(model, " (rev ")
	t.cur.Name = model
	if strings.HasPrefix(rev, "ff)") {
		t.cur.state("pci-unreachable", None, "rev ff", l)
	}
	return Row
}

// isDump recognises a line of the configuration space: "00: de 10 30 23 ...".
func isDump(text string) bool {
	at, rest, ok := strings.Cut(text, ": ")
	if !ok || len(at) < 2 || len(at) > 3 || len(rest) < 5 || rest[2] != ' ' {
		return false
	}
	return strings.Trim(at+rest, "0123456789abcdef ") == ""
}

// detail reads an indented line of a device.
func (t *pciList) detail(text string, l textline.Line) {
	switch {
	case !t.open:
	case strings.HasPrefix(text, "!!! Unknown header type 7f"):
		t.cur.state("pci-unreachable", None, text, l)
	case strings.HasPrefix(text, "LnkSta:"):
		// An idle device lowers the speed of its link by itself, not its width.
		if _, width, ok := strings.Cut(text, "Width "); ok && strings.Contains(width, "(downgraded)") {
			t.cur.state("pcie-width", None, width, l)
		}
	}
}

func (t *pciList) End() {
	if t.open {
		t.out.Device(t.cur)
	}
	t.open = false
}
