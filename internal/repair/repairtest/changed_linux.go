package repairtest

import (
	"io/fs"
	"os/signal"
	"syscall"
)

// changed is the time of the last change of a file's status.
func changed(info fs.FileInfo) int64 {
	st := info.Sys().(*syscall.Stat_t)
	return st.Ctim.Nano()
}

const canLimit = true

// limitFiles makes writing fail beyond a size of files.
func limitFiles(n uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}
