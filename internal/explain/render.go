package explain

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/catalog"
)

// writers lists the formats of Render. Adding one is a row here and a function
// from page to text.
var writers = []struct {
	name  string
	write func(p page, width int) string
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
// for the others. HTML is a fragment, escaped. An unknown format gives text.
func Render(e *catalog.Entry, format string, width int) string {
	for _, w := range writers {
		if w.name == format {
			return w.write(layout(e), width)
		}
	}
	return writeText(layout(e), width)
}

func writeText(p page, width int) string {
	if width < 20 {
		width = 80
	}
	var b strings.Builder
	wrap(&b, p.title, "", "", width)
	wrap(&b, p.id+" · "+p.about, "", "", width)
	for _, s := range p.sections {
		fmt.Fprintf(&b, "\n%s\n", s.heading)
		for i, bl := range s.blocks {
			if i > 0 && s.blocks[i-1].kind != subheading {
				b.WriteByte('\n')
			}
			switch bl.kind {
			case paragraph:
				wrap(&b, bl.text, "  ", "  ", width)
			case subheading:
				fmt.Fprintf(&b, "  %s\n", bl.text)
			default:
				for j, it := range bl.items {
					mark := marker(bl.kind, j, "[ ]")
					wrap(&b, it.text, "  "+mark+" ", strings.Repeat(" ", len(mark)+3), width)
					for _, m := range it.more {
						wrap(&b, m, strings.Repeat(" ", len(mark)+3), strings.Repeat(" ", len(mark)+5), width)
					}
					if it.when != "" {
						wrap(&b, "When: "+it.when, strings.Repeat(" ", len(mark)+3), strings.Repeat(" ", len(mark)+5), width)
					}
					if it.code != "" {
						indent(&b, it.code, strings.Repeat(" ", len(mark)+5))
					}
				}
			}
		}
	}
	return b.String()
}

func marker(kind blockKind, i int, check string) string {
	switch kind {
	case numbers:
		return fmt.Sprintf("%d.", i+1)
	case checks:
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

func writeMarkdown(p page, _ int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n`%s` · %s\n", p.title, p.id, p.about)
	for _, s := range p.sections {
		fmt.Fprintf(&b, "\n## %s\n", s.heading)
		for _, bl := range s.blocks {
			b.WriteByte('\n')
			switch bl.kind {
			case paragraph:
				b.WriteString(bl.text + "\n")
			case subheading:
				fmt.Fprintf(&b, "### %s\n", bl.text)
			default:
				for j, it := range bl.items {
					mark := marker(bl.kind, j, "- [ ]")
					in := strings.Repeat(" ", len(marker(bl.kind, j, "-"))+1)
					fmt.Fprintf(&b, "%s %s\n", mark, it.text)
					for _, m := range it.more {
						fmt.Fprintf(&b, "%s- %s\n", in, m)
					}
					if it.when != "" {
						fmt.Fprintf(&b, "%s- When: `%s`\n", in, it.when)
					}
					if it.code != "" {
						b.WriteByte('\n')
						fence(&b, it.code, it.lang, in)
						if j < len(bl.items)-1 {
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

func writeHTML(p page, _ int) string {
	var b strings.Builder
	esc := html.EscapeString
	fmt.Fprintf(&b, "<article id=\"%s\">\n<h1>%s</h1>\n<p><code>%s</code> · %s</p>\n", esc(p.id), esc(p.title), esc(p.id), esc(p.about))
	for _, s := range p.sections {
		fmt.Fprintf(&b, "<h2>%s</h2>\n", esc(s.heading))
		for _, bl := range s.blocks {
			switch bl.kind {
			case paragraph:
				fmt.Fprintf(&b, "<p>%s</p>\n", inline(bl.text))
			case subheading:
				fmt.Fprintf(&b, "<h3>%s</h3>\n", esc(bl.text))
			default:
				tag := "ul"
				if bl.kind == numbers {
					tag = "ol"
				}
				fmt.Fprintf(&b, "<%s>\n", tag)
				for _, it := range bl.items {
					fmt.Fprintf(&b, "<li>%s", inline(it.text))
					for _, m := range it.more {
						fmt.Fprintf(&b, "<br>%s", inline(m))
					}
					if it.when != "" {
						fmt.Fprintf(&b, "<br>When: <code>%s</code>", esc(it.when))
					}
					if it.code != "" {
						fmt.Fprintf(&b, "\n<pre><code>%s</code></pre>", esc(it.code))
					}
					b.WriteString("</li>\n")
				}
				fmt.Fprintf(&b, "</%s>\n", tag)
			}
		}
	}
	b.WriteString("</article>\n")
	return b.String()
}

// inline escapes text and sets what stands between back-quotes as code.
func inline(text string) string {
	parts := strings.Split(html.EscapeString(text), "`")
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i%2 == 0:
			b.WriteString(p)
		case i == len(parts)-1: // unpaired
			b.WriteString("`" + p)
		default:
			b.WriteString("<code>" + p + "</code>")
		}
	}
	return b.String()
}
