package catalog

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A CodeTable is one table of numbered faults, encyclopedia/codes/<table>.yaml:
// the driver's Xid codes, the switches' SXid codes. Wordings look attributes up in
// it, facts state what it says of the leading code, and explain prints it.
type CodeTable struct {
	Table   string   `yaml:"table" json:"table"` // file name without .yaml
	Title   string   `yaml:"title" json:"title"`
	Doc     string   `yaml:"doc" json:"doc"`
	Sources []string `yaml:"sources" json:"sources"`
	// Unlisted is the severity of a code that the table does not have.
	Unlisted string      `yaml:"unlisted,omitempty" json:"unlisted,omitempty"`
	Codes    []Code      `yaml:"codes" json:"codes"`                       // ascending
	Ranges   []CodeRange `yaml:"ranges,omitempty" json:"ranges,omitempty"` // of codes that are not listed one by one
}

// A Code is one row.
type Code struct {
	Code     int    `yaml:"code" json:"code"`
	Name     string `yaml:"name,omitempty" json:"name,omitempty"` // in the driver's source, "" where it is not established
	Severity string `yaml:"severity" json:"severity"`
	// Nonfatal is the severity where the line says Nonfatal; "" the same.
	Nonfatal string `yaml:"nonfatal,omitempty" json:"nonfatal,omitempty"`
	Family   string `yaml:"family,omitempty" json:"family,omitempty"` // what part of the machine it is about, "" for no one part
	// Certain marks a code that no program and no driver can cause: it proves that
	// hardware failed.
	Certain bool   `yaml:"certain,omitempty" json:"certain,omitempty"`
	Action  string `yaml:"action" json:"action"` // a key of Actions
	Who     string `yaml:"who" json:"who"`       // who acts: user, operator, vendor
	Meaning string `yaml:"meaning" json:"meaning"`
	Note    string `yaml:"note,omitempty" json:"note,omitempty"`
	Drivers string `yaml:"drivers,omitempty" json:"drivers,omitempty"` // driver or device generations that have it
	Entry   string `yaml:"entry,omitempty" json:"entry,omitempty"`     // the entry that says more
}

// A CodeRange speaks of the codes From to To that have no row.
type CodeRange struct {
	From    int    `yaml:"from" json:"from"`
	To      int    `yaml:"to" json:"to"`
	Name    string `yaml:"name" json:"name"`
	Meaning string `yaml:"meaning" json:"meaning"`
}

// Actions are what a code calls for, in words.
var Actions = map[string]string{
	"none":                "nothing by itself",
	"report":              "nothing now; note it and tell the vendor if it recurs",
	"check-program":       "look at the program first",
	"check-configuration": "check the fabric manager's configuration",
	"check-mechanics":     "check power, cooling, cables and seating",
	"restart-process":     "restart the job",
	"reset-device":        "drain and reset the device",
	"reset-fabric":        "drain the node and reset its switches and devices together",
	"reboot-node":         "drain and reboot the node",
	"power-cycle":         "drain and power-cycle the node",
	"drain-node":          "restart the job elsewhere, drain the node and reset the device",
	"update-software":     "update driver and firmware",
	"replace":             "drain the node and have the device replaced",
	"ask-vendor":          "ask the vendor",
}

var (
	codeSeverities = map[string][]string{
		"xid":  {"hardware", "application", "consequence", "notice", "driver", "link"},
		"sxid": {"fatal", "nonfatal"},
	}
	families = []string{"memory", "bus", "link", "c2c", "firmware"}
	actors   = []string{"user", "operator", "vendor"}
	// columns are what a wording may look up.
	columns = []string{"severity", "nonfatal"}
)

