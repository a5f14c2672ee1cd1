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
	"github.com/inquest-dev/inquest/internal/evidence"
)

const (
	maxQuery = 64 << 10 // bytes of a query that are looked at
	maxTerms = 300      // distinct terms of a query that are looked up
	// wholeKey is what a search key adds that is the whole query.
	wholeKey = 6
	// alike is what a search key adds that is nearly the query.
	alike = 10
	// common is by how much, for each step of its prior, a cause that is met more often
	// comes before one that the words fit as well.
	common = 0.03
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
	df         map[string]int     // entries that hold a term
	weights    map[string]float64 // of a term: the rarer among the entries, the more
	vocabulary []string           // words as written, sorted
	meanLength float64
}

type doc struct {
	entry  *catalog.Entry
	tf     map[string]float64  // weighted by field
	in     map[string][]string // term -> fields that hold it
	keys   [][]string          // terms of each search key
	alike  []weighted          // keys, title, id and symptoms
	length float64
}

// A weighted is a short text as its terms with their weights.
type weighted struct {
	terms   []string
	weights []float64
	whole   float64 // their sum
}

// NewIndex reads all entries of c.
func NewIndex(c *catalog.Catalog) (*Index, error) {
	x := &Index{c: c, df: map[string]int{}, weights: map[string]float64{}}
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
			d.keys = append(d.keys, terms(words(translate(k))))
		}
		for t := range d.tf {
			x.df[t]++
		}
		x.meanLength += d.length
		x.docs = append(x.docs, d)
	}
	x.meanLength /= float64(max(1, len(x.docs)))
	for t, df := range x.df {
		x.weights[t] = math.Log(1 + (float64(len(x.docs)-df)+0.5)/(float64(df)+0.5))
	}
	for i := range x.docs {
		d := &x.docs[i]
		short := append(slices.Clone(d.keys), terms(words(d.entry.Title)), terms(words(strings.ReplaceAll(d.entry.ID, "-", " "))))
		for _, s := range d.entry.Symptoms {
			short = append(short, terms(words(catalog.Plain(s.What))))
		}
		for _, list := range short {
			k := weighted{terms: list}
			for _, t := range list {
				k.weights = append(k.weights, x.weights[t])
				k.whole += x.weights[t]
			}
			d.alike = append(d.alike, k)
		}
	}
	x.vocabulary = slices.Sorted(maps.Keys(vocabulary))
	return x, nil
}

