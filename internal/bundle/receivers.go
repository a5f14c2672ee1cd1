package bundle

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Causes that are not the owner's of the training to mend, and whose they are; what is not listed
// is code, data or settings of the run, and the owner's.
var receivers = map[string][]string{
	"hardware-fault": {incident.ToVendor, incident.ToAdministrator}, "cgroup-limit": {incident.ToAdministrator, incident.ToOwner}, "host-ram": {incident.ToOwner, incident.ToAdministrator},
	"shm-exhausted": {incident.ToAdministrator, incident.ToOwner}, "address-space-limit": {incident.ToAdministrator, incident.ToOwner}, "time-limit": {incident.ToAdministrator, incident.ToOwner},
	"preempted-or-requeued": {incident.ToAdministrator}, "killed-unknown": {incident.ToAdministrator}, "disk-full": {incident.ToAdministrator, incident.ToOwner}, "slow-storage": {incident.ToAdministrator},
	"other-process-on-gpu": {incident.ToAdministrator, incident.ToOwner}, "dead-process-holds-memory": {incident.ToAdministrator, incident.ToOwner}, "network-fault": {incident.ToAdministrator, incident.ToVendor},
	"rendezvous-failed": {incident.ToAdministrator, incident.ToOwner}, "version-mismatch": {incident.ToAdministrator, incident.ToOwner}, "access-denied": {incident.ToAdministrator},
}

// classReceivers decide where no cause is named.
var classReceivers = map[string][]string{
	"device_fault": {incident.ToVendor, incident.ToAdministrator}, "external_stop": {incident.ToAdministrator}, "storage": {incident.ToAdministrator}, "environment": {incident.ToAdministrator, incident.ToOwner},
}

var whyReceiver = map[string]string{
	incident.ToVendor:        "it is a fault of a device or its link, which the job cannot cause or mend",
	incident.ToAdministrator: "it is about the machine, its limits, its scheduler, storage or network, which a job cannot change",
	incident.ToOwner:         "it is about the run's own code, data, settings or size",
}

// Receivers says who should have the bundle, from the leading cause of a diagnosis, the first fault
// where it names none. to, if it is not "", is the only one.
func Receivers(d *incident.Incident, to string) []incident.BundleReceiver {
	about, standing := "no cause is decided", incident.Undecidable
	list := []string{incident.ToOwner}
	if f := d.FirstFault; f != nil {
		about = "the first fault is of the class " + strings.ReplaceAll(f.Class, "_", " ")
		standing = d.FirstFaultStanding
		if l, ok := classReceivers[f.Class]; ok {
			list = l
		}
	}
	if len(d.Hypotheses) > 0 && d.Hypotheses[0].Standing != incident.RuledOut {
		h := &d.Hypotheses[0]
		about, standing = strings.TrimSuffix(cmp.Or(h.Title, h.Cause), ".")+" ("+h.Standing+")", h.Standing
		if l, ok := receivers[h.Cause]; ok {
			list = l
		}
	}
	var out []incident.BundleReceiver
	named := false
	for _, who := range list {
		if to == "" || to == who {
			out = append(out, incident.BundleReceiver{Who: who, Why: about + ": " + whyReceiver[who], Standing: standing})
			named = true
		}
	}
	if !named {
		out = append(out, incident.BundleReceiver{Who: to, Why: about + ": the diagnosis names " + strings.Join(list, " and ") + "; it was asked for", Standing: standing})
	}
	return out
}

var askOf = map[string]string{
	incident.ToVendor:        "Please say whether this is a known fault of the device or driver, and whether the device should be replaced.",
	incident.ToAdministrator: "Please look at the host or limit that is named, and say whether it is as intended.",
	incident.ToOwner:         "Please look at the change that is proposed, and verify it (inquest verify).",
}

// Message is a short text to send with a bundle.
func Message(m *incident.Bundle, d *incident.Incident) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	who := m.To[0]
	line("To: %s", who.Who)
	what := "a training run failed; what failed first could not be decided"
	if f := d.FirstFault; f != nil {
		what = "a training run failed: " + clip(strings.ReplaceAll(f.Text, "\n", " "), 160)
	}
	line("Subject: %s", clip(what, 120))
	line("")
	line("What happened first: %s.", strings.TrimSuffix(what, "."))
	if f := d.FirstFault; f != nil {
		var at []string
		if f.Rank != nil {
			at = append(at, fmt.Sprintf("rank %d", *f.Rank))
		}
		if f.Host != nil && *f.Host != "" {
			at = append(at, "host "+*f.Host)
		}
		if f.Device != nil {
			at = append(at, fmt.Sprintf("device %d", *f.Device))
		}
		if f.Step != nil {
			at = append(at, fmt.Sprintf("step %d", *f.Step))
		}
		if len(at) > 0 {
			line("Where: %s.", strings.Join(at, ", "))
		}
		line("That it was first is %s: %s", strings.ReplaceAll(d.FirstFaultStanding, "_", " "), d.FirstFaultBasis)
	}
	line("Why you: %s.", strings.TrimSuffix(who.Why, "."))
	if d.Remedy != nil && d.Remedy.Change != "" {
		line("Proposed: %s", clip(strings.ReplaceAll(d.Remedy.Change, "\n", " "), 300))
	}
	line("")
	line("%s", askOf[who.Who])
	line("")
	line("Attached: the diagnosis (%s/report.txt, .md, .html), the lines that prove it, and the logs. Names of people, machines and", Reports)
	line("places, secrets and samples of data were replaced before it left the machine; the same name has the same token everywhere.")
	return b.String()
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
