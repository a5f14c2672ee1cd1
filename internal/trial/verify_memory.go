package trial

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A track is one kind of memory over one run.
type track struct {
	name         string
	device, rank *int
	per          string // step, second
	x, y         []float64
	resolution   float64 // bytes; smaller differences say nothing
	limit        *int64
	foreign      bool // others' memory is in it
	fromLog      bool
}

// tracksOf are the kinds of memory that a run shows: its samples, set against steps where the
// log tells which step it was at, and the series of memory that the log prints.
func tracksOf(o *Observed) []track {
	t := &o.Trial
	limit := func(name string, device *int) *int64 {
		for _, m := range t.Measures {
			if m.Name == name && (device == nil || m.Device != nil && *m.Device == *device) {
				return m.Limit
			}
		}
		return nil
	}
	var out []track
	put := func(tr track, value func(incident.Sample) (int64, bool)) {
		tr.per = "second"
		byStep := len(o.Steps) >= 2
		if byStep {
			tr.per = "step"
		}
		for _, s := range t.Samples {
			v, ok := value(s)
			at := s.Seconds
			if ok && byStep {
				at, ok = stepOf(o.Steps, s.Seconds)
			}
			if !ok || v <= 0 || len(tr.x) > 0 && at < tr.x[len(tr.x)-1] {
				continue
			}
			tr.x, tr.y = append(tr.x, at), append(tr.y, float64(v))
		}
		if len(tr.x) > 0 {
			out = append(out, tr)
		}
	}
	put(track{name: incident.Resident, resolution: 256 << 10, limit: limit(incident.Resident, nil)}, func(s incident.Sample) (int64, bool) { return s.Resident, true })
	if l := limit(incident.AddressSpace, nil); l != nil {
		put(track{name: incident.AddressSpace, resolution: 256 << 10, limit: l}, func(s incident.Sample) (int64, bool) { return s.AddressSpace, true })
	}
	devices := map[int]bool{}
	for _, s := range t.Samples {
		for _, d := range s.Devices {
			devices[d.Index] = true
		}
	}
	var list []int
	for d := range devices {
		list = append(list, d)
	}
	slices.Sort(list)
	for _, d := range list {
		own := slices.ContainsFunc(t.Samples, func(s incident.Sample) bool {
			return slices.ContainsFunc(s.Devices, func(x incident.DeviceSample) bool { return x.Index == d && x.Own != nil })
		})
		put(track{name: incident.DeviceMemory, device: &d, resolution: 2 << 20, limit: limit(incident.DeviceMemory, &d), foreign: !own}, func(s incident.Sample) (int64, bool) {
			for _, x := range s.Devices {
				switch {
				case x.Index != d:
				case !own:
					return x.Used, true
				case x.Own != nil:
					return *x.Own, true
				}
			}
			return 0, false
		})
	}
	if o.Diagnosis == nil {
		return out
	}
	for _, s := range o.Diagnosis.Series {
		if !memorySeries[s.Name] {
			continue
		}
		tr := track{name: s.Name, rank: s.Rank, per: "step", resolution: 1 << 20, fromLog: true}
		switch {
		case s.Name == "host_memory":
			tr.limit = limit(incident.Resident, nil)
		default:
			tr.limit = limit(incident.DeviceMemory, nil)
		}
		for _, p := range s.Points {
			if p.Step == nil || p.Value == nil || *p.Value <= 0 || !isFinite(*p.Value) {
				continue
			}
			x := float64(*p.Step)
			if n := len(tr.x); n > 0 && x <= tr.x[n-1] { // written again after a resume, or another epoch's
				if x == tr.x[n-1] {
					tr.y[n-1] = max(tr.y[n-1], *p.Value)
				}
				continue
			}
			tr.x, tr.y = append(tr.x, x), append(tr.y, *p.Value)
		}
		if len(tr.x) > 0 {
			out = append(out, tr)
		}
	}
	return out
}

// memorySeries are series of a log that are memory in use, in bytes.
var memorySeries = map[string]bool{"memory_allocated": true, "memory_reserved": true, "memory_used": true, "device_memory": true, "host_memory": true}

// concerns reports whether a kind of memory is that of a class of failures.
func concerns(name, class string) bool {
	host := name == incident.Resident || name == incident.AddressSpace || name == "host_memory" || name == incident.CgroupMemory
	switch evidence.Class(class) {
	case evidence.DeviceMemory:
		return !host
	case evidence.HostMemory, evidence.SharedMemory:
		return host
	}
	return true
}

// horizon is for how many times the length of the run a rise is carried on to the limit.
const horizon = 20

