package evidence

import (
	"fmt"
	"strconv"
	"strings"
)

// BusID brings a PCI bus id into the form 0000:5d:00: nvidia-smi has eight digits of
// domain and a function, the kernel four or eight and none, NCCL one hexadecimal
// number, domain<<20 | bus<<12 | device<<4 | function.
func BusID(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if id == "" {
		return ""
	}
	if !strings.Contains(id, ":") {
		v, err := strconv.ParseUint(id, 16, 64)
		if err != nil || v < 0x1000 {
			return ""
		}
		return fmt.Sprintf("%04x:%02x:%02x", v>>20, v>>12&0xff, v>>4&0xff)
	}
	f := strings.Split(id, ":")
	if len(f) == 2 {
		f = append([]string{"0"}, f...)
	}
	if len(f) != 3 {
		return ""
	}
	dev, _, _ := strings.Cut(f[2], ".")
	var n [3]uint64
	for i, x := range []string{f[0], f[1], dev} {
		v, err := strconv.ParseUint(x, 16, 32)
		if err != nil {
			return ""
		}
		n[i] = v
	}
	return fmt.Sprintf("%04x:%02x:%02x", n[0], n[1], n[2])
}
