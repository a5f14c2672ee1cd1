package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"reflect"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of one page. What is beyond them is counted on the page, and is in the
// JSON report.
const (
	pageDevices = 64      // shown in full
	pageBuckets = 160_000 // of all timelines together, about 20 bytes each
	pageBlocks  = 40_000  // allocations drawn one by one, about 25 bytes each
	pageParts   = 60_000  // blocks in the segment maps
	pageStacks  = 4_000   // stacks that can be looked up for one device
	pageFrames  = 48      // of one stack
	tableRows   = 15
	marksShown  = 5_000
)

// A memPage is what the templates see of a result of inquest memory.
type memPage struct {
	*incident.Memory
	Title    string
	Tone     string
	Verdict  []labelled
	Devices  []*memDevice
	Beyond   int // devices not shown in full
	RankRows []memRank
	Policy   template.HTML
	Style    template.CSS
	Script   template.JS
}

// A memDevice is one device of one snapshot on the page.
type memDevice struct {
	*incident.MemoryDevice
	Snap      *incident.MemorySnapshot
	N         int
	ID, Title string
	Tone      string
	Verdict   []labelled
	Sketch    *memSketch
	Curve     []memCurveRow
	Data      template.JS

	names  map[int]string // of stacks, as the lists name them
	colour map[int]int    // stack -> its colour in the timeline; -1 is no stack
}

// A memRank is one row of the comparison of ranks.
type memRank struct {
	incident.MemoryRank
	File  string // its short name
	Href  string
	Spark string // points of a polyline, all ranks on one scale
}

// memoryScripts are the parts of the page's script, in the order of what needs what.
var memoryScripts = []string{"memory/data.js", "memory/timeline.js", "memory/chart.js", "memory/input.js", "memory/segments.js", "memory/page.js"}

