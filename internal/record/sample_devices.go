package record

import (
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A deviceWatch looks at the memory of the host's devices.
type deviceWatch struct{}

func watchDevices(tools gpu.Runner, every time.Duration) *deviceWatch { return nil }

func (d *deviceWatch) latest(pids []int) []incident.DeviceSample { return nil }

func (d *deviceWatch) measures() []incident.Measure { return nil }
