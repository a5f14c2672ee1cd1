package catalog

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// maxCondition bounds the length of a condition, in bytes.
const maxCondition = 2000

// maxCost bounds the steps of one evaluation, in CEL's own unit: far more than a
// loop over the ranks of a large job takes, and a moment of work.
const maxCost = 1_000_000

// A Verdict is what the evidence says of a condition.
type Verdict int

const (
	False Verdict = iota
	True
	Unknown
)

func (v Verdict) String() string {
	switch v {
	case False:
		return "false"
	case True:
		return "true"
	}
	return "unknown"
}

// An Outcome is a condition evaluated over the facts of one attempt.
type Outcome struct {
	Verdict Verdict
	Unknown []string // the facts that the answer hangs on when Verdict is Unknown, sorted
	Used    []string // every fact that the expression names, sorted
	Err     error    // the expression does not compile or fails on these values; Verdict is then Unknown
}

// seenPrefix begins the names of the counting facts: seen.device_oom is how
// many events of that kind the attempt has.
const seenPrefix = "seen."

// declared returns the type of the fact or counting fact name.
func declared(name string) (evidence.Type, bool) {
	if k, ok := strings.CutPrefix(name, seenPrefix); ok {
		return evidence.Int, evidence.SpecOf(evidence.Kind(k)) != nil
	}
	if f := evidence.FactOf(name); f != nil {
		return f.Type, true
	}
	return 0, false
}

// environment is the one CEL environment: every declared fact is a variable by
// its dotted name. Its parts are immutable, and it may be used concurrently.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	opts := []cel.EnvOption{cel.CrossTypeNumericComparisons(true), ext.Strings()}
	for i := range evidence.FactSpecs {
		f := &evidence.FactSpecs[i]
		opts = append(opts, cel.Variable(f.Name, celType(f.Type)))
	}
	for i := range evidence.Specs {
		opts = append(opts, cel.Variable(seenPrefix+string(evidence.Specs[i].Kind), cel.IntType))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("declare facts: %w", err)
	}
	return env, nil
}

func celType(t evidence.Type) *cel.Type {
	switch t {
	case evidence.Int:
		return cel.IntType
	case evidence.Float:
		return cel.DoubleType
	case evidence.Bool:
		return cel.BoolType
	case evidence.Size:
		return cel.MapType(cel.StringType, cel.IntType)
	case evidence.Ints:
		return cel.ListType(cel.IntType)
	}
	return cel.StringType
}

// maxSize bounds the ends of a size in conditions: 64 PiB, beyond any memory, so
// that a condition may multiply what a garbage request states.
const maxSize = 1 << 56

// celValue is v as CEL holds it; a size is a map with lo and hi.
func celValue(v evidence.Value) any {
	switch v.T {
	case evidence.Int:
		return v.I
	case evidence.Float:
		return v.F
	case evidence.Bool:
		return v.I != 0
	case evidence.Size:
		return map[string]int64{"lo": max(-maxSize, min(v.Lo, maxSize)), "hi": max(-maxSize, min(v.Hi, maxSize))}
	case evidence.Ints:
		return v.L
	}
	return v.S
}

// A condition is one compiled expression. It may be evaluated concurrently.
type condition struct {
	program cel.Program
	used    []string
	err     error
}

// compile parses and checks expr.
func compile(expr string) (*ast.AST, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	if len(expr) > maxCondition {
		return nil, fmt.Errorf("condition is longer than %d bytes", maxCondition)
	}
	if strings.TrimSpace(expr) == "" {
		return nil, errors.New("condition is empty")
	}
	a, iss := env.Compile(expr)
	if iss.Err() != nil {
		var msgs []string
		for _, e := range iss.Errors() {
			msgs = append(msgs, fmt.Sprintf("column %d: %s", e.Location.Column()+1, e.Message))
		}
		return nil, errors.New(strings.Join(msgs, "; "))
	}
	if !a.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("condition is a %s, not a bool", a.OutputType())
	}
	var bad error
	ast.PostOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		for _, arg := range e.AsCall().Args() {
			if s, ok := arg.AsLiteral().(types.String); ok {
				if _, err := regexp.Compile(string(s)); err != nil {
					bad = err
				}
			}
		}
	}))
	if bad != nil {
		return nil, bad
	}
	return a.NativeRep(), nil
}

