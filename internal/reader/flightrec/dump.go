package flightrec

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A dump is one rank's file.
type dump struct {
	path   string
	sink   reader.Sink
	cut    bool // its end is missing
	rank   int
	world  int // ranks of the default group
	proof  *pickle.Value
	state  *pickle.Value // pg_status
	groups map[string]*group
	order  []*group
}

// A group is one process group as this rank knows it.
type group struct {
	name, desc  string
	members     []int // global ranks in the order of the group's ranks
	config      *pickle.Value
	id          int64 // pg_id, None if no entry tells
	status      *pickle.Value
	collectives []call
	p2p         []call
}

// A call is one entry.
type call struct {
	node           *pickle.Value
	index          int // in entries
	record, seq    int64
	op             string
	in, out, dtype string
	state          string
	peer           int // of send and recv: rank in the group
}

const completed = "completed"

func (c *call) completed() bool { return c.state == completed }

// interpret reads the top level; a bare list is one of entries, as the first
// versions wrote it.
func (d *dump) interpret(top *pickle.Value) {
	d.rank = evidence.None
	entries := top.Get("entries")
	if top != nil && top.Kind == pickle.KindList {
		entries = top
	}
	if c := top.Get("pg_config"); c != nil && c.Kind == pickle.KindDict {
		for i := 0; i+1 < len(c.Items); i += 2 {
			d.configured(c.Items[i].Text, c.Items[i+1])
		}
	}
	if entries != nil && entries.Kind == pickle.KindList {
		for i, e := range entries.Items {
			if i == maxEntries {
				d.sink.Damage(d.span(e, fmt.Sprintf("/entries/%d", i), ""), fmt.Errorf("more than %d entries", maxEntries))
				d.cut = true
				break
			}
			if e.Kind == pickle.KindDict {
				d.entry(i, e)
			}
		}
	}
	d.state = top.Get("pg_status")
	d.statuses(d.state)
	slices.SortFunc(d.order, func(a, b *group) int {
		return cmp.Or(evidence.Natural(a.name, b.name), strings.Compare(a.name, b.name))
	})
}

// group returns the group of that name, nil once there are too many.
func (d *dump) group(name string, at *pickle.Value) *group {
	name = short(textline.OneLine(name, 1<<10))
	g := d.groups[name]
	if g == nil {
		if len(d.order) == maxGroups {
			d.sink.Damage(d.span(at, "", ""), fmt.Errorf("more than %d process groups", maxGroups))
		}
		if len(d.order) >= maxGroups {
			return nil
		}
		g = &group{name: name, id: evidence.None}
		d.groups[name] = g
		d.order = append(d.order, g)
	}
	return g
}

// configured reads one element of pg_config. Gloo's recorder puts all its groups under
// an empty name, the last one wins, and counts its members from 0 (PyTorch 2.15):
// that says nothing.
func (d *dump) configured(name string, c *pickle.Value) {
	if name == "" {
		return
	}
	g := d.group(name, c)
	if g == nil {
		return
	}
	g.config = c
	if x := c.Get("desc"); x != nil {
		g.desc = textline.OneLine(x.Text, 200)
	}
	if x := c.Get("ranks"); x != nil {
		g.members = ranks(x)
	}
	if g.desc == "default_pg" || g.name == "0" && g.desc == "" {
		if n := len(g.members); n > 0 && slices.Max(g.members) == n-1 {
			d.world, d.proof = n, c
		}
	}
}

// ranks reads a list of ranks: text like "[0, 1, 2]", or numbers. Anything else
// is no list.
func ranks(v *pickle.Value) []int {
	var out []int
	if v.Kind == pickle.KindList {
		for _, x := range v.Items {
			if len(out) > maxRanks {
				return nil
			}
			if x.Kind != pickle.KindInt || x.Int < 0 || x.Int > 1<<24 {
				return nil
			}
			out = append(out, int(x.Int))
		}
		return unique(out)
	}
	s, ok := strings.CutPrefix(strings.TrimSpace(v.Text), "[")
	if !ok {
		return nil
	}
	if s, ok = strings.CutSuffix(s, "]"); !ok {
		return nil
	}
	for f := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(f), 10, 24)
		if err != nil || len(out) > maxRanks {
			return nil
		}
		out = append(out, int(n))
	}
	return unique(out)
}

