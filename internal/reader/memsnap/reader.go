package memsnap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// New returns the reader of memory snapshots and memory timelines.
func New() reader.Reader { return memsnap{} }

type memsnap struct{}

func (memsnap) Name() string { return "memsnap" }

// Sniff claims pickles with the keys of a snapshot at their head, the page of
// trace_plot, and lists of numbers that are called a memory timeline.
func (memsnap) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	switch {
	case isPickle(head):
		return sniffPickle(head)
	case isHTML(head):
		if bytes.Contains(head, []byte("MemoryViz")) || bytes.Contains(head, []byte("base64")) && bytes.Contains(head, []byte("snapshot")) {
			return reader.Sure
		}
	case isTimeline(head):
		name := strings.ToLower(a.Path)
		if strings.Contains(name, "mem") || strings.Contains(name, "timeline") {
			return reader.Likely
		}
	}
	return reader.No
}

// sniffPickle looks for keys: dicts begin with them, in the order of their writer.
func sniffPickle(head []byte) reader.Confidence {
	key := func(k string) bool {
		return bytes.Contains(head, append([]byte{byte(len(k))}, k...)) || bytes.Contains(head, append([]byte{byte(len(k)), 0, 0, 0}, k...))
	}
	switch {
	case key("pg_config"), key("collective_seq_id"): // a flight recorder's
		return reader.No
	case key("device_traces"),
		key("total_size") && key("segment_type"), key("total_size") && key("blocks"),
		key("segments") && (key("total_size") || key("allocator_settings") || key("external_annotations")),
		key("allocator_settings") && key("PYTORCH_CUDA_ALLOC_CONF"):
		return reader.Sure
	case key("action") && key("addr") && key("size"), key("segments") && key("device"), key("external_annotations") && key("stage"):
		return reader.Likely
	}
	return reader.No
}

// Read reads one snapshot. What lies behind it in the file is not looked at, but read,
// so that the digest is the file's.
func (memsnap) Read(ctx context.Context, in reader.Input, sink reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	got, err := decode(ctx, rc, Options{Artifact: in.Artifact.Path})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	span := evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}
	if err != nil {
		var at *pickle.Error
		if errors.As(err, &at) {
			span.Offset = at.Offset
		}
		sink.Damage(span, err)
	} else {
		for _, d := range got.Damage {
			span.Offset = got.at(d.Offset)
			sink.Damage(span, errors.New(d.Text))
		}
		if s, ok := sink.(reader.Snapshots); ok {
			s.MemSnapshot(got.MemSnapshot)
		}
		say(got, in.Artifact, sink)
	}
	if _, err := io.Copy(io.Discard, reader.Stopping(ctx, rc)); err != nil {
		return err
	}
	return ctx.Err()
}

// at is the place in the artifact of an offset in its pickle.
func (r *result) at(offset int64) int64 {
	if r.html {
		return r.start + offset/3*4
	}
	return offset
}

// say hands over what the snapshot shows of each device.
func say(r *result, a evidence.Artifact, sink reader.Sink) {
	if r.Timeline != nil {
		sayTimeline(r, a, sink)
		return
	}
	for d := range r.Devices() {
		if _, ok := r.first[d]; !ok {
			continue
		}
		e := event(evidence.MemSnapshotted, a, d)
		total := r.totals(d)
		e.Attrs["form"] = evidence.TextOf(r.Form)
		e.Attrs["segments"], e.Attrs["blocks"] = evidence.IntOf(int64(total.segments)), evidence.IntOf(int64(total.blocks))
		bytes := func(name string, n int64) { e.Attrs[name] = evidence.SizeOf(max(n, 0), max(n, 0)) }
		bytes("reserved", total.reserved)
		bytes("allocated", total.allocated)
		bytes("active", total.active)
		if r.Has.Requested {
			bytes("requested", total.requested)
		}
		e.Span.Kind = "block"
		if d < len(r.Traces) && r.Traces[d].Len() > 0 {
			t := &r.Traces[d]
			e.Attrs["events"] = evidence.IntOf(int64(t.Len()))
			e.Span.Kind, e.Span.Index = "event", int64(t.Len()-1)
			e.Stamp = stamp(t.At(t.Len() - 1).Time)
		}
		ooms := int64(0)
		for _, o := range r.ooms {
			if o.device == d {
				ooms++
			}
		}
		if ooms > 0 {
			e.Attrs["ooms"] = evidence.IntOf(ooms)
		}
		if r.cut {
			e.Attrs["cut"] = evidence.BoolOf(true)
		}
		e.Span.Offset = r.at(r.first[d])
		e.Text = fmt.Sprintf("device %d: %d segments with %s, of which %s are active", d, total.segments, evidence.Bytes(total.reserved), evidence.Bytes(total.active))
		if n := e.Attrs["events"].I; n > 0 {
			e.Text += fmt.Sprintf("; %d entries of history", n)
		}
		e.Span.Quote = e.Text
		sink.Event(e)
	}
	states := r.refusals()
	for i, o := range r.ooms {
		sink.Event(r.oom(a, o, states[i]))
	}
}

func event(k evidence.Kind, a evidence.Artifact, device int) evidence.Event {
	who := evidence.Nobody()
	who.Device = device
	return evidence.Event{Kind: k, Who: who, Step: evidence.None, Attrs: evidence.Attrs{"gpu": evidence.IntOf(int64(device))}, Span: evidence.Span{Artifact: a.Path, Device: device}}
}

