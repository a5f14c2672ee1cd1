package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// DiagnoseTimeline is Diagnose, and what the verdict was read from: the events of all attempts,
// at most max of them. What the bound takes out is what says least: repeats, then events that no
// verdict names, from the middle of each rank's.
func DiagnoseTimeline(ctx context.Context, o Options, max int) (*incident.Incident, *incident.Timeline, error) {
	var tl *incident.Timeline
	inc, err := diagnosed(ctx, o, func(s *Study, inc *incident.Incident) error {
		var err error
		tl, err = s.story(ctx, inc, max)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return inc, tl, nil
}

// A told is an event on its way into a timeline.
type told struct {
	it      *timeline.Item
	attempt int
	role    string
	apart   bool
	repeat  bool // says what another event of its process says
}

// story puts the events of all attempts in order, with the part that each has in the verdict of
// its attempt.
func (s *Study) story(ctx context.Context, inc *incident.Incident, max int) (*incident.Timeline, error) {
	out := &incident.Timeline{Schema: incident.TimelineSchema, Attempts: []incident.TimelineAttempt{}, Events: []incident.TimelineEvent{}, Dropped: map[string]int{}}
	home := s.homes()
	good := map[*timeline.Item]*incident.LastGood{}
	var all []told
	for i, c := range s.Cases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		items := slices.DeleteFunc(slices.Clone(c.Attempt.Items), func(it *timeline.Item) bool { return it.Attempt < 0 && home[it] != i })
		var last *timeline.Item
		if ser, p := diagnose.LastGood(c); p != nil {
			if last = s.Timeline.PointItem(ser, *p, i); last != nil {
				last.Kind, last.ID = incident.LastGoodKind, fmt.Sprintf("g%d", i+1)
				good[last] = inc.Attempts[i].LastGood
				items = append(items, last)
			}
		}
		items = s.Timeline.Told(items)
		if l := c.Lead; l != nil && l.Source < 0 { // known by elimination: before what it explains
			at := slices.IndexFunc(items, func(it *timeline.Item) bool { k := c.LinkOf(it); return k != nil && k.By == l })
			if at < 0 {
				at = len(items)
			}
			items = slices.Insert(items, at, l)
		}
		items = s.explained(c, items)
		events := s.parts(c, items, last)
		repeats(events)
		ranks := map[int]bool{}
		for _, e := range events {
			if r := e.it.Who.Rank; r >= 0 {
				ranks[r] = true
			}
		}
		for _, r := range c.Ranks {
			ranks[r] = true
		}
		a := incident.TimelineAttempt{ID: c.Attempt.ID, Outcome: c.Outcome, Ranks: []int{}, Events: len(events)}
		for r := range ranks {
			a.Ranks = append(a.Ranks, r)
		}
		slices.Sort(a.Ranks)
		out.Attempts = append(out.Attempts, a)
		for _, e := range events {
			e.attempt = i
			all = append(all, e)
		}
	}
	out.Total = len(all)
	keep := bounded(all, max)
	for n := range all {
		e := &all[n]
		if !keep[n] {
			out.Dropped[string(e.it.Kind)]++
			continue
		}
		x := incident.TimelineEvent{Event: s.event(e.it, s.Cases[e.attempt]), N: n, Role: e.role, Apart: e.apart}
		if g := good[e.it]; g != nil {
			x.Text = goodText(g)
			if g.Span != nil {
				x.Span.Quote = g.Span.Quote
			}
		}
		if x.Attempt == "" { // the machine's own: shown with the attempt in which it stands
			x.Attempt = s.Timeline.Attempts[e.attempt].ID
		}
		x.Why = s.whyRole(e)
		out.Events = append(out.Events, x)
	}
	mask(out)
	for i := range out.Events {
		e := &out.Events[i]
		e.Text = clipped(e.Text)
	}
	return out, nil
}

// explained moves what another event explains behind it, where nothing else orders the two, and
// with it what its process told afterwards.
func (s *Study) explained(c *diagnose.Case, items []*timeline.Item) []*timeline.Item {
	of := (*timeline.Item).Process
	in := make(map[*timeline.Item]bool, len(items))
	for _, it := range items {
		in[it] = true
	}
	waits := map[timeline.Process]*timeline.Item{}  // for what its lines wait
	behind := map[*timeline.Item][]*timeline.Item{} // that wait for it
	put := make(map[*timeline.Item]bool, len(items))
	out := make([]*timeline.Item, 0, len(items))
	var take func(it *timeline.Item)
	take = func(it *timeline.Item) {
		p := of(it)
		if by := waits[p]; by != nil && it.Source >= 0 {
			behind[by] = append(behind[by], it)
			return
		}
		if l := c.LinkOf(it); l != nil && in[l.By] && !put[l.By] && l.By != it && of(l.By) != p && it.Source >= 0 && (l.By.Source < 0 || s.Timeline.Apart(l.By, it)) {
			waits[p] = l.By
			behind[l.By] = append(behind[l.By], it)
			return
		}
		out, put[it] = append(out, it), true
		list := behind[it]
		delete(behind, it)
		for _, x := range list {
			delete(waits, of(x))
		}
		for _, x := range list {
			take(x)
		}
	}
	for _, it := range items {
		take(it)
	}
	if len(out) < len(items) { // they wait for each other
		for _, it := range items {
			if !put[it] {
				out = append(out, it)
			}
		}
	}
	return out
}

// homes says in which attempt a record of the machine is shown: that of the verdict where it can
// be of it, else the last that it can be of.
func (s *Study) homes() map[*timeline.Item]int {
	home := map[*timeline.Item]int{}
	for i, c := range s.Cases {
		for _, it := range c.Attempt.Items {
			if old, ok := home[it]; it.Attempt < 0 && (!ok || old != s.Main) {
				home[it] = i
			}
		}
	}
	return home
}

// parts gives each event of an attempt its role.
func (s *Study) parts(c *diagnose.Case, items []*timeline.Item, good *timeline.Item) []told {
	rival := map[*timeline.Item]bool{}
	for _, r := range c.Rivals {
		rival[r] = true
	}
	out := make([]told, len(items))
	for i, it := range items {
		e := told{it: it, role: incident.RoleOther}
		switch {
		case it == c.Lead:
			e.role = incident.RoleFirst
		case rival[it]:
			e.role = incident.RoleRival
		case it == good:
			e.role = incident.RoleLastGood
		case c.Recovered(&it.Event):
			e.role = incident.RoleRecovered
		case c.LinkOf(it) != nil:
			e.role = incident.RoleFollowed
		}
		if i > 0 {
			prev := items[i-1]
			e.apart = it.Source < 0 || prev.Source < 0 || s.Timeline.Apart(prev, it)
		}
		out[i] = e
	}
	return out
}

// repeats marks what says again what was said: words that a merged log repeats, and what differs
// from an event before it of the same process and kind in numbers alone.
func repeats(events []told) {
	type words struct {
		kind        evidence.Kind
		rank, local int
		host, text  string
	}
	seen := map[words]bool{}
	for i := range events {
		it := events[i].it
		w := words{it.Kind, it.Who.Rank, it.Who.LocalRank, it.Who.Host, digits.ReplaceAllString(it.Text, "#")}
		events[i].repeat = it.Quoted || seen[w]
		seen[w] = true
	}
}

// bounded chooses at most max events: of the least telling sort that must give way, the ones in
// the middle of each rank's go.
func bounded(all []told, max int) []bool {
	keep := make([]bool, len(all))
	weight := func(e *told) int {
		switch e.role {
		case incident.RoleFirst:
			return 5
		case incident.RoleRival, incident.RoleLastGood:
			return 4
		case incident.RoleFollowed, incident.RoleRecovered:
			if e.repeat {
				return 2
			}
			return 3
		}
		if e.repeat {
			return 0
		}
		return 1
	}
	by := [6][]int{}
	for i := range all {
		w := weight(&all[i])
		by[w] = append(by[w], i)
	}
	for w := len(by) - 1; w >= 0 && max > 0; w-- {
		if len(by[w]) > max {
			by[w] = outer(all, by[w], max)
		}
		for _, i := range by[w] {
			keep[i] = true
		}
		max -= len(by[w])
	}
	return keep
}

// outer keeps n of the events that list names: of each rank of each attempt the first, the last,
// the second, the last but one and so on, of all ranks alike, those of earlier places first.
func outer(all []told, list []int, n int) []int {
	type group struct{ attempt, rank int }
	size, at := map[group]int{}, map[group]int{}
	of := func(i int) group { return group{all[i].attempt, all[i].it.Who.Rank} }
	for _, i := range list {
		size[of(i)]++
	}
	depth := make(map[int]int, len(list)) // 0 for the first of its rank, 1 for the last, 2 for the second
	for _, i := range list {
		g := of(i)
		k := at[g]
		at[g]++
		depth[i] = min(2*k, 2*(size[g]-1-k)+1)
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(depth[a], depth[b]) })
	return out[:n]
}

