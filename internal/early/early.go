// Package early starts the command of `inquest run` before the rest of the program is
// initialised. The packages that read, reason and report take some three milliseconds for that,
// and a command that is run in the place of another should not wait for them.
//
// Packages are initialised in the order of their paths, each behind those that it imports
// ("Program initialization" in the specification of Go). So this one imports as little as starts
// a process, nothing of this program, and neither os/exec nor path/filepath, which stand behind
// most of what takes long. For the same reason it starts a command only in the plainest case: a
// Unix, a command line without options but the store's, a program that PATH has, outputs that are
// no terminal. All else, and whatever fails, is left to the command run as if nothing had been
// tried; run takes over what was started.
package early

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Start is a command that runs already, and the trial that it is.
type Start struct {
	ID      string
	Begun   time.Time // of the trial
	Started time.Time // of the command
	Log     *os.File  // new, in the trial's folder
	Process *os.Process
	// Out and Err are what the command prints; Err is nil where both outputs go to one place.
	Out, Err *os.File
	// Signals gets interrupts, hang-ups and terminations, those among them that are not ignored.
	Signals chan os.Signal
	Early   int // of these, how many came before the command was started
}

// started is the command that init started.
var started *Start

func init() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		started = begin(os.Args[1:])
	}
}

// Take returns what was started for args, once, where these are the arguments of this process;
// else nil.
func Take(args []string) *Start {
	if started == nil || !slices.Equal(args, os.Args[1:]) {
		return nil
	}
	s := started
	started = nil
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

// storeDir is the folder where trials are kept, as the command line of the program has it; "" where
// that takes more than joining.
func storeDir(named string) string {
	if named != "" {
		if !strings.HasPrefix(named, "/") {
			return ""
		}
		return named
	}
	if dir := os.Getenv("XDG_STATE_HOME"); strings.HasPrefix(dir, "/") {
		return dir + "/inquest"
	}
	if home := os.Getenv("HOME"); strings.HasPrefix(home, "/") {
		return home + "/.local/state/inquest"
	}
	return ""
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
	return dir + "/trials/" + begun.UTC().Format("2006-01") + "/" + id
}

// OpenLog makes a log, which must not exist.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}
