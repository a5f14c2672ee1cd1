package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// classWords name a fault's class as people do.
var classWords = map[string]string{
	"device_memory": "out of device memory", "host_memory": "out of host memory", "shared_memory": "shared memory full",
	"nonfinite": "non-finite values", "collective": "a collective failed", "device_fault": "device fault", "cuda_error": "CUDA error",
	"process_exit": "a process ended", "external_stop": "stopped from outside", "storage": "storage failure", "environment": "environment problem",
	"data": "bad data", "code": "an error in the code", "hang": "a hang",
}

func class(c string) string {
	if w, ok := classWords[c]; ok {
		return w
	}
	if c == "" {
		return "unknown kind"
	}
	return c
}

// toolWords name what wrote the incident. A build without a version is of
// source.
func toolWords(t incident.Tool) string {
	if t.Version == "source" {
		return t.Name + ", built from source"
	}
	return t.Name + " " + t.Version
}

// where is a span as people cite it: file:line.
func where(sp *evidence.Span) string {
	if sp == nil {
		return ""
	}
	name := sp.Artifact
	switch {
	case sp.Line > 0:
		return name + ":" + strconv.FormatInt(sp.Line, 10)
	case sp.Row > 0:
		return fmt.Sprintf("%s row %d", name, sp.Row)
	case sp.Pointer != "":
		return name + " " + sp.Pointer
	case sp.Kind == "event" || sp.Kind == "block": // of a memory snapshot
		return fmt.Sprintf("%s GPU %d %s %d", name, sp.Device, sp.Kind, sp.Index)
	case sp.Offset > 0:
		return fmt.Sprintf("%s byte %d", name, sp.Offset)
	}
	return name
}

// A words is an incident with the names that its artifacts have in short.
type words struct {
	inc   *incident.Incident
	short map[string]string // artifact -> shortest ending of its path that no other has
}

func newWords(inc *incident.Incident) *words {
	w := &words{inc: inc, short: map[string]string{}}
	ends := map[string]int{}
	for _, a := range inc.Artifacts {
		for _, e := range endings(a.Path) {
			ends[e]++
		}
	}
	for _, a := range inc.Artifacts {
		for _, e := range endings(a.Path) {
			if ends[e] == 1 {
				w.short[a.Path] = e
				break
			}
		}
	}
	return w
}

// endings are the endings of a path at its separators, the shortest first.
func endings(name string) []string {
	var out []string
	for i := len(name) - 1; i > 0; i-- {
		if (name[i-1] == '/' || name[i-1] == '!') && i < len(name)-1 {
			out = append(out, name[i:])
		}
	}
	return append(out, name)
}

// near cites a span by the short name of its artifact, for lines with little
// room.
func (w *words) near(sp *evidence.Span) string {
	if sp == nil {
		return ""
	}
	short := *sp
	if s, ok := w.short[sp.Artifact]; ok {
		short.Artifact = s
	}
	return where(&short)
}

