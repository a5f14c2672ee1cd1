package tfevents

import (
	"bytes"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/format/tfevent"
)

// Texts are the only place where event files keep a configuration:
//
//	transformers   args/text_summary and model_config/text_summary, JSON
//	Megatron-LM    <argument>/text_summary, one value each
//	fairseq        sys.argv/text_summary, the command line
//	CleanRL        hyperparameters/text_summary, a Markdown table of two columns
//
// A text that is logged again with other words is a sample of what the model does.
const (
	maxTexts    = 4096    // tags
	maxText     = 1 << 20 // bytes of one that is looked at
	maxKept     = 8 << 20 // bytes of all
	maxValue    = 256     // bytes of a text that is one value
	maxQuote    = 200
	maxNesting  = 8
	textSummary = "/text_summary"
)

// texts are the texts of a file by tag.
type texts struct {
	list  []*text
	byTag map[string]*text
	kept  int
	more  int64 // values that were not kept
}

type text struct {
	name    string // without /text_summary
	body    string
	step    int64
	n       int64
	changed bool
	cut     bool
	span    evidence.Span
}

// add takes a text as it was logged at a step.
func (t *texts) add(v *tfevent.Value, step int64, at evidence.Span) {
	body := bytes.Join(v.Tensor.Strings(), []byte("\n"))
	cut := len(body) > maxText
	if cut {
		body = body[:maxText]
	}
	old := t.byTag[string(v.Tag)]
	switch {
	case old != nil:
		old.n++
		old.changed = old.changed || old.body != string(body)
		return
	case len(t.list) >= maxTexts || t.kept+len(body) > maxKept:
		t.more++
		return
	case t.byTag == nil:
		t.byTag = map[string]*text{}
	}
	t.kept += len(body)
	old = &text{name: strings.TrimSuffix(tfevent.Name(v.Tag), textSummary), body: string(body), step: step, n: 1, cut: cut, span: at}
	t.byTag[string(v.Tag)] = old
	t.list = append(t.list, old)
}

// settings states the configuration in the texts, and counts the others.
func (t *texts) settings(f *file) {
	others := t.more
	for _, x := range t.list {
		if x.changed || !x.settings(f) {
			others += x.n
		}
	}
	if others > 0 {
		f.note("%s besides the settings", evidence.Several(others, "text"))
	}
}

// settings states what a text says of the configuration, if it does.
func (x *text) settings(f *file) bool {
	body := strings.TrimSpace(x.body)
	set := func(name, value string) {
		name, value = textline.OneLine(name, tfevent.MaxName), textline.OneLine(value, maxText)
		sp := x.span
		sp.Quote = textline.OneLine(name+" = "+value, maxQuote)
		f.rec.Setting(name, value, sp)
	}
	switch {
	case x.name == "sys.argv":
		set(x.name, body)
		for name, value := range options(body) {
			set(name, value)
		}
	case strings.HasPrefix(body, "{"):
		root, _, _ := jsontree.Parse([]byte(body), 0, nil)
		if root == nil || root.Sort != jsontree.Object {
			return false
		}
		prefix := x.name + "."
		if x.name == "args" {
			prefix = ""
		}
		flatten(prefix, root, set)
	case strings.HasPrefix(body, "|"):
		return table(body, set)
	case len(body) <= maxValue && !strings.ContainsAny(body, "\r\n") && x.step <= 0 || x.n == 1 && short(body):
		set(x.name, body)
	default:
		return false
	}
	return true
}

// short reports whether a text is one value rather than prose: Megatron-LM logs its
// arguments at the step at which it resumes.
func short(body string) bool {
	return len(body) <= 64 && !strings.ContainsAny(body, " \r\n\t")
}

// flatten states the values below an object.
func flatten(prefix string, n *jsontree.Node, set func(name, value string)) {
	if strings.Count(prefix, ".") > maxNesting {
		return
	}
	for key, v := range n.Pairs() {
		switch v.Sort {
		case jsontree.Object:
			flatten(prefix+key+".", v, set)
		case jsontree.Array:
			parts := make([]string, 0, len(v.Items))
			for _, e := range v.Items {
				parts = append(parts, e.Text)
			}
			set(prefix+key, "["+strings.Join(parts, ", ")+"]")
		case jsontree.Null:
			set(prefix+key, "null")
		default:
			set(prefix+key, v.Text)
		}
	}
}

// options yields the options of a command line: "--lr 0.1", "--lr=0.1", "--fp16".
func options(line string) func(func(name, value string) bool) {
	return func(yield func(string, string) bool) {
		words := strings.Fields(line)
		for i := 0; i < len(words); i++ {
			name, isOption := strings.CutPrefix(words[i], "--")
			if !isOption || name == "" {
				continue
			}
			name, value, has := strings.Cut(name, "=")
			if !has {
				value = "true"
				if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
					i++
					value = words[i]
				}
			}
			if name != "" && !yield(name, value) {
				return
			}
		}
	}
}

// table states the rows of a Markdown table of two columns, behind its header.
func table(body string, set func(name, value string)) bool {
	rows := strings.Split(body, "\n")
	if len(rows) < 3 || strings.Trim(rows[1], "|-: \r") != "" {
		return false
	}
	for _, row := range rows[2:] {
		row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
		name, value, ok := strings.Cut(row, "|")
		if name = strings.TrimSpace(name); ok && name != "" {
			set(name, strings.TrimSpace(value))
		}
	}
	return true
}
