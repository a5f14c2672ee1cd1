// Package explain searches the encyclopedia and writes its entries for people.
package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
)

const (
	maxQuery = 64 << 10 // bytes of a query that are looked at
	maxTerms = 300      // distinct terms of a query that are looked up
	// wholeKey is what a search key adds that is the whole query.
	wholeKey = 6
	// maxRepeats is how often a word counts in one part of an entry: an entry is
	// about what its title and search keys say, not about what its text repeats.
	maxRepeats = 3
)

// A Match is one entry that a query found.
type Match struct {
	ID    string  `json:"id"`
	Title string  `json:"title"`
	Score float64 `json:"score"` // comparable within one answer only
	Why   string  `json:"why"`   // which words stand where, or which wording took the text
	// Sure: the query has enough that this entry is about, and not only a word that
	// stands somewhere in it. Of a query that is nonsense here, no match is.
	Sure bool `json:"sure"`
}

// field weights: how much a word in that part of an entry counts.
var fields = []struct {
	name   string
	weight float64
	text   func(*catalog.Entry) string
}{
	{"title", 6, func(e *catalog.Entry) string { return strings.ReplaceAll(e.ID, "-", " ") + "\n" + e.Title }},
	{"search keys", 5, func(e *catalog.Entry) string { return strings.Join(e.SearchKeys, "\n") }},
	{"quick answer", 2, func(e *catalog.Entry) string { return catalog.Plain(e.Quick) }},
	{"symptoms", 1.5, func(e *catalog.Entry) string {
		var b strings.Builder
		for _, s := range e.Symptoms {
			b.WriteString(s.What + "\n" + s.Why + "\n")
		}
		return catalog.Plain(b.String())
	}},
	{"mechanism", 0.5, func(e *catalog.Entry) string { return catalog.Plain(e.Mechanism + "\n" + e.Systems) }},
}

// An Index is the encyclopedia prepared for search. It may be used
// concurrently.
type Index struct {
	c          *catalog.Catalog
	docs       []doc
	df         map[string]int // entries that hold a term
	vocabulary []string       // words as written, sorted
	meanLength float64
}

type doc struct {
	entry  *catalog.Entry
	tf     map[string]float64  // weighted by field
	in     map[string][]string // term -> fields that hold it
	keys   [][]string          // terms of each search key
	length float64
}

// NewIndex reads all entries of c.
func NewIndex(c *catalog.Catalog) (*Index, error) {
	x := &Index{c: c, df: map[string]int{}}
	vocabulary := map[string]bool{}
	for k := range canon {
		for _, w := range strings.Fields(k) {
			vocabulary[w] = true
		}
	}
	for _, h := range c.Entries() {
		e, err := c.Entry(h.ID)
		if err != nil {
			return nil, fmt.Errorf("index encyclopedia: %w", err)
		}
		d := doc{entry: e, tf: map[string]float64{}, in: map[string][]string{}}
		for _, f := range fields {
			ws := words(f.text(e))
			for _, w := range ws {
				vocabulary[w] = true
			}
			inField := map[string]int{}
			for _, t := range terms(ws) {
				if inField[t]++; inField[t] > maxRepeats {
					continue
				}
				d.tf[t] += f.weight
				d.length += f.weight
				if !slices.Contains(d.in[t], f.name) {
					d.in[t] = append(d.in[t], f.name)
				}
			}
		}
		for _, k := range e.SearchKeys {
			d.keys = append(d.keys, terms(words(k)))
		}
		for t := range d.tf {
			x.df[t]++
		}
		x.meanLength += d.length
		x.docs = append(x.docs, d)
	}
	x.meanLength /= float64(max(1, len(x.docs)))
	x.vocabulary = slices.Sorted(maps.Keys(vocabulary))
	return x, nil
}

