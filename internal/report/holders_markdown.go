package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

func writeHoldersMarkdown(w io.Writer, h *incident.Holders, o Options) error {
	h = cleanedHolders(h)
	v := &holdersView{h}
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, v.title())
	d.paragraph(sentence(upper(h.Says)))
	if rest := v.answer()[1:]; len(rest) > 0 {
		for _, s := range rest {
			d.item("- ", "", sentence(s))
		}
		d.WriteString("\n")
	}
	p := v.page()
	if len(p.Devices) > 0 {
		d.heading(2, "Devices")
		d.grid(holdersDeviceColumns, p.Devices)
		d.WriteString("\n")
	}
	if len(p.Holders) > 0 {
		d.heading(2, "Who holds their memory")
		d.grid(holderColumns, p.Holders)
		d.WriteString("\n")
		for _, s := range p.Details {
			d.item("- ", "", s)
		}
	}
	d.sentences("Who has a device open", v.openedLines())
	d.sentences("Contexts beside the own device", p.Strays)
	d.sentences("Memory in use that no process accounts for", p.Unseen)
	for _, s := range p.Acts {
		d.heading(2, s.Title)
		for _, a := range s.Acts {
			d.item("- ", "", a.Says)
			for _, c := range a.Check {
				fmt.Fprintf(d, "  - look: %s: %s\n", mdCode(c.Command), mdText(c.For))
			}
			for _, c := range a.Do {
				fmt.Fprintf(d, "  - then: %s: %s\n", mdCode(c.Command), mdText(c.For))
			}
		}
	}
	d.sentences("What cannot be seen", h.Limits)
	d.sentences("Asked", p.Asked)
	d.foot(h.Tool, h.Schema)
	_, err := io.WriteString(w, strings.TrimLeft(d.String(), "\n"))
	return err
}
