package reader_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// taken is a sink that takes whole runs and every point.
type taken struct {
	*reader.Collector
	runs   []*evidence.TrackedRun
	points []string
}

func (s *taken) TrackedRun(r *evidence.TrackedRun) { s.runs = append(s.runs, r) }

func (s *taken) Point(_ *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) {
	s.points = append(s.points, fmt.Sprintf("%s %d #%d %v %v", t.Name, p.Step, p.Ordinal, p.Value, wall))
}

func newTaken() *taken { return &taken{Collector: reader.NewCollector()} }

// add puts points of rising places into a track: pairs of step and value.
func add(t *reader.Track, pairs ...float64) {
	for i := 0; i < len(pairs); i += 2 {
		n := t.Series.Count + 1
		t.Add(int64(pairs[i]), 1.7e9+float64(n), pairs[i+1], reader.Place{Line: n, Offset: n * 100, Length: 50})
	}
}

var nan, inf = math.NaN(), math.Inf(1)

func mark(step, ordinal int64) evidence.Mark {
	return evidence.Mark{Step: step, Ordinal: ordinal, Line: ordinal + 1, Offset: (ordinal + 1) * 100}
}

func TestSegments(t *testing.T) {
	s := newTaken()
	r := reader.NewRecording(s, "tensorboard", "run/file")
	tr := r.Track("loss", false, 1)
	add(tr, 0, 3, 10, 2, 20, nan, 30, inf)
	add(tr, 10, 2.5, 20, 2.25, 20, 1, 30, math.Inf(-1), 40, 1)
	r.Restart()
	add(tr, 50, nan)
	r.Close()
	if tr.NaN != 2 || tr.PosInf != 1 || tr.NegInf != 1 || !tr.Steps || tr.FirstWall != 1.7e9+1 || tr.LastWall != 1.7e9+10 {
		t.Errorf("%+v", tr.Track)
	}
	want := []evidence.Segment{
		{First: mark(0, 0), Last: mark(30, 3), N: 4, Bad: 2, FirstBad: mark(20, 2), BadWall: 1.7e9 + 3, LastFinite: mark(10, 1), HasFinite: true, FiniteWall: 1.7e9 + 2, FiniteValue: 2, FirstWall: 1.7e9 + 1, LastWall: 1.7e9 + 4},
		{First: mark(10, 4), Last: mark(20, 5), N: 2, FirstWall: 1.7e9 + 5, LastWall: 1.7e9 + 6},
		{First: mark(20, 6), Last: mark(40, 8), N: 3, Bad: 1, FirstBad: mark(30, 7), BadWall: 1.7e9 + 8, BadValue: math.Inf(-1), LastFinite: mark(20, 6), HasFinite: true, FiniteWall: 1.7e9 + 7, FiniteValue: 1, FirstWall: 1.7e9 + 7, LastWall: 1.7e9 + 9},
		{First: mark(50, 9), Last: mark(50, 9), N: 1, Bad: 1, FirstBad: mark(50, 9), BadWall: 1.7e9 + 10, FirstWall: 1.7e9 + 10, LastWall: 1.7e9 + 10},
	}
	for i := range want {
		want[i].Artifact = "run/file"
		got := tr.Segments[i]
		if got.Bad > 0 && math.IsNaN(got.BadValue) {
			got.BadValue = 0
		}
		if got != want[i] {
			t.Errorf("segment %d:\ngot  %+v\nwant %+v", i, got, want[i])
		}
	}
	if len(s.runs) != 1 || s.runs[0] != &r.Run || r.Run.Newest.Time.Unix() != 1.7e9+10 {
		t.Errorf("runs %v, newest %v", s.runs, r.Run.Newest)
	}
	if n := len(s.points); n != 10 || s.points[2] != "loss 20 #2 NaN 1.700000003e+09" {
		t.Errorf("%d points: %q", n, s.points)
	}
}

// TestNoSteps: points without a step make one segment.
func TestNoSteps(t *testing.T) {
	r := reader.NewRecording(newTaken(), "jsonl", "f")
	tr := r.Track("x", false, 1)
	add(tr, evidence.None, 1, evidence.None, nan, evidence.None, 2)
	if tr.Steps || len(tr.Segments) != 1 || tr.Segments[0].N != 3 || tr.Segments[0].LastFinite != mark(evidence.None, 0) {
		t.Errorf("%+v", tr.Track)
	}
}

func TestSegmentBound(t *testing.T) {
	r := reader.NewRecording(newTaken(), "jsonl", "f")
	tr := r.Track("x", false, 1)
	for range evidence.MaxSegments + 10 {
		add(tr, 5, 1)
	}
	add(tr, 6, nan)
	if len(tr.Segments) != evidence.MaxSegments || tr.MoreSegments != 10 {
		t.Errorf("%d segments and %d more", len(tr.Segments), tr.MoreSegments)
	}
	last := tr.Segments[evidence.MaxSegments-1]
	if last.N != 12 || last.Bad != 1 || !last.HasFinite {
		t.Errorf("%+v", last)
	}
}

