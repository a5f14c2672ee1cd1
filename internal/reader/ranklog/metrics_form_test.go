package ranklog

import (
	"reflect"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/scan"
)

// TestDictForm reads each dict by the form of another one: that gives what taking
// it apart does, or nothing.
func TestDictForm(t *testing.T) {
	dicts := []struct {
		text  string
		alike string // one of the same form; none when it has no plain form
	}{
		{"{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}", "{'loss': nan, 'grad_norm': inf, 'learning_rate': 0.0, 'epoch': 1.25} behind"},
		{"{'loss': 2, 'memory(GiB)': 30.5, 'aux_loss': 0.1, 'epoch': 3}", "{'loss': 2.5, 'memory(GiB)': 1, 'aux_loss': nan, 'epoch': 3.5}"},
		{"{'eval_loss': 0.75, 'eval_runtime': 12.5, 'epoch': 2.0}", "{'eval_loss': 0.5, 'eval_runtime': 1, 'epoch': 2}"},
		{"{'loss': tensor(1.5), 'epoch': 1}", "{'loss': tensor(2.5), 'epoch': 4}"},
		{"{'loss': '1.25', 'epoch': '0.5'}", ""},
		{"{'loss': 1.25, 'epoch': 0.", ""},
	}
	for _, x := range dicts {
		var form dictForm
		parseDict([]byte(x.text), 0, &dictLine{}, &form)
		for _, y := range dicts {
			for _, text := range []string{y.text, y.alike} {
				var got, want, again dictLine
				end := form.read([]byte(text), 0, &got)
				if like := x.alike != "" && text != "" && x.text == y.text; like != (end >= 0) {
					t.Errorf("%s by the form of %s: got %d", text, x.text, end)
				}
				if end < 0 {
					continue
				}
				var other dictForm
				if to := parseDict([]byte(text), 0, &want, &other); to != end {
					t.Errorf("%s by the form of %s: ends at %d, want %d", text, x.text, end, to)
				}
				if end = other.read([]byte(text), 0, &again); end < 0 || !same(&got, &want) || !same(&again, &want) {
					t.Errorf("%s by the form of %s:\n got %+v\nwant %+v", text, x.text, got, want)
				}
			}
		}
	}
}

// same compares what two dicts say; NaN equals NaN.
func same(a, b *dictLine) bool {
	values := func(d *dictLine) []printedValue {
		out := []printedValue{d.loss, d.grad, d.lr, d.evalLoss, d.reward, d.kl}
		for _, x := range d.extra[:d.extras] {
			out = append(out, x.printedValue)
		}
		for i := range out {
			if notFinite(out[i].v) {
				out[i].v = -1
			}
		}
		return out
	}
	return a.has == b.has && a.eval == b.eval && a.step == b.step && a.total == b.total && reflect.DeepEqual(values(a), values(b))
}

// TestTimer compares the parser of DeepSpeed's timer line with that of any pairs.
func TestTimer(t *testing.T) {
	const line = "[2031-05-01 02:03:04,005] [INFO] [timer.py:260:stop] epoch=1/micro_step=80/global_step=20, RunningAvgSamplesPerSec=9.5, CurrSamplesPerSec=8.25, MemAllocated=1.5GB, MaxMemAllocated=2.25GB"
	read := func(text string) map[evidence.SeriesKey]*evidence.Series {
		l := &metricLog{series: map[evidence.SeriesKey]*evidence.Series{}}
		raw := []byte(text)
		newMetrics(l, "job.log").line(raw, &scan.Line{Number: 1, Text: raw}, metricHits(raw, metricAtoms(), nil), nil, 0)
		return l.series
	}
	fast, slow := read(line), read("\b"+line) // only pairs reads frames
	if len(fast) != 2 || len(slow) != 2 {
		t.Fatalf("got %d and %d series", len(fast), len(slow))
	}
	for k, s := range fast {
		o := slow[k]
		if o == nil || s.Last.Value != o.Last.Value || s.Last.Step != 20 || o.Last.Step != 20 {
			t.Errorf("%+v: got %+v, want %+v", k, s.Last, o)
		}
	}
	for _, other := range []string{line[:len(line)-2], line + "x", strings.Replace(line, "micro_step", "step", 1), strings.Replace(line, "=20,", "=x,", 1), line + "\r"} {
		m := newMetrics(&metricLog{series: map[evidence.SeriesKey]*evidence.Series{}}, "job.log")
		if m.timer([]byte(other), strings.Index(other, "MemAllocated=")) {
			t.Errorf("%s: taken", other)
		}
	}
}
