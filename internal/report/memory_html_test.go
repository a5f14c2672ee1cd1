package report

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/inquest-dev/inquest/internal/incident"
)

var pages = flag.String("pages", "", "write the pages that scripts/check-memory-html.sh opens in a browser to this folder")

func memoryPage(t testing.TB, m *incident.Memory) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeMemoryHTML(&b, m, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMemoryPages writes pages for a browser where it is asked to.
func TestMemoryPages(t *testing.T) {
	if *pages == "" {
		t.Skip("no folder for pages was named with -pages")
	}
	for _, p := range []struct {
		name               string
		ranks, events, per int
	}{{"million", 1, 1_000_000, 10}, {"ten-million", 1, 10_000_000, 100}, {"ranks", 4, 60_000, 4}, {"exact", 1, 20_000, 1}} {
		page := memoryPage(t, memorySample(p.ranks, p.events, p.per))
		if err := os.WriteFile(filepath.Join(*pages, p.name+".html"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sparse has a device without history, one with an empty one, and a snapshot without
// devices.
func sparse() *incident.Memory {
	return &incident.Memory{Schema: incident.MemorySchema, Snapshots: []incident.MemorySnapshot{
		{Artifact: "a.pickle", Devices: []incident.MemoryDevice{{Totals: incident.MemoryTotals{Segments: 1, Reserved: 2 << 20}}, {Device: 1, Timeline: &incident.MemoryTimeline{}}}},
		{Artifact: "b.pickle"},
	}}
}

// TestMemoryPage holds pages to what TestPage says, finds the verdict in what needs no
// script, and expects the same bytes again.
func TestMemoryPage(t *testing.T) {
	for name, m := range map[string]*incident.Memory{
		"one": memorySample(1, 4000, 3), "ranks": memorySample(3, 2000, 1), "sparse": sparse(), "nothing": {Schema: incident.MemorySchema, NotFound: []string{"gone.pickle"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := json.Marshal(m)
			page := memoryPage(t, m)
			checkMarkup(t, page, func(body string) {
				var p packed
				unmarshal(t, []byte(body), &p)
			})
			if page != memoryPage(t, m) {
				t.Error("the same memory gave another page")
			}
			if after, _ := json.Marshal(m); !bytes.Equal(before, after) {
				t.Error("rendering changed the memory")
			}
			for _, s := range m.NotFound {
				if !strings.Contains(page, s) {
					t.Errorf("the page does not say that %s was not read", s)
				}
			}
		})
	}
	plain := memoryPage(t, memorySample(1, 4000, 3))
	plain = plain[:strings.Index(plain, "<script")]
	for _, s := range []string{"active of", "Yes: a request of 2.00 GiB was refused at event", "2.00 GiB were asked for with 512.00 MiB free on the device", "expandable_segments:True: avoided", "3.00 GiB below the room",
		"max_split_size_mb:128: not avoided", "garbage_collection_threshold:0.8: cannot tell", "the change to make", "train.py:112 losses.append", "120 are not listed", "Allocation timeline", "(supported, not proved)", "given back 2 times", "31 % of the time", "would fit into the room"} {
		if !strings.Contains(plain, s) {
			t.Errorf("without scripts the page does not say: %s", s)
		}
	}
}

// fill sets every text in v to s.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), s)
		}
	}
}

// TestMemoryPageOfHostileTexts gives every field a text that tries to be more.
func TestMemoryPageOfHostileTexts(t *testing.T) {
	for _, s := range []string{
		`</script><script>alert(1)</script>`, `<!--<script>`, `]]>"'><img src=x onerror=alert(1)>`, "`${alert(1)}`", "\u202egnp.exe\u2066\u200b", "a\x00b\x1b[31mc\x07\u009b2J", "\xff\xfe broken", `{{.Tool}} </style> &lt;`, "line\nline\u2028line",
		strings.Repeat("a\u0301\u0302\u0303\u0304\u0305\u0306", 40), strings.Repeat("long", 9000),
	} {
		m := memorySample(2, 400, 1)
		for i := range m.Snapshots {
			m.Snapshots[i].Devices[0].Segments = m.Snapshots[i].Devices[0].Segments[:2]
		}
		m.Change = &incident.MemoryChange{Grown: []incident.MemoryUse{{}}, Shrunk: []incident.MemoryUse{{}}}
		m.Limits = []incident.Statement{{}}
		fill(reflect.ValueOf(m), s)
		page := memoryPage(t, m)
		checkMarkup(t, page, func(body string) {
			var p packed
			unmarshal(t, []byte(body), &p)
		})
		if strings.Count(page, "<script") != 3 { // two data elements and the script
			t.Errorf("%q: %d script elements", s, strings.Count(page, "<script"))
		}
		for i, r := range page {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%.20q: %U in the page after %q", s, r, page[max(0, i-40):i])
			}
		}
	}
}

func unpackColumn(t *testing.T, c string) []int64 {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(c)
	if err != nil {
		t.Fatal(err)
	}
	var out []int64
	for len(b) > 0 {
		v, n := binary.Varint(b)
		if n <= 0 {
			t.Fatal("a torn column")
		}
		out, b = append(out, v), b[n:]
	}
	return out
}

// TestMemoryPageKeepsTheCurve reads buckets and allocations back from the page.
func TestMemoryPageKeepsTheCurve(t *testing.T) {
	m := memorySample(1, 3000, 2)
	d := &m.Snapshots[0].Devices[0]
	page := memoryPage(t, m)
	var got struct {
		Curve, Blocks map[string]string
		Events        int
	}
	checkMarkup(t, page, func(body string) { unmarshal(t, []byte(body), &got) })
	column := func(name string) []int64 { return unpackColumn(t, got.Curve[name]) }
	from, low, high, peak := column("from"), column("active_min"), column("active"), column("peak")
	if len(from) != len(d.Timeline.Buckets) || got.Events != d.Timeline.Events {
		t.Fatalf("%d buckets of %d events, not %d of %d", len(from), got.Events, len(d.Timeline.Buckets), d.Timeline.Events)
	}
	for i, b := range d.Timeline.Buckets {
		if i > 0 {
			from[i] += from[i-1]
			low[i] += low[i-1]
		}
		if int(from[i]) != b.From || low[i] != b.ActiveMin || low[i]+high[i] != b.ActiveMax || from[i]+peak[i] != int64(b.PeakAt) {
			t.Fatalf("bucket %d: from %d, active %d to %d, peak +%d; it is %+v", i, from[i], low[i], low[i]+high[i], peak[i], b)
		}
	}
	sizes := unpackColumn(t, got.Blocks["bytes"])
	if len(sizes) != len(d.Timeline.Blocks) {
		t.Errorf("%d allocations, not %d", len(sizes), len(d.Timeline.Blocks))
	}
}

// TestShrinkHidesNoPeak compares what shrink leaves with all that it was given.
func TestShrinkHidesNoPeak(t *testing.T) {
	d := trainingRun(5000, 1, 100, 5)
	all := d.Timeline.Buckets
	for _, n := range []int{1, 2, 7, 100, 999, len(all), len(all) + 1} {
		some := shrink(all, n)
		if len(some) > n || some[0].From != all[0].From || some[len(some)-1].To != all[len(all)-1].To {
			t.Fatalf("%d: %d buckets from %d to %d", n, len(some), some[0].From, some[len(some)-1].To)
		}
		for _, s := range some {
			want := incident.MemoryBucket{From: s.From, To: s.To, ActiveMin: 1 << 60, ReservedMin: 1 << 60, PeakAt: s.PeakAt}
			for _, b := range all {
				if b.From < s.From || b.To > s.To {
					continue
				}
				want.ActiveMin, want.ActiveMax = min(want.ActiveMin, b.ActiveMin), max(want.ActiveMax, b.ActiveMax)
				want.ReservedMin, want.ReservedMax = min(want.ReservedMin, b.ReservedMin), max(want.ReservedMax, b.ReservedMax)
				if b.From == s.From {
					want.Time = b.Time
				}
			}
			if s != want || all[s.PeakAt].ActiveMax != s.ActiveMax {
				t.Fatalf("%d: %+v, not %+v", n, s, want)
			}
		}
	}
}

// TestMemoryPageStaysSmall bounds the page by what it shows, not by what it is given.
func TestMemoryPageStaysSmall(t *testing.T) {
	m := memorySample(1, 200_000, 1)
	if n := len(memoryPage(t, m)); n > 6<<20 {
		t.Errorf("a page of %d buckets has %d bytes", len(m.Snapshots[0].Devices[0].Timeline.Buckets), n)
	}
	d := m.Snapshots[0].Devices[0]
	m.Snapshots = nil
	for r := range 300 {
		m.Snapshots = append(m.Snapshots, incident.MemorySnapshot{Artifact: fmt.Sprintf("%d.pickle", r), Devices: []incident.MemoryDevice{d}})
	}
	page := memoryPage(t, m)
	if n := len(page); n > 16<<20 {
		t.Errorf("a page of 300 devices has %d bytes", n)
	}
	if !strings.Contains(page, "236 more devices not shown in full") {
		t.Error("the page does not say what it leaves out")
	}
}
