package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

func writeMemoryText(w io.Writer, m *incident.Memory, o Options) error {
	m = cleanedMemory(m)
	p := newPage(&incident.Incident{Artifacts: m.Artifacts}, o)
	all := views(m)
	if len(all) == 0 {
		p.para(0, "", nothingShown(m))
		p.memoryUnread(m)
		p.memoryRead(m)
		_, err := io.WriteString(w, p.text())
		return err
	}
	first := leadingView(all)
	style := p.strong
	if first.fatal() != nil {
		style = p.bad
	}
	plain := lipgloss.NewStyle()
	p.head("Peak", named(p.words, all, first, first.peakVariants()), style)
	p.head("Failed", first.failedVariants(), style)
	p.head("Avoid", first.settingVariants(), p.strong)
	p.head("Sure", first.sureVariants(), plain)
	p.head("Next", first.nextVariants(), p.strong)
	p.memoryUnread(m)
	p.memoryRanks(m)
	p.memoryChange(m)
	p.memoryDevice(first, 0)
	rest := 0
	for _, v := range all {
		if v.dev == first.dev {
			continue
		}
		if p.full {
			p.section(upper(v.name(p.words)))
			p.para(2, "peak: ", v.peakVariants()[0])
			p.para(2, "failed: ", v.failedVariants()[0])
			p.para(2, "avoid: ", v.settingVariants()[0])
			p.para(2, "sure: ", v.sureVariants()[0])
			p.memoryDevice(v, 2)
		}
		rest++
	}
	if rest > 0 && !p.full {
		p.at(2, func() {
			p.para(0, "", fmt.Sprintf("The above is of %s; %s more: --full, or --device.", first.name(p.words), several(rest, "device")))
		})
	}
	p.memoryRead(m)
	_, err := io.WriteString(w, p.text())
	return err
}

// nothingShown says why a report has no device.
func nothingShown(m *incident.Memory) string {
	if len(m.Snapshots) > 0 {
		return "None of the GPUs asked for is in what was read."
	}
	return "No memory snapshot could be read."
}

// named puts the device before what is said of it, where there are several.
func named(w *words, all []memView, v memView, variants []string) []string {
	if len(all) < 2 {
		return variants
	}
	var out []string
	for _, s := range variants {
		out = append(out, v.name(w)+": "+s)
	}
	return out
}

// memoryDevice writes what is said of one device; ranks of what can go begin at rank.
func (p *page) memoryDevice(v memView, rank int) {
	p.memoryPeak(v, rank)
	p.memoryCauses(v, rank)
	p.memoryGrowth(v, rank)
	p.memoryFragmentation(v, rank)
	p.memoryPressure(v, rank)
	p.memoryReplay(v, rank)
	p.memoryLacks(v, rank)
}

// table writes uses as aligned rows.
func (p *page) table(list []incident.MemoryUse, whole int64, rank, most int) {
	for i, u := range list {
		if i == most && !p.full {
			break
		}
		cells := pad(evidence.Bytes(u.Bytes), 11) + pad(percentOf(u.Bytes, whole), 8)
		if p.width < 60 {
			cells = pad(evidence.Bytes(u.Bytes), 11)
		}
		text := u.Name
		if u.Blocks > 1 {
			text += ", " + several(u.Blocks, "block")
		}
		p.at(rank+i/3, func() { p.para(2, cells, text) })
	}
}

