package gpu

import (
	"strconv"
	"strings"
)

const (
	mib = 1 << 20
	// ownMost is what a driver is allowed for itself on a device without a process: idle ones
	// show 0 to 25 MiB in the outputs that this was checked against.
	ownMost = 64 * mib
	// unsharedMost is what a process may take beyond what the driver puts to its account.
	unsharedMost = 16 * mib
)

// Baseline is the interval of memory in use that belongs to no process but to the driver,
// and words for how it is known. driver is the version of the driver, "" where it is not known.
func Baseline(d *Device, driver string) (Bytes, string) {
	room := int64(ownMost + unsharedMost*len(d.Processes))
	if d.Vendor == "amd" {
		return Bytes{Lo: 0, Hi: max(512*mib, share(d.Total)) + room}, "the driver's own share is not stated; 512 MiB or 1/64 of the memory are allowed for it"
	}
	if d.Reserved.Known() {
		if d.Total.Known() && d.Used.Known() && d.Free.Known() {
			if near(d.Used.Lo+d.Free.Lo+d.Reserved.Lo, d.Total.Lo) {
				return Bytes{Lo: 0, Hi: room}, "what driver and firmware reserve is stated apart from it"
			}
			if near(d.Used.Lo+d.Free.Lo, d.Total.Lo) {
				return Bytes{Lo: d.Reserved.Lo, Hi: d.Reserved.Hi + room}, "it includes what driver and firmware reserve, as stated"
			}
		}
		return Bytes{Lo: 0, Hi: d.Reserved.Hi + room}, "whether it includes what driver and firmware reserve is not known"
	}
	if major(driver) >= 510 {
		return Bytes{Lo: 0, Hi: room}, "drivers from 510 on count what driver and firmware reserve apart from it"
	}
	return Bytes{Lo: 0, Hi: share(d.Total) + room}, "the driver's own share is not stated; 1/64 of the memory is allowed for it"
}

func share(total Bytes) int64 {
	if !total.Known() {
		return 0
	}
	return total.Lo / 64
}

func near(a, b int64) bool { return a-b <= 4*mib && b-a <= 4*mib }

func major(version string) int {
	head, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(head)
	if err != nil {
		return 0
	}
	return n
}

// Accounted is the bytes of a process, and whether the driver accounts for them: some print
// 0 MiB for a process that holds a context, which takes more than that.
func (p *Process) Accounted() (Bytes, bool) {
	if !p.Used.Known() || p.Used.Lo == 0 && p.Type != "G" {
		return Bytes{Lo: 0, Hi: -1}, false
	}
	return p.Used, true
}

// Unseen is the interval of the memory in use that neither a listed process nor the driver
// accounts for. It is not ok where that cannot be told: a figure is missing, or processes
// are not accounted for.
func Unseen(d *Device, driver string) (unseen Bytes, ok bool) {
	if !d.Used.Known() || !d.Listed {
		return Bytes{Lo: 0, Hi: -1}, false
	}
	var sum Bytes
	for i := range d.Processes {
		b, known := d.Processes[i].Accounted()
		if !known {
			return Bytes{Lo: 0, Hi: -1}, false
		}
		sum.Lo += b.Lo
		sum.Hi += b.Hi
	}
	base, _ := Baseline(d, driver)
	return Bytes{Lo: max(0, d.Used.Lo-sum.Hi-base.Hi), Hi: max(0, d.Used.Hi-sum.Lo-base.Lo)}, true
}
