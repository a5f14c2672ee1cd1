package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Compare says what differs between trial a and trial b that was made after it. Changes are in
// the order command, data, environment, setting, version, code, machine, and each by its place in
// the command or by name. Differences that belong together are one change with its parts: a
// micro-batch that was cut while accumulation rose as much, and the numbers of processes that a
// launcher derives from one option. What one of the two does not say is unknown, never a change.
// Samples of the trials are left out of the result.
func Compare(a, b incident.Trial) incident.Comparison {
	c := comparer{a: newSide(a), b: newSide(b)}
	c.commands()
	c.variables()
	c.versions()
	c.code()
	c.machine()
	c.link()
	order := func(x, y incident.Change) int {
		return cmp.Compare(slices.Index(kindsOfChange, x.Of), slices.Index(kindsOfChange, y.Of))
	}
	slices.SortStableFunc(c.changes, order)
	slices.SortStableFunc(c.expected, order)
	a.Samples, b.Samples = []incident.Sample{}, []incident.Sample{}
	for _, list := range []*[]incident.Change{&c.changes, &c.expected} {
		if *list == nil {
			*list = []incident.Change{}
		}
	}
	if c.unknown == nil {
		c.unknown = []string{}
	}
	r := incident.Comparison{Schema: incident.ComparisonSchema, A: a, B: b, Changes: c.changes, Expected: c.expected, Unknown: c.unknown}
	r.Effect = effect(a, b)
	r.Says = says(r)
	return r
}

// kindsOfChange is the order in which changes are told.
var kindsOfChange = []string{incident.ChangeCommand, incident.ChangeData, incident.ChangeEnvironment, incident.ChangeSetting, incident.ChangeVersion, incident.ChangeCode, incident.ChangeMachine}

// A comparer gathers what differs.
type comparer struct {
	a, b              side
	changes, expected []incident.Change
	unknown           []string
}

// change adds a change.
func (c *comparer) change(of, name, from, to, text string) {
	c.changes = append(c.changes, incident.Change{Of: of, Name: name, From: from, To: to, Text: text})
}

// expect adds a difference that counts as none, and why.
func (c *comparer) expect(of, name, from, to, why string) {
	c.expected = append(c.expected, incident.Change{Of: of, Name: name, From: from, To: to, Text: step(name, " ", from, to) + ": " + why})
}

func (c *comparer) dontKnow(what string) { c.unknown = append(c.unknown, what) }

// A side is one of the two trials, with what stands in it for other things in the other.
type side struct {
	incident.Trial
	own *strings.Replacer // what belongs to this trial only -> a word for it
}

func newSide(t incident.Trial) side {
	var pairs []string
	add := func(what, word string) {
		if len(what) >= 4 { // shorter ones stand in other words
			pairs = append(pairs, what, word)
		}
	}
	add(t.Log, "{LOG}")
	add(t.Out, "{OUT}")
	add(t.ID, "{TRIAL}")
	add(t.Series, "{SERIES}")
	if t.Launch != nil {
		add(t.Launch.ID, "{LAUNCH}")
	}
	if t.Environment != nil {
		add(t.Environment.Host, "{HOST}")
	}
	return side{Trial: t, own: strings.NewReplacer(pairs...)}
}

// step is "name from → to", or that it was added or removed.
func step(name, sep, from, to string) string {
	switch {
	case from == "" && to == "":
		return name
	case from == "":
		return name + sep + brief(to) + " added"
	case to == "":
		return name + sep + brief(from) + " removed"
	}
	return name + sep + brief(from) + " → " + brief(to)
}

// brief is a value short enough for a sentence.
func brief(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
