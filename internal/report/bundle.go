package report

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// bundleFormats lists every format of what is said of a bundle. Adding one is a row here.
var bundleFormats = []format[*incident.Bundle]{
	{"text", writeBundleText},
	{"json", writeJSON[*incident.Bundle]},
	{"markdown", writeBundleMarkdown},
}

// BundleFormats returns the names of the formats of WriteBundle, the default first.
func BundleFormats() []string { return formatNames(bundleFormats) }

// WriteBundle renders the manifest of a bundle in the named format.
func WriteBundle(w io.Writer, format string, b *incident.Bundle, o Options) error {
	return writeIn(bundleFormats, w, format, b, o)
}

// A bundleView is a bundle as reports speak of it.
type bundleView struct{ *incident.Bundle }

func newBundleView(b *incident.Bundle) *bundleView {
	return &bundleView{copyClean(reflect.ValueOf(b)).Interface().(*incident.Bundle)}
}

func (v *bundleView) toVariants() []string {
	var who []string
	for _, r := range v.To {
		who = append(who, r.Who)
	}
	if len(who) == 0 {
		return []string{"nobody is named"}
	}
	return []string{strings.Join(who, ", then ") + ": " + v.To[0].Why, strings.Join(who, ", then ")}
}

func (v *bundleView) holdsVariants() []string {
	var size int64
	logs := 0
	for _, f := range v.Contents {
		size += f.Size
		if strings.HasPrefix(f.Path, "logs/") {
			logs++
		}
	}
	return []string{fmt.Sprintf("%s, %s of them redacted logs, %s before compression", plural(len(v.Contents), "file"), thousands(int64(logs)), evidence.Bytes(size)), plural(len(v.Contents), "file")}
}

// removedWords name what was taken out, by kind.
var removedWords = map[string][2]string{
	"secret": {"secret", "secrets"}, "user": {"user name", "user names"}, "host": {"host name", "host names"}, "email": {"e-mail address", "e-mail addresses"},
	"address": {"network address", "network addresses"}, "path": {"part of a path", "parts of paths"}, "name": {"name of a job, run or project", "names of jobs, runs or projects"}, "text": {"sample of text", "samples of text"},
}

func removedLine(r *incident.BundleRemoved) string {
	words, ok := removedWords[r.Kind]
	if !ok {
		words = [2]string{oneLine(r.Kind), oneLine(r.Kind)}
	}
	n := words[1]
	if r.Count == 1 {
		n = words[0]
	}
	s := fmt.Sprintf("%s %s", thousands(int64(r.Count)), n)
	switch {
	case r.Kind == "secret":
		s += ", masked as " + r.Token
	case r.Names == 1:
		s += ", by the token " + r.Token
	default:
		s += fmt.Sprintf(", %s different, by tokens as %s", thousands(int64(r.Names)), r.Token)
	}
	return s
}

func (v *bundleView) removedVariants() []string {
	var parts []string
	total := 0
	for _, r := range v.Removed {
		words, ok := removedWords[r.Kind]
		if !ok {
			words = [2]string{r.Kind, r.Kind}
		}
		n := words[1]
		if r.Count == 1 {
			n = words[0]
		}
		parts = append(parts, thousands(int64(r.Count))+" "+n)
		total += r.Count
	}
	if total == 0 {
		return []string{"nothing: no secret and no name was found"}
	}
	return []string{strings.Join(parts, ", "), thousands(int64(total)) + " things"}
}

func (v *bundleView) checkVariants() []string {
	if v.Check.Unchanged {
		if v.Check.Fingerprint != v.Check.Bundled {
			return []string{"the diagnosis of the bundle is unchanged; its fingerprint is another, because the first fault's own words held a name", "the diagnosis of the bundle is unchanged"}
		}
		return []string{"the diagnosis of the bundle is unchanged"}
	}
	if len(v.Check.Differs) == 0 {
		return []string{"the bundle was not diagnosed"}
	}
	return []string{"the diagnosis of the bundle differs: " + strings.Join(v.Check.Differs, "; "), fmt.Sprintf("the diagnosis of the bundle differs in %s", plural(len(v.Check.Differs), "point"))}
}

func (v *bundleView) leftVariants() []string {
	switch n := len(v.LeftOut); n {
	case 0:
		return []string{"nothing was left out"}
	case 1:
		return []string{v.LeftOut[0].Path + " was left out: " + v.LeftOut[0].Why, "one file was left out"}
	default:
		return []string{fmt.Sprintf("%s were left out", plural(n, "file"))}
	}
}

var bundleLabels = []string{"For", "Holds", "Out", "Check", "Left"}

func (v *bundleView) variants() []func() []string {
	return []func() []string{v.toVariants, v.holdsVariants, v.removedVariants, v.checkVariants, v.leftVariants}
}

func (v *bundleView) leftLines() []string {
	var out []string
	for _, l := range v.LeftOut {
		out = append(out, fmt.Sprintf("%s (%s): %s", l.Path, evidence.Bytes(l.Size), l.Why))
	}
	return out
}

func (v *bundleView) contentLines() []string {
	var out []string
	for _, f := range v.Contents {
		out = append(out, fmt.Sprintf("%s (%s): %s", f.Path, evidence.Bytes(f.Size), f.What))
	}
	return out
}

func (v *bundleView) removedLines() []string {
	var out []string
	for i := range v.Removed {
		out = append(out, removedLine(&v.Removed[i]))
	}
	return out
}

func writeBundleText(w io.Writer, b *incident.Bundle, o Options) error {
	v := newBundleView(b)
	p := newPage(&incident.Incident{}, o)
	plain := lipgloss.NewStyle()
	tone := p.good
	if !v.Check.Unchanged {
		tone = p.bad
	}
	for i, fn := range v.variants() {
		p.head(bundleLabels[i], fn(), []lipgloss.Style{p.strong, plain, plain, tone, plain}[i])
	}
	list := func(title, mark string, lines []string, from, to int) {
		if len(lines) == 0 {
			return
		}
		p.section(title)
		for i, s := range lines {
			p.at(from+min(i/4, to-from), func() { p.para(2, mark, s) })
		}
	}
	list("Taken out", "- ", v.removedLines(), 1, 2)
	if !v.Check.Unchanged {
		list("What differs", "! ", v.Check.Differs, 1, 1)
	}
	list("In it", "- ", v.contentLines(), 2, 5)
	list("Left out", "- ", v.leftLines(), 2, 5)
	list("To be sent with it", "", strings.Split(strings.TrimSpace(v.Message), "\n"), 4, 6)
	list("Limits", "! ", v.Limits, 1, 2)
	_, err := io.WriteString(w, p.text())
	return err
}

func writeBundleMarkdown(w io.Writer, b *incident.Bundle, o Options) error {
	v := newBundleView(b)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, "Bundle of incident "+v.Incident)
	d.labelled(labelledLines(bundleLabels, v.variants()...))
	d.sentences("Taken out", v.removedLines())
	d.sentences("What differs", v.Check.Differs)
	d.sentences("In it", v.contentLines())
	d.sentences("Left out", v.leftLines())
	d.heading(2, "To be sent with it")
	d.fence("text", strings.Split(strings.TrimSpace(v.Message), "\n"))
	d.sentences("Limits", v.Limits)
	fmt.Fprintf(d, "\n---\n%s\n", mdCode(v.Schema))
	_, err := io.WriteString(w, d.String())
	return err
}
