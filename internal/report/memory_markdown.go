package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// lines are the first lines of a report, in full.
func (v memView) lines() []labelled {
	return []labelled{
		{"Peak", sentence(v.peakVariants()[0])}, {"Failed", sentence(v.failedVariants()[0])}, {"Avoid", sentence(v.settingVariants()[0])},
		{"Sure", sentence(v.sureVariants()[0])}, {"Next", sentence(v.nextVariants()[0])},
	}
}

func writeMemoryMarkdown(w io.Writer, m *incident.Memory, o Options) error {
	m = cleanedMemory(m)
	d := &document{words: newWords(&incident.Incident{Artifacts: m.Artifacts}), full: o.Full}
	all := views(m)
	if len(all) == 0 {
		d.heading(1, strings.TrimSuffix(nothingShown(m), "."))
		for _, s := range m.NotFound {
			d.item("- ", "**Not read:** ", s)
		}
		d.memoryRead(m)
		_, err := io.WriteString(w, d.String())
		return err
	}
	first := leadingView(all)
	d.heading(1, memoryTitle(first))
	for _, l := range first.lines() {
		d.item("- ", "**"+l.Label+":** ", l.Text)
	}
	if len(all) > 1 {
		d.item("- ", "**Of:** ", first.name(d.words))
	}
	for _, s := range m.NotFound {
		d.item("- ", "**Not read:** ", s)
	}
	d.memoryRanks(m)
	d.memoryChange(m)
	d.memoryDevice(first)
	for _, v := range all {
		if v.dev == first.dev || !d.full {
			continue
		}
		d.heading(2, upper(v.name(d.words)))
		for _, l := range v.lines() {
			d.item("- ", "**"+l.Label+":** ", l.Text)
		}
		d.memoryDevice(v)
	}
	d.memoryRead(m)
	fmt.Fprintf(d, "\n---\n%s, %s\n", mdText(toolWords(m.Tool)), mdCode(m.Schema))
	_, err := io.WriteString(w, d.String())
	return err
}

// uses writes shares as a table.
func (d *document) uses(title string, list []incident.MemoryUse, whole int64) {
	if len(list) == 0 {
		return
	}
	var rows [][]string
	for i, u := range list {
		if i == mdRows && !d.full {
			break
		}
		rows = append(rows, []string{evidence.Bytes(u.Bytes), percentOf(u.Bytes, whole), fmt.Sprint(u.Blocks), mdText(u.Name)})
	}
	d.heading(2, title)
	d.table([]string{"bytes", "share", "blocks", "by"}, rows)
}

func (d *document) memoryDevice(v memView) {
	x := v.dev
	if k := x.Peak; k != nil {
		d.uses("Active at the peak, by place", k.Frames, k.Active)
		d.uses("Active at the peak, by category", k.Category, k.Active)
		if x.Trace.Steps > 0 {
			d.uses("Active at the peak, by when it was made", k.StepsMade, k.Active)
		}
		if d.full {
			d.uses("Active at the peak, by stack", k.Stacks, k.Active)
		}
	}
	if x.Peak == nil || d.full {
		d.uses("Alive at the end, by place", byName(x.Live), x.Totals.Requested)
	}
	if len(x.Causes) > 0 {
		d.heading(2, "What it proves")
		for i := range x.Causes {
			d.memoryCause(&x.Causes[i])
		}
	}
	if g := x.Growth; g != nil {
		d.heading(2, "Growth")
		d.paragraph(sentence(upper(g.Says)))
		if g.Common != "" {
			d.item("- ", "in all of them: ", g.Common)
		}
		for i := range g.Suspects {
			d.item("- ", "**suspect:** ", grownLine(&g.Suspects[i]))
		}
		for i := range g.Others {
			if i < 3 || d.full {
				d.item("- ", "left: ", grownLine(&g.Others[i]))
			}
		}
	}
	if f := &x.Fragmentation; f.Says != "" {
		d.heading(2, "Reserved and free at the end")
		d.paragraph(sentence(upper(f.Says)))
		if v.fatal() != nil {
			s := "Fragmentation: " + layoutWords(f.Standing)
			if f.Missing != "" {
				s += "; missing: " + f.Missing
			}
			d.paragraph(sentence(s))
		}
		var rows [][]string
		for _, u := range f.Pools {
			rows = append(rows, []string{mdText(u.Pool), mdText(u.Class), fmt.Sprintf("%#x", u.Stream), fmt.Sprint(u.Segments), evidence.Bytes(u.Reserved), evidence.Bytes(u.Free), evidence.Bytes(u.LargestFree)})
		}
		if len(rows) > 0 {
			d.table([]string{"pool", "class", "stream", "segments", "reserved", "free", "largest free"}, rows[:min(len(rows), mdRows)])
		}
	}
	if lines := pressureLines(x, d.full); len(lines) > 0 {
		d.heading(2, "Pressure")
		for _, l := range lines {
			d.item("- ", "", sentence(upper(l)))
		}
	}
	d.memoryReplay(x.Replay)
	if len(v.snap.Lacks) > 0 {
		d.heading(2, "What the file does not hold")
		for _, l := range v.snap.Lacks {
			d.item("- ", "", sentence(l))
		}
	}
}

