package reader

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Dump writes what a reader found as text for people: one paragraph for each
// event, one line for each series, fact, owner and damage, in the order found.
// It is the format of the golden files of readers. Text from the artifact is
// quoted, so that nothing in it reaches a terminal as a control sequence.
func Dump(w io.Writer, c *Collector) error {
	b := bufio.NewWriter(w)
	for _, o := range c.Owners {
		fmt.Fprintf(b, "owner %s by %s\n", whoText(evidence.Who{Attempt: o.Attempt, Host: o.Host, Rank: o.Rank, LocalRank: o.LocalRank, Device: evidence.None, PID: evidence.None}), o.Basis)
	}
	for i := range c.Events {
		dumpEvent(b, &c.Events[i])
	}
	for _, s := range c.Metrics {
		dumpSeries(b, s)
	}
	for _, f := range c.Facts {
		fmt.Fprintf(b, "fact %s = %s %s %s\n", f.Name, valueText(f.Value), whoText(f.Who), spanText(f.Span))
	}
	for _, d := range c.Damages {
		fmt.Fprintf(b, "damage %s: %v\n", spanText(d.Span), d.Err)
	}
	if d := c.Dropped; d.Events+d.Series+d.Facts+d.Damages > 0 {
		fmt.Fprintf(b, "over limit: %d events, %d series, %d facts, %d damages\n", d.Events, d.Series, d.Facts, d.Damages)
	}
	for _, t := range c.Tallies {
		fmt.Fprintf(b, "tally %d %s\n", t.N, plainText(t.What))
	}
	return b.Flush()
}

func dumpEvent(w io.Writer, e *evidence.Event) {
	fmt.Fprintf(w, "event %s %s", e.Kind, spanText(e.Span))
	if who := whoText(e.Who); who != "" {
		fmt.Fprintf(w, " %s", who)
	}
	if e.Step != evidence.None {
		fmt.Fprintf(w, " step=%d", e.Step)
	}
	if e.Stamp.Known() {
		fmt.Fprintf(w, " at %s", stampText(e.Stamp))
	}
	if e.Line != "" {
		fmt.Fprintf(w, " by %s", e.Line)
	}
	if e.Chain != "" {
		fmt.Fprintf(w, " chain=%s", e.Chain)
	}
	if e.Quoted {
		fmt.Fprint(w, " quoted")
	}
	fmt.Fprintf(w, "\n\ttext %q\n", e.Text)
	names := make([]string, 0, len(e.Attrs))
	for n := range e.Attrs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(w, "\t%s = %s\n", n, valueText(e.Attrs[n]))
	}
	for _, f := range e.Stack {
		fmt.Fprintf(w, "\tstack %q:%d in %s | %q\n", f.File, f.Line, plainText(f.Function), f.Source)
	}
}

// plainText is text as it is, or quoted if it holds what does not print.
func plainText(text string) string {
	if q := strconv.Quote(text); q != `"`+text+`"` {
		return q
	}
	return text
}

func dumpSeries(w io.Writer, s *evidence.Series) {
	k := s.Key
	fmt.Fprintf(w, "series %s source=%s trust=%s", k.Name, k.Source, k.Trust)
	if k.Phase != "" {
		fmt.Fprintf(w, " phase=%s", k.Phase)
	}
	if k.Unit != "" {
		fmt.Fprintf(w, " unit=%s", k.Unit)
	}
	if k.Rank != evidence.None {
		fmt.Fprintf(w, " rank=%d", k.Rank)
	}
	fmt.Fprintf(w, " launch=%d points=%d bad=%d", k.Launch, s.Count, s.Bad)
	point := func(name string, p evidence.Point) {
		fmt.Fprintf(w, " %s=%v@", name, p.Value)
		if p.Step == evidence.None {
			fmt.Fprintf(w, "line %d", p.Line)
		} else {
			fmt.Fprintf(w, "step %d", p.Step)
		}
	}
	if s.Count > 0 {
		point("first", s.First)
		point("last", s.Last)
	}
	if s.Bad > 0 {
		point("firstbad", s.FirstBad)
	}
	fmt.Fprintln(w)
}

// valueText prints a value exactly.
func valueText(v evidence.Value) string {
	switch v.T {
	case evidence.Text:
		return fmt.Sprintf("%q", v.S)
	case evidence.Size:
		if v.Lo == v.Hi {
			return fmt.Sprintf("%d bytes", v.Lo)
		}
		return fmt.Sprintf("%d..%d bytes (%s)", v.Lo, v.Hi, v)
	case evidence.Float:
		return fmt.Sprint(v.F)
	}
	return v.String()
}

// whoText prints what is known of w.
func whoText(w evidence.Who) string {
	var parts []string
	text := func(name, v string) {
		if v != "" {
			parts = append(parts, name+"="+strings.Trim(fmt.Sprintf("%q", v), `"`))
		}
	}
	num := func(name string, v int) {
		if v != evidence.None {
			parts = append(parts, fmt.Sprintf("%s=%d", name, v))
		}
	}
	text("attempt", w.Attempt)
	if w.Launch != 0 {
		num("launch", w.Launch)
	}
	text("host", w.Host)
	num("rank", w.Rank)
	num("local", w.LocalRank)
	num("device", w.Device)
	text("bus", w.BusID)
	num("pid", w.PID)
	return strings.Join(parts, " ")
}

func stampText(s evidence.Stamp) string {
	layout := "2006-01-02T15:04:05.999999999"
	switch {
	case s.NoDate:
		layout = "15:04:05.999999999"
	case s.NoYear:
		layout = "01-02T15:04:05.999999999"
	}
	t := s.Time.Format(layout)
	if s.Clock != "wall" {
		t = fmt.Sprintf("%s %v", s.Clock, s.Time.Sub(time.Unix(0, 0).UTC()))
	}
	if s.Zone != "" {
		t += " zone " + s.Zone
	}
	return fmt.Sprintf("%s ±%v", t, s.Error)
}

func spanText(s evidence.Span) string {
	switch s.Kind {
	case "text":
		return fmt.Sprintf("%d:%d+%d[%d]", s.Line, s.Column, s.Offset, s.Length)
	case "row":
		return fmt.Sprintf("row %s %d +%d[%d]", s.Table, s.Row, s.Offset, s.Length)
	case "record":
		return fmt.Sprintf("record %d +%d[%d]", s.Record, s.Offset, s.Length)
	}
	return fmt.Sprintf("%s %s%s +%d[%d]", s.Kind, s.Pointer, s.Stack, s.Offset, s.Length)
}