// unique returns l if no number comes twice.
func unique(l []int) []int {
	seen := make(map[int]bool, len(l))
	for _, n := range l {
		if seen[n] {
			return nil
		}
		seen[n] = true
	}
	return l
}

// whole reads an integer, or text that is one, as the JSON form has it.
func whole(v *pickle.Value) (int64, bool) {
	switch {
	case v == nil:
		return 0, false
	case v.Kind == pickle.KindInt:
		return v.Int, true
	case v.Kind == pickle.KindString:
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// entry reads one entry. What names no operation or no number is no call.
func (d *dump) entry(index int, e *pickle.Value) {
	c := call{node: e, index: index, peer: evidence.None}
	name, desc := "", ""
	id, identified := whole(e.Get("pg_id"))
	switch pg := e.Get("process_group"); {
	case pg == nil && identified:
		name = fmt.Sprintf("pg_id %d", id)
	case pg == nil:
		return
	case pg.Kind == pickle.KindString:
		name = pg.Text
	case len(pg.Items) > 0:
		name = pg.Items[0].Text
		if len(pg.Items) > 1 {
			desc = pg.Items[1].Text
		}
	}
	op := e.Get("profiling_name")
	state := e.Get("state")
	if op == nil || state == nil {
		return // cut
	}
	backend, after, ok := strings.Cut(op.Text, ":")
	if !ok {
		backend, after = "nccl", op.Text
	}
	c.op, c.state = textline.OneLine(after, 80), textline.OneLine(state.Text, 20)
	// NCCL retires work that is completed, and work that it gives up. Gloo has no
	// events to query: its work stays scheduled, and is retired once it is done.
	if r := e.Get("retired"); backend == "gloo" && r != nil && r.Int != 0 {
		c.state = completed
	}
	c.record, _ = whole(e.Get("record_id"))
	p2p := e.Get("is_p2p") != nil && e.Get("is_p2p").Int != 0
	if e.Get("is_p2p") == nil { // before 2.1
		p2p = strings.HasPrefix(c.op, "send ") || strings.HasPrefix(c.op, "recv ")
	}
	key := "collective_seq_id"
	if p2p {
		key = "p2p_seq_id"
	}
	seq, ok := whole(e.Get(key))
	if !ok {
		if seq, ok = whole(e.Get("seq_id")); !ok {
			return
		}
	}
	c.seq = seq
	c.in, c.out = sizes(e.Get("input_sizes")), sizes(e.Get("output_sizes"))
	c.dtype = words(e.Get("input_dtypes"))
	g := d.group(name, e)
	if g == nil {
		return
	}
	if g.desc == "" {
		g.desc = textline.OneLine(desc, 200)
	}
	if identified {
		g.id = id
	}
	if !p2p {
		g.collectives = append(g.collectives, c)
		return
	}
	c.op, c.peer = peer(c.op)
	g.p2p = append(g.p2p, c)
}

// peer splits "send 0->3" and "recv 3<-0" into operation and the other rank, both
// of the group.
func peer(op string) (string, int) {
	verb, rest, _ := strings.Cut(op, " ")
	for _, arrow := range []string{"->", "<-"} {
		if _, other, ok := strings.Cut(rest, arrow); ok && (verb == "send" || verb == "recv") {
			if n, err := strconv.ParseUint(other, 10, 24); err == nil {
				return verb, int(n)
			}
		}
	}
	return verb, evidence.None
}

// maxShape is how much of the sizes of one call and of a name is kept as it is; the
// rest becomes a checksum, so that equal stays equal.
const maxShape = 80

func short(s string) string {
	if len(s) <= maxShape {
		return s
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%s…%016x", strings.ToValidUTF8(s[:maxShape-20], ""), h.Sum64())
}

// maxList is how many tensors of a call and how many dimensions of a tensor are
// looked at: a call that joins many is told from others by those and their number.
const maxList = 256

// sizes writes a list of lists of integers: [4096,5120], several joined by x.
func sizes(v *pickle.Value) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	for i, t := range v.Items[:min(len(v.Items), maxList)] {
		if i > 0 {
			b.WriteByte('x')
		}
		b.WriteByte('[')
		for k, n := range t.Items[:min(len(t.Items), maxList)] {
			if k > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatInt(n.Int, 10))
		}
		b.WriteByte(']')
	}
	if n := len(v.Items); n > maxList {
		fmt.Fprintf(&b, "x%d", n)
	}
	return short(b.String())
}

// words joins a list of texts.
func words(v *pickle.Value) string {
	if v == nil {
		return ""
	}
	if v.Kind == pickle.KindString {
		return short(nospace(v.Text))
	}
	var b strings.Builder
	for i, x := range v.Items[:min(len(v.Items), maxList)] {
		if i > 0 {
			b.WriteByte('+')
		}
		b.WriteString(nospace(x.Text))
	}
	return short(b.String())
}

func nospace(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == ';' || r == 0x7f {
			return '_'
		}
		return r
	}, textline.OneLine(s, maxShape))
}

