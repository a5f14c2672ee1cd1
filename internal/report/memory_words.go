package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// several is plural with the thousands apart, for what there may be very many of.
func several(n int, what string) string {
	if n < 1000 {
		return plural(n, what)
	}
	return evidence.Count(n) + strings.TrimPrefix(plural(n, what), strconv.Itoa(n))
}

// share is part of whole in the thousandths that a bar is wide, 0 to 1000.
func share(part, whole int64) int64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return int64(min(float64(part)/float64(whole), 1) * 1000)
}

func percentOf(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

var answersInWords = map[string]string{incident.Avoided: "avoided", incident.NotAvoided: "not avoided", incident.CannotTell: "cannot tell"}

func answerWords(a string) string {
	if w := answersInWords[a]; w != "" {
		return w
	}
	return a
}

func answerTone(a string) string {
	switch a {
	case incident.Avoided:
		return "good"
	case incident.NotAvoided:
		return "bad"
	}
	return "open"
}

var plainWord = lazyre.New(`^[a-z]+[ :;,]`)

// deviceVerdict says in lines what the device's part of the page shows in full. The
// first line stands for the device where several are listed.
func deviceVerdict(d *memDevice) []labelled {
	var out []labelled
	put := func(label, text string) {
		if text != "" {
			if plainWord.MatchString(text) { // no setting, no call
				text = upper(text)
			}
			out = append(out, labelled{label, sentence(text)})
		}
	}
	v := memView{d.Snap, d.MemoryDevice}
	for _, l := range v.lines() {
		if plainWord.MatchString(l.Text) { // no setting, no call
			l.Text = upper(l.Text)
		}
		out = append(out, l)
	}
	for _, c := range d.Causes {
		if a := causeAdvice[c.Fact]; c.Value && a.says != "" {
			put("Proved", a.says+": "+c.Why)
		}
	}
	for i, o := range d.Pressure.OOMs {
		if i == 3 {
			put("Out of memory", fmt.Sprintf("%s more times", evidence.Count(len(d.Pressure.OOMs)-3+d.Pressure.MoreOOMs)))
			break
		}
		put("Out of memory", oomLine(&o))
	}
	put("Given back", flushLine(&d.Pressure))
	put("Near the limit", nearLine(&d.Pressure))
	put("Growth", growthLine(d.Growth))
	put("Fragmentation", fragmentationLine(&d.Fragmentation))
	put("Outside", outsideLine(d.Outside))
	out = append(out, replayLines(d)...)
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return evidence.Count(n) + " times"
}

// flushLine counts the runs of segments given back, and those of them that made room, or
// did not, for a request; "" where there are none.
func flushLine(p *incident.MemoryPressure) string {
	n := len(p.Flushes)
	if n == 0 {
		return ""
	}
	retried, failed := 0, 0
	var bytes int64
	for _, f := range p.Flushes {
		bytes += f.Bytes
		switch f.Before {
		case "segment":
			retried++
		case "oom":
			failed++
		}
	}
	if m := p.MoreFlushes; m != nil {
		n, bytes, retried, failed = n+m.Flushes, bytes+m.Bytes, retried+m.Segment, failed+m.OOM
	}
	s := fmt.Sprintf("segments were given back %s, %s in all", times(n), evidence.Bytes(bytes))
	switch {
	case retried+failed > 0 && failed == 0:
		s += fmt.Sprintf("; %s to make room for a request, each of which stops the device", times(retried))
	case retried+failed > 0:
		s += fmt.Sprintf("; %s to make room for a request, %s of them in vain; each stops the device", times(retried+failed), evidence.Count(failed))
	}
	return s
}

// nearLine is the share of the time near the limit, "" where it is not known or nothing
// to speak of.
func nearLine(p *incident.MemoryPressure) string {
	if p.Near == nil || *p.Near < 0.005 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the time near the limit (%s)", 100**p.Near, p.NearBasis)
}

func oomLine(o *incident.MemoryOOM) string {
	s := fmt.Sprintf("At event %s, %s were asked for with %s free on the device, %s reserved and %s active", evidence.Count(o.Event), evidence.Bytes(o.Request),
		evidence.Bytes(o.DeviceFree), evidence.Bytes(o.Reserved), evidence.Bytes(o.Active))
	if o.LargestFree != nil {
		s += fmt.Sprintf("; the largest free block had %s", evidence.Bytes(*o.LargestFree))
	}
	if o.Name != "" {
		s += "; asked for by " + o.Name
	}
	if o.Survived {
		s += fmt.Sprintf(". It was survived: %s followed", several(o.After, "allocation"))
	}
	return s
}

func growthLine(g *incident.MemoryGrowth) string {
	if g == nil {
		return ""
	}
	return g.Says
}

func fragmentationLine(f *incident.MemoryFragmentation) string {
	s := f.Says
	if f.Standing != "" {
		s = strings.TrimSuffix(s, ".") + " (" + layoutWords(f.Standing) + ")"
	}
	if f.Missing != "" {
		s = sentence(s) + " Missing: " + f.Missing
	}
	return s
}

// replayLines say whether the refused request could have fitted, and what other settings
// would have done.
func replayLines(d *memDevice) []labelled {
	r := d.Replay
	if r == nil {
		return nil
	}
	var out []labelled
	if l := r.Layout; l != nil {
		s := fmt.Sprintf("%s in use and the %s asked for at event %s do not fit into the room even without waste: no setting of the allocator avoids this", evidence.Bytes(l.InUse), evidence.Bytes(l.Request), evidence.Count(l.Event))
		if l.Fits {
			s = fmt.Sprintf("%s in use and the %s asked for at event %s would fit into the room; %s lay free in the reserve, the largest block %s", evidence.Bytes(l.InUse), evidence.Bytes(l.Request), evidence.Count(l.Event), evidence.Bytes(l.Free), evidence.Bytes(l.Largest))
		}
		out = append(out, labelled{"Layout", sentence(s)})
	}
	for i, a := range r.Answers {
		if i == 4 {
			out = append(out, labelled{"What if", fmt.Sprintf("%s more below.", several(len(r.Answers)-4, "answer"))})
			break
		}
		out = append(out, labelled{"What if", answerLine(&a)})
	}
	return out
}

// placeWords is a span in a snapshot as people find it: by what it is and its number.
func placeWords(sp *evidence.Span) string {
	switch sp.Kind {
	case "segment", "block", "event":
		if sp.Quote != "" {
			return oneLine(sp.Quote)
		}
		return fmt.Sprintf("%s %d", sp.Kind, sp.Index)
	}
	return where(sp)
}

// namesOf collects how the lists of a device name its stacks; where none does, it is by
// the user's own frame or the innermost.
func namesOf(d *incident.MemoryDevice) map[int]string {
	out := map[int]string{}
	put := func(uses []incident.MemoryUse) {
		for _, u := range uses {
			if u.Stack != nil && out[*u.Stack] == "" {
				out[*u.Stack] = u.Name
			}
		}
	}
	if d.Peak != nil {
		put(d.Peak.Stacks)
	}
	put(d.Live)
	if d.Growth != nil {
		for _, g := range d.Growth.Suspects {
			put([]incident.MemoryUse{g.MemoryUse})
		}
	}
	for i, s := range d.Stacks {
		switch {
		case out[i] != "":
		case s.Own != "" && len(s.Frames) > 0 && innermost(s.Frames[0]) != innermost(s.Own):
			out[i] = s.Own + ", " + innermost(s.Frames[0])
		case s.Own != "":
			out[i] = s.Own
		case len(s.Frames) > 0:
			out[i] = shortFrame(s.Frames[0])
		}
	}
	return out
}

// innermost is the function of a frame, without its parameters and namespaces; of
// at::_ops::linear::call, which only calls it, it is linear.
func innermost(frame string) string {
	name, _, _ := strings.Cut(frame, "(")
	parts := strings.Split(strings.TrimSpace(name), "::")
	n := len(parts) - 1
	if n > 0 && (parts[n] == "call" || parts[n] == "redispatch") {
		n--
	}
	if parts[n] == "" {
		return frame
	}
	return parts[n]
}

// longPath is all but the last two parts of a path in a frame.
var longPath = lazyre.New(`\([^()]*/([^/()]+/[^/()]+:\d+\))$`)

// shortFrame is a frame of Python with a short path, or one of C++ without parameters.
func shortFrame(frame string) string {
	if name, _, _ := strings.Cut(frame, "("); strings.Contains(name, "::") {
		return name
	}
	return longPath.ReplaceAllString(frame, "($1")
}
