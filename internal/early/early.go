// Package early starts the command of `inquest run` before the rest of the program is
// initialised, so that it is delayed by a little more than the start of a process. The packages
// that read, reason and report take some three milliseconds to initialise, and the command
// needs none of them.
//
// Initialisation begins with the packages that import least, and this one imports only what
// starts a process: its init runs among the first. It starts the command only where the command
// line is as simple as it mostly is, makes the folder and the log of the trial before, and
// leaves all else, each error among it, to the command `run`, which takes over what was started
// and is given none where nothing was.
package early

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/process"
)

// A Start is a command that runs already, and the trial that it is.
type Start struct {
	ID      string
	Begun   time.Time
	Dir     string // the folder of the store
	Log     *os.File
	Process *process.Process
}

// started is the command that init started.
var started *Start

func init() { started = begin(os.Args[1:]) }

// Take returns what was started for the arguments of this process, once; nil where nothing was.
func Take(args []string) *Start {
	if started == nil || !slices.Equal(args, os.Args[1:]) {
		return nil
	}
	s := started
	started = nil
	return s
}

func begin(args []string) *Start {
	store, command, ok := parse(args)
	if !ok {
		return nil
	}
	dir, err := StoreDir(store)
	if err != nil {
		return nil
	}
	s := &Start{Begun: time.Now(), Dir: dir}
	s.ID = NewID(s.Begun)
	folder := TrialDir(dir, s.ID, s.Begun)
	if os.MkdirAll(folder, 0o700) != nil {
		return nil
	}
	if s.Log, err = OpenLog(filepath.Join(folder, LogName)); err != nil {
		os.Remove(folder)
		return nil
	}
	s.Process = process.Start(process.Options{Command: command, Log: s.Log, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Forward: true})
	return s
}

// parse finds the store and the command in the arguments of `inquest run`, where nothing about
// them is wrong or special.
func parse(args []string) (store string, command []string, ok bool) {
	if len(args) == 0 || args[0] != "run" {
		return "", nil, false
	}
	for args = args[1:]; len(args) > 0; args = args[1:] {
		switch a := args[0]; {
		case a == "--":
			return store, args[1:], len(args) > 1 && args[1] != ""
		case a == "--store" && len(args) > 1:
			store, args = args[1], args[1:]
		case strings.HasPrefix(a, "--store="):
			store = strings.TrimPrefix(a, "--store=")
		case strings.HasPrefix(a, "-") || a == "":
			return "", nil, false
		default:
			return store, args, true
		}
	}
	return "", nil, false
}

// StoreDir is the folder where trials are kept: named, or $XDG_STATE_HOME/inquest.
func StoreDir(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "inquest"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if home == "" {
		return "", errors.New("the home folder is not known")
	}
	return filepath.Join(home, ".local", "state", "inquest"), nil
}

// NewID is the id of a trial that begins now. No other process takes it at the same moment, and
// ids are in the order of time.
func NewID(now time.Time) string {
	const digits = 1 << 40 // ten of them in base 16
	number := strconv.FormatUint(digits+rand.Uint64N(digits), 16)[1:]
	return "t" + now.UTC().Format("20060102-150405") + "-" + number
}

// LogName is the file in a trial's folder that has what the command printed.
const LogName = "output.log"

// TrialDir is the folder of a trial in the store dir.
func TrialDir(dir, id string, begun time.Time) string {
	return filepath.Join(dir, "trials", begun.UTC().Format("2006-01"), id)
}

// OpenLog makes a log, which must not exist.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}
