package detect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/detect"
	"github.com/inquest-dev/inquest/internal/evidence"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func exactly(n int64) evidence.Value { return evidence.SizeOf(n, n) }

func at(zone string, t time.Time) evidence.Stamp {
	return evidence.Stamp{Time: t, Written: "x", Zone: zone, Clock: "wall"}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// failure is the log's: 1.25 GiB asked for on device 0, 640.00 MiB free.
func failure(change func(*evidence.Event)) *evidence.Event {
	e := &evidence.Event{Kind: evidence.DeviceOOM, Who: evidence.Nobody(), Step: evidence.None, Span: evidence.Span{Artifact: "run.log", Kind: "text", Line: 9, Offset: 900},
		Attrs: evidence.Attrs{"requested": evidence.RoundedSize(1.25*gib, 0.005*gib), "free": evidence.RoundedSize(640*mib, 0.005*mib), "gpu": evidence.IntOf(0), "capacity": evidence.RoundedSize(24*gib, 0.005*gib)}}
	if change != nil {
		change(e)
	}
	return e
}

// refused is that of a snapshot.
func refused(file string, change func(*evidence.Event)) *evidence.Event {
	e := &evidence.Event{Kind: evidence.MemSnapshotOOM, Who: evidence.Nobody(), Step: evidence.None, Stamp: at("Z", noon), Span: evidence.Span{Artifact: file, Kind: "event", Index: 70},
		Attrs: evidence.Attrs{"requested": exactly(1279 * mib), "free": exactly(640 * mib), "gpu": evidence.IntOf(0), "event": evidence.IntOf(70), "last": evidence.BoolOf(true), "reserved": exactly(22 * gib)}}
	if change != nil {
		change(e)
	}
	return e
}

func finding(file, fact string, holds bool) *evidence.Event {
	return &evidence.Event{Kind: evidence.MemFinding, Who: evidence.Nobody(), Span: evidence.Span{Artifact: file, Kind: "event", Index: 3},
		Attrs: evidence.Attrs{"gpu": evidence.IntOf(0), "fact": evidence.TextOf(fact), "holds": evidence.BoolOf(holds)}}
}

func peak(file string, rank int, n int64) *evidence.Event {
	e := finding(file, "snapshot.peak", false)
	e.Attrs["bytes"] = exactly(n)
	e.Who.Rank = rank
	return e
}

func taken(file string, rank int, t time.Time) *evidence.Event {
	e := &evidence.Event{Kind: evidence.MemSnapshotted, Who: evidence.Nobody(), Stamp: at("Z", t), Span: evidence.Span{Artifact: file, Kind: "event"}, Attrs: evidence.Attrs{"gpu": evidence.IntOf(0)}}
	e.Who.Rank = rank
	return e
}

func replay(faithful bool, event int64, change func(evidence.Attrs)) *evidence.Event {
	e := &evidence.Event{Kind: evidence.MemReplay, Who: evidence.Nobody(), Span: evidence.Span{Artifact: "a.pickle", Kind: "event", Index: event},
		Attrs: evidence.Attrs{"gpu": evidence.IntOf(0), "faithful": evidence.BoolOf(faithful), "event": evidence.IntOf(event), "fits": evidence.BoolOf(true), "in_use": exactly(18 * gib), "largest_free": exactly(gib),
			"expandable": evidence.TextOf("avoided"), "avoided_by": evidence.TextOf("expandable_segments:True")}}
	if change != nil {
		change(e.Attrs)
	}
	return e
}

func of(m *evidence.Event, more ...*evidence.Event) detect.Input {
	return detect.Input{Lead: m, Memory: m, Events: append([]*evidence.Event{m}, more...), Recovered: func(*evidence.Event) bool { return false }, After: func(a, b *evidence.Event) bool { return false }}
}

// line is one of the log above the failure, with a time without a zone.
func line(d time.Duration) *evidence.Event {
	return &evidence.Event{Kind: evidence.PhaseMark, Who: evidence.Nobody(), Stamp: at("", noon.Add(d)), Span: evidence.Span{Artifact: "run.log", Kind: "text", Line: 3, Offset: 300}}
}

// TestTie: which snapshot is that of the failure, and why another is not.
func TestTie(t *testing.T) {
	rank := func(n int) func(*evidence.Event) { return func(e *evidence.Event) { e.Who.Rank = n } }
	set := func(name string, v evidence.Value) func(*evidence.Event) {
		return func(e *evidence.Event) { e.Attrs[name] = v }
	}
	when := func(zone string, d time.Duration) func(*evidence.Event) {
		return func(e *evidence.Event) { e.Stamp = at(zone, noon.Add(d)) }
	}
	both := func(fs ...func(*evidence.Event)) func(*evidence.Event) {
		return func(e *evidence.Event) {
			for _, f := range fs {
				f(e)
			}
		}
	}
	drop := func(name string) func(*evidence.Event) { return func(e *evidence.Event) { delete(e.Attrs, name) } }
	other := failure(both(rank(2), func(e *evidence.Event) { e.Span.Artifact = "rank2.log" }))
	for _, c := range []struct {
		name   string
		log    *evidence.Event
		others []*evidence.Event
		want   string // the snapshot, or a part of why not
	}{
		{"same request and free memory", failure(nil), []*evidence.Event{refused("a.pickle", nil)}, "a.pickle"},
		{"another request", failure(nil), []*evidence.Event{refused("a.pickle", set("requested", exactly(2*gib)))}, "2.00 GiB were asked for, in the log 1.25 GiB"},
		{"other free memory", failure(nil), []*evidence.Event{refused("a.pickle", set("free", exactly(641*mib)))}, "641.00 MiB were free on the device, in the log 640.00 MiB"},
		{"another reserve", failure(set("reserved", evidence.RoundedSize(10*gib, 0.005*gib))), []*evidence.Event{refused("a.pickle", nil)}, "22.00 GiB were reserved, in the log 10.00 GiB"},
		{"another reserve, stated in parts", failure(both(set("allocated", evidence.RoundedSize(22*gib, 0.005*gib)), set("unallocated", evidence.RoundedSize(2*gib, 0.005*gib)))), []*evidence.Event{refused("a.pickle", nil)}, "22.00 GiB were reserved, in the log 24.00 GiB"},
		{"the same reserve, stated in parts", failure(both(set("allocated", evidence.RoundedSize(20*gib, 0.005*gib)), set("unallocated", evidence.RoundedSize(2*gib, 0.005*gib)))), []*evidence.Event{refused("a.pickle", nil)}, "a.pickle"},
		{"another device", failure(nil), []*evidence.Event{refused("a.pickle", set("gpu", evidence.IntOf(1)))}, "device 1, the failure of device 0"},
		{"another rank", failure(rank(0)), []*evidence.Event{refused("a.pickle", rank(3))}, "it is of rank 3, the failure of rank 0"},
		{"another start", failure(func(e *evidence.Event) { e.Who.Attempt = "attempt_1" }), []*evidence.Event{refused("a.pickle", func(e *evidence.Event) { e.Who.Attempt = "attempt_0" })}, "another start"},
		{"the day before", failure(when("Z", 24*time.Hour)), []*evidence.Event{refused("a.pickle", nil)}, "another time"},
		{"the day before, no zone written", failure(when("", 24*time.Hour)), []*evidence.Event{refused("a.pickle", nil)}, "another time"},
		{"written in another zone", failure(when("", 2*time.Hour+3*time.Second)), []*evidence.Event{refused("a.pickle", nil)}, "a.pickle"},
		{"half an hour later", failure(when("Z", 30*time.Minute)), []*evidence.Event{refused("a.pickle", nil)}, "another time"},
		{"a line without a time, of a run of the day before", failure(nil), []*evidence.Event{line(-24 * time.Hour), refused("a.pickle", func(e *evidence.Event) { e.Stamp = at("Z", noon.Add(24*time.Hour)) })}, "another time"},
		{"a line without a time, of a run after the snapshot", failure(nil), []*evidence.Event{line(16 * time.Hour), refused("a.pickle", nil)}, "another time"},
		{"a line without a time, of a run that night", failure(nil), []*evidence.Event{line(-3 * time.Hour), refused("a.pickle", nil)}, "a.pickle"},
		{"only the size, no rank", failure(drop("free")), []*evidence.Event{refused("a.pickle", nil)}, "nothing shows that it is the same failure"},
		{"only the size, the rank and the time", failure(both(drop("free"), rank(1), when("Z", time.Second))), []*evidence.Event{refused("a.pickle", rank(1))}, "a.pickle"},
		{"no size", failure(drop("requested")), []*evidence.Event{refused("a.pickle", nil)}, "does not state what was asked for"},
		{"the asynchronous allocator", failure(set("form", evidence.TextOf("async"))), []*evidence.Event{refused("a.pickle", nil)}, "records no history"},
		{"two files of unknown ranks", failure(nil), []*evidence.Event{refused("a.pickle", nil), refused("b.pickle", nil)}, "several snapshots show the same failure"},
		{"the one of the rank among two", failure(rank(1)), []*evidence.Event{refused("a.pickle", rank(0)), refused("b.pickle", rank(1))}, "b.pickle"},
		{"the one of the rank and one of no rank", failure(rank(1)), []*evidence.Event{refused("a.pickle", nil), refused("b.pickle", rank(1))}, "b.pickle"},
		{"another rank failed with the same figures", failure(rank(0)), []*evidence.Event{other, refused("a.pickle", nil)}, "several ranks failed with the same figures"},
		{"and the snapshot says whose it is", failure(rank(0)), []*evidence.Event{other, refused("a.pickle", rank(0))}, "a.pickle"},
		{"two dumps of one process", failure(rank(0)), []*evidence.Event{refused("a.pickle", both(rank(0), set("last", evidence.BoolOf(false)))), refused("b.pickle", rank(0))}, "b.pickle"},
		{"a damaged file", failure(nil), []*evidence.Event{refused("a.pickle", nil), func() *evidence.Event {
			e := taken("a.pickle", evidence.None, noon)
			e.Attrs["cut"] = evidence.BoolOf(true)
			return e
		}()}, "the file is damaged"},
		{"no failure of device memory", nil, []*evidence.Event{refused("a.pickle", nil)}, "no failure of device memory in the logs"},
	} {
		in := detect.Input{Events: c.others}
		if c.log != nil {
			in = of(c.log, c.others...)
		}
		got := detect.TieSnapshot(in)
		if strings.HasSuffix(c.want, ".pickle") {
			for _, x := range got.Not {
				if strings.HasSuffix(x.Text, ": .") {
					t.Errorf("%s: no reason: %s", c.name, x.Text)
				}
			}
			if got.OOM == nil || got.OOM.Span.Artifact != c.want {
				t.Errorf("%s: tied to %v, want %s; %v", c.name, got.OOM, c.want, got.Not)
			}
			continue
		}
		if got.OOM != nil || len(got.Not) == 0 || !strings.Contains(got.Not[0].Text, c.want) {
			t.Errorf("%s: tied to %v, not for %v; want %q", c.name, got.OOM, got.Not, c.want)
		}
		if c.log == nil {
			continue
		}
		in.Events = append(in.Events, finding("a.pickle", "snapshot.graph_held", true), replay(true, 70, nil))
		for name := range detect.Run(in) {
			if strings.HasPrefix(name, "snapshot.") || strings.HasPrefix(name, "replay.") {
				t.Errorf("%s: %s is taken from a snapshot that is not the failure's", c.name, name)
			}
		}
	}
}

func withStack(e *evidence.Event) {
	e.Stack = []evidence.Frame{{File: "/w/train.py", Line: 9, Function: "main"}, {File: "/p/torch/optim/adamw.py", Line: 220, Function: "step"}, {File: "/p/torch/optim/adamw.py", Line: 178, Function: "_init_group"}}
}

// TestSnapshotFacts: what a tied snapshot states.
func TestSnapshotFacts(t *testing.T) {
	held, copied := finding("a.pickle", "snapshot.graph_held", true), finding("b.pickle", "snapshot.checkpoint_copy", true)
	for _, c := range []struct {
		name    string
		in      detect.Input
		known   map[string]string
		unknown string
	}{
		{"findings of its own file", of(failure(nil), refused("a.pickle", nil), held, copied), map[string]string{"snapshot.graph_held": "true"}, "snapshot.checkpoint_copy replay.faithful"},
		{"findings after the program went on", of(failure(nil), refused("a.pickle", func(e *evidence.Event) { e.Attrs["last"] = evidence.BoolOf(false) }), held), nil, "snapshot.graph_held"},
		{"a replay", of(failure(nil), refused("a.pickle", nil), replay(true, 70, nil)), map[string]string{"replay.faithful": "true", "replay.fits": "true", "replay.expandable_avoids": "true", "replay.avoided_by": "expandable_segments:True",
			"snapshot.largest_free": "1.00 GiB", "oom.allocated": "18.00 GiB", "oom.reserved_unallocated": "4.00 GiB"}, ""},
		{"a replay that does not repeat the record", of(failure(nil), refused("a.pickle", nil), replay(false, 70, nil)), map[string]string{"replay.faithful": "false", "replay.fits": "true"}, "replay.expandable_avoids replay.avoided_by snapshot.largest_free"},
		{"a replay of another request", of(failure(nil), refused("a.pickle", nil), replay(true, 50, nil)), nil, "replay.faithful replay.fits replay.expandable_avoids"},
		{"a replay that cannot tell", of(failure(nil), refused("a.pickle", nil), replay(true, 70, func(a evidence.Attrs) { a["expandable"] = evidence.TextOf("cannot_tell"); delete(a, "avoided_by") })), map[string]string{"replay.faithful": "true"}, "replay.expandable_avoids replay.avoided_by"},
		{"a log without a traceback", of(failure(nil), refused("a.pickle", withStack)), map[string]string{"oom.phase": "optimizer", "trace.functions": "main > step > _init_group"}, "trace.source"},
		{"a log with a traceback", of(failure(func(e *evidence.Event) {
			e.Stack = []evidence.Frame{{File: "a.py", Line: 3, Function: "forward", Source: "x"}}
		}), refused("a.pickle", withStack)), map[string]string{"oom.phase": "forward", "trace.functions": "forward"}, ""},
		{"a full device", of(failure(nil), refused("a.pickle", nil)), map[string]string{"snapshot.outside_allocator": "false"}, ""},
		{"a device that others fill", of(failure(nil), refused("a.pickle", func(e *evidence.Event) { e.Attrs["reserved"] = exactly(4 * gib) })), map[string]string{"snapshot.outside_allocator": "true"}, ""},
		{"neither", of(failure(nil), refused("a.pickle", func(e *evidence.Event) { e.Attrs["reserved"] = exactly(18 * gib) })), nil, "snapshot.outside_allocator"},
	} {
		known := detect.Run(c.in)
		for name, want := range c.known {
			if got := known[name]; got.Value.String() != want || len(got.Spans) == 0 {
				t.Errorf("%s: %s is %s, want %s", c.name, name, got.Value, want)
			}
		}
		for _, name := range strings.Fields(c.unknown) {
			if got, ok := known[name]; ok {
				t.Errorf("%s: %s is known: %s", c.name, name, got.Value)
			}
		}
	}
}

// TestPeaksOfRanks: the ranks' peaks are compared where their snapshots are as old as the failure.
func TestPeaksOfRanks(t *testing.T) {
	log := failure(func(e *evidence.Event) { e.Who.Rank = 1 })
	own := refused("1.pickle", func(e *evidence.Event) { e.Who.Rank = 1 })
	for _, c := range []struct {
		name string
		more []*evidence.Event
		want string // "" is unknown
	}{
		{"far more than another", []*evidence.Event{peak("1.pickle", 1, 20*gib), peak("0.pickle", 0, 9*gib), taken("0.pickle", 0, noon)}, "true"},
		{"the same", []*evidence.Event{peak("1.pickle", 1, 20*gib), peak("0.pickle", 0, 19*gib), taken("0.pickle", 0, noon)}, "false"},
		{"between", []*evidence.Event{peak("1.pickle", 1, 20*gib), peak("0.pickle", 0, 16*gib), taken("0.pickle", 0, noon)}, ""},
		{"another had more", []*evidence.Event{peak("1.pickle", 1, 9*gib), peak("0.pickle", 0, 20*gib), taken("0.pickle", 0, noon)}, ""},
		{"of another time", []*evidence.Event{peak("1.pickle", 1, 20*gib), peak("0.pickle", 0, 9*gib), taken("0.pickle", 0, noon.Add(-time.Hour))}, ""},
		{"of no rank", []*evidence.Event{peak("1.pickle", 1, 20*gib), peak("0.pickle", evidence.None, 9*gib), taken("0.pickle", evidence.None, noon)}, ""},
		{"alone", []*evidence.Event{peak("1.pickle", 1, 20*gib)}, ""},
	} {
		got, ok := detect.Run(of(log, append(c.more, own)...))["snapshot.rank_imbalance"]
		if s := got.Value.String(); ok != (c.want != "") || ok && s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// TestReserveShort: sizes alone say that the unused reserve was too small, unless a
// faithful replay serves the request under another setting.
func TestReserveShort(t *testing.T) {
	none := func(e *evidence.Event) { e.Attrs["unallocated"] = exactly(0) }
	much := func(e *evidence.Event) { e.Attrs["unallocated"] = exactly(4 * gib) }
	in := refused("a.pickle", nil)
	for name, c := range map[string]struct {
		in   detect.Input
		want string
	}{
		"no figures":                  {of(failure(nil)), "unknown"},
		"too small":                   {of(failure(none)), "true"},
		"large enough":                {of(failure(much)), "false"},
		"served in a replay":          {of(failure(none), in, replay(true, 70, nil)), "false"},
		"a replay that is not true":   {of(failure(none), in, replay(false, 70, nil)), "true"},
		"a replay that serves nobody": {of(failure(none), in, replay(true, 70, func(a evidence.Attrs) { a["avoided_by"] = evidence.TextOf("") })), "true"},
	} {
		got := "unknown"
		if x, ok := detect.Run(c.in)["oom.reserve_short"]; ok {
			got = x.Value.String()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
