package inquest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestEveryKindHasAProducer checks that a wording or a reader states each event
// kind. A mention in a comparison or a case of a reader states nothing.
func TestEveryKindHasAProducer(t *testing.T) {
	made := map[evidence.Kind]bool{}
	cat, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range cat.Plan().Wordings {
		made[w.Kind] = true
	}
	fset := token.NewFileSet()
	kinds, err := parser.ParseFile(fset, "internal/evidence/kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]evidence.Kind{}
	ast.Inspect(kinds, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 {
			if l, ok := v.Values[0].(*ast.BasicLit); ok && l.Kind == token.STRING {
				s, _ := strconv.Unquote(l.Value)
				named[v.Names[0].Name] = evidence.Kind(s)
			}
		}
		return true
	})
	var stated func(n ast.Node) bool
	stated = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op != token.EQL && n.Op != token.NEQ
		case *ast.CaseClause:
			for _, s := range n.Body {
				ast.Inspect(s, stated)
			}
			return false
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok && p.Name == "evidence" {
				made[named[n.Sel.Name]] = true
			}
		}
		return true
	}
	// The engine states what a whole snapshot shows, at reading time.
	for _, root := range []string{"internal/reader", "internal/engine/snapshots.go"} {
		err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, stated)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range evidence.Specs {
		if !made[s.Kind] {
			t.Errorf("%s: no wording and no reader states it", s.Kind)
		}
	}
}