// Find returns the row of code, or one made of the range that holds it.
func (t *CodeTable) Find(code int64) (Code, bool) {
	at, found := slices.BinarySearchFunc(t.Codes, code, func(c Code, n int64) int { return cmp.Compare(int64(c.Code), n) })
	if found {
		return t.Codes[at], true
	}
	for _, r := range t.Ranges {
		if int64(r.From) <= code && code <= int64(r.To) {
			return Code{Code: int(code), Name: r.Name, Meaning: r.Meaning, Severity: t.Unlisted, Action: "report", Who: "operator"}, true
		}
	}
	return Code{}, false
}

// value is what column of c says.
func (c *Code) value(column string) string {
	if column == "nonfatal" && c.Nonfatal != "" {
		return c.Nonfatal
	}
	return c.Severity
}

// An ErrorTable sets the errors of CUDA and its libraries side by side:
// encyclopedia/codes/cuda-errors.yaml.
type ErrorTable struct {
	Table   string      `yaml:"table" json:"table"`
	Title   string      `yaml:"title" json:"title"`
	Doc     string      `yaml:"doc" json:"doc"`
	Sources []string    `yaml:"sources" json:"sources"`
	Honest  []Honest    `yaml:"honest" json:"honest"`
	Errors  []CallError `yaml:"errors" json:"errors"`
}

// A Honest way makes an error say what it is about.
type Honest struct {
	ID   string `yaml:"id" json:"id"`
	How  string `yaml:"how" json:"how"`
	What string `yaml:"what" json:"what"`
}

// A CallError is one error of one library.
type CallError struct {
	Library  string       `yaml:"library" json:"library"`
	Name     string       `yaml:"name" json:"name"`
	Number   int          `yaml:"number,omitempty" json:"number,omitempty"` // 0 none
	Driver   string       `yaml:"driver,omitempty" json:"driver,omitempty"` // its name in the CUDA driver
	Texts    []string     `yaml:"texts" json:"texts"`                       // as printed
	Sticky   string       `yaml:"sticky" json:"sticky"`                     // process, communicator, no, unclear
	Reported string       `yaml:"reported" json:"reported"`                 // later, at-once, either
	Proves   string       `yaml:"proves" json:"proves"`
	Not      string       `yaml:"proves_not" json:"proves_not"`
	Causes   []ErrorCause `yaml:"causes" json:"causes"`
	Honest   []string     `yaml:"honest" json:"honest"` // ids of the table's ways
	Xids     string       `yaml:"xids,omitempty" json:"xids,omitempty"`
	Entry    string       `yaml:"entry,omitempty" json:"entry,omitempty"` // where it usually leads
	Note     string       `yaml:"note,omitempty" json:"note,omitempty"`
}

// An ErrorCause is a usual cause, with the entry about it if there is one.
type ErrorCause struct {
	Text  string `yaml:"text" json:"text"`
	Entry string `yaml:"entry,omitempty" json:"entry,omitempty"`
}

// errorTable is the name of the one table of that form.
const errorTable = "cuda-errors"

var (
	stickiness = []string{"process", "communicator", "no", "unclear"}
	reportings = []string{"later", "at-once", "either"}
)

// tables are the code tables of a catalogue.
type tables struct {
	Codes  []CodeTable // by name
	Errors []ErrorTable
}

func (t *tables) find(name string) *CodeTable {
	for i := range t.Codes {
		if t.Codes[i].Table == name {
			return &t.Codes[i]
		}
	}
	return nil
}

// Codes returns the table of that name, nil if there is none. The caller must not
// change it.
func (c *Catalog) Codes(name string) *CodeTable { return c.tables.find(name) }

// Errors returns the table of CUDA errors, nil if there is none.
func (c *Catalog) Errors() *ErrorTable {
	if len(c.tables.Errors) == 0 {
		return nil
	}
	return &c.tables.Errors[0]
}

// Tables names the tables, in order.
func (c *Catalog) Tables() []string {
	var out []string
	for i := range c.tables.Codes {
		out = append(out, c.tables.Codes[i].Table)
	}
	for i := range c.tables.Errors {
		out = append(out, c.tables.Errors[i].Table)
	}
	slices.Sort(out)
	return out
}

