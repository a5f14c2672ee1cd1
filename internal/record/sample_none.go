//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package record

import "os"

// maxResident is 0: this system does not say.
func maxResident(*os.ProcessState) int64 { return 0 }
