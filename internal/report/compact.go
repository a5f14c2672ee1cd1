package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Bounds of what fits elsewhere.
const (
	// ChatMost bounds a summary for a chat, in characters.
	ChatMost = 1500
	// TerminationMost bounds a termination message, in bytes: Kubernetes reads no more of one.
	TerminationMost = 4096
)

// chatBegins is how a summary for a chat begins.
const chatBegins = "**First:** "

// compactRooms are the columns that each line may have, tried from the widest until all fits.
var compactRooms = []int{600, 400, 280, 200, 140, 100, 60}

// compact are the lines of a summary, the most important first, each within so many columns.
func (w *words) compact(room int) []labelled {
	inc := w.inc
	var out []labelled
	put := func(label string, variants ...string) {
		var flat []string
		for _, v := range variants {
			if v = strings.Join(strings.Fields(oneLine(limited(v, TerminationMost))), " "); v != "" {
				flat = append(flat, v)
			}
		}
		if len(flat) > 0 {
			out = append(out, labelled{label, fitted(room, flat...)})
		}
	}
	v := w.verdictOf()
	put("First", v.First...)
	if v.Sure == nil {
		return out
	}
	put("Sure", v.Sure...)
	put("Do", v.Do...)
	put("Check", v.Check...)
	if f := inc.FirstFault; f != nil {
		put("Line", f.Text)
		if s := f.Frame; s != nil {
			put("Source", strings.TrimSuffix(fmt.Sprintf("%s:%d in %s: %s", s.File, s.Line, s.Function, s.Source), ": "), fmt.Sprintf("%s:%d", s.File, s.Line))
		}
	}
	if inc.Order.Relation == incident.OOMFirst || inc.Order.Relation == incident.NaNFirst || inc.Order.Relation == incident.NoRelation {
		put("Order", v.Order...)
	}
	if n := len(inc.Collateral); n > 0 {
		put("Followed", w.followedBriefly())
	}
	if n := len(inc.Limits); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more)", n-1)
		}
		put("Limits", inc.Limits[0].Text+more, inc.Limits[0].Text)
	}
	return out
}

// followedBriefly counts what only followed, by kind.
func (w *words) followedBriefly() string {
	var kinds []string
	count := map[string]int{}
	for i := range w.inc.Collateral {
		c := &w.inc.Collateral[i]
		k := kindWords(c.Event.Kind)
		if count[k] == 0 {
			kinds = append(kinds, k)
		}
		count[k] += max(c.Count, 1)
	}
	for i, k := range kinds {
		if n := count[k]; n > 1 {
			kinds[i] = fmt.Sprintf("%s, %d times", k, n)
		}
	}
	return strings.Join(first(kinds, 4), "; ")
}

// signature names what wrote it and the incident.
func (w *words) signature() string {
	s := toolWords(w.inc.Tool)
	if w.inc.ID != "" {
		s += ", incident " + w.inc.ID
	}
	return s
}

// dotted is a word that a chat may take for the address of a site.
var dotted = lazyre.New(`[\pL\pN]\.[\pL]{2,}`)

// chatText writes text from a log so that no chat makes a link, a mention or a format of it.
func chatText(s string) string {
	return mdWords(s, func(w string) bool { return dotted.MatchString(w) || strings.ContainsAny(w, "!:") && len(w) > 1 })
}

// writeChat writes a few lines of Markdown: what failed first and where, how sure that is, what to
// do and how to check it. It has at most ChatMost characters.
func writeChat(w io.Writer, inc *incident.Incident, _ Options) error {
	ws := newWords(cleaned(inc))
	text := ""
	for _, room := range compactRooms {
		var b strings.Builder
		for i, l := range ws.compact(room) {
			value := chatText(l.Text)
			if l.Label == "Line" || l.Label == "Source" {
				value = mdCode(l.Text)
			}
			if i > 0 {
				b.WriteString("- ")
			}
			fmt.Fprintf(&b, "**%s:** %s\n", l.Label, value)
		}
		fmt.Fprintf(&b, "- %s\n", chatText(limited(ws.signature(), 100)))
		if text = b.String(); utf8.RuneCountInString(text) <= ChatMost {
			break
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

func writeTermination(w io.Writer, inc *incident.Incident, _ Options) error {
	_, err := io.WriteString(w, Termination(inc))
	return err
}

// Termination is a summary in plain text of at most TerminationMost bytes, newlines at all ends of
// lines included: the lines before, then what failed first, how sure that is, what to do and how
// to check it. Lines that do not fit are left out from the end. inc may be nil.
func Termination(inc *incident.Incident, before ...string) string {
	var lines []string
	for _, l := range before {
		if l = strings.TrimSpace(oneLine(l)); l != "" {
			lines = append(lines, limited(l, TerminationMost/4))
		}
	}
	if inc == nil {
		return fitting(lines)
	}
	ws := newWords(cleaned(inc))
	best := ""
	for _, room := range compactRooms {
		all := lines[:len(lines):len(lines)]
		for _, l := range ws.compact(room) {
			all = append(all, limited(pad(l.Label, 10)+l.Text, TerminationMost/2))
		}
		all = append(all, limited(pad("By", 10)+oneLine(ws.signature()), 200))
		best = strings.Join(all, "\n") + "\n"
		if len(best) <= TerminationMost {
			return best
		}
		best = fitting(all)
	}
	return best
}

// fitting joins the lines that fit a termination message.
func fitting(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if b.Len()+len(l)+1 > TerminationMost {
			break
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}