// statuses gives each group its element of pg_status. That is keyed by pg_id, an
// ordinal of this process, and only entries say which group has which. Where no
// entry of a group is left, the order tells: ids and the names that torch numbers
// both count up as groups are made. It is used only if all names are numbers, there are as
// many groups as states, and every entry agrees.
func (d *dump) statuses(s *pickle.Value) {
	if s == nil || s.Kind != pickle.KindDict {
		return
	}
	by := map[int64]*pickle.Value{}
	var ids []int64
	for i := 0; i+1 < len(s.Items); i += 2 {
		id, ok := whole(s.Items[i])
		if !ok || by[id] != nil || s.Items[i+1].Kind != pickle.KindDict {
			return
		}
		by[id] = s.Items[i+1]
		ids = append(ids, id)
	}
	for _, g := range d.order {
		if g.id != evidence.None {
			g.status = by[g.id]
		}
	}
	groups := slices.Clone(d.order)
	for _, g := range groups {
		if g.config == nil || !number10(g.name) {
			return
		}
	}
	if len(groups) != len(ids) || d.cut {
		return
	}
	slices.Sort(ids)
	slices.SortFunc(groups, func(a, b *group) int { return evidence.Natural(a.name, b.name) })
	for i, g := range groups {
		if g.id != evidence.None && g.id != ids[i] {
			return
		}
	}
	for i, g := range groups {
		g.status = by[ids[i]]
	}
}

func number10(s string) bool {
	return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == ""
}

// name finds the rank: the number at the end of the file's name, unless the
// groups exclude it, else the one rank that all groups have in common. A process is
// a member of all groups in its own pg_config.
func (d *dump) name(a evidence.Artifact) {
	common := d.common()
	owner := func(rank int, basis string) {
		d.rank = rank
		d.sink.Owner(evidence.Owner{Rank: rank, LocalRank: evidence.None, Basis: basis})
	}
	n, named := ending(a.Path)
	switch {
	case len(common) == 1:
		basis := "content: the only member of all its process groups"
		if named && n == common[0] {
			basis = "file name and content"
		}
		owner(common[0], basis)
	case named && (common == nil || slices.Contains(common, n)):
		owner(n, "file name")
	case named:
		d.sink.Damage(evidence.Span{Artifact: d.path, Kind: "pointer", Pointer: "/pg_config"},
			errors.New("the number in the file's name is no member of its process groups; whose dump it is stays open"))
	case a.Owner.Rank != evidence.None && (common == nil || slices.Contains(common, a.Owner.Rank)):
		d.rank = a.Owner.Rank
	}
}

// common returns the ranks that are members of every group, nil if no members are
// known.
func (d *dump) common() []int {
	var out []int
	first := true
	for _, g := range d.order {
		if g.config == nil || len(g.members) == 0 {
			continue
		}
		if first {
			out, first = slices.Clone(g.members), false
			continue
		}
		in := map[int]bool{}
		for _, r := range g.members {
			in[r] = true
		}
		out = slices.DeleteFunc(out, func(r int) bool { return !in[r] })
	}
	if first {
		return nil
	}
	return slices.Clip(append([]int{}, out...))
}

