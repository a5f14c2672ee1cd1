package wandblog

import (
	"math"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/protowire"
)

// NoStep is the step of a value whose row states none.
const NoStep = -1

// maxKeys bounds the keys that are remembered. Those beyond it are decoded anew each time.
const maxKeys = 1 << 15

// maxWall is the first time that is none, in seconds since 1970.
const maxWall = 1e11

// maxKeyBytes bounds a key that is remembered.
const maxKeyBytes = 1 << 12

// A Key is what rows say of one series.
type Key struct {
	Name   string // nested keys with dots between them
	System bool   // from stats records: measured of the machine
	// Index is free for the user: 0 until it is set. A key beyond the bound is made anew for each
	// value.
	Index int

	raw      string // fields of the key as they stand in items
	role     role
	labels   int
	media    bool // part of an object that is no series
	axis     *Key // series whose value in the same row is the step of this one
	next     *Key // that came behind it last time
	row      int64
	value    float64 // in that row
	children map[string]*Key
}

type role uint8

const (
	metric    role = iota
	stepKey        // _step
	wallKey        // _timestamp
	runtime        // _runtime
	internal       // _wandb and what is below it
	typeLabel      // <key>._type: what stands beside it is no series
)

// A Value is one number of a row.
type Value struct {
	*Key
	Step int64 // NoStep where none is stated
	V    float64
	// Item is the index of the row's item that it stands in, and Leaf its index among the
	// numbers of that item's object, -1 where the item is the number.
	Item, Leaf int
}

// A Row is one history or stats record. It is valid until the next call.
type Row struct {
	Step   int64   // NoStep where none is stated
	Wall   float64 // seconds since 1970, 0 where unknown
	Values []Value
	// Other is how many items are no numbers.
	Other int
}

// Rows decodes the history and stats records of one log, in their order. It knows the keys
// that were met and which of them count steps.
type Rows struct {
	// Start is when the run began, seconds since 1970; with it a row that states only how long the
	// run has run gets its time.
	Start float64

	keys    map[string]*Key // by raw
	system  map[string]*Key
	byName  map[string]*Key
	objects map[string]bool // names of keys that hold W&B's own types
	axes    []axis
	row     int64
	out     Row
	last    [2]*Key // that was met last, of history and of stats
}

// An axis is what a metric record defines: series that count their steps in another.
type axis struct{ name, glob, step string }

// maxAxes bounds the definitions that are remembered.
const maxAxes = 1 << 10

// NewRows returns a decoder.
func NewRows() *Rows {
	return &Rows{keys: map[string]*Key{}, system: map[string]*Key{}, byName: map[string]*Key{}, objects: map[string]bool{}}
}

// counters are the series that count optimizer steps, as trainers name them. Only these are taken
// for steps where a run defines them as its axis: an epoch or a number of samples is none.
var counters = []string{"global_step", "trainer/global_step", "train/global_step", "iteration", "iter", "num_updates", "train_steps", "train/step", "step", "steps"}

// Define takes a metric record: what run.define_metric said. It returns the name or pattern and the
// series that counts its steps, "" where that is no counter of steps.
func (r *Rows) Define(body []byte) (pattern, step string, err error) {
	var a axis
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 1<<3 | protowire.Bytes:
			a.name = m.Text()
		case 2<<3 | protowire.Bytes:
			a.glob = m.Text()
		case 4<<3 | protowire.Bytes:
			a.step = m.Text()
		}
	}
	if m.Err() != nil || !slices.Contains(counters, a.step) || len(r.axes) >= maxAxes {
		return "", "", m.Err()
	}
	r.axes = append(r.axes, a)
	for _, k := range r.keys {
		k.axis = r.axisOf(k)
	}
	if a.name != "" {
		return a.name, a.step, nil
	}
	return a.glob, a.step, nil
}

// axisOf finds what counts the steps of a key: itself where it counts those of others, a definition of
// its name, or else the first pattern that matches.
func (r *Rows) axisOf(k *Key) *Key {
	if k.System || k.role != metric {
		return nil
	}
	found := ""
	for i := range r.axes {
		a := &r.axes[i]
		if a.name == k.Name || a.step == k.Name {
			found = a.step
			break
		}
		if found == "" && a.glob != "" {
			if prefix, any := strings.CutSuffix(a.glob, "*"); any && strings.HasPrefix(k.Name, prefix) { // W&B has no other pattern
				found = a.step
			}
		}
	}
	if found == "" {
		return nil
	}
	return r.named(found)
}

// named is the key of a name, which may come in a later row.
func (r *Rows) named(name string) *Key {
	k := r.byName[name]
	if k == nil {
		k = &Key{Name: name, labels: 1}
		r.byName[name] = k
	}
	return k
}

