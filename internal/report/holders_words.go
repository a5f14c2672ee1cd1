package report

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A holdersView is who holds the devices as reports speak of it.
type holdersView struct{ *incident.Holders }

func cleanedHolders(h *incident.Holders) *incident.Holders {
	return copyClean(reflect.ValueOf(h)).Interface().(*incident.Holders)
}

// deviceSize is a size in words as the answers have it: GiB with one decimal, below one whole
// MiB; "?" where it is not known.
func deviceSize(n *int64) string {
	switch {
	case n == nil:
		return "?"
	case *n < 1<<30:
		return fmt.Sprintf("%d MiB", *n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(*n)/(1<<30))
}

var holdersDeviceColumns = []gridColumn{{"device", true, 2}, {"name", false, 0}, {"used", true, 2}, {"of", true, 3}, {"processes", true, 4}, {"not seen", true, 5}, {"bus", false, 6}}

// deviceRow is a device in cells of holdersDeviceColumns.
func deviceRow(d *incident.HeldDevice) []string {
	unseen := "–"
	switch {
	case d.Unseen == nil:
		unseen = "?"
	case d.Unseen.Lo > 0:
		unseen = deviceSize(&d.Unseen.Hi)
	}
	name := oneLine(d.Name)
	if name == "" {
		name = "unnamed"
	}
	return []string{deviceNumber(d), name, deviceSize(d.Used), deviceSize(d.Total), strconv.Itoa(len(d.Holders)), unseen, oneLine(d.BusID)}
}

func deviceNumber(d *incident.HeldDevice) string {
	if d.Index == nil {
		return "?"
	}
	return strconv.Itoa(*d.Index)
}

var holderColumns = []gridColumn{{"device", true, 2}, {"process", true, 2}, {"memory", true, 2}, {"whose", false, 3}, {"state", false, 6}, {"what", false, 5}, {"since", false, 7}, {"command", false, 0}}

// holderRow is a holder in cells of holderColumns.
func (v *holdersView) holderRow(device string, h *incident.Holder) []string {
	command := h.Command
	if command == "" {
		command = h.Name
	}
	kind := kindOfHolder(h)
	if h.Slice != "" {
		kind += ", " + oneLine(h.Slice)
	}
	return []string{device, strconv.Itoa(h.PID), deviceSize(h.Bytes), whoseWords(h), stateWords(h.State), kind, v.since(h.Started), oneLine(command)}
}

// tellingHolders leaves out the columns of a table of holders that say the same of each: that it runs,
// or that nothing is known.
func tellingHolders(rows [][]string) ([]gridColumn, [][]string) {
	keep := make([]bool, len(holderColumns))
	for i := range holderColumns {
		keep[i] = holderColumns[i].drop < 3 || slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "?" && r[i] != incident.HolderRunning })
	}
	var cols []gridColumn
	out := make([][]string, len(rows))
	for i, c := range holderColumns {
		if !keep[i] {
			continue
		}
		cols = append(cols, c)
		for j, r := range rows {
			out[j] = append(out[j], r[i])
		}
	}
	return cols, out
}

// whoseWords name the owner of a holder in a cell.
func whoseWords(h *incident.Holder) string {
	switch h.Whose {
	case incident.HolderYours:
		return "yours"
	case incident.HolderOthers:
		return oneLine(h.User)
	}
	return "?"
}

func stateWords(state string) string {
	switch state {
	case incident.HolderNotShown:
		return "?"
	case incident.HolderZombie:
		return "ended"
	}
	return oneLine(state)
}

func kindOfHolder(h *incident.Holder) string {
	s := oneLine(h.Kind)
	if h.Kind == incident.HolderUnknown || h.Kind == "" {
		s = "?"
	}
	if h.Rank != "" {
		s += " rank " + oneLine(h.Rank)
	}
	if h.Orphan != "" {
		s += ", parent ended"
	}
	return s
}

// since is how long a process has run when the question was asked: 3d 4h, 12m. It is the time
// itself where that is not known.
func (v *holdersView) since(started string) string {
	from, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return "?"
	}
	now, err := time.Parse(time.RFC3339, v.Taken)
	if err != nil || now.Before(from) {
		return from.UTC().Format("2006-01-02 15:04")
	}
	switch d := now.Sub(from); {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}

// details are what is known of a holder beyond its row.
func holderDetails(h *incident.Holder) []string {
	var out []string
	if h.Job != nil {
		s := fmt.Sprintf("%s job %s", h.Job.Scheduler, h.Job.ID)
		if h.Job.Step != "" {
			s += ", step " + h.Job.Step
		}
		out = append(out, s)
	}
	if c := h.Container; c != nil {
		s := c.Runtime + " container " + cut(c.ID, 12)
		if c.ID == "" {
			s = "container of " + c.Runtime
		}
		if c.Pod != "" {
			s += ", pod " + c.Pod
		}
		out = append(out, s)
	}
	if h.Service != "" {
		out = append(out, "systemd "+h.Service)
	}
	if h.ChildOf != 0 {
		out = append(out, fmt.Sprintf("started by process %d", h.ChildOf))
	}
	if h.Orphan != "" {
		out = append(out, h.Orphan)
	}
	return out
}