// Find returns the entries that answer query, best first: words in any order,
// an entry's id, or error text pasted from a log.
//
// The score is BM25 over the weighted fields (Robertson and Zaragoza, 2009; k1
// 1.2, b 0.5), times the share of the query, by the weight of its words, that
// the entry holds; an entry with one of the words keeps a third. Added are: for a
// search key whose terms all stand in the query, its length, and wholeKey where it
// is all that the encyclopedia knows of the query; for a wording that takes the
// text and whose kind the entry is about, 6 and a third of the entry's prior; for
// the very id, or one mistyped, enough to be first. Entries below a fifth of the
// best score are left out.
func (x *Index) Find(query string) []Match {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	typed := words(query)
	ws := slices.Clone(typed)
	for i, w := range ws {
		if !stop[w] {
			ws[i] = correct(w, x.vocabulary)
		}
	}
	asked := map[string]string{} // term -> the words typed for it
	var order []string
	for _, t := range termsOf(ws) {
		if _, ok := asked[t.text]; !ok && len(order) < maxTerms {
			asked[t.text] = strings.Join(typed[t.from:t.to], " ")
			order = append(order, t.text)
		}
	}
	recognised := map[string]string{} // kind -> wording
	for _, r := range x.c.Recognise(query) {
		if _, ok := recognised[string(r.Kind)]; !ok && r.Kind != "" {
			recognised[string(r.Kind)] = r.Wording
		}
	}
	meant := Meant(x.c, strings.ToLower(strings.TrimSpace(query)))
	var out []Match
	for i := range x.docs {
		if m := x.score(&x.docs[i], strings.TrimSpace(query), meant, order, asked, recognised); m.Score > 0 {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Match) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)) })
	if len(out) > 0 {
		least := out[0].Score / 5
		out = slices.DeleteFunc(out, func(m Match) bool { return m.Score < least })
	}
	return out
}

func (x *Index) score(d *doc, query string, meant string, order []string, asked map[string]string, recognised map[string]string) Match {
	const k1, b = 1.2, 0.5
	m := Match{ID: d.entry.ID, Title: d.entry.Title}
	var found, faint []string
	shownAs := map[string]bool{}
	all, held := 0.0, 0.0
	for _, t := range order {
		n, df := float64(len(x.docs)), float64(x.df[t])
		if df == 0 {
			continue
		}
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		all += idf
		tf := d.tf[t]
		if tf == 0 {
			continue
		}
		held += idf
		m.Score += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*d.length/x.meanLength))
		if w := asked[t]; !shownAs[w] {
			shownAs[w] = true
			part := w + " (" + strings.Join(d.in[t], ", ") + ")"
			if number(w) && !d.about(t) || !d.speaks(t) {
				faint = append(faint, part)
			} else {
				found = append(found, part)
			}
		}
	}
	if all > 0 {
		m.Score *= (1 + 2*held/all) / 3
		m.Sure = 2*held >= all && len(found) > 0
	}
	var why []string
	best := 0
	for _, key := range d.keys {
		if len(key) > best && !slices.ContainsFunc(key, func(t string) bool { _, ok := asked[t]; return !ok }) {
			best = len(key)
		}
	}
	m.Score += min(float64(best), 5)
	if best > 0 && best == known(x.df, order) {
		m.Score += wholeKey
	}
	for _, kind := range d.entry.About {
		if w, ok := recognised[kind]; ok {
			m.Score += 6 + float64(d.entry.Prior)/3
			why = append(why, "wording "+w+" ("+kind+")")
			break
		}
	}
	if strings.EqualFold(query, d.entry.ID) {
		m.Score += 1000
		why = append(why, "its id")
	}
	if meant == d.entry.ID {
		m.Score += 500
		why = append(why, "nearly its id")
	}
	m.Sure = m.Sure || best > 0 || len(why) > 0
	if len(found) == 0 && len(why) == 0 {
		found = faint
	}
	if len(why) > 0 {
		found = nil // the words of a whole line match by chance
	}
	const shown = 6
	if len(found) > shown {
		found = append(found[:shown], "…")
	}
	m.Why = strings.Join(append(why, found...), "; ")
	return m
}

// known counts the terms of a query that some entry holds.
func known(df map[string]int, order []string) int {
	n := 0
	for _, t := range order {
		if df[t] > 0 {
			n++
		}
	}
	return n
}

// about reports whether t stands where the entry says what it is about.
func (d *doc) about(t string) bool {
	return slices.Contains(d.in[t], "title") || slices.Contains(d.in[t], "search keys")
}

// speaks reports whether t stands where more than the long explanation is.
func (d *doc) speaks(t string) bool {
	return slices.ContainsFunc(d.in[t], func(f string) bool { return f != "mechanism" })
}

// Find indexes c and searches it once; keep an Index to search again.
func Find(c *catalog.Catalog, query string) []Match {
	x, err := NewIndex(c)
	if err != nil {
		panic(err) // an embedded entry does not decode: a broken build
	}
	return x.Find(query)
}
