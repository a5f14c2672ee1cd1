package report

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestTrackerReports compares the reports of some results with what they were.
func TestTrackerReports(t *testing.T) {
	all := trackerResults()
	for _, name := range []string{"show broken", "show filtered", "show resumed", "show several", "show finished", "align full", "align open", "repair full", "repair failed"} {
		file := strings.ReplaceAll(name, " ", "-")
		compare(t, filepath.Join("testdata", "tracker", file+".txt"), []byte(all[name].render(t, "text", Options{Width: 100})))
	}
	for _, name := range []string{"show several", "align full", "repair full"} {
		file := strings.ReplaceAll(name, " ", "-")
		compare(t, filepath.Join("testdata", "tracker", file+".md"), []byte(all[name].render(t, "markdown", Options{})))
		compare(t, filepath.Join("testdata", "tracker", file+".full.txt"), []byte(all[name].render(t, "text", Options{Width: 80, Full: true})))
	}
	compare(t, filepath.Join("testdata", "tracker", "show-broken.ascii.txt"), []byte(all["show broken"].render(t, "text", Options{Width: 60, ASCII: true})))
}

// TestTrackerWidths: no line is wider than the page, a short report has no more than 40
// lines of which the first five are labelled, colours change nothing else, and the same
// result gives the same bytes.
func TestTrackerWidths(t *testing.T) {
	colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
	first := map[string][]string{"show": {"Run", "Broke", "Last", "Status", "Damage"}, "align": {"Order", "Basis", "Clock", "After", "Of"}, "repair": {"Copy", "Did", "Real", "Checks", "Undo"}}
	for name, r := range trackerResults() {
		widths := []int{MinWidth, 47, 60, 80, 100, 131, MaxWidth}
		if name == "show wide" || name == "repair many" { // large
			widths = []int{MinWidth}
		}
		kind, shape, _ := strings.Cut(name, " ")
		verdict := kind != "show" || shape != "nothing" && shape != "gone"
		for _, format := range []string{"markdown", "json"} {
			if verdict && !Began([]byte(r.render(t, format, Options{}))) {
				t.Errorf("%s: the %s report is not known by its beginning", name, format)
			}
		}
		for _, width := range widths {
			for _, full := range []bool{false, true} {
				o := Options{Width: width, Full: full}
				text := r.render(t, "text", o)
				if again := r.render(t, "text", o); again != text {
					t.Errorf("%s, %d columns: two reports differ", name, width)
				}
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				if !full && len(lines) > 40 {
					t.Errorf("%s, %d columns: %d lines", name, width, len(lines))
				}
				for i, l := range lines {
					if columns(l) > width {
						t.Errorf("%s, %d columns: line %d has %d: %q", name, width, i+1, columns(l), l)
					}
					if strings.TrimRight(l, " ") != l {
						t.Errorf("%s, %d columns: line %d ends in blanks: %q", name, width, i+1, l)
					}
				}
				if verdict {
					if !Began([]byte(text)) {
						t.Errorf("%s: the report is not known by its beginning", name)
					}
					for i, label := range first[kind] {
						if !strings.HasPrefix(lines[i], pad(label, 7)) {
							t.Errorf("%s, %d columns: line %d is %q", name, width, i+1, lines[i])
						}
					}
				}
				o.Color = true
				if got := colours.ReplaceAllString(r.render(t, "text", o), ""); got != text {
					t.Errorf("%s, %d columns: colours change the text", name, width)
				}
			}
		}
	}
}

