package trial

import (
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Whether memory grows over a run is asked of its floor, not of its samples: what leaks is never
// given back, so the lowest use in each stretch of the run rises, while peaks of an evaluation,
// the teeth of a garbage collector and the noise of a sample come and go.
//
//  1. The first fifth of the run is left out: caches fill, lazily loaded code arrives.
//  2. What is left is cut into 12 to 24 stretches of equal length; each has its lowest value.
//  3. Kendall's test (H. B. Mann, Econometrica 13, 1945; with the correction for ties) asks
//     whether these floors rise at all: a run without growth passes for growing once in a
//     thousand times. The slope and its error are Theil and Sen's (P. K. Sen, J. Am. Stat.
//     Assoc. 63, 1968): no single stretch moves them.
//  4. What rises in one or two jumps and stays there (a cache of the evaluation, a second
//     bucket) is told from a steady rise, and from one that begins or ends on the way, by the
//     squares that are left over, with the price of each number that a description needs
//     (G. Schwarz, Ann. Stat. 6, 1978).
//  5. What was given back for the greater part is no leak that these points show.
//  6. A rise whose second half is surely less than half as steep as its first flattens; what is
//     still to come is then estimated from the two halves, as of a sequence that shrinks by the
//     same ratio.
//
// What it cannot tell: a leak slower than the noise hides, and one that began just before the
// end. internal/detect asks a coarser question of series that a log prints.

const (
	fewestPoints  = 12 // behind the warm-up
	mostStretches = 24
	warmUp        = 0.2  // of the run
	significant   = 3.09 // standard deviations: one in a thousand
	clearly       = 4.0  // by how much a description must be the better one
)

// A growth is what was found.
type growth struct {
	shape       string
	points      int
	from, to    float64
	slope, err  float64 // per unit of x
	rise        float64 // over the part that was judged
	level, peak float64 // at its end; anywhere
	toCome      float64 // of ShapeFlattens
	lastJump    float64 // of ShapeJumps: where
}

// growthOf judges y over x, which rises. Differences of up to resolution say nothing. With
// settled the beginning of x is no start of a program: less of it is left out.
func growthOf(x, y []float64, resolution float64, settled bool) growth {
	g := growth{shape: incident.ShapeShort, points: len(x)}
	if len(x) == 0 {
		return g
	}
	g.peak = slices.Max(y)
	g.from, g.to, g.level = x[0], x[len(x)-1], y[len(y)-1]
	// 1
	share := warmUp
	if settled {
		share = warmUp / 2
	}
	begin := x[0] + share*(x[len(x)-1]-x[0])
	first := max(1, slices.IndexFunc(x, func(v float64) bool { return v >= begin }))
	if len(x)-first < fewestPoints || x[len(x)-1] <= x[first] {
		return g
	}
	x, y = x[first:], y[first:]
	g.points, g.from = len(x), x[0]
	// 2
	fx, fy := floorsOf(x, y, min(max(len(x)/2, fewestPoints), mostStretches))
	if len(fx) < fewestPoints*2/3 {
		return g
	}
	// 3
	var z float64
	z, g.slope, g.err = kendall(fx, fy)
	span := x[len(x)-1] - x[0]
	g.rise, g.level = g.slope*span, fy[len(fy)-1]+max(g.slope, 0)*(g.to-fx[len(fx)-1])
	g.shape = incident.ShapeFlat
	if z < significant || g.rise <= resolution {
		return g
	}
	// 4
	if at, better := jumps(fx, fy, resolution); better {
		g.shape, g.lastJump = incident.ShapeJumps, at
		return g
	}
	// 5
	if fell(fy) >= 0.5*(slices.Max(fy)-slices.Min(fy)) {
		g.shape = incident.ShapeSawtooth
		return g
	}
	// 6
	half := len(fx) / 2
	_, s1, _ := kendall(fx[:half], fy[:half])
	_, s2, e2 := kendall(fx[half:], fy[half:])
	switch {
	case s1 <= 0 || s2+e2 >= s1/2:
		g.shape = incident.ShapeGrows
	case s2 <= e2 || s2*span/2 <= resolution:
	default:
		g.shape = incident.ShapeFlattens
		ratio := s2 / s1
		g.toCome = s2 * span / 2 * ratio / (1 - ratio)
	}
	return g
}

// floorsOf cuts x into n stretches of equal length and returns the lowest value of each that has
// any, and where it is.
func floorsOf(x, y []float64, n int) (fx, fy []float64) {
	lo, width := x[0], (x[len(x)-1]-x[0])/float64(n)
	at := -1
	for i := range x {
		k, last := min(int((x[i]-lo)/width), n-1), len(fy)-1
		switch {
		case k != at:
			at = k
			fx, fy = append(fx, x[i]), append(fy, y[i])
		case y[i] < fy[last]:
			fx[last], fy[last] = x[i], y[i]
		}
	}
	return fx, fy
}

// kendall returns how many standard deviations the number of rising pairs is from none, the
// median of the slopes of all pairs, and half the width of its interval of 95 per cent.
func kendall(x, y []float64) (z, slope, half float64) {
	n := len(x)
	if n < 3 {
		return 0, 0, math.Inf(1)
	}
	s, slopes := 0, make([]float64, 0, n*(n-1)/2)
	for i := range x {
		for j := i + 1; j < n; j++ {
			switch {
			case y[j] > y[i]:
				s++
			case y[j] < y[i]:
				s--
			}
			if x[j] > x[i] {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
	}
	f := func(t float64) float64 { return t * (t - 1) * (2*t + 5) }
	variance := f(float64(n))
	sorted := slices.Sorted(slices.Values(y))
	for i := 0; i < n; {
		j := i
		for j < n && sorted[j] == sorted[i] {
			j++
		}
		variance -= f(float64(j - i))
		i = j
	}
	variance /= 18
	if len(slopes) == 0 {
		return 0, 0, math.Inf(1)
	}
	slices.Sort(slopes)
	at := func(k float64) float64 { return slopes[int(min(max(k, 0), float64(len(slopes)-1)))] }
	m := float64(len(slopes))
	slope = (at((m-1)/2) + at(m/2)) / 2
	if variance <= 0 {
		return 0, slope, 0
	}
	c := 1.96 * math.Sqrt(variance)
	half = (at((m+c)/2) - at((m-c)/2)) / 2
	switch {
	case s > 0:
		z = (float64(s) - 1) / math.Sqrt(variance)
	case s < 0:
		z = (float64(s) + 1) / math.Sqrt(variance)
	}
	return z, slope, half
}

// jumps reports whether one or two jumps describe y better than a straight line, and where the
// last one is. Residuals below resolution count as that.
func jumps(x, y []float64, resolution float64) (last float64, better bool) {
	n := len(y)
	sum, square := make([]float64, n+1), make([]float64, n+1)
	base := y[0]
	for i, v := range y {
		sum[i+1], square[i+1] = sum[i]+v-base, square[i]+(v-base)*(v-base)
	}
	level := func(i, j int) float64 { // squares left over by the mean of y[i:j]
		d := sum[j] - sum[i]
		return square[j] - square[i] - d*d/float64(j-i)
	}
	floor := float64(n) * resolution * resolution / 12
	cost := func(rss float64, numbers int) float64 {
		return float64(n)*math.Log(max(rss, floor, 1e-9)) + float64(numbers)*math.Log(float64(n))
	}
	line, bent := cost(leftOver(x, y), 2), make([]float64, n)
	for k := 2; k < n-2; k++ {
		for i := range x {
			bent[i] = max(x[i], x[k])
		}
		line = min(line, cost(leftOver(bent, y), 3))
		for i := range x {
			bent[i] = min(x[i], x[k])
		}
		line = min(line, cost(leftOver(bent, y), 3))
	}
	best, at := math.Inf(1), 0
	for i := 1; i < n; i++ {
		if c := cost(level(0, i)+level(i, n), 3); c < best && y[i] > y[i-1] {
			best, at = c, i
		}
		for j := i + 1; j < n; j++ {
			if c := cost(level(0, i)+level(i, j)+level(j, n), 5); c < best && y[j] > y[j-1] {
				best, at = c, j
			}
		}
	}
	return x[at], best < line-clearly
}

// leftOver is the sum of the squares that the best straight line leaves over.
func leftOver(x, y []float64) float64 {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var xx, xy, yy float64
	for i := range x {
		xx, xy, yy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my), yy+(y[i]-my)*(y[i]-my)
	}
	if xx == 0 {
		return yy
	}
	return max(yy-xy*xy/xx, 0)
}

// fell is the deepest fall of y below what it had been before, single dips aside.
func fell(y []float64) float64 {
	var deepest float64
	top := math.Inf(-1)
	for i := range y {
		v := y[i]
		if i > 0 && i+1 < len(y) { // median of three
			v = max(min(y[i-1], y[i]), min(max(y[i-1], y[i]), y[i+1]))
		}
		top = max(top, v)
		deepest = max(deepest, top-v)
	}
	return deepest
}
