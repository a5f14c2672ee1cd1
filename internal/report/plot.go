package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of what the page draws; the incident in it holds every series.
const (
	maxPlots = 8
	maxLines = 8
)

// The drawing area of a plot in its own units; it is stretched to the width.
const (
	plotWidth  = 1000
	plotHeight = 100
)

// A plot is one quantity of one attempt, a line per rank or source.
type plot struct {
	ID, Title     string
	Indexes       string // of incident.series, for the script
	Bytes         bool
	Log           bool
	ByStep        bool
	XLow, XHigh   string
	YLow, YHigh   string
	Lines         []plotLine
	Bad           []string // x of the first non-finite value of each line, in drawing units
	BadFrom       string   // first of them or the fault's step, for the script
	BadTo         string
	ShadeX        string // the failed segment in drawing units, "" if none
	ShadeW        string
	Caption       string
	Left          int // lines that are not drawn
	lines         []int
	first, lastX  float64
	faultFrom     float64
	faultTo       float64
	faultIsStated bool
}

type plotLine struct {
	Class                    string
	Parts                    []string // polylines between gaps
	Dots                     [][2]string
	Name, Rank, Source       string
	Count, Bad               int64
	First, Last, Low, High   string
	FirstBad, Trust, Reduced string
}

// drawn are the series worth a plot, in order; what shares a group shares a plot.
var drawn = []struct{ name, group, title string }{
	{"loss", "loss", "Loss"}, {"grad_norm", "grad_norm", "Gradient norm"},
	{"memory_allocated", "memory", "Device memory"}, {"memory_reserved", "memory", "Device memory"}, {"memory_used", "memory", "Device memory"},
	{"memory_fraction", "fraction", "Share of device memory"}, {"eval_loss", "eval_loss", "Evaluation loss"}, {"loss_scale", "loss_scale", "Loss scale"},
	{"host_memory", "host", "Host memory"}, {"seq_len", "seq_len", "Sequence length"}, {"step_time", "step_time", "Step time"},
}

func plotsOf(inc *incident.Incident) []plot {
	attempt := ""
	if inc.FirstFault != nil {
		attempt = inc.FirstFault.Attempt
	}
	var out []plot
	at := map[string]int{}
	pass := func(main bool) {
		for _, d := range drawn {
			for i, s := range inc.Series {
				if s.Name != d.name || len(s.Points) < 2 || (s.Attempt == attempt) != main {
					continue
				}
				key := d.group + "\x00" + s.Attempt
				n, ok := at[key]
				if !ok {
					if len(out) == maxPlots {
						continue
					}
					n = len(out)
					at[key] = n
					t := d.title
					if len(inc.Attempts) > 1 {
						t += ", launch " + s.Attempt
					}
					out = append(out, plot{ID: fmt.Sprintf("plot-%d", n+1), Title: t, Bytes: s.Unit == "bytes"})
				}
				if len(out[n].lines) == maxLines {
					out[n].Left++
					continue
				}
				out[n].lines = append(out[n].lines, i)
			}
		}
	}
	pass(true)
	pass(false)
	for i := range out {
		out[i].draw(inc)
	}
	return out
}

// xOf is the horizontal value of a point: its step if every point has one, else
// its ordinal.
func (p *plot) xOf(pt incident.Point) float64 {
	if p.ByStep {
		return float64(*pt.Step)
	}
	return float64(pt.Ordinal)
}

func (p *plot) draw(inc *incident.Incident) {
	p.ByStep = true
	low, high := math.Inf(1), math.Inf(-1)
	for _, i := range p.lines {
		for _, pt := range inc.Series[i].Points {
			p.ByStep = p.ByStep && pt.Step != nil
			if pt.Value != nil {
				low, high = min(low, *pt.Value), max(high, *pt.Value)
			}
		}
	}
	p.first, p.lastX = math.Inf(1), math.Inf(-1)
	for _, i := range p.lines {
		for _, pt := range inc.Series[i].Points {
			x := p.xOf(pt)
			p.first, p.lastX = min(p.first, x), max(p.lastX, x)
		}
	}
	p.fault(inc)
	if math.IsInf(low, 1) {
		low, high = 0, 1 // not one finite value
	}
	p.Log = low > 0 && high/low > 1000
	scale := func(y float64) float64 { return y }
	if p.Log {
		scale = math.Log10
	} else if p.Bytes {
		low = 0
	}
	a, b := scale(low), scale(high)
	if a == b {
		a, b = a-1, b+1
	}
	x := func(v float64) float64 {
		if p.lastX == p.first {
			return plotWidth / 2
		}
		return plotWidth * (v - p.first) / (p.lastX - p.first)
	}
	y := func(v float64) float64 { return plotHeight - 4 - (plotHeight-8)*(scale(v)-a)/(b-a) }
	var ids []string
	for n, i := range p.lines {
		ids = append(ids, strconv.Itoa(i))
		p.Lines = append(p.Lines, p.line(n, &inc.Series[i], x, y))
	}
	p.Indexes = strings.Join(ids, " ")
	p.XLow, p.XHigh = strconv.FormatFloat(p.first, 'f', -1, 64), strconv.FormatFloat(p.lastX, 'f', -1, 64)
	p.YLow, p.YHigh = p.amount(low), p.amount(high)
	if p.faultIsStated {
		from, to := x(p.faultFrom), x(p.faultTo)
		if to-from < 6 {
			from = max(0, to-6)
		}
		p.ShadeX, p.ShadeW = unit(from), unit(to-from)
		p.BadFrom, p.BadTo = strconv.FormatFloat(p.faultFrom, 'f', -1, 64), strconv.FormatFloat(p.faultTo, 'f', -1, 64)
	}
	p.caption()
}

