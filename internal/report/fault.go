package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// signals are the names of those that end training processes.
var signals = map[int64]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
}

// faultWords say what an event is. Of a process that ended they say how: its
// class alone would not tell a crash from a kill.
func faultWords(e *incident.Event) string {
	if e.Class != "process_exit" {
		return class(e.Class)
	}
	code, coded := integer(e.Attrs["code"])
	sig, _ := integer(e.Attrs["signal"])
	number := "" // as it was printed
	if coded {
		number = fmt.Sprintf(" (exit %d)", code)
		switch {
		case sig != 0:
		case code < 0:
			sig = -code
		case code > 128 && signals[code-128] != "":
			sig = code - 128
		}
	}
	if sig < 0 {
		sig = -sig
	}
	name := signals[sig]
	if name == "" && sig != 0 {
		name = fmt.Sprintf("signal %d", sig)
	}
	verb := "ended by "
	if sig == 9 {
		verb = "killed by "
	}
	switch e.Kind {
	case "worker_killed":
		if name == "" {
			return "a DataLoader worker was killed"
		}
		return "a DataLoader worker was " + verb + name
	case "worker_exited":
		return "a DataLoader worker went away"
	case "native_crash":
		if name == "" {
			return "a crash in native code"
		}
		return "a crash in native code (" + name + ")"
	}
	switch {
	case name != "" && e.Rank != nil:
		return verb + name + number
	case name != "":
		return "a process was " + verb + name + number
	case coded && e.Rank != nil:
		return fmt.Sprintf("exit code %d", code)
	case coded:
		return fmt.Sprintf("a process ended with exit code %d", code)
	}
	return class(e.Class)
}

// integer is the number of an attribute, which a stored incident has as JSON
// does.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	}
	return 0, false
}

// phaseWords say that the first fault struck in evaluation, where its stack, its
// metric or the phase before it shows that.
func (w *words) phaseWords(f *incident.Event) string {
	in := false
	if f.Class == "device_memory" {
		in = w.inc.Facts["oom.phase"].Value == "evaluation"
	}
	if m, ok := f.Attrs["metric"].(string); ok {
		in = in || strings.HasPrefix(m, "eval") || strings.HasPrefix(m, "val_")
	}
	if f.Frame != nil {
		name := strings.TrimLeft(f.Frame.Function, "_")
		in = in || strings.HasPrefix(name, "eval") || strings.HasPrefix(name, "validat")
	}
	if in {
		return " in evaluation"
	}
	return ""
}
