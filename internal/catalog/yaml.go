package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds one knowledge file, in bytes.
const maxFile = 1 << 20

// A Problem is one thing wrong with a knowledge file.
type Problem struct {
	File string
	Line int // 1-based, 0 when it concerns the whole file
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// A document is one parsed YAML file, kept to name the line of each of its
// parts.
type document struct {
	name string
	root ast.Node
}

// line returns the 1-based line of the part that the keys and indexes of at
// lead to, or of the innermost part on the way that exists.
func (d *document) line(at ...any) int {
	n, line := d.root, 1
	for _, step := range at {
		switch m := n.(type) {
		case *ast.MappingNode:
			n = nil
			for _, v := range m.Values {
				if v.Key.String() == step {
					line, n = v.Key.GetToken().Position.Line, v.Value
				}
			}
		case *ast.SequenceNode:
			i, ok := step.(int)
			if !ok || i >= len(m.Values) {
				return line
			}
			n = m.Values[i]
			line = n.GetToken().Position.Line
			if s, ok := n.(*ast.MappingNode); ok && len(s.Values) > 0 {
				line = s.Values[0].Key.GetToken().Position.Line
			}
		default:
			return line
		}
		if n == nil {
			return line
		}
	}
	return line
}

// decode parses one YAML document into v. Unknown and repeated fields are
// problems.
func decode(name string, data []byte, v any) (*document, []Problem) {
	tokens := lexer.Tokenize(string(data))
	if line := tooDeep(tokens); line > 0 {
		return nil, []Problem{{name, line, fmt.Sprintf("nested more than %d deep", maxNesting)}}
	}
	f, err := parser.Parse(tokens, 0)
	if err == nil && (len(f.Docs) != 1 || f.Docs[0].Body == nil) {
		return nil, []Problem{{name, 0, "want exactly one YAML document"}}
	}
	if err == nil {
		err = yaml.NodeToValue(f.Docs[0].Body, v, yaml.Strict())
	}
	if err == nil {
		return &document{name, f.Docs[0].Body}, nil
	}
	p := Problem{File: name, Text: err.Error()}
	var ye yaml.Error
	if errors.As(err, &ye) {
		p.Text = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			p.Line = t.Position.Line
		}
	}
	return nil, []Problem{p}
}

// maxNesting bounds the lists and mappings within each other that begin on one
// line: the parser's time and memory grow with their square. Those of block style
// need an indentation that grows, which maxFile bounds.
const maxNesting = 32

// tooDeep returns the line at which tokens nest deeper than maxNesting, else 0.
func tooDeep(tokens token.Tokens) int {
	depth, line, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceEntryType, token.MappingKeyType: // "- - -" nests without brackets
			onLine++
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth+onLine > maxNesting {
			return line
		}
	}
	return 0
}

// knowledge is what one folder of YAML holds.
type knowledge struct {
	lines    []lineDoc
	entries  []entryDoc
	codes    []codeDoc
	errors   []errorDoc
	problems []Problem // of files that could not be parsed
}

type lineDoc struct {
	*document
	file LineFile
}

type entryDoc struct {
	*document
	entry Entry
}

// readYAML parses lines/*.yaml, entries/**/*.yaml and codes/*.yaml of fsys, in the order of
// their paths. The error is of reading; what is wrong with the content is a
// problem.
func readYAML(fsys fs.FS) (*knowledge, error) {
	k := &knowledge{}
	for _, dir := range []string{"lines", "entries"} {
		err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && name == dir {
				return nil
			}
			if err != nil || d.IsDir() || path.Ext(name) != ".yaml" {
				return err
			}
			data, err := readBounded(fsys, name)
			if err != nil {
				return err
			}
			if dir == "lines" {
				var f LineFile
				doc, problems := decode(name, data, &f)
				k.problems = append(k.problems, problems...)
				if doc != nil {
					k.lines = append(k.lines, lineDoc{doc, f})
				}
				return nil
			}
			var e Entry
			doc, problems := decode(name, data, &e)
			k.problems = append(k.problems, problems...)
			if doc != nil {
				e.trim()
				k.entries = append(k.entries, entryDoc{doc, e})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read knowledge: %w", err)
		}
	}
	if err := readCodes(fsys, k); err != nil {
		return nil, err
	}
	return k, nil
}

func readBounded(fsys fs.FS, name string) ([]byte, error) {
	// A pipe would be waited for, a device read for ever.
	if info, err := fs.Stat(fsys, name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return data, nil
}

// trim removes the newline that YAML's block style leaves at the end of a text.
func (e *Entry) trim() {
	for _, t := range []*string{&e.Title, &e.Quick, &e.Mechanism, &e.Systems, &e.Verify, &e.Rollback, &e.Escalate, &e.Needs,
		&e.Readings.Executive, &e.Readings.Engineer, &e.Readings.OnCall,
		&e.Remedy.Change, &e.Remedy.Why, &e.Remedy.Command, &e.Remedy.Verify, &e.Remedy.Expected, &e.Remedy.Cost, &e.Remedy.NextFailure} {
		*t = strings.TrimSpace(*t)
	}
	for i := range e.For {
		e.For[i].trim()
	}
	for i := range e.Against {
		e.Against[i].trim()
	}
	for i := range e.Checklist {
		c := &e.Checklist[i]
		c.When, c.How, c.Item = strings.TrimSpace(c.When), strings.TrimSpace(c.How), strings.TrimSpace(c.Item)
	}
	for i := range e.Fix {
		for j := range e.Fix[i].Steps {
			s := &e.Fix[i].Steps[j]
			s.Do, s.Code = strings.TrimSpace(s.Do), strings.Trim(s.Code, "\n")
		}
		e.Fix[i].Why = strings.TrimSpace(e.Fix[i].Why)
	}
}

func (c *Condition) trim() {
	c.When, c.Says = strings.TrimSpace(c.When), strings.TrimSpace(c.Says)
}
