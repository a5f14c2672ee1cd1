package report

import (
	"fmt"
	"html/template"
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of one page of holders.
const (
	holderRows  = 1000
	holderTexts = 200
)

// A holdersPage is what the template sees, and what markdown has of it.
type holdersPage struct {
	Title, Answer    string
	More             []string
	Tone             string
	Devices, Holders [][]string
	Left             int64 // holders beyond holderRows
	Details          []string
	Opened           []string
	Strays           []string
	Acts             []holdersSection
	Unseen           []string
	Limits, Asked    []string
	Taken            string
	Tool             incident.Tool
	Schema           string
	Policy           template.HTML
	Style            template.CSS
}

// A holdersSection is the acts of one kind.
type holdersSection struct {
	Title string
	Acts  []incident.HolderAct
}

// page gathers the parts of a page.
func (v *holdersView) page() *holdersPage {
	p := &holdersPage{Title: v.title(), Answer: sentence(upper(v.Says)), More: v.answer()[1:], Tone: "plain", Opened: v.openedLines(), Limits: v.Limits, Taken: v.Taken, Tool: v.Tool, Schema: v.Schema}
	if v.Status != incident.HoldersAnswered {
		p.Tone = "open"
	}
	put := func(list *[]string, s string) {
		if s != "" && len(*list) < holderTexts {
			*list = append(*list, sentence(s))
		}
	}
	for i := range v.Devices {
		d := &v.Devices[i]
		p.Devices = append(p.Devices, deviceRow(d))
		for j := range d.Slices {
			p.Devices = append(p.Devices, sliceRow(d, &d.Slices[j]))
		}
		for j := range d.Holders {
			h := &d.Holders[j]
			if len(p.Holders) == holderRows {
				p.Left++
				continue
			}
			p.Holders = append(p.Holders, v.holderRow(deviceNumber(d), h))
			for _, s := range append(holderDetails(h), h.Basis...) {
				put(&p.Details, fmt.Sprintf("process %d: %s", h.PID, s))
			}
		}
		for _, s := range d.Troubles {
			put(&p.Details, fmt.Sprintf("device %s: %s", deviceNumber(d), s))
		}
	}
	for _, g := range v.unseen() {
		put(&p.Unseen, g.says)
		for _, s := range g.reasons {
			put(&p.Unseen, "perhaps "+s)
		}
		put(&p.Unseen, "then ask "+g.ask)
	}
	for i := range v.Strays {
		put(&p.Strays, straysLine(&v.Strays[i]))
		put(&p.Strays, v.Strays[i].Advice+"; inquest explain "+v.Strays[i].Entry)
	}
	for _, t := range actTitles {
		s := holdersSection{Title: t.title}
		for _, a := range v.Acts {
			if a.Kind == t.kind && len(s.Acts) < holderTexts {
				a.Says = sentence(actLine(&a))
				s.Acts = append(s.Acts, a)
			}
		}
		if len(s.Acts) > 0 {
			p.Acts = append(p.Acts, s)
		}
	}
	for i := range v.Asked {
		put(&p.Asked, askedLine(&v.Asked[i]))
	}
	return p
}

// writeHoldersHTML writes one page without a script.
func writeHoldersHTML(w io.Writer, h *incident.Holders, _ Options) error {
	p := (&holdersView{cleanedHolders(h)}).page()
	style := asset("page.css") + asset("tracker/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	t, err := template.New("holders.html").Funcs(template.FuncMap{
		"sentence": sentence, "tool": toolWords, "upper": upper,
		"devices": func() []gridColumn { return holdersDeviceColumns }, "holders": func() []gridColumn { return holderColumns },
		"columnTitle": func(c gridColumn) string { return c.title }, "right": func(c gridColumn) bool { return c.right },
		"numeric": func(c []gridColumn, i int) bool { return c[i].right },
	}).ParseFS(assets, "assets/shared/*.html", "assets/holders/holders.html")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
