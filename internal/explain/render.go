package explain

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/catalog"
)

// writers lists the formats of Render. Adding one is a row here and a function
// from Page to text.
var writers = []struct {
	name  string
	write func(p Page, width int) string
}{
	{"text", writeText},
	{"markdown", writeMarkdown},
	{"html", writeHTML},
}

// Formats returns the names that Render knows.
func Formats() []string {
	var out []string
	for _, w := range writers {
		out = append(out, w.name)
	}
	return out
}

// Render writes the whole entry with all its sections. Width is the columns of
// a terminal for format text (80 when it is less than 20) and has no meaning
// for the others. HTML is one page that needs nothing else. An unknown format gives text.
func Render(e *catalog.Entry, format string, width int) string { return Layout(e).Write(format, width) }

// Write writes p in format text, markdown or html, as Render says.
func (p Page) Write(format string, width int) string {
	for _, w := range writers {
		if w.name == format {
			return w.write(p, width)
		}
	}
	return writeText(p, width)
}

func writeText(p Page, width int) string {
	if width < 20 {
		width = 80
	}
	var b strings.Builder
	wrap(&b, p.Title, "", "", width)
	wrap(&b, p.ID+" · "+p.About, "", "", width)
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "\n%s\n", s.Heading)
		for i, bl := range s.Blocks {
			if i > 0 && s.Blocks[i-1].Kind != Subheading {
				b.WriteByte('\n')
			}
			switch bl.Kind {
			case Paragraph:
				wrap(&b, bl.Text, "  ", "  ", width)
			case Subheading:
				fmt.Fprintf(&b, "  %s\n", bl.Text)
			case Tabular:
				writeGridText(&b, bl.Table, width)
			default:
				for j, it := range bl.Items {
					mark := marker(bl.Kind, j, "[ ]")
					wrap(&b, it.Text, "  "+mark+" ", strings.Repeat(" ", len(mark)+3), width)
					for _, m := range it.More {
						wrap(&b, m, strings.Repeat(" ", len(mark)+3), strings.Repeat(" ", len(mark)+5), width)
					}
					if it.When != "" {
						wrap(&b, "When: "+it.When, strings.Repeat(" ", len(mark)+3), strings.Repeat(" ", len(mark)+5), width)
					}
					if it.Code != "" {
						indent(&b, it.Code, strings.Repeat(" ", len(mark)+5))
					}
				}
			}
		}
	}
	return b.String()
}

func marker(kind BlockKind, i int, check string) string {
	switch kind {
	case Numbers:
		return fmt.Sprintf("%d.", i+1)
	case Checks:
		return check
	}
	return "-"
}

// wrap writes text in lines of at most width columns, one rune to a column; a
// longer word stands alone.
func wrap(b *strings.Builder, text, first, rest string, width int) {
	line, col := first, utf8.RuneCountInString(first)
	empty := true
	for w := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(w)
		if !empty && col+1+n > width {
			b.WriteString(strings.TrimRight(line, " "))
			b.WriteByte('\n')
			line, col, empty = rest, utf8.RuneCountInString(rest), true
		}
		if !empty {
			line += " "
			col++
		}
		line += w
		col += n
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " "))
	b.WriteByte('\n')
}

func indent(b *strings.Builder, text, by string) {
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(strings.TrimRight(by+l, " "))
		b.WriteByte('\n')
	}
}

func writeMarkdown(p Page, _ int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n`%s` · %s\n", p.Title, p.ID, p.About)
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "\n## %s\n", s.Heading)
		for _, bl := range s.Blocks {
			b.WriteByte('\n')
			switch bl.Kind {
			case Paragraph:
				b.WriteString(bl.Text + "\n")
			case Subheading:
				fmt.Fprintf(&b, "### %s\n", bl.Text)
			case Tabular:
				writeGridMarkdown(&b, bl.Table)
			default:
				for j, it := range bl.Items {
					mark := marker(bl.Kind, j, "- [ ]")
					in := strings.Repeat(" ", len(marker(bl.Kind, j, "-"))+1)
					fmt.Fprintf(&b, "%s %s\n", mark, it.Text)
					for _, m := range it.More {
						fmt.Fprintf(&b, "%s- %s\n", in, m)
					}
					if it.When != "" {
						fmt.Fprintf(&b, "%s- When: `%s`\n", in, it.When)
					}
					if it.Code != "" {
						b.WriteByte('\n')
						fence(&b, it.Code, it.Lang, in)
						if j < len(bl.Items)-1 {
							b.WriteByte('\n')
						}
					}
				}
			}
		}
	}
	return b.String()
}

// fence writes code between marks longer than any in it.
func fence(b *strings.Builder, text, lang, in string) {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	if lang == "text" {
		lang = ""
	}
	fmt.Fprintf(b, "%s%s%s\n", in, mark, lang)
	indent(b, text, in)
	fmt.Fprintf(b, "%s%s\n", in, mark)
}
