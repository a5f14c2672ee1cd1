package diagnose

import (
	"fmt"
	"math"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// An Order relates a device-memory failure to a non-finite value.
type Order struct {
	Relation    string
	Basis       string
	SameAttempt bool
	Linked      string
	Mechanism   string
	Memory, NaN *timeline.Item
	NaNCase     *Case // whose series bracket the non-finite value
}

// OrderOf relates the two for case n of cases. Both are taken from that attempt
// if it has both. Otherwise the one that it has is set against the nearest
// attempt before it that has the other: most logs with both hold two launches.
//
// certain tells whether a memory event stands for memory at all: a library
// status that has other meanings too counts only with other signs of a full
// device.
func OrderOf(cases []*Case, n int, certain func(*Case, *timeline.Item) bool) Order {
	pick := func(c *Case) (m, v *timeline.Item) {
		m, v = c.Memory, c.NaN
		if m != nil && !certain(c, m) {
			m = nil
		}
		return m, v
	}
	m, v := pick(cases[n])
	mc, vc := cases[n], cases[n]
	for i := n - 1; i >= 0 && (m == nil) != (v == nil); i-- {
		om, ov := pick(cases[i])
		if m == nil && om != nil {
			m, mc = om, cases[i]
		} else if v == nil && ov != nil {
			v, vc = ov, cases[i]
		}
	}
	if m == nil && v == nil {
		for i := n - 1; i >= 0 && m == nil && v == nil; i-- {
			m, v = pick(cases[i])
			mc, vc = cases[i], cases[i]
		}
	}
	o := Order{Memory: m, NaN: v, NaNCase: vc, Linked: incident.LinkNo, SameAttempt: mc == vc}
	switch {
	case m == nil && v == nil:
		o.Relation, o.Basis = incident.Neither, "no device-memory failure and no non-finite training value is in evidence"
		o.SameAttempt = true
	case v == nil:
		o.Relation, o.Basis = incident.OOMOnly, "no non-finite training value is in evidence"
	case m == nil:
		o.Relation, o.Basis = incident.NaNOnly, "no device-memory failure is in evidence"
	default:
		rel, basis := cases[n].Timeline.Compare(m, v)
		o.Basis = basis
		switch rel {
		case timeline.Before:
			o.Relation = incident.OOMFirst
		case timeline.After:
			o.Relation = incident.NaNFirst
		default:
			o.Relation = incident.NoRelation
		}
		o.Linked, o.Mechanism = linked(mc, vc, m, v, rel)
	}
	return o
}

// linked says whether a mechanism in evidence ties the two. A caught
// out-of-memory that leaves a step half done can make the next values
// non-finite; anomaly mode switched on to find a NaN keeps graphs alive. In
// separate launches a changed setting may tie them, which the log alone does not
// show.
func linked(mc, vc *Case, m, v *timeline.Item, rel timeline.Relation) (string, string) {
	if mc != vc {
		if rel == timeline.After && anomaly(mc) && !anomaly(vc) {
			return incident.LinkYes, "anomaly detection was switched on after the non-finite value, and memory ran out in that launch"
		}
		return incident.LinkUnknown, ""
	}
	if rel == timeline.Before && mc.recovered[m] {
		return incident.LinkUnknown, ""
	}
	return incident.LinkNo, ""
}

func anomaly(c *Case) bool {
	for _, it := range c.Attempt.Items {
		if it.Kind == evidence.AnomalyMode {
			return true
		}
	}
	return false
}

// A Bracket holds the two logged points between which a series stopped being
// finite.
type Bracket struct {
	Last, First *evidence.Point
	Series      *evidence.Series
}

// BracketOf finds the series of the non-finite event and its bracket.
func BracketOf(c *Case, v *timeline.Item) *Bracket {
	if c == nil || v == nil {
		return nil
	}
	metric := v.Attrs.Str("metric")
	var best *Bracket
	for _, s := range c.Attempt.Series {
		if s.Key.Phase == "eval" && metric != s.Key.Name {
			continue
		}
		same := s.Key.Artifact == v.Span.Artifact && (s.Key.Rank == v.Who.Rank || s.Key.Rank <= 0 && v.Who.Rank <= 0)
		if !same || s.Key.Name != metric && s.Key.Name != "loss" && metric != "" {
			continue
		}
		b := &Bracket{Series: s}
		if s.Bad > 0 && s.Key.Name == metric {
			p := s.FirstBad
			b.First = &p
			if s.HasBefore {
				q := s.LastBeforeBad
				b.Last = &q
			}
		} else {
			for p := range s.All() {
				if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
					continue
				}
				if p.Offset < v.Span.Offset && !(v.Attrs["hidden"].True() && p.Value == 0) {
					q := p
					b.Last = &q
				}
			}
		}
		if best == nil || s.Key.Name == metric && best.Series.Key.Name != metric {
			best = b
		}
	}
	return best
}

// LastGood is the last finite training loss before the lead (or of all).
func LastGood(c *Case) (*evidence.Series, *evidence.Point) {
	var bs *evidence.Series
	var bp *evidence.Point
	for _, name := range []string{"loss", "grad_norm"} {
		for _, s := range c.Attempt.Series {
			if s.Key.Name != name || s.Key.Phase == "eval" || !s.HasFinite {
				continue
			}
			p := s.LastFinite()
			if s.Bad > 0 && s.HasBefore {
				p = s.LastBeforeBad
			} else if s.Bad > 0 {
				continue
			}
			hidden := c.NaN != nil && c.NaN.Attrs["hidden"].True() && c.NaN.Span.Artifact == s.Key.Artifact
			if c.notBefore(s, p) || hidden && c.Lead != nil && c.Lead.Source >= 0 {
				found := false
				for q := range s.All() {
					if !c.notBefore(s, q) && !math.IsNaN(q.Value) && !math.IsInf(q.Value, 0) && !(hidden && q.Value == 0) {
						p, found = q, true
					}
				}
				if !found {
					continue
				}
			}
			if bp == nil || p.Step > bp.Step {
				q := p
				bs, bp = s, &q
			}
		}
		if bp != nil {
			return bs, bp
		}
	}
	return nil, nil
}

// notBefore reports whether a point of s is known not to lie before the lead: by
// its place in the lead's own file, or, in another one (a trainer's state beside
// its console), by the step at which a value was first not finite.
func (c *Case) notBefore(s *evidence.Series, p evidence.Point) bool {
	l := c.Lead
	switch {
	case l == nil || l.Source < 0:
		return false
	case l.Span.Artifact == s.Key.Artifact:
		return p.Offset >= l.Span.Offset
	}
	return stated(l.Kind) && l.Step >= 0 && p.Step >= l.Step
}

// stated reports whether events of kind k carry a step of their own, not the last
// one seen before them.
func stated(k evidence.Kind) bool {
	return k == evidence.NonfiniteValue || k == evidence.NonfiniteNamed || k == evidence.LossOmitted
}

// Text of an order for people.
func (o Order) Text() string {
	switch o.Relation {
	case incident.OOMFirst:
		return "the memory failure came first" + o.where()
	case incident.NaNFirst:
		return "the non-finite value came first" + o.where()
	case incident.OOMOnly:
		return "a memory failure; no non-finite value is in evidence"
	case incident.NaNOnly:
		return "a non-finite value; no memory failure is in evidence"
	case incident.Neither:
		return "neither a memory failure nor a non-finite value"
	}
	return fmt.Sprintf("a memory failure and a non-finite value that the evidence cannot order: %s", o.Basis)
}

func (o Order) where() string {
	if o.SameAttempt {
		return ""
	}
	return ", in an earlier launch"
}
