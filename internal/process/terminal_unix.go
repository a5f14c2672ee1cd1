//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package process

import (
	"bytes"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A terminal is a pseudo-terminal between the command and the user's terminal. Where the user's is
// both read and written, the command is the first of a session of its own on the inner one, whose
// line discipline makes signals of the keys that are typed and edits lines; the user's one, raw
// meanwhile, only passes keys and output on, as with script(1).
//
// Where something else is read or written the user's terminal belongs to others too: a pager
// behind the command, a question on /dev/tty. Then the inner one only stands for what the command
// prints: session, process group, keys and signals stay as they are.
//
// In a session of its own one key needs help. A process group whose parent is in another session is not stopped by the
// terminal's stop key, because nobody there could resume it. Where the command does not itself
// handle that signal, it is stopped here, and so is this process with its group: their shell sees
// a stopped job, and resuming it resumes both.
type terminal struct {
	master, inner *os.File
	outer         *os.File // the user's, whose mode and size count
	typed         bool     // keys come from outer, and the command has a session of its own

	wake [2]*os.File // a byte ends the wait for keys

	mu      sync.Mutex
	command int         // process number of the command, 0 before its start
	saved   *term.State // mode of outer, while it is raw
	over    bool
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	is, err := ioctl(f, func(fd int) (bool, error) { return term.IsTerminal(fd), nil })
	return err == nil && is
}

// openTerminal makes a pseudo-terminal of the mode and the size of the user's, which shows what
// the command prints on shown; keys come from in, unless it is nil.
func openTerminal(in, shown *os.File) (*terminal, error) {
	t := &terminal{outer: shown}
	if in != nil {
		t.outer, t.typed = in, true
	}
	var err error
	if t.master, t.inner, err = pty.Open(); err != nil {
		return nil, err
	}
	mode, err := ioctl(t.outer, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, getMode) })
	if err == nil {
		if !t.typed {
			mode.Oflag &^= unix.OPOST // the user's terminal, which is not raw, adds the returns
		}
		_, err = ioctl(t.inner, func(fd int) (int, error) { return 0, unix.IoctlSetTermios(fd, setMode, mode) })
	}
	if err == nil && t.typed {
		t.wake[0], t.wake[1], err = os.Pipe()
	}
	if err != nil {
		t.master.Close()
		t.inner.Close()
		return nil, err
	}
	t.resize()
	return t, nil
}

// attributes say in which process group, session and terminal the command starts.
func (s *streams) attributes(group bool) *syscall.SysProcAttr {
	switch {
	case s.session():
		return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	case group:
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return nil
}

// enter takes the user's terminal for command, as long as this process is in its foreground, and
// begins to pass keys on.
func (t *terminal) enter(command int) {
	t.mu.Lock()
	t.command = command
	t.mu.Unlock()
	if t.typed {
		t.raw(false)
		go t.keys()
	}
}

// raw makes the user's terminal raw where it is this process's to change, and reports whether it
// is raw. With again it makes it so in any case: a shell may have changed it meanwhile.
func (t *terminal) raw(again bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || !t.typed {
		return false
	}
	if t.saved != nil && !again {
		return true
	}
	if !inForeground() {
		return false
	}
	state, err := ioctl(t.outer, func(fd int) (*term.State, error) { return term.MakeRaw(fd) })
	if err != nil {
		return false
	}
	if t.saved == nil {
		t.saved = state
	}
	return true
}

// restore gives the user's terminal back its mode.
func (t *terminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil {
		ioctl(t.outer, func(fd int) (int, error) { return 0, term.Restore(fd, t.saved) })
		t.saved = nil
	}
}

// leave gives the user's terminal back for good. It may be called again.
func (t *terminal) leave() {
	t.restore()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && t.typed {
		t.wake[1].Write([]byte{0})
	}
	t.over = true
}

// resize gives the command's terminal the size of the user's; the system tells the command.
func (t *terminal) resize() {
	size, err := ioctl(t.outer, func(fd int) (*unix.Winsize, error) { return unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ) })
	if err == nil {
		ioctl(t.master, func(fd int) (int, error) { return 0, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	}
}

// resume is called when this process was resumed.
func (t *terminal) resume() {
	t.raw(true)
	t.resize()
	if g := t.foreground(); g > 0 {
		unix.Kill(-g, unix.SIGCONT)
	}
}

// foreground is the process group that reads the command's terminal, 0 where none is known.
func (t *terminal) foreground() int {
	g, err := ioctl(t.master, func(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	if err != nil {
		return 0
	}
	return g
}

// keys passes on what is typed, until the command has ended. In the background nothing is read:
// what is typed is for another job.
func (t *terminal) keys() {
	in, err := ioctl(t.outer, func(fd int) (int, error) { return fd, nil })
	if err != nil {
		return
	}
	wake, err := ioctl(t.wake[0], func(fd int) (int, error) { return fd, nil })
	if err != nil {
		return
	}
	defer t.wake[0].Close()
	buf := make([]byte, 4096)
	for {
		wait := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}, {Fd: int32(in), Events: unix.POLLIN}}
		timeout := -1
		if !t.raw(false) {
			wait, timeout = wait[:1], 200 // a shell that brings a job to the foreground need not say so
		}
		n, err := unix.Poll(wait, timeout)
		switch {
		case err == unix.EINTR || err == nil && n == 0:
			continue
		case err != nil || wait[0].Revents != 0:
			return
		}
		n, err = unix.Read(in, buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil || n <= 0:
			return // the terminal is gone
		}
		if !t.pass(buf[:n]) {
			return
		}
	}
}

// pass gives keys to the command, and reports whether it can take more.
func (t *terminal) pass(keys []byte) bool {
	for len(keys) > 0 {
		i := -1
		if stop, ok := t.stopKey(); ok {
			i = bytes.IndexByte(keys, stop)
		}
		now := keys
		if i >= 0 {
			now = keys[:i]
		}
		if len(now) > 0 {
			if _, err := t.master.Write(now); err != nil {
				return false
			}
		}
		if i < 0 {
			return true
		}
		t.suspend()
		keys = keys[i+1:]
	}
	return true
}

// stopKey is the key that stops the command, where the command's terminal makes a signal of it
// that would be for the command's own process group, and the command takes it as it comes.
func (t *terminal) stopKey() (byte, bool) {
	mode, err := ioctl(t.master, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, getMode) })
	if err != nil || mode.Lflag&unix.ISIG == 0 {
		return 0, false
	}
	key := mode.Cc[unix.VSUSP]
	if key == 0 || key == 0xff { // none
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return key, t.command > 0 && t.foreground() == t.command && !handles(t.command, unix.SIGTSTP)
}

// suspend stops the command, then this process, and resumes the command when this process was
// resumed; where nothing can stop it, because no shell would resume it, at once.
func (t *terminal) suspend() {
	group := t.foreground()
	if group <= 0 {
		return
	}
	unix.Kill(-group, unix.SIGSTOP)
	t.restore()
	unix.Kill(0, unix.SIGTSTP)
	time.Sleep(10 * time.Millisecond) // the process stops here at the latest
	t.resume()
}