// StateCodes adds to known what the tables say of the codes in it: the fact
// <table>.code gives <table>.name, .meaning, .action and .who, and for Xid .family
// and .certain, proved by the same spans.
func (c *Catalog) StateCodes(known evidence.Known) {
	for i := range c.tables.Codes {
		t := &c.tables.Codes[i]
		at, ok := known[t.Table+".code"]
		if !ok {
			continue
		}
		row, ok := t.Find(at.Value.I)
		if !ok {
			continue
		}
		for part, text := range map[string]string{"name": row.Name, "family": row.Family, "meaning": row.Meaning, "action": Actions[row.Action], "who": row.Who} {
			if text != "" && evidence.FactOf(t.Table+"."+part) != nil {
				known.Set(t.Table+"."+part, evidence.TextOf(text), at.Spans...)
			}
		}
		if evidence.FactOf(t.Table+".certain") != nil {
			known.Set(t.Table+".certain", evidence.BoolOf(row.Certain), at.Spans...)
		}
	}
}

// lookup resolves attr: table.column of a wording. The group that it goes by has
// the table's name.
func (t *tables) lookup(attr, from string) (evidence.Lookup, error) {
	name, column, _ := strings.Cut(from, ".")
	table := t.find(name)
	if table == nil {
		return evidence.Lookup{}, fmt.Errorf("lookup %s: no table %q", attr, name)
	}
	if !slices.Contains(columns, column) {
		return evidence.Lookup{}, fmt.Errorf("lookup %s: %q is not one of %s", attr, column, strings.Join(columns, ", "))
	}
	l := evidence.Lookup{Attr: attr, Group: name, Values: make(map[string]string, len(table.Codes)), Else: table.Unlisted}
	for i := range table.Codes {
		if v := table.Codes[i].value(column); v != table.Unlisted {
			l.Values[strconv.Itoa(table.Codes[i].Code)] = v
		}
	}
	return l, nil
}

// lookups resolves those of one wording.
func (t *tables) lookups(of map[string]string) ([]evidence.Lookup, error) {
	var out []evidence.Lookup
	for _, attr := range sortedKeys(of) {
		l, err := t.lookup(attr, of[attr])
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// A codeDoc and an errorDoc are parsed files.
type codeDoc struct {
	*document
	table CodeTable
}

type errorDoc struct {
	*document
	table ErrorTable
}

// readCodes parses codes/*.yaml of fsys into k.
func readCodes(fsys fs.FS, k *knowledge) error {
	names, err := fs.Glob(fsys, "codes/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := readBounded(fsys, name)
		if err != nil {
			return fmt.Errorf("read knowledge: %w", err)
		}
		if strings.TrimSuffix(path.Base(name), ".yaml") == errorTable {
			var t ErrorTable
			doc, problems := decode(name, data, &t)
			k.problems = append(k.problems, problems...)
			if doc != nil {
				t.Doc = strings.TrimSpace(t.Doc)
				k.errors = append(k.errors, errorDoc{doc, t})
			}
			continue
		}
		var t CodeTable
		doc, problems := decode(name, data, &t)
		k.problems = append(k.problems, problems...)
		if doc != nil {
			t.Doc = strings.TrimSpace(t.Doc)
			k.codes = append(k.codes, codeDoc{doc, t})
		}
	}
	return nil
}

// with returns t with the tables of k, which replace those of the same name.
func (t tables) with(k *knowledge) tables {
	out := tables{Codes: slices.Clone(t.Codes), Errors: slices.Clone(t.Errors)}
	for _, d := range k.codes {
		if old := out.find(d.table.Table); old != nil {
			*old = d.table
		} else {
			out.Codes = append(out.Codes, d.table)
		}
	}
	for _, d := range k.errors {
		out.Errors = []ErrorTable{d.table}
	}
	slices.SortFunc(out.Codes, func(a, b CodeTable) int { return strings.Compare(a.Table, b.Table) })
	return out
}
