package ranklog

import (
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
)

const (
	maxTracks       = 8192 // series of one artifact
	maxNames        = 512  // of them, names that are not canonical
	maxTrackEvents  = 5    // non-finite events of one series
	maxMetricEvents = 400  // non-finite events of one artifact
	recentBits      = 8    // of the table of series used lately
	quietPoints     = 10   // finite points after which a non-finite one is news again
	maxQuote        = 1024 // bytes of a line kept in an event
)

var errTooManySeries = errors.New("over limit: too many metric series, later ones are not kept")

// Canonical series, in the order of their numbers.
const (
	idLoss uint16 = iota
	idEvalLoss
	idGradNorm
	idLR
	idLossScale
	idAllocated
	idReserved
	idFree
	idUsed
	idFraction
	idHost
	idSeqLen
	idSkipped
	idStepTime
	idReward
	idKL
	idPerplexity
	idOther // first of the names made at run time
)

var canonical = [...]string{"loss", "eval_loss", "grad_norm", "lr", "loss_scale", "memory_allocated", "memory_reserved", "memory_free", "memory_used",
	"memory_fraction", "host_memory", "seq_len", "skipped", "step_time", "reward", "kl", "perplexity"}

// A keyMeaning says what a key of one or more words stands for: a series, a
// step, or one of the notes on the line.
type keyMeaning struct {
	id     uint16
	eval   bool
	peak   bool
	none   bool // known, and not a series
	single bool // the word alone is a key; false for words that only end longer keys
	multi  bool // longer keys end with this word
	step   int  // how good a step the key is, 0 for other keys (see stepKeys)
	note   note
	scale  float64
}

// stepKeys ranks the keys of steps. Those of 9 count over the run.
var stepKeys = map[string]int{
	"global_step": 9, "num_updates": 9, "current_steps": 9, "step": 8, "steps": 8, "iteration": 7, "iterations": 7, "iter": 6, "iter train": 7,
	"training_iteration": 7, "it": 5, "up": 5, "update": 4, "updates": 4, "batch": 3, "after": 1,
}

// A note is what a key that is no series says of its line.
type note uint8

const (
	noteEpoch note = iota + 1
	noteEpochEval
	noteTrain // timm: Train: 0 [  50/1251
	noteRank
	noteLimit
	noteMM
	noteMFU
	noteLightning
	noteMaxText
	noteFairseq
	noteSeconds
	noteTime
)

var noteKeys = map[string]note{
	"epoch": noteEpoch, "ep": noteEpoch, "epoch train": noteEpoch, "epoch val": noteEpochEval, "train": noteTrain, "rank": noteRank,
	"cgroup limit": noteLimit, "memory limit": noteLimit, "mem limit": noteLimit, "data_time": noteMM, "mfu": noteMFU, "v_num": noteLightning,
	"total_weights": noteMaxText, "wpb": noteFairseq, "ups": noteFairseq, "seconds": noteSeconds, "time": noteTime,
}

// keyMeanings holds the aliases, the keys of steps and of notes, and the last
// word of each key of several words.
var keyMeanings = sync.OnceValue(func() map[string]keyMeaning {
	ids := map[string]uint16{}
	for i, n := range canonical {
		ids[n] = uint16(i)
	}
	out := make(map[string]keyMeaning, len(evidence.SeriesAliases())+64)
	for k, a := range evidence.SeriesAliases() {
		out[k] = keyMeaning{single: true, id: ids[a.Name], eval: a.Phase == "eval", peak: a.Peak, none: a.Name == "", scale: a.Scale}
	}
	for k, r := range stepKeys {
		out[k] = keyMeaning{single: true, step: r}
	}
	for k, n := range noteKeys {
		out[k] = keyMeaning{single: true, note: n}
	}
	var last []string
	for k := range out {
		if i := strings.LastIndexByte(k, ' '); i >= 0 {
			last = append(last, k[i+1:])
		}
	}
	for _, w := range last {
		k := out[w]
		k.multi = true
		out[w] = k
	}
	return out
})

