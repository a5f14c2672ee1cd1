package detect

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// deviceHealth says what device tools report of the device on which the leading
// fault happened: errors counted since the driver was loaded, repairs that wait,
// clocks held down, tests that failed.
//
//  1. A device is the fault's own if the bus ids say so. An index is no proof: a
//     process counts the devices that it was given, a tool all of the host.
//  2. Where the device is not known, a table in which no device of the host shows
//     anything still says that there is nothing.
//
// Errors over the life of a board are its past, and left out.
func deviceHealth(in Input, f evidence.Known) {
	if in.Lead == nil {
		return
	}
	uncorrectable(in, f)
	in.each(evidence.GPUHealth, func(e *evidence.Event) {
		switch e.Attrs.Str("what") {
		case "remap-pending", "remap-failure", "retire-pending", "reset-required", "repair-pending", "unrepairable-memory", "recovery-action", "pci-unreachable":
			if own(in.Lead, e) == yes {
				f.Set("gpu.repair_pending", evidence.BoolOf(true), e.Span)
			}
		case "throttle-hw-thermal", "throttle-power-brake", "throttle-hw":
			if own(in.Lead, e) == yes {
				f.Set("gpu.throttled", evidence.TextOf(strings.TrimPrefix(e.Attrs.Str("what"), "throttle-")), e.Span)
			}
		}
	})
	in.each(evidence.DeviceTest, func(e *evidence.Event) {
		if _, ok := f["gpu.test_failed"]; !ok && e.Attrs.Str("result") == "fail" && sameHost(in.Lead, e) {
			f.Set("gpu.test_failed", e.Attrs["name"], e.Span)
		}
	})
}

// uncorrectable sets how many errors were counted on the fault's device.
func uncorrectable(in Input, f evidence.Known) {
	const name = "gpu.ecc_uncorrectable"
	var proof, spans []evidence.Span
	in.each(evidence.GPUHealth, func(e *evidence.Event) {
		if e.Attrs.Str("what") == "ecc-volatile-uncorrectable" && own(in.Lead, e) == yes {
			proof = append(proof, e.Span)
		}
	})
	clean := true
	in.each(evidence.GPUUsage, func(e *evidence.Event) {
		n, stated := e.Attrs["ecc_volatile"]
		if used := e.Attrs["used"]; !stated && !used.Valid() || e.Attrs.Str("slice") != "" {
			return // a list of names, or a MIG instance
		}
		switch own(in.Lead, e) {
		case yes:
			if stated && n.I > 0 && len(proof) > 0 {
				f.Set(name, n, clip(proof)...)
			} else if stated {
				f.Set(name, n, e.Span) // the newest reading counts
			}
		case unknown:
			clean = clean && stated && n.I == 0
			spans = append(spans, e.Span)
		}
	})
	if _, set := f[name]; !set && clean && len(spans) > 0 {
		f.Set(name, evidence.IntOf(0), clip(spans)...)
	}
}

// An answer is what is known of a question.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// own reports whether e speaks of the device of the fault.
func own(fault, e *evidence.Event) answer {
	if !sameHost(fault, e) {
		return no
	}
	switch a, b := evidence.BusID(fault.Who.BusID), evidence.BusID(e.Who.BusID); {
	case a == "" || b == "":
		return unknown
	case a == b:
		return yes
	}
	return no
}

// sameHost reports whether two events may be of one host.
func sameHost(a, b *evidence.Event) bool {
	return a.Who.Host == "" || b.Who.Host == "" || a.Who.Host == b.Who.Host
}