// fault finds the failed segment: from the first non-finite value to the end,
// else from the last good step to the step of the first fault.
func (p *plot) fault(inc *incident.Incident) {
	from := math.Inf(1)
	for _, i := range p.lines {
		for _, pt := range inc.Series[i].Points {
			if pt.Value == nil {
				from = min(from, p.xOf(pt))
				break
			}
		}
	}
	if !math.IsInf(from, 1) {
		p.faultFrom, p.faultTo, p.faultIsStated = from, p.lastX, true
		return
	}
	f := inc.FirstFault
	if f == nil || f.Step == nil || !p.ByStep || inc.Series[p.lines[0]].Attempt != f.Attempt {
		return
	}
	step := float64(*f.Step)
	if step < p.first {
		return
	}
	p.lastX = max(p.lastX, step)
	p.faultFrom, p.faultTo, p.faultIsStated = step, p.lastX, true
	if g := inc.LastGood; g != nil && g.Step != nil && float64(*g.Step) <= step {
		p.faultFrom = max(p.first, float64(*g.Step))
	}
}

func (p *plot) line(n int, s *incident.Series, x, y func(float64) float64) plotLine {
	out := plotLine{Class: fmt.Sprintf("l%d", n), Name: strings.ReplaceAll(s.Name, "_", " "), Source: s.Source, Rank: deref(s.Rank), Count: s.Count, Bad: s.Bad, Trust: s.Trust, Reduced: s.Reduction}
	var part []string
	flush := func() {
		if len(part) > 1 {
			out.Parts = append(out.Parts, strings.Join(part, " "))
		} else if len(part) == 1 {
			at := strings.SplitN(part[0], ",", 2)
			out.Dots = append(out.Dots, [2]string{at[0], at[1]})
		}
		part = nil
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, pt := range s.Points {
		if pt.Value == nil {
			flush()
			if out.FirstBad == "" {
				out.FirstBad = oneLine(pt.Text) + " at " + p.place(pt)
				p.Bad = append(p.Bad, unit(x(p.xOf(pt))))
			}
			continue
		}
		if out.First == "" {
			out.First = p.amount(*pt.Value)
		}
		out.Last = p.amount(*pt.Value)
		low, high = min(low, *pt.Value), max(high, *pt.Value)
		part = append(part, unit(x(p.xOf(pt)))+","+unit(y(*pt.Value)))
	}
	flush()
	if !math.IsInf(low, 1) {
		out.Low, out.High = p.amount(low), p.amount(high)
	}
	return out
}

func (p *plot) place(pt incident.Point) string {
	if pt.Step != nil {
		return fmt.Sprintf("step %d", *pt.Step)
	}
	return fmt.Sprintf("value %d", pt.Ordinal+1)
}

func (p *plot) amount(v float64) string {
	if p.Bytes {
		return evidence.Bytes(int64(v))
	}
	return number(v)
}

func unit(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// caption says in words what the drawing shows.
func (p *plot) caption() {
	by := "number of the logged value"
	if p.ByStep {
		by = "step"
	}
	s := fmt.Sprintf("Against %s, %s to %s.", by, p.XLow, p.XHigh)
	if p.Log {
		s += " Logarithmic."
	}
	bad := ""
	for _, l := range p.Lines {
		if l.FirstBad != "" {
			bad = " First non-finite value: " + l.FirstBad + "; the failed part is shaded."
			break
		}
	}
	if bad == "" && p.faultIsStated {
		bad = fmt.Sprintf(" The failed part is shaded, steps %s to %s.", p.BadFrom, p.BadTo)
	}
	s += bad
	for _, l := range p.Lines {
		if l.Trust == "filtered" {
			s += " This logger replaces non-finite values: a finite one proves nothing."
			break
		}
	}
	if p.Left > 0 {
		s += fmt.Sprintf(" %s more not drawn; the incident below holds them.", upper(plural(p.Left, "line")))
	}
	p.Caption = s
}
