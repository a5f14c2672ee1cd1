package gpu

import (
	"context"
	"errors"
	"slices"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Look reads the state of the devices and of the machine below root, and says who holds them.
// devices, where it is not empty, are the numbers of those that are asked for. Read's patience
// holds for all of it. The error is that of ctx alone: whatever else is the matter, the result
// says.
func Look(ctx context.Context, run Runner, root string, self Self, version string, devices []int) (*incident.Holders, error) {
	outer := ctx
	ctx, stop := patient(ctx)
	defer stop()
	st, err := Read(ctx, run)
	if outer.Err() != nil && errors.Is(outer.Err(), context.Canceled) {
		return nil, outer.Err()
	}
	pids, search := Wanted(st)
	// Files of /proc need no patience; the search among all processes has a little even where
	// a tool has used up its own.
	ctx, more := context.WithTimeout(context.WithoutCancel(outer), searching)
	defer more()
	host := Survey(ctx, root, self, pids, search)
	return Only(Holders(st, host, err, version, ""), devices), nil
}

// Saved says what saved outputs of one machine's tools show. source is their path.
func Saved(data []byte, version, source string, devices []int) *incident.Holders {
	st, readings := Parse(data)
	h := Holders(st, nil, nil, version, source)
	if readings > 1 {
		h.Limits = append(h.Limits, "it holds several readings; the last one is shown")
	}
	return Only(h, devices)
}

// Only leaves the devices of these numbers, and what is said of them; all where there are none.
func Only(h *incident.Holders, devices []int) *incident.Holders {
	if len(devices) == 0 || len(h.Devices) == 0 {
		return h
	}
	wanted := func(n *int) bool { return n != nil && slices.Contains(devices, *n) }
	h.Devices = slices.DeleteFunc(h.Devices, func(d incident.HeldDevice) bool { return !wanted(d.Index) })
	h.Acts = slices.DeleteFunc(h.Acts, func(a incident.HolderAct) bool {
		return !slices.ContainsFunc(a.Devices, func(n int) bool { return slices.Contains(devices, n) })
	})
	h.Strays = slices.DeleteFunc(h.Strays, func(s incident.HolderStrays) bool { return !slices.Contains(devices, s.Device) })
	if h.Status == incident.HoldersAnswered && len(h.Devices) > 0 {
		h.Says = sum(h)
	}
	return h
}

// Used leaves the devices that are in use, or that something is the matter with.
func Used(h *incident.Holders) *incident.Holders {
	out := *h
	out.Devices = slices.DeleteFunc(slices.Clone(h.Devices), func(d incident.HeldDevice) bool { return !Busy(&d) && d.Used != nil && len(d.Troubles) == 0 })
	return &out
}