// TestNonfiniteEvents: the first value that is not finite is an event, and each that
// follows ten finite ones, five at most; a metric of which it says nothing has none.
func TestNonfiniteEvents(t *testing.T) {
	f := func(name string, system bool, want string, pairs ...float64) {
		t.Helper()
		s := newTaken()
		r := reader.NewRecording(s, "tensorboard", "f")
		tr := r.Track(name, system, 1)
		add(tr, pairs...)
		r.Close()
		var got []string
		for _, e := range s.Events {
			if e.Kind == evidence.NonfiniteValue {
				got = append(got, fmt.Sprintf("%d %s", e.Step, e.Text))
				if !e.Stamp.Known() || e.Span.Record != e.Step+1 || e.Span.Kind != "record" || e.Span.Artifact != "f" {
					t.Errorf("%+v", e)
				}
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %s", name, got, want)
		}
	}
	run := func(n int, gap int) (pairs []float64) {
		for i := range n {
			for j := range gap {
				pairs = append(pairs, float64(i*(gap+1)+j), 1)
			}
			pairs = append(pairs, float64(i*(gap+1)+gap), nan)
		}
		return pairs
	}
	f("train/loss", false, "1 train/loss = NaN", 0, 1, 1, nan, 2, nan, 3, inf)
	f("train/loss", false, "3 train/loss = NaN", run(4, 3)...)
	f("train/loss", false, "10 train/loss = NaN, 21 train/loss = NaN, 32 train/loss = NaN", run(3, 10)...)
	f("train/loss", false, "10 train/loss = NaN, 21 train/loss = NaN, 32 train/loss = NaN, 43 train/loss = NaN, 54 train/loss = NaN", run(9, 10)...)
	f("eval/accuracy", false, "", 0, nan)
	f("some.sensor", true, "", 0, nan)
}

// TestTracks: units, canonical names, and two names of one meaning.
func TestTracks(t *testing.T) {
	s := newTaken()
	r := reader.NewRecording(s, "tensorboard", "f")
	for _, c := range []struct {
		name    string
		system  bool
		first   float64
		key     string
		unit    string
		axis    evidence.Axis
		stored  float64
		another bool
	}{
		{name: "lm loss", first: 2, key: "loss", stored: 2},
		{name: "lm loss vs samples", first: 2, key: "loss by samples", axis: evidence.AxisSamples, stored: 2},
		{name: "train/loss", first: 2, key: "train/loss", stored: 2},
		{name: "grad-norm", first: 2, key: "grad_norm", stored: 2},
		{name: "learning-rate", first: 2, key: "lr", stored: 2},
		{name: "mem-allocated-bytes", first: 5e9, key: "memory_allocated", unit: "bytes", stored: 5e9},
		{name: "DeviceStatsMonitor.on_train_batch_end/reserved_bytes.all.current", system: true, first: 7, key: "memory_reserved", unit: "bytes", axis: evidence.AxisOwn, stored: 7},
		{name: "gb_free", first: 2, key: "memory_free", unit: "bytes", stored: 2 << 30},
		{name: "iteration-time", first: 2, key: "step_time", unit: "seconds", stored: 2},
		{name: "reward/mean", first: 2, key: "reward/mean", stored: 2},
	} {
		tr := r.Track(c.name, c.system, c.first)
		add(tr, 1, c.first)
		if tr.Series.Key.Name != c.key || tr.Unit != c.unit || tr.Axis != c.axis || tr.Series.Last.Value != c.stored || r.Track(c.name, c.system, 0) != tr {
			t.Errorf("%s: %+v %q %q %v", c.name, tr.Series.Key, tr.Unit, tr.Axis, tr.Series.Last.Value)
		}
	}
	if s.points[7] != "gb_free 1 #0 2 1.700000001e+09" {
		t.Errorf("points are given as they were logged: %q", s.points)
	}
}

func TestTrackBound(t *testing.T) {
	s := newTaken()
	r := reader.NewRecording(s, "tensorboard", "f")
	none := 0
	for i := range 5000 {
		if tr := r.Track(fmt.Sprint("m", i), false, 1); tr == nil {
			none++
		}
	}
	if none == 0 || len(r.Run.Tracks)+none != 5000 || len(r.Run.Damage) != 1 || r.Run.Damage[0].Kind != evidence.OverBound || len(s.Damages) != 1 || r.Run.MoreTracks != int64(none) {
		t.Errorf("%d tracks, %d refused, %d more, damage %+v", len(r.Run.Tracks), none, r.Run.MoreTracks, r.Run.Damage)
	}
	for range 1000 { // a name that is met again is no other one
		r.Track("m4999", false, 1)
	}
	if r.Run.MoreTracks != int64(none) {
		t.Errorf("%d more", r.Run.MoreTracks)
	}
}

func TestSuspects(t *testing.T) {
	r := reader.NewRecording(newTaken(), "clearml", "f")
	tr := r.Track("loss", false, 1)
	tr.Suspect(1, "before any point")
	add(tr, 0, 1, 1, 0)
	tr.Suspect(1, "zero")
	add(tr, 2, 0)
	tr.Suspect(1, "zero")
	add(tr, 3, 0, 4, 0)
	tr.Suspect(2, "other")
	if len(tr.Suspects) != 2 || tr.Suspects[0].First.Ordinal != 1 || tr.Suspects[0].Last.Ordinal != 2 || tr.Suspects[1].Len() != 2 || tr.Suspects[1].Reason != "other" {
		t.Errorf("%+v", tr.Suspects)
	}
	for i := range evidence.MaxSuspects + 5 {
		add(tr, float64(10+i), 0)
		tr.Suspect(1, fmt.Sprint("reason ", i%2))
	}
	if len(tr.Suspects) != evidence.MaxSuspects || tr.MoreSuspects != 7 {
		t.Errorf("%d suspects and %d more", len(tr.Suspects), tr.MoreSuspects)
	}
}

func TestSettingBounds(t *testing.T) {
	s := newTaken()
	r := reader.NewRecording(s, "wandb", "f")
	r.Setting("long", strings.Repeat("ä", 5000), evidence.Span{Artifact: "f"})
	if v := r.Run.Settings[0].Value; len(v) > 4100 || !strings.HasSuffix(v, "…") || strings.Contains(v, "\ufffd") {
		t.Errorf("%d bytes", len(v))
	}
	for i := range 5000 {
		r.Setting(fmt.Sprint("k", i), "v", evidence.Span{Artifact: "f"})
	}
	if n := int64(len(r.Run.Settings)); n+r.Run.MoreSettings != 5001 || r.Run.MoreSettings == 0 {
		t.Errorf("%d settings and %d more", n, r.Run.MoreSettings)
	}
	for i := range 500 {
		r.Damage(evidence.RunDamage{Kind: evidence.BadLine, Text: fmt.Sprint(i), Span: evidence.Span{Artifact: "f"}})
	}
	if len(r.Run.Damage) > 256 || len(s.Damages) != 500 {
		t.Errorf("%d and %d damages", len(r.Run.Damage), len(s.Damages))
	}
}

// TestHostileNumbers: no time or step makes a recording fail.
func TestHostileNumbers(t *testing.T) {
	r := reader.NewRecording(newTaken(), "tensorboard", "f")
	tr := r.Track("x", false, nan)
	for _, step := range []int64{math.MinInt64, -5, 0, math.MaxInt64} {
		for _, wall := range []float64{nan, inf, math.Inf(-1), -1, 0, 1e300, 1.7e9} {
			for _, v := range []float64{nan, inf, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64} {
				tr.Add(step, wall, v, reader.Place{})
			}
		}
	}
	r.Close()
	if tr.Series.Count != 4*7*5 {
		t.Errorf("%d points", tr.Series.Count)
	}
}

// TestShortWay: the way that most points take leaves the same series, and the same points to
// see, as adding each to the series with its time where the series keeps it.
func TestShortWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		r := reader.NewRecording(newTaken(), "tensorboard", "f")
		tr := r.Track("x", false, 1)
		want := evidence.NewSeries(tr.Series.Key)
		level := rng.Float64()
		for i := range int64(3000) {
			v, wall := level+rng.Float64(), 1.7e9+float64(i)
			switch rng.IntN(200) {
			case 0:
				v = nan
			case 1:
				level += rng.NormFloat64()
			case 2:
				v = 0
			case 3:
				wall = 0
			}
			p := evidence.Point{Step: i / 2 * 3, Value: v, Line: i + 1, Offset: i * 10, Length: 10}
			if wall > 0 && (v-v != 0 || want.WillSample()) {
				st := reader.StampAt(wall)
				p.Stamp = &st
			}
			want.Append(&p)
			tr.Add(i/2*3, wall, v, reader.Place{Line: i + 1, Offset: i * 10, Length: 10})
		}
		if got, want := fmt.Sprintf("%+v", plain(tr.Series)), fmt.Sprintf("%+v", plain(want)); got != want {
			t.Fatalf("round %d:\ngot  %s\nwant %s", round, got, want)
		}
	}
}

// plain is all of a series in a form that shows times.
func plain(s *evidence.Series) any {
	var all []any
	see := func(p evidence.Point) {
		w := p.When().Written
		p.Stamp = nil
		all = append(all, p, w)
	}
	for p := range s.All() {
		see(p)
	}
	for _, p := range []evidence.Point{s.First, s.Last, s.FirstBad, s.LastBeforeBad, s.Min, s.Max, s.LastFinite()} {
		see(p)
	}
	v := reflect.ValueOf(*s)
	for _, name := range []string{"Count", "Bad", "Zeros", "BadRun", "LongestBadRun", "FiniteAfterBad", "Stride", "Runs", "MoreRuns"} {
		all = append(all, v.FieldByName(name).Interface())
	}
	return all
}

func BenchmarkAdd(b *testing.B) {
	r := reader.NewRecording(reader.NewCollector(), "tensorboard", "f")
	tr := r.Track("train/loss", false, 1)
	i := int64(0)
	for b.Loop() {
		tr.Add(i, 1.7e9+float64(i), 2+float64(i*7919%1000)/1000, reader.Place{Line: i, Offset: i * 50, Length: 50})
		i++
	}
}