// Find returns the entries that answer query, best first: words in any order and in
// several languages, an entry's id, or error text pasted from a log.
//
// The score is BM25 over the weighted fields (Robertson and Zaragoza, 2009; k1
// 1.2, b 0.5), times the share of the query, by the weight of its words, that
// the entry holds; an entry with one of the words keeps a third. Added are: for a
// search key whose terms all stand in the query, its length, and wholeKey where it
// is all that the encyclopedia knows of the query; for the search key, title or
// symptom that is most like the query, up to alike; for a wording that takes the
// text and whose kind the entry is about, 6 and a third of the entry's prior; for the
// entry's conditions, what they prove over the facts that the text itself states; for
// the very id, or one mistyped, enough to be first. What is common comes before what
// is rare where the words fit as well. Entries below a fifth of the best score are
// left out.
func (x *Index) Find(query string) []Match {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	q := x.read(query)
	var out []Match
	for i := range x.docs {
		if m := x.score(&x.docs[i], q); m.Score > 0 {
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

// An asking is a query as the index reads it.
type asking struct {
	text       string                               // without white space around it
	order      []string                             // its terms, each once
	typed      map[string]string                    // term -> the words typed for it
	guessed    map[string]bool                      // terms of words that were corrected
	all        float64                              // the weight of its terms
	known      int                                  // how many of them some entry holds
	sense      bool                                 // more of its words are known here than not
	recognised map[string]string                    // event kind -> the wording that takes the text
	facts      map[string]map[string]evidence.Value // event kind -> what the text states if that is its fault
	meant      string                               // the id that it nearly is
}

func (x *Index) read(query string) *asking {
	q := &asking{text: strings.TrimSpace(query), typed: map[string]string{}, guessed: map[string]bool{}, recognised: map[string]string{}, facts: map[string]map[string]evidence.Value{}}
	typed := x.parts(words(translate(unspoken(query))))
	ws := slices.Clone(typed)
	for i, w := range ws {
		if !stop[w] {
			ws[i] = correct(w, x.vocabulary)
			if ws[i] == w && x.df[stem(w)] == 0 { // a mistyped word that says nothing says nothing
				ws[i] = correct(w, stopWords)
			}
		}
	}
	met, strange := 0.0, 0.0
	for _, t := range termsOf(ws) {
		if _, ok := q.typed[t.text]; ok || len(q.order) == maxTerms {
			continue
		}
		q.typed[t.text] = strings.Join(typed[t.from:t.to], " ")
		q.order = append(q.order, t.text)
		q.guessed[t.text] = !slices.Equal(typed[t.from:t.to], ws[t.from:t.to])
		q.all += x.weights[t.text]
		switch {
		case x.df[t.text] == 0:
			if !number(t.text) {
				strange++
			}
		case q.guessed[t.text]:
			q.known++
			met += 0.5
			strange += 0.5
		default:
			q.known++
			met++
		}
	}
	q.sense = met > strange
	all := x.c.Recognise(query)
	if r, ok := requestRefused(q.text); ok {
		q.facts[string(r.Kind)] = stated(q.text, r, append(slices.Clone(all), r))
	}
	for _, r := range all {
		if _, ok := q.recognised[string(r.Kind)]; !ok && r.Kind != "" {
			q.recognised[string(r.Kind)] = r.Wording
			if q.facts[string(r.Kind)] == nil {
				q.facts[string(r.Kind)] = stated(q.text, r, all)
			}
		}
	}
	q.meant = Meant(x.c, strings.ToLower(q.text))
	return q
}

// parts cuts names joined by underscores that no entry has into their words.
func (x *Index) parts(ws []string) []string {
	var out []string
	for _, w := range ws {
		if _, known := slices.BinarySearch(x.vocabulary, w); known || !strings.Contains(w, "_") {
			out = append(out, w)
		} else {
			out = append(out, strings.FieldsFunc(w, func(r rune) bool { return r == '_' })...)
		}
	}
	return out
}

func (x *Index) score(d *doc, q *asking) Match {
	const k1, b = 1.2, 0.5
	m := Match{ID: d.entry.ID, Title: d.entry.Title}
	var found, faint []string
	shownAs := map[string]bool{}
	held, spoken := 0.0, 0.0
	for _, t := range q.order {
		tf := d.tf[t]
		if tf == 0 || number(t) && !d.about(t) { // a number in passing is one by chance
			continue
		}
		idf := x.weights[t]
		held += idf
		m.Score += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*d.length/x.meanLength))
		faintly := !d.speaks(t)
		if !faintly {
			spoken += idf
		}
		if w := q.typed[t]; !shownAs[w] {
			shownAs[w] = true
			part := w + " (" + strings.Join(d.in[t], ", ") + ")"
			if faintly {
				faint = append(faint, part)
			} else {
				found = append(found, part)
			}
		}
	}
	if q.all > 0 {
		m.Score *= (1 + 2*held/q.all) / 3
	}
	var why []string
	best := 0
	for _, key := range d.keys {
		if len(key) > best && !slices.ContainsFunc(key, func(t string) bool { _, ok := q.typed[t]; return !ok }) {
			best = len(key)
		}
	}
	m.Score += min(float64(best), 5) + alike*d.nearestKey(q)
	if best > 0 && best == q.known {
		m.Score += wholeKey
	}
	contradictory := false
	for _, kind := range d.entry.About {
		facts := q.facts[kind]
		if facts == nil {
			continue
		}
		add, candidate := proved(x.c, d.entry, facts)
		if !candidate {
			contradictory = true
			continue
		}
		contradictory = false
		if w, ok := q.recognised[kind]; ok {
			m.Score += 6 + float64(d.entry.Prior)/3
			why = append(why, "wording "+w+" ("+kind+")")
		} else if add >= provedStrong {
			why = append(why, "the sizes that the text states ("+kind+")")
		}
		m.Score = max(0, m.Score+add)
		break
	}
	if contradictory {
		m.Score *= contradicted
	}
	m.Score *= 1 + common*float64(d.entry.Prior)
	if strings.EqualFold(q.text, d.entry.ID) {
		m.Score += 1000
		why = append(why, "its id")
	}
	if q.meant == d.entry.ID {
		m.Score += 500
		why = append(why, "nearly its id")
	}
	m.Sure = len(why) > 0 || q.sense && (best > 1 || 2*spoken >= q.all && len(found) > 0)
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

// nearestKey is how like the query, the most alike of an entry's search keys,
// titles and symptoms is: the harmonic mean of the shares, by the weight of the terms,
// that the key has of the query and the query of the key.
func (d *doc) nearestKey(q *asking) float64 {
	most := 0.0
	for _, key := range d.alike {
		both := 0.0
		for i, t := range key.terms {
			if _, ok := q.typed[t]; ok {
				both += key.weights[i]
			}
		}
		if both > 0 {
			most = max(most, 2*both/(key.whole+q.all))
		}
	}
	return most
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
