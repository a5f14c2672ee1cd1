package explain

import (
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
)

// A phrasing is a query and the entry that answers it.
type phrasing struct {
	By    string   `yaml:"by"` // author or outsider
	Query string   `yaml:"query"`
	Want  []string `yaml:"want"` // each answers it
}

func phrasings(t testing.TB) []phrasing {
	t.Helper()
	data, err := os.ReadFile("testdata/phrasings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []phrasing
	if err := yaml.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPhrasings asks as people ask, of whom a third had not read the entries, in eight
// languages: the right entry is the first for nine in ten, and among the first three for 98
// in a hundred, of either group.
func TestPhrasings(t *testing.T) {
	c := full(t)
	x, err := NewIndex(c)
	if err != nil {
		t.Fatal(err)
	}
	type tally struct{ all, first, three, sure int }
	groups := map[string]*tally{"author": {}, "outsider": {}}
	seen := map[string]bool{}
	for _, p := range phrasings(t) {
		g := groups[p.By]
		if g == nil || seen[p.Query] {
			t.Errorf("%q is by %q, or asked twice", p.Query, p.By)
			continue
		}
		seen[p.Query] = true
		for _, id := range p.Want {
			if _, err := c.Entry(id); err != nil {
				t.Errorf("%q: %v", p.Query, err)
			}
		}
		var got []string
		found := x.Find(p.Query)
		for _, m := range found[:min(3, len(found))] {
			got = append(got, m.ID)
		}
		g.all++
		at := slices.IndexFunc(got, func(id string) bool { return slices.Contains(p.Want, id) })
		if at == 0 {
			g.first++
			if found[0].Sure {
				g.sure++
			}
		}
		if at >= 0 {
			g.three++
		}
		if at != 0 {
			t.Logf("%s: %q: %s is %d of %v", p.By, p.Query, p.Want, at+1, got)
		}
	}
	total := 0
	for _, by := range []string{"author", "outsider"} {
		g := groups[by]
		total += g.all
		t.Logf("%s: %d queries, the right entry first for %d, among three for %d; sure of %d", by, g.all, g.first, g.three, g.sure)
		if 100*g.first < 90*g.all || 100*g.three < 98*g.all {
			t.Errorf("%s: of %d queries %d have the right entry first, %d among three; wanted are 90 and 98 in a hundred", by, g.all, g.first, g.three)
		}
	}
	if outsiders := groups["outsider"].all; total < 150 || outsiders < 50 || 3*outsiders < total {
		t.Errorf("%d queries, %d of them by outsiders; wanted are 150, a third by outsiders", total, outsiders)
	}
}