func stamp(us int64) evidence.Stamp {
	if us <= 0 || us > 1<<52 { // the year 2112
		return evidence.Stamp{}
	}
	return evidence.Stamp{Time: time.UnixMicro(us).UTC(), Written: strconv.FormatInt(us, 10), Zone: "Z", Clock: "wall"}
}

type totals struct {
	segments, blocks                       int
	reserved, allocated, active, requested int64
}

func (r *result) totals(device int) (t totals) {
	for i := range r.Segments {
		if s := &r.Segments[i]; s.Device == device {
			t.segments++
			t.blocks += s.N
			t.reserved += s.Total
			t.allocated += s.Allocated
			t.active += s.Active
			t.requested += s.Requested
		}
	}
	return t
}

// A refusal is what the entries behind an oom tell of its moment.
type refusal struct {
	reserved int64 // bytes; less than 0 where segments and entries do not fit together
	last     bool  // nothing was allocated after it
}

// refusals goes once through each history that has an oom, back from its end, where the
// segments state what is reserved. The result is by index of ooms.
func (r *result) refusals() []refusal {
	out := make([]refusal, len(r.ooms))
	by := map[int][]int{} // ooms of a device, in the order of its entries
	for i, o := range r.ooms {
		by[o.device] = append(by[o.device], i)
	}
	for d, list := range by {
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(r.ooms[a].index, r.ooms[b].index) })
		now := refusal{r.totals(d).reserved, true}
		t := &r.Traces[d]
		for i := t.Len() - 1; len(list) > 0; i-- {
			for n := len(list) - 1; n >= 0 && r.ooms[list[n]].index == i; n-- {
				out[list[n]], list = now, list[:n]
			}
			switch e := t.At(i); e.Action {
			case evidence.MemSegmentAlloc, evidence.MemSegmentMap:
				now.reserved -= e.Size
				now.last = false
			case evidence.MemSegmentFree, evidence.MemSegmentUnmap:
				now.reserved += e.Size
			case evidence.MemAlloc:
				now.last = false
			}
		}
	}
	return out
}

// oom is the event of an entry that records a failure.
func (r *result) oom(a evidence.Artifact, o place, then refusal) evidence.Event {
	e := event(evidence.MemSnapshotOOM, a, o.device)
	t := &r.Traces[o.device]
	x := t.At(o.index)
	e.Attrs["event"] = evidence.IntOf(int64(o.index))
	e.Attrs["requested"] = evidence.SizeOf(max(x.Size, 0), max(x.Size, 0))
	free := int64(min(x.Addr, 1<<62))
	e.Attrs["free"] = evidence.SizeOf(free, free)
	e.Attrs["last"] = evidence.BoolOf(then.last)
	e.Text = fmt.Sprintf("device %d, entry %d: oom of %s with %s free on the device", o.device, o.index, evidence.Bytes(x.Size), evidence.Bytes(free))
	if !r.cut && len(r.Segments) > 0 && then.reserved >= 0 {
		e.Attrs["reserved"] = evidence.SizeOf(then.reserved, then.reserved)
		e.Text += ", " + evidence.Bytes(then.reserved) + " reserved"
	}
	e.Stamp = stamp(x.Time)
	e.Stack = r.frames(x.Stack)
	e.Span.Kind, e.Span.Index, e.Span.Offset = "event", int64(o.index), r.at(o.offset)
	if x.Stack != 0 {
		e.Span.Stack = strconv.Itoa(int(x.Stack))
	}
	e.Span.Quote = e.Text
	return e
}

// maxShown is how many frames of a stack an event keeps, the innermost.
const maxShown = 24

// frames is a stack in the order of a traceback: Python's frames, where there are any.
func (r *result) frames(stack uint32) (out []evidence.Frame) {
	if int(stack) >= len(r.Stacks) {
		return nil
	}
	ids := r.Stacks[stack]
	if own := slices.DeleteFunc(slices.Clone(ids), func(id uint32) bool { return !strings.HasSuffix(r.Frames[id].File, ".py") }); len(own) > 0 {
		ids = own // frames of C++ stand below those of Python, dozens of them
	}
	for i := min(len(ids), maxShown) - 1; i >= 0; i-- {
		f := &r.Frames[ids[i]]
		out = append(out, evidence.Frame{File: textline.OneLine(f.File, 512), Line: f.Line, Function: textline.OneLine(f.Name, 512)})
	}
	return out
}

func sayTimeline(r *result, a evidence.Artifact, sink reader.Sink) {
	if len(r.Timeline.Points) == 0 {
		return
	}
	e := event(evidence.MemSnapshotted, a, evidence.None)
	delete(e.Attrs, "gpu")
	e.Span.Device = 0
	peak, at := int64(0), 0
	for i := range r.Timeline.Points {
		if n := r.Timeline.Points[i].Total(); n > peak {
			peak, at = n, i
		}
	}
	last := &r.Timeline.Points[len(r.Timeline.Points)-1]
	e.Attrs["form"] = evidence.TextOf(r.Form)
	e.Attrs["events"] = evidence.IntOf(int64(len(r.Timeline.Points)))
	e.Attrs["peak"] = evidence.SizeOf(peak, peak)
	e.Attrs["active"] = evidence.SizeOf(max(last.Total(), 0), max(last.Total(), 0))
	if r.cut {
		e.Attrs["cut"] = evidence.BoolOf(true)
	}
	e.Stamp = stamp(last.Time)
	e.Text = fmt.Sprintf("memory timeline of %d states, at most %s alive at once", len(r.Timeline.Points), evidence.Bytes(peak))
	e.Span.Kind, e.Span.Index, e.Span.Offset, e.Span.Quote = "event", int64(at), r.first[0], e.Text
	sink.Event(e)
}
