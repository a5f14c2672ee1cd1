package evidence

// A Plan is what to look for in text. It flows against the stream: the
// catalogue compiles it, the command line hands it to the text readers, and the
// readers know nothing of entries.
type Plan struct {
	Wordings []Wording
}

// A Wording is one compiled pattern of encyclopedia/lines: one way in which one
// source words one kind of event. Package catalog documents the fields
// (catalog.Line); here they are checked and typed.
type Wording struct {
	ID        string
	Kind      Kind // "" when the line only states facts
	Kinds     []string
	Literal   string
	Fold      bool
	Regexp    string // RE2; "" when the literal decides
	Not       string
	Attrs     Attrs             // constants
	Lookups   []Lookup          // attributes that a table of codes gives
	Facts     map[string]string // fact name -> template over the groups
	Join      int
	Raw       bool
	Exception bool
	Weak      bool
	Over      []string
}

// A Lookup gives a text attribute its value by what a group captured.
type Lookup struct {
	Attr, Group string
	Values      map[string]string // by the captured number, without leading zeros
	Else        string            // for a number that the table does not have
}

// Of returns the value for what the group captured, "" if there is none.
func (l *Lookup) Of(captured string) string {
	for len(captured) > 1 && captured[0] == '0' {
		captured = captured[1:]
	}
	if v, ok := l.Values[captured]; ok {
		return v
	}
	return l.Else
}