func (p *page) memoryPeak(v memView, rank int) {
	k := v.dev.Peak
	if k == nil {
		if len(v.dev.Live) > 0 {
			p.section("Alive at the end, by place")
			p.table(byName(v.dev.Live), v.dev.Totals.Requested, rank+1, 5)
		}
		return
	}
	where := ""
	if k.Event >= 0 {
		where = fmt.Sprintf(" (event %s of %s)", evidence.Count(k.Event), evidence.Count(v.dev.Totals.Events))
	}
	p.section("Active at the peak" + where + ", by place")
	uses := k.Frames
	if len(uses) == 0 {
		uses = k.Category
	}
	p.table(uses, k.Active, rank+1, 6)
	if len(k.Frames) > 0 && len(k.Category) > 0 {
		p.at(rank+3, func() { p.para(2, "by category: ", usesLine(k.Category, 6)) })
	}
	if len(k.StepsMade) > 1 || len(k.StepsMade) == 1 && v.dev.Trace.Steps > 0 {
		p.at(rank+3, func() { p.para(2, "by when it was made: ", usesLine(k.StepsMade, 4)) })
	}
	if t := k.Typical; t != nil && *t > 0 && k.Active > 0 {
		p.at(rank+3, func() {
			p.para(2, "", fmt.Sprintf("Steps peak at %s as the median of %d; steps are %s.", evidence.Bytes(*t), v.dev.Trace.Steps, v.dev.Trace.StepBasis))
		})
	}
	if p.full && len(k.Stacks) > 0 {
		p.section("Active at the peak, by stack")
		p.table(k.Stacks, k.Active, rank+5, 5)
		p.stackOf(v.dev, k.Stacks[0].Stack)
	}
	if p.full && len(v.dev.Live) > 0 {
		p.section("Alive at the end, by place")
		p.table(byName(v.dev.Live), v.dev.Totals.Requested, rank+5, 5)
	}
}

// byName adds up shares of the same name; they stay in their order.
func byName(list []incident.MemoryUse) []incident.MemoryUse {
	var out []incident.MemoryUse
	at := map[string]int{}
	for _, u := range list {
		if i, ok := at[u.Name]; ok {
			out[i].Bytes += u.Bytes
			out[i].Blocks += u.Blocks
			continue
		}
		at[u.Name] = len(out)
		out = append(out, u)
	}
	return out
}

// stackOf writes the frames of a stack.
func (p *page) stackOf(d *incident.MemoryDevice, at *int) {
	if at == nil || *at >= len(d.Stacks) {
		return
	}
	p.para(2, "", "the stack of the first, innermost first:")
	for _, f := range d.Stacks[*at].Frames {
		p.quote(4, f)
	}
}

// usesLine lists shares in one line.
func usesLine(list []incident.MemoryUse, most int) string {
	var parts []string
	for _, u := range list {
		parts = append(parts, u.Name+": "+evidence.Bytes(u.Bytes))
	}
	return listed(parts, most)
}

func (p *page) memoryCauses(v memView, rank int) {
	if len(v.dev.Causes) == 0 {
		return
	}
	p.section("What it proves")
	for i := range v.dev.Causes {
		p.memoryCause(&v.dev.Causes[i], rank)
	}
}

// memoryCause writes what is proved, and further down what is excluded.
func (p *page) memoryCause(c *incident.MemoryCause, rank int) {
	if c.Value {
		p.at(rank+1, func() { p.para(2, "+ ", upper(shownWords(c))+": "+sentence(c.Why)) })
		return
	}
	p.at(rank+4, func() { p.para(2, "- ", "Not that "+shownWords(c)+": "+sentence(c.Why)) })
}

func (p *page) memoryGrowth(v memView, rank int) {
	g := v.dev.Growth
	if g == nil {
		return
	}
	p.section("Growth")
	p.at(rank+1, func() { p.para(2, "", sentence(upper(g.Says))) })
	if v.dev.Trace.Steps > 0 || g.PerStep != nil {
		p.at(rank+3, func() { p.para(2, "compared: ", g.Basis) })
	}
	if len(g.Suspects) > 0 {
		if g.Common != "" {
			p.at(rank+1, func() { p.para(2, "in all of them: ", g.Common) })
		}
		for i, s := range g.Suspects {
			if i == 3 && !p.full {
				break
			}
			p.at(rank+2, func() { p.para(2, "? ", grownLine(&s)) })
		}
	}
	others := rank + 4
	if strings.HasPrefix(g.Basis, "between the events") { // that were asked for
		others = rank + 2
	}
	for i, s := range g.Others {
		if i == 3 && !p.full {
			break
		}
		p.at(others, func() { p.para(2, ". ", grownLine(&s)) })
	}
}

