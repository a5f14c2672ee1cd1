package catalog

// A LineFile says how one source words things: encyclopedia/lines/<source>.yaml.
type LineFile struct {
	Source string `yaml:"source" json:"source"` // file name without .yaml
	Doc    string `yaml:"doc" json:"doc"`
	// Kinds limits the patterns to artifacts of these kinds (evidence.Artifact.Kind);
	// empty means all text.
	Kinds []string `yaml:"kinds,omitempty" json:"kinds,omitempty"`
	Lines []Line   `yaml:"lines" json:"lines"`
}

// A Line is one wording of one event kind.
//
// Literal is found first, as plain bytes anywhere in the raw buffer (ASCII case
// folded when fold is set); it must stand in every text that the pattern means
// and should be as rare as possible: at least 4 bytes, better 8 or more. Only
// on a line with the literal is Regexp tried, on the normalised line (escapes
// removed, carriage-return frames split, rank, host and logger prefixes peeled),
// unanchored unless it says ^. Without Regexp the literal alone decides.
//
// Named groups become attributes, converted to the declared type: a size group
// ("2.50 GiB", "1234 bytes", "1,024 kB") becomes an interval, an int may have
// thousands separators. Identity groups (rank, local_rank, host, pid, gpu,
// bus_id, step) also set Who or Step. Attrs gives constant attributes.
type Line struct {
	ID      string            `yaml:"id" json:"id"` // unique over all files: <source>/<short-name>
	Event   string            `yaml:"event" json:"event"`
	Literal string            `yaml:"literal" json:"literal"`
	Fold    bool              `yaml:"fold,omitempty" json:"fold,omitempty"`
	Regexp  string            `yaml:"regexp,omitempty" json:"regexp,omitempty"`
	Not     string            `yaml:"not,omitempty" json:"not,omitempty"` // a normalised line that matches this is not one
	Attrs   map[string]string `yaml:"attrs,omitempty" json:"attrs,omitempty"`
	// Lookup gives text attributes their values from a table of codes, attribute ->
	// table.column, by the group that has the table's name: {severity: xid.severity}.
	Lookup map[string]string `yaml:"lookup,omitempty" json:"lookup,omitempty"`
	// Facts are declared facts that this line states, name -> template: a group
	// name in braces ("{value}") or a constant. Emitted besides, or with
	// event: fact, instead of an event.
	Facts map[string]string `yaml:"facts,omitempty" json:"facts,omitempty"`
	// Join is how many following lines may be joined when Regexp needs them
	// (hard-wrapped terminals, messages that go on).
	Join int `yaml:"join,omitempty" json:"join,omitempty"`
	// Raw tries Regexp on the line before prefixes are peeled.
	Raw bool `yaml:"raw,omitempty" json:"raw,omitempty"`
	// Exception marks a wording that is the header of a Python exception: it
	// claims the traceback above it (otherwise event "exception").
	Exception bool     `yaml:"exception,omitempty" json:"exception,omitempty"`
	Weak      bool     `yaml:"weak,omitempty" json:"weak,omitempty"` // from memory, not from source or a real log: must not decide a verdict alone
	Source    string   `yaml:"from,omitempty" json:"from,omitempty"` // where the wording is documented, or what prints it
	Over      []string `yaml:"over,omitempty" json:"over,omitempty"` // ids of patterns this one takes precedence over on the same line
	Samples   []Sample `yaml:"samples" json:"samples"`
}

// A Sample is a line that the pattern must take, with what it must give. No
// other pattern may take it, except those listed in the pattern's Over or in
// Also.
type Sample struct {
	Text  string            `yaml:"text" json:"text"`
	Gives map[string]string `yaml:"gives,omitempty" json:"gives,omitempty"`
	Also  []string          `yaml:"also,omitempty" json:"also,omitempty"`
}
