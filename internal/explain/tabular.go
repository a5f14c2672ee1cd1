package explain

import (
	"fmt"
	"strings"
)

// writeGridText writes a table for a terminal: rows one after the other, the columns
// named, because sentences side by side need more columns than a terminal has.
func writeGridText(b *strings.Builder, g *Grid, width int) {
	for i, row := range g.Rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, c := range row {
			if j == 0 {
				wrap(b, cellName(c), "  ", "    ", width)
				continue
			}
			switch len(c.Texts) {
			case 0:
			case 1:
				wrap(b, g.Columns[j]+": "+c.Texts[0], "    ", "      ", width)
			default:
				fmt.Fprintf(b, "    %s:\n", g.Columns[j])
				for _, t := range c.Texts {
					wrap(b, t, "      - ", "        ", width)
				}
			}
		}
	}
}

func cellName(c Cell) string {
	name := strings.Join(c.Texts, "; ")
	if c.Entry != "" {
		name += " (" + c.Entry + ")"
	}
	return name
}

// writeGridMarkdown writes a table; statements of one cell stand on lines of their own.
func writeGridMarkdown(b *strings.Builder, g *Grid) {
	cell := func(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s) }
	line := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	var heads, rule []string
	for _, c := range g.Columns {
		heads, rule = append(heads, cell(c)), append(rule, "---")
	}
	line(heads)
	line(rule)
	for _, row := range g.Rows {
		var cells []string
		for _, c := range row {
			var parts []string
			for _, t := range c.Texts {
				parts = append(parts, cell(t))
			}
			text := strings.Join(parts, "<br>")
			if c.Entry != "" {
				text += "<br>`" + c.Entry + "`"
			}
			cells = append(cells, text)
		}
		line(cells)
	}
}
