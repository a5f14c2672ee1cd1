package trial

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A StepAt says that the command was at a step, counted over its whole run, so many seconds
// after it began.
type StepAt struct {
	Seconds float64
	Step    float64
}

// An Observed is a trial with what its log says beside its diagnosis.
type Observed struct {
	Done
	// Steps has when steps were reached, as far as samples noted how much had been printed; both
	// rise.
	Steps []StepAt
	// LastStep is the highest step that the log states, as it numbers them.
	LastStep *int64
	// Values are those of the metrics that were asked for, in the order of the log.
	Values map[string][]float64
}

// Bounds of what is read of a log.
const (
	maxLogBytes  = 4 << 30
	maxLogLine   = 64 << 10
	maxMetric    = 1 << 16
	maxStepMarks = 1 << 20
)

var (
	// stepWord is how training loops say at which step they are: "step 12", "global_step=12",
	// "step": 12, Iteration 12/100, [iter 12].
	stepWord = lazyre.New(`(?i)(?:^|[^a-z_])(?:global[_ ]?|train(?:ing)?[_ /]?)?(?:step|iter(?:ation)?|batch)(?:_num)?["']?\]?\s*[:=#]?\s*\[?\s*(\d{1,15})\b`)
	// stepBar is a progress bar: 12/100 [00:03<00:20.
	stepBar = lazyre.New(`\b(\d{1,15})/\d{1,15} \[\d+:\d`)
)

// Observe reads the log of a trial for the steps that it states and for the values of metrics.
// A log that cannot be read leaves both out.
func Observe(d Done, metrics []string) Observed {
	o := Observed{Done: d, Values: map[string][]float64{}}
	if inc := d.Diagnosis; inc != nil {
		for _, s := range inc.Series {
			for _, p := range s.Points {
				o.reached(p.Step)
			}
		}
		for _, r := range inc.Ranks {
			o.reached(r.LastStep)
		}
		if inc.LastGood != nil {
			o.reached(inc.LastGood.Step)
		}
	}
	if d.Trial.Log == "" {
		return o
	}
	f, err := os.Open(d.Trial.Log)
	if err != nil {
		return o
	}
	defer f.Close()
	o.read(io.LimitReader(f, maxLogBytes), metrics)
	return o
}

func (o *Observed) reached(step *int64) {
	if step != nil && *step >= 0 && (o.LastStep == nil || *step > *o.LastStep) {
		n := *step
		o.LastStep = &n
	}
}

// A mark says that the log states a step in a line that ends at an offset.
type mark struct {
	offset int64
	step   float64
}

// read goes through a log.
func (o *Observed) read(r io.Reader, metrics []string) {
	patterns := map[string]*regexp.Regexp{}
	for _, m := range metrics {
		patterns[m] = metricPattern(m)
	}
	in := bufio.NewReaderSize(r, maxLogLine)
	var marks []mark
	var offset int64
	var base, last float64
	for {
		line, err := readLine(in)
		offset += int64(len(line))
		text := bytes.TrimRight(line, "\r\n")
		m := stepWord.FindSubmatch(text)
		if m == nil {
			m = stepBar.FindSubmatch(text)
		}
		if m != nil && err == nil { // a line without its end may be half of it
			if n, bad := strconv.ParseInt(string(m[1]), 10, 64); bad == nil {
				o.reached(&n)
				switch at := float64(n); {
				case n <= 1 && last > 1: // the next epoch counts anew
					base, last = base+last, at
					marks = append(marks, mark{offset, base + at})
				case at > last || len(marks) == 0:
					last = at
					marks = append(marks, mark{offset, base + at})
				}
			}
		}
		for name, p := range patterns {
			if m := p.FindSubmatch(text); m != nil && len(o.Values[name]) < maxMetric {
				o.Values[name] = append(o.Values[name], parseNumber(string(m[1])))
			}
		}
		if err != nil || len(marks) > maxStepMarks {
			break
		}
	}
	o.time(marks)
}

// readLine reads to the next line end or carriage return, or as much as the buffer holds.
func readLine(in *bufio.Reader) ([]byte, error) {
	for {
		have, err := in.Peek(in.Buffered())
		if i := bytes.IndexAny(have, "\r\n"); err == nil && i >= 0 {
			in.Discard(i + 1)
			return have[:i+1], nil
		}
		if n := in.Buffered(); n == maxLogLine {
			in.Discard(n)
			return have, nil
		}
		if _, err := in.Peek(in.Buffered() + 1); err != nil {
			have, _ := in.Peek(in.Buffered())
			in.Discard(len(have))
			if errors.Is(err, bufio.ErrBufferFull) {
				return have, nil
			}
			return have, err
		}
	}
}

// time says when each step was reached: at the first sample that saw its line printed.
func (o *Observed) time(marks []mark) {
	k := 0
	for _, s := range o.Trial.Samples {
		at := -1
		for k < len(marks) && marks[k].offset <= s.Log {
			at, k = k, k+1
		}
		if at >= 0 {
			o.Steps = append(o.Steps, StepAt{s.Seconds, marks[at].step})
		}
	}
}

// stepOf is the step that the command was at, between the two that are known around it; false
// before the first and behind the last.
func stepOf(steps []StepAt, seconds float64) (float64, bool) {
	i, exact := slices.BinarySearchFunc(steps, seconds, func(s StepAt, t float64) int {
		switch {
		case s.Seconds < t:
			return -1
		case s.Seconds > t:
			return 1
		}
		return 0
	})
	switch {
	case exact:
		return steps[i].Step, true
	case i == 0 || i == len(steps):
		return 0, false
	}
	a, b := steps[i-1], steps[i]
	return a.Step + (b.Step-a.Step)*(seconds-a.Seconds)/(b.Seconds-a.Seconds), true
}

// metricPattern finds a value behind a name: accuracy=0.9, "accuracy": 0.9, accuracy 0.9.
func metricPattern(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\w./-])` + regexp.QuoteMeta(name) + `["']?\s*[:=]?\s*([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?))(?:[^\w.]|\.?$|\.\D|%)`)
}

// parseNumber reads a number as programs print it.
func parseNumber(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// seriesNamed are the series of a diagnosis with a name, or with the name that it stands for.
func seriesNamed(inc *incident.Incident, name string) []incident.Series {
	if inc == nil {
		return nil
	}
	var out []incident.Series
	for _, s := range inc.Series {
		if strings.EqualFold(s.Name, name) {
			out = append(out, s)
		}
	}
	return out
}

// seconds is how long a trial ran.
func seconds(t incident.Trial) (float64, bool) {
	if t.Ended == nil {
		return 0, false
	}
	a, err1 := time.Parse(time.RFC3339Nano, t.Begun)
	b, err2 := time.Parse(time.RFC3339Nano, *t.Ended)
	if err1 != nil || err2 != nil || b.Before(a) {
		return 0, false
	}
	return b.Sub(a).Seconds(), true
}
