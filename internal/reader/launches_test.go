package reader_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// Each stretch of a resumed run is a launch of its own for the diagnosis, whether the points come
// by row or by series, and whether or not they carry times.
func TestLaunches(t *testing.T) {
	type point struct {
		name string
		step int64
		wall float64
		v    float64
	}
	line := func(name string, from, to int64, wall float64) []point {
		var out []point
		for s := from; s < to; s++ {
			if wall > 0 {
				wall++
			}
			out = append(out, point{name, s, wall, 1})
		}
		return out
	}
	byRow := func(lists ...[]point) []point {
		var out []point
		for i := range lists[0] {
			for _, l := range lists {
				out = append(out, l[i])
			}
		}
		return out
	}
	join := func(lists ...[]point) (out []point) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	nan := point{"loss", 9, 5009, math.NaN()}
	for _, c := range []struct {
		name   string
		points []point
		want   string // series@launch:count ...
		launch int    // of the event, -1 for none
	}{
		{"one", line("loss", 0, 8, 0), "loss@0:8", -1},
		{"by row", join(byRow(line("loss", 0, 8, 1000), line("grad_norm", 0, 8, 1000)), byRow(line("loss", 4, 9, 5000), line("grad_norm", 4, 9, 5000)), []point{nan}),
			"loss@0:8 grad_norm@0:8 loss@1:6 grad_norm@1:5", 1},
		{"by series", join(line("loss", 0, 8, 1000), line("loss", 4, 9, 5000), line("grad_norm", 0, 8, 1000.5), line("grad_norm", 4, 9, 4999.5)),
			"loss@0:8 loss@1:5 grad_norm@0:8 grad_norm@1:5", -1},
		{"without times", join(line("loss", 0, 8, 0), line("loss", 4, 9, 0)), "loss@0:8 loss@1:5", -1},
		{"one that begins after the resume", join(line("loss", 0, 8, 1000), line("loss", 4, 9, 5000), line("eval_loss", 8, 12, 5100)), "loss@0:8 loss@1:5 eval_loss@1:4", -1},
		{"a step logged twice", join(line("loss", 0, 8, 1000), line("loss", 7, 12, 1010)), "loss@0:13", -1},
		{"two writers in turn", join([]point{{"loss", 5, 1, 1}, {"loss", 1, 2, 1}, {"loss", 6, 3, 1}, {"loss", 2, 4, 1}, {"loss", 7, 5, 1}}), "loss@0:5", -1},
		{"the machine's own counter", join(line("gpu.0.memoryAllocatedBytes", 5, 9, 1000), line("gpu.0.memoryAllocatedBytes", 0, 4, 5000)), "device_memory@0:8", -1},
	} {
		sink := reader.NewCollector()
		r := reader.NewRecording(sink, "jsonl", "a.jsonl")
		for i, p := range c.points {
			r.Track(p.name, false, p.v).Add(p.step, p.wall, p.v, reader.Place{Line: int64(i + 1)})
		}
		r.Close()
		got := ""
		for _, s := range sink.Metrics {
			if s.Count > 0 {
				got += fmt.Sprintf(" %s@%d:%d", s.Key.Name, s.Key.Launch, s.Count)
			}
		}
		if got != " "+c.want {
			t.Errorf("%s: got%s, want %s", c.name, got, c.want)
		}
		launch := -1
		for _, e := range sink.Events {
			if e.Kind == evidence.NonfiniteValue {
				launch = e.Who.Launch
			}
		}
		if launch != c.launch {
			t.Errorf("%s: the event is of launch %d, want %d", c.name, launch, c.launch)
		}
	}
}