// whyRole says why an event has its role.
func (s *Study) whyRole(e *told) string {
	c := s.Cases[e.attempt]
	switch e.role {
	case incident.RoleFirst:
		return c.Basis
	case incident.RoleRival:
		if c.Lead.Source < 0 || e.it.Source < 0 {
			return "nothing orders it against the first fault, which left no words"
		}
		_, why := s.Timeline.Compare(c.Lead, e.it)
		return "not ordered against the first fault: " + why
	case incident.RoleFollowed:
		l := c.LinkOf(e.it)
		if l.By != nil && l.By.ID != "" {
			return fmt.Sprintf("%s (%s, by %s)", l.Text, l.Rule, l.By.ID)
		}
		return fmt.Sprintf("%s (%s)", l.Text, l.Rule)
	case incident.RoleRecovered:
		return "the run went on after it"
	case incident.RoleLastGood:
		return "the last finite value that was logged before the first fault"
	}
	switch {
	case e.it == c.Memory:
		return "the memory failure whose order to non-finite values is stated"
	case e.it == c.NaN:
		return "the non-finite value whose order to a memory failure is stated"
	case e.it.Quoted:
		return "told again: the words stand elsewhere"
	case e.it.Attempt < 0 && len(s.Cases) > 1:
		return "a record of the machine; it can be of this attempt"
	}
	return ""
}

// goodText is the last good value in words.
func goodText(g *incident.LastGood) string {
	var out []string
	if g.Step != nil {
		out = append(out, fmt.Sprintf("step %d", *g.Step))
	}
	switch {
	case g.Loss != nil:
		out = append(out, fmt.Sprintf("loss %.6g", *g.Loss))
	case g.Value != "":
		out = append(out, g.Value)
	}
	return strings.Join(out, ", ")
}

// clipped bounds the text of one event.
func clipped(s string) string {
	if len(s) <= quoteLen {
		return s
	}
	return strings.ToValidUTF8(s[:quoteLen], "") + "…"
}
