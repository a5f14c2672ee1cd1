package explain

import (
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Page is an entry, a comparison or the rows of a table laid out once, for every
// format to write and for the web page to frame. All its texts are plain: placeholders
// are resolved, control and bidirectional characters are gone, and what stands between
// back-quotes is code (Pieces cuts a text there). Nothing is escaped for HTML.
type Page struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	About    string    `json:"about"` // area, version, event kinds; or how many rows
	Sections []Section `json:"sections"`
}

// A Section is one part of a page. Its anchor is unique on the page.
type Section struct {
	Anchor  string  `json:"anchor"`
	Heading string  `json:"heading"`
	Blocks  []Block `json:"blocks"`
}

// A Block is one of: a paragraph, a list, a heading below the section's.
type Block struct {
	Kind  BlockKind `json:"kind"`
	Text  string    `json:"text,omitempty"`  // of a paragraph and a heading
	Items []Item    `json:"items,omitempty"` // of a list
	Table *Grid     `json:"table,omitempty"` // of a table
}

// A BlockKind says how a block is shown.
type BlockKind string

// The kinds of block.
const (
	Paragraph  BlockKind = "paragraph"
	Bullets    BlockKind = "list"
	Numbers    BlockKind = "steps"  // in order
	Checks     BlockKind = "checks" // to be ticked
	Subheading BlockKind = "heading"
	Tabular    BlockKind = "table"
)

// A Grid is a table: as many cells in each row as it has columns, the first cell of a
// row its name. A cell is a list of statements, often one.
type Grid struct {
	Columns []string `json:"columns"`
	Rows    [][]Cell `json:"rows"`
}

// A Cell holds what one row says in one column. Entry is set where the cell names an
// entry: its text is then the id's title.
type Cell struct {
	Entry string   `json:"entry,omitempty"`
	Texts []string `json:"texts"`
}

// An Item of a list: what it says, more on lines of its own, the condition on
// which it holds, code under it.
type Item struct {
	Text   string   `json:"text"`
	More   []string `json:"more,omitempty"`
	When   string   `json:"when,omitempty"` // CEL
	Code   string   `json:"code,omitempty"`
	Lang   string   `json:"lang,omitempty"`   // of the code: python, shell, yaml, json, text
	Effect string   `json:"effect,omitempty"` // of a step: reads, reversible, changes
	Level  string   `json:"level,omitempty"`  // of a step: beginner, advanced
	Entry  string   `json:"entry,omitempty"`  // the id of the entry that the item is about; Text begins or ends with it
	Row    string   `json:"row,omitempty"`    // the key of the row that the item is of: with it Table and TablePage give that row
}

// A Piece is a part of a text: prose or code.
type Piece struct {
	Text string
	Code bool
}

// Pieces cuts text at its back-quotes. An unpaired one stays in the prose.
func Pieces(text string) []Piece {
	parts := strings.Split(text, "`")
	var out []Piece
	for i, p := range parts {
		switch {
		case i%2 == 0:
		case i == len(parts)-1:
			p = "`" + p
		default:
			out = append(out, Piece{p, true})
			continue
		}
		if p != "" {
			out = append(out, Piece{p, false})
		}
	}
	return out
}

// add appends a section of the blocks that hold something, if one does.
func (p *Page) add(heading string, blocks ...Block) {
	var kept []Block
	for _, b := range blocks {
		if b.Text != "" || len(b.Items) > 0 || b.Table != nil {
			if b.Kind == "" {
				b.Kind = Paragraph
			}
			kept = append(kept, b)
		}
	}
	if len(kept) > 0 {
		p.Sections = append(p.Sections, Section{anchor(heading), heading, kept})
	}
}

// anchor is heading as a name within a page: letters and digits in lower case, joined
// by hyphens.
func anchor(heading string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(heading), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), "-")
}

