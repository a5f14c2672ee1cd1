package gpu

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// Presence is what the system itself says of the devices, without any tool.
type Presence struct {
	// PCI are the devices that compute or draw on the bus, by vendor: bus ids in ascending
	// order. They are there whether or not a driver is.
	PCI map[string][]string
	// NVIDIA is the driver as its own files name it.
	DriverVersion string // of /proc/driver/nvidia/version, "" where the module is not loaded
	DriverDevices []DriverDevice
	Nodes         []string // /dev/nvidia0, /dev/kfd, …
	DXG           bool     // /dev/dxg: the devices are those of Windows, under WSL
	AMD           []Device // as the files of amdgpu name them
}

// A DriverDevice is a device as NVIDIA's driver lists it.
type DriverDevice struct {
	BusID, Name, UUID string
	Minor             int // of /dev/nvidiaN
}

// Any reports whether the system knows of a device.
func (p *Presence) Any() bool {
	return len(p.PCI) > 0 || len(p.DriverDevices) > 0 || len(p.Nodes) > 0 || p.DXG || len(p.AMD) > 0
}

// NVIDIA reports whether there is something of NVIDIA's.
func (p *Presence) NVIDIA() bool {
	return len(p.PCI["nvidia"]) > 0 || len(p.DriverDevices) > 0 || p.DXG || slices.ContainsFunc(p.Nodes, func(n string) bool { return strings.HasPrefix(n, "/dev/nvidia") })
}

// presence looks below root.
func presence(root string) Presence {
	p := Presence{PCI: map[string][]string{}}
	at := func(path string) string { return filepath.Join(root, filepath.FromSlash(path)) }
	if v := readFile(at("proc/driver/nvidia/version"), 4<<10); v != "" {
		p.DriverVersion = driverVersion(v)
	}
	for _, dir := range entries(at("proc/driver/nvidia/gpus")) {
		d := DriverDevice{BusID: dir, Minor: None}
		for line := range strings.Lines(readFile(at("proc/driver/nvidia/gpus/"+dir+"/information"), 16<<10)) {
			key, v, _ := strings.Cut(line, ":")
			v = textline.OneLine(strings.TrimSpace(v), 120)
			switch strings.TrimSpace(key) {
			case "Model":
				d.Name = v
			case "GPU UUID":
				d.UUID = v
			case "Device Minor":
				d.Minor = textline.Small(v)
			}
		}
		p.DriverDevices = append(p.DriverDevices, d)
	}
	for _, n := range entries(at("dev")) {
		if node := "/dev/" + n; gpuNode(node) {
			p.Nodes = append(p.Nodes, node)
		}
	}
	_, err := os.Stat(at("dev/dxg"))
	p.DXG = err == nil
	for _, bus := range entries(at("sys/bus/pci/devices")) {
		dir := "sys/bus/pci/devices/" + bus + "/"
		class := word(at(dir + "class"))
		// Display controllers, and what only computes: processing accelerators.
		if !strings.HasPrefix(class, "0x03") && !strings.HasPrefix(class, "0x12") {
			continue
		}
		vendor := vendors[word(at(dir+"vendor"))]
		if vendor == "" {
			continue
		}
		p.PCI[vendor] = append(p.PCI[vendor], bus)
		if vendor == "amd" {
			total, used := count(at(dir+"mem_info_vram_total")), count(at(dir+"mem_info_vram_used"))
			if total > 0 && used >= 0 {
				d := Device{Vendor: "amd", Index: None, BusID: bus, UUID: word(at(dir + "unique_id")), Name: textline.OneLine(word(at(dir+"product_name")), 120), Total: Bytes{Lo: total, Hi: total}, Used: Bytes{Lo: used, Hi: used}, Free: textline.NoBytes, Reserved: textline.NoBytes}
				p.AMD = append(p.AMD, d)
			}
		}
	}
	return p
}

var vendors = map[string]string{"0x10de": "nvidia", "0x1002": "amd"}

// driverVersion finds the version in
//
//	NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
func driverVersion(text string) string {
	for _, f := range strings.Fields(text) {
		if head, rest, ok := strings.Cut(f, "."); ok && len(f) < 24 && rest != "" {
			if n, err := strconv.Atoi(head); err == nil && n >= 100 {
				return f
			}
		}
	}
	return "unknown"
}

// entries are the names in a folder in ascending order, none where it cannot be read.
func entries(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list[:min(len(list), 4096)] {
		out = append(out, e.Name())
	}
	return out
}

func word(path string) string { return strings.TrimSpace(readFile(path, 256)) }

func count(path string) int64 { return textline.Count(word(path)) }