// isSize reports whether the values of a series are bytes.
func isSize(id uint16) bool { return id >= idAllocated && id <= idHost && id != idFraction }

// A metricTrack is one series and what is remembered of its recent points.
type metricTrack struct {
	series   *evidence.Series
	afterBad int64 // ordinal behind the last non-finite point, 0 before any
	events   int
	isLoss   bool
	health   bool
}

// A trackOf is a slot and its track for the writer and launch that it was last
// asked for, so that the values of the common trainers need no look-up.
type trackOf struct {
	slot  metricSlot
	track *metricTrack // nil where there are too many series
	owner uint64
}

// A metricSlot says which series a value belongs to, beside rank and launch.
type metricSlot struct {
	id    uint16
	src   metricSource
	eval  bool
	peak  bool
	trust evidence.Trust
}

// track returns the track of s for the current rank and launch, or nil when
// the artifact has too many series.
func (m *metrics) track(s metricSlot) *metricTrack {
	launch := m.launch
	if m.again {
		launch++
	}
	id := uint64(s.id)<<48 | uint64(s.src)<<42 | uint64(uint16(launch))<<24 | uint64(uint32(m.rank+1))&0xfffff
	if s.eval {
		id |= 1 << 41
	}
	if s.peak {
		id |= 1 << 40
	}
	if s.trust != evidence.Raw {
		id |= 1 << 20
	}
	h := id * 0x9E3779B97F4A7C15 >> (64 - recentBits)
	if m.recentID[h] == id && m.recent[h] != nil {
		return m.recent[h]
	}
	t := m.tracks[id]
	if t == nil {
		if len(m.tracks) >= maxTracks {
			if !m.full {
				m.full = true
				m.s.Damage(m.span(0, 0), errTooManySeries)
			}
			return nil
		}
		k := evidence.SeriesKey{Name: m.name(s.id), Source: sourceNames[s.src], Artifact: m.artifact, Rank: m.rank, Launch: launch, Trust: s.trust, Phase: "train"}
		if s.eval {
			k.Phase = "eval"
		}
		if s.peak {
			k.Source += " peak"
		}
		switch {
		case isSize(s.id):
			k.Unit = "bytes"
		case s.id == idFraction:
			k.Unit = "fraction"
		case s.id == idSkipped:
			k.Unit = "steps"
		case s.id == idStepTime:
			k.Unit = "seconds"
		}
		t = &metricTrack{series: m.s.Series(k), isLoss: strings.Contains(k.Name, "loss"), health: healthName(k.Name) && (s.id < idLossScale && s.id != idLR || s.id == idReward || s.id == idKL || s.id >= idOther)}
		m.tracks[id] = t
	}
	m.recent[h], m.recentID[h] = t, id
	return t
}

// ownerOf tells ranks and launches apart.
func ownerOf(launch, rank int) uint64 { return uint64(uint32(launch))<<32 | uint64(uint32(rank)) }

// name returns the name of a series number.
func (m *metrics) name(id uint16) string {
	if id < idOther {
		return canonical[id]
	}
	for n, i := range m.names {
		if i == id {
			return n
		}
	}
	return ""
}

// other returns the number of a series that has no canonical name; ok is false
// when the artifact has too many.
func (m *metrics) other(name []byte) (id uint16, ok bool) {
	if id, ok := m.names[string(name)]; ok {
		return id, true
	}
	if len(m.names) >= maxNames || len(name) == 0 || len(name) > 80 {
		return 0, false
	}
	id = idOther + uint16(len(m.names))
	m.names[string(name)] = id
	return id, true
}

// healthName reports whether a non-finite value of a metric is a sign about the
// training: scores of empty classes, rates and percentages are not.
func healthName(name string) bool {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("_/.-@ ", r) }) {
		if evidence.SeriesBenign[part] {
			return false
		}
	}
	return true
}