func (d *document) memoryCause(c *incident.MemoryCause) {
	label := "**no:** "
	if c.Value {
		label = "**yes:** "
	}
	d.item("- ", label+mdText(shownWords(c))+". ", sentence(upper(c.Why)))
}

func (d *document) memoryReplay(r *incident.MemoryReplay) {
	if r == nil {
		return
	}
	d.heading(2, "Replay")
	d.paragraph(sentence(upper(fidelityLine(&r.Fidelity))) + " " + sentence(upper(toleranceLine(&r.Fidelity))))
	var rows [][]string
	for i := range r.Answers {
		a := &r.Answers[i]
		margin, fails := "", ""
		if a.Margin != nil {
			margin = evidence.Bytes(*a.Margin)
		}
		if a.FailsAt != nil {
			fails = evidence.Count(*a.FailsAt)
		}
		rows = append(rows, []string{mdCode(settingWords(a.Setting)), answerWords(a.Answer), evidence.Bytes(a.PeakReserved), margin, fails, mdText(a.Why)})
	}
	if len(rows) > 0 {
		d.table([]string{"setting", "answer", "peak reserved", "margin", "fails at event", "why"}, rows)
	}
	for _, l := range r.Lacks {
		d.item("- ", "lacks: ", sentence(l))
	}
}

func (d *document) memoryRanks(m *incident.Memory) {
	if m.Ranks == nil {
		return
	}
	d.heading(2, "Side by side")
	for _, s := range m.Ranks.Differs {
		d.item("- ", "", sentence(s.Text))
	}
	if m.Ranks.Cause != nil {
		d.memoryCause(m.Ranks.Cause)
	}
	var rows [][]string
	for i, r := range m.Ranks.Rows {
		if i == mdRows && !d.full {
			break
		}
		rank, peak := "", ""
		if r.Rank != nil {
			rank = fmt.Sprint(*r.Rank)
		}
		if r.Peak > 0 {
			peak = evidence.Bytes(r.Peak)
		}
		rows = append(rows, []string{mdCode(r.Artifact), rank, fmt.Sprint(r.Device), peak, evidence.Bytes(r.Active), evidence.Bytes(r.Reserved), fmt.Sprint(r.OOMs), mdText(r.Largest)})
	}
	d.table([]string{"file", "rank", "GPU", "peak active", "active at the end", "reserved", "refused", "most by"}, rows)
}

func (d *document) memoryChange(m *incident.Memory) {
	c := m.Change
	if c == nil {
		return
	}
	d.heading(2, "From one snapshot to the next")
	d.paragraph(fmt.Sprintf("From %s to %s, of one process by their blocks: %s active, %s reserved.", c.From, c.To, signed(c.Active), signed(c.Reserved)))
	var rows [][]string
	for _, u := range c.Grown {
		rows = append(rows, []string{"+" + evidence.Bytes(u.Bytes), mdText(u.Name)})
	}
	for _, u := range c.Shrunk {
		rows = append(rows, []string{"-" + evidence.Bytes(u.Bytes), mdText(u.Name)})
	}
	if len(rows) > 0 {
		d.table([]string{"bytes", "by"}, rows)
	}
}

func (d *document) memoryRead(m *incident.Memory) {
	d.heading(2, "Read")
	d.paragraph(d.readWords())
	for _, l := range m.Limits {
		d.item("- ", "", sentence(l.Text))
	}
}
