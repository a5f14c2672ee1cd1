package repairtest

import (
	"io/fs"
	"syscall"
)

// changed is the time of the last change of a file's status.
func changed(info fs.FileInfo) int64 {
	st := info.Sys().(*syscall.Stat_t)
	return st.Ctim.Nano()
}
