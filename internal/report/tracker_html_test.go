package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestTrackerPages writes pages for a browser where it is asked to.
func TestTrackerPages(t *testing.T) {
	if *pages == "" {
		t.Skip("no folder for pages was named with -pages")
	}
	all := trackerResults()
	for _, name := range []string{"show broken", "show filtered", "show resumed", "show several", "show all-nan", "show one-point", "show huge", "show far", "show no-places", "show wide", "show long", "align full", "align open", "repair full"} {
		r := all[name]
		file := filepath.Join(*pages, strings.ReplaceAll(name, " ", "-")+".html")
		if err := os.WriteFile(file, []byte(r.render(t, "html", Options{})), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrackerPage holds pages to what TestPage says, finds the verdict in what needs no
// script, and expects the same bytes again and the result as it was.
func TestTrackerPage(t *testing.T) {
	for name, r := range trackerResults() {
		before, _ := json.Marshal(r.value)
		page := r.render(t, "html", Options{})
		checkMarkup(t, page, func(body string) {
			var p map[string]any
			unmarshal(t, []byte(body), &p)
		})
		if len(page) > 6<<20 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if page != r.render(t, "html", Options{}) {
			t.Errorf("%s: the same result gave another page", name)
		}
		if after, _ := json.Marshal(r.value); string(before) != string(after) {
			t.Errorf("%s: rendering changed the result", name)
		}
		if !Began([]byte(page)) {
			t.Errorf("%s: the page is not known by its beginning", name)
		}
	}
	for name, words := range map[string][]string{
		"show broken":   {"train/grad_norm is +Inf at step 300", "it began in steps 291 to 300", "running or dead", "class=\"shade\"", "class=\"badtick\"", "1 place", "batch_size"},
		"show filtered": {"class=\"doubt\"", "may stand for values that were not finite", "logging_nan_inf_filter"},
		"show resumed":  {"class=\"resume\"", "l0 past", "steps 200 to 300 stand twice"},
		"show several":  {"TensorBoard run exp/a", "Disagreements", "2 of 9 paths were passed over"},
		"align full":    {"class=\"event\"", "2 h ahead", "Recorded after the end", "CUDA out of memory. Tried to allocate 2.00 GiB", "slurm-812.out:512"},
		"repair full":   {"40 dropped", "inquest/failed_segment", "Left in, and perhaps not real", "k3v9-fix1", "every finite value of the source is in the copy"},
	} {
		plain, _, _ := strings.Cut(trackerResults()[name].render(t, "html", Options{}), "<script")
		for _, w := range words {
			if !strings.Contains(html.UnescapeString(plain), w) {
				t.Errorf("%s: the page without its script lacks %q", name, w)
			}
		}
	}
}

// TestTrackerPageHostile: no text of a run is markup in a page.
func TestTrackerPageHostile(t *testing.T) {
	for name, r := range trackerResults() {
		if name == "show wide" || name == "repair many" {
			continue
		}
		poison(reflect.ValueOf(r.value))
		page := r.render(t, "html", Options{})
		checkMarkup(t, page, func(body string) {
			var p map[string]any
			unmarshal(t, []byte(body), &p)
		})
		for _, s := range []string{" <script> ", "\x1b", "\u202e", "\x07"} {
			if strings.Contains(page, s) {
				t.Errorf("%s: %q got through", name, s)
			}
		}
	}
}

// TestThin: the extremes, the ends and the first value that is not finite stay.
func TestThin(t *testing.T) {
	s := &incident.TrackedSeries{}
	for i := range int64(10_000) {
		v := math.Sin(float64(i))
		switch i {
		case 4321:
			v = -50
		case 7000:
			v = 1e9
		case 8123:
			v = math.NaN()
		}
		s.Points = append(s.Points, incident.TrackedPoint{Step: ptr(i), Value: incident.Number(v)})
	}
	dots := curveOf(&incident.TrackedRun{}, s).pieces[0].dots
	for _, n := range []int{50, 400, 9999} {
		got := thin(dots, n)
		if len(got) > n+5 {
			t.Errorf("%d dots of %d", len(got), n)
		}
		for _, x := range []float64{0, 4321, 7000, 8123, 9999} {
			if !slices.ContainsFunc(got, func(d dot) bool { return d.x == x }) {
				t.Errorf("thinned to %d: the dot at %g is gone", n, x)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b dot) int { return int(a.x - b.x) }) {
			t.Errorf("thinned to %d: out of order", n)
		}
	}
}
