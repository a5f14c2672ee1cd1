package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A timelineQuery is what the timeline page is asked to show. The zero query shows all of it.
type timelineQuery struct {
	View     string   // time, order, or "" for the better of the two
	From, To *float64 // the window, in the units of the axis; nil is the axis' end
	Ranks    string   // as it was typed: 0-63, 70
	Kind     string
	Class    string
	Role     string
	Attempt  string
	Page     int // of the table, from 1

	ranks []incident.RankRange
}

// timelineRoles are the roles that can be asked for, in the order of the list.
var timelineRoles = []struct{ Name, Title string }{
	{incident.RoleFirst, "first fault"}, {incident.RoleRival, "candidate, not decided"}, {incident.RoleFollowed, "only followed"},
	{incident.RoleRecovered, "recovered"}, {incident.RoleLastGood, "last good"}, {incident.RoleOther, "other"},
}

// maxRankRanges bounds the ranges of one filter.
const maxRankRanges = 256

// readTimelineQuery reads the parameters of a request. What cannot be understood is left out and
// named in the problems.
func readTimelineQuery(v url.Values) (q timelineQuery, problems []string) {
	q = timelineQuery{Kind: v.Get("kind"), Class: v.Get("class"), Role: v.Get("role"), Attempt: v.Get("attempt"), Ranks: strings.TrimSpace(v.Get("ranks")), Page: 1}
	switch s := v.Get("view"); s {
	case "", "time", "order":
		q.View = s
	default:
		problems = append(problems, fmt.Sprintf("There is no view %q: time and order are.", cutTo(s, 40)))
	}
	number := func(name string) *float64 {
		s := strings.TrimSpace(v.Get(name))
		if s == "" {
			return nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f-f != 0 { // not a number, or not a finite one
			problems = append(problems, fmt.Sprintf("%s is not a number: %q.", name, cutTo(s, 40)))
			return nil
		}
		return &f
	}
	q.From, q.To = number("from"), number("to")
	if q.From != nil && q.To != nil && *q.From >= *q.To {
		problems = append(problems, "The window ends before it begins, so all is shown.")
		q.From, q.To = nil, nil
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 1 {
		q.Page = n
	}
	var err error
	if q.ranks, err = readRanks(q.Ranks); err != nil {
		problems = append(problems, err.Error()+", so all ranks are shown.")
		q.Ranks, q.ranks = cutTo(q.Ranks, 200), nil
	}
	return q, problems
}

// readRanks reads numbers and ranges between commas or blanks.
func readRanks(s string) ([]incident.RankRange, error) {
	var out []incident.RankRange
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
		low, high, isRange := strings.Cut(strings.ReplaceAll(part, "–", "-"), "-")
		a, err := strconv.Atoi(low)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(high)
		}
		if err != nil || a < 0 || b < a {
			return nil, fmt.Errorf("ranks are numbers and ranges, as in 0-63, 70, and %q is neither", cutTo(part, 40))
		}
		if len(out) == maxRankRanges {
			return nil, fmt.Errorf("at most %d ranges of ranks can be asked for", maxRankRanges)
		}
		out = append(out, incident.RankRange{Low: a, High: b})
	}
	return out, nil
}

// values are the parameters that ask for q again.
func (q timelineQuery) values() url.Values {
	v := url.Values{}
	put := func(name, s string) {
		if s != "" {
			v.Set(name, s)
		}
	}
	put("view", q.View)
	put("ranks", q.Ranks)
	put("kind", q.Kind)
	put("class", q.Class)
	put("role", q.Role)
	put("attempt", q.Attempt)
	if q.From != nil {
		v.Set("from", axisNumber(*q.From))
	}
	if q.To != nil {
		v.Set("to", axisNumber(*q.To))
	}
	if q.Page > 1 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	return v
}

// axisNumber is a place on an axis as parameters have it: to a microsecond.
func axisNumber(f float64) string {
	s := strconv.FormatFloat(f, 'f', 6, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// window is q with another window and the first page.
func (q timelineQuery) window(from, to float64) timelineQuery {
	q.From, q.To, q.Page = &from, &to, 1
	return q
}

// filter is what is asked for but for the window.
func (q *timelineQuery) filter() incident.EventFilter {
	f := incident.EventFilter{Ranks: q.ranks}
	for of, v := range map[*[]string]string{&f.Kinds: q.Kind, &f.Classes: q.Class, &f.Roles: q.Role, &f.Attempts: q.Attempt} {
		if v != "" {
			*of = []string{v}
		}
	}
	return f
}

// cutTo is at most n bytes of s, whole characters.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
