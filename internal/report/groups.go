package report

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// maxGroupsShown is how many process groups a short report tells of.
const maxGroupsShown = 4

// groupsOf lists the process groups worth telling: those in which a rank is missing, behind or
// mismatched; without such, those that ranks wait in.
func groupsOf(inc *incident.Incident) []incident.Group {
	var out []incident.Group
	for _, g := range inc.Groups {
		if len(g.Missing)+len(g.Behind)+len(g.Mismatched) > 0 {
			out = append(out, g)
		}
	}
	if len(out) == 0 && inc.FirstFaultStanding == incident.Undecidable && inc.FirstFault != nil && inc.FirstFault.KnownBy == "elimination" {
		out = inc.Groups
	}
	return out
}

// groupWords says of one group who is not where the others are.
func groupWords(g incident.Group) (name, text string) {
	name = "group " + g.Name
	switch {
	case g.Description != "" && g.Description != "undefined" && g.Description != g.Name:
		name = fmt.Sprintf("%s (group %s)", g.Description, g.Name)
	case g.Name == "":
		name = "group without a name"
	}
	if len(g.Members) > 0 {
		name += ", " + ranksWords(g.Members)
	}
	var parts []string
	if g.Op != "" {
		parts = append(parts, g.Op)
	}
	if g.Seq != nil {
		parts = append(parts, fmt.Sprintf("sequence number %d", *g.Seq))
	}
	text = strings.Join(parts, ", ")
	for _, x := range []struct {
		what  string
		ranks []int
	}{{"missing", g.Missing}, {"enqueued it and did not complete it", g.Behind}, {"in another call", g.Mismatched}} {
		if len(x.ranks) > 0 {
			if text != "" {
				text += "; "
			}
			text += x.what + ": " + ranksWords(x.ranks)
		}
	}
	return name, text
}

// groups says who is missing from which collective.
func (p *page) groups(inc *incident.Incident) {
	list := groupsOf(inc)
	if len(list) == 0 {
		return
	}
	p.section("Process groups")
	base := 6 // a fault with words of its own needs them least
	if f := inc.FirstFault; f != nil && f.KnownBy == "elimination" {
		base = 2
	}
	for i, g := range list {
		if i == maxGroupsShown && !p.full {
			p.at(base+2, func() { p.para(2, "", fmt.Sprintf("%d more", len(list)-i)) })
			return
		}
		name, text := groupWords(g)
		p.at(base+min(i, 3), func() { p.para(2, "", name+": "+text) })
	}
}

func (d *document) groups(inc *incident.Incident) {
	list := groupsOf(inc)
	if len(list) == 0 {
		return
	}
	d.heading(2, "Process groups")
	for i, g := range list {
		if i == maxGroupsShown && !d.full {
			d.item("- ", "", fmt.Sprintf("%d more", len(list)-i))
			return
		}
		name, text := groupWords(g)
		d.item("- ", upper(name)+": ", text)
	}
}
