package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// more are signals of this system that are passed on. Schedulers warn a job with any of them.
var more = func() []os.Signal {
	list := []os.Signal{syscall.SIGPWR}
	for n := syscall.Signal(35); n <= 64; n++ { // 32 to 34 belong to the C library
		list = append(list, n)
	}
	return list
}()

// widen lets a pipe hold as much as anybody may ask for, so that long output passes with fewer
// turns. It may fail.
func widen(f *os.File) {
	ioctl(f, func(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20) })
}