func grownLine(g *incident.MemoryGrown) string {
	s := fmt.Sprintf("%s by %s in %s", evidence.Bytes(g.Bytes), g.Name, several(g.Blocks, "block"))
	if g.PerStep != nil {
		s += fmt.Sprintf(", %s a step", evidence.Bytes(int64(*g.PerStep)))
	}
	return s + ": " + g.Why
}

func (p *page) memoryFragmentation(v memView, rank int) {
	f := &v.dev.Fragmentation
	if f.Says == "" {
		return
	}
	p.section("Reserved and free at the end")
	p.at(rank+1, func() { p.para(2, "", sentence(upper(f.Says))) })
	if v.fatal() != nil {
		s := "fragmentation: " + layoutWords(f.Standing)
		if f.Missing != "" {
			s += "; missing: " + f.Missing
		}
		p.at(rank+1, func() { p.para(2, "", s) })
	}
	for i, u := range f.Pools {
		if i == 3 && !p.full || len(f.Pools) == 1 {
			break
		}
		s := fmt.Sprintf("%s %s pool", u.Pool, u.Class)
		if u.Pool != "default" {
			s = fmt.Sprintf("private pool (%s), %s", u.Pool, u.Class)
		}
		if u.Stream != 0 {
			s += fmt.Sprintf(", stream %#x", u.Stream)
		}
		s += fmt.Sprintf(": %s in %s, %s free, largest free block %s", evidence.Bytes(u.Reserved), several(u.Segments, "segment"), evidence.Bytes(u.Free), evidence.Bytes(u.LargestFree))
		p.at(rank+4, func() { p.para(2, "", s) })
	}
	for i, x := range f.Pinned {
		if i == 2 && !p.full {
			break
		}
		p.at(rank+4, func() {
			p.para(2, "held: ", fmt.Sprintf("a segment of %s of which %s are in use, most of it %s", evidence.Bytes(x.Total), evidence.Bytes(x.Active), byWhom(x.Name)))
		})
	}
	if p.full && len(f.Histogram) > 0 {
		var parts []string
		for _, h := range f.Histogram {
			parts = append(parts, fmt.Sprintf("up to %s: %d (%s)", evidence.Bytes(h.UpTo), h.Blocks, evidence.Bytes(h.Bytes)))
		}
		p.para(2, "free blocks by size: ", strings.Join(parts, "; "))
	}
}

func (p *page) memoryPressure(v memView, rank int) {
	lines := pressureLines(v.dev, p.full)
	if len(lines) == 0 {
		return
	}
	p.section("Pressure")
	for _, l := range lines {
		p.at(rank+2, func() { p.para(2, "", sentence(upper(l))) })
	}
}