// trendOf judges one track of a run.
func trendOf(id string, t track, maxGrowth float64, failure *incident.FailurePoint) (incident.MemoryTrend, string) {
	g := growthOf(t.x, t.y, max(t.resolution, .0005*slices.Max(t.y)), t.per == "step")
	m := incident.MemoryTrend{Trial: id, Name: t.name, Device: t.device, Rank: t.rank, Per: t.per, Points: g.points, From: g.from, To: g.to, Shape: g.shape,
		Slope: g.slope, Error: g.err, Growth: int64(g.rise), Level: int64(g.level), Peak: int64(g.peak), Limit: t.limit}
	if !isFinite(m.Error) {
		m.Error = 0
	}
	what := memoryName(&m)
	rate := fmt.Sprintf("%s ± %s for each %s", bytesText(int64(m.Slope)), bytesText(int64(m.Error)), m.Per)
	if g.shape == incident.ShapeGrows {
		if m.Limit != nil && m.Slope > 0 {
			at := m.To + max(float64(*m.Limit)-g.level, 0)/m.Slope
			m.FitsTo = &at
		}
	}
	if t.per != "step" && (g.shape == incident.ShapeGrows || g.shape == incident.ShapeJumps || g.shape == incident.ShapeFlattens) {
		m.Shape, m.FitsTo = incident.ShapeStarts, nil
	}
	much := g.rise >= maxGrowth*g.level
	switch m.Shape {
	case incident.ShapeShort:
		m.Says = fmt.Sprintf("%s: %s behind the warm-up, too few to tell", what, counted(len(t.x), "point", "points"))
		return m, incident.Unknown
	case incident.ShapeFlat:
		m.Says = fmt.Sprintf("%s: level, %s at the end", what, bytesText(m.Level))
		return m, incident.Yes
	case incident.ShapeStarts:
		m.Says = fmt.Sprintf("%s rises, %s; without steps in the log that may be the program's start", what, rate)
		if !much {
			m.Says = fmt.Sprintf("%s rises by %s, %s, which is little", what, percentText(g.rise/g.level), rate)
			return m, incident.Yes
		}
		return m, incident.Unknown
	case incident.ShapeFlattens:
		m.Says = fmt.Sprintf("%s rises less and less, by about %s more", what, bytesText(int64(g.toCome)))
		if m.Limit != nil && g.level+2*g.toCome < float64(*m.Limit) || m.Limit == nil && g.toCome < 5*maxGrowth*g.level {
			return m, incident.Yes
		}
		return m, incident.Unknown
	case incident.ShapeJumps:
		m.Says = fmt.Sprintf("%s rose in a jump, by %s, and stayed there", what, bytesText(m.Growth))
		if much && g.lastJump > (m.From+m.To)/2 {
			m.Says += "; it came late, and whether more follow is not known"
			return m, incident.Unknown
		}
		return m, incident.Yes
	case incident.ShapeSawtooth:
		m.Says = fmt.Sprintf("%s rises and is given back, too seldom to see whether all of it is", what)
		if much {
			return m, incident.Unknown
		}
		return m, incident.Yes
	}
	m.Says = fmt.Sprintf("%s grows, %s", what, rate)
	soon := false
	if m.FitsTo != nil {
		span := m.To - m.From
		soon = *m.FitsTo <= m.To+horizon*span || failure != nil && failure.Step != nil && *m.FitsTo <= 2*float64(*failure.Step)
		m.Says += fmt.Sprintf("; at this rate it would not fit from step %s on (%s)", evidence.Count(int(min(*m.FitsTo, math.MaxInt32))), bytesText(*m.Limit))
	}
	switch {
	case t.foreign:
		m.Says += "; other processes' memory is in it"
		return m, incident.Unknown
	case much || soon:
		return m, incident.No
	}
	m.Says += fmt.Sprintf(", %s over the run", percentText(g.rise/g.level))
	return m, incident.Yes
}

// memoryName is what people call a kind of memory.
func memoryName(m *incident.MemoryTrend) string {
	s := map[string]string{incident.Resident: "memory of the processes", incident.AddressSpace: "address space", incident.DeviceMemory: "memory of the device",
		"memory_allocated": "memory in tensors", "memory_reserved": "memory reserved by the allocator", "memory_used": "memory in use", "device_memory": "memory of the device", "host_memory": "host memory"}[m.Name]
	if s == "" {
		s = words(m.Name)
	}
	if m.Device != nil {
		s += fmt.Sprintf(" %d", *m.Device)
	}
	if m.Rank != nil {
		s += fmt.Sprintf(" (rank %d)", *m.Rank)
	}
	return s
}

