package testkit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// Timeline builds the case's timeline.
func (c *Case) Timeline() *timeline.Timeline { return timeline.Build(c.Sources) }

// Item returns the event that the script calls id.
func (c *Case) Item(tl *timeline.Timeline, id string) (*timeline.Item, error) {
	r, ok := c.ids[id]
	if !ok {
		return nil, fmt.Errorf("no event has id=%s", id)
	}
	n := r.event
	for _, it := range tl.Items {
		if it.Source == r.source {
			if n == 0 {
				return it, nil
			}
			n--
		}
	}
	return nil, fmt.Errorf("event %s is not in the timeline", id)
}

// ID returns the script's name of an event, "" if it has none.
func (c *Case) ID(tl *timeline.Timeline, it *timeline.Item) string {
	for id := range c.ids {
		if x, err := c.Item(tl, id); err == nil && x == it {
			return id
		}
	}
	return ""
}

// Match says in what an event differs from "KIND rank=R host=H step=S file=F
// id=I", all of them optional; "" where it does not. The id is the script's.
func (c *Case) Match(tl *timeline.Timeline, it *timeline.Item, kind string, with map[string]string) string {
	if it == nil {
		return "there is none"
	}
	if kind != "" && string(it.Kind) != kind {
		return fmt.Sprintf("it is %s, not %s", it.Kind, kind)
	}
	integer := func(n int64) string {
		if n == evidence.None {
			return "none"
		}
		return strconv.FormatInt(n, 10)
	}
	for _, f := range []struct {
		name string
		have func() string
	}{
		{"rank", func() string { return integer(int64(it.Who.Rank)) }},
		{"local", func() string { return integer(int64(it.Who.LocalRank)) }},
		{"host", func() string { return it.Who.Host }},
		{"step", func() string { return integer(it.Step) }},
		{"file", func() string { return it.Span.Artifact }},
		{"id", func() string { return c.ID(tl, it) }},
	} {
		if want, ok := with[f.name]; ok && f.have() != want {
			return fmt.Sprintf("its %s is %q, not %q", f.name, f.have(), want)
		}
	}
	return ""
}

// Fact says in what the known facts differ from an expectation of the form
// "fact name=value…" or "unknown name…"; "" where they do not.
func Fact(known evidence.Known, e Expectation) string {
	if e.What == "unknown" {
		for _, n := range e.Args {
			if x, ok := known[n]; ok {
				return fmt.Sprintf("%s is known: %s", n, x.Value)
			}
		}
		return ""
	}
	for n, want := range e.With {
		x, ok := known[n]
		if !ok {
			return n + " is unknown"
		}
		if got := show(x.Value); got != want && !same(x.Value, want) {
			return fmt.Sprintf("%s is %s, not %s", n, got, want)
		}
	}
	return ""
}

// show prints a value as a script writes it.
func show(v evidence.Value) string {
	switch v.T {
	case evidence.Size:
		if v.Lo == v.Hi {
			return strconv.FormatInt(v.Lo, 10)
		}
		return fmt.Sprintf("%d..%d", v.Lo, v.Hi)
	case evidence.Ints:
		return strings.ReplaceAll(v.String(), " ", "")
	}
	return v.String()
}

// same compares a value with its script form, floats to four digits.
func same(v evidence.Value, want string) bool {
	w, err := value(v.T, want)
	if err != nil {
		return false
	}
	switch v.T {
	case evidence.Float:
		return strconv.FormatFloat(v.F, 'g', 4, 64) == strconv.FormatFloat(w.F, 'g', 4, 64)
	case evidence.Size:
		return v.Lo == w.Lo && v.Hi == w.Hi
	}
	return false
}
