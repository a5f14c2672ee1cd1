package report

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/inquest-dev/inquest/internal/incident"
)

// floats are numbers as IEEE 754 doubles, little endian; in JSON as base64. So NaN and the
// infinities come through.
type floats []float64

func (f floats) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 8*len(f))
	for _, v := range f {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return []byte(base64.StdEncoding.EncodeToString(raw)), nil
}

// packedCurves is what the script of a page of inquest tracker gets; its data.js unpacks it.
type packedCurves struct {
	Runs   []string      `json:"runs"`
	Lines  []packedLine  `json:"lines"`
	Events []packedEvent `json:"events"`
}

type packedLine struct {
	Run    int          `json:"run"`
	Name   string       `json:"name"`
	By     string       `json:"by"`
	Axis   string       `json:"axis"` // what the steps count, in a word
	Bytes  bool         `json:"bytes"`
	Unit   string       `json:"unit"`
	Doubts [][2]float64 `json:"doubts"` // first and last step of stretches
	Parts  []packedPart `json:"parts"`
}

// A packedPart is a stretch of points with rising x, all of which count or were all
// superseded.
type packedPart struct {
	Past  bool   `json:"past"`
	Again bool   `json:"again"` // writing began again here
	X     column `json:"x"`     // steps, or places in the order of writing; differences
	Time  column `json:"t"`     // milliseconds since 1970, differences; empty where a point has none
	Y     floats `json:"y"`
}

// A packedEvent is something that a log tells.
type packedEvent struct {
	N    int      `json:"n"` // by which the timeline lists it
	Step *float64 `json:"s"`
	Time *float64 `json:"t"` // milliseconds since 1970
	Kind string   `json:"k"`
	Text string   `json:"w"`
}

// pack encodes the curves and events of the page.
func (p *trackPage) pack(runs []incident.TrackedRun, rows []incident.AlignedRow) {
	p.data = packedCurves{Runs: []string{}, Lines: []packedLine{}, Events: []packedEvent{}}
	for i := range runs {
		p.data.Runs = append(p.data.Runs, runName(&runs[i]))
	}
	each := pagePoints / max(len(p.lines), 1)
	for _, l := range p.lines {
		p.data.Lines = append(p.data.Lines, packLine(l, each))
	}
	for i := range rows {
		r := &rows[i]
		if p.numbers[i] == 0 {
			continue
		}
		e := packedEvent{N: p.numbers[i], Kind: oneLine(r.Kind), Text: oneLine(r.Source) + ": " + oneLine(r.Text)}
		if r.Step != nil {
			s := float64(*r.Step)
			e.Step = &s
		}
		if t, ok := unixOf(r.Time); ok {
			t = math.Round(t * 1000)
			e.Time = &t
		}
		p.data.Events = append(p.data.Events, e)
	}
}

func packLine(l *drawnLine, most int) packedLine {
	c := l.curve
	out := packedLine{Run: l.run, Name: plotTitle(c.series), By: c.by, Axis: axisWord(c.series.Axis), Bytes: c.series.Unit == "bytes", Unit: oneLine(c.series.Unit), Doubts: [][2]float64{}, Parts: []packedPart{}}
	for _, s := range c.doubtful() {
		out.Doubts = append(out.Doubts, [2]float64{s.from, s.to})
	}
	each := max(most/max(len(c.pieces), 1), 50)
	for i := range c.pieces {
		p := &c.pieces[i]
		dots := thin(p.dots, each)
		for from := 0; from < len(dots); {
			to := from + 1
			for to < len(dots) && (dots[to].x >= p.past) == (dots[from].x >= p.past) {
				to++
			}
			part := packPart(dots[from:to])
			part.Past, part.Again = dots[from].x >= p.past, i > 0 && from == 0
			out.Parts = append(out.Parts, part)
			from = to
		}
	}
	return out
}

func packPart(dots []dot) packedPart {
	var p packedPart
	var x, t int64
	timed := true
	for _, d := range dots {
		_, ok := unixOf(d.at.Time)
		timed = timed && ok
	}
	for _, d := range dots {
		v := int64(max(min(d.x, 1<<53), -1<<53)) // what a script can count exactly
		p.X.put(v - x)
		x = v
		p.Y = append(p.Y, d.y)
		if timed {
			s, _ := unixOf(d.at.Time)
			ms := int64(math.Round(s * 1000))
			p.Time.put(ms - t)
			t = ms
		}
	}
	return p
}

// thin is at most about n of dots: of stretches of equally many the first, the last, the
// extremes and the first that is not finite.
func thin(dots []dot, n int) []dot {
	if len(dots) <= n {
		return dots
	}
	k := max((5*len(dots)+n-1)/n, 2)
	var out []dot
	for from := 0; from < len(dots); from += k {
		part := dots[from:min(from+k, len(dots))]
		low, high, bad := -1, -1, -1
		for i, d := range part {
			switch {
			case !d.finite():
				if bad < 0 {
					bad = i
				}
			case low < 0:
				low, high = i, i
			case d.y < part[low].y:
				low = i
			case d.y > part[high].y:
				high = i
			}
		}
		for i, d := range part {
			if i == 0 || i == len(part)-1 || i == low || i == high || i == bad {
				out = append(out, d)
			}
		}
	}
	return out
}