// key finds the key of an item by its raw fields.
func (r *Rows) key(raw []byte, system bool) *Key {
	side, list := 0, r.keys
	if system {
		side, list = 1, r.system
	}
	last := r.last[side]
	if last != nil && last.next != nil && last.next.raw == string(raw) {
		r.last[side] = last.next
		return last.next
	}
	k := list[string(raw)]
	if k == nil {
		k = r.newKey(raw, system)
		if len(list) >= maxKeys || len(raw) > maxKeyBytes {
			return k
		}
		list[k.raw] = k
	}
	if last != nil {
		last.next = k
	}
	r.last[side] = k
	return k
}

func (r *Rows) newKey(raw []byte, system bool) *Key {
	name, labels := nameOf(raw)
	k := &Key{Name: name, System: system, labels: labels}
	if !system {
		if same := r.byName[name]; same != nil && same.raw == "" {
			k = same
			k.labels = labels
		} else if same == nil && len(r.byName) < maxKeys {
			r.byName[name] = k
		}
	}
	k.raw = string(raw)
	if system {
		return k
	}
	switch {
	case name == "_step":
		k.role = stepKey
	case name == "_timestamp":
		k.role = wallKey
	case name == "_runtime":
		k.role = runtime
	case name == "_wandb" || strings.HasPrefix(name, "_wandb."):
		k.role = internal
	case labels > 1 && strings.HasSuffix(name, "._type"):
		k.role = typeLabel
		if object := strings.TrimSuffix(name, "._type"); len(r.objects) < maxKeys {
			r.objects[object] = true
			for _, other := range r.keys {
				if strings.HasPrefix(other.Name, object+".") && other.labels > 1 {
					other.media = true
				}
			}
		}
	}
	for at := 0; labels > 1 && !k.media; {
		dot := strings.IndexByte(name[at:], '.')
		if dot < 0 {
			break
		}
		k.media = r.objects[name[:at+dot]]
		at += dot + 1
	}
	k.axis = r.axisOf(k)
	return k
}

// child is the key of a number within an object.
func (k *Key) child(r *Rows, name string) *Key {
	if c := k.children[name]; c != nil {
		return c
	}
	c := &Key{Name: name, System: k.System, media: k.media, labels: k.labels + 1, role: k.role}
	c.axis = r.axisOf(c)
	if k.children == nil {
		k.children = map[string]*Key{}
	}
	if len(k.children) < maxKeys && len(name) <= maxKeyBytes {
		k.children[name] = c
	}
	return c
}

// History decodes a history record. The row's values stand in the order of the record; what W&B
// adds (_step, _timestamp, _runtime) is not among them.
func (r *Rows) History(body []byte) (*Row, error) {
	r.begin()
	step, stated := int64(NoStep), int64(NoStep)
	var wall, ran float64
	n := 0
	for at := 0; at < len(body); {
		in, size := short(body[at:])
		if in == nil {
			m := protowire.Decode(body[at:])
			if !m.Next() {
				return nil, m.Err()
			}
			size = len(m.Raw())
			switch m.Tag {
			case 1<<3 | protowire.Bytes:
				in = m.Bytes()
			case 2<<3 | protowire.Bytes:
				step = 0
				num := m.Message()
				for num.Next() {
					if num.Tag == 1<<3|protowire.Varint {
						step = max(num.Int(), NoStep)
					}
				}
			}
		}
		at += size
		if in == nil {
			continue
		}
		raw, json, err := item(in, nil)
		if err != nil {
			return nil, err
		}
		k := r.key(raw, false)
		v, ok := number(json)
		switch {
		case !ok:
			r.other(k, json, n)
		case k.role == metric:
			k.row, k.value = r.row, v
			r.out.Values = append(r.out.Values, Value{Key: k, V: v, Item: n, Leaf: -1})
		case k.role == stepKey:
			if v >= 0 && v < 1<<53 {
				stated = int64(v)
			}
		case k.role == wallKey:
			wall = v
		case k.role == runtime:
			ran = v
		}
		n++
	}
	if stated != NoStep {
		step = stated
	}
	if !(wall > 0) && ran > 0 && r.Start > 0 {
		wall = r.Start + ran
	}
	if wall > 0 && wall < maxWall { // false for NaN
		r.out.Wall = wall
	}
	r.out.Step = step
	all, kept := r.out.Values, 0
	for i := range all {
		v := &all[i]
		if v.media {
			r.out.Other++
			continue
		}
		v.Step = step
		if a := v.axis; a != nil && a.row == r.row && a.value >= 0 && a.value < 1<<53 && a.value == math.Trunc(a.value) {
			v.Step = int64(a.value)
		}
		if kept < i { // seldom: a copy of each would be a tenth of the time of the row
			all[kept] = *v
		}
		kept++
	}
	r.out.Values = all[:kept]
	return &r.out, nil
}

