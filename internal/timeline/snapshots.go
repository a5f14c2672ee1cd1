package timeline

import (
	"maps"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// fromSnapshots makes failures of the refused requests with which the histories of
// memory snapshots end, where nothing else tells of the run: then they are all that is
// known of it. Where there is a log, its own words count, and a snapshot may be of
// another run.
func (t *Timeline) fromSnapshots() {
	for i := range t.Sources {
		if runlike(&t.Sources[i]) {
			return
		}
	}
	items := make([]*Item, 0, len(t.Items))
	for _, it := range t.Items {
		items = append(items, it)
		if it.Kind != evidence.MemSnapshotOOM || !it.Attrs["last"].True() || followed(t.Sources[it.Source].Events, &it.Event) {
			continue
		}
		e := it.Event
		e.Kind, e.Attrs = evidence.DeviceOOM, maps.Clone(it.Attrs)
		delete(e.Attrs, "event")
		delete(e.Attrs, "last")
		e.Stack = ofPython(e.Stack)
		e.Attrs["form"] = evidence.TextOf("snapshot")
		asked := evidence.DriverRequest(it.Attrs["requested"].Lo)
		e.Attrs["requested"] = evidence.SizeOf(asked, asked)
		items = append(items, &Item{Event: e, Source: it.Source, Attempt: -1})
	}
	t.Items = items
}

// ofPython are the frames of a program's own language: what a stack is judged by.
func ofPython(stack []evidence.Frame) (out []evidence.Frame) {
	for _, f := range stack {
		if f.Line > 0 && (strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<")) {
			out = append(out, f)
		}
	}
	return out
}

// followed reports whether the history of e's device has a later refused request.
func followed(events []evidence.Event, e *evidence.Event) bool {
	for i := range events {
		if x := &events[i]; x.Kind == e.Kind && x.Span.Device == e.Span.Device && x.Span.Index > e.Span.Index {
			return true
		}
	}
	return false
}