// Layout arranges e for a reader without a run at hand: placeholders give their
// fallback or the fact's name.
func Layout(e *catalog.Entry) Page {
	p := Page{ID: e.ID, Title: plain(e.Title), About: strings.Join(append([]string{e.Area, "since " + e.Since}, e.About...), " · ")}
	add := p.add
	add("Quick answer", paragraphs(e.Quick)...)
	add("Symptoms", list(Bullets, e.Symptoms, func(s catalog.Symptom) Item {
		return Item{Text: plain(s.What), More: more("Why: ", s.Why)}
	}))
	add("What happens", paragraphs(e.Mechanism)...)
	add("Where it is seen", paragraphs(e.Systems)...)
	add("Evidence for it", list(Bullets, e.For, statement))
	add("Evidence against it", list(Bullets, e.Against, statement))
	add("What would decide", list(Bullets, e.Decides, func(d catalog.Decider) Item {
		return Item{Text: plain(d.Asks) + " (" + d.Fact + ")", More: more("How: ", obtain(&d).How)}
	}))
	add("What looks alike", list(Bullets, e.LookAlikes, func(a catalog.LookAlike) Item {
		return Item{Text: a.Entry + ": " + plain(a.Tell), Entry: a.Entry}
	}))
	add("To confirm", list(Checks, e.Checklist, func(c catalog.Check) Item {
		return Item{Text: plain(c.Item), More: more("How: ", c.How)}
	}))
	add("The one change", change(&e.Remedy)...)
	for _, c := range e.Cases {
		add("The one change "+plain(c.In), change(&c.Remedy)...)
	}
	var fix []Block
	for _, f := range e.Fix {
		fix = append(fix, Block{Kind: Subheading, Text: stackName(f.Stack)}, Block{Text: plain(f.Why)}, list(Numbers, f.Steps, step))
	}
	add("The fix, by stack", fix...)
	add("How to verify", paragraphs(e.Verify)...)
	add("Risks", texts(e.Risks))
	add("How to undo it", paragraphs(e.Rollback)...)
	add("When to ask the administrator or vendor", paragraphs(e.Escalate)...)
	add("Prevention", texts(e.Prevention))
	add("A restart without the change", paragraphs(rerunWords(e.Rerun))...)
	for _, r := range []struct{ who, text string }{
		{"For executives", e.Readings.Executive}, {"For engineers", e.Readings.Engineer}, {"For the person on call", e.Readings.OnCall},
	} {
		add(r.who, paragraphs(catalog.ExpandSentences(r.text, nil))...) // what only a run can fill in is left out
	}
	add("Related entries", list(Bullets, e.Related, func(id string) Item { return Item{Text: id, Entry: id} }))
	add("Sources", texts(e.Sources))
	return p
}

// step is a step of a fix; what it does to the run stands behind it.
func step(s catalog.Step) Item {
	return Item{Text: plain(s.Do) + " (" + s.Effect + ", " + s.Level + ")", Code: clean(catalog.Plain(s.Code)), Lang: s.Lang, Effect: s.Effect, Level: s.Level}
}

// obtain is d with what the declaration of its fact says where the entry is silent.
func obtain(d *catalog.Decider) catalog.Decider {
	out := *d
	if f := evidence.FactOf(d.Fact); f != nil {
		if out.How == "" {
			out.How = f.How
		}
		if out.Cost == "" {
			out.Cost = f.Cost
		}
		if out.Effect == "" {
			out.Effect = f.Effect
		}
	}
	return out
}

func statement(c catalog.Condition) Item {
	weight := c.Weight
	if c.RulesOut {
		weight = "rules it out"
	}
	return Item{Text: plain(c.Says) + " (" + weight + ")", When: strings.Join(strings.Fields(clean(c.When)), " ")}
}

// change lays out the remedy.
func change(r *catalog.Remedy) []Block {
	blocks := paragraphs(r.Change + "\n\n" + r.Why)
	blocks = append(blocks, list(Bullets, r.Edits, func(x catalog.Edit) Item {
		it := Item{Text: stackName(x.Stack) + ", " + plain(x.Where)}
		it.More = append(it.More, more("From: ", x.From)...)
		it.More = append(it.More, more("To: ", x.To)...)
		return it
	}))
	var facts []Item
	for _, f := range []struct{ name, text string }{
		{"Scope", r.Scope}, {"Effect", r.Effect}, {"Cost", r.Cost}, {"Verify", r.Verify}, {"Expected", r.Expected}, {"If it fails next", r.NextFailure},
	} {
		if f.text != "" {
			facts = append(facts, Item{Text: f.name + ": " + plain(f.text)})
		}
	}
	blocks = append(blocks, Block{Kind: Bullets, Items: facts})
	if len(r.Options) > 0 {
		blocks = append(blocks, Block{Kind: Subheading, Text: "Other ways"}, texts(r.Options))
	}
	return blocks
}

// stackNames are the stacks as people call them.
var stackNames = map[string]string{
	"any": "any stack", "pytorch": "PyTorch", "hf": "Hugging Face Trainer", "lightning": "Lightning", "deepspeed": "DeepSpeed", "fsdp": "FSDP",
	"megatron": "Megatron-LM", "torchtitan": "torchtitan", "jax": "JAX", "tensorflow": "TensorFlow", "vllm": "vLLM", "slurm": "Slurm",
	"kubernetes": "Kubernetes", "docker": "Docker",
}

func stackName(s string) string {
	if n, ok := stackNames[s]; ok {
		return n
	}
	return s
}

func list[T any](kind BlockKind, of []T, to func(T) Item) Block {
	b := Block{Kind: kind}
	for _, x := range of {
		b.Items = append(b.Items, to(x))
	}
	return b
}

func texts(of []string) Block {
	return list(Bullets, of, func(s string) Item { return Item{Text: plain(s)} })
}

func more(label, text string) []string {
	if text == "" {
		return nil
	}
	return []string{label + plain(text)}
}

func paragraphs(text string) []Block {
	var out []Block
	for _, p := range strings.Split(text, "\n\n") {
		out = append(out, Block{Kind: Paragraph, Text: plain(p)})
	}
	return out
}

// plain is one line of prose: words for placeholders, white space single.
func plain(text string) string { return strings.Join(strings.Fields(clean(catalog.Prose(text))), " ") }

// clean removes control characters but newline and tab; entries may come from a
// folder that somebody sent.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, text)
}
