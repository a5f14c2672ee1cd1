package desk

import (
	"slices"
	"strings"
	"testing"
)

// TestLine begins and ends cases as a script says: s and l are small and large ones that come,
// and a - ends the one that began first. What begins is noted in order.
func TestLine(t *testing.T) {
	for _, x := range []struct {
		workers      int
		script, want string
	}{
		{1, "s1 s2 s3", "s1"},
		{1, "s1 s2 s3 - - -", "s1 s2 s3"},
		{1, "l1 s1 s2", "l1 s1"},              // one small case beside a large one
		{1, "l1 s1 l2 s2 -", "l1 s1"},         // the large one has ended, the small one has not
		{1, "l1 s1 l2 s2 - -", "l1 s1 l2 s2"}, // who came first is first
		{1, "l1 l2 l3 - -", "l1 l2 l3"},
		{1, "s1 l1 s2 -", "s1 l1 s2"}, // a large one waits for those before it only
		{2, "s1 s2 s3 -", "s1 s2 s3"},
		{2, "l1 l2 s1 s2", "l1 s1"}, // one place is left to small cases
		{2, "l1 l2 s1 s2 -", "l1 s1 l2"},
		{3, "l1 l2 l3 s1 s2", "l1 l2 s1"},
	} {
		l := line{workers: x.workers}
		var began, at []string
		names := map[*held]string{}
		var running []*held
		for _, w := range strings.Fields(x.script) {
			if w == "-" {
				l.done(running[0])
				running = running[1:]
			} else {
				c := &held{large: w[0] == 'l'}
				names[c] = w
				l.waiting = append(l.waiting, c)
			}
			for c := l.next(); c != nil; c = l.next() {
				began, running = append(began, names[c]), append(running, c)
			}
			at = append(at, w)
			if len(running) > x.workers+1 || x.workers > 1 && len(running) > x.workers {
				t.Errorf("%d workers, %v: %d at once", x.workers, at, len(running))
			}
		}
		if got := strings.Join(began, " "); got != x.want {
			t.Errorf("%d workers, %q: began %q, want %q", x.workers, x.script, got, x.want)
		}
	}
}

func TestLeave(t *testing.T) {
	a, b := &held{}, &held{}
	l := line{workers: 1, waiting: []*held{a, b}}
	l.leave(a)
	l.leave(a)
	if !slices.Equal(l.waiting, []*held{b}) {
		t.Errorf("%v", l.waiting)
	}
}
