package report

import (
	"cmp"
	"strings"

	"github.com/charmbracelet/lipgloss"
)

// A canvas is a drawing in characters. Each cell holds 2 by 4 dots of Braille, or one
// ASCII mark.
type canvas struct {
	cols, rows int
	ascii      bool
	dots       []byte // of the cells, by row
	faint      []bool // cells in which only superseded points are
}

func newCanvas(cols, rows int, ascii bool) *canvas {
	c := &canvas{cols: cols, rows: rows, ascii: ascii, dots: make([]byte, cols*rows), faint: make([]bool, cols*rows)}
	for i := range c.faint {
		c.faint[i] = true
	}
	return c
}

// width and height are the size of the drawing in dots.
func (c *canvas) width() int {
	if c.ascii {
		return c.cols
	}
	return 2 * c.cols
}

func (c *canvas) height() int {
	if c.ascii {
		return c.rows
	}
	return 4 * c.rows
}

// brailleBits are the dots of a cell by row and column, as Unicode orders them.
var brailleBits = [4][2]byte{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// set marks the dot at x from the left and y from the bottom.
func (c *canvas) set(x, y int, past bool) {
	if x < 0 || y < 0 || x >= c.width() || y >= c.height() {
		return
	}
	y = c.height() - 1 - y
	cell, bit := y*c.cols+x, byte(1)
	if !c.ascii {
		cell, bit = y/4*c.cols+x/2, brailleBits[y%4][x%2]
	}
	c.dots[cell] |= bit
	c.faint[cell] = c.faint[cell] && past
}

// line marks the dots between two, after Bresenham; of superseded points every third only.
func (c *canvas) line(x0, y0, x1, y1 int, past bool) {
	dx, dy := abs(x1-x0), -abs(y1-y0)
	sx, sy := cmp.Compare(x1, x0), cmp.Compare(y1, y0)
	for e, n := dx+dy, 0; ; n++ {
		if !past || n%3 == 0 {
			c.set(x0, y0, past)
		}
		if x0 == x1 && y0 == y1 {
			return
		}
		twice := 2 * e
		if twice >= dy {
			e, x0 = e+dy, x0+sx
		}
		if twice <= dx {
			e, y0 = e+dx, y0+sy
		}
	}
}

func abs(n int) int { return max(n, -n) }

// cell is the character at a column of a row from the top, ' ' where nothing is drawn.
func (c *canvas) cell(col, row int) rune {
	i := row*c.cols + col
	switch {
	case c.dots[i] == 0:
		return ' '
	case c.ascii && c.faint[i]:
		return '.'
	case c.ascii:
		return '*'
	}
	return 0x2800 + rune(c.dots[i])
}

// Characters of a plot's frame and marks.
type plotMarks struct {
	bad, past, doubt, edge, tick, corner, floor, here, begin rune
}

var (
	boxMarks   = plotMarks{bad: '×', past: '·', doubt: '?', edge: '│', tick: '┤', corner: '└', floor: '─', here: '┴', begin: '╎'}
	asciiMarks = plotMarks{bad: 'x', past: '.', doubt: '?', edge: '|', tick: '+', corner: '+', floor: '-', here: '^', begin: ':'}
)

// A plotLine of text is characters, each with a style.
type styledLine struct {
	runes  []rune
	styles []*lipgloss.Style
}

func (l *styledLine) put(s *lipgloss.Style, text string) {
	for _, r := range text {
		l.runes, l.styles = append(l.runes, r), append(l.styles, s)
	}
}

// String renders equal styles together; blanks at the end go.
func (l *styledLine) String() string {
	n := len(l.runes)
	for n > 0 && l.runes[n-1] == ' ' {
		n--
	}
	var b strings.Builder
	for i := 0; i < n; {
		j := i + 1
		for j < n && l.styles[j] == l.styles[i] {
			j++
		}
		text := string(l.runes[i:j])
		if l.styles[i] != nil && strings.TrimSpace(text) != "" {
			text = l.styles[i].Render(text)
		}
		b.WriteString(text)
		i = j
	}
	return b.String()
}

// A textPlot draws one curve in characters.
type textPlot struct {
	width, rows      int
	ascii            bool
	bad, faint, line *lipgloss.Style // nil: as it is
}

// draw returns the lines of the plot: the curve with the axis of values at its left, a row
// that marks what is not finite or only looks so, the axis and its labels. It is nil where
// there is nothing to draw.
func (t *textPlot) draw(c *curve) []string {
	low, high, ok := rangeOf([]*curve{c})
	if !ok {
		return nil
	}
	m := boxMarks
	if t.ascii {
		m = asciiMarks
	}
	s := scaleOf([]*curve{c}, false)
	labels, left := t.labels(c, s)
	cols := max(t.width-left-2, 10)
	cv := newCanvas(cols, t.rows, t.ascii)
	at := func(x float64, n int) int {
		if high == low {
			return n / 2
		}
		return min(n-1, int((x-low)/(high-low)*float64(n-1)+0.5))
	}
	t.curve(cv, c, s, at)
	marks, begin := t.marks(c, cols, m, at)
	var out []string
	for row := range t.rows {
		l := &styledLine{}
		edge := m.edge
		if labels[row] != "" {
			edge = m.tick
		}
		l.put(nil, strings.Repeat(" ", left-columns(labels[row]))+labels[row]+" "+string(edge))
		for col := range cols {
			switch r := cv.cell(col, row); {
			case r != ' ' && cv.faint[row*cols+col]:
				l.put(t.faint, string(r))
			case r != ' ':
				l.put(t.line, string(r))
			case col == begin:
				l.put(t.bad, string(m.begin))
			default:
				l.put(nil, " ")
			}
		}
		out = append(out, l.String())
	}
	if marks != nil {
		l := &styledLine{}
		l.put(nil, strings.Repeat(" ", left+1)+string(m.edge))
		for _, r := range marks {
			switch r {
			case m.bad:
				l.put(t.bad, string(r))
			case m.past:
				l.put(t.faint, string(r))
			default:
				l.put(nil, string(r))
			}
		}
		out = append(out, l.String())
	}
	return append(out, t.axis(c, left, cols, m, low, high, at)...)
}

// labels are round values at the rows where they stand, and the width that they need.
func (t *textPlot) labels(c *curve, s scale) (labels []string, width int) {
	labels = make([]string, t.rows)
	ticks := s.ticks(3)
	words := tickWords(c.series, ticks)
	last := t.rows + 1
	for i, v := range ticks {
		row := t.rows - 1 - int(s.at(v)*float64(t.rows-1)+0.5)
		if last-row < 2 {
			continue
		}
		labels[row], last = words[i], row
		width = max(width, columns(words[i]))
	}
	return labels, width
}

// curve draws the pieces; what is not finite breaks a line.
func (t *textPlot) curve(cv *canvas, c *curve, s scale, at func(float64, int) int) {
	for i := range c.pieces {
		p := &c.pieces[i]
		open := false
		var x0, y0 int
		for _, d := range p.dots {
			if !d.finite() {
				open = false
				continue
			}
			past := d.x >= p.past
			x, y := at(d.x, cv.width()), int(s.at(d.y)*float64(cv.height()-1)+0.5)
			if open {
				cv.line(x0, y0, x, y, past)
			} else {
				cv.set(x, y, past)
			}
			open, x0, y0 = true, x, y
		}
	}
}

// marks are the row below the curve, nil where there is nothing to mark, and the column at
// which the first value that is not finite stands, -1 where there is none.
func (t *textPlot) marks(c *curve, cols int, m plotMarks, at func(float64, int) int) (row []rune, begin int) {
	now, past := c.bad()
	doubtful := c.doubtful()
	begin = -1
	if len(now)+len(past)+len(doubtful) == 0 {
		return nil, begin
	}
	row = []rune(strings.Repeat(" ", cols))
	low, high, _ := rangeOf([]*curve{c})
	fill := func(list []stretch, r rune) {
		for _, s := range list {
			if s.to < low || s.from > high {
				continue
			}
			for i := at(max(s.from, low), cols); i <= at(min(s.to, high), cols); i++ {
				row[i] = r
			}
		}
	}
	fill(doubtful, m.doubt)
	fill(past, m.past)
	fill(now, m.bad)
	if x := c.firstBad(); x != nil {
		begin = at(*x, cols)
	}
	return row, begin
}

// axis is the line below the plot, with a mark where writing began again, and its labels.
func (t *textPlot) axis(c *curve, left, cols int, m plotMarks, low, high float64, at func(float64, int) int) []string {
	floor := []rune(strings.Repeat(string(m.floor), cols))
	for _, x := range c.resumes() {
		if x >= low && x <= high {
			floor[at(x, cols)] = m.here
		}
	}
	return []string{strings.Repeat(" ", left+1) + string(m.corner) + string(floor), strings.TrimRight(strings.Repeat(" ", left+2)+t.ends(c, cols, low, high, at), " ")}
}

// ends are the labels of both ends of the axis and, where there is room between them, of
// the first value that is not finite.
func (t *textPlot) ends(c *curve, cols int, low, high float64, at func(float64, int) int) string {
	from, to := c.place(low), c.place(high)
	if columns(from)+columns(to) >= cols && c.by == byTime { // without the day
		from, to = from[strings.IndexByte(from, 'T')+1:], to[strings.IndexByte(to, 'T')+1:]
	}
	switch {
	case low == high && columns(from) <= cols:
		return pad("", (cols-columns(from))/2) + from
	case columns(from)+columns(to) < cols:
		middle := ""
		if x := c.firstBad(); x != nil {
			word := c.place(*x)
			if i := at(*x, cols) - columns(word)/2; i > columns(from)+1 && i+columns(word)+1 < cols-columns(to) {
				middle = pad("", i-columns(from)) + word
			}
		}
		return from + middle + strings.Repeat(" ", cols-columns(from)-columns(middle)-columns(to)) + to
	case columns(from) <= cols:
		return from
	}
	return ""
}

// firstBad is the least x with a value that is not finite and was not written again, nil
// where there is none.
func (c *curve) firstBad() *float64 {
	now, _ := c.bad()
	var out *float64
	for _, s := range now {
		if out == nil || s.from < *out {
			x := s.from
			out = &x
		}
	}
	return out
}
