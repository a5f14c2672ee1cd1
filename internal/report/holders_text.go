package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

func writeHoldersText(w io.Writer, h *incident.Holders, o Options) error {
	h = cleanedHolders(h)
	p := newPage(&incident.Incident{}, o)
	v := &holdersView{h}
	for i, s := range v.answer() {
		rank := 0
		if i > 0 {
			rank = 2 + min(i/3, 4)
		}
		p.at(rank, func() {
			if i == 0 {
				for _, l := range wrap(sentence(upper(s)), p.width) {
					p.add(block{lines: []string{p.strong.Render(l)}})
				}
				return
			}
			p.para(0, "", sentence(s))
		})
	}
	p.holdersTables(v)
	if lines := v.openedLines(); len(lines) > 0 {
		p.section("Who has a device open")
		for i, s := range lines {
			p.at(1+min(i/2, 4), func() { p.para(2, "- ", sentence(s)) })
		}
	}
	p.holdersStrays(v)
	p.holdersUnseen(v)
	p.holdersActs(v)
	if len(h.Limits) > 0 {
		p.section("What cannot be seen")
		for i, s := range h.Limits {
			p.at(2+min(i/2, 3), func() { p.para(2, "- ", sentence(s)) })
		}
	}
	if len(h.Asked) > 0 && (p.full || h.Status == incident.HoldersNoAnswer) {
		p.section("Asked")
		for i := range h.Asked {
			p.at(3, func() { p.para(2, "- ", askedLine(&h.Asked[i])) })
		}
	}
	_, err := io.WriteString(w, p.text())
	return err
}

// holdersTables writes the devices and who holds them.
func (p *page) holdersTables(v *holdersView) {
	var devices, holders [][]string
	for i := range v.Devices {
		d := &v.Devices[i]
		devices = append(devices, deviceRow(d))
		for j := range d.Slices {
			devices = append(devices, sliceRow(d, &d.Slices[j]))
		}
		for j := range d.Holders {
			holders = append(holders, v.holderRow(deviceNumber(d), &d.Holders[j]))
		}
	}
	if len(devices) > 0 {
		cols := holdersDeviceColumns
		if p.width < 100 { // the name says more than the place on the bus
			cols = cols[:len(cols)-1]
			for i := range devices {
				devices[i] = devices[i][:len(cols)]
			}
		}
		p.grid("Devices", cols, devices, func(row int) int { return 4 + min(row/4, 4) })
	}
	if len(holders) > 0 {
		cols, rows := tellingHolders(holders)
		p.grid("Who holds their memory", cols, rows, func(row int) int { return 1 + min(row/4, 5) })
	}
	for i := range v.Devices {
		d := &v.Devices[i]
		for j := range d.Holders {
			h := &d.Holders[j]
			text := strings.Join(holderDetails(h), "; ")
			if p.full {
				text = strings.Join(append(holderDetails(h), h.Basis...), "; ")
			}
			if text != "" {
				p.at(4+min(j/2, 3), func() { p.para(2, fmt.Sprintf("%d: ", h.PID), sentence(text)) })
			}
		}
		for _, s := range d.Troubles {
			p.at(1, func() { p.para(2, "! ", sentence(fmt.Sprintf("device %s: %s", deviceNumber(d), s))) })
		}
	}
}

// sliceRow is a MIG instance in cells of holdersDeviceColumns.
func sliceRow(d *incident.HeldDevice, s *incident.HeldSlice) []string {
	name := "  instance"
	if s.GPUInstance != nil {
		name += fmt.Sprintf(" gi %d", *s.GPUInstance)
	}
	if s.ComputeInstance != nil {
		name += fmt.Sprintf(" ci %d", *s.ComputeInstance)
	}
	n := 0
	for i := range d.Holders {
		if s.GPUInstance != nil && strings.HasPrefix(d.Holders[i].Slice+" ", fmt.Sprintf("gi %d ", *s.GPUInstance)) {
			n++
		}
	}
	return []string{"", name, deviceSize(s.Used), deviceSize(s.Total), fmt.Sprint(n), "", ""}
}

func (p *page) holdersStrays(v *holdersView) {
	if len(v.Strays) == 0 {
		return
	}
	p.section("Contexts beside the own device")
	for i := range v.Strays {
		s := &v.Strays[i]
		p.at(1, func() { p.para(2, "- ", sentence(straysLine(s))) })
		p.at(2, func() {
			p.para(4, "", sentence(s.Advice+"; inquest explain "+s.Entry))
		})
	}
}

// straysLine names the processes as well.
func straysLine(s *incident.HolderStrays) string {
	var who []string
	for i, pid := range s.PIDs {
		if i == 8 {
			who = append(who, fmt.Sprintf("%d more", len(s.PIDs)-i))
			break
		}
		who = append(who, fmt.Sprintf("%d of device %d", pid, s.Own[i]))
	}
	return s.Says + "; processes " + listed(who, 9)
}

func (p *page) holdersActs(v *holdersView) {
	for _, t := range actTitles {
		begun := false
		n := 0
		for i := range v.Acts {
			a := &v.Acts[i]
			if a.Kind != t.kind {
				continue
			}
			if !begun {
				p.section(t.title)
				begun = true
			}
			rank := min(1+n, 5)
			if a.Kind == incident.HolderActLeave {
				rank = min(4+n, 8)
			}
			n++
			p.at(rank, func() { p.para(2, "- ", sentence(actLine(a))) })
			if a.Kind != incident.HolderActEnd {
				rank++
			}
			p.at(rank, func() { p.holderCommands(a) })
		}
	}
}

func (p *page) holderCommands(a *incident.HolderAct) {
	for _, c := range a.Check {
		p.command("look", c)
	}
	for _, c := range a.Do {
		p.command("then", c)
	}
}

// command writes a command on a line of its own where it fits, so that it can be copied.
func (p *page) command(label string, c incident.HolderCommand) {
	text := fmt.Sprintf("    %s: %s", label, oneLine(c.Command))
	if full := text + "   # " + oneLine(c.For); columns(full) <= p.width {
		text = full
	}
	if columns(text) <= p.width {
		p.add(block{lines: []string{text}, rank: p.rank})
		return
	}
	p.para(4, label+": ", oneLine(c.Command))
}

func (p *page) holdersUnseen(v *holdersView) {
	groups := v.unseen()
	if len(groups) == 0 {
		return
	}
	p.section("Memory in use that no process accounts for")
	for i := range groups {
		g := &groups[i]
		rank := min(1+i, 6)
		p.at(rank, func() { p.para(2, "- ", sentence(g.says)) })
		for _, s := range g.reasons {
			p.at(rank+1, func() { p.para(4, "perhaps ", sentence(s)) })
		}
		p.at(rank+2, func() { p.para(4, "then ask ", sentence(g.ask)) })
	}
}