// writeMemoryHTML writes one page that needs nothing else. Its policy allows exactly
// the styles and script that are in it, by hash, and no request. Verdict, sketch of the
// curve and tables are there without scripts; the script adds what can be zoomed.
func writeMemoryHTML(w io.Writer, m *incident.Memory, _ Options) error {
	p, t, err := memoryPageOf(m)
	if err != nil {
		return err
	}
	style, script := asset("page.css")+asset("memory/page.css"), scriptOf(memoryScripts...)
	p.Style, p.Script = template.CSS(style), template.JS(script)
	p.Policy = policyOf(style, script)
	if err := t.ExecuteTemplate(w, "page.html", p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// memoryPageOf is what the page of m consists of, the data of its drawings packed, and the
// templates that it is made with.
func memoryPageOf(m *incident.Memory) (*memPage, *template.Template, error) {
	p := newMemPage(cleanedMemory(m))
	for _, d := range p.Devices {
		raw, err := json.Marshal(packDevice(d, len(p.Devices))) // escapes <, > and &
		if err != nil {
			return nil, nil, fmt.Errorf("write report: %w", err)
		}
		d.Data = template.JS(visible(raw))
	}
	t, err := template.New("memory").Funcs(p.funcs()).ParseFS(assets, "assets/shared/*.html", "assets/memory/*.html")
	if err != nil {
		return nil, nil, fmt.Errorf("write report: %w", err)
	}
	return p, t, nil
}

// cleanedMemory is a copy of m in which no text can steer or reorder what surrounds
// it. Curves and allocations hold no text and are shared.
func cleanedMemory(m *incident.Memory) *incident.Memory {
	bare := *m
	bare.Snapshots = append([]incident.MemorySnapshot(nil), m.Snapshots...)
	for i := range bare.Snapshots {
		s := &bare.Snapshots[i]
		s.Devices = append([]incident.MemoryDevice(nil), s.Devices...)
		for j := range s.Devices {
			if t := s.Devices[j].Timeline; t != nil {
				s.Devices[j].Timeline = &incident.MemoryTimeline{Events: t.Events, Rest: t.Rest, Marks: t.Marks}
			}
		}
	}
	out := copyClean(reflect.ValueOf(&bare)).Interface().(*incident.Memory)
	for i := range out.Snapshots {
		for j := range out.Snapshots[i].Devices {
			if t := m.Snapshots[i].Devices[j].Timeline; t != nil {
				to := out.Snapshots[i].Devices[j].Timeline
				to.Buckets, to.Blocks = t.Buckets, t.Blocks
			}
		}
	}
	return out
}

func newMemPage(m *incident.Memory) *memPage {
	p := &memPage{Memory: m, Title: "GPU memory", Tone: "plain"}
	w := newWords(&incident.Incident{Artifacts: m.Artifacts})
	at := map[string]*memDevice{}
	several := false
	for i := range m.Snapshots {
		several = several || i > 0 || len(m.Snapshots[i].Devices) > 1
	}
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		for j := range s.Devices {
			if len(p.Devices) == pageDevices {
				p.Beyond++
				continue
			}
			d := newMemDevice(s, &s.Devices[j], len(p.Devices), len(m.Snapshots) > 1, short(w, s.Artifact))
			p.Devices = append(p.Devices, d)
			at[deviceKey(s.Artifact, d.Device)] = d
			if d.Tone == "bad" {
				p.Tone = "bad"
			}
			if several && m.Ranks == nil {
				text := d.Verdict[0].Text
				if (memView{s, d.MemoryDevice}).fatal() != nil {
					text = d.Verdict[1].Text
				}
				p.Verdict = append(p.Verdict, labelled{d.Title, text})
			}
		}
	}
	if all := views(m); len(all) > 0 {
		p.Title = memoryTitle(leadingView(all))
	}
	if len(p.Devices) == 0 {
		p.Verdict = append(p.Verdict, labelled{"Nothing", nothingShown(m)})
	}
	for _, s := range m.NotFound {
		p.Verdict = append(p.Verdict, labelled{"Not read", s})
	}
	p.rankRows(w, at)
	return p
}

// memoryTitle is a result of inquest memory in one line.
func memoryTitle(first memView) string {
	if o := first.fatal(); o != nil {
		return "GPU memory: a request of " + evidence.Bytes(o.Request) + " was refused"
	}
	return "GPU memory: peak " + evidence.Bytes(first.most())
}

// short is the shortest ending of a file's path that no other has.
func short(w *words, artifact string) string {
	if s, ok := w.short[artifact]; ok {
		return s
	}
	return artifact
}

func deviceKey(artifact string, device int) string { return fmt.Sprint(device, "\x00", artifact) }

// newMemDevice is device d; file is the short name of its file, where there are several.
func newMemDevice(s *incident.MemorySnapshot, d *incident.MemoryDevice, n int, several bool, file string) *memDevice {
	v := &memDevice{MemoryDevice: d, Snap: s, N: n, ID: fmt.Sprintf("device-%d", n+1), names: namesOf(d)}
	v.Title = fmt.Sprintf("GPU %d", d.Device)
	switch {
	case s.Rank != nil:
		v.Title = fmt.Sprintf("Rank %d, %s", *s.Rank, v.Title)
	case several:
		v.Title = fmt.Sprintf("%s, %s", file, v.Title)
	}
	if s.Host != nil && *s.Host != "" {
		v.Title += " on " + *s.Host
	}
	if (memView{s, d}).fatal() != nil {
		v.Tone = "bad"
	}
	v.Verdict = deviceVerdict(v)
	v.colour = stackColours(d)
	if t := d.Timeline; t != nil && len(t.Buckets) > 0 {
		v.Sketch, v.Curve = sketchOf(t), curveRows(t)
	}
	return v
}

// rankRows draws every rank's active curve on the scale of the largest.
func (p *memPage) rankRows(w *words, at map[string]*memDevice) {
	if p.Ranks == nil {
		return
	}
	var top int64
	for _, d := range at {
		if d.Sketch != nil {
			top = max(top, d.Sketch.Top)
		}
	}
	for _, r := range p.Ranks.Rows {
		row := memRank{MemoryRank: r, File: short(w, r.Artifact)}
		if d := at[deviceKey(r.Artifact, r.Device)]; d != nil {
			row.Href = "#" + d.ID
			if d.Sketch != nil {
				row.Spark = polyline(shrink(d.Timeline.Buckets, 120), top, false, func(b *incident.MemoryBucket) int64 { return b.ActiveMax })
			}
		}
		p.RankRows = append(p.RankRows, row)
	}
}

// funcs are the words that the templates use.
func (p *memPage) funcs() template.FuncMap {
	return template.FuncMap{
		"setting": settingWords, "signed": signed,
		"tool": toolWords, "bytes": evidence.Bytes, "count": evidence.Count, "sentence": sentence, "upper": upper, "plural": several, "time": timeWords, "deref": func(v any) string { return deref(v) },
		"optBytes": func(v *int64) string {
			if v == nil {
				return "–"
			}
			return evidence.Bytes(*v)
		},
		"at":    func(sp evidence.Span) string { return placeWords(&sp) },
		"top":   func(u []incident.MemoryUse) []incident.MemoryUse { return u[:min(len(u), tableRows)] },
		"left":  func(n int) int { return max(0, n-tableRows) },
		"rows":  func() int { return tableRows },
		"share": share, "answer": answerWords, "answerTone": answerTone, "percent": percentOf, "settings": settingsInForce, "says": func(c incident.MemoryCause) string { return shownWords(&c) },
		"addr": func(a uint64) string { return fmt.Sprintf("0x%x", a) },
	}
}

// StackOf returns stack i of the device's, nil where there is none.
func (d *memDevice) StackOf(i *int) *incident.MemoryStack {
	if i == nil || *i < 0 || *i >= len(d.Stacks) {
		return nil
	}
	return &d.Stacks[*i]
}

// Frames are the innermost frames of a stack, as many as a page shows.
func (d *memDevice) Frames(s *incident.MemoryStack) []string { return first(s.Frames, pageFrames) }

// Key is the class that colours what stack i allocated, "" where it has no colour of
// its own.
func (d *memDevice) Key(i *int) string {
	stack := -1
	if i != nil {
		stack = *i
	}
	if c, ok := d.colour[stack]; ok && c < stackHues {
		return fmt.Sprintf("k%d", c)
	}
	return "kx"
}

// Whole is what the shares of the peak are of.
func (d *memDevice) Whole() int64 {
	if d.Peak == nil {
		return 0
	}
	return d.Peak.Active
}
