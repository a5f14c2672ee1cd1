package evidence

import "sort"

// A Found is a fact's value and where it is proved.
type Found struct {
	Value Value
	Spans []Span
}

// Known holds what is known of one attempt, by declared fact name. A name that
// is absent is unknown, which is not the same as false.
type Known map[string]Found

// Values returns the bare values, as conditions take them.
func (k Known) Values() map[string]Value {
	m := make(map[string]Value, len(k))
	for n, x := range k {
		m[n] = x.Value
	}
	return m
}

// Set records a fact and its proof.
func (k Known) Set(name string, v Value, spans ...Span) { k[name] = Found{v, spans} }

// Bool returns a Bool fact and whether it is known.
func (k Known) Bool(name string) (value, known bool) {
	x, ok := k[name]
	return x.Value.True(), ok
}

// True reports whether a Bool fact is known and true.
func (k Known) True(name string) bool { return k[name].Value.True() }

// Names returns the known names in order.
func (k Known) Names() []string {
	out := make([]string, 0, len(k))
	for n := range k {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}