// slopeCheck asks whether memory grows over the steps of any run.
func (v *verifier) slopeCheck() {
	class := v.class()
	check := incident.VerificationCheck{Name: incident.CheckSlope, Figures: []incident.Figure{}, Trials: []string{}}
	steps := false
	type tally struct{ yes, no, unknown int }
	byName := map[string]*tally{}
	// The run that speaks most against it stands for its kind of memory.
	worst, severity, calm := map[string]*incident.MemoryTrend{}, map[string]int{}, map[string]*incident.MemoryTrend{}
	var order []string
	for i := range v.e.Runs {
		o := &v.e.Runs[i]
		steps = steps || len(o.Steps) >= 2 || o.LastStep != nil && *o.LastStep > 1
		for _, t := range tracksOf(o) {
			m, state := trendOf(o.Trial.ID, t, v.e.Request.MaxGrowth, v.out.Failure)
			v.out.Memory = append(v.out.Memory, m)
			if !concerns(t.name, class) && state != incident.No {
				continue
			}
			key := memoryName(&m)
			if byName[key] == nil {
				byName[key] = &tally{}
				order = append(order, key)
			}
			weight := 0
			switch state {
			case incident.Yes:
				byName[key].yes++
				calm[key] = &m
			case incident.No:
				byName[key].no++
				weight = 3
				check.Trials = append(check.Trials, o.Trial.ID)
			default:
				weight = 1
				if m.Shape != incident.ShapeShort { // a run that is too short says nothing, either way
					byName[key].unknown++
					weight = 2
				}
			}
			if w := worst[key]; w == nil || weight > severity[key] || weight == 3 && m.Slope > w.Slope {
				worst[key], severity[key] = &m, weight
			}
		}
	}
	check.Deciding = memoryClass(class) || v.e.Original == nil && steps
	var yes, unknown, no []*incident.MemoryTrend
	for _, key := range order {
		t := byName[key]
		switch {
		case t.no > 0 && 2*t.no < t.yes+t.no:
			unknown = append(unknown, worst[key])
			check.Deciding = true
		case t.no > 0:
			no = append(no, worst[key])
		case t.yes > 0 && t.unknown == 0:
			yes = append(yes, calm[key])
		default:
			unknown = append(unknown, worst[key])
		}
	}
	switch {
	case len(no) > 0:
		check.State = incident.No
		slices.SortStableFunc(no, func(a, b *incident.MemoryTrend) int { return cmp.Compare(fitsTo(a), fitsTo(b)) })
		check.Says = fmt.Sprintf("%s (in %d of %d runs).", upper(no[0].Says), byName[memoryName(no[0])].no, len(v.e.Runs))
		check.Figures = append(check.Figures, trendFigures(no[0])...)
	case len(yes) > 0 && (len(unknown) == 0 || unknownIsShort(unknown)):
		check.State, check.Says = incident.Yes, "Memory does not grow over the run ("+yes[0].Says+")."
		check.Figures = append(check.Figures, trendFigures(yes[0])...)
	case len(unknown) > 0:
		check.State, check.Says = incident.Unknown, upper(unknown[0].Says)+"."
		check.Figures = append(check.Figures, trendFigures(unknown[0])...)
		if unknown[0].Shape == incident.ShapeStarts {
			v.miss(incident.CheckSlope, "at which step the run was when its memory was sampled", "print a line with the step at every step, or at every tenth (step 120 loss 2.31), without buffering: python -u")
		} else {
			v.miss(incident.CheckSlope, "memory over enough of the run", "let the run be longer: at least 16 samples of memory lie between its first and its last step; or print the memory in use with each step")
		}
	default:
		check.State, check.Says = incident.Unknown, "No kind of memory that failed was seen over the run."
		v.miss(incident.CheckSlope, "memory of the "+classMemory(class)+" over the run", memoryHow(class))
	}
	v.add(check)
}

// fitsTo is where a trend reaches its limit, far away where it has none.
func fitsTo(m *incident.MemoryTrend) float64 {
	if m.FitsTo == nil || m.Per != "step" {
		return math.Inf(1)
	}
	return *m.FitsTo
}

// unknownIsShort reports whether all that is unknown has too few points to say anything.
func unknownIsShort(list []*incident.MemoryTrend) bool {
	return !slices.ContainsFunc(list, func(m *incident.MemoryTrend) bool { return m.Shape != incident.ShapeShort })
}

func classMemory(class string) string {
	if evidence.Class(class) == evidence.DeviceMemory {
		return "device"
	}
	return "processes"
}

func memoryHow(class string) string {
	if evidence.Class(class) == evidence.DeviceMemory {
		return "print torch.cuda.memory_allocated() and memory_reserved() with each step, or have nvidia-smi on the machine"
	}
	return "let the run be long enough for its memory to be sampled"
}