// short takes an item shorter than 128 bytes from the front of a history record; nil is anything
// else.
func short(b []byte) (in []byte, size int) {
	if len(b) < 2 || b[0] != 1<<3|protowire.Bytes || b[1] >= 0x80 || int(b[1]) > len(b)-2 {
		return nil, 0
	}
	size = 2 + int(b[1])
	return b[2:size:size], size
}

// Stats decodes a stats record: what was measured of the machine at one time, without a step.
func (r *Rows) Stats(body []byte) (*Row, error) {
	r.begin()
	n := 0
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 2<<3 | protowire.Bytes:
			r.out.Wall = timestamp(m.Bytes())
		case 3<<3 | protowire.Bytes:
			raw, json, err := item(m.Bytes(), nil)
			if err != nil {
				return nil, err
			}
			k := r.key(raw, true)
			if v, ok := number(json); ok {
				r.out.Values = append(r.out.Values, Value{Key: k, Step: NoStep, V: v, Item: n, Leaf: -1})
			} else {
				r.other(k, json, n)
			}
			n++
		}
	}
	if err := m.Err(); err != nil {
		return nil, err
	}
	for i := range r.out.Values {
		r.out.Values[i].Step = NoStep
	}
	return &r.out, nil
}

func (r *Rows) begin() {
	r.row++
	r.out.Values = r.out.Values[:0]
	r.out.Step, r.out.Wall, r.out.Other = NoStep, 0, 0
}

// other takes an item that is no number as it stands: an object may hold some.
func (r *Rows) other(k *Key, json []byte, n int) {
	json = trim(json)
	if v, ok := number(json); ok && k.role == metric { // with space around it
		r.out.Values = append(r.out.Values, Value{Key: k, V: v, Item: n, Leaf: -1})
		return
	}
	if len(json) == 0 || json[0] != '{' || k.role != metric {
		r.out.Other++
		return
	}
	leaf := 0
	leaves(json, k.Name, 0, func(name string, v float64) {
		r.out.Values = append(r.out.Values, Value{Key: k.child(r, name), V: v, Item: n, Leaf: leaf})
		leaf++
	})
}

// Object decodes a row that stands as one JSON object, as versions before 0.10 wrote them, and
// as the summary is. system says that it was measured of the machine. ok is false where it is no
// whole object.
func (r *Rows) Object(text []byte, system bool) (row *Row, ok bool) {
	r.begin()
	text = trim(text)
	step, list := int64(NoStep), r.byName
	if system {
		list = r.system
	}
	var wall, ran float64
	n := 0
	ok = members(text, func(m member) bool {
		in := text[m.value:m.end]
		name := unquote(text[m.start:m.nameEnd])
		v, number := number(in)
		switch {
		case name == "_step" && number && v >= 0 && v < 1<<53:
			step = int64(v)
		case name == "_timestamp" && number:
			wall = v
		case name == "_runtime" && number:
			ran = v
		case name == "_step" || name == "_timestamp" || name == "_runtime" || name == "_wandb":
		default:
			k := list[name]
			if k == nil {
				k = &Key{Name: name, System: system, labels: 1}
				if len(list) < maxKeys && len(name) <= maxKeyBytes {
					list[name] = k
				}
			}
			if number {
				r.out.Values = append(r.out.Values, Value{Key: k, V: v, Item: n, Leaf: -1})
			} else {
				r.other(k, in, n)
			}
		}
		n++
		return true
	})
	if !ok {
		return nil, false
	}
	if end := value(text, 0); end != len(text) {
		return nil, false
	}
	if !(wall > 0) && ran > 0 && r.Start > 0 {
		wall = r.Start + ran
	}
	if wall > 0 && wall < maxWall {
		r.out.Wall = wall
	}
	if system {
		step = NoStep
	}
	r.out.Step = step
	for i := range r.out.Values {
		r.out.Values[i].Step = step
	}
	return &r.out, true
}

// StepOf is the name of the series in which a row's first series that has one counts its steps, ""
// where all count in W&B's own. body is a history record that was decoded.
func (r *Rows) StepOf(body []byte) string {
	name := ""
	Items(body, 1, func(i Item) bool {
		name = r.StepNamed(i.Name)
		return name == ""
	})
	return name
}

// StepNamed is the name of the series in which the one of a name counts its steps, as the metric
// records so far define it, "" for W&B's own.
func (r *Rows) StepNamed(name string) string {
	if k := r.axisOf(&Key{Name: name}); k != nil {
		return k.Name
	}
	return ""
}