// who names the process an event is about.
func who(e *incident.Event) string {
	var p []string
	if e.Rank != nil {
		p = append(p, "rank "+strconv.Itoa(*e.Rank))
	}
	if e.Host != nil {
		p = append(p, "on "+*e.Host)
	}
	if e.Device != nil {
		p = append(p, "GPU "+strconv.Itoa(*e.Device))
	}
	return strings.Join(p, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		what += "e"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// number prints a value with up to five significant digits.
func number(f float64) string { return strconv.FormatFloat(f, 'g', 5, 64) }

// first is the beginning of a list, with a note of what it leaves out.
func first(all []string, n int) []string {
	if len(all) > n {
		all = append(slices.Clone(all[:n]), fmt.Sprintf("… %d more", len(all)-n))
	}
	return all
}

func lower(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && (s[1] < 'A' || s[1] > 'Z') {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// ranksWords lists ranks as ranges: 0-3, 5, 7-9.
func ranksWords(r []int) string {
	list := strings.ReplaceAll(evidence.RankRanges(r), ",", ", ")
	switch len(r) {
	case 0:
		return ""
	case 1:
		return "rank " + list
	}
	return "ranks " + list
}

// citeList lists spans as file:line, each once, at most n; more says whether
// there were others.
func (w *words) citeList(spans []evidence.Span, n int) (out []string, more bool) {
	seen := map[string]bool{}
	for i := range spans {
		s := w.near(&spans[i])
		if s == "" || seen[s] {
			continue
		}
		seen[s] = true
		if len(out) == n {
			return out, true
		}
		out = append(out, s)
	}
	return out, false
}

// cites is citeList as text; after the first line of a file only the numbers of
// its other lines follow.
func (w *words) cites(spans []evidence.Span, n int) string {
	out, more := w.citeList(spans, n)
	file := ""
	for i, c := range out {
		if j := strings.LastIndexByte(c, ':'); j > 0 {
			if c[:j] == file {
				out[i] = c[j:]
			}
			file = c[:j]
		}
	}
	if more {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

func (w *words) goodWords(g *incident.LastGood) string {
	var p []string
	if g.Step != nil {
		p = append(p, fmt.Sprintf("step %d", *g.Step))
	}
	if g.Loss != nil {
		p = append(p, "loss "+number(*g.Loss))
	} else if g.Value != "" {
		p = append(p, g.Value)
	}
	s := strings.Join(p, ", ")
	if g.Span != nil {
		s = strings.TrimSpace(s + " (" + w.near(g.Span) + ")")
	}
	return s
}

// bracketWords say between which logged values a series became non-finite, ""
// where that is not known.
func (w *words) bracketWords(o incident.Order) string {
	b := o.NonfiniteBracket
	if b == nil || b.FirstSeen == nil {
		return ""
	}
	s := "first seen: " + w.goodWords(b.FirstSeen)
	if b.LastFinite != nil {
		s = "last finite: " + w.goodWords(b.LastFinite) + "; " + s
	}
	if b.Stride != nil && *b.Stride > 1 {
		s += fmt.Sprintf("; logged every %d steps, so it began in between", *b.Stride)
	}
	switch b.Trust {
	case "filtered":
		s += "; this logger replaces non-finite values, so finite ones before it prove nothing"
	case "omitted":
		s += "; this logger leaves non-finite values out"
	case "smoothed":
		s += "; the values are averages, so it may have begun earlier"
	}
	return s
}

// listed joins what a bounded list shows with a note of what it leaves out.
func listed(all []string, n int) string {
	return strings.Join(first(all, n), ", ")
}

// readWords counts artifacts by fate and what was passed over.
func (w *words) readWords() string {
	inc := w.inc
	total := len(inc.Artifacts)
	if total == 0 {
		return "nothing."
	}
	fates := map[string][]string{}
	for _, a := range inc.Artifacts {
		name := a.Path
		if e, ok := w.short[a.Path]; ok {
			name = e
		}
		if a.Fate == "not recognised" && a.Note != "" { // the other fates have a line of their own
			name += ": " + a.Note
		}
		fates[a.Fate] = append(fates[a.Fate], name)
	}
	s := plural(total, "artifact")
	if len(fates["read"]) == total {
		s += ", read in full"
	} else {
		var parts []string
		if n := len(fates["read"]); n > 0 {
			parts = append(parts, fmt.Sprintf("%d read in full", n))
		}
		for _, f := range []string{"partly read", "unreadable", "over limit", "not recognised"} {
			if l := fates[f]; len(l) > 0 {
				parts = append(parts, fmt.Sprintf("%d %s (%s)", len(l), f, listed(l, 3)))
			}
		}
		s += ": " + strings.Join(parts, ", ")
	}
	n, b := int64(0), int64(0)
	for _, p := range inc.PassedOver {
		n += p.Count
		b += p.Bytes
	}
	if n > 0 {
		s += fmt.Sprintf("; %s of no known kind passed over (%s)", plural(int(n), "file"), evidence.Bytes(b))
	}
	return s + "."
}

func upper(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