// titles of the acts by their kind, in the order in which they are printed.
var actTitles = []struct{ kind, title string }{
	{incident.HolderActEnd, "What you may end"},
	{incident.HolderActShut, "Notebooks that you may shut down"},
	{incident.HolderActAsk, "Whom to ask"},
	{incident.HolderActLook, "Where to look"},
	{incident.HolderActLeave, "Yours and running"},
}

// actLine is an act in one sentence, with what it holds.
func actLine(a *incident.HolderAct) string {
	s := oneLine(a.Says)
	if a.Bytes != nil && len(a.Devices) > 0 && a.PID != 0 && a.Kind != incident.HolderActLook {
		var on []string
		for _, d := range a.Devices {
			on = append(on, strconv.Itoa(d))
		}
		of := "device"
		if len(on) > 1 {
			of = "devices"
		}
		hold := "it holds"
		if len(a.PIDs) > 1 {
			hold = "they hold"
		}
		s += fmt.Sprintf("; %s %s on %s %s", hold, deviceSize(a.Bytes), of, strings.Join(on, ", "))
	}
	return s
}

// title of a page or document.
func (v *holdersView) title() string {
	if v.Source != "live" {
		return "Who holds the devices in " + oneLine(v.Source)
	}
	if v.Place.Host != "" {
		return "Who holds the devices of " + oneLine(v.Place.Host)
	}
	return "Who holds the devices"
}

// mostSentences is of how many devices in use each gets a sentence.
const mostSentences = 4

// answer is the first sentence, then that of each device where there are several in use.
func (v *holdersView) answer() []string {
	out := []string{v.Says}
	busy := 0
	for i := range v.Devices {
		if d := &v.Devices[i]; len(d.Holders) > 0 || d.Unseen != nil && d.Unseen.Lo > 0 {
			busy++
		}
	}
	if busy > mostSentences {
		return out // the table says it
	}
	for i := range v.Devices {
		d := &v.Devices[i]
		if (len(d.Holders) > 0 || d.Unseen != nil && d.Unseen.Lo > 0 || len(d.Troubles) > 0) && !strings.HasPrefix(v.Says, d.Says) {
			out = append(out, d.Says)
		}
	}
	return out
}

// askedLine says how a command fared.
func askedLine(a *incident.HolderTool) string {
	s := oneLine(a.Command) + ": " + oneLine(a.Answer)
	if a.Detail != "" {
		s += ": " + oneLine(a.Detail)
	}
	return s
}

// An unseenGroup is devices whose memory is unseen for the same reasons.
type unseenGroup struct {
	says    string
	reasons []string
	ask     string
}

// unseen are the devices of which memory is in use that no process accounts for, those with
// the same reasons together.
func (v *holdersView) unseen() []unseenGroup {
	type group struct {
		numbers []string
		lo, hi  int64
		first   *incident.HolderUnseen
	}
	var groups []*group
	for i := range v.Devices {
		d := &v.Devices[i]
		u := d.Unseen
		if u == nil || u.Lo == 0 {
			continue
		}
		var to *group
		for _, g := range groups {
			if slices.Equal(g.first.Reasons, u.Reasons) {
				to = g
			}
		}
		if to == nil {
			to = &group{first: u}
			groups = append(groups, to)
		}
		to.numbers = append(to.numbers, deviceNumber(d))
		to.lo, to.hi = to.lo+u.Lo, to.hi+u.Hi
	}
	var out []unseenGroup
	for _, g := range groups {
		of := "device " + g.numbers[0]
		basis := g.first.Basis
		if len(g.numbers) > 1 {
			of = "devices " + strings.Join(g.numbers, ", ") + " together"
			basis = "of the first: " + basis
		}
		out = append(out, unseenGroup{fmt.Sprintf("%s: %s to %s; %s", of, deviceSize(&g.lo), deviceSize(&g.hi), basis), g.first.Reasons, g.first.Ask})
	}
	return out
}

// openedLines name the processes that have a device open and that no tool lists, where nothing
// else says who holds its memory.
func (v *holdersView) openedLines() []string {
	var out []string
	for i := range v.Devices {
		d := &v.Devices[i]
		if len(d.Opened) == 0 || d.Unseen != nil {
			continue // the reasons for what is unseen name them
		}
		var who []string
		for j := range d.Opened {
			h := &d.Opened[j]
			command := h.Command
			if command == "" {
				command = h.Name
			}
			who = append(who, fmt.Sprintf("%d (%s, %s)", h.PID, whoseWords(h), cut(command, 40)))
		}
		name := "device " + deviceNumber(d)
		if d.Index == nil {
			name = "the device at " + oneLine(d.BusID)
		}
		out = append(out, fmt.Sprintf("%s is open in %s %s, which alone holds no memory", name, map[bool]string{true: "process", false: "processes"}[len(who) == 1], listed(who, 6)))
	}
	return out
}
