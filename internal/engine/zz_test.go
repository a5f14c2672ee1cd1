package engine_test
import ("testing")
func TestZZ(t *testing.T) { diagnose(t, "/tmp/host/oom60000.log"); diagnose(t, "/tmp/host/to60000.log") }
