package evidence

import "testing"

// TestHostNames: a key is host memory where its name says so and never where it
// may be the device's or a total.
func TestHostNames(t *testing.T) {
	for key, scale := range map[string]float64{
		"rss": 0, "rss_mb": 1 << 20, "rss mb": 1 << 20, "host_rss_gb": 1 << 30, "host/rss_gib": 1 << 30, "process rss (mb)": 1 << 20, "ram_used": 0, "ram_used_gb": 1 << 30,
		"cpu_mem_gb": 1 << 30, "host memory (gib)": 1 << 30, "rss_bytes": 1, "rss_kb": 1 << 10, "system.proc.memory.rssmb": 1 << 20,
	} {
		if a, ok := SeriesAliases()[key]; !ok || a.Name != "host_memory" || a.Scale != scale {
			t.Errorf("%s is %+v, %v; want host memory in units of %v", key, a, ok, scale)
		}
	}
	for _, key := range []string{"ram", "ram_gb", "mem", "mem_gb", "memory_gb", "gpu_mem_gb", "memory_used", "vram_used", "free gpu ram", "ram_free_gb", "cpu", "cpu_percent"} {
		if a := SeriesAliases()[key]; a.Name == "host_memory" {
			t.Errorf("%s is read as host memory", key)
		}
	}
}