// A badCandidate is the non-finite value of a line that may become its event.
type badCandidate struct {
	t        *metricTrack
	priority int // lower is better; 0 means none
	from, to int // value in raw
	hidden   bool
}

// add puts one value into its series. from and to bound the printed value in
// the raw line; the event, if any, waits for settle.
func (m *metrics) add(s metricSlot, v float64, from, to int) *metricTrack {
	t := m.track(s)
	if t == nil {
		return nil
	}
	m.here()
	m.append(t, s, v, from, to)
	return t
}

// here fills in what the points of a frame have in common.
func (m *metrics) here() {
	p := &m.point
	p.Step, p.Line, p.Offset, p.Length = m.step, m.l.Number, m.at(m.frame), int32(min(m.frameTo-m.frame, math.MaxInt32))
}

// addTo is add for a slot with a trackOf of its own, behind here.
func (m *metrics) addTo(of *trackOf, v float64, from, to int) {
	m.point.Value = v
	if of.track == nil || of.owner != m.owner {
		of.track, of.owner = m.track(of.slot), m.owner
		if of.track == nil {
			return
		}
	}
	if !of.track.series.AppendDull(&m.point) {
		m.append(of.track, of.slot, v, from, to)
	}
}

// append appends a point, which may be sampled or have an event.
func (m *metrics) append(t *metricTrack, s metricSlot, v float64, from, to int) {
	p := &m.point
	p.Value, p.Stamp = v, nil
	if notFinite(v) {
		p.Stamp = m.time()
		fresh := t.events == 0 && t.series.Bad == 0 || t.series.Count-t.afterBad >= quietPoints
		t.afterBad = t.series.Count + 1
		if fresh && t.health && t.events < maxTrackEvents {
			t.events++
			m.offer(badCandidate{t: t, priority: badPriority(s), from: from, to: to})
		}
	} else if t.series.WillSample() {
		p.Stamp = m.time()
	}
	t.series.Append(p)
	p.Stamp = nil
}

// badPriority orders the non-finite values of one line: the loss says most.
func badPriority(s metricSlot) int {
	switch s.id {
	case idLoss:
		return 1
	case idGradNorm:
		return 2
	case idEvalLoss:
		return 3
	}
	return 4
}

func (m *metrics) offer(c badCandidate) {
	if m.best.priority == 0 || c.priority < m.best.priority {
		m.best = c
	}
}

// settle emits the event of the line or frame just read, if it has one: the
// first non-finite value of a series, or the first after a quiet stretch.
func (m *metrics) settle() bool {
	c := m.best
	m.best = badCandidate{}
	if c.priority == 0 || m.events >= maxMetricEvents {
		return false
	}
	m.events++
	who, stamp := m.identity()
	m.s.Event(m.nonfinite(c.t, printableText(m.raw[c.from:c.to]), c.hidden, m.span(c.from, c.to), who, stamp))
	return true
}

// nonfinite builds the event of a value in the series of t.
func (m *metrics) nonfinite(t *metricTrack, printed string, hidden bool, span evidence.Span, who evidence.Who, stamp evidence.Stamp) evidence.Event {
	k := &t.series.Key
	if who.Rank == evidence.None { // else the line says whose it is, and the series may be another's
		who.Rank = k.Rank
	}
	who.Launch = k.Launch
	return evidence.Event{
		Kind: evidence.NonfiniteValue, Who: who, Stamp: stamp, Step: m.step, Text: printableText([]byte(span.Quote)), Span: span,
		Attrs: evidence.Attrs{"metric": evidence.TextOf(k.Name), "value": evidence.TextOf(printed), "trust": evidence.TextOf(string(k.Trust)), "hidden": evidence.BoolOf(hidden)},
	}
}

