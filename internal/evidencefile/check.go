package evidencefile

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// newer says of a record that holds what this program does not declare.
func newer(format string, args ...any) error {
	return fmt.Errorf(format+", which this program does not know: the evidence was kept by another version, or is damaged", args...)
}

// check is the first reason why a decoded record is not evidence that this
// program can weigh: a kind, an attribute, a fact or a type that is not declared,
// or a name that can be none. Later stages rely on the declarations.
func check(a *Artifact) error {
	for i := range a.Events {
		if err := checkEvent(&a.Events[i]); err != nil {
			return err
		}
	}
	for i := range a.Facts {
		f := &a.Facts[i]
		want, ok := factType(f.Name)
		switch {
		case !ok && !strings.HasPrefix(f.Name, "setting."): // those are named by the runs
			return newer("a fact named %.60q", f.Name)
		case ok && f.Value.T != want || !f.Value.Valid():
			return newer("fact %.60q as %s", f.Name, f.Value.T)
		}
		if err := checkHost(f.Who.Host); err != nil {
			return err
		}
	}
	for _, o := range a.Owners {
		if err := checkHost(o.Host); err != nil {
			return err
		}
	}
	return checkHost(a.Host)
}

func checkEvent(e *evidence.Event) error {
	spec := evidence.SpecOf(e.Kind)
	if spec == nil {
		return newer("an event of the kind %.60q", e.Kind)
	}
	for n, v := range e.Attrs {
		switch a := spec.Attr(n); {
		case a == nil:
			return newer("attribute %.60q of the kind %q", n, e.Kind)
		case a.Type != v.T:
			return newer("attribute %q of the kind %q as %s", n, e.Kind, v.T)
		}
	}
	if err := checkHost(e.Who.Host); err != nil {
		return err
	}
	return checkHost(e.Stamp.Host)
}

func checkHost(s string) error {
	if !evidence.HostName(s) {
		return fmt.Errorf("a host named %.60q: no host has such a name", s)
	}
	return nil
}

// factType is the type of fact n, as it or the kind that it counts declares it.
func factType(n string) (evidence.Type, bool) {
	if f := evidence.FactOf(n); f != nil {
		return f.Type, true
	}
	if kind, ok := strings.CutPrefix(n, "seen."); ok && evidence.SpecOf(evidence.Kind(kind)) != nil {
		return evidence.Int, true
	}
	return 0, false
}
