package trial

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

const mib = 1 << 20

// A simulated curve is a use of memory: y at the share t of the run, in MiB.
type simulated func(t float64, i int, r *rand.Rand) float64

func (c simulated) sample(seed uint64, n int, noise float64) (x, y []float64) {
	r := rand.New(rand.NewPCG(seed, 17))
	for i := range n {
		t := float64(i) / float64(n-1)
		x = append(x, float64(i))
		y = append(y, (c(t, i, r)+noise*r.NormFloat64())*mib)
	}
	return x, y
}

// warm is what every process does at first: it fills up within a tenth of the run.
func warm(t float64) float64 { return 1000 * (1 - math.Exp(-t*40)) }

func flatCurve(t float64, _ int, _ *rand.Rand) float64 { return warm(t) }

func leak(total float64) simulated {
	return func(t float64, _ int, _ *rand.Rand) float64 { return warm(t) + total*t }
}

// TestGrowthShapes judges simulated runs of which it is known what they do: of a hundred seeds
// each so many must get one of the wanted shapes.
func TestGrowthShapes(t *testing.T) {
	grows, calm := []string{incident.ShapeGrows}, []string{incident.ShapeFlat}
	for _, c := range []struct {
		name  string
		curve simulated
		n     int
		noise float64
		want  []string
		least int // of 100
	}{
		{"nothing but a start", flatCurve, 100, 2, calm, 98},
		{"nothing, exactly", flatCurve, 100, 0, calm, 100},
		{"nothing, much noise", flatCurve, 400, 100, calm, 98},
		{"few points", flatCurve, 16, 2, calm, 97},
		{"a leak", leak(500), 100, 2, grows, 100},
		{"a leak without noise", leak(500), 100, 0, grows, 100},
		{"a small leak", leak(30), 100, 2, grows, 100},
		{"a leak that noise hides", leak(100), 400, 30, grows, 88},
		{"a leak of few points", leak(200), 18, 5, grows, 97},
		{"a leak below spikes", func(t float64, i int, r *rand.Rand) float64 {
			y := leak(200)(t, i, r)
			if i%20 < 4 {
				y += 800
			}
			return y
		}, 200, 3, grows, 100},
		{"spikes of an evaluation", func(t float64, i int, r *rand.Rand) float64 {
			y := warm(t)
			if i%20 < 4 {
				y += 800
			}
			return y
		}, 200, 3, calm, 98},
		{"spikes that get higher", func(t float64, i int, r *rand.Rand) float64 {
			y := warm(t)
			if i%20 < 4 {
				y += 800 * t
			}
			return y
		}, 200, 3, calm, 98},
		{"a collector's teeth", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 20*float64(i%10) }, 200, 3, calm, 98},
		{"long teeth", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 300*math.Mod(t*5, 1) }, 200, 3, []string{incident.ShapeFlat, incident.ShapeSawtooth}, 100},
		{"two teeth", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 300*math.Mod(t*2, 1) }, 200, 3, []string{incident.ShapeFlat, incident.ShapeSawtooth, incident.ShapeJumps}, 100},
		{"teeth above a leak", func(t float64, i int, r *rand.Rand) float64 { return leak(200)(t, i, r) + 20*float64(i%7) }, 200, 3, grows, 99},
		{"a cache that fills up", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 400*(1-math.Exp(-t*8)) }, 200, 2, []string{incident.ShapeFlat, incident.ShapeFlattens, incident.ShapeJumps}, 99},
		{"a cache that fills slowly", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 400*(1-math.Exp(-t*4)) }, 200, 2, []string{incident.ShapeFlat, incident.ShapeFlattens, incident.ShapeJumps}, 98},
		{"one evaluation's cache", func(t float64, i int, r *rand.Rand) float64 {
			if t > .55 {
				return warm(t) + 300
			}
			return warm(t)
		}, 200, 3, []string{incident.ShapeJumps, incident.ShapeFlat}, 100},
		{"two jumps", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 300*math.Floor(t*2.5) }, 200, 3, []string{incident.ShapeJumps}, 99},
		{"a jump in the last tenth", func(t float64, i int, r *rand.Rand) float64 {
			if t > .93 {
				return warm(t) + 300
			}
			return warm(t)
		}, 200, 3, []string{incident.ShapeFlat, incident.ShapeJumps}, 100},
		{"a stair for each epoch", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 60*math.Floor(t*8) }, 200, 2, grows, 100},
		{"a stair for each of five epochs", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + 100*math.Floor(t*5) }, 200, 2, grows, 99},
		{"a leak that begins late", func(t float64, i int, r *rand.Rand) float64 { return warm(t) + max(0, t-.5)*600 }, 200, 2, grows, 99},
		{"a start that is half the run", func(t float64, i int, r *rand.Rand) float64 { return 1000 * min(1, t*2) }, 200, 2, []string{incident.ShapeFlat, incident.ShapeJumps, incident.ShapeFlattens}, 98},
		{"memory that is given back", func(t float64, i int, r *rand.Rand) float64 { return warm(t) - 300*t }, 200, 3, calm, 100},
	} {
		got := map[string]int{}
		for seed := range uint64(100) {
			x, y := c.curve.sample(seed, c.n, c.noise)
			got[growthOf(x, y, 64<<10, false).shape]++
		}
		n := 0
		for _, w := range c.want {
			n += got[w]
		}
		if n < c.least {
			t.Errorf("%s: %v, want %v at least %d times", c.name, got, c.want, c.least)
		}
	}
}

// TestGrowthRate compares the slope with the one that was put in.
func TestGrowthRate(t *testing.T) {
	for _, total := range []float64{20, 100, 1000, 20000} {
		for seed := range uint64(50) {
			x, y := leak(total).sample(seed, 150, 2)
			g := growthOf(x, y, 64<<10, false)
			want := total / 149 * mib
			if math.Abs(g.slope-want) > 2*g.err+1e-3*want {
				t.Errorf("leak of %g MiB, seed %d: slope %.0f ± %.0f, want %.0f", total, seed, g.slope, g.err, want)
			}
		}
	}
}

func TestGrowthOdd(t *testing.T) {
	for _, c := range []struct{ x, y []float64 }{
		{nil, nil}, {[]float64{1}, []float64{1}}, {[]float64{1, 1, 1}, []float64{1, 2, 3}},
		{make([]float64, 40), make([]float64, 40)},
	} {
		if g := growthOf(c.x, c.y, 1, false); g.shape != incident.ShapeShort {
			t.Errorf("%v: %s", c.x, g.shape)
		}
	}
	var x, y []float64
	for i := range 100 {
		x, y = append(x, float64(i)), append(y, 5e9)
	}
	if g := growthOf(x, y, 0, false); g.shape != incident.ShapeFlat || g.slope != 0 {
		t.Errorf("level: %+v", g)
	}
}