// span returns the frame being read, cut to maxQuote bytes around the value at
// from:to of the raw line.
func (m *metrics) span(from, to int) evidence.Span {
	a, b := m.frame, m.frameTo
	if b-a > maxQuote {
		if to-a > maxQuote {
			a = max(a, from-maxQuote/2)
		}
		b = min(b, a+maxQuote)
	}
	for b > a && (m.raw[b-1] == '\n' || m.raw[b-1] == '\r') {
		b--
	}
	return evidence.Span{Artifact: m.artifact, Kind: "text", Line: m.l.Number, Column: int(m.l.WindowAt) + a + 1, Offset: m.at(a), Length: int64(b - a), Quote: string(m.raw[a:b])}
}

// at returns the offset in the artifact of an offset in the raw line.
func (m *metrics) at(off int) int64 { return m.l.Offset + m.l.WindowAt + int64(off) }

// printableText returns b without terminal escapes and control bytes.
func printableText(b []byte) string {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == 0x1b:
			i = skipEscapeSeq(b, i) - 1
		case c == '\t' || c >= 0x20 && c != 0x7f:
			out = append(out, c)
		}
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// skipEscapeSeq returns the offset behind the escape sequence that begins at b[i].
func skipEscapeSeq(b []byte, i int) int {
	i++
	if i < len(b) && b[i] == '[' {
		i++
		for i < len(b) && (b[i] < 0x40 || b[i] > 0x7e) {
			i++
		}
	}
	return min(i+1, len(b))
}

// A counterKey names one global step counter.
type counterKey struct {
	src  metricSource
	word int // rank of its key among step keys
	rank int
}

// A stepCounter follows one global step counter to notice that it began anew.
type stepCounter struct {
	first, last int64
	epoch       float64
	local       bool // it counts inside an epoch
	haveEpoch   bool
	seen        int64
}

// count tells of a step of a global counter and reports whether the counter
// began anew: it fell to less than half of the step before, and to its first
// value or the first tenth of the total. A counter that falls when the epoch
// rises counts inside the epoch and is never a restart. total is 0 and epoch
// NaN where the line names none. sure is false where the format does not say
// that its steps are global.
func (m *metrics) count(src metricSource, word int, step, total int64, epoch float64, sure bool) {
	k := counterKey{src, word, m.rank}
	c := m.lastCounter
	if c == nil || m.lastCounterKey != k {
		c = m.counters[k]
		m.lastCounter, m.lastCounterKey = c, k
	}
	if c == nil {
		if len(m.counters) >= maxTracks {
			return
		}
		c = &stepCounter{first: step, last: step}
		m.counters[k] = c
		m.lastCounter = c
	}
	fell := c.seen > 0 && step < c.last
	if fell && c.haveEpoch && epoch > c.epoch {
		c.local = true
	}
	if fell && !c.local && step*2 < c.last && (step <= c.first || total > 0 && step*10 <= total) {
		// Without a total and with epochs about, a fall may be an epoch's end.
		if sure || c.haveEpoch && epoch <= c.epoch || total > 0 && c.last*10 < total*9 || total == 0 && !m.epochSeen {
			m.restart()
			c.first = step
			m.counters[k] = c
		}
	}
	if epoch == epoch {
		c.epoch, c.haveEpoch = epoch, true
	}
	c.last = step
	c.seen++
}

// restart begins another training: the other ranks and formats begin anew with
// the one that was seen to.
func (m *metrics) restart() {
	m.again = true
	m.owner = ownerOf(m.launch+1, m.rank)
	m.lastCounter, m.lastHF, m.lastMegatron = nil, nil, nil
	clear(m.counters)
	clear(m.hf)
	clear(m.megatron)
}

// steps reports the total number of steps that the run is to take.
func (m *metrics) steps(total int64, from, to int) {
	launch := m.launch
	if m.again {
		launch++
	}
	if total <= 0 || total == m.total && launch == m.totalAt {
		return
	}
	m.total, m.totalAt = total, launch
	who := evidence.Nobody()
	who.Rank, who.Launch = m.rank, launch
	m.s.Fact(evidence.Fact{Name: "setting.total_steps", Value: evidence.IntOf(total), Who: who, Span: m.span(from, to)})
}
