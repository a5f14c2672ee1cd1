//go:build unix

package early

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// begin starts the command, behind making its folder and its log; nil where it left that to
// others, and nothing of it is left then.
func begin(args []string) *Start {
	named, command, ok := parse(args)
	dir := storeDir(named)
	if !ok || dir == "" {
		return nil
	}
	program := find(command[0])
	if program == "" || isDevice(os.Stdout) || isDevice(os.Stderr) {
		return nil
	}
	s := &Start{Begun: time.Now()}
	s.ID = NewID(s.Begun)
	caught := s.catch()
	folder := TrialDir(dir, s.ID, s.Begun)
	if os.Mkdir(folder, 0o700) != nil && os.MkdirAll(folder, 0o700) != nil {
		<-caught
		s.leave()
		return nil
	}
	log := folder + "/" + LogName
	var err error
	if s.Log, err = OpenLog(log); err != nil {
		os.Remove(folder)
		<-caught
		s.leave()
		return nil
	}
	<-caught
	s.Early = len(s.Signals)
	if s.start(program, command) != nil {
		s.Log.Close()
		os.Remove(log)
		os.Remove(folder)
		s.leave()
		return nil
	}
	return s
}

// catch begins to catch the signals of ending, and closes the channel that it returns when it
// does: a command that was started before that would be left alone by one that came between. It
// takes the runtime as long as the start of a process, so that other things are done meanwhile.
func (s *Start) catch() <-chan struct{} {
	s.Signals = make(chan os.Signal, 64)
	caught := make(chan struct{})
	go func() {
		defer close(caught)
		for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(sig) {
				signal.Notify(s.Signals, sig)
			}
		}
	}()
	return caught
}

// leave ends the catching; a signal that came meanwhile is sent again, to be caught by others.
func (s *Start) leave() {
	signal.Stop(s.Signals)
	for len(s.Signals) > 0 {
		syscall.Kill(os.Getpid(), (<-s.Signals).(syscall.Signal))
	}
}

// start makes the pipes and starts the command.
func (s *Start) start(program string, command []string) error {
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	outputs := []*os.File{w, w}
	if !samePlace(os.Stdout, os.Stderr) {
		var errors *os.File
		if s.Err, errors, err = os.Pipe(); err != nil {
			out.Close()
			return err
		}
		defer errors.Close()
		outputs[1] = errors
	}
	s.Out = out
	// os.StartProcess would try first what this system's processes are watched with.
	pid, err := syscall.ForkExec(program, command, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{os.Stdin.Fd(), outputs[0].Fd(), outputs[1].Fd()},
	})
	s.Started = time.Now()
	if err == nil {
		s.Process, _ = os.FindProcess(pid) // no error on a Unix
	} else {
		s.Out.Close()
		if s.Err != nil {
			s.Err.Close()
		}
	}
	return err
}

// find is the program that a shell runs for name; "" where that is not plain.
func find(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, folder := range strings.Split(os.Getenv("PATH"), ":") {
		if !strings.HasPrefix(folder, "/") {
			return "" // the working folder is meant, or a place in it
		}
		path := folder + "/" + name
		st, err := os.Stat(path)
		if err != nil || st.IsDir() {
			continue
		}
		if st.Mode()&0o111 == 0 || syscall.Access(path, 1) != nil {
			return ""
		}
		return path
	}
	return ""
}

// isDevice reports whether f may be a terminal.
func isDevice(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return err != nil
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}

// samePlace reports whether two streams go to the same place.
func samePlace(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}
