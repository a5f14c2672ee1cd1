package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
)

// List returns all incidents in short, newest failure first.
func (s *Store) List(ctx context.Context) (*incident.Incidents, error) {
	v, err := s.view(ctx, false)
	if err != nil {
		return nil, err
	}
	l := &incident.Incidents{Schema: incident.IncidentsSchema, Store: s.dir, Incidents: list(v.lines), Problems: list(v.problems)}
	for _, f := range v.files {
		if !f.act {
			l.Trials++
		}
	}
	slices.SortStableFunc(l.Incidents, func(a, b incident.KeptLine) int { return byTime(b.Last, a.Last, a.ID, b.ID) })
	return l, nil
}

// Incidents returns all incidents, in the order of their ids, without what only a diagnosis
// says of each; and what of the store could not be read.
func (s *Store) Incidents(ctx context.Context) ([]incident.Kept, []string, error) {
	c, err := s.Contents(ctx)
	if err != nil {
		return nil, nil, err
	}
	return ledger.Keep(c.Trials, c.Acts), c.Problems, nil
}

// Latest stands for the incident that failed last.
const Latest = "last"

// Find returns the incident that a name means, complete with its diagnosis: its id, the
// beginning of an id that no other has, the id of one of its trials, that of a launch of its
// trials, or Latest. The error is ErrNotFound, with ids that are near, where there is none.
//
// Acts that are not in the store may be held to be.
func (s *Store) Find(ctx context.Context, name string, acts ...incident.Act) (*incident.Kept, error) {
	c, err := s.Contents(ctx)
	if err != nil {
		return nil, err
	}
	acts = slices.Concat(c.Acts, acts)
	k, err := find(ledger.Outline(c.Trials, acts), name)
	if err != nil {
		for i := range c.Trials {
			if t := &c.Trials[i]; t.ID == name {
				return nil, fmt.Errorf("trial %s (%s) is of no incident: %w", t.ID, strings.ReplaceAll(t.Verdict.Result, "_", " "), ErrNotFound)
			}
		}
		return nil, err
	}
	k = ledger.KeepOne(c.Trials, acts, k.ID)
	s.explain(k)
	ledger.Tabulate(k)
	k.Problems = append(k.Problems, c.Problems...)
	return k, nil
}

// explain adds the diagnosis of the failure.
func (s *Store) explain(k *incident.Kept) {
	if k.Diagnosis != nil || k.Original == "" {
		return
	}
	r, err := s.Trial(k.Original)
	switch {
	case err != nil:
		k.Problems = append(k.Problems, "its diagnosis cannot be read: "+err.Error())
	case r.Diagnosis == nil:
		k.Problems = append(k.Problems, "no diagnosis of trial "+k.Original+" is in this store")
	default:
		ledger.Explain(k, r.Diagnosis)
	}
}

func find(all []incident.Kept, name string) (*incident.Kept, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("incident %q: %w, which has no incidents", bounded(name, 80), ErrNotFound)
	}
	if name == Latest {
		return newest(all), nil
	}
	var hits []*incident.Kept
	for _, meant := range []func(*incident.Kept) bool{
		func(k *incident.Kept) bool { return k.ID == name },
		func(k *incident.Kept) bool { return slices.Contains(k.Also, name) },
		func(k *incident.Kept) bool {
			return slices.ContainsFunc(k.Trials, func(t incident.Trial) bool { return t.ID == name })
		},
		func(k *incident.Kept) bool {
			return slices.ContainsFunc(k.Table, func(r incident.KeptRow) bool { return r.Launch != "" && r.Launch == name }) ||
				slices.ContainsFunc(k.Trials, func(t incident.Trial) bool { return t.Launch != nil && t.Launch.ID == name })
		},
		func(k *incident.Kept) bool {
			return len(name) >= 2 && (strings.HasPrefix(k.ID, name) || strings.HasPrefix(strings.TrimPrefix(k.ID, "i-"), name))
		},
		func(k *incident.Kept) bool {
			return len(name) >= 4 && slices.ContainsFunc(k.Trials, func(t incident.Trial) bool { return strings.HasPrefix(t.ID, name) })
		},
	} {
		for i := range all {
			if meant(&all[i]) {
				hits = append(hits, &all[i])
			}
		}
		if len(hits) > 0 {
			break
		}
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return nil, fmt.Errorf("incident %q: %w; %s", bounded(name, 80), ErrNotFound, near(all, name))
	}
	var ids []string
	for _, k := range hits[:min(len(hits), 4)] {
		ids = append(ids, k.ID)
	}
	return nil, fmt.Errorf("%q means %d incidents: %s", bounded(name, 80), len(hits), strings.Join(ids, ", "))
}

func newest(all []incident.Kept) *incident.Kept {
	best := &all[0]
	for i := range all {
		if byTime(all[i].Last, best.Last, all[i].ID, best.ID) > 0 {
			best = &all[i]
		}
	}
	return best
}

// near names ids that are like a name, else the newest.
func near(all []incident.Kept, name string) string {
	type id struct {
		id string
		d  int
	}
	var ids []id
	for i := range all {
		if d := distance(all[i].ID, name); d <= 3 {
			ids = append(ids, id{all[i].ID, d})
		}
	}
	if len(ids) == 0 {
		return "the newest is " + newest(all).ID
	}
	slices.SortStableFunc(ids, func(a, b id) int { return a.d - b.d })
	var out []string
	for _, x := range ids[:min(len(ids), 3)] {
		out = append(out, x.id)
	}
	return "near it: " + strings.Join(out, ", ")
}

// distance is the number of characters to change, add or leave out to make b of a; more than
// 64 characters are not compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := last
			if a[i] != b[j] {
				d++
			}
			last = row[j+1]
			row[j+1] = min(d, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Writable reports whether the store can be written, without leaving anything in it: a store
// that does not exist is made.
func (s *Store) Writable() bool {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return false
	}
	f, err := os.CreateTemp(s.dir, indexTemp+"*")
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil
}
