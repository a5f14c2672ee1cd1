package record

import (
	"context"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// devices puts the host's devices and their driver into e.
func devices(ctx context.Context, e *incident.Environment, tools gpu.Runner, p *problems) {
}