func trendFigures(m *incident.MemoryTrend) []incident.Figure {
	out := []incident.Figure{
		figure("slope", m.Slope, "bytes/"+m.Per, fmt.Sprintf("%s ± %s for each %s", bytesText(int64(m.Slope)), bytesText(int64(m.Error)), m.Per)),
		figure("growth", float64(m.Growth), "bytes", bytesText(m.Growth)),
	}
	if m.FitsTo != nil {
		out = append(out, figure("fits_to", *m.FitsTo, m.Per+"s", fmt.Sprintf("%s %.0f", m.Per, *m.FitsTo)))
	}
	return out
}

func figure(name string, value float64, unit, text string) incident.Figure {
	f := incident.Figure{Name: name, Unit: unit, Text: text}
	if isFinite(value) {
		f.Value = &value
	}
	return f
}

// peakCheck asks whether every run had the same peak of each kind of memory.
func (v *verifier) peakCheck() {
	class := v.class()
	check := incident.VerificationCheck{Name: incident.CheckPeak, State: incident.Unknown, Figures: []incident.Figure{}, Trials: []string{}, Deciding: memoryClass(class)}
	type peaks struct {
		m      incident.Measure
		values []int64
	}
	by := map[string]*peaks{}
	var order []string
	passed := 0
	for i := range v.e.Runs {
		t := &v.e.Runs[i].Trial
		if !ended(t) {
			continue
		}
		passed++
		for _, m := range t.Measures {
			if m.Peak <= 0 || m.Name == incident.AddressSpace && m.Limit == nil || m.Name == incident.CgroupMemory {
				continue // a cgroup's has the cache of files in it
			}
			key := measureName(m)
			if by[key] == nil {
				by[key] = &peaks{m: m}
				order = append(order, key)
			}
			p := by[key]
			p.values = append(p.values, m.Peak)
			p.m.AtLeast = p.m.AtLeast || m.AtLeast
		}
	}
	var bad, good, open string
	nearest := -1.0 // the memory that came nearest to its limit is the one to speak of
	for _, key := range order {
		p := by[key]
		if len(p.values) < 2 {
			continue
		}
		lo, hi := slices.Min(p.values), slices.Max(p.values)
		spread := hi - lo
		bound := int64(v.e.Request.MaxSpread * float64(hi))
		floor := int64(8 << 20) // pages of libraries and threads differ by that between any two starts
		if p.m.AtLeast {
			bound *= 2 // a peak between two samples is missed
		}
		bound = max(bound, floor)
		text := fmt.Sprintf("%s: peak %s to %s in %s", key, bytesText(lo), bytesText(hi), counted(len(p.values), "run", "runs"))
		if p.m.Limit != nil {
			text += fmt.Sprintf(", %s below the limit of %s", bytesText(*p.m.Limit-hi), bytesText(*p.m.Limit))
		}
		relevant := concerns(p.m.Name, class)
		stable := func(text string) {
			used := 0.0
			if p.m.Limit != nil && *p.m.Limit > 0 {
				used = float64(hi) / float64(*p.m.Limit)
			}
			if relevant && used > nearest {
				good, nearest = text, used
			}
		}
		switch {
		case spread <= bound:
			stable(text)
		case p.m.Limit != nil && hi+2*spread < *p.m.Limit:
			stable(text + ", which leaves room for such a difference")
		case !relevant:
			continue
		case p.m.Limit == nil:
			open = text + ": more apart than " + bytesText(bound) + ", and no limit is known"
		default:
			bad = text + ": more apart than " + bytesText(bound) + ", and the next run may need more"
		}
		if relevant {
			check.Figures = append(check.Figures, figure("peak", float64(hi), "bytes", text), figure("spread", float64(spread), "bytes", bytesText(spread)))
		}
	}
	switch {
	case bad != "":
		check.State, check.Says = incident.No, upper(bad)+"."
	case open != "":
		check.State, check.Says = incident.Unknown, upper(open)+"."
		v.miss(incident.CheckPeak, "whether peaks so far apart fit", "more runs (--runs), or --max-spread where the inputs differ between runs")
	case good != "":
		check.State, check.Says = incident.Yes, upper(good)+"."
	case passed < 2:
		check.Says = "The peak of memory is known of fewer than two runs that ended well."
		v.miss(incident.CheckPeak, "the peak of a second run", "--runs 2 or more")
	default:
		check.Says = "The peak of the memory that failed was not measured."
		v.miss(incident.CheckPeak, "peak memory of the "+classMemory(class), memoryHow(class))
	}
	v.add(check)
}

func measureName(m incident.Measure) string {
	return memoryName(&incident.MemoryTrend{Name: m.Name, Device: m.Device, Rank: m.Rank})
}
