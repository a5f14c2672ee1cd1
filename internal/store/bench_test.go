package store

import (
	"fmt"
	"testing"
)

// BenchmarkList lists a store of 2000 trials: from the index as it is, with one trial that it
// does not have, and without an index.
func BenchmarkList(b *testing.B) {
	s := Open(b.TempDir())
	packages := map[string]string{}
	for n := range 200 {
		packages[fmt.Sprint("package-", n)] = "1.2.3"
	}
	add := func(n int) {
		tr, records := failedTrial(n, fmt.Sprint("f", n%40))
		records[0].Environment.Packages = packages
		put(b, s, tr, records)
	}
	const trials = 2000
	for n := range trials {
		add(n)
	}
	list := func(b *testing.B) {
		if l, err := s.List(b.Context()); err != nil || len(l.Incidents) != 40 {
			b.Fatalf("%v", err)
		}
	}
	list(b)
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			list(b)
		}
	})
	n := trials
	b.Run("one new", func(b *testing.B) {
		for b.Loop() {
			add(n)
			n++
			list(b)
		}
	})
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			if err := s.Rebuild(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("show", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Find(b.Context(), Latest); err != nil {
				b.Fatal(err)
			}
		}
	})
}