// TestTrackerPlots: a curve in ASCII has nothing else in it, in any width and height.
func TestTrackerPlots(t *testing.T) {
	for name, tr := range trackerShapes() {
		for i := range tr.Runs {
			r := &tr.Runs[i]
			for j := range r.Series[:min(len(r.Series), 4)] {
				c := curveOf(r, &r.Series[j])
				for _, width := range []int{1, 20, MinWidth, 77, MaxWidth} {
					for _, rows := range []int{2, 5, 10} {
						for _, ascii := range []bool{false, true} {
							lines := (&textPlot{width: width, rows: rows, ascii: ascii}).draw(c)
							if len(r.Series[j].Points) > 0 && len(lines) < rows+2 {
								t.Errorf("%s: %d lines for %d rows", name, len(lines), rows)
							}
							if text := strings.Join(lines, ""); ascii && strings.IndexFunc(text, func(r rune) bool { return r >= 0x7f || r < ' ' }) >= 0 {
								t.Errorf("%s: not ASCII: %q", name, text)
							}
							for _, l := range lines {
								if width >= MinWidth && columns(l) > width {
									t.Errorf("%s: %d columns of %d: %q", name, columns(l), width, l)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestCurve: what was written again is superseded, what is not finite is marked once, and
// a value that was healed by a resume is none of the curve.
func TestCurve(t *testing.T) {
	r := resumedRun()
	c := curveOf(&r, &r.Series[0])
	var past []float64
	for _, p := range c.pieces {
		past = append(past, p.past)
	}
	if len(past) != 3 || past[0] != 200 || past[1] != 380 {
		t.Errorf("superseded from %v", past)
	}
	now, gone := c.bad()
	if len(now) != 0 || !slices.Equal(gone, []stretch{{260, 300}}) {
		t.Errorf("not finite: %v, superseded %v", now, gone)
	}
	if !healed(&r, &r.Series[0]) {
		t.Error("not healed by the resume")
	}
	b := brokenRun()
	c = curveOf(&b, &b.Series[0])
	if now, gone := c.bad(); !slices.Equal(now, []stretch{{320, 500}}) || len(gone) != 0 {
		t.Errorf("not finite: %v, superseded %v", now, gone)
	}
	if x := c.firstBad(); x == nil || *x != 320 || healed(&b, &b.Series[0]) {
		t.Error("the loss of a broken run is whole again")
	}
	if by := curveOf(&b, &b.Series[3]).by; by != byTime {
		t.Errorf("a counter of the machine is drawn by %s", by)
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		log    bool
		ticks  string
	}{
		{"a loss", []float64{10.6, 1.8}, false, "2 4 6 8 10"}, {"decades", []float64{0.001, 2000}, true, "0.001 0.1 10 1e+03"}, {"zero among decades", []float64{0, 0.001, 2000}, true, "0.001 0.1 10 1e+03"},
		{"below zero", []float64{-5, 2000}, false, "0 500 1e+03 1.5e+03 2e+03"}, {"one value", []float64{3}, false, "2.7 2.8 2.9 3 3.1 3.2"}, {"none", nil, false, "0 0.2 0.4 0.6 0.8 1"}, {"zero", []float64{0}, false, "-1e-09 -5e-10 0 5e-10 1e-09"},
		{"large and alike", []float64{1e9, 1e9 + 2}, false, "1000000000 1000000000.5 1000000001 1000000001.5 1000000002"}, {"the largest", []float64{-1.7e308, 1.7e308}, false, "-1e+308 0 1e+308"}, {"the smallest", []float64{1e-307, 1e-300}, true, "1e-307 1e-304 1e-301"},
	} {
		s := &incident.TrackedSeries{}
		for i, v := range c.values {
			s.Points = append(s.Points, incident.TrackedPoint{Step: ptr(int64(i)), Value: incident.Number(v)})
		}
		got := scaleOf([]*curve{curveOf(&incident.TrackedRun{}, s)}, false)
		if words := strings.Join(tickWords(s, got.ticks(3)), " "); got.log != c.log || words != c.ticks {
			t.Errorf("%s: log %v, ticks %s; want %v, %s", c.name, got.log, words, c.log, c.ticks)
		}
		for _, v := range c.values {
			if f := got.at(v); !(f >= 0 && f <= 1) {
				t.Errorf("%s: %g stands at %g", c.name, v, f)
			}
		}
	}
}

// TestTrackerHostile: no text of a run steers a terminal or leaves its place.
func TestTrackerHostile(t *testing.T) {
	for name, r := range trackerResults() {
		if name == "show wide" || name == "repair many" {
			continue
		}
		poison(reflect.ValueOf(r.value))
		for _, format := range []string{"text", "markdown"} {
			for _, full := range []bool{false, true} {
				got := r.render(t, format, Options{Width: 80, Full: full})
				if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("%s, %s: %q", name, format, got[max(0, i-30):min(len(got), i+10)])
				}
				if format != "markdown" {
					continue
				}
				var b strings.Builder
				if err := goldmark.Convert([]byte(got), &b); err != nil {
					t.Fatal(err)
				}
				if html := b.String(); strings.Contains(html, "<script>") || strings.Contains(html, "raw HTML omitted") {
					t.Errorf("%s: markup in markdown", name)
				}
			}
		}
	}
}

// TestTrackerStored: a stored result renders as the one that was stored.
func TestTrackerStored(t *testing.T) {
	for name, r := range trackerResults() {
		if name == "show wide" {
			continue
		}
		b, err := json.Marshal(r.value)
		if err != nil {
			t.Fatal(err)
		}
		stored := reflect.New(reflect.TypeOf(r.value).Elem()).Interface()
		if err := json.Unmarshal(b, stored); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(stored)
		if err != nil || string(again) != string(b) {
			t.Errorf("%s is another after storing: %v", name, err)
		}
	}
}