// newCondition compiles expr, or makes it from a checked form.
func newCondition(expr string, checked *ast.AST) *condition {
	if checked == nil {
		var err error
		if checked, err = compile(expr); err != nil {
			return &condition{err: fmt.Errorf("compile condition %q: %w", expr, err)}
		}
	}
	env, err := environment()
	if err != nil {
		return &condition{err: err}
	}
	opts := []cel.ProgramOption{cel.EvalOptions(cel.OptPartialEval)}
	if loops(checked) { // counting the cost of the others would only slow them down
		opts = append(opts, cel.CostLimit(maxCost))
	}
	p, err := env.PlanProgram(checked, opts...)
	if err != nil {
		return &condition{err: fmt.Errorf("plan condition %q: %w", expr, err)}
	}
	return &condition{program: p, used: names(checked)}
}

// loops reports whether a checked expression holds a comprehension. What has none
// ends after as many steps as it is long.
func loops(a *ast.AST) bool {
	found := false
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) { found = found || e.Kind() == ast.ComprehensionKind }))
	return found
}

// names returns the facts that a checked expression names, sorted.
func names(a *ast.AST) []string {
	set := map[string]bool{}
	for _, r := range a.ReferenceMap() {
		n := strings.TrimPrefix(r.Name, ".")
		if _, ok := declared(n); ok {
			set[n] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// bindings resolves the facts that one condition uses.
type bindings struct {
	facts map[string]evidence.Value
}

func (b bindings) ResolveName(name string) (any, bool) {
	name = strings.TrimPrefix(name, ".")
	if v, ok := b.facts[name]; ok && v.Valid() {
		return celValue(v), true
	}
	if strings.HasPrefix(name, seenPrefix) {
		return int64(0), true
	}
	return nil, false
}

func (bindings) Parent() cel.Activation { return nil }

// eval evaluates c. A fact that is not in facts is unknown, a count that is not
// is 0; an unknown does not spread through an && or || that the rest decides.
func (c *condition) eval(facts map[string]evidence.Value) Outcome {
	if c.err != nil {
		return Outcome{Verdict: Unknown, Err: c.err}
	}
	out := Outcome{Verdict: Unknown, Used: c.used}
	var missing []*cel.AttributePatternType
	for _, n := range c.used {
		v, ok := facts[n]
		if !ok || !v.Valid() {
			if !strings.HasPrefix(n, seenPrefix) {
				missing = append(missing, cel.AttributePattern(n))
			}
			continue
		}
		if t, _ := declared(n); t != v.T {
			out.Err = fmt.Errorf("fact %s is a %s, declared as %s", n, v.T, t)
			return out
		}
	}
	vars, err := cel.PartialVars(bindings{facts}, missing...)
	if err != nil {
		out.Err = fmt.Errorf("bind facts: %w", err)
		return out
	}
	val, _, err := c.program.Eval(vars)
	if err != nil {
		out.Err = fmt.Errorf("evaluate condition: %w", err)
		return out
	}
	switch v := val.(type) {
	case types.Bool:
		out.Verdict = False
		if v {
			out.Verdict = True
		}
	case *types.Unknown:
		set := map[string]bool{}
		for _, id := range v.IDs() {
			trails, _ := v.GetAttributeTrails(id)
			for _, t := range trails {
				set[strings.TrimPrefix(t.Variable(), ".")] = true
			}
		}
		out.Unknown = slices.Sorted(maps.Keys(set))
	default:
		out.Err = fmt.Errorf("condition gave a %s, not a bool", val.Type().TypeName())
	}
	return out
}

// CheckExpr reports whether expr is a condition: it compiles, is a bool and names
// declared facts only.
func CheckExpr(expr string) error {
	_, err := compile(expr)
	return err
}

// certain returns the facts that are known whenever e came out as want: those
// of one side of a decided && or || need not be.
func certain(e ast.Expr, refs map[int64]*ast.ReferenceInfo, want bool) map[string]bool {
	if e.Kind() == ast.CallKind {
		args := e.AsCall().Args()
		switch fn := e.AsCall().FunctionName(); fn {
		case operators.LogicalNot:
			return certain(args[0], refs, !want)
		case operators.LogicalAnd, operators.LogicalOr:
			l, r := certain(args[0], refs, want), certain(args[1], refs, want)
			if (fn == operators.LogicalAnd) == want {
				maps.Copy(l, r)
				return l
			}
			return common(l, r)
		case operators.Conditional:
			// Which branch was taken is not known here; the test always is.
			set := common(certain(args[1], refs, want), certain(args[2], refs, want))
			maps.Copy(set, common(certain(args[0], refs, true), certain(args[0], refs, false)))
			return set
		}
	}
	set := map[string]bool{}
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(x ast.Expr) {
		if r := refs[x.ID()]; r != nil {
			if n := strings.TrimPrefix(r.Name, "."); n != "" {
				if _, ok := declared(n); ok {
					set[n] = true
				}
			}
		}
	}))
	return set
}

func common(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	for n := range a {
		if b[n] {
			out[n] = true
		}
	}
	return out
}
