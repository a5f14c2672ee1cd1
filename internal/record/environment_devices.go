package record

import (
	"context"
	"errors"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// devices puts the host's devices and their driver into e. A host without a vendor's tool has
// none, and that is no problem.
func devices(ctx context.Context, e *incident.Environment, tools gpu.Runner, p *problems) {
	st, err := gpu.Read(ctx, tools)
	if err != nil && !errors.Is(err, gpu.ErrNoTool) {
		p.add("devices: %v", err)
	}
	if st == nil {
		return
	}
	e.Driver = st.Driver
	for _, d := range st.Devices {
		t := incident.TrialDevice{Index: d.Index, Name: d.Name, UUID: d.UUID, BusID: d.BusID}
		if d.Total.Known() {
			t.Memory = d.Total.Lo
		}
		e.Devices = append(e.Devices, t)
	}
}
