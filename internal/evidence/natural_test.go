package evidence

import "testing"

func TestNatural(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"run_2", "run_10", -1}, {"run_010", "run_10", 0}, {"a", "b", -1}, {"a", "a1", -1}, {"99", "1000", -1}, {"rerun2.log", "rerun10.log", -1}} {
		if got := Natural(c.a, c.b); got < 0 != (c.want < 0) || got > 0 != (c.want > 0) {
			t.Errorf("Natural(%q, %q) = %d", c.a, c.b, got)
		}
	}
}
