package engine

import (
	"context"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// baseline reads a run that worked and lists what differs from it: versions,
// configuration, sizes and hosts, as both state them.
func baseline(ctx context.Context, o Options, s *Study) (*incident.Baseline, error) {
	r, err := Read(ctx, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := Examine(r)
	good, bad := b.Known[b.Main], s.Known[s.Main]
	out := &incident.Baseline{Paths: o.said(o.Paths), Diffs: diffs(good, bad)}
	spans := func(f evidence.Found) []evidence.Span {
		if f.Spans == nil {
			return []evidence.Span{}
		}
		return f.Spans
	}
	for _, n := range bad.Names() {
		if _, ok := good[n]; !ok && worthListing(n) {
			out.Diffs = append(out.Diffs, incident.Diff{Name: n, From: "not stated", To: bad[n].Value.String(), Spans: spans(bad[n])})
		}
	}
	for _, n := range good.Names() {
		if _, ok := bad[n]; !ok && worthListing(n) {
			out.Diffs = append(out.Diffs, incident.Diff{Name: n, From: good[n].Value.String(), To: "not stated", Spans: spans(good[n])})
		}
	}
	hosts := func(x *Study) string {
		t := ""
		for i, h := range x.Timeline.Hosts {
			if i > 0 {
				t += ", "
			}
			t += h
		}
		return t
	}
	if a, c := hosts(b), hosts(s); a != c && a != "" && c != "" {
		out.Diffs = append(out.Diffs, incident.Diff{Name: "hosts", From: a, To: c, Spans: []evidence.Span{}})
	}
	return out, nil
}

// said are paths as reports name them.
func (o *Options) said(paths []string) []string {
	look := o.look()
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = look.Name(p)
	}
	return out
}

// worthListing reports whether a fact that only one run states is worth listing.
func worthListing(name string) bool {
	return evidence.FactOf(name) != nil && len(name) > 4 && name[:4] == "run." && name != "run.frameworks" && name != "run.stack" && name != "run.resumed"
}