// pressureLines say where memory ran short.
func pressureLines(d *incident.MemoryDevice, full bool) []string {
	var lines []string
	for i, o := range d.Pressure.OOMs {
		if i == 3 && !full {
			lines = append(lines, fmt.Sprintf("%s more refused requests", evidence.Count(len(d.Pressure.OOMs)-i+d.Pressure.MoreOOMs)))
			break
		}
		lines = append(lines, oomLine(&o))
	}
	for _, l := range []string{flushLine(&d.Pressure), nearLine(&d.Pressure), outsideLine(d.Outside)} {
		if l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// outsideLine says how much of the device is not the allocator's.
func outsideLine(o *incident.MemoryOutside) string {
	switch {
	case o == nil:
		return ""
	case o.Bytes == 0:
		return "what is outside the allocator " + o.Basis
	}
	return fmt.Sprintf("%s outside the allocator: %s", evidence.Bytes(o.Bytes), o.Basis)
}

// fidelityLine says how well a replay repeats the record.
func fidelityLine(f *incident.MemoryFidelity) string {
	if f.Allocs == 0 && f.Segments == 0 && f.Why != "" {
		return "nothing could be repeated"
	}
	s := fmt.Sprintf("under the recorded settings: %s of %s segment events repeated, ", evidence.Count(f.Matched), evidence.Count(f.Segments))
	if f.Segments == 0 {
		s = "under the recorded settings: there is no segment event to repeat, "
	}
	s += fmt.Sprintf("%s of %s allocations at their address, ", evidence.Count(f.SameAddress), evidence.Count(f.Allocs))
	if f.CurveWorst == 0 {
		s += "reserved as recorded"
	} else {
		s += fmt.Sprintf("reserved off by %s at most and %s on average", evidence.Bytes(f.CurveWorst), evidence.Bytes(int64(f.CurveMean)))
	}
	if f.OOMs > 0 {
		s += fmt.Sprintf(", %d of %s", f.OOMsSame, several(f.OOMs, "refused request"))
	}
	return s
}

func toleranceLine(f *incident.MemoryFidelity) string {
	if f.OK {
		return "within tolerance"
	}
	return "outside the tolerance: " + f.Why
}

func (p *page) memoryReplay(v memView, rank int) {
	r := v.dev.Replay
	if r == nil {
		return
	}
	p.section("Replay")
	p.at(rank+1, func() {
		p.para(2, "", sentence(upper(fidelityLine(&r.Fidelity)))+" "+sentence(upper(toleranceLine(&r.Fidelity))))
	})
	p.at(rank+4, func() { p.para(2, "tolerance: ", r.Fidelity.Tolerance) })
	if r.Room.Bytes != nil {
		p.at(rank+2, func() { p.para(2, "room: ", evidence.Bytes(*r.Room.Bytes)+", "+r.Room.Basis) })
	} else if len(r.Answers) > 0 {
		p.at(rank+2, func() { p.para(2, "room: ", "not known: "+r.Room.Basis) })
	}
	said := map[string]bool{}
	for i, a := range r.Answers {
		if i == 6 && !p.full {
			break
		}
		if said[a.Why] {
			a.Why = ""
		}
		said[a.Why] = true
		p.at(rank+1+i/3, func() { p.para(2, "", answerLine(&a)) })
	}
	for _, l := range r.Lacks {
		p.at(rank+4, func() { p.para(2, "lacks: ", l) })
	}
}

// answerLine is what one setting would have changed.
func answerLine(a *incident.MemoryAnswer) string {
	s := settingWords(a.Setting) + ": " + answerWords(a.Answer)
	if a.PeakReserved > 0 {
		s += fmt.Sprintf("; peak %s reserved", evidence.Bytes(a.PeakReserved))
	}
	if a.Margin != nil {
		if *a.Margin >= 0 {
			s += fmt.Sprintf(", %s below the room", evidence.Bytes(*a.Margin))
		} else {
			s += fmt.Sprintf(", short by %s", evidence.Bytes(-*a.Margin))
		}
	}
	if a.FailsAt != nil {
		s += fmt.Sprintf(", fails at event %s", evidence.Count(*a.FailsAt))
		if a.Request != nil {
			s += fmt.Sprintf(" (%s)", evidence.Bytes(*a.Request))
		}
	}
	if a.Flushes > 0 {
		s += ", flushes " + times(a.Flushes)
	}
	if a.Why != "" && (a.FailsAt == nil || a.Answer == incident.CannotTell) {
		s += "; " + a.Why
	}
	return sentence(s)
}

func (p *page) memoryRanks(m *incident.Memory) {
	if m.Ranks == nil {
		return
	}
	p.section("Side by side")
	for _, d := range m.Ranks.Differs {
		text := d.Text
		for _, r := range m.Ranks.Rows {
			if s, ok := p.short[r.Artifact]; ok {
				text = strings.ReplaceAll(text, r.Artifact+",", s+",")
			}
		}
		p.at(1, func() { p.para(2, "! ", sentence(text)) })
	}
	if m.Ranks.Cause != nil {
		p.memoryCause(m.Ranks.Cause, 0)
	}
	for i, r := range m.Ranks.Rows {
		if i == 8 && !p.full {
			p.at(2, func() { p.para(2, "", fmt.Sprintf("%d more", len(m.Ranks.Rows)-i)) })
			break
		}
		name := r.Artifact
		if s, ok := p.short[r.Artifact]; ok {
			name = s
		}
		if r.Rank != nil {
			name = fmt.Sprintf("rank %d", *r.Rank)
		}
		s := fmt.Sprintf("%s, GPU %d: ", name, r.Device)
		if r.Peak > 0 {
			s += fmt.Sprintf("peak %s active, ", evidence.Bytes(r.Peak))
		} else {
			s += fmt.Sprintf("%s active at the end, ", evidence.Bytes(r.Active))
		}
		s += evidence.Bytes(r.Reserved) + " reserved"
		if r.OOMs > 0 {
			s += fmt.Sprintf(", %s", several(r.OOMs, "refused request"))
		}
		if r.Largest != "" {
			s += "; most " + byWhom(r.Largest)
		}
		p.at(2+i/4, func() { p.para(2, "", s) })
	}
}

func (p *page) memoryChange(m *incident.Memory) {
	c := m.Change
	if c == nil {
		return
	}
	p.section("From one snapshot to the next")
	near := func(a string) string {
		if s, ok := p.short[a]; ok {
			return s
		}
		return a
	}
	p.at(1, func() {
		p.para(2, "", fmt.Sprintf("From %s to %s, of one process by their blocks: %s active, %s reserved.", near(c.From), near(c.To), signed(c.Active), signed(c.Reserved)))
	})
	for i, u := range c.Grown {
		if i == 5 && !p.full {
			break
		}
		p.at(2, func() { p.para(2, pad("+"+evidence.Bytes(u.Bytes), 12), u.Name) })
	}
	for i, u := range c.Shrunk {
		if i == 3 && !p.full {
			break
		}
		p.at(3, func() { p.para(2, pad("-"+evidence.Bytes(u.Bytes), 12), u.Name) })
	}
}

func signed(n int64) string {
	if n >= 0 {
		return "+" + evidence.Bytes(n)
	}
	return evidence.Bytes(n)
}

func (p *page) memoryLacks(v memView, rank int) {
	if len(v.snap.Lacks) == 0 {
		return
	}
	p.section("What the file does not hold")
	for _, l := range v.snap.Lacks {
		p.at(rank+3, func() { p.para(2, "- ", sentence(l)) })
	}
}

func (p *page) memoryRead(m *incident.Memory) {
	p.section("Read")
	inc := &incident.Incident{Artifacts: m.Artifacts}
	p.at(2, func() { p.para(2, "", newWords(inc).readWords()) })
	for i, l := range m.Limits {
		if len(l.Spans) > 0 && i < mostUnread {
			continue // at the head
		}
		p.at(2, func() { p.para(2, "! ", sentence(l.Text)) })
	}
}

// mostUnread is how much of what was not read stands at the head of a report.
const mostUnread = 4

// memoryUnread says at once what was not read, or not in full.
func (p *page) memoryUnread(m *incident.Memory) {
	for i, s := range m.NotFound {
		if i == mostUnread && !p.full {
			p.para(0, "! ", fmt.Sprintf("%d more of the named paths could not be opened", len(m.NotFound)-i))
			break
		}
		p.para(0, "! ", "not read: "+s)
	}
	for _, l := range m.Limits[:min(len(m.Limits), mostUnread)] {
		if len(l.Spans) > 0 { // about one file
			p.para(0, "! ", sentence(l.Text))
		}
	}
}
