package catalog

import (
	"strings"
	"sync"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestEval(t *testing.T) {
	size := evidence.SizeOf
	for _, f := range []struct {
		expr    string
		facts   map[string]evidence.Value
		want    Verdict
		unknown string
	}{
		{"oom.requested.lo > 5", map[string]evidence.Value{"oom.requested": size(6, 7)}, True, ""},
		{"oom.requested.hi < 5", map[string]evidence.Value{"oom.requested": size(6, 7)}, False, ""},
		{"oom.requested.lo > 5", nil, Unknown, "oom.requested"},
		{"oom.requested.lo > 5 && oom.free.hi < 3", map[string]evidence.Value{"oom.free": size(1, 2)}, Unknown, "oom.requested"},
		{"oom.requested.lo > 5 && oom.free.hi < 3", map[string]evidence.Value{"oom.free": size(4, 4)}, False, ""},
		{"oom.requested.lo > 5 || run.batch == 2", map[string]evidence.Value{"run.batch": evidence.IntOf(2)}, True, ""},
		{"oom.requested.lo > 5 || run.batch == 2", nil, Unknown, "oom.requested run.batch"},
		{"oom.requested.hi * 100 > 5", map[string]evidence.Value{"oom.requested": size(1<<62, 1<<62)}, True, ""},
		{"!oom.bogus", map[string]evidence.Value{"oom.bogus": evidence.BoolOf(false)}, True, ""},
		{"!oom.bogus", nil, Unknown, "oom.bogus"},
		{"seen.xid == 0", nil, True, ""},
		{"seen.xid > 1", map[string]evidence.Value{"seen.xid": evidence.IntOf(2)}, True, ""},
		{"memory.peak_fraction > 1", map[string]evidence.Value{"memory.peak_fraction": evidence.FloatOf(0.9)}, False, ""},
		{"run.batch > 1.5", map[string]evidence.Value{"run.batch": evidence.IntOf(2)}, True, ""},
		{`run.precision in ["fp16", "bf16"]`, map[string]evidence.Value{"run.precision": evidence.TextOf("bf16")}, True, ""},
		{`trace.functions.matches("(?i)Forward")`, map[string]evidence.Value{"trace.functions": evidence.TextOf("main > forward")}, True, ""},
		{`trace.functions.lowerAscii().contains("eval")`, map[string]evidence.Value{"trace.functions": evidence.TextOf("Evaluate")}, True, ""},
		{"size(dist.missing_ranks) == 1 && dist.missing_ranks[0] == 4", map[string]evidence.Value{"dist.missing_ranks": evidence.IntsOf([]int64{4})}, True, ""},
		{"dist.missing_ranks.exists(r, r == run.world - 1)", map[string]evidence.Value{"dist.missing_ranks": evidence.IntsOf([]int64{4})}, Unknown, "run.world"},
		{"oom.first_step ? true : run.batch > 2", nil, Unknown, "oom.first_step"},
	} {
		c := newCondition(f.expr, nil)
		got := c.eval(f.facts)
		if got.Err != nil || got.Verdict != f.want || strings.Join(got.Unknown, " ") != f.unknown {
			t.Errorf("%s: got %+v, want %s hanging on %q", f.expr, got, f.want, f.unknown)
		}
		// The stored form must decide the same.
		a, err := compile(f.expr)
		if err != nil {
			t.Fatal(err)
		}
		data, err := encodeChecked(a)
		if err != nil {
			t.Fatal(err)
		}
		if a, err = decodeChecked(data); err != nil {
			t.Fatal(err)
		}
		stored := newCondition(f.expr, a).eval(f.facts)
		if stored.Verdict != got.Verdict || strings.Join(stored.Used, " ") != strings.Join(got.Used, " ") {
			t.Errorf("%s: stored form gives %+v, parsed form %+v", f.expr, stored, got)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	c := &Catalog{}
	for _, f := range []struct {
		expr  string
		facts map[string]evidence.Value
		want  string
	}{
		{"run.batch >", nil, "compile condition"},
		{"run.batch / (run.world - 2) > 1", map[string]evidence.Value{"run.batch": evidence.IntOf(1), "run.world": evidence.IntOf(2)}, "division by zero"},
		{"run.batch > 1", map[string]evidence.Value{"run.batch": evidence.TextOf("8")}, "fact run.batch is a text, declared as int"},
	} {
		got := c.Eval(f.expr, f.facts)
		if got.Verdict != Unknown || got.Err == nil || !strings.Contains(got.Err.Error(), f.want) {
			t.Errorf("%s: got %+v, want error %q", f.expr, got, f.want)
		}
	}
}

func TestCheckExpr(t *testing.T) {
	for _, f := range []struct{ expr, want string }{
		{"oom.first_step && seen.xid == 0", ""},
		{"", "condition is empty"},
		{"run.batch", "not a bool"},
		{"seen.lightning > 0", "undeclared reference"},
		{"oom.requested > 4", "no matching overload"},
		{`trace.source.matches("(unclosed")`, "missing closing )"},
		{"oom.first_step && " + strings.Repeat("(", 2500), "longer than"},
	} {
		err := CheckExpr(f.expr)
		if (err == nil) != (f.want == "") || err != nil && !strings.Contains(err.Error(), f.want) {
			t.Errorf("%.40s: got %v, want %q", f.expr, err, f.want)
		}
	}
}

// TestUsed checks the names of a condition and which of them are certain.
func TestUsed(t *testing.T) {
	for _, f := range []struct{ expr, used, ifTrue string }{
		{"oom.first_step && run.batch > 1", "oom.first_step run.batch", "oom.first_step run.batch"},
		{"oom.first_step || run.batch > 1", "oom.first_step run.batch", ""},
		{"oom.first_step && (run.batch > 1 || run.batch < run.world)", "oom.first_step run.batch run.world", "oom.first_step run.batch"},
		{"!(oom.first_step || run.batch > 1)", "oom.first_step run.batch", "oom.first_step run.batch"},
		{"!(oom.first_step && run.batch > 1)", "oom.first_step run.batch", ""},
		{"oom.first_step ? run.batch > 1 : run.batch > 2", "oom.first_step run.batch", "oom.first_step run.batch"},
	} {
		a, err := compile(f.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(a), " "); got != f.used {
			t.Errorf("%s uses %s, want %s", f.expr, got, f.used)
		}
		got := strings.Join(sortedKeys(certain(a.Expr(), a.ReferenceMap(), true)), " ")
		if got != f.ifTrue {
			t.Errorf("%s makes %q certain, want %q", f.expr, got, f.ifTrue)
		}
	}
}

func TestEvalConcurrent(t *testing.T) {
	c := &Catalog{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, expr := range []string{"run.batch > 1", "run.batch > 2", "seen.xid == 0"} {
				if got := c.Eval(expr, map[string]evidence.Value{"run.batch": evidence.IntOf(3)}); got.Verdict != True {
					t.Errorf("%s: %+v", expr, got)
				}
			}
		})
	}
	wg.Wait()
}

const sampleCondition = `oom.reserved_unallocated.lo >= oom.requested.hi && oom.free.hi < oom.requested.lo && seen.mem_pressure > 0`

func BenchmarkEnvironment(b *testing.B) {
	for b.Loop() {
		if _, err := newEnvironment(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		newCondition(sampleCondition, nil)
	}
}

func BenchmarkPlanStored(b *testing.B) {
	a, err := compile(sampleCondition)
	if err != nil {
		b.Fatal(err)
	}
	data, err := encodeChecked(a)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		a, _ := decodeChecked(data)
		newCondition(sampleCondition, a)
	}
}

func BenchmarkEval(b *testing.B) {
	c := newCondition(sampleCondition, nil)
	facts := map[string]evidence.Value{"oom.requested": evidence.SizeOf(1, 2), "oom.free": evidence.SizeOf(0, 0), "oom.reserved_unallocated": evidence.SizeOf(4, 4)}
	for b.Loop() {
		c.eval(facts)
	}
}

// TestDecodeChecked reads every prefix and many damaged forms of a stored
// condition: each gives an expression or an error.
func TestDecodeChecked(t *testing.T) {
	a, err := compile(`run.precision in ["fp16"] && (dist.missing_ranks.exists(r, r > 2) || trace.source.contains("x")) && memory.peak_fraction > 0.5 && !oom.bogus`)
	if err != nil {
		t.Fatal(err)
	}
	data, err := encodeChecked(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeChecked(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := decodeChecked(data[:n]); err == nil {
			t.Errorf("no error for the first %d of %d bytes", n, len(data))
		}
		for _, b := range []byte{0, 'c', 'l', 'f', 0xff} {
			bad := append([]byte(nil), data...)
			bad[n] = b
			decodeChecked(bad)
		}
	}
}

// A loop in a loop ends when its work exceeds the bound.
func TestEvalCost(t *testing.T) {
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 90), ",") + "]"
	expr := list + ".all(a, " + list + ".all(b, " + list + ".all(c, " + list + ".all(d, " + list + ".all(e, a + b + c + d + e == 5)))))"
	if got := newCondition(expr, nil).eval(nil); got.Err == nil || got.Verdict == True {
		t.Errorf("got %+v, want an error", got)
	}
}