// ending reads the number at the end of a file's name.
func ending(name string) (int, bool) {
	if i := strings.LastIndex(name, "!"); i >= 0 {
		name = name[i+1:]
	}
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	for _, e := range []string{".gz", ".zst", ".xz", ".bz2", ".json", ".pickle", ".pkl", ".bin", ".txt"} {
		base = strings.TrimSuffix(base, e)
	}
	digits := base[len(strings.TrimRight(base, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 24)
	return int(n), err == nil
}

// say hands over what the dump shows: one event for each group in which this rank
// did something, or one that says that it did nothing.
func (d *dump) say() {
	if d.world > 1 {
		d.sink.Fact(evidence.Fact{Name: "run.world", Value: evidence.IntOf(int64(d.world)), Who: d.who(), Span: d.span(d.proof, "/pg_config", "pg_config: the default group has "+strconv.Itoa(d.world)+" ranks")})
	}
	said := false
	for _, g := range d.order {
		if g.status != nil || len(g.collectives)+len(g.p2p) > 0 {
			d.sink.Event(d.record(g))
			said = true
		}
	}
	if !said && !d.cut && d.state != nil && len(d.state.Items) == 0 {
		d.sink.Event(evidence.Event{Kind: evidence.CollRecord, Who: d.who(), Step: evidence.None, Text: "no call is recorded", Span: d.span(d.state, "/pg_status", "pg_status is empty")})
	}
}

func (d *dump) who() evidence.Who {
	w := evidence.Nobody()
	w.Rank = d.rank
	return w
}

func (d *dump) span(v *pickle.Value, pointer, quote string) evidence.Span {
	s := evidence.Span{Artifact: d.path, Kind: "pointer", Pointer: pointer, Quote: textline.OneLine(quote, 300)}
	if v != nil {
		s.Offset, s.Length = v.Offset, v.End-v.Offset
	}
	return s
}

// record states one group.
func (d *dump) record(g *group) evidence.Event {
	a := evidence.Attrs{"group": evidence.TextOf(g.name)}
	e := evidence.Event{Kind: evidence.CollRecord, Who: d.who(), Step: evidence.None, Attrs: a}
	text := func(name, v string) {
		if v != "" {
			a[name] = evidence.TextOf(v)
		}
	}
	text("desc", g.desc)
	text("members", evidence.RankRanges(g.members))
	if d.cut {
		a["cut"] = evidence.BoolOf(true)
	}
	if len(g.p2p) > 0 {
		a["p2p"] = evidence.BoolOf(true)
	}
	for _, n := range []string{"enqueued", "started", "completed"} {
		if v, ok := whole(g.status.Get("last_" + n + "_collective")); ok {
			a["last_"+n] = evidence.IntOf(v)
		}
	}
	if enqueued, done, known := progress(g.collectives); known {
		a["enqueued"], a["completed"] = evidence.IntOf(enqueued), evidence.IntOf(done)
		for i := range g.collectives {
			if ns, ok := whole(g.collectives[i].node.Get("time_discovered_completed_ns")); ok && ns > 0 && g.collectives[i].seq == done {
				a["completed_ns"] = evidence.IntOf(ns)
			}
		}
	}
	text("calls", calls(g.collectives))
	text("waits", d.waits(g))
	first := oldest(g.collectives, g.p2p)
	switch {
	case first != nil:
		d.pending(&e, g, first)
	case g.config != nil:
		e.Span = d.span(g.config, "/pg_config/"+g.name, fmt.Sprintf("pg_config %s %s: %s", g.name, g.desc, d.standing(g)))
	default:
		c := append(slices.Clone(g.collectives), g.p2p...)[0]
		e.Span = d.span(c.node, fmt.Sprintf("/entries/%d", c.index), c.quote())
	}
	e.Text = textline.OneLine(fmt.Sprintf("process group %s %s: %s", g.name, g.desc, d.standing(g)), 400)
	return e
}

// standing says in words where this rank is in g.
func (d *dump) standing(g *group) string {
	var parts []string
	if c := oldest(g.collectives, g.p2p); c != nil {
		op := c.op
		if c.peer != evidence.None {
			op = fmt.Sprintf("%s with rank %d of the group", op, c.peer)
		}
		parts = append(parts, fmt.Sprintf("%s, sequence number %d, is %s", op, c.seq, c.state))
	}
	if n, ok := whole(g.status.Get("last_enqueued_collective")); ok {
		m, _ := whole(g.status.Get("last_completed_collective"))
		parts = append(parts, fmt.Sprintf("last enqueued work %d, last completed %d", n, m))
	} else if n, m, ok := progress(g.collectives); ok {
		parts = append(parts, fmt.Sprintf("last enqueued collective %d, completed up to %d", n, m))
	}
	return strings.Join(parts, "; ")
}

func (c *call) quote() string {
	return fmt.Sprintf("record_id %d: %s, sequence number %d, state %s, input %s %s", c.record, c.op, c.seq, c.state, c.in, c.dtype)
}

// pending states the oldest call that is not completed.
func (d *dump) pending(e *evidence.Event, g *group, c *call) {
	a := e.Attrs
	a["record"], a["seq"] = evidence.IntOf(c.record), evidence.IntOf(c.seq)
	a["op"], a["state"] = evidence.TextOf(c.op), evidence.TextOf(c.state)
	if ms, ok := whole(c.node.Get("timeout_ms")); ok && ms > 0 {
		a["timeout_ms"] = evidence.IntOf(ms)
	}
	e.Span = d.span(c.node, fmt.Sprintf("/entries/%d", c.index), c.quote())
	e.Span.Record, e.Span.Index = c.record, int64(c.index)
	if ns, ok := whole(c.node.Get("time_created_ns")); ok && ns > 0 {
		at := time.Unix(0, ns).UTC()
		e.Stamp = evidence.Stamp{Time: at, Written: strconv.FormatInt(ns, 10), Zone: "Z", Clock: "wall"}
	}
	e.Stack = stack(c.node.Get("frames"))
}

// maxFrames is how many frames of a call's stack are kept, the innermost.
const maxFrames = 24

// stack reads frames, innermost first, into the order of a traceback.
func stack(v *pickle.Value) []evidence.Frame {
	if v == nil || v.Kind != pickle.KindList {
		return nil
	}
	var out []evidence.Frame
	for _, f := range v.Items[:min(len(v.Items), maxFrames)] {
		file, function := f.Get("filename"), f.Get("name")
		if file == nil || function == nil {
			continue
		}
		line, _ := whole(f.Get("line"))
		out = append(out, evidence.Frame{File: textline.OneLine(file.Text, 300), Line: int(line), Function: textline.OneLine(function.Text, 120)})
	}
	slices.Reverse(out)
	return out
}

// oldest returns the call with the lowest record number that is not completed.
func oldest(lists ...[]call) *call {
	var first *call
	for _, l := range lists {
		for i := range l {
			if c := &l[i]; !c.completed() && (first == nil || c.record < first.record) {
				first = c
			}
		}
	}
	return first
}

// progress returns the highest sequence number among the calls and up to which
// they are completed: work of one group completes in order.
func progress(l []call) (enqueued, done int64, known bool) {
	if len(l) == 0 {
		return 0, 0, false
	}
	enqueued, done = -1, -1
	pending := int64(-1)
	for i := range l {
		c := &l[i]
		enqueued = max(enqueued, c.seq)
		if c.completed() {
			done = max(done, c.seq)
		} else if pending < 0 || c.seq < pending {
			pending = c.seq
		}
	}
	if pending >= 0 {
		done = pending - 1
	}
	return enqueued, done, true
}

// Windows of calls that are kept of each group: those from shortly before the
// first that is not completed on.
const (
	maxCalls  = 64
	maxBefore = 16
	maxWaits  = 32
)

// duration is how long the call ran on the device, in milliseconds, where it was
// timed (TORCH_NCCL_ENABLE_TIMING).
func (c *call) duration() string {
	v := c.node.Get("duration_ms")
	if v == nil || v.Kind != pickle.KindFloat && v.Kind != pickle.KindInt {
		return "-"
	}
	return strconv.FormatFloat(v.Float(), 'g', 6, 64)
}

// calls writes the calls around the first that is not completed, separated by
// semicolons: sequence number, operation, sizes in and out, types, state and
// duration.
func calls(l []call) string {
	from := max(0, len(l)-maxCalls)
	for i := range l {
		if !l[i].completed() {
			from = max(0, i-maxBefore)
			break
		}
	}
	var b strings.Builder
	for i := from; i < len(l) && i < from+maxCalls; i++ {
		c := &l[i]
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "%d %s %s %s %s %s %s", c.seq, cmp.Or(nospace(c.op), "-"), cmp.Or(c.in, "-"), cmp.Or(c.out, "-"), cmp.Or(c.dtype, "-"), cmp.Or(nospace(c.state), "-"), c.duration())
	}
	return b.String()
}

// waits writes the sends and receives that are not completed: the verb, the
// other's global rank, the sequence number and the record number.
func (d *dump) waits(g *group) string {
	var b strings.Builder
	n := 0
	for i := range g.p2p {
		c := &g.p2p[i]
		if c.completed() || c.peer == evidence.None || c.peer >= len(g.members) || n == maxWaits {
			continue
		}
		n++
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "%s %d %d %d", c.op, g.members[c.peer], c.seq, c.record)
	}
	return b.String()
}
